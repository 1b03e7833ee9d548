"""Scope ``key`` and starts midway against the other judge, which takes each key's events alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import msgspec
import pytest
from tests.checker.judge import Json, Model
from tests.checker.judge_rules import (
    UNDECIDED,
    Missing,
    Rules,
    Ruling,
    could_be_open,
    judge_midway,
    judge_rules,
    kept,
    keyed,
    of_key,
    precedence,
    reachable,
    restricted,
    unfinished,
    worst,
)
from tests.checker.models import MODELS, post, shelf
from tests.checker.product import asked, by_key, spec_of
from tests.checker.test_judge_loss import Lossy, lossy
from tests.checker.walks import DAMAGES, Case, damaged, interesting_walk, numbered, with_times

from specwatch.checker.api import Options
from specwatch.checker.behaviour import Order

CASES = 140
CASES_NIGHTLY = 4000

MAKERS: dict[str, Callable[[tuple[str, ...]], Model]] = {"Shelf": shelf, "Post": post}
TERMINAL = ("Ack",)
every_keyed = pytest.mark.parametrize("name", MAKERS)


@dataclass(frozen=True)
class Keyed:
    """A case and what is asked of it. ``within`` counts from the first record of the log, as ``began`` does."""

    lossy: Lossy
    midway: bool = False
    within: int | None = None
    complete: bool = False
    require: tuple[str, ...] = ()

    @property
    def case(self) -> Case:
        return self.lossy.case


@cache
def model_of(name: str, key: str) -> Model:
    return MAKERS[name]((key if key in ("t1", "t2") else "t1",))


@cache
def starts_of(name: str, key: str) -> frozenset[object]:
    return frozenset(reachable(model_of(name, key)))


def drawn(draw: Random, name: str) -> Keyed:
    """A walk whose events tell their keys, whole or lossy, as it was or damaged, and perhaps without its beginning."""
    losing = draw.random() < 0.3
    one = lossy(draw, name, "two", damage=True) if losing else Lossy(whole(draw, name), (), ())
    events = [{k: v for k, v in event.items() if k not in ("state", "before")} for event in one.case.events]
    for event in events:
        if "t" in event["params"]:
            event["key"] = event["params"]["t"]
    hidden = tuple(action for action in one.case.hidden if MODELS[name, "two"].parameters[action])
    case = replace(one.case, events=events, hidden=hidden, hidden_max=None if losing else one.case.hidden_max)
    midway = not losing and draw.random() < 0.5
    if midway and case.order == "total":
        case = replace(case, events=case.events[draw.randint(0, 3) :])
    return Keyed(
        replace(one, case=case),
        midway=midway,
        within=draw.choice([None, 0, 5, 12]) if midway else None,
        complete=not losing and case.order == "total" and draw.random() < 0.3,
        require=tuple(draw.sample(["Ack", "Execute"], draw.choice([0, 0, 1]))),
    )


def whole(draw: Random, name: str) -> Case:
    order: Order = draw.choice(["total", "total", "emitter", "time"])
    case = interesting_walk(draw, name, "two", "total" if order == "total" else "emitter")
    if order == "total":
        events = numbered([{**event, "emitter": "p"} for event in case.events])
        case = replace(case, events=events)
    if order != "emitter":
        case = with_times(draw, case, 0 if order == "total" else draw.choice([0, 3]))
    case = replace(case, order=order)
    if case.events and draw.random() < 0.7:
        case = damaged(draw, case, MODELS[name, "two"], DAMAGES)
    return case


def askable(name: str, one: Keyed) -> bool:
    """Scope ``key`` needs an event's key, and times that agree; names that the spec lacks are refused elsewhere."""
    model, case = MODELS[name, "two"], one.case
    told = [*case.events, *(loss.event for loss in one.lossy.missing if loss.event is not None)]
    before = precedence(case.events, case.order, case.skew)
    return (
        bool(case.events)
        and not before.tangled
        and not before.dropped
        and (not one.midway or all(event.get("key") in ("t1", "t2", None) for event in case.events))
        and all(set(event["params"]) <= set(model.parameters[event["action"]]) for event in told)
        and all(not keyed(model, event, "t") or "t" in event["params"] for event in told)
    )


