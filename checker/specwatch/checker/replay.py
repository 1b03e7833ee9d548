"""The replay: is a behaviour one of the spec's? Two frontiers, one of paths that are good, one of paths that are
broken.

A *path* is an initial state, then for each event some hidden steps and one step of the event's action. It is *good*
while every state on it satisfies every invariant; once broken, always broken. *Level* n holds all paths that explain
exactly n events. At the first level without a good path, a broken one there makes the behaviour ``violates``, none
makes it ``diverges``; nothing later changes that. A good path at the last level: ``conforms``.
(``truth/README-traces.md``)

Under a partial order a level holds all *cuts* of n events: how many of each lane are explained. A total order is one
lane. Nodes with the same cut, state and broken invariants have the same future, so only the one with the fewest
hidden steps is kept; that is all the memory there is, whatever the number of paths.

Hidden steps may come before any event, an enabled one too: trying them only when the next event is not enabled is wrong
(14 of 300 judged cases). They never follow the last event.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .behaviour import Behaviour, Event, Json
from .bounds import BoundReached, Bounds
from .observe import candidates, matches
from .spec import Action, Spec, State, Successor
from .tla.errors import TlaError, TlaEvaluationError
from .tla.values import Value
from .verdict import Word

NOTHING_BROKEN: frozenset[str] = frozenset()
Cut = tuple[int, ...]
Key = tuple[Cut, State, frozenset[str]]


class EventError(TlaError):
    """An event speaks of what the spec lacks: a mistake in the binding, not a verdict. Carries the event's place in
    the log.
    """

    def __init__(self, message: str, event: Event, number: int, *, hint: str | None = None) -> None:
        source = event.source
        super().__init__(message, file=source.file if source else None, hint=hint)
        self.line = source.line if source else None
        self.event = event
        self.number = number


@dataclass(frozen=True, slots=True)
class Inserted:
    """A hidden step on a way: before which event (counted from 1), and what it was."""

    before: int
    action: Action
    params: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Where a path first broke an invariant: with event ``at`` itself, or in a hidden step before it. 0 is the
    start.
    """

    at: int
    hidden: Action | None
    invariants: frozenset[str]
    before: State | None
    after: State


@dataclass(slots=True)
class Way:
    """How a node was reached: hidden steps and, under a partial order, the lanes of its events. A linked list."""

    previous: Way | None
    step: Inserted | int

    @staticmethod
    def steps(way: Way | None) -> list[Inserted | int]:
        found: list[Inserted | int] = []
        while way is not None:
            found.append(way.step)
            way = way.previous
        return found[::-1]


@dataclass(slots=True)
class Node:
    """The end of some paths that are alike: what they explain, the spec's state, what they broke, and the fewest
    hidden steps.
    """

    cut: Cut
    state: State
    broken: frozenset[str] = NOTHING_BROKEN
    hidden: int = 0
    way: Way | None = None
    first_break: Break | None = None

    @property
    def key(self) -> Key:
        return self.cut, self.state, self.broken


@dataclass(frozen=True, slots=True)
class Rules:
    """What the binding and the command line say about the replay."""

    hidden: frozenset[Action] = frozenset()
    hidden_max: int | None = None
    keep_constraints: bool = False
    """Whether a step that a CONSTRAINT or ACTION_CONSTRAINT cuts off in model checking is none here either."""


@dataclass(slots=True)
class Outcome:
    """What the replay found out about one behaviour.

    ``nodes`` are those of the level that decided: good ones for conforms, broken ones for violates, and for diverges
    the good ones of the level before. ``bound`` says which bound ended the search.
    """

    word: Word
    at: int | None = None
    hidden: int = 0
    invariants: list[frozenset[str]] = field(default_factory=list)
    """The least sets of invariants broken on the paths of level ``at``."""
    nodes: list[Node] = field(default_factory=list)
    previous: list[Node] = field(default_factory=list)
    """The good nodes of the level before ``at``."""
    bound: str | None = None
    reached: int = 0
    """The last level that was computed."""
    good_states: int = 0
    broken_states: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """An event as the spec understands it: the actions that it may mean, by the parameters that it binds."""

    event: Event
    requests: tuple[tuple[frozenset[Action], dict[str, list[Json]]], ...]


