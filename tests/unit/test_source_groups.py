"""Groups of source files: files, folders, and components by rules."""

import pytest

from footprint.attribution.source_groups import NO_COMPONENT, SourceGroups, parse_components, parse_prefix_map
from footprint.elf.origins import ByteOrigin
from footprint.errors import UsageError

PATH = "/build/app/src/net/http/parser.c"


def test_a_source_file_belongs_to_itself_or_to_its_folder() -> None:
    assert SourceGroups("file").label("/build/app/src/../src/x.c") == "/build/app/src/x.c"
    assert SourceGroups("dir").label(PATH) == "/build/app/src/net/http"
    assert SourceGroups("dir").label("x.c") == "."


@pytest.mark.parametrize(
    ("pairs", "path", "label"),
    [
        (["/build/app="], PATH, "src/net/http/parser.c"),
        (["/build/app/="], PATH, "src/net/http/parser.c"),
        (["/build/app=/usr/src"], PATH, "/usr/src/src/net/http/parser.c"),
        # Only whole folders fit, and the first pair that does.
        (["/build/ap=x"], PATH, PATH),
        (["/build=first", "/build/app=second"], PATH, "first/app/src/net/http/parser.c"),
        (["/a=b=c"], "/a/x.c", "b=c/x.c"),
    ],
)
def test_a_prefix_map_replaces_the_beginning_of_a_path(pairs: list[str], path: str, label: str) -> None:
    assert SourceGroups("file", parse_prefix_map(pairs)).label(path) == label


@pytest.mark.parametrize("word", ["/build", "=x", ""])
def test_a_pair_needs_two_sides(word: str) -> None:
    with pytest.raises(UsageError, match="is not OLD=NEW"):
        parse_prefix_map([word])


def test_of_several_rules_the_longest_folder_counts() -> None:
    rules = parse_components({"components": {"src/net": "net", "src/net/http": "http", "src/": "rest"}}, "c.toml")
    groups = SourceGroups("component", (), rules)
    assert groups.label(PATH) == "http"
    assert groups.label("/build/app/src/net/x.c") == "net"
    assert groups.label("src/x.c") == "rest"
    assert groups.label("/build/app/mysrc/x.c") == NO_COMPONENT


def test_a_rule_that_begins_with_a_slash_fits_at_the_start_only() -> None:
    groups = SourceGroups("component", (), {"/usr/include": "system"})
    assert groups.label("/usr/include/c++/12/string") == "system"
    assert groups.label("/sysroot/usr/include/x.h") == NO_COMPONENT


@pytest.mark.parametrize(
    "document",
    [{}, {"components": {}}, {"components": []}, {"components": {"src": 1}}, {"components": {"/": "x"}}, {"x": 1}],
)
def test_a_file_of_rules_says_nothing_else(document: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"^c\.toml: "):
        parse_components(document, "c.toml")


def test_an_object_of_a_linker_map_has_the_group_of_its_folder() -> None:
    groups = SourceGroups("dir")
    assert groups.of(ByteOrigin(object="lib/net/http.o")) == "lib/net"
    assert groups.of(ByteOrigin(unit="/src/a.c")) == "/src"
    assert groups.of(ByteOrigin(cause="padding")) is None
    assert SourceGroups("file").of(ByteOrigin(object="libx.a", member="a.o")) == "libx.a(a.o)"
