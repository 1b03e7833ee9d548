"""Reading logs: every record of them becomes an event, or is counted as what else it is."""

from __future__ import annotations

from itertools import chain, islice

import msgspec

from specwatch.checker.behaviour import Event, Input, Ledger, Start

from .decode import DECODERS, LOOK_AT, Broken, Record, detect
from .doubles import Doubles
from .errors import CollectorError
from .joins import Joins, Placed, Unfit
from .mapper import IGNORED, UNMATCHED, UNPARSED, Half, Left, Mapper
from .receive.tail import Log
from .rules import Binding

EXAMPLES = 3
"""So many records of a kind are shown."""


class Unread(msgspec.Struct):
    """The first record of a log that could not be read, and how many more there are."""

    index: int
    """How many events had been read before it, in all logs."""
    what: str
    last: int
    """How many events had been read before the last of them."""
    more: int = 0

    def add(self, index: int, what: str) -> None:
        """One more, which may come before the first."""
        self.more += 1
        self.last = max(self.last, index)
        if index < self.index:
            self.index, self.what = index, what


class LogRead(msgspec.Struct):
    """The part of ``events`` that one log gave, and what it lost."""

    name: str
    first: int
    end: int
    unread: Unread | None = None

    def lose(self, index: int, what: str) -> None:
        """A record of the log could not be read, after ``index`` events of all logs."""
        if self.unread is None:
            self.unread = Unread(index, what, index)
        else:
            self.unread.add(index, what)


class Reading:
    """All logs, read one after the other into one list of events in the order of arrival.

    Beside steps and the lanes of native events, ``events`` holds what else has a number (the lanes of ``mapper``).
    """

    def __init__(self, binding: Binding, format: str, start: Start = "init") -> None:
        self.binding = binding
        self.format = format
        self.start = start
        self.ledger = Ledger()
        self.inputs: list[Input] = []
        self.events: list[Event] = []
        self.logs: list[LogRead] = []
        self.doubles: list[range] = []
        """The events of each line that was written twice."""
        self._parts: set[int] = set()
        """Events that are not the first of their record."""
        self.began: int | None = None
        """The earliest time of a record; None where none has one."""
        self._digests: set[bytes] = set()
        self._mapper = Mapper(binding)
        self._joins = Joins(self.events, self._mapper)

    def read(self, log: Log) -> None:
        """Read a log to its end. One that was read already, under whatever name or compression, is only counted."""
        own = _LogReading(log, self.binding, self._mapper, self.events, len(self.logs))
        own.decode(self.format)
        self.inputs.append(Input(log.name, log.sha256))
        if log.digest in self._digests and own.ledger.read:
            del self.events[own.part.first :]
            self.ledger.read += own.ledger.read
            self.ledger.duplicate += own.ledger.read
            return
        self._digests.add(log.digest)
        self._add(own.ledger)
        self.logs.append(own.part)
        self.doubles += own.doubles.found()
        self._parts |= own.parts
        if own.began is not None:
            self.began = own.began if self.began is None else min(own.began, self.began)
        for left in own.joins.left():
            unfit = self._joins.add(left)
            if unfit is not None:
                self._unfit(unfit)

    def finish(self) -> None:
        """Decide what needs all logs to be read: ends without a start, rules that matched nothing."""
        for left in self._joins.left():
            if left.half.is_end:
                self._end_without_start(left)
        times = (event.time for event in self.events if event.time is not None)
        self.began = min(times if self.began is None else chain(times, (self.began,)), default=None)
        # In an order that does not depend on the arrival of the records.
        self.ledger.ignored = dict(sorted(self.ledger.ignored.items()))
        self.ledger.unused_rules = self._mapper.unused_rules()
        if not all(event.seq is not None for event in self.events if event.lane is None):
            self.ledger.loss = "unmeasurable"

    def count_duplicate(self, index: int) -> None:
        """Count a record that turned out to have come before, by the first of its events."""
        if index in self._parts:
            return
        event, ledger = self.events[index], self.ledger
        ledger.duplicate += 1
        if event.lane == IGNORED:
            _count(ledger.ignored, event.action, -1)
        elif event.lane == UNMATCHED:
            ledger.unmatched -= 1
        elif event.lane == UNPARSED:
            ledger.unparsed -= 1
        elif event.lane in ("fault", "emitter"):
            _count(ledger.ignored, f"lane {event.lane}", -1)
        else:
            ledger.mapped -= 1

    def _end_without_start(self, end: Placed) -> None:
        """Midway, its start was before the log. Where the log has all from the beginning, the start is missing."""
        ended: Event | Broken
        if self.start == "init":
            ended = Broken(_line(end), f"ends what has no start in the log: {end.half.rule.name}", b"")
        else:
            ended = self._mapper.ended(end.half)
        if isinstance(ended, Broken):
            self._unfit(Unfit(end, ended))
            return
        self.events[end.index] = ended

    def _unfit(self, unfit: Unfit) -> None:
        """An end was counted as mapped, and no event can be made of it."""
        part = self.logs[unfit.end.log]
        what = f"{part.name}:{unfit.broken.line} {unfit.broken.why}"
        self.ledger.mapped -= 1
        _count_unparsed(self.ledger, what)
        part.lose(unfit.end.index, what)

    def _add(self, part: Ledger) -> None:
        whole = self.ledger
        whole.read += part.read
        whole.mapped += part.mapped
        whole.unmatched += part.unmatched
        whole.unparsed += part.unparsed
        for reason, count in part.ignored.items():
            _count(whole.ignored, reason, count)
        whole.unmatched_examples += part.unmatched_examples[: EXAMPLES - len(whole.unmatched_examples)]
        whole.unparsed_examples += part.unparsed_examples[: EXAMPLES - len(whole.unparsed_examples)]


