"""Linker names as people read them, and names made to be endless, which are shown as they are."""

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pycxxfilt
import pytest

from footprint.elf.names import (
    Language,
    foreign_names,
    function_of_static,
    is_tame,
    learn_names,
    normalised,
    shown_name,
    source_name,
    split_suffixes,
)
from tests.workcount import assert_linear

ROOT = Path(__file__).resolve().parents[2]
CHILD_MEMORY_BYTES = 256 << 20
CHILD_SECONDS = 60
# Of both manglings; C++ uses the first 36, in capitals.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

# --- names that are shown otherwise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_ZN7classadL12NULL_XACTIONE", "classad::NULL_XACTION"),
        ("_ZZ15priv_identifierE2id", "priv_identifier::id"),
        ("_ZZ3fooiE5cache", "foo(int)::cache"),
        ("_ZGVZ3foovE5cache", "guard variable for foo()::cache"),
        ("_ZTVN7classad8ExprTreeE", "vtable for classad::ExprTree"),
        ("_ZSt4cout", "std::cout"),
        ("_ZNSt3__16vectorIiE5emptyEv", "std::__1::vector<int>::empty()"),
    ],
)
def test_a_cpp_name_is_shown_as_the_source_has_it(name: str, shown: str) -> None:
    assert shown_name(name) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_RNvC1a1b", "a::b"),
        ("_RNvCs5qmp9ygPvtJ_4demo7COUNTER", "demo::COUNTER"),
        ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
        ("_RNvNtCsjrHSEGnQ3l9_3std5alloc4HOOK", "std::alloc::HOOK"),
        ("_RNvCskKIHGkbw4el_11tracing_log9INFO_META", "tracing_log::INFO_META"),
        ("_RINvC1a1fTlhEE", "a::f::<(i32, u8)>"),
    ],
)
def test_a_rust_name_is_shown_as_the_source_has_it(name: str, shown: str) -> None:
    assert shown_name(name) == shown


@pytest.mark.parametrize(
    "suffix",
    [
        *(".0", ".123", ".cold", ".constprop.0", ".isra.0.constprop.1", ".part.0.cold", ".lto_priv.3", ".llvm.15"),
        *("@@GLIBCXX_3.4", "@GLIBC_2.2.5"),
    ],
)
def test_what_compilers_and_linkers_put_behind_a_name_stays_there(suffix: str) -> None:
    assert shown_name("_ZN3app5cacheE" + suffix) == "app::cache" + suffix
    assert shown_name("_RNvC3app5cache" + suffix) == "app::cache" + suffix


def old_rust(*parts: str, crate_hash: str = "05af221e174051e9") -> str:
    """Write a name as compilers of Rust before 1.95 did: one of C++, its last part a hash."""
    return f"_ZN{''.join(f'{len(part)}{part}' for part in (*parts, f'h{crate_hash}'))}E"


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (["app", "COUNT"], "app::COUNT"),
        (["app", "main", "_$u7b$$u7b$closure$u7d$$u7d$", "TABLE"], "app::main::{{closure}}::TABLE"),
        (["_$LT$app..T$u20$as$u20$core..X$LT$T$GT$$GT$", "VAL"], "<app::T as core::X<T>>::VAL"),
        (["x$SP$$BP$$RF$$LP$$C$$RP$"], "x@*&(,)"),
        (["app", "$u1b$[31m"], "app::$u1b$[31m"),
        (["app", "$u110000$"], "app::$u110000$"),
        (["app", "$XY$a$b.c"], "app::$XY$a$b.c"),
    ],
)
def test_a_name_of_older_rust_is_shown_without_hash_and_escapes(parts: list[str], shown: str) -> None:
    assert shown_name(old_rust(*parts)) == shown
    assert shown_name(old_rust(*parts) + ".llvm.1234") == shown + ".llvm.1234"


def test_a_name_of_older_rust_that_was_demangled_as_one_of_cpp_is_shown_alike() -> None:
    # As heaptrack writes it.
    name = "_$LT$T$u20$as$u20$alloc..slice..hack..ConvertVec$GT$::to_vec::h95811b21c5f239d6"
    assert shown_name(name) == "<T as alloc::slice::hack::ConvertVec>::to_vec"
    assert shown_name("app::load::hb5ed669fb4ff0f66") == "app::load"
    assert shown_name("app::h0000000000000001") == "app::h0000000000000001"


