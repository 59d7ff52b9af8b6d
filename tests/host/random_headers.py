"""Programs of random headers, to apply each remedy that `duplicates` is sure of and compare what they print.

`benchmarks/remedies.py` tries many of them.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import footprint
from footprint.findings.copies import CopiedVariable

_READ: Final = "for (int n = 0; n < 8; n++) s += NAME[(n + i) & 3];"
_CALLED: Final = "s += NAME[i & 1](i);"
# What may become of the address of a table of numbers: some of it is only read, some is told apart.
_NUMBERS: Final = (
    _READ,
    "s += NAME[1];",
    "s += NAME[i & 7]; s += kept(NAME + 1);",
    "s += kept(&NAME[(i & 3) - 1]);",
    "s += kept(either(NAME, i)) + NAME[i & 7];",
    "s += seventh(1, 2, 3, 4, 5, 6, NAME) + NAME[2];",
    "s += sometimes(i, NAME) + NAME[2];",
    "s += sum(NAME, 8);",
    "{ struct holder h = {NAME}; s += held(&h); }",
    "{ static struct holder h = {NAME}; s += held(&h); }",
    "s += same(NAME)[i & 7];",
    "known = NAME; s += NAME[i & 7];",
    "{ const void *old = known; known = NAME; s += old == NAME; }",
    "s += first(NAME) == NAME;",
    "s += ((const int *)first(NAME) - NAME) == 0;",
    "s += (NAME - (const int *)first(NAME)) == 0;",
    "for (const int *p = NAME; p != NAME + 8; p++) s += *p;",
    "{ const int *p = NAME + (i & 3); while (p < NAME + 8) s += *p++; }",
)
_TEXTS: Final = (
    'printf("%s ", NAME);',
    "s += NAME[i & 15];",
    "s += strlen(NAME + (i & 1));",
    "s += kept(NAME);",
    "{ const char *p = NAME; s += p[i & 3]; if (p == known) s += 7; }",
    "{ struct pair x = {NAME, 3}; struct pair y = x; s += paired(y); }",
    "{ struct pair x = {NAME, 3}, y; memcpy(&y, &x, sizeof x); s += y.text[i & 3] + kept(y.text); }",
)
_FUNCTIONS: Final = (
    _CALLED,
    "s += NAME[i & 1](i) + (NAME[i & 1] == met);",
    "s += called(NAME[i & 1], i);",
    "s += met_before(NAME[i & 1]);",
    "{ int (*c[2])(int); memcpy(c, NAME, sizeof c); s += met_before(c[i & 1]); }",
    "{ int (*const *c)(int) = NAME; s += c[i & 1](i); s += c[i & 1] == met; met = c[0]; }",
)


@dataclass(frozen=True)
class Kind:
    """A kind of variable that a header defines.

    Attributes:
        declared: Its declaration; in C++ also the whole line, where `contents` is empty.
        contents: What it begins with.
        uses: What source files may do with it: each program has one of them.
        before: What stands before it.
        after: The whole line after the remedy, where that is not `extern` or `inline` in place of `static`.
        is_cxx: Whether only C++ has it.
    """

    declared: str
    contents: str
    uses: Sequence[str]
    before: str = ""
    after: str = ""
    is_cxx: bool = False


def _line(line: str, after: str, *uses: str, before: str = "") -> Kind:
    return Kind(line, "", uses, before, after, is_cxx=True)


_OF_FUNCTION: Final = "static inline int fID(int i) { static const int NAME[8] = {VALUE, 7, 3}; return NAME[i & 7]; }"
KINDS: Final = (
    Kind("const int NAME[8]", "{VALUE, 2, 3, 4}", _NUMBERS),
    Kind("const int NAME[8]", "{NUMBER, 1}", _NUMBERS),
    Kind("const int NAME[4]", "{VALUE, 2, 3}", (_READ,)),
    Kind("const double NAME[40]", "{VALUE, 2.5, 3}", (_READ,)),
    Kind(
        "const short NAME[4][4]",
        "{{VALUE, 2}, {3}}",
        ("for (int n = 0; n < 16; n++) s += NAME[(n + i) / 4 & 3][n & 3];",),
    ),
    Kind("const unsigned char NAME[64]", "{1, 0, VALUE & 255, 1}", ("s += NAME[i & 63];",)),
    Kind("const char NAME[24]", '"textNUMBER"', _TEXTS),
    Kind(
        "const char *const NAME[3]",
        '{"redNUMBER", "gr" TEXT, "blue"}',
        ('s += NAME[i % 3][1]; printf("%s ", NAME[(i + 1) % 3]);',),
    ),
    Kind(
        "const char *const NAME[2]",
        '{"xNUMBER\\0" TEXT, "yyyyyyyy"}',
        ('printf("%s ", NAME[i & 1] + 5);', 'printf("%s ", NAME[i & 1]);'),
    ),
    Kind(
        "const struct S_ID NAME[4]",
        '{{VALUE, "a"}, {2, "b"}, {3, "c"}}',
        ('s += NAME[i & 1].a; printf("%s ", NAME[i % 3].s);', "s += kept(NAME[i & 1].s) + NAME[i & 1].a;"),
        "struct S_ID { int a; const char *s; };\n",
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, gID}",
        _FUNCTIONS,
        "static int fID(int i) { return i * NUMBER; }\nstatic int gID(int i) { return i - NUMBER; }\n",
    ),
    Kind("int (*const NAME[2])(int)", "{fID, fID}", _FUNCTIONS, "static int fID(int i) { return i * NUMBER + U; }\n"),
    Kind(
        "const int *const NAME[2]",
        "{oID, oID + 1}",
        ("s += *NAME[i & 1];", "s += *NAME[i & 1] + kept(NAME[i & 1]);", "s += *NAME[i & 1] + (NAME[i & 1] == known);"),
        "static const int oID[4] = {VALUE, 2};\n",
    ),
    Kind(
        "const A_ID NAME",
        "{NUMBER, 2}",
        ("s += NAME[i & 3] + (ALIGNED == 64 ? is_aligned(NAME) : 0);",),
        "typedef int A_ID[8] __attribute__((aligned(ALIGNED)));\n",
    ),
    Kind("const enum E_ID NAME[4]", "{eID, hID}", ("s += NAME[i & 3];",), "enum E_ID { eID = VALUE, hID = 3 };\n"),
    Kind(
        "const struct B_ID NAME[4]",
        "{{1, 2}, {3, 4}}",
        ("s += NAME[i & 3].a + NAME[i & 1].b;",),
        "struct B_ID { unsigned a : BITS, b : BITS; };\n",
    ),
    Kind("const wchar_t NAME[16]", 'L"wide"', ("s += NAME[i & 3];",)),
    Kind("const volatile int NAME[8]", "{VALUE, 3}", ("s += NAME[i & 7];",)),
    Kind("int NAME[8]", "{VALUE}", (f"NAME[i & 3]++; {_READ}",)),
    _line(
        _OF_FUNCTION,
        _OF_FUNCTION.replace("static const int NAME[8] = {VALUE, 7, 3};", "").replace(
            "static inline", "inline constexpr int NAME[8] = {VALUE, 7, 3}; static inline"
        ),
        "s += fID(i);",
    ),
    _line(
        "namespace N_ID { constexpr int NAME[8] = {VALUE, 2}; }\nusing namespace N_ID;",
        "inline constexpr int NAME[8] = {VALUE, 2};",
        *_NUMBERS,
    ),
    _line("namespace { const long NAME[8] = {VALUE, 2}; }", "inline const long NAME[8] = {VALUE, 2};", _READ),
    _line('extern "C" { static const int NAME[8] = {VALUE, 2}; }', "inline constexpr int NAME[8] = {VALUE, 2};", _READ),
    _line(
        "template <class T> struct T_ID { static constexpr int NAME[8] = {NUMBER, 2, 3}; };",
        "inline constexpr int cNAME[8] = {NUMBER, 2, 3};\n"
        "template <class T> struct T_ID { static constexpr const int (&NAME)[8] = cNAME; };",
        "s += T_ID<int>::NAME[i & 7] + T_ID<short>::NAME[i & 7];",
        "s += first(T_ID<int>::NAME) == (const void *)T_ID<short>::NAME; s += T_ID<int>::NAME[i & 7];",
    ),
    Kind("const int (&NAME)[8]", "oID", ("s += NAME[i & 7];",), "static const int oID[8] = {VALUE, 2};\n", is_cxx=True),
    Kind("const auto NAME", "[](int i) { return i + VALUE; }", ("s += NAME(i);",), is_cxx=True),
    Kind("const int NAME[4]", "{made(), 2}", ("s += NAME[i & 3];",), is_cxx=True),
    Kind("const union U_ID NAME[4]", "{{NUMBER}, {2}}", ("s += NAME[i & 3].n;",), "union U_ID { int n; float f; };\n"),
    Kind(
        "int (M_ID::*const NAME[2])(int) const",
        "{&M_ID::f, &M_ID::f}",
        ("s += (M_ID().*NAME[i & 1])(i);",),
        "namespace { struct M_ID { int f(int i) const { return i + VALUE; } }; }\n",
        is_cxx=True,
    ),
)
# What a table leads to is told apart, or only read: these are in the programs of the later seeds.
_CONSTANTS: Final = (
    "s += *NAME[i & 1](i);",
    "s += *NAME[i & 1](i) + kept(NAME[i & 1](i));",
    "s += *NAME[i & 1](i) + (NAME[i & 1](i) == known);",
    "{ const int *p = NAME[i & 1](i); s += *p + (known ? (int)(p - (const int *)known) == 0 : 3); known = p; }",
    "s += *NAME[i & 1](i) + (fID(i) == (const int *)first(fID(i)));",
    "s += *NAME[i & 1](i) + kept(oID);",
    "s += NAME[i & 1](i)[1] + kept(NAME[0](i));",
)
LATER_KINDS: Final = (
    Kind(
        "const int *(*const NAME[2])(int)",
        "{fID, gID}",
        _CONSTANTS,
        "static const int oID[4] = {VALUE, 2};\nstatic const int *fID(int i) { return oID; }\n"
        "static const int *gID(int i) { return oID + (i & 1); }\n",
    ),
    Kind(
        "const int *(*const NAME[2])(int)",
        "{fID, fID}",
        _CONSTANTS,
        "static const int aID[4] = {VALUE, 2}, oID[4] = {1, 5};\nstatic const int *const pID[2] = {aID, oID};\n"
        "static const int *fID(int i) { return pID[i & 1]; }\n",
    ),
    Kind(
        "const int *(*const NAME[2])(int)",
        "{fID, fID}",
        [one for one in _CONSTANTS if "oID" not in one],
        "static const int *fID(int i) { static const int oID[4] = {VALUE, 2}; return oID; }\n",
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, gID}",
        (*_FUNCTIONS, "s += NAME[i & 1](i) + met_before(NAME[0]);", "s += NAME[i & 1](i) + met_before(fID);"),
        "static const int oID[4] = {VALUE, 2};\nstatic int fID(int i) { return oID[i & 3]; }\n"
        "static int gID(int i) { return sum(oID, 4) + i; }\n",
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, gID}",
        (_CALLED,),
        "static const int oID = NUMBER;\nstatic int fID(int i) { return oID + i; }\n"
        "static int gID(int i) { return kept(&oID) + i; }\n",
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, gID}",
        (_CALLED,),
        "static int hID(int i) { return i * NUMBER; }\nstatic int fID(int i) { return called(hID, i); }\n"
        "static int gID(int i) { return met_before(hID) + i; }\n",
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, fID}",
        (_CALLED,),
        "static int hID(int i) { return i * NUMBER; }\nstatic int fID(int i) { return called(hID, i); }\n",
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, gID}",
        (_CALLED,),
        'static int fID(int i) { return printf("%d fID ", i); }\n'
        'static int gID(int i) { static const char x[24] = "gID"; return printf("%s %d ", x, i); }\n',
    ),
    Kind(
        "int (*const NAME[2])(int)",
        "{fID, fID}",
        (_CALLED,),
        "static const int oID[4] = {1, 2};\n"
        'static int fID(int i) { char b[40], c[40]; snprintf(b, 40, "%p", (const void *)oID);\n'
        '    snprintf(c, 40, "%p", first(oID)); return strcmp(b, c) == 0; }\n',
    ),
    Kind(
        "const int *const NAME[2]",
        "{oID, oID + 1}",
        ("s += *NAME[i & 1] + kept(NAME[0]);", "s += *NAME[i & 1] + kept(oID);", "s += *NAME[i & 1] + oID[i & 3];"),
        "static const int oID[4] = {VALUE, 2};\n",
    ),
)
_FIRST_LATER: Final = 10_000
_SHARED: Final = """#include <stdio.h>
#include <string.h>
#include <wchar.h>
struct holder { const int *p; };
struct pair { const char *text; long n; };
int kept(const void *), met_before(int (*)(int)), sum(const int *, int);
int held(const struct holder *), paired(struct pair);
int seventh(int, int, int, int, int, int, const void *), sometimes(int, const void *), called(int (*)(int), int);
int is_aligned(const void *), made(void);
const void *first(const void *);
const int *same(const int *);
extern const void *known;
extern int (*met)(int);
static inline const int *either(const int *p, int i) { return i & 1 ? p : p + 1; }
"""
_MAIN: Final = """
const void *known;
int (*met)(int);
int kept(const void *p) { static const void *a[999]; int n = 0; while (a[n] && a[n] != p) n++; a[n] = p; return n; }
int met_before(int (*p)(int)) {
    static int (*a[999])(int); int n = 0; while (a[n] && a[n] != p) n++; a[n] = p; met = p; return n;
}
const void *first(const void *p) { static const void *a; if (!a) a = p; return a; }
int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
int held(const struct holder *h) { static const int *last; int r = h->p == last; last = h->p; return r + h->p[0]; }
int paired(struct pair x) { return kept(x.text) + (int)x.n; }
int seventh(int a, int b, int c, int d, int e, int f, const void *p) { return kept(p) + a + b + c + d + e + f; }
int sometimes(int i, const void *p) { return i > 2 ? kept(p) : 0; }
const int *same(const int *p) { return p; }
int called(int (*f)(int), int i) { return f(i); }
int is_aligned(const void *p) { return ((unsigned long)p & 63) == 0; }
int made(void) { static int n; return ++n; }
"""
_QEMU: Final = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
# By name the compilers of C and C++, and what runs the program.
COMPILERS: Final = {
    "gcc": (("gcc",), ("g++",), ()),
    "clang": (("clang",), ("clang++",), ()),
    "gcc arm64": (("aarch64-linux-gnu-gcc",), ("aarch64-linux-gnu-g++",), _QEMU),
    "clang arm64": (
        ("clang", "--target=aarch64-linux-gnu"),
        ("clang++", "--target=aarch64-linux-gnu"),
        _QEMU,
    ),
}


def missing_tool(compiler: str) -> str | None:
    """Return what it takes to build and run programs with a compiler and is not installed."""
    c, cxx, emulator = COMPILERS[compiler]
    tools = [c[0], cxx[0], *emulator[:1], *(["aarch64-linux-gnu-g++"] if emulator else [])]
    return next((tool for tool in tools if shutil.which(tool) is None), None)


WAYS: Final = (
    "-O0",
    "-O1 -fno-pie -no-pie",
    "-O2",
    "-O2 -fPIC -fno-plt",
    "-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections",
    "-O2 -flto",
    "-O2 -fno-pie -no-pie",
    "-O3",
    "-Os",
)


@dataclass(frozen=True)
class Item:
    """A variable of a header.

    Attributes:
        name: Its name.
        line: What defines it in the header.
        after: What declares it there after the remedy.
        defined: What defines it in one source file after the remedy; empty in C++.
        use: What source files do with it.
        before: What stands before it.
    """

    name: str
    line: str
    after: str
    defined: str
    use: str
    before: str


@dataclass(frozen=True)
class Program:
    """A program of several source files that include one header.

    Attributes:
        compiler: A name in `COMPILERS`.
        is_cxx: Whether it is in C++.
        options: How it is compiled.
        items: What its header defines.
        macros: The macros of each source file.
        used: The numbers of the items that each source file uses.
    """

    compiler: str
    is_cxx: bool
    options: str
    items: Sequence[Item]
    macros: Sequence[str]
    used: Sequence[Collection[int]]


def _item(number: int, kind: Kind, chosen: random.Random, *, is_cxx: bool) -> Item:
    value = str(chosen.randrange(100, 999))
    words = {
        "NAME": f"t{number}",
        "ID": str(number),
        "NUMBER": value,
        "VALUE": chosen.choice([value, value, value, f"({value} + U)"]),
    }

    def of(text: str) -> str:
        return re.sub(r"NAME|NUMBER|VALUE|(?<=[a-zA-Z_])ID", lambda found: words[found[0]], text)

    use, before = of(chosen.choice(kind.uses)), of(kind.before)
    if kind.after:
        return Item(words["NAME"], of(kind.declared), of(kind.after), "", use, before)
    declared, contents = of(kind.declared), of(kind.contents)
    defined = f"{declared} = {contents};"
    if is_cxx:
        return Item(words["NAME"], f"static {defined}", f"inline {defined}", "", use, before)
    return Item(words["NAME"], f"static {defined}", f"extern {declared};", defined, use, before)


def program_of(seed: int, count: int = 0) -> Program:
    """Return the program of a seed, with a count of variables; without one that depends on the seed, too."""
    chosen = random.Random(seed)  # noqa: S311 # the same programs in each run
    is_cxx, compiler = chosen.random() < 0.5, chosen.choice(["gcc", "clang"])
    kinds = [one for one in KINDS if is_cxx or not one.is_cxx]
    if seed >= _FIRST_LATER:
        kinds += LATER_KINDS
    numbers = range(count or chosen.randrange(8, 24))
    items = [_item(number, chosen.choice(kinds), chosen, is_cxx=is_cxx) for number in numbers]
    units = range(chosen.choice([2, 3, 4]))
    macros = [
        f'#define U {unit}\n#define TEXT "{chosen.choice("aab")}"\n#define ALIGNED {chosen.choice([4, 4, 4, 64])}\n'
        f"#define BITS {chosen.choice([8, 8, 8, 9])}\n"
        for unit in units
    ]
    used = [{number for number in range(len(items)) if chosen.random() < 0.85} for _ in units]
    return Program(compiler, is_cxx, chosen.choice(WAYS), items, macros, used)


def built(program: Program, folder: Path, remedies: Sequence[tuple[int, CopiedVariable]] = ()) -> str:
    """Build a program with some remedies in a folder, and return what it prints."""
    folder.mkdir()
    ending = "cc" if program.is_cxx else "c"
    remedied = dict(remedies)
    header, defined = "#pragma once\n", [""] * len(program.macros)
    for number, item in enumerate(program.items):
        one = remedied.get(number)
        aligned = f"__attribute__((aligned({one.alignment_bytes}))) " if one is not None and one.alignment_bytes else ""
        header += item.before + (item.line if one is None else (aligned if program.is_cxx else "") + item.after) + "\n"
        if one is not None:
            # One source file that has a copy.
            found = re.search(r"\d+", one.units[0]) if one.units else None
            defined[int(found[0]) if found else 0] += f"{aligned}{item.defined}\n" if item.defined else ""
    (folder / "header.h").write_text(header)
    names = [f"unit_{unit}.{ending}" for unit in range(len(program.macros))]
    calls = ""
    for unit, (name, macros) in enumerate(zip(names, program.macros, strict=True)):
        body = "".join(f"    {{ {program.items[number].use} }}\n" for number in sorted(program.used[unit]))
        text = f'{_SHARED}{macros}#include "header.h"\n{defined[unit]}int use_{unit}(int i);\n'
        text += f'int use_{unit}(int i) {{\n    int s = 0;\n{body}    printf("%d\\n", s);\n    return s;\n}}\n'
        (folder / name).write_text(text)
        calls += f" s += use_{unit}(i);"
    declared = "".join(f"int use_{unit}(int);\n" for unit in range(len(names)))
    loop = f"for (int i = c; i < c + 9; i++) {{{calls} }}"
    main = f'int main(int c, char **v) {{ int s = 0; (void)v; {loop} printf("%d\\n", s); }}\n'
    (folder / f"main.{ending}").write_text(f"{_SHARED}{declared}{_MAIN}{main}")
    *commands, emulator = COMPILERS[program.compiler]
    # clang needs the linker of LLVM for this.
    options = [
        *program.options.split(),
        *(["-fuse-ld=lld"] if "lto" in program.options and program.compiler.startswith("clang") else []),
    ]
    standard = "-std=gnu++20" if program.is_cxx else "-std=gnu11"
    words = [*commands[program.is_cxx], "-w", "-g", standard, *options, "-o", "program", *names, f"main.{ending}"]
    subprocess.run(words, cwd=folder, check=True, timeout=120)
    done = subprocess.run([*emulator, folder / "program"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def sure_of(program: Program, path: Path) -> list[tuple[int, CopiedVariable]]:
    """Return the numbers of the items that are `proof` or `high` copies in a file, each with these."""
    found: dict[int, CopiedVariable] = {}
    for copy in footprint.duplicates(str(path)).files[0].copies:
        numbers = re.findall(r"t(\d+)", copy.name)
        if copy.is_counted and numbers and int(numbers[-1]) < len(program.items):
            found[int(numbers[-1])] = copy
    return sorted(found.items())
