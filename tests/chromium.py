"""Control a headless Chromium by its DevTools protocol, over a pipe: no driver, no port, no network."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browsertab import LONGEST_SECONDS, ScriptedTab

__all__ = ("MISSING", "Browser", "Tab", "launched")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PROGRAM = next(filter(None, map(shutil.which, _NAMES)), None)
MISSING = _PROGRAM is None

_KEYS = {"Enter": 13, "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9, "Escape": 27, " ": 32} | {
    f"Arrow{name}": 37 + place for place, name in enumerate(("Left", "Up", "Right", "Down"))
}


class Browser:
    """A running browser, which answers the commands of the protocol in order."""

    def __init__(self, pid: int, to_browser: int, from_browser: int) -> None:
        self.pid = pid
        self._to, self._from = to_browser, from_browser
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        # The session of the tab before all others.
        self.front = ""

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> Any:  # noqa: ANN401 # JSON
        """Send a command and return its result; events that arrive meanwhile are added to `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + LONGEST_SECONDS
        while b"\0" not in self._rest:
            if not select.select([self._from], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self._rest += piece
        text, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(text)
        return found

    def open(
        self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False, script: bool = True
    ) -> "Tab":
        """Open a file in a new tab, and wait until it is drawn."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        self.front = session
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.ask(f"{domain}.enable")
        tab.resize(width, height)
        tab.ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        tab.ask("Emulation.setScriptExecutionDisabled", value=not script)
        tab.ask("Page.navigate", url=path.resolve().as_uri())
        if script:
            tab.wait("document.documentElement && document.documentElement.dataset.ready")
            tab.wait_for_layout()
        else:
            tab.wait_for_element("#data")
        return tab


class Tab(ScriptedTab):
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def ask(self, method: str, **parameters: Any) -> Any:  # noqa: ANN401 # JSON
        """Send a command to this tab."""
        return self._browser.ask(method, self._session, **parameters)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the tab."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def js(self, expression: str) -> Any:  # noqa: ANN401 # JSON
        """Evaluate an expression; wait for a promise."""
        self._focus()
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", str(found)))
        return found["result"].get("value")

    def reload(self) -> None:
        """Load the page again, and wait until it is drawn."""
        self.js("window.isOld = true")
        self.ask("Page.reload")
        until = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < until:
            # The page that is left ends what it was asked.
            with contextlib.suppress(RuntimeError):
                if self.js("!window.isOld && document.documentElement?.dataset.ready"):
                    self.wait_for_layout()
                    return
            time.sleep(0.02)
        raise TimeoutError("the page is not drawn again")

    def wait_for_element(self, selector: str) -> None:
        """Wait until an element exists, without the help of a script."""
        until = time.monotonic() + LONGEST_SECONDS
        while True:
            # A document that is replaced meanwhile has no nodes any more.
            with contextlib.suppress(RuntimeError):
                root = self.ask("DOM.getDocument")["root"]["nodeId"]
                if self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]:
                    return
            if time.monotonic() > until:
                raise TimeoutError(selector)
            time.sleep(0.02)

    def _focus(self) -> None:
        """Put the tab before all others: behind another one its timers wait for a second each."""
        if self._browser.front != self._session:
            self.ask("Page.bringToFront")
            self._browser.front = self._session

    def _input(self, command: str, **parameters: object) -> None:
        self._focus()
        self.ask(f"Input.{command}", **parameters)

    def move_to(self, x: float, y: float) -> None:
        """Move the mouse pointer."""
        self._input("dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse button at a place and release it at another."""
        self.move_to(*start)
        button: dict[str, Any] = {"button": "left", "clickCount": 1}
        self._input("dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **button)
        self._input("dispatchMouseEvent", type="mouseMoved", x=end[0], y=end[1], button="left", buttons=1)
        self._input("dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **button)

    def click_at(self, x: float, y: float, *, times: int = 1) -> None:
        """Click with the mouse."""
        self.move_to(x, y)
        for number in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self._input("dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=number)

    def key(self, *names: str) -> None:
        """Press keys one after the other."""
        for name in names:
            code = _KEYS[name]
            text = {"text": "\r"} if name == "Enter" else {"text": " "} if name == " " else {}
            for kind in ("keyDown", "keyUp"):
                more = text if kind == "keyDown" else {}
                self._input("dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field, as a user types it."""
        self.js(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.focus(); one.select() }})()"
        )
        self._input("insertText", text=text)

    def shot(self, path: Path) -> None:
        """Save a picture of the tab in its full height."""
        height = int(self.js("Math.min(6000, Math.ceil(document.documentElement.scrollHeight))"))
        width = int(self.js("innerWidth"))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """Return what the browser logged of this tab: errors, violations of the policy, exceptions."""
        result = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            if event["method"] == "Log.entryAdded":
                result.append(event["params"]["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown":
                result.append(str(event["params"]["exceptionDetails"].get("exception", {}).get("description")))
        return result

    def requests(self) -> list[str]:
        """Return the addresses that this tab requested."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """Close the tab."""
        self._browser.ask("Target.closeTarget", targetId=self._target)


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """Start the browser; its profile is removed at the end."""
    assert _PROGRAM is not None
    profile = tempfile.mkdtemp(prefix="footprint-chromium-")
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    # The browser reads from descriptor 3 and writes to 4: our ends are moved out of the way first.
    their_in, their_out = (fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 20) for one in (their_in, their_out))
    log = os.open(os.path.join(profile, "log"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    options = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run"]
    options += ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio"]
    options += [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
    ]
    moves = [(os.POSIX_SPAWN_DUP2, their_in, 3), (os.POSIX_SPAWN_DUP2, their_out, 4)]
    moves += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    # The browser leaves temporary files behind.
    environment = os.environ | {"TMPDIR": profile}
    child = os.posix_spawn(_PROGRAM, [_PROGRAM, *options], environment, file_actions=moves, setpgroup=0)
    try:
        os.close(their_in)
        os.close(their_out)
        yield Browser(child, our_out, our_in)
    finally:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for one in (our_in, our_out, log):
            os.close(one)
        shutil.rmtree(profile, ignore_errors=True)
