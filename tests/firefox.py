"""Control a headless Firefox by its Marionette protocol, as `tests.chromium` controls Chromium."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browsertab import LONGEST_SECONDS, ScriptedTab

__all__ = ("MISSING", "Browser", "Tab", "launched")

_PROGRAM = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
MISSING = _PROGRAM is None
_PREFERENCES = """
user_pref("marionette.port", 0);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.tabs.warnOnClose", false);
"""
_KEYS = {
    "Enter": "\ue007",
    "Home": "\ue011",
    "End": "\ue010",
    "PageUp": "\ue00e",
    "PageDown": "\ue00f",
    "Tab": "\ue004",
    "Escape": "\ue00c",
    " ": " ",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}


class Browser:
    """A running browser, which answers the commands of the protocol in order."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""
        self._number = 0
        self._read()
        self.ask("WebDriver:NewSession", capabilities={})
        self.ask("WebDriver:SetTimeouts", script=LONGEST_SECONDS * 1000)

    def ask(self, command: str, **parameters: Any) -> Any:  # noqa: ANN401 # JSON
        """Send a command of Marionette and return its result."""
        self._number += 1
        text = json.dumps([0, self._number, command, parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(text), text))
        _, number, error, result = self._read()
        assert number == self._number
        if error:
            raise RuntimeError(f"{error['error']}: {error['message']}")
        return result

    def chrome(self, script: str, *arguments: Any) -> Any:  # noqa: ANN401 # JSON
        """Run a script in the browser itself."""
        self.ask("Marionette:SetContext", value="chrome")
        try:
            return self.ask("WebDriver:ExecuteScript", script=script, args=arguments)["value"]
        finally:
            self.ask("Marionette:SetContext", value="content")

    def _read(self) -> Any:  # noqa: ANN401 # JSON
        while b":" not in self._rest:
            self._rest += self._more()
        length, self._rest = self._rest.split(b":", 1)
        while len(self._rest) < int(length):
            self._rest += self._more()
        text, self._rest = self._rest[: int(length)], self._rest[int(length) :]
        return json.loads(text)

    def _more(self) -> bytes:
        piece = self._connection.recv(1 << 20)
        if not piece:
            raise EOFError("the browser has ended")
        return piece

    def open(
        self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False, script: bool = True
    ) -> "Tab":
        """Open a file in a new tab, and wait until it is drawn."""
        if not script:
            raise NotImplementedError("only Chromium is asked without JavaScript")
        handle = self.ask("WebDriver:NewWindow", type="tab", focus=True)["handle"]
        self.ask("WebDriver:SwitchToWindow", handle=handle)
        tab = Tab(self, handle, path.resolve().as_uri())
        tab.resize(width, height)
        scheme = "dark" if dark else "light"
        self.chrome(f"gBrowser.selectedBrowser.browsingContext.prefersColorSchemeOverride = '{scheme}'")
        self.chrome("Services.console.reset()")
        self.ask("WebDriver:Navigate", url=path.resolve().as_uri())
        tab.wait("document.documentElement && document.documentElement.dataset.ready")
        tab.wait_for_layout()
        return tab


