"""The scanner reads text as SANY does: longest match, nested comments, positions, and what is around a module."""

from __future__ import annotations

import pytest

from specwatch.checker.tla import operators, scan
from specwatch.checker.tla.errors import TlaSyntaxError
from specwatch.checker.tla.source import Columns, SourceText


def kinds(text: str) -> list[str]:
    return [token.kind for token in scan.tokens(SourceText("t", text))][:-1]


def texts(text: str) -> list[str]:
    return [token.text for token in scan.tokens(SourceText("t", text))][:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"x \inS", ["x", r"\in", "S"]),
        (r"s \o1", ["s", r"\o1"]),
        ("x<-1", ["x", "<-", "1"]),
        ("a==b", ["a", "==", "b"]),
        ("a===b", ["a", "==", "=", "b"]),
        ("1..3", ["1", "..", "3"]),
        ("1a 2_b _1b", ["1a", "2_b", "_1b"]),
        ("_1", ["_", "1"]),
        ("1_000", ["1", "_", "000"]),
        ("WF_vars(A)", ["WF_", "vars", "(", "A", ")"]),
        ("SF_<<a>>(A)", ["SF_", "<<", "a", ">>", "(", "A", ")"]),
        ("a_WF_b", ["a_WF_b"]),
        ("[A]_v", ["[", "A", "]_", "v"]),
        ("@@ @", ["@@", "@"]),
        (r"\intersect \in", [r"\intersect", r"\in"]),
        ("a-+->b", ["a", "-+->", "b"]),
        ("--1", ["--", "1"]),
        ("<1>2. x", ["<1>2.", "x"]),
        ("a(+)b", ["a", "(+)", "b"]),
        (r"\b101 \o17 \hfF", [r"\b101", r"\o17", r"\hfF"]),
    ],
)
def test_the_longest_match_wins_without_word_boundaries(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a (* b (* c *) d *) e", ["a", "e"]),
        ("a \\* b\nc", ["a", "c"]),
        ("(* \\* *) a", ["a"]),
        ('(* " *) a', ["a"]),
        ('"(*" a', ['"(*"', "a"]),
        ('"\\\\*" a', ['"\\\\*"', "a"]),
        ("(*(*)*)*) a", ["a"]),
        ("2\\*3\n", ["2"]),
        ("a *)", ["a", "*", ")"]),
    ],
)
def test_comments_nest_and_strings_hide_their_beginning_only(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_every_spelling_has_the_kind_of_its_operator() -> None:
    for written, canonical in operators.SPELLINGS.items():
        assert kinds(f"a {written} b") == ["NAME", canonical, "NAME"]


def test_every_operator_is_scanned_as_itself() -> None:
    for name in operators.ALL:
        assert kinds(f" {name} ") == [name]


def test_reserved_words_in_the_plural_are_of_the_kind_of_the_singular() -> None:
    assert kinds("VARIABLES CONSTANTS LEMMA AXIOM") == ["VARIABLE", "CONSTANT", "PROPOSITION", "ASSUMPTION"]


def test_truth_values_and_the_at_sign_are_names() -> None:
    assert kinds("TRUE FALSE BOOLEAN STRING @ x") == ["NAME"] * 6


def test_offsets_are_offsets_in_the_source() -> None:
    source = SourceText("t", "x (* é 😀 *) <=\ty")
    assert [source.text[token.start : token.end] for token in scan.tokens(source)] == ["x", "<=", "y", ""]


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("a \f b", 1, 3, "put an ordinary space or a new line there"),
        ("x − 1", 1, 3, "write the ASCII `-`"),
        ("x′", 1, 2, "write the ASCII `'` for prime"),
        ('a\n"b\n', 2, 3, 'it starts at column 1: close it with `"`'),
        ('"\\q"', 1, 3, 'the escapes are \\" \\\\ \\n \\t \\r \\f'),
        ("Vé", 1, 2, "names are made of ASCII letters, digits and `_`"),
        ("a ; b", 1, 3, "TLA+ has no semicolons: remove it"),
        ("a (* b", 1, 3, "close it with `*)`"),
        ("a\x00", 1, 2, None),
    ],
)
def test_what_is_no_token_is_an_error_with_its_place(text: str, line: int, column: int, hint: str | None) -> None:
    with pytest.raises(TlaSyntaxError) as caught:
        scan.tokens(SourceText("t", text))
    assert (caught.value.line, caught.value.column, caught.value.hint) == (line, column, hint)


def module_texts(text: str) -> list[str]:
    return [token.text for token in scan.module_tokens(SourceText("t", text))]


def test_text_around_the_module_is_no_code() -> None:
    text = 'prose (* never closed "\n---- MODULE M ----\nV == 1\n====\n(* ; "'
    assert module_texts(text) == ["---- MODULE", "M", "----", "V", "==", "1", "====", ""]


def test_nested_modules_end_with_their_own_footer() -> None:
    text = "---- MODULE M ----\n---- MODULE N ----\n====\n====\n;"
    assert module_texts(text) == ["---- MODULE", "M", "----", "---- MODULE", "N", "----", "====", "====", ""]


@pytest.mark.parametrize("text", ["", "Init == x", "--- MODULE M ----", "---- module M ----", "----\nMODULE M ----"])
def test_a_text_without_a_header_has_no_module(text: str) -> None:
    with pytest.raises(TlaSyntaxError, match="There is no module here"):
        scan.module_tokens(SourceText("t", text))


def test_columns_are_utf16_units_and_tabs_go_to_the_next_multiple_of_eight() -> None:
    source = SourceText("t", "\tx\n  \ty\n😀z\né中w\ra\r\nb")
    assert source.position(source.text.index("x")) == (1, 9)
    assert source.position(source.text.index("y")) == (2, 9)
    assert source.position(source.text.index("z")) == (3, 3)
    assert source.position(source.text.index("w")) == (4, 3)
    assert source.position(source.text.index("a")) == (5, 1)
    assert source.position(source.text.index("b")) == (6, 1)


def test_columns_counted_on_the_way_equal_those_counted_at_once() -> None:
    source = SourceText("t", "a\t😀b\r\n\r  c\n\n\td é 中 e")
    columns = Columns(source)
    offsets = range(len(source.text))
    assert [columns.of(offset) for offset in offsets] == [source.position(offset)[1] for offset in offsets]
    backwards = list(reversed(offsets))
    assert [columns.of(offset) for offset in backwards] == [source.position(offset)[1] for offset in backwards]
