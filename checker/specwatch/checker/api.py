"""The checker's face: a spec, behaviours, options → a verdict."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .behaviour import Behaviour, Event, Ledger, Loss, Order, Scope, Start
from .bounds import Bounds
from .explain import explain, hidden_steps
from .replay import Inserted, Outcome, Replay, Rules, Way
from .spec import Action, Spec, load_spec
from .tla.errors import TlaConfigError
from .verdict import EXIT_CODES, Behaviours, Explanation, Finding, Kind, SpecUsed, Verdict, Word, worst

__all__ = ["Options", "check", "judge", "load_spec"]


class Options(msgspec.Struct, kw_only=True):
    """What a binding or a command line says about the judging. ``timeout`` in seconds, ``max_memory`` in bytes."""

    hidden: tuple[str, ...] = ()
    hidden_max: int | None = None
    lossy: tuple[str, ...] = ()
    terminal: tuple[str, ...] = ()
    complete: bool = False
    strict: bool = False
    start: Start = "init"
    require: tuple[str, ...] = ()
    keep_constraints: bool = False
    max_states: int | None = None
    timeout: float | None = None
    max_memory: int | None = None
    began: float | None = None
    """What ``time.monotonic`` showed when ``timeout`` began to count; None for when the judging begins."""
    max_findings: int = 100


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
) -> Verdict:
    """Judges the events of one run.

    :param events: native events, as :class:`~.behaviour.Event` or as mappings with its fields.
    :param order: ``total`` takes them as they come; ``emitter`` takes each emitter's by ``seq``.
    :raises TlaError: the spec, or an event that speaks of what the spec lacks.
    """
    if scope != "run":
        raise TlaConfigError(f"scope {scope} is not supported yet", hint="use scope run")
    read = [event if isinstance(event, Event) else msgspec.convert(event, Event) for event in events]
    if order == "emitter":
        # Stable: an emitter without numbers keeps the order of its events.
        read.sort(key=lambda event: event.seq if event.seq is not None else 0)
    elif order != "total":
        raise TlaConfigError(f"order {order} is not supported yet", hint="use order total or emitter")
    steps = [event for event in read if event.lane is None]
    options = Options(hidden=tuple(hidden), hidden_max=hidden_max, start=start, strict=strict, require=tuple(require))
    ledger = Ledger(read=len(read), mapped=len(read))
    return judge(spec, [Behaviour(events=steps, order=order)], options, ledger)


def judge(spec: Spec, behaviours: Sequence[Behaviour], options: Options, ledger: Ledger) -> Verdict:
    """Judges behaviours against a spec. Fills all of the verdict but what only the reader of the logs knows.

    :raises TlaError: a false ASSUME, an event that speaks of what the spec lacks, an expression without a value.
    """
    return _Judge(spec, options, ledger).judge(behaviours)


class _Judge:
    def __init__(self, spec: Spec, options: Options, ledger: Ledger) -> None:
        self.spec = spec
        self.options = options
        self.ledger = ledger
        if options.start != "init":
            raise TlaConfigError(f"start {options.start} is not supported yet", hint="use start init")
        assumption = spec.false_assumption()
        if assumption is not None:
            raise TlaConfigError(f"the ASSUME {assumption.body.span.text} is FALSE", assumption.span)
        for name in options.terminal:
            self.actions(name, "terminal")
            if name in options.hidden:
                raise TlaConfigError(f"{name} is hidden, and so cannot be terminal")
        names = () if options.strict else dict.fromkeys((*options.hidden, *options.lossy))
        hidden = [action for name in names for action in self.actions(name, "hidden")]
        self.rules = Rules(frozenset(hidden), options.hidden_max, options.keep_constraints)
        self.bounds = Bounds(options.max_states, options.timeout, options.max_memory, began=options.began)
        self.findings: list[Finding] = []
        self.counts = Behaviours()
        self.undecided: dict[str, int] = {}
        self.hidden_steps = 0
        self.coverage: dict[str, int] = dict.fromkeys(dict.fromkeys(action.name for action in spec.actions), 0)
        self.unmet = {name for name in options.require if self.required(name)}

    def actions(self, name: str, what: str) -> tuple[Action, ...]:
        found = self.spec.named(name)
        if not found:
            near = difflib.get_close_matches(name, self.spec.names(), 2, 0.5)
            raise TlaConfigError(
                f"{what}: the spec has no action {name}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"its actions are {', '.join(self.spec.names())}",
            )
        return found

    def required(self, name: str) -> bool:
        if " during " in name:
            raise TlaConfigError(f"require: `{name}` is not supported yet", hint="require an action by its name")
        return bool(self.actions(name, "require"))

    def judge(self, behaviours: Sequence[Behaviour]) -> Verdict:
        words: list[Word] = []
        for behaviour in behaviours:
            word = self.judge_one(behaviour)
            words.append(word)
            setattr(self.counts, word, getattr(self.counts, word) + 1)
            self.counts.total += 1
        reason = None
        if not behaviours:
            reason = "no-events: nothing was mapped to an action" if self.ledger.read else "no-events: nothing was read"
        if self.unmet:
            words.append("vacuous")
        word = worst(words)
        if word == "vacuous" and self.unmet:
            reason = f"require: {', '.join(sorted(self.unmet))} never happened"
        elif word in ("inconclusive", "vacuous") and reason is None:
            reason = next(finding.reason for finding in self.findings if finding.verdict == word)
        return Verdict(
            verdict=word,
            exit_code=EXIT_CODES[word],
            reason=reason,
            behaviours=self.counts,
            undecided_by_reason=self.undecided,
            kinds=self.kinds(),
            findings=self.findings[: self.options.max_findings],
            hidden_steps=self.hidden_steps,
            coverage=self.coverage,
            ledger=self.ledger,
            assumptions=self.assumptions(),
            spec=used(self.spec),
            invariants=[invariant.name for invariant in self.spec.invariants],
            require=[(name, name not in self.unmet) for name in self.options.require],
        )

    def judge_one(self, behaviour: Behaviour) -> Word:
        replay = Replay(self.spec, behaviour, self.rules, self.bounds)
        outcome = replay.run()
        self.count(behaviour, replay, outcome)
        finding = self.finding(behaviour, replay, outcome)
        if finding is None:
            return "conforms"
        finding.run, finding.key = behaviour.run, behaviour.key
        self.findings.append(finding)
        if finding.verdict == "inconclusive":
            assert finding.reason is not None  # an undecided behaviour always says why
            word = finding.reason.partition(":")[0]
            self.undecided[word] = self.undecided.get(word, 0) + 1
        return finding.verdict

    def finding(self, behaviour: Behaviour, replay: Replay, outcome: Outcome) -> Finding | None:
        """The finding of one behaviour; None where it conforms."""
        if outcome.word == "vacuous":
            return Finding(verdict="vacuous", reason="no-events: the behaviour has no events")
        loss = min(behaviour.losses, key=lambda loss: loss.settled, default=None)
        if outcome.word == "inconclusive":
            self.ledger.bounds.append(outcome.bound or "")
            return self.undecided_finding(
                f"bound: {outcome.bound}, after event {outcome.reached:,} of {len(behaviour.events):,}", outcome
            )
        if loss is not None and (outcome.at is None or outcome.at > loss.settled):
            return self.undecided_finding(_lost(behaviour.losses), outcome)
        if outcome.word != "conforms":
            return explain(self.spec, behaviour, replay, outcome)
        unfinished = self.unfinished(behaviour)
        if unfinished:
            return self.undecided_finding(f"incomplete: {unfinished}", outcome)
        return None

    def undecided_finding(self, reason: str, outcome: Outcome) -> Finding:
        nodes = sorted(outcome.nodes, key=lambda node: node.hidden)
        without = {
            "conforms": "without what is missing it conforms",
            "violates": f"without what is missing it violates at event {outcome.at}",
            "diverges": f"without what is missing it diverges at event {outcome.at}",
        }
        summary = without.get(outcome.word, f"the first {outcome.reached:,} events are explained")
        return Finding(
            verdict="inconclusive",
            reason=reason,
            hidden=hidden_steps(nodes[0]) if nodes else [],
            explanation=Explanation(summary=summary),
        )

    def unfinished(self, behaviour: Behaviour) -> str | None:
        """With ``complete = true``: the keys whose last event is not terminal."""
        if not self.options.complete or not self.options.terminal:
            return None
        ends = set(self.options.terminal)
        last: dict[str, Event] = {}
        for event in behaviour.events:
            last[str(event.key)] = event
        open_ = [key for key, event in last.items() if event.action not in ends]
        if not open_:
            return None
        shown = ", ".join(open_[:3]) + (f" and {len(open_) - 3} more" if len(open_) > 3 else "")
        return f"no terminal action ({', '.join(sorted(ends))}) ends {shown}"

    def count(self, behaviour: Behaviour, replay: Replay, outcome: Outcome) -> None:
        """Coverage, hidden steps, and what was required."""
        best = next((node for node in outcome.nodes if node.hidden == outcome.hidden), None)
        # Not the first events of the list: under a partial order that would depend on how the lines arrived.
        explained = replay.explained(best.cut) if best is not None else []
        for event in explained:
            names = [action.name for action in self.spec.named(event.action)]
            name = event.action if event.action in self.coverage or not names else names[0]
            self.coverage[name] = self.coverage.get(name, 0) + 1
            self.unmet.discard(event.action)
        inserted = [step for step in Way.steps(best.way) if isinstance(step, Inserted)] if best is not None else []
        self.hidden_steps += len(inserted)
        for step in inserted:
            self.coverage[step.action.name] = self.coverage.get(step.action.name, 0) + 1
        for name in sorted(self.unmet):
            used_ = [step.action for step in inserted if name in step.action.names]
            if used_ and outcome.word == "conforms" and not self.explained_without(behaviour, frozenset(used_)):
                self.unmet.discard(name)

    def explained_without(self, behaviour: Behaviour, actions: frozenset[Action]) -> bool:
        """A hidden action has happened only where the events cannot be explained without it."""
        rules = Rules(self.rules.hidden - actions, self.rules.hidden_max, self.rules.keep_constraints)
        return Replay(self.spec, behaviour, rules, self.bounds).run().word in ("conforms", "inconclusive")

    def kinds(self) -> list[Kind]:
        """Findings that tell the same story, the most frequent first."""
        found: dict[str, Kind] = {}
        for finding in self.findings:
            what = finding.invariant or finding.action or (finding.reason or "").partition(":")[0]
            name = f"{finding.verdict} {what}".strip()
            time = timestamp(finding.event.time) if finding.event is not None else None
            kind = found.get(name)
            if kind is None:
                found[name] = Kind(kind=name, cause=None, count=1, first=time, last=time, example=finding.key)
            else:
                kind.count += 1
                times = [one for one in (kind.first, kind.last, time) if one is not None]
                kind.first, kind.last = (min(times), max(times)) if times else (None, None)
        return sorted(found.values(), key=lambda kind: -kind.count)

    def assumptions(self) -> list[str]:
        """What the verdict rests on, for people."""
        spec, options = self.spec, self.options
        found = []
        if self.rules.hidden:
            names = ", ".join(sorted({action.name for action in self.rules.hidden}))
            limit = "" if options.hidden_max is None else f", at most {options.hidden_max} between two events"
            found.append(f"may have happened without a record: {names}{limit}")
        if not options.keep_constraints:
            ignored = [f"CONSTRAINT {named.name}" for named in spec.config.constraints]
            ignored += [f"ACTION_CONSTRAINT {named.name}" for named in spec.config.action_constraints]
            found.extend(f"{what} is ignored: it bounds exploration only" for what in ignored)
        for named, what in ((spec.config.symmetry, "SYMMETRY"), (spec.config.view, "VIEW")):
            if named is not None:
                found.append(f"{what} {named.name} is ignored: it bounds exploration only")
        if spec.config.check_deadlock is not None:
            found.append("CHECK_DEADLOCK is ignored: a log may end anywhere")
        found.extend(f"not checked: {what}" for what in spec.unchecked)
        found.extend(spec.warnings)
        return found


def _lost(losses: Sequence[Loss]) -> str:
    first = min(losses, key=lambda loss: loss.settled)
    details = [loss.detail for loss in losses if loss.reason == first.reason]
    shown = "; ".join(details[:3]) + (f" and {len(details) - 3} more" if len(details) > 3 else "")
    return f"{first.reason}: {shown}"


def used(spec: Spec) -> SpecUsed:
    """Which spec judged, for the record."""
    return SpecUsed(
        path=spec.path, sha256=hashlib.sha256(Path(spec.path).read_bytes()).hexdigest(), config=spec.config.path
    )


def timestamp(nanoseconds: int | None) -> str | None:
    """RFC 3339, UTC, of nanoseconds since the epoch; as many digits of the second as are needed, at least three."""
    if nanoseconds is None:
        return None
    from datetime import UTC, datetime

    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    digits = f"{rest:09d}".rstrip("0").ljust(3, "0")
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{digits}Z"
