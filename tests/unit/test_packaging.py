"""What the package says of itself, and what is beside it for forges and distributions, fits together."""

import re
import shlex
import tomllib
from pathlib import Path

import footprint
from shell import generate
from tests.workflows import read_yaml

ROOT = Path(__file__).resolve().parents[2]
TOLD = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_address_begins_with_that_of_the_source_which_is_a_placeholder() -> None:
    source = TOLD["urls"]["Source"]
    assert source == "https://github.com/OWNER/footprint"
    for name in ("Homepage", "Issues", "Changelog"):
        assert TOLD["urls"][name].startswith(source)


def test_ci_tests_the_pythons_that_the_package_names() -> None:
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(TOLD["classifiers"]), re.MULTILINE)
    tested = read_yaml((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["pythons"]["strategy"][
        "matrix"
    ]["python"]
    assert tested == named
    assert TOLD["requires-python"] == f">={named[0]}"


def test_the_source_archive_has_the_script_that_its_workflow_calls() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    called = re.findall(r"\bbash (\S+)", (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert called
    assert {f"/{path.split('/')[0]}" for path in (*called, ".github/workflows/ci.yml")} <= set(built["include"])


def test_the_hooks_of_pre_commit_are_commands_of_footprint() -> None:
    known = {verb.name: {name for one in verb.options for name in one.names} for verb in generate.read_program().verbs}
    hooks = read_yaml((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        program, verb, *options = shlex.split(hook["entry"])
        assert program == "footprint"
        assert {word for word in options if word.startswith("-")} <= known[verb]
        assert hook["id"] == f"footprint-{verb}"
        # A script is executable too, and `duplicates` of scripts alone fails.
        assert hook.get("always_run") or hook["types"] == ["executable", "binary"]
    assert len(hooks) == 2


def test_the_debian_package_has_the_version_and_the_description_of_the_package() -> None:
    changelog = (ROOT / "packaging" / "debian" / "changelog").read_text()
    assert changelog.startswith(f"footprint-audit ({footprint.__version__}) ")
    control = (ROOT / "packaging" / "debian" / "control").read_text()
    description = TOLD["description"]
    assert f"\nDescription: {description[0].lower()}{description[1:]}\n" in control
    assert f"python3 (>= {TOLD['requires-python'].removeprefix('>=')})" in control


def test_the_image_starts_footprint_without_a_shell_from_what_its_context_holds() -> None:
    recipe = (ROOT / "packaging" / "container" / "Dockerfile").read_text()
    assert recipe.endswith('ENTRYPOINT ["python3", "-m", "footprint"]\n')
    kept = set(re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {path.split("/")[0] for path in (*built["force-include"], *built["shared-data"], *built["packages"])}
    assert needed | {"pyproject.toml", TOLD["readme"], *TOLD["license-files"]} <= kept
