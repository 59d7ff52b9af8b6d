"""What a C library writes in itself by its first steps: measured once for each build, and kept in a file."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from footprint.attribution.object_prediction import UNKNOWN_LIBC, LibcStart, ObjectPrediction, predict
from footprint.elf.image import Image, read_image
from footprint.elf.notes import build_id
from footprint.errors import AccessError, Note
from footprint.members import lazy_pattern, replace
from footprint.process.mappings import Mapping
from footprint.process.maps_text import parse_maps
from footprint.process.pages import PageReader
from footprint.sources.calibration import keep, kept_path, read_kept
from footprint.system.files import open_input

_FILE: Final = "libc.json"
_TABLE: Final = "libcs"
_MOST_PAGES: Final = 1 << 10
_NAME: Final = lazy_pattern(r".*/libc(\.so\.6(\.1)?|-2\.[0-9]+\.so)")
# It is on every system.
_PROGRAMS: Final = ("/bin/true", "/usr/bin/true")


def load_libc_start(image: Image) -> LibcStart:
    """Return what a C library writes in itself: as calibrated, else as assumed; damage is a note."""
    identity = build_id(image)
    path = kept_path(_FILE)
    try:
        stored = read_kept(path, _TABLE).get(identity or "")
        return UNKNOWN_LIBC if stored is None else _from_fields(stored)
    except (OSError, ValueError) as error:
        detail = f"{error}: {UNKNOWN_LIBC.count} pages are assumed; `footprint doctor --calibrate` writes a new file"
        return replace(UNKNOWN_LIBC, notes=(Note("calibration-unreadable", path, detail),))


def _from_fields(stored: object) -> LibcStart:
    page_bytes = stored.get("page_bytes") if isinstance(stored, dict) else None
    pages = stored.get("pages") if isinstance(stored, dict) else None
    if type(page_bytes) is not int or page_bytes not in {1 << shift for shift in range(12, 17)}:
        raise ValueError("its page_bytes is not a page size")
    if not isinstance(pages, list) or len(pages) > _MOST_PAGES or any(type(page) is not int for page in pages):
        raise ValueError("its pages are not numbers")
    return LibcStart(tuple(pages), page_bytes, len(pages), "calibrated for this build")


def idle_program() -> str:
    """Return the path of a program that does nothing, and uses nothing but the C library."""
    return next((path for path in _PROGRAMS if os.path.exists(path)), _PROGRAMS[0])


def own_libc() -> str | None:
    """Return the path of the glibc that this process uses; None if it uses another C library."""
    with suppress(OSError), open("/proc/self/maps", "rb") as file:
        # One that is only read, to be audited, is not ours.
        code = [mapping.name for mapping in parse_maps(file.read(), "maps").mappings if mapping.permissions[2] == "x"]
        return next((name for name in code if _NAME.fullmatch(name)), None)
    return None


def calibrate_libc() -> LibcStart | None:
    """Hold a program that does nothing where its own code begins, and keep which pages its C library has written.

    Other libraries than glibc write only what their files tell: for them there is nothing to keep.

    Raises:
        AccessError: Where no such program can be held and read, or the result cannot be kept.
        InputError: Where its C library is damaged.
    """
    from footprint.process.held_program import folder_at_entry  # noqa: PLC0415 # an audit only loads

    program = idle_program()
    with folder_at_entry(program) as folder:
        try:
            written = _written(folder, program)
        except OSError as error:
            raise AccessError(program, f"its pages cannot be read: {error.strerror}") from error
    if written is None:
        return None
    image, pages, page_bytes = written
    identity = build_id(image)
    if identity is None:
        raise AccessError(image.file, "it has no build-id, so a calibration cannot name it")
    keep(kept_path(_FILE), _TABLE, {identity: {"pages": pages, "page_bytes": page_bytes}})
    return load_libc_start(image)


def _written(folder: int, program: str) -> tuple[Image, list[int], int] | None:
    """Return the C library of a process, and its pages that are private for no reason in its file."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    with open(os.open("maps", os.O_RDONLY, dir_fd=folder), "rb") as file:
        mappings = parse_maps(file.read(), program).mappings
    path = next((mapping.name for mapping in mappings if _NAME.fullmatch(mapping.name)), None)
    if path is None:
        return None
    image = read_image(open_input(path), path)
    prediction = predict(image, page_bytes, is_program=False)
    return image, pages_beyond(folder, mappings, image, prediction), page_bytes


def pages_beyond(folder: int, mappings: Sequence[Mapping], image: Image, prediction: ObjectPrediction) -> list[int]:
    """Return the pages of an object that are private in a process, beyond those that were predicted.

    Its .bss may be the beginning of a longer mapping. `image.file` is the name of its mappings.
    """
    beyond: set[int] = set()
    page_bytes, pages = prediction.page_bytes, prediction.startup_max
    first_addr = min(m.start_addr for m in mappings if m.name == image.file)
    bias = first_addr // page_bytes - min(load.vaddr for load in image.loads) // page_bytes
    with PageReader(folder, page_bytes) as reader:
        for mapping in mappings:
            for run in pages if mapping.permissions.endswith("p") else ():
                addrs = range((run.start + bias) * page_bytes, (run.stop + bias) * page_bytes)
                if mapping.start_addr < addrs.stop and addrs.start < mapping.end_addr:
                    for part in reader.read(mapping):
                        first, past = max(part.start_addr, addrs.start), min(part.end_addr, addrs.stop)
                        beyond |= {addr // page_bytes - bias for addr in range(first, past, page_bytes)}
    return sorted(beyond.difference(*prediction.startup_min))
