"""Programs that a dropped library breaks in ways that no symbol shows, and what the finding on it says.

Each is built by gcc. The need is then removed by patchelf in a copy of the whole folder, and both are run: where they
behave differently, the finding may not have been sure.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.image import read_image
from footprint.errors import AccessError
from footprint.findings.graph_rules.unused_library import unused_libraries
from footprint.loader.target import Environment
from footprint.model.finding import Confidence
from footprint.sources.programs import Programs
from footprint.verbs.audit.survey_answer import survey
from footprint.verbs.libraries.call import libraries
from footprint.verbs.whatif.call import whatif

TOOLS = ("gcc", "patchelf")
pytestmark = [
    pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"not all of {', '.join(TOOLS)} are here"),
    pytest.mark.skipif(not Path("/lib64/ld-linux-x86-64.so.2").exists(), reason="the loader is not glibc's for x86-64"),
]

HIGH, MEDIUM, LOW, BLOCKED = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW, Confidence.BLOCKED
NOT_STARTED = 127
ABSOLUTE_64, JUMP_SLOT = 1, 7
RETURN_0 = "int main(void) { return 0; }"


class Outcome(NamedTuple):
    """What a user sees of a run."""

    code: int
    output: str


@dataclass(frozen=True)
class Case:
    """A program, and a library that it, or `user`, needs without binding to it.

    Attributes:
        files: The sources by the name of what is linked from them: `lib*.so`, or `program`.
        options: How each is linked: `-lNAME` in the order of the needs, and what else.
        confidence: What the finding must say.
        reason: A part of its reasons.
        before: What the program does.
        after: The same without the need.
        drop: The library.
        user: Which file needs it.
    """

    files: Mapping[str, str]
    options: Mapping[str, str]
    confidence: Confidence
    reason: str
    before: Outcome
    after: Outcome
    drop: str = "libx.so"
    user: str = "program"
    scripts: Mapping[str, str] = field(default_factory=dict)


def build(folder: Path, case: Case) -> None:
    """Link all files of a case, in their order; what is called the same may be linked again."""
    folder.mkdir()
    for name, text in case.scripts.items():
        (folder / name).write_text(text)
    for target, source in case.files.items():
        path = folder / target.partition(" ")[0]
        path.parent.mkdir(exist_ok=True)
        code = folder / f"{path.name}.c"
        code.write_text(f"#define _GNU_SOURCE\n{source}")
        kind = [] if path.name == "program" else ["-shared", "-fPIC", f"-Wl,-soname,{path.name}"]
        given = case.options.get(target, "").replace("@", str(folder)).split()
        # A search path of its own stands for the usual one.
        usual = [] if any("rpath" in one for one in given) else ["-Wl,-rpath,$ORIGIN"]
        line = ["gcc", "-w", "-O1", "-o", str(path), str(code), *kind, "-Wl,--no-as-needed", f"-L{folder}", *usual]
        line += [f"-Wl,-rpath-link,{folder}:{folder}/deep", *given]
        subprocess.run(line, check=True, cwd=folder)


def run(folder: Path) -> Outcome:
    done = subprocess.run([str(folder / "program")], check=False, capture_output=True, text=True, cwd=folder)
    return Outcome(done.returncode, done.stdout)


def graph_of(folder: Path) -> DependencyGraph:
    return Programs(environment=Environment(cwd=str(folder))).graph(str(folder / "program"))


def prints(text: str, attribute: str) -> str:
    act = f'void act_{text}(void) {{ puts("{text}"); fflush(stdout); }}'
    return f"#include <stdio.h>\n__attribute__(({attribute})) {act}"


DEEP = "int deep(void) { return 5; }"
USER = "int deep(void); int user(void) { return deep(); }"
CALLS_USER = "int user(void); int main(void) { return user(); }"
ITERATES = """
#include <link.h>
#include <string.h>
static int each(struct dl_phdr_info *info, size_t size, void *found) {
    *(int *)found |= strstr(info->dlpi_name, "lib" "x") != 0; return 0; }
int main(void) { int found = 0; dl_iterate_phdr(each, &found); return found; }
"""
READS_MAPS = """
#include <stdio.h>
#include <string.h>
int main(void) { FILE *maps = fopen("/proc/self/maps", "r"); char line[4096]; int found = 0;
    while (fgets(line, sizeof line, maps)) found |= strstr(line, "/lib" "x.") != 0; return found; }
