"""Random walks of the models, told as events, and the damage that is done to them.

A walk is drawn through a model that is written by hand; its events give some of the parameters and of the states, and
steps of hidden actions may be left out. Then one event is dropped, doubled, swapped, altered …
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from tests.checker.judge import Json, Model, State, Step, to_json
from tests.checker.models import MODELS

from specwatch.checker.behaviour import Order

FINITE = {
    "VisQueue": ("VisTimeout", "Ack", "Skip"),
    "Counter": ("Tick", "Leap", "ReadAtLeast"),
    "TokenBucket": ("Refill", "RefillAll", "Deny"),
    "BoundedBuffer": ("Drop", "Peek"),
    "LeaseLock": ("Expire", "Release", "Acquire"),
    "Conn": ("Lose", "Established", "Accept", "CloseAck"),
    "CeleryETA": ("VisTimeoutExpired", "AckTask", "PickupTask", "AckWithoutExecute"),
    "Shelf": ("Publish", "Pickup", "Timeout", "Ack", "Undo", "Execute"),
    "Post": ("Publish", "Pickup", "Timeout", "Ack", "Execute", "Stop", "Boot"),
    "Twins": ("Up", "Down", "Swap", "Toggle", "Jump"),
}
"""Actions that lead to few states however often they are inserted: these may be hidden without ``hidden_max``."""

BRANCHING = {"Put", "Get", "Write"}
"""Actions that lead to another state by each parameter, again and again: hidden, they cost minutes a case."""


fixed = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # seeds do not shrink
    suppress_health_check=list(HealthCheck),
)
every_model = pytest.mark.parametrize(("name", "config"), MODELS, ids=[".".join(key) for key in MODELS])
seeds = st.randoms(use_true_random=True)


@dataclass(frozen=True)
class Case:
    """What both judges are given. ``sound``: a walk as it was, on which no invariant broke."""

    events: list[dict[str, Json]]
    hidden: tuple[str, ...]
    hidden_max: int | None
    order: Order
    sound: bool = False
    skew: int = 0


# --- drawing --------------------------------------------------------------------------------------------------------


def interesting_walk(draw: Random, name: str, config: str, order: Order) -> Case:
    """A walk; three out of four break an invariant, or leave a step out, or both, where the model can."""
    wants_break, wants_hidden = draw.random() < 0.5, draw.random() < 0.5
    for _ in range(30):
        case, unlogged = walk(draw, name, config, order)
        if case.events and not (wants_break and case.sound) and not (wants_hidden and not unlogged):
            break
    return case


def walk(draw: Random, name: str, config: str, order: Order) -> tuple[Case, int]:
    """A walk of the model, as some events tell it, and how many of its steps they do not tell."""
    model = MODELS[name, config]
    # A plain log gives all parameters and no observation: what may be replayed key by key.
    plain = draw.random() < 0.3
    hidden_max = None if plain else draw.choice([0, 1, 1, 2, 2, 3, None])
    hidable = sorted(model.parameters.keys() - BRANCHING) if hidden_max is not None else FINITE[name]
    hidden = tuple(draw.sample(hidable, draw.choice([0, 1, 1, 2])))
    emitters = draw.choice(["pq", "pqr"])
    state = draw.choice(model.initial)
    sound = not model.broken(state)
    events: list[dict[str, Json]] = []
    unlogged = gap = 0
    longest = draw.randint(2, 7 if order == "total" else 4)
    while len(events) < longest:
        step = draw_step(draw, model, state)
        if step is None or gap > 9:
            break
        action, _, after = step
        sound = sound and not model.broken(after)
        if action in hidden and (hidden_max is None or gap < hidden_max) and draw.random() < 0.8:
            gap += 1
        else:
            events.append(draw_event(draw, model, step, state, plain))
            if order == "emitter":
                events[-1]["emitter"] = draw.choice(emitters)
            unlogged, gap = unlogged + gap, 0
        state = after
    return Case(numbered(events), hidden, hidden_max, order, sound), unlogged


def draw_step(draw: Random, model: Model, state: State) -> Step | None:
    """A step from a state: first which action, so that one with many parameters does not crowd out the others."""
    steps = list(model.steps(state))
    if not steps:
        return None
    action = draw.choice(sorted({action for action, _, _ in steps}))
    # A set has no order of its own, and the draw must not depend on one.
    own = [step for step in steps if step[0] == action]
    return draw.choice(sorted(own, key=lambda step: repr({name: to_json(step[1][name]) for name in sorted(step[1])})))


def draw_event(draw: Random, model: Model, step: Step, before: State, plain: bool) -> dict[str, Json]:
    """The event of a step: some of its parameters, and sometimes a variable that was seen before or after it."""
    action, params, after = step
    groups = [group for group, actions in model.groups.items() if action in actions]
    event: dict[str, Json] = {"action": draw.choice([action] * 5 + groups)}
    event["params"] = {
        name: partly(draw, to_json(value)) for name, value in params.items() if plain or draw.random() < 0.7
    }
    for field, state in (("before", before), ("state", after)):
        if not plain and draw.random() < 0.2:
            variable = draw.randrange(len(state))
            event[field] = {model.variables[variable]: partly(draw, to_json(state[variable]))}
    return event


def partly(draw: Random, seen: Json) -> Json:
    """Of a record or function perhaps one key only; anything else whole."""
    if isinstance(seen, dict) and not any(tag in seen for tag in ("#set", "#map")) and draw.random() < 0.5:
        key = draw.choice(sorted(seen))
        return {key: seen[key]}
    return seen


def numbered(events: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The events with each emitter's own numbers, as they stand."""
    last: dict[str, int] = {}
    for event in events:
        if "emitter" in event:
            event["seq"] = last[event["emitter"]] = last.get(event["emitter"], 0) + 1
        if "clock" in event:
            event["clock"][event["emitter"]] = event["seq"]
    return events


