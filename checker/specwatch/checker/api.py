"""The checker's face: a spec, behaviours, options → a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .behaviour import Behaviour, Event, Ledger, Order, Scope, Start
from .judging import Judge
from .options import Options
from .order import Cause, lane_name
from .reading import EventError
from .spec import Spec, load_spec
from .timed import Timed
from .verdict import Verdict

__all__ = ["Cause", "Options", "Timed", "check", "judge", "load_spec"]


def check(
    spec: Spec,
    events: Iterable[Event | Mapping[str, Any]],
    *,
    hidden: Iterable[str] = (),
    hidden_max: int | None = None,
    order: Order = "total",
    scope: Scope = "run",
    start: Start = "init",
    strict: bool = False,
    require: Iterable[str] = (),
    skew: float = 1.0,
    max_states: int | None = None,
    timeout: float | None = None,
) -> Verdict:
    """Judges the events of one run.

    :param events: native events, as :class:`~.behaviour.Event` or as mappings with its fields.
    :param order: ``total`` takes them as they come; ``emitter`` takes each emitter's by ``seq``; ``time`` adds causes
        and what their times tell.
    :param skew: under ``time`` the most that two clocks differ, in seconds.
    :param max_states: with ``timeout`` (seconds) the bounds of the search: hidden steps may go on without end.
    :raises TlaError: the spec, or an event that speaks of what the spec lacks.
    """
    read = [event if isinstance(event, Event) else msgspec.convert(event, Event) for event in events]
    if order == "emitter":
        # Stable: an emitter without numbers keeps the order of its events.
        read.sort(key=lambda event: event.seq if event.seq is not None else 0)
    elif order == "time":
        read = _by_emitter(read)
    steps = [event for event in read if event.lane is None]
    options = Options(
        hidden=tuple(hidden),
        hidden_max=hidden_max,
        scope=scope,
        start=start,
        strict=strict,
        require=tuple(require),
        max_states=max_states,
        timeout=timeout,
    )
    nanoseconds = round(skew * 1_000_000_000)
    times = [event.time for event in read if event.time is not None]
    behaviour = Behaviour(events=steps, order=order, skew=nanoseconds, began=min(times, default=None))
    ledger = Ledger(read=len(read), mapped=len(steps), ignored=_lanes(read))
    return judge(spec, [behaviour], options, ledger, [event for event in read if event.lane == "fault"])


def _by_emitter(events: list[Event]) -> list[Event]:
    """Each emitter's events by number, else as they came; the emitters by name, so that arrival does not matter."""
    for number, event in enumerate(events, 1):
        if event.time is None and event.lane is None:
            raise EventError(f"event {number} has no time, and order time needs one", event, number)
    numbered = sorted(events, key=lambda event: event.seq if event.seq is not None else 0)
    return sorted(numbered, key=lambda event: (lane_name(event), event.boot or ""))


def _lanes(events: list[Event]) -> dict[str, int]:
    return dict(Counter(f"lane {event.lane}" for event in events if event.lane is not None))


def judge(
    spec: Spec, behaviours: Sequence[Behaviour], options: Options, ledger: Ledger, faults: Sequence[Event] = ()
) -> Verdict:
    """Judges the behaviours of runs against a spec. Fills all of the verdict but what only the reader of the logs
    knows.

    :param faults: the events of lane ``fault``, for what is required during one.
    :raises TlaError: a false ASSUME, an event that speaks of what the spec lacks, an expression without a value, a
        scope that the spec does not allow.
    """
    return Judge(spec, options, ledger, faults).judge(behaviours)
