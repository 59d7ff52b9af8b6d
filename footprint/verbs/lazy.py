"""Modules whose functions are imported when they are called, so that a verb imports only what its answer needs."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ("LazyModule", "lazy_modules")


class LazyModule:
    """A module that is imported when one of its functions is called.

    A type checker reads an ordinary import beside it, under `if TYPE_CHECKING`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 # as the function
            return getattr(import_module(self._name), function)(*arguments, **named)

        return called


def lazy_modules(package: str, names: str) -> list[LazyModule]:
    """Return some modules of a package; `names` has spaces between them."""
    return [LazyModule(f"{package}.{name}") for name in names.split()]
