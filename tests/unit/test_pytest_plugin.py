"""The pytest plugin: what a marked test may return, what fails it, and what it then says."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
SHADOW = ROOT / "sample_binaries" / "condor_shadow"
SLEEPER = """
    import subprocess, pytest

    @pytest.fixture
    def sleeper():
        # What it says shows that it runs: right after its start its files are not mapped yet.
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            child.stdin.write(b"ready\\n")
            child.stdin.flush()
            child.stdout.readline()
            yield child
            child.kill()
"""
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a test file with the plugin, as strictly as we run our own; installed or not, it is loaded once."""
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makeini("[pytest]\naddopts = --strict-markers\nfilterwarnings = error")

    def run_pytest(text: str, *words: str) -> pytest.RunResult:
        pytester.makeconftest(SLEEPER)
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess(
            "-p", "no:footprint", "-p", "footprint.pytest_plugin", "-p", "no:hypothesispytest", *words
        )

    return run_pytest


def failure(result: pytest.RunResult) -> list[str]:
    """Return the lines of the one failure, without the captured ones."""
    lines = result.outlines
    start = next(number for number, line in enumerate(lines) if line.startswith("____"))
    rest = lines[start + 1 :]
    end = next(number for number, line in enumerate(rest) if line.startswith(("----", "====")))
    return rest[:end]


# --- what is returned -------------------------------------------------------------------------------------------------


def test_other_tests_that_yield_are_refused_as_ever(run: Run) -> None:
    run("def test_other(): yield 1").stdout.fnmatch_lines(
        ["*'yield' keyword is allowed in fixtures, but not in tests*"]
    )


def test_a_popen_that_is_returned_is_ended_after_it_was_audited(run: Run) -> None:
    result = run("""
        import subprocess, pytest

        started = []

        @pytest.mark.footprint(per_process="64 MiB")
        def test_cost():
            started.append(subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE))
            return started[0]

        def test_it_is_gone():
            assert started[0].returncode == -15
            assert started[0].stdout.closed
    """)
    result.assert_outcomes(passed=2)


def test_a_limit_that_is_exceeded_fails_as_briefly_as_check_does(run: Run) -> None:
    result = run(f"""
        import pytest

        @pytest.mark.footprint(mapped_writable="300 KiB")
        def test_cost():
            return {str(SHADOW / "base")!r}
    """)
    result.assert_outcomes(failed=1)
    lines = failure(result)
    assert len(lines) <= 12
    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "footprint: 1 of 1 limit exceeded: mapped_writable_bytes by 108 KiB, most of it libunused.so."
    )
    assert "is 408 KiB limit 300 KiB too much 108 KiB most of it 160 KiB libunused.so" in text
    assert "The limit stands in @pytest.mark.footprint." in text
    result.stdout.fnmatch_lines(["FAILED *::test_cost - *footprint: 1 of 1 limit exceeded: mapped_writable_bytes by *"])


WRONG = [
    ("per_proces='1 MiB'", "1", "there is no key 'per_proces'; did you mean 'per_process_bytes'?"),
    ("per_process='1 M'", "1", "per_process_bytes: '1 M' is ambiguous"),
    ("", "1", "it has no limit"),
    ("'24 MiB'", "1", "the mark `footprint` has names for all that it says"),
    ("private='1 MiB'", "None", "None is not a process: use a PID"),
    ("private='1 MiB'", "True", "True is not a process"),
    ("private='1 MiB'", "[]", "[] is not a command"),
    ("private='1 MiB'", "'sleep 600'", "'sleep 600' is not a file: write a command as a list of words"),
    ("private='1 MiB'", "'/nowhere'", "/nowhere: No such file or directory"),
    ("private='1 MiB'", "99999999", "99999999: "),
    ("private='1 MiB', when='soon'", "['true']", "'soon' is not a moment"),
    ("private='1 MiB', when='exit'", "1", "`when` goes with a command"),
    ("private='1 MiB', config='none.toml'", "1", "none.toml: No such file or directory"),
    ("owners={'libnone.so': 1}", repr(str(SHADOW / "base")), "there is no 'libnone.so' among its owners"),
    ("floor={'max_increase': 0}", repr(str(SHADOW / "base")), "needs a baseline"),
]


