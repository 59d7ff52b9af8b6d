"""Each remedy for copies, applied: where footprint says `proof` or `high`, the rebuilt program prints what it printed.

A case is a header, what each source file does with it, and the header after the remedy. The cases that are not safe
show it: with the remedy the program prints something else, or is refused by the compiler.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import footprint
from footprint.elf.image import read_image
from footprint.elf.statics import read_statics
from footprint.findings.copies import CopiedVariable, CopyOrigin
from footprint.findings.variable_rules.duplicate_static import duplicate_findings
from footprint.model.finding import Confidence


@dataclass(frozen=True)
class Case:
    """A header that three source files include.

    Attributes:
        name: Its name, a sentence.
        header: The header; U is the number of the source file that includes it: 0, 1 or 2.
        use: What each source file prints.
        after: What the remedy makes of lines of the header.
        remedy: What footprint says; None where the remedy changes what the program does.
        defined: What the remedy adds to one source file.
        language: c or c++.
        macros: What each source file defines before it includes the header.
        uses: What some source files do instead.
        functions: What some source files define beside it.
        has_own_type: Whether it has another type in each source file: then link-time optimisation keeps all.
    """

    name: str
    header: str
    use: str
    after: Sequence[tuple[str, str]]
    remedy: str | None = None
    defined: str = ""
    language: str = "c"
    macros: tuple[str, str, str] = ("", "", "")
    uses: Mapping[int, str] = field(default_factory=dict)
    functions: Mapping[int, str] = field(default_factory=dict)
    has_own_type: bool = False


def c(name: str, thing: str, use: str, remedy: str | None = None, *, before: str = "", **more: object) -> Case:
    """Return a case in C whose remedy declares a thing `extern`, and defines it in one source file."""
    declared, _, contents = thing.partition(" = ")
    bounds = re.search(r"\bthing((?:\[\d+\])+)", str(more.pop("declared", declared)))
    if remedy is not None and bounds is not None:
        remedy = remedy.replace("`extern const`", "`extern const` with its bound")
    after = more.pop("after", [(f"static {thing};", f"extern {declared};")])
    defined = more.pop("defined", f"{declared}{' = ' if contents else ''}{contents};")
    return Case(name, f"{before}static {thing};\n", use, after, remedy, defined, **more)  # type: ignore[arg-type]


def cxx(name: str, thing: str, use: str, remedy: str | None = None, *, before: str = "", **more: object) -> Case:
    """Return a case in C++ whose remedy declares a thing `inline`."""
    after = [(f"static {thing};", f"inline {thing};")]
    return Case(name, f"{before}static {thing};\n", use, after, remedy, language="c++", **more)  # type: ignore[arg-type]


EXTERN = "declare it `extern const` in the header, and define it in one source file that has a copy"
INLINE = "declare it `inline` (C++17), without `static`"
TYPE_TOO = "; if its type is in an unnamed namespace, take the type out of that, too"
MOVED = "move it out of the function that holds it, give it a name of its own, and declare it `inline` (C++17)"
NAMED = "give its type a name, and "
RENAMED = "give it a name that no other variable has, and "
SEEN = """int seen(const char *which) {
    static const char *all[9];
    int n = 0;
    while (all[n] && all[n] != which) n++;
    all[n] = which;
    return n;
}
"""
# The eighth argument lies on the stack.
SHARED = "__attribute__((weak, noinline)) "
EIGHT = "int a, int b, int c, int d, int e, int f, int g, const int *p"
ASKED = 'printf("%d ", asked(i, 1, 2, 3, 4, 5, i, thing));'
OF_EIGHTH = "__attribute__((weak)) const int *own;\n"
KEEPS = "{ int s = p == own; own = p; return a + b + c + d + e + f + g + s; }\n"
TWICE = "static int twice(int i) { return 2 * i + K; }\n"
OF_UNIT = "static int of_unit(int i) { return 2 * i + U; }\n"
COUNTED = "static int count; static int counted(int i) { return i + count++; }\n"
ASKS = "static int asked(int i); static int asks(int i) { return asked(i) + 1; }\n"
CALLS = 'for (int n = 0; n < 2; n++) printf("%d ", thing[(i + n) & 1](i));'
READS = 'for (int n = 0; n < 8; n++) printf("%d ", thing[(n + i) & 7]);'
OF_PAIRS = 'for (int n = 0; n < 8; n++) printf("%d ", thing[(n + i) & 7].x);'
SAYS = 'for (int n = 0; n < 2; n++) printf("%s ", thing[(n + i) & 1]);'

CASES = [
    # What is safe.
    c("a table of numbers", "const int thing[8] = {K, 2, 3}", READS, EXTERN),
    c(
        "a table without a bound",
        "const int thing[] = {K, 2, 3}",
        'printf("%d %d ", (int)sizeof thing, thing[i % 3]);',
        EXTERN,
        after=[("static const int thing[] = {K, 2, 3};", "extern const int thing[3];")],
        declared="thing[3]",
    ),
    c("a table of texts", 'const char *const thing[2] = {"red", "green"}', SAYS, EXTERN),
    c(
        "a table of functions that do the same",
        "int (*const thing[2])(int) = {twice, twice}",
        CALLS,
        EXTERN,
        before=TWICE,
    ),
    cxx("a constant of C++", "const int thing[8] = {K, 2, 3}", READS, INLINE),
    cxx("a table of functions of C++", "int (*const thing[2])(int) = {twice, twice}", CALLS, INLINE, before=TWICE),
    Case(
        "a constant of a namespace",
        "namespace ns { constexpr int thing[8] = {K, 2, 3}; }\nusing namespace ns;\n",
        f"static_assert(thing[0] == K);\n{READS}",
        [("constexpr", "inline constexpr")],
        INLINE,
        language="c++",
    ),
    Case(
        "a constant of a namespace without a name",
        "namespace { const int thing[8] = {K, 2, 3}; }\n",
        READS,
        [("namespace { const", "inline constexpr"), ("; }", ";")],
        "take it out of the unnamed namespace, and declare it `inline` (C++17)",
        language="c++",
    ),
    Case(
        "a table of a type of a namespace without a name",
        "namespace { struct S { int x, y; }; const S thing[8] = {{K, 2}, {3}}; }\n",
        OF_PAIRS,
        [("namespace { ", ""), ("const S", "inline constexpr S"), ("}; }\n", "};\n")],
        "take it and its type out of the unnamed namespace, and declare it `inline` (C++17)",
        language="c++",
        has_own_type=True,
    ),
    Case(
        "a table of a type of a namespace without a name, and outside of that",
        "namespace { struct S { int x, y; }; }\nstatic const S thing[8] = {{K, 2}, {3}};\n",
        OF_PAIRS,
        [("namespace { ", ""), ("}; }\nstatic const S", "};\ninline constexpr S")],
        f"{INLINE}{TYPE_TOO}",
        language="c++",
        has_own_type=True,
    ),
    Case(
        "a table of a type of C++ without a name",
        "static const struct { int x, y; } thing[8] = {{K, 2}, {3}};\n",
        OF_PAIRS,
        [("static const struct", "struct S"), ("} thing", "};\ninline constexpr S thing")],
        f"{NAMED}{INLINE}{TYPE_TOO}",
        language="c++",
        has_own_type=True,
    ),
    Case(
        "a constant of a function that macros change",
        "static inline int get(int i) { static const int thing[8] = {K, 2, 3}; return thing[(i + U) & 7]; }\n",
        'printf("%d ", get(i));',
        [
            ("static const int thing[8] = {K, 2, 3};", ""),
            ("static inline", "inline constexpr int thing[8] = {K, 2, 3};\nstatic inline"),
        ],
        MOVED,
        language="c++",
    ),
    c(
        "a table of addresses of one table",
        "const int *const thing[2] = {all, all + 1}",
        'printf("%d ", *thing[i & 1]);',
        EXTERN,
        before="extern const int all[2];\n",
        functions={2: "const int all[2] = {K, 6};\n"},
    ),
    c(
        "a table of addresses of equal constants",
        "const int *const thing[2] = {own, own + 1}",
        'printf("%d ", *thing[i & 1]);',
        EXTERN,
        before="static const int own[8] = {K, 6};\n",
    ),
    Case(
        "another line has the name",
        "#if U < 2\nstatic const int thing[8] = {K, 2};\n#else\nstatic const int thing[8] = {3, K};\n#endif\n",
        READS,
        [("static const int thing[8] = {K, 2};", "#define thing first_thing\ninline constexpr int thing[8] = {K, 2};")],
        f"{RENAMED}{INLINE}",
        language="c++",
    ),
    c(
        "a union with functions that do the same",
        "const union un thing[2] = {{.f = twice}, {.f = twice}}",
        'printf("%d ", thing[i & 1].f(i));',
        EXTERN,
        before=f"{TWICE}union un {{ long n; int (*f)(int); }};\n",
    ),
    c(
        "a list that refers to itself",
        "const struct S thing[2] = {{thing + 1, K}, {thing, 2}}",
        'printf("%d ", thing[i & 1].next->n);',
        EXTERN,
        before="struct S { const struct S *next; int n; };\nextern const int all[];\nstatic const struct S thing[2];\n",
        after=[
            ("static const struct S thing[2];\n", ""),
            ("static const struct S thing[2] = {{thing + 1, K}, {thing, 2}}", "extern const struct S thing[2]"),
        ],
    ),
    c(
        "a table of a type without a name",
        "const struct { int x, y; } thing[8] = {{K, 2}, {3}}",
        OF_PAIRS,
        f"{NAMED}{EXTERN}",
        after=[
            ("static const struct", "struct S"),
            ("} thing[8] = {{K, 2}, {3}};", "};\nextern const struct S thing[8];"),
        ],
        defined="const struct S thing[8] = {{K, 2}, {3}};",
    ),
    c(
        "a table of a function that no file has to define",
        "int (*const thing[2])(int) = {hook, twice}",
        'printf("%d ", thing[0] == 0 ? thing[1](i) : 0);',
        EXTERN,
        before=f"{TWICE}extern int hook(int) __attribute__((weak));\n",
    ),
    cxx(
        "a constant with a name of C", "const int thing[8] = {K, 2, 3}", READS, INLINE, before='extern "C" int all[];\n'
    ),
    Case(
        "a constant of C++ with the linkage of C",
        'extern "C" { static const int thing[9] = {K, 2, 3}; }\n',
        READS,
        [("static", "inline")],
        INLINE,
        language="c++",
    ),
    c(
        "a table of functions that read constants of the header",
        "int (*const thing[2])(int) = {asks, asks}",
        'printf("%d ", thing[i & 1](i));',
        EXTERN,
        before='static const int own[8] = {K, 6};\nstatic int asks(int i) { return printf("%d own ", own[i & 7]); }\n',
    ),
    # What is not.
    c(
        "the eighth argument that is kept",
        "const int thing[8] = {K, 2, 3}",
        ASKED,
        before=f"{OF_EIGHTH}{SHARED}int asked({EIGHT}) {KEEPS}",
    ),
    c(
        "the eighth argument that another function keeps",
        "const int thing[8] = {K, 2, 3}",
        ASKED,
        before=f"{OF_EIGHTH}{SHARED}int asks({EIGHT}) {KEEPS}"
        f"{SHARED}int asked({EIGHT}) {{ return asks(f, e, d, c, b, a, g, p); }}\n",
    ),
    c(
        "the eighth argument that is read, and that another function keeps",
        "const int thing[8] = {K, 2, 3}",
        ASKED,
        before=f"{OF_EIGHTH}{SHARED}int asks({EIGHT}) {KEEPS}"
        f"{SHARED}int asked({EIGHT}) {{ return p[g & 7] == 77 ? 3 : asks(f, e, d, c, b, a, g, p); }}\n",
    ),
    c(
        "the eighth argument whose address is passed on",
        "const int thing[8] = {K, 2, 3}",
        ASKED,
        before=f"{OF_EIGHTH}{SHARED}int asks(const int **p) {{ int s = *p == own; own = *p; return s; }}\n"
        f"{SHARED}int asked({EIGHT}) {{ return a + b + c + d + e + f + g + asks(&p); }}\n",
    ),
    c(
        "one of many arguments",
        "const int thing[8] = {K, 2, 3}",
        'printf("%d ", asked(9, 1, 2, 3, 4, 5, i, 7, thing));',
        before=f"#include <stdarg.h>\n{OF_EIGHTH}{SHARED}int asked(int n, ...) {{"
        " va_list all; va_start(all, n); int s = 0;"
        " for (int k = 2; k < n; k++) s += va_arg(all, int); const int *p = va_arg(all, const int *);"
        " va_end(all); s += p == own; own = p; return s; }\n",
    ),
    c(
        "a member of an argument",
        "const int thing[8] = {K, 2, 3}",
        '{ struct S s = {{i, 2, 3}, {0, thing}}; printf("%d ", asked(s, i)); }',
        before=f"struct S {{ long n[3]; const int *p[2]; }};\n{OF_EIGHTH}"
        f"{SHARED}int asked(struct S s, int i)"
        " { const int *p = s.p[s.n[1] / 2]; i += p == own; own = p; return i; }\n",
    ),
    c(
        "the eighth argument of a function that a pointer leads to",
        "const int thing[8] = {K, 2, 3}",
        'printf("%d ", all[i & 1](i, 1, 2, 3, 4, 5, i, thing));',
        before=f"{OF_EIGHTH}{SHARED}int asked({EIGHT}) {KEEPS}"
        f"{SHARED}int asks({EIGHT}) {{ return asked(f, e, d, c, b, a, g, p); }}\n"
        f"__attribute__((weak)) int (*all[2])({EIGHT}) = {{asked, asks}};\n",
    ),
    c(
        "functions that return the address of a constant of the header",
        "const int *(*const thing[2])(void) = {asks, asks}",
        'printf("%d ", seen((const char *)thing[i & 1]()));',
        before="int seen(const char *which);\nstatic const int own[4] = {K};\n"
        "static const int *asks(void) { return own; }\n",
        functions={2: SEEN},
    ),
    c(
        "functions that hand on a function of the header",
        "int (*const thing[2])(int) = {asks, asks}",
        CALLS,
        before=f"{TWICE}int seen(int (*which)(int));\nstatic int asks(int i) {{ return seen(twice) + i; }}\n",
        functions={
            2: SEEN.replace("const char *which", "int (*which)(int)")
            .replace("const char *all", "int (*all")
            .replace("all[9];", "all[9])(int);")
        },
    ),
    c(
        "a table whose first address is told apart, which compilers know without it",
        "const int *const thing[2] = {own, own + 1}",
        'printf("%d %d ", *thing[i & 1], seen((const char *)thing[0]));',
        before="int seen(const char *which);\nstatic const int own[8] = {K, 6};\n",
        functions={2: SEEN},
    ),
    c(
        "functions that call others by their table",
        "int (*const thing[2])(int) = {asks, asks}",
        'printf("%d ", thing[i & 1](i + 64 + i % 2 * 32));',
        before="int TEXT(int);\nstatic int asks(int i) { return TEXT(i) + 1; }\n",
        macros=("#define TEXT toupper", "#define TEXT tolower", "#define TEXT toupper"),
    ),
    c(
        "texts of two parts",
        'const char *const thing[2] = {"text\\0" TEXT, "text\\0b"}',
        'printf("%s ", thing[i & 1] + 5);',
        macros=('#define TEXT "a"', '#define TEXT "b"', '#define TEXT "c"'),
    ),
    c(
        "functions that return texts of two parts",
        "const char *(*const thing[2])(void) = {asks, asks}",
        'printf("%s ", thing[i & 1]() + 5);',
        before='static const char *asks(void) { return "text\\0" TEXT; }\n',
        macros=('#define TEXT "a"', '#define TEXT "b"', '#define TEXT "c"'),
    ),
    c(
        "functions that add other numbers",
        "int (*const thing[2])(int) = {of_unit, of_unit}",
        CALLS,
        before="static int of_unit(int i) { return i * K + U * 4096 + 4096; }\n",
    ),
    c(
        "a union with functions that use a macro",
        "const union un thing[2] = {{.f = of_unit}, {.f = of_unit}}",
        'printf("%d ", thing[i & 1].f(i));',
        before=f"{OF_UNIT}union un {{ long n; int (*f)(int); }};\n",
    ),
    c(
        "functions that count for each thread",
        "int (*const thing[2])(int) = {counted, counted}",
        CALLS,
        before=f"static __thread {COUNTED.removeprefix('static ')}",
    ),
    cxx(
        "functions that catch something else",
        "int (*const thing[2])(int) = {asks, asks}",
        CALLS,
        before="struct S { int x; }; struct own { int y; };\n__attribute__((noinline)) int seen(int i);\n"
        "static int asks(int i) { try { return seen(i); } catch (TEXT &) { return 1; } catch (...) { return 2; } }\n",
        macros=("#define TEXT S", "#define TEXT own", "#define TEXT S"),
        functions={2: "int seen(int i) { if (i & 1) throw S{i}; throw own{i}; }\n"},
    ),
    Case(
        "an object with virtual functions that use a macro",
        "struct S { virtual int get(int i) const = 0; };\nconst S *seen(const S *s);\n"
        "namespace { struct own : S { int get(int i) const override { return i + U; } }; const own thing{}; }\n",
        'printf("%d ", seen(&thing)->get(i));',
        [("namespace { struct own", "struct own"), ("const own thing{}; }", "inline const own thing{};")],
        language="c++",
        functions={2: "__attribute__((noinline)) const S *seen(const S *s) { return s; }\n"},
    ),
    c("functions that use a macro", "int (*const thing[2])(int) = {of_unit, of_unit}", CALLS, before=OF_UNIT),
    c(
        "functions that use a static of the source file",
        "int (*const thing[2])(int) = {counted, counted}",
        CALLS,
        before=COUNTED,
    ),
    c(
        "functions that call one that uses a macro",
        "int (*const thing[2])(int) = {asks, asks}",
        CALLS,
        before=f"{ASKS}static __attribute__((noinline)) int asked(int i) {{ return i + U; }}\n",
    ),
    cxx("functions of C++ that use a macro", "int (*const thing[2])(int) = {of_unit, of_unit}", CALLS, before=OF_UNIT),
    c("the name of the source file", "const char *const thing[2] = {__BASE_FILE__, __BASE_FILE__}", SAYS),
    c("numbers that two of three source files share", "const int thing[8] = {U == 2, K}", READS),
    c(
        "a table that is longer in one source file",
        "const int thing[U == 2 ? 16 : 8] = {[U == 2 ? 15 : 7] = 9}",
        READS,
        uses={2: 'printf("%d ", thing[15]);'},
    ),
    c(
        "texts that differ after 300 characters",
        f'const char *const thing[2] = {{"{"x" * 300}" TEXT, "y"}}',
        SAYS,
        macros=('#define TEXT "a"', '#define TEXT "b"', '#define TEXT "c"'),
    ),
    c(
        "wide texts",
        "const int *const thing[2] = {(const int *)TEXT, (const int *)TEXT}",
        'printf("%d ", thing[i & 1][1]);',
        macros=('#define TEXT L"ab"', '#define TEXT L"ac"', '#define TEXT L"ad"'),
    ),
    # A type that a macro changes is another type only to those who use it: each source file keeps its own.
    c(
        "a table of a type that a macro changes",
        "const word thing[8] = {K, -2, 3}",
        'for (int n = 0; n < 3; n++) printf("%d ", thing[n] < 0);',
        EXTERN,
        before="typedef TEXT word;\n",
        macros=("#define TEXT int", "#define TEXT unsigned", "#define TEXT int"),
    ),
    c("state of each source file", "int thing[8] = {K, 2, 3}", "thing[i & 7]++; " + READS),
    c("zeros of each source file", "int thing[8]", "thing[i & 7]++; " + READS),
    c("a table that one source file changes", "int thing[8] = {K, 2, 3}", READS, uses={0: "thing[i & 7]++;"}),
    cxx("a table of C++ that one source file changes", "int thing[8] = {K, 2, 3}", READS, uses={0: "thing[i & 7]++;"}),
    c("state of each thread", "__thread int thing[8] = {K, 2, 3}", "thing[i & 7]++; " + READS),
    cxx(
        "an object of each thread",
        "thread_local S thing",
        'printf("%d ", thing.n++);',
        before="struct S { int n; S() : n(U + K) {} ~S() { n = 0; } };\n",
    ),
    c(
        "addresses of state of each source file",
        "int *const thing[2] = {own, own + 1}",
        'printf("%d ", ++*thing[i & 1]);',
        before="static int own[8] = {K, 6};\n",
    ),
    c(
        "addresses of constants that a macro changes",
        "const int *const thing[2] = {own, own + 1}",
        'printf("%d ", *thing[i & 1]);',
        before="static const int own[8] = {U, K};\n",
    ),
    c(
        "an address that only says who asks",
        "const char thing",
        'printf("%d ", seen(&thing));',
        before="int seen(const char *which);\n",
        functions={2: SEEN},
    ),
    c(
        "a text that is compared by its address",
        'const char thing[24] = "there is nothing here"',
        'printf("%d ", seen(thing) == thing);',
        before="const char *seen(const char *which);\n",
        functions={
            2: "const char *seen(const char *which) { static const char *own; return own ? own : (own = which); }\n"
        },
    ),
    c(
        "a text that marks what a source file keeps",
        'const char thing[24] = "kept"',
        'printf("%d ", seen(thing));',
        before="int seen(const char *which);\n",
        functions={2: SEEN},
    ),
    c(
        "a text that is printed and found again by its address",
        'const char thing[24] = "printed"',
        'printf("%s %d ", thing, seen(thing));',
        before="int seen(const char *which);\n",
        functions={2: SEEN},
    ),
    c(
        "a table whose parts are told by their addresses",
        "const int thing[8] = {K, 2, 3}",
        'printf("%d %d ", thing[i & 7], seen(thing + 2));',
        before="int seen(const int *which);\n",
        functions={2: "int seen(const int *which) { return which == thing + 2; }\n"},
    ),
    c(
        "a table that one source file keeps in a structure",
        "const int thing[8] = {K, 2, 3}",
        'static struct own own = {thing}; printf("%d %d ", thing[i & 7], seen(&own));',
        before="struct own { const int *text; };\nint seen(const struct own *which);\n",
        functions={2: "int seen(const struct own *which) { return which->text == thing; }\n"},
    ),
    c(
        "a table that a local structure holds",
        "const int thing[8] = {K, 2, 3}",
        'struct own own = {thing}; printf("%d %d ", thing[i & 7], seen(&own));',
        before="struct own { const int *text; };\nint seen(const struct own *which);\n",
        functions={2: "int seen(const struct own *which) { return which->text == thing; }\n"},
    ),
    c(
        "addresses of constants that are told apart",
        "const int *const thing[2] = {own, own + 1}",
        'printf("%d ", *thing[i & 1] + seen((const char *)thing[i & 1]));',
        before="static const int own[8] = {K, 6};\nint seen(const char *which);\n",
        functions={2: SEEN},
    ),
    c(
        "an address before the table",
        "const int thing[8] = {K, 2, 3}",
        'printf("%d %d ", thing[i & 7], seen((const char *)&thing[i - 1]));',
        before="int seen(const char *which);\n",
        functions={2: SEEN},
    ),
    c(
        "the seventh of several arguments",
        "const int thing[8] = {K, 2, 3}",
        'printf("%d %d ", thing[i & 7], get(1, 2, 3, 4, 5, 6, (const char *)thing));',
        before="int get(int, int, int, int, int, int, const char *which);\n",
        functions={
            2: SEEN
            + "int get(int a, int b, int c, int d, int e, int f, const char *which) { return seen(which) + f; }\n"
        },
    ),
    c(
        "functions that are compared by their addresses",
        "int (*const thing[2])(int) = {twice, asked}",
        # A compiler that sees the comparison computes it, and leaves no trace of it.
        f'{CALLS} printf("%d ", seen(thing[i & 1], twice));',
        before=f"{TWICE}static int asked(int i) {{ return i + 3; }}\n"
        "__attribute__((noinline, noipa)) int seen(int (*one)(int), int (*other)(int));\n",
        functions={2: "int seen(int (*one)(int), int (*other)(int)) { return one == other; }\n"},
    ),
    cxx(
        "a mark of C++ that only its address tells",
        "const S thing{K, 2, 3, 4}",
        'printf("%d ", seen(&thing) == &thing);',
        before="struct S { int x[4]; };\nconst S *seen(const S *which);\n",
        functions={2: "const S *seen(const S *which) { static const S *own; return own ? own : (own = which); }\n"},
    ),
    c(
        "a set that the linker collects",
        'const int thing[8] __attribute__((section("things"), used)) = {K, 2, 3}',
        'printf("%d ", (int)(__stop_things - __start_things));',
        before="extern const int __start_things[], __stop_things[];\n",
    ),
    cxx(
        "a text made at start",
        "const S thing(__BASE_FILE__)",
        'printf("%s ", thing.text + (i & 1));',
        # It points to itself, as a short std::string does.
        before="struct S { char *text, own[24]; S(const char *from) : text(own) { __builtin_strcpy(own, from); } };\n",
    ),
    Case(
        "a static of a function that is written",
        "static inline int next() { static int thing[8] = {K, 2}; return ++thing[0]; }\n",
        'printf("%d ", next());',
        [("static inline", "inline")],
        language="c++",
    ),
    Case(
        "a static that is made at its first use",
        "static inline int get(int i) { static const int thing = U + i; return thing; }\n",
        'printf("%d ", get(i));',
        [("static inline", "inline")],
        language="c++",
    ),
    cxx(
        "a constant with a part that changes",
        "const S thing",
        'printf("%d ", ++thing.n);',
        before="struct S { int x[8]; mutable int n; constexpr S() : x{K, 2}, n(0) {} };\n",
    ),
    cxx(
        "a constant that a template counts for",
        "const int thing[8] = {K, 2, 3}",
        'printf("%d %d ", thing[i & 7], get<thing>());',
        before="template <const int *P> __attribute__((noinline)) int get() { static int n; return n++; }\n",
    ),
    c(
        "a text with an end that strtol returns",
        'const char thing[24] = "12 monkeys"',
        'char *end; long n = strtol(thing, &end, 10); printf("%ld %d ", n, seen(end) + thing[i & 7]);',
        before="long strtol(const char *, char **, int);\nint seen(const char *which);\n",
        functions={2: SEEN},
    ),
    Case(
        "a table of a type of each source file, for which a template counts",
        "namespace { struct S { int x, y; }; }\n"
        "template <class T> __attribute__((noinline)) int get() { static int n; return n++; }\n"
        "static const S thing[8] = {{K, 2}, {3}};\n",
        'printf("%d %d ", thing[i & 7].x, get<S>());',
        [("namespace { struct S { int x, y; }; }", "struct S { int x, y; };"), ("static const", "inline const")],
        language="c++",
    ),
    cxx(
        "a table that a facet keeps",
        "const unsigned short thing[256] = {K}",
        # std::ctype<char> has it in its seventh word.
        'const char *own[99] = {}; asks(own, thing, false, 1); printf("%d %d ", thing[i], seen(own[6]));',
        before='void asks(void *, const unsigned short *, bool, unsigned long) __asm__("_ZNSt5ctypeIcEC1EPKtbm");\n'
        "int seen(const char *which);\n",
        functions={2: SEEN},
    ),
    cxx(
        "a table whose address a stream prints",
        "const int thing[8] = {K, 2}",
        'printf("%d ", thing[i & 7]); fflush(stdout); begun(&own); asks(own, thing); asked(own);',
        before='void begun(void *) __asm__("_ZNSt8ios_base4InitC1Ev");\n'
        'extern char own[] __asm__("_ZSt4cout"); void asks(void *, const void *) __asm__("_ZNSolsEPKv");\n'
        'void asked(void *) __asm__("_ZNSo5flushEv");\n',
    ),
    c(
        "a table whose address is printed",
        "const int thing[8] = {K, 2}",
        'printf("%d ", thing[i & 7]); printf(get("%p "), (const void *)thing);',
        before="const char *get(const char *which);\n",
        functions={2: "const char *get(const char *which) { return which; }\n"},
    ),
    c(
        "a table whose address is printed as a number",
        "const int thing[8] = {K, 2}",
        'printf("%d %lx ", thing[i & 7], (unsigned long)thing);',
    ),
    cxx(
        "a function that std::terminate may call",
        "void (*const thing[2])() = {asks, asks}",
        'printf("%d ", get(thing[i & 1]) == thing[0]);',
        before='void (*get(void (*)()))() __asm__("_ZSt13set_terminatePFvvE");\nstatic void asks() { printf("K"); }\n',
    ),
    cxx(
        "a table that a handler has",
        "const int thing[8] = {K, 2}",
        'try { printf("%d ", thing[i & 7]); asks(i); } catch (const int *p) { printf("%d ", p == seen(thing)); }',
        before="const int *seen(const int *which);\nvoid asks(int i);\n",
        functions={
            2: "const int *seen(const int *which) { static const int *all; return all ? all : (all = which); }\n"
            "void asks(int i) { if (i) throw thing; }\n"
        },
    ),
    c(
        "a constant that one source file folds",
        "const int thing[8] = {U == 2, K}",
        READS,
        uses={2: 'printf("%d ", thing[0]);'},
    ),
]
UNITS = 3
# What the texts of a case call K is a number of its own, and so are these names: all cases are one program.
_OWN = re.compile(
    r"\b(__start_|__stop_)?(thing|things|own|all|word|below_a_page|seen|twice|of_unit|counted|count|asked|asks|next|get|ns|S|TEXT|un|hook)\b"
)


@dataclass(frozen=True)
class Way:
    """How to compile and link."""

    name: str
    options: str
    compilers: tuple[str, ...] = ("gcc", "clang")
    tools: tuple[str, ...] = ()


WAYS = [
    # Otherwise gcc puts texts among other constants, where nothing says where they end.
    Way("O0", "-g -O0 -fmerge-constants"),
    Way("O2", "-g -O2 -fPIC -fno-plt"),
    Way("fixed", "-g -O1 -fno-pie -no-pie"),
    Way("lto", "-g -O2 -flto", ("gcc",)),
    Way("icf", "-g -O2 -ffunction-sections -fdata-sections -fuse-ld=lld -Wl,--icf=all", tools=("ld.lld",)),
    Way("without-lines", "-O2"),
]
BUILDS = [(language, way, compiler) for language in ("c", "c++") for way in WAYS for compiler in way.compilers]
Build = tuple[str, Way, str]


def of_case(case: Case, text: str) -> str:
    """Return a text of a case with names of its own."""
    number = 100 + CASES.index(case)
    return re.sub(r"\bK\b", str(number), _OWN.sub(rf"\g<0>_{number}", text))


def write_sources(folder: Path, language: str, *, is_after: bool) -> list[str]:
    """Write the headers and the source files of all cases in one language, and return the names of the latter."""
    folder.mkdir()
    cases = [case for case in CASES if case.language == language]
    sources = [f"#include <stdio.h>\n#define U {number}\n" for number in range(UNITS)]
    calls = ""
    for case in cases:
        header = case.header
        for before, after in case.after if is_after else ():
            assert before in header
            header = header.replace(before, after)
        name = f"things_{CASES.index(case)}"
        (folder / f"{name}.h").write_text(of_case(case, header))
        for number in range(UNITS):
            text = f'{case.macros[number]}\n#include "{name}.h"\n{case.functions.get(number, "")}'
            text += (
                f"__attribute__((noinline)) void use_{name}_{number}(int i) {{ {case.uses.get(number, case.use)} }}\n"
            )
            sources[number] += of_case(case, text)
        sources[0] += "".join(f"void use_{name}_{number}(int);\n" for number in range(UNITS))
        sources[0] += of_case(case, case.defined) + "\n" if is_after else ""
        uses = " ".join(f"use_{name}_{number}(n);" for number in range(UNITS))
        calls += f'    for (int n = i; n < i + 3; n++) {{ {uses} }}\n    puts("");\n'
    sources[0] += f"int main(int i, char **v) {{\n    (void)v;\n{calls}    return 0;\n}}\n"
    names = [f"unit_{number}.{'c' if language == 'c' else 'cc'}" for number in range(UNITS)]
    for name, text in zip(names, sources, strict=True):
        (folder / name).write_text(text)
    return names


def build_and_run(folder: Path, build: Build, *, is_after: bool) -> list[str]:
    """Return the line that the program prints for each case."""
    language, way, compiler = build
    command = {"gcc": {"c": "gcc", "c++": "g++"}, "clang": {"c": "clang", "c++": "clang++"}}[compiler][language]
    names = write_sources(folder, language, is_after=is_after)
    standard = "-std=gnu11" if language == "c" else "-std=gnu++17"
    words = [command, standard, "-w", *way.options.split(), "-o", "program", *names]
    subprocess.run(words, cwd=folder, check=True, timeout=120)
    done = subprocess.run([folder / "program"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


@dataclass(frozen=True)
class Result:
    """What a program prints of a case before and after the remedy, and what footprint says of it before.

    Attributes:
        before: What it prints before.
        after: What it prints after.
        copies: What footprint finds before.
        left_count: How many there are after.
    """

    before: str
    after: str
    copies: tuple[CopiedVariable, ...]
    left_count: int

    @property
    def sure(self) -> list[CopiedVariable]:
        return [copy for copy in self.copies if copy.confidence in {Confidence.PROOF, Confidence.HIGH}]


def results_of(folder: Path, build: Build) -> dict[str, Result] | str:
    """Return the result of each case by its name; else why there is none."""
    language, way, compiler = build
    for tool in (compiler, "g++", "clang++", *way.tools):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    folder.mkdir()
    cases = [case for case in CASES if case.language == language]
    before = build_and_run(folder / "before", build, is_after=False)
    after = build_and_run(folder / "after", build, is_after=True)
    found = footprint.duplicates(str(folder / "before" / "program")).files[0].copies
    things = [one for one in found if one.origin is not CopyOrigin.STREAM_INIT]
    left = [one.name for one in read_statics(read_image((folder / "after" / "program").read_bytes(), "after")).statics]

    def result(case: Case, was: str, is_now: str) -> Result:
        name = of_case(case, "thing")
        copies = tuple([thing for thing in things if name in thing.name])
        return Result(was, is_now, copies, sum(name in one for one in left))

    return {case.name: result(case, was, is_now) for case, was, is_now in zip(cases, before, after, strict=True)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Build, dict[str, Result] | str]]:
    folder = tmp_path_factory.mktemp("copies")
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(results_of, [folder / str(number) for number in range(len(BUILDS))], BUILDS)
        yield dict(zip(BUILDS, made, strict=True))


def results_of_case(case: Case, results: dict[Build, dict[str, Result] | str]) -> Iterator[tuple[Build, Result]]:
    """Return the result of a case in each build."""
    for build in BUILDS:
        found = results[build]
        if build[0] == case.language and isinstance(found, str):
            pytest.skip(found)
        if build[0] == case.language and not isinstance(found, str):
            yield build, found[case.name]


def name_of(case: Case) -> str:
    return case.name.replace(" ", "-")


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_is_proof_or_high_prints_the_same_after_the_remedy(
    case: Case, results: dict[Build, dict[str, Result] | str]
) -> None:
    for build, result in results_of_case(case, results):
        if result.sure:
            assert result.after == result.before, (build, result.sure)


def is_before_another(case: Case, copy: CopiedVariable) -> bool:
    """Return whether what is said against it is what a function of another case does with the variable behind it."""
    found = copy.objection
    if found is None or found.check != "nothing compares the address of its end":
        return False
    # As `asks_107` and `use_things_107_0` are of the case with the number 107.
    return not re.search(rf"_{of_case(case, 'K')}(?:_|$)", found.function or "")


@pytest.mark.parametrize("case", [case for case in CASES if case.remedy is not None], ids=name_of)
def test_a_safe_remedy_is_offered_with_proof_where_lines_are_known(
    case: Case, results: dict[Build, dict[str, Result] | str]
) -> None:
    for build, result in results_of_case(case, results):
        _, way, _ = build
        assert result.after == result.before, build
        assert result.left_count <= 1, build
        if not way.options.startswith("-g") or not result.copies:
            continue
        if case.has_own_type and way.name == "lto":
            # As it does with those whose addresses matter.
            assert [copy.confidence for copy in result.copies] == [Confidence.MEDIUM], build
            continue
        if [copy for copy in result.copies if is_before_another(case, copy)]:
            assert [copy.confidence for copy in result.copies] == [Confidence.MEDIUM], build
            continue
        assert [copy.confidence for copy in result.copies] == [Confidence.PROOF], build
        assert [one.remedy for one in duplicate_findings(result.copies)] == [case.remedy], build
        if " with its bound" in str(case.remedy):
            declared = " ".join(after for _, after in case.after)
            assert [copy.bounds for copy in result.copies] == re.findall(r"\bthing((?:\[\d+\])+)", declared), build


@pytest.mark.parametrize("case", [case for case in CASES if case.remedy is None], ids=name_of)
def test_what_is_not_safe_is_not_for_a_reason(case: Case, results: dict[Build, dict[str, Result] | str]) -> None:
    """In at least one build the remedy changes what the program prints."""
    own = [result for build, result in results.items() if build[0] == case.language]
    assert any(isinstance(one, str) or one[case.name].after != one[case.name].before for one in own)


OBJECTS = [
    build for build in BUILDS if (build[0], build[1].name, build[2]) in {("c", "O2", "clang"), ("c", "fixed", "gcc")}
]


@pytest.mark.parametrize("build", OBJECTS, ids=["clang", "gcc at a fixed address"])
def test_objects_before_the_link_are_sure_only_of_what_prints_the_same(
    build: Build, results: dict[Build, dict[str, Result] | str], tmp_path: Path
) -> None:
    expected = results[build]
    if isinstance(expected, str):
        pytest.skip(expected)
    names = write_sources(tmp_path / "sources", build[0], is_after=False)
    options = [one for one in build[1].options.split() if one != "-no-pie"]
    subprocess.run([build[2], "-std=gnu11", "-w", *options, "-c", *names], cwd=tmp_path / "sources", check=True)
    objects = [str(path) for path in sorted((tmp_path / "sources").glob("*.o"))]
    copies = footprint.duplicates(*objects).files[0].copies
    sure = {
        case.name
        for case in CASES
        for copy in copies
        if copy.is_counted and case.language == "c" and of_case(case, "thing") in copy.name
    }
    assert sure
    assert {name for name in sure if expected[name].after != expected[name].before} == set()


@pytest.fixture(scope="module", params=["gcc", "clang"])
def objects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Compile one source file in four ways, and what calls it."""
    compiler = str(request.param)
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = tmp_path_factory.mktemp("objects")
    (folder / "pixel.c").write_text(
        "static const int thing[64] = {1, 2, 3};\n"
        "static __attribute__((noinline)) int at(int i) { return thing[i & 63]; }\n"
        "int NAME(int i); int NAME(int i) { return at(i) * BITS; }\n"
    )
    (folder / "main.c").write_text("int first(int); int second(int); int main(int i) { return first(i) + second(i); }")
    words = [compiler, "-g", "-O1", "-c"]
    for name, bit_count in (("decode8", 8), ("decode16", 8), ("decode", 8), ("decode", 16)):
        ways = [f"-DNAME={name}", f"-DBITS={bit_count}", "pixel.c", "-o", f"{name}-{bit_count}.o"]
        subprocess.run([*words, *ways], cwd=folder, check=True)
    subprocess.run([*words, "main.c"], cwd=folder, check=True)
    return folder, compiler


