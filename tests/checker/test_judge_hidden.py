"""Hidden steps against the other judge: guards over the next event, bounds in time, ``lossy`` and ``strict``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given, settings
from tests.checker.judge import Json, Model, means
from tests.checker.judge_rules import Guard, Params, Rules, Ruling, Timed, judge_rules, precedence
from tests.checker.models import MODELS
from tests.checker.product import asked, ruling, spec_of
from tests.checker.walks import DAMAGES_IN_TIME, Case, damaged, fixed, interesting_walk, seeds, with_times

from specwatch.checker.api import Options
from specwatch.checker.behaviour import Order
from specwatch.checker.timed import Timed as ProductTimed

WALKS = 3
MUTANTS = 7
WALKS_NIGHTLY = 150


def same(name: str) -> Guard:
    """The next event says the same of a parameter."""
    return lambda own, event: name in event["params"] and means(event["params"][name], own[name])


def says(name: str, *values: Json) -> Guard:
    return lambda own, event: event["params"].get(name) in values


def other(name: str) -> Guard:
    return lambda own, event: name in event["params"] and not means(event["params"][name], own[name])


GUARDS: dict[str, tuple[str, str, str, Guard]] = {
    "VisQueue": ("VisTimeout", "t", "t = $t", same("t")),
    "Shelf": ("Timeout", "t", "t = $t", same("t")),
    "Post": ("Timeout", "t", "t # $t", other("t")),
    "CeleryETA": ("VisTimeoutExpired", "id", "id = $id", same("id")),
    "LeaseLock": ("Expire", "c", '$c = "a"', says("c", "a")),
    "TokenBucket": ("Refill", "k", "$k \\in {2, 3}", says("k", 2, 3)),
    "Counter": ("Tick", "v", "$v = 3", says("v", 3)),
    "Twins": ("Up", "x", "x = $x", same("x")),
}
"""A hidden action, the parameter that its guard asks the next event for, the guard, and the same in Python."""

TIMED: dict[str, list[tuple[str, str]]] = {
    "VisQueue": [("VisTimeout", "Pickup")],
    "Shelf": [("Timeout", "Pickup"), ("Undo", "Execute")],
    "Post": [("Timeout", "Pickup")],
    "CeleryETA": [("VisTimeoutExpired", "PickupTask")],
    "LeaseLock": [("Expire", "Acquire")],
    "TokenBucket": [("Refill", "Take"), ("RefillAll", "Refill")],
    "Counter": [("Leap", "Tick")],
    "Conn": [("Lose", "Send")],
    "BoundedBuffer": [("Drop", "Put")],
    "Twins": [("Down", "Up"), ("Toggle", "Down")],
}
"""Hidden actions of each spec, and the action from which their times count. Some of those may be hidden too."""


@dataclass(frozen=True)
class Hiding:
    """A case, and what is said of its hidden actions."""

    case: Case
    guarded: bool = False
    timed: tuple[tuple[str, Timed], ...] = ()
    lossy: tuple[str, ...] = ()
    strict: bool = False


def guarded(draw: Random, name: str, config: str) -> Hiding:
    """A walk in which the guarded action is hidden, and perhaps others."""
    action = GUARDS[name][0]
    order: Order = draw.choice(["total", "total", "emitter"])
    for _ in range(40):
        case = interesting_walk(draw, name, config, order)
        if action in case.hidden and tells(name, case):
            break
    case = replace(case, hidden=tuple(sorted({*case.hidden, action})))
    lossy = tuple(one for one in sorted(case.hidden) if draw.random() < 0.4)
    return Hiding(case, True, lossy=lossy, strict=draw.random() < 0.1)


def timed(draw: Random, name: str, config: str) -> Hiding:
    """A walk with times, in which an action with a bound is hidden."""
    bounds = draw.sample(TIMED[name], draw.randint(1, len(TIMED[name])))
    names = {action for action, _ in bounds}
    for _ in range(20):
        case = interesting_walk(draw, name, config, "emitter")
        if names & set(case.hidden):
            break
    case = with_times(draw, replace(case, hidden=tuple(sorted({*case.hidden, *names}))), draw.choice([0, 1, 4]))
    if name == "Twins" and case.hidden_max is None:
        case = replace(case, hidden_max=2)  # all of its states, each with the times of three actions, are too many
    chosen = tuple(
        (action, Timed(after, draw.choice([None, 0, 3, 8, 15]), draw.choice([None, None, 5, 12])))
        for action, after in bounds
    )
    if draw.random() < 0.7:
        # One log: its lines tell the order, and no two emitters' clocks differ in it.
        case = replace(case, order="total")
    else:
        case = replace(case, order="time")
    return Hiding(case, timed=chosen)


def rules_of(name: str, hiding: Hiding) -> Rules:
    case = hiding.case
    action, _, _, guard = GUARDS.get(name, ("", "", "", None))
    return Rules(
        frozenset() if hiding.strict else frozenset(case.hidden),
        case.hidden_max,
        {action: guard} if hiding.guarded and guard is not None else {},
        dict(hiding.timed),
        case.order,
        case.skew,
    )


def options_of(name: str, hiding: Hiding) -> Options:
    case = hiding.case
    return Options(
        hidden=tuple(sorted(set(case.hidden) - set(hiding.lossy))),
        lossy=hiding.lossy,
        hidden_max=case.hidden_max,
        when=((GUARDS[name][0], GUARDS[name][2]),) if hiding.guarded else (),
        timed=tuple(
            ProductTimed(action=action, after=one.after, min=one.least, max=one.most) for action, one in hiding.timed
        ),
        skew=case.skew,
        strict=hiding.strict,
    )


def tells(name: str, case: Case) -> bool:
    """Whether each event says what the guard asks for, in a value that it can be compared with."""
    field = GUARDS[name][1]
    kind = int if field in ("id", "k", "v") else str
    return all(type(event["params"].get(field)) is kind for event in case.events)


def agree(name: str, config: str, hiding: Hiding) -> Ruling | None:
    case = hiding.case
    before = precedence(case.events, case.order, case.skew)
    if any("lacking" in event["params"] for event in case.events):
        return None  # such events have tests of their own
    if before.tangled or before.dropped or (hiding.guarded and not tells(name, case)):
        return None
    expected = judge_rules(MODELS[name, config], case.events, rules_of(name, hiding))
    verdict = asked(spec_of(name, config), case.events, options_of(name, hiding), case.order, skew=case.skew)
    assert ruling(verdict) == expected, f"{name}.{config}: {hiding}"
    return expected


def damage(draw: Random, name: str, config: str, hiding: Hiding) -> Hiding:
    return replace(hiding, case=damaged(draw, hiding.case, MODELS[name, config], DAMAGES_IN_TIME))


def check(draw: Random, name: str, config: str, hiding: Hiding) -> None:
    agree(name, config, hiding)
    for _ in range(MUTANTS if hiding.case.events else 0):
        agree(name, config, damage(draw, name, config, hiding))


def models_of(names: Mapping[str, object]) -> list[tuple[str, str]]:
    return [key for key in MODELS if key[0] in names]


every_guarded = pytest.mark.parametrize(("name", "config"), models_of(GUARDS), ids=".".join)
every_timed = pytest.mark.parametrize(("name", "config"), models_of(TIMED), ids=".".join)


@every_guarded
@settings(fixed, max_examples=WALKS)
@given(draw=seeds)
def test_a_guarded_hidden_step_stands_only_before_an_event_that_its_guard_allows(
    name: str, config: str, draw: Random
) -> None:
    check(draw, name, config, guarded(draw, name, config))


@every_timed
@settings(fixed, max_examples=WALKS)
@given(draw=seeds)
def test_a_timed_hidden_step_stands_only_where_its_bounds_allow(name: str, config: str, draw: Random) -> None:
    check(draw, name, config, timed(draw, name, config))


@pytest.mark.nightly
@every_guarded
@settings(fixed, derandomize=False, max_examples=WALKS_NIGHTLY)
@given(draw=seeds)
def test_many_guarded_hidden_steps(name: str, config: str, draw: Random) -> None:
    check(draw, name, config, guarded(draw, name, config))


@pytest.mark.nightly
@every_timed
@settings(fixed, derandomize=False, max_examples=WALKS_NIGHTLY)
@given(draw=seeds)
def test_many_timed_hidden_steps(name: str, config: str, draw: Random) -> None:
    check(draw, name, config, timed(draw, name, config))


# --- the judge itself -------------------------------------------------------------------------------------------------

QUEUE = MODELS["VisQueue", "late"]
SECOND = 1_000_000_000


def pickup(at: int | None, worker: str, task: str = "t1") -> dict[str, Json]:
    time = {} if at is None else {"time": at}
    return {"action": "Pickup", "params": {"w": worker, "t": task}, **time}


def publish(at: int, task: str = "t1") -> dict[str, Json]:
    return {"action": "Publish", "params": {"t": task}, "time": at}


def redelivered(model: Model, again: int | None, bound: Timed, skew: int = 0) -> Ruling:
    events = [publish(0), pickup(10, "w1"), pickup(again, "w2")]
    return judge_rules(model, events, Rules(frozenset({"VisTimeout"}), timed={"VisTimeout": bound}, skew=skew))


def test_a_redelivery_before_the_bound_diverges() -> None:
    assert redelivered(QUEUE, 19, Timed("Pickup", 10)).answer == ("diverges", 3)
    assert redelivered(QUEUE, 20, Timed("Pickup", 10)).verdict == "conforms"


def test_skew_widens_what_lies_between_two_events() -> None:
    assert redelivered(QUEUE, 19, Timed("Pickup", 10), skew=1).verdict == "conforms"


def test_a_bound_without_times_is_not_applied() -> None:
    assert redelivered(QUEUE, None, Timed("Pickup", 10)).verdict == "conforms"


def test_a_hidden_step_is_not_too_late() -> None:
    assert redelivered(QUEUE, 30, Timed("Pickup", None, 5)).verdict == "conforms"
    events = [publish(0), pickup(10, "w1"), publish(30, "t2"), pickup(31, "w2")]
    rules = Rules(frozenset({"VisTimeout"}), 0, timed={"VisTimeout": Timed("Pickup", None, 5)})
    assert judge_rules(QUEUE, events, rules).answer == ("diverges", 4)


def test_a_guard_looks_at_the_event_that_follows() -> None:
    def own(params: Params, event: Mapping[str, Json]) -> bool:
        return bool(params["t"] == event["params"]["t"])

    events = [publish(0), pickup(1, "w1"), publish(2, "t2"), pickup(3, "w2", "t2"), pickup(4, "w2")]
    rules = Rules(frozenset({"VisTimeout"}), 1, {"VisTimeout": own})
    assert judge_rules(QUEUE, [*events[:2], pickup(3, "w2")], rules).verdict == "conforms"
    assert judge_rules(QUEUE, [*events[:2], publish(3, "t2")], rules).hidden == 0


def test_the_draws_reach_every_verdict_and_what_the_guards_and_bounds_forbid() -> None:
    draw = Random(7)
    reached: Counter[str] = Counter()
    for kind, names in ((guarded, GUARDS), (timed, TIMED)):
        for name, config in models_of(names):
            for _ in range(12):
                hiding = kind(draw, name, config)
                found = judge_rules(MODELS[name, config], hiding.case.events, rules_of(name, hiding))
                free = replace(rules_of(name, hiding), when={}, timed={})
                reached[found.verdict] += 1
                if judge_rules(MODELS[name, config], hiding.case.events, free) != found:
                    reached[f"{kind.__name__} forbade"] += 1
    for word in ("conforms", "violates", "diverges", "guarded forbade", "timed forbade"):
        assert reached[word] >= 4, reached
