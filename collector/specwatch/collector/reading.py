"""Reading logs: every record of them becomes an event, or is counted as what else it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import msgspec

from specwatch.checker.behaviour import Event, Input, Ledger

from .binding import Binding
from .decode import DECODERS, LOOK_AT, Broken, Record, detect
from .errors import CollectorError
from .mapper import Ignored, Mapper
from .receive.tail import Log

EXAMPLES = 3
"""So many records of a kind are shown."""


class Unread(msgspec.Struct):
    """The first record of a log that could not be read, and how many more there are."""

    index: int
    """How many events had been read before it, in all logs."""
    what: str
    more: int = 0


class LogRead(msgspec.Struct):
    """The part of ``events`` that one log gave."""

    name: str
    first: int
    end: int
    unread: Unread | None = None


class Reading:
    """All logs, read one after the other into one list of events in the order of arrival."""

    def __init__(self, binding: Binding, format: str) -> None:
        self.binding = binding
        self.format = format
        self.ledger = Ledger()
        self.inputs: list[Input] = []
        self.events: list[Event] = []
        self.logs: list[LogRead] = []
        self._digests: set[bytes] = set()
        self._mapper = Mapper(binding)

    def read(self, log: Log) -> None:
        """Read a log to its end. One that was read already, under whatever name or compression, is only counted."""
        ledger = Ledger()
        part = LogRead(log.name, len(self.events), 0)
        lines = log.lines()
        head = list(islice(lines, LOOK_AT))
        name = self.format
        if name == "auto":
            name = detect((line for _, line in head), has_rules=bool(self.binding.rules))
        self._decode(log, DECODERS[name](log.name, chain(head, lines)), ledger, part)
        part.end = len(self.events)
        self.inputs.append(Input(log.name, log.sha256))
        if log.digest in self._digests and ledger.read:
            del self.events[part.first :]
            self.ledger.read += ledger.read
            self.ledger.duplicate += ledger.read
            return
        self._digests.add(log.digest)
        self._add(ledger)
        self.logs.append(part)

    def _decode(self, log: Log, decoded: Iterator[Event | Record | Broken], ledger: Ledger, part: LogRead) -> None:
        binding, events = self.binding, self.events
        empty = 0
        first: Broken | None = None
        for item in decoded:
            ledger.read += 1
            outcome: Event | Ignored | Broken | None
            outcome = self._mapper.event(item, log.name) if isinstance(item, Record) else item
            if isinstance(outcome, Event):
                events.append(outcome)
                if outcome.lane is not None:
                    _count(ledger.ignored, f"lane {outcome.lane}")
                    continue
                ledger.mapped += 1
                if binding.key is not None and outcome.key is None:
                    outcome.key = binding.key.of(outcome.params)
            elif isinstance(outcome, Broken):
                if outcome.text.strip() == b"{}":
                    empty += 1
                first = first or outcome
                self._unread(log, outcome, ledger, part)
            elif isinstance(outcome, Ignored):
                _count(ledger.ignored, outcome.reason)
            elif isinstance(item, Record):
                ledger.unmatched += 1
                self._unmatched(log.name, item, ledger)
        if first is not None and ledger.read == ledger.unparsed:
            if empty < ledger.unparsed:
                raise self._nothing_read(log, first)
            # Objects that say nothing, and nothing else: there is nothing to check, and nothing was lost.
            ledger.unmatched, ledger.unparsed, ledger.unparsed_examples, part.unread = empty, 0, [], None

    def _unread(self, log: Log, broken: Broken, ledger: Ledger, part: LogRead) -> None:
        ledger.unparsed += 1
        what = f"{log.name}:{broken.line} {log.notes.get(broken.line, broken.why)}"
        if len(ledger.unparsed_examples) < EXAMPLES:
            ledger.unparsed_examples.append(what)
        if part.unread is None:
            part.unread = Unread(len(self.events), what)
        else:
            part.unread.more += 1

    def _unmatched(self, file: str, item: Record, ledger: Ledger) -> None:
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

    def _nothing_read(self, log: Log, first: Broken) -> CollectorError:
        hint = "a log of native events has one JSON object a line, with an action"
        if self.binding.rules:
            hint = "the binding reads JSON lines; is this log in another format?"
        elif first.text.lstrip().startswith(b"{"):
            hint += "; other JSON lines need a binding that says which record is which action"
        why = log.notes.get(first.line, first.why)
        return CollectorError(
            f"nothing in this log could be read: line {first.line} {why}", file=log.name, line=first.line, hint=hint
        )

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

    def count_duplicate(self, event: Event) -> None:
        """Count an event that turned out to have come before."""
        self.ledger.duplicate += 1
        if event.lane is None:
            self.ledger.mapped -= 1
        else:
            _count(self.ledger.ignored, f"lane {event.lane}", -1)

    def finish(self) -> None:
        self.ledger.unused_rules = self._mapper.unused_rules()
        if not all(event.seq is not None for event in self.events if event.lane is None):
            self.ledger.loss = "unmeasurable"


def _count(counts: dict[str, int], name: str, more: int = 1) -> None:
    counts[name] = counts.get(name, 0) + more