class _LogReading:
    """The reading of one log, kept apart until it is known to be no copy of another."""

    def __init__(self, log: Log, binding: Binding, mapper: Mapper, events: list[Event], number: int) -> None:
        self.log = log
        self.binding = binding
        self.mapper = mapper
        self.events = events
        self.number = number
        self.ledger = Ledger()
        self.part = LogRead(log.name, len(events), 0)
        self.joins = Joins(events, mapper)
        self.doubles = Doubles()
        self.parts: set[int] = set()
        self.began: int | None = None

    def decode(self, format: str) -> None:
        log, ledger, events, key = self.log, self.ledger, self.events, self.binding.key
        lines = log.lines()
        head = list(islice(lines, LOOK_AT))
        if format == "auto":
            format = detect((line for _, line in head), has_rules=bool(self.binding.rules))
        empty = 0
        first: Broken | None = None
        for item in DECODERS[format](log.name, chain(head, lines)):
            ledger.read += 1
            broken: Broken | None = None
            if isinstance(item, Event):
                events.append(item)
                if item.lane is not None:
                    _count(ledger.ignored, f"lane {item.lane}")
                    continue
                ledger.mapped += 1
                if key is not None and item.key is None:
                    item.key = key.of(item.params)
                if item.seq is None:
                    self.doubles.add(item.emitter, item.time, item, range(len(events) - 1, len(events)))
            elif isinstance(item, Record):
                broken = self._record(item)
            else:
                broken = item
                empty += item.text.strip() == b"{}"
            if broken is not None:
                first = first or broken
                self._unread(broken)
        self.part.end = len(events)
        if first is not None and ledger.read == ledger.unparsed:
            if empty < ledger.unparsed:
                raise self._nothing_read(first)
            # Objects that say nothing, and nothing else: there is nothing to check, and nothing was lost.
            ledger.unmatched, ledger.unparsed, ledger.unparsed_examples, self.part.unread = empty, 0, [], None

    def _record(self, record: Record) -> Broken | None:
        """What the rules make of a record; answers what is wrong where they make nothing of it and should."""
        if self.began is None:
            self.began = self.mapper.time(record)
        made = self.mapper.read(record, self.log.name)
        if isinstance(made, Left):
            return self._left(record, made)
        self.ledger.mapped += 1
        own = [made.event] if isinstance(made, Half) else made
        places = range(len(self.events), len(self.events) + len(own))
        self.parts.update(places[1:])
        if own[0].seq is None:
            self.doubles.add(own[0].emitter, own[0].time, record.fields, places)
        self.events += own
        if not isinstance(made, Half):
            return None
        unfit = self.joins.add(Placed(len(self.events) - 1, self.number, made))
        if unfit is None:
            return None
        self.ledger.mapped -= 1
        return unfit.broken

    def _left(self, record: Record, left: Left) -> Broken | None:
        if left.mark is not None:
            self.events.append(left.mark)
        if left.lane == IGNORED:
            _count(self.ledger.ignored, left.what)
        elif left.lane == UNMATCHED:
            self.ledger.unmatched += 1
            self._unmatched(record)
        else:
            return Broken(record.line, left.what, b"")
        return None

    def _unread(self, broken: Broken) -> None:
        what = f"{self.log.name}:{broken.line} {self.log.notes.get(broken.line, broken.why)}"
        _count_unparsed(self.ledger, what)
        self.part.lose(len(self.events), what)

    def _unmatched(self, item: Record) -> None:
        file, ledger = self.log.name, self.ledger
        if len(ledger.unmatched_examples) < EXAMPLES or self.binding.unmatched == "error":
            text = msgspec.json.encode(item.fields, enc_hook=float).decode()
            shown = text if len(text) <= 160 else text[:157] + "..."
            ledger.unmatched_examples.append(f"{file}:{item.line}: {shown}")
            if self.binding.unmatched == "error":
                raise CollectorError(
                    f"no rule of the binding speaks of this record: {shown}",
                    file=file,
                    line=item.line,
                    hint='add a rule for it, or one with ignore = "why"; unmatched = "count" lets it pass',
                )

    def _nothing_read(self, first: Broken) -> CollectorError:
        hint = "a log of native events has one JSON object a line, with an action"
        if self.binding.rules:
            hint = "the binding reads JSON lines; is this log in another format?"
        elif first.text.lstrip().startswith(b"{"):
            hint += "; other JSON lines need a binding that says which record is which action"
        why = self.log.notes.get(first.line, first.why)
        return CollectorError(
            f"nothing in this log could be read: line {first.line} {why}",
            file=self.log.name,
            line=first.line,
            hint=hint,
        )


def _line(placed: Placed) -> int:
    source = placed.half.event.source
    assert source is not None, "the mapper gives all its events a source"
    return source.line


def _count_unparsed(ledger: Ledger, what: str) -> None:
    ledger.unparsed += 1
    if len(ledger.unparsed_examples) < EXAMPLES:
        ledger.unparsed_examples.append(what)


def _count(counts: dict[str, int], name: str, more: int = 1) -> None:
    counts[name] = counts.get(name, 0) + more
