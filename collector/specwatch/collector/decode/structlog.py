"""JSON lines as structlog writes them: one object a line, no fixed keys; what they mean is the binding's affair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from .lines import Broken, Real, Record, count_names, explained, records, refused

_FIELDS = msgspec.json.Decoder(dict[str, Any], float_hook=Real)


def decode(file: str, lines: Iterable[tuple[int, bytes]]) -> Iterator[Record | Broken]:
    """Each line's object as a ``Record``."""
    for number, line in records(lines):
        try:
            fields = _FIELDS.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            yield Broken(number, explained(error, line), line)
            continue
        why = refused(line, count_names(fields))
        yield Broken(number, why, line) if why else Record(number, fields)
