"""The replay of a separable spec: key by key, and each step computed once for all keys alike.

Where a spec is separable by a key (:mod:`.slicing`), a behaviour in total order has a good path up to an event exactly
when each key's part of it has one. So there is one frontier a key, and none of the whole: what would be the product of
the keys' frontiers is never built. Since a key is opaque, keys with the same past have the same frontier up to its
name; frontiers are kept under the name of one key, numbered, and what an event does to a frontier is a row of a table
that is filled when it is first asked for. An event seen before costs a look-up, whatever the spec.

What is counted along a path (hidden steps) is kept apart from a frontier, relative to its cheapest path, so that
frontiers which differ in the past only are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from .behaviour import Behaviour, Event, Json
from .bounds import BoundReached, Bounds
from .observe import candidates
from .paths import Inserted, Node, Rules, Way
from .replay import Replay
from .slicing import Separable
from .spec import Spec, State
from .tla.values import Value

Counts = tuple[tuple[str, int], ...]
"""Hidden steps by action, sorted by name; relative to another path's, so that a number may be negative."""

_ENCODE = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class _End:
    """The end of some paths of one key: the spec's state there, what they broke, and their hidden steps."""

    state: State
    broken: frozenset[str]
    counts: Counts

    @property
    def hidden(self) -> int:
        return sum(number for _, number in self.counts)


@dataclass(frozen=True, slots=True)
class _Move:
    """What an event does to a frontier: the next one (None: no good path), and the hidden steps of its cheapest
    path.
    """

    target: int | None
    counts: Counts = ()


@dataclass(slots=True)
class KeyOutcome:
    """What the tables say of a run: the first event that some key cannot take well, and the hidden steps so far."""

    failed: int | None = None
    """The number of that event in the behaviour, from 1."""
    key: Json = None
    reached: int = 0
    others: Counts = ()
    """What the other keys' paths with the fewest hidden steps have less of these, if they need not be good."""
    coverage: dict[str, int] = field(default_factory=dict)
    """Hidden steps by action, on the paths with the fewest of them."""
    bound: str | None = None


