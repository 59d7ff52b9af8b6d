"""What the documentation shows is true: its code runs, its links lead somewhere, and nothing is missing from it."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import footprint
from shell import generate, reference
from tests.docpages import GUIDES, PAGES, ROOT, blocks, commands


def _runnable(command: str) -> str:
    return command.replace("footprint ", f"{shlex.quote(sys.executable)} -m footprint ")


def test_the_documentation_shows_every_verb() -> None:
    shown = " ".join(command for _, command in commands())
    for verb in (
        "audit",
        "run",
        "whatif",
        "symbols",
        "libraries",
        "heap",
        "trend",
        "capture",
        "scan",
        "watch",
        "doctor",
    ):
        assert f"footprint {verb} " in shown


@pytest.mark.parametrize(("page", "code"), list(blocks("python")))
def test_every_example_of_the_library_runs(page: str, code: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, (page, done.stderr.decode())
    for line, expected in re.findall(r"^(.*)  # (.+)$", code, re.MULTILINE):
        assert expected in done.stdout.decode(), line


def test_every_note_is_explained_and_every_explained_note_exists() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "footprint").rglob("*.py"))
    used = set(re.findall(r'Note\(\s*"([a-z-]+)"', sources))
    explained = set(re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "docs" / "notes.md").read_text(), re.MULTILINE))
    assert used == explained


def test_every_public_name_of_the_package_is_there() -> None:
    for name in footprint.__all__:
        assert getattr(footprint, name) is not None


def test_the_verb_audit_stays_a_function_after_its_package_was_imported() -> None:
    code = "import footprint.verbs.audit.call, footprint; print(callable(footprint.audit))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"True\n"


def test_a_how_to_page_shows_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "how-to" / "embedded.md").read_text()
    example = re.compile(r"^```console\n\$ (footprint audit .*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    command, shown = next((command, shown) for command, shown in example.findall(page) if shown)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", _runnable(command)], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == shown


def test_links_between_the_pages_lead_somewhere() -> None:
    written = {f"reference/{name}" for name in reference.texts()}  # by `make docs`
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert target in written or (page.parent / target).exists(), (page.name, target)


def test_the_links_of_the_readme_work_on_the_package_index_too() -> None:
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    raw = address.replace("github.com", "raw.githubusercontent.com")
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()):
        path = link.removeprefix(f"{address}/blob/main/").removeprefix(f"{raw}/main/")
        assert path != link, link
        assert (ROOT / path).exists(), link


def test_the_readme_fits_a_screen_and_a_picture() -> None:
    assert (ROOT / "README.md").read_text().count("\n") <= 60


def test_the_changelog_and_the_package_of_debian_have_a_section_for_this_version() -> None:
    """A release shows its section as its notes."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    released = re.search(rf"^## \[{re.escape(footprint.__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert released
    assert changelog.index("## [Unreleased]") < released.start()
    debian = (ROOT / "packaging" / "debian" / "changelog").read_text()
    assert debian.startswith(f"footprint-audit ({footprint.__version__}) ")


def test_the_readme_claims_no_more_than_what_was_measured() -> None:
    claims = re.compile(
        r"within (\d+) % of what a memory cgroup is charged for\s+a started copy, (\d+) % for a forked worker"
    )
    figures_of = {
        claim.groups()
        for page in ("README.md", "docs/commands.md")
        for claim in claims.finditer((ROOT / page).read_text())
    }
    assert len(figures_of) == 1
    started_percent, forked_percent = map(float, figures_of.pop())
    measured = (ROOT / "docs" / "how-it-works.md").read_text().split("## How near it comes")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in measured.splitlines() if re.search(r"[\d.] % \|", line)]
    copies = [(row[0], row[8]) for row in rows if len(row) == 9]
    workers = [(row[0], row[7]) for row in rows if len(row) == 11]
    assert len(copies) == 10
    assert len(workers) >= 15
    for name, error in copies + workers:
        is_forked = "worker" in name or ((name, error) in workers and "started copies" not in name)
        assert abs(float(error.removesuffix(" %"))) <= (forked_percent if is_forked else started_percent), name


def test_every_option_of_a_command_in_a_guide_exists() -> None:
    """Commands that need docker or a cluster are no test of this machine: their verbs and options are."""
    options_of = {
        verb.name: {name for one in verb.options for name in one.names} for verb in generate.read_program().verbs
    }
    for page, text in blocks("sh", GUIDES):
        for line in text.splitlines():
            for words in re.findall(r"(?:^|\| )footprint ([^|;>]+)", line):
                verb, *rest = shlex.split(words.replace("$(", "'").replace(")", "'"))
                given = rest[: rest.index("--")] if "--" in rest else rest
                assert {word for word in given if re.match("--?[a-z]", word)} <= options_of[verb], (page, line)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_names_the_optional_package_that_a_command_of_it_needs(page: Path) -> None:
    for verb, extra in (("whatif", "whatif"), ("scan", "fleet"), ("fleet", "fleet")):
        if f"$ footprint {verb} " in page.read_text():
            assert f"[{extra}]" in page.read_text(), verb


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_no_sentence_of_a_guide_has_more_than_30_words(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|^\|.*$|^#.*$", "\n.\n", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    for sentence in re.split(r"[.?!:]\s|\n\n", text):
        assert len(sentence.split()) <= 30, sentence
