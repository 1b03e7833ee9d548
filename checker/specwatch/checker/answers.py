"""The answer for one behaviour: by the tables where they serve, else by the replay; and what a loss, an unknown
beginning or a wrong clock leaves of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from .behaviour import Behaviour, Event, Json, Loss
from .bounds import Bounds
from .observe import candidates
from .options import Options
from .order import Ordered, ordered
from .paths import Inserted, Node, Outcome, Rules, Way
from .reading import check_events
from .replay import Replay
from .required import Required
from .slicing import Separable
from .spec import Memory, Spec, State
from .starts import Starts
from .tables import KeyOutcome, KeyReplay, added, last_events, negative
from .tla.values import Value
from .verdict import Word

MOST_FILLED = 3_000
"""So many states are held where what is missing is filled; beyond, what it may have done stays undecided."""


class Answer(msgspec.Struct):
    """What is found out about one behaviour. ``hidden`` counts the hidden steps by action, on the path with the fewest.

    ``replay`` and ``outcome`` are what an explanation is made from: of the whole, or of the key that failed.
    """

    word: Word
    at: int | None = None
    reached: int = 0
    hidden: dict[str, int] = {}
    replay: Replay | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    """Why it is inconclusive."""
    key: Json = None
    """The key that failed, where a run was replayed key by key."""
    explained: list[Event] | None = None
    """The events that were explained, where these are not the first ``reached``."""
    without: Word | None = None
    """Of an inconclusive one: what it would be if nothing were missing, ``at``."""
    spans: list[str] = []
    """What is missing, and changes nothing."""
    dropped: int = 0
    """How many times went against an emitter's order or a cause."""

    def inserted_during(self, required: Required, faults: Sequence[Event]) -> bool:
        """Whether a hidden step on the way is what was required, and may have been when it was required."""
        labels = {action.label for action in required.actions}
        if labels.isdisjoint(self.hidden):
            return False
        if required.during is None:
            return True
        node = best(self.outcome) if self.outcome is not None else None
        if node is None or self.replay is None:
            return False
        return any(
            required.is_during(span, faults) for step, span in self.replay.inserted(node) if step.action.label in labels
        )


