"""The replay against a judge that shares no line with it: random walks of a spec, as they are and damaged.

A walk (:mod:`tests.checker.walks`) is judged by both as it is, and then with one event dropped, doubled, altered …
Hypothesis draws seeds only: drawn choice by choice, most walks are too short to break or to hide anything.
"""

from __future__ import annotations

import copy
import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from tests.checker.judge import REFUSED, Json, Judgement, Model, judge
from tests.checker.models import MODELS, TRACES
from tests.checker.walks import OBSERVED, Case, damaged, every_model, fixed, interesting_walk, numbered, seeds

from specwatch.checker import check, load_spec
from specwatch.checker.behaviour import Behaviour, Event, Order
from specwatch.checker.bounds import Bounds
from specwatch.checker.paths import Rules
from specwatch.checker.reading import EventError
from specwatch.checker.replay import Replay
from specwatch.checker.spec import Spec
from specwatch.checker.verdict import Finding, Verdict

WALKS = 20
MUTANTS = 7
WALKS_NIGHTLY = 450

SEPARABLE = {"Shelf"}

ORDERS: tuple[Order, ...] = ("total", "emitter")
every_order = pytest.mark.parametrize("order", ORDERS)


def smaller(case: Case) -> Iterator[Case]:
    """The case with less in it, for the shortest way to show a disagreement."""
    for at, event in enumerate(case.events):
        rest = [*case.events[:at], *case.events[at + 1 :]]
        yield replace(case, events=numbered(copy.deepcopy(rest)))
        fields = [
            {**event, "params": {n: v for n, v in event["params"].items() if n != name}} for name in event["params"]
        ]
        fields += [
            {name: value for name, value in event.items() if name != field} for field in OBSERVED if field in event
        ]
        for less in fields:
            yield replace(case, events=[*case.events[:at], less, *case.events[at + 1 :]])
    for name in case.hidden:
        yield replace(case, hidden=tuple(other for other in case.hidden if other != name))


# --- judging --------------------------------------------------------------------------------------------------------


@cache
def spec_of(name: str, config: str) -> Spec:
    model = MODELS[name, config]
    return load_spec(model.spec, model.config)


def checked(spec: Spec, case: Case) -> Verdict | None:
    """The product's verdict; None where it refuses."""
    try:
        return check(spec, case.events, hidden=case.hidden, hidden_max=case.hidden_max, order=case.order)
    except EventError:
        return None


def least_sets(invariant: str | None) -> frozenset[frozenset[str]]:
    """``A+B|C`` as sets."""
    return frozenset(frozenset(one.split("+")) for one in invariant.split("|")) if invariant else frozenset()


def judgement(verdict: Verdict | None) -> Judgement:
    """A verdict in the judge's words, without the states."""
    if verdict is None:
        return REFUSED
    if not verdict.findings:
        return Judgement(verdict.verdict, hidden=verdict.hidden_steps)
    (finding,) = verdict.findings
    return Judgement(verdict.verdict, finding.at, least_sets(finding.invariant), verdict.hidden_steps)


def states_at_the_end(spec: Spec, case: Case) -> tuple[int, int]:
    """How many states the replay holds good and broken when all events are explained."""
    events = [Event(**event) for event in case.events]
    if case.order == "emitter":
        events.sort(key=lambda event: event.seq or 0)
    hidden = frozenset(action for name in case.hidden for action in spec.named(name))
    # The judge tries every hidden step everywhere, and so reaches states that none of the answers needs.
    rules = Rules(hidden, case.hidden_max, everywhere=True)
    outcome = Replay(spec, Behaviour(events=events, order=case.order), rules, Bounds()).run()
    return outcome.good_states, outcome.broken_states


def answers(name: str, config: str, case: Case) -> tuple[Judgement, Judgement, Verdict | None]:
    """What the two say of a case: the judge, and the replay. States are compared where the replay comes to the end."""
    spec, model = spec_of(name, config), MODELS[name, config]
    expected = judge(model, case.events, case.hidden, case.hidden_max, case.order)
    verdict = checked(spec, case)
    actual = judgement(verdict)
    if expected.verdict == "conforms" or expected.at == len(case.events):
        good, broken = states_at_the_end(spec, case)
        return expected, actual._replace(good_states=good, broken_states=broken), verdict
    return expected._replace(good_states=0, broken_states=0), actual, verdict


def agree(name: str, config: str, case: Case) -> Judgement:
    """Both judges say the same of a case. What they say is returned."""
    expected, actual, verdict = answers(name, config, case)
    while actual != expected:
        less = next((one for one in smaller(case) if differ(name, config, one)), None)
        if less is None:
            break
        case = less
        expected, actual, verdict = answers(name, config, case)
    assert actual == expected, f"{name}.{config}: {case}"
    # Where a spec falls apart by key, the finding speaks of the failing key alone: no path of the whole.
    if verdict is not None and verdict.findings and case.order == "total" and name not in SEPARABLE:
        shown_way_is_a_path(MODELS[name, config], case, verdict.findings[0])
    return expected