def test_what_cannot_be_checked_fails_in_one_line(run: Run) -> None:
    tests = (
        f"@pytest.mark.footprint({limits})\ndef test_{number}():\n    return {target}\n"
        for number, (limits, target, _) in enumerate(WRONG)
    )
    result = run("import pytest\n" + "\n".join(tests))
    result.assert_outcomes(failed=len(WRONG))
    for number, (_, _, said) in enumerate(WRONG):
        start = next(place for place, line in enumerate(result.outlines) if line.strip("_") == f" test_{number} ")
        line, after = result.outlines[start + 1 : start + 3]
        assert line.startswith("footprint: ")
        assert said in line
        assert "\x1b" not in line
        assert after.startswith(("___", "==="))


def test_a_process_that_has_ended_is_told_as_such(run: Run) -> None:
    result = run("""
        import subprocess, pytest

        @pytest.mark.footprint(private="1 MiB")
        def test_cost():
            child = subprocess.Popen(["false"])
            child.wait()
            return child
    """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["footprint: process * has ended with 1: only a running process can be audited"])


def test_a_test_that_fails_by_itself_fails_as_ever_and_audits_nothing(run: Run) -> None:
    result = run("""
        import pytest

        @pytest.mark.footprint(private="1 MiB")
        def test_cost():
            assert 1 == 2
    """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       assert 1 == 2"])


def test_methods_of_unittest_and_async_tests_are_refused_since_what_they_return_is_lost(run: Run) -> None:
    result = run("""
        import pytest, unittest
        pytestmark = pytest.mark.footprint(private=1)

        class TestCost(unittest.TestCase):
            def test_cost(self):
                pass

        async def test_async():
            pass
    """)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["footprint: the mark `footprint` goes with test functions: *"])
    result.stdout.fnmatch_lines(["footprint: the mark `footprint` does not go with async tests: *"])


def test_growth_is_checked_against_a_baseline(run: Run, pytester: pytest.Pytester) -> None:
    from footprint.cli import main

    baseline = pytester.path / "server.json"
    old, new = pytester.mkdir("old") / "server", pytester.mkdir("new") / "server"
    old.write_bytes((SHADOW / "sans_crypt").read_bytes())
    new.write_bytes((SHADOW / "base").read_bytes())
    for folder in (old.parent, new.parent):
        for name in ("libunused.so", "libunused_dep.so"):
            (folder / name).write_bytes((SHADOW / name).read_bytes())
    assert main(["audit", str(old), "-o", str(baseline)]) == 0
    result = run("""
        import pytest

        @pytest.mark.footprint(baseline="server.json", ceiling={"max_increase": 0})
        @pytest.mark.parametrize("build", ["old", "new"])
        def test_cost(build):
            return f"{build}/server"
    """)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED *new* - *ceiling_bytes by * came with libunused.so*"])


# --- the fixture ------------------------------------------------------------------------------------------------------


def test_the_fixture_fails_the_test_as_the_mark_does(run: Run) -> None:
    result = run("""
        def test_cost(footprint, sleeper):
            footprint.check(sleeper, library_count=0)
    """)
    result.assert_outcomes(failed=1)
    text = " ".join(failure(result))
    assert text.startswith("footprint: 1 of 1 limit exceeded: library_count by ")
    assert "The limit stands in footprint.check." in text


def test_what_the_fixture_cannot_audit_fails_in_one_line(run: Run) -> None:
    result = run("""
        def test_cost(footprint):
            footprint("/nowhere")
    """)
    result.assert_outcomes(failed=1)
    assert failure(result) == ["footprint: /nowhere: No such file or directory"]


# --- pytest -----------------------------------------------------------------------------------------------------------


def test_the_mark_and_the_fixture_are_explained(run: Run) -> None:
    run("", "--markers").stdout.fnmatch_lines(["@pytest.mark.footprint(per_process=..., *"])
    run("", "--fixtures").stdout.fnmatch_lines(["footprint -- *", "*Audit a process: *"])


def test_a_run_in_which_no_test_uses_it_imports_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_other():\n"
        "    ours = {name for name in sys.modules if name.startswith('footprint')}\n"
        "    assert ours == {'footprint', 'footprint.errors', 'footprint.members', 'footprint.pytest_plugin'}\n"
        "    assert not {'rich', 'typer', 'lief', 'sqlite3'} & set(sys.modules)\n"
    )
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:footprint",
        "-p",
        "footprint.pytest_plugin",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout.decode()


def test_the_package_tells_pytest_where_it_is() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert told["project"]["entry-points"]["pytest11"] == {"footprint": "footprint.pytest_plugin"}
