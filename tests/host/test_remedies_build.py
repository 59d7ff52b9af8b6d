"""Each kind of remedy, applied as it reads: the program is compiled, linked and run again, and saves what was promised.

A header that several source files include, in each language that a remedy is worded for; the files are compiled with
`-pedantic-errors`, so that a remedy that needs an extension or another standard does not pass.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import footprint
from footprint.elf.image import read_image
from footprint.findings.copies import CopiedVariable, Cost
from footprint.findings.variable_rules.duplicate_static import duplicate_findings
from footprint.model.finding import Confidence


@dataclass(frozen=True)
class Thing:
    """What a header defines, and how a source file uses it.

    Attributes:
        name: Its name.
        type: The type of it, or of its elements.
        bound: The bound of an array.
        contents: What it is initialised with.
        use: A statement of each source file.
        more: What the header has before it.
        opens: What stands before and behind it, such as a namespace.
        is_constexpr: Whether it is `constexpr`: the source files then need its contents when they are compiled.
        in_function: Whether it is a static of the function `get`.
    """

    name: str
    type: str
    bound: str
    contents: str
    use: str
    more: str = ""
    opens: tuple[str, str] = ("", "")
    is_constexpr: bool = False
    in_function: bool = False

    @property
    def declaration(self) -> str:
        """The declaration without `static`, and without the contents."""
        if self.is_constexpr:
            return f"constexpr {self.type} {self.name}{self.bound}"
        return f"const {self.type} {self.name}{self.bound}"

    @property
    def before(self) -> str:
        """What the header has."""
        defined = f"static {self.declaration} = {self.contents};"
        if self.in_function:
            return f"{self.more}static inline int get(int i) {{ {defined} return {self.name}[i & 31]; }}\n"
        return f"{self.more}{self.opens[0]}{defined}{self.opens[1]}\n"


# Compilers make one of two constants of a source file that have the same contents.
NUMBERS = "{9, 8, 7, 6, 5, 4, 3, 2, 1, 10, 11, 12, 13}"
TABLE = Thing("table", "int", "[32]", NUMBERS, "sum += table[i & 31];")
TEXT = Thing("text", "char", "[48]", '"a text that stands in the header, once"', "sum += text[i & 31];")
POINTERS = Thing("pointers", "char *const", "[6]", '{"red", "green", "blue"}', "sum += pointers[i & 1][i & 1];")
PAIRS = Thing(
    "pairs", "struct pair", "[8]", "{{1, 2}, {3, 4}}", "sum += pairs[i & 7].x;", "struct pair { int x, y; };\n"
)
LOCAL = Thing("local_table", "int", "[32]", NUMBERS.replace("9", "14"), "sum += get(i);", in_function=True)
OF_C = (TABLE, TEXT, POINTERS, PAIRS, LOCAL)
OF_CXX = (
    *OF_C,
    Thing(
        "known",
        "int",
        "[16]",
        "{1, 2, 4, 8}",
        'static_assert(known[2] == 4, ""); sum += known[i & 15] + Value<known[3]>::value;',
        is_constexpr=True,
    ),
    Thing(
        "unnamed", "int", "[16]", NUMBERS.replace("9", "15"), "sum += unnamed[i & 15];", opens=("namespace { ", " }")
    ),
    Thing(
        "spaced",
        "int",
        "[16]",
        NUMBERS.replace("9", "16"),
        "sum += ns::spaced[i & 15];",
        opens=("namespace ns { ", " }"),
    ),
)
OF_BOTH = (TABLE, TEXT, POINTERS, PAIRS)
VALUE = "template <int N> struct Value { static const int value = N; };\n"


@dataclass(frozen=True)
class Language:
    """The languages of the source files, and what the remedies say.

    Attributes:
        standards: For each source file its standard.
        things: What the header defines.
        remedy: What the remedy for a plain table says.
    """

    standards: tuple[str, ...]
    things: tuple[Thing, ...]
    remedy: str


EXTERN = "declare it `extern const` with its bound in the header, and define it in one source file that has a copy"
MEMBER = "make it a static member of a class template of its own in the header, and define it behind the class"
OF_TWO = EXTERN.replace("header,", 'header, within `extern "C"` for C++,')
LANGUAGES = {
    "C11": Language(("c11",) * 4, OF_C, EXTERN),
    "C++11": Language(("c++11",) * 4, OF_CXX, MEMBER),
    "C++14": Language(("c++14",) * 4, OF_CXX, MEMBER),
    "C++17": Language(("c++17",) * 4, OF_CXX, "declare it `inline` (C++17), without `static`"),
    "C11 and C++11": Language(("c11", "c++11") * 2, OF_BOTH, OF_TWO),
    "C11 and C++17": Language(("c11", "c++17") * 2, OF_BOTH, OF_TWO),
}
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}


@dataclass(frozen=True)
class Sources:
    """The text of a program: its header, what is defined in the first source file, and how things are named."""

    header: str
    defined: str
    names: dict[str, str]


def before(things: Sequence[Thing]) -> Sources:
    return Sources("".join(thing.before for thing in things), "", {})


def after(things: Sequence[Thing], remedies: dict[str, str]) -> Sources:
    """Apply to each thing its remedy, by its words."""
    header, defined, names = "", "", dict[str, str]()
    for thing in things:
        remedy = remedies.get(thing.name)
        if remedy is None:
            header += thing.before
            continue
        declaration, is_moved = thing.declaration, thing.in_function
        hidden = '__attribute__((visibility("hidden"))) ' if "hidden visibility" in remedy else ""
        opens = ("", "") if "out of the unnamed namespace" in remedy else thing.opens
        assert is_moved == ("move it out of the function that holds it" in remedy)
        if "declare it `inline`" in remedy:
            moved = f"inline {hidden}{declaration} = {thing.contents};"
        elif MEMBER in remedy:
            value = f" = {thing.contents}"
            inside, behind = (value, "") if thing.is_constexpr else ("", value)
            moved = f"template <class T> struct {hidden}of_{thing.name} {{ static {declaration}{inside}; }};\n"
            moved += (
                f"template <class T> {declaration.replace(thing.name, f'of_{thing.name}<T>::{thing.name}')}{behind};"
            )
            names[thing.name] = f"of_{thing.name}<void>::{thing.name}"
        else:
            assert "declare it `extern const` with its bound in the header" in remedy
            moved = f"extern {hidden}{declaration};"
            if 'within `extern "C"` for C++' in remedy:
                moved = f'#ifdef __cplusplus\nextern "C" {{\n#endif\n{moved}\n#ifdef __cplusplus\n}}\n#endif'
            defined += f"{declaration} = {thing.contents};\n"
        header += f"{thing.more}{opens[0]}{moved}{opens[1]}\n"
        if is_moved:
            used = names.get(thing.name, thing.name)
            header += f"static inline int get(int i) {{ return {used}[i & 31]; }}\n"
    return Sources(header, defined, names)


def build(folder: Path, compiler: str, language: Language, options: Sequence[str], sources: Sources) -> Path:
    """Compile each source file in its language, and link them."""
    folder.mkdir()
    (folder / "header.h").write_text(sources.header)
    objects = []
    for number, standard in enumerate(language.standards):
        is_cxx = standard.startswith("c++")
        linkage = 'extern "C" ' if is_cxx else ""
        uses = " ".join(thing.use for thing in language.things)
        for name, used in sources.names.items():
            uses = re.sub(rf"\b(?:ns::)?{name}\b", f"ns::{used}" if name == "spaced" else used, uses)
        text = f'#include "header.h"\n{VALUE if is_cxx else ""}{sources.defined if number == 0 else ""}'
        text += f"{linkage}int use_{number}(int i);\n"
        text += f"{linkage}int use_{number}(int i) {{ int sum = {number}; {uses} return sum; }}\n"
        name = f"unit_{number}.{'cc' if is_cxx else 'c'}"
        (folder / name).write_text(text)
        command = COMPILERS[compiler][is_cxx]
        words = [command, f"-std={standard}", "-pedantic-errors", "-Wall", *options, "-c", name, "-o", f"{number}.o"]
        subprocess.run(words, cwd=folder, check=True, timeout=60)
        objects.append(f"{number}.o")
    numbers = range(len(objects))
    declared = "".join(f"int use_{number}(int);\n" for number in numbers)
    calls = " ".join(f'printf("%d ", use_{number}(i));' for number in numbers)
    (folder / "main.c").write_text(
        f"#include <stdio.h>\n{declared}int main(void) {{ for (int i = 0; i < 40; i++) {{ {calls} }} return 0; }}\n"
    )
    subprocess.run([compiler, "-c", "main.c"], cwd=folder, check=True, timeout=60)
    if "-fPIC" in options:
        subprocess.run([COMPILERS[compiler][1], "-shared", *objects, "-o", "libunits.so"], cwd=folder, check=True)
        objects = ["-L.", "-lunits", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([COMPILERS[compiler][1], "main.o", *objects, "-o", "program"], cwd=folder, check=True, timeout=60)
    return folder / ("libunits.so" if "-fPIC" in options else "program")


def printed(path: Path) -> str:
    return subprocess.run([path.parent / "program"], capture_output=True, text=True, check=True, timeout=20).stdout


def copies_of(path: Path, things: Sequence[Thing]) -> dict[str, CopiedVariable]:
    """Return the copies by the name of the thing; all copies are of one."""
    found = {}
    for copy in footprint.duplicates(str(path)).files[0].copies:
        (name,) = [thing.name for thing in things if re.search(rf"(?<![a-z_]){thing.name}(?![a-z_])", copy.shown_name)]
        found[name] = copy
    return found


def sizes(path: Path) -> dict[str, int]:
    image = read_image(path.read_bytes(), str(path))
    return {section.name: section.size_bytes for section in image.sections if section.is_in_memory}


def grown(was: dict[str, int], now: dict[str, int], *names: str) -> int:
    """Return by how much sections grow together, whose names begin as some do."""
    sums = [sum(size for name, size in each.items() if name.startswith(names)) for each in (was, now)]
    return sums[1] - sums[0]


def tools(*names: str) -> None:
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", LANGUAGES)
def test_a_program_does_the_same_with_all_its_remedies_and_saves_what_they_promise(
    name: str, compiler: str, level: str, tmp_path: Path
) -> None:
    tools(*COMPILERS[compiler])
    language = LANGUAGES[name]
    options = ["-g", level, *(["-fmerge-constants"] if level == "-O0" else [])]
    was = build(tmp_path / "before", compiler, language, options, before(language.things))
    result = copies_of(was, language.things)
    assert {thing: one.confidence for thing, one in result.items()} == {
        thing.name: Confidence.PROOF for thing in language.things
    }
    assert {one.copy_count for one in result.values()} == {len(language.standards)}
    remedies = {thing: duplicate_findings([one])[0].remedy for thing, one in result.items()}
    if "C++" not in name or compiler == "gcc" or name.startswith("C11"):
        # clang does not state which C++ it is.
        assert remedies["table"].startswith(language.remedy)
    if "C++1" in name and remedies["table"].startswith("declare it `inline`"):
        options = [*options, "-Wno-c++17-extensions"] if compiler == "clang" else options
        language = Language(tuple("c++17" for _ in language.standards), language.things, language.remedy)
    now = build(tmp_path / "after", compiler, language, options, after(language.things, remedies))
    assert printed(now) == printed(was)
    assert copies_of(now, language.things) == {}
    promised = {cost: sum(one.waste.get(cost, 0) for one in result.values()) for cost in Cost}
    sections = sizes(was), sizes(now)
    assert -grown(*sections, ".data.rel.ro") >= promised[Cost.AT_START]
    # What the linker aligns may take a few bytes of it, or add some.
    assert -grown(*sections, ".rodata") >= promised[Cost.SHARED] - 32
    assert grown(*sections, ".text", ".eh_frame") < promised[Cost.SHARED] // 2
    assert grown(*sections, ".got", ".data", ".bss") <= 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["C11", "C++14", "C++17"])
def test_a_library_exports_no_more_with_the_remedies(name: str, compiler: str, tmp_path: Path) -> None:
    """Without the visibility each would take 8 bytes that the loader writes in every process, and a name to find it."""
    tools(*COMPILERS[compiler])
    language = LANGUAGES[name]
    options = ["-g", "-O2", "-fPIC"]
    was = build(tmp_path / "before", compiler, language, options, before(language.things))
    result = copies_of(was, language.things)
    remedies = {thing: duplicate_findings([one])[0].remedy for thing, one in result.items()}
    assert remedies.keys() == {thing.name for thing in language.things}
    assert all("with hidden visibility" in remedy for remedy in remedies.values())
    if remedies["table"].startswith("declare it `inline`"):
        language = Language(tuple("c++17" for _ in language.standards), language.things, language.remedy)
    now = build(tmp_path / "after", compiler, language, options, after(language.things, remedies))
    assert printed(now) == printed(was)
    assert copies_of(now, language.things) == {}
    sections = sizes(was), sizes(now)
    assert grown(*sections, ".got", ".rela.dyn", ".dynsym", ".dynstr") < 0
    promised = sum(one.waste_bytes for one in result.values())
    assert -grown(*sections, ".data.rel.ro", ".rodata") >= promised - 32


# zstd has such a constant, whose remedy made its text 640 bytes larger and saved 48.
FOLDED = """
typedef struct { void *(*take)(void *, unsigned long); void (*leave)(void *, void *); void *own; } memory;
MEMORY
void *outside(memory own, unsigned long size_bytes);
static inline void *take(memory own, unsigned long size_bytes) {
    if ((own.take == 0) != (own.leave == 0)) return 0;
    if (own.take) { void *p = own.take(own.own, size_bytes); for (int i = 0; i < 9; i++) ((char *)p)[i] = 1; return p; }
    return size_bytes > 9 ? outside(own, size_bytes) : 0;
}
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_remedy_that_costs_more_code_than_it_saves_asks_to_check_that(compiler: str, tmp_path: Path) -> None:
    tools(compiler)
    text = []
    for folder, declared, defined in (
        ("before", "static const memory nothing = {0, 0, 0};", ""),
        ("after", "extern const memory nothing;", "const memory nothing = {0, 0, 0};"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "memory.h").write_text(FOLDED.replace("MEMORY", declared))
        for number in range(3):
            calls = "".join(f"void *use_{number}_{at}(void) {{ return take(nothing, {at} + 5); }}\n" for at in range(9))
            more = "void *outside(memory own, unsigned long n) { return own.own ? own.own : (void *)n; }\n"
            main = "void *use_1_4(void), *use_2_5(void);\n"
            main += 'int main(void) { printf("%d", (int)(long)use_1_4() + (int)(long)use_2_5()); return 0; }\n'
            first = f"#include <stdio.h>\n{defined}\n{more}{main}" if number == 0 else ""
            (tmp_path / folder / f"{number}.c").write_text(f'#include "memory.h"\n{first}{calls}')
        names = ["0.c", "1.c", "2.c"]
        subprocess.run([compiler, "-g", "-O2", *names, "-o", "program"], cwd=tmp_path / folder, check=True)
        text.append(sizes(tmp_path / folder / "program"))
    (found,) = footprint.duplicates(str(tmp_path / "before" / "program")).files[0].copies
    assert grown(text[0], text[1], ".text") > found.waste_bytes
    assert found.confidence is Confidence.MEDIUM
    (finding,) = duplicate_findings([found])
    assert finding.remedy.startswith("make sure that the program does not grow by it; then declare it `extern const`")


@dataclass(frozen=True)
class Rest:
    """A header whose remedy has words of its own; `ns_N` is another name in each source file that includes it.

    Attributes:
        standard: The language.
        before: The header.
        use: What a source file adds up.
        remedy: How the remedy begins.
        after: The header with the remedy.
        defined: What the remedy adds to one source file.
        name: The name of the thing.
        is_same: Whether the program does the same with it: where it is written, the remedy says what to check.
        is_left_in_rdx: Whether optimised code has the address left in rdx where it returns from a function that nothing
            calls, as `main` has it inlined: that may be the second half of a structure that a caller takes.
    """

    standard: str
    before: str
    use: str
    remedy: str
    after: str
    defined: str = ""
    name: str = "table"
    is_same: bool = True
    is_left_in_rdx: bool = False


SPACES = f"namespace ns_N {{ static const int table[13] = {NUMBERS}; }}\n"
INSTANCES = f"template <class T> int at(int i) {{ static const int table[13] = {NUMBERS}; return table[i % 13]; }}\n"
OF_INSTANCES = "template <class T> int at(int i) { return "
OWN_MEMBER = (
    "template <class T> struct of_table { static const int table[13]; };\n"
    f"template <class T> const int of_table<T>::table[13] = {NUMBERS};\n"
)
INLINE_TABLE = f"inline const int table[13] = {NUMBERS};\n"
WRITTEN = "static int table[4] = {1, 2};\n"
NEXT = "{ static int table[4] = {1, 2}; return ++table[i & 3]; }\n"
RESTS = {
    "namespaces of C++17": Rest(
        "c++17",
        SPACES,
        "ns_N::table[i % 13]",
        "move it to one namespace that all of them use, and declare it `inline` (C++17), without `static`",
        f"namespace ns {{ {INLINE_TABLE} }} namespace ns_N {{ using ns::table; }}\n",
    ),
    "namespaces of C++14": Rest(
        "c++14",
        SPACES,
        "ns_N::table[i % 13]",
        f"move it to one namespace that all of them use, and {MEMBER} (C++14 has no inline variables)",
        f"namespace ns {{ {OWN_MEMBER} }}\n"
        "namespace ns_N { using ns::of_table; }\n#define table of_table<void>::table\n",
    ),
    "instances of a template of C++17": Rest(
        "c++17",
        INSTANCES,
        "at<int>(i) + at<long>(i + 1)",
        "take it out of the template, and declare it `inline` (C++17)",
        f"{INLINE_TABLE}{OF_INSTANCES}table[i % 13]; }}\n",
        is_left_in_rdx=True,
    ),
    "instances of a template of C++11": Rest(
        "c++11",
        INSTANCES,
        "at<int>(i) + at<long>(i + 1)",
        f"take it out of the template, and {MEMBER} (C++11 has no inline variables)",
        f"{OWN_MEMBER}{OF_INSTANCES}of_table<void>::table[i % 13]; }}\n",
        is_left_in_rdx=True,
    ),
    "what C writes": Rest(
        "c11",
        WRITTEN,
        "++table[i & 3]",
        f"{EXTERN.replace(' const', '')}; all then share one",
        "extern int table[4];\n",
        "int table[4] = {1, 2};\n",
        is_same=False,
    ),
    "what C++14 writes": Rest(
        "c++14",
        WRITTEN,
        "++table[i & 3]",
        f"{EXTERN.replace(' const', '')} (C++14 has no inline variables); all then share one",
        "extern int table[4];\n",
        "int table[4] = {1, 2};\n",
        is_same=False,
    ),
    "what C++17 writes": Rest(
        "c++17",
        WRITTEN,
        "++table[i & 3]",
        "declare it `inline` (C++17), without `static`; all then share one",
        "inline int table[4] = {1, 2};\n",
        is_same=False,
    ),
    "what a function of C writes": Rest(
        "c11",
        f"static inline int next(int i) {NEXT}",
        "next(i)",
        "define the function that holds it in one source file, and only declare it in the header; all then share one",
        "int next(int i);\n",
        f"int next(int i) {NEXT}",
        is_same=False,
    ),
    "what a function of C++ writes": Rest(
        "c++14",
        f"static inline int next(int i) {NEXT}",
        "next(i)",
        "make the function that holds it `inline`, without `static`, and all share one; all then share one",
        f"inline int next(int i) {NEXT}",
        is_same=False,
    ),
    "what a function of a namespace without a name writes": Rest(
        "c++14",
        f"namespace {{ int next(int i) {NEXT} }}",
        "next(i)",
        "take the function that holds it out of the unnamed namespace, and make it `inline`; all then share one",
        f"inline int next(int i) {NEXT}",
        is_same=False,
    ),
}


def leaves_a_table_in_rdx(program: Path) -> bool:
    """Return whether `use_0` ends with the address of a table in %rdx, a register of results: gcc 16 takes another."""
    command = ["objdump", "-d", "--no-show-raw-insn", "--disassemble=_Z5use_0i", str(program)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    written = re.findall(r"(\w+) +(?:.*,)?%[re]dx(?: +# .*<(.*)>)?$", text, re.MULTILINE)
    return written[-1][0] == "lea" and "table" in written[-1][1]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", RESTS)
def test_a_remedy_with_words_of_its_own_compiles_and_leaves_one(name: str, level: str, tmp_path: Path) -> None:
    tools("gcc", "g++")
    rest = RESTS[name]
    command, suffix = ("gcc", "c") if rest.standard == "c11" else ("g++", "cc")

    def built(folder: Path, header: str, defined: str) -> Path:
        folder.mkdir()
        (folder / "header.h").write_text(header)
        for number in range(3):
            text = (
                f'#define ns_N ns_{number}\n#include <stdio.h>\n#include "header.h"\n{defined if number == 0 else ""}'
            )
            text += f"int use_{number}(int i);\nint use_{number}(int i) {{ return {rest.use}; }}\n"
            main = "int use_1(int), use_2(int);\nint main(void) { for (int i = 0; i < 9; i++) "
            main += 'printf("%d ", use_0(i) + 100 * use_1(i) + 10000 * use_2(i)); return 0; }\n'
            (folder / f"{number}.{suffix}").write_text(text + (main if number == 0 else ""))
        words = [command, f"-std={rest.standard}", "-pedantic-errors", "-g", level]
        sources = [f"{number}.{suffix}" for number in range(3)]
        subprocess.run([*words, *sources, "-o", "program"], cwd=folder, check=True, timeout=60)
        return folder / "program"

    was = built(tmp_path / "before", rest.before, "")
    (found,) = footprint.duplicates(str(was)).files[0].copies
    (finding,) = duplicate_findings([found])
    is_checked = rest.is_left_in_rdx and level == "-O2" and leaves_a_table_in_rdx(was)
    if is_checked:
        assert found.objection is not None
        assert found.objection.reason.startswith("in use_0(int)+0x")
    checked = "make sure that nothing compares its address; then " if is_checked else ""
    assert finding.remedy.startswith(f"{checked}{rest.remedy}")
    assert finding.confidence is (Confidence.PROOF if rest.is_same and not is_checked else Confidence.MEDIUM)
    now = built(tmp_path / "after", rest.after, rest.defined)
    assert footprint.duplicates(str(now)).files[0].copies == ()
    assert (printed(now) == printed(was)) == rest.is_same