class KeyReplay:
    """Replays behaviours of a separable spec. Its tables serve all behaviours with the same rules.

    Frontiers are kept under the name of the first key that is met.
    """

    def __init__(self, spec: Spec, separable: Separable, rules: Rules, bounds: Bounds) -> None:
        self.spec = spec
        self.separable = separable
        self.rules = rules
        self.bounds = bounds
        self.keyed = separable.keyed
        self.keys: Value = spec.evaluator.constants[separable.keys]
        self.name: Json = None
        self.one: Spec | None = None
        self._frontiers: list[tuple[_End, ...]] = []
        self._numbers: dict[frozenset[_End], int] = {}
        self._key_names: dict[tuple[str, ...], str | None] = {}
        self._moves: dict[tuple[int, Hashable], _Move] = {}
        self._start: int | None = None

    def key_of(self, event: Event) -> Json | None:
        """The key that an event is about; None where it leaves that open, or speaks of more than one."""
        name = self._key_name(event)
        found = event.params[name] if name is not None else None
        if not isinstance(found, (str, int)) or isinstance(found, bool):
            return None
        for seen in (event.state, event.before):
            for part in (seen or {}).values():
                # Only an object that names this key alone is an observation of this key alone.
                if not isinstance(part, dict) or list(part) != [found] or found in ("#set", "#map", "#tup"):
                    return None
        return found

    def _key_name(self, event: Event) -> str | None:
        """Under which name an event gives the key; None where it gives none, or under two names."""
        form = (event.action, *event.params)
        if form not in self._key_names:
            actions = self.spec.named(event.action)
            names = [name for name in event.params if any(a.parameter(name) == self.separable.key for a in actions)]
            sure = len(names) == 1 and all(action.parameter(names[0]) == self.separable.key for action in actions)
            self._key_names[form] = names[0] if sure else None
        return self._key_names[form]

    def suits(self, behaviour: Behaviour) -> bool:
        """Whether a behaviour can be replayed key by key: in total order, and every event about one key that exists."""
        if behaviour.order != "total":
            return False
        known: set[Json] = set()
        first = self.name
        for event in behaviour.events:
            key = self.key_of(event)
            if key is None or event.expect or event.alternatives:
                return False
            first = key if first is None else first
            if (event.state or event.before) and not isinstance(first, str):
                return False  # an observation names its key as a string, and could not be renamed to this one
            if key not in known:
                if len(self._candidates(key)) != 1:
                    return False
                known.add(key)
        return bool(behaviour.events) and self._begins_well(self.key_of(behaviour.events[0]))

    def suits_key(self, events: Sequence[Event], key: Json) -> bool:
        """Whether one key's events can be followed here, with the run-level ones among them."""
        if not isinstance(key, (str, int)) or isinstance(key, bool) or len(self._candidates(key)) != 1:
            return False
        first = key if self.name is None else self.name
        for event in events:
            if event.expect or event.alternatives:
                return False
            if event.state or event.before:
                if not isinstance(first, str) or not isinstance(key, str):
                    return False  # an observation names its key as a string, and could not be renamed to this one
                if not all(
                    isinstance(part, dict) and list(part) == [key]
                    for seen in (event.state, event.before)
                    for name, part in (seen or {}).items()
                    if name in self.keyed
                ):
                    return False
        return self._begins_well(key)

    def follow(self, events: Sequence[Event], key: Json) -> KeyOutcome:
        """Goes through one key's events, in their order, until it cannot go on well."""
        assert self._start is not None  # ``suits_key`` was asked
        frontier = self._start
        outcome = KeyOutcome(key=key)
        counts: Counts = ()
        try:
            for number, event in enumerate(events, 1):
                move = self.move(frontier, event, key, number)
                if move.target is None:
                    outcome.failed = number
                    break
                frontier = move.target
                if move.counts:
                    counts = added(counts, move.counts)
                outcome.reached = number
        except BoundReached as bound:
            outcome.bound = str(bound)
        outcome.coverage = dict(counts)
        return outcome

    def _candidates(self, key: Json) -> list[Value]:
        return candidates(key, self.keys, self.spec.models)

    def _begins_well(self, key: Json) -> bool:
        """Makes the spec of one key, and looks whether its initial states are good (else the whole is replayed)."""
        if self.one is None:
            self.name = key
            self.one = self.of_key(key)
            start = Replay(self.one, Behaviour(events=[]), self.rules, self.bounds).start()
            ends = tuple(_End(node.state, node.broken, ()) for node in start)
            if any(not end.broken for end in ends):
                self._start = self._number(ends)
        return self._start is not None

    def of_key(self, key: Json) -> Spec:
        """The spec with one key only."""
        [value] = self._candidates(key)
        return self.separable.spec_of(self.spec, value)

    def run(self, behaviour: Behaviour) -> KeyOutcome:
        """Goes through a behaviour once, in its order, until some key cannot go on well."""
        assert self._start is not None  # ``suits`` was asked
        at: dict[Json, int] = {}
        outcome = KeyOutcome()
        counts: dict[str, int] = {}
        try:
            for number, event in enumerate(behaviour.events, 1):
                key = self.key_of(event)
                frontier = at.get(key, self._start)
                move = self.move(frontier, event, key, number)
                if move.target is None:
                    outcome.failed, outcome.key = number, key
                    outcome.others = added(*(self._least(other) for name, other in at.items() if name != key))
                    break
                at[key] = move.target
                for action, steps in move.counts:
                    counts[action] = counts.get(action, 0) + steps
                outcome.reached = number
        except BoundReached as bound:
            outcome.bound = str(bound)
        outcome.coverage = {action: steps for action, steps in counts.items() if steps}
        return outcome

    def _least(self, frontier: int) -> Counts:
        """The hidden steps of a frontier's cheapest path, be it broken, relative to the cheapest good one."""
        return min(self._frontiers[frontier], key=lambda end: end.hidden).counts

    def move(self, frontier: int, event: Event, key: Json, number: int) -> _Move:
        """The row of the table, computed where it is not there yet."""
        form = (frontier, self._form(event, key))
        known = self._moves.get(form)
        if known is None:
            known = self._moves[form] = self._computed(frontier, event, number)
        self.bounds.check(0)
        return known

    def _form(self, event: Event, key: Json) -> Hashable:
        """What an event says, but for which key it says it."""
        key_name = self._key_name(event)
        others = tuple((name, value) for name, value in event.params.items() if name != key_name)
        seen = tuple(
            _ENCODE({name: part[key] if name in self.keyed else part for name, part in part_of.items()})
            if part_of
            else b""
            for part_of in (event.before, event.state)
        )
        return event.action, _hashable(others), seen

    def _computed(self, frontier: int, event: Event, number: int) -> _Move:
        assert self.one is not None  # ``suits`` was asked
        replay = Replay(self.one, Behaviour(events=[self.renamed(event)]), self.rules, self.bounds)
        ends = self._frontiers[frontier]
        # The lane number in a way tells from which end of the frontier it goes on.
        nodes = [Node((0,), end.state, end.broken, end.hidden, Way(None, index)) for index, end in enumerate(ends)]
        reached = replay.advance(nodes, number)
        if not any(not node.broken for node in reached):
            return _Move(None)
        found = [_End(node.state, node.broken, self._counted(node, ends)) for node in reached]
        base = min((end for end in found if not end.broken), key=lambda end: end.hidden).counts
        return _Move(
            self._number(tuple(_End(end.state, end.broken, added(end.counts, negative(base))) for end in found)), base
        )

    def renamed(self, event: Event) -> Event:
        """An event of a behaviour that suits, as it would be if it were about the first key. Its own ``key`` stays."""
        key_name = self._key_name(event)
        return msgspec.structs.replace(
            event,
            params={name: self.name if name == key_name else value for name, value in event.params.items()},
            state=self._renamed(event.state),
            before=self._renamed(event.before),
        )

    def _renamed(self, seen: dict[str, Json] | None) -> dict[str, Json] | None:
        if seen is None:
            return None
        return {
            name: {str(self.name): next(iter(part.values()))} if name in self.keyed else part
            for name, part in seen.items()
        }

    @staticmethod
    def _counted(node: Node, ends: tuple[_End, ...]) -> Counts:
        counts: dict[str, int] = {}
        for step in Way.steps(node.way):
            if isinstance(step, Inserted):
                counts[step.action.label] = counts.get(step.action.label, 0) + 1
            elif isinstance(step, int):
                for action, number in ends[step].counts:
                    counts[action] = counts.get(action, 0) + number
        return _sorted(counts)

    def _number(self, ends: tuple[_End, ...]) -> int:
        form = frozenset(ends)
        number = self._numbers.get(form)
        if number is None:
            number = self._numbers[form] = len(self._frontiers)
            self._frontiers.append(ends)
        return number


def added(*several: Iterable[tuple[str, int]]) -> Counts:
    """The sum of counts, by action."""
    total: dict[str, int] = {}
    for counts in several:
        for action, number in counts:
            total[action] = total.get(action, 0) + number
    return _sorted(total)


def negative(counts: Iterable[tuple[str, int]]) -> Counts:
    """Counts to be taken away."""
    return tuple((action, -number) for action, number in counts)


def _sorted(counts: dict[str, int]) -> Counts:
    return tuple(sorted((action, number) for action, number in counts.items() if number))


def _hashable(params: Iterable[tuple[str, Json]]) -> Hashable:
    """Parameters as a key of the table. True and 1 are equal to Python, and are not the same parameter."""
    return tuple(
        (name, type(value), value if isinstance(value, (str, int)) else _ENCODE(value)) for name, value in params
    )


def last_events(behaviour: Behaviour, replay: KeyReplay, key: Json, last: int) -> tuple[list[Event], list[int]]:
    """The events of one key up to a number, and their numbers in the behaviour."""
    numbered = [
        (number, event) for number, event in enumerate(behaviour.events[:last], 1) if replay.key_of(event) == key
    ]
    return [event for _, event in numbered], [number for number, _ in numbered]
