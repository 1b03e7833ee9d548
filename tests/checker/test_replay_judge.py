"""The replay against a judge that shares no line with it: random walks of a spec, as they are and damaged.

A walk is drawn through the model that is written by hand; its events give some of the parameters and of the states, and
steps of hidden actions may be left out. Then one event is dropped, doubled, swapped, altered … and both judges answer.
Hypothesis draws seeds only: drawn choice by choice, most walks are too short to break or to hide anything.
"""

from __future__ import annotations

import copy
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.checker.judge import REFUSED, Json, Judgement, Model, State, Step, judge, to_json
from tests.checker.models import MODELS, TRACES

from specwatch.checker import check, load_spec
from specwatch.checker.behaviour import Behaviour, Event, Order
from specwatch.checker.bounds import Bounds
from specwatch.checker.replay import EventError, Replay, Rules
from specwatch.checker.spec import Spec
from specwatch.checker.verdict import Finding, Verdict

WALKS = 10
MUTANTS = 7
WALKS_NIGHTLY = 450

FINITE = {
    "VisQueue": ("VisTimeout", "Ack", "Skip"),
    "Counter": ("Tick", "Leap", "ReadAtLeast"),
    "TokenBucket": ("Refill", "RefillAll", "Deny"),
    "BoundedBuffer": ("Drop", "Peek"),
    "LeaseLock": ("Expire", "Release", "Acquire"),
    "Conn": ("Lose", "Established", "Accept", "CloseAck"),
    "CeleryETA": ("VisTimeoutExpired", "AckTask", "PickupTask", "AckWithoutExecute"),
    "Shelf": ("Publish", "Pickup", "Timeout", "Ack", "Undo", "Execute"),
    "Twins": ("Up", "Down", "Swap", "Toggle", "Jump"),
}
"""Actions that lead to few states however often they are inserted: these may be hidden without ``hidden_max``."""

BRANCHING = {"Put", "Get", "Write"}
"""Actions that lead to another state by each parameter, again and again: hidden, they cost minutes a case."""

SEPARABLE = {"Shelf"}

fixed = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # seeds do not shrink: `smaller` does that
    suppress_health_check=list(HealthCheck),
)
ORDERS: tuple[Order, ...] = ("total", "emitter")
every_order = pytest.mark.parametrize("order", ORDERS)
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


def damaged(draw: Random, case: Case, model: Model) -> Case:
    """The case with one thing wrong, and sometimes another bound."""
    events = copy.deepcopy(case.events)
    draw.choice(DAMAGES)(draw, events, model, draw.randrange(len(events)))
    hidden_max = case.hidden_max
    if hidden_max is not None and draw.random() < 0.3:
        hidden_max = draw.randint(0, 3)
    return replace(case, events=numbered(events), hidden_max=hidden_max, sound=False)


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
    outcome = Replay(spec, Behaviour(events=events, order=case.order), Rules(hidden, case.hidden_max), Bounds()).run()
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
