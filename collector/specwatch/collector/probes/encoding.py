"""Whatever a program puts into an event, as JSON: a probe that is given something odd tells what it can of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def encoded(value: Any) -> bytes:
    """JSON in UTF-8, on one line without its end. What is no JSON is told by its text.

    Raises only for what has no end: an object inside itself.
    """
    try:
        return _ENCODE(value)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        # Integers beyond 64 bits, names that are no text, halves of surrogate pairs.
        return json.dumps(value, default=_text, ensure_ascii=False, skipkeys=True).encode(errors="replace")


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


_ENCODE = msgspec.json.Encoder(enc_hook=_text).encode
