"""What parse_pmap gives for real outputs, checked against their own totals and against one another."""

import gzip
import re
from functools import cache
from pathlib import Path

import pytest

from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.pmap import parse_pmap
from footprint.process.pmap_lines import looks_like_pmap

KIB = 1024
TESTS = Path(__file__).parents[1]
CORPUS = TESTS / "corpus"
CONDOR = TESTS / "cases" / "condor_shadow"

ASSUMED, CUT, DIFFERS, DOUBLED, NO_ROWS = (
    "pmap-columns-assumed",
    "pmap-names-cut",
    "pmap-footer-differs",
    "pmap-rows-doubled",
    "pmap-no-rows",
)
ROWS = {"odd": 98, "sleep": 37, "node": 93, "python3": 203, "static64": 14, "manyvma30k": 30024, "self": 44}

# File, dialect, slugs of the notes.
FILES = [
    ("pmap-3.3.0-d-odd.txt", "pmap -d", [CUT]),
    ("pmap-3.3.0-d-sleep.txt", "pmap -d", []),
    ("pmap-3.3.0-default-odd.txt", "pmap", [CUT]),
    ("pmap-3.3.0-default-sleep.txt", "pmap", []),
    ("pmap-3.3.0-x-odd.txt", "pmap -x", [CUT]),
    ("pmap-3.3.0-x-sleep.txt", "pmap -x", []),
    ("pmap-3.3.10-X-odd.txt", "pmap -X", []),
    ("pmap-3.3.10-X-sleep.txt", "pmap -X", []),
    ("pmap-3.3.10-XX-odd.txt", "pmap -XX", []),
    ("pmap-3.3.10-XX-sleep.txt", "pmap -XX", []),
    ("pmap-3.3.10-d-odd.txt", "pmap -d", [DOUBLED, CUT]),
    ("pmap-3.3.10-d-sleep.txt", "pmap -d", []),
    ("pmap-3.3.10-default-odd.txt", "pmap", [DOUBLED, CUT]),
    ("pmap-3.3.10-default-sleep.txt", "pmap", []),
    ("pmap-3.3.10-x-odd.txt", "pmap -x", [DOUBLED, CUT, DIFFERS]),
    ("pmap-3.3.10-x-sleep.txt", "pmap -x", [DOUBLED, DIFFERS]),
    ("pmap-4.0.2-X-odd.txt", "pmap -X", []),
    ("pmap-4.0.2-X-sleep.txt", "pmap -X", []),
    ("pmap-4.0.2-XX-manyvma30k.txt.gz", "pmap -XX", []),
    ("pmap-4.0.2-XX-node.txt", "pmap -XX", []),
    ("pmap-4.0.2-XX-odd-lang_de.txt", "pmap -XX", []),
    ("pmap-4.0.2-XX-odd.txt", "pmap -XX", []),
    ("pmap-4.0.2-XX-python3.txt", "pmap -XX", []),
    ("pmap-4.0.2-XX-sleep.txt", "pmap -XX", []),
    ("pmap-4.0.2-XX-static64.txt", "pmap -XX", []),
    ("pmap-4.0.2-XXp-odd.txt", "pmap -XX", [CUT]),
    ("pmap-4.0.2-XXq-odd.txt", "pmap -XX", [ASSUMED]),
    ("pmap-4.0.2-Xp-odd.txt", "pmap -X", [CUT]),
    ("pmap-4.0.2-Xq-odd.txt", "pmap -X", [ASSUMED]),
    ("pmap-4.0.2-d-manyvma30k.txt.gz", "pmap -d", []),
    ("pmap-4.0.2-d-node.txt", "pmap -d", []),
    ("pmap-4.0.2-d-odd-lang_de.txt", "pmap -d", [CUT]),
    ("pmap-4.0.2-d-odd.txt", "pmap -d", [CUT]),
    ("pmap-4.0.2-d-python3.txt", "pmap -d", []),
    ("pmap-4.0.2-d-self.txt", "pmap -d", []),
    ("pmap-4.0.2-d-sleep.txt", "pmap -d", []),
    ("pmap-4.0.2-d-static64.txt", "pmap -d", []),
    ("pmap-4.0.2-default-missing-pid.txt", "pmap", [CUT]),
    ("pmap-4.0.2-default-node.txt", "pmap", []),
    ("pmap-4.0.2-default-odd.txt", "pmap", [CUT]),
    ("pmap-4.0.2-default-python3.txt", "pmap", []),
    ("pmap-4.0.2-default-sleep.txt", "pmap", []),
    ("pmap-4.0.2-default-static64.txt", "pmap", []),
    ("pmap-4.0.2-dp-odd.txt", "pmap -d", [CUT]),
    ("pmap-4.0.2-dq-odd.txt", "pmap -d", [CUT]),
    ("pmap-4.0.2-p-odd.txt", "pmap", [CUT]),
    ("pmap-4.0.2-q-odd.txt", "pmap", [CUT]),
    ("pmap-4.0.2-x-manyvma30k.txt.gz", "pmap -x", []),
    ("pmap-4.0.2-x-node.txt", "pmap -x", []),
    ("pmap-4.0.2-x-odd-lang_de.txt", "pmap -x", [CUT]),
    ("pmap-4.0.2-x-odd.txt", "pmap -x", [CUT]),
    ("pmap-4.0.2-x-python3.txt", "pmap -x", []),
    ("pmap-4.0.2-x-range-odd.txt", "pmap -x", [DIFFERS]),
    ("pmap-4.0.2-x-sleep.txt", "pmap -x", []),
    ("pmap-4.0.2-x-static64.txt", "pmap -x", []),
    ("pmap-4.0.2-xp-odd.txt", "pmap -x", [CUT]),
    ("pmap-4.0.2-xq-odd.txt", "pmap -x", [CUT]),
    ("pmap-toybox-x-node.txt", "toybox pmap -x", []),
]
# File, dialect, PID, command.
EMPTY = [
    ("pmap-4.0.2-X-kthread.txt", "pmap", 2, "[kthreadd]"),
    ("pmap-4.0.2-X-zombie.txt", "pmap", 11843, "[odd] <defunct>"),
    ("pmap-4.0.2-XX-kthread.txt", "pmap", 2, "[kthreadd]"),
    ("pmap-4.0.2-XX-zombie.txt", "pmap", 11843, "[odd] <defunct>"),
    ("pmap-4.0.2-d-kthread.txt", "pmap -d", 2, "[kthreadd]"),
    ("pmap-4.0.2-d-zombie.txt", "pmap -d", 11843, "[odd] <defunct>"),
    ("pmap-4.0.2-default-kthread.txt", "pmap", 2, "[kthreadd]"),
    ("pmap-4.0.2-default-zombie.txt", "pmap", 11843, "[odd] <defunct>"),
    ("pmap-4.0.2-x-kthread.txt", "pmap -x", 2, "[kthreadd]"),
    ("pmap-4.0.2-x-zombie.txt", "pmap -x", 11843, "[odd] <defunct>"),
]
SEVERAL = "pmap-4.0.2-x-multi-pid.txt"
RANGE = "pmap-4.0.2-x-range-odd.txt"
WHOLE_PROCESS = [file for file, *_ in FILES if file != RANGE]
DEVICE_AND_WIDE = ["d-odd", "X-odd", "Xp-odd", "Xq-odd", "XX-odd", "XXp-odd", "XXq-odd", "XX-odd-lang_de"]


