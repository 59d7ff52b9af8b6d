"""The stacks of the threads of a live process, as each thread says: its stack pointer, and the block that it was given.

The C library keeps the block beside the thread's control data: glibc in `struct pthread` (stackblock, stackblock_size),
musl in its own (map_base, map_size). The kernel knows an address in that structure: the head of the thread's list of
robust mutexes, which glibc registers for every thread. That of musl begins with its own address, above the stack.

Source: proc_pid_syscall(5), get_robust_list(2); nptl/descr.h of glibc 2.17 to 2.43, src/internal/pthread_impl.h of
musl 1.2.
"""

import os
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dict
from contextlib import suppress
from itertools import pairwise
from typing import Final

from footprint.process.glibc.words import LAYOUTS, ProcessWords
from footprint.process.mappings import NO_STACKS, Mapping, StackBlock, ThreadStacks, word_bytes_of
from footprint.process.pages import ProcessMemory

_SYS_GET_ROBUST_LIST: Final = {
    "x86_64": 274,
    "i686": 312,
    "aarch64": 100,
    "riscv64": 100,
    "armv7l": 339,
    "ppc64le": 299,
    "s390x": 305,
}
_PIECE_BYTES: Final = 1 << 12  # a control block is not larger
_MOST_ABOVE_BYTES: Final = 1 << 20  # from the list to the end of the block: thread-local variables may lie there
_MOST_SEARCHED_BYTES: Final = 1 << 18  # above a stack pointer
_MOST_STACK_BYTES: Final = 1 << 30


def read_thread_stacks(folder: int, pid: int, mappings: Sequence[Mapping], page_bytes: int) -> ThreadStacks:
    """Read the stacks of a process through its directory in /proc; nothing where that may not be read.

    Args:
        folder: The directory.
        pid: The process ID, which is the number of its first thread.
        mappings: Its mappings.
        page_bytes: The size of a page.
    """
    with suppress(OSError):
        task = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            threads = [int(name) for name in os.listdir(task) if name != str(pid)]
            pointers = {thread: addr for thread in threads if (addr := _stack_pointer(task, thread))}
        finally:
            os.close(task)
        if threads:
            blocks = _read_blocks(folder, threads, pointers, mappings, page_bytes)
            return ThreadStacks(tuple(pointers.values()), blocks)
    return NO_STACKS


def _stack_pointer(task: int, thread: int) -> int | None:
    """Read the stack pointer of a thread that waits in the kernel."""
    with suppress(OSError):
        descriptor = os.open(f"{thread}/syscall", os.O_RDONLY | os.O_CLOEXEC, dir_fd=task)
        try:
            # In a call: number, six arguments, stack pointer, program counter. Outside: -1 and the last two.
            words = os.read(descriptor, 512).split()
        finally:
            os.close(descriptor)
        if len(words) in {3, 9}:
            return int(words[-2], 16)
    return None


def _read_blocks(
    folder: int, threads: Sequence[int], pointers: Dict[int, int], mappings: Sequence[Mapping], page_bytes: int
) -> tuple[StackBlock, ...]:
    """Find the block of each thread in the memory of the process; none where only a debugger may read that."""
    blocks: set[StackBlock] = set()
    word_bytes = word_bytes_of(mappings)
    with suppress(OSError), ProcessMemory(folder, page_bytes) as memory:
        words = ProcessWords(memory, LAYOUTS[word_bytes])
        for thread in threads:
            pointer = pointers.get(thread, 0)
            list_addr = _robust_list(thread)
            structures = (list_addr,) if list_addr else _self_addrs(words, pointer)
            block = next(filter(None, (_block_beside(words, addr, pointer) for addr in structures)), None)
            if block is not None:
                blocks.add(block)
    return tuple(sorted(blocks))


def _robust_list(thread: int) -> int:
    """Ask the kernel for the list of robust mutexes of a thread: an address in its control block, or 0."""
    number = _SYS_GET_ROBUST_LIST.get(os.uname().machine)
    if number is None:
        return 0
    import ctypes  # noqa: PLC0415 # only processes of several threads need it

    from footprint.system.c_library import system_call  # noqa: PLC0415 # the same

    answer = (ctypes.c_size_t * 2)()
    with suppress(OSError):
        system_call(number, thread, ctypes.addressof(answer), ctypes.addressof(answer) + ctypes.sizeof(ctypes.c_size_t))
    return answer[0]


def _self_addrs(words: ProcessWords, pointer: int) -> Iterator[int]:
    """Find words above a stack pointer that have their own address, as control blocks begin."""
    word_bytes, start = words.layout.word_bytes, pointer // _PIECE_BYTES * _PIECE_BYTES
    for addr in range(start, start + _MOST_SEARCHED_BYTES if pointer else start, _PIECE_BYTES):
        piece = words.of(words.memory.read(addr, _PIECE_BYTES))
        if not piece:
            return
        for place, value in enumerate(piece):
            if value == addr + place * word_bytes:
                yield value


def _block_beside(words: ProcessWords, addr: int, pointer: int) -> StackBlock | None:
    """Find the start and size of the block in which a control block lies; it holds the stack pointer, too."""
    numbers = words.of(words.memory.read(addr, _PIECE_BYTES)).tolist()
    for start, size_bytes in pairwise(numbers):
        end = start + size_bytes
        is_around = size_bytes <= _MOST_STACK_BYTES and start < addr < end <= addr + _MOST_ABOVE_BYTES
        if is_around and (not pointer or start <= pointer < end):
            return start, end
    return None
