"""Native events: JSON lines in which each object says its action itself. A log in this form needs no binding.

The form is the product's own face to other programs. Only ``action`` is required, unknown fields are kept in
``Event.extra``, integers are exact whatever their size, and ``time`` is either RFC 3339 or a number of seconds that is
read as an exact decimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from specwatch.checker.behaviour import Event, Params, Source

from ..times import from_rfc3339, from_seconds
from .lines import Broken, count_names, explained, records, refused

_ABSENT = msgspec.Raw()


class _Wire(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    action: str
    params: dict[str, Any] | None = None
    key: Any = None
    emitter: str | int | None = None
    seq: int | None = None
    time: msgspec.Raw = _ABSENT
    until: msgspec.Raw = _ABSENT
    state: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    expect: list[str] | None = None
    lane: Literal["fault", "emitter"] | None = None
    run: str | int | None = None
    after: list[tuple[str, int]] | None = None
    clock: dict[str, int] | None = None
    boot: str | int | None = None
    attempt: int | None = None
    source: Any = None
    alternatives: list[str] | None = None
    part: int = 0


FIELDS = frozenset(_Wire.__struct_fields__)
_WIRE = msgspec.json.Decoder(_Wire)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()
_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)

# Shared by all events that have none, so that a million of them hold no million empty lists. No one changes an event.
_NO_PARAMS: Params = {}
_NO_EXPECT: list[str] = []
_NO_AFTER: list[tuple[str, int]] = []
_NO_ALTERNATIVES: list[str] = []


def is_native(line: bytes) -> bool:
    """Whether a line is a native event beyond doubt: an action, and either parameters or nothing that is not native."""
    try:
        fields = _OBJECT.decode(line)
        return isinstance(_ANY.decode(fields["action"]), str) and (
            FIELDS.issuperset(fields) or isinstance(_ANY.decode(fields["params"]), dict)
        )
    except (*_ERRORS, KeyError):
        return False


def decode(file: str, lines: Iterable[tuple[int, bytes]]) -> Iterator[Event | Broken]:
    """Each line's object as an ``Event``. Its source is what it says itself, else the file and line it stands in."""
    names: dict[str, str] = {}
    once = names.setdefault
    for number, line in records(lines):
        extra: dict[str, Any] | None = None
        try:
            try:
                wire = _WIRE.decode(line)
            except msgspec.ValidationError:
                wire, extra = _with_unknown_fields(line)
            known = len(_OBJECT.decode(line)) + sum(map(count_names, (wire.params, wire.state, wire.before)))
            if why := refused(line, known):
                raise _Refused(why)
            if not wire.action:
                raise _Refused("is no event: its action is empty")
            if wire.seq is not None and wire.seq < 0:
                raise _Refused(f"is no event: seq {wire.seq} is negative")
            if wire.part < 0:
                raise _Refused(f"is no event: part {wire.part} is negative")
            emitter, run, boot = wire.emitter, wire.run, wire.boot
            event = Event(
                action=once(wire.action, wire.action),
                params=wire.params or _NO_PARAMS,
                key=wire.key,
                emitter=emitter if emitter is None else once(str(emitter), str(emitter)),
                seq=wire.seq,
                time=_nanoseconds(wire.time),
                until=_nanoseconds(wire.until),
                state=wire.state,
                before=wire.before,
                expect=wire.expect or _NO_EXPECT,
                lane=wire.lane,
                run=run if run is None else once(str(run), str(run)),
                after=wire.after or _NO_AFTER,
                clock=wire.clock,
                boot=boot if boot is None else once(str(boot), str(boot)),
                attempt=wire.attempt,
                source=Source(file, number) if wire.source is None else _source(wire.source, file, number),
                alternatives=wire.alternatives or _NO_ALTERNATIVES,
                part=wire.part,
                extra=extra,
            )
        except _Refused as refusal:
            yield Broken(number, str(refusal), line)
        except _ERRORS as error:
            yield Broken(number, explained(error, line), line)
        else:
            if event.key is not None:
                _share_key(event)
            yield event


class _Refused(Exception):
    """The line is JSON, and no event."""


def _with_unknown_fields(line: bytes) -> tuple[_Wire, dict[str, Any]]:
    fields = _OBJECT.decode(line)
    extra = {name: _ANY.decode(value) for name, value in fields.items() if name not in FIELDS}
    known = {name: value for name, value in fields.items() if name in FIELDS}
    return _WIRE.decode(msgspec.json.encode(known)), extra


def _nanoseconds(raw: msgspec.Raw) -> int | None:
    text = bytes(raw)
    if not text or text == b"null":
        return None
    try:
        if text.startswith(b'"'):
            return from_rfc3339(_ANY.decode(text))
        return from_seconds(text.decode())
    except ValueError as error:
        raise _Refused(f"is no event: {error}") from None


def _source(value: Any, file: str, number: int) -> Source:
    if isinstance(value, dict) and isinstance(value.get("file"), str) and type(value.get("line")) is int:
        return Source(value["file"], value["line"])
    return Source(file, number)


def _share_key(event: Event) -> None:
    """The key is nearly always the text of a parameter: then it is held once."""
    for value in event.params.values():
        if value == event.key and type(value) is type(event.key):
            event.key = value
            return