def read(file: str) -> bytes:
    data = (CORPUS / file).read_bytes()
    return gzip.decompress(data) if file.endswith(".gz") else data


@cache  # 30,000 rows are read once, for all tests that look at them
def parse_one(file: str) -> MemoryMap:
    (memory,) = parse_pmap(read(file), file)
    return memory


def process_of(file: str) -> str:
    return next(process for process in ROWS if f"-{process}" in file) if "missing-pid" not in file else "odd"


def ranges(memory: MemoryMap) -> list[tuple[int, int, str]]:
    return [(mapping.start_addr, mapping.end_addr, mapping.permissions) for mapping in memory.mappings]


def sums(memory: MemoryMap) -> dict[str, int]:
    """Add up the rows under every name that a line of totals uses."""
    result = {
        "Kbytes": sum(mapping.size_bytes for mapping in memory.mappings),
        "writeable/private": sum(m.size_bytes for m in memory.mappings if m.permissions[1::2] == "wp"),
        "shared": sum(mapping.size_bytes for mapping in memory.mappings if mapping.permissions[3] == "s"),
    }
    result["mapped"] = result["Kbytes"]
    for key in memory.mappings[0].counters.keys if memory.mappings else ():
        result[key] = sum(mapping.counters.get(key) or 0 for mapping in memory.mappings)
    return result