# --- damaging -------------------------------------------------------------------------------------------------------

WRONG: list[Json] = [
    -1,
    0,
    1,
    2,
    3,
    9,
    "t1",
    "t2",
    "w1",
    "a",
    "x",
    "none",
    True,
    [1],
    {"#set": []},
    {"n": 1},
    1.5,
    None,
]
OBSERVED = ("state", "before")
Damage = Callable[[Random, list[dict[str, Json]], Model, int], None]


def drop(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    del events[at]


def double(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    events.insert(at, copy.deepcopy(events[at]))


def swap(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    other = (at + 1) % len(events)
    events[at], events[other] = events[other], events[at]


def alter_parameter(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    """Another value for a parameter that this event gives or could give; now and then for one that its action lacks."""
    event = events[at]
    known = [name for action in model.meant(event["action"]) for name in model.parameters[action]]
    name = draw.choice(known) if known and draw.random() < 0.95 else "lacking"
    event["params"][name] = draw.choice(WRONG)


def alter_observation(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    """A variable is seen with some value, or as it was elsewhere on the way."""
    elsewhere = [event[other] for event in events for other in OBSERVED if other in event]
    wrong = {draw.choice([*model.variables, "lacking"]): draw.choice(WRONG)}
    events[at][draw.choice(OBSERVED)] = copy.deepcopy(draw.choice([wrong, *elsewhere]))


def rename(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    """Another action, and mostly without the parameters that it lacks."""
    event = events[at]
    event["action"] = draw.choice([*sorted(model.parameters), *model.groups])
    if draw.random() < 0.9:
        known = {name for action in model.meant(event["action"]) for name in model.parameters[action]}
        event["params"] = {name: value for name, value in event["params"].items() if name in known}


def unbind(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    events[at]["params"] = {}


def cut_tail(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    del events[at + 1 :]


def another_emitter(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    if "emitter" in events[at]:
        events[at]["emitter"] = draw.choice("pqr")


DAMAGES: list[Damage] = [
    drop,
    double,
    swap,
    alter_parameter,
    alter_observation,
    rename,
    unbind,
    cut_tail,
    another_emitter,
]


def damaged(draw: Random, case: Case, model: Model, damages: Sequence[Damage] = DAMAGES) -> Case:
    """The case with one thing wrong, and sometimes another bound."""
    events = copy.deepcopy(case.events)
    draw.choice(damages)(draw, events, model, draw.randrange(len(events)))
    hidden_max = case.hidden_max
    if hidden_max is not None and draw.random() < 0.3:
        hidden_max = draw.randint(0, 3)
    return replace(case, events=numbered(events), hidden_max=hidden_max, sound=False)


def retime(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    """The record has another time, or another end."""
    event = events[at]
    if "until" in event and draw.random() < 0.5:
        event["until"] = event.get("time", 0) + draw.randint(0, 30)
    else:
        event["time"] = draw.randint(0, 40)
        event.pop("until", None)


def untime(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    events[at].pop("until", None)
    events[at].pop("time", None)


def relate(draw: Random, events: list[dict[str, Json]], model: Model, at: int) -> None:
    """The event says that it came after some other, or no longer says so."""
    others = [event for event in events if event.get("emitter") != events[at].get("emitter")]
    events[at].pop("after", None)
    if others:
        other = draw.choice(others)
        if "clock" in events[at]:
            events[at]["clock"][other["emitter"]] = other["seq"]
        else:
            events[at]["after"] = [[other["emitter"], other["seq"]]]


DAMAGES_IN_TIME: list[Damage] = [*DAMAGES, retime, retime, retime, untime, relate]


# --- times ------------------------------------------------------------------------------------------------------------


def with_times(draw: Random, case: Case, skew: int) -> Case:
    """The case with the time of each event as its emitter's clock shows it, and with some of what caused it."""
    offsets = {emitter: draw.randint(-skew, 0) for emitter in "pqr"}
    clocks: dict[str, dict[str, int]] | None = {} if draw.random() < 0.3 else None
    events = copy.deepcopy(case.events)
    now = 20
    for place, event in enumerate(events):
        now += draw.choice([0, 0, 1, 2, 5, 9])
        event["time"] = now + offsets.get(event.get("emitter", ""), 0)
        if draw.random() < 0.2:
            event["until"] = event["time"] + draw.choice([0, 1, 4, 9])
            event["time"] -= draw.choice([0, 1, 4, 9])
        others = [other for other in events[:place] if other.get("emitter") != event.get("emitter")]
        cause = draw.choice(others) if others and draw.random() < 0.3 else None
        if clocks is not None:
            seen = [clocks.get(event["emitter"], {}), cause["clock"] if cause else {}, {event["emitter"]: event["seq"]}]
            clock = {name: max(one.get(name, 0) for one in seen) for one in seen for name in one}
            event["clock"] = clocks[event["emitter"]] = clock
        elif cause is not None:
            event["after"] = [[cause["emitter"], cause["seq"]]]
    return replace(case, events=events, skew=skew)