"""
READS_MAPS_OF_PID = READS_MAPS.replace(
    'FILE *maps = fopen("/proc/self/maps", "r")',
    'char path[64]; sprintf(path, "/proc/%lu/maps", (long)getpid()); FILE *maps = fopen(path, "r")',
).replace("#include <stdio.h>", "#include <stdio.h>\n#include <unistd.h>")
READS_MAPS_OF_PIECES = READS_MAPS.replace(
    'FILE *maps = fopen("/proc/self/maps", "r")',
    'const char *volatile last = "maps"; char path[64]; sprintf(path, "/proc/self/%s", last);'
    'FILE *maps = fopen(path, "r")',
)
# From any entry of the list of objects the others are reached.
FINDS_OBJECT = """
#include <dlfcn.h>
#include <link.h>
#include <string.h>
int main(void) { struct dl_find_object object; int found = 0; _dl_find_object((void *)main, &object);
    for (struct link_map *map = object.dlfo_link_map; map; map = map->l_next)
        found |= strstr(map->l_name, "/lib" "x.") != 0;
    return found; }
"""
CALLS_NSS = """
#include <pwd.h>
int __nss_configure_lookup(const char *, const char *);
int main(void) { __nss_configure_lookup("passwd", "foo"); return getpwnam("nobody-of-this-name") ? 5 : 6; }
"""
NSS = """
#include <unistd.h>
int deep(void); int _nss_foo_getpwnam_r() { _exit(deep()); }
"""
CALLS_ICONV = """
#include <iconv.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    if (!getenv("GCONV_PATH")) { setenv("GCONV_PATH", getcwd(0, 0), 1); execv(*words, words); }
    return iconv_open("FOO", "UTF-8") == (iconv_t)-1 ? 6 : 7; }
"""
GCONV = """
#include <unistd.h>
int deep(void); int gconv_init(void *step) { _exit(deep()); } int gconv(void) { return 0; }
"""
GCONV_MODULES = {"gconv-modules": "module FOO// INTERNAL FOO 1\nmodule INTERNAL FOO// FOO 1\n"}
OPENS = '#include <dlfcn.h>\nint main(void) {{ return dlopen("libx.so", {}) ? 5 : 6; }}'
AUDITOR = """
#include <link.h>
#include <stdio.h>
static int count;
unsigned la_version(unsigned version) { return LAV_CURRENT; }
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) { count++; return 0; }
void la_preinit(uintptr_t *cookie) { printf("%d\\n", count); fflush(stdout); }
"""
NESTED = """
#include <stdlib.h>
static int call(int (*function)(void)) { return function(); }
int main(int count, char **words) { volatile int five = count + 4; int nested(void) { return five; }
    int (*volatile escaped)(void) = nested; return call(escaped); }
"""
MALLOC = """
#include <stddef.h>
static char room[1 << 20]; static size_t used; int marker = 7;
void *malloc(size_t n) { char *p = room + used; used += (n + 31) & ~(size_t)15; *p = 7; return p; }
void free(void *p) {} void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { char *q = malloc(n); for (size_t i = 0; p && i < n; i++) q[i] = ((char *)p)[i];
return q; }
"""
# No PT_GNU_STACK: where a linker script lists the segments, the linker adds none.
NO_STACK = {
    "x.ld": """