@cache
def smaps_blocks(file: str) -> list[tuple[Mapping, dict[str, int]]]:
    """Read smaps with nothing of the parsers under test; bare numbers stay as they are."""
    blocks = []
    head_line = re.compile(r"^(\w+)-(\w+) (....) (\w+) (\S+) (\d+) *(.*)\n", re.MULTILINE)
    parts = head_line.split(read(file).decode("utf-8", "surrogateescape"))[1:]
    for start, end, mode, offset, device, inode, name, rest in zip(*[iter(parts)] * 8, strict=True):
        flags = re.search(r"^VmFlags: (.*)$", rest, re.MULTILINE)
        vm_flags = flags[1].strip() if flags else None
        mapping = Mapping(
            int(start, 16), int(end, 16), mode, int(offset, 16), device, int(inode), name, vm_flags=vm_flags
        )
        pairs = re.findall(r"^(\w+): +(\d+)( kB)?$", rest, re.MULTILINE)
        blocks.append((mapping, {key: int(value) * (KIB if unit else 1) for key, value, unit in pairs}))
    return blocks


def test_every_output_of_pmap_in_the_corpus_is_in_a_table_here() -> None:
    listed = {file for file, *_ in FILES} | {file for file, *_ in EMPTY} | {SEVERAL}

    assert listed == {path.name for path in CORPUS.glob("pmap-*")}


@pytest.mark.parametrize("file", [file for file, *_ in FILES + EMPTY] + [SEVERAL])
def test_pmap_is_known_by_its_first_lines(file: str) -> None:
    assert looks_like_pmap(read(file))


@pytest.mark.parametrize("file", sorted(path.name for path in CORPUS.iterdir() if "maps" in path.name[:5]))
def test_texts_of_the_kernel_are_not_taken_for_pmap(file: str) -> None:
    assert not looks_like_pmap(read(file))


@pytest.mark.parametrize(("file", "dialect", "slugs"), FILES)
def test_every_row_is_read(file: str, dialect: str, slugs: list[str]) -> None:
    memory = parse_one(file)

    assert memory.dialect == dialect
    assert len(memory.mappings) == (23 if file == RANGE else ROWS[process_of(file)])
    assert [note.slug for note in memory.notes] == slugs
    assert memory.pid is not None
    assert {note.subject for note in memory.notes} <= {f"{file}: pid {memory.pid}"}


@pytest.mark.parametrize(("file", "dialect", "pid", "command"), EMPTY)
def test_kernel_threads_and_zombies_have_no_rows(file: str, dialect: str, pid: int, command: str) -> None:
    memory = parse_one(file)

    assert (memory.dialect, memory.pid, memory.command, memory.mappings) == (dialect, pid, command, ())
    assert [note.slug for note in memory.notes] == [NO_ROWS]
    assert set(memory.footer.values()) <= {0}


@pytest.mark.parametrize("file", [file for file, *_, slugs in FILES if DIFFERS not in slugs])
def test_the_rows_add_up_to_the_totals(file: str) -> None:
    memory = parse_one(file)
    totals = sums(memory)
    quiet = re.search(r"-[a-zX]*q-", file)

    assert bool(memory.footer) is not bool(quiet)
    assert memory.footer == {key: totals[key] for key in memory.footer}


