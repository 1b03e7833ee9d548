"""The second judge, for what real logs need: partial orders, guarded and timed hidden steps, loss, starts midway, keys.

As in :mod:`tests.checker.judge` every path of a model written by hand is walked, and nothing of the product is used.
What is missing from a log is *filled* in every way: a filling says for each hole which steps its records were, and
each filling is judged by the core rules. Then the fillings' verdicts are put together as the rules say.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.checker.judge import Json, Model, State, Value, explains, speaks_of

Params = Mapping[str, Value]
Guard = Callable[[Params, Mapping[str, Json]], bool]
"""Whether a hidden step with these parameters may stand before an event: ``{"action", "params"}``."""

Label = tuple[str, tuple[tuple[str, Value], ...]]
"""An action with its parameters, sorted by name."""

Filling = tuple[tuple[Label, ...], ...]
"""For each loss the steps that its records were."""

Span = tuple[float, float]
"""The earliest and the latest time."""


@dataclass(frozen=True)
class Timed:
    """A hidden step lies at least ``least`` and at most ``most`` after the latest step of ``after``; nanoseconds."""

    after: str
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Rules:
    """How to judge. ``skew`` in nanoseconds."""

    hidden: frozenset[str] = frozenset()
    hidden_max: int | None = None
    when: Mapping[str, Guard] = field(default_factory=dict)
    timed: Mapping[str, Timed] = field(default_factory=dict)
    order: str = "total"
    skew: int = 0


@dataclass(frozen=True)
class Missing:
    """Records that are missing after all of the events ``after`` and before any of the events ``before`` (bit sets).

    ``count`` None: any number. ``event``: it is this one or nothing. ``actions``: what it may be; ``keys`` with
    ``param``: what it may be about.
    """

    reason: str
    after: int = 0
    before: int = 0
    count: int | None = None
    event: Mapping[str, Json] | None = None
    actions: frozenset[str] | None = None
    param: str | None = None
    keys: tuple[Value, ...] | None = None
    tail: int = 3
    """A tail may be of any length; the models are small enough for a few steps to show nearly all that comes of it."""

    def may_be(self, model: Model, action: str, params: Params, before: State, after: State) -> bool:
        if self.event is not None:
            return explains(model, dict(self.event), action, dict(params), before, after)
        if self.actions is not None and action not in self.actions:
            return False
        return self.keys is None or self.param is None or params.get(self.param) in self.keys

    @property
    def longest(self) -> int:
        if self.event is not None:
            return 1
        return self.tail if self.count is None else self.count


class Ruling(NamedTuple):
    """A verdict. ``reason`` is that of ``inconclusive``; ``invariants`` holds the least sets broken."""

    verdict: str
    at: int | None = None
    invariants: frozenset[frozenset[str]] = frozenset()
    hidden: int = 0
    reason: str | None = None

    @property
    def answer(self) -> tuple[str, int | None]:
        return self.verdict, self.at


REFUSED = Ruling("refused")
VACUOUS = Ruling("vacuous")
UNDECIDED = "inconclusive"


# --- order ------------------------------------------------------------------------------------------------------------


class Precedence(NamedTuple):
    """For each event a bit set of those that must come before it. ``dropped``: the times that lie in a cycle.

    ``tangled``: emitters' orders and causes alone lie in one, so that no order satisfies them.
    """

    needs: tuple[int, ...]
    dropped: tuple[tuple[int, int], ...] = ()
    tangled: bool = False


def precedence(events: Sequence[Mapping[str, Json]], order: str, skew: int = 0) -> Precedence:
    """What comes before what. Events of an emitter stand in the list as they happened, unless they have a ``seq``."""
    size = len(events)
    if order == "total":
        return Precedence(tuple((1 << place) - 1 for place in range(size)))
    strong = [
        (first, then)
        for first, then in itertools.permutations(range(size), 2)
        if own_order(events, first, then) or (order == "time" and causes(events[first], events[then]))
    ]
    known, tangled = closed(size, strong)
    dropped: list[tuple[int, int]] = []
    if order == "time" and not tangled:
        told = [pair for pair in itertools.permutations(range(size), 2) if surely_earlier(*pick(events, pair), skew)]
        every, _ = closed(size, [*strong, *told])
        dropped = [(first, then) for first, then in told if every[first] >> then & 1]
        known, _ = closed(size, [*strong, *(pair for pair in told if pair not in dropped)])
        own = [pair for pair in itertools.permutations(range(size), 2) if own_order(events, *pair)]
        dropped += [(first, then) for first, then in own if goes_back(*pick(events, (first, then)), skew)]
    return Precedence(tuple(known), tuple(dropped), tangled)


def pick(events: Sequence[Mapping[str, Json]], pair: tuple[int, int]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    return events[pair[0]], events[pair[1]]


def own_order(events: Sequence[Mapping[str, Json]], first: int, then: int) -> bool:
    if events[first]["emitter"] != events[then]["emitter"]:
        return False
    one, other = events[first].get("seq"), events[then].get("seq")
    return first < then if one is None or other is None else one < other


def causes(first: Mapping[str, Json], then: Mapping[str, Json]) -> bool:
    """Whether the second says that it came after the first: by number, or by a clock that has seen it."""
    emitter, number = first["emitter"], first.get("seq")
    if number is None:
        return False
    if any(other == emitter and number <= least for other, least in then.get("after", ())):
        return True
    clock: Mapping[str, int] = then.get("clock") or {}
    return bool(emitter != then["emitter"] and number <= clock.get(emitter, -1))


def surely_earlier(first: Mapping[str, Json], then: Mapping[str, Json], skew: int) -> bool:
    """Whether the first was over before the second began, whatever the two clocks say."""
    if first["emitter"] == then["emitter"] or first.get("time") is None or then.get("time") is None:
        return False
    return bool(ended(first) + skew < then["time"])


def goes_back(first: Mapping[str, Json], then: Mapping[str, Json], skew: int) -> bool:
    """Whether an emitter's clock cannot be right: what came later was over before what came first began."""
    return first.get("time") is not None and then.get("time") is not None and ended(then) + skew < first["time"]


