"""Why: what an explanation says of a step that the spec does not allow, and of one that breaks something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specwatch.checker import check
from specwatch.checker.api import Options, judge
from specwatch.checker.behaviour import Behaviour, Event, Ledger, Loss
from specwatch.checker.spec import Spec
from specwatch.checker.verdict import Explanation, Finding

TERMS = """EXTENDS Naturals, Sequences
CONSTANTS MaxTerm, Servers, Words
VARIABLES term, log
Terms == 1..MaxTerm
Init == term = [s \\in Servers |-> 0] /\\ log = <<>>
Elect(s, n) == n > term[s] /\\ term' = [term EXCEPT ![s] = n] /\\ UNCHANGED log
Put(w) == log' = Append(log, w) /\\ UNCHANGED term
Count(k) == log' = Append(log, k) /\\ UNCHANGED term
Clear(s) == term' = [term EXCEPT ![s] = 0] /\\ UNCHANGED log
Next == \\/ \\E s \\in Servers, n \\in Terms : Elect(s, n)
        \\/ \\E w \\in Words : Put(w)
        \\/ \\E k \\in 0..MaxTerm - 1 : Count(k)
        \\/ \\E s \\in Servers : Clear(s)
Mono == [][\\A s \\in Servers : term'[s] >= term[s]]_<<term, log>>
Short == Len(log) < 2
Both == [](Len(log) < 2) /\\ [][\\A s \\in Servers : term'[s] >= term[s]]_term
"""
CONFIG = 'INIT Init NEXT Next CONSTANTS MaxTerm = 3 Servers = {n1, n2} Words = {"a", "b"}'


@pytest.fixture
def explained(make_spec: Callable[..., Spec]) -> Callable[..., Explanation]:
    """The explanation of the first finding about some events."""

    def explain(*events: Event, config: str = "", **options: Any) -> Explanation:
        verdict = check(make_spec(TERMS, f"{CONFIG} {config}"), events, **options)
        why = verdict.findings[0].explanation
        assert why is not None
        return why

    return explain


# --- a step that the spec does not allow


@pytest.mark.parametrize(
    ("action", "params", "cause", "remedy"),
    [
        ("Elect", {"n": 7}, "MaxTerm = 3 bounds the model: 7 is outside Terms", "raise MaxTerm: --constant MaxTerm=7"),
        ("Count", {"k": 3}, "MaxTerm = 3 bounds the model: 3 is outside 0..MaxTerm - 1", "--constant MaxTerm=4"),
        ("Elect", {"s": "n3"}, 'Servers = {n1, n2} bounds the model: "n3" is outside', "'Servers={n1, n2, n3}'"),
        ("Put", {"w": "c"}, 'Words = {"a", "b"} bounds the model: "c" is outside', "'Words={\"a\", \"b\", \"c\"}'"),
        ("Elect", {"n": "x"}, None, None),  # of another kind
        ("Elect", {"n": 0}, None, None),  # outside, and not because of the constant
        ("Put", {"w": 3}, None, None),
        ("Elect", {"n": 1.5}, None, None),
    ],
)  # fmt: skip
def test_a_value_beyond_a_constant_is_named_as_a_bound_of_the_model(
    explained: Callable[..., Explanation], action: str, params: dict[str, Any], cause: str | None, remedy: str | None
) -> None:
    why = explained(Event(action=action, params=params))
    if cause is None:
        assert (why.cause, why.remedy) == (None, None)
    else:
        assert cause in (why.cause or "")
        assert remedy is not None
        assert remedy in (why.remedy or "")


def test_more_steps_than_are_shown_are_counted(explained: Callable[..., Explanation]) -> None:
    why = explained(Event(action="Elect", params={"s": "n1", "n": 9}))
    # Two servers by three terms, two words, three counts, two clearings.
    assert len(why.enabled_instead) == 11
    assert why.enabled_instead[-1] == "… and 3 more"


def test_what_was_observed_is_told_at_the_smallest_part_that_is_not_so(explained: Callable[..., Explanation]) -> None:
    seen = {"term": {"n1": {"#delta": 2}, "n2": 0, "n9": 1}, "log": {"#appended": ["a"]}}
    why = explained(Event(action="Elect", params={"s": "n1", "n": 1}, state=seen))
    told = [(one.text, one.values) for one in why.conjuncts if one.value == "FALSE"]
    assert told == [
        ("term[n1] observed to change by 2", {"term[n1] before": "0", "term[n1]": "1"}),
        ('term observed after the step with "n9" in it', {"term": "(n1 :> 1 @@ n2 :> 0)"}),
        ('log observed to end with more: <<"a">>', {"log before": "<<>>", "log": "<<>>"}),
    ]


def test_what_is_expected_is_told_with_what_it_reads(explained: Callable[..., Explanation]) -> None:
    event = Event(
        action="Elect",
        params={"s": "n1", "n": 2},
        expect=["term[s] = $term", "log = <<>>", "$term > $term[1]"],
        extra={"term": 3},
    )
    told = [(one.text, one.value, one.values) for one in explained(event).conjuncts if one.value != "TRUE"]
    assert told[0] == ("expected: term[s] = $term", "FALSE", {"term[n1]": "2", "$term": "3"})
    assert told[1][0] == "expected: $term > $term[1]"
    assert told[1][1].startswith("without a value")
    assert len(told) == 2


# --- a step that breaks something


def test_a_broken_step_property_is_told_with_the_values_before_and_after(explained: Callable[..., Explanation]) -> None:
    why = explained(
        Event(action="Elect", params={"s": "n1", "n": 2}),
        Event(action="Clear", params={"s": "n1"}),
        config="PROPERTY Mono INVARIANT Short",
    )
    assert why.summary == 'event 2, Clear(s = "n1"), breaks Mono'
    [part] = why.conjuncts
    assert (part.text, part.value) == ("term'[s] >= term[s]", "FALSE")
    assert part.values == {"term'[n1]": "0", "term[n1]": "2"}
    assert why.state_change == {"term[n1]": ["2", "0"]}


def test_of_a_property_of_several_parts_only_the_broken_one_is_told(explained: Callable[..., Explanation]) -> None:
    events = [Event(action="Put", params={"w": "a"}), Event(action="Put", params={"w": "a"})]
    assert [one.text for one in explained(*events, config="PROPERTY Both").conjuncts] == ["(Len(log) < 2)"]


def judged(spec: Spec, losses: list[Loss], *events: Event) -> Finding:
    verdict = judge(spec, [Behaviour(events=list(events), losses=losses)], Options(), Ledger())
    return verdict.findings[0]


def test_a_step_that_was_lost_is_told_with_what_is_missing(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(TERMS, f"{CONFIG} INVARIANT Short")
    loss = Loss(reason="gap", detail="worker-2 lacks seq 2", count=1, after=0, before=1)
    finding = judged(
        spec,
        [loss],
        Event(action="Put", params={"w": "a"}, state={"log": ["a"]}),
        Event(action="Put", params={"w": "a"}, before={"log": ["a", "b"]}),
    )
    assert (finding.verdict, finding.at) == ("violates", 2)
    why = finding.explanation
    assert why is not None
    assert why.margins == ['what is missing (worker-2 lacks seq 2) is taken for Put(w = "b"), before event 2']
    assert why.summary.startswith("the lost step Put before event 2 breaks Short")
    assert finding.hidden == []
