"""A second judge of behaviours, to hold the replay against: plain, slow, and without a line of the product.

It walks every path of a model that is written by hand in Python (:mod:`tests.checker.models`), and reads the answer off
the paths' ends as ``tests/corpus/truth/README-traces.md`` defines it. Nothing is pruned; with ``remember`` a point that
was reached before with no more hidden steps is not walked again, since all that follows from it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = Any
Value = Any
"""``int``, ``bool``, ``str``, a tuple (a sequence), a frozenset (a set), :class:`Fn` (a record or other function)."""

State = Any
"""A tuple with a value for each variable, in the order of the model's ``variables``."""

Step = tuple[str, dict[str, Value], State]
"""The action, its parameters, and the state that it leads to."""


@dataclass(frozen=True)
class Fn:
    """A function or record: its arguments with their values."""

    pairs: frozenset[tuple[Value, Value]]

    @staticmethod
    def of(table: Mapping[Any, Value]) -> Fn:
        return Fn(frozenset(table.items()))

    def __getitem__(self, argument: Value) -> Value:
        return self.table()[argument]

    def table(self) -> dict[Value, Value]:
        return dict(self.pairs)

    def but(self, argument: Value, value: Value) -> Fn:
        """``[f EXCEPT ![argument] = value]``"""
        return Fn.of({**self.table(), argument: value})


@dataclass(frozen=True)
class Model:
    """A spec with a config, by hand. ``groups`` names disjunctions of actions that an event may speak of."""

    spec: str
    config: str
    variables: tuple[str, ...]
    initial: list[State]
    steps: Callable[[State], Iterable[Step]]
    invariants: dict[str, Callable[[State], bool]]
    parameters: dict[str, tuple[str, ...]]
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def broken(self, state: State) -> frozenset[str]:
        return frozenset(name for name, holds in self.invariants.items() if not holds(state))

    def meant(self, name: str) -> tuple[str, ...]:
        """The actions that a name means."""
        return self.groups.get(name, (name,) if name in self.parameters else ())


class Judgement(NamedTuple):
    """The columns of the truth table. ``invariants`` holds the least sets; the states are those at the last level."""

    verdict: str
    at: int | None = None
    invariants: frozenset[frozenset[str]] = frozenset()
    hidden: int = 0
    good_states: int = 0
    broken_states: int = 0


REFUSED = Judgement("refused")
"""An event speaks of an action or a parameter that the spec lacks."""


def judge(
    model: Model,
    events: list[dict[str, Json]],
    hidden: Iterable[str] = (),
    hidden_max: int | None = None,
    order: str = "total",
    *,
    remember: bool = True,
) -> Judgement:
    """Judges native events by walking every path. Without ``remember`` it needs a ``hidden_max``."""
    hidden = frozenset(hidden)
    if any(not speaks_of(model, event) for event in events):
        return REFUSED
    lanes = _lanes(events, order)
    size = len(events)
    ends: list[dict[tuple[State, frozenset[str]], int]] = [{} for _ in range(size + 1)]
    fewest: dict[tuple[tuple[int, ...], int, State, frozenset[str]], int] = {}

    def end(level: int, state: State, broken: frozenset[str], used: int) -> None:
        """A path that explains ``level`` events, the last one just now."""
        known = ends[level].get((state, broken))
        if known is None or used < known:
            ends[level][state, broken] = used

    def walk(cut: tuple[int, ...], gap: int, state: State, broken: frozenset[str], used: int) -> None:
        """Everything that may follow: ``gap`` hidden steps were made since the last event, ``used`` in all."""
        if sum(cut) == size:
            return
        here = (cut, 0 if hidden_max is None else gap, state, broken)
        if remember:
            if here in fewest and fewest[here] <= used:
                return
            fewest[here] = used
        for action, params, after in model.steps(state):
            broken_after = broken | model.broken(after)
            for lane, place in enumerate(cut):
                if place < len(lanes[lane]) and explains(model, lanes[lane][place], action, params, state, after):
                    further = (*cut[:lane], place + 1, *cut[lane + 1 :])
                    end(sum(further), after, broken_after, used)
                    walk(further, 0, after, broken_after, used)
            if action in hidden and (hidden_max is None or gap < hidden_max):
                walk(cut, gap + 1, after, broken_after, used + 1)

    for state in model.initial:
        broken = model.broken(state)
        end(0, state, broken, 0)
        walk((0,) * len(lanes), 0, state, broken, 0)
    return _read_off(ends)


