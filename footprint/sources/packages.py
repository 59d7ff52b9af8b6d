"""The packages that files are from, as the databases of dpkg and apk say."""

import re
from typing import Final

from footprint.process.mapped_files import open_regular
from footprint.roots import folder_names

__all__ = ("Packages",)

_MOST_DATABASE_BYTES: Final = 256 << 20
_INSTALLED: Final = re.compile(r"^Status: .* installed$", re.MULTILINE)
_FIELD: Final = {name: re.compile(rf"^{name}: (.+)$", re.MULTILINE) for name in ("Package", "Version", "Architecture")}
_DPKG: Final = "/var/lib/dpkg"
_APK: Final = "/lib/apk/db/installed"


class Packages:
    """The packages of one root file system.

    Args:
        root: The root; "" for that of this machine.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._by_path = self._dpkg() or self._apk()

    def of(self, path: str) -> tuple[str, str] | None:
        """Return the package of a file and its version; None where no package has it."""
        # /bin, /lib and /sbin may be links into /usr, and a package may name either.
        return self._by_path.get(path) or self._by_path.get(path.removeprefix("/usr"))

    def _text(self, path: str) -> str:
        data = open_regular(f"{self._root}{path}", None)
        return "" if isinstance(data, str) else bytes(data[:_MOST_DATABASE_BYTES]).decode("utf-8", "surrogateescape")

    def _dpkg(self) -> dict[str, tuple[str, str]]:
        versions: dict[str, tuple[str, str]] = {}
        for block in self._text(f"{_DPKG}/status").split("\n\n"):
            name, version, architecture = (
                found and found[1] for found in (one.search(block) for one in _FIELD.values())
            )
            if name and version and _INSTALLED.search(block):
                versions[name] = versions[f"{name}:{architecture}"] = name, version
        found: dict[str, tuple[str, str]] = {}
        try:
            lists = folder_names(f"{self._root}{_DPKG}/info") if versions else []
        except OSError:
            lists = []
        for one in lists:
            package = versions.get(one.removesuffix(".list")) if one.endswith(".list") else None
            if package:
                found.update(dict.fromkeys(self._text(f"{_DPKG}/info/{one}").split("\n"), package))
        return found

    def _apk(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for block in self._text(_APK).split("\n\n"):
            name = version = folder = ""
            for line in block.split("\n"):
                key, value = line[:2], line[2:]
                if key == "P:":
                    name = value
                elif key == "V:":
                    version = value
                elif key == "F:":
                    folder = value
                elif key == "R:":
                    found[f"/{folder}/{value}"] = name, version
        return found
