"""The nouns that every room speaks: events, behaviours, and the account of what was read.

Importing this module loads neither the grammar nor the command line (``tests/test_walls.py`` holds that).
JSON values (``Json``) are what ``msgspec`` decodes: ``dict``, ``list``, ``str``, ``int``, ``float``, ``bool``,
``None``; how they become TLA+ values is the checker's affair.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Json = Any
"""A decoded JSON value. Integers are exact, whatever their size."""

Params = dict[str, Json]
"""An action's parameters by name; a name left out may have any value."""

Order = Literal["total", "emitter", "time"]
Scope = Literal["run", "key"]
Start = Literal["init", "midway", "state"]


class Source(msgspec.Struct, frozen=True, gc=False):
    """Where a record was read: the file as the user named it, and the 1-based line."""

    file: str
    line: int


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A record that the binding mapped to an action of the spec.

    ``time`` and ``until`` are nanoseconds since the epoch, UTC. ``state`` was observed after the step, ``before`` in
    the state that the step starts from (after the hidden steps before it); an object in either names only some keys.
    ``lane`` is None for steps; ``"fault"`` and ``"emitter"`` events are no steps.
    """

    action: str
    params: Params = {}
    key: Json = None
    emitter: str | None = None
    seq: int | None = None
    time: int | None = None
    until: int | None = None
    state: dict[str, Json] | None = None
    before: dict[str, Json] | None = None
    expect: list[str] = []
    lane: str | None = None
    run: str | None = None
    after: list[tuple[str, int]] = []
    clock: dict[str, int] | None = None
    boot: str | None = None
    attempt: int | None = None
    source: Source | None = None
    alternatives: list[str] = []
    """Other actions that the record may be, with the same parameters as far as they have them."""
    part: int = 0
    """The place among the events of one record, where it made several."""
    extra: dict[str, Json] | None = None
    """Fields of the record that are none of the above: kept, never errors. ``expect`` reads ``$field`` from here."""


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is missing from a behaviour.

    ``unparsed``: a verdict settled by the first ``settled`` events stands, a later one does not.

    The others say what may be missing, and where: ``count`` records of ``emitter`` (None: any number), each of them
    nothing or one event, after ``events[after]`` (-1: after nothing) and before ``events[before]`` (None: up to the
    end), which are the neighbours in the emitter's own order; ``begin`` and ``end`` are their times. ``in-flight``: it
    is ``event`` or nothing.
    """

    reason: Literal["gap", "unparsed", "open-tail", "in-flight"]
    detail: str
    """For people: ``worker-2 lacks seq 4-5``, ``worker.log:17 is torn``."""
    settled: int = 0
    keys: list[Json] | None = None
    """The keys that what is missing was about; None where it may have been about any."""
    emitter: str | None = None
    count: int | None = None
    after: int = -1
    before: int | None = None
    begin: int | None = None
    end: int | None = None
    event: Event | None = None
    params: dict[str, Json] = {}
    """What each of these says, where it has parameters of these names."""


class Behaviour(msgspec.Struct, kw_only=True):
    """The events of one run (scope ``run``) or of one key (scope ``key``).

    Under ``order = "total"`` the list's order is the order. Under ``"emitter"`` and ``"time"`` events of one emitter
    are in the list in their order; ``"emitter"`` knows no more, ``"time"`` adds causal edges and what times tell
    (:mod:`.order`). Where an event names no emitter, the file that it was read from is one.
    """

    events: list[Event]
    order: Order = "total"
    run: str | None = None
    key: Json = None
    losses: list[Loss] = []
    skew: int = 0
    """Under ``time``: the most that any two clocks differ, in nanoseconds."""
    began: int | None = None
    """The time of the first record of the log, in nanoseconds since the epoch; None where no record has one."""


class Gap(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """The numbers ``first`` to ``last`` of an emitter that were never read."""

    emitter: str
    first: int
    last: int


class Proven(msgspec.Struct, frozen=True):
    """So many behaviours at least lack a record of a lossy action: found out by an event of ``emitter`` in ``hour``."""

    emitter: str
    hour: str | None
    """UTC, ``2030-01-01T10``; None where the event has no time."""
    count: int


class Ledger(msgspec.Struct):
    """What was read, mapped, left out and lost, counted. ``read`` = mapped + ignored + unmatched + unparsed +
    duplicate.
    """

    read: int = 0
    mapped: int = 0
    ignored: dict[str, int] = {}
    unmatched: int = 0
    unparsed: int = 0
    duplicate: int = 0
    clock: int = 0
    """Times that went against an emitter's own order or a cause, and were not used."""
    late: int = 0
    pruned: int = 0
    gaps: list[Gap] = []
    bounds: list[str] = []
    loss: Literal["measured", "proven", "unmeasurable"] = "measured"
    proven: list[Proven] = []
    unmatched_examples: list[str] = []
    """The first three, as ``file:line: text``."""
    unparsed_examples: list[str] = []
    unused_rules: list[str] = []
    """Rules of the binding that never matched."""


class Input(msgspec.Struct, frozen=True):
    """A file that was read; ``sha256`` in hex, of its bytes as they lie on disk."""

    path: str
    sha256: str
