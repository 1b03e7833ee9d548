"""TLC's state spaces (corpus/truth/states), for all that model checking does so far: outcome and the three counts."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from specwatch.checker import explore, load_spec
from specwatch.checker.tla.errors import TlaError

FOLDER = Path(__file__).parents[1] / "corpus" / "truth" / "states"

# Rows that need what comes with a later step are no part of this test.
LATER_TEXT = re.compile(r"\bINSTANCE\b|\bBags\b|TLCGet|TLCSet|\bReals\b|\bTLCExt\b")
LATER_CONFIG = re.compile(r"\b(SYMMETRY|VIEW|POSTCONDITION|ALIAS)\b")


def _for(configs: str, why: str) -> dict[str, str]:
    return dict.fromkeys(configs.split(), why)


# Where the answer is another on purpose, or for now, and why.
OTHER: dict[str, str] = {
    **_for(
        "UnionDupA.cfg UnionDupC.cfg UnionDupH.cfg LogRepl.cfg LogReplBig.cfg",
        "TLC generates a shared member of a lazy union twice",
    ),
    **_for("DoublePrime.cfg ParseLevel.cfg ParsePrime2.cfg", "levels are not checked before running"),
    **_for("TypedMVInt.cfg TypedMVDiff.cfg TypedMVStr.cfg TypedMVUnion.cfg", "model values are untyped"),
    "InvBadKonstF.cfg": "an invariant that is FALSE everywhere is violated, not refused",
    "NoVars.cfg": "a module without variables has nothing to explore",
    "NoVarsBad.cfg": "a module without variables has nothing to explore",
    "SpecFormsNoNext.cfg": "Init and Next are found by their names",
    "SpecFormsNoInit.cfg": "Init and Next are found by their names",
    "SpecFormsEmpty.cfg": "Init and Next are found by their names",
    "CfgSyntaxConstTwice.cfg": "an invariant that is FALSE everywhere is violated, not refused",
}
LARGE = 3000
"""Rows with more distinct states than this are for the nightly run."""

UNNAMED = {"PropFormsBothBad.cfg": "BothBad", "PropFormsRef.cfg": "RefBad"}
OUTCOMES = {"ok": "pass", "deadlock": "deadlock", "assumption": "assumption"}


def rows() -> list[dict[str, str]]:
    with (FOLDER / "states.tsv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        row
        for row in table
        if not LATER_TEXT.search((FOLDER / f"{row['module']}.tla").read_text(encoding="utf-8"))
        and not LATER_CONFIG.search((FOLDER / row["config"]).read_text(encoding="utf-8"))
        and row["verdict"] != "liveness"
    ]


ROWS = rows()


def test_the_table_is_whole() -> None:
    """Rows are left out by what they need, and by nothing else."""
    assert len(ROWS) > 230
    assert set(OTHER) <= {row["config"] for row in ROWS}


def _parameters() -> list[object]:
    return [
        pytest.param(
            row,
            id=f"{row['config']}-{row['deadlock_check']}",
            marks=[pytest.mark.nightly] if int(row["distinct"] or 0) > LARGE else [],
        )
        for row in ROWS
        if row["config"] not in OTHER
    ]


@pytest.mark.parametrize("row", _parameters())
def test_states(row: dict[str, str]) -> None:
    """The outcome as TLC's, and states generated, distinct states and depth where TLC prints them."""
    wanted = row["verdict"]
    try:
        spec = load_spec(FOLDER / f"{row['module']}.tla", FOLDER / row["config"])
    except TlaError:
        assert wanted.startswith(("error", "parse-error"))
        return
    found = explore(spec, deadlock=row["deadlock_check"] == "on")
    if wanted.startswith("error"):
        assert found.outcome == "error", found
        return
    what, _, name = wanted.partition(":")
    if what in ("invariant", "action-property", "init-property"):
        # Where TLC names a place only, it is a part of the one property that can fail.
        assert (found.outcome, found.invariant) == ("violates", name or UNNAMED[row["config"]])
    else:
        assert found.outcome == OUTCOMES[wanted], found
    assert found.outcome != "violates" or len(found.trace) == int(row["trace_len"] or 1)
    if row["generated"]:
        counts = tuple(int(row[name]) for name in ("generated", "distinct", "depth"))
        assert (found.generated, found.distinct, found.depth) == counts
