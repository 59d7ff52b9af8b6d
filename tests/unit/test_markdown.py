"""Markdown: what a bot writes below a change."""

import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import footprint
from footprint.formats.document import About, Document, Facts, Graph, GraphPoint, Heading, Paragraph, Table, Verdict
from footprint.formats.markdown import COMMENT_BYTES, markdown
from footprint.text.escape import printable
from footprint.verbs.audit.text import audit_document
from tests.hostile import HOSTILE

ABOUT = About("audit ./server", "1.2.3")
OUR_HTML = re.compile(r"<!-- footprint: [^<>]* -->|</?details>|<summary>.*</summary>|<!-- -->")


def tokens(text: str) -> list[Token]:
    """Read as GitHub does: CommonMark with tables and bare links."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)


def cells(text: str) -> list[str]:
    return [
        "".join(child.content for child in token.children or () if child.type != "html_inline")
        for token in tokens(text)
        if token.type == "inline" and token.level == 4
    ]


def test_the_marker_is_first_and_how_it_came_out_stands_before_the_tables() -> None:
    document: Document = (
        Heading("footprint audit: ./server"),
        Paragraph("Read from /proc."),
        Heading("One process holds"),
        Facts((("private memory", "12 KiB", "measured"), ("  swapped", "0 B", "measured"))),
        Heading("By owner"),
        Table(
            ("private", "kind", "owner"), (("8 KiB", "heap", "[heap]"),), frozenset({1}), (("12 KiB", "", "[total]"),)
        ),
        Verdict("One process costs 12 KiB."),
    )
    assert markdown(document, ABOUT) == (
        "<!-- footprint: audit ./server -->\n"
        "### footprint audit: ./server\n"
        "\n"
        "**One process costs 12 KiB.**\n"
        "\n"
        "- Read from /proc.\n"
        "\n"
        "<details>\n"
        "<summary>One process holds</summary>\n"
        "\n"
        "| what | figure | how it is known |\n"
        "|---|---:|---|\n"
        "| private memory | 12 KiB | measured |\n"
        "| &nbsp;&nbsp;swapped | 0 B | measured |\n"
        "\n"
        "</details>\n"
        "\n"
        "<details>\n"
        "<summary>By owner</summary>\n"
        "\n"
        "| private | kind | owner |\n"
        "|---:|---|---|\n"
        "| 8 KiB | heap | &#91;heap&#93; |\n"
        "| 12 KiB |  | &#91;total&#93; |\n"
        "\n"
        "</details>\n"
        "\n"
        "_Written by footprint 1.2.3._\n"
    )


def test_the_report_of_an_audit_is_tables_that_a_reader_of_markdown_finds() -> None:
    text = markdown(audit_document(footprint.audit("tests/corpus/smaps-python3.txt", count=100), top=5), ABOUT)
    found = cells(text)
    assert "private memory" in found
    assert "12.4 MiB" in found
    assert text.count("<details>") == text.count("</details>") > 3


def test_what_does_not_fit_into_a_comment_is_cut_from_the_longest_table_and_it_says_how_much() -> None:
    long = Table(("size", "name"), tuple((f"{number} B", "n" * 80) for number in range(2000)))
    short = Table(("size", "name"), (("1 B", "short"),))
    document: Document = (Heading("t"), Heading("long"), long, Heading("short"), short, Verdict("Done."))
    text = markdown(document, ABOUT)
    assert COMMENT_BYTES - 400 < len(text.encode()) <= COMMENT_BYTES
    assert "short" in cells(text)
    shown = sum(cell.endswith(" B") for cell in cells(text)) - 1
    cut = re.search(r"^_([0-9,]+) lines cut here: the text has reached its limit\._$", text, re.MULTILINE)
    assert cut is not None
    assert int(cut[1].replace(",", "")) == 2000 - shown
    assert text.endswith("</details>\n\n_Written by footprint 1.2.3._\n")
    assert len(markdown(document, ABOUT, 1 << 20)) > COMMENT_BYTES


def test_a_comment_of_very_many_sections_keeps_the_limit_and_says_how_many_are_left_out() -> None:
    document: Document = (Heading("t"), *(Heading("n" * 3000) for number in range(1000)), Verdict("Done."))
    text = markdown(document, ABOUT)
    assert len(text.encode()) <= COMMENT_BYTES
    assert f"\n_{1000 - text.count('<details>')} sections left out: the text has reached its limit._\n" in text


def test_a_graph_is_a_block_of_text() -> None:
    graph = Graph((GraphPoint(0, 10), GraphPoint(1, 4096, "#")), "`ms", "# is the peak")
    (block,) = [token for token in tokens(markdown((Heading("t"), graph), ABOUT)) if token.type == "fence"]
    assert "# is the peak" in block.content


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_is_shown_as_it_is_and_does_nothing(name: str) -> None:
    row = ("1 B", name, name)
    document: Document = (
        Heading(name),
        Paragraph(name),
        Heading(name),
        Table(("size", "kind", name), (row, row)),
        Facts(((name, name, name),)),
        Paragraph(f"before {name} behind"),
        Verdict(name),
    )
    text = markdown(document, About(name, "1"))
    first, rest = text.split("\n", 1)
    assert re.fullmatch(r"<!-- footprint: [A-Za-z0-9._/+=:,? -]{1,100} -->", first)
    assert text.replace("\n", "").isprintable()
    shown = printable(name if len(name) <= 300 else f"{name[:297]}...").strip()
    # The text of each cell is the name, and there are as many as there should be.
    found = [cell.replace("\xa0", "").strip() for cell in cells(text)]
    assert found[:9] == ["size", "kind", shown, "1 B", shown, shown, "1 B", shown, shown]
    # A column without any text is left out.
    facts = ["what", "figure", "detail", *3 * [shown]] if name else ["what", "figure", "", ""]
    assert found[9:] == facts
    for token in tokens(text):
        for child in [token, *(token.children or ())]:
            assert child.type not in {"link_open", "image", "code_inline", "fence", "code_block", "ordered_list_open"}
            if child.type in {"html_block", "html_inline"}:
                left = OUR_HTML.sub("", child.content).strip()
                assert "<" not in left, child.content
    # What GitHub and GitLab would make of the text that is left: mentions, references and links of their own.
    outside = re.sub(r"&#?\w+;", " ", rest)
    assert not re.search(r"[@#][A-Za-z0-9]|[a-z]://|www\.[a-z]|GH-[0-9]", outside)
