"""A long list in two processes at a time: one answer, whichever processes gave it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.elfwriter import PF_R, PF_W, PT_LOAD, RW, ElfFile, Section, Segment, write

# Who runs these tests may have threads, and then nothing is divided: each answer is that of a fresh interpreter.
_COUNTS = """
import json, os, sys
from footprint.process import two_processors
two_processors.usable_processor_count = lambda: int(sys.argv[1])
parent = os.getpid()
def work(some):
    if sys.argv[3] == "fails" and os.getpid() != parent:
        raise ValueError
    return [list(some), os.getpid() == parent]
print(json.dumps(two_processors.in_halves(work, range(int(sys.argv[2])))))
"""
_AUDITS = """
import sys
from footprint.process.snapshot import read_texts
from footprint.process import two_processors
from footprint.verbs.audit.group import group_of
two_processors.usable_processor_count = lambda: int(sys.argv[1])
loads, loaded = two_processors.pickle.loads, []
two_processors.pickle.loads = lambda told: loaded.append(len(told)) or loads(told)
block = '''{0:012x}-{1:012x} {2}
Size:                 {4:2} kB
Rss:                  {3} kB
Pss:                  {3} kB
Shared_Clean:          0 kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:        {3} kB
Anonymous:            {3} kB
'''
def text(number):
    at = number << 16
    heap = block.format(at, at + 0x10000, "rw-p 00000000 00:00 0  [heap]", number % 64, 64)
    library = block.format(at << 8, (at << 8) + 0x1000, "rw-p 00000000 08:01 77  /library.so", number % 3 and 4, 4)
    return (heap + library).encode()
snapshots = [read_texts(text(number), f"pid {number}")[0]._replace(pid=number) for number in range(1, 601)]
group = group_of(snapshots, root=sys.argv[2])
assert len(loaded) == int(sys.argv[1]) - 1, "a copy has told nothing"
print(len(group.group.members), group.totals)
for row in group.ledger:
    print(row)
for note in group.notes:
    print(note)
for one in group.group.audits:
    print(one)
"""


def told(code: str, *words: str) -> str:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("processors", "count", "end", "expected"),
    [
        (2, 301, "works", [[[*range(150)], True], [[*range(150, 301)], False]]),
        (1, 301, "works", [[[*range(301)], True]]),
        (2, 20, "works", [[[*range(20)], True]]),
        (2, 301, "fails", [[[*range(150)], True], [[*range(150, 301)], True]]),
    ],
    ids=["two-processors", "one-processor", "a-short-list", "a-copy-that-fails"],
)
def test_a_copy_works_on_the_second_half_where_it_can(
    processors: int, count: int, end: str, expected: list[object]
) -> None:
    assert json.loads(told(_COUNTS, str(processors), str(count), end)) == expected


def test_a_group_that_two_processes_have_audited_is_the_same_to_the_byte(tmp_path: Path) -> None:
    """Both read the odd library: the note on it stands with the process that has it first, and once in the group."""
    segment = Segment(PT_LOAD, PF_R | PF_W, offset=0, vaddr=0, filesz=0x1000, memsz=0x2000)
    data = Section(".data", flags=RW, data=bytes(8))
    (tmp_path / "library.so").write_bytes(write(ElfFile(sections=[data], segments=[segment] * 20_000)))
    alone, divided = (told(_AUDITS, processors, str(tmp_path)) for processors in "12")
    assert alone.startswith("600 ")
    assert alone.count("its symbols get no rows of their own") == 2
    assert divided == alone