def test_what_only_looks_like_a_name_of_older_rust_is_one_of_cpp() -> None:
    few_digits = old_rust("app", "a$LT$b", crate_hash="0000000000000001")
    assert shown_name(few_digits) == "app::a$LT$b::h0000000000000001"
    assert shown_name(old_rust("app", "f") + "v") == "app::f::h05af221e174051e9()"


# --- names in their parts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "stem", "suffixes"),
    [
        ("table", "table", ()),
        ("calls.0", "calls", (".0",)),
        ("calls.1234.lto_priv.0.lto_priv.5", "calls", (".1234", ".lto_priv.0", ".lto_priv.5")),
        ("parse.isra.0.constprop.1.part.2.cold", "parse", (".isra.0", ".constprop.1", ".part.2", ".cold")),
        ("parse.cold.3", "parse", (".cold.3",)),
        ("main.localalias", "main", (".localalias",)),
        ("main.localalias.4", "main", (".localalias.4",)),
        ("pool.llvm.12345678901234567890", "pool", (".llvm.12345678901234567890",)),
        ("pool.__uniq.98765", "pool", (".__uniq.98765",)),
        ("environ@@GLIBC_2.2.5", "environ", ("@@GLIBC_2.2.5",)),
        ("sys_siglist@GLIBC_2.3.3", "sys_siglist", ("@GLIBC_2.3.3",)),
        ("x.0@@V.1", "x", (".0", "@@V.1")),
        ("_ZL5cache.lto_priv.0", "_ZL5cache", (".lto_priv.0",)),
        ("_ZN12_GLOBAL__N_18anon_regE.0", "_ZN12_GLOBAL__N_18anon_regE", (".0",)),
        ("_ZN3app3runEv.resume", "_ZN3app3runEv", (".resume",)),
    ],
)
def test_what_was_put_behind_a_name_is_split_off(name: str, stem: str, suffixes: tuple[str, ...]) -> None:
    assert split_suffixes(name) == (stem, suffixes)
    assert normalised(name) == stem


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".0", "@", "@x", "x.", "x..0", ".LC0", "use_a.x", "f.part", "f.isra", "f.lto_priv.x"),
        *("a.b.c", "x.-1", "x.\u0660", "_ZN3a..3bE", "_ZN2a..17h0123456789abcdefE"),
    ],
)
def test_a_name_without_suffix_stays_whole(name: str) -> None:
    assert split_suffixes(name) == (name, ())


def test_a_static_of_a_function_keeps_the_name_that_clang_gives_it() -> None:
    assert normalised("use_a.x") != normalised("use_b.x")
    assert normalised("use_a.x.0.llvm.7") == "use_a.x"


def test_a_name_that_begins_with_a_dot_keeps_it() -> None:
    assert split_suffixes(".str.5") == (".str", (".5",))


# --- names that only tools can read -----------------------------------------------------------------------------------


def test_names_of_d_and_swift_are_told_from_all_others() -> None:
    names = ["_D3app5cachei", "$s3app5cacheSivp", "_$s3app5cacheSivp", "_T03app5cacheSiv", "_D3app5cachei"]
    others = ["_D", "_DYNAMIC", "_Dx", "x_D3app", "$d", "$x", "$d.1", "_T", "_ZN3appE", "_RNvC1a1b", "i", "", "_D3 x"]
    assert foreign_names([*others, *names, *others]) == {Language.D: names[:1], Language.SWIFT: names[1:4]}
    assert foreign_names(others) == {}


def test_what_was_learned_of_a_name_is_shown_and_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.names._learned", {})
    assert shown_name("_D3app5cachei") == "_D3app5cachei"
    learn_names({"_D3app5cachei": "app.cache", "_D3app5tablei": "app.table" * 10_000})
    assert shown_name("_D3app5cachei") == "app.cache"
    assert shown_name("_D3app5tablei") == "_D3app5tablei"
    assert foreign_names(["_D3app5cachei", "_D3app5tablei"]) == {}


