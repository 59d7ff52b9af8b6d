"""List the classes and byte orders of ELF files, each with a machine that has it; a test runs with each of them."""

from typing import Any

import pytest

from tests.elfwriter import EM_386, EM_PPC, EM_S390, EM_X86_64

KINDS: dict[str, dict[str, Any]] = {
    "32-bit-little-endian": {"bits": 32, "order": "little", "machine": EM_386},
    "32-bit-big-endian": {"bits": 32, "order": "big", "machine": EM_PPC},
    "64-bit-little-endian": {"bits": 64, "order": "little", "machine": EM_X86_64},
    "64-bit-big-endian": {"bits": 64, "order": "big", "machine": EM_S390},
}
in_all_classes_and_orders = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