def differ(name: str, config: str, case: Case) -> bool:
    expected, actual, _ = answers(name, config, case)
    return expected != actual


def shown_way_is_a_path(model: Model, case: Case, finding: Finding) -> None:
    """With the hidden steps that a finding shows as events, nothing needs to be inserted any more."""
    if not finding.at:
        return
    told: list[dict[str, Json]] = []
    for number, event in enumerate(case.events[: finding.at], 1):
        inserted = [step for step in finding.hidden if step.before == number]
        told += [{"action": step.action, "params": read_back(step.params)} for step in inserted]
        if number < finding.at or finding.verdict == "violates":
            told.append(event)
    expected = "violates" if finding.verdict == "violates" else "conforms" if told else "vacuous"
    assert judge(model, told, (), 0, "total").verdict == expected, (case, finding.hidden)


def read_back(params: dict[str, str]) -> dict[str, Json]:
    """Parameters from TLA+ text. A record is left out: the others say enough."""
    return {name: json.loads(text) for name, text in params.items() if not text.startswith("[")}


def walk_and_damage(draw: Random, name: str, config: str, order: Order) -> None:
    """One walk and what becomes of it."""
    case = interesting_walk(draw, name, config, order)
    expected = agree(name, config, case)
    if case.sound and case.events:
        assert expected.verdict == "conforms", case
    for _ in range(MUTANTS if case.events else 0):
        agree(name, config, damaged(draw, case, MODELS[name, config]))


# --- the rules ------------------------------------------------------------------------------------------------------


@every_order
@every_model
@settings(fixed, max_examples=WALKS)
@given(draw=seeds)
def test_a_walk_conforms_and_a_damaged_one_is_judged_as_the_other_judge_does(
    name: str, config: str, order: Order, draw: Random
) -> None:
    walk_and_damage(draw, name, config, order)


@pytest.mark.nightly
@every_order
@every_model
@settings(fixed, derandomize=False, max_examples=WALKS_NIGHTLY)
@given(draw=seeds)
def test_a_hundred_thousand_damaged_walks(name: str, config: str, order: Order, draw: Random) -> None:
    walk_and_damage(draw, name, config, order)


@every_model
@settings(fixed, max_examples=WALKS // 2)
@given(draw=seeds)
def test_with_order_emitter_the_arrival_of_the_lines_changes_no_byte_of_the_json(
    name: str, config: str, draw: Random
) -> None:
    case = interesting_walk(draw, name, config, "emitter")
    for one in (case, damaged(draw, case, MODELS[name, config])):
        verdict = checked(spec_of(name, config), one)
        arrived = replace(one, events=draw.sample(one.events, len(one.events)))
        other = checked(spec_of(name, config), arrived)
        assert (verdict and verdict.to_json()) == (other and other.to_json()), one


# --- the judge itself -----------------------------------------------------------------------------------------------


def modelled_rows() -> list[dict[str, str]]:
    with (TRACES / "traces.tsv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if (row["spec"], row["config"]) in MODELS]


@pytest.mark.parametrize("row", modelled_rows(), ids=lambda row: f"{row['spec']}-{row['case']}")
def test_the_judge_gives_the_truth_in_every_column(row: dict[str, str]) -> None:
    lines = (TRACES / row["spec"] / f"{row['case']}.jsonl").read_text(encoding="utf-8").splitlines()
    hidden = [name for name in row["hidden"].split(",") if name]
    found = judge(
        MODELS[row["spec"], row["config"]],
        [json.loads(line) for line in lines],
        hidden,
        int(row["hidden_max"]),
        row["order"],
    )
    if row["case"] in ("late-unknown-after-violation", "late-unknown-action"):
        assert found == REFUSED
        return
    assert found == Judgement(
        row["verdict"],
        int(row["at"]) if row["at"] else None,
        least_sets(row["invariant"]),
        int(row["hidden_used"] or 0),
        int(row["good_states"]),
        int(row["broken_states"]),
    )


def test_what_the_judge_remembers_changes_no_answer() -> None:
    """Without memory it walks every single path, so the cases are small."""
    draw = Random(7)
    for (name, config), model in MODELS.items():
        for order in ORDERS:
            for _ in range(6):
                case = interesting_walk(draw, name, config, order)
                events, hidden_max = numbered(copy.deepcopy(case.events[:3])), draw.randint(0, 2)
                every = judge(model, events, case.hidden, hidden_max, order, remember=False)
                assert judge(model, events, case.hidden, hidden_max, order) == every, case


def test_the_draws_reach_every_verdict_with_and_without_hidden_steps() -> None:
    draw = Random(7)
    reached: Counter[tuple[str, bool]] = Counter()
    for (name, config), model in MODELS.items():
        for order in ORDERS:
            for _ in range(8):
                case = damaged(draw, interesting_walk(draw, name, config, order), model)
                found = judge(model, case.events, case.hidden, case.hidden_max, order)
                reached[found.verdict, found.hidden > 0] += 1
    for word in ("conforms", "violates", "diverges"):
        assert min(reached[word, False], reached[word, True]) >= 8, reached
    assert reached["refused", False] >= 5, reached
