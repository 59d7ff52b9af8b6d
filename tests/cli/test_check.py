"""`footprint check`: exit codes, messages, and when a baseline is written."""

import json
import os
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from footprint.text.units import parse_bytes

SHADOW = Path(__file__).resolve().parents[2] / "sample_binaries" / "condor_shadow"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of its own, with the first stage as `server`."""
    for name in ("libunused.so", "libunused_dep.so"):
        shutil.copy(SHADOW / name, tmp_path)
    build(tmp_path, "base")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(folder: Path, stage: str) -> None:
    shutil.copy(SHADOW / stage, folder / "server")


def check(capsys: Captured, *words: str, target: str = "server") -> tuple[int, str, str]:
    code = main(["check", target, *words])
    out, error = capsys.readouterr()
    return code, out, error


def write(text: str, name: str = "footprint.toml") -> None:
    Path(name).write_text(text)


def test_what_is_proposed_passes_until_something_grows(capsys: Captured, folder: Path) -> None:
    build(folder, "sans_crypt")
    assert check(capsys, "--propose", "-o", "footprint.toml")[0] == 0
    code, out, _ = check(capsys)
    assert (code, out.splitlines()[-1]) == (0, "All 7 limits hold.")
    build(folder, "base")
    code, out, _ = check(capsys)
    assert code == 1
    assert "Exceeded: library_count" in out


@pytest.mark.parametrize(("room", "share"), [((), 5), (("--max-increase", "1 %"), 1), (("--max-increase", "20%"), 20)])
def test_a_proposal_leaves_the_room_that_was_asked_for(
    capsys: Captured, folder: Path, room: tuple[str, ...], share: int
) -> None:
    build(folder, "base")
    code, out, _ = check(capsys, "--propose", *room)
    assert code == 0
    proposed = tomllib.loads(out)["budgets"]
    limits = {name: parse_bytes(limit) for name, limit in proposed.items() if isinstance(limit, str)}
    # base maps 408 KiB that are writable; how many of them are private at its start depends on the C library.
    private_bytes = footprint.audit("server").totals.private.bytes or 0
    assert 80 << 10 <= private_bytes <= 112 << 10
    for name, now in (("mapped_writable_bytes", 408 << 10), ("private_bytes", private_bytes)):
        assert limits[name] / now == pytest.approx(1 + share / 100, abs=0.001)


def test_what_a_reproducible_check_leaves_out_is_said(capsys: Captured) -> None:
    write("reproducible = true\n[budgets]\nper_process_bytes = '1 GiB'\n")
    code, out, _ = check(capsys)
    said = " ".join(out.split())
    assert (code, "as `audit --reproducible` has them: without what this machine was calibrated for" in said) == (
        0,
        True,
    )
    write("[budgets]\nper_process_bytes = '1 GiB'\n")
    assert "the figures are predicted from its files." in " ".join(check(capsys)[1].split())


def test_a_check_that_fails_says_what_to_do(capsys: Captured) -> None:
    write("[budgets]\nlibrary_count = 1\n")
    code, out, _ = check(capsys)
    assert code == 1
    advice = out[out.index("What to do") : out.index("1 of 1 limit exceeded")]
    assert "libunused.so" in advice
    write("[budgets]\nlibrary_count = 100\n")
    assert "What to do" not in check(capsys)[1]


def test_a_gate_in_one_line_fails_where_the_program_grew_by_more(capsys: Captured, folder: Path) -> None:
    """Without a budget file: what the program costs is saved once, and compared from then on."""
    build(folder, "sans_crypt")
    gate = ("--max-increase", "5 %")
    code, _, error = check(capsys, *gate)
    assert (code, "the same command with --update-baseline writes it" in error) == (2, True)
    assert check(capsys, *gate, "--update-baseline", "-q") == (
        0,
        "footprint-baseline.json is the new baseline; the limits that need none hold.\n",
        "",
    )
    assert check(capsys, *gate, "-q") == (0, "All 2 limits hold.\n", "")
    build(folder, "base")
    code, out, _ = check(capsys, *gate)
    assert code == 1
    assert "The limit is that of --max-increase 5 %." in out
    assert "Exceeded: per_process_bytes" in out
    assert out.splitlines()[-1].endswith("libunused.so.")
    assert check(capsys, "--max-increase", "5 % or 1 MiB", "-q")[0] == 0


def test_the_baseline_of_a_gate_in_one_line_may_be_any_saved_audit(capsys: Captured, folder: Path) -> None:
    build(folder, "base")
    assert main(["audit", str(folder / "server"), "-o", "before.json", "-q"]) == 0
    capsys.readouterr()
    # It was saved with what this machine adds, and is compared with that.
    assert check(capsys, "--max-increase", "0 %", "--baseline", "before.json", "-q")[:2] == (0, "All 2 limits hold.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-increase", "much"], "footprint: --max-increase: 'much' is not a size: write it like "),
        (["--max-increase", "-5 %"], "footprint: --max-increase: '-5 %' is not a share such as "),
        (
            ["--max-increase", "5 %", "--config", "footprint.toml"],
            "--max-increase is for a check without a budget file",
        ),
        (["--baseline", "a.json"], "--baseline goes with --max-increase"),
        (["--propose", "--max-increase", "1 MiB"], "'1 MiB' is no share: write it like 5 %"),
    ],
)
def test_a_gate_in_one_line_that_makes_no_sense_is_refused(
    capsys: Captured, folder: Path, words: list[str], message: str
) -> None:
    build(folder, "base")
    code, _, error = check(capsys, *words)
    assert (code, message in error) == (2, True), error


def test_what_is_too_much_by_little_is_told_to_the_byte(capsys: Captured) -> None:
    # 408 KiB are 417,792 bytes.
    write("[budgets]\nmapped_writable_bytes = 417791\n")
    code, out, _ = check(capsys)
    assert code == 1
    assert "is 417,792 B limit 417,791 B too much 1 B" in " ".join(out.split())
    assert (
        "mapped_writable_bytes is 417,792 B, 1 B over its limit of 417,791 B." in check(capsys, "--format", "github")[1]
    )


def test_a_proposal_replaces_no_budget_file(capsys: Captured) -> None:
    write("[budgets]\nlibrary_count = 3\n")
    code, _, error = check(capsys, "--propose", "-o", "footprint.toml")
    assert (code, "footprint.toml is there already" in error) == (2, True)
    assert Path("footprint.toml").read_text() == "[budgets]\nlibrary_count = 3\n"


def test_a_budget_between_two_stages_passes_one_and_fails_the_other_with_the_culprit(
    capsys: Captured, folder: Path
) -> None:
    write('[budgets]\nmapped_writable_bytes = "300 KiB"')
    code, out, _ = check(capsys)
    assert code == 1
    assert " ".join(out.split()).startswith("footprint check: server Against footprint.toml;")
    # Its segment takes 41 pages, of which one is sealed (RELRO).
    assert "is 408 KiB limit 300 KiB too much 108 KiB most of it 160 KiB libunused.so" in " ".join(out.split())
    assert "most of it libunused.so." in " ".join(out.split())
    build(folder, "sans_crypt")
    assert check(capsys)[0] == 0


@pytest.mark.parametrize(
    ("name", "prefix"), [("footprint.toml", ""), ("pyproject.toml", "[project]\nname = 'x'\n[tool.footprint]\n")]
)
def test_a_reviewer_is_led_to_the_line_of_the_limit(capsys: Captured, name: str, prefix: str) -> None:
    text = prefix + "at_processes = 2\nlibraries.deny = ['libunused*']\n"
    table = "tool.footprint.budgets" if prefix else "budgets"
    write(f"{text}[{table}]\nkernel_bytes = '1 GiB'\nlibrary_count = {{ max = 1 }}\n", name)
    deny, count = prefix.count("\n") + 2, prefix.count("\n") + 5
    code, out, _ = check(capsys)
    assert code == 1
    assert f"The limit stands in {name}, line {deny}." in out
    assert f"The limit stands in {name}, line {count}." in out
    out = check(capsys, "--format", "github")[1]
    assert f"::error file={name},line={count},title=A figure is larger than its budget allows%3A library_count" in out
    entries = json.loads(check(capsys, "--format", "gitlab")[1])
    assert {entry["location"]["lines"]["begin"] for entry in entries if entry["severity"] == "major"} == {deny, count}
    results = json.loads(check(capsys, "--format", "sarif")[1])["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results if result["level"] == "error"]
    assert {place["artifactLocation"]["uri"] for place in places} == {name}
    assert {place["region"]["startLine"] for place in places} == {deny, count}
    assert f'file="{name}" line="{count}"' in check(capsys, "--format", "junit")[1]


def test_the_quiet_answer_is_one_line_that_says_all(capsys: Captured) -> None:
    write("[budgets.symbols]\n'answer.1' = 4095")
    code, out, _ = check(capsys, "-q")
    assert (code, out) == (1, '1 of 1 limit exceeded: symbols."answer.1" by 1 B, most of it answer.1.\n')


def test_a_baseline_is_written_when_asked_and_never_by_a_failing_run(capsys: Captured, folder: Path) -> None:
    write('baseline = "base.json"\n[budgets]\nprivate_bytes = { max = 1, max_increase = 0 }')
    code, out, _ = check(capsys, "--update-baseline")
    assert (code, Path("base.json").exists()) == (1, False)
    assert "the baseline is left as it was" in " ".join(out.split())
    write('baseline = "base.json"\n[budgets]\nmapped_writable_bytes = { max = "1 MiB", max_increase = 0 }')
    build(folder, "sans_answers")
    assert check(capsys, "--update-baseline")[0] == 0
    saved = Path("base.json").read_bytes()
    assert json.loads(saved)["schema"] == "footprint/1"
    build(folder, "base")
    code, out, _ = check(capsys)
    assert code == 1
    assert "+4 KiB answer.0 (server)" in " ".join(out.split())
    assert Path("base.json").read_bytes() == saved
    # What grew is accepted by a new baseline.
    assert check(capsys, "--update-baseline")[0] == 0
    assert check(capsys)[0] == 0


def test_the_baseline_lies_beside_the_budget_file(capsys: Captured) -> None:
    Path("budgets").mkdir()
    write('baseline = "base.json"\n[budgets]\nprivate_bytes = { max_increase = 0 }', "budgets/server.toml")
    assert check(capsys, "--config", "budgets/server.toml", "--update-baseline")[0] == 0
    assert Path("budgets/base.json").exists()
    assert check(capsys, "--config", "budgets/server.toml")[0] == 0


@pytest.mark.parametrize("kind", ["text", "other.json", "folder", "pipe", "dangling link"])
def test_a_new_baseline_replaces_nothing_but_a_saved_audit(kind: str, capsys: Captured, folder: Path) -> None:
    precious = folder / "precious"
    make: dict[str, Callable[[], object]] = {
        "text": lambda: precious.write_bytes(b"ssh-ed25519 AAAA"),
        "other.json": lambda: precious.write_bytes(b'{"schema": "something/1"}'),
        "folder": precious.mkdir,
        "pipe": lambda: os.mkfifo(precious),
        "dangling link": lambda: precious.symlink_to("nothing"),
    }
    make[kind]()
    before = precious.lstat()
    write('baseline = "precious"\n[budgets]\nmapped_writable_bytes = { max = "1 MiB" }')
    code, out, error = check(capsys, "--update-baseline")
    assert (code, out) == (2, "")
    assert "precious is no saved audit: --update-baseline replaces nothing else" in error
    assert (precious.lstat().st_ino, precious.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_baseline_far_from_its_budget_file_is_only_written_where_the_user_has_made_it(
    capsys: Captured, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    far = tmp_path_factory.mktemp("far") / "base.json"
    write(f'baseline = "{far}"\n[budgets]\nmapped_writable_bytes = {{ max = "1 MiB" }}')
    code, _, error = check(capsys, "--update-baseline")
    assert code == 2
    assert "is neither below the folder of footprint.toml nor below this one" in error
    assert not far.exists()
    far.touch()
    assert check(capsys, "--update-baseline")[0] == 0
    assert json.loads(far.read_bytes())["schema"] == "footprint/1"
    # Beside the folder of the budget file, but below the one where the user is.
    Path("budgets").mkdir()
    write('baseline = "../base.json"\n[budgets]\nmapped_writable_bytes = { max = "1 MiB" }', "budgets/server.toml")
    assert check(capsys, "--config", "budgets/server.toml", "--update-baseline")[0] == 0
    assert (folder / "base.json").exists()


def test_a_saved_audit_is_checked_without_the_binaries(capsys: Captured) -> None:
    assert main(["audit", "server", "-o", "audit.json"]) == 0
    Path("server").unlink()
    write("[budgets.retained]\n'libunused.so' = '4 KiB'")
    code, out, _ = check(capsys, target="audit.json")
    assert code == 1
    assert "libunused_dep.so" in out


def test_budgets_may_stand_in_pyproject(capsys: Captured) -> None:
    write("[tool.footprint.budgets]\nlibrary_count = 4", "pyproject.toml")
    code, out, _ = check(capsys)
    assert code == 1
    assert "pyproject.toml" in out


def test_budgets_in_both_files_are_refused_unless_one_is_named(capsys: Captured) -> None:
    write("[tool.footprint.budgets]\nlibrary_count = 4", "pyproject.toml")
    write("[budgets]\nlibrary_count = 99")
    code, _, error = check(capsys)
    assert (code, error) == (
        2,
        "footprint: there are budgets in footprint.toml and in pyproject.toml: keep one, or name one with --config\n",
    )
    assert [check(capsys, "--config", name)[0] for name in ("footprint.toml", "pyproject.toml")] == [0, 1]
    for other in ("[project]\nname = 'x'\n", "[tool]\nblack = {}\n", "tool = 1\n", "no TOML"):
        write(other, "pyproject.toml")
        assert check(capsys)[0] == 0


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("[budgets", 3, "footprint.toml: it is not TOML"),
        (f"{'.'.join('a' * 500_000)} = 1", 3, "footprint.toml: a key in it has more than 64 parts"),
        ("[budgets]\nprivate_byts = 3", 2, "did you mean 'private_bytes'?"),
        ("[budgets.owners]\n'libunsed.so' = 3", 2, "did you mean 'libunused.so'?"),
        ("[budgets]\nprivate_bytes = { max_increase = 0 }", 2, "needs a baseline"),
        ('baseline = "b.json"\n[budgets]\nprivate_bytes = { max_increase = 0 }', 2, "--update-baseline writes it"),
    ],
)
def test_a_wrong_budget_file_is_one_sentence(capsys: Captured, text: str, code: int, cause: str) -> None:
    write(text)
    found, out, error = check(capsys)
    assert (found, out, error.count("\n")) == (code, "", 1)
    assert cause in error


def test_without_a_budget_file_it_says_how_to_get_one(capsys: Captured) -> None:
    code, _, error = check(capsys)
    assert (code, "--propose" in error) == (2, True)


@pytest.mark.parametrize(
    ("baseline", "cause"),
    [
        (b'{"schema": "footprint/2"}', "schema footprint/2; this footprint reads footprint/1"),
        (b'{"schema": "footprint/1", "led', "it is not valid JSON"),
        (b"7f 45 4c 46", "it is not a saved audit"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_an_error(capsys: Captured, baseline: bytes, cause: str) -> None:
    write('baseline = "base.json"\n[budgets]\nprivate_bytes = { max_increase = 0 }')
    Path("base.json").write_bytes(baseline)
    code, _, error = check(capsys)
    assert code == 3
    assert cause in error


def test_the_baseline_of_another_program_is_refused(capsys: Captured) -> None:
    write('baseline = "base.json"\n[budgets]\nprivate_bytes = { max_increase = 0 }')
    assert main(["audit", str(SHADOW / "base"), "-o", "base.json"]) == 0
    code, _, error = check(capsys)
    assert code == 3
    assert "it is a baseline of base, this is server" in error


def test_a_prediction_is_no_baseline_of_a_measurement(capsys: Captured) -> None:
    write('baseline = "base.json"\n[budgets]\nprivate_bytes = { max_increase = 0 }')
    assert main(["audit", "server", "-o", "base.json"]) == 0
    saved = json.loads(Path("base.json").read_text())
    saved["target"] |= {"source": "smaps", "command": "./server"}
    Path("measured.json").write_text(json.dumps(saved))
    code, out, error = check(capsys, target="measured.json")
    assert (code, out, error.count("\n")) == (3, "", 1)
    assert "the baseline is predicted from its files, and this was measured" in error
    Path("measured.json").rename("base.json")
    code, _, error = check(capsys)
    assert (code, "the baseline was measured, and this is predicted from its files" in error) == (3, True)


def test_an_expired_waiver_fails_with_its_reason(capsys: Captured) -> None:
    write("[budgets]\nlibrary_count = 4\n[[waivers]]\nbudget = 'library_count'\nreason = 'soon'\nexpires = 2020-02-29")
    code, out, _ = check(capsys)
    assert code == 1
    assert "waiver expired 2020-02-29: soon" in " ".join(out.split())


def test_hostile_names_are_escaped(capsys: Captured) -> None:
    name = "lib\x1b[31m\n\u202e.so"
    write(f"[budgets.owners]\n{json.dumps(name)} = 3")
    _, _, error = check(capsys)
    assert "\x1b" not in error
    assert error.count("\n") == 1


def test_a_reproducible_audit_has_nothing_of_this_machine(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["audit", str(SHADOW / "base"), "--reproducible", "--json"]
    assert main(words) == 0
    first = capsys.readouterr().out
    monkeypatch.setenv("LD_LIBRARY_PATH", str(SHADOW))
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")
    assert main(words) == 0
    assert capsys.readouterr().out == first
    assert json.loads(first)["host"] == {}
    assert main(["audit", "1", "--reproducible"]) == 2


def test_a_number_is_a_process_also_where_a_saved_audit_has_that_name(capsys: Captured) -> None:
    number = str((1 << 22) + 1)
    assert main(["audit", "server", "-o", "audit.json"]) == 0
    shutil.copy("audit.json", number)
    for words in (["audit", number], ["diff", number, number], ["check", number]):
        write("[budgets]\nlibrary_count = 9")
        assert main(words) == 3
        assert "process" in capsys.readouterr().err


def test_a_baseline_holds_no_pages_also_where_a_page_is_made_beside_it(capsys: Captured) -> None:
    write('baseline = "b.json"\n[budgets]\nprivate_bytes = "1 GiB"\n')
    assert check(capsys, "--update-baseline")[0] == 0
    alone = Path("b.json").read_bytes()
    assert b'"page_maps"' not in alone
    assert check(capsys, "--update-baseline", "--html", "report.html")[0] == 0
    assert Path("b.json").read_bytes() == alone


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "at_processes = 3\n[budgets.owners]\n[libraries]\nallow_new = true"]
)
def test_a_file_without_a_limit_would_pass_everything_and_is_wrong_use(capsys: Captured, text: str) -> None:
    write(text)
    code, _, error = check(capsys)
    assert code == 2
    assert error.startswith("footprint: footprint.toml has no limit: write [budgets] or [libraries] there, or let")


def test_a_budget_for_large_variables_finds_those_of_a_program_too_which_its_audit_leaves_out(capsys: Captured) -> None:
    write("[budgets.findings]\nlarge-static = 0\n")
    # Nothing refers to answer.0; answer.1 is read.
    code, out, _ = check(capsys)
    assert (code, out.splitlines()[-1]) == (
        1,
        "1 of 1 limit exceeded: findings.large-static by 2, among them answer.0.",
    )
    assert main(["audit", "server", "-o", "plain.json"]) == 0
    code, _, error = check(capsys, target="plain.json")
    assert (code, "plain.json was saved without doubtful findings" in error) == (2, True)
    assert main(["audit", "server", "--findings", "-o", "all.json"]) == 0
    assert check(capsys, target="all.json")[0] == 1


def test_a_baseline_of_another_version_of_the_program_is_accepted(capsys: Captured) -> None:
    write('baseline = "base.json"\n[budgets]\nprivate_bytes = { max_increase = "1 MiB" }')
    shutil.copy("server", "server-1.0")
    shutil.copy("server", "server-2.0")
    shutil.copy("server", "serve-1.0")
    assert check(capsys, "--update-baseline", target="server-1.0")[0] == 0
    assert check(capsys, target="server-2.0")[0] == 0
    assert check(capsys)[0] == 0
    code, _, error = check(capsys, target="serve-1.0")
    assert (code, "it is a baseline of server-1.0, this is serve-1.0" in error) == (3, True)
