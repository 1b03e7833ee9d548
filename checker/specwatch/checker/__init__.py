"""The checker: a TLA+ subset, the replay and the verdict.

Names are loaded on first use, so that importing a noun stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import tla
    from .api import check, load_spec
    from .exploration import explore

__all__ = ["check", "explore", "load_spec", "tla"]

# A submodule never has the name of one of these: importing it would put the module in the function's place.
_HOMES = {"check": ".api", "load_spec": ".api", "explore": ".exploration"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "tla":
        return import_module(".tla", __name__)
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
