"""What SANY accepts parses, what it refuses is refused at its place, and nothing but TlaSyntaxError escapes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from lark import Lark

from specwatch.checker.tla import tree
from specwatch.checker.tla.errors import TlaSyntaxError
from specwatch.checker.tla.parse import GRAMMAR, MAX_DEPTH, _parser, _spellings, _Tokens, parse_expression, parse_module
from specwatch.checker.tla.show import show_tree

CORPUS = Path(__file__).parents[2] / "corpus" / "truth"
ROWS = [
    line.split("\t") for line in (CORPUS / "syntax" / "syntax.tsv").read_text(encoding="utf-8").split("\n")[1:] if line
]
OUTCOME = {row[0]: row[1] for row in ROWS}

# Errors that SANY finds when it loads modules, and not in the text.
OF_LOADING = {"Ext10.tla", "Ins09.tla", "Mod16.tla", "mod18.tla"}
# The place is another: SANY looks two tokens ahead at CONSTANT Op(, and reports a missing QED where it would stand.
OTHER_PLACE = {"Con02.tla", "Con03.tla", "Prf07.tla"}
# The twin has the same value, and not the same tree: what @, EXTENDS, a label or a selector stand for is written out.
OTHER_TREE = {
    "Exc02", "Exc06", "Exc10", "Exc17", "Exc18", "Exc26", "Ext14", "Ext15", "Jun94", "Pai04", "Pre41", "Sel03", "Sel12",
    "Set03", "Set04",
}  # fmt: skip


def read(name: str) -> str:
    return (CORPUS / "syntax" / name).read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")


ACCEPTED = [name for name, outcome in OUTCOME.items() if outcome != "parse-error" or name in OF_LOADING]
REFUSED = [row for row in ROWS if row[1] == "parse-error" and row[0] not in OF_LOADING]
TWINS = [name[:-4] for name in OUTCOME if f"{name[:-4]}p.tla" in OUTCOME and name[:-4] not in OTHER_TREE]


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_sany_accepts_parses(name: str) -> None:
    parse_module(read(name), name)


@pytest.mark.parametrize("row", REFUSED, ids=[row[0] for row in REFUSED])
def test_what_sany_refuses_is_refused_at_the_same_place(row: list[str]) -> None:
    name, _outcome, line, column = row[:4]
    with pytest.raises(TlaSyntaxError) as caught:
        parse_module(read(name), name)
    if name not in OTHER_PLACE:
        assert (caught.value.line, caught.value.column) == (
            int(line) if line else caught.value.line,
            int(column) if column else caught.value.column,
        )


@pytest.mark.parametrize("stem", TWINS)
def test_a_fully_parenthesised_twin_has_the_same_tree(stem: str) -> None:
    assert bodies(f"{stem}.tla")["V"] == bodies(f"{stem}p.tla")["V"]


def bodies(name: str) -> dict[str, str]:
    units = parse_module(read(name), name).units
    return {unit.name: show_tree(unit) for unit in units if isinstance(unit, tree.Definition | tree.FunctionDefinition)}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_shown_of_a_module_parses_to_the_same_tree(name: str) -> None:
    shown = show_tree(parse_module(read(name), name))
    assert show_tree(parse_module(shown, name)) == shown


@pytest.mark.parametrize("path", sorted((CORPUS / "traces").glob("*.tla")), ids=lambda path: path.stem)
def test_the_specs_of_the_judged_traces_parse(path: Path) -> None:
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    assert module.name == path.stem
    assert {"Init", "Next", "Spec"} <= {unit.name for unit in module.units if isinstance(unit, tree.Definition)}


def test_the_grammar_has_only_the_conflicts_that_are_meant(caplog: pytest.LogCaptureFixture) -> None:
    """The arms of a CASE go to the innermost CASE, and definitions after a step's definition go to the step."""
    logger = logging.getLogger("lark")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(caplog.handler)
    try:
        built = _parser()
        Lark(
            GRAMMAR.read_text(encoding="utf-8"),
            parser="lalr",
            lexer=_Tokens,
            start=built.options.start,
            keep_all_tokens=True,
            maybe_placeholders=True,
            debug=True,
        )
    finally:
        logger.setLevel(level)
        logger.removeHandler(caplog.handler)
    conflicts = set()
    terminal = ""
    for record in caplog.records:
        if record.message.startswith("Shift/Reduce conflict for terminal "):
            name = record.message.split()[4].rstrip(":")
            terminal = _spellings().get(name, name)
        elif record.message.startswith(" * "):
            conflicts.add((terminal, record.message.removeprefix(" * ").split(" :")[0]))
    assert conflicts == {("[]", "<open_ended"), ("MARKER", "<duty"), ("LOCAL", "<duty")}


# --- depth and size ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("(" * 10_000 + "x" + ")" * 10_000, "x"),
        ("/\\ " * 3_000 + "x", "x"),
        ("".join(" " * column + "/\\\n" for column in range(1_000)) + " " * 1_000 + "x", "x"),
    ],
)
def test_brackets_and_one_item_lists_cost_no_depth(text: str, shown: str) -> None:
    assert show_tree(parse_expression(text)) == shown