@pytest.mark.parametrize(
    ("names", "bits"), [("decode8 decode16", (8, 8)), ("decode decode", (8, 16)), ("decode decode", (8, 8))]
)
def test_one_source_file_with_two_sets_of_functions_is_not_to_be_linked_only_once(
    objects: tuple[Path, str], names: str, bits: tuple[int, int]
) -> None:
    folder, compiler = objects
    for name, bit_count, renamed in zip(names.split(), bits, ("first", "second"), strict=True):
        # Two libraries of one source are linked under other names.
        words = ["objcopy", f"--redefine-sym={name}={renamed}", f"{name}-{bit_count}.o", f"{renamed}.o"]
        subprocess.run(words, cwd=folder, check=True)
    subprocess.run([compiler, "main.o", "first.o", "second.o", "-o", "program"], cwd=folder, check=True)
    (finding,) = duplicate_findings(footprint.duplicates(str(folder / "program")).files[0].copies)
    assert finding.confidence is Confidence.PROOF
    # clang states vaddrs by an index, and is not believed.
    is_one = names == "decode decode" and bits == (8, 8) and compiler == "gcc"
    assert ("only once" in finding.remedy) == is_one


@pytest.mark.parametrize("debug", ["-g", "-g0"])
@pytest.mark.parametrize(
    "source",
    [
        "static void __attribute__((constructor)) add(void) { total += sum(1); }",
        "static void __attribute__((destructor)) add(void) { total += sum(1); }",
        "static int count; int NAME(void); int NAME(void) { count += sum(1); return total + count; }",
    ],
)
def test_a_source_file_that_keeps_or_starts_something_is_not_to_be_linked_only_once(
    tmp_path: Path, source: str, debug: str
) -> None:
    shared = (
        "extern int total;\nstatic const int thing[64] = {1, 2, 3};\nstatic __attribute__((noinline)) int sum(int k)"
        " { int s = 0; for (int i = 0; i < 64; i++) s += thing[(i * k) & 63]; return s; }\n"
    )
    calls = ("first", "second") if "NAME" in source else ()
    called = "".join(f"total += {name}();" for name in calls)
    declared = "".join(f"int {name}(void);" for name in calls)
    (tmp_path / "own.c").write_text(shared + source)
    last = 'static void __attribute__((destructor(101))) last(void) { printf("%d\\n", total); }'
    (tmp_path / "main.c").write_text(
        f"#include <stdio.h>\nint total;{declared}\n{last}\nint main(void) {{ {called} return 0; }}"
    )
    subprocess.run(["gcc", debug, "-O1", "-c", "-DNAME=called", "own.c", "main.c"], cwd=tmp_path, check=True)
    for name in ("first", "second"):
        subprocess.run(["objcopy", f"--redefine-sym=called={name}", "own.o", f"{name}.o"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "main.o", "first.o", "second.o", "-o", "twice"], cwd=tmp_path, check=True)
    once = [f"-Wl,--defsym=second={calls[0]}"] if calls else []
    subprocess.run(["gcc", "main.o", "first.o", *once, "-o", "once"], cwd=tmp_path, check=True)
    printed = [subprocess.check_output([tmp_path / name]) for name in ("twice", "once")]
    assert printed[0] != printed[1]
    found = footprint.duplicates(str(tmp_path / "twice"))
    findings = duplicate_findings(found.files[0].copies)
    assert [finding.subject for finding in findings if finding.confidence.is_sure] == ["thing"]
    assert not any("only once" in finding.remedy for finding in findings)
    assert not any(one.is_one_build for one in found.linked_twice)