# --- names that are shown as they are ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        # Names of C, also those that are the code of a type.
        *("i", "d", "v", "main", "counter", "answer.0", "environ@@GLIBC_2.2.5", "St3foo", "R", "Z", "", "$d", ".LC0"),
        # What only begins like a mangled name.
        *("_Z", "_R", "_Zone", "_Reply", "_ZN", "_Z99x", "_ZN3foo", "_RNvC", "_Z1f\x1b[31m"),
        # Mangled names beyond ASCII.
        *("_ZN5caf\udce9E", "_ZN5caf\xe9E", "_RNvC1a2\U0001f600"),
        # Names of other manglings.
        *("__ZN3app5cacheE", "?cache@app@@3HA", "$s3app5cacheSivp", "_D3app5cachei"),
        # Names of Rust that refer to themselves, or ahead.
        *("_RNvB_1a", "_RNvB0_1a", "_RINvC1a1fB3_E", "_RINvC1a1fTB7_EE", "_RNvNvC1a" + "GGGG" + "B1_1a", "_RIC1aKB3_E"),
        # A name that is too long to be read.
        f"_ZN1a10000{'b' * 10_000}E",
    ],
    ids=lambda name: name[:20] or "empty",
)
def test_what_is_no_mangled_name_that_can_be_read_is_shown_as_it_is(name: str) -> None:
    assert shown_name(name) == name


# --- names that are made to be endless --------------------------------------------------------------------------------


def numbered(number: int, base: int) -> str:
    """Write a number as both manglings do: the first is `_`, the second `0_`, and so on in base 36 or 62."""
    text, rest = "_", number - 1
    while rest >= 0:
        text, rest = DIGITS[rest % base] + text, rest // base or -1
    return text


def nested_cpp_references(levels: int, innermost: str = "1a", zeros: str = "") -> str:
    """Write a function of a pointer to a function that takes and returns the same pointer, and so on: 2^levels."""
    # Each level makes two substitutions, the function type and the pointer to it.
    numbers = (numbered(2 * level, 36).upper() for level in range(1, levels))
    references = ("S_E", *(f"S{zeros}{number}E" for number in numbers))
    return f"_Z1f{'PF' * levels}{innermost}{''.join(references)}"


def nested_rust_references(levels: int, innermost: str = "NtC1a1b", zeros: str = "") -> str:
    """Write a function generic in a pair of the same pair, and so on: 2^levels."""
    head = "INvC1a1f"
    references = (f"B{zeros}{numbered(len(head) + level, 62)}E" for level in range(levels, 0, -1))
    return f"_R{head}{'T' * levels}{innermost}{''.join(references)}E"


def nested_cpp_packs(count: int, depth: int, expansion: str = "Dp{}") -> str:
    """Write a function of A<B<...>, ...>, expanded for every one of so many types at each level: count^depth."""
    types, inner = f"J{'i' * count}E", ""
    for level, number in reversed([*enumerate(["", *map(str, range(depth - 1))])]):
        inner = expansion.format(f"1{'ABCDEFGH'[level]}IT{number}_{inner}E")
    return f"_Z1fI{types * depth}Ev1ZI{inner}E"


# A pack is expanded as a list of types, as a list of values (here of sizeof), or by a fold.
EXPANSIONS = {"types": "Dp{}", "values": "Xspst{}E", "left fold": "Xflplst{}E", "right fold": "Xfrplst{}E"}
with_each_expansion = pytest.mark.parametrize("expansion", EXPANSIONS.values(), ids=EXPANSIONS)


def rust_lifetimes(count: int, lifetimes: int) -> str:
    """Write a tuple of so many `for<'a, 'b, ...> fn()`: each costs 5 or 6 bytes, and shows hundreds or thousands."""
    return f"T{f'FG{numbered(lifetimes - 1, 62)}Eu' * count}E"


def demangled(name: str) -> str:
    """Return what the demangler makes of a name, however long."""
    return pycxxfilt.demangle(name) or ""


