"""What a finding says of dropping a library: the process without it, on small systems whose files are built in view."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import Note
from footprint.findings.graph_rules.stub_library import stub_libraries
from footprint.findings.graph_rules.thread_locals import thread_locals
from footprint.findings.graph_rules.unused_library import unused_libraries
from footprint.findings.removal import program_advice
from footprint.loader.map_entry import FoundBy
from footprint.loader.start_failures import start_failures
from footprint.loader.target import Environment
from footprint.model.finding import Confidence, Finding
from footprint.sources.programs import Programs
from tests.elfwriter import (
    DT_AUDIT,
    DT_BIND_NOW,
    DT_DEPAUDIT,
    DT_FINI,
    DT_FLAGS_1,
    DT_INIT,
    DT_JMPREL,
    DT_NEEDED,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_RELA,
    DT_RELR,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    EM_AARCH64,
    EM_LOONGARCH,
    EM_RISCV,
    EM_X86_64,
    PT_GNU_STACK,
    RO,
    RW,
    SHT_NOBITS,
    SHT_RELA,
    STB_GLOBAL,
    STB_WEAK,
    STT_FUNC,
    TLS,
    VER_FLG_BASE,
    VER_FLG_WEAK,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Size,
    Sym,
    Version,
    write,
)
from tests.sysroot import GLIBC, Sysroot, loader_cache

HIGH, MEDIUM, LOW, BLOCKED = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW, Confidence.BLOCKED
GLOB_DAT, JUMP_SLOT = 6, 7
NOBODY = "no object of the process binds to what would leave"
NOW = Dyn(DT_FLAGS_1, 1)
# What stands there is no code of the compiler.
STARTS, ENDS = Dyn(DT_INIT, At(".data")), Dyn(DT_FINI, At(".data"))


def made(
    soname: str | None,
    *needed: str,
    offers: Sequence[str] = (),
    asks: Sequence[str] = (),
    binding: int = STB_GLOBAL,
    relocation: int = JUMP_SLOT,
    table: str = ".rela.dyn",
    holds: bytes = b"",
    more: Sequence[Dyn] = (),
    tls_bytes: int = 0,
    notes: Section | None = None,
    needs: Mapping[str, Sequence[Version]] | None = None,
    defines: Sequence[Version] = (),
    version: int = 1,
) -> bytes:
    """Return a program, or a library where it has a name."""
    symbols = [Sym(name, At(".data"), 8, STT_FUNC, binding, version=version if defines else 1) for name in offers]
    symbols += [Sym(name, type=STT_FUNC, version=version if needs else 1) for name in asks]
    slots = [Rel(At(".data", 8 * place), relocation, name, 0) for place, name in enumerate(asks)]
    sections = [
        Section(".data", flags=RW, data=bytes(max(16, 8 * len(asks)))),
        Section(".rodata", flags=RO, data=b"\0" + holds + b"\0"),
        *([Section(".tbss", SHT_NOBITS, TLS, size=tls_bytes)] if tls_bytes else []),
        *([Section(table, SHT_RELA, RO, slots)] if slots else []),
        *([notes] if notes else []),
        *([Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")] if soname is None else []),
    ]
    dynamic = [*(Dyn(DT_NEEDED, name) for name in needed), *([Dyn(DT_SONAME, soname)] if soname else []), *more]
    file = ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=symbols, needs=needs or {}, versions=defines)
    return write(file)


PLAIN = made("libx.so", offers=["x"])
FOO_USER = made("libuser.so", "libone.so", "libtwo.so", offers=["user"], asks=["foo"])


def graph_of(folder: Path, files: Mapping[str, bytes], target: str = "/bin/program") -> DependencyGraph:
    system = Sysroot(folder)
    system.loader()
    system.file("/etc/ld.so.cache", loader_cache([]))
    for path, data in files.items():
        system.file(path, data)
    return Programs(str(folder), Environment(hwcaps="baseline"), is_calibrated=False).graph(target)


def of(graph: DependencyGraph, subject: str = "libx.so") -> Finding:
    (found,) = [unused_library for unused_library in unused_libraries(graph) if unused_library.subject == subject]
    return found


def runpath(path: str) -> Dyn:
    return Dyn(DT_RUNPATH, path)


def foo(soname: str, *needed: str, binding: int = STB_GLOBAL, name: str = "foo") -> bytes:
    return made(soname, *needed, offers=[name], binding=binding)


def frexp_twice(soname: str) -> dict[str, bytes]:
    """Return a process in which libc.so.6 and a library define a function; without libx.so, libc.so.6 is first."""
    version = Version("GLIBC_2.2.5", 2)
    files = {
        "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
        "/lib/libx.so": made("libx.so", soname),
    }
    needs = {soname: [version]}
    files["/lib/libuser.so"] = made(
        "libuser.so", "libc.so.6", soname, offers=["user"], asks=["frexp"], needs=needs, version=2
    )
    for name in (soname, "libc.so.6"):
        defines = Version(name, 1, VER_FLG_BASE), version
        files[f"/lib/{name}"] = made(name, offers=["frexp"], defines=defines, version=2)
    return files


# Each: the files, the confidence, and a reason.
CASES: dict[str, tuple[dict[str, bytes], Confidence, str]] = {
    "nothing differs": (
        {"/bin/program": made(None, "libx.so"), "/lib/libx.so": PLAIN},
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "only its runpath finds what another one needs": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libdeep.so", more=[runpath("/deep")]),
            "/deep/libdeep.so": made("libdeep.so", offers=["deep"]),
            "/lib/libuser.so": made("libuser.so", "libdeep.so", offers=["user"], asks=["deep"]),
        },
        BLOCKED,
        "libuser.so would not find libdeep.so, which is found now by the RUNPATH of libx.so",
    ),
    "only its rpath, which others inherit, finds a library": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libmiddle.so", more=[Dyn(DT_RPATH, "/deep")]),
            "/deep/libdeep.so": made("libdeep.so", offers=["deep"]),
            "/lib/libmiddle.so": made("libmiddle.so", "libdeep.so", offers=["middle"], asks=["deep"]),
            "/lib/libuser.so": made("libuser.so", "libmiddle.so", offers=["user"], asks=["middle"]),
        },
        BLOCKED,
        "libmiddle.so would not find libdeep.so, which is found now by the RPATH of libx.so",
    ),
    "another file of the same name is found": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libdeep.so", more=[runpath("/deep")]),
            "/deep/libdeep.so": made("libdeep.so", offers=["deep"]),
            "/lib/libdeep.so": made("libdeep.so", offers=["deep"]),
            "/lib/libuser.so": made("libuser.so", "libdeep.so", offers=["user"], asks=["deep"]),
        },
        BLOCKED,
        "libdeep.so would be /lib/libdeep.so instead of /deep/libdeep.so",
    ),
    "another definition comes first": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libtwo.so"),
            "/lib/libuser.so": FOO_USER,
            "/lib/libone.so": foo("libone.so"),
            "/lib/libtwo.so": foo("libtwo.so"),
        },
        BLOCKED,
        "libuser.so would get foo from libone.so instead of libtwo.so",
    ),
    "another definition comes first, from a file of the same name": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "/two/libfoo.so"),
            "/lib/libuser.so": made("libuser.so", "/one/libfoo.so", "/two/libfoo.so", offers=["user"], asks=["foo"]),
            "/one/libfoo.so": foo("libfoo.so"),
            "/two/libfoo.so": foo("libfoo.so"),
        },
        BLOCKED,
        "libuser.so would get foo from /one/libfoo.so instead of /two/libfoo.so",
    ),
    "another copy of an inline function of C++ comes first": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libtwo.so"),
            "/lib/libuser.so": made("libuser.so", "libone.so", "libtwo.so", offers=["user"], asks=["_Z3foov"]),
            "/lib/libone.so": foo("libone.so", binding=STB_WEAK, name="_Z3foov"),
            "/lib/libtwo.so": foo("libtwo.so", binding=STB_WEAK, name="_Z3foov"),
        },
        MEDIUM,
        "libuser.so would get _Z3foov from libone.so instead of libtwo.so; both have it from a header",
    ),
    "a weak function of C comes first": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libtwo.so"),
            "/lib/libuser.so": FOO_USER,
            "/lib/libone.so": foo("libone.so", binding=STB_WEAK),
            "/lib/libtwo.so": foo("libtwo.so", binding=STB_WEAK),
        },
        BLOCKED,
        "libuser.so would get foo from libone.so instead of libtwo.so",
    ),
    "the same function of glibc comes first": (
        frexp_twice("libm.so.6"),
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "a function that replaces one of glibc comes later": (
        frexp_twice("libfast.so"),
        BLOCKED,
        "libuser.so would get frexp from libc.so.6 instead of libfast.so",
    ),
    "the order changes and nobody can tell": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", asks=["user"]),
            "/lib/libx.so": made("libx.so", "libtwo.so"),
            "/lib/libuser.so": made("libuser.so", "libone.so", "libtwo.so", offers=["user"], asks=["one", "two"]),
            "/lib/libone.so": made("libone.so", offers=["one"]),
            "/lib/libtwo.so": made("libtwo.so", offers=["two"]),
        },
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "the order changes and somebody looks up symbols in it": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", "libc.so.6", asks=["user", "dlsym"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["dlsym"]),
            "/lib/libx.so": made("libx.so", "libtwo.so"),
            "/lib/libuser.so": made("libuser.so", "libone.so", "libtwo.so", offers=["user"], asks=["one", "two"]),
            "/lib/libone.so": made("libone.so", offers=["one"]),
            "/lib/libtwo.so": made("libtwo.so", offers=["two"]),
        },
        MEDIUM,
        "program may look up symbols in load order, and libone.so would be loaded before libtwo.so",
    ),
    "what leaves looks up symbols itself": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6"),
            "/lib/libc.so.6": made("libc.so.6", offers=["dlsym"]),
            "/lib/libx.so": made("libx.so", "libc.so.6", asks=["dlsym"]),
        },
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "its symbols are looked up by name": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["dlsym"], holds=b"x"),
            "/lib/libc.so.6": made("libc.so.6", offers=["dlsym"]),
            "/lib/libx.so": PLAIN,
        },
        LOW,
        "program looks up symbols by name, and holds x",
    ),
    "it is opened by name": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["dlopen"], holds=b"libx.so"),
            "/lib/libc.so.6": made("libc.so.6", offers=["dlopen"]),
            "/lib/libx.so": PLAIN,
        },
        LOW,
        "program looks up libraries by name, and holds libx.so",
    ),
    "other libraries are opened": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["dlopen"], holds=b"x"),
            "/lib/libc.so.6": made("libc.so.6", offers=["dlopen"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "program may load objects or look up symbols by name",
    ),
    "the list of objects is walked": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["dl_iterate_phdr"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["dl_iterate_phdr"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "program walks the list of loaded objects",
    ),
    "the own data of the loader has the list of objects": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["_rtld_global"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["_rtld_global"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "program walks the list of loaded objects",
    ),
    "an entry of the list of objects is asked for by an address": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["_dl_find_object"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["_dl_find_object"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "program walks the list of loaded objects",
    ),
    "the C library may open modules of NSS": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["getpwnam_r"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["getpwnam_r"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "for program the C library may open modules (NSS, gconv), which may bind to it",
    ),
    "the C library may open modules of gconv in a locale": (
        {
            "/bin/program": made(None, "libx.so", "libuser.so", "libc.so.6", asks=["user", "setlocale"]),
            "/lib/libuser.so": made("libuser.so", "libc.so.6", offers=["user"], asks=["mbstowcs"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["setlocale", "mbstowcs"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "for libuser.so the C library may open modules (NSS, gconv), which may bind to it",
    ),
    "the runtime of C++ has what a program may call": (
        {
            "/bin/program": made(None, "libx.so", "libstdc++.so.6", "libc.so.6", asks=["cxx"]),
            "/lib/libstdc++.so.6": made("libstdc++.so.6", offers=["cxx"], asks=["newlocale", "iconv_open", "btowc"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["newlocale", "iconv_open", "btowc"]),
            "/lib/libx.so": PLAIN,
        },
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "the runtime of C++ is given the name of a locale": (
        {
            "/bin/program": made(None, "libx.so", "libstdc++.so.6", "libc.so.6", asks=["_ZNSt6localeC1EPKc"]),
            "/lib/libstdc++.so.6": made("libstdc++.so.6", offers=["_ZNSt6localeC1EPKc"], asks=["newlocale", "btowc"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["newlocale", "btowc"]),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "for libstdc++.so.6 the C library may open modules (NSS, gconv), which may bind to it",
    ),
    "texts are converted in the locale that needs no module": (
        {
            "/bin/program": made(None, "libx.so", "libc.so.6", asks=["mbstowcs"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["mbstowcs"]),
            "/lib/libx.so": PLAIN,
        },
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "an unwinder walks the list of objects": (
        {
            "/bin/program": made(None, "libx.so", "libgcc_s.so.1", "libc.so.6", asks=["unwind"]),
            "/lib/libgcc_s.so.1": made("libgcc_s.so.1", "libc.so.6", offers=["unwind"], asks=["dl_iterate_phdr"]),
            "/lib/libc.so.6": made("libc.so.6", offers=["dl_iterate_phdr"]),
            "/lib/libx.so": PLAIN,
        },
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "the mappings are read": (
        {"/bin/program": made(None, "libx.so", holds=b"/proc/self/maps"), "/lib/libx.so": PLAIN},
        MEDIUM,
        "program may read /proc/self/maps",
    ),
    "another file of a process is read": (
        {"/bin/program": made(None, "libx.so", holds=b"/proc/%lu/task/1"), "/lib/libx.so": PLAIN},
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "the mappings of a thread are read": (
        {"/bin/program": made(None, "libx.so", holds=b"/proc/thread-self/smaps"), "/lib/libx.so": PLAIN},
        MEDIUM,
        "program may read /proc/thread-self/smaps",
    ),
    "texts that end without a null byte": (
        {"/bin/program": made(None, "libx.so", holds=b"cannot open/proc/self/mapsno line"), "/lib/libx.so": PLAIN},
        MEDIUM,
        "program may read /proc/self/maps",
    ),
    "the path is put together": (
        {"/bin/program": made(None, "libx.so", holds=b"/proc/\0/maps"), "/lib/libx.so": PLAIN},
        MEDIUM,
        "program may read /maps",
    ),
    "the path is put together by Rust, which ends no text": (
        {"/bin/program": made(None, "libx.so", holds=b"no/proc//smapsline"), "/lib/libx.so": PLAIN},
        MEDIUM,
        "program may read /proc//smaps",
    ),
    "the path is put together of more pieces": (
        {"/bin/program": made(None, "libx.so", holds=b"/proc/%d\0smaps"), "/lib/libx.so": PLAIN},
        MEDIUM,
        "program may read smaps",
    ),
    "a word that is also the name of a file": (
        {"/bin/program": made(None, "libx.so", holds=b"maps\0/processor"), "/lib/libx.so": PLAIN},
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "another file is called maps": (
        {"/bin/program": made(None, "libx.so", holds=b"/usr/share/maps"), "/lib/libx.so": PLAIN},
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "somebody watches the loader": (
        {
            "/bin/program": made(None, "libx.so", more=[Dyn(DT_AUDIT, "/lib/libaudit.so")]),
            "/lib/libaudit.so": made("libaudit.so"),
            "/lib/libx.so": PLAIN,
        },
        MEDIUM,
        "libaudit.so watches what the loader does (DT_AUDIT)",
    ),
    "the program does not start anyway": (
        {"/bin/program": made(None, "libx.so", asks=["gone"], more=[NOW]), "/lib/libx.so": PLAIN},
        MEDIUM,
        "the program does not start as it is, or ends at a call; see its notes",
    ),
    "it has thread-local variables": (
        {"/bin/program": made(None, "libx.so"), "/lib/libx.so": made("libx.so", tls_bytes=4096)},
        HIGH,
        "no object of the process binds to what would leave",
    ),
    "it has a constructor": (
        {"/bin/program": made(None, "libx.so"), "/lib/libx.so": made("libx.so", more=[STARTS])},
        MEDIUM,
        "libx.so has 1 constructor of its own, which would not run",
    ),
    "it has a destructor": (
        {"/bin/program": made(None, "libx.so"), "/lib/libx.so": made("libx.so", more=[ENDS])},
        MEDIUM,
        "libx.so has 1 destructor of its own, which would not run",
    ),
    "its version is checked": (
        {
            "/bin/program": made(None, "libx.so", needs={"libx.so": [Version("V1", 2)]}),
            "/lib/libx.so": made("libx.so", defines=[Version("libx.so", 1, VER_FLG_BASE), Version("V1", 2)]),
        },
        BLOCKED,
        "program checks at start that libx.so has V1: relink it, no patch will do",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_differs_without_a_library_decides_how_sure_the_finding_is(tmp_path: Path, name: str) -> None:
    files, confidence, reason = CASES[name]
    found = of(graph_of(tmp_path, files))
    assert found.confidence == confidence, found.reasons
    assert reason in found.reasons


@pytest.mark.parametrize("soname", ["libgcc_s.so.1", "libnss_files.so.2", "libKSC.so", "gconv/UTF-16.so"])
def test_what_the_c_library_opens_by_itself_may_be_there_for_it(tmp_path: Path, soname: str) -> None:
    path = f"/lib/{soname}"
    soname = soname.rpartition("/")[2]
    files = {"/bin/program": made(None, path), path: made(soname, offers=["x"])}
    found = of(graph_of(tmp_path, files), soname)
    assert (found.confidence, found.reasons) == (
        MEDIUM,
        (f"the C library opens {soname} by name where it needs it",),
    )


def library_alone(folder: Path, files: Mapping[str, bytes]) -> DependencyGraph:
    """Return the graph of `/lib/libmodule.so`, which no program has loaded."""
    return graph_of(folder, files, "/lib/libmodule.so")


def test_what_a_library_alone_could_do_without_is_never_sure(tmp_path: Path) -> None:
    """Its program may use what would leave without needing it: then it dies with `undefined symbol`."""
    module = made("libmodule.so", "libx.so", "libc.so.6", asks=["puts"])
    files = {"/lib/libmodule.so": module, "/lib/libx.so": PLAIN, "/lib/libc.so.6": made("libc.so.6", offers=["puts"])}
    found = of(library_alone(tmp_path, files))
    assert (found.confidence, found.reasons) == (
        MEDIUM,
        (
            "no object of the process binds to what would leave",
            "libmodule.so is a library: its program may bind to what would leave, or keep it, and then saves nothing",
        ),
    )


@pytest.mark.parametrize(
    ("notes", "remedy"),
    [
        (Section(".go.buildinfo", flags=RO, data=bytes(32)), "drop -lx from #cgo LDFLAGS of program, or write "),
        (Section(".comment", data=b"rustc version 1.70.0\0"), "find what links -lx into program although rustc "),
        (Section(".comment", data=b"GCC: (GNU) 12.2.0\0"), "drop -lx from the link of program, or write "),
    ],
    ids=["cgo", "rustc", "gcc"],
)
def test_the_remedy_is_that_of_the_tool_that_links_the_program(tmp_path: Path, notes: Section, remedy: str) -> None:
    files = {"/bin/program": made(None, "libx.so", notes=notes), "/lib/libx.so": PLAIN}
    assert of(graph_of(tmp_path, files)).remedy.startswith(remedy)


def test_empty_libraries_of_glibc_and_thread_locals_of_a_library_alone_are_no_sure_saving(tmp_path: Path) -> None:
    stub = made("libdl.so.2", offers=["__libdl_version_placeholder"])
    files = {
        "/lib/libmodule.so": made("libmodule.so", "libdl.so.2", "libx.so"),
        "/lib/libdl.so.2": stub,
        "/lib/libx.so": made("libx.so", tls_bytes=2 * 4096),
    }
    graph = library_alone(tmp_path, files)
    found = [*stub_libraries(graph), *thread_locals(graph)]
    assert [(one.subject, one.confidence) for one in found] == [("libdl.so.2", MEDIUM), ("libx.so", MEDIUM)]
    assert found[0].message == "libdl.so.2 is empty since glibc 2.34; libmodule.so still needs it"


def test_a_need_that_saves_nothing_may_keep_the_order(tmp_path: Path) -> None:
    files = {
        "/bin/program": made(None, "libtwo.so", "libuser.so", asks=["user"]),
        "/lib/libuser.so": FOO_USER,
        "/lib/libone.so": foo("libone.so"),
        "/lib/libtwo.so": foo("libtwo.so"),
    }
    found = of(graph_of(tmp_path, files), "libtwo.so")
    assert (found.kind, found.confidence, found.saving_bytes) == ("linker-residue", BLOCKED, 0)
    assert found.reasons == (
        "dropping it saves nothing",
        "libuser.so would get foo from libone.so instead of libtwo.so",
    )


def test_a_need_that_saves_nothing_may_keep_the_order_of_constructors(tmp_path: Path) -> None:
    files = {
        "/bin/program": made(None, "libx.so", "liba.so", asks=["a", "x"]),
        "/lib/liba.so": made("liba.so", "libx.so", offers=["a"], more=[STARTS]),
        "/lib/libx.so": made("libx.so", offers=["x"], more=[ENDS]),
    }
    found = of(graph_of(tmp_path, files))
    assert (found.kind, found.confidence, Path(found.object_path).name) == ("linker-residue", MEDIUM, "liba.so")
    assert found.reasons[1:] == ("liba.so would be initialised before libx.so, which comes first now",)


def test_two_needs_that_may_go_alone_may_not_go_together(tmp_path: Path) -> None:
    files = {
        "/bin/program": made(None, "libx.so", "liby.so", "libuser.so", asks=["user"]),
        "/lib/libx.so": made("libx.so", "libtwo.so"),
        "/lib/liby.so": made("liby.so", "libtwo.so"),
        "/lib/libuser.so": FOO_USER,
        "/lib/libone.so": foo("libone.so"),
        "/lib/libtwo.so": foo("libtwo.so"),
    }
    graph = graph_of(tmp_path, files)
    assert [of(graph, subject).confidence for subject in ("libx.so", "liby.so")] == [MEDIUM, MEDIUM]
    reason = "libuser.so would get foo from libone.so instead of libtwo.so"
    assert of(graph).reasons[-1] == f"dropping libx.so and liby.so together is not safe: {reason}"


def test_a_remedy_that_would_drop_more_than_may_go_says_so(tmp_path: Path) -> None:
    files = {
        "/bin/program": made(None, "libx.so", "libtwo.so", "libuser.so", asks=["user"]),
        "/lib/libx.so": PLAIN,
        "/lib/libuser.so": FOO_USER,
        "/lib/libone.so": foo("libone.so"),
        "/lib/libtwo.so": foo("libtwo.so"),
    }
    found = of(graph_of(tmp_path, files))
    assert found.confidence == HIGH
    assert found.remedy.endswith("; --as-needed would also drop libtwo.so, which is blocked")


def test_an_empty_library_of_glibc_that_leaves_with_an_unused_one_is_spared_once(tmp_path: Path) -> None:
    stub = made("libdl.so.2", offers=["__libdl_version_placeholder"], defines=[Version("libdl.so.2", 1, VER_FLG_BASE)])
    files = {
        "/bin/program": made(None, "libc.so.6", "libx.so", "liby.so", asks=["y"]),
        "/lib/libx.so": made("libx.so", "libdl.so.2", "libpthread.so.0", offers=["x"]),
        "/lib/liby.so": made("liby.so", "libpthread.so.0", offers=["y"]),
        "/lib/libdl.so.2": stub,
        "/lib/libpthread.so.0": made("libpthread.so.0", offers=["__libpthread_version_placeholder"]),
        "/lib/libc.so.6": made("libc.so.6"),
    }
    graph = graph_of(tmp_path, files)
    findings = [*unused_libraries(graph), *stub_libraries(graph)]
    names = [(finding.subject, len(finding.leaves)) for finding in findings if finding.saving_bytes]
    assert names == [("libx.so", 2), ("libdl.so.2 and libpthread.so.0", 2)]
    leaving = [n for n in range(len(graph.objects)) if graph.name(n) in {"libx.so", "libdl.so.2", "libpthread.so.0"}]
    assert graph.spared_bytes(findings) == (graph.saving_bytes(frozenset(leaving)), 0)
    doubtful = [
        replace(finding, confidence=LOW) if finding.rule == "unused-library" else finding for finding in findings
    ]
    libx = [number for number in leaving if graph.name(number) == "libx.so"]
    assert graph.spared_bytes(doubtful)[1] == graph.saving_bytes(frozenset(libx)) > 0


def test_libraries_that_act_at_start_or_exit_are_named_in_one_reason_for_each(tmp_path: Path) -> None:
    files = {
        "/bin/program": made(None, "libx.so"),
        "/lib/libx.so": made("libx.so", "liby.so", offers=["x"], more=[STARTS, ENDS]),
        "/lib/liby.so": made("liby.so", offers=["y"], more=[STARTS]),
    }
    assert of(graph_of(tmp_path, files)).reasons == (
        "libx.so and liby.so have constructors of their own, which would not run",
        "libx.so has 1 destructor of its own, which would not run",
    )


@pytest.mark.parametrize(
    ("machine", "loader", "reasons"),
    [
        (EM_X86_64, GLIBC, ("the stack is executable because of libx.so",)),
        (EM_AARCH64, "/lib/ld-linux-aarch64.so.1", (NOBODY,)),
        (EM_RISCV, "/lib/ld-linux-riscv64-lp64d.so.1", (NOBODY,)),
        (EM_LOONGARCH, "/lib64/ld-linux-loongarch-lp64d.so.1", (NOBODY,)),
        # musl leaves the stack as the kernel made it for the program.
        (EM_X86_64, "/lib/ld-musl-x86_64.so.1", (NOBODY,)),
    ],
)
def test_a_library_without_a_stack_segment_makes_the_stack_executable_only_with_some_loaders(
    tmp_path: Path, machine: int, loader: str, reasons: tuple[str, ...]
) -> None:
    system = Sysroot(tmp_path)
    system.loader(path=loader, machine=machine)
    sections = [Section(".interp", flags=RO, data=loader.encode() + b"\0")]
    needs = [Dyn(DT_NEEDED, "libx.so"), Dyn(DT_RUNPATH, "/opt")]
    system.file("/bin/program", write(ElfFile(machine=machine, sections=sections, dynamic=needs)))
    library = ElfFile(
        machine=machine, sections=[Section(".data", flags=RW, data=bytes(8))], dynamic=[Dyn(DT_SONAME, "libx.so")]
    )
    system.file("/opt/libx.so", write(library).replace(PT_GNU_STACK.to_bytes(4, "little"), bytes(4), 1))
    graph = Programs(str(tmp_path), Environment(hwcaps="baseline"), is_calibrated=False).graph("/bin/program")
    assert of(graph).reasons == reasons


@pytest.mark.parametrize(
    ("links", "named"),
    [({1: "x", 2: "y"}, "-lx -ly"), ({1: "x"}, "-lx and liby.so"), ({}, "libx.so and liby.so")],
)
def test_libraries_without_a_development_link_stand_in_a_sentence(
    tmp_path: Path, links: Mapping[int, str], named: str
) -> None:
    files = {"/bin/program": made(None, "libx.so", "liby.so"), "/lib/libx.so": PLAIN, "/lib/liby.so": made("liby.so")}
    graph = graph_of(tmp_path, files)
    linked = replace(graph, link_name=lambda found: links.get(graph.objects.index(found)))
    remedy = f"drop {named} from the link of program, or write -Wl,--as-needed before them there"
    assert program_advice(linked, [1, 2]) == remedy


def test_of_very_many_needs_the_first_are_tried_each_and_the_rest_together(tmp_path: Path) -> None:
    count = 300
    names = [f"lib{number:03}.so" for number in range(count)]
    files = {"/bin/program": made(None, *names, asks=["f299"])}
    files |= {f"/lib/{name}": made(name, offers=[f"f{number}"]) for number, name in enumerate(names)}
    graph = graph_of(tmp_path, files)
    found = [unused_library for unused_library in unused_libraries(graph) if unused_library.kind == "whole-process"]
    assert [one.subject for one in found] == names[:-1]
    confidences = [one.confidence for one in found]
    assert confidences == sorted(confidences, key=[HIGH, MEDIUM].index)
    assert 50 < confidences.count(HIGH) < 60
    assert found[-1].reasons == (
        "only the removal of all needs without use was computed: there are too many to try each",
    )


# --- programs that do not start


def notes_of(folder: Path, files: Mapping[str, bytes]) -> list[Note]:
    return list(graph_of(folder, files).start_failures)


BASE = Version("libc.so.6", 1, VER_FLG_BASE)
OLD, RELR = Version("GLIBC_2.2.5", 2), Version("GLIBC_ABI_DT_RELR", 3)
HAS_RELR = Dyn(DT_RELR, At(".data"))
PACKED = "link it with -Wl,-z,pack-relative-relocs"


@pytest.mark.parametrize(
    ("libc", "needs", "details"),
    [
        ([BASE, OLD, RELR], [OLD, RELR], []),
        (
            [BASE, OLD, RELR],
            [OLD],
            [
                f"it has RELR relocations, and does not need version {RELR.name}: the loader refuses it; {PACKED}",
            ],
        ),
        # glibc looks for it only in a file that needs versions.
        ([BASE, OLD, RELR], [], []),
        ([BASE, OLD], [OLD], ["it has RELR relocations, which glibc applies from 2.36 on"]),
        (
            [BASE, OLD],
            [OLD, RELR],
            ["it checks versions at its start, and libc.so.6 does not define version GLIBC_ABI_DT_RELR"],
        ),
    ],
)
def test_packed_relocations_need_a_c_library_that_knows_them(
    tmp_path: Path, libc: list[Version], needs: list[Version], details: list[str]
) -> None:
    files = {
        "/bin/program": made(None, "libc.so.6", more=[HAS_RELR], needs={"libc.so.6": needs} if needs else {}),
        "/lib/libc.so.6": made("libc.so.6", defines=libc),
    }
    assert notes_of(tmp_path, files) == [("does-not-start", "/bin/program", detail) for detail in details]


@pytest.mark.parametrize(
    ("needs", "defines", "details"),
    [
        ({"libv.so": [Version("V1", 2)]}, [Version("V1", 2)], []),
        (
            {"libv.so": [Version("V1", 2), Version("V2", 3), Version("V3", 4)]},
            [Version("V1", 2)],
            ["it checks versions at its start, and libv.so does not define version V2, V3"],
        ),
        ({"libv.so": [Version("V2", 2, VER_FLG_WEAK)]}, [Version("V1", 2)], []),
        # Of a file without any versions the loader only warns.
        ({"libv.so": [Version("V1", 2)]}, [], []),
        ({"libgone.so": [Version("V1", 2)]}, [], ["it checks versions at its start, and libgone.so is not loaded"]),
    ],
)
def test_versions_that_are_missing_are_noted(
    tmp_path: Path, needs: dict[str, list[Version]], defines: list[Version], details: list[str]
) -> None:
    base = [Version("libv.so", 1, VER_FLG_BASE)] if defines else []
    files = {
        "/bin/program": made(None, "libv.so", needs=needs),
        "/lib/libv.so": made("libv.so", defines=[*base, *defines]),
    }
    assert notes_of(tmp_path, files) == [("does-not-start", "/bin/program", detail) for detail in details]


@pytest.mark.parametrize(
    ("asks", "relocation", "more", "notes"),
    [
        (["x"], GLOB_DAT, [], []),
        (["gone"], GLOB_DAT, [], [("does-not-start", "no object defines gone, which it refers to")]),
        (["gone"], JUMP_SLOT, [NOW], [("does-not-start", "no object defines gone, which it refers to")]),
        (
            ["gone"],
            JUMP_SLOT,
            [],
            [("symbol-undefined", "no object defines gone: the program ends where it calls that")],
        ),
        (
            ["a", "b", "c", "d", "e"],
            JUMP_SLOT,
            [],
            [("symbol-undefined", "no object defines a, b, c and 2 more: the program ends where it calls that")],
        ),
    ],
)
def test_symbols_that_nothing_defines_are_noted(
    tmp_path: Path, asks: list[str], relocation: int, more: list[Dyn], notes: list[tuple[str, str]]
) -> None:
    files = {
        "/bin/program": made(None, "libx.so", asks=asks, relocation=relocation, more=more),
        "/lib/libx.so": PLAIN,
    }
    assert notes_of(tmp_path, files) == [(slug, "/bin/program", detail) for slug, detail in notes]


def test_a_caller_that_binds_calls_at_start_ends_a_program_there(tmp_path: Path) -> None:
    files = {"/bin/program": made(None, "libx.so", asks=["gone"], relocation=JUMP_SLOT), "/lib/libx.so": PLAIN}
    graph = graph_of(tmp_path, files)
    eager = replace(graph.link_map, binds_now=True)
    assert [note.slug for note in start_failures(graph.link_map, graph.bindings)] == ["symbol-undefined"]
    assert [note.slug for note in start_failures(eager, graph.bindings)] == ["does-not-start"]


REFUSED_CALL = "it has relocations of type {} in its table of calls (DT_JMPREL), which the loader refuses"


@pytest.mark.parametrize(
    ("table", "kind", "more", "details"),
    [
        (".rela.plt", JUMP_SLOT, [], []),
        (".rela.plt", 36, [], []),  # TLSDESC
        (".rela.plt", 37, [], []),  # IRELATIVE
        (".rela.plt", GLOB_DAT, [], [REFUSED_CALL.format("0x6")]),
        (".rela.plt", GLOB_DAT, [NOW], []),
        (".rela.plt", GLOB_DAT, [Dyn(DT_BIND_NOW)], []),
        (".rela.plt", 0, [], [REFUSED_CALL.format("0x0")]),
        (".rela.plt", 4, [NOW], ["it has relocations of type 0x4, which the loader refuses"]),  # PLT32
        (".rela.dyn", GLOB_DAT, [], []),
        (".rela.dyn", 4, [], ["it has relocations of type 0x4, which the loader refuses"]),
    ],
)
def test_a_relocation_that_the_loader_does_not_know_is_noted(
    tmp_path: Path, table: str, kind: int, more: list[Dyn], details: list[str]
) -> None:
    calls = [Dyn(DT_JMPREL, At(table)), Dyn(DT_PLTRELSZ, Size(table)), Dyn(DT_PLTREL, DT_RELA)]
    tags = [*more, *(calls if table == ".rela.plt" else [])]
    program = made(None, "libx.so", asks=["x"], relocation=kind, table=table, more=tags)
    files = {"/bin/program": program, "/lib/libx.so": PLAIN}
    assert notes_of(tmp_path, files) == [("does-not-start", "/bin/program", detail) for detail in details]


def test_beside_a_missing_library_nothing_else_is_said_to_be_missing(tmp_path: Path) -> None:
    assert notes_of(tmp_path, {"/bin/program": made(None, "libgone.so", asks=["gone"], relocation=GLOB_DAT)}) == []


# --- what watches the loader


def test_an_auditor_has_copies_of_its_own_of_all_but_the_loader(tmp_path: Path) -> None:
    loader = "ld-linux-x86-64.so.2"
    files = {
        "/bin/program": made(None, "libc.so.6", more=[Dyn(DT_AUDIT, "liba.so:/gone.so"), Dyn(DT_DEPAUDIT, "libb.so")]),
        "/lib/libc.so.6": made("libc.so.6", loader),
        "/lib/liba.so": made("liba.so", "libc.so.6"),
        "/lib/libb.so": made("libb.so", "liba.so"),
    }
    graph = graph_of(tmp_path, files)
    assert [(one.path, one.loader) for one in graph.objects] == [
        ("/bin/program", None),
        ("/lib/libc.so.6", 0),
        (GLIBC, 1),
        ("/lib/liba.so", None),
        ("/lib/libc.so.6", 3),
        ("/lib/libb.so", None),
        ("/lib/liba.so", 5),
        ("/lib/libc.so.6", 6),
    ]
    assert {one.found_by for one in graph.objects[3:]} == {FoundBy.AUDIT}
    assert graph.needed[3:] == ((4,), (2,), (6,), (7,), (2,))
    assert [note.slug for note in graph.notes] == ["not-preloaded"]
    assert graph.retained[5] == {5, 6, 7}


@pytest.mark.parametrize("damaged", ["liba.so", "libb.so"])
def test_a_library_is_not_to_be_dropped_where_symbols_cannot_be_read(tmp_path: Path, damaged: str) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.loader()
    sysroot.file("/bin/program", made(None, "liba.so", "libb.so"))
    for name in ("liba.so", "libb.so"):
        symbol = Sym(0x7FFFFFF if name == damaged else "f", At(".data"), 8, STT_FUNC)
        sections = [Section(".data", flags=RW, data=bytes(8))]
        file = ElfFile(sections=sections, dynamic=[Dyn(DT_SONAME, name)], dynamic_symbols=[symbol])
        sysroot.file(f"/lib/{name}", write(file))
    environment = Environment(hwcaps="baseline")
    graph = Programs(str(sysroot.root), environment, page_bytes=4096, is_calibrated=False).graph("/bin/program")
    findings = unused_libraries(graph)
    assert {finding.subject for finding in findings} == {"liba.so", "libb.so"}
    for finding in findings:
        assert finding.confidence is BLOCKED
        reason = f"the symbols of {damaged} cannot be read: it may bind to others, and they to it"
        assert reason in finding.reasons
