"""The reports: one file a format, each with ``render(verdict: Verdict) -> str``. A new format is a file and a row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specwatch.checker.verdict import Verdict

FORMATS: dict[str, str] = {"text": ".text", "json": ".json", "junit": ".junit"}
"""A format's name → its module, which is imported when it is first asked for."""


def render(name: str, verdict: Verdict) -> str:
    """The verdict in the format of that name. Raises ``KeyError`` for a name that is not in ``FORMATS``."""
    text: str = import_module(FORMATS[name], __name__).render(verdict)
    return text
