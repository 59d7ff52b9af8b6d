"""The names of real programs and libraries are shown as LLVM reads them: none is taken for one made to be endless."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pycxxfilt
import pytest

from footprint.elf.names import Language, foreign_names, is_tame, shown_name, split_suffixes
from footprint.sources.demanglers import TOOLS, learn_foreign_names


@cache
def mangled(path: str) -> list[str]:
    """Return the stems of all C++ and Rust names that nm prints of a file, or skip the test where it cannot."""
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    tables = ["-a", "-D"]
    printed = [
        subprocess.run(["nm", table, path], capture_output=True, text=True, check=False).stdout for table in tables
    ]
    names = {line.split()[-1] for text in printed for line in text.splitlines() if line}
    return sorted({split_suffixes(name)[0] for name in names if name.startswith(("_Z", "_R"))})


def result(pattern: str, *folders: str) -> str:
    """Return the path of a library that may stand in one of some folders."""
    for folder in folders:
        for path in sorted(Path(folder).expanduser().glob(pattern)):
            return str(path.resolve())
    pytest.skip(f"no {pattern} here")


def is_readable(name: str) -> bool:
    try:
        return bool(pycxxfilt.demangle(name))
    except ValueError:
        return False


def test_nearly_all_names_of_a_large_cpp_program_are_tame() -> None:
    path = shutil.which("node") or result("**/libstdc++.so.6", "/usr/lib", "/usr/lib64")
    names = mangled(path)
    assert names
    assert sum(not is_tame(name) for name in names) < len(names) / 500


def test_all_names_of_a_large_rust_library_are_tame_and_shown() -> None:
    path = result("librustc_driver-*.so", "~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/lib", "/usr/lib")
    names = [name for name in mangled(path) if name.startswith("_R")][::10]
    assert len(names) > 1000
    assert all(map(is_tame, names))
    unread = [name for name in names if shown_name(name) == name and is_readable(name)]
    assert len(unread) < len(names) / 1000  # what is longer than anybody reads


def test_old_rust_names_are_cleaned_as_cfilt_cleans_them() -> None:
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    path = shutil.which("rustup") or result("*", "~/.cargo/bin")
    names = [name for name in mangled(path) if name.endswith("E") and "17h" in name][:5000]
    if not names:
        pytest.skip("no such names here")
    lines = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    # It cleans the escapes, and keeps the hash.
    theirs = [re.sub(r"::h[0-9a-f]{16}$", "", line) for line in lines.splitlines()]
    ours = [shown_name(name) for name in names]
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


def test_names_of_d_are_read_by_the_tool() -> None:
    if shutil.which(TOOLS[Language.D][0]) is None:
        pytest.skip("c++filt is not installed")
    path = result("**/libgphobos.so.?", "/usr/lib")
    printed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = foreign_names(line.split()[-1] for line in printed.splitlines())[Language.D]
    learn_foreign_names(names)
    assert sum(shown_name(name) != name for name in names) > 0.9 * len(names)
