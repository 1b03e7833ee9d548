"""The runs of public bug reports (``tests/corpus/cases``), and runs like them, as native events; and their judgement.

Events go the way of a user's log: JSON lines, read by ``collect`` with a shipped binding, judged by ``judge``.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from specwatch.checker.api import Cause, Options, judge, load_spec
from specwatch.checker.behaviour import Order, Scope
from specwatch.checker.spec import Spec
from specwatch.checker.verdict import Finding, Verdict
from specwatch.cli.shipped import binding_path
from specwatch.collector.assemble import collect
from specwatch.collector.binding import Binding, load_binding

CASES = Path(__file__).parents[1] / "corpus" / "cases"

EPOCH = Decimal(1893492000)
"""2030-01-01 10:00 UTC in seconds: where the re-rendered lines of all cases begin."""

Native = dict[str, Any]
"""A native event as a JSON object; its time in seconds."""


def case(name: str) -> dict[str, Any]:
    """A case file; its numbers of seconds are exact."""
    document: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"), parse_float=Decimal)
    return document


@dataclass(frozen=True)
class Telling:
    """How a case's events are told.

    ``key`` renames the tasks that it has; None leaves them out, as in a log that names none. ``told``: hidden events
    of these actions, which only the report's prose tells of, are told. ``receipts``: the log has no receipts, and an
    ``Execute`` is the line of a handler, which is the receipt too. ``by``: a message is known by this field of an
    event, where it has it.
    """

    key: Mapping[str, str] | None = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    receipts: bool = False
    by: str | None = None

    def native(self, events: Iterable[Mapping[str, Any]]) -> list[Native]:
        """Native events. What no log told is left out."""
        told: list[Native] = []
        for event in events:
            if event.get("hidden") and event["action"] not in self.told:
                continue
            if event["action"] == "Execute" and self.receipts:
                told.append(self.one({**event, "action": "Pickup"}))
            told.append(self.one(event))
        return told

    def one(self, event: Mapping[str, Any]) -> Native:
        params: dict[str, Any] = {}
        if event["task"] is not None and self.key is not None:
            params["t"] = self.key.get(event["task"], event["task"])
        if self.by is not None and self.by in event:
            params["t"] = str(event[self.by])
        if "seq" in event:
            params["seq"] = event["seq"]
        if "channel" in event:
            params["c"] = str(event["channel"])
        if "worker" in event:
            params["w"] = event["worker"]
        if "redelivered" in event:
            params["r"] = event["redelivered"]
        native: Native = {"action": event["action"], "params": params, "time": EPOCH + event["t"]}
        if "worker" in event:
            native["emitter"] = event["worker"]
        return native


def as_lines(events: Iterable[Native]) -> bytes:
    """A log of native events. Times are written as exactly as they are known."""
    lines = []
    for event in events:
        text = json.dumps({name: value for name, value in event.items() if name != "time"})
        lines.append(f'{text[:-1]}, "time": {event["time"]}}}\n' if "time" in event else f"{text}\n")
    return "".join(lines).encode()


@cache
def shipped(target: str) -> Binding:
    """The binding of a shipped spec."""
    return load_binding(str(binding_path(target)))


@cache
def _spec(target: str, config: str, constants: str) -> Spec:
    folder = binding_path(target).parent
    module = shipped(target).spec
    assert module is not None
    return load_spec(folder / module, folder / f"{Path(module).stem}.{config}.cfg", constants=json.loads(constants))


def judged(
    target: str,
    config: str,
    events: Sequence[Native],
    *,
    hidden: Sequence[str] | None = None,
    scope: Scope | None = None,
    order: Order | None = None,
    skew: str | None = None,
) -> Verdict:
    """The verdict of a shipped spec in a mode. What is not given is the binding's."""
    binding = shipped(target)
    collected = collect(["-"], binding, order=order, start="init", skew=skew, stdin=io.BytesIO(as_lines(events)))
    options = Options(
        hidden=tuple(binding.hidden if hidden is None else hidden),
        terminal=tuple(binding.terminal),
        causes=tuple(Cause(first=one.first, then=tuple(one.then), on=tuple(one.on)) for one in binding.causes),
        scope=scope or binding.scope,
        key="t",
    )
    spec = _spec(target, config, json.dumps(collected.constants, sort_keys=True))
    return judge(spec, collected.behaviours, options, collected.ledger, collected.fault_events)


def told_of(finding: Finding) -> str:
    """``violates 4 NoDoubleExecution``."""
    return " ".join(str(part) for part in (finding.verdict, finding.at, finding.invariant) if part is not None)


def word(verdict: Verdict) -> str:
    """The verdict, with event and invariant of the first finding."""
    return told_of(verdict.findings[0]) if verdict.findings else verdict.verdict


def inserted(verdict: Verdict) -> dict[str, int]:
    """The hidden steps of the first finding, counted by action."""
    return dict(Counter(step.action for step in verdict.findings[0].hidden)) if verdict.findings else {}