class Answers:
    """Answers for behaviours of one spec, by one set of rules."""

    def __init__(self, spec: Spec, rules: Rules, bounds: Bounds, options: Options, separable: Separable | None) -> None:
        """``separable``: as the runs' (scope ``run``) or the keys' behaviours may be told apart; None where not."""
        self.spec = spec
        self.rules = rules
        self.bounds = bounds
        self.options = options
        self.separable = separable
        self.starts = Starts(spec, separable, bounds, options)
        plain = rules.hidden_max is None and not rules.keep_constraints and not rules.when
        plain = plain and not spec.step_properties and options.start != "state"
        self.timed = {action.label for one in rules.timed for action in spec.named(one.action)}
        # What comes first in a log is first of all only where the log begins at the beginning.
        self.causes = (
            tuple(msgspec.structs.replace(cause, begins=cause.first in options.first) for cause in options.causes)
            if options.start == "init"
            else ()
        )
        self.share = 1
        """By how many the time that is left is shared, where something is missing."""
        self.tables: KeyReplay | None = None
        if separable is not None and plain:
            self.tables = KeyReplay(spec, separable, replace(rules, timed=()), bounds)

    def of(self, behaviour: Behaviour) -> Answer:
        """The answer for a behaviour of scope ``run``: key by key inside, where that is the same."""
        check_events(self.spec, behaviour.events)
        missing = [loss for loss in behaviour.losses if loss.reason != "unparsed"]
        if self.tables is not None and not self.rules.timed and self.tables.suits(behaviour):
            answer = self.by_key(behaviour)
            open_ = self.options.start == "midway" and answer is not None and answer.word != "conforms"
            if answer is not None and not open_ and (not missing or _settled(answer, behaviour.losses)):
                return self.with_unparsed(answer, behaviour)
        return self.with_unknown_keys(self.replayed(behaviour), behaviour)

    def with_unknown_keys(self, answer: Answer, behaviour: Behaviour) -> Answer:
        """An event that leaves its key out may be about one that the log does not name, and so the spec does not have:
        then what it cannot explain is not known to be wrong.
        """
        key = self.rules.key
        if not self.options.keys_logged or key is None or answer.word not in ("violates", "diverges"):
            return answer
        for number, event in enumerate(behaviour.events, 1):
            keyed = [action for action in self.spec.named(event.action) if key in action.parameters]
            if keyed and not any(action.parameter(name) == key for action in keyed for name in event.params):
                return undecided(answer, f"no-key: event {number}, {event.action}, does not say its {key}")
        return answer

    def of_key(self, behaviour: Behaviour) -> Answer:
        """The answer for one key's behaviour, which the spec's proof of separability allows."""
        order = self.ordered(behaviour)
        tables = self.tables
        if tables is not None and not order.windows and self.is_chain(behaviour, order):
            events = behaviour.events
            if behaviour.order != "total":
                events = [events[place] for place in order.chain()]
            name = self.name(behaviour)
            if tables.suits_key(events, name):
                answer = self.followed(tables.follow(events, name))
                if answer is not None:
                    return self.with_unparsed(answer, behaviour)
        answer = self.as_first(behaviour) or self.replayed(behaviour, order, self.key_of(behaviour))
        assert self.separable is not None  # behaviours of keys come of a separable spec
        if (
            answer.word == "conforms"
            and self.separable.choices
            and answer.outcome is not None
            and answer.outcome.filled
        ):
            # What is missing may have been run-level, and then two keys need not agree on it.
            answer = undecided(answer, told([window.loss for window in order.windows]))
        return answer

    def ordered(self, behaviour: Behaviour) -> Ordered:
        """The order of a key's behaviour, with the windows of what may have been about the key."""
        order = ordered(behaviour, self.causes)
        order.windows = [window for window in order.windows if self.is_touched(order, window.low, window.high)]
        return order

    def is_whole(self, behaviour: Behaviour) -> bool:
        """Whether nothing is missing of a key's behaviour that could be filled."""
        return all(loss.reason == "unparsed" for loss in behaviour.losses) or not self.ordered(behaviour).windows

    def as_first(self, behaviour: Behaviour) -> Answer | None:
        """The answer of the replay as if the behaviour were the first key's, by steps that are remembered: keys are
        alike. None where it is the first key's own, or no ``conforms``: then what is told is about the key itself.
        """
        tables, name = self.tables, self.name(behaviour)
        if tables is None or not tables.suits_key(behaviour.events, name) or name == tables.name:
            return None
        if any(loss.event is not None and tables.key_of(loss.event) != name for loss in behaviour.losses):
            return None  # what may be missing is about another key, and must not become this one's
        first = msgspec.structs.replace(
            behaviour,
            events=[tables.renamed(event) for event in behaviour.events],
            losses=[
                msgspec.structs.replace(
                    loss,
                    keys=None if loss.keys is None else [tables.name],
                    event=None if loss.event is None else tables.renamed(loss.event),
                )
                for loss in behaviour.losses
            ],
        )
        answer = self.replayed(first, self.ordered(first), self.key_of(first))
        if answer.word != "conforms":
            return None
        return msgspec.structs.replace(answer, replay=None, explained=behaviour.events)

    @staticmethod
    def is_chain(behaviour: Behaviour, order: Ordered) -> bool:
        """Whether a key's events can come in one order only, and nothing speaks against it."""
        return behaviour.order == "total" or (not order.circular and not order.dropped and order.is_chain())

    def followed(self, found: KeyOutcome) -> Answer | None:
        """What the tables say of one key; None where a replay has to say it."""
        if found.bound is not None:
            reason = f"bound: {found.bound}, after event {found.reached:,}"
            return Answer("inconclusive", None, found.reached, found.coverage, reason=reason)
        if found.failed is not None or not self.timed.isdisjoint(found.coverage):
            return None
        return Answer("conforms", None, found.reached, found.coverage)

    def name(self, behaviour: Behaviour) -> Json:
        """A key as the spec knows it; the behaviour's own may be the one before it was interned."""
        assert self.separable is not None  # behaviours of keys come of a separable spec
        for event in behaviour.events:
            for action in self.spec.named(event.action):
                for name, value in event.params.items():
                    if action.parameter(name) == self.separable.key:
                        return value
        return None

    def key_of(self, behaviour: Behaviour) -> Value | None:
        """A behaviour's key as a value; None where that is no key of the spec, or not one alone."""
        assert self.separable is not None  # behaviours of keys come of a separable spec
        keys = self.spec.evaluator.constants[self.separable.keys]
        found = candidates(self.name(behaviour), keys, self.spec.models)
        return found[0] if len(found) == 1 else None

    def is_touched(self, order: Ordered, low: Sequence[int], high: Sequence[int]) -> bool:
        """Whether what is missing may be about the key: not before its life's first action, nor after its last."""
        sizes = [len(lane) for lane in order.lanes]
        from_the_beginning = not any(high) and self.options.start == "init"
        if from_the_beginning and all(event.action in self.options.first for event in order.firsts()):
            return False
        if list(low) == sizes and any(sizes):
            last = [lane[-1] for lane in order.lanes]
            return not any(event.action in self.options.terminal for event in last)
        return True

    # --- the replay, and what its answer is worth ---------------------------------------------------------------------

    def replayed(self, behaviour: Behaviour, order: Ordered | None = None, key: Value | None = None) -> Answer:
        """The answer of the replay, with ``key`` alone if that is given."""
        spec = self.spec if key is None else self.starts.spec_of(key)
        if order is None:
            order = ordered(behaviour, self.causes)
        answer = self.run(spec, key, behaviour, order)
        if order.circular and answer.word != "inconclusive":
            answer = undecided(answer, "clock: what is said to come before what goes round in a circle")
        if order.dropped and answer.word != "inconclusive":
            # Clocks that a cause contradicts tell nothing of what else they say.
            other = self.run(spec, key, behaviour, ordered(behaviour, self.causes, order.suspects))
            if other.word != answer.word:
                names = ", ".join(sorted(order.suspects)[:5])
                answer = undecided(answer, f"clock: the clocks of {names} differ by more than the skew")
        answer.dropped = order.dropped
        return self.with_unparsed(answer, behaviour)

    def run(self, spec: Spec, key: Value | None, behaviour: Behaviour, order: Ordered) -> Answer:
        if self.options.start == "state":
            return self.from_states(spec, key, behaviour, order)
        answer = self.filled(spec, behaviour, order)
        failed = answer.word in ("violates", "diverges")
        if self.options.start == "midway" and failed and self.could_be_open(behaviour, order):
            return self.from_midway(spec, key, behaviour, order, answer)
        return answer

    def filled(self, spec: Spec, behaviour: Behaviour, order: Ordered, starts: Sequence[State] | None = None) -> Answer:
        """The answer of the replay: where broken paths need a filled step, of one that tells fillings apart."""
        bounds = self.bounds
        if order.windows:
            spec.memory = spec.memory or Memory()
            most = min(MOST_FILLED, bounds.max_states or MOST_FILLED)
            timeout = bounds.timeout
            if timeout is not None:
                gone = bounds.clock() - bounds.began
                timeout = gone + max(0.0, timeout - gone) / self.share
            bounds = Bounds(most, timeout, bounds.max_memory, bounds.clock, began=bounds.began)
        replay = Replay(spec, behaviour, self.rules, bounds, order=order, starts=starts)
        outcome = replay.run()
        if outcome.lost:
            exact = Replay(spec, behaviour, self.rules, bounds, order=order, starts=starts, exact=True)
            found = exact.run()
            if found.word == "conforms":
                return answered(exact, found)
        return answered(replay, outcome)

    def could_be_open(self, behaviour: Behaviour, order: Ordered) -> bool:
        """Whether a behaviour may have begun before its log."""
        firsts = order.firsts()
        if self.options.scope == "run" and self.rules.key is not None:
            # Any of the run's keys may have begun before it.
            by_key: dict[str, Event] = {}
            for event in behaviour.events:
                if self.rules.key in event.params:
                    by_key.setdefault(repr(event.params[self.rules.key]), event)
            firsts += by_key.values()
        if all(event.action in self.options.first for event in firsts):
            return False
        within, began = self.options.start_within, behaviour.began
        return within is None or began is None or any(e.time is None or e.time <= began + within for e in firsts)

    def from_midway(
        self, spec: Spec, key: Value | None, behaviour: Behaviour, order: Ordered, initial: Answer
    ) -> Answer:
        starts = self.starts.reachable(key)
        hint = "open-at-start: it may have begun before the log; --start init for logs that are complete"
        if not starts.complete:
            return undecided(initial, hint)
        answer = self.filled(spec, behaviour, order, starts.states)
        return undecided(initial, hint) if answer.word in ("conforms", "inconclusive") else answer

    def from_states(self, spec: Spec, key: Value | None, behaviour: Behaviour, order: Ordered) -> Answer:
        starts = self.starts.observed(spec, behaviour, key)
        if not starts.states:
            why = "no event observed a state" if starts.unobserved else "no explored state is what was observed"
            return Answer("inconclusive", reason=f"open-at-start: {why}")
        answer = self.filled(spec, behaviour, order, starts.states)
        if answer.word in ("violates", "diverges") and not starts.complete:
            return undecided(answer, "open-at-start: not all states that it may have begun in were explored")
        return answer

    def with_unparsed(self, answer: Answer, behaviour: Behaviour) -> Answer:
        """What could not be read may have been anything: only what was settled before it stands."""
        if answer.word == "inconclusive":
            return answer
        losses = [
            loss
            for loss in behaviour.losses
            if loss.reason == "unparsed" and not (answer.at is not None and answer.at <= loss.settled)
        ]
        return undecided(answer, told(losses)) if losses else answer

    # --- scope run, key by key inside ---------------------------------------------------------------------------------

    def by_key(self, behaviour: Behaviour) -> Answer | None:
        """The answer of the tables; None where the oracle does not bear out that a key fails."""
        tables = self.tables
        assert tables is not None
        by_key = tables.run(behaviour)
        if by_key.bound is not None:
            size = len(behaviour.events)
            reason = f"bound: {by_key.bound}, after event {by_key.reached:,} of {size:,}"
            return Answer("inconclusive", None, by_key.reached, by_key.coverage, reason=reason)
        if by_key.failed is None:
            return Answer("conforms", None, by_key.reached, by_key.coverage)
        # What the tables only know to fail is replayed again by the oracle: this key's events, with this key alone.
        events, numbers = last_events(behaviour, tables, by_key.key, by_key.failed)
        part = Behaviour(events=events, run=behaviour.run, key=behaviour.key)
        replay = Replay(tables.of_key(by_key.key), part, self.rules, self.bounds, numbers=numbers)
        outcome = replay.run()
        if outcome.word == "inconclusive":
            reason = f"bound: {outcome.bound}, after event {by_key.failed - 1:,} of {len(behaviour.events):,}"
            return Answer("inconclusive", None, by_key.failed - 1, by_key.coverage, reason=reason)
        if outcome.at != len(events):
            return None
        hidden = by_key.coverage
        if outcome.word == "violates":
            # This key's part breaks the path of the whole, so that no other key's need be good.
            before = tables.run(Behaviour(events=events[:-1])).coverage
            own = inserted(best(outcome))
            hidden = dict(added(hidden.items(), negative(before.items()), own.items(), by_key.others))
        return Answer(outcome.word, by_key.failed, by_key.failed, hidden, replay, outcome, key=by_key.key)