PHDRS { all PT_LOAD FLAGS(7); dynamic PT_DYNAMIC; }
SECTIONS { . = SIZEOF_HEADERS; .text : { *(.text*) } :all .dynamic : { *(.dynamic) } :all :dynamic
.data : { *(.data*) *(.bss*) } :all }
"""
}
NO_PATHS = "-Wl,-rpath,$ORIGIN/nowhere"
ONE_WAY, OTHER_WAY = "int foo(void) { return 1; }", "int foo(void) { return 2; }"
VERSIONS = {"versions.map": "V1 { global: *; };"}
VERSIONED = "-Wl,--version-script=@/versions.map"

CASES = {
    # Without any trap the finding is sure, and right.
    "nothing": Case(
        {"libx.so": "int x = 5;", "program": RETURN_0},
        {"program": "-lx"},
        HIGH,
        "no object of the process binds to what would leave",
        Outcome(0, ""),
        Outcome(0, ""),
    ),
    "thread-locals": Case(
        {"libx.so": "_Thread_local char x[1 << 20]; char *get(void) { return x; }", "program": RETURN_0},
        {"program": "-lx"},
        HIGH,
        "no object of the process binds to what would leave",
        Outcome(0, ""),
        Outcome(0, ""),
    ),
    # The search path.
    "runpath finds what another one needs": Case(
        {"deep/libdeep.so": DEEP, "libx.so": "int x;", "libuser.so": USER, "program": CALLS_USER},
        {
            "libx.so": "-L@/deep -ldeep -Wl,-rpath,$ORIGIN/deep",
            "libuser.so": f"-L@/deep -ldeep {NO_PATHS}",
            "program": "-lx -luser",
        },
        BLOCKED,
        "libuser.so would not find libdeep.so, which is found now by the RUNPATH of libx.so",
        Outcome(5, ""),
        Outcome(NOT_STARTED, ""),
    ),
    "rpath is inherited": Case(
        {
            "deep/libdeep.so": DEEP,
            "libmiddle.so": "int deep(void); int middle(void) { return deep(); }",
            "libx.so": "int x;",
            "libuser.so": "int middle(void); int user(void) { return middle(); }",
            "program": CALLS_USER,
        },
        {
            "libmiddle.so": "-L@/deep -ldeep -Wl,-rpath, -Wl,--disable-new-dtags",
            "libx.so": "-lmiddle -Wl,-rpath,$ORIGIN/deep -Wl,--disable-new-dtags",
            "libuser.so": "-lmiddle -Wl,-rpath, -Wl,--disable-new-dtags",
            "program": "-lx -luser -Wl,-rpath,$ORIGIN -Wl,--disable-new-dtags",
        },
        BLOCKED,
        "libmiddle.so would not find libdeep.so",
        Outcome(5, ""),
        Outcome(NOT_STARTED, ""),
    ),
    # The file.
    "another file of the same name": Case(
        {
            "libdeep.so": "int deep(void) { return 6; }",
            "deep/libdeep.so": DEEP,
            "libx.so": "int x;",
            "libuser.so": USER,
            "program": CALLS_USER,
        },
        {
            "libx.so": "-L@/deep -ldeep -Wl,-rpath,$ORIGIN/deep",
            "libuser.so": "-ldeep",
            "program": "-lx -luser",
        },
        BLOCKED,
        "/libdeep.so instead of ",
        Outcome(5, ""),
        Outcome(6, ""),
    ),
    # The order.
    "another definition comes first": Case(
        {
            "libone.so": ONE_WAY,
            "libtwo.so": OTHER_WAY,
            "libx.so": "int x;",
            "libuser.so": "int foo(void); int user(void) { return foo(); }",
            "program": CALLS_USER,
        },
        {"libx.so": "-ltwo", "libuser.so": "-lone -ltwo", "program": "-lx -luser"},
        BLOCKED,
        "libuser.so would get foo from libone.so instead of libtwo.so",
        Outcome(2, ""),
        Outcome(1, ""),
    ),
    "a need without use keeps the order": Case(
        {
            "libx.so": OTHER_WAY,
            "libone.so": ONE_WAY,
            "libuser.so": "int foo(void); int user(void) { return foo(); }",
            "program": CALLS_USER,
        },
        {"libuser.so": "-lone -lx", "program": "-lx -luser"},
        BLOCKED,
        "dropping it saves nothing; libuser.so would get foo from libone.so instead of libx.so",
        Outcome(2, ""),
        Outcome(1, ""),
    ),
    "constructors run the other way around": Case(
        {
            "libx.so": prints("x", "constructor") + "\nint x(void) { return 0; }",
            "liba.so": prints("a", "constructor") + "\nint a(void) { return 0; }",
            "program": "int a(void), x(void); int main(void) { return a() + x(); }",
        },
        {"liba.so": "-lx", "program": "-lx -la"},
        MEDIUM,
        "liba.so would be initialised before libx.so",
        Outcome(0, "x\na\n"),
        Outcome(0, "a\nx\n"),
        user="liba.so",
    ),
    # What it does by being there.
    "a constructor": Case(
        {"libx.so": prints("x", "constructor"), "program": RETURN_0},
        {"program": "-lx"},
        MEDIUM,
        "libx.so has 1 constructor of its own",
        Outcome(0, "x\n"),
        Outcome(0, ""),
    ),
    "a destructor": Case(
        {"libx.so": prints("x", "destructor"), "program": RETURN_0},
        {"program": "-lx"},
        MEDIUM,
        "libx.so has 1 destructor of its own",
        Outcome(0, "x\n"),
        Outcome(0, ""),
    ),
    "DT_INIT": Case(
        {"libx.so": prints("x", "used"), "program": RETURN_0},
        {"libx.so": "-Wl,-init,act_x", "program": "-lx"},
        MEDIUM,
        "libx.so has 1 constructor of its own",
        Outcome(0, "x\n"),
        Outcome(0, ""),
    ),
    "DT_FINI": Case(
        {"libx.so": prints("x", "used"), "program": RETURN_0},
        {"libx.so": "-Wl,-fini,act_x", "program": "-lx"},
        MEDIUM,
        "libx.so has 1 destructor of its own",
        Outcome(0, "x\n"),
        Outcome(0, ""),
    ),
    "an executable stack": Case(
        {"libx.so": "int x;", "program": NESTED},
        {"libx.so": "-Wl,-z,execstack", "program": "-lx -Wl,-z,noexecstack"},
        MEDIUM,
        "the stack is executable because of libx.so",
        Outcome(5, ""),
        Outcome(-11, ""),
    ),
    "a stack that no segment describes": Case(
        {"libx.so": "int x;", "program": NESTED},
        {"libx.so": "-nostdlib -Wl,-T,@/x.ld", "program": "-lx -Wl,-z,noexecstack"},
        MEDIUM,
        "the stack is executable because of libx.so",
        Outcome(5, ""),
        Outcome(-11, ""),
        scripts=NO_STACK,
    ),
    # Who looks for it.
    "dl_iterate_phdr": Case(
        {"libx.so": "int x;", "program": ITERATES},
        {"program": "-lx"},
        MEDIUM,
        "program walks the list of loaded objects",
        Outcome(1, ""),
        Outcome(0, ""),
    ),
    "/proc/self/maps": Case(
        {"libx.so": "int x;", "program": READS_MAPS},
        {"program": "-lx"},
        MEDIUM,
        "program may read /proc/self/maps",
        Outcome(1, ""),
        Outcome(0, ""),
    ),
    "/proc/self/maps in pieces": Case(
        {"libx.so": "int x;", "program": READS_MAPS_OF_PIECES},
        {"program": "-lx"},
        MEDIUM,
        "program may read maps",
        Outcome(1, ""),
        Outcome(0, ""),
    ),
    "_dl_find_object": Case(
        {"libx.so": "int x;", "program": FINDS_OBJECT},
        {"program": "-lx"},
        MEDIUM,
        "program walks the list of loaded objects",
        Outcome(1, ""),
        Outcome(0, ""),
    ),
    "a module of NSS": Case(
        {"libx.so": DEEP, "libnss_foo.so.2": NSS, "program": CALLS_NSS},
        {"program": "-lx -Wl,-rpath,$ORIGIN -Wl,--disable-new-dtags"},
        MEDIUM,
        "for program the C library may open modules (NSS, gconv), which may bind to it",
        Outcome(5, ""),
        Outcome(6, ""),
    ),
    "a module of gconv": Case(
        {"libx.so": DEEP, "FOO.so": GCONV, "program": CALLS_ICONV},
        {"program": "-lx"},
        MEDIUM,
        "for program the C library may open modules (NSS, gconv), which may bind to it",
        Outcome(5, ""),
        Outcome(6, ""),
        scripts=GCONV_MODULES,
    ),
    "/proc/PID/maps": Case(
        {"libx.so": "int x;", "program": READS_MAPS_OF_PID},
        {"program": "-lx"},
        MEDIUM,
        "program may read /proc/%lu/maps",
        Outcome(1, ""),
        Outcome(0, ""),
    ),
    "dlopen of what is loaded": Case(
        {"libx.so": "int x;", "program": OPENS.format("RTLD_NOW | RTLD_NOLOAD")},
        {"program": "-lx"},
        LOW,
        "program looks up libraries by name, and holds libx.so",
        Outcome(5, ""),
        Outcome(6, ""),
    ),
    "static thread-locals of what is opened later": Case(
        {
            "libx.so": '__thread char x[1 << 16] __attribute__((tls_model("initial-exec")));'
            "char *get(void) { return x; }",
            "program": OPENS.format("RTLD_NOW"),
        },
        {"program": "-lx"},
        LOW,
        "program looks up libraries by name, and holds libx.so",
        Outcome(5, ""),
        Outcome(6, ""),
    ),
    "dlsym": Case(
        {
            "libx.so": "int secret(void) { return 5; }",
            "program": '#include <dlfcn.h>\nint main(void) { return dlsym(RTLD_DEFAULT, "secret") ? 5 : 6; }',
        },
        {"program": "-lx"},
        LOW,
        "program looks up symbols by name, and holds secret",
        Outcome(5, ""),
        Outcome(6, ""),
    ),
    "an auditor": Case(
        {"libaudit.so": AUDITOR, "libx.so": "int x;", "program": RETURN_0},
        {"program": "-lx -Wl,--audit,libaudit.so -Wl,-rpath,$ORIGIN -Wl,--disable-new-dtags"},
        MEDIUM,
        "libaudit.so watches what the loader does (DT_AUDIT)",
        Outcome(0, "5\n"),
        Outcome(0, "4\n"),
    ),
    # Who needs it for something else than a symbol, or without saying so.
    "a version": Case(
        {
            "libx.so first": "int f(void) { return 5; }",
            "libmoved.so": "int f(void) { return 5; }",
            "program": "int f(void); int main(void) { return f(); }",
            "libx.so": "int stub(void) { return 6; }",
        },
        {"libx.so first": VERSIONED, "libmoved.so": VERSIONED, "libx.so": VERSIONED, "program": "-lx -lmoved"},
        BLOCKED,
        "program checks at start that libx.so has V1",
        Outcome(5, ""),
        Outcome(NOT_STARTED, ""),
        scripts=VERSIONS,
    ),
    "a use without a need": Case(
        {"libx.so": DEEP, "libuser.so": USER, "program": CALLS_USER},
        {"libuser.so": "", "program": "-luser -lx"},
        BLOCKED,
        "libuser.so binds to libx.so without needing it by name (deep)",
        Outcome(5, ""),
        Outcome(NOT_STARTED, ""),
    ),
    "a replacement": Case(
        {"libx.so": MALLOC, "program": '#include <string.h>\nint main(void) { return strdup("") ? 0 : 1; }'},
        {"program": "-lx"},
        BLOCKED,
        "libc.so.6 binds to libx.so although others define the same",
        Outcome(0, ""),
        Outcome(0, ""),
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a case, built once."""
    whole = tmp_path_factory.mktemp("dropped")

    def folder_of(name: str) -> Path:
        folder = whole / str(list(CASES).index(name))
        if not folder.exists():
            build(folder, CASES[name])
        return folder

    return folder_of


