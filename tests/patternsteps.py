"""Count the steps of regular expressions: a matcher that backtracks as the one of Python does, slowly, and counts.

The matcher of Python runs in C, where nothing counts. This one follows the same parsed pattern and tries the same
alternatives in the same order, so its steps grow with the square of a text wherever those of Python do.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import BuiltinMethodType, ModuleType
from typing import Any, Final

__all__ = ("MOST_STEPS", "StepCounter", "counted_patterns")

MOST_STEPS: Final = 10_000_000
"""More than what is linear takes in any text of the tests."""
# A group that may stand more often than that is taken for one without a limit.
_MOST_COPIES: Final = 600
_CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_WIDTH_OF_ONE: Final = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.CATEGORY, sre.RANGE}

# The kinds of steps, and what each has: see `_run`.
_ONE, _MANY, _SPLIT, _JUMP, _SAVE, _MOVED, _PLACE, _LOOK, _ATOMIC, _BACK, _END = range(11)

_Cached = type(cache(len))
_Text = Any  # str or bytes
_Program = list[tuple[int, Any, Any, Any, Any]]
_Patterns = re.Pattern[Any]


class _Untraced:
    """A block without the trace function of this thread: Python 3.11 runs all else three times as slowly under one."""

    def __enter__(self) -> None:
        self._trace = sys.gettrace()
        sys.settrace(None)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._trace)


class StepCounter:
    """A count of steps, and the matcher that adds to it."""

    def __init__(self) -> None:
        self.count = 0

    def search(self, pattern: _Patterns, text: _Text, start: int, end: int) -> tuple[int, int] | None:
        """Return where the first match begins and ends; None without one."""
        with _Untraced():
            program, text = _program(pattern), _whole(text, end)
            kind, chars, *_ = program[0]
            at, last = start, len(text)
            while at <= last:
                if kind == _ONE:
                    begin = at
                    while at < last and not chars[text[at]]:
                        at += 1
                    # The end is tried, too.
                    self._count(at - begin + (at == last))
                if kind != _ONE or at < last:
                    stop = self._run(program, text, at)
                    if stop is not None:
                        return at, stop
                at += 1
        return None

    def match(self, pattern: _Patterns, text: _Text, start: int, end: int, *, is_full: bool = False) -> int | None:
        """Return the end of the match that begins at a place; None without one."""
        with _Untraced():
            text = _whole(text, end)
            return self._run(_program(pattern), text, start, len(text) if is_full else None)

    def _count(self, count: int) -> None:
        self.count += count
        if self.count > MOST_STEPS:
            raise AssertionError(f"patterns take more than {MOST_STEPS:,} steps")

    def _run(self, program: _Program, text: _Text, start: int, must_end: int | None = None) -> int | None:  # noqa: C901, PLR0912 # a step is a branch
        # Where to go on after a failure: the step, the place, the groups, and the lowest place to try it at.
        alternatives: list[tuple[int, int, dict[Any, int], int]] = [(0, start, {}, start)]
        while alternatives:
            here, at, saved, lowest = alternatives.pop()
            if at > lowest:
                alternatives.append((here, at - 1, saved, lowest))
            is_so, count = True, 0
            while is_so:
                count += 1
                kind, first, second, third, fourth = program[here]
                here += 1
                if kind == _ONE:
                    is_so = at < len(text) and first[text[at]]
                    at += 1
                elif kind == _MANY:
                    begin, last = at, min(len(text), at + third)
                    while at < last and first[text[at]]:
                        at += 1
                    count += at - begin
                    is_so = at - begin >= second
                    if is_so and fourth and at > begin + second:
                        alternatives.append((here, at - 1, saved, begin + second))
                elif kind == _SPLIT:
                    alternatives.append((second, at, saved, at))
                    here = first
                elif kind == _JUMP:
                    here = first
                elif kind == _SAVE:
                    saved = {**saved, first: at}
                elif kind == _MOVED:
                    is_so = saved[first] < at
                elif kind == _PLACE:
                    is_so = first(text, at)
                elif kind == _LOOK:
                    is_so = (at >= second and self._run(first, text, at - second) is not None) == third
                elif kind == _ATOMIC:
                    stop = self._run(first, text, at)
                    is_so, at = stop is not None, at if stop is None else stop
                elif kind == _BACK:
                    group = text[saved.get((first, 0), 0) : saved.get((first, 1), 0)]
                    count += len(group)
                    is_so = text.startswith(group, at)
                    at += len(group)
                elif must_end is None or at == must_end:
                    self._count(count)
                    return at
                else:
                    is_so = False
            self._count(count)
        return None


class _Chars(dict[Any, bool]):
    """Whether a character is one of those that an item of a pattern stands for."""

    def __init__(self, items: list[tuple[Any, Any]], flags: int) -> None:
        super().__init__()
        self._items, self._flags = items, flags

    def __missing__(self, char: int | str) -> bool:
        code = char if isinstance(char, int) else ord(char)
        codes = {code}
        if self._flags & re.IGNORECASE:
            codes |= {ord(other) for other in (chr(code).lower(), chr(code).upper()) if len(other) == 1}
        is_negated = self._items[0][0] is sre.NEGATE
        self[char] = is_negated != any(self._is_of(item, code) for code in codes for item in self._items)
        return self[char]

    def _is_of(self, item: tuple[Any, Any], code: int) -> bool:
        name, value = item
        if name is sre.LITERAL:
            return bool(code == value)
        if name is sre.NOT_LITERAL:
            return bool(code != value)
        if name is sre.RANGE:
            return bool(value[0] <= code <= value[1])
        if name is sre.ANY:
            return bool(self._flags & re.DOTALL) or code != ord("\n")
        if name is sre.CATEGORY:
            return re.fullmatch(_CATEGORIES[value], chr(code), self._flags & re.ASCII) is not None
        assert name is sre.NEGATE
        return False


def _whole(text: _Text, end: int) -> _Text:
    text = text if isinstance(text, (str, bytes)) else bytes(text)
    return text[:end] if end < len(text) else text


@cache
def _program(pattern: _Patterns) -> _Program:
    # A pattern of bytes has no flag for it, and knows ASCII alone.
    flags = pattern.flags | (re.ASCII if isinstance(pattern.pattern, bytes) else 0)
    return _compiled(parser.parse(pattern.pattern, pattern.flags), flags)


def _compiled(items: Any, flags: int) -> _Program:  # noqa: ANN401 # a parsed pattern
    program: _Program = []
    _add(program, items, flags)
    return [*program, _step(_END)]


def _step(kind: int, *words: Any) -> tuple[int, Any, Any, Any, Any]:  # noqa: ANN401 # of each kind others
    first, second, third, fourth = (*words, None, None, None, None)[:4]
    return kind, first, second, third, fourth


def _add(program: _Program, items: Any, flags: int) -> None:  # noqa: ANN401 # a parsed pattern
    for name, value in items:
        if name in _WIDTH_OF_ONE:
            program.append(_step(_ONE, _chars(name, value, flags)))
        elif name in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            _add_repeat(program, name, value, flags)
        elif name is sre.SUBPATTERN:
            group, added, removed, inside = value
            program.append(_step(_SAVE, (group, 0)))
            _add(program, inside, (flags | added) & ~removed)
            program.append(_step(_SAVE, (group, 1)))
        elif name is sre.BRANCH:
            _add_branches(program, value[1], flags)
        elif name is sre.AT:
            program.append(_step(_PLACE, _place(value, flags)))
        elif name in {sre.ASSERT, sre.ASSERT_NOT}:
            direction, inside = value
            width = inside.getwidth()[0] if direction < 0 else 0
            program.append(_step(_LOOK, _compiled(inside, flags), width, name is sre.ASSERT))
        elif name is sre.ATOMIC_GROUP:
            program.append(_step(_ATOMIC, _compiled(value, flags)))
        elif name is sre.GROUPREF:
            program.append(_step(_BACK, value))
        else:
            raise NotImplementedError(str(name))


def _add_branches(program: _Program, branches: Any, flags: int) -> None:  # noqa: ANN401 # parsed patterns
    *others, last = branches
    jumps = []
    for branch in others:
        split = len(program)
        program.append(_step(_SPLIT))
        _add(program, branch, flags)
        jumps.append(len(program))
        program.append(_step(_JUMP))
        program[split] = _step(_SPLIT, split + 1, len(program))
    _add(program, last, flags)
    for jump in jumps:
        program[jump] = _step(_JUMP, len(program))


def _add_repeat(program: _Program, name: Any, value: Any, flags: int) -> None:  # noqa: ANN401 # a parsed pattern
    least, most, inside = value
    most = sys.maxsize if most == sre.MAXREPEAT else most
    if len(inside) == 1 and inside[0][0] in _WIDTH_OF_ONE and name is not sre.MIN_REPEAT:
        program.append(_step(_MANY, _chars(inside[0][0], inside[0][1], flags), least, most, name is sre.MAX_REPEAT))
        return
    if name is sre.POSSESSIVE_REPEAT:
        program.append(_step(_ATOMIC, _compiled([(sre.MAX_REPEAT, value)], flags)))
        return
    for _ in range(least):
        _add(program, inside, flags)
    splits = []
    for _ in range(most - least if most - least <= _MOST_COPIES else 1):
        splits.append(len(program))
        program += _step(_SPLIT), _step(_SAVE, ("loop", splits[-1]))
        _add(program, inside, flags)
        # A loop ends with a turn that takes nothing.
        program.append(_step(_MOVED, ("loop", splits[-1])))
    if most - least > _MOST_COPIES:
        program.append(_step(_JUMP, splits[0]))
    for split in splits:
        ways = split + 1, len(program)
        program[split] = _step(_SPLIT, *(ways if name is sre.MAX_REPEAT else ways[::-1]))


def _chars(name: Any, value: Any, flags: int) -> _Chars:  # noqa: ANN401 # a parsed item
    return _Chars(value if name is sre.IN else [(name, value)], flags)


def _place(where: Any, flags: int) -> Callable[[_Text, int], bool]:  # noqa: ANN401 # a parsed item
    patterns = {
        sre.AT_BEGINNING: "^",
        sre.AT_BEGINNING_STRING: r"\A",
        sre.AT_BOUNDARY: r"\b",
        sre.AT_NON_BOUNDARY: r"\B",
        sre.AT_END: "$",
        sre.AT_END_STRING: r"\Z",
    }
    flags &= re.MULTILINE | re.ASCII
    of_text = re.compile(patterns[where], flags)
    of_bytes = re.compile(patterns[where].encode(), flags)
    return lambda text, at: (of_text if isinstance(text, str) else of_bytes).match(text, at) is not None


# --- the patterns of the package --------------------------------------------------------------------------------------


class _CountedPattern:
    """A pattern whose matches are also looked for by the matcher that counts, while it counts.

    The package may keep it for longer: then it is a plain pattern until the next count.
    """

    counter: StepCounter | None = None

    def __init__(self, pattern: _Patterns) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 # of a pattern
        return getattr(self._pattern, name)

    def match(self, text: _Text, pos: int = 0, endpos: int = sys.maxsize) -> re.Match[Any] | None:
        found = self._pattern.match(text, pos, endpos)
        if self.counter:
            assert self.counter.match(self._pattern, text, pos, endpos) == (found and found.end()), self._pattern
        return found

    def fullmatch(self, text: _Text, pos: int = 0, endpos: int = sys.maxsize) -> re.Match[Any] | None:
        found = self._pattern.fullmatch(text, pos, endpos)
        if self.counter:
            stop = self.counter.match(self._pattern, text, pos, endpos, is_full=True)
            assert stop == (found and found.end()), self._pattern
        return found

    def search(self, text: _Text, pos: int = 0, endpos: int = sys.maxsize) -> re.Match[Any] | None:
        return next(self.finditer(text, pos, endpos), None)

    def finditer(self, text: _Text, pos: int = 0, endpos: int = sys.maxsize) -> Iterator[re.Match[Any]]:
        for found in self._pattern.finditer(text, pos, endpos):
            if self.counter:
                assert self.counter.search(self._pattern, text, pos, endpos) == found.span(), self._pattern
            yield found
            pos = found.end() + (found.end() == found.start())
        if self.counter:
            assert self.counter.search(self._pattern, text, pos, endpos) is None, self._pattern

    def findall(self, text: _Text, pos: int = 0, endpos: int = sys.maxsize) -> list[Any]:
        self._count_all(text, pos, endpos)
        return self._pattern.findall(text, pos, endpos)

    def split(self, text: _Text, maxsplit: int = 0) -> list[Any]:
        self._count_all(text)
        return self._pattern.split(text, maxsplit)

    def sub(self, repl: Any, text: _Text, count: int = 0) -> Any:  # noqa: ANN401 # str or bytes
        self._count_all(text)
        return self._pattern.sub(repl, text, count)

    def subn(self, repl: Any, text: _Text, count: int = 0) -> Any:  # noqa: ANN401 # str or bytes
        self._count_all(text)
        return self._pattern.subn(repl, text, count)

    def _count_all(self, text: _Text, pos: int = 0, endpos: int = sys.maxsize) -> None:
        for _ in self.finditer(text, pos, endpos):
            pass


# A pattern that stands in two modules is one object, as some code asks.
_of = cache(_CountedPattern)


@contextmanager
def counted_patterns() -> Iterator[StepCounter]:
    """Count the steps of the patterns of the package, wherever its modules keep or make them."""

    def counted(function: Any) -> Any:  # noqa: ANN401 # of the module `re`
        def call(pattern: Any, *words: Any, **options: Any) -> Any:  # noqa: ANN401 # as those of the module
            if not sys._getframe(1).f_globals["__name__"].startswith("footprint."):
                return function(pattern, *words, **options)
            if function is compile_pattern:
                return _of(compile_pattern(pattern, *words, **options))
            compiled = _of(compile_pattern(pattern, options.pop("flags", 0)))
            return getattr(compiled, function.__name__)(*words, **options)

        return call

    compile_pattern = re.compile
    names = "compile", "match", "fullmatch", "search", "finditer", "findall", "split", "sub", "subn"
    functions = [(re, name, getattr(re, name), counted(getattr(re, name))) for name in names]
    places, caches = _patterns_and_caches(len(sys.modules))
    _CountedPattern.counter = StepCounter()
    try:
        for module, name, _, replaced in (*functions, *places):
            setattr(module, name, replaced)
        # A pattern may be in an answer that a function keeps, where it is not counted.
        for answers in caches:
            answers.cache_clear()
        yield _CountedPattern.counter
    finally:
        _CountedPattern.counter = None
        for module, name, value, _ in (*functions, *places):
            setattr(module, name, value)


@cache
def _patterns_and_caches(_module_count: int) -> tuple[list[tuple[ModuleType, str, Any, Any]], list[Any]]:
    """Return where patterns are in the modules of the package, with what replaces them, and the caches of functions."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("footprint.")]
    values = [(module, name, value) for module in modules for name, value in list(vars(module).items())]
    places = [(*place, new) for place in values if (new := _counted(place[2])) is not place[2]]
    return places, [value for _, _, value in values if isinstance(value, _Cached)]


def _counted(value: Any) -> Any:  # noqa: ANN401 # any value of a module
    """Return a value with counted patterns in the place of its patterns; itself, where it has none."""
    if isinstance(value, re.Pattern):
        return _of(value)
    if isinstance(value, BuiltinMethodType) and isinstance(value.__self__, re.Pattern):
        return getattr(_of(value.__self__), value.__name__)
    if isinstance(value, (tuple, list)):
        parts = [_counted(part) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        members = {key: _counted(part) for key, part in value.items()}
        return value if all(members[key] is part for key, part in value.items()) else members
    return value
