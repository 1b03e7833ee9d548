"""What a binding says, ready to run. ``binding`` reads it from a file; ``mapper`` puts its rules to work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from specwatch.checker.behaviour import Json, Order, Params, Scope, Start

from .errors import CollectorError, nearest
from .template import Test, Value
from .times import duration


class Key(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    """What groups events: a parameter's name (or several), and the field of the record (or several) that holds it."""

    param: str | list[str] | None = None
    source: str | list[str] | None = None

    def of(self, params: Params) -> Json:
        """The key of an event with these parameters, None where it has none."""
        if isinstance(self.param, list):
            return [params[name] for name in self.param] if all(name in params for name in self.param) else None
        return None if self.param is None else params.get(self.param)


class Constant(msgspec.Struct):
    """Where a constant of the spec comes from: one of the four."""

    keys: bool = False
    values: str | None = None
    count: str | None = None
    literal: Json = None


class Cause(msgspec.Struct, forbid_unknown_fields=True):
    """Every ``then`` event comes after the first ``first`` event with the same values of the parameters ``on``."""

    first: str
    then: list[str]
    on: list[str]


class Hidden(msgspec.Struct, forbid_unknown_fields=True):
    """An action that no one logs. Bounds are durations, or names in ``[settings]``: see ``bounds``."""

    after: str | None = None
    min: str | int | float | None = None
    max: str | int | float | None = None
    when: str | None = None


class Origin(msgspec.Struct, kw_only=True):
    """Where and when a record was made, as functions of it; None where the binding does not say."""

    emitter: Value | None = None
    seq: Value | None = None
    time: Value | None = None
    until: Value | None = None
    run: Value | None = None
    boot: Value | None = None


class Join(msgspec.Struct, kw_only=True):
    """Two records that are one event: its start and its end, which agree in the values ``on``."""

    start: list[Test]
    end: list[Test]
    on: list[Value]


class Made(msgspec.Struct, kw_only=True):
    """One event that a rule makes of a record: what it is, and what else it may be."""

    action: str
    alternatives: list[str]
    params: list[tuple[str, Value]]


class Rule(msgspec.Struct, kw_only=True):
    """A rule, ready to run. ``name`` is for people: ``rule 2 (Pickup), binding.toml:31``.

    ``made`` has the events that a record makes, in their order; none where it is ignored. ``fields`` are those that
    ``expect`` speaks of.
    """

    name: str
    tests: list[Test]
    ignore: str | None
    made: list[Made]
    join: Join | None
    origin: Origin
    attempt: Value | None
    state: Value | None
    before: Value | None
    expect: list[str]
    fields: list[tuple[str, Value]]


class Binding(msgspec.Struct, kw_only=True):
    """What a binding file says. Durations are nanoseconds. The default is the binding of a log of native events."""

    path: str | None = None
    spec: str | None = None
    config: str | None = None
    format: str = "auto"
    scope: Scope = "run"
    order: Order | None = None
    skew: int | None = None
    start: Start | None = None
    start_within: int | None = None
    start_states: str | None = None
    first: tuple[str, ...] = ("Publish",)
    """The actions with which the life of a key begins."""
    complete: bool = False
    unmatched: Literal["count", "error"] = "count"
    require: list[str] = []
    terminal: list[str] = []
    at_end: list[str] = []
    """Invariants of ends: judged where the log is complete."""
    causes: list[Cause] = []
    by_emitter: list[str] = []
    """The parameters of which each emitter always tells the same value: a worker's own name."""
    lossy: list[str] = []
    unwritten: int | None = None
    """The most events that an emitter which ended without saying so had not written; None for any number."""
    never_lost: list[str] = []
    """The actions that what is missing in the log was not."""
    hidden: dict[str, Hidden] = {}
    hidden_max: int | None = None
    key: Key | None = None
    constants: dict[str, Constant] = {}
    intern: dict[str, int] = {}
    """Parameters whose values become integers, and the first integer."""
    settings: dict[str, Json] = {}
    within: Json = None
    """``start.within`` as it is written: a duration, or a name in ``[settings]``."""
    origin: Origin = msgspec.field(default_factory=Origin)
    """Of records that no rule speaks of."""
    rules: list[Rule] = []


def with_settings(binding: Binding, settings: Mapping[str, str]) -> Binding:
    """The binding with some of its settings overridden, and what depends on them.

    Raises ``CollectorError`` for a setting that the binding does not have.
    """
    for name in settings:
        if name not in binding.settings:
            hint = nearest(name, binding.settings) or f"its settings: {', '.join(binding.settings) or 'none'}"
            raise CollectorError(f"the binding has no setting {name!r}", file=binding.path, hint=hint)
        if _is_duration(binding.settings[name]) and not _is_duration(settings[name]):
            hint = "50ms, 3600s, or a number of seconds"
            raise CollectorError(f"{name} cannot be {settings[name]!r}: it is a duration", hint=hint)
    known = {**binding.settings, **settings}
    within = None if binding.within is None else bound_of(binding.within, known)
    return msgspec.structs.replace(binding, settings=known, start_within=within)


def bounds(binding: Binding, settings: Mapping[str, str] = {}) -> dict[str, tuple[str, int | None, int | None]]:
    """The hidden actions that take time: by name, after which action, and the least and the most nanoseconds.

    Bounds that are names stand for what ``[settings]`` says, or what ``settings`` says instead.
    """
    binding = with_settings(binding, settings)
    return {
        name: (
            hidden.after,
            None if hidden.min is None else bound_of(hidden.min, binding.settings),
            None if hidden.max is None else bound_of(hidden.max, binding.settings),
        )
        for name, hidden in binding.hidden.items()
        if hidden.after is not None
    }


def bound_of(value: Any, settings: Mapping[str, Any]) -> int:
    """A duration, or a setting's, in nanoseconds. Raises ``ValueError``."""
    return duration(settings[value] if isinstance(value, str) and value in settings else value)


def _is_duration(value: object) -> bool:
    try:
        duration(value)
    except ValueError:
        return False
    return True
