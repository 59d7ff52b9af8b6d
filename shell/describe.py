"""Write down what the JSON answers are, from their types: the schema, the tables of docs/json.md, the TypeScript types.

`make schema` runs it; a test fails where a file is not what it writes.
"""

import ast
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from inspect import cleandoc, getsource
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import footprint.verbs
from footprint.formats.words import SCHEMA_PATH
from footprint.json import codec
from footprint.json.answer import Envelope
from footprint.model.figures import FIGURES
from footprint.model.page_map import PageState
from footprint.model.projection import Basis, Model
from footprint.model.row import Evidence, MemoryKind
from footprint.store.tables import TABLES
from footprint.text.units import format_bytes

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS_PATH: Final = ROOT / "docs" / "json.md"
FLEET_PATH: Final = ROOT / "docs" / "fleet.md"
LIMITS_PATH: Final = ROOT / "docs" / "limits.md"
TYPES_PATH: Final = ROOT / "footprint" / "html" / "app" / "src" / "types.ts"
WORDS_PATH: Final = TYPES_PATH.with_name("words.ts")

LATER_COMMENT: Final = "Not in what earlier versions wrote."
_BEGIN: Final = "<!-- `make schema` writes what follows -->"
_END: Final = "<!-- `make schema` wrote this -->"
# The answers that the HTML report shows.
_SHOWN: Final = ("AuditAnswer", "CheckAnswer", "DiffAnswer", "GroupAnswer", "HeapAnswer", "TrendAnswer", "WatchAnswer")
_CAP: Final = re.compile(r"_?(MOST|LONGEST|LARGEST|DEEPEST)(_|$)")
_ATTRIBUTE: Final = re.compile(r"^(\w+): (.*)$")


def texts() -> dict[Path, str]:
    """Return the text of each file, by its path."""
    return {
        SCHEMA_PATH: json.dumps(schema(), indent=2, ensure_ascii=False) + "\n",
        TYPES_PATH: typescript(),
        WORDS_PATH: words(),
        DOCS_PATH: documented(DOCS_PATH.read_text(encoding="utf-8"), _tables()),
        FLEET_PATH: documented(FLEET_PATH.read_text(encoding="utf-8"), _fleet_tables()),
        LIMITS_PATH: documented(LIMITS_PATH.read_text(encoding="utf-8"), _caps_table()),
    }


def answers() -> list[codec.Record]:
    """Return the shapes of all answers, in the order of their verbs."""
    importlib.import_module("footprint.formats.audit_json")
    for verb in pkgutil.iter_modules(footprint.verbs.__path__, "footprint.verbs."):
        if verb.ispkg:
            for module in pkgutil.iter_modules(importlib.import_module(verb.name).__path__, f"{verb.name}."):
                if module.name.endswith(("json", "answer", "call")):
                    importlib.import_module(module.name)
    found = sorted(_subclasses(Envelope), key=lambda cls: cls.__name__)
    return [_record(codec.shape_of(cls)) for cls in found]


def _subclasses(cls: type[Envelope]) -> Iterator[type[Envelope]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _record(shape: codec.Shape) -> codec.Record:
    if not isinstance(shape, codec.Record):
        raise TypeError(f"{shape} is no object")
    return shape


def records(shapes: list[codec.Record]) -> dict[str, codec.Record]:
    """Return all objects that some answers are made of, the answers included, by the names of their types."""
    result: dict[str, codec.Record] = {}

    def visit(shape: codec.Shape) -> None:
        if isinstance(shape, codec.Record):
            name = name_of(shape)
            if name in result:
                if result[name].type is not shape.type:
                    raise ValueError(f"two types are called {name}: {result[name].type}, {shape.type}")
                return
            result[name] = shape
            for member in shape.members:
                visit(member.shape)
        elif isinstance(shape, codec.Optional | codec.ListOf | codec.MapOf):
            visit(shape.inner)

    for one in shapes:
        visit(one)
    return result


# --- descriptions -----------------------------------------------------------------------------------------------------


def name_of(record: codec.Record) -> str:
    """Return the name of an object in the schema, the page and TypeScript."""
    name = record.type.__name__
    return name.removesuffix("Json") + "Answer" if name.endswith("Json") else name


def summary(cls: type) -> str:
    """Return the docstring of a type without its list of attributes."""
    return " ".join(cleandoc(cls.__doc__ or "").split("\nAttributes:")[0].split())


def descriptions(record: codec.Record) -> dict[str, str]:
    """Return the description of each member of an object, by its key.

    Raises:
        ValueError: A member has none.
    """
    texts: dict[str, str] = {}
    for cls in reversed(record.type.__mro__):
        texts |= _attributes(cls.__doc__ or "")
    result = {}
    for member in record.members:
        computed = getattr(record.type, member.attribute, None)
        text = texts.get(member.attribute)
        if text is None and isinstance(computed, property):
            text = " ".join(cleandoc(computed.__doc__ or "").split()).removeprefix("Return ")
            text = text[:1].upper() + text[1:]
        if text is None and member.key in FIGURES:
            text = FIGURES[member.key].sentence
        if not text:
            raise ValueError(f"{name_of(record)}.{member.attribute} has no description")
        result[member.key] = re.sub(r"\bNone\b", "null", text)
    return result


def _attributes(docstring: str) -> dict[str, str]:
    """Parse the list of attributes of a docstring."""
    _, _, block = cleandoc(docstring).partition("\nAttributes:\n")
    result: dict[str, str] = {}
    name = ""
    for line in block.split("\n"):
        if line and not line.startswith(" "):
            break
        match = _ATTRIBUTE.match(line.removeprefix("    "))
        if match:
            name = match[1]
            result[name] = match[2]
        elif line.strip():
            result[name] += f" {line.strip()}"
    return result


# --- the schema -------------------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the JSON schema of all answers."""
    every = answers()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:footprint:schema:1",
        "title": "footprint/1",
        "description": (
            "The answers that footprint prints with --json. Integers are bytes unless their name says otherwise."
        ),
        "anyOf": [{"$ref": f"#/$defs/{name_of(one)}"} for one in every],
        "$defs": {name: _definition(one) for name, one in sorted(records(every).items())},
    }


