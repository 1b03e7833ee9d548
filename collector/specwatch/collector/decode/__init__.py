"""From lines to records: one file an input format, one row in ``DECODERS``.

A decoder takes the log's name and its numbered lines, and yields, in the order of the lines, what each record is:

* an ``Event``: the format itself says which action it is (native);
* a ``Record``: fields, which the binding's rules make an event of;
* a ``Broken``: a record that cannot be read, and why.

Blank lines, and the lines of a traceback, which belong to the record before it, are no records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from specwatch.checker.behaviour import Event

from . import native, structlog
from .lines import Broken, Record

Decoder = Callable[[str, Iterable[tuple[int, bytes]]], Iterator[Event | Record | Broken]]

DECODERS: dict[str, Decoder] = {"native": native.decode, "structlog": structlog.decode}

LOOK_AT = 20
"""So many lines of a log decide which format it is."""


def detect(head: Iterable[bytes], *, has_rules: bool) -> str:
    """The name of the decoder for a log that begins with these lines.

    A log is native if one of its first records surely is. Else rules, where the binding has some, are there to be used.
    """
    if any(native.is_native(line) for line in head):
        return "native"
    return "structlog" if has_rules else "native"


__all__ = ["DECODERS", "LOOK_AT", "Broken", "Decoder", "Record", "detect"]
