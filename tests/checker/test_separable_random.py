"""A spec that is called separable is the product of its keys: in each step, and in the verdict on logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
from tests.checker.product_of_keys import Product, drawn_states, groups
from tests.checker.random_specs import KEYED, SHARED, RandomSpec

from specwatch.checker import check
from specwatch.checker.api import Options
from specwatch.checker.behaviour import Behaviour, Event, Ledger
from specwatch.checker.judging import Judge
from specwatch.checker.slicing import Coupled, Separable, separable
from specwatch.checker.spec import Spec, Successor
from specwatch.checker.tla.errors import TlaError, TlaEvaluationError
from specwatch.checker.verdict import Verdict

MakeSpec = Callable[..., Spec]
KINDS = {**KEYED, **SHARED}


def drawn(make_spec: MakeSpec, seed: object, number: int, wild: float) -> Iterator[tuple[Random, Spec]]:
    """Random specs; what a wild one says may be no TLA+."""
    for index in range(number):
        draw = Random(f"{seed} {index} {wild}")
        random = RandomSpec(draw, wild)
        try:
            spec = make_spec(random.text(), random.config())
        except TlaError:
            assert wild  # a tame one is written well
            continue
        yield draw, spec


@pytest.mark.parametrize("wild", [0.0, 0.02, 0.05])
def test_what_is_called_separable_is_the_product_of_its_keys(make_spec: MakeSpec, wild: float) -> None:
    proven, refused = prove_and_look(make_spec, "", 25, wild)
    # What is written to be separable is proven; else this would be about nothing.
    assert proven >= 3
    assert bool(refused) == bool(wild)


@pytest.mark.nightly
@pytest.mark.parametrize("wild", [0.0, 0.01, 0.02, 0.03, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_called_separable_is_the_product_of_its_keys_every_night(
    make_spec: MakeSpec, seed: int, wild: float
) -> None:
    assert prove_and_look(make_spec, seed, 300, wild) != (0, 0)


def prove_and_look(make_spec: MakeSpec, seed: object, number: int, wild: float) -> tuple[int, int]:
    """How many random specs are proven to be separable, and are; and how many are not proven."""
    proven = refused = 0
    for draw, spec in drawn(make_spec, seed, number, wild):
        try:
            proof = separable(spec, "t", run_level=True)
        except Coupled:
            refused += 1
            continue
        states = [*drawn_states(spec, KINDS, proof.keyed, draw, 8), *spec.initial_states()]
        try:
            Product(spec, proof).check(states)
        except TlaEvaluationError:
            continue  # a wild one reads what has no value yet
        proven += 1
    return proven, refused


# --- logs -------------------------------------------------------------------------------------------------------------


def event_of(step: Successor, draw: Random, proof: Separable) -> Event:
    """A step as an event. Parameters may be left out, but for the key and for what keys must agree on."""
    whole = step.action in proof.choices
    params = {name: value for name, value in step.params if whole or name == proof.key or draw.random() < 0.8}
    return Event(action=step.action.label, params=params)


def walk(spec: Spec, proof: Separable, draw: Random, hidden: Sequence[str]) -> list[Event]:
    state = next(spec.initial_states())
    events = []
    for _ in range(draw.randrange(2, 9)):
        steps = list(spec.successors(state))
        if not steps:
            break
        good = [step for step in steps if not spec.broken(step.state)]
        step = draw.choice(good if good and draw.random() < 0.8 else steps)
        state = step.state
        if step.action.label not in hidden or draw.random() < 0.3:
            events.append(event_of(step, draw, proof))
    for _ in range(draw.randrange(3)):
        damage(events, draw, sorted(spec.evaluator.constants["K"]))
    return events


def damage(events: list[Event], draw: Random, keys: list[str]) -> None:
    """One event dropped, doubled, moved, or told of another action or key."""
    if not events:
        return
    place = draw.randrange(len(events))
    event = events[place]
    alike = [other for other in events if other.params.keys() == event.params.keys()]
    match draw.randrange(5):
        case 0:
            del events[place]
        case 1:
            events.insert(draw.randrange(len(events) + 1), event)
        case 2:
            events.insert(draw.randrange(len(events)), events.pop(place))
        case 3:
            events[place] = Event(action=draw.choice(alike).action, params=event.params)
        case 4 if "t" in event.params:
            events[place] = Event(action=event.action, params={**event.params, "t": draw.choice(keys)})


def leaves_open(product: Product, events: Sequence[Event]) -> bool:
    """Whether what keys must agree on is not told by the events."""
    states = set(product.none.initial_states())
    labels = {action.label for action in product.proof.run_level}
    must_agree = {action.label for action in product.proof.choices}
    for event in events:
        if event.action not in labels:
            continue
        following = set()
        for state in states:
            steps = [
                successor
                for (action, params), found in groups(product.none, state).items()
                if action == event.action and all(dict(params)[name] == value for name, value in event.params.items())
                for successor in found
            ]
            outcomes = {successor.state for successor in steps}
            if event.action in must_agree and len(outcomes) > 1:
                return True
            following |= outcomes
        states = following
    return False


def judged(spec: Spec, events: Sequence[Event], hidden: Sequence[str]) -> Verdict:
    """The verdict of scope run, with nothing told apart inside."""
    judge = Judge(spec, Options(hidden=tuple(hidden), max_states=3_000), Ledger(read=len(events)), ())
    judge.answers.tables = None
    return judge.judge([Behaviour(events=list(events))])


def first_failure(verdict: Verdict, numbers: Sequence[int]) -> tuple[float, str, str | None]:
    """Where a verdict fails in the whole log, how, and by which invariant."""
    if verdict.verdict in ("conforms", "vacuous"):
        return float("inf"), "conforms", None
    finding = verdict.findings[0]
    assert finding.at is not None
    return (numbers[finding.at - 1] if finding.at else 0), verdict.verdict, finding.invariant


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wild", [0.0, 0.02])
def test_a_log_is_judged_as_its_keys_are(make_spec: MakeSpec, seed: int, wild: float) -> None:
    """Events of one key, with the run-level ones, get one verdict from the spec and from the spec with that key alone;
    and all events get the worst of these, where it comes first.
    """
    words = judge_logs(make_spec, seed, 8 if not wild else 5, wild)
    assert {"conforms", "diverges", "violates"} <= words or wild


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("wild", [0.0, 0.015, 0.03])
def test_a_log_is_judged_as_its_keys_are_every_night(make_spec: MakeSpec, seed: int, wild: float) -> None:
    assert judge_logs(make_spec, f"night {seed}", 200, wild) >= {"conforms", "diverges", "violates"}


def judge_logs(make_spec: MakeSpec, seed: object, number: int, wild: float) -> set[str]:
    """The words of the verdicts that random specs give on random logs, which are those of the keys."""
    words = set()
    for draw, spec in drawn(make_spec, f"log {seed}", number, wild):
        try:
            proof = separable(spec, "t", run_level=True)
        except Coupled:
            continue
        [first] = spec.initial_states()
        broken = spec.broken(first)
        spec.invariants[:] = [invariant for invariant in spec.invariants if invariant.name not in broken]
        product = Product(spec, proof)
        may_hide = sorted(action.label for action in set(spec.actions) - proof.choices)
        for _ in range(4):
            hidden = draw.sample(may_hide, min(len(may_hide), draw.randrange(3)))
            try:
                events = walk(spec, proof, draw, hidden)
                if not events or leaves_open(product, events):
                    continue
                words.add(compare(product, events, hidden))
            except TlaEvaluationError:
                assert wild
    return words


def compare(product: Product, events: list[Event], hidden: list[str]) -> str:
    key = product.proof.key
    found = {}
    for one in product.keys:
        own = [number for number, event in enumerate(events, 1) if event.params.get(key, one) == one]
        alone = judged(product.parts[one], [events[number - 1] for number in own], hidden)
        if alone.verdict == "inconclusive":
            return "inconclusive"
        found[one] = first_failure(alone, own)
    numbers = list(range(1, len(events) + 1))
    whole = judged(product.spec, events, hidden)
    if whole.verdict == "inconclusive":
        return "inconclusive"
    at = min(failed for failed, _, _ in found.values())
    first = [(word, invariant) for failed, word, invariant in found.values() if failed == at]
    word = min(word for word, _ in first)  # alphabetically, what is not explained comes first
    told = first_failure(whole, numbers)
    assert told[:2] == (at, word), (events, hidden)
    if len(first) == 1:
        assert told[2] == first[0][1], (events, hidden)
    # The scope that is made for it says the same of each key.
    by_key = check(product.spec, events, hidden=hidden, scope="key")
    failures = {finding.key: finding for finding in by_key.findings}
    for one, (failed, word_, _) in found.items():
        own = [number for number, event in enumerate(events, 1) if event.params.get(key, one) == one]
        if None not in failures and any(event.params.get(key) == one for event in events):
            finding = failures.get(one)
            assert ("conforms" if finding is None else finding.verdict) == word_, (one, events, hidden)
            if finding is not None:
                assert finding.at is not None
                assert (own[finding.at - 1] if finding.at else 0) == failed, (one, events, hidden)
    return word
