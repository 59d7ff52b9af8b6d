"""Fuzz one target with Atheris: `python -m fuzz.run TARGET [--keep FOLDER] [options of libFuzzer]`.

Without `--keep` the first finding ends the run, as OSS-Fuzz expects it. With `--keep` each new finding is written to a
folder, and the run goes on.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["footprint"]):
    from fuzz.targets import TARGETS, Target
from fuzz.findings import Findings, read_checked
from fuzz.mutators import MUTATORS, mutated

__all__ = ("main",)

_OWN_SHARE = 0.7
"""How many inputs are damaged by our mutators; the others by those of libFuzzer, which knows what the code compares."""


def main(arguments: list[str]) -> None:
    """Fuzz a target until libFuzzer ends the process."""
    program, name, *options = arguments
    target = TARGETS[name]
    findings = None
    if options[:1] == ["--keep"]:
        findings = Findings(Path(options[1]))
        options = options[2:]
    mutator = MUTATORS[target.mutator]

    def mutate(data: bytes, most_bytes: int, seed: int) -> bytes:
        random = Random(seed)  # chance, not a secret
        if random.random() > _OWN_SHARE:
            return bytes(atheris.Mutate(data, most_bytes))
        return mutated(data, most_bytes, random, mutator)

    atheris.Setup([program, *options], _read(target, findings), custom_mutator=mutate)
    atheris.Fuzz()


def _read(target: Target, findings: Findings | None) -> Callable[[bytes], None]:
    """Return the function that libFuzzer calls: without findings to keep, an error ends the run."""

    def read(data: bytes) -> None:
        try:
            read_checked(target, data)
        except Exception as error:
            if findings is None:
                raise
            findings.keep(data, error)

    return read


if __name__ == "__main__":
    main(sys.argv)
