"""A model's face: what a config means, how Next is split, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specwatch.checker import load_spec
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import (
    TlaConfigError,
    TlaError,
    TlaEvaluationError,
    TlaSemanticError,
    TlaSyntaxError,
)

COUNTER = """EXTENDS Naturals
VARIABLE x
Init == x = 0
Next == x' = x + 1
"""


def actions(spec: Spec) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(action.names, action.parameters) for action in spec.actions]


def test_an_action_is_named_innermost_first_and_keeps_the_names_of_its_groups(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        """VARIABLE x
Init == x = 0
Open == x' = 1
Send(m) == x' = m
Client == Open \\/ \\E m \\in {1, 2} : Send(m)
Close == x' = 0
Next == Client \\/ Close"""
    )
    assert actions(spec) == [
        (("Open", "Client", "Next"), ()),
        (("Send", "Client", "Next"), ("m",)),
        (("Close", "Next"), ()),
    ]


def test_a_guard_beside_a_disjunction_stays_a_guard(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        """VARIABLE x
Init == x = 0
A == x' = 1
B == x' = 2
Next == /\\ x = 0
        /\\ A \\/ B"""
    )
    assert [action.name for action in spec.actions] == ["A", "B"]
    assert [successor.state for successor in spec.successors((0,))] == [(1,), (2,)]
    assert list(spec.successors((1,))) == []


def test_a_conjunction_with_one_action_is_no_group(make_spec: Callable[..., Spec]) -> None:
    """``Evict == cached /\\ Drop``: a Drop event must not be explained by Evict."""
    spec = make_spec(
        """VARIABLE x
Init == x = 0
Drop == x' = 0
Evict == x = 1 /\\ Drop
Next == Drop \\/ Evict"""
    )
    assert [action.names for action in spec.actions] == [("Drop", "Next"), ("Evict", "Next")]


def test_an_action_is_spoken_of_by_the_outermost_name_that_means_it_alone(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        """VARIABLE x
Init == x = 0
Move(n) == x' = n
Publish == Move(1)
Return == Move(0)
Stop == x' = 9
Group == Publish \\/ Return
Next == Group \\/ Stop"""
    )
    assert [(action.name, action.label) for action in spec.actions] == [
        ("Move", "Publish"),
        ("Move", "Return"),
        ("Stop", "Stop"),
    ]


def test_parameters_are_the_leading_quantifiers_outside_and_inside_with_formal_names_beside(
    make_spec: Callable[..., Spec],
) -> None:
    spec = make_spec(
        """VARIABLE x
