"""Hostile debug files, and hostile hints to them: the file is answered for, with more names or with its own."""

import lzma
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.contents import Contents
from footprint.elf.image import Image, read_image
from footprint.errors import InputError
from footprint.sources import debug_files as verb
from footprint.sources.debug_files import DebugFiles
from tests.debugpairs import BUILD_ID_PATH, NAMED_IN_ALL, debug, link_to, packed, stripped
from tests.elfkinds import KINDS
from tests.elfwriter import Section, patch
from tests.examples import examples

DEBUG = debug()
FIELDS = ["sh_type", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign", "sh_entsize"]
SECTIONS = [".note.gnu.build-id", ".tbss", ".data", ".bss", ".dynsym", ".symtab", ".strtab", ".shstrtab"]
numbers = st.one_of(st.integers(0, 300), st.sampled_from([1 << 16, 1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1]))
damages = st.dictionaries(st.integers(0, 1 << 16), st.integers(0, 255), max_size=8)


@contextmanager
def debug_folder(data: bytes) -> Iterator[None]:
    """Put a debug file where the object is looked for by its build-id."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        path = os.path.join(folder, BUILD_ID_PATH)
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as file:
            file.write(data)
        patched.setattr(verb, "STANDARD_FOLDER", folder)
        patched.setenv("DEBUGINFOD_CACHE_PATH", os.path.join(folder, "none"))
        yield


def answer(image: Image) -> Contents:
    """Return what a file holds, checked to add up, with a note of what was not used."""
    found, notes = DebugFiles().contents_of(image, "/no/such/libdemo.so")
    for section in found.sections:
        assert section.size_bytes == section.named_bytes + sum(section.residue_bytes.values())
        assert section.ranges.end == section.size_bytes
    assert {note.slug for note in notes} <= {"debug-file-differs", "debug-file-unreadable"}
    return found


def names(result: Contents) -> set[str]:
    return {variable.name for section in result.sections for variable in section.variables}


def with_bytes(data: bytes, changes: dict[int, int]) -> bytes:
    changed = bytearray(data)
    for place, value in changes.items():
        changed[place % len(changed)] = value
    return bytes(changed)


@examples(300)
@given(changes=damages, end=st.integers(0, len(DEBUG)) | st.none())
def test_whatever_happens_to_a_debug_file_the_file_is_answered_for(changes: dict[int, int], end: int | None) -> None:
    with debug_folder(with_bytes(DEBUG, changes)[:end]):
        found = answer(read_image(stripped(), "libdemo.so"))
    assert found.debug_file is not None or names(found) == {"shown"}


@examples(300)
@given(section=st.sampled_from(SECTIONS), field=st.sampled_from(FIELDS), number=numbers)
def test_a_damaged_header_of_a_debug_file_costs_its_names_at_most(section: str, field: str, number: int) -> None:
    wide = {"sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_addralign", "sh_entsize"}
    with debug_folder(patch(DEBUG, field, number if field in wide else number & 0xFFFFFFFF, section)):
        answer(read_image(stripped(), "libdemo.so"))


@examples(200)
@given(content=st.binary(max_size=64), name=st.sampled_from([".gnu_debuglink", ".gnu_debugdata", ".gnu_debugaltlink"]))
def test_whatever_a_file_says_of_its_debug_file_it_is_answered_for(content: bytes, name: str) -> None:
    assert names(answer(read_image(stripped(Section(name, data=content)), "libdemo.so"))) == {"shown"}


@examples(200)
@given(changes=damages, is_packed=st.booleans())
def test_whatever_happens_to_mini_debug_info_the_file_is_answered_for(changes: dict[int, int], is_packed: bool) -> None:  # noqa: FBT001 # drawn
    content = with_bytes(lzma.compress(DEBUG), changes) if is_packed else lzma.compress(with_bytes(DEBUG, changes))
    answer(read_image(stripped(packed(content)), "libdemo.so"))


@examples(100)
@given(kind=st.sampled_from(sorted(KINDS)), other=st.sampled_from(sorted(KINDS)))
def test_only_the_debug_file_of_the_same_kind_is_used(kind: str, other: str) -> None:
    with debug_folder(debug(**KINDS[other])):
        found = answer(read_image(stripped(**KINDS[kind]), "libdemo.so"))
    assert names(found) == (NAMED_IN_ALL.keys() if kind == other else {"shown"})


@examples(200)
@given(changes=damages)
def test_a_damaged_file_with_a_sound_debug_file_is_answered_for_or_refused(changes: dict[int, int]) -> None:
    data = with_bytes(stripped(link_to("libdemo.debug", DEBUG)), changes)
    with debug_folder(DEBUG), suppress(InputError):
        answer(read_image(data, "libdemo.so"))
