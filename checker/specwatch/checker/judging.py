"""The judging of a run: an answer for each of its behaviours, and the verdict that they make together."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from .answers import Answer, Answers, undecided
from .behaviour import Behaviour, Event, Ledger, Proven
from .bounds import Bounds
from .explain import explain, hidden_steps
from .keys import Keys
from .kinds import Kinds
from .options import Options
from .order import lane_name
from .paths import Outcome, Rules
from .replay import Replay
from .required import Required
from .slicing import Coupled, Separable, separable
from .spec import Action, Spec
from .tla.errors import TlaConfigError
from .tla.evaluate import Step
from .tla.show_values import show
from .verdict import (
    EXIT_CODES,
    Behaviours,
    Explanation,
    Finding,
    HiddenStep,
    SpecUsed,
    Verdict,
    Word,
    worst,
)


class Judge:
    """Judges the behaviours of a spec's runs, once."""

    def __init__(self, spec: Spec, options: Options, ledger: Ledger, faults: Sequence[Event]) -> None:
        self.spec = spec
        self.options = options
        self.ledger = ledger
        self.faults = faults
        assumption = spec.false_assumption()
        if assumption is not None:
            raise TlaConfigError(f"the ASSUME {assumption.body.span.text} is FALSE", assumption.span)
        for name in options.terminal:
            self.actions(name, "terminal")
            if name in options.hidden:
                raise TlaConfigError(f"{name} is hidden, and so cannot be terminal")
        self.rules = self._rules()
        self.bounds = Bounds(options.max_states, options.timeout, options.max_memory, began=options.began)
        self.separable = self._separable()
        if self.options.scope == "key" and self.separable is not None:
            self.rules = replace(self.rules, key=self.separable.key)
        self.answers = Answers(spec, self.rules, self.bounds, options, self.separable)
        self.keys: Keys | None = None
        if options.scope == "key":
            assert self.separable is not None  # else it was refused
            self.keys = Keys(spec, self.separable, self.rules)
        self.at_end = [spec.predicate(name) for name in options.at_end] if options.at_end else []
        self._others: dict[Rules, Answers] = {}
        self.findings: list[Finding] = []
        self.kinds = Kinds()
        self.reasons: dict[Word, str] = {}
        """The first reason of the undecided and of the vacuous."""
        self.counts = Behaviours()
        self.undecided: dict[str, int] = {}
        self.hidden_steps = 0
        self.spans: dict[str, int] = {}
        self.proven: Counter[tuple[str, str | None]] = Counter()
        """Behaviours that lack a record of a lossy action, by emitter and hour."""
        self.lacking = False
        """Whether anything is missing."""
        self.open_at_end: list[str] = []
        """The keys that conform, and have not come to an end."""
        self.coverage: dict[str, int] = dict.fromkeys(dict.fromkeys(action.label for action in spec.actions), 0)
        self.required = [Required.of(text, self.actions) for text in options.require]
        self.met: set[str] = set()

    def _rules(self) -> Rules:
        options = self.options
        names = () if options.strict else dict.fromkeys((*options.hidden, *options.lossy))
        hidden = frozenset(action for name in names for action in self.actions(name, "hidden"))
        inserted = set(names)
        for one in options.timed:
            self.actions(one.action, "hidden")
            self.actions(one.after, f"hidden.{one.action}.after")
        never_lost = frozenset(action for name in options.never_lost for action in self.actions(name, "never_lost"))
        for action in sorted(never_lost & hidden, key=lambda action: action.label):
            raise TlaConfigError(f"never_lost: {action.label} is hidden, and so has no record")
        return Rules(
            hidden,
            options.hidden_max,
            options.keep_constraints,
            when=tuple(one for one in options.when if one[0] in inserted),
            timed=tuple(one for one in options.timed if one.action in inserted),
            skew=options.skew,
            key=options.key,
            terminal=frozenset(options.terminal),
            never_lost=never_lost,
            # An invariant of ends looks at all that hidden steps may have made of the last state.
            everywhere=options.complete and bool(options.at_end),
        )

    def _told_apart(self) -> Separable:
        proof = separable(self.spec, self.options.key, run_level=True, constraints=self.options.keep_constraints)
        if self.options.start == "state" and proof.shared:
            raise TlaConfigError(
                f"scope key: with start = state, keys that share {min(proof.shared)} could begin with another one each",
                hint="say --scope run, or start = midway",
            )
        return proof

    def _separable(self) -> Separable | None:
        """How the spec falls apart by key, if it does.

        :raises TlaConfigError: scope ``key``, and it does not.
        """
        scope_key = self.options.scope == "key"
        try:
            return self._told_apart() if scope_key else separable(self.spec)
        except Coupled as coupled:
            if scope_key:
                raise TlaConfigError(
                    f"scope key: this couples two keys: {coupled.message}",
                    coupled.span,
                    hint="say --scope run; specwatch explain-plan tells more",
                ) from None
            return None

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

    def judge(self, behaviours: Sequence[Behaviour]) -> Verdict:
        self.lacking = any(behaviour.losses for behaviour in behaviours)
        words: list[Word] = []
        for behaviour in behaviours:
            words.extend(self.by_key(behaviour) if self.keys is not None else [self.judge_run(behaviour)])
        if self.proven:
            self.ledger.loss = "proven"
            found = sorted(self.proven.items(), key=lambda pair: (pair[0][0], pair[0][1] or ""))
            self.ledger.proven = [Proven(emitter, hour, count) for (emitter, hour), count in found]
        reason = None
        if not behaviours:
            reason = "no-events: nothing was mapped to an action" if self.ledger.read else "no-events: nothing was read"
        unmet = [one.text for one in self.required if one.text not in self.met]
        if unmet:
            words.append("vacuous")
        word = worst(words)
        if word == "vacuous" and unmet:
            reason = f"require: {', '.join(unmet)} never happened"
        elif word in ("inconclusive", "vacuous") and reason is None:
            reason = self.reasons[word]
        return Verdict(
            verdict=word,
            exit_code=EXIT_CODES[word],
            reason=reason,
            behaviours=self.counts,
            undecided_by_reason=self.undecided,
            kinds=self.kinds.listed(),
            findings=self.findings,
            hidden_steps=self.hidden_steps,
            coverage=self.coverage,
            ledger=self.ledger,
            assumptions=self.assumptions(),
            spec=used(self.spec),
            invariants=self.spec.checked,
            require=[(one.text, one.text in self.met) for one in self.required],
        )

    def by_key(self, behaviour: Behaviour) -> list[Word]:
        """The words of a run's keys; of the run-level part too, if that fails or is all."""
        assert self.keys is not None  # that is the scope
        common, values, parts = self.keys.split(behaviour)
        failed = False
        words: list[Word] = []
        if common is not None:
            self.keys.refuse_choices(common)
            answers = Answers(self.keys.of_unseen(values), self.rules, self.bounds, self.options, None)
            answer = answers.of(common)
            self.count(common, answer, answers)
            failed = answer.word != "conforms"
            if failed:
                words.append(self.told(common, answer))
                # What the keys are judged by is what the run-level part explains.
                good = {id(event) for event in explained(common, answer)}
                dropped = {id(event) for event in common.events} - good
        empty = True
        for part in self.whole_first(parts):
            empty = False
            if failed:
                part.events = [event for event in part.events if id(event) not in dropped]
            answer = self.answers.of_key(part)
            wrong = failed and answer.word in ("violates", "diverges")
            if wrong and not self.is_settled(behaviour, part, answer, dropped):
                answer = undecided(answer, "run-level: what is common to all keys is no behaviour of the spec")
            self.count(part, answer, self.answers)
            words.append(self.told(part, answer))
        if empty and not failed:
            words.append(self.told(behaviour, Answer("vacuous") if common is None else answer))
        return words

    @staticmethod
    def is_settled(behaviour: Behaviour, part: Behaviour, answer: Answer, dropped: set[int]) -> bool:
        """Whether a key fails before the first run-level event that cannot be explained."""
        if behaviour.order != "total" or answer.at is None:
            return False
        last = id(part.events[answer.at - 1]) if answer.at else None
        first = next(event for event in behaviour.events if id(event) in dropped or id(event) == last)
        return answer.at == 0 or id(first) == last

    def whole_first(self, parts: Iterable[Behaviour]) -> Iterator[Behaviour]:
        """The behaviours of which nothing is missing, then the others, which share the time that is left."""
        others = []
        for part in parts:
            if self.answers.is_whole(part):
                yield part
            else:
                others.append(part)
        for number, part in enumerate(others):
            self.answers.share = len(others) - number
            yield part

    def judge_run(self, behaviour: Behaviour) -> Word:
        answer = self.answers.of(behaviour)
        self.count(behaviour, answer, self.answers)
        return self.told(behaviour, answer)

    def told(self, behaviour: Behaviour, answer: Answer) -> Word:
        """Counts a behaviour, and keeps its finding; its word."""
        self.ledger.clock += answer.dropped
        finding = self.finding(behaviour, answer)
        word: Word = "conforms" if finding is None else finding.verdict
        setattr(self.counts, word, getattr(self.counts, word) + 1)
        self.counts.total += 1
        if finding is None:
            for detail in answer.spans:
                self.spans[detail] = self.spans.get(detail, 0) + 1
            self.open_at_end += self.in_flight(behaviour)
            return word
        finding.run, finding.key = behaviour.run, behaviour.key
        if len(self.findings) < self.options.max_findings:
            self.findings.append(finding)
        self.kinds.add(finding)
        if finding.reason is not None:
            self.reasons.setdefault(word, finding.reason)
        if finding.verdict == "inconclusive":
            assert finding.reason is not None  # an undecided behaviour always says why
            name = finding.reason.partition(":")[0]
            self.undecided[name] = self.undecided.get(name, 0) + 1
        return word

    def finding(self, behaviour: Behaviour, answer: Answer) -> Finding | None:
        """The finding of one behaviour; None where it conforms."""
        if answer.word == "vacuous":
            return Finding(verdict="vacuous", reason="no-events: the behaviour has no events")
        if answer.word == "inconclusive":
            if answer.outcome is not None and answer.outcome.bound is not None:
                self.ledger.bounds.append(answer.outcome.bound)
            return undecided_finding(answer)
        if answer.replay is not None and answer.outcome is not None and answer.word != "conforms":
            if len(self.findings) >= self.options.max_findings:
                return brief(answer.replay, answer.outcome)
            return explain(answer.replay.spec, answer.replay.behaviour, answer.replay, answer.outcome)
        unfinished = self.unfinished(behaviour)
        if unfinished:
            return undecided_finding(undecided(answer, f"incomplete: {unfinished}"))
        return self.ended(behaviour, answer)

    def unfinished(self, behaviour: Behaviour) -> str | None:
        """With ``complete = true``: the keys whose last event is not terminal."""
        open_ = self.in_flight(behaviour) if self.options.complete else []
        return (
            f"no terminal action ({', '.join(sorted(self.options.terminal))}) ends {listed(open_)}" if open_ else None
        )

    def in_flight(self, behaviour: Behaviour) -> list[str]:
        """The keys whose last event is not terminal, where it is known what is."""
        ends = set(self.options.terminal)
        if not ends:
            return []
        last: dict[str, Event] = {}
        if self.keys is None:
            for event in behaviour.events:
                last["the run" if event.key is None else str(event.key)] = event
        else:
            # What is common to all keys has no end of its own.
            own = [event for event in behaviour.events if self.keys.is_keyed(event)]
            last = {str(behaviour.key): own[-1]} if own else {}
        return [key for key, event in last.items() if event.action not in ends]

    def ended(self, behaviour: Behaviour, answer: Answer) -> Finding | None:
        """With ``complete = true``: the invariants of ends, of the states that a good behaviour may have ended in."""
        if not self.options.complete or not self.at_end:
            return None
        outcome, replay = answer.outcome, answer.replay
        if outcome is None or replay is None:
            key = self.answers.key_of(behaviour) if self.keys is not None else None
            answer = self.answers.replayed(behaviour, key=key)
            outcome, replay = answer.outcome, answer.replay
            assert outcome is not None  # what is replayed has an outcome
            assert replay is not None
        spec = replay.spec
        ends = [Step(spec.mapping(node.state)) for node in outcome.nodes]
        broken: list[list[str]] = [
            [one.name for one in self.at_end if not spec.holds(one.expression, end)] for end in ends
        ]
        if not broken or not all(broken):
            return None
        fewest = min(broken, key=len)
        name = "+".join(fewest)
        return Finding(
            verdict="violates",
            at=len(behaviour.events),
            event=behaviour.events[-1],
            invariant=name,
            explanation=Explanation(
                summary=f"the log is complete, and at its end {name} is FALSE",
                state_before={name: show(value) for name, value in spec.mapping(outcome.nodes[0].state).items()},
            ),
        )

    def count(self, behaviour: Behaviour, answer: Answer, answers: Answers) -> None:
        """Coverage, hidden steps, and what was required."""
        events = explained(behaviour, answer)
        if behaviour.key is not None and self.keys is not None:
            events = [event for event in events if self.keys.is_keyed(event)]
        for event in events:
            self.coverage[self.name_of(event)] += 1
        for name, number in answer.hidden.items():
            self.coverage[name] += number
        self.hidden_steps += sum(answer.hidden.values())
        lossy = frozenset(action for name in self.options.lossy for action in self.spec.named(name))
        if any(action.label in answer.hidden for action in lossy):
            other = self.without(behaviour, answers, lossy)
            if worse(other, answer):
                # Without a record that is missing there is no explanation: a loss that no number shows.
                self.proven[needing(behaviour, other)] += 1
        for one in self.required:
            if one.text in self.met:
                continue
            if any(one.is_met(event, self.faults) for event in events) or (
                answer.inserted_during(one, self.faults) and self.needed(behaviour, answer, answers, one.actions)
            ):
                self.met.add(one.text)

    def name_of(self, event: Event) -> str:
        """The action under which an event is counted: a group's first, where a group is all that it says."""
        return event.action if event.action in self.coverage else self.spec.named(event.action)[0].label

    def needed(self, behaviour: Behaviour, answer: Answer, answers: Answers, actions: frozenset[Action]) -> bool:
        """A hidden action has happened only where the events cannot be explained as well without it."""
        return worse(self.without(behaviour, answers, actions), answer)

    def without(self, behaviour: Behaviour, answers: Answers, actions: frozenset[Action]) -> Answer:
        """The answer where some hidden actions are not."""
        rules = replace(answers.rules, hidden=answers.rules.hidden - actions)
        if rules not in self._others:
            self._others[rules] = Answers(answers.spec, rules, self.bounds, self.options, answers.separable)
        others = self._others[rules]
        return others.of(behaviour) if behaviour.key is None else others.of_key(behaviour)

    def assumptions(self) -> list[str]:
        """What the verdict rests on, for people."""
        spec, options = self.spec, self.options
        found = []
        if self.rules.hidden:
            names = ", ".join(sorted({action.label for action in self.rules.hidden}))
            limit = "" if options.hidden_max is None else f", at most {options.hidden_max} between two events"
            found.append(f"may have happened without a record: {names}{limit}")
        if self.rules.never_lost and self.lacking:
            names = ", ".join(sorted(action.label for action in self.rules.never_lost))
            found.append(f"what is missing was none of these: {names}")
        for one in self.rules.timed:
            bounds = [("at least", one.min), ("at most", one.max)]
            told = " and ".join(f"{what} {bound / 1e9:g} s" for what, bound in bounds if bound is not None)
            if told:
                found.append(f"{one.action} comes {told} after {one.after}, give or take {self.rules.skew / 1e9:g} s")
        found.extend(f"{name} is inserted only where {text}" for name, text in self.rules.when)
        if options.start == "midway":
            found.append("start midway: a behaviour may have begun before its log")
        if self.open_at_end:
            found.append(f"conforms as far as the log goes: no terminal action ends {listed(self.open_at_end)}")
        for detail, number in sorted(self.spans.items()):
            found.append(f"{number:,} conform whatever is missing: {detail}")
        if self.ledger.clock:
            found.append(
                f"clock: {self.ledger.clock:,} times were against an emitter's order or a cause, and were not used"
            )
        if not options.keep_constraints:
            ignored = [f"CONSTRAINT {named.name}" for named in spec.config.constraints]
            ignored += [f"ACTION_CONSTRAINT {named.name}" for named in spec.config.action_constraints]
            found.extend(f"{what} is ignored: it bounds exploration only" for what in ignored)
        for named, what in ((spec.config.symmetry, "SYMMETRY"), (spec.config.view, "VIEW")):
            if named is not None:
                found.append(f"{what} {named.name} is ignored: it bounds exploration only")
        if spec.config.alias is not None:
            found.append(f"ALIAS {spec.config.alias.name} is ignored: states are shown by the spec's own variables")
        if spec.config.check_deadlock is not None:
            found.append("CHECK_DEADLOCK is ignored: a log may end anywhere")
        found.extend(f"not checked: {what}" for what in spec.unchecked)
        found.extend(
            f"not checked: PROPERTY {one.name}, its part {one.expression.span.text}: it speaks of initial states alone"
            for one in spec.initial_properties
        )
        found.extend(spec.warnings)
        return found


