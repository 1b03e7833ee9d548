"""What a .cfg means where a log is replayed: what holds, and what is left out or not checked, and then named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specwatch.checker import check, explore
from specwatch.checker.behaviour import Event
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaConfigError
from specwatch.checker.verdict import Verdict

CLOCK = """EXTENDS Naturals, TLC
CONSTANTS Last, Names
VARIABLE x
Init == x = 0
Up == x' = x + 1
Next == Up
Spec == Init /\\ [][Next]_x /\\ WF_x(Next)
Low == x < Last
Few == x < 2
Slow == x' < 2
Perms == Permutations(Names)
Seen == <<x>>
Shown == [value |-> x]
Done == TRUE
Small == [](x < Last)
Rises == [][x' > x]_x
Begins == x = 0 /\\ [](x < Last)
Ends == <>(x = 3)
More == 5
Odd == Last % 2 = 1
ASSUME Odd
"""
CONSTANTS = "CONSTANTS Last = 3 Names = {n1, n2}"


@pytest.fixture
def verdict(make_spec: Callable[..., Spec]) -> Callable[..., Verdict]:
    """``verdict("INVARIANT Low", 2)``: what a config says of so many steps."""

    def run(config: str, steps: int, constants: str = CONSTANTS) -> Verdict:
        init = "" if "SPECIFICATION" in config else "INIT Init NEXT Next "
        return check(make_spec(CLOCK, f"{init}{constants} {config}"), [Event(action="Up")] * steps)

    return run


@pytest.mark.parametrize(
    ("config", "steps", "word"),
    [
        ("INVARIANT Low", 2, "conforms"),
        ("INVARIANT Low", 3, "violates"),
        ("PROPERTY Small", 3, "violates"),
        ("PROPERTY Rises", 9, "conforms"),
        ("SPECIFICATION Spec INVARIANTS Low", 3, "violates"),
        ("CONSTANT Last <- More INVARIANT Low", 3, "conforms"),
        ("CONSTANT Last <- More INVARIANT Low", 5, "violates"),
        ("CONSTRAINT Few", 9, "conforms"),
        ("ACTION_CONSTRAINT Slow", 9, "conforms"),
    ],
)
def test_what_holds_of_a_log(verdict: Callable[..., Verdict], config: str, steps: int, word: str) -> None:
    constants = CONSTANTS.replace("Last = 3", "") if "<-" in config else CONSTANTS
    assert verdict(config, steps, constants).verdict == word


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("CONSTRAINT Few", "CONSTRAINT Few is ignored"),
        ("ACTION_CONSTRAINT Slow", "ACTION_CONSTRAINT Slow is ignored"),
        ("SYMMETRY Perms", "SYMMETRY Perms is ignored"),
        ("VIEW Seen", "VIEW Seen is ignored"),
        ("ALIAS Shown", "ALIAS Shown is ignored"),
        ("CHECK_DEADLOCK TRUE", "CHECK_DEADLOCK is ignored"),
        ("POSTCONDITION Done", "not checked: POSTCONDITION Done"),
        ("PROPERTY Ends", "not checked: PROPERTY Ends"),
        ("PROPERTY Begins", "not checked: PROPERTY Begins, its part x = 0: it speaks of initial states alone"),
        ("CONSTANT Typo = 1", "Typo is no constant of M: ignored"),
    ],
)
def test_what_is_left_out_is_named_and_changes_no_verdict(
    verdict: Callable[..., Verdict], config: str, named: str
) -> None:
    found = verdict(config, 2)
    assert found.verdict == "conforms"
    assert [text for text in found.assumptions if named in text]


def test_fairness_beside_next_asks_nothing_of_a_log(verdict: Callable[..., Verdict]) -> None:
    assert verdict("SPECIFICATION Spec", 1).assumptions == []


def test_a_false_assumption_is_refused(verdict: Callable[..., Verdict]) -> None:
    with pytest.raises(TlaConfigError, match="the ASSUME Odd is FALSE"):
        verdict("", 1, CONSTANTS.replace("3", "2"))


@pytest.mark.parametrize(
    ("config", "unchecked", "note"),
    [
        ("POSTCONDITION Done", ["POSTCONDITION Done"], None),
        ("PROPERTY Ends", ["PROPERTY Ends"], None),
        ("ALIAS Shown", [], "ALIAS Shown is not applied"),
        ("SYMMETRY Perms", [], "SYMMETRY Perms is not applied"),
        ("VIEW Seen", [], "VIEW Seen is not applied"),
    ],
)
def test_exploration_names_what_it_leaves_out(
    make_spec: Callable[..., Spec], config: str, unchecked: list[str], note: str | None
) -> None:
    found = explore(make_spec(CLOCK, f"INIT Init NEXT Next {CONSTANTS} CONSTRAINT Few {config}"), deadlock=False)
    assert (found.outcome, found.unchecked) == ("pass", unchecked)
    assert found.exit_code == (3 if unchecked else 0)
    assert note is None or [text for text in found.notes if note in text]


# --- definitions that are judged by name


def test_a_definition_is_a_property_of_a_state_by_its_name(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(CLOCK, f"INIT Init NEXT Next {CONSTANTS}")
    assert (spec.predicate("Low").name, spec.predicate("Low").expression.span.text) == ("Low", "x < Last")


@pytest.mark.parametrize(
    ("name", "sentence", "hint"),
    [
        ("Lwo", "the module M has no definition Lwo", "did you mean Low?"),
        ("Up", "Up speaks of more than one state", None),
        ("Ends", "Ends speaks of more than one state", None),
        ("Plus", "Plus has parameters", None),
    ],
)
def test_what_is_no_property_of_a_state_is_refused(
    make_spec: Callable[..., Spec], name: str, sentence: str, hint: str | None
) -> None:
    spec = make_spec(f"{CLOCK}Plus(n) == n + 1", f"INIT Init NEXT Next {CONSTANTS}")
    with pytest.raises(TlaConfigError) as caught:
        spec.predicate(name)
    assert sentence in caught.value.message
    assert caught.value.hint == hint