def answered(replay: Replay, outcome: Outcome) -> Answer:
    """What the outcome of a replay says of its behaviour."""
    node = best(outcome)
    reason = None
    spans: list[str] = []
    if outcome.bound is not None:
        reason = f"bound: {outcome.bound}, after event {outcome.reached:,} of {replay.size:,}"
        if replay.windows:
            reason = told([window.loss for window in replay.windows])
    elif outcome.word == "conforms":
        spans = [window.loss.detail for window in replay.windows]
    answer = Answer(outcome.word, outcome.at, outcome.reached, inserted(node), replay, outcome, reason, spans=spans)
    if not replay.total:
        answer.explained = replay.explained(node.cut) if node is not None else []
    if outcome.lost:
        return undecided(answer, told([window.loss for window in replay.windows]))
    return answer


def undecided(answer: Answer, reason: str) -> Answer:
    """The same evidence, called inconclusive."""
    return msgspec.structs.replace(answer, word="inconclusive", reason=reason, without=answer.word, spans=[])


def best(outcome: Outcome) -> Node | None:
    """A node with the fewest hidden steps."""
    return next((node for node in outcome.nodes if node.hidden == outcome.hidden), None)


def inserted(node: Node | None) -> dict[str, int]:
    """The hidden steps on the way to a node, by action."""
    steps = Way.steps(node.way) if node is not None else []
    return dict(Counter(step.action.label for step in steps if isinstance(step, Inserted)))


def told(losses: Sequence[Loss]) -> str:
    """Losses as a reason: ``gap: worker-2 lacks seq 4-5``."""
    first = min(losses, key=lambda loss: (loss.reason != "unparsed", loss.after))
    details = list(dict.fromkeys(loss.detail for loss in losses if loss.reason == first.reason))
    shown = "; ".join(islice(details, 3)) + (f" and {len(details) - 3} more" if len(details) > 3 else "")
    return f"{first.reason}: {shown}"


def _settled(answer: Answer, losses: Sequence[Loss]) -> bool:
    """Whether a verdict was settled before anything went missing."""
    return answer.at is not None and all(answer.at <= loss.after + 1 for loss in losses if loss.reason != "unparsed")
