"""What a PROPERTY of a config says of states, of steps and of beginnings, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specwatch.checker import check, explore
from specwatch.checker.behaviour import Event
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaConfigError

CLOCK = """EXTENDS Naturals
VARIABLES x, y
vars == <<x, y>>
Init == x = 0 /\\ y = 0
Up == x < 3 /\\ x' = x + 1 /\\ y' = y
Wrap == x = 3 /\\ x' = 0 /\\ y' = 1 - y
Next == Up \\/ Wrap
Rise == [][x' > x]_x
Grows == x' > x
NamedBox == [Grows]_<<x>>
Through == []NamedBox
Again == Rise
OfY == [][x' > x]_y
Both == x = 0 /\\ [](y < 2) /\\ [][y' # y => x = 3]_vars
Late == x = 1 /\\ [](y < 2)
Mixed == Rise /\\ <>(x = 2) /\\ WF_vars(Next)
Live == <>(x = 3)
Leads == (x = 1) ~> (x = 2)
Fair == WF_vars(Next)
Bare == x' = x + 1
Boxed == [](x' = x + 1)
"""


@pytest.fixture
def clock(make_spec: Callable[..., Spec]) -> Callable[[str], Spec]:
    return lambda config: make_spec(CLOCK, f"INIT Init NEXT Next {config}")


def parts(spec: Spec) -> tuple[list[str], list[str], list[str], list[str]]:
    properties = (spec.invariants, spec.step_properties, spec.initial_properties)
    invariants, steps, initial = ([one.name for one in some] for some in properties)
    return invariants, steps, initial, spec.unchecked


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Rise", ([], ["Rise"], [], [])),
        ("Through", ([], ["Through"], [], [])),
        ("Again", ([], ["Again"], [], [])),
        ("Both", (["Both"], ["Both"], ["Both"], [])),
        ("Mixed", ([], ["Mixed"], [], [f"PROPERTY Mixed, its part {text}" for text in ("<>(x = 2)", "WF_vars(Next)")])),
        ("Live", ([], [], [], ["PROPERTY Live"])),
        ("Leads", ([], [], [], ["PROPERTY Leads"])),
        ("Fair", ([], [], [], ["PROPERTY Fair"])),
    ],
)  # fmt: skip
def test_all_parts_of_a_property_are_checked_under_its_name_or_named(
    clock: Callable[[str], Spec], name: str, expected: tuple[list[str], ...]
) -> None:
    assert parts(clock(f"PROPERTY {name}")) == expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("Bare", "x' = x + 1 speaks of a step, and of no behaviour"), ("Boxed", "is not of the form [A]_v")],
)
def test_what_is_no_property_of_behaviours_is_refused(clock: Callable[[str], Spec], name: str, sentence: str) -> None:
    with pytest.raises(TlaConfigError) as caught:
        clock(f"PROPERTY {name}")
    assert sentence in caught.value.message
    assert caught.value.line is not None


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        ((0, 0), (1, 0), set()),
        ((1, 0), (0, 0), {"Rise", "Through"}),
        ((1, 0), (1, 1), {"OfY"}),
        ((1, 0), (1, 0), set()),
    ],
)
def test_a_step_satisfies_a_step_property_or_leaves_its_subscript_alone(
    clock: Callable[[str], Spec], before: tuple[int, int], after: tuple[int, int], broken: set[str]
) -> None:
    assert clock("PROPERTIES Rise Through OfY").broken_step(before, after) == broken


def test_the_names_of_what_is_checked_come_once(clock: Callable[[str], Spec]) -> None:
    assert clock("PROPERTIES Both Rise").checked == ["Both", "Rise"]


def test_a_specification_with_a_second_box_is_refused(make_spec: Callable[..., Spec]) -> None:
    with pytest.raises(TlaConfigError, match=r"has 2 conjuncts of the form \[\]\[Next\]_vars"):
        make_spec(f"{CLOCK}Two == Init /\\ [][Next]_vars /\\ Rise", "SPECIFICATION Two")


# --- explore


def test_a_counterexample_ends_with_the_step_that_breaks_a_step_property(clock: Callable[[str], Spec]) -> None:
    found = explore(clock("PROPERTY Rise"))
    assert (found.outcome, found.exit_code, found.invariant, found.unchecked) == ("violates", 1, "Rise", [])
    assert [(step.action, step.state["x"]) for step in found.trace] == [
        (None, "0"), ("Up", "1"), ("Up", "2"), ("Up", "3"), ("Wrap", "0"),
    ]  # fmt: skip


def test_a_step_to_a_known_state_is_checked_too(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        "VARIABLE x\nInit == x = 0\nOn == x = 0 /\\ x' = 1\nOff == x = 1 /\\ x' = 0\nNext == On \\/ Off\n"
        "Stay == [][x = 0]_x",
        "INIT Init NEXT Next PROPERTY Stay",
    )
    found = explore(spec)
    assert (found.outcome, found.invariant) == ("violates", "Stay")
    assert [step.action for step in found.trace] == [None, "On", "Off"]


def test_a_step_that_an_action_constraint_refuses_is_not_checked(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(f"{CLOCK}NoWrap == x' > x", "INIT Init NEXT Next PROPERTY Rise ACTION_CONSTRAINT NoWrap")
    assert explore(spec).outcome == "pass"


def test_a_property_of_the_beginning_is_checked_in_initial_states_alone(clock: Callable[[str], Spec]) -> None:
    assert explore(clock("PROPERTY Both")).outcome == "pass"
    found = explore(clock("PROPERTY Late"))
    assert (found.outcome, found.invariant, len(found.trace)) == ("violates", "Late", 1)


# --- the replay


def run(spec: Spec, actions: str, **options: object) -> tuple[str, int | None, str | None]:
    verdict = check(spec, [Event(action=action) for action in actions.split()], **options)  # type: ignore[arg-type]
    finding = verdict.findings[0] if verdict.findings else None
    return verdict.verdict, finding.at if finding else None, finding.invariant if finding else None


def test_a_log_violates_a_step_property_at_its_step(clock: Callable[[str], Spec]) -> None:
    spec = clock("PROPERTY Rise")
    assert run(spec, "Up Up Up") == ("conforms", None, None)
    assert run(spec, "Up Up Up Wrap Up") == ("violates", 4, "Rise")
    assert check(spec, [Event(action="Up")]).invariants == ["Rise"]


def test_a_hidden_step_breaks_a_step_property_as_well(clock: Callable[[str], Spec]) -> None:
    assert run(clock("PROPERTY Rise"), "Up Up Up Up", hidden=["Wrap"]) == ("violates", 4, "Rise")


def test_what_is_broken_later_does_not_undo_what_a_step_broke(clock: Callable[[str], Spec]) -> None:
    spec = clock("PROPERTIES Rise Both")
    assert run(spec, "Up Up Up Wrap Wrap") == ("violates", 4, "Rise")