@pytest.mark.parametrize("name", CASES)
def test_a_removal_that_changes_what_a_program_does_is_never_called_sure(
    built: Callable[[str], Path], name: str
) -> None:
    case, folder = CASES[name], built(name)
    without = folder.with_name(f"{folder.name}-without")
    shutil.copytree(folder, without, symlinks=True)
    subprocess.run(["patchelf", "--remove-needed", case.drop, str(without / case.user)], check=True)
    assert (run(folder), run(without)) == (case.before, case.after)
    result = [
        unused_library
        for unused_library in unused_libraries(graph_of(folder))
        if unused_library.subject == case.drop and Path(unused_library.object_path).name in {case.user, ""}
    ]
    assert [one.confidence for one in result] == [case.confidence], result
    assert case.reason in "; ".join(result[0].reasons)


def test_what_a_library_alone_does_not_need_its_program_may_use(tmp_path: Path) -> None:
    """The library alone can do without libx.so; a program that is linked with the library alone cannot."""
    calls = "int module(void), deep(void); int main(void) { return module() + deep(); }"
    case = Case(
        {"libx.so": DEEP, "libmodule.so": "int module(void) { return 0; }", "program": calls},
        {"libmodule.so": "-lx", "program": "-lmodule -lx"},
        MEDIUM,
        "libmodule.so is a library: its program may bind to what would leave",
        Outcome(5, ""),
        Outcome(NOT_STARTED, ""),
    )
    folder = tmp_path / "whole"
    build(folder, case)
    subprocess.run(["patchelf", "--remove-needed", case.drop, folder / "program"], check=True)
    found = libraries(folder / "libmodule.so", environment=Environment(cwd=str(folder)))
    (finding,) = [one for one in found.findings if one.subject == case.drop]
    assert (finding.confidence, case.reason in finding.reasons[-1]) == (case.confidence, True)
    assert [note.slug for note in found.notes] == ["no-program"]
    assert run(folder) == case.before
    subprocess.run(["patchelf", "--remove-needed", case.drop, folder / "libmodule.so"], check=True)
    assert run(folder) == case.after