def _definition(record: codec.Record) -> dict[str, Any]:
    told = descriptions(record)
    properties = {}
    for member in record.members:
        comment = {"$comment": LATER_COMMENT} if member.is_later else {}
        properties[member.key] = {"description": told[member.key], **comment, **_schema_of(member.shape)}
    required = [member.key for member in record.members if not member.is_later and not member.may_be_absent]
    return {
        "description": summary(record.type),
        "type": "object",
        "properties": properties,
        "required": required,
    }


_PLAIN: Final[dict[type, str | list[str]]] = {
    codec.Flag: "boolean",
    codec.Number: "number",
    codec.AnyCell: ["string", "number", "boolean", "null"],
}


def _schema_of(shape: codec.Shape) -> dict[str, Any]:  # one line a shape
    match shape:
        case codec.Flag() | codec.Number() | codec.AnyCell():
            return {"type": _PLAIN[type(shape)]}
        case codec.Integer(bounds):
            minimum = {"minimum": bounds.least} if bounds.least >= 0 else {}
            past = {} if bounds.past >= 1 << 63 else {"exclusiveMaximum": bounds.past}
            return {"type": "integer", **minimum, **past}
        case codec.TextShape(pattern, is_never_empty):
            return {
                "type": "string",
                **({} if pattern is None else {"pattern": pattern}),
                **({"minLength": 1} if is_never_empty else {}),
            }
        case codec.Words(values):
            return {"const": next(iter(values))} if len(values) == 1 else {"enum": list(values)}
        case codec.Optional(inner):
            found = _schema_of(inner)
            if "type" in found:
                return found | {"type": [found["type"], "null"]}
            return {"enum": [*found["enum"], None]} if "enum" in found else {"anyOf": [found, {"type": "null"}]}
        case codec.ListOf(inner, is_never_empty):
            return {"type": "array", "items": _schema_of(inner), **({"minItems": 1} if is_never_empty else {})}
        case codec.MapOf(keys, inner):
            names = {"propertyNames": _schema_of(keys)} if isinstance(keys, codec.Words) else {}
            return {"type": "object", **names, "additionalProperties": _schema_of(inner)}
    return {"$ref": f"#/$defs/{name_of(_record(shape))}"}


# --- docs/json.md -----------------------------------------------------------------------------------------------------


def documented(page: str, tables: str) -> str:
    """Return a page with its tables made anew."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{tables}\n{_END}{after}"


def _fleet_tables() -> str:
    """Describe the columns of each table of a fleet's dataset."""
    lines: list[str] = []
    for table in TABLES.values():
        told = _attributes(table.row.__doc__ or "")
        lines += [f"### {table.name}", "", summary(table.row), "", "| column | type | meaning |", "|---|---|---|"]
        lines += [
            f"| `{column.name}` | `{column.sql_type}`{' or null' if column.is_nullable else ''} | {told[column.name]} |"
            for column in table.columns
        ]
        lines.append("")
    return "\n".join(lines[:-1])


