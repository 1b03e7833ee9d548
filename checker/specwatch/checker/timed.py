"""Hidden steps that take time: a visibility timeout is never earlier than so long after the pickup.

A hidden step lies at some time between its neighbours, each widened by the skew. What has to be remembered on a path
is when the latest step that a bound counts from may have been: a *mark*, an interval for each action and values of the
parameters that both actions have. Where an end is not known it is infinite, and the bound forbids nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from .behaviour import Event
from .spec import Action, Spec
from .tla.values import Value

Span = tuple[float, float]
"""The earliest and the latest time of a step, in nanoseconds since the epoch."""

Params = tuple[tuple[str, Value], ...]


def span_of(event: Event) -> Span:
    """When an event was, as far as is known."""
    if event.time is None:
        return -math.inf, math.inf
    return event.time, event.time if event.until is None else event.until


class Mark(NamedTuple):
    """When the latest step of a kind was: ``kind`` is a bound's number, ``values`` those of the shared parameters."""

    kind: int
    values: tuple[Value, ...]
    earliest: float
    latest: float


Marks = tuple[Mark, ...]


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """``action`` is hidden, and comes at least ``min`` and at most ``max`` nanoseconds after the latest ``after``."""

    action: str
    after: str
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class _Bound:
    action: frozenset[Action]
    after: frozenset[Action]
    shared: tuple[str, ...]
    min: float
    max: float


class Timing:
    """The time bounds of a spec's hidden actions."""

    def __init__(self, spec: Spec, timed: Iterable[Timed]) -> None:
        self.bounds = [_bound(spec, one) for one in timed]

    def span(self, marks: Marks, action: Action, params: Params, between: Span) -> Span | None:
        """When a hidden step may be that lies ``between`` two times; None where its bounds forbid it."""
        earliest, latest = between
        bounded = False
        for kind, bound in enumerate(self.bounds):
            if action in bound.action:
                bounded = True
                values = _values(bound.shared, params)
                mark = next((mark for mark in marks if mark.kind == kind and mark.values == values), None)
                if mark is not None:
                    earliest = max(earliest, mark.earliest + bound.min)
                    latest = min(latest, mark.latest + bound.max)
        # Neighbours whose times are the wrong way round leave no time for a step that is bounded; others need none.
        return None if bounded and earliest > latest else (earliest, latest)

    def after(self, marks: Marks, action: Action, params: Params, span: Span) -> Marks:
        """The marks after a step that was within ``span``."""
        for kind, bound in enumerate(self.bounds):
            if action in bound.after:
                values = _values(bound.shared, params)
                # Without a max the latest time is never asked for, and paths that differ in it alone are one.
                latest = span[1] if bound.max < math.inf else math.inf
                mark = Mark(kind, values, span[0], latest)
                others = [other for other in marks if (other.kind, other.values) != (kind, values)]
                marks = tuple(sorted([*others, mark], key=lambda mark: (mark.kind, repr(mark.values))))
        return marks


def dominates(one: Marks, other: Marks) -> bool:
    """Whether every bound that paths with marks ``other`` meet is met by those with ``one``."""
    return len(one) == len(other) and all(
        a[:2] == b[:2] and a.earliest <= b.earliest and a.latest >= b.latest for a, b in zip(one, other, strict=True)
    )


def _bound(spec: Spec, timed: Timed) -> _Bound:
    action, after = frozenset(spec.named(timed.action)), frozenset(spec.named(timed.after))
    both = [set(one.parameters) for one in (*action, *after)]
    shared = sorted(set.intersection(*both)) if both else []
    return _Bound(
        action,
        after,
        tuple(shared),
        -math.inf if timed.min is None else timed.min,
        math.inf if timed.max is None else timed.max,
    )


def _values(names: tuple[str, ...], params: Params) -> tuple[Value, ...]:
    given = dict(params)
    return tuple(given[name] for name in names)
