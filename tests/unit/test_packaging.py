"""What the package says of itself, and what is beside it for forges and distributions, fits together."""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

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


FLEET = ROOT / "packaging" / "fleet"


def test_the_script_of_a_fleet_captures_all_programs_into_a_folder_of_the_host(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "footprint"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    command = ["sh", str(FLEET / "footprint-collect"), str(tmp_path / "fleet")]
    path = f"{program.parent}:{os.environ['PATH']}"
    done = subprocess.run(command, env={"PATH": path}, stdout=subprocess.PIPE, text=True, check=True)
    *words, option, output = done.stdout.split()
    assert (words[:3], option) == (["capture", "--no-command", "-q"], "-o")
    assert str(os.getpid()) in words[3:]
    folder = tmp_path / "fleet" / os.uname().nodename
    assert re.fullmatch(re.escape(str(folder)) + r"/\d{4}-\d\d-\d\dT\d{4}\.capture", output)
    assert folder.is_dir()


def test_what_kubernetes_runs_for_a_fleet_fits_together() -> None:
    daemons, jobs = (read_yaml((FLEET / name).read_text()) for name in ("daemonset.yaml", "cronjob.yaml"))
    assert (daemons["apiVersion"], daemons["kind"]) == ("apps/v1", "DaemonSet")
    assert (jobs["apiVersion"], jobs["kind"]) == ("batch/v1", "CronJob")
    template = daemons["spec"]["template"]
    assert daemons["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    inner = jobs["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert inner["restartPolicy"] in {"Never", "OnFailure"}
    for spec in (template["spec"], inner):
        (container,) = spec["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
        assert container["image"].partition(":")[0] in (FLEET / "Dockerfile").read_text()
        (script,) = container["args"]
        assert re.search(r"footprint-collect /srv/fleet|footprint scan /srv/fleet -o", script)
    (play,) = read_yaml((FLEET / "ansible.yaml").read_text())
    copied = [task["ansible.builtin.copy"]["src"] for task in play["tasks"] if "ansible.builtin.copy" in task]
    files = [name for source in copied for name in ([source] if "{" not in source else play["tasks"][1]["loop"])]
    assert sorted(files) == sorted(path.name for path in FLEET.iterdir() if path.name.startswith("footprint-collect"))


def fields(required: str, **properties: object) -> dict[str, object]:
    """Return the schema of an object that has no other fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


TEXT, LABELS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
QUANTITIES = fields("", cpu={"pattern": r"^\d+m?$"}, memory={"pattern": r"^\d+[KMG]i$"})
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
CONTAINER = fields(
    "name image",
    name=NAME,
    image=TEXT,
    command={"type": "array", "items": TEXT},
    args={"type": "array", "items": TEXT},
    securityContext=fields(
        "",
        runAsUser={"type": "integer"},
        readOnlyRootFilesystem={"type": "boolean"},
        capabilities=fields("", add={"type": "array", "items": TEXT}, drop={"type": "array", "items": TEXT}),
    ),
    resources=fields("", requests=QUANTITIES, limits=QUANTITIES),
    volumeMounts={"type": "array", "items": fields("name mountPath", name=NAME, mountPath={"pattern": "^/"})},
)
POD = fields(
    "containers",
    hostPID={"type": "boolean"},
    hostNetwork={"type": "boolean"},
    restartPolicy={"enum": ["Always", "OnFailure", "Never"]},
    containers={"type": "array", "minItems": 1, "items": CONTAINER},
    volumes={
        "type": "array",
        "items": fields("name", name=NAME, persistentVolumeClaim=fields("claimName", claimName=NAME)),
    },
)
METADATA = fields("", name=NAME, labels=LABELS)
TEMPLATE = fields("spec", metadata=METADATA, spec=POD)
# The part of the API of Kubernetes that these manifests use: kubeconform would fetch all of its schemas.
MANIFESTS = {
    "daemonset.yaml": fields(
        "apiVersion kind metadata spec",
        apiVersion={"const": "apps/v1"},
        kind={"const": "DaemonSet"},
        metadata=METADATA,
        spec=fields("selector template", selector=fields("", matchLabels=LABELS), template=TEMPLATE),
    ),
    "cronjob.yaml": fields(
        "apiVersion kind metadata spec",
        apiVersion={"const": "batch/v1"},
        kind={"const": "CronJob"},
        metadata=METADATA,
        spec=fields(
            "schedule jobTemplate",
            schedule={"type": "string", "pattern": r"^(\S+ ){4}\S+$"},
            concurrencyPolicy={"enum": ["Allow", "Forbid", "Replace"]},
            jobTemplate=fields("spec", spec=fields("template", backoffLimit={"type": "integer"}, template=TEMPLATE)),
        ),
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_have_only_fields_that_kubernetes_knows(name: str) -> None:
    Draft202012Validator(MANIFESTS[name]).validate(read_yaml((FLEET / name).read_text()))
