"""Boot other systems in an emulator, and run the tests of this folder in each: `make test-vm VM="bookworm trixie"`."""

import argparse
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
CHECKOUT: Final = HERE.parent.parent
BUILD: Final = CHECKOUT / "build" / "vm"
USERS: Final = ("root", "alice")


class System(NamedTuple):
    """What wheels a system takes: the version of its Python, and its processor."""

    python: str
    machine: str


SYSTEMS: Final = {
    "bookworm": System("3.11", "x86_64"),
    "trixie": System("3.13", "x86_64"),
    "arm64": System("3.11", "aarch64"),
    "linux-5.10": System("3.11", "x86_64"),
}


def main() -> int:
    """Build what is missing, boot each system, and show what its tests gave."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=["bookworm"], metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--pytest", default="", help="arguments for pytest in the guest")
    given = parser.parse_args()
    unknown = [name for name in given.systems if name not in SYSTEMS]
    if unknown:
        parser.error(f"there is no system {unknown[0]}: {', '.join(SYSTEMS)}")
    wheel = build_wheel()
    failed = [name for name in given.systems if not run_system(name, wheel, given.pytest)]
    if failed:
        print(f"failed: {', '.join(failed)}")  # noqa: T201 # a script
    return 1 if failed else 0


def build_wheel() -> Path:
    """Build the wheel of this checkout."""
    folder = BUILD / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return next(folder.glob("*.whl"))


def run_system(name: str, wheel: Path, arguments: str) -> bool:
    """Run the tests in a system, and return whether all of them passed, for each user at least one."""
    image, began = BUILD / name, time.monotonic()
    if not (image / "disk").exists():
        shutil.rmtree(image, ignore_errors=True)
        subprocess.run([HERE / "machine.sh", "build", name, image], check=True)
    built_seconds = time.monotonic() - began
    share = BUILD / f"share-{name}"
    shutil.rmtree(share, ignore_errors=True)
    (share / "results").mkdir(parents=True)
    shutil.copytree(HERE, share / "vm", ignore=shutil.ignore_patterns("__pycache__"))
    collect_wheels(SYSTEMS[name], wheel, share / "wheels")
    environment = {"VM_SECONDS": "7200", **os.environ}
    command = [str(HERE / "machine.sh"), "run", str(image), str(share), f"bash /share/vm/guest.sh {arguments}"]
    subprocess.run(command, check=False, env=environment)
    is_fine = not [user for user in USERS if not show_results(f"{name}, {user}", share / "results" / f"{user}.xml")]
    seconds = time.monotonic() - began
    print(f"{name}: {seconds:.0f} s, of them {built_seconds:.0f} s to build it")  # noqa: T201 # a script
    return is_fine


def collect_wheels(system: System, wheel: Path, folder: Path) -> None:
    """Download what footprint and pytest need in the guest, which has no network."""
    platforms = [f"manylinux_2_{number}_{system.machine}" for number in (28, 24, 17)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    command += ["--only-binary=:all:", "--python-version", system.python]
    command += [word for platform in platforms for word in ("--platform", platform)]
    subprocess.run([*command, str(wheel), "pytest>=9", "pip"], check=True)


def show_results(title: str, path: Path) -> bool:
    """Print the figures of a run, and return whether it ran tests and all of them passed."""
    suites = ET.parse(path).getroot() if path.exists() else ET.Element("none")  # noqa: S314 # pytest wrote it
    counts = {
        key: sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    }
    print(f"{title}: " + ", ".join(f"{count} {key}" for key, count in counts.items()))  # noqa: T201 # a script
    for figure in suites.iter("property"):
        size, truth, percent = figure.get("value", "").split()
        print(f"  {figure.get('name', ''):44} {size:>12} KiB, true {truth:>12} KiB, {percent} %")  # noqa: T201 # a script
    return counts["tests"] > counts["skipped"] and not counts["failures"] and not counts["errors"]


if __name__ == "__main__":
    sys.exit(main())