def worse(one: Answer, other: Answer) -> bool:
    """Whether the events are explained less well."""
    less = {"conforms": ("violates", "diverges"), "violates": ("diverges",)}
    return one.word in less.get(other.word, ())


def needing(behaviour: Behaviour, failed: Answer) -> tuple[str, str | None]:
    """The emitter and the hour of the event that is not explained."""
    event = behaviour.events[max(0, (failed.at or 0) - 1)]
    hour = None
    if event.time is not None:
        hour = datetime.fromtimestamp(event.time // 10**9, UTC).strftime("%Y-%m-%dT%H")
    return lane_name(event), hour


def listed(names: Sequence[str]) -> str:
    """The first three, and how many more."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def explained(behaviour: Behaviour, answer: Answer) -> list[Event]:
    """The events that an answer explains."""
    if answer.explained is not None:
        return answer.explained
    # What diverges at an event explains those before it.
    word = answer.without or answer.word
    return behaviour.events[: answer.reached - (word == "diverges")]


def brief(replay: Replay, outcome: Outcome) -> Finding:
    """What is only counted, since enough findings are explained."""
    assert outcome.at is not None  # where it failed
    lane = replay.lanes[0]
    event = lane[outcome.at - 1] if replay.total and outcome.at else None
    name = "|".join("+".join(sorted(one)) for one in outcome.invariants) or None
    action = event.action if event is not None and name is None else None
    return Finding(verdict=outcome.word, at=replay.number(outcome.at), event=event, invariant=name, action=action)


def undecided_finding(answer: Answer) -> Finding:
    """What an inconclusive answer says: why, and what the evidence would say without what is missing."""
    without = {
        "conforms": "without what is missing it conforms",
        "violates": f"without what is missing it violates at event {answer.at}",
        "diverges": f"without what is missing it diverges at event {answer.at}",
    }
    summary = without.get(answer.without or "", f"the first {answer.reached:,} events are explained")
    explanation = Explanation(summary=summary)
    hidden: list[HiddenStep] = []
    if answer.replay is not None and answer.outcome is not None and answer.outcome.nodes:
        node = answer.outcome.nodes[0]
        explanation.state_before = {name: show(value) for name, value in answer.replay.spec.mapping(node.state).items()}
        hidden = hidden_steps(answer.replay, node)
    return Finding(verdict="inconclusive", reason=answer.reason, hidden=hidden, explanation=explanation)


def used(spec: Spec) -> SpecUsed:
    """Which spec judged, for the record."""
    return SpecUsed(
        path=spec.path, sha256=hashlib.sha256(Path(spec.path).read_bytes()).hexdigest(), config=spec.config.path
    )
