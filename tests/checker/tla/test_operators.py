"""Precedence is by ranges; operators whose ranges overlap want parentheses."""

from __future__ import annotations

import re

import pytest

from specwatch.checker.tla import operators
from specwatch.checker.tla.errors import TlaSyntaxError
from specwatch.checker.tla.parse import GRAMMAR, parse_expression
from specwatch.checker.tla.show import show_tree


def test_the_grammar_knows_exactly_the_operators_of_the_table() -> None:
    grammar = GRAMMAR.read_text(encoding="utf-8")
    for rule, table in (("prefix", operators.PREFIX), ("infix", operators.INFIX), ("postfix", operators.POSTFIX)):
        match = re.search(rf"^{rule}: (.*?)\n\n", grammar, re.MULTILINE | re.DOTALL)
        assert match is not None
        written = {name.replace("\\\\", "\\") for name in re.findall(r'"([^"]+)"', match[1])}
        assert written == set(table) - {"-."}


def test_spellings_lead_to_operators_of_the_table() -> None:
    assert set(operators.SPELLINGS.values()) <= set(operators.ALL)
    assert not set(operators.SPELLINGS) & set(operators.ALL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b - c", "(a + (b - c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a % b * c", "(a % (b * c))"),
        ("~a = b", r"(\lnot (a = b))"),
        ("a <=> b => c", r"((a \equiv b) => c)"),
        (r"a \/ b => c /\ d", r"((a \/ b) => (c /\ d))"),
        (r"a \X b \X c", r"(a \times b \times c)".replace(r"\times", r"\X")),
        (r"(a \X b) \X c", r"((a \X b) \X c)"),
        ("2 + -1", "(2 + (- 1))"),
        ("1 - IF a THEN b ELSE c - d", "(1 - (IF a THEN b ELSE (c - d)))"),
        (r"p => \E x \in S : q => r", r"(p => (\E x \in S : (q => r)))"),
        ("f'[x]", "(f')[x]"),
        ("f[x]'", "(f[x]')"),
        ("r.a'.b", "(r.a').b"),
        ("-x^2", "(- (x ^ 2))"),
        ("DOMAIN f'", "(DOMAIN (f'))"),
        ("1 ^ SUBSET {}", "(1 ^ (SUBSET {}))"),
        ("TRUE = ~ TRUE = FALSE", r"(TRUE = (\lnot (TRUE = FALSE)))"),
        ("- ~ TRUE", r"(- (\lnot TRUE))"),
        (r"x \in S \cup T", r"(x \in (S \union T))"),
        ("UNCHANGED f[x]", "(UNCHANGED f[x])"),
        (r"a /\ b /\ c", r"((a /\ b) /\ c)"),
        ("1 $ -2", "(1 $ (- 2))"),
        ("a ^+ ^ b", "((a^+) ^ b)"),
        (r"\E x : x /\ \A y : y", r"(\E x : (x /\ (\A y : y)))"),
    ],
)
def test_what_binds_tighter(text: str, expected: str) -> None:
    assert show_tree(parse_expression(text)) == expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a = b = c", 3),
        ("a => b => c", 3),
        (r"a \cup b \cap c", 3),
        (r"a \ b \ c", 3),
        ("a^b^c", 2),
        ("a/b*c", 2),
        ("a%b+c", 2),
        (r"SUBSET a \X b", 1),
        ("UNCHANGED x = y", 1),
        ("a * -b", 3),
        ("2 ^ -1", 3),
        (r"a /\ b \/ c", 3),
        ("ENABLED x'", 10),
        ("[]x = 1", 1),
        ("a <= b =< c", 3),
        (r"1 + SUBSET a + b", 5),
    ],
)
def test_overlapping_ranges_are_a_conflict_at_the_left_operator(text: str, column: int) -> None:
    with pytest.raises(TlaSyntaxError, match="Precedence conflict") as caught:
        parse_expression(text)
    assert caught.value.column == column


def test_a_chain_of_one_operator_is_a_left_spine_and_a_conjunction_is_flat() -> None:
    assert len(parse_expression(r" /\ ".join("abcd")).items) == 4  # type: ignore[attr-defined]
    assert show_tree(parse_expression("a + b + c + d")) == "(((a + b) + c) + d)"


def test_a_span_covers_the_expression_with_its_parentheses() -> None:
    expression = parse_expression("(a + b) * c")
    assert [argument.span.text for argument in expression.arguments] == ["(a + b)", "c"]  # type: ignore[attr-defined]
    assert expression.span.text == "(a + b) * c"
