"""Where the keys of a budget file stand."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.release.toml_lines import has_deep_key, key_lines

TEXT = """# [budgets]
at_processes = 10 # private_bytes = 3

[budgets]
private_bytes = { max = "24 MiB", max_increase = "2 %" }
"kernel_bytes" = 4
owners."lib x].so" = 3

[budgets.kinds]
'heap' = '''
library_count = 3
'''
"b\\u0073s" = 5
[libraries]
allow = [
  "libc.so.*", # mapped_bytes = 1
  "]", 'x"',
]
deny = []
[[waivers]]
budget = "a"
[[waivers]]
budget = "b"
"""


def test_each_table_and_key_has_the_line_on_which_it_begins() -> None:
    assert key_lines(TEXT) == {
        ("at_processes",): 2,
        ("budgets",): 4,
        ("budgets", "private_bytes"): 5,
        ("budgets", "kernel_bytes"): 6,
        ("budgets", "owners", "lib x].so"): 7,
        ("budgets", "kinds"): 9,
        ("budgets", "kinds", "heap"): 10,
        ("budgets", "kinds", "bss"): 13,
        ("libraries",): 14,
        ("libraries", "allow"): 15,
        ("libraries", "deny"): 19,
        ("waivers",): 20,
        ("waivers", "budget"): 21,
    }


def test_line_ends_of_windows_are_line_ends() -> None:
    assert key_lines("a = 1\r\n\r\n[b]\r\nc.d = 2\r\n") == {("a",): 1, ("b",): 3, ("b", "c", "d"): 4}


NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=6)
VALUES = st.sampled_from(
    ["1", '"#"', "'['", '"""\n]\n"""', "'''\n{'''", "[ 1, # ]\n[ 2 ] ]", '{ a = "}" }', "2026-01-01"]
)


@pytest.mark.parametrize("gap", ["", "\n# = [\n"])
@given(tables=st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3))
def test_every_key_of_any_text_is_found_where_it_was_written(gap: str, tables: dict[str, dict[str, str]]) -> None:
    text = ""
    expected: dict[tuple[str, ...], int] = {}
    for table, keys in tables.items():
        text += gap
        expected[table,] = text.count("\n") + 1
        text += f"[{quoted(table)}]\n"
        for key, value in keys.items():
            text += gap
            expected[table, key] = text.count("\n") + 1
            text += f" {quoted(key)} = {value}\n"
    assert tomllib.loads(text).keys() == tables.keys()
    assert key_lines(text) == expected


def quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("part", ["a", "'a'", '"a b"', "7-x", '""', r'"a\".b\\"'])
@pytest.mark.parametrize("gap", [".", " . ", "\t."])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_a_key_of_65_parts_is_deep_and_one_of_64_is_not(part: str, gap: str, form: str) -> None:
    for count, is_deep in ((64, False), (65, True)):
        text = form.format(gap.join([part] * count))
        tomllib.loads(text)
        assert has_deep_key(text) is is_deep


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, '"' * 1_000_000, "a." * 60 + " " * 900_000, "'a'.\n" * 200_000, r"\"" * 500_000]
)
def test_long_texts_without_deep_keys_are_looked_through_once(text: str) -> None:
    assert not has_deep_key(text)
