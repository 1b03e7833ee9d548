"""What ``run`` prints: the transcript, the table, ``specwatch.run/1`` and JUnit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specwatch.checker.verdict import Finding

    from .run import Row

SCHEMA = "specwatch.run/1"

VERDICT_OF = {"pass": "conforms", "violates": "violates"}
"""The verdict that the outcome of a model amounts to, where it amounts to one."""

_GUARDS = {
    "faulty": "no guard",
    "check-then-insert": "look for the row, then insert it",
    "idempotent": "claim and effect in one transaction",
}
_SHOWN = 30
"""How many events of a task that conforms are shown."""
_FAULTS_SHOWN = 5
"""How many tasks the text names; the JSON counts them all."""


def document(rows: Sequence[Row], code: int) -> dict[str, Any]:
    """The run as ``specwatch.run/1``: one row a mode."""
    return {"schema": SCHEMA, "exit_code": code, "rows": [document_row(row) for row in rows]}


def document_row(row: Row) -> dict[str, Any]:
    """One row, as the matrix has it too."""
    prediction, outcome = row.prediction, row.outcome
    return {
        "broker": row.pilot.name,
        "server": row.server,
        "mode": row.plan.mode,
        "experiment": row.plan.experiment,
        "fault": row.plan.faults or None,
        "predicted": {
            "outcome": prediction.outcome,
            "generated": prediction.generated,
            "distinct": prediction.distinct,
            "depth": prediction.depth,
            "invariant": prediction.invariant,
        },
        "observed": {
            "executions": sum(outcome.executions.values()),
            "rows": sum(outcome.rows.values()),
            "keys": len(outcome.keys),
        },
        "verdict": row.word,
        "agree": not row.differences,
        "differences": row.differences,
        "faults": [
            {
                "kind": record.fault.kind,
                "target": record.target,
                "start": record.fault.start,
                "proven": record.is_proven,
                "effect": record.effect,
                "traffic": record.traffic,
                "why_not": record.why_not,
            }
            for record in outcome.faults
        ],
        "versions": outcome.versions,
    }


# --- for people


def text(rows: Sequence[Row], *, runtime: str, keep: Path | None, color: bool, quiet: bool) -> str:
    """The transcript, mode by mode, and the table; with ``quiet`` the last line only."""
    agree = sum(not row.differences for row in rows)
    last = f"{agree} of {len(rows)} agree" if len(rows) > 1 else _verdict(rows[0])
    if quiet:
        return f"{last}\n"
    blocks = [_head(rows[0], runtime)]
    for row in rows:
        blocks.extend(_mode(row, color))
    kept = [f"judge it again: specwatch check {row.outcome.directory}" for row in rows if keep]
    blocks.append([*_table(rows), *kept, last])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _head(row: Row, runtime: str) -> list[str]:
    import msgspec

    plan, versions = row.plan, row.outcome.versions
    told = row.pilot.experiments[plan.experiment].format(**msgspec.to_builtins(plan))
    head = f"{row.pilot.name}, {plan.experiment}: {told}"
    if plan.faults:
        head = f"{row.pilot.name}, faults {plan.faults}: {len(row.outcome.faults)} in each mode"
    clients = ", ".join(f"{name} {version}" for name, version in versions["clients"].items())
    tasks = "1 task" if plan.tasks == 1 else f"{plan.tasks:,} tasks"
    if plan.tasks > 1 and plan.struck:
        tasks += f", {plan.struck} of them struck"
    return [
        head,
        f"servers: {', '.join(versions['servers'].values())} ({runtime})",
        f"clients: {clients}, Python {versions['python']}",
        f"in each mode: {tasks}, {_count(plan.workers, 'worker')} of concurrency {plan.concurrency}, seed {plan.seed}",
    ]


def _mode(row: Row, color: bool) -> list[list[str]]:
    head = f"── {row.plan.mode}: {_GUARDS[row.plan.mode]} "
    told, why = _story(row)
    blocks = [[_bold(head.ljust(100, "─"), color), f"prediction  {_prediction(row)}"], told]
    if row.outcome.faults:
        faults = [record.sentence for record in row.outcome.faults]
        blocks.append([f"{'faults' if place == 0 else '':<12}{sentence}" for place, sentence in enumerate(faults)])
    blocks.append([f"database    {_database(row)}", f"verdict     {_verdict(row)}"])
    if why:
        blocks.append(why)
    if row.differences:
        blocks.append([_red(f"does not agree: {difference}", color) for difference in row.differences[:_FAULTS_SHOWN]])
    return [block for block in blocks if block]


def _prediction(row: Row) -> str:
    found = row.prediction
    said = f"violates {found.invariant}" if found.outcome == "violates" else row.predicted
    counts = f"{found.generated:,} states generated, {found.distinct:,} distinct, depth {found.depth}"
    return f"{said}: {counts} ({row.pilot.config(row.plan)})"


def _story(row: Row) -> tuple[list[str], list[str]]:
    """What happened, as the report tells it: the timeline, and what it says after that."""
    from specwatch.checker.report.text import render_finding
    from specwatch.checker.verdict import Finding

    if row.verdict.findings:
        shown = row.verdict.findings[0]
    else:
        struck = [event for event in row.events if row.outcome.keys and event.key == row.outcome.keys[0]]
        shown = Finding(verdict="conforms", context=list(enumerate(struck, 1))[:_SHOWN])
    # The headline is told as the verdict, and the sentence below it says no more than the marked event.
    _, *blocks = render_finding(shown).split("\n\n")
    timeline, *why = (block.split("\n") for block in blocks) if blocks else ([],)
    return timeline, [line for block in why for line in block]


def _database(row: Row) -> str:
    outcome = row.outcome
    executions, rows, keys = sum(outcome.executions.values()), sum(outcome.rows.values()), len(outcome.keys)
    told = "as many as the log tells of" if executions == rows else f"but {executions:,} executions in the log"
    if keys == 1:
        return f"{_count(rows, 'row')} for {_short(row, outcome.keys[0])}, {told}"
    twice = sum(count > 1 for count in outcome.rows.values())
    return f"{_count(rows, 'row')} for {keys:,} tasks, more than one for {twice:,} of them; {told}"


def _verdict(row: Row) -> str:
    verdict = row.verdict
    first: Finding | None = next(iter(verdict.findings), None)
    said: str = row.word
    if row.word != verdict.verdict:
        said += f": {row.reason}"
    elif first is not None and first.at is not None:
        said += f" {first.invariant or first.action} at event {first.at}"
    elif verdict.reason:
        said += f": {verdict.reason}"
    elif verdict.verdict == "conforms":
        said += f": every event is explained, and {', '.join(verdict.invariants)} hold"
    return f"{said}{', as predicted' if row.word == row.predicted else ''}"


def _table(rows: Sequence[Row]) -> list[str]:
    return columns([COLUMNS, *(cells(document_row(row)) for row in rows)], left=(0, 1, 7, 8))


COLUMNS = ("mode", "predicted", "states", "depth", "executions", "rows", "tasks", "verdict", "agree")
"""The table's head; ``cells`` are a row below it."""


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of ``document_row`` as the table shows it."""
    predicted, observed = row["predicted"], row["observed"]
    numbers = (predicted["distinct"], predicted["depth"], observed["executions"], observed["rows"], observed["keys"])
    word = VERDICT_OF.get(predicted["outcome"], predicted["outcome"])
    return (
        row["mode"],
        word,
        *(f"{number:,}" for number in numbers),
        row["verdict"],
        "yes" if row["agree"] else "NO",
    )


def columns(lines: Sequence[Sequence[str]], *, left: Collection[int]) -> list[str]:
    """Lines of cells one below the other. The columns in ``left`` hold words, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(row: Row, key: str) -> str:
    from specwatch.checker.report.writing import Shortener
    from specwatch.checker.verdict import Finding

    return Shortener([Finding(verdict=row.verdict.verdict, key=key)])(key)


