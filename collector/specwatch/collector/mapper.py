"""From records to events: the rules of a binding at work."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from specwatch.checker.behaviour import Event, Json, Source

from .binding import Binding, Key, Rule
from .decode.lines import Broken, Real, Record
from .template import Fields, Lacks, Value, as_text, field, plain, shown
from .times import from_rfc3339, from_seconds


class Ignored(msgspec.Struct, frozen=True):
    """A record that a rule leaves out, and why."""

    reason: str


class Mapper:
    """A binding at work on one set of logs: it knows which of its rules have matched."""

    def __init__(self, binding: Binding) -> None:
        self.rules = binding.rules
        self._key = None if binding.key is None else _key_fields(binding.key)
        self._matched = [False] * len(binding.rules)
        self._names: dict[str, str] = {}

    def event(self, record: Record, file: str) -> Event | Ignored | Broken | None:
        """What the first rule that matches makes of a record; None where no rule speaks of it."""
        fields = record.fields
        for number, rule in enumerate(self.rules):
            for test in rule.tests:
                if not test(fields):
                    break
            else:
                self._matched[number] = True
                if rule.ignore is not None:
                    return Ignored(rule.ignore)
                try:
                    return self._event(rule, record, file)
                except (Lacks, ValueError) as error:
                    return Broken(record.line, f"does not fit {rule.name}: {error}", b"")
        return None

    def unused_rules(self) -> list[str]:
        """The rules that have matched nothing."""
        return [rule.name for rule, matched in zip(self.rules, self._matched, strict=True) if not matched]

    def _event(self, rule: Rule, record: Record, file: str) -> Event:
        fields = record.fields
        params = {name: value(fields) for name, value in rule.params}
        return Event(
            action=rule.action,
            params=params,
            key=None if self._key is None else self._key(fields),
            emitter=self._text(rule.emitter, fields),
            seq=_integer("seq", rule.seq, fields),
            time=_time(rule.time, fields),
            until=_time(rule.until, fields),
            state=None if rule.state is None else rule.state(fields),
            before=None if rule.before is None else rule.before(fields),
            expect=_NO_EXPECT,
            after=_NO_AFTER,
            run=self._text(rule.run, fields),
            boot=self._text(rule.boot, fields),
            attempt=_integer("attempt", rule.attempt, fields),
            source=Source(file, record.line),
        )

    def _text(self, value: Value | None, fields: Fields) -> str | None:
        found = _optional(value, fields)
        if found is None:
            return None
        text = as_text(found)
        return self._names.setdefault(text, text)


# Shared by all events, which no one changes.
_NO_EXPECT: list[str] = []
_NO_AFTER: list[tuple[str, int]] = []


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