def _read_off(ends: list[dict[tuple[State, frozenset[str]], int]]) -> Judgement:
    good = [{state: used for (state, broken), used in level.items() if not broken} for level in ends]
    good_states = len(good[-1])
    broken_states = len({state for state, broken in ends[-1] if broken})
    if len(ends) == 1:
        return Judgement("vacuous", good_states=good_states, broken_states=broken_states)
    if good[-1]:
        return Judgement("conforms", None, frozenset(), min(good[-1].values()), good_states, broken_states)
    at = next(level for level in range(len(ends)) if not good[level])
    if not ends[at]:
        return Judgement("diverges", at, frozenset(), min(good[at - 1].values()), 0, 0)
    sets = {broken for _, broken in ends[at]}
    least = frozenset(one for one in sets if not any(other < one for other in sets))
    return Judgement("violates", at, least, min(ends[at].values()), 0, broken_states)


def _lanes(events: list[dict[str, Json]], order: str) -> list[list[dict[str, Json]]]:
    if order == "total":
        return [events]
    emitters = {event["emitter"] for event in events}
    own = [[event for event in events if event["emitter"] == emitter] for emitter in emitters]
    return [sorted(lane, key=lambda event: event["seq"]) for lane in own]


def speaks_of(model: Model, event: dict[str, Json]) -> bool:
    """Whether the spec has such an action with such parameters."""
    given = event.get("params", {})
    return any(all(name in model.parameters[action] for name in given) for action in model.meant(event["action"]))


def explains(
    model: Model, event: dict[str, Json], action: str, params: dict[str, Value], before: State, after: State
) -> bool:
    """Whether an event may have been this step."""
    given = event.get("params", {})
    return (
        action in model.meant(event["action"])
        and all(name in params and means(seen, params[name]) for name, seen in given.items())
        and saw(model, event.get("before", {}), before)
        and saw(model, event.get("state", {}), after)
    )


def saw(model: Model, observed: dict[str, Json], state: State) -> bool:
    """Whether a state is what was observed."""
    values = dict(zip(model.variables, state, strict=True))
    return all(name in values and means(seen, values[name]) for name, seen in observed.items())


def means(seen: Json, value: Value) -> bool:
    """Whether a value is what was seen: an object names some keys, everything else is compared whole."""
    if isinstance(seen, dict) and not _tag(seen):
        table = value.table() if isinstance(value, Fn) else {}
        return all(name in table and means(inner, table[name]) for name, inner in seen.items())
    return _seen_form(seen) == form(value)


def form(value: Value) -> tuple[str, Any]:
    """A value in a form in which TRUE is not 1, and a function on 1..n is a sequence."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int):
        return "number", value
    if isinstance(value, str):
        return "string", value
    if isinstance(value, tuple):
        return "sequence", tuple(form(item) for item in value)
    if isinstance(value, frozenset):
        return "set", frozenset(form(item) for item in value)
    assert isinstance(value, Fn), value
    return _function_form([(form(argument), form(result)) for argument, result in value.pairs])


def _function_form(pairs: list[tuple[Any, Any]]) -> tuple[str, Any]:
    table = dict(pairs)
    numbers = [("number", n) for n in range(1, len(table) + 1)]
    if all(number in table for number in numbers):
        return "sequence", tuple(table[number] for number in numbers)
    return "function", frozenset(table.items())


def _seen_form(seen: Json) -> tuple[str, Any]:
    if isinstance(seen, list):
        return "sequence", tuple(_seen_form(item) for item in seen)
    if isinstance(seen, dict):
        tag = _tag(seen)
        if tag == "#set":
            return "set", frozenset(_seen_form(item) for item in seen[tag])
        if tag == "#map":
            return _function_form([(_seen_form(argument), _seen_form(result)) for argument, result in seen[tag]])
        return _function_form([(("string", name), _seen_form(inner)) for name, inner in seen.items()])
    return form(seen) if isinstance(seen, int | str) else ("nothing", repr(seen))


def _tag(seen: dict[str, Json]) -> str | None:
    return next((tag for tag in ("#set", "#map") if tag in seen), None)


def to_json(value: Value) -> Json:
    """A whole value as an event gives it."""
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, frozenset):
        return {"#set": sorted((to_json(item) for item in value), key=repr)}
    if isinstance(value, Fn):
        table = value.table()
        if all(isinstance(argument, str) for argument in table):
            return {name: to_json(table[name]) for name in sorted(table)}
        return {"#map": [[to_json(argument), to_json(table[argument])] for argument in sorted(table)]}
    return value
