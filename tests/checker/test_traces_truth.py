"""The judged traces of ``tests/corpus/truth/traces``: every row, through the Python face and through the command."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specwatch.checker import check, load_spec, tla
from specwatch.checker.behaviour import Behaviour, Event, Order
from specwatch.checker.bounds import Bounds
from specwatch.checker.paths import Rules
from specwatch.checker.replay import Replay
from specwatch.checker.spec import Spec
from specwatch.cli.app import app

TRACES = Path(__file__).parents[1] / "corpus" / "truth" / "traces"
EXIT_CODES = {"conforms": 0, "violates": 1, "diverges": 1, "vacuous": 3}
REFUSED = {
    "late-unknown-after-violation": (7, "Retry"),
    "late-unknown-action": (2, "PickUp"),
    "read-truncated-name": (2, "GetMis"),
    "read-purge": (2, "Purge"),
    "read-unknown-parameter": (1, "key"),
}
"""The rows whose events speak of an action or a parameter that the spec lacks (README-traces.md): line and name."""

Row = dict[str, str]


def read_rows() -> list[Row]:
    with (TRACES / "traces.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


ROWS = read_rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['spec']}-{row['case']}")


def log(row: Row) -> Path:
    return TRACES / row["spec"] / f"{row['case']}.jsonl"


def hidden(row: Row) -> list[str]:
    return [name for name in row["hidden"].split(",") if name]


def order(row: Row) -> Order:
    return "total" if row["order"] == "total" else "emitter"


@cache
def spec_of(module: str, config: str) -> Spec:
    return load_spec(TRACES / f"{module}.tla", TRACES / f"{module}.{config}.cfg")


def events(row: Row) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log(row).read_text(encoding="utf-8").splitlines()]


def least_sets(invariant: str | None) -> set[frozenset[str]]:
    """``A+B|C`` as sets."""
    return {frozenset(one.split("+")) for one in invariant.split("|")} if invariant else set()


def columns(row: Row) -> tuple[str, int | None, set[frozenset[str]], int]:
    """What both faces are held to."""
    at = int(row["at"]) if row["at"] else None
    return row["verdict"], at, least_sets(row["invariant"]), int(row["hidden_used"] or 0)


def test_no_row_is_left_out() -> None:
    assert len(ROWS) == 156
    assert len({(row["spec"], row["case"]) for row in ROWS}) == 156
    assert {row["case"] for row in ROWS} >= REFUSED.keys()
    assert {row["order"] for row in ROWS} == {"total", "per-emitter"}
    assert {str(log(row)) for row in ROWS} == {str(path) for path in TRACES.glob("*/*.jsonl")}


@every_row
def test_the_python_face_gives_the_truth(row: Row) -> None:
    spec = spec_of(row["spec"], row["config"])
    options: dict[str, Any] = {"hidden": hidden(row), "hidden_max": int(row["hidden_max"]), "order": order(row)}
    if row["case"] in REFUSED:
        with pytest.raises(tla.TlaError, match=rf"\b{REFUSED[row['case']][1]}\b"):
            check(spec, events(row), **options)
        return
    found = check(spec, events(row), **options)
    finding = found.findings[0] if found.findings else None
    assert len(found.findings) == (0 if row["verdict"] == "conforms" else 1)
    at, invariant = (finding.at, finding.invariant) if finding else (None, None)
    assert (found.verdict, at, least_sets(invariant), found.hidden_steps) == columns(row)
    assert found.exit_code == EXIT_CODES[row["verdict"]]


@every_row
def test_the_command_gives_the_truth(row: Row) -> None:
    arguments = ["check", str(TRACES / f"{row['spec']}.tla"), str(log(row)), "--json"]
    arguments += ["--config", str(TRACES / f"{row['spec']}.{row['config']}.cfg")]
    arguments += ["--hidden-max", row["hidden_max"], "--order", order(row)]
    arguments += ["--hidden", row["hidden"]] if row["hidden"] else []
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, SystemExit | None)
    found = json.loads(result.stdout)
    assert result.exit_code == found["exit_code"]
    if row["case"] in REFUSED:
        assert (found["schema"], result.exit_code) == ("specwatch.error/1", 4)
        (error,) = found["errors"]
        line, name = REFUSED[row["case"]]
        assert (error["file"], error["line"]) == (str(log(row)), line)
        assert name in error["message"]
        return
    assert found["schema"] == "specwatch.verdict/1"
    assert result.exit_code == EXIT_CODES[row["verdict"]]
    (finding,) = found["findings"] or [{"at": None, "invariant": None}]
    assert (found["verdict"], finding["at"], least_sets(finding["invariant"]), found["hidden_steps"]) == columns(row)


def ends(row: Row) -> bool:
    """Whether the replay comes to the last level: where a verdict is settled before, it does not go on."""
    return row["verdict"] == "conforms" or row["at"] == str(len(events(row)))


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if ends(row) and row["case"] not in REFUSED],
    ids=lambda row: f"{row['spec']}-{row['case']}",
)
def test_the_replay_ends_in_as_many_states_as_the_truth(row: Row) -> None:
    spec = spec_of(row["spec"], row["config"])
    read = sorted((Event(**event) for event in events(row)), key=lambda event: event.seq or 0)
    actions = frozenset(action for name in hidden(row) for action in spec.named(name))
    behaviour = Behaviour(events=read, order=order(row))
    outcome = Replay(spec, behaviour, Rules(actions, int(row["hidden_max"])), Bounds()).run()
    assert (outcome.good_states, outcome.broken_states) == (int(row["good_states"]), int(row["broken_states"]))
