"""The debug files of stripped files: where they are looked for, what is believed of them, what is said of others."""

import os
from pathlib import Path

import pytest

import footprint
from footprint.elf.contents import Contents
from footprint.elf.image import Image, read_image
from footprint.elf.notes import DebugSearch
from footprint.errors import InputError, Note, UsageError
from footprint.sources import debug_files as verb
from footprint.sources.debug_files import DebugFiles
from footprint.verbs.options import debug_search
from tests.debugpairs import (
    ALL,
    BUILD_ID_PATH,
    IDENTITY,
    NAMED_IN_ALL,
    NAMED_WHEN_STRIPPED,
    debug,
    link_to,
    mini,
    moved,
    stripped,
    whole,
)
from tests.elfwriter import EM_AARCH64, ElfFile, Section, patch, write

LINK = "libdemo.debug"
PLAIN_DEBUG = debug(build_id=b"")
WITH_LINK = stripped(link_to(LINK, PLAIN_DEBUG), build_id=b"")


@pytest.fixture(autouse=True)
def standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for /usr/lib/debug, and a home where no client of debuginfod was at work."""
    folder = tmp_path / "usr-lib-debug"
    folder.mkdir()
    monkeypatch.setattr(verb, "STANDARD_FOLDER", str(folder))
    for name in ("DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_URLS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return the path of a library, in a folder of its own."""
    folder = tmp_path / "lib"
    folder.mkdir()
    return folder / "libdemo.so"


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def image(data: bytes) -> Image:
    return read_image(data, "libdemo.so")


def named(contents: Contents) -> dict[str, int]:
    return {variable.name: variable.size_bytes for section in contents.sections for variable in section.variables}


def result(data: bytes, path: Path, files: DebugFiles | None = None) -> str | None:
    """Return the debug file that was used for a file, where nothing was odd and all of its names were found."""
    contents, notes = (files or DebugFiles()).contents_of(image(data), str(path))
    assert notes == []
    assert named(contents) == (NAMED_WHEN_STRIPPED if contents.debug_file is None else NAMED_IN_ALL)
    return contents.debug_file


def refused(data: bytes, path: Path, files: DebugFiles | None = None) -> Note:
    """Return the note of why no debug file was used."""
    contents, (note,) = (files or DebugFiles()).contents_of(image(data), str(path))
    assert (named(contents), contents.debug_file, note.subject) == (NAMED_WHEN_STRIPPED, None, "libdemo.so")
    return note


# --- places -----------------------------------------------------------------------------------------------------------


def test_a_debug_file_is_found_by_build_id(standard: Path, library: Path) -> None:
    place = put(standard / BUILD_ID_PATH, debug())
    assert result(stripped(), library) == str(place)


@pytest.mark.parametrize("place", ["{folder}/{name}", "{folder}/.debug/{name}", "{standard}{folder}/{name}"])
def test_a_debug_file_is_found_by_the_link_of_the_file(standard: Path, library: Path, place: str) -> None:
    path = put(Path(place.format(folder=library.parent, standard=standard, name=LINK)), PLAIN_DEBUG)
    assert result(WITH_LINK, library) == str(path)


@pytest.mark.parametrize("place", [BUILD_ID_PATH, "{folder}/{name}", "{name}"])
def test_a_folder_of_the_user_is_looked_into(tmp_path: Path, library: Path, place: str) -> None:
    mine = tmp_path / "mine"
    path = put(Path(f"{mine}/{place.format(folder=str(library.parent)[1:], name=LINK)}"), debug())
    files = DebugFiles(DebugSearch((str(mine),)))
    assert result(stripped(link_to(LINK, debug())), library, files) == str(path)
    assert result(stripped(link_to(LINK, debug())), library) is None


def test_a_folder_of_the_user_comes_before_the_standard_one(tmp_path: Path, standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, debug())
    mine = put(tmp_path / "mine" / BUILD_ID_PATH, debug())
    assert result(stripped(), library, DebugFiles(DebugSearch((str(tmp_path / "mine"),)))) == str(mine)


def test_a_root_is_looked_into_and_its_links_stay_in_it(tmp_path: Path, library: Path) -> None:
    root = tmp_path / "root"
    put(root / "elsewhere" / BUILD_ID_PATH, debug())
    place = Path(f"{root}{verb.STANDARD_FOLDER}")
    place.parent.mkdir(parents=True)
    place.symlink_to("/elsewhere")
    assert result(stripped(), library, DebugFiles(root=str(root))) == f"{root}/elsewhere/{BUILD_ID_PATH}"


@pytest.mark.parametrize("setting", ["DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME", "HOME"])
def test_the_cache_of_debuginfod_is_looked_into(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    below = {"DEBUGINFOD_CACHE_PATH": "", "XDG_CACHE_HOME": "debuginfod_client", "HOME": ".cache/debuginfod_client"}
    monkeypatch.setenv(setting, str(tmp_path / "cache"))
    place = put(tmp_path / "cache" / below[setting] / IDENTITY / "debuginfo", debug())
    assert result(stripped(), library) == str(place)


def test_what_debuginfod_did_not_find_is_an_empty_file_and_no_oddity(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path))
    put(tmp_path / IDENTITY / "debuginfo", b"")
    assert result(stripped(), library) is None