def ended(event: Mapping[str, Json]) -> int:
    until = event.get("until")
    return int(event["time"] if until is None else until)


def closed(size: int, edges: Iterable[tuple[int, int]]) -> tuple[list[int], bool]:
    """For each event all that comes before it, and whether something comes before itself."""
    known = [0] * size
    for first, then in edges:
        known[then] |= 1 << first
    for middle in range(size):
        for then in range(size):
            if known[then] >> middle & 1:
                known[then] |= known[middle]
    return known, any(known[place] >> place & 1 for place in range(size))


# --- paths ------------------------------------------------------------------------------------------------------------


@dataclass
class Ends:
    """Where paths end: by level the states with what they broke and the fewest hidden steps on the way.

    ``fillings``: for each filling that explains all events whether some path of it is good.
    """

    levels: list[dict[tuple[State, frozenset[str]], int]]
    fillings: dict[Filling, bool] = field(default_factory=dict)

    def end(self, level: int, state: State, broken: frozenset[str], used: int, filling: Filling) -> None:
        known = self.levels[level].get((state, broken))
        if known is None or used < known:
            self.levels[level][state, broken] = used
        if level == len(self.levels) - 1:
            self.fillings[filling] = self.fillings.get(filling, False) or not broken

    def good(self, level: int) -> bool:
        return any(not broken for _, broken in self.levels[level])

    def ruling(self) -> Ruling:
        """The core rules, over the paths of all fillings."""
        size = len(self.levels) - 1
        at = next((level for level in range(size + 1) if not self.good(level)), None)
        if at is None:
            fewest = min(used for (_, broken), used in self.levels[size].items() if not broken)
            return Ruling("conforms", hidden=fewest)
        if not self.levels[at]:
            fewest = min(used for (_, broken), used in self.levels[at - 1].items() if not broken) if at else 0
            return Ruling("diverges", at, hidden=fewest)
        sets = {broken for _, broken in self.levels[at]}
        least = frozenset(one for one in sets if not any(other < one for other in sets))
        return Ruling("violates", at, least, min(self.levels[at].values()))

    def split(self) -> bool:
        """Whether one filling explains the events well, and another only with something broken."""
        return len(set(self.fillings.values())) > 1


class _Here(NamedTuple):
    """A place on a path: what is explained and filled, and what the rest depends on."""

    done: int
    filling: Filling
    gap: int
    last: int | None
    goal: int | None
    state: State
    broken: frozenset[str]
    pending: frozenset[Label]
    marks: frozenset[tuple[Label, Span]]


