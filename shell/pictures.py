"""Draw the pictures of the HTML report in docs/images: `make pictures` runs it; it needs Chromium and node.

The first and the third picture show node with a small web server; the others show sample binaries.
"""

import base64
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.chromium import Browser, Tab, launched

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
WIDTH: Final = 1000
# Each picture stays below 100 KB.
SCALE: Final = 0.8
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


def compressed(png: bytes) -> bytes:
    """Compress the pixels of a PNG as far as zlib can: the browser does it quickly instead."""
    result, pixels, place = png[:8], b"", 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4])
        kind, chunk = png[place + 4 : place + 8], png[place : place + size + 12]
        if kind == b"IDAT":
            pixels += chunk[8:-4]
        elif kind == b"IEND":
            packed = b"IDAT" + zlib.compress(zlib.decompress(pixels), 9)
            result += (len(packed) - 4).to_bytes(4) + packed + zlib.crc32(packed).to_bytes(4) + chunk
        else:
            result += chunk
        place += size + 12
    return result


def cut(tab: Tab, name: str, height: int, heading: str | None = None, width: int = WIDTH) -> None:
    """Save a part of a report: from its beginning, or from a heading on."""
    top = 0
    if heading is not None:
        found = f"[...document.querySelectorAll('h2')].find((one) => one.textContent === {heading!r})"
        top = int(tab.js(f"{found}.getBoundingClientRect().top + scrollY")) - 12
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": SCALE}
    shot = tab.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    (IMAGES / name).write_bytes(compressed(base64.b64decode(shot["data"])))


def draw_modes(browser: Browser, process: Path) -> None:
    """Draw the first screen on a phone, on paper, in forced colours, and as readers without red cones see it."""
    cut(browser.open(process, width=400, height=800), "report-phone.png", 800, width=400)
    tab = browser.open(process, width=800)
    tab.ask("Emulation.setEmulatedMedia", media="print")
    cut(tab, "report-paper.png", 700, width=800)
    tab = browser.open(process, width=WIDTH)
    features = [{"name": "forced-colors", "value": "active"}, {"name": "prefers-color-scheme", "value": "dark"}]
    tab.ask("Emulation.setEmulatedMedia", features=features)
    cut(tab, "report-forced-colours.png", 560)
    tab = browser.open(process, width=WIDTH)
    tab.ask("Emulation.setEmulatedVisionDeficiency", type="protanopia")
    cut(tab, "report-protanopia.png", 560)


def draw(browser: Browser, folder: Path) -> None:
    """Draw all pictures."""
    with server(folder) as pid:
        process = report(folder / "process.html", "audit", str(pid), "-n", "1000")
    cut(browser.open(process, width=WIDTH), "report-process.png", 560)
    cut(browser.open(process, width=WIDTH, dark=True), "report-dark.png", 560)
    draw_modes(browser, process)
    tab = browser.open(process, width=WIDTH, dark=True)
    # The eleventh page of the data: its variables are in the line above the pages.
    tab.js("document.querySelector('.cells').focus({preventScroll: true})")
    tab.key(*["ArrowRight"] * 14)
    cut(tab, "report-pages.png", 640, "Page by page")
    base = f"{SAMPLES}/condor_shadow/base"
    words = ("diff", base, f"{SAMPLES}/condor_shadow/sans_crypt", "-n", "10000")
    cut(browser.open(report(folder / "change.html", *words), width=WIDTH), "report-change.png", 800)
    heap = report(folder / "heap.html", "heap", f"{SAMPLES}/heap_by_function/massif.out")
    cut(browser.open(heap, width=WIDTH), "report-heap.png", 900)
    watch = report(folder / "watch.html", "watch", "--replay", "docs/examples/leak.fps")
    cut(browser.open(watch, width=WIDTH), "report-watch.png", 720)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        draw(browser, Path(folder))
