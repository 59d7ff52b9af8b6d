"""The pytest plugin: the mark `footprint` for what a process may cost, and a fixture of that name to audit one.

Loaded in every run of pytest where footprint is installed: nothing else is imported before a test uses it.
"""

import functools
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from footprint.errors import FootprintError, UsageError

if TYPE_CHECKING:
    from footprint.model.audit import Audit
    from footprint.release.budget import Checked
    from footprint.release.budget_file import Budgets
    from footprint.verbs.run.result import RunResult


_MARK: Final = "footprint"
_TERM_SECONDS: Final = 3.0
# What `footprint.run` is told, and what stands beside the budgets in a budget file.
_RUN_KEYS: Final = ("when", "when_output", "starts", "timeout_seconds", "expect_exit", "allow")
_FILE_KEYS: Final = ("at_processes", "baseline", "libraries")


class Footprint:
    """The fixture `footprint`: audits processes, and checks them against limits.

    What goes wrong, and a limit that is exceeded, fails the test in a few lines.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __call__(self, target: object, **options: Any) -> "Audit":  # noqa: ANN401 # those of two verbs
        """Audit a process.

        Args:
            target: A PID; a `Popen`, or what else has a `pid`, which runs on; a command as a list of words, which is
                run; or a path, as `footprint.audit` takes it.
            options: For a command those of `footprint.run`, else those of `footprint.audit`.
        """
        with _short_errors():
            return _audit(target, options)

    def check(self, target: object, **limits: Any) -> "Checked":  # noqa: ANN401 # sizes, numbers and tables
        """Audit a process, and fail where it costs more than it may.

        Args:
            target: As above.
            limits: As those of the mark.
        """
        with _short_errors():
            return _check(self._item, target, limits, "footprint.check")


@pytest.fixture(name="footprint")
def _footprint(request: pytest.FixtureRequest) -> Footprint:
    """Audit a process: `footprint(pid)`; fail where it costs too much: `footprint.check(pid, per_process="24 MiB")`."""
    item = request.node
    assert isinstance(item, pytest.Item)  # noqa: S101 # a fixture of a function is asked for by one
    return Footprint(item)


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers",
        "footprint(per_process=..., private=..., owners={...}, config=...): what a process that the test yields or "
        "returns may cost: a PID, a Popen (ended where it is returned), a command as a list of words, or a path.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse the mark where nothing would come of it."""
    if item.get_closest_marker(_MARK) is None:
        return
    unittest = sys.modules.get("unittest")
    owner = getattr(item, "cls", None)
    is_case = unittest is not None and isinstance(owner, type) and issubclass(owner, unittest.TestCase)
    if is_case or not isinstance(item, pytest.Function):
        _fail("the mark `footprint` goes with test functions: what this test returns is not known")
    if inspect.iscoroutinefunction(item.obj) or inspect.isasyncgenfunction(item.obj):
        _fail("the mark `footprint` does not go with async tests: use the fixture `footprint` in it")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> object:
    """Allow a marked test to yield its processes: pytest refuses other tests that yield."""
    if not inspect.isgeneratorfunction(obj):
        return None
    marks = (*collector.iter_markers(_MARK), *(mark for mark in getattr(obj, "pytestmark", ()) if mark.name == _MARK))
    if not marks or not collector.funcnamefilter(name):
        return None

    @functools.wraps(obj)
    def collected() -> None:
        """Stand for the test where pytest looks at what kind of function it is."""

    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=name, obj=collected)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check what a marked test returns or yields."""
    limits = _limits(pyfuncitem)
    if limits is None:
        return (yield)
    function = pyfuncitem.obj

    def check(target: object) -> None:
        with _short_errors():
            _check(pyfuncitem, target, limits, "@pytest.mark.footprint")

    pyfuncitem.obj = _checking(function, check)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = function


def _limits(item: pytest.Item) -> dict[str, Any] | None:
    """Return the limits of all marks of a test: the nearest mark wins."""
    marks = list(item.iter_markers(_MARK))
    if not marks:
        return None
    limits: dict[str, Any] = {}
    for mark in reversed(marks):
        if mark.args:
            _fail(
                f'the mark `footprint` has names for all that it says, such as per_process="24 MiB": {mark.args[0]!r}'
            )
        limits |= mark.kwargs
    return limits


def _checking(function: Any, check: Callable[[object], None]) -> Any:  # noqa: ANN401 # any test
    """Return a test that checks what another returns, and itself returns nothing: pytest warns of tests that do."""

    @functools.wraps(function)
    def called(*arguments: object, **named: object) -> None:
        __tracebackhide__ = True
        returned = function(*arguments, **named)
        if inspect.isgenerator(returned):
            _check_yielded(returned, check)
        else:
            _check_returned(returned, check)

    return called


def _check_returned(target: object, check: Callable[[object], None]) -> None:
    __tracebackhide__ = True
    try:
        check(target)
    finally:
        _end(target)


def _check_yielded(targets: Iterator[object], check: Callable[[object], None]) -> None:
    """Check each process while the test waits, and let the test go on, whatever came of it: it ends them itself."""
    __tracebackhide__ = True
    count, failures = 0, []
    try:
        for target in targets:
            count += 1
            try:
                check(target)
            except pytest.fail.Exception as failure:
                failures.append(failure.msg or "")
    except Exception as error:
        if not failures:
            raise
        failures.append(f"After that the test failed as well: {error!r}")
    if failures:
        raise pytest.fail.Exception("\n\n".join(failures), pytrace=False)
    if not count:
        _fail("the test yields nothing: yield a PID, a Popen, a command as a list of words, or a path")


def _end(process: object) -> None:
    """End what a test has started and returned: nobody else has it any more."""
    if not isinstance(process, subprocess.Popen):
        return
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERM_SECONDS)
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _fail(text: str) -> NoReturn:
    raise pytest.fail.Exception(f"footprint: {text}", pytrace=False)


@contextmanager
def _short_errors() -> Iterator[None]:
    """Make errors of footprint failures of one line."""
    __tracebackhide__ = True
    try:
        yield
    except FootprintError as error:
        from footprint.text.escape import printable  # noqa: PLC0415 # only where something goes wrong

        text = f"footprint: {printable(str(error))}"
        raise pytest.fail.Exception(text, pytrace=False) from None


def _check(item: pytest.Item, target: object, limits: Mapping[str, Any], where: str) -> "Checked":
    from footprint.verbs.check.call import check  # noqa: PLC0415 # most tests audit nothing

    budgets = _budgets(limits, where, str(item.config.rootpath))
    options = {key: limits[key] for key in _RUN_KEYS if key in limits}
    if isinstance(target, list | tuple):
        ran = _run(target, options)
        checked = check(ran.audit, budgets, spreads=ran.spreads)
    elif options:
        raise UsageError(f"{where}: `{next(iter(options))}` goes with a command, not with a running process")
    else:
        checked = check(_named(target), budgets)
    item.user_properties.extend((f"footprint {result.key}", result.value) for result in checked.results)
    if checked.failures:
        from footprint.formats.document import note_blocks  # noqa: PLC0415 # the same
        from footprint.formats.text import plain  # noqa: PLC0415 # the same
        from footprint.text.escape import printable  # noqa: PLC0415 # only where it fails
        from footprint.verbs.check.text import check_verdict, failure_document  # noqa: PLC0415 # the same

        audit = checked.audit
        if audit.notes:
            item.add_report_section("call", "notes of footprint", plain(tuple(note_blocks(audit.notes, audit.target))))
        text = f"footprint: {printable(check_verdict(checked))}\n\n{plain(failure_document(checked))}"
        raise pytest.fail.Exception(text.rstrip(), pytrace=False)
    return checked


def _budgets(limits: Mapping[str, Any], where: str, root: str) -> "Budgets":
    """Make budgets of the names of a mark, and of the file that it names.

    Raises:
        UsageError: Where they mean nothing.
    """
    from footprint.model.figures import BUDGETED  # noqa: PLC0415 # the same
    from footprint.release.budget_file import parse_budgets  # noqa: PLC0415 # the same
    from footprint.verbs.check.call import load_budgets  # noqa: PLC0415 # the same

    tables: dict[str, Any] = {"budgets": {}}
    for key, value in limits.items():
        if key in _FILE_KEYS:
            tables[key] = value
        elif key not in {"config", *_RUN_KEYS}:
            tables["budgets"][f"{key}_bytes" if f"{key}_bytes" in BUDGETED else key] = value
    if isinstance(tables.get("baseline"), str):
        tables["baseline"] = os.path.join(root, tables["baseline"])
    own_budgets = parse_budgets(tables, where)
    config = limits.get("config")
    if config is None:
        if not own_budgets.budgets and "libraries" not in tables:
            raise UsageError(f'{where}: it has no limit: name one, such as per_process="24 MiB", or config="FILE"')
        return own_budgets
    read = load_budgets(os.path.join(root, os.fspath(config)))
    names = {budget.key for budget in own_budgets.budgets}
    return read._replace(
        # Its folder is that of the baseline.
        file=f"{read.file}, or in {where}" if own_budgets.budgets else read.file,
        at_processes=own_budgets.at_processes if "at_processes" in tables else read.at_processes,
        baseline=own_budgets.baseline or read.baseline,
        budgets=(*(budget for budget in read.budgets if budget.key not in names), *own_budgets.budgets),
        allowed=own_budgets.allowed if own_budgets.allowed is not None else read.allowed,
        denied=(*read.denied, *own_budgets.denied),
        allows_new=own_budgets.allows_new and read.allows_new,
    )


def _audit(target: object, options: Mapping[str, Any]) -> "Audit":
    if isinstance(target, list | tuple):
        return _run(target, options).audit
    from footprint.verbs.audit.call import audit  # noqa: PLC0415 # the same

    return audit(_named(target), **options)


def _run(command: Sequence[object], options: Mapping[str, Any]) -> "RunResult":
    from footprint.verbs.run.call import run  # noqa: PLC0415 # the same

    words = [os.fspath(word) for word in command if isinstance(word, str | os.PathLike)]
    if not words or len(words) < len(command):
        raise UsageError(f"{command!r} is not a command: use the program and its arguments as texts")
    return run(words, **options)


def _named(target: object) -> int | str:
    """Return a target as the verbs take it.

    Raises:
        UsageError: Where it is none, or the process has ended.
    """
    if isinstance(target, subprocess.Popen) and target.poll() is not None:
        raise UsageError(
            f"process {target.pid} has ended with {target.returncode}: only a running process can be audited"
        )
    number = getattr(target, "pid", target)
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    if isinstance(target, str):
        if " " in target and not os.path.exists(target):
            raise UsageError(f"{target!r} is not a file: write a command as a list of words")
        return target
    raise UsageError(f"{target!r} is not a process: use a PID, a Popen, a command as a list of words, or a path")