@pytest.mark.parametrize(("file", "kib", "shared_kib"), [("odd", 1367648, 2364), ("sleep", 2924, 28)])
def test_procps_until_3_3_10_counts_shared_mappings_twice(file: str, kib: int, shared_kib: int) -> None:
    memory = parse_one(f"pmap-3.3.10-x-{file}.txt")

    assert sums(memory)["Kbytes"] == kib * KIB
    assert memory.footer["Kbytes"] == (kib + shared_kib) * KIB
    assert memory.notes[-1].detail == (
        f"Kbytes: rows {kib} K, text {kib + shared_kib} K: the totals count shared mappings twice (procps until 3.3.10)"
    )
    assert memory.notes[0].detail == f"{ROWS[file]} rows that repeat the row before are left out"


def test_a_range_has_mappings_below_it_in_its_totals() -> None:
    memory = parse_one(RANGE)

    assert sums(memory)["Kbytes"] == memory.footer["Kbytes"] == 16740 * KIB
    assert memory.footer == {"Kbytes": 16740 * KIB, "Rss": 19632 * KIB, "Dirty": 19104 * KIB}
    assert "with -A" in memory.notes[0].detail


def test_several_processes_are_told_apart() -> None:
    odd, child, zombie = parse_pmap(read(SEVERAL), SEVERAL)

    assert [memory.pid for memory in (odd, child, zombie)] == [11837, 11842, 11843]
    assert [len(memory.mappings) for memory in (odd, child, zombie)] == [98, 96, 0]
    assert ranges(odd) == ranges(parse_one("pmap-4.0.2-x-odd.txt"))
    assert [memory.footer for memory in (odd, child, zombie)] == [
        {"Kbytes": 1367648 * KIB, "Rss": 21640 * KIB, "Dirty": 19472 * KIB},
        {"Kbytes": 1367596 * KIB, "Rss": 20944 * KIB, "Dirty": 19180 * KIB},
        {"Kbytes": 0, "Rss": 0, "Dirty": 0},
    ]
    assert sums(child)["Rss"] == 20944 * KIB


@pytest.mark.parametrize("file", [file for file in WHOLE_PROCESS if process_of(file) != "self"])
def test_all_outputs_of_a_process_have_the_same_ranges(file: str) -> None:
    suffix = ".gz" if process_of(file) == "manyvma30k" else ""

    assert ranges(parse_one(file)) == ranges(parse_one(f"pmap-4.0.2-d-{process_of(file)}.txt{suffix}"))


@pytest.mark.parametrize("process", ["odd", "sleep", "node", "python3", "static64"])
def test_the_ranges_are_those_of_the_kernel(process: str) -> None:
    kernel = [
        (mapping.start_addr, mapping.end_addr, mapping.permissions)
        for mapping, _ in smaps_blocks(f"smaps-{process}.txt")
    ]

    assert ranges(parse_one(f"pmap-4.0.2-default-{process}.txt")) == kernel


@pytest.mark.parametrize("output", DEVICE_AND_WIDE)
def test_offsets_and_devices_are_those_of_the_kernel(output: str) -> None:
    memory = parse_one(f"pmap-4.0.2-{output}.txt")
    kernel = [(mapping.offset, mapping.device) for mapping, _ in smaps_blocks("smaps-odd.txt")]

    assert [(mapping.offset, mapping.device) for mapping in memory.mappings] == kernel


@pytest.mark.parametrize("output", ["X-odd", "Xp-odd", "Xq-odd", "XX-odd", "XXp-odd", "XXq-odd"])
def test_wide_outputs_have_the_counters_and_flags_of_the_kernel(output: str) -> None:
    memory = parse_one(f"pmap-4.0.2-{output}.txt")
    differing = []
    for mapping, (kernel, counters) in zip(memory.mappings, smaps_blocks("smaps-odd.txt"), strict=True):
        assert (mapping.start_addr, mapping.inode) == (kernel.start_addr, kernel.inode)
        assert mapping.vm_flags == (kernel.vm_flags if output.startswith("XX") else None)
        read_counters = {key: mapping.counters.get(key) for key in mapping.counters.keys}
        assert set(counters) - set(read_counters) == (set() if output.startswith("XX") else NOT_IN_X)
        differing += [key for key, value in read_counters.items() if counters[key] != value]

    # PSS of the C library changes whenever another process starts or ends.
    assert set(differing) <= {"Pss"}
    assert len(differing) <= 2


