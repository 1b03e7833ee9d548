"""The checker: a TLA+ subset, the replay and the verdict.

Names are loaded on first use, so that importing a noun stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .face import become_face

if TYPE_CHECKING:
    from . import tla as tla
    from .api import check, load_spec
    from .explore import explore

__all__ = ["check", "explore", "load_spec", "tla"]

_HOMES = {"check": ".api", "explore": ".explore", "load_spec": ".api"}
become_face(__name__)