def shown_in_child(*names: str) -> list[str]:
    """Show names in a process of its own, whose memory is bounded: what goes wrong there ends no test but this one."""
    code = (
        "import json, resource, sys;"
        f"resource.setrlimit(resource.RLIMIT_AS, ({CHILD_MEMORY_BYTES}, {CHILD_MEMORY_BYTES}));"
        "from footprint.elf.names import shown_name;"
        "print(json.dumps([shown_name(name) for name in json.load(sys.stdin)]))"
    )
    command, given = [sys.executable, "-c", code], json.dumps(names)
    try:
        run = subprocess.run(
            command, cwd=ROOT, input=given, capture_output=True, text=True, timeout=CHILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"it takes longer than {CHILD_SECONDS} seconds")
    assert run.returncode == 0, f"the process ended with {run.returncode}: {run.stderr[-300:]}"
    shown: list[str] = json.loads(run.stdout)
    return shown


@pytest.mark.parametrize("zeros", ["", "0000000"])
@pytest.mark.parametrize("nested", [nested_cpp_references, nested_rust_references])
def test_nested_references_double_a_name_at_each_level(nested: Callable[..., str], zeros: str) -> None:
    lengths = [len(demangled(nested(levels, zeros=zeros))) for levels in range(3, 9)]
    assert all(1.8 * shorter < longer < 2.5 * shorter for shorter, longer in pairwise(lengths))


@with_each_expansion
def test_nested_packs_multiply_a_name(expansion: str) -> None:
    found = demangled(nested_cpp_packs(5, 3, expansion))
    assert (found.count("A<"), found.count("B<"), found.count("C<")) == (5, 5 * 5, 5 * 5 * 5)


def test_few_bytes_of_a_rust_name_show_many_lifetimes() -> None:
    assert demangled(f"_RINvC1a1f{rust_lifetimes(3, 4)}E").count("for<'a, 'b, 'c, 'd> fn()") == 3


ENDLESS = {
    f"{levels} levels, {language}{', zeros' if zeros else ''}": nested(levels, zeros=zeros)
    for language, nested in (("C++", nested_cpp_references), ("Rust", nested_rust_references))
    for levels in (16, 30, 200)
    for zeros in ("", "0000000")
}
ENDLESS |= {
    "12 levels of a long name, C++": nested_cpp_references(12, f"7000{'a' * 7000}"),
    "12 levels of a long name, Rust": nested_rust_references(12, f"NtC1a7000{'b' * 7000}"),
}
ENDLESS |= {
    f"{count} to the power of {depth} {what}": nested_cpp_packs(count, depth, expansion)
    for what, expansion in EXPANSIONS.items()
    for count, depth in ((300, 3), (2000, 3), (900, 6))
}
ENDLESS |= {
    f"{levels} levels of {count} times {lifetimes} lifetimes": nested_rust_references(
        levels, rust_lifetimes(count, lifetimes)
    )
    for levels, count, lifetimes in ((8, 300, 1000), (12, 300, 1000), (11, 300, 63))
}


@pytest.mark.parametrize("name", ENDLESS.values(), ids=ENDLESS)
def test_a_short_name_that_shows_a_very_long_one_is_shown_as_it_is(name: str) -> None:
    assert len(name) < 8192
    assert shown_in_child(name) == [name]


@pytest.mark.parametrize("nested", [nested_cpp_references, nested_rust_references])
def test_the_bound_lets_few_nested_references_pass_and_no_more(nested: Callable[..., str]) -> None:
    tame = [levels for levels in range(1, 40) if is_tame(nested(levels))]
    assert tame == [*range(1, len(tame) + 1)]
    assert 5 <= len(tame) <= 20
    assert len(demangled(nested(len(tame)))) < 1 << 22


@pytest.mark.parametrize(
    "name",
    [
        # Many references to the same few places make a name long, not endless.
        f"_Z1fN3app6StringE{'S0_' * 40}",
        f"_RINvC3app1fTNtB2_6String{'Ba_' * 40}EE",
        "_RNvNCNKNvC1a5STATE0s_023___RUST_STD_INTERNAL_VAL",
        "_RNvNtCslygSmFDqLDp_15rustc_lint_defs7builtin30EXPLICIT_BUILTIN_CFGS_IN_FLAGS",
    ],
)
def test_a_long_name_of_plain_references_is_tame(name: str) -> None:
    assert is_tame(name)
    assert shown_name(name) != name


