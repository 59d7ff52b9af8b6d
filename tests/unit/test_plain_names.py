"""The check of names sees a general word where its meaning is far."""

from pathlib import Path

import pytest

from shell.plain_names import general_names, unclear_names


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def read(found): pass", [(1, "found")]),
        ("def read(*, one): pass", [(1, "one")]),
        ("class Row:\n    own: int", [(2, "own")]),
        ("def read():\n    known = 1\n\n\n\n\n\n    return known", [(2, "known")]),
        ("def read():\n    known = 1\n\n\n\n    return known", []),
        ("def read():\n    told = 1\n    def text():\n\n\n\n\n        return told\n    return text", [(2, "told")]),
        ("def read():\n    a = [one for one in b]\n\n\n\n\n\n    return [one for one in a]", []),
        ("sorted(rows, key=lambda one: one.size)", []),
        ("def read(mapping): return mapping.held", []),
    ],
)
def test_a_general_word_is_seen_where_its_meaning_is_far(source: str, expected: list[tuple[int, str]]) -> None:
    assert general_names(source) == expected


def test_a_general_word_is_shown_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "shell").mkdir()
    (tmp_path / "shell" / "a.py").write_text("class Row:\n    own: int\n", encoding="utf-8")
    assert unclear_names(tmp_path) == ["shell/a.py:2: `own` is a general word: say what it is"]
