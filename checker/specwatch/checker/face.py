"""A package whose public functions have the names of its own submodules: ``tla.parse`` beside ``tla/parse.py``.

Importing a submodule binds it in its package, which would put the module in the function's place from then on.
A :class:`Face` declines that binding, and loads a function on its first use. ``from .parse import …`` is not affected.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class Face(ModuleType):
    """The class of such a package; ``_HOMES`` in it says where each public name is loaded from."""

    _HOMES: dict[str, str]

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in self._HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in self._HOMES:
            value = getattr(import_module(self._HOMES[name], self.__name__), name)
            self.__dict__[name] = value
            return value
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def become_face(name: str) -> None:
    """Makes the package of this name a :class:`Face`."""
    sys.modules[name].__class__ = Face