def test_what_a_process_has_opened_keeps_what_it_needs(tmp_path: Path) -> None:
    folder = tmp_path / "opened"
    wait = "#include <unistd.h>\n#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {"
    wait += ' if (dlopen("libplugin.so", RTLD_NOW)) puts("ready"); fflush(stdout); return getchar() != 10; }'
    files = {"libx.so": DEEP, "liby.so": "int y;", "libplugin.so": USER, "program": wait}
    options = {"libplugin.so": "-lx", "program": "-lx -ly"}
    build(folder, Case(files, options, HIGH, "", Outcome(0, ""), Outcome(0, "")))
    with subprocess.Popen([folder / "program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        result = libraries(running.pid)
        without = result.graph.without({(0, 1), (0, 2)})
        running.communicate(b"\n", timeout=60)
    names = [Path(one.path).name for one in result.graph.link_map.objects]
    assert names == ["program", "libx.so", "liby.so", "libc.so.6", "ld-linux-x86-64.so.2", "libplugin.so"]
    left = [Path(one.path).name for one in without.link_map.objects]
    assert left == ["program", "libc.so.6", "ld-linux-x86-64.so.2", "libx.so", "libplugin.so"]
    assert (without.missing, without.replaced) == ((), ())
    assert {finding.subject: (finding.confidence, finding.saving_bytes > 0) for finding in result.findings} == {
        "libx.so": (MEDIUM, False),
        "liby.so": (MEDIUM, True),
    }


# --- programs that do not start as they are


def linked(folder: Path, *options: str, source: str = RETURN_0) -> Path:
    """Link a program that needs a library without using it."""
    build(folder, Case({"libx.so": "int x = 5;"}, {}, HIGH, "", Outcome(0, ""), Outcome(0, "")))
    (folder / "program.c").write_text(source)
    usual = ["-O1", "-Wl,--no-as-needed", f"-L{folder}", "-Wl,-rpath,$ORIGIN", "-lx"]
    subprocess.run(["gcc", "-w", "-o", "program", "program.c", *usual, *options], check=True, cwd=folder)
    return folder


def said(folder: Path) -> list[tuple[str, str, str]]:
    return [(note.slug, Path(note.subject).name, note.detail) for note in graph_of(folder).notes]


def confidences(folder: Path) -> list[Confidence]:
    return [one.confidence for one in unused_libraries(graph_of(folder)) if one.subject == "libx.so"]


@pytest.mark.skipif(shutil.which("ld.lld") is None, reason="lld is missing")
def test_packed_relocations_without_their_version_are_noted(tmp_path: Path) -> None:
    table = 'char *table[] = {"a", "b", "c"}; int main(void) { return table[1] == 0; }'
    folder = linked(tmp_path / "relr", "-fuse-ld=lld", "-Wl,--pack-dyn-relocs=relr", "-pie", source=table)
    ((slug, subject, detail),) = said(folder)
    assert (slug, subject) == ("does-not-start", "program")
    assert "does not need version GLIBC_ABI_DT_RELR" in detail
    assert confidences(folder) == [MEDIUM]
    assert run(folder).code == NOT_STARTED
    with pytest.raises(AccessError, match="does not start: it has RELR relocations"):
        whatif([str(folder / "program")], drop=["libx.so"])


@pytest.mark.parametrize(
    ("source", "option", "slug", "code"),
    [
        ("extern int gone; int main(void) { return gone; }", "-pie", "does-not-start", NOT_STARTED),
        ("int gone(void); int main(void) { return gone(); }", "-Wl,-z,now", "does-not-start", NOT_STARTED),
        ("int gone(void); int main(void) { return gone(); }", "-Wl,-z,lazy", "symbol-undefined", NOT_STARTED),
        ("int gone(void); int main(int n) { return n > 1 ? gone() : 0; }", "-Wl,-z,lazy", "symbol-undefined", 0),
    ],
)
def test_a_symbol_that_nothing_defines_is_noted(tmp_path: Path, source: str, option: str, slug: str, code: int) -> None:
    definition = "int gone = 5;" if "extern" in source else "int gone(void) { return 5; }"
    files = {"libx.so with it": definition, "program": source, "libx.so": "int x = 5;"}
    case = Case(files, {"program": f"-lx -fPIE {option}"}, HIGH, "", Outcome(0, ""), Outcome(0, ""))
    folder = tmp_path / "undefined"
    build(folder, case)
    ((found, subject, detail),) = said(folder)
    assert (found, subject) == (slug, "program")
    assert detail.startswith("no object defines gone")
    assert confidences(folder) == [MEDIUM]
    assert run(folder).code == code


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("table", [".rela.plt", ".rela.dyn"])
def test_of_all_types_of_relocations_those_are_noted_that_the_loader_refuses(
    tmp_path: Path, binding: str, table: str
) -> None:
    """Each type is written into the entry of a call, which is never made, or of an address, which is never used."""
    source = "int x(void); extern int v; int *q = &v; int main(int count, char **words) { return count > 5 ? x() : 0; }"
    files = {"libx.so": "int x(void) { return 5; } int v;", "program": source}
    build(
        tmp_path / "f",
        Case(files, {"program": f"-lx -fPIC -pie -Wl,-z,{binding}"}, HIGH, "", Outcome(0, ""), Outcome(0, "")),
    )
    program = tmp_path / "f" / "program"
    data = program.read_bytes()
    (section,) = [one for one in read_image(data, "program").sections if one.name == table]
    # r_offset, then r_info: the type in its lower half, the symbol in the upper one.
    entries = {at + 8: data[at + 8] for at in range(section.offset, section.offset + section.size_bytes, 24)}
    (at,) = [at for at, kind in entries.items() if kind == (JUMP_SLOT if table == ".rela.plt" else ABSOLUTE_64)]
    for kind in range(48):
        program.write_bytes(data[:at] + bytes([kind]) + data[at + 1 :])
        done = subprocess.run([program], check=False, capture_output=True, text=True, cwd=program.parent)
        is_refused = done.returncode == NOT_STARTED and "reloc type" in done.stderr
        slugs = {note.slug for note in graph_of(program.parent).start_failures}
        assert ("does-not-start" in slugs) == is_refused, (kind, done.stderr)


def test_a_version_that_is_not_there_any_more_is_noted(tmp_path: Path) -> None:
    versioned = "-Wl,--version-script=@/versions.map"
    for name, script in (("first", "V1 { f; }; V2 { g; };"), ("second", "V1 { f; };")):
        files = {"libv.so": "int f(void) { return 5; } int g(void) { return 6; }", "libx.so": "int x = 5;"}
        case = Case(
            files, {"libv.so": versioned}, HIGH, "", Outcome(0, ""), Outcome(0, ""), scripts={"versions.map": script}
        )
        build(tmp_path / name, case)
    folder = tmp_path / "first"
    (folder / "program.c").write_text("int f(void), g(void); int main(void) { return f() + g(); }")
    usual = ["-Wl,--no-as-needed", f"-L{folder}", "-Wl,-rpath,$ORIGIN", "-lx", "-lv"]
    subprocess.run(["gcc", "-w", "-o", "program", "program.c", *usual], check=True, cwd=folder)
    assert (said(folder), confidences(folder), run(folder).code) == ([], [HIGH], 11)
    shutil.copy(tmp_path / "second" / "libv.so", folder)
    ((slug, subject, detail),) = said(folder)
    assert (slug, subject) == ("does-not-start", "program")
    assert detail == "it checks versions at its start, and libv.so does not define version V2"
    assert (confidences(folder), run(folder).code) == ([MEDIUM], 1)


def test_what_is_noted_of_programs_of_this_machine_is_what_the_loader_says() -> None:
    notes = [one for one in survey("/usr/bin").notes if one.slug in {"does-not-start", "symbol-undefined"}]
    for note in notes:
        done = subprocess.run(["ldd", "-r", note.subject], check=False, capture_output=True, text=True)
        assert any(word in done.stdout + done.stderr for word in ("undefined symbol", "version", "DT_RELR")), note
