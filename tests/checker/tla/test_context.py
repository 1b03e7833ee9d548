"""Some tokens are what they are by their neighbours."""

from __future__ import annotations

import pytest

from specwatch.checker.tla.context import classify
from specwatch.checker.tla.scan import tokens
from specwatch.checker.tla.source import SourceText


def kinds(text: str) -> str:
    return " ".join(token.kind for token in classify(tokens(SourceText("t", text)))[:-1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 1 b == 2", "MARKER NAME == NUMBER MARKER NAME == NUMBER"),
        ("F(a, G(_)) == 1", "MARKER NAME ( NAME , NAME ( _ ) ) == NUMBER"),
        ("f[x] == 1", "MARKER NAME [ NAME ] == NUMBER"),
        (r"a \oplus b == 1", r"MARKER NAME \oplus NAME == NUMBER"),
        ("-. a == 1", "MARKER -. NAME == NUMBER"),
        ("a ^+ == 1", "MARKER NAME ^+ == NUMBER"),
        ("LOCAL a == 1", "LOCAL MARKER NAME == NUMBER"),
        ("x == y' z == 1", "MARKER NAME == NAME ' MARKER NAME == NUMBER"),
        ("12 == 3", "MARKER NUMBER == NUMBER"),
        ("- a == 3", "- MARKER NAME == NUMBER"),
        (
            "I == INSTANCE M WITH F <- + V == 1",
            "MARKER NAME == INSTANCE NAME WITH NAME <- SYMBOL MARKER NAME == NUMBER",
        ),
    ],
)
def test_a_marker_stands_before_each_definition(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"F(+, \cup)", "NAME ( SYMBOL , SYMBOL )"),
        ("F(-, SUBSET, ')", "NAME ( SYMBOL , SYMBOL , SYMBOL )"),
        ("F(-x)", "NAME ( - NAME )"),
        ("I!+(1, 2)", "NAME ! SYMBOL ( NUMBER , NUMBER )"),
        (r"F(/\)", "NAME ( SYMBOL )"),
        (r"(/\ a)", "( AND_BULLET NAME )"),
        (r"a /\ b", r"NAME \land NAME"),
        (r"\land a", "SYMBOL NAME"),
        ("∨ a", "OR_BULLET NAME"),
    ],
)
def test_an_operator_where_an_operand_is_meant_is_a_symbol_or_a_bullet(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"{x \in S}", r"BOUND_BRACE NAME \in NAME }"),
        (r"{<<x, y>> \in S}", r"BOUND_BRACE << NAME , NAME >> \in NAME }"),
        (r"{1 \in S}", r"{ NUMBER \in NAME }"),
        (r"[x, y \in S |-> 1]", r"BOUND_BRACKET NAME , NAME \in NAME |-> NUMBER ]"),
        (r"f[x \in S]", r"NAME [ NAME \in NAME ]"),
        ("[a |-> 1]", "[ FIELD |-> NUMBER ]"),
        ("[IF : S, IN : T]", "[ FIELD : NAME , NAME : NAME ]"),
        ("r.THEN", "NAME . NAME"),
    ],
)
def test_brackets_and_fields_are_known_by_what_follows(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("V!1!<<!:", "NAME ! SELECTOR ! SELECTOR ! SELECTOR"),
        ("![1]", "! [ NUMBER ]"),
        ("1.5", "DECIMAL"),
        ("1.x", "NUMBER . NAME"),
        ("BY <1>1 <1>2. QED", "BY STEP_NAME STEP QED"),
        ("PROOF <1>1 CASE a", "PROOF STEP PROOF_CASE NAME"),
    ],
)
def test_selectors_decimals_and_proof_steps(text: str, expected: str) -> None:
    assert kinds(text) == expected
