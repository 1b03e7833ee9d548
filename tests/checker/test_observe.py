"""What an event says against what a value is: the table in :mod:`specwatch.checker.observe`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from specwatch.checker import check
from specwatch.checker.behaviour import Event, Json, Source
from specwatch.checker.observe import candidates, matches, misplaced, to_value
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaError
from specwatch.checker.tla.values import FALSE, INT, TRUE, Interval, ModelValue, Value, ValueProblem

N1 = ModelValue("n1")


@pytest.mark.parametrize(
    ("observed", "value", "answer"),
    [
        (1, 1, True),
        (1, TRUE, False),
        (True, TRUE, True),
        (True, 1, False),
        (0, FALSE, False),
        (10**30, 10**30, True),
        (1.5, 1, False),
        (1.0, 1, False),
        (None, 1, False),
        ("a", "a", True),
        ("n1", N1, True),
        ("1", 1, False),
        ([1, 2], (1, 2), True),
        ([1], (1, 2), False),
        ([], (), True),
        ({"#set": [2, 1]}, frozenset({1, 2}), True),
        ({"#set": [1, 1]}, frozenset({1}), True),
        ({"#set": [1]}, frozenset({1, 2}), False),
        ({"#set": ["n1"]}, frozenset({N1}), True),
        ({"#map": [[1, "a"], [2, "b"]]}, ("a", "b"), True),
        ({"#map": [[0, "a"]]}, Map({0: "a"}), True),
        ({"#map": [[0, "a"]]}, Map({0: "a", 5: "b"}), False),
        ({"#tup": [1, "n1"]}, (1, N1), True),
        ({"a": 1}, Map({"a": 1, "b": 2}), True),
        ({"c": 1}, Map({"a": 1}), False),
        ({"n1": 1}, Map({N1: 1}), True),
        ({"a": {"b": 1}}, Map({"a": Map({"b": 1, "c": 2})}), True),
        ({"#set": [{"a": 1}]}, frozenset({Map({"a": 1, "b": 2})}), False),
        ([{"a": 1}], (Map({"a": 1, "b": 2}),), False),
        ({"#set": 5}, frozenset(), False),
        ({"#set": None}, frozenset(), False),
        ({"#tup": 3}, (), False),
        ({"#map": [[1]]}, (1,), False),
        ({"#map": [[1, 2, 3]]}, (2,), False),
        ({"#map": 5}, (), False),
        ({}, (), True),
        ({}, frozenset(), False),
    ],
)
def test_matches(observed: Json, value: Value, answer: bool) -> None:
    assert matches(observed, value) is answer


def test_a_parameter_of_another_kind_is_no_member_and_no_error() -> None:
    assert candidates("a", Interval(1, 3), frozenset()) == []
    assert candidates(True, Interval(0, 1), frozenset()) == []
    assert candidates(2, Interval(1, 3), frozenset()) == [2]
    assert candidates(-5, INT, frozenset()) == [-5]


def test_a_name_means_a_string_or_a_model_value_whichever_the_set_has() -> None:
    assert candidates("n1", frozenset({N1}), frozenset({"n1"})) == [N1]
    assert candidates("n1", frozenset({"n1"}), frozenset({"n1"})) == ["n1"]


def test_some_fields_of_a_record_parameter_leave_the_others_open() -> None:
    messages = frozenset(
        {Map({"kind": "vote", "to": 1}), Map({"kind": "vote", "to": 2}), Map({"kind": "lead", "to": 1})}
    )
    assert candidates({"kind": "vote"}, messages, frozenset()) == [
        Map({"kind": "vote", "to": 1}),
        Map({"kind": "vote", "to": 2}),
    ]


def test_null_and_fractions_are_no_values() -> None:
    refused: list[Json] = [None, 0.5, [None], {"#set": 5}, {"#tup": {}}, {"#map": [[1]]}, {"#map": "ab"}]
    for observed in refused:
        with pytest.raises(ValueProblem):
            to_value(observed)


JSON = st.recursive(
    st.integers() | st.booleans() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner),
    max_leaves=12,
)


@given(JSON)
def test_every_value_matches_what_it_was_made_from(observed: Json) -> None:
    assert matches(observed, to_value(observed))


# --- deltas


@pytest.mark.parametrize(
    ("observed", "before", "value", "answer"),
    [
        ({"#delta": 2}, 1, 3, True),
        ({"#delta": -1}, 1, 0, True),
        ({"#delta": 0}, 1, 1, True),
        ({"#delta": 1}, 1, 3, False),
        ({"#delta": 1}, "1", 2, False),
        ({"#delta": 1}, FALSE, TRUE, False),
        ({"#added": [2]}, frozenset({1}), frozenset({1, 2}), True),
        ({"#added": ["n1"]}, frozenset(), frozenset({N1}), True),
        ({"#added": []}, frozenset({1}), frozenset({1}), True),
        ({"#added": [1]}, frozenset({1}), frozenset({1}), False),  # it was in it
        ({"#added": [2]}, frozenset({1}), frozenset({2}), False),  # one is gone
        ({"#added": [2]}, frozenset({1}), frozenset({1, 2, 3}), False),
        ({"#added": [2]}, 1, frozenset({2}), False),
        ({"#removed": [2]}, frozenset({1, 2}), frozenset({1}), True),
        ({"#removed": [2]}, frozenset({1}), frozenset({1}), False),
        ({"#removed": [2]}, frozenset({1, 2}), frozenset({3}), False),
        ({"#appended": [3]}, (1, 2), (1, 2, 3), True),
        ({"#appended": [{"a": 1}]}, (), (Map({"a": 1}),), True),
        ({"#appended": [{"a": 1}]}, (), (Map({"a": 1, "b": 2}),), False),
        ({"#appended": []}, (1,), (1,), True),
        ({"#appended": [3]}, (1, 2), (3, 1, 2), False),
        ({"#appended": [3]}, (1, 2), (1, 3), False),
        ({"#appended": [1]}, frozenset(), (1,), False),
        ({"t": {"#delta": 1}}, Map({"t": 1, "u": 5}), Map({"t": 2, "u": 6}), True),
        ({"n1": {"#appended": ["a"]}}, Map({N1: ()}), Map({N1: ("a",)}), True),
        ({"a": {"b": {"#delta": 1}}}, Map({"a": Map({"b": 1}), "c": 0}), Map({"a": Map({"b": 2}), "c": 7}), True),
        ({"t": {"#delta": 1}}, Map({"u": 1}), Map({"u": 1, "t": 1}), False),  # it was not there before
        ({"t": {"#delta": 1}}, (), Map({"t": 1}), False),
        ({"#delta": 1, "x": 2}, Map({"x": 2}), Map({"x": 2}), False),  # an object with a field of that name
    ],
)  # fmt: skip
def test_a_delta_says_what_a_step_changed(observed: Json, before: Value, value: Value, answer: bool) -> None:
    assert matches(observed, value, before=before) is answer


def test_without_the_value_before_a_delta_matches_nothing() -> None:
    assert not matches({"#delta": 0}, 1)
    assert not matches({"#added": []}, frozenset())


@pytest.mark.parametrize(
    ("observed", "after", "wrong"),
    [
        ({"#delta": 1}, True, None),
        ({"a": {"b": {"#added": [{"c": 1}, [2]]}}}, True, None),
        ({"#delta": 1, "x": 1}, False, None),
        ({"#delta": 1}, False, "#delta stands where no step's change was observed"),
        ({"a": {"#appended": []}}, False, "#appended stands where no step's change was observed"),
        ([{"#delta": 1}], True, "#delta stands where no step's change was observed"),
        ({"#set": [{"#delta": 1}]}, True, "#delta stands where no step's change was observed"),
        ({"#map": [["k", {"#removed": []}]]}, True, "#removed stands where no step's change was observed"),
        ({"#added": [{"#delta": 1}]}, True, "#delta stands where no step's change was observed"),
        ({"#delta": "1"}, True, "#delta is '1', and no integer"),
        ({"#delta": True}, True, "#delta is True, and no integer"),
        ({"#added": 1}, True, "#added needs a list"),
    ],
)
def test_a_delta_stands_only_where_a_step_changed_something(observed: Json, after: bool, wrong: str | None) -> None:
    assert misplaced(observed, after=after) == wrong


COUNTER = """EXTENDS Integers, Sequences
VARIABLES n, seen
Init == n = 0 /\\ seen = {}
Add(k) == n' = n + k /\\ seen' = seen \\union {k}
Next == \\E k \\in 1..3 : Add(k)
"""


def test_a_delta_binds_what_the_event_leaves_open(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(COUNTER)
    events = [
        Event(action="Add", state={"n": {"#delta": 2}, "seen": {"#added": [2]}}),
        Event(action="Add", params={"k": 2}, state={"seen": {"#added": []}}),
    ]
    assert check(spec, events).verdict == "conforms"
    events[1].state = {"n": {"#delta": 1}}
    verdict = check(spec, events)
    assert (verdict.verdict, verdict.findings[0].at) == ("diverges", 2)
    why = verdict.findings[0].explanation
    assert why is not None
    assert "n observed to change by 1" in why.conjuncts[-1].text
    assert why.conjuncts[-1].values == {"n before": "2", "n": "4"}


@pytest.mark.parametrize(
    ("event", "where"),
    [
        (Event(action="Add", before={"n": {"#delta": 1}}), "before.n"),
        (Event(action="Add", params={"k": {"#delta": 1}}), "params.k"),
        (Event(action="Add", state={"seen": {"#set": [{"#delta": 1}]}}), "state.seen"),
    ],
)
def test_a_delta_out_of_place_is_refused_with_its_event(
    make_spec: Callable[..., Spec], event: Event, where: str
) -> None:
    event.source = Source("a.log", 3)
    diverging = Event(action="Add", params={"k": 9})
    with pytest.raises(TlaError, match=f"event 3, Add: {where}: #delta stands") as caught:
        check(make_spec(COUNTER), [diverging, Event(action="Add"), event])
    assert (caught.value.file, caught.value.line) == ("a.log", 3)
