"""Order ``time`` against the other judge: emitters' order, causes, clocks that differ, and intervals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from tests.checker.judge import Json
from tests.checker.judge_rules import Rules, Ruling, judge_rules, precedence
from tests.checker.models import MODELS
from tests.checker.product import asked, ruling, spec_of
from tests.checker.walks import DAMAGES_IN_TIME, Case, damaged, every_model, fixed, interesting_walk, seeds, with_times

from specwatch.checker.api import Options, judge
from specwatch.checker.behaviour import Order
from specwatch.collector.assemble import collect

WALKS = 5
MUTANTS = 7
WALKS_NIGHTLY = 150


def drawn(draw: Random, name: str, config: str) -> Case:
    case = interesting_walk(draw, name, config, "emitter")
    return replace(with_times(draw, case, draw.choice([0, 2, 5])), order="time")


def expected_of(name: str, config: str, case: Case) -> Ruling:
    rules = Rules(frozenset(case.hidden), case.hidden_max, order=case.order, skew=case.skew)
    return judge_rules(MODELS[name, config], case.events, rules)


def actual_of(name: str, config: str, case: Case) -> Ruling:
    options = Options(hidden=case.hidden, hidden_max=case.hidden_max, skew=case.skew)
    return ruling(asked(spec_of(name, config), case.events, options, case.order, skew=case.skew))


def agree(name: str, config: str, case: Case) -> Ruling:
    """Both say the same; where a clock was wrong the product may leave it undecided, but never find it good."""
    before = precedence(case.events, case.order, case.skew)
    actual = actual_of(name, config, case)
    if before.tangled:
        assert actual.verdict in ("inconclusive", "refused"), f"{name}.{config}: {case}"
        return actual
    expected = expected_of(name, config, case)
    if before.dropped and actual.verdict == "inconclusive":
        assert actual.reason == "clock", f"{name}.{config}: {case}"
        return actual
    assert actual == expected, f"{name}.{config}: {case}"
    return expected


def walk_and_damage(draw: Random, name: str, config: str) -> None:
    case = drawn(draw, name, config)
    expected = agree(name, config, case)
    if case.sound and case.events:
        assert expected.verdict == "conforms", case
    for _ in range(MUTANTS if case.events else 0):
        agree(name, config, damaged(draw, case, MODELS[name, config], DAMAGES_IN_TIME))


@every_model
@settings(fixed, max_examples=WALKS)
@given(draw=seeds)
def test_by_time_a_walk_conforms_and_a_damaged_one_is_judged_as_the_other_judge_does(
    name: str, config: str, draw: Random
) -> None:
    walk_and_damage(draw, name, config)


@pytest.mark.nightly
@every_model
@settings(fixed, derandomize=False, max_examples=WALKS_NIGHTLY)
@given(draw=seeds)
def test_by_time_tens_of_thousands_of_damaged_walks(name: str, config: str, draw: Random) -> None:
    walk_and_damage(draw, name, config)


# --- arrival ----------------------------------------------------------------------------------------------------------


def written(path: Path, events: list[dict[str, Json]]) -> str:
    """A log of native events, with milliseconds as the unit of time."""
    lines = []
    for event in events:
        told = {**event}
        for field in ("time", "until"):
            if field in told:
                told[field] = told[field] / 1000
        lines.append(json.dumps(told))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def json_of(name: str, config: str, log: str, case: Case) -> dict[str, Json]:
    """The verdict's JSON on a log, without what tells where it was read."""
    collected = collect([log], order=case.order, skew=f"{case.skew}ms", format="native")
    options = Options(hidden=case.hidden, hidden_max=case.hidden_max)
    verdict = judge(spec_of(name, config), collected.behaviours, options, collected.ledger)
    found: dict[str, Json] = without(json.loads(verdict.to_json()), {"inputs", "source", "version"})
    return found


def without(told: Json, names: set[str]) -> Json:
    if isinstance(told, dict):
        return {name: without(value, names) for name, value in told.items() if name not in names}
    return [without(value, names) for value in told] if isinstance(told, list) else told


@pytest.mark.parametrize("order", ["emitter", "time"])
@every_model
@settings(fixed, max_examples=2)
@given(draw=seeds)
def test_the_arrival_of_the_lines_changes_no_byte_of_the_json(
    tmp_path_factory: pytest.TempPathFactory, name: str, config: str, order: Order, draw: Random
) -> None:
    path = tmp_path_factory.mktemp("logs")
    case = replace(drawn(draw, name, config), order=order)
    for one in (case, damaged(draw, case, MODELS[name, config], DAMAGES_IN_TIME)):
        known = set(MODELS[name, config].parameters) | set(MODELS[name, config].groups)
        events = [event for event in one.events if event["action"] in known and "lacking" not in event["params"]]
        events = [event for event in events if order == "emitter" or "time" in event]
        if not events or (order == "time" and precedence(events, order, case.skew).tangled):
            continue
        other = draw.sample(events, len(events))
        first = json_of(name, config, written(path / "log.jsonl", events), one)
        assert json_of(name, config, written(path / "log.jsonl", other), one) == first, one


# --- the judge itself -------------------------------------------------------------------------------------------------


def event(emitter: str, seq: int, **more: Json) -> dict[str, Json]:
    return {"action": "A", "params": {}, "emitter": emitter, "seq": seq, **more}


def edges(events: list[dict[str, Json]], skew: int = 0) -> set[tuple[int, int]]:
    needs = precedence(events, "time", skew).needs
    return {(first, then) for then, bits in enumerate(needs) for first in range(len(events)) if bits >> first & 1}


def test_a_time_tells_an_order_only_beyond_the_skew() -> None:
    events = [event("p", 1, time=10), event("q", 1, time=12)]
    assert edges(events, skew=1) == {(0, 1)}
    assert edges(events, skew=2) == set()


def test_an_interval_comes_before_another_only_where_it_is_over() -> None:
    events = [event("p", 1, time=10, until=14), event("q", 1, time=13), event("r", 1, time=15)]
    assert edges(events) == {(0, 2), (1, 2)}


def test_a_cause_wins_over_a_time() -> None:
    events = [event("p", 1, time=10), event("q", 1, time=2, after=[["p", 1]])]
    assert edges(events) == {(0, 1)}
    assert precedence(events, "time").dropped == ((1, 0),)


def test_a_clock_tells_of_all_that_it_has_seen() -> None:
    events = [event("p", 1), event("p", 2), event("p", 3), event("q", 1, clock={"p": 2, "q": 1})]
    assert edges(events) == {(0, 1), (1, 2), (0, 2), (0, 3), (1, 3)}


def test_the_draws_reach_every_verdict_and_wrong_clocks() -> None:
    draw = Random(7)
    reached: Counter[str] = Counter()
    for name, config in MODELS:
        for _ in range(25):
            case = damaged(draw, drawn(draw, name, config), MODELS[name, config], DAMAGES_IN_TIME)
            before = precedence(case.events, "time", case.skew)
            reached["tangled" if before.tangled else "dropped" if before.dropped else "plain"] += 1
            if not before.tangled:
                reached[expected_of(name, config, case).verdict] += 1
    assert min(reached[word] for word in ("conforms", "violates", "diverges", "dropped")) >= 8, reached
    assert reached["tangled"] > 0, reached
