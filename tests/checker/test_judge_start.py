"""Starts midway in scope ``run`` against the other judge, which begins in every state that the model can reach."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest
from tests.checker.judge import State
from tests.checker.judge_rules import Rules, Ruling, could_be_open, judge_midway, judge_rules, precedence, reachable
from tests.checker.models import MODELS
from tests.checker.product import asked, ruling, spec_of
from tests.checker.walks import Case, damaged, interesting_walk

from specwatch.checker.api import Options

CASES = 60
CASES_NIGHTLY = 2500

FINITE_MODELS = [("Twins", "one"), ("Twins", "three")]
every_finite = pytest.mark.parametrize(("name", "config"), FINITE_MODELS, ids=".".join)


@cache
def starts_of(name: str, config: str) -> frozenset[State]:
    return frozenset(reachable(MODELS[name, config]))


def expected_of(name: str, config: str, case: Case) -> Ruling:
    model = MODELS[name, config]
    rules = Rules(frozenset(case.hidden), case.hidden_max, order=case.order)
    starts = starts_of(name, config)
    if not could_be_open(case.events, None, None, precedence(case.events, case.order).needs):
        return judge_rules(model, case.events, rules)
    return judge_midway(model, case.events, rules, starts)


def drawn(draw: Random, name: str, config: str) -> Case:
    """A walk without its beginning, and perhaps damaged."""
    case = interesting_walk(draw, name, config, draw.choice(["total", "total", "emitter"]))
    if case.order == "total":
        case = without(case, draw.randint(0, 3))
    if case.events and draw.random() < 0.5:
        case = damaged(draw, case, MODELS[name, config])
    return case


def without(case: Case, first: int) -> Case:
    return Case(case.events[first:], case.hidden, case.hidden_max, case.order, case.sound)


def actual_of(name: str, config: str, case: Case) -> Ruling:
    options = Options(hidden=case.hidden, hidden_max=case.hidden_max, start="midway")
    return ruling(asked(spec_of(name, config), case.events, options, case.order))


def agree(name: str, config: str, case: Case) -> None:
    if case.events:
        expected, actual = expected_of(name, config, case), actual_of(name, config, case)
        assert actual._replace(hidden=0) == expected._replace(hidden=0), f"{name}.{config}: {case}"


@every_finite
def test_a_log_that_begins_midway_is_judged_from_every_state_that_the_model_reaches(name: str, config: str) -> None:
    draw = Random(f"{name}.{config}")
    for _ in range(CASES):
        agree(name, config, drawn(draw, name, config))


@pytest.mark.nightly
@every_finite
def test_thousands_of_logs_that_begin_midway(name: str, config: str) -> None:
    draw = Random()
    for _ in range(CASES_NIGHTLY):
        agree(name, config, drawn(draw, name, config))


@every_finite
def test_cutting_any_prefix_off_a_conforming_log_never_makes_it_wrong(name: str, config: str) -> None:
    draw = Random(f"{config}.{name}")
    for _ in range(CASES // 3):
        case = interesting_walk(draw, name, config, "total")
        if case.sound:
            for first in range(len(case.events)):
                cut = without(case, first)
                if cut.events:
                    assert actual_of(name, config, cut).verdict in ("conforms", "inconclusive"), cut


def test_the_draws_reach_every_verdict_of_a_start_midway() -> None:
    draw = Random(7)
    reached: Counter[str] = Counter()
    for name, config in FINITE_MODELS:
        for _ in range(60):
            case = drawn(draw, name, config)
            if case.events:
                found = expected_of(name, config, case)
                reached[found.reason or found.verdict] += 1
    assert min(reached[word] for word in ("conforms", "violates", "diverges", "open-at-start")) >= 8, reached