NOT_IN_X = {
    "AnonHugePages",
    "KernelPageSize",
    "MMUPageSize",
    "Private_Clean",
    "Private_Dirty",
    "Shared_Clean",
    "Shared_Dirty",
}


def test_extended_rows_have_the_dirty_pages_of_wide_rows() -> None:
    extended, wide = parse_one("pmap-4.0.2-x-odd.txt"), parse_one("pmap-4.0.2-XX-odd.txt")

    for short, long in zip(extended.mappings, wide.mappings, strict=True):
        shared, private = long.counters.get("Shared_Dirty"), long.counters.get("Private_Dirty")
        assert shared is not None
        assert private is not None
        assert short.counters.get("Rss") == long.counters.get("Rss")
        assert short.counters.get("Dirty") == shared + private


@pytest.mark.parametrize("output", ["p-odd", "dp-odd"])
def test_whole_paths_are_those_of_the_kernel(output: str) -> None:
    memory = parse_one(f"pmap-4.0.2-{output}.txt")
    pairs = zip(memory.mappings, smaps_blocks("smaps-odd.txt"), strict=True)
    odd = [
        (mapping.name, kernel.name)
        for mapping, (kernel, _) in pairs
        if kernel.name.startswith("/") and mapping.name != kernel.name
    ]
    # Five names cannot be right: bytes that are not printed, a path that is cut; SysV memory has a name of its own.
    assert sum("?" in printed for printed, _ in odd) == 4
    assert sum(printed.startswith("[ shmid=") for printed, _ in odd) == 2
    assert sum(len(printed) > 900 and name.startswith(printed) for printed, name in odd) == 1
    assert len(odd) == 7


@pytest.mark.parametrize(
    ("paths", "names"), [("p-odd", "default-odd"), ("dp-odd", "d-odd"), ("dp-odd", "x-odd"), ("XXp-odd", "XX-odd")]
)
def test_names_are_the_last_parts_of_the_paths(paths: str, names: str) -> None:
    whole, short = parse_one(f"pmap-4.0.2-{paths}.txt"), parse_one(f"pmap-4.0.2-{names}.txt")

    differing = [
        (path.name, name.name)
        for path, name in zip(whole.mappings, short.mappings, strict=True)
        if path.name.rpartition("/")[2] != name.name
    ]
    assert len(differing) <= 1  # the path that is cut: another part of it is the last
    assert all("LLLL" in path for path, _ in differing)


def test_special_memory_has_the_same_names_in_every_output() -> None:
    compact, wide = parse_one("pmap-4.0.2-d-sleep.txt"), parse_one("pmap-4.0.2-XX-sleep.txt")
    named = {"", "[heap]", "[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]"}

    for short, long in zip(compact.mappings, wide.mappings, strict=True):
        assert short.name == ("" if long.name in named else long.name)
    assert compact.mappings[-2].name == wide.mappings[-2].name == "[stack]"


def test_names_that_are_no_text_survive_in_wide_rows() -> None:
    names = {mapping.name for mapping in parse_one("pmap-4.0.2-XX-odd.txt").mappings}

    assert {
        "trailing space ",
        "carriage\rreturn.bin",
        "tab\there.bin",
        "üñï-文件.bin",
        "[heap]",
        "memfd:close)paren [x] (deleted)",
        r"memfd:new\012line (deleted)",
    } <= names
    assert any(name.endswith("-not-utf8.bin") and name[0] == "\udcff" for name in names)