class Walk:
    """Every path that explains events, from some states."""

    def __init__(
        self,
        model: Model,
        events: Sequence[Mapping[str, Json]],
        rules: Rules,
        missing: Sequence[Missing] = (),
        starts: Iterable[State] | None = None,
        needs: Sequence[int] | None = None,
    ) -> None:
        self.model = model
        self.events = [dict(event) for event in events]
        self.rules = rules
        self.missing = missing
        self.needs = precedence(events, rules.order, rules.skew).needs if needs is None else needs
        self.ends = Ends([{} for _ in range(len(events) + 1)])
        nothing: Filling = ((),) * len(missing)
        first: list[tuple[_Here, int]] = []
        for state in model.initial if starts is None else starts:
            broken = model.broken(state)
            self.ends.end(0, state, broken, 0, nothing)
            first.append((_Here(0, nothing, 0, None, None, state, broken, frozenset(), frozenset()), 0))
        self.walk(first)

    def walk(self, first: Iterable[tuple[_Here, int]]) -> None:
        """Each place once, with the fewest hidden steps: those with fewer come first."""
        seen: set[_Here] = set()
        queue = deque(first)
        while queue:
            here, used = queue.popleft()
            if here in seen:
                continue
            seen.add(here)
            for further, hidden in self.further(here, used):
                if hidden:
                    queue.append((further, used + 1))
                else:
                    queue.appendleft((further, used))

    def open_events(self, here: _Here) -> list[int]:
        return [
            place
            for place, needed in enumerate(self.needs)
            if not here.done >> place & 1 and needed & here.done == needed
        ]

    def open_losses(self, here: _Here) -> list[int]:
        return [
            place
            for place, loss in enumerate(self.missing)
            if here.done & loss.after == loss.after
            and not here.done & loss.before
            and len(here.filling[place]) < loss.longest
        ]

    def further(self, here: _Here, used: int) -> Iterator[tuple[_Here, bool]]:
        """All that may follow, and whether it is one more hidden step."""
        if self.rules.timed and here.goal is None:
            # When a hidden step may have been depends on the event that it stands before.
            for place in self.open_events(here):
                yield here._replace(goal=place), False
            return
        goals = self.open_events(here) if here.goal is None else [here.goal]
        losses = self.open_losses(here) if here.goal is None else []
        for action, params, after in steps_of(self.model, here.state) if goals or losses else ():
            broken = here.broken | self.model.broken(after)
            label: Label = (action, tuple(sorted(params.items())))
            for place in goals:
                event = self.events[place]
                if explains(self.model, event, action, params, here.state, after) and self.allowed(here, event):
                    time = (event["time"], ended(event)) if event.get("time") is not None else None
                    done = here.done | 1 << place
                    marks = self.marked(here, action, params, time)
                    self.ends.end(done.bit_count(), after, broken, used, here.filling)
                    last = place if self.rules.timed else None
                    yield _Here(done, here.filling, 0, last, None, after, broken, frozenset(), marks), False
            for place in losses:
                told = {"action": action, "params": params}
                loss = self.missing[place]
                if loss.may_be(self.model, action, params, here.state, after) and self.allowed(here, told):
                    # Of what was in flight only whether it happened is open: all else that it says is known.
                    filled = (*here.filling[place], label if loss.event is None else (action, ()))
                    filling = (*here.filling[:place], filled, *here.filling[place + 1 :])
                    self.ends.end(here.done.bit_count(), after, broken, used, filling)
                    rest = here._replace(filling=filling, gap=0, state=after, broken=broken, pending=frozenset())
                    yield rest, False
            limit = self.rules.hidden_max
            if action in self.rules.hidden and (limit is None or here.gap < limit):
                hidden_time = self.hidden_time(here, action, params)
                if hidden_time is not None:
                    gap = here.gap if limit is None else here.gap + 1
                    pending = here.pending | {label} if action in self.rules.when else here.pending
                    marks = self.marked(here, action, params, hidden_time)
                    yield here._replace(gap=gap, state=after, broken=broken, pending=pending, marks=marks), True

    def allowed(self, here: _Here, event: Mapping[str, Json]) -> bool:
        """Whether the guards of the hidden steps since the last event let this one follow."""
        return all(self.rules.when[action](dict(params), event) for action, params in here.pending)

    # Times

    def marked(self, here: _Here, action: str, params: Params, time: Span | None) -> frozenset[tuple[Label, Span]]:
        """The latest time of each step that a bound counts from, after one more step."""
        marks = dict(here.marks)
        for name, timed in self.rules.timed.items():
            if timed.after == action:
                mark = name, self.shared(name, action, params)
                marks.pop(mark, None)
                if time is not None:
                    marks[mark] = time
        return frozenset(marks.items())

    def shared(self, name: str, other: str, params: Params) -> tuple[tuple[str, Value], ...]:
        both = set(self.model.parameters[name]) & set(self.model.parameters[other])
        return tuple(sorted((key, value) for key, value in params.items() if key in both))

    def hidden_time(self, here: _Here, action: str, params: Params) -> Span | None:
        """When a hidden step may have been: between its neighbours, and as its bounds say; None for never."""
        early, late = -math.inf, math.inf
        if here.last is not None and self.events[here.last].get("time") is not None:
            early = self.events[here.last]["time"] - self.rules.skew
        if here.goal is not None and self.events[here.goal].get("time") is not None:
            late = ended(self.events[here.goal]) + self.rules.skew
        timed = self.rules.timed.get(action)
        if timed is None:
            return early, late
        since = dict(here.marks).get((action, self.shared(action, timed.after, params)))
        if since is not None:
            early = max(early, since[0] + (timed.least or 0) if timed.least is not None else early)
            late = min(late, since[1] + timed.most if timed.most is not None else late)
        return (early, late) if early <= late else None