def test_mini_debug_info_is_used_where_no_debug_file_is(standard: Path, library: Path) -> None:
    data = stripped(mini(debug(symbols=ALL[1:])))
    contents, notes = DebugFiles().contents_of(image(data), str(library))
    assert (named(contents), contents.symbols_from, notes) == (NAMED_IN_ALL, ".gnu_debugdata", [])
    place = put(standard / BUILD_ID_PATH, debug())
    assert result(data, library) == str(place)


def test_nothing_is_looked_for_where_that_is_not_wanted(standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, debug())
    assert result(stripped(mini(debug())), library, DebugFiles(None)) is None


def test_nothing_is_looked_for_where_the_file_has_its_symbols(standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, b"\x7fELF, and then nothing")
    contents, notes = DebugFiles().contents_of(image(whole()), str(library))
    assert (named(contents), contents.debug_file, notes) == (NAMED_IN_ALL, None, [])


def test_a_missing_standard_folder_is_asked_for_once(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verb, "STANDARD_FOLDER", str(tmp_path / "none"))
    paths_asked: list[str] = []

    def nothing(path: str, _inode: int | None) -> str:
        paths_asked.append(path)
        return "nothing is here"

    monkeypatch.setattr(verb, "open_regular", nothing)
    assert result(stripped(), library, DebugFiles()) is None
    assert [Path(path).parent.name for path in paths_asked] == [IDENTITY]


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_a_file_with_another_build_id_is_not_used(standard: Path, library: Path) -> None:
    place = put(standard / BUILD_ID_PATH, debug(build_id=b"\x01\x23"))
    note = refused(stripped(), library)
    assert note.slug == "debug-file-differs"
    assert note.detail == f"{place} has the build-id 0123, the file has {IDENTITY}: it is not used"


def test_a_file_with_another_checksum_is_not_used(library: Path) -> None:
    place = put(library.parent / LINK, PLAIN_DEBUG)
    note = refused(stripped(link_to(LINK, 0x1234), build_id=b""), library)
    assert note.slug == "debug-file-differs"
    assert f"{place} has the CRC " in note.detail
    assert "the file asks for 00001234" in note.detail


def test_the_build_id_is_believed_more_than_the_checksum(library: Path) -> None:
    # eu-strip and dwz change a debug file after its checksum was taken.
    place = put(library.parent / LINK, debug())
    assert result(stripped(link_to(LINK, 0x1234)), library) == str(place)


def test_a_file_that_nothing_speaks_for_is_not_used(standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, debug(build_id=b""))
    assert "has no build-id to know it by" in refused(stripped(), library).detail


def test_a_file_for_another_machine_is_not_used(standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, patch(debug(), "e_machine", EM_AARCH64))
    assert "is for another machine" in refused(stripped(), library).detail


def test_a_file_with_all_sections_elsewhere_is_not_used(standard: Path, library: Path) -> None:
    data = debug()
    for section in (".tbss", ".data", ".bss", ".dynamic"):
        data = moved(data, section)
    put(standard / BUILD_ID_PATH, data)
    assert "has none of its sections at their places" in refused(stripped(), library).detail


def test_of_a_file_with_one_section_elsewhere_the_others_are_used(standard: Path, library: Path) -> None:
    place = put(standard / BUILD_ID_PATH, moved(debug(), ".data"))
    contents, (note,) = DebugFiles().contents_of(image(stripped()), str(library))
    assert contents.debug_file == str(place)
    assert note.slug == "debug-file-differs"
    assert note.detail == f"{place} has .data at another place: its symbols are not used for these sections"


def test_what_does_not_fit_is_not_mentioned_where_another_fits(standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, debug(build_id=b"\x01\x23"))
    place = put(library.parent / LINK, debug())
    assert result(stripped(link_to(LINK, debug())), library) == str(place)


@pytest.mark.parametrize("data", [debug()[:100], patch(debug(), "sh_entsize", 1, ".symtab")], ids=["cut", "symbols"])
def test_a_damaged_file_is_not_used_and_the_next_is_tried(standard: Path, library: Path, data: bytes) -> None:
    put(standard / BUILD_ID_PATH, data)
    note = refused(stripped(), library)
    assert note.slug == "debug-file-unreadable"
    assert str(standard) in note.detail
    place = put(library.parent / LINK, debug())
    assert result(stripped(link_to(LINK, debug())), library) == str(place)


@pytest.mark.parametrize("content", [b"\xfd7zXZ\0", b"nothing"])
def test_damaged_mini_debug_info_is_not_used(library: Path, content: bytes) -> None:
    note = refused(stripped(Section(".gnu_debugdata", data=content)), library)
    assert note.slug == "debug-file-unreadable"
    assert note.detail.startswith("libdemo.so(.gnu_debugdata): it ")