@pytest.mark.parametrize("use", ["mark", "sum"], ids=["constant", "function"])
def test_a_source_file_whose_addresses_are_told_apart_is_not_to_be_linked_only_once(tmp_path: Path, use: str) -> None:
    (tmp_path / "own.c").write_text(
        "static const int thing[64] = {1, 2, 3}, mark[64] = {7};\nint seen(const void *);\n"
        # A division sets rdx: where the address of a function is taken, rdx could be a second result.
        "static __attribute__((noinline)) int sum(int k) { return thing[k & 63] % (mark[k & 63] + 2); }\n"
        f"int called(int k);\nint called(int k) {{ return sum(k) + seen({use}); }}\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\nint first(int), second(int);\n"
        "int seen(const void *p) { static const void *known; return known ? known == p : (known = p, 0); }\n"
        'int main(int c, char **v) { (void)v; printf("%d %d\\n", first(c), second(c)); return 0; }\n'
    )
    subprocess.run(["gcc", "-g", "-O1", "-c", "own.c", "main.c"], cwd=tmp_path, check=True)
    for name in ("first", "second"):
        subprocess.run(["objcopy", f"--redefine-sym=called={name}", "own.o", f"{name}.o"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "main.o", "first.o", "second.o", "-o", "twice"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "main.o", "first.o", "-Wl,--defsym=second=first", "-o", "once"], cwd=tmp_path, check=True)
    printed = [subprocess.check_output([tmp_path / name]) for name in ("twice", "once")]
    assert printed[0] != printed[1]
    found = footprint.duplicates(str(tmp_path / "twice"))
    findings = duplicate_findings(found.files[0].copies)
    assert "thing" in [finding.subject for finding in findings if finding.confidence.is_sure]
    assert not any("only once" in finding.remedy for finding in findings)
    assert not any(one.is_one_build for one in found.linked_twice)


