"""What ``matrix`` prints: the table, as Markdown too, ``specwatch.matrix/1`` and JUnit.

A row is one of ``run_report.document_row`` with a ``reason``: None, or why it could not be run; it then has no more
than its broker, mode, experiment and fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specwatch.pilots.errors import PilotError
from specwatch.pilots.plan import MODES

from . import run_report
from .run_report import COLUMNS

SCHEMA = "specwatch.matrix/1"
Row = Mapping[str, Any]

_HEAD = ("broker", "experiment", *COLUMNS)
_WORDS = (0, 1, 2, 3, 9, 10)
"""The columns that hold words."""


def unrun(broker: str, experiment: str | None, faults: str | None, error: PilotError) -> list[dict[str, Any]]:
    """The rows of what could not be run, one for each mode. ``experiment`` is None where not even that is known."""
    hint = f" ({error.hint})" if error.hint else ""
    return [
        {
            "broker": broker,
            "server": None,
            "mode": mode,
            "experiment": experiment,
            "fault": faults or None,
            "predicted": None,
            "observed": None,
            "verdict": None,
            "agree": False,
            "reason": f"{error.message}{hint}",
        }
        for mode in MODES
    ]


def document(rows: Sequence[Row], code: int) -> dict[str, Any]:
    """The matrix as ``specwatch.matrix/1``."""
    return {"schema": SCHEMA, "exit_code": code, "rows": rows}


def text(rows: Sequence[Row], *, color: bool, quiet: bool) -> str:
    """The servers, the table and what does not agree; with ``quiet`` the last line only."""
    last = f"{_summary(rows)}\n"
    if quiet:
        return last
    lines = run_report.columns([_HEAD, *map(_cells, rows)], left=_WORDS)
    wrong = [f"\x1b[31m{line}\x1b[0m" if color else line for line in _wrong(rows)]
    blocks = [[f"servers: {', '.join(_servers(rows))}"] if _servers(rows) else [], lines, wrong]
    return "\n\n".join("\n".join(block) for block in blocks if block) + f"\n\n{last}"


def markdown(rows: Sequence[Row]) -> str:
    """The same for a page."""
    right = ["---" if place in _WORDS else "--:" for place in range(len(_HEAD))]
    table = [f"| {' | '.join(map(_escaped, line))} |" for line in (_HEAD, right, *map(_cells, rows))]
    blocks = [[f"Servers: {', '.join(_servers(rows))}."] if _servers(rows) else [], table]
    blocks += [[f"- {_escaped(line)}" for line in _wrong(rows)], [f"{_summary(rows)}."]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def junit(rows: Sequence[Row]) -> str:
    """A suite a broker, a case a row: a failure where it does not agree, an error where it could not be run."""
    from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

    from specwatch.checker.report.writing import printable

    document = JUnitXml()
    for broker in dict.fromkeys(row["broker"] for row in rows):
        suite = TestSuite(f"specwatch matrix {broker}")
        for row in rows:
            if row["broker"] != broker:
                continue
            case = TestCase(f"{_what(row)} {row['mode']}", classname=f"specwatch.matrix.{broker}")
            if row["reason"] is not None:
                case.result = [Error(printable(row["reason"]), "not run")]
            elif not row["agree"]:
                case.result = [Failure(printable("; ".join(row["differences"])), "disagrees")]
            suite.add_testcase(case)
        document.add_testsuite(suite)
    made: str = document.tostring().decode("utf-8")  # type: ignore[no-untyped-call]  # junitparser leaves it untyped
    return f"{made}\n"


def _cells(row: Row) -> tuple[str, ...]:
    if row["reason"] is None:
        return row["broker"], _what(row), *run_report.cells(row)
    return row["broker"], _what(row), row["mode"], *("–" for _ in COLUMNS[1:-2]), "not run", "NO"


def _what(row: Row) -> str:
    return f"faults {row['fault']}" if row["fault"] else row["experiment"] or "–"


def _servers(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["server"] for row in rows if row["server"]))


def _wrong(rows: Sequence[Row]) -> list[str]:
    """Why rows do not agree, a line for each reason; what could not be run is told once for all its modes."""
    found: dict[str, None] = {}
    for row in rows:
        where = f"{row['broker']}, {_what(row)}"
        if row["reason"] is not None:
            found[f"{where}: not run: {row['reason']}"] = None
        else:
            for difference in row["differences"]:
                found[f"{where}, {row['mode']}: {difference}"] = None
    return list(found)


def _summary(rows: Sequence[Row]) -> str:
    agree = sum(row["agree"] for row in rows)
    unrun = sum(row["reason"] is not None for row in rows)
    return f"{agree} of {len(rows)} agree" + (f", {unrun} could not be run" if unrun else "")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
