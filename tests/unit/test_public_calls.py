"""What `import footprint` offers: each name is there, and each verb has a call."""

import os

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
    assert calls <= set(footprint._HOMES.values())
    assert set(verb_names()) - {"heap"} <= set(footprint.__all__)


def test_a_verb_is_a_folder_with_a_command() -> None:
    folders = {name for name in os.listdir(f"{FOLDER}/verbs") if os.path.isfile(f"{FOLDER}/verbs/{name}/command.py")}
    assert set(verb_names()) == folders
