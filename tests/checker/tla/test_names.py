"""Names are defined before they are used, once, and applied to as many arguments as they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.tla.errors import TlaSemanticError
from specwatch.checker.tla.modules import load, load_text

SYNTAX = Path(__file__).parents[2] / "corpus" / "truth" / "syntax"
ROWS = [line.split("\t") for line in (SYNTAX / "syntax.tsv").read_text(encoding="utf-8").split("\n")[1:] if line]
ACCEPTED = [row[0] for row in ROWS if row[1] == "accept"]
CODES = (
    "SYMBOL_UNDEFINED", "SYMBOL_REDEFINED", "OPERATOR_GIVEN_INCORRECT_NUMBER", "HIGHER_ORDER_OPERATOR_REQUIRED",
    "HIGHER_ORDER_OPERATOR_ARGUMENT", "BUILT_IN_SYMBOL_REDEFINED", "Could not find declaration", "RECORD_CONSTRUCTOR",
    "FUNCTION_GIVEN", "FUNCTION_EXCEPT_AT", "LAMBDA_OPERATOR_ARGUMENT", "RECURSIVE_OPERATOR_DECLA", "MODULE_REDEFINED",
    "OPERATOR_NAME_INCOMPLETE", "Operator with incorrect arity",
)  # fmt: skip
# In proofs, which are skipped; in modules that an INSTANCE brings, which are not read; a module that is not here.
NOT_CHECKED = {
    "Ass13.tla", "Ins02.tla", "Ins12.tla", "Ins32.tla", "Ins34.tla", "Ins40.tla", "Mod20.tla", "Mod28.tla", "Prf05.tla",
    "Prf16.tla", "Sel08.tla", "Uni11.tla",
}  # fmt: skip
WRONG = [row for row in ROWS if row[1] == "semantic-error" and row[4].startswith(CODES) and row[0] not in NOT_CHECKED]


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_sany_accepts_has_no_mistake(name: str) -> None:
    load(SYNTAX / name)


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_what_sany_finds_in_names_and_arities_is_found_on_the_same_line(row: list[str]) -> None:
    with pytest.raises(TlaSemanticError) as caught:
        load(SYNTAX / row[0])
    assert caught.value.line == int(row[2])


def problem(body: str) -> TlaSemanticError:
    with pytest.raises(TlaSemanticError) as caught:
        load_text(f"---- MODULE M ----\nEXTENDS Naturals\nVARIABLES x, y\n{body}\n====\n", "M.tla")
    return caught.value


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("Foobar == 1\nV == Fobar", "`Fobar` is not defined", "did you mean `Foobar`?"),
        ("V == W\nW == 1", "`W` is not defined", "it is defined at line 5: move that definition above"),
        ("V == Len(x)", "`Len` is not defined", "EXTENDS Sequences defines it"),
        ("V == x && y", "`&&` is not defined", "the conjunction of TLA+ is `/\\`"),
        ("V == true", "`true` is not defined", "write `TRUE`"),
        ("F(a) == a\nV == F(1, 2)", "`F` takes 1 argument, and has 2 arguments here", None),
        ("F(a) == a\nV == F", "`F` takes 1 argument, and has none here", None),
        ("V == x(1)", "`x` takes no argument, and has 1 argument here", None),
        ("f[i \\in Nat] == i\nV == f(1)", "`f` takes no argument, and has 1 argument here",
         "`f` is a function: apply it by `f[…]`"),
        ("V == \\E x \\in {1} : TRUE", "`x` has a meaning already: the variable at line 3",
         "give this bound variable another name"),
        ("V == \\E i, i \\in {1} : TRUE", "`i` has a meaning already: the bound variable at line 4",
         "give this bound variable another name"),
        ("F(a, a) == a", "`a` has a meaning already: the parameter at line 4", "give this parameter another name"),
        ("V == 1\nV == 2", "`V` has a meaning already: the operator at line 4", "give this operator another name"),
        ("Nat == 1", "`Nat` has a meaning already: it is an operator of a standard module",
         "give this operator another name"),
        ("V == @", "`@` has no meaning here", "it is the old value, after the `=` of an EXCEPT"),
        ("RECURSIVE F(_)\nV == 1", "`F` is declared RECURSIVE and never defined", None),
        ("Ap(F(_), a) == F(a)\nV == Ap(1, 2)",
         "`Ap` wants an operator with 1 argument here, not an expression", "name an operator, or write `LAMBDA x : …`"),
        ("V == [a |-> 1, a |-> 2]", "the record has two fields `a`", None),
    ],
)  # fmt: skip
def test_the_mistake_is_named_with_its_correction(body: str, message: str, hint: str | None) -> None:
    error = problem(body)
    assert (error.message, error.hint) == (message, hint)


def test_the_place_is_that_of_the_name() -> None:
    error = problem("V == \\A i \\in {1} :\n  i = j")
    assert (error.file, error.line, error.column) == ("M.tla", 5, 7)


def test_depth_costs_no_recursion() -> None:
    body = "V == " + "(1 + " * 390 + "x" + ")" * 390 + " + y" * 5_000
    load_text(f"---- MODULE M ----\nEXTENDS Naturals\nVARIABLES x, y\n{body}\n====\n", "M.tla")
