"""Fuzz one target with Atheris: `python -m fuzz.run TARGET [--keep FOLDER] [options of libFuzzer]`.

Without `--keep` the first finding ends the run, as OSS-Fuzz expects it. With `--keep` each new finding is written to a
folder, and the run goes on.
"""

import hashlib
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["footprint"]):
    from fuzz.targets import TARGETS, Target
from fuzz.mutators import MUTATORS, mutated

__all__ = ("main",)

_OWN_SHARE = 0.7
"""How many inputs are damaged by our mutators; the others by those of libFuzzer, which knows what the code compares."""


def main(arguments: list[str]) -> None:
    """Fuzz a target until libFuzzer ends the process."""
    program, name, *options = arguments
    target = TARGETS[name]
    read = _checked(target)
    if options[:1] == ["--keep"]:
        read = _kept(read, Path(options[1]))
        options = options[2:]
    mutator = MUTATORS[target.mutator]

    def mutate(data: bytes, most_bytes: int, seed: int) -> bytes:
        random = Random(seed)  # chance, not a secret
        if random.random() > _OWN_SHARE:
            return bytes(atheris.Mutate(data, most_bytes))
        return mutated(data, most_bytes, random, mutator)

    atheris.Setup([program, *options], read, custom_mutator=mutate)
    atheris.Fuzz()


def _checked(target: Target) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        with suppress(target.errors):
            target.read(data)

    return read


def _kept(read: Callable[[bytes], None], folder: Path) -> Callable[[bytes], None]:
    """Write each input that raises something new to a folder, with its traceback."""
    known: set[tuple[str, ...]] = set()

    def read_on(data: bytes) -> None:
        try:
            read(data)
        except Exception as error:  # noqa: BLE001 # whatever it is, it is a finding
            # The innermost frames of footprint tell defects apart.
            frames = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
            key = (type(error).__name__, *[frame for frame in frames if "/footprint/" in frame][-2:])
            if key in known:
                return
            known.add(key)
            folder.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
            (folder / name).write_bytes(data)
            (folder / f"{name}.txt").write_text("".join(traceback.format_exception(error)))
            sys.stderr.write(f"finding {folder / name}: {type(error).__name__}: {error}"[:300] + "\n")

    return read_on


if __name__ == "__main__":
    main(sys.argv)