def _caps_table() -> str:
    """Describe the caps of each module."""
    lines = ["| module | caps |", "|---|---|"]
    for path in sorted((ROOT / "footprint").rglob("*.py")):
        module = path.relative_to(ROOT)
        if told := ", ".join(f"{name} {value}" for name, value in _caps(path.read_text(encoding="utf-8"), module)):
            lines.append(f"| `{module}` | {told} |")
    return "\n".join(lines)


def _caps(source: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the caps of a module: the words of each name, and its value, which may need other names of the module."""
    versions: dict[str, Any] = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.AnnAssign) or node.value is None:
            continue
        target = node.target
        if not isinstance(target, ast.Name) or not _CAP.match(target.id):
            continue
        versions = versions or {
            **vars(importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__")))
        }
        value = versions[target.id] = eval(ast.unparse(node.value), versions)  # noqa: S307 # our own source
        words = target.id.strip("_").removeprefix("MOST_").lower().replace("_", " ")
        if words.endswith(" bytes") and value >= 1024:
            yield words.removesuffix(" bytes"), format_bytes(value)
        else:
            yield words, f"{value:,}"


def _tables() -> str:
    envelope, every = _record(codec.shape_of(Envelope)), answers()
    named = records([envelope, *every])
    shared = {member.key for member in envelope.members}
    lines = ["| verb | answer | members |", "|---|---|---|"]
    for one in every:
        members = ", ".join(f"`{member.key}`" for member in one.members if member.key not in shared)
        lines.append(f"| `{_verb(one)}` | {_documented_type(one)} | {members} |")
    objects = [named[name] for name in sorted(named) if named[name] not in every and named[name] is not envelope]
    for shape in (envelope, *every, *objects):
        lines += [
            "",
            f"### {name_of(shape)}",
            "",
            summary(shape.type),
            "",
            "| member | type | meaning |",
            "|---|---|---|",
        ]
        told = descriptions(shape)
        for member in shape.members:
            # The members that every answer begins with are described once.
            if shape in every and member.key in shared:
                continue
            meaning = told[member.key].replace("|", "\\|")
            later = " " + LATER_COMMENT if member.is_later else ""
            lines.append(f"| `{member.key}` | {_documented_type(member.shape)} | {meaning}{later} |")
    return "\n".join([*lines, ""])


def _verb(answer: codec.Record) -> str:
    (words,) = [member.shape for member in answer.members if member.key == "verb"]
    return next(iter(words.values)) if isinstance(words, codec.Words) else ""


def _documented_type(shape: codec.Shape) -> str:  # one line a shape
    match shape:
        case codec.Flag():
            return "true or false"
        case codec.Number():
            return "number"
        case codec.AnyCell():
            return "text, number, true, false or null"
        case codec.Integer():
            return "integer"
        case codec.TextShape():
            return "text"
        case codec.Words(values):
            return ", ".join(f"`{word}`" for word in values)
        case codec.Optional(inner):
            return f"{_documented_type(inner)}, or null"
        case codec.ListOf(inner):
            return f"list of {_documented_type(inner)}"
        case codec.MapOf(_, inner):
            return f"object of {_documented_type(inner)}"
    name = name_of(_record(shape))
    return f"[{name}](#{name.lower()})"


# --- TypeScript -------------------------------------------------------------------------------------------------------


def typescript() -> str:
    """Return the types of the answers that the HTML report shows."""
    shown = [answer for answer in answers() if name_of(answer) in _SHOWN]
    every = records(shown)
    rows = _row_names(every)
    enums = {
        cls.__name__: f"export type {cls.__name__} = {_union(words)};"
        for record in every.values()
        for words in _words(record)
        if issubclass(cls := type(next(iter(words.values.values()))), Enum)
    }
    interfaces = [_interface(one, is_row=name in rows) for name, one in sorted(every.items())]
    return "\n".join(
        [
            "// The JSON answers that the report shows. `make schema` writes this file from the types in Python.",
            "",
            'import type { Rows } from "./table";',
            "",
            *[enums[name] for name in sorted(enums)],
            *interfaces,
        ]
    )


def words() -> str:
    """Return the words that the HTML report shows, as TypeScript."""
    states = [(one.word, text) for one, text in zip(PageState, _member_texts(PageState), strict=True)]
    evidence = [(one.value, text) for one, text in zip(Evidence, _member_texts(Evidence), strict=True)]
    tables: dict[str, tuple[str, Sequence[Any] | Mapping[str, Any]]] = {
        "The kinds of evidence and their meanings, the strongest first.": (
            "EVIDENCE: [word: Evidence, text: string][]",
            evidence,
        ),
        "The kinds of memory.": ("KINDS: MemoryKind[]", [one.value for one in MemoryKind]),
        "What figures are called, in their order.": (
            "TITLES: Record<string, string>",
            {one.name: one.title for one in FIGURES.values()},
        ),
        "The words for one of N and for all of them.": (
            "NOUNS: Record<Model, [string, string]>",
            {one.value: one.nouns for one in Model},
        ),
        "The words that follow the cost of one in a sentence.": (
            "PHRASES: Record<Basis, string>",
            {one.value: one.phrase for one in Basis},
        ),
        "The states of a page and their meanings; the number of a state is its place.": (
            "PAGE_STATES: [word: string, text: string][]",
            states,
        ),
    }
    return "\n".join(
        [
            "// The words that the report shares with Python. `make schema` writes this file.",
            "",
            'import type { Basis, Evidence, MemoryKind, Model } from "./types";',
            *(f"\n/** {text} */\nexport const {name} = {_literal(value)};" for text, (name, value) in tables.items()),
            "",
        ]
    )


def _literal(value: Sequence[Any] | Mapping[str, Any]) -> str:
    """Return a list or an object as TypeScript, one element in each line."""
    if isinstance(value, Mapping):
        lines = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in value.items()]
        return "\n  ".join(["{", *[f"{line}," for line in lines]]) + "\n}"
    return "\n  ".join(["[", *[f"{json.dumps(one)}," for one in value]]) + "\n]"


def _member_texts(cls: type[Enum]) -> list[str]:
    """Return the docstrings of the members of an enumeration, as parts of a sentence."""
    body = ast.parse(dedent(getsource(cls))).body[0].body  # type: ignore[attr-defined] # a class
    found = [
        str(text.value.value)
        for member, text in pairwise(body)
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    ]
    return [text[0].lower() + text[1:].rstrip(".") for text in found]


def _row_names(every: dict[str, codec.Record]) -> set[str]:
    """Return the names of the objects that are rows of tables, or lie in them: lists in there are no tables."""
    result: set[str] = set()

    def visit(shape: codec.Shape, *, is_in_row: bool) -> None:
        match shape:
            case codec.Record():
                if is_in_row:
                    result.add(name_of(shape))
                for member in shape.members:
                    visit(member.shape, is_in_row=is_in_row)
            case codec.ListOf(inner):
                visit(inner, is_in_row=True)
            case codec.Optional(inner) | codec.MapOf(_, inner):
                visit(inner, is_in_row=is_in_row)

    for record in every.values():
        if issubclass(record.type, Envelope):
            visit(record, is_in_row=False)
    return result


def _words(shape: codec.Shape) -> Iterator[codec.Words]:
    match shape:
        case codec.Words():
            yield shape
        case codec.Record():
            for member in shape.members:
                yield from _words(member.shape)
        case codec.Optional(inner) | codec.ListOf(inner):
            yield from _words(inner)
        case codec.MapOf(keys, inner):
            yield from _words(keys)
            yield from _words(inner)


def _interface(record: codec.Record, *, is_row: bool) -> str:
    told = descriptions(record)
    lines = ["", *_comment(summary(record.type), ""), f"export interface {name_of(record)} {{"]
    for member in record.members:
        mark = "?" if member.may_be_absent else ""
        lines += _comment(told[member.key], "  ")
        lines.append(f"  {member.key}{mark}: {_type_of(member.shape, is_row=is_row)};")
    return "\n".join([*lines, "}"])


def _comment(text: str, margin: str) -> list[str]:
    return [f"{margin}/** {text} */"]


def _type_of(shape: codec.Shape, *, is_row: bool) -> str:  # one line a shape
    match shape:
        case codec.Flag():
            return "boolean"
        case codec.Number() | codec.Integer():
            return "number"
        case codec.TextShape():
            return "string"
        case codec.Words(values):
            cls = type(next(iter(values.values())))
            return cls.__name__ if issubclass(cls, Enum) else _union(shape)
        case codec.Optional(inner):
            return f"{_type_of(inner, is_row=is_row)} | null"
        case codec.ListOf(inner):
            name = _type_of(inner, is_row=True)
            if isinstance(inner, codec.Record) and not is_row:
                return f"Rows<{name}>"
            return f"({name})[]" if " | " in name else f"{name}[]"
        case codec.MapOf(keys, inner):
            key = _type_of(keys, is_row=is_row)
            record = f"Record<{key}, {_type_of(inner, is_row=is_row)}>"
            return f"Partial<{record}>" if isinstance(keys, codec.Words) else record
    return name_of(_record(shape))


def _union(words: codec.Words) -> str:
    return " | ".join(json.dumps(word) for word in words.values)


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
