"""The checker's face: a spec, behaviours, options → a verdict."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .behaviour import Behaviour, Event, Json, Ledger, Loss, Order, Scope, Start
from .bounds import Bounds
from .explain import explain
from .replay import Inserted, Node, Outcome, Replay, Rules, Way
from .slicing import Coupled, separable
from .spec import Action, Spec, load_spec
from .tables import KeyReplay, added, last_events, negative
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
    max_states: int | None = None,
    timeout: float | None = None,
) -> Verdict:
    """Judges the events of one run.

    :param events: native events, as :class:`~.behaviour.Event` or as mappings with its fields.
    :param order: ``total`` takes them as they come; ``emitter`` takes each emitter's by ``seq``.
    :param max_states: with ``timeout`` (seconds) the bounds of the search: hidden steps may go on without end.
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


class _Answer(msgspec.Struct):
    """What the replay of one behaviour says. ``hidden`` counts the hidden steps by action, on the path with the fewest.

    ``replay`` and ``outcome`` are what an explanation is made from: of the whole, or of the key that failed.
    """

    word: Word
    at: int | None
    reached: int
    hidden: dict[str, int]
    replay: Replay | None = None
    outcome: Outcome | None = None
    bound: str | None = None
    key: Json = None
    """The key that failed, where the behaviour was replayed key by key."""
    explained: list[Event] | None = None
    """Under a partial order the events that were explained; else they are the first ``reached``."""

    def touched_by(self, loss: Loss) -> bool:
        """Whether what was lost could make it another answer: it was not settled before, and is about its keys."""
        settled = self.at is not None and self.at <= loss.settled
        return not settled and (loss.keys is None or self.key is None or self.key in loss.keys)


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
        self._tables: dict[Rules, KeyReplay | None] = {}
        self.findings: list[Finding] = []
        self.counts = Behaviours()
        self.undecided: dict[str, int] = {}
        self.hidden_steps = 0
        self.coverage: dict[str, int] = dict.fromkeys(dict.fromkeys(action.label for action in spec.actions), 0)
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
        outcome = self.run(behaviour, self.rules)
        self.count(behaviour, outcome)
        finding = self.finding(behaviour, outcome)
        if finding is None:
            return "conforms"
        finding.run, finding.key = behaviour.run, behaviour.key
        self.findings.append(finding)
        if finding.verdict == "inconclusive":
            assert finding.reason is not None  # an undecided behaviour always says why
            word = finding.reason.partition(":")[0]
            self.undecided[word] = self.undecided.get(word, 0) + 1
        return finding.verdict

    def run(self, behaviour: Behaviour, rules: Rules) -> _Answer:
        """Replays a behaviour: key by key where the spec allows it, else as a whole."""
        whole = Replay(self.spec, behaviour, rules, self.bounds)
        tables = self.tables(rules)
        by_key = self.run_by_key(behaviour, tables, rules) if tables is not None and tables.suits(behaviour) else None
        if by_key is not None:
            return by_key
        outcome = whole.run()
        best = _best(outcome)
        hidden = _inserted(best)
        answer = _Answer(outcome.word, outcome.at, outcome.reached, hidden, whole, outcome, outcome.bound)
        if not whole.total:
            answer.explained = whole.explained(best.cut) if best is not None else []
        return answer

    def run_by_key(self, behaviour: Behaviour, tables: KeyReplay, rules: Rules) -> _Answer | None:
        """The answer of the tables; None where the oracle does not bear out that a key fails."""
        by_key = tables.run(behaviour)
        if by_key.bound is not None:
            return _Answer("inconclusive", None, by_key.reached, by_key.coverage, bound=by_key.bound)
        if by_key.failed is None:
            return _Answer("conforms", None, by_key.reached, by_key.coverage)
        # What the tables only know to fail is replayed again by the oracle: this key's events, with this key alone.
        events, numbers = last_events(behaviour, tables, by_key.key, by_key.failed)
        part = Behaviour(events=events, run=behaviour.run, key=behaviour.key)
        replay = Replay(tables.of_key(by_key.key), part, rules, self.bounds, numbers)
        outcome = replay.run()
        if outcome.word == "inconclusive":
            return _Answer("inconclusive", None, by_key.failed - 1, by_key.coverage, bound=outcome.bound)
        if outcome.at != len(events):
            return None
        hidden = by_key.coverage
        if outcome.word == "violates":
            # This key's part breaks the path of the whole, so that no other key's need be good.
            before = tables.run(Behaviour(events=events[:-1])).coverage
            own = _inserted(_best(outcome))
            hidden = dict(added(hidden.items(), negative(before.items()), own.items(), by_key.others))
        return _Answer(outcome.word, by_key.failed, by_key.failed, hidden, replay, outcome, key=by_key.key)

    def tables(self, rules: Rules) -> KeyReplay | None:
        """The tables for these rules; None where the spec is not separable."""
        if rules not in self._tables:
            try:
                self._tables[rules] = KeyReplay(self.spec, separable(self.spec), rules, self.bounds)
            except Coupled:
                self._tables[rules] = None
        return self._tables[rules]

    def finding(self, behaviour: Behaviour, answer: _Answer) -> Finding | None:
        """The finding of one behaviour; None where it conforms."""
        if answer.word == "vacuous":
            return Finding(verdict="vacuous", reason="no-events: the behaviour has no events")
        if answer.word == "inconclusive":
            self.ledger.bounds.append(answer.bound or "")
            return self.undecided_finding(
                f"bound: {answer.bound}, after event {answer.reached:,} of {len(behaviour.events):,}", answer
            )
        losses = [loss for loss in behaviour.losses if answer.touched_by(loss)]
        if losses:
            return self.undecided_finding(_lost(losses), answer)
        if answer.replay is not None and answer.outcome is not None and answer.word != "conforms":
            return explain(answer.replay.spec, answer.replay.behaviour, answer.replay, answer.outcome)
        unfinished = self.unfinished(behaviour)
        if unfinished:
            return self.undecided_finding(f"incomplete: {unfinished}", answer)
        return None

    def undecided_finding(self, reason: str, answer: _Answer) -> Finding:
        without = {
            "conforms": "without what is missing it conforms",
            "violates": f"without what is missing it violates at event {answer.at}",
            "diverges": f"without what is missing it diverges at event {answer.at}",
        }
        summary = without.get(answer.word, f"the first {answer.reached:,} events are explained")
        return Finding(verdict="inconclusive", reason=reason, explanation=Explanation(summary=summary))

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

    def count(self, behaviour: Behaviour, answer: _Answer) -> None:
        """Coverage, hidden steps, and what was required."""
        explained = answer.explained
        if explained is None:
            # What diverges at an event explains those before it.
            explained = behaviour.events[: answer.reached - (answer.word == "diverges")]
        for event in explained:
            name = self.name_of(event)
            self.coverage[name] += 1
            self.unmet.discard(event.action)
        for name, number in answer.hidden.items():
            self.coverage[name] += number
        self.hidden_steps += sum(answer.hidden.values())
        for name in sorted(self.unmet):
            actions = frozenset(self.spec.named(name))
            if any(action.label in answer.hidden for action in actions) and self.needed(behaviour, answer, actions):
                self.unmet.discard(name)

    def name_of(self, event: Event) -> str:
        """The action under which an event is counted: a group's first, where a group is all that it says."""
        return event.action if event.action in self.coverage else self.spec.named(event.action)[0].label

    def needed(self, behaviour: Behaviour, answer: _Answer, actions: frozenset[Action]) -> bool:
        """A hidden action has happened only where the events cannot be explained as well without it."""
        rules = Rules(self.rules.hidden - actions, self.rules.hidden_max, self.rules.keep_constraints)
        worse = {"conforms": ("violates", "diverges"), "violates": ("diverges",)}
        return self.run(behaviour, rules).word in worse.get(answer.word, ())

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
            names = ", ".join(sorted({action.label for action in self.rules.hidden}))
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


def _best(outcome: Outcome) -> Node | None:
    """A node with the fewest hidden steps."""
    return next((node for node in outcome.nodes if node.hidden == outcome.hidden), None)


def _inserted(node: Node | None) -> dict[str, int]:
    """The hidden steps on the way to a node, by action."""
    steps = Way.steps(node.way) if node is not None else []
    return dict(Counter(step.action.label for step in steps if isinstance(step, Inserted)))


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
