"""From logs to behaviours: which records count, what is missing, and in which order the events stand.

``collect`` is the collector's face. It reads every log once, in bounded memory but for the events themselves, and gives
back behaviours with the account of what was read, left out and lost.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

import msgspec

from specwatch.checker.behaviour import Behaviour, Event, Input, Json, Ledger, Order, Start

from .constants import constants_from, intern
from .decode import DECODERS
from .errors import CollectorError, at
from .losses import Losses
from .numbering import Numbering, content
from .ordering import ordered
from .reading import Reading
from .receive.tail import find
from .rules import Binding, with_settings
from .times import NANOSECONDS, duration


class Collected(msgspec.Struct, kw_only=True):
    """What the logs of one command hold. ``behaviours`` has one entry a run, or a single one without events."""

    behaviours: list[Behaviour]
    ledger: Ledger
    inputs: list[Input]
    constants: dict[str, Json] = {}
    """Constants of the spec that the binding takes from the log. A set is ``{"#set": [...]}``, sorted."""
    legend: dict[str, str] = {}
    """Interned ids: the integer as text → the id in the log (``param=integer`` if several parameters are interned)."""
    assumptions: list[str] = []
    fault_events: list[Event] = []
    """Events of lane ``fault`` or ``emitter``: kept, and no steps."""


def collect(
    paths: Sequence[str],
    binding: Binding | None = None,
    *,
    format: str | None = None,
    order: Order | None = None,
    start: Start | None = None,
    skew: str | float | None = None,
    settings: Mapping[str, str] | None = None,
    stdin: IO[bytes] | None = None,
) -> Collected:
    """Read logs and assemble their events into behaviours. What is given here overrides the binding.

    ``paths`` are files, directories, globs or ``-``; ``format`` is a decoder or ``auto``; ``skew`` is a duration.
    Raises ``CollectorError`` for what cannot be read, for a log in which nothing is a record, and where the order of
    the events cannot be known.
    """
    binding = with_settings(binding or Binding(), settings or {})
    format = format or binding.format
    if format != "auto" and format not in DECODERS:
        raise CollectorError(f"there is no format {format!r}", hint=f"formats: auto, {', '.join(DECODERS)}")
    clocks = skew_of(binding, skew)
    order = order or binding.order
    logs = find(paths, stdin)
    if order != "total":
        # Not as they were named: in another order they are the same logs.
        logs.sort(key=lambda log: log.name)
    reading = Reading(binding, format, start or binding.start or "init")
    with _without_garbage_collection():
        for log in logs:
            reading.read(log)
    reading.finish()

    order = order or _default_order(reading)
    numbering = Numbering(reading)
    runs = ordered(numbering, order)
    losses = Losses(reading, numbering, runs, order, clocks)
    missing = losses.find()
    behaviours = [
        Behaviour(
            events=_steps(reading.events, indices),
            order=order,
            run=run,
            losses=missing[run],
            skew=clocks if order == "time" else 0,
            began=reading.began,
        )
        for run, indices in runs.items()
    ]
    legend = intern(binding, behaviours)
    return Collected(
        behaviours=behaviours,
        ledger=reading.ledger,
        inputs=reading.inputs,
        constants=constants_from(binding, behaviours),
        legend=legend,
        assumptions=[
            *(f"{name} = {value}" for name, value in binding.settings.items()),
            *_assumed(order, clocks, losses.open_ended, binding.unwritten),
        ],
        fault_events=_fault_events(reading, numbering, order),
    )


def skew_of(binding: Binding, skew: str | float | None) -> int:
    """The most that two clocks differ, in nanoseconds: one second, if no one says."""
    if skew is None:
        return NANOSECONDS if binding.skew is None else binding.skew
    try:
        return duration(skew)
    except ValueError as error:
        raise CollectorError(f"the skew {error}") from None


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Reading makes no cycles, and looking for them among a million growing events would nearly double its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _default_order(reading: Reading) -> Order:
    logs = [part for part in reading.logs if any(reading.events[i].lane is None for i in range(part.first, part.end))]
    if len(logs) <= 1:
        return "total"
    for event in reading.events:
        if event.time is None and event.until is None and event.lane is None:
            raise at(
                event.source,
                f"the order of {len(logs)} logs is not known: this event has no time",
                "say --order total (one log after the other as named) or --order emitter (seq within an emitter)",
            )
    return "time"


def _assumed(order: Order, skew: int, open_ended: list[str], unwritten: int | None) -> Iterator[str]:
    if order == "time":
        yield f"order: emitter order and causes; else times, where clocks differ by at most {skew / 1e9:g} s"
    if open_ended:
        shown = ", ".join(open_ended[:3]) + (f" and {len(open_ended) - 3} more" if len(open_ended) > 3 else "")
        yield f"open tails: {shown} ended without EmitterStop, and had received no key that no event of theirs tells of"
        if unwritten is not None:
            yield f"each of these had left no more than {unwritten:,} events unwritten"


def _steps(events: list[Event], indices: Sequence[int]) -> list[Event]:
    if isinstance(indices, range):
        return events  # As they arrived: a second list of a million is spared.
    return [event for index in indices if (event := events[index]).lane is None]


def _fault_events(reading: Reading, numbering: Numbering, order: Order) -> list[Event]:
    """What is no step, each once: as it arrived, or in an order that does not depend on that."""
    found = [
        event
        for index, event in enumerate(reading.events)
        if event.lane in ("fault", "emitter") and index not in numbering.dropped
    ]
    if order != "total":
        found.sort(key=lambda event: (event.time or 0, event.emitter or "", event.seq or 0, content(event)))
    return found
