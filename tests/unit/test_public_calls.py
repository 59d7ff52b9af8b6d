"""What `import footprint` offers: each name is there, and each verb has a call."""

import ast
import inspect
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import footprint
from footprint.errors import UsageError
from footprint.verbs.commands import verb_names

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
TEXT = Path(__file__).parents[1] / "corpus" / "smaps-sleep.txt"
CALLS: dict[str, Callable[[Path], object]] = {
    "audit": lambda _: footprint.audit(TEXT, root=PROGRAM.parent, debug=footprint.DebugSearch((PROGRAM.parent,))),
    "capture": lambda folder: footprint.capture(os.getpid(), output=folder / "capture"),
    "diff": lambda _: footprint.diff(TEXT, TEXT),
    "duplicates": lambda _: footprint.duplicates(PROGRAM),
    "libraries": lambda _: footprint.libraries(PROGRAM),
    "maps": lambda _: footprint.maps(TEXT),
    "record": lambda folder: footprint.record(TEXT, folder / "history", version="1", program="sleep"),
    "survey": lambda _: footprint.survey(PROGRAM.parent).folders[0].strip(),
    "symbols": lambda _: footprint.symbols(PROGRAM).files[0].file.strip(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_path_object_is_a_path(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert CALLS[call](tmp_path)


def _classes_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and hint.__module__.startswith("footprint."):
        yield hint
    for part in get_args(hint):
        yield from _classes_in(part)


def test_the_types_that_calls_return_are_public() -> None:
    calls = [call for name in footprint.__all__ if inspect.isfunction(call := getattr(footprint, name))]
    returned = {found for call in calls for found in _classes_in(get_type_hints(call)["return"])}
    assert len(returned) > 15
    assert {found.__name__ for found in returned if getattr(footprint, found.__name__, None) is not found} == set()


def test_an_audit_and_a_run_that_were_saved_are_read_again(tmp_path: Path) -> None:
    audit = footprint.audit(TEXT, count=3)
    footprint.save(audit, tmp_path / "audit.json")
    again = footprint.audit(tmp_path / "audit.json")
    assert again.totals.private.bytes == audit.totals.private.bytes == 108 << 10
    assert [(row.owner, row.bytes) for row in again.ledger] == [(row.owner, row.bytes) for row in audit.ledger]
    with pytest.raises(footprint.AccessError, match="missing"):
        footprint.save(audit, tmp_path / "missing" / "audit.json")


def test_budgets_are_made_from_a_dict() -> None:
    # The `Anonymous:` of this text add up to 108 KiB.
    budgets = footprint.parse_budgets({"budgets": {"private_bytes": "64 KiB"}})
    (failure,) = footprint.check(TEXT, budgets).failures
    assert (failure.key, failure.value, failure.limit) == ("private_bytes", 108 << 10, 64 << 10)
    with pytest.raises(footprint.UsageError, match=r"^budgets: .*did you mean 'private_bytes'"):
        footprint.parse_budgets({"budgets": {"privat_bytes": 1}})


def test_type_checkers_see_the_names_that_are_there() -> None:
    stub = ast.parse(Path(FOLDER, "__init__.pyi").read_text())
    homes = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert homes.keys() | {"__version__"} == set(footprint.__all__)
    for name, module in homes.items():
        # A call is the function with a budget of work around it.
        assert getattr(import_module(str(module)), name) is unwrap(getattr(footprint, name)), name


def test_a_file_is_no_list_of_pids() -> None:
    with pytest.raises(UsageError, match=r"web\.capture is no list of PIDs: footprint\.audit takes a capture"):
        footprint.audit_group("web.capture")  # type: ignore[arg-type]