def as_wide_rows(blocks: list[tuple[Mapping, dict[str, int]]], option: str) -> bytes:
    """Print smaps as `pmap -Xq` or `-XXq` does, but for the widths of the columns."""
    width = max(len(mapping.vm_flags or "") for mapping, _ in blocks)
    lines = []
    for mapping, counters in blocks:
        shown = {key: value for key, value in counters.items() if option == "-XXq" or key not in NOT_IN_X}
        head = f"{mapping.start_addr:08x} {mapping.permissions} {mapping.offset:08x} {mapping.device} {mapping.inode}"
        cells = [
            str(value if key in {"THPeligible", "ProtectionKey"} else value // KIB) for key, value in shown.items()
        ]
        flags = [mapping.vm_flags.rjust(width)] if option == "-XXq" and mapping.vm_flags else []
        lines.append(" ".join([head, *cells, *flags, mapping.name.rpartition("/")[2]]))
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


# Kernel, option, counters that another kernel could have printed in their place.
@pytest.mark.parametrize(
    ("kernel", "option", "left_out"),
    [
        ("2.6.14", "-Xq", ""),
        ("2.6.14", "-XXq", "Shared_Clean Shared_Dirty Private_Clean Private_Dirty"),
        ("2.6.26", "-Xq", ""),
        ("2.6.26", "-XXq", ""),
        ("2.6.38", "-Xq", ""),
        ("2.6.38", "-XXq", ""),
        ("4.6-pkey", "-Xq", "Shared_Hugetlb ProtectionKey"),
        ("4.6-pkey", "-XXq", ""),
        ("4.12", "-Xq", "LazyFree Shared_Hugetlb Private_Hugetlb"),
        ("4.12", "-XXq", ""),
        ("4.14-lockedbug", "-Xq", "LazyFree Shared_Hugetlb Private_Hugetlb Locked"),
        ("4.14-lockedbug", "-XXq", ""),
        ("5.0", "-Xq", "THPeligible"),
        ("5.0", "-XXq", "THPeligible"),
        ("6.0", "-Xq", "Pss_Dirty Referenced Anonymous LazyFree Shared_Hugetlb Private_Hugetlb"),
        ("6.0", "-XXq", ""),
    ],
)
def test_without_a_header_no_counter_of_any_kernel_is_taken_for_another(
    kernel: str, option: str, left_out: str
) -> None:
    blocks = smaps_blocks(f"smaps-reconstructed-{kernel}.txt")
    (memory,) = parse_pmap(as_wide_rows(blocks, option), "text")

    for mapping, (printed, counters) in zip(memory.mappings, blocks, strict=True):
        found = {key: mapping.counters.get(key) for key in mapping.counters.keys}
        assert found == {key: counters[key] for key in found}
        assert counters.keys() - found.keys() - (NOT_IN_X if option == "-Xq" else set()) == set(left_out.split())
        assert mapping.name == printed.name.rpartition("/")[2]
        assert mapping.vm_flags == (printed.vm_flags if option == "-XXq" else None)
    (assumed,) = [note.detail for note in memory.notes if note.slug == ASSUMED]
    assert ("left out" in assumed) == bool(left_out)


def test_the_audit_of_2010_had_70_rows_and_972_k_of_writable_private_memory() -> None:
    (memory,) = parse_pmap((CONDOR / "pmap-d.base.txt").read_bytes(), "base")

    assert (memory.dialect, memory.pid, memory.notes) == ("pmap -d", None, ())
    assert len(memory.mappings) == 70
    assert memory.footer == {"mapped": 10092 * KIB, "writeable/private": 972 * KIB, "shared": 0}
    assert sum(mapping.size_bytes for mapping in memory.mappings) == 10092 * KIB
    assert sum(mapping.size_bytes for mapping in memory.mappings if mapping.is_mapped_writable) == 972 * KIB
    assert [mapping.size_bytes for mapping in memory.mappings if mapping.name == "[stack]"] == [84 * KIB]
    assert {mapping.device for mapping in memory.mappings} == {"00:00", "fd:00", "fd:01"}


def test_the_writable_rows_of_the_last_variant_add_up_to_780_k_and_not_to_its_totals() -> None:
    (memory,) = parse_pmap((CONDOR / "pmap-d.sans-crypt.rw-only.txt").read_bytes(), "sans-crypt")

    assert len(memory.mappings) == 31
    assert sum(mapping.size_bytes for mapping in memory.mappings) == 780 * KIB
    assert memory.footer == {"mapped": 9548 * KIB, "writeable/private": 780 * KIB, "shared": 0}
    assert [(note.slug, note.subject, note.detail) for note in memory.notes] == [
        (
            "pmap-footer-differs",
            "sans-crypt",
            "mapped: rows 780 K, text 9548 K: rows are missing: the text was filtered or cut",
        )
    ]
