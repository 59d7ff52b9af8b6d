"""What the tabs of all browsers do by the script that they run: read elements, wait and click."""

import json
import time
from abc import ABC, abstractmethod
from typing import Any, Final

__all__ = ("LONGEST_SECONDS", "ScriptedTab")

LONGEST_SECONDS: Final = 60
"""How long a browser may take for anything."""

# A frame is laid out, and what watches the sizes of elements has been told. Only a machine that is fast has a frame in
# any given time.
_FRAME = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
# Pictures get their size some frames later, and move the elements below them.
_SETTLED_PLACE: Final = (
    "(async () => { const one = document.querySelector(SELECTOR);"
    " const place = () => { one.scrollIntoView({block: 'center', behavior: 'instant'});"
    " const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] };"
    # Firefox scrolls to and fro by a pixel where the middle lies between two.
    " for (let before = [NaN, NaN], still = 0; still < 2;) {"
    f" await {_FRAME};"
    " const now = place(); still = now.every((at, i) => Math.abs(at - before[i]) < 2) ? still + 1 : 0; before = now }"
    " return place() })()"
)


class ScriptedTab(ABC):
    """One tab."""

    @abstractmethod
    def js(self, expression: str) -> Any:  # noqa: ANN401 # JSON
        """Evaluate an expression; wait for a promise."""

    @abstractmethod
    def click_at(self, x: float, y: float, *, times: int = 1) -> None:
        """Click with the mouse."""

    def wait(self, expression: str) -> Any:  # noqa: ANN401 # JSON
        """Wait until an expression is true, and return its value."""
        until = time.monotonic() + LONGEST_SECONDS
        while not (found := self.js(expression)):
            if time.monotonic() > until:
                raise TimeoutError(expression)
            time.sleep(0.02)
        return found

    def wait_for_layout(self) -> None:
        """Wait until pictures have their size: they get it with the first frame, and draw with the next one."""
        for _ in range(2):
            self.js(_FRAME)

    def text(self, selector: str) -> str:
        """Return the text of the first element that a selector finds."""
        return str(self.js(f"document.querySelector({json.dumps(selector)}).textContent"))

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector finds."""
        return list(self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)"))

    def count(self, selector: str) -> int:
        """Count the elements that a selector finds."""
        return int(self.js(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, selector: str, *, times: int = 1) -> None:
        """Click on the middle of the first element that a selector finds."""
        found = self.js(_SETTLED_PLACE.replace("SELECTOR", json.dumps(selector)))
        self.click_at(*found, times=times)