class Tab(ScriptedTab):
    """One tab."""

    def __init__(self, browser: Browser, handle: str, url: str) -> None:
        self._browser, self._handle, self._url = browser, handle, url

    def ask(self, method: str, **parameters: Any) -> Any:  # noqa: ANN401 # JSON
        """Do what a command of Chromium's protocol does: of these, there is one that sets the medium."""
        if method != "Emulation.setEmulatedMedia" or "media" not in parameters:
            raise NotImplementedError(f"{method} is a command of Chromium")
        medium = parameters["media"]
        self._focus()
        return self._browser.chrome(f"gBrowser.selectedBrowser.browsingContext.mediumOverride = '{medium}'")

    def _focus(self) -> None:
        self._browser.ask("WebDriver:SwitchToWindow", handle=self._handle)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the page."""
        for _ in range(2):
            frame = self.js("[outerWidth - innerWidth, outerHeight - innerHeight]")
            self._browser.ask("WebDriver:SetWindowRect", width=width + frame[0], height=height + frame[1])
        if self.js("innerWidth") > width:
            raise NotImplementedError(f"Firefox has no window of {width} pixels")

    def js(self, expression: str) -> Any:  # noqa: ANN401 # JSON
        """Evaluate an expression; wait for a promise. Statements have no value."""
        self._focus()
        script = (
            "const done = arguments[arguments.length - 1];"
            f"(async () => ({expression}\n))().then((value) => done([value ?? null]), (error) => done(String(error)))"
        )
        try:
            result = self._browser.ask("WebDriver:ExecuteAsyncScript", script=script, args=[], sandbox=None)["value"]
        except RuntimeError as error:
            if "SyntaxError" not in str(error):
                raise
            return self._browser.ask("WebDriver:ExecuteScript", script=expression, args=[], sandbox=None)["value"]
        if isinstance(result, str):
            raise RuntimeError(result)  # noqa: TRY004 # as Chromium's
        return result[0]

    def reload(self) -> None:
        """Load the page again, and wait until it is drawn."""
        self._browser.ask("WebDriver:Refresh")
        self.wait("document.documentElement.dataset.ready")
        self.wait_for_layout()

    def _point(self, *steps: dict[str, Any]) -> None:
        self._focus()
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps}
        self._browser.ask("WebDriver:PerformActions", actions=[mouse])

    def move_to(self, x: float, y: float) -> None:
        """Move the mouse pointer."""
        self._point(_move(x, y))

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse button at a place and release it at another."""
        self._point(_move(*start), _DOWN, _move(*end), _UP)

    def click_at(self, x: float, y: float, *, times: int = 1) -> None:
        """Click with the mouse."""
        self._point(_move(x, y), *[_DOWN, _UP] * times)

    def _press(self, keys: str) -> None:
        self._focus()
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._browser.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": steps}])

    def key(self, *names: str) -> None:
        """Press keys one after the other."""
        self._press("".join(_KEYS[name] for name in names))

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field, as a user types it."""
        self.js(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.focus(); one.select() }})()"
        )
        self._press(text or "\ue003")

    def complaints(self) -> list[str]:
        """Return what the browser logged of this page: errors, violations of the policy, exceptions."""
        script = (
            "return Services.console.getMessageArray().filter((one) => one instanceof Ci.nsIScriptError"
            " && one.sourceName === arguments[0]).map((one) => one.message)"
        )
        return list(self._browser.chrome(script, self._url))

    def requests(self) -> list[str]:
        """Return no address: only Chromium tells them."""
        return []

    def close(self) -> None:
        """Close the tab."""
        self._focus()
        self._browser.ask("WebDriver:CloseWindow")
        rest = self._browser.ask("WebDriver:GetWindowHandles")
        self._browser.ask("WebDriver:SwitchToWindow", handle=rest[-1])


_DOWN = {"type": "pointerDown", "button": 0}
_UP = {"type": "pointerUp", "button": 0}


def _move(x: float, y: float) -> dict[str, Any]:
    return {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """Start the browser; its profile is removed at the end."""
    assert _PROGRAM is not None
    profile = Path(tempfile.mkdtemp(prefix="footprint-firefox-"))
    (profile / "user.js").write_text(_PREFERENCES)
    command = [_PROGRAM, "--headless", "--no-remote", "--marionette", "-remote-allow-system-access"]
    command += ["--profile", str(profile)]
    environment = os.environ | {"TMPDIR": str(profile), "HOME": str(profile), "MOZ_HEADLESS": "1"}
    silent = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=environment, stdin=silent, stdout=silent, stderr=silent, start_new_session=True
    ) as child:
        try:
            active = profile / "MarionetteActivePort"
            until = time.monotonic() + LONGEST_SECONDS
            while not (active.exists() and active.read_text()):
                if time.monotonic() > until or child.poll() is not None:
                    raise TimeoutError("Firefox does not start")
                time.sleep(0.05)
            with socket.create_connection(("127.0.0.1", int(active.read_text())), LONGEST_SECONDS) as connection:
                yield Browser(connection)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    shutil.rmtree(profile, ignore_errors=True)
