"""What `import footprint` offers: each name is there, and each verb has a call."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import footprint
from footprint.verbs.app import verb_names

FOLDER = os.path.dirname(footprint.__file__)


def test_each_public_name_is_there_and_says_what_it_is() -> None:
    for name in footprint.__all__:
        assert name == "__version__" or getattr(footprint, name).__doc__


def test_the_call_of_each_verb_is_public() -> None:
    calls = {
        f"footprint.verbs.{name}.call" for name in verb_names() if os.path.isfile(f"{FOLDER}/verbs/{name}/call.py")
    }
    assert calls <= {getattr(footprint, name).__module__ for name in footprint.__all__ if name != "__version__"}
    assert set(verb_names()) - {"heap"} <= set(footprint.__all__)


def test_a_verb_is_a_folder_with_a_command() -> None:
    folders = {name for name in os.listdir(f"{FOLDER}/verbs") if os.path.isfile(f"{FOLDER}/verbs/{name}/command.py")}
    assert set(verb_names()) == folders


PROGRAM = Path("sample_binaries/condor_shadow/base")
TEXT = Path("tests/corpus/smaps-sleep.txt")
CALLS: dict[str, Callable[[Path], object]] = {
    "audit": lambda _: footprint.audit(TEXT, root=PROGRAM.parent, debug=footprint.DebugSearch((PROGRAM.parent,))),
    "capture": lambda folder: footprint.capture(os.getpid(), output=folder / "capture"),
    "diff": lambda _: footprint.diff(TEXT, TEXT),
    "duplicates": lambda _: footprint.duplicates(PROGRAM),
    "libraries": lambda _: footprint.libraries(PROGRAM),
    "maps": lambda _: footprint.maps(TEXT),
    "project": lambda _: footprint.project(TEXT, count=2),
    "record": lambda folder: footprint.record(TEXT, folder / "history", version="1", program="sleep"),
    "survey": lambda _: footprint.survey(PROGRAM.parent).folders[0].strip(),
    "symbols": lambda _: footprint.symbols(PROGRAM).files[0].file.strip(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_path_object_is_a_path(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert CALLS[call](tmp_path)
