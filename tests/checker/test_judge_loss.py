"""What is missing against the other judge, which fills it in every way: gaps, open tails, and what was in flight."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from tests.checker.judge import Json
from tests.checker.judge_rules import UNDECIDED, Missing, Rules, Ruling, judge_rules, precedence
from tests.checker.models import MODELS
from tests.checker.product import asked, ruling, spec_of
from tests.checker.walks import (
    DAMAGES,
    OBSERVED,
    Case,
    damaged,
    every_model,
    fixed,
    interesting_walk,
    seeds,
    with_times,
)

from specwatch.checker.api import Options
from specwatch.checker.behaviour import Event, Loss, Order

WALKS = 2
WALKS_NIGHTLY = 100
MOST_UNDECIDED = 0.1


KEYED = {"Shelf": "t", "Post": "t"}

SMALL = {"Shelf"}
"""Specs of few states: a tail that may go on for ever is only drawn here."""

PLAIN = {"Shelf", "Post", "CeleryETA", "VisQueue", "LeaseLock"}
"""Specs in which what was in flight tells nothing of what was before it that could have broken an invariant."""


@dataclass(frozen=True)
class Lossy:
    """A case, and what is missing from it: the same for the judge and for the product."""

    case: Case
    missing: tuple[Missing, ...]
    losses: tuple[Loss, ...]


def lane_of(events: list[dict[str, Json]], emitter: str) -> list[int]:
    return [place for place, event in enumerate(events) if event["emitter"] == emitter]


def lossy(draw: Random, name: str, config: str, damage: bool) -> Lossy:
    """A walk, perhaps damaged, of which one or two emitters have lost something that they know of."""
    order: Order = draw.choice(["total", "emitter", "time"])
    case = interesting_walk(draw, name, config, "emitter")
    if order == "time":
        case = with_times(draw, case, draw.choice([0, 3]))
        case = replace(case, events=[{k: v for k, v in e.items() if k not in ("after", "clock")} for e in case.events])
    case = replace(case, order=order)
    if damage and case.events:
        case = damaged(draw, case, MODELS[name, config], DAMAGES)
    if not case.events:
        return Lossy(case, (), ())
    events = copy.deepcopy(case.events)
    emitters = sorted({event["emitter"] for event in events})
    gone: dict[int, str] = {}
    holes: list[tuple[str, list[int]]] = []
    for emitter in draw.sample(emitters, draw.choice([1, 1, 1, 2]) if len(emitters) > 1 else 1):
        lane = lane_of(events, emitter)
        reasons = [
            "gap",
            "gap",
            "gap",
            "in-flight" if name in PLAIN else "gap",
            "open-tail" if name in SMALL else "gap",
        ]
        reason = draw.choice(reasons)
        size = min(len(lane), draw.choice([1, 1, 2])) if reason == "gap" else 1
        first = draw.randrange(len(lane) - size + 1) if reason != "open-tail" else len(lane) - 1
        if reason == "gap" and first + size == len(lane):
            continue  # no number tells of what an emitter lost at its end
        lost = lane[first : first + size]
        gone.update(dict.fromkeys(lost, reason))
        holes.append((reason, lost))
    kept = [place for place in range(len(events)) if place not in gone]
    case = replace(case, events=[events[place] for place in kept], sound=case.sound)
    logged = frozenset(MODELS[name, config].parameters) - set(case.hidden)
    found = [hole(name, events, kept, reason, lost, logged) for reason, lost in holes]
    return Lossy(case, tuple(one for one, _ in found), tuple(other for _, other in found))


def hole(
    name: str,
    events: list[dict[str, Json]],
    kept: list[int],
    reason: str,
    lost: list[int],
    logged: frozenset[str],
) -> tuple[Missing, Loss]:
    """One loss in the words of both: between the neighbours that are left of its emitter."""
    emitter = events[lost[0]]["emitter"]
    lane = [place for place in lane_of(events, emitter) if place in kept]
    left = [kept.index(place) for place in lane if place < lost[0]]
    right = [kept.index(place) for place in lane if place > lost[-1]]
    after = left[-1] if left else -1
    before = right[0] if right and reason == "gap" else None
    event = {k: v for k, v in events[lost[0]].items() if k not in OBSERVED} if reason == "in-flight" else None
    keys = None
    if reason == "open-tail" and name in KEYED:
        keys = ("t1",)
    count = None if reason == "open-tail" else len(lost)
    begin = events[kept[after]].get("time") if after >= 0 else None
    end = events[kept[before]].get("until", events[kept[before]].get("time")) if before is not None else None
    missing = Missing(
        reason,
        0 if after < 0 else 1 << after,
        0 if before is None else 1 << before,
        count,
        event,
        logged if reason == "open-tail" else None,
        param=KEYED.get(name) if keys else None,
        keys=keys,
    )
    loss = Loss(
        reason=reason,  # type: ignore[arg-type]  # one of the three
        detail=f"{emitter} lost something",
        emitter=emitter,
        count=count,
        after=after,
        before=before,
        begin=begin,
        end=end,
        event=None if event is None else msgspec.convert(event, Event),
        keys=None if keys is None else list(keys),
    )
    return missing, loss


def rulings(name: str, config: str, one: Lossy) -> tuple[Ruling, Ruling]:
    """What the judge and the product say, without the number of hidden steps."""
    case = one.case
    rules = Rules(frozenset(case.hidden), case.hidden_max, order=case.order, skew=case.skew)
    options = Options(hidden=case.hidden, hidden_max=case.hidden_max, skew=case.skew, key=KEYED.get(name))
    expected = judge_rules(MODELS[name, config], case.events, rules, one.missing)
    verdict = asked(spec_of(name, config), case.events, options, case.order, skew=case.skew, losses=one.losses)
    return expected._replace(hidden=0), ruling(verdict)._replace(hidden=0)


def agree(name: str, config: str, one: Lossy, counts: Counter[str]) -> None:
    """The same verdict; where the product leaves open what is decided, that is counted."""
    before = precedence(one.case.events, one.case.order, one.case.skew)
    if before.tangled or before.dropped or not one.case.events:
        return
    expected, actual = rulings(name, config, one)
    reasons = {loss.reason for loss in one.losses}
    counts["touched" if reasons else "whole"] += 1
    counts[expected.verdict] += 1
    if actual.verdict == UNDECIDED and reasons:
        assert actual.reason in reasons, f"{name}.{config}: {one}"
        if expected.verdict != UNDECIDED:
            counts["left open"] += 1
        return
    assert actual == expected._replace(reason=None), f"{name}.{config}: {one}"


def draw_and_judge(draw: Random, name: str, config: str, counts: Counter[str]) -> None:
    agree(name, config, lossy(draw, name, config, damage=False), counts)
    for _ in range(3):
        agree(name, config, lossy(draw, name, config, damage=True), counts)


@pytest.mark.parametrize("part", range(4))
def test_what_is_missing_is_judged_as_if_every_filling_were_tried(part: int) -> None:
    judge_all(Random(f"part {part}"), WALKS)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_tens_of_thousands_of_fillings(part: int) -> None:
    judge_all(Random(), WALKS_NIGHTLY)


def judge_all(draw: Random, walks: int) -> None:
    """Of all models; the product may leave a few open that the fillings decide."""
    counts: Counter[str] = Counter()
    for name, config in MODELS:
        for _ in range(walks):
            draw_and_judge(draw, name, config, counts)
    assert counts["left open"] <= MOST_UNDECIDED * counts["touched"], counts


@every_model
@settings(fixed, max_examples=6)
@given(draw=seeds)
def test_a_sound_walk_with_something_missing_is_never_found_wrong(name: str, config: str, draw: Random) -> None:
    """The records that were lost fill the gap: so says the judge, and so must the product."""
    one = lossy(draw, name, config, damage=False)
    if one.case.sound and one.case.events:
        for found in rulings(name, config, one):
            assert found.verdict in ("conforms", UNDECIDED), one


# --- the judge itself -------------------------------------------------------------------------------------------------

SHELF = MODELS["Shelf", "two"]


def told(*actions: str, **params: Json) -> list[dict[str, Json]]:
    return [
        {"action": action, "params": {"t": "t1", **({"n": 1} if action == "Execute" else {}), **params}}
        for action in actions
    ]


def gap(after: int, before: int, count: int = 1) -> Missing:
    return Missing("gap", 1 << after, 1 << before, count)


def test_a_gap_that_only_good_records_fill_conforms() -> None:
    events = told("Publish", "Ack")
    assert judge_rules(SHELF, events, Rules()).answer == ("diverges", 2)
    assert judge_rules(SHELF, events, Rules(), [gap(0, 1)]).verdict == "conforms"


def test_a_gap_that_may_have_broken_something_is_undecided() -> None:
    """An Execute of one run is lost before the only one that is logged, or after it."""
    post = MODELS["Post", "two"]
    events = [{**event, "params": {"t": "t1"}} for event in told("Publish", "Pickup", "Ack")]
    assert judge_rules(post, events, Rules(), [gap(1, 2)]).verdict == "conforms"
    found = judge_rules(SHELF, told("Publish", "Pickup", "Execute", "Ack"), Rules(), [gap(2, 3)])
    assert (found.verdict, found.reason) == (UNDECIDED, "gap")


def test_a_gap_that_no_filling_bridges_diverges() -> None:
    events = told("Publish", "Publish")
    assert judge_rules(SHELF, events, Rules(), [gap(0, 1)]).answer == ("diverges", 2)
    assert judge_rules(SHELF, events, Rules(), [gap(0, 1, 2)]).verdict == "conforms"


def test_what_was_broken_before_a_gap_stays_broken() -> None:
    events = told("Publish", "Pickup", "Execute", "Execute", "Ack", "Ack")
    assert judge_rules(SHELF, events, Rules(), [gap(4, 5)]).answer == ("violates", 4)


def test_a_tail_may_have_gone_on() -> None:
    events = told("Publish", "Pickup", "Execute")
    tail = Missing("open-tail", 1 << 2, keys=("t1",), param="t")
    assert judge_rules(SHELF, events, Rules(), [tail]).verdict == UNDECIDED
    assert judge_rules(SHELF, events, Rules(), [replace(tail, keys=("t2",))]).verdict == UNDECIDED
    assert (
        judge_rules(SHELF, told("Publish"), Rules(), [replace(tail, after=1, actions=frozenset({"Ack"}))]).verdict
        == "conforms"
    )


def test_what_was_in_flight_happened_or_did_not() -> None:
    events = told("Publish", "Pickup", "Execute")
    flight = Missing("in-flight", 1 << 1, event=told("Execute")[0])
    assert judge_rules(SHELF, events, Rules(), [flight]).verdict == UNDECIDED
    assert judge_rules(SHELF, events[:2], Rules(), [flight]).verdict == "conforms"


def test_the_draws_reach_every_verdict_with_something_missing() -> None:
    draw = Random(7)
    reached: Counter[str] = Counter()
    for name, config in MODELS:
        for number in range(12):
            one = lossy(draw, name, config, damage=number % 2 == 0)
            rules = Rules(frozenset(one.case.hidden), one.case.hidden_max, order=one.case.order, skew=one.case.skew)
            found = judge_rules(MODELS[name, config], one.case.events, rules, one.missing)
            reached[found.verdict] += bool(one.missing)
    assert min(reached[word] for word in ("conforms", "violates", "diverges", UNDECIDED)) >= 8, reached