def test_what_a_compiler_makes_of_a_constructor_that_is_not_constexpr_can_be_inline(tmp_path: Path) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("clang++ is not installed")
    printed = []
    for declared in ("static", "inline"):
        (tmp_path / "things.h").write_text(
            f"struct S {{ int x[9]; S(int first) : x{{first, 2}} {{}} }};\n{declared} const S thing(100);\n"
        )
        for number in range(2):
            text = f'#include <stdio.h>\n#include "things.h"\nint use_{number}(int i) {{ return thing.x[i & 7]; }}\n'
            main = 'int use_1(int); int main(int i, char **) { printf("%d %d", use_0(i), use_1(i - 1)); }\n'
            (tmp_path / f"{number}.cc").write_text(text + (main if number == 0 else ""))
        words = ["clang++", "-std=c++17", "-g", "-O2", "0.cc", "1.cc", "-o", declared]
        subprocess.run(words, cwd=tmp_path, check=True)
        printed.append(subprocess.run([tmp_path / declared], capture_output=True, check=True).stdout)
    (before,), after = (footprint.duplicates(str(tmp_path / one)).files[0].copies for one in ("static", "inline"))
    assert [duplicate_finding.remedy for duplicate_finding in duplicate_findings([before])] == [f"{INLINE}{TYPE_TOO}"]
    assert (before.confidence, after) == (Confidence.PROOF, ())
    assert printed == [b"2 100", b"2 100"]


