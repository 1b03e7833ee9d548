r"""Bullets become brackets by their columns: ``AND[ a ; b ]``."""

from __future__ import annotations

import pytest

from specwatch.checker.tla.context import classify
from specwatch.checker.tla.errors import TlaSyntaxError
from specwatch.checker.tla.junctions import bracket
from specwatch.checker.tla.scan import tokens
from specwatch.checker.tla.source import SourceText

_SHOWN = {"AND_OPEN": "AND[", "OR_OPEN": "OR[", "NEXT": ";", "CLOSE": "]", "MARKER": "DEF"}


def bracketed(text: str) -> str:
    source = SourceText("t", text)
    return " ".join(_SHOWN.get(token.kind, token.text) for token in bracket(classify(tokens(source)), source)[:-1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/\\ a\n/\\ b", "AND[ a ; b ]"),
        ("/\\ a\n/\\ b\n=> c", "AND[ a ; b ] => c"),
        ("/\\ a\n/\\ b\n => c", "AND[ a ; b => c ]"),
        ("/\\ a\n/\\ \\/ b\n   \\/ c", "AND[ a ; OR[ b ; c ] ]"),
        ("/\\ a\n  /\\ b", "AND[ a /\\ b ]"),
        (" /\\ a\n\\/ b", "AND[ a ] \\/ b"),
        ("/\\ a\n\\/ b", "AND[ a ] \\/ b"),
        ("/\\ /\\ a\n/\\ b", "AND[ AND[ a ] ; b ]"),
        ("x => /\\ a\n     /\\ b", "x => AND[ a ; b ]"),
        ("\t/\\ a\n        /\\ b", "AND[ a ; b ]"),
        ("    /\\ a\n\t/\\ b", "AND[ a /\\ b ]"),
        ("∧ a\n/\\ b", "AND[ a ; b ]"),
        ("/\\ f\n[1]", "AND[ f ] [ 1 ]"),
        ("/\\ f\n [1]", "AND[ f [ 1 ] ]"),
        ("/\\ \n a", "AND[ a ]"),
    ],
)
def test_a_token_right_of_the_bullet_continues_the_item(text: str, expected: str) -> None:
    assert bracketed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(/\\ a\n /\\ b) /\\ c", "( AND[ a ; b ] ) /\\ c"),
        ("{/\\ a, /\\ b}", "{ AND[ a ] , AND[ b ] }"),
        ("IF /\\ a THEN /\\ b ELSE /\\ c", "IF AND[ a ] THEN AND[ b ] ELSE AND[ c ]"),
        ("CASE /\\ a -> /\\ b [] c -> d", "CASE AND[ a ] -> AND[ b ] [] c -> d"),
        ("/\\ CASE a -> b [] c -> d\n/\\ e", "AND[ CASE a -> b [] c -> d ; e ]"),
        ("[a |-> /\\ b,\n c |-> d]", "[ a |-> AND[ b ] , c |-> d ]"),
        ("{x \\in /\\ S : p}", "{ x \\in AND[ S ] : p }"),
        ("/\\ \\E x \\in S : x\n/\\ b", "AND[ \\E x \\in S : x ; b ]"),
        ("/\\ [] a\n/\\ b", "AND[ [] a ; b ]"),
        ("LET a == /\\ b\n  c == d IN /\\ e", "LET DEF a == AND[ b ] DEF c == d IN AND[ e ]"),
        ("V == /\\ a\n        W == b", "DEF V == AND[ a ] DEF W == b"),
    ],
)
def test_what_stands_around_a_list_closes_it(text: str, expected: str) -> None:
    assert bracketed(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("/\\ (a\n)", 2, 1),
        ("/\\ (a\n/\\ b)", 2, 1),
        ("/\\ IF a\nTHEN b ELSE c", 2, 1),
        ("/\\ LET a == 1\nb == 2 IN a", 2, 1),
        ("/\\ CASE a -> b\n[] c -> d", 2, 1),
        ("/\\ \\A x \\in S\n: x", 2, 1),
    ],
)
def test_a_part_of_an_item_must_stand_right_of_the_bullet(text: str, line: int, column: int) -> None:
    with pytest.raises(TlaSyntaxError) as caught:
        bracketed(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_thousands_of_open_brackets_cost_no_search() -> None:
    depth = 20_000
    assert bracketed("/\\ " + "(" * depth + "a" + ")" * depth).count("(") == depth