def test_a_damaged_link_is_noted(library: Path) -> None:
    data = patch(stripped(link_to(LINK, 1)), "sh_offset", 1 << 40, ".gnu_debuglink")
    assert refused(data, library).slug == "debug-file-unreadable"


def test_a_damaged_file_is_an_error_with_or_without_debug_file(standard: Path, library: Path) -> None:
    put(standard / BUILD_ID_PATH, debug())
    data = patch(stripped(), "sh_entsize", 1, ".dynsym")
    with pytest.raises(InputError) as caught:
        DebugFiles().contents_of(image(data), str(library))
    assert caught.value.file == "libdemo.so"


# --- links in circles, and what is no file ----------------------------------------------------------------------------


def test_a_link_to_the_file_itself_leads_nowhere(library: Path) -> None:
    data = stripped(link_to(library.name, 1))
    put(library, data)
    assert result(data, library) is None


def test_a_link_to_the_file_by_another_name_leads_nowhere(library: Path) -> None:
    data = stripped(link_to(LINK, 1))
    put(library, data)
    (library.parent / LINK).symlink_to(library)
    assert result(data, library) is None


def test_the_link_of_a_debug_file_is_not_followed(library: Path) -> None:
    data = stripped(link_to(LINK, 1))
    put(library.parent / LINK, stripped(link_to("further.debug", 1)))
    put(library.parent / "further.debug", debug())
    assert result(data, library) is None


def test_what_is_no_regular_file_is_passed_over(library: Path) -> None:
    (library.parent / LINK).mkdir()
    (library.parent / ".debug").mkdir()
    os.mkfifo(library.parent / ".debug" / LINK)
    assert result(WITH_LINK, library) is None


# --- the verb ---------------------------------------------------------------------------------------------------------


def test_symbols_finds_the_debug_file_beside_the_file_and_beside_what_links_lead_to(library: Path) -> None:
    put(library, WITH_LINK)
    place = put(library.parent / ".debug" / LINK, PLAIN_DEBUG)
    link = library.parent.parent / "libdemo.so"
    link.symlink_to(library)
    for path in (library, link):
        (contents,) = footprint.symbols(str(path)).files
        assert (contents.debug_file, named(contents)) == (str(place), NAMED_IN_ALL)
    (contents,) = footprint.symbols(str(library), debug=None).files
    assert (contents.debug_file, named(contents)) == (None, NAMED_WHEN_STRIPPED)


def test_symbols_notes_once_what_does_not_fit(standard: Path, library: Path) -> None:
    put(library, stripped())
    put(standard / BUILD_ID_PATH, debug(build_id=b"\x01\x23"))
    link = library.parent.parent / "libdemo.so"
    link.symlink_to(library)
    assert [note.slug for note in footprint.symbols(str(link)).notes] == ["debug-file-differs"]


@pytest.mark.parametrize(
    "place",
    ["/etc/shadow", "../../../../../../etc/shadow", "link/../shadow", "link"],
    ids=lambda place: place.replace("/", "|"),
)
def test_a_file_chooses_nothing_that_is_opened_outside_of_its_folder(place: str, library: Path) -> None:
    opened: list[str] = []

    def open_file(path: str, _inode: int | None) -> str:
        opened.append(os.path.realpath(path))
        return "it is not opened here"

    (library.parent / "link").symlink_to("/etc/shadow")
    link = Section(".gnu_debugaltlink", data=os.fsencode(place) + b"\0\xab\xcd\xef")
    image = read_image(write(ElfFile(sections=[link])), str(library))
    files = DebugFiles(DebugSearch(), open_file=open_file)
    found, notes = files.alternate_of(image, str(library))
    assert (found, [note.slug for note in notes]) == (None, ["debug-file-elsewhere"])
    # No unit of DWARF leads to a file that no compiler has left.
    assert files.split_of(image, place, str(library)) == (None, [])
    assert not [path for path in opened if path.startswith("/etc/")]


def test_what_dwz_left_in_a_folder_of_debug_files_is_opened(library: Path, tmp_path: Path) -> None:
    (tmp_path / "debug" / ".dwz").mkdir(parents=True)
    common = put(tmp_path / "debug" / ".dwz" / "common", debug(build_id=b"\xab\xcd\xef"))
    link = Section(".gnu_debugaltlink", data=os.fsencode(common) + b"\0\xab\xcd\xef")
    image = read_image(write(ElfFile(sections=[link])), str(library))
    found, notes = DebugFiles(DebugSearch((str(tmp_path / "debug"),))).alternate_of(image, str(library))
    assert notes == []
    assert found is not None


def test_options_that_contradict_each_other_are_wrong_use(tmp_path: Path) -> None:
    assert debug_search(no_debug_files=True) is None
    assert debug_search([str(tmp_path)], debuginfod=True) == DebugSearch((str(tmp_path),), uses_servers=True)
    with pytest.raises(UsageError, match="neither"):
        debug_search([str(tmp_path)], no_debug_files=True)
    with pytest.raises(UsageError, match="neither"):
        debug_search(debuginfod=True, no_debug_files=True)
    with pytest.raises(UsageError, match="is not a folder"):
        debug_search([str(tmp_path / "none")])
