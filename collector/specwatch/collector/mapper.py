"""From records to events: the rules of a binding at work."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from specwatch.checker.behaviour import Event, Json, Source

from .decode.lines import Broken, Real, Record
from .rules import Binding, Key, Made, Origin, Rule
from .template import Fields, Lacks, Test, Value, as_text, field, plain, shown
from .times import from_rfc3339, from_seconds

IGNORED, UNMATCHED, UNPARSED = "ignored", "unmatched", "unparsed"
"""Lanes of what makes no event and has a number: it was read, so that its number is no gap. Only the collector sees
them."""

OPEN, JOINED = "open", "joined"
"""Lanes of two records that are one event: the first, while no second has come; and the second."""


class Left(msgspec.Struct, frozen=True):
    """A record that makes no event: that a rule leaves out, that no rule speaks of, or that does not fit its rule.

    ``what`` is the rule's reason, or what is wrong; ``mark`` stands for the number that the record has, if it has one.
    """

    lane: str
    what: str
    mark: Event | None


class Half(msgspec.Struct, frozen=True):
    """The start or the end of a joined event. ``on`` tells whose; ``event`` says where and when it was made."""

    rule: Rule
    is_end: bool
    on: bytes
    event: Event
    fields: Fields


class Mapper:
    """A binding at work on one set of logs: it knows which of its rules have matched."""

    def __init__(self, binding: Binding) -> None:
        self.rules = binding.rules
        self._origin = binding.origin
        self._group = binding.key
        self._key = None if binding.key is None else _key_fields(binding.key)
        self._matched = [False] * len(binding.rules)
        self._names: dict[str, str] = {}

    def read(self, record: Record, file: str) -> list[Event] | Half | Left:
        """What the first rule that matches makes of a record."""
        fields = record.fields
        for number, rule in enumerate(self.rules):
            for test in rule.tests:
                if not test(fields):
                    break
            else:
                join = rule.join
                if join is not None and not (_fits(join.start, fields) or _fits(join.end, fields)):
                    continue
                self._matched[number] = True
                if rule.ignore is not None:
                    return Left(IGNORED, rule.ignore, self._mark(rule.origin, record, file, IGNORED, rule.ignore))
                try:
                    return self._events(rule, record, file) if join is None else self._half(rule, record, file)
                except (Lacks, ValueError) as error:
                    why = f"does not fit {rule.name}: {error}"
                    return Left(UNPARSED, why, self._mark(rule.origin, record, file, UNPARSED))
        return Left(UNMATCHED, "", self._mark(self._origin, record, file, UNMATCHED))

    def joined(self, start: Half, end: Half) -> Event | Broken:
        """The event of two records. Its place is the start's; for the rest the end's fields win."""
        rule, (made,) = start.rule, start.rule.made
        fields = {**start.fields, **end.fields}
        event, ended = msgspec.structs.replace(start.event, lane=None), end.event
        try:
            if event.time is not None and ended.time is None:
                raise ValueError("its end has no time")
            event.until = _time(rule.origin.until, fields) or ended.time
            event.params = {name: value(fields) for name, value in made.params}
            _observe(rule, fields, event, event)
            self._say(event, rule, made, fields)
        except (Lacks, ValueError) as error:
            assert ended.source is not None, "the mapper gives all its events a source"
            return Broken(ended.source.line, f"does not fit {rule.name}: {error}", b"")
        if event.time is not None and event.until is not None and event.until < event.time:
            # The clock was set back between the two.
            event.time, event.until = event.until, event.time
        return event

    def ended(self, end: Half) -> Event | Broken:
        """The event of a record whose start was before the log: it happened at some time up to that."""
        event = self.joined(end, end)
        if isinstance(event, Event):
            event.time = None
        return event

    def time(self, record: Record) -> int | None:
        """When a record was made, as far as the binding can tell without its rules."""
        if self._origin.time is None:
            return None
        try:
            return _time(self._origin.time, record.fields)
        except ValueError:
            return None

    def unused_rules(self) -> list[str]:
        """The rules that have matched nothing."""
        return [rule.name for rule, matched in zip(self.rules, self._matched, strict=True) if not matched]

    def _events(self, rule: Rule, record: Record, file: str) -> list[Event]:
        fields = record.fields
        first = self._made_at(rule.origin, record, file)
        if rule.origin.until is not None:
            first.until = _time(rule.origin.until, fields)
        events = [first]
        if len(rule.made) > 1:
            events += (msgspec.structs.replace(first, part=part) for part in range(1, len(rule.made)))
        for event, made in zip(events, rule.made, strict=True):
            event.params = {name: value(fields) for name, value in made.params}
            self._say(event, rule, made, fields)
        # What was observed before the record was so before the first of its events, what after it after the last.
        _observe(rule, fields, events[0], events[-1])
        return events

    def _say(self, event: Event, rule: Rule, made: Made, fields: Fields) -> None:
        """Put what happened into an event that says where and when, and has its parameters."""
        event.action, event.alternatives = made.action, made.alternatives
        if rule.attempt is not None:
            event.attempt = _integer("attempt", rule.attempt, fields)
        if self._group is not None:
            key = None if self._key is None else self._key(fields)
            event.key = self._group.of(event.params) if key is None else key

    def _half(self, rule: Rule, record: Record, file: str) -> Half:
        join = rule.join
        assert join is not None, "only rules that join records have halves"
        is_end = not _fits(join.start, record.fields)
        on = msgspec.json.encode([plain(value(record.fields)) for value in join.on], order="deterministic")
        event = self._made_at(rule.origin, record, file)
        event.lane = JOINED if is_end else OPEN
        if not is_end:
            (made,) = rule.made
            event.params = _as_far_as_known(made, record.fields)
            self._say(event, rule, made, record.fields)
        return Half(rule, is_end, on, event, record.fields)

    def _mark(self, origin: Origin, record: Record, file: str, lane: str, what: str = "") -> Event | None:
        try:
            if _integer("seq", origin.seq, record.fields) is None:
                return None
            mark = self._made_at(origin, record, file)
        except ValueError:
            return None
        mark.lane, mark.action = lane, what
        return mark

    def _made_at(self, origin: Origin, record: Record, file: str) -> Event:
        """Where and when a record was made, as an event without an action."""
        fields = record.fields
        return Event(
            action="",
            params=_NO_PARAMS,
            emitter=self._text(origin.emitter, fields),
            seq=_integer("seq", origin.seq, fields),
            time=_time(origin.time, fields),
            expect=_NO_EXPECT,
            after=_NO_AFTER,
            run=self._text(origin.run, fields),
            boot=self._text(origin.boot, fields),
            source=Source(file, record.line),
            alternatives=_NO_ALTERNATIVES,
        )

    def _text(self, value: Value | None, fields: Fields) -> str | None:
        found = _optional(value, fields)
        if found is None:
            return None
        text = as_text(found)
        return self._names.setdefault(text, text)


# Shared by all events, which no one changes.
_NO_PARAMS: dict[str, Json] = {}
_NO_EXPECT: list[str] = []
_NO_AFTER: list[tuple[str, int]] = []
_NO_ALTERNATIVES: list[str] = []


def _fits(tests: list[Test], fields: Fields) -> bool:
    return all(test(fields) for test in tests)


def _as_far_as_known(made: Made, fields: Fields) -> dict[str, Json]:
    """The parameters that a start gives. Of an event that does not end, the others may have any value."""
    params: dict[str, Json] = {}
    for name, value in made.params:
        try:
            params[name] = value(fields)
        except Lacks:
            continue
    return params


def _observe(rule: Rule, fields: Fields, first: Event, last: Event) -> None:
    """What was observed before and after a record, and what must hold after it, with the values that it speaks of."""
    if rule.before is not None:
        first.before = rule.before(fields)
    if rule.state is not None:
        last.state = rule.state(fields)
    if rule.expect:
        last.expect = rule.expect
        last.extra = {name: value(fields) for name, value in rule.fields} or None


def _key_fields(key: Key) -> Value | None:
    if key.source is None:
        return None
    if isinstance(key.source, str):
        one = field(key.source.removeprefix("$"))
        return lambda fields: _or_none(one, fields)
    several = [field(name.removeprefix("$")) for name in key.source]

    def together(fields: Fields) -> Json:
        values = [_or_none(value, fields) for value in several]
        return None if None in values else values

    return together


def _or_none(value: Value, fields: Fields) -> Any:
    try:
        return plain(value(fields))
    except Lacks:
        return None


def _optional(value: Value | None, fields: Fields) -> Any:
    if value is None:
        return None
    try:
        return value(fields)
    except Lacks:
        return None


def _integer(name: str, value: Value | None, fields: Fields) -> int | None:
    found = _optional(value, fields)
    if found is None:
        return None
    if isinstance(found, str) and re.fullmatch(r"\d{1,40}", found, re.ASCII):
        return int(found)
    if type(found) is not int or found < 0:
        raise ValueError(f"{name} is {shown(found)}, which is no number of a record")
    return found


def _time(value: Value | None, fields: Fields) -> int | None:
    found = _optional(value, fields)
    if found is None:
        return None
    if isinstance(found, str):
        return from_rfc3339(found) if ":" in found else from_seconds(found)
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return from_seconds(found.text if isinstance(found, Real) else str(found))
    raise ValueError(f"{shown(found)} is no time")
