"""What an event says against what a value is: the table in :mod:`specwatch.checker.observe`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from specwatch.checker.behaviour import Json
from specwatch.checker.observe import candidates, matches, to_value
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