def _bold(line: str, color: bool) -> str:
    return f"\x1b[1m{line}\x1b[0m" if color else line


def _red(line: str, color: bool) -> str:
    return f"\x1b[31m{line}\x1b[0m" if color else line


# --- for CI


def junit(rows: Sequence[Row], *, tolerated: str | None, all_modes: bool) -> str:
    """A suite a mode: the cases of ``check --junit``, and whether the database, and of all modes the prediction, agree.

    What was expected is no failure: of all modes the predicted verdict, of one mode what ``--expect`` names.
    """
    from junitparser import Failure, JUnitXml, TestCase

    from specwatch.checker import report
    from specwatch.checker.report.writing import printable

    document = JUnitXml()
    for row in rows:
        name = f"{row.pilot.name}.{row.plan.mode}.{row.plan.experiment}"
        expected = row.predicted if all_modes else tolerated
        for suite in JUnitXml.fromstring(report.render("junit", row.verdict).encode()):
            suite.name = f"specwatch {name}"
            for case in suite:
                case.classname = f"specwatch.{name}"
                if row.word == expected:
                    case.result = []
            disagreements = row.outcome.disagreements
            own = {"database": [f"{key}: {told} executions, {held} rows" for key, told, held in disagreements]}
            if all_modes:
                own["prediction"] = row.differences
            elif tolerated:
                word = row.word
                own[f"expect {tolerated}"] = [] if word == tolerated else [f"the verdict is {word}"]
            for what, wrong in own.items():
                case = TestCase(what, classname=f"specwatch.{name}")
                if wrong:
                    case.result = [Failure(printable("; ".join(wrong[:_FAULTS_SHOWN])), "disagrees")]
                suite.add_testcase(case)
            document.add_testsuite(suite)
    text: str = document.tostring().decode("utf-8")  # type: ignore[no-untyped-call]  # junitparser leaves it untyped
    return f"{text}\n"
