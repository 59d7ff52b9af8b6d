"""Write the pages of the reference that stand in the code alone: options, figures, the Python API.

`make docs` runs it before it builds the site; the pages are in no repository.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import footprint
from footprint.model.figures import FIGURES
from shell import generate

__all__ = ("options", "texts", "write")


def write(folder: Path) -> None:
    """Write all pages to a folder, but leave those alone that have not changed: Sphinx reads the others only."""
    folder.mkdir(exist_ok=True)
    for name, text in texts().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def texts() -> dict[str, str]:
    """Return the text of each page."""
    program = generate.read_program()
    return {"options.md": options(program), "figures.md": figures(), "api.md": api()}


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        cells = [cell.replace("|", "\\|").replace("<", "&lt;") for cell in row]
        yield f"| {' | '.join(cells)} |"
    yield ""


def options(program: generate.Program) -> str:
    """Write every command with its arguments and options."""
    lines = ["# Every command and option", "", f"What `-h` shows, for footprint {footprint.__version__}.", ""]
    for verb in program.verbs:
        lines += [f"## footprint {verb.name}", ""]
        for text in verb.texts:
            lines += [text, ""]
        if verb.examples:
            lines += ["```sh", *verb.examples, "```", ""]
        told = [(f"`{name}`", text) for name, text in verb.arguments]
        told += [(_names(option), option.text) for option in verb.options]
        lines += _table(("argument, option", "meaning"), told)
    lines += ["## Exit codes", "", *_table(("code", "meaning"), program.exit_codes)]
    return "\n".join(lines)


def _names(option: generate.Option) -> str:
    value = f" {option.value}" if option.value is not None else ""
    return ", ".join(f"`{name}{value}`" for name in option.names)


def figures() -> str:
    """Write every figure with what it means."""
    rows = ((f"`{one.name}`", one.title, one.sentence) for one in FIGURES.values())
    head = ["# Every figure", "", "The names of figures in JSON and in budgets, and what reports call them.", ""]
    return "\n".join([*head, *_table(("name", "title", "meaning"), rows)])


def api() -> str:
    """Write every public name of the package with its description."""
    lines = [
        "# The Python API",
        "",
        "Every public name of `import footprint`. [Examples](../library.md) show how they are used.",
        "",
    ]
    for name in sorted(footprint.__all__, key=str.lower):
        one = getattr(footprint, name)
        if name.startswith("__"):
            continue
        lines += [f"## {name}", "", *_described(name, one)]
    return "\n".join(lines)


def _described(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 # any public name
    if inspect.isfunction(value):
        signature = str(inspect.signature(value)).replace("footprint.", "")
        yield from ("```python", f"{name}{signature}", "```", "")
    yield from ("```text", *inspect.cleandoc(value.__doc__ or "").splitlines(), "```", "")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[1] / "docs" / "reference")
