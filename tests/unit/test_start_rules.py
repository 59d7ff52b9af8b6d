"""The rules about the start of a program: what they find, how sure they are, and what they leave alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from footprint.attribution import dependency_graph
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.graph_rules.bound_at_start import bound_at_start
from footprint.findings.graph_rules.empty_search_path import empty_search_path
from footprint.findings.graph_rules.one_function import one_function
from footprint.findings.graph_rules.own_lookups import own_lookups
from footprint.findings.graph_rules.sysv_hash import sysv_hash
from footprint.findings.graph_rules.unpacked_relocations import unpacked_relocations
from footprint.formats.document import Paragraph, Table
from footprint.formats.finding_blocks import finding_blocks, first_remedy
from footprint.loader.target import Environment
from footprint.model.finding import Confidence, Finding
from footprint.sources.programs import Programs
from tests.elfwriter import (
    DT_JMPREL,
    DT_NEEDED,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_RELA,
    DT_RPATH,
    DT_SONAME,
    RO,
    RW,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_RELR,
    STT_FUNC,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Size,
    Sym,
    write,
)
from tests.sysroot import GLIBC, Sysroot

GLOB_DAT, JUMP_SLOT, IRELATIVE = 6, 7, 37
MUSL = "/lib/ld-musl-x86_64.so.1"
NOW = Dyn(0x6FFFFFFB, 1)  # DT_FLAGS_1


@pytest.fixture
def sysroot(tmp_path: Path) -> Sysroot:
    made = Sysroot(tmp_path)
    made.loader()
    return made


def graph(sysroot: Sysroot) -> DependencyGraph:
    environment = Environment(hwcaps="baseline")
    return Programs(str(sysroot.root), environment, page_bytes=4096, is_calibrated=False).graph("/bin/program")


def file(
    *needed: str,
    soname: str | None = None,
    defines: list[str] | None = None,
    uses: list[str] | None = None,
    kind: int = GLOB_DAT,
    more: list[Dyn] | None = None,
    gnu_hash: bool = False,
    texts: bytes = b"",
) -> bytes:
    """Return a program, or a library with a soname, that defines some functions and looks some up."""
    defined, used = defines or [], uses or []
    symbols = [Sym(name, At(".data", 8), 8, STT_FUNC) for name in defined]
    symbols += [Sym(name) for name in used if name not in defined]
    relocations = [Rel(At(".data", 8 * place), kind, name, 0) for place, name in enumerate(used)]
    sections = [Section(".data", flags=RW, data=bytes(8 * max(2, len(used))))]
    if texts:
        sections.append(Section(".rodata", SHT_PROGBITS, RO, data=b"\0" + texts + b"\0"))
    if relocations:
        sections.insert(0, Section(".rela.plt" if kind == JUMP_SLOT else ".rela.dyn", SHT_RELA, RO, relocations))
    if soname is None:
        sections.append(Section(".interp", SHT_PROGBITS, RO, data=GLIBC.encode() + b"\0"))
    dynamic = [*(Dyn(DT_NEEDED, name) for name in needed), *([Dyn(DT_SONAME, soname)] if soname else []), *(more or [])]
    if kind == JUMP_SLOT and relocations:
        place = Dyn(DT_JMPREL, At(".rela.plt")), Dyn(DT_PLTRELSZ, Size(".rela.plt")), Dyn(DT_PLTREL, DT_RELA)
        dynamic += place
    return write(ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=symbols, gnu_hash=gnu_hash))


def names(count: int, prefix: str = "f") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_without_a_library_is_found_and_one_with_a_library_is_not(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", runpath="/none:/opt:/never")
    sysroot.library("/opt/liba.so")
    sysroot.library("/opt/libb.so")
    (found,) = empty_search_path(graph(sysroot))
    assert (found.subject, found.kind, found.confidence) == ("program", "runpath", Confidence.HIGH)
    # The second library is not tried in a folder that does not exist; the third folder is never reached.
    assert found.message == "/none/ in the RUNPATH of program has no library: 1 failed open at each start"
    assert found.saving_us == 2


def test_a_folder_that_exists_may_have_a_library_elsewhere(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", "libb.so", rpath="/empty:/opt")
    for name in ("liba.so", "libb.so"):
        sysroot.library(f"/opt/{name}")
    (sysroot.root / "empty").mkdir()
    (found,) = empty_search_path(graph(sysroot))
    assert found.confidence is Confidence.MEDIUM
    assert "2 failed opens" in found.message


def test_a_folder_below_another_one_is_not_that_folder(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/opt:/opt/lib")
    sysroot.library("/opt/lib/liba.so")
    assert [one.message.split()[0] for one in empty_search_path(graph(sysroot))] == ["/opt/"]


def test_a_folder_that_several_objects_name_is_one_finding_and_its_opens_count_once(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/none:/empty:/opt")
    sysroot.library("/opt/liba.so", "libb.so", runpath="/none:/empty:/opt")
    sysroot.library("/opt/libb.so")
    (sysroot.root / "empty").mkdir()
    findings = empty_search_path(graph(sysroot))
    # The loader tries once what does not exist, and each library in a folder that does.
    assert {finding.message for finding in findings} == {
        "/none/ in the RUNPATH of program and liba.so has no library: 1 failed open at each start",
        "/empty/ in the RUNPATH of program and liba.so has no library: 2 failed opens at each start",
    }
    assert all(finding.remedy.startswith("link program and liba.so without") for finding in findings)


def test_opens_that_others_go_on_to_make_in_a_folder_are_not_counted(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", runpath="/opt:/lib")
    sysroot.library("/lib/liba.so", "libb.so", runpath="/opt")
    sysroot.library("/opt/libb.so")
    (finding,) = empty_search_path(graph(sysroot))
    assert finding.message == "/opt/ in the RUNPATH of program has no library: 1 failed open at each start"


@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_a_folder_with_a_library_that_another_object_brought_in_first_is_not_empty(sysroot: Sysroot, kind: str) -> None:
    """In a program that loads libb.so alone, the library is found in that folder."""
    sysroot.program("liba.so", "libb.so")
    sysroot.library("/lib/liba.so", "libx.so", runpath="/opt")
    if kind == "rpath":
        sysroot.library("/lib/libb.so", "libx.so", "libz.so", rpath="/opt")
    else:
        sysroot.library("/lib/libb.so", "libx.so", "libz.so", runpath="/opt")
    sysroot.library("/opt/libx.so")
    sysroot.library("/lib/libz.so")
    assert empty_search_path(graph(sysroot)) == ()


@pytest.mark.parametrize(("name", "confidence"), [("rpath", Confidence.MEDIUM), ("runpath", Confidence.HIGH)])
def test_an_rpath_is_searched_for_what_libraries_open_too(sysroot: Sysroot, name: str, confidence: Confidence) -> None:
    if name == "rpath":
        sysroot.program("liba.so", rpath="/none")
    else:
        sysroot.program("liba.so", runpath="/none")
    sysroot.file("/lib/liba.so", file(soname="liba.so", uses=["dlopen"]))
    (finding,) = empty_search_path(graph(sysroot))
    assert finding.confidence is confidence


def test_a_list_that_libraries_need_too_stays_one_that_they_can_use(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/none:/opt")
    sysroot.library("/opt/liba.so")
    (finding,) = empty_search_path(graph(sysroot))
    assert finding.remedy == (
        "link program without that folder in -Wl,-rpath and with -Wl,--disable-new-dtags,"
        " or take it out with patchelf --force-rpath --set-rpath"
    )


def test_only_those_with_an_rpath_are_to_keep_one(sysroot: Sysroot) -> None:
    sysroot.program("liba.so", rpath="/none:/opt")
    sysroot.library("/opt/liba.so", "libb.so", runpath="/none:/opt")
    sysroot.library("/opt/libb.so")
    (finding,) = empty_search_path(graph(sysroot))
    assert "-Wl,--disable-new-dtags for program, or take it out with patchelf --set-rpath" in finding.remedy
    assert finding.remedy.endswith("and --force-rpath for program")


@pytest.mark.parametrize(("runpath", "confidence"), [("/none", Confidence.MEDIUM), ("/none:/lib", Confidence.HIGH)])
def test_a_file_without_its_runpath_is_under_the_rpath_of_those_that_load_it(
    sysroot: Sysroot, runpath: str, confidence: Confidence
) -> None:
    sysroot.program("liba.so", rpath="/opt")
    sysroot.library("/opt/liba.so", "libb.so", runpath=runpath)
    for folder in ("/opt", "/lib"):
        sysroot.library(f"{folder}/libb.so")
    (finding,) = empty_search_path(graph(sysroot))
    assert (finding.subject, finding.confidence) == ("liba.so", confidence)
    reason = "where no RUNPATH is left, the RPATH of those that load the file is searched, too"
    assert (reason in finding.reasons) == (confidence is Confidence.MEDIUM)


@pytest.mark.parametrize(
    ("entry", "shown", "reason"),
    [
        ("$ORIGIN/../none", "$ORIGIN/../none/ (/bin/../none/)", "depends on where the file is installed"),
        ("${ORIGIN}/$LIB", "${ORIGIN}/$LIB/ (/bin/lib/x86_64-linux-gnu/)", "depends on where the file is installed"),
        ("none", "none/", "depends on the working directory"),
        ("", "the empty entry", "depends on the working directory"),
    ],
)
def test_a_folder_that_depends_on_the_place_is_not_sure_to_be_empty(
    sysroot: Sysroot, entry: str, shown: str, reason: str
) -> None:
    sysroot.program("liba.so", runpath=f"{entry}:/opt")
    sysroot.library("/opt/liba.so")
    (finding,) = empty_search_path(graph(sysroot))
    assert finding.message.startswith(f"{shown} in the RUNPATH of program")
    assert finding.confidence is Confidence.MEDIUM
    assert reason in finding.reasons[-1]


# --- lookups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "subjects"), [(2500, ["liba.so"]), (2499, [])])
def test_a_library_that_looks_up_its_own_names_is_found_from_five_thousand_objects_on(
    sysroot: Sysroot, count: int, subjects: list[str]
) -> None:
    sysroot.file("/bin/program", file("liba.so"))
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=names(count), uses=names(count)))
    findings = own_lookups(graph(sysroot))
    # Each lookup asks the program and the library.
    assert [finding.subject for finding in findings] == subjects
    if findings:
        assert "2,500 lookups" in findings[0].message
        assert "5,000 objects" in findings[0].message
        assert (findings[0].confidence, findings[0].saving_us) == (Confidence.MEDIUM, (2500 * 45 + 5000 * 5) // 1000)


def test_names_of_cxx_make_it_doubtful(sysroot: Sysroot) -> None:
    own = names(2500, "_Z1f")
    sysroot.file("/bin/program", file("liba.so"))
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=own, uses=own))
    (found,) = own_lookups(graph(sysroot))
    assert (found.kind, found.confidence) == ("cxx", Confidence.LOW)
    assert "-Bsymbolic" not in found.remedy


def test_a_name_that_another_object_replaces_is_not_to_be_bound_when_the_library_is_linked(sysroot: Sysroot) -> None:
    sysroot.file("/bin/program", file("liba.so", defines=["hook"]))
    functions = [*names(2500), "hook"]
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=functions, uses=functions))
    (finding,) = own_lookups(graph(sysroot))
    assert finding.confidence is Confidence.LOW
    assert finding.reasons[-1] == "liba.so defines hook and uses what program has instead, which must stay so"
    assert finding.remedy == "build liba.so with -fvisibility=hidden, and export only what others use, and hook"


@pytest.mark.parametrize("more", [[NOW], []])
def test_a_resolver_is_no_call(sysroot: Sysroot, more: list[Dyn]) -> None:
    count = 500
    relocations = [Rel(At(".data", 8 * place), JUMP_SLOT, name, 0) for place, name in enumerate(names(count))]
    relocations += [Rel(At(".data", 8 * (count + place)), IRELATIVE, 0, 0x1000) for place in range(700)]
    tags = [Dyn(DT_NEEDED, "liba.so"), Dyn(DT_JMPREL, At(".rela.plt")), Dyn(DT_PLTRELSZ, Size(".rela.plt"))]
    sections = [
        Section(".rela.plt", SHT_RELA, RO, relocations),
        Section(".data", flags=RW, data=bytes(8 * (count + 700))),
        Section(".interp", SHT_PROGBITS, RO, data=GLIBC.encode() + b"\0"),
    ]
    dynamic = [*tags, Dyn(DT_PLTREL, DT_RELA), *more]
    program = ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=[Sym(name) for name in names(count)])
    sysroot.file("/bin/program", write(program))
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=names(count)))
    bound = graph(sysroot)
    cost = bound.start_costs[0]
    assert cost
    assert (cost.bound_now_count, cost.lazy_count) == ((count, 0) if more else (0, count))
    assert cost.irelative_count == 700
    assert ["500 functions" in finding.message for finding in bound_at_start(bound)] == [True] * len(more)


@pytest.mark.parametrize(("count", "more", "subjects"), [(500, [NOW], ["program"]), (499, [NOW], []), (500, [], [])])
def test_five_hundred_calls_that_are_bound_at_start_are_found(
    sysroot: Sysroot, count: int, more: list[Dyn], subjects: list[str]
) -> None:
    sysroot.file("/bin/program", file("liba.so", uses=names(count), kind=JUMP_SLOT, more=more))
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=names(count)))
    found = bound_at_start(graph(sysroot))
    assert [(one.subject, one.confidence) for one in found] == [(name, Confidence.LOW) for name in subjects]


@pytest.mark.parametrize(
    ("count", "style", "subjects"), [(2500, "sysv", ["liba.so"]), (2499, "sysv", []), (2500, "gnu", [])]
)
def test_a_table_without_a_filter_is_found_where_lookups_walk_it_often(
    sysroot: Sysroot, count: int, style: str, subjects: list[str]
) -> None:
    sysroot.file("/bin/program", file("liba.so", "libb.so", uses=names(count), gnu_hash=True))
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=["other"], gnu_hash=style == "gnu"))
    sysroot.file("/lib/libb.so", file(soname="libb.so", defines=names(count), gnu_hash=True))
    # No object needs the loader: it does not look for an allocator.
    findings = sysv_hash(graph(sysroot))
    assert [finding.subject for finding in findings] == subjects
    if findings:
        assert "2,500 lookups" in findings[0].message
        assert (findings[0].confidence, findings[0].saving_us) == (Confidence.MEDIUM, 2500 * 45 // 1000)
        assert findings[0].reasons == (
            "tools that read DT_HASH themselves find none any more: --hash-style=both keeps it for them",
            "the time is that of tables with 50 names or more: in this one, with 1, a search takes less",
        )


# --- relocations that are not packed ----------------------------------------------------------------------------------


def relocated_often(count: int, *more: Section) -> bytes:
    """Return a program with relative relocations."""
    entries = [Rel(0x5000 + 8 * number, 8, addend=0) for number in range(count)]
    sections = [Section(".interp", data=f"{GLIBC}\0".encode()), Section(".rela.dyn", SHT_RELA, RO, entries), *more]
    return write(ElfFile(sections=sections, dynamic=[Dyn(DT_NEEDED, "libc.so.6")]))


def c_library(release: str) -> bytes:
    text = Section(".rodata", SHT_PROGBITS, RO, f"GNU C Library stable release version {release}.\n".encode())
    return write(ElfFile(sections=[text], dynamic=[Dyn(DT_SONAME, "libc.so.6")]))


@pytest.mark.parametrize(
    ("count", "release", "more", "is_listed"),
    [
        (40_000, "2.36", [], True),
        (39_999, "2.36", [], False),
        (40_000, "2.35", [], False),
        (40_000, "3.0", [], True),
        (40_000, "of today", [], False),
        (40_000, "2.36", [Section(".relr.dyn", SHT_RELR, RO, [0x4000])], False),
    ],
)
def test_many_relocations_are_to_be_packed_where_the_loader_can_read_that(
    sysroot: Sysroot, count: int, release: str, more: list[Section], *, is_listed: bool
) -> None:
    sysroot.file("/bin/program", relocated_often(count, *more))
    sysroot.file("/lib/libc.so.6", c_library(release))
    findings = unpacked_relocations(graph(sysroot))
    assert [finding.subject for finding in findings] == ["program"] * is_listed
    if findings:
        # An address, and 635 bitmaps of 63 words: 5,088 of 960,000 bytes are left.
        assert "40,000 relative relocations of 24 bytes: packed, its file is 932.5 KiB smaller" in findings[0].message
        assert (findings[0].confidence, findings[0].saving_us, findings[0].saving_bytes) == (Confidence.MEDIUM, 92, 0)


# --- one function -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "kind", "subjects"), [(1, JUMP_SLOT, ["liba.so"]), (2, JUMP_SLOT, []), (1, GLOB_DAT, [])]
)
def test_a_library_is_found_if_one_function_of_it_is_called_and_nothing_else_used(
    sysroot: Sysroot, used: int, kind: int, subjects: list[str]
) -> None:
    others = [f"lib{number}.so" for number in range(6)]
    sysroot.file("/bin/program", file("liba.so", uses=names(used), kind=kind))
    # The library alone takes less than 200 us; what it brings in makes it worth a dlopen.
    sysroot.file("/lib/liba.so", file(*others, soname="liba.so", defines=names(used)))
    for name in others:
        sysroot.file(f"/lib/{name}", file(soname=name))
    found = one_function(graph(sysroot))
    assert [one.subject for one in found] == subjects
    if found:
        assert found[0].message == "program calls f0 of liba.so, and uses nothing else of it"
        assert found[0].saving_us >= 7 * 38


@pytest.mark.parametrize(("folder", "where"), [("/srv", " in main"), ("/usr/lib", "")])
def test_calls_are_looked_for_in_what_is_built_and_not_in_what_packages_bring(
    sysroot: Sysroot, monkeypatch: pytest.MonkeyPatch, folder: str, where: str
) -> None:
    others = [f"lib{number}.so" for number in range(6)]
    sysroot.file("/bin/program", file("libuser.so", more=[Dyn(DT_RPATH, folder)]))
    sysroot.file(f"{folder}/libuser.so", file("liba.so", soname="libuser.so", uses=["f0"], kind=JUMP_SLOT))
    sysroot.file("/lib/liba.so", file(*others, soname="liba.so", defines=["f0"]))
    for name in others:
        sysroot.file(f"/lib/{name}", file(soname=name))
    monkeypatch.setattr("footprint.findings.graph_rules.one_function._calls", lambda *_: (["main"], []))
    (finding,) = one_function(graph(sysroot))
    assert finding.message == f"libuser.so calls f0 of liba.so{where}, and uses nothing else of it"


def test_a_library_that_another_link_keeps_is_not_found(sysroot: Sysroot) -> None:
    others = [f"lib{number}.so" for number in range(6)]
    sysroot.file("/bin/program", file("liba.so", "libb.so", uses=["f0"], kind=JUMP_SLOT))
    sysroot.file("/lib/liba.so", file(*others, soname="liba.so", defines=["f0"]))
    sysroot.file("/lib/libb.so", file("liba.so", soname="libb.so"))  # uses nothing of it
    for name in others:
        sysroot.file(f"/lib/{name}", file(soname=name))
    assert one_function(graph(sysroot)) == ()


@pytest.mark.parametrize(
    ("function", "library"),
    [
        ("_Znwm", "libstdc++.so.6"),
        ("_ZNSt6vectorIiE4sizeEv", "libc++.so.1"),
        ("__cxa_throw", "libother.so"),
        ("_Unwind_Resume", "libgcc_s.so.1"),
        ("__udivti3", "libgcc_s.so.1"),
        ("GOMP_parallel", "libgomp.so.1"),
        ("_gfortran_st_write", "libgfortran.so.5"),
        ("sqrtq", "libquadmath.so.0"),
        ("__asan_init", "libasan.so.8"),
    ],
)
def test_what_the_compiler_calls_by_itself_is_no_place_for_a_dlopen(
    sysroot: Sysroot, function: str, library: str
) -> None:
    others = [f"lib{number}.so" for number in range(6)]
    sysroot.file("/bin/program", file(library, uses=[function], kind=JUMP_SLOT))
    sysroot.file(f"/lib/{library}", file(*others, soname=library, defines=[function]))
    for name in others:
        sysroot.file(f"/lib/{name}", file(soname=name))
    assert one_function(graph(sysroot)) == ()


@pytest.mark.parametrize(("text", "confidence"), [(b"f1", Confidence.BLOCKED), (b"f2", Confidence.LOW)])
def test_a_program_that_looks_up_names_may_use_more_of_a_library(
    sysroot: Sysroot, text: bytes, confidence: Confidence
) -> None:
    others = [f"lib{number}.so" for number in range(6)]
    sysroot.file("/bin/program", file("liba.so", uses=["f0", "dlsym"], kind=JUMP_SLOT, texts=text))
    sysroot.file("/lib/liba.so", file(*others, soname="liba.so", defines=["f0", "f1"]))
    for name in others:
        sysroot.file(f"/lib/{name}", file(soname=name))
    (finding,) = one_function(graph(sysroot))
    assert finding.message.endswith("of liba.so, and binds to nothing else of it, but may use more at run time")
    assert finding.confidence is confidence
    assert "look" in finding.reasons[2]


def test_a_program_that_loads_plugins_is_told_so_whatever_else_it_holds(
    sysroot: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [f"lib{number}.so" for number in range(6)]
    shown = names(32, "shown")
    program = file("liba.so", uses=["f0", "dlopen"], defines=shown, kind=JUMP_SLOT, texts=b"liba.so", gnu_hash=True)
    sysroot.file("/bin/program", program)
    sysroot.file("/lib/liba.so", file(*others, soname="liba.so", defines=["f0"]))
    for name in others:
        sysroot.file(f"/lib/{name}", file(soname=name))
    # A search of all constants could block no more.
    monkeypatch.setattr(DependencyGraph, "constants_among", None)
    (finding,) = one_function(graph(sysroot))
    assert finding.confidence is Confidence.BLOCKED
    assert finding.reasons[2:] == ("program loads plugins, which may bind to it",)


# --- files of packages ------------------------------------------------------------------------------------------------


def slow(rule: str, path: str, us: int) -> Finding:
    name = path.rsplit("/", 1)[-1]
    found = Finding(rule, "c", name, f"{name} is slow", 0, Confidence.MEDIUM, ("why",), "build it")
    return replace(found, object=path, saving_us=us)


def test_files_of_packages_are_named_behind_what_the_user_builds() -> None:
    findings = [
        *[slow("own-lookups", f"/usr/lib/lib{number}.so", 900 - number) for number in range(5)],
        slow("own-lookups", "/opt/app/libmine.so", 200),
        slow("bound-at-start", "/usr/bin/program", 100),
    ]
    blocks = finding_blocks(findings, 1, {"/usr/bin/program"}, is_verbose=True)
    texts = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert [text.partition(":")[0] for text in texts] == [
        "own-lookups (medium)",
        "bound-at-start (medium)",
        "In files of packages, of each start",
    ]
    assert "libmine.so" in texts[0]
    assert texts[2].endswith(": own-lookups of lib0.so (900 us), lib1.so (899 us), lib2.so (898 us) and 2 more.")
    # Without -v a start of less than a millisecond is not worth a line.
    assert [block.text for block in finding_blocks(findings, 1) if isinstance(block, Paragraph)] == [
        "7 save little: -v shows them."
    ]


def test_a_finding_without_a_reason_has_no_empty_sentence_for_it() -> None:
    (_, block) = finding_blocks([replace(slow("own-lookups", "/opt/liba.so", 1500), reasons=())], 1)
    assert isinstance(block, Paragraph)
    assert block.text == (
        "own-lookups (medium): liba.so is slow. It saves no memory, and about 1.50 ms of each start. Remedy: build it."
    )


def test_what_may_save_nothing_saves_no_up_to_nothing() -> None:
    small, none = (
        replace(slow("own-lookups", "/opt/liba.so", 1), confidence=Confidence.LOW, saving_bytes=size) for size in (8, 0)
    )
    table = next(block for block in finding_blocks([small, none], 1, is_verbose=True) if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["up to 8 B", "0 B"]


@pytest.mark.parametrize(("count", "begin"), [(1, "lib0.so: 4 KiB"), (2, "each of lib0.so, lib1.so: 8 KiB")])
def test_a_remedy_of_several_things_says_that_it_is_for_each(count: int, begin: str) -> None:
    findings = [replace(slow("own-lookups", f"/opt/lib{number}.so", 1), saving_bytes=4096) for number in range(count)]
    (block,) = first_remedy(findings, ())
    assert isinstance(block, Paragraph)
    assert block.text == f"What to do first ({begin}): build it."


# --- time -------------------------------------------------------------------------------------------------------------


def test_of_a_static_program_nothing_comes_before_its_entry_point(sysroot: Sysroot) -> None:
    sysroot.file("/bin/program", write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8192))])))
    static = graph(sysroot)
    assert (static.start_us, static.start_page_faults) == ((0,), (0,))
    sysroot.program("liba.so")
    sysroot.library("/lib/liba.so")
    assert all(graph(sysroot).start_us)


def test_without_a_library_the_lookups_of_the_others_ask_fewer_objects(sysroot: Sysroot) -> None:
    functions = names(1000)
    sysroot.file("/bin/program", file("libb.so", "liba.so", uses=functions))
    sysroot.file("/lib/liba.so", file(soname="liba.so", defines=functions))
    # They ask themselves, and the program before.
    sysroot.file("/lib/libb.so", file("libc.so", soname="libb.so", defines=["g0"], uses=["g0"]))
    sysroot.file("/lib/libc.so", file(soname="libc.so", uses=["g0"]))
    process = graph(sysroot)
    assert [process.name(number) for number in range(4)] == ["program", "libb.so", "liba.so", "libc.so"]
    sysroot.file("/bin/program", file("liba.so", uses=functions))
    rest = graph(sysroot)
    asked_count, rest_asked_count = (sum([work[5] for work in one.start_work]) for one in (process, rest))
    # 1,000 lookups of the program ask libb.so before they come to liba.so.
    own_asked_count = sum([process.start_work[number][5] for number in (1, 3)])
    assert asked_count - rest_asked_count == own_asked_count + 1000
    own_us = process.start_us[1] + process.start_us[3]
    assert process.retained_start_us[1] == own_us + 1000 * process.start_prices.asked_ns // 1000
    assert process.retained_start_us[3] == process.start_us[3]


def test_what_lookups_ask_less_is_left_out_of_very_long_chains(
    sysroot: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = names(1000)
    sysroot.file("/bin/program", file("liba.so", uses=functions))
    sysroot.file("/lib/liba.so", file("libb.so", soname="liba.so"))
    sysroot.file("/lib/libb.so", file(soname="libb.so", defines=functions))
    process = graph(sysroot)
    leaving_us = process.retained.sums(process.start_us)
    assert process.retained_start_us[1] > leaving_us[1]
    monkeypatch.setattr(dependency_graph, "_MOST_RETAINED", 2)
    assert graph(sysroot).retained_start_us == leaving_us


def test_page_faults_are_not_estimated_for_musl(sysroot: Sysroot) -> None:
    sysroot.program(path="/bin/program", interpreter=MUSL)
    sysroot.file(MUSL, file(soname="libc.musl-x86_64.so.1"))
    costs = graph(sysroot).object_costs(has_start=True)
    assert [cost.start and cost.start.page_faults for cost in costs] == [None] * len(costs)
    assert all(cost.start and cost.start.relocation_count == 0 for cost in costs)