@pytest.mark.parametrize("part", ["P", "1AI", "PFv", "N", "Z", "Xng", "1AIXad", "DTcl", "T", "S", "K", "FG"])
def test_a_name_nested_as_deeply_as_its_length_allows_ends_no_process(part: str) -> None:
    names = [f"{head}{part * (8000 // len(part))}i{end}" for head in ("_Z1f", "_RINvC1a1f") for end in ("", "E" * 180)]
    shown = shown_in_child(*names)
    assert all(each == name or each.startswith("f(") for each, name in zip(shown, names, strict=True))


@pytest.mark.parametrize(
    ("start", "part", "end"),
    [
        *(("_Z", ".a", "!"), ("_Z", ".1", "!"), ("_Z", "T0", "")),
        *(("_R", "S", ""), ("_R", "B", ""), ("_R", "G", "")),
    ],
)
def test_the_work_to_look_at_a_name_does_not_grow_with_the_square_of_its_length(
    start: str, part: str, end: str
) -> None:
    assert_linear(
        lambda size: start + part * (size // len(part)) + end, lambda name: (shown_name(name), normalised(name)), 2000
    )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("_ZZ1fvE1x", "_Z1fv"),
        ("_ZZL1fvE1x", "_ZL1fv"),
        ("_ZZ4mainE5table", "main"),
        ("_ZZ4mainE5table_0", "main"),
        ("_ZZN4ShopILi0EE3useEiE5calls", "_ZN4ShopILi0EE3useEi"),
        ("_ZZN5aria26base646decodeIPKcEESsT_S2_E11INDEX_TABLE", "_ZN5aria26base646decodeIPKcEESsT_S2_"),
        ("_ZZZ4mainENKUlvE_clEvE1x", "_ZZ4mainENKUlvE_clEv"),
        ("_ZZ1fvE4nameB5cxx11", "_Z1fv"),
        ("_ZZ1fvE1x.lto_priv.0", "_Z1fv"),
        ("_ZL5table", None),
        ("table.0", None),
        ("_ZZ", None),
    ],
)
def test_the_name_of_a_static_of_cxx_contains_its_function(name: str, function: str | None) -> None:
    assert function_of_static(name) == function


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("_ZN1AIPKcE5tableE", "table"),
        ("_ZN1AIN1B1CIjEEE5tableE", "table"),
        ("_ZN1AIPFvvEE5tableE", "table"),
        ("_ZZN1AILb1EElsEiE5table", "table"),  # in A<true>::operator<<(int)
        ("_ZZNK1AltERKS_E1x", "x"),  # in A::operator<
        ("_ZZ4mainENKUlvE_clEvE1x", "x"),  # in a lambda of main
        ("_ZZ1fB5cxx11vE5tableB5cxx11", "table"),
        ("_ZGVZN1AlsEiE1x", "x"),
    ],
)
def test_a_variable_has_its_name_in_the_source_whatever_holds_it(name: str, source: str) -> None:
    assert source_name(name) == source


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("_ZL5table", "table"),
        ("_ZL5table.lto_priv.3", "table"),
        ("_ZN2nsL5tableE", "table"),
        ("_ZN2ns12_GLOBAL__N_15tableE", "table"),
        ("_ZN5outer5inner5tableE", "table"),
        ("_ZN1AIiE5tableE", "_ZN1AIiE5tableE"),  # of a template
        ("_Z5tablev", "_Z5tablev"),  # a function
        ("_ZN2ns12_GLOBAL__N_1E", "_ZN2ns12_GLOBAL__N_1E"),
        ("_ZN2ns9tableE", "_ZN2ns9tableE"),  # damaged: a length beyond the end
        ("_ZN2ns5table", "_ZN2ns5table"),
        ("_Z3a", "_Z3a"),
        ("_ZN", "_ZN"),
    ],
)
def test_a_plain_name_needs_no_demangler(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.names._demangled", str)
    source_name.cache_clear()
    assert source_name(name) == source
    source_name.cache_clear()
