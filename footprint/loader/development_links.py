"""The development links of libraries: the file `libNAME.so` by which the linker finds a library as `-lNAME`."""

from typing import Final

from footprint.loader.link_map import Linked
from footprint.loader.system import System
from footprint.members import lazy_pattern

_LINK: Final = lazy_pattern(r"lib(.+)\.so")
_SONAME: Final = lazy_pattern(r"lib(.+?)\.so(\.|$)")
# A link can be a linker script: `INPUT(libncurses.so.6 -ltinfo)`. The first library in it is the one that it names.
_IN_SCRIPT: Final = lazy_pattern(rb"[\s(,](?:/[^\s(),]*/)?(lib[^\s(),/]*\.so[^\s(),/]*)")
_LONGEST_SCRIPT_BYTES: Final = 1 << 12
# gcc has the links of its own libraries (libstdc++, libgomp, libgcc_s) in `TRIPLET/VERSION` below one of these.
_GCC_HOMES: Final = ("/usr/lib/gcc", "/usr/lib64/gcc")


class DevelopmentLinks:
    """Finds the linker's name of a library. Each directory is read once, when it is first needed.

    The name can differ from the soname: libLLVM-14.so.1 is `-lLLVM-14`, libfl.so.2 is `-lfl`. Source: ld(1), `-l`, and
    "Implicit Linker Scripts" in the manual of GNU ld.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        # No cached methods: they would be reference cycles, which keep files open until the next garbage collection.
        self._links_by_home: dict[str, dict[str, list[str]]] = {}
        self._scripts_by_home: dict[str, dict[str, list[str]]] = {}
        self._gcc: list[str] | None = None

    def name_of(self, linked: Linked) -> str | None:
        """Return the NAME of `-lNAME`; None where no directory of a linker has a link to the library.

        These are its own directory, /usr/lib, and those of gcc.
        """
        soname = linked.library.linkage.soname or linked.path.rsplit("/", 1)[-1]
        home = linked.path.rpartition("/")[0] or "/"
        homes = dict.fromkeys((home, home if home.startswith("/usr/") else f"/usr{home}", "/usr/lib"))
        usual = _SONAME.match(soname)
        real_path = self._system.real_path(linked.path)
        for directory in (*homes, *self._gcc_directories()):
            names = self._links(directory).get(real_path) or self._scripts(directory).get(soname)
            if names:
                return usual[1] if usual and usual[1] in names else names[0]
        # A library whose soname has no version is its own link, also where it was deleted since.
        soname_match = _LINK.fullmatch(soname)
        return soname_match[1] if soname_match else None

    def _gcc_directories(self) -> list[str]:
        if self._gcc is None:
            triplets = [f"{home}/{name}" for home in _GCC_HOMES for name in self._system.names(home)]
            self._gcc = [f"{triplet}/{name}" for triplet in triplets for name in self._system.names(triplet)]
        return self._gcc

    def _links(self, home: str) -> dict[str, list[str]]:
        """Return the names of the links in a directory by the file that they lead to."""
        if home in self._links_by_home:
            return self._links_by_home[home]
        names_by_target = self._links_by_home[home] = {}
        for file in self._system.names(home):
            if name := _LINK.fullmatch(file):
                names_by_target.setdefault(self._system.real_path(f"{home}/{file}"), []).append(name[1])
        return names_by_target

    def _scripts(self, home: str) -> dict[str, list[str]]:
        """Return the names of the links in a directory that are scripts, by the soname in them."""
        if home in self._scripts_by_home:
            return self._scripts_by_home[home]
        names_by_soname = self._scripts_by_home[home] = {}
        for path, names in self._links(home).items():
            text = self._system.text(path, _LONGEST_SCRIPT_BYTES) or b""
            # An ELF file has null bytes.
            named = None if b"\0" in text else _IN_SCRIPT.search(text)
            if named:
                names_by_soname.setdefault(named[1].decode("utf-8", "surrogateescape"), []).extend(names)
        return names_by_soname
