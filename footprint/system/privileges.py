"""Drop the rights that reading needs not: to start programs, to reach others and the network, and to write files.

Three mechanisms of Linux, each of which works without the others: the capabilities of root, a filter of system calls
(seccomp), and rules of which files may be written or run (Landlock, from 5.13 on). None can be taken back.

Source: capset(2), seccomp(2), landlock(7); linux/filter.h, linux/audit.h.
"""

import errno
import os
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from footprint.system.c_library import addr_of, buffer, call, prctl


class DeniedCall(NamedTuple):
    """The numbers of a system call by machine."""

    x86_64: int
    aarch64: int


DENIED: Final = {
    "execve": DeniedCall(59, 221),
    "execveat": DeniedCall(322, 281),
    "socket": DeniedCall(41, 198),
    "ptrace": DeniedCall(101, 117),
    "process_vm_writev": DeniedCall(311, 271),
    "tkill": DeniedCall(200, 130),
    "pidfd_send_signal": DeniedCall(424, 424),
    "unshare": DeniedCall(272, 97),
    "setns": DeniedCall(308, 268),
    "bpf": DeniedCall(321, 280),
    "perf_event_open": DeniedCall(298, 241),
    "userfaultfd": DeniedCall(323, 282),
    "io_uring_setup": DeniedCall(425, 425),
    "add_key": DeniedCall(248, 217),
    "request_key": DeniedCall(249, 218),
    "keyctl": DeniedCall(250, 219),
    "kill": DeniedCall(62, 129),
    "tgkill": DeniedCall(234, 131),
}
"""The calls that the filter denies. Of the last two, those to the process itself are allowed."""
_TO_ITSELF: Final = frozenset({"kill", "tgkill"})
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers from here on are those of x32, which would be a way around the filter.
_FIRST_X32: Final = 0x40000000

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER: Final = 2
_RET_ALLOW, _RET_DENY = 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16

_CAPABILITY_VERSION: Final = 0x20080522
_CAP_CHOWN, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _CAP_FOWNER = 0, 1, 2, 3
_CAP_SYS_PTRACE, _CAP_CHECKPOINT_RESTORE = 19, 40
# Processes and files of others, their memory, and files that were replaced since they were mapped.
_READING: Final = (_CAP_DAC_READ_SEARCH, _CAP_SYS_PTRACE, _CAP_CHECKPOINT_RESTORE)
_WRITING: Final = (_CAP_CHOWN, _CAP_DAC_OVERRIDE, _CAP_FOWNER)

# The numbers of the calls are the same on all machines.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULESET_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _TRUNCATE = 1 << 0, 1 << 1, 1 << 14
# To remove and make files of any kind.
_CHANGE_FOLDERS: Final = sum(1 << bit for bit in range(4, 13))


def drop_privileges(written: Iterable[str], *, reads_processes: bool) -> list[str]:
    """Drop all rights but those to read, and to write some files; return what this kernel does not allow.

    Args:
        written: The files that will be written.
        reads_processes: Whether other processes will be read. Landlock forbids this, and is then left out.
    """
    refused = []
    folders = [os.path.dirname(os.path.realpath(path)) for path in written]
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if not reads_processes and not _restrict_files(folders):
        refused.append("rules for files (Landlock)")
    if not _keep_capabilities((*_READING, *(_WRITING if folders else ()))):
        refused.append("fewer capabilities")
    if not _filter_calls():
        refused.append("a filter of system calls (seccomp)")
    return refused


def _restrict_files(folders: Iterable[str]) -> bool:
    """Allow to write only in some folders, and to run no file."""
    version = call("syscall", _CREATE_RULESET, None, 0, _RULESET_VERSION)
    if version < 1:
        return False
    writing = _WRITE_FILE | _CHANGE_FOLDERS | (_TRUNCATE if version >= 3 else 0)
    handled = struct.pack("=Q", writing | _EXECUTE)
    rules = call("syscall", _CREATE_RULESET, handled, len(handled), 0)
    if rules < 0:
        return False
    of_files = _WRITE_FILE | (writing & _TRUNCATE)
    try:
        for path, rights in ((os.devnull, of_files), *((folder, writing) for folder in folders)):
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                # What is not there cannot be written: the verb says so.
                continue
            rule = struct.pack("=Qi", rights, place)
            call("syscall", _ADD_RULE, rules, _PATH_BENEATH, rule, 0)
            os.close(place)
        return call("syscall", _RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _keep_capabilities(kept: Iterable[int]) -> bool:
    """Drop all capabilities but some of those that the process has."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    # Twice: the effective, permitted and inheritable ones, of which the second three are those from 32 on.
    capabilities = buffer(bytes(24))
    if call("capget", header, capabilities) != 0:
        return False
    sets = memoryview(capabilities).cast("B").cast("I")
    mask = sum(1 << number for number in kept)
    for half, offset in ((mask & 0xFFFFFFFF, 0), (mask >> 32, 3)):
        for place in (offset, offset + 1):
            sets[place] &= half
        sets[offset + 2] = 0
    return call("capset", header, capabilities) == 0


def _filter_calls() -> bool:
    """Deny the system calls of the table."""
    machine = os.uname().machine
    architecture = _ARCHITECTURES.get(machine)
    if architecture is None or struct.calcsize("P") != 8:
        return False
    program = _program(machine, architecture, os.getpid())
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    instructions = buffer(code)
    description = struct.pack("@HP", len(program), addr_of(instructions))
    return prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, description) == 0


def _program(machine: str, architecture: int, pid: int) -> list[tuple[int, int, int, int]]:
    """Return the filter as instructions of BPF: the code, how many to pass over if true and if false, the value."""
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _RET_DENY),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _FIRST_X32),
        (_RETURN, 0, 0, _RET_DENY),
    ]
    for name, numbers in DENIED.items():
        number = getattr(numbers, machine)
        if name not in _TO_ITSELF:
            steps += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _RET_DENY)]
            continue
        steps += [
            (_JUMP_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
            (_JUMP_EQUAL, 1, 0, pid),
            (_RETURN, 0, 0, _RET_DENY),
            (_RETURN, 0, 0, _RET_ALLOW),
        ]
    return [*steps, (_RETURN, 0, 0, _RET_ALLOW)]
