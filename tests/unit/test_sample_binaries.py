"""The folders of sample_binaries/ are complete: each has its README.md, and the files named there are what it says."""

import gzip
import re
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_binaries"
FOLDERS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir() and path.name != "build")
ROW_OF_A_FOLDER = re.compile(r"^\| `([a-z0-9_]+)/` \|", re.MULTILINE)
ROW_OF_A_FILE = re.compile(
    r"^\| `([^`]+)` \| ([0-9,]+) \| \S*(?:gcc|clang) \(.+\) [0-9.]+, GNU ld [0-9.]+ \|$", re.MULTILINE
)

ELF = b"\x7fELF"
ARCHIVE = b"!<arch>\n"
GZIP = b"\x1f\x8b"
SOURCES = {".c", ".cpp", ".h", ".s", ".py"}
LARGEST_SAMPLE_BYTES = 20_000


def readme(folder: str) -> str:
    return (SAMPLES / folder / "README.md").read_text(encoding="utf-8")


def prebuilt(folder: str) -> dict[str, int]:
    """Name the prebuilt files of a folder, each with its size in bytes, as the table of its README.md has them."""
    return {name: int(size.replace(",", "")) for name, size in ROW_OF_A_FILE.findall(readme(folder))}


PREBUILT = [
    (folder, name, size)
    for folder in FOLDERS
    if (SAMPLES / folder / "README.md").is_file()
    for name, size in prebuilt(folder).items()
]


def test_the_readme_lists_every_folder_and_no_other() -> None:
    listed = ROW_OF_A_FOLDER.findall((SAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_has_a_readme_with_its_name_and_its_figures(folder: str) -> None:
    text = readme(folder)
    assert text.startswith(f"# {folder}\n")
    assert "\n## Figures\n" in text


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_readme_names_the_prebuilt_files_of_its_folder_and_no_other(folder: str) -> None:
    signatures = (ELF, ARCHIVE, GZIP)
    found = {path.name for path in (SAMPLES / folder).iterdir() if path.read_bytes().startswith(signatures)}
    assert found
    assert found == set(prebuilt(folder))


@pytest.mark.parametrize(("folder", "name", "size_bytes"), PREBUILT)
def test_a_prebuilt_file_has_the_size_that_its_readme_states(folder: str, name: str, size_bytes: int) -> None:
    assert (SAMPLES / folder / name).stat().st_size == size_bytes
    assert size_bytes < LARGEST_SAMPLE_BYTES


@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder, name, _ in PREBUILT])
def test_a_prebuilt_file_begins_with_the_signature_of_its_kind(folder: str, name: str) -> None:
    content = (SAMPLES / folder / name).read_bytes()
    if name.endswith(".gz"):
        assert content.startswith(GZIP)
        content = gzip.decompress(content)
    assert content.startswith(ARCHIVE if name.endswith(".a") else ELF)


@pytest.mark.parametrize(
    ("folder", "elf_class", "byte_order", "machine"),
    [
        ("arch_i386", 1, "little", 3),
        ("arch_powerpc", 1, "big", 20),
        ("arch_s390x", 2, "big", 22),
        ("stripped_shared_object", 2, "little", 62),
        ("arch_aarch64", 2, "little", 183),
    ],
)
def test_a_folder_of_an_architecture_holds_a_file_of_it(
    folder: str, elf_class: int, byte_order: str, machine: int
) -> None:
    header = (SAMPLES / folder / "variables.so").read_bytes()[:20]
    assert header[4] == elf_class
    assert {1: "little", 2: "big"}[header[5]] == byte_order
    assert int.from_bytes(header[18:20], "little" if header[5] == 1 else "big") == machine


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_sources_of_a_folder_are_at_most_40_lines_long(folder: str) -> None:
    sources = [path for path in (SAMPLES / folder).iterdir() if path.suffix in SOURCES]
    assert [path.name for path in sources if len(path.read_text(encoding="utf-8").splitlines()) > 40] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_prebuilt_file_holds_a_path_of_the_place_where_it_was_built(folder: str) -> None:
    for name in prebuilt(folder):
        content = (SAMPLES / folder / name).read_bytes()
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        assert b"sample_binaries" not in content
