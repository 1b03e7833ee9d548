"""Lines that a second handler, or a second stream, wrote again: no number tells, but nearly all lines come twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from specwatch.checker.behaviour import Event

FEWEST = 2
"""So many lines of an emitter must have come twice: one pair may be two steps of one time."""

SHARE = 0.9
"""Of an emitter's lines, this share must be in pairs. A log that was cut may begin and end within one."""


class _Lines(msgspec.Struct):
    """The lines of one emitter in one log."""

    count: int = 0
    time: int | None = None
    content: Any = None
    """Of the last line, where no other is its double yet."""
    second: list[range] = []


class Doubles:
    """The lines of one log, by emitter: which of them are equal to the one before, and no other's double yet."""

    def __init__(self) -> None:
        self._emitters: dict[str | None, _Lines] = {}

    def add(self, emitter: str | None, time: int | None, content: Any, events: range) -> None:
        """A line without a number: its time, all that it says, and the indices of its events.

        Without a time it is no other's double.
        """
        own = self._emitters.get(emitter)
        if own is None:
            own = self._emitters[emitter] = _Lines()
        own.count += 1
        if time is not None and time == own.time and _said(content) == _said(own.content):
            own.second.append(events)
            own.time = own.content = None
        else:
            own.time, own.content = time, content

    def found(self) -> Iterator[range]:
        """The events of the lines that are doubles."""
        for own in self._emitters.values():
            pairs = len(own.second)
            if pairs >= FEWEST and 2 * pairs >= SHARE * own.count:
                yield from own.second


def _said(content: Any) -> bytes:
    if isinstance(content, Event):
        content = msgspec.structs.replace(content, source=None)
    return msgspec.json.encode(content, enc_hook=float, order="deterministic")
