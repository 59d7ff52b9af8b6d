"""Draw the pictures of the HTML report in docs/images: `make pictures` runs it; it needs Chromium and node.

The first and the third picture show node with a small web server; the others show sample binaries.
"""

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.chromium import Browser, Tab, launched

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
WIDTH: Final = 1000
SAMPLES: Final = "sample_binaries"
SERVER: Final = 'require("http").createServer((_, out) => out.end("ok")).listen(0, () => console.log("ready"));\n'


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """Run the web server in a folder, and return its PID."""
    (folder / "server.js").write_text(SERVER)
    with subprocess.Popen(["node", "server.js"], cwd=folder, stdout=subprocess.PIPE) as running:
        try:
            if running.stdout is not None:
                running.stdout.readline()
            yield running.pid
        finally:
            running.kill()


def report(path: Path, *words: str) -> Path:
    """Write a report with footprint, with the built-in constants of the kernel."""
    command = [sys.executable, "-m", "footprint", *words, "--html", str(path)]
    environment = os.environ | {"XDG_STATE_HOME": str(path.parent)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return path


def cut(tab: Tab, name: str, height: int, heading: str | None = None) -> None:
    """Save a part of a report: from its beginning, or from a heading on."""
    top = 0
    if heading is not None:
        found = f"[...document.querySelectorAll('h2')].find((one) => one.textContent === {heading!r})"
        top = int(tab.js(f"{found}.getBoundingClientRect().top + scrollY")) - 12
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
    shot = tab.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    (IMAGES / name).write_bytes(base64.b64decode(shot["data"]))


def draw(browser: Browser, folder: Path) -> None:
    """Draw all pictures."""
    with server(folder) as pid:
        process = report(folder / "process.html", "audit", str(pid), "-n", "1000")
    cut(browser.open(process, width=WIDTH), "report-process.png", 1120)
    tab = browser.open(process, width=WIDTH, dark=True)
    # The eleventh page of the data: its variables are in the line above the pages.
    tab.js("document.querySelector('.cells').focus({preventScroll: true})")
    tab.key(*["ArrowRight"] * 14)
    cut(tab, "report-pages.png", 640, "Page by page")
    base = f"{SAMPLES}/condor_shadow/base"
    words = ("diff", base, f"{SAMPLES}/condor_shadow/sans_crypt", "-n", "10000")
    cut(
        browser.open(report(folder / "change.html", *words), width=WIDTH), "report-change.png", 1140, "Where it changed"
    )
    heap = report(folder / "heap.html", "heap", f"{SAMPLES}/heap_by_function/massif.out")
    cut(browser.open(heap, width=WIDTH), "report-heap.png", 1000)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        draw(browser, Path(folder))