def test_a_list_of_twenty_thousand_lines_is_one_conjunction() -> None:
    module = parse_module("---- MODULE M ----\nV ==\n" + "  /\\ x\n" * 20_000 + "====\n")
    body = module.units[0].body  # type: ignore[attr-defined]
    assert isinstance(body, tree.And)
    assert len(body.items) == 20_000


@pytest.mark.parametrize("operator", ["+", "-", r"\cup", "/\\", r"\X"])
def test_a_chain_of_a_thousand_operators_parses(operator: str) -> None:
    parse_expression(f" {operator} ".join(["x"] * 1_000))


@pytest.mark.parametrize(
    "text",
    [
        "~" * 5_000 + "x",
        "{" * 5_000 + "}" * 5_000,
        "f" + "[1]" * 5_000,
        "x" + "'" * 5_000,
        "a" + ".b" * 5_000,
        "IF a THEN b ELSE " * 5_000 + "c",
        "CASE a -> " * 5_000 + "c",
        "\\E x \\in S : " * 5_000 + "c",
        "LET x == " * 3_000 + "c" + " IN d" * 3_000,
        "(a => " * 3_000 + "b" + ")" * 3_000,
    ],
    ids=lambda text: text[:8],
)
def test_what_nests_too_deep_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(TlaSyntaxError, match=f"nested more than {MAX_DEPTH} deep") as caught:
        parse_expression(text)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    "text", ["(" * 50_000, "<<" * 5_000, "IF " * 5_000, "{<<" * 5_000, "(*" * 50_000, "x == " * 3_000]
)
def test_what_is_opened_and_never_closed_is_an_error(text: str) -> None:
    with pytest.raises(TlaSyntaxError):
        parse_expression(text)


def test_numbers_of_any_length_and_base_are_exact() -> None:
    digits = "123456789" * 1_000
    assert show_tree(parse_expression(digits)) == digits
    values = [parse_expression(text).value for text in (r"\b101", r"\o17", r"\hfF", "007")]  # type: ignore[attr-defined]
    assert values == [5, 15, 255, 7]


def test_string_escapes() -> None:
    expression = parse_expression(r'"a\"\\\n\t\r\fb"')
    assert isinstance(expression, tree.String)
    assert expression.value == 'a"\\\n\t\r\fb'


# --- the tree ---------------------------------------------------------------------------------------------------------


def test_units_of_a_module() -> None:
    module = parse_module(
        "---- MODULE M ----\nEXTENDS Naturals, Sequences\nCONSTANTS C, Op(_, _)\nVARIABLE x\nASSUME A == C = 1\n"
        "RECURSIVE R(_)\nLOCAL f[i \\in C] == i\nI(a) == INSTANCE N WITH b <- a\n"
        "THEOREM T == x = 1\n<1>1. QED OBVIOUS\n----\na \\oplus b == 1\n====\n"
    )
    assert [name.name for name in module.extends] == ["Naturals", "Sequences"]
    assert [type(unit).__name__ for unit in module.units] == [
        "Constants", "Variables", "Assume", "Recursive", "FunctionDefinition", "Instance", "Theorem", "Definition",
    ]  # fmt: skip
    constants = module.units[0]
    assert isinstance(constants, tree.Constants)
    assert [(parameter.name, parameter.arity) for parameter in constants.declarations] == [("C", 0), ("Op", 2)]


def test_names_keep_their_places() -> None:
    definition = parse_module("---- MODULE M ----\nF(a) ==\n  \\E x, y \\in a : x = y\n====").units[0]
    assert isinstance(definition, tree.Definition)
    quantifier = definition.body
    assert isinstance(quantifier, tree.Quantifier)
    assert (definition.name_span.line, definition.name_span.column) == (2, 1)
    assert [(span.line, span.column) for span in quantifier.bounds[0].name_spans] == [(3, 6), (3, 9)]
    assert quantifier.body.span.text == "x = y"


def test_labels_selectors_and_instances() -> None:
    assert show_tree(parse_expression("A!B(1)!x(2)")) == "A!B(1)!x(2)"
    assert show_tree(parse_expression("V!1!<<!:")) == "V!1!<<!:"
    assert show_tree(parse_expression("\\A x \\in S : lab(x) :: x = 1")) == "(\\A x \\in S : (lab(x) :: (x = 1)))"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[][A]_v", "([] ([A]_v))"),
        ("<<A>>_<<x, y>>", "(<<A>>_<<x, y>>)"),
        ("WF_v(A) /\\ SF_<<x>>(B)", "(WF_v(A) /\\ SF_<<x>>(B))"),
        ("WF_f(1)(A)", "WF_f(1)(A)"),
        ("\\AA x : []x ~> y", "(\\AA x : (([] x) ~> y))"),
    ],
)
def test_temporal_formulas_parse(text: str, shown: str) -> None:
    assert show_tree(parse_expression(text)) == shown
