"""The checker: a TLA+ subset, the replay and the verdict. Names are loaded on first use, so that importing a noun stays cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import tla
    from .api import check, load_spec
    from .explore import explore

__all__ = ["check", "explore", "load_spec", "tla"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "tla":
        return import_module(".tla", __name__)
    if name in ("check", "load_spec"):
        return getattr(import_module(".api", __name__), name)
    if name == "explore":
        return import_module(".explore", __name__).explore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