# A section that one variable aligns more leaves it open which of its variables are: these are a program of their own.
ALIGNED = """
typedef int word[8] __attribute__((aligned(U == 2 ? 64 : 4)));
DECLARED const int moved[8] __attribute__((aligned(32))) IS({3});
DECLARED const word thing IS({100, 2, 3});
DECLARED const int stated[8] __attribute__((aligned(U == 2 ? 4096 : 16))) IS({200, 2, 3});
"""
OF_ALIGNED = """
int below_a_page(const void *p);
int use_U(int i);
int use_U(int i) {
    return thing[i & 7] + stated[i & 7] + moved[i & 7]
        + (U == 2 ? below_a_page(thing) % 64 * 1000 + below_a_page(stated) * 100000 : 0);
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_one_in_place_of_copies_is_aligned_as_that_of_each_source_file(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    main = "int use_0(int i); int use_1(int i); int use_2(int i);\n"
    main += "int below_a_page(const void *p) { return (int)((unsigned long)p & 4095); }\n"
    main += 'int main(int i, char **v) { printf("%d %d %d", use_0(i), use_1(i), use_2(i)); return 0; }\n'

    def printed(name: str, declared: str, defined: str) -> str:
        (tmp_path / f"{name}.h").write_text(ALIGNED)
        for number in range(UNITS):
            text = f"#include <stdio.h>\n#define U {number}\n#define DECLARED {declared}\n"
            text += f"#define IS(...) {'= __VA_ARGS__' if declared == 'static' else ''}\n"
            text += f'#include "{name}.h"\n{OF_ALIGNED}'.replace("use_U", f"use_{number}")
            (tmp_path / f"{number}.c").write_text(text + (defined + main if number == 0 else ""))
        words = [compiler, "-g", "-O1", "-fPIC", *(f"{number}.c" for number in range(UNITS)), "-o", name]
        subprocess.run(words, cwd=tmp_path, check=True)
        return subprocess.run([tmp_path / name], capture_output=True, text=True, check=True).stdout

    before = printed("before", "static", "")
    found = {copy.name: copy for copy in footprint.duplicates(str(tmp_path / "before")).files[0].copies}
    # Debug information states the alignment of the variable, but not that of its type.
    assert found["stated"].confidence is Confidence.MEDIUM
    remedies = {one.subject: one.remedy for one in duplicate_findings(found.values())}
    alignments = {name: re.search(r"aligned to (\d+) bytes as one", remedy) for name, remedy in remedies.items()}
    assert alignments["thing"] is not None
    alignment = {"moved": 32, "thing": int(alignments["thing"][1]), "stated": 4096}
    contents = {"moved": "3", "thing": "100, 2, 3", "stated": "200, 2, 3"}
    defined = "".join(
        f"const int {name}[8] __attribute__((aligned({alignment[name]}))) = {{{values}}};\n"
        for name, values in contents.items()
    )
    assert printed("after", "extern", defined) == before


@pytest.mark.parametrize("caller_count", [0, 12])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("printed", "is_sure"), [('"%ld\\n", r.a', True), ('"%ld %p\\n", r.a, r.b', False)])
def test_a_second_result_is_read_where_the_format_of_a_call_names_it(
    tmp_path: Path, compiler: str, caller_count: int, printed: str, *, is_sure: bool
) -> None:
    """The second half of the structure is in rdx, where the third argument of `printf` is."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    returned = "#include <stdio.h>\ntypedef struct { long a; const void *b; } both;\n"
    (tmp_path / "thing.h").write_text(f"{returned}static const int thing[64] = {{1, 2, 3}};\n")
    for number in range(2):
        (tmp_path / f"{number}.c").write_text(
            f'#include "thing.h"\nboth use_{number}(long i) {{ return (both){{thing[i & 63], thing}}; }}\n'
        )
    callers, uses = "", ""
    for at in range(2):
        name = f"use_{at}"
        for number in range(caller_count):
            callee, name = name, f"caller_{number}_{at}"
            called = f"both r = {callee}(i); r.a += {number}; return r;"
            callers += f"__attribute__((noinline)) both {name}(long i) {{ {called} }}\n"
        uses += f"__attribute__((noinline)) void print_{at}(long i) {{ both r = {name}(i); printf({printed}); }}\n"
    main = "int main(int c, char **v) { print_0(c); print_1(c); }\n"
    (tmp_path / "main.c").write_text(f"{returned}both use_0(long), use_1(long);\n{callers}{uses}{main}")
    subprocess.run([compiler, "-g", "-O1", "0.c", "1.c", "main.c", "-o", "program"], cwd=tmp_path, check=True)
    (found,) = footprint.duplicates(str(tmp_path / "program")).files[0].copies
    assert found.confidence.is_sure == is_sure