def expected_of(name: str, one: Keyed) -> dict[str, Ruling]:
    """The ruling on each key, by its JSON; of events that no key has, on ``null``."""
    case, model = one.case, MODELS[name, "two"]
    rules = Rules(frozenset(case.hidden), case.hidden_max, order=case.order, skew=case.skew)
    needs = precedence(case.events, case.order, case.skew).needs
    keys = {json.dumps(event["params"]["t"]): event["params"]["t"] for event in case.events if keyed(model, event, "t")}
    if not keys:
        return {"null": ruled(name, "t1", one, rules, needs, None)}
    return {text: ruled(name, str(key), one, rules, needs, key) for text, key in keys.items()}


def ruled(name: str, task: str, one: Keyed, rules: Rules, needs: tuple[int, ...], key: Json) -> Ruling:
    case, model = one.case, model_of(name, task)
    places, events = of_key(MODELS[name, "two"], case.events, "t", key)
    # Of a key only what its own events say of their order is known: not what another key's would add.
    own = precedence(events, case.order, case.skew).needs
    missing = [kept(loss, needs, places) for loss in one.lossy.missing if loss.keys is None or key in loss.keys]
    last = {event.get("emitter"): event["action"] for event in events}
    if TERMINAL[0] not in case.hidden and TERMINAL[0] in last.values():
        # What is missing after all of a key, its terminal action included, is not about it.
        missing = [loss for loss in missing if not comes_last(loss, own)]
    firsts = [event for event, need in zip(events, own, strict=True) if not need]
    if not one.midway and all(event["action"] == "Publish" for event in firsts):
        # Nor is what is missing before its life begins.
        missing = [loss for loss in missing if not comes_first(loss, own)]
    began = min((event["time"] for event in case.events if event.get("time") is not None), default=None)
    if one.midway and could_be_open(events, began, one.within, own):
        found = judge_midway(model, events, rules, starts_of(name, task), missing, needs=own)
    else:
        found = judge_rules(model, events, rules, missing, needs=own)
    of_its_own = [event for event in events if keyed(MODELS[name, "two"], event, "t")]
    if found.verdict == "conforms" and one.complete and key is not None and unfinished(of_its_own, TERMINAL):
        return Ruling(UNDECIDED, reason="incomplete")
    return found._replace(hidden=0)


def comes_last(loss: Missing, needs: tuple[int, ...]) -> bool:
    """Whether all events come before what is missing."""
    before = loss.after
    for place, need in enumerate(needs):
        before |= need if loss.after >> place & 1 else 0
    return before.bit_count() == len(needs)


def comes_first(loss: Missing, needs: tuple[int, ...]) -> bool:
    """Whether all events come after what is missing."""
    return all(loss.before >> place & 1 or need & loss.before for place, need in enumerate(needs))


def run_level_fails(name: str, one: Keyed) -> bool:
    """Whether the events without a key cannot be taken by themselves: that is told once, and not key by key."""
    case, model = one.case, MODELS[name, "two"]
    rules = Rules(frozenset(case.hidden), case.hidden_max, order=case.order, skew=case.skew)
    needs = precedence(case.events, case.order, case.skew).needs
    places = [place for place, event in enumerate(case.events) if not keyed(model, event, "t")]
    alone = [case.events[place] for place in places]
    found = judge_rules(model_of(name, "t1"), alone, rules, needs=restricted(needs, places))
    return found.verdict in ("violates", "diverges")


def options_of(one: Keyed) -> Options:
    case = one.case
    return Options(
        hidden=case.hidden,
        hidden_max=case.hidden_max,
        skew=case.skew,
        scope="key",
        key="t",
        start="midway" if one.midway else "init",
        start_within=one.within,
        complete=one.complete,
        terminal=tuple(name for name in TERMINAL if name not in case.hidden),
        require=one.require,
    )