_steps: dict[tuple[int, State], list[tuple[str, dict[str, Value], State]]] = {}


def steps_of(model: Model, state: State) -> list[tuple[str, dict[str, Value], State]]:
    """The steps from a state: asked for again and again."""
    known = _steps.get((id(model), state))
    if known is None:
        if len(_steps) > 200_000:
            _steps.clear()
        known = _steps[id(model), state] = list(model.steps(state))
    return known


# --- verdicts ---------------------------------------------------------------------------------------------------------


def judge_rules(
    model: Model,
    events: Sequence[Mapping[str, Json]],
    rules: Rules,
    missing: Sequence[Missing] = (),
    *,
    starts: Iterable[State] | None = None,
    needs: Sequence[int] | None = None,
) -> Ruling:
    """One behaviour, from Init or from the given states."""
    known = [*events, *(loss.event for loss in missing if loss.event is not None)]
    if any(not speaks_of(model, dict(event)) for event in known):
        return REFUSED
    if not events:
        return VACUOUS
    ends = Walk(model, events, rules, missing, starts, needs).ends
    ruling = ends.ruling()
    if ruling.verdict == "conforms" and ends.split():
        return Ruling(UNDECIDED, reason=missing[0].reason if len({loss.reason for loss in missing}) == 1 else "several")
    return ruling


def reachable(model: Model) -> set[State]:
    """Every state to which a way leads on which nothing broke."""
    seen = {state for state in model.initial if not model.broken(state)}
    queue = deque(seen)
    while queue:
        for _, _, after in steps_of(model, queue.popleft()):
            if after not in seen and not model.broken(after):
                seen.add(after)
                queue.append(after)
    return seen


def judge_midway(
    model: Model,
    events: Sequence[Mapping[str, Json]],
    rules: Rules,
    starts: Iterable[State],
    missing: Sequence[Missing] = (),
    *,
    needs: Sequence[int] | None = None,
) -> Ruling:
    """A behaviour that could be open at its start: ``starts`` are the states that the explored model allows."""
    whole = judge_rules(model, events, rules, missing, needs=needs)
    if whole.verdict not in ("violates", "diverges"):
        return whole
    ruling = judge_rules(model, events, rules, missing, starts=starts, needs=needs)
    if ruling.verdict in ("violates", "diverges"):
        return ruling
    return Ruling(UNDECIDED, reason="open-at-start")


def could_be_open(
    events: Sequence[Mapping[str, Json]],
    began: int | None,
    within: int | None,
    needs: Sequence[int],
    opening: str = "Publish",
) -> bool:
    """Whether a key may have been under way when its log begins: unless what comes first is its opening, or is late."""
    first = [event for event, before in zip(events, needs, strict=True) if not before]
    if all(event["action"] == opening for event in first):
        return False
    times = [event.get("time") for event in first]
    if within is None or began is None:
        return True
    return any(time is None or time - began <= within for time in times)


# --- keys -------------------------------------------------------------------------------------------------------------


def keyed(model: Model, event: Mapping[str, Json], param: str) -> bool:
    return param in model.parameters[event["action"]]


def of_key(
    model: Model, events: Sequence[Mapping[str, Json]], param: str, key: Json
) -> tuple[list[int], list[Mapping[str, Json]]]:
    """The places and the events that concern a key: its own and the run's."""
    places = [
        place
        for place, event in enumerate(events)
        if not keyed(model, event, param) or event["params"].get(param) == key
    ]
    return places, [events[place] for place in places]


def restricted(needs: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    """What must come before what among some of the events; also by way of others."""
    return tuple(sum(1 << new for new, old in enumerate(places) if needs[place] >> old & 1) for place in places)


def kept(loss: Missing, needs: Sequence[int], places: Sequence[int]) -> Missing:
    """What is missing, among some of the events: after those that came before it, and before those that came after."""
    after = before = 0
    for new, old in enumerate(places):
        if loss.after >> old & 1 or any(loss.after >> p & 1 and needs[p] >> old & 1 for p in range(len(needs))):
            after |= 1 << new
        if loss.before >> old & 1 or needs[old] & loss.before:
            before |= 1 << new
    return replace(loss, after=after, before=before)


def unfinished(events: Sequence[Mapping[str, Json]], terminal: Iterable[str]) -> bool:
    """With ``complete``: the last terminal action is missing, or something that is none follows it."""
    return not events or events[-1]["action"] not in set(terminal)


WORST_FIRST = ("violates", "diverges", UNDECIDED, "vacuous", "conforms")


def worst(words: Iterable[str]) -> str:
    return min(words, key=WORST_FIRST.index, default="vacuous")
