"""``specwatch matrix``: what it prints and how it exits, from made rows, and once on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from junitparser import Error, Failure, JUnitXml

from specwatch.cli import matrix_report
from specwatch.pilots.errors import PilotError
from specwatch.pilots.plan import MODES

Run = Callable[..., Result]
Process = Callable[..., Any]


def row(mode: str = "faulty", **more: Any) -> dict[str, Any]:
    """A row in which a second effect was predicted, seen and judged."""
    made: dict[str, Any] = {
        "broker": "celery",
        "server": "valkey 9.1.2",
        "mode": mode,
        "experiment": "visibility-timeout",
        "fault": None,
        "predicted": {"outcome": "violates", "generated": 1097, "distinct": 1186, "depth": 9},
        "observed": {"executions": 2, "rows": 2, "keys": 1},
        "verdict": "violates",
        "agree": True,
        "differences": [],
        "reason": None,
    }
    return {**made, **more}


GUARDED = row(
    "idempotent",
    predicted={"outcome": "pass", "generated": 5, "distinct": 4, "depth": 3},
    observed={"executions": 1, "rows": 1, "keys": 1},
    verdict="conforms",
)
CHAOS = row(fault="random", agree=False, differences=["the verdict is inconclusive", "it was not over in time"])
UNRUN = matrix_report.unrun("nats", None, None, PilotError("not installed: nats-py", hint="pip install it"))


def text(*rows: dict[str, Any], quiet: bool = False) -> str:
    return matrix_report.text(rows, color=False, quiet=quiet)


def test_the_table_has_a_line_a_row_with_all_that_must_agree() -> None:
    assert text(row(), GUARDED).splitlines() == [
        "servers: valkey 9.1.2",
        "",
        "broker  experiment          mode        predicted  states  depth  executions  rows  tasks  verdict   agree",
        "celery  visibility-timeout  faulty      violates    1,186      9           2     2      1  violates  yes",
        "celery  visibility-timeout  idempotent  conforms        4      3           1     1      1  conforms  yes",
        "",
        "2 of 2 agree",
    ]


def test_what_does_not_agree_and_what_could_not_be_run_says_why() -> None:
    lines = text(row(), CHAOS, *UNRUN).splitlines()
    assert lines[-5:] == [
        "celery, faults random, faulty: the verdict is inconclusive",
        "celery, faults random, faulty: it was not over in time",
        "nats, –: not run: not installed: nats-py (pip install it)",
        "",
        "1 of 5 agree, 3 could not be run",
    ]
    assert [line.split()[-3:] for line in lines if line.startswith("nats ")] == [["not", "run", "NO"]] * 3


def test_quiet_prints_the_last_line_only() -> None:
    assert text(row(), CHAOS, quiet=True) == "1 of 2 agree\n"


def test_the_page_is_a_table_of_markdown() -> None:
    page = matrix_report.markdown([row(), CHAOS]).splitlines()
    assert page[:4] == [
        "Servers: valkey 9.1.2.",
        "",
        "| broker | experiment | mode | predicted | states | depth | executions | rows | tasks | verdict | agree |",
        "| --- | --- | --- | --- | --: | --: | --: | --: | --: | --- | --- |",
    ]
    assert page[4] == ("| celery | visibility-timeout | faulty | violates | 1,186 | 9 | 2 | 2 | 1 | violates | yes |")
    assert page[-1] == "1 of 2 agree."


def test_junit_has_a_case_a_row() -> None:
    suites = list(JUnitXml.fromstring(matrix_report.junit([row(), CHAOS, *UNRUN]).encode()))
    assert [(suite.name, [(case.name, [type(one) for one in case.result]) for case in suite]) for suite in suites] == [
        (
            "specwatch matrix celery",
            [("visibility-timeout faulty", []), ("faults random faulty", [Failure])],
        ),
        ("specwatch matrix nats", [(f"– {mode}", [Error]) for mode in MODES]),
    ]


# --- wrong use, and brokers that cannot run


def test_a_broker_that_is_none_is_named_with_the_one_that_was_meant(run: Run) -> None:
    done = run("matrix", "--only", "nats,rabitmq")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no broker is called 'rabitmq': did you mean 'rabbitmq'?" in done.stderr


def test_a_broker_that_cannot_run_is_a_row_that_says_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPECWATCH_NATS_URL", "SPECWATCH_POSTGRES_URL"):
        monkeypatch.delenv(name, raising=False)
    done = run("matrix", "--only", "nats", "--runtime", "external", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["schema"], document["exit_code"]) == (1, "specwatch.matrix/1", 1)
    assert [(one["experiment"], one["mode"]) for one in document["rows"]] == [
        (experiment, mode) for experiment in ("ack-wait", "late-ack") for mode in MODES
    ]
    assert all((one["verdict"], one["agree"]) == (None, False) and "URL" in one["reason"] for one in document["rows"])


def test_a_fault_that_a_broker_cannot_suffer_is_a_row_that_says_why(run: Run) -> None:
    done = run("matrix", "--only", "nats", "--faults", "early")
    assert done.exit_code == 1
    assert "nats, faults early: not run: --faults early: early cannot be made to happen here" in done.stdout


def test_faults_need_two_workers(run: Run) -> None:
    done = run("matrix", "--only", "nats", "--faults", "stall", "--workers", "1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "two workers" in done.stderr


def test_a_folder_that_holds_something_else_is_not_written_into(run: Run, tmp_path: Path) -> None:
    (tmp_path / "evidence").touch()
    done = run("matrix", "--keep", str(tmp_path), "--json")
    assert (done.exit_code, json.loads(done.stdout)["errors"][0]["message"]) == (
        4,
        "is not empty, and no matrix was begun in it",
    )


# --- from beginning to end


def test_all_rows_agree_and_the_same_command_goes_on_where_it_was_stopped(run_process: Process, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    command = ("matrix", "--only", "nats", "--keep", str(keep))
    done = run_process(*command, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [(one["experiment"], one["mode"], one["verdict"], one["agree"]) for one in document["rows"]] == [
        (experiment, mode, "conforms" if mode == "idempotent" else "violates", True)
        for experiment in ("ack-wait", "late-ack")
        for mode in MODES
    ]
    assert json.loads((keep / "matrix.json").read_bytes()) == document
    assert (keep / "matrix.md").read_text(encoding="utf-8").endswith("\n6 of 6 agree.\n")

    # As if it had been stopped in the midst of the second.
    (keep / "nats" / "late-ack" / "rows.json").unlink()
    first = (keep / "nats" / "ack-wait" / "faulty" / "events.jsonl").stat().st_mtime_ns
    second = (keep / "nats" / "late-ack" / "faulty" / "events.jsonl").stat().st_mtime_ns
    done = run_process(*command, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "6 of 6 agree\n", "")
    assert (keep / "nats" / "ack-wait" / "faulty" / "events.jsonl").stat().st_mtime_ns == first
    assert (keep / "nats" / "late-ack" / "faulty" / "events.jsonl").stat().st_mtime_ns > second

    done = run_process(*command, "--seed", "5")
    assert (done.returncode, done.stdout) == (4, "")
    assert "this matrix was begun with --seed 0, not --seed 5" in done.stderr