def agree(name: str, one: Keyed, counts: Counter[str]) -> None:
    case = one.case
    if not askable(name, one) or (one.complete and set(TERMINAL) & set(case.hidden)):
        return
    if run_level_fails(name, one):
        counts["run-level"] += 1
        return
    expected = expected_of(name, one)
    began = min((event["time"] for event in case.events if event.get("time") is not None), default=None)
    verdict = asked(
        spec_of(name, "two"),
        case.events,
        options_of(one),
        case.order,
        skew=case.skew,
        losses=one.lossy.losses,
        began=began,
    )
    assert verdict is not None, one
    bad = {text: ruling for text, ruling in expected.items() if ruling.verdict != "conforms"}
    found = by_key(verdict)
    if one.lossy.losses and found.keys() - expected.keys():
        counts["run-level left open"] += 1
        return
    for text in list(found):
        undecided = found[text].verdict == UNDECIDED and bool(one.lossy.losses)
        if undecided and expected[text].verdict != UNDECIDED:
            counts["left open"] += 1
            found.pop(text)
            bad.pop(text, None)
    counts["keys"] += len(expected)
    counts["touched"] += len(expected) if one.lossy.losses else 0
    for ruling in expected.values():
        counts[ruling.reason or ruling.verdict] += 1
    plain = {text: ruling._replace(reason=None) if one.lossy.losses else ruling for text, ruling in bad.items()}
    other = {text: ruling._replace(reason=None) if one.lossy.losses else ruling for text, ruling in found.items()}
    assert other == plain, f"{name}: {one}"
    assert verdict.behaviours.total == len(expected), f"{name}: {one}"
    if not one.lossy.losses:
        words = [ruling.verdict for ruling in expected.values()]
        if any(not met for _, met in verdict.require):
            words.append("vacuous")
        assert verdict.verdict == worst(words), f"{name}: {one}"


def draw_and_judge(draw: Random, name: str, cases: int) -> None:
    counts: Counter[str] = Counter()
    for _ in range(cases):
        agree(name, drawn(draw, name), counts)
    assert counts["left open"] <= 0.25 * counts["touched"] + 3, counts


@every_keyed
@pytest.mark.parametrize("part", range(3))
def test_each_key_is_judged_as_the_other_judge_judges_its_events_alone(name: str, part: int) -> None:
    draw_and_judge(Random(f"{name}{part}"), name, CASES)


@pytest.mark.nightly
@every_keyed
@pytest.mark.parametrize("part", range(4))
def test_tens_of_thousands_of_keys(name: str, part: int) -> None:
    draw_and_judge(Random(), name, CASES_NIGHTLY)


def test_the_draws_reach_every_verdict_of_a_key() -> None:
    draw = Random(7)
    reached: Counter[str] = Counter()
    for name in MAKERS:
        for _ in range(250):
            one = drawn(draw, name)
            if askable(name, one):
                reached["run-level"] += run_level_fails(name, one)
                for ruling in expected_of(name, one).values():
                    reached[ruling.reason or ruling.verdict] += 1
    words = ("conforms", "violates", "diverges", "open-at-start", "incomplete", "run-level")
    assert min(reached[word] for word in words) >= 5, reached


# --- the judge itself -------------------------------------------------------------------------------------------------


def told(*actions: str, task: str = "t1") -> list[dict[str, Json]]:
    return [
        {"action": action, "params": {"t": task, **({"n": 1} if action == "Execute" else {})}} for action in actions
    ]


def test_a_key_that_could_be_open_is_undecided_where_some_start_explains_it() -> None:
    model = model_of("Shelf", "t1")
    starts = starts_of("Shelf", "t1")
    assert judge_midway(model, told("Ack"), Rules(), starts).reason == "open-at-start"
    assert judge_midway(model, told("Publish"), Rules(), starts).verdict == "conforms"
    assert judge_midway(model, told("Ack", "Ack"), Rules(), starts).answer == ("diverges", 2)
    assert judge_midway(model, told("Pickup", "Execute", "Execute"), Rules(), starts).answer == ("violates", 3)


def test_a_key_could_be_open_unless_it_begins_with_its_first_action_or_late() -> None:
    assert not could_be_open(told("Publish", "Ack"), 0, None, (0, 1))
    assert could_be_open(told("Publish", "Ack"), 0, None, (0, 0))
    assert could_be_open(told("Ack"), 0, None, (0,))
    late = [{**told("Ack")[0], "time": 10}]
    assert could_be_open(late, 0, 10, (0,))
    assert not could_be_open(late, 0, 9, (0,))


def test_what_a_key_lacks_lies_between_what_is_left_of_it() -> None:
    events = [{**event, "emitter": "p", "seq": number} for number, event in enumerate(told("Publish") * 4, 1)]
    needs = precedence(events, "emitter").needs
    loss = Missing("gap", 1 << 1, 1 << 2, 1)
    assert kept(loss, needs, [0, 3]) == replace(loss, after=0b01, before=0b10)
    assert msgspec.json.encode(list(restricted(needs, [0, 3]))) == b"[0,1]"
