"""Each case file of Celery, and of a queue without a spec of its own: a row for each model, through the command."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cases.case_files import CASES, EPOCH, Telling, as_lines, case, shipped

from specwatch.cli.app import app
from specwatch.collector.times import from_rfc3339, from_seconds

Row = dict[str, str]

OTHERS = ("ckp-552", "pulsar-6451")
"""These speak of what only their brokers' own specs have."""


def read_rows() -> list[Row]:
    with (Path(__file__).parent / "rows.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


ROWS = read_rows()


def named(row: Row) -> str:
    return f"{row['case']}: {row['row']}"


def telling(row: Row) -> Telling:
    """How the row tells its case's events: by task, by other names for the tasks, by a field of them, or by none."""
    if row["key"] == "none":
        return Telling(None, frozenset(row["told"].split()), row["receipts"] == "body")
    if row["key"] == "seq":
        return Telling(by="seq")
    pairs = [pair.strip().partition("=") for pair in row["key"].split(",")]
    names = {task: name for task, equals, name in pairs if equals}
    return Telling(names, frozenset(row["told"].split()), row["receipts"] == "body")


def counts(text: str) -> dict[str, int]:
    """``Publish 1, VisTimeout 5``."""
    pairs = (part.split() for part in text.split(",") if part.strip())
    return {action: int(number) for action, number in pairs}


def hidden(row: Row) -> list[str]:
    """What may be inserted: the row's own, or the binding's."""
    return [name for name in row["hidden"].split(",") if name] or list(shipped(row["target"]).hidden)


def check(row: Row, folder: Path, *more: str) -> dict[str, Any]:
    log = folder / "case.jsonl"
    log.write_bytes(as_lines(telling(row).native(case(row["case"])["events"])))
    module = shipped(row["target"]).spec or ""
    config = f"{Path(module).stem}.{row['config']}.cfg"
    arguments = ["check", row["target"], str(log), "--config", config, "--start", "init", "--json"]
    arguments += ["--hidden", row["hidden"]] if row["hidden"] else []
    arguments += ["--order", row["order"], "--skew", "0s"] if row["order"] else []
    result = CliRunner().invoke(app, [*arguments, *more])
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["schema"] == "specwatch.verdict/1", document
    assert document["exit_code"] == result.exit_code
    return document


def in_scopes(row: Row) -> list[Any]:
    """The row in each scope; without a key there is only the run."""
    if row["key"] != "none":
        return [pytest.param(row, scope, id=f"{named(row)}, {scope}") for scope in ("run", "key")]
    return [pytest.param(row, "run", id=named(row))]


@pytest.mark.parametrize(("row", "scope"), [scoped for row in ROWS for scoped in in_scopes(row)])
def test_row(row: Row, scope: str, tmp_path: Path) -> None:
    found = check(row, tmp_path, "--scope", scope)
    assert found["verdict"] == row["verdict"]
    if row["verdict"] == "conforms":
        assert found["hidden_steps"] == sum(counts(row["inserted"]).values())
        return
    [finding] = found["findings"]
    if row["verdict"] == "inconclusive":
        assert finding["reason"]
        return
    assert (finding["at"], finding["invariant"] or "") == (int(row["at"]), row["invariant"])
    action, seconds = row["event"].split()
    assert finding["event"]["action"] == action
    assert from_rfc3339(finding["event"]["time"]) == from_seconds(str(EPOCH)) + from_seconds(seconds)
    assert Counter(step["action"] for step in finding["hidden"]) == counts(row["inserted"])


@pytest.mark.parametrize("row", [row for row in ROWS if row["verdict"] == "conforms"], ids=named)
def test_nothing_is_inserted_that_is_not_needed(row: Row, tmp_path: Path) -> None:
    """Without any one of the hidden actions that the row counts, the same events are not explained."""
    for action in counts(row["inserted"]):
        left = [name for name in hidden(row) if name != action]
        assert check({**row, "hidden": ",".join(left)}, tmp_path)["verdict"] == "diverges"


def test_in_scope_key_an_event_without_its_key_is_refused_with_what_to_do(tmp_path: Path) -> None:
    [row] = [row for row in ROWS if row["key"] == "none" and row["target"] == "queue"]
    log = tmp_path / "case.jsonl"
    log.write_bytes(as_lines(telling(row).native(case(row["case"])["events"])))
    result = CliRunner().invoke(app, ["check", row["target"], str(log), "--json"])
    [error] = json.loads(result.stdout)["errors"]
    assert (result.exit_code, error["line"]) == (4, 1)
    assert error["hint"] == "say --scope run, or log the key"


def test_every_case_of_celery_and_of_no_broker_has_rows() -> None:
    wanted = {path.stem for path in CASES.glob("*.json") if not path.stem.startswith(OTHERS)}
    assert {row["case"] for row in ROWS} == wanted


@pytest.mark.parametrize("row", [row for row in ROWS if row["event"]], ids=named)
def test_the_row_speaks_of_an_event_of_its_file(row: Row) -> None:
    told = telling(row).native(case(row["case"])["events"])
    event = told[int(row["at"]) - 1]
    assert f"{event['action']} {event['time'] - EPOCH}" == row["event"]