Init == x = 0
Take(n) == \\E k \\in {n} : x' = k
Next == \\E m \\in {1, 2} : Take(m)"""
    )
    [action] = spec.actions
    assert action.parameters == ("m", "k")
    assert (action.parameter("n"), action.parameter("m"), action.parameter("z")) == ("m", "m", None)


def test_init_and_next_are_taken_out_of_a_specification(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(COUNTER + "Spec == Init /\\ [][Next]_x /\\ WF_x(Next)", "SPECIFICATION Spec")
    assert list(spec.initial_states()) == [(0,)]
    assert [successor.state for successor in spec.successors((4,))] == [(5,)]


def test_a_box_property_is_an_invariant_and_any_other_is_named_as_unchecked(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        COUNTER + "Small == [](x < 5)\nLive == <>(x = 3)", "INIT Init NEXT Next PROPERTIES Small Live", name="P"
    )
    assert [invariant.name for invariant in spec.invariants] == ["Small"]
    assert spec.unchecked == ["PROPERTY Live"]


@pytest.mark.parametrize(
    ("body", "config", "error", "sentence"),
    [
        (COUNTER + "CONSTANT N", "INIT Init NEXT Next", TlaConfigError, "the constant N has no value"),
        (COUNTER, "INIT Init NEXT Nxt", TlaConfigError, "NEXT Nxt: the module M has no such definition"),
        (COUNTER, "INVARIANT Tpye", TlaConfigError, "INVARIANT Tpye: the module M has no such definition"),
        ("VARIABLE x\nInit == x = 0", "", TlaSemanticError, "the module M has no Next"),
        (COUNTER, "INIT Init NEXT Next SPECIFICATION Spec", TlaConfigError, "SPECIFICATION stands beside"),
        (COUNTER, "INVARIANT `", TlaConfigError, "`"),
        (COUNTER, "CONSTANT N = -1", TlaConfigError, "expected a value, found `-`"),
        (COUNTER + "Sp == Init", "SPECIFICATION Sp", TlaConfigError, "is not of the form"),
        (COUNTER + "Op(a) == a", "INVARIANT Op", TlaConfigError, "operator with parameters"),
        ("EXTENDS Natural\n" + COUNTER.replace("EXTENDS Naturals\n", ""), "", TlaSyntaxError, "Natural is not found"),
        (COUNTER + "Bad == yy + 1", "", TlaSemanticError, "`yy` is not defined"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    make_spec: Callable[..., Spec], body: str, config: str, error: type[TlaError], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        make_spec(body, config)
    assert sentence in caught.value.message
    assert caught.value.line is not None
    assert caught.value.column is not None


def test_a_config_error_stands_in_the_config(make_spec: Callable[..., Spec], tmp_path: Path) -> None:
    with pytest.raises(TlaConfigError) as caught:
        make_spec(COUNTER, "INIT Init\nNEXT Nex")
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(tmp_path / "M.cfg"), 2, 6)
    assert caught.value.hint == "did you mean Next?"


def test_a_step_that_leaves_a_variable_open_is_an_error_that_names_it(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec("VARIABLES x, y\nInit == x = 0 /\\ y = 0\nNext == x' = 1")
    with pytest.raises(TlaEvaluationError, match="Next leaves y without a value"):
        list(spec.successors((0, 0)))


def test_an_invariant_that_is_no_boolean_is_an_error(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(COUNTER + "Inv == x", "INVARIANT Inv\nINIT Init NEXT Next")
    with pytest.raises(TlaEvaluationError, match="the integer 0 stands where a Boolean is needed"):
        spec.broken((0,))


def test_endless_recursion_is_an_error_of_the_spec(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        COUNTER + "RECURSIVE F(_)\nF(n) == F(n + 1)\nInv == F(0) = 0", "INVARIANT Inv\nINIT Init NEXT Next"
    )
    with pytest.raises(TlaEvaluationError, match="nests too deeply"):
        spec.broken((0,))


def test_deep_recursion_that_ends_has_a_value(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        COUNTER + "RECURSIVE F(_)\nF(n) == IF n = 0 THEN 0 ELSE 1 + F(n - 1)\nInv == F(500) = 500",
        "INVARIANT Inv\nINIT Init NEXT Next",
    )
    assert spec.broken((0,)) == frozenset()


def test_constants_come_from_the_config_a_log_or_the_command_line_in_this_order(tmp_path: Path) -> None:
    module = tmp_path / "C.tla"
    module.write_text(
        "---- MODULE C ----\nCONSTANTS A, B, S\nVARIABLE x\nInit == x = <<A, B, S>>\nNext == x' = x\n====\n"
    )
    module.with_suffix(".cfg").write_text("CONSTANTS A = 1 B = 2 S = {m1, m2}")
    spec = load_spec(module, constants={"B": 3, "S": {"#set": ["m1", "t"]}}, constants_text={"A": '"seven"'})
    [(value,)] = spec.initial_states()
    assert value[:2] == ("seven", 3)
    # What the config knows as a model value is one in the log's values too.
    assert {str(item) for item in value[2]} == {"m1", "t"}
    assert sorted(type(item).__name__ for item in value[2]) == ["ModelValue", "str"]


def test_an_unknown_constant_is_a_warning(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(COUNTER, "INIT Init NEXT Next CONSTANT Typo = 1")
    assert "Typo is no constant of M: ignored" in spec.warnings[0]


def test_what_parses_and_cannot_be_evaluated_yet_is_refused_at_once(make_spec: Callable[..., Spec]) -> None:
    with pytest.raises(TlaSemanticError, match="INSTANCE parses, and cannot be evaluated yet"):
        make_spec(COUNTER.replace("VARIABLE x", "VARIABLE x\nN == INSTANCE Naturals"))
