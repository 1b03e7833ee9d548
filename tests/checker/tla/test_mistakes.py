"""Every malformed specification gets the sentence that it deserves, at the place, with the correction."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.tla.errors import TlaSyntaxError
from specwatch.checker.tla.parse import parse_expression, parse_module

GOLDEN = Path(__file__).parents[2] / "golden" / "tla" / "mistakes.txt"


def cases() -> list[tuple[str, str, str]]:
    """What is wrong, the text, and the error, of each section of the golden file."""
    _preface, *sections = GOLDEN.read_text(encoding="utf-8").split("### ")
    found = []
    for section in sections:
        title, rest = section.split("\n", 1)
        text, error = rest.split("\n---\n")
        found.append((title, text, error.removesuffix("\n").removesuffix("\n")))
    return found


@pytest.mark.parametrize(("title", "text", "error"), cases(), ids=[case[0] for case in cases()])
def test_malformed_spec_gets_its_sentence(title: str, text: str, error: str) -> None:
    with pytest.raises(TlaSyntaxError) as caught:
        parse_module(text, "M.tla")
    assert str(caught.value) == error


def test_the_table_is_not_empty() -> None:
    assert len(cases()) > 50


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("x = ", "Expected an expression after `=`, found the end of the text", 4),
        ("1 2", "Expected an operator or the end of the text after `1`, found `2`", 3),
        ("", "Expected an expression, found the end of the text", 1),
        (
            "a \\cup b \\cap c",
            "Precedence conflict between `\\cup` and `\\cap`: neither binds tighter than the other",
            3,
        ),
    ],
)
def test_an_expression_alone_gets_the_same_care(text: str, message: str, column: int) -> None:
    with pytest.raises(TlaSyntaxError) as caught:
        parse_expression(text)
    assert (caught.value.message, caught.value.column) == (message, column)


def test_the_error_carries_its_facts() -> None:
    with pytest.raises(TlaSyntaxError) as caught:
        parse_module("---- MODULE M ----\nV == (1\n====", "dir/M.tla")
    error = caught.value
    assert (error.file, error.line, error.column) == ("dir/M.tla", 3, 1)
    assert error.hint == "`(` at line 2, column 6 is not closed"