def read_event(spec: Spec, event: Event, number: int) -> Reading:
    """Finds what an event means.

    :raises EventError: an action that Next lacks, or a parameter that the action lacks.
    """
    actions = spec.named(event.action)
    if not actions:
        near = difflib.get_close_matches(event.action, spec.names(), 3, 0.5)
        defined = (
            f" (it is defined, and no part of {spec.next_name})" if event.action in spec.program.definitions else ""
        )
        raise EventError(
            f"event {number} is {event.action}, and the spec has no such action{defined}",
            event,
            number,
            hint=f"did you mean {' or '.join(near)}?" if near else f"its actions are {', '.join(spec.names())}",
        )
    if event.expect:
        raise EventError(f"event {number} has `expect`, which is not supported yet", event, number)
    by_params: dict[tuple[tuple[str, str], ...], list[Action]] = {}
    for action in actions:
        meant = [(name, action.parameter(name)) for name in event.params]
        if all(parameter is not None for _, parameter in meant):
            by_params.setdefault(tuple((name, parameter or name) for name, parameter in meant), []).append(action)
    if not by_params:
        known = sorted({name for action in actions for name in (*action.parameters, *action.aliases)})
        lacking = [name for name in event.params if all(action.parameter(name) is None for action in actions)]
        # Each parameter may be known to some action of a group, and no action know them all.
        unknown = lacking[0] if lacking else ", ".join(event.params)
        near = difflib.get_close_matches(unknown, known, 2, 0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"its parameters are {', '.join(known) or 'none'}"
        raise EventError(
            f"event {number} gives {event.action} the parameter {unknown}, which it lacks", event, number, hint=hint
        )
    requests = []
    for pairs, group in by_params.items():
        bound: dict[str, list[Json]] = {}
        for name, parameter in pairs:
            bound.setdefault(parameter, []).append(event.params[name])
        requests.append((frozenset(group), bound))
    return Reading(event, tuple(requests))


def taken(spec: Spec, reading: Reading, state: State) -> Iterator[Successor]:
    """The steps from a state that an event may be: its actions, its parameters, what it observed before and after."""
    event = reading.event
    if event.before and not observed(spec, event.before, state):
        return
    for actions, bound in reading.requests:

        def choose(name: str, collection: Value, bound: dict[str, list[Json]] = bound) -> list[Value] | None:
            given = bound.get(name)
            if given is None:
                return None
            found = candidates(given[0], collection, spec.models)
            return (
                found
                if len(given) == 1
                else [value for value in found if all(matches(item, value) for item in given[1:])]
            )

        for successor in spec.successors(state, actions, choose):
            if not event.state or observed(spec, event.state, successor.state):
                yield successor


def observed(spec: Spec, seen: dict[str, Json], state: State) -> bool:
    """Whether a state is what an event observed. A variable that the spec lacks was never seen: FALSE."""
    values = spec.mapping(state)
    return all(name in values and matches(part, values[name]) for name, part in seen.items())


def replay(spec: Spec, behaviour: Behaviour, rules: Rules, bounds: Bounds) -> Outcome:
    """Replays one behaviour.

    :raises EventError: an event names an action or parameter that the spec lacks.
    :raises TlaEvaluationError: the spec has no value at some event; the message names the event.
    """
    return Replay(spec, behaviour, rules, bounds).run()


class Replay:
    """The replay of one behaviour. :meth:`run` is all of it; explanations look into its parts again."""

    def __init__(
        self, spec: Spec, behaviour: Behaviour, rules: Rules, bounds: Bounds, numbers: list[int] | None = None
    ) -> None:
        """``numbers``: where the events are a part of a larger behaviour, their numbers there."""
        self.spec = spec
        self.behaviour = behaviour
        self.numbers = numbers
        self.rules = rules
        self.bounds = bounds
        spec.evaluator.watch = bounds.watch
        self.total = behaviour.order == "total"
        self.size = len(behaviour.events)
        self._check_events(behaviour.events)
        self.lanes: list[list[Event]] = [behaviour.events]
        if not self.total:
            by_emitter: dict[str, list[Event]] = {}
            for event in behaviour.events:
                by_emitter.setdefault(event.emitter or "", []).append(event)
            # In the order of their names: the answer does not depend on the order of arrival.
            self.lanes = [by_emitter[name] for name in sorted(by_emitter)]
        self._readings: dict[int, tuple[int, Reading]] = {}

    def number(self, event: int) -> int:
        """How an event is spoken of, by its place among the events that are replayed."""
        return event if self.numbers is None or event == 0 else self.numbers[event - 1]

    def _check_events(self, events: list[Event]) -> None:
        """Refuses what the spec lacks before anything is replayed, be it after the step that decides."""
        known: set[tuple[str, ...]] = set()
        for number, event in enumerate(events, 1):
            form = (event.action, *event.params, "expect" if event.expect else "")
            if form not in known:
                read_event(self.spec, event, number)
                known.add(form)

    def reading(self, cut: Cut, lane: int) -> Reading | None:
        """What the next event of a lane means; None at its end."""
        index = cut[lane]
        if index >= len(self.lanes[lane]):
            return None
        known = self._readings.get(lane)
        if known is None or known[0] != index:
            known = self._readings[lane] = index, read_event(self.spec, self.lanes[lane][index], sum(cut) + 1)
        return known[1]

    def run(self) -> Outcome:
        if self.size == 0:
            return Outcome("vacuous")
        frontier: list[Node] = []
        level = 0
        try:
            frontier = self.start()
            if not any(not node.broken for node in frontier):
                return self.failed(0, frontier, [])
            while level < self.size:
                following = self.advance(frontier, level + 1)
                if not any(not node.broken for node in following):
                    return self.failed(level + 1, following, frontier)
                frontier = following
                level += 1
        except BoundReached as bound:
            good = [node for node in frontier if not node.broken]
            return Outcome("inconclusive", bound=str(bound), reached=level, nodes=good, hidden=_fewest(good))
        good = [node for node in frontier if not node.broken]
        return Outcome(
            "conforms",
            hidden=_fewest(good),
            nodes=good,
            reached=level,
            good_states=len({node.state for node in good}),
            broken_states=len({node.state for node in frontier if node.broken}),
        )

    def explained(self, cut: Cut) -> list[Event]:
        """The events that a cut explains, lane by lane."""
        return [event for lane, done in zip(self.lanes, cut, strict=True) for event in lane[:done]]

    def start(self) -> list[Node]:
        cut = (0,) * len(self.lanes)
        nodes: dict[Key, Node] = {}
        for state in self.spec.initial_states():
            self.bounds.check(len(nodes))
            broken = self.spec.broken(state)
            first = Break(0, None, broken, None, state) if broken else None
            node = Node(cut, state, broken, first_break=first)
            nodes.setdefault(node.key, node)
        return list(nodes.values())

    def failed(self, level: int, following: list[Node], frontier: list[Node]) -> Outcome:
        good = [node for node in frontier if not node.broken]
        if following:
            return Outcome(
                "violates",
                at=level,
                hidden=_fewest(following),
                invariants=least({node.broken for node in following}),
                nodes=following,
                previous=good,
                reached=level,
                broken_states=len({node.state for node in following}) if level == self.size else 0,
            )
        return Outcome("diverges", at=level, hidden=_fewest(good), nodes=good, previous=good, reached=level)

    def advance(self, frontier: list[Node], level: int) -> list[Node]:
        """The nodes of the next level."""
        following: dict[Key, Node] = {}
        by_cut: dict[Cut, list[Node]] = {}
        for node in frontier:
            by_cut.setdefault(node.cut, []).append(node)
        for cut, group in by_cut.items():
            ready = [
                (lane, reading) for lane in range(len(self.lanes)) if (reading := self.reading(cut, lane)) is not None
            ]
            for node in self.closure(group, level):
                for lane, reading in ready:
                    for successor in self.taken(reading, node.state, level):
                        self.bounds.check(len(following))
                        reached = self.after(node, successor, level, lane)
                        known = following.get(reached.key)
                        if known is None or reached.hidden < known.hidden:
                            following[reached.key] = reached
        return list(following.values())

    def closure(self, group: list[Node], level: int) -> Iterable[Node]:
        """The nodes of one cut with all that hidden steps reach from them before event ``level``.

        Layer by layer, so that ``hidden_max`` bounds the steps of this gap; a node is looked at again where it is
        reached with fewer hidden steps in all, though deeper in this gap.
        """
        best = {node.key: node for node in group}
        if not self.rules.hidden:
            return best.values()
        layer = group
        depth = 0
        while layer and (self.rules.hidden_max is None or depth < self.rules.hidden_max):
            depth += 1
            found: dict[Key, Node] = {}
            for node in layer:
                for successor in self.guarded(
                    node.state, self.spec.successors(node.state, self.rules.hidden), level, None
                ):
                    self.bounds.check(len(best) + len(found))
                    reached = self.after(node, successor, level, None)
                    known = found.get(reached.key) or best.get(reached.key)
                    if known is None or reached.hidden < known.hidden:
                        found[reached.key] = reached
                    elif reached.hidden == known.hidden and known.key in best and reached.key not in found:
                        # As few hidden steps, and later: nearer to what needs them, which reads better.
                        best[reached.key] = reached
            best.update(found)
            layer = list(found.values())
        return best.values()

    def after(self, node: Node, successor: Successor, level: int, lane: int | None) -> Node:
        """The node that a step leads to: of the event of a lane, or hidden (``lane`` None)."""
        state = successor.state
        broken = self.spec.broken(state)
        first = node.first_break
        if first is None and broken:
            first = Break(level, successor.action if lane is None else None, broken, node.state, state)
        if lane is None:
            way = Way(node.way, Inserted(level, successor.action, successor.params))
            return Node(node.cut, state, node.broken | broken, node.hidden + 1, way, first)
        cut = (*node.cut[:lane], node.cut[lane] + 1, *node.cut[lane + 1 :])
        way_ = node.way if self.total else Way(node.way, lane)
        return Node(cut, state, node.broken | broken, node.hidden, way_, first)

    def taken(self, reading: Reading, state: State, level: int) -> Iterator[Successor]:
        return self.guarded(state, taken(self.spec, reading, state), level, reading.event)

    def guarded(self, state: State, steps: Iterator[Successor], level: int, event: Event | None) -> Iterator[Successor]:
        """Steps within the constraints, where these are kept; names the event at which the spec has no value."""
        try:
            for step in steps:
                if not self.rules.keep_constraints or (
                    self.spec.in_constraints(step.state) and self.spec.in_action_constraints(state, step.state)
                ):
                    yield step
        except TlaEvaluationError as error:
            what = f"event {level}, {event.action}" if event is not None else f"a hidden step before event {level}"
            source = (
                f" ({event.source.file}:{event.source.line})" if event is not None and event.source is not None else ""
            )
            raise TlaEvaluationError(
                f"{error.message}, in {what}{source}", error.span, hint=error.hint, values=error.values
            ) from None


def _fewest(nodes: Iterable[Node]) -> int:
    return min((node.hidden for node in nodes), default=0)


def least(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets that no other one is a part of, in a fixed order."""
    found = list(sets)
    return sorted((one for one in found if not any(other < one for other in found)), key=sorted)
