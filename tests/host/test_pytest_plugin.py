"""The pytest plugin with commands that it starts itself, and with processes that a test starts."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import footprint

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


def test_a_process_within_its_limit_passes_however_it_is_named(run: Run) -> None:
    result = run(f"""
        import pathlib, pytest
        pytestmark = pytest.mark.footprint(per_process="64 MiB")

        def test_pid(sleeper):
            return sleeper.pid

        def test_command():
            return ["cat", {str(ROOT / "README.md")!r}]

        def test_program():
            return {str(SHADOW / "base")!r}

        def test_path():
            return pathlib.Path({str(SHADOW / "base")!r})
    """)
    result.assert_outcomes(passed=4)


def test_a_test_that_yields_its_process_ends_it_itself(run: Run) -> None:
    result = run("""
        import pathlib, subprocess, time, pytest

        ended = []

        @pytest.mark.footprint(per_process="64 MiB")
        @pytest.mark.parametrize("seconds", ["600", "601"])
        def test_function(seconds, tmp_path):
            with subprocess.Popen(["sleep", seconds]) as child:
                yield child
                child.kill()
            ended.append(child.returncode)

        @pytest.mark.footprint(library_count=0)
        class TestCost:
            def test_method(self):
                with subprocess.Popen(["sleep", "600"]) as child:
                    while "libc" not in pathlib.Path(f"/proc/{child.pid}/maps").read_text():
                        time.sleep(0.01)
                    yield child.pid
                    yield ["true"]
                    child.terminate()
                ended.append(child.returncode)
                1 / 0

            @pytest.mark.footprint(library_count=50)
            def test_several(self, sleeper):
                yield sleeper.pid
                yield ["true"]
                assert sleeper.poll() is None

            def test_none(self):
                if False:
                    yield 1

        def test_all_ended():
            assert ended == [-9, -9, -15]
    """)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        ["FAILED *::test_method - *library_count by *", "FAILED *::test_none - *yields nothing: *"]
    )


def test_the_mark_of_a_class_and_of_its_test_hold_together(run: Run) -> None:
    result = run("""
        import pytest

        @pytest.mark.footprint(per_process="64 MiB", library_count=0)
        class TestCost:
            @pytest.mark.footprint(library_count=50)
            @pytest.mark.parametrize("program", ["true", "arch"])
            def test_cost(self, program):
                return [program]

            def test_other(self):
                return ["true"]
    """)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_other - *library_count by *"])


def test_the_limits_of_a_file_hold_with_those_of_the_mark_which_win(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", budgets='[budgets]\nlibrary_count = 0\nmapping_count = 1000\n[libraries]\ndeny = ["x*"]')
    text = """
        import os, pytest

        @pytest.mark.footprint(config="budgets.toml"{more})
        def test_cost(tmp_path, monkeypatch):
            monkeypatch.chdir(tmp_path)
            return ["true"]
    """
    result = run(text.format(more=""))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 of 3 limits exceeded: library_count by *"])
    run(text.format(more=", library_count=50")).assert_outcomes(passed=1)


def test_the_fixture_audits_and_checks_in_the_middle_of_a_test(run: Run) -> None:
    result = run("""
        def test_cost(footprint, sleeper):
            before = footprint(sleeper)
            assert before.totals.per_process.bytes > before.totals.private.bytes > 0
            assert footprint.check(sleeper.pid, per_process="64 MiB", owners={"[stack]": "1 MiB"}).failures == ()
            assert footprint(["true"], when="exit").source == "smaps"
            assert sleeper.poll() is None
    """)
    result.assert_outcomes(passed=1)


def test_what_was_measured_goes_into_the_junit_file(run: Run, pytester: pytest.Pytester) -> None:
    run(
        """
        import pytest

        @pytest.mark.footprint(mapping_count=1000)
        def test_cost():
            return ["true"]
        """,
        "--junit-xml=junit.xml",
    )
    assert '<property name="footprint mapping_count" value="' in (pytester.path / "junit.xml").read_text()


def test_a_command_that_cannot_be_started_fails_in_one_line(run: Run) -> None:
    result = run("""
        import pytest

        @pytest.mark.footprint(private="1 MiB")
        def test_cost():
            return ["/nowhere/\\x1b"]
    """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["footprint: *No such file or directory*"])
    result.stdout.no_fnmatch_line("*\x1b*")


def test_the_mark_fails_where_the_command_crashes_exits_with_another_code_or_is_never_ready(run: Run) -> None:
    result = run("""
        import pytest

        @pytest.mark.footprint(per_process="1 GiB")
        def test_crash():
            return ["sh", "-c", "kill -SEGV $$"]

        @pytest.mark.footprint(per_process="1 GiB")
        def test_exit():
            return ["sh", "-c", "exit 1"]

        @pytest.mark.footprint(per_process="1 GiB", when_output="ready")
        def test_ready():
            return ["sh", "-c", "echo starting"]

        @pytest.mark.footprint(per_process="1 GiB", when_output="ready", allow=["moment", "exit"])
        def test_allowed():
            return ["sh", "-c", "echo starting; exit 1"]

        @pytest.mark.footprint(per_process="1 GiB", expect_exit=1)
        def test_expected():
            return ["sh", "-c", "exit 1"]
    """)
    result.assert_outcomes(failed=3, passed=2)
    for cause in (
        "The run failed: SIGSEGV ended it.",
        "The run failed: it exited with 1, not with 0.",
        "The run failed: it ended before it printed the line that was waited for.",
    ):
        result.stdout.fnmatch_lines([f"*{cause}*"])


def test_growth_fails_only_beyond_the_spread_of_the_starts(run: Run, tmp_path: Path) -> None:
    count = tmp_path / "count"
    # Each start takes a MiB more than the one before it.
    script = f"import pathlib; at = pathlib.Path({str(count)!r}); n = int(at.read_text()); at.write_text(str(n + 1)); "
    script += "import os; kept = bytearray(b'x') * (n << 20); os._exit(0)"
    command = [sys.executable, "-ISc", script]
    count.write_text("1")
    footprint.save(footprint.run(command, starts=3), tmp_path / "baseline.json")
    # Starts of 2, 3 and 4 MiB after those of 1, 2 and 3; then 5, 6 and 7.
    count.write_text("2")
    result = run(f"""
        import pytest
        pytestmark = pytest.mark.footprint(
            starts=3, private={{"max_increase": 0}}, baseline={str(tmp_path / "baseline.json")!r}
        )

        def test_within():
            return {command!r}

        def test_beyond():
            return {command!r}
    """)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*beyond the spread of the starts, with 95 % confidence*"])
