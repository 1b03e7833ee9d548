"""What TLC answers for single expressions (corpus/truth/expressions.tsv), for all standard modules that are here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from specwatch.checker.tla.builtins import MODULES
from specwatch.checker.tla.config import Config, parse_config
from specwatch.checker.tla.errors import TlaConfigError, TlaEvaluationError, TlaSemanticError, TlaSyntaxError
from specwatch.checker.tla.evaluate import Evaluator, Step
from specwatch.checker.tla.modules import load_text
from specwatch.checker.tla.show_values import show
from specwatch.checker.tla.tree import Definition
from specwatch.checker.tla.values import concrete

TABLE = Path(__file__).parents[2] / "corpus" / "truth" / "expressions.tsv"

# The expression stands on a line of its own, so that its bullets keep their columns.
FRAME = "---- MODULE M ----\nEXTENDS {extends}\n{definitions}\nspecwatch_value ==\n{expression}\n====\n"


def _for(ids: str, why: str) -> dict[str, str]:
    return dict.fromkeys(ids.split(), why)


# Where the answer is another on purpose, or for now, and why.
OTHER: dict[str, str] = {
    **_for("eq-047 eq-051", "kinds inside tuples and records of one set are not compared until something asks"),
    **_for("eq-111 eq-113 eq-119 eq-121 set-181 set-193", "TLC cannot compare an infinite set; the answer is FALSE"),
    **_for("set-139 set-141 modelval-035", "a function that is no sequence is just no member"),
    **_for(
        "set-160 set-161 set-187 print-035 print-038 print-039 print-040 print-041 print-046 "
        "int-151 set-093 filter-007",
        "TLC cannot print an infinite set",
    ),
    **_for("eq-116 eq-120", "two infinite sets are compared by identity"),
    "fcn-157": "a domain of two kinds is refused where it is listed",
    "recur-012": "Java's stack is smaller",
    "lazy-025": "a function's values are computed when they are asked for",
    **_for(
        "set-183 set-222 set-235 choose-011 choose-031 choose-034 choose-046 rec-004 rec-016 "
        "choose-075 choose-076 modelval-043 modelval-046 print-088 "
        "strorder-003 strorder-004 strorder-007 strorder-008 strorder-011 strorder-014 strorder-020 strorder-022 "
        "strorder-025 strorder-027 strorder-032 strorder-033 strorder-034 strorder-035 strorder-036",
        "strings, fields and model values are in alphabetical order, not in that of their first appearance",
    ),
    "fcn-022": "an infinite function prints as [x \\in S |-> ...]",
    **_for("tlc-006 tlc-007", "output operators print nothing"),
    **_for("set-050 set-052 set-145 fcn-021", "an operand that is no set is refused at once"),
    "quant-048": "the elements of a set are listed before the first is tried",
    "fcn-122": "EXCEPT on an infinite function is not computed yet",
    "finset-032": "a record is no finite set",
    **_for("lazy-009 lazy-010 lazy-032 lazy-037", "a set of two kinds is refused at once"),
    "print-055": "a set by rule is listed to be printed",
    "defs-008": "x' of a constant x is refused in a single state",
}

# Operators of TLC that speak of the run, and INSTANCE, come with a later language step.
LATER = re.compile(r"TLCGet|TLCSet|TLCEval|RandomElement|JavaTime|INSTANCE|\bAny\b")


class Row(NamedTuple):
    id: str
    extends: str
    definitions: str
    expression: str
    outcome: str
    value: str


def unescaped(cell: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t", "\\": "\\"}[match[1]], cell)


def rows() -> Iterator[Row]:
    for line in TABLE.read_text(encoding="utf-8").split("\n")[1:]:
        cells = [unescaped(cell) for cell in line.split("\t")]
        if len(cells) > 1:
            row = Row(*cells[:6])
            extended = [name for name in re.split(r"[,\s]+", row.extends) if name]
            if all(name in MODULES for name in extended) and not LATER.search(row.definitions + row.expression):
                yield row


ROWS = list(rows())


def answer(row: Row) -> tuple[str, str]:
    """The outcome in the table's words, and the value's text."""
    lines = row.definitions.split("\n")
    config = "\n".join(line.removeprefix("\\* CFG ") for line in lines if line.startswith("\\* CFG "))
    definitions = "\n".join(line for line in lines if not line.startswith("\\* CFG "))
    extended = [name for name in re.split(r"[,\s]+", row.extends) if name]
    text = FRAME.format(
        extends=", ".join(dict.fromkeys([*extended, "TLC"])), definitions=definitions, expression=row.expression
    )
    try:
        program = load_text(text, "M.tla")
        given = parse_config(f"CONSTANTS {config}") if config else Config()
        evaluator = Evaluator(
            program, given.constants, {name: target.name for name, target in given.replacements.items()}
        )
        definition = program.definitions["specwatch_value"]
        assert isinstance(definition, Definition)
        return "value", evaluator.guarded(lambda: show(concrete(evaluator.value(definition.body, {}, Step({})))))
    except (TlaSyntaxError, TlaSemanticError) as error:
        return "parse-error", error.message
    except (TlaEvaluationError, TlaConfigError) as error:
        return "error", error.message


def listed(text: str) -> str:
    """Without white space, and an interval as the set that it is."""

    def elements(match: re.Match[str]) -> str:
        low, high = int(match[1]), int(match[2])
        return "{" + ",".join(map(str, range(low, high + 1))) + "}"

    return re.sub(r"(-?\d+)\.\.(-?\d+)", elements, re.sub(r"\s+", "", text))


def test_the_table_is_whole() -> None:
    """Rows are left out by the modules and operators that they need, and by nothing else."""
    assert len(ROWS) > 1100
    assert set(OTHER) <= {row.id for row in ROWS}


@pytest.mark.parametrize("row", [row for row in ROWS if row.id not in OTHER], ids=lambda row: row.id)
def test_expression(row: Row) -> None:
    """TLC's value, an error where TLC has one; where TLC's integers overflow, an exact one."""
    outcome, text = answer(row)
    if row.outcome == "overflow":
        assert outcome != "parse-error"
    else:
        assert outcome == row.outcome, text
        if outcome == "value":
            assert listed(text) == listed(row.value)


@pytest.mark.parametrize("row", [row for row in ROWS if row.id in OTHER], ids=lambda row: row.id)
def test_a_difference_is_still_one(row: Row) -> None:
    """A row that has come to agree with TLC leaves the list of differences."""
    outcome, text = answer(row)
    assert (outcome, listed(text)) != (row.outcome, listed(row.value))
