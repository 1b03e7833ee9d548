"""``specwatch run``: what it prints and how it exits, from made outcomes, and once from beginning to end."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from junitparser import Error, Failure, JUnitXml

from specwatch.checker.behaviour import Event
from specwatch.checker.explore import Exploration
from specwatch.checker.verdict import EXIT_CODES, Behaviours, Finding, Verdict, Word
from specwatch.cli import run_report
from specwatch.cli.run import Row, exit_code
from specwatch.pilots.celery import PILOT
from specwatch.pilots.celery.plan import plan
from specwatch.pilots.experiment import Outcome
from specwatch.pilots.faults import Fault, Record
from specwatch.pilots.plan import MODES, Mode

Run = Callable[..., Result]
Process = Callable[..., Any]

KEY = "7f3c0000-0000-4000-8000-000000000000"
VERSIONS = {
    "servers": {"valkey": "valkey 9.1.2", "postgres": "postgresql 18.6"},
    "clients": {"celery": "5.7.0"},
    "python": "3.11.7",
}


def row(
    mode: Mode = "faulty",
    *,
    word: Word = "violates",
    predicted: str = "violates",
    executions: int = 2,
    rows: int = 2,
    undecided: list[str] | None = None,
    **outcome: Any,
) -> Row:
    """A run of one task, by default one in which a second effect was predicted, seen and judged."""
    exploration = Exploration(outcome=predicted, exit_code=0, generated=1097, distinct=186, depth=9)  # type: ignore[arg-type]
    if predicted == "violates":
        exploration.invariant = "NoDoubleExecution"
    event = Event(action="Execute", params={"t": KEY, "w": "worker-2@h", "a": 0}, key=KEY, time=1893492002181000000)
    verdict = Verdict(verdict=word, exit_code=EXIT_CODES[word], behaviours=Behaviours(total=1))
    verdict.invariants = ["TypeOK", "NoDoubleExecution"]
    setattr(verdict.behaviours, word, 1)
    verdict.undecided_by_reason = dict.fromkeys(undecided or [], 1)
    if word != "conforms":
        finding = Finding(verdict=word, at=7, event=event, action="Execute", context=[(7, event)])
        finding.invariant = "NoDoubleExecution" if word == "violates" else None
        finding.reason = verdict.reason = "gap: w lacks seq 3" if word == "inconclusive" else None
        verdict.findings = [finding]
    made = {"restarted": 1, "unsettled": None, **outcome}
    observed = Outcome(
        directory=Path("run"), keys=[KEY], executions={KEY: executions}, rows={KEY: rows}, versions=VERSIONS, **made
    )
    return Row(PILOT, plan(mode), "valkey 9.1.2", exploration, observed, verdict, [event])


def conforming(**more: Any) -> Row:
    return row("idempotent", **{"word": "conforms", "predicted": "pass", "executions": 1, "rows": 1, **more})


# --- whether it agrees, and the exit code


@pytest.mark.parametrize(
    ("made", "difference"),
    [
        (row(), None),
        (conforming(), None),
        (row(executions=1), f"the log tells of 1 executions of {KEY}, and the database holds 2 rows"),
        (row(word="conforms"), "predicted was violates, and the verdict is conforms"),
        (row(word="inconclusive"), "predicted was violates, and the verdict is inconclusive (gap: w lacks seq 3)"),
        (row(executions=1, rows=1), "predicted was a second effect, and the database holds none"),
        (conforming(executions=2, rows=2), "predicted was one effect a task, and the database holds more for 1"),
        (conforming(executions=0, rows=0), "the database holds no effect of 1 tasks"),
        (conforming(restarted=0), "no task was started twice: the fault did not strike"),
        (row(unsettled="2 copies were held"), "it was not over in time: 2 copies were held"),
        (row(predicted="bound"), "predicted was bound, and the verdict is violates"),
    ],
)
def test_prediction_database_and_verdict_agree_or_it_says_why_not(made: Row, difference: str | None) -> None:
    assert made.differences == ([] if difference is None else [difference])


def injected(*, kind: str = "stall", why_not: str = "", **more: Any) -> Row:
    """The same under a fault, which is proven or says why not."""
    record = Record(fault=Fault(kind=kind, target="worker-1", start=1.0), target="worker-1", effect="it was seen")
    record.traffic = 3
    if why_not:
        record.effect, record.why_not = "", why_not
    made = row(**more)
    made.outcome.faults, made.outcome.doubt = [record], ("inconclusive", record.sentence) if why_not else None
    made.verdict.findings = [msgspec.structs.replace(finding, key=KEY) for finding in made.verdict.findings]
    return dataclasses.replace(made, plan=msgspec.structs.replace(made.plan, faults=kind))


@pytest.mark.parametrize(
    ("made", "difference"),
    [
        (injected(), None),
        (injected(word="conforms", executions=1, rows=1, restarted=0), None),  # what can break need not
        (injected(kind="kill", word="inconclusive", undecided=["open-tail"], executions=1, rows=1), None),
        (
            injected(kind="kill", word="inconclusive", undecided=["open-tail", "gap"], executions=1, rows=1),
            "the verdict is inconclusive (gap: w lacks seq 3)",
        ),
        (injected(word="diverges", executions=1, rows=1), "the verdict is diverges"),
        (
            injected(why_not="it was not stopped"),
            "a fault is not proven: stall of worker-1 at 1.0 s: not proven: it was not stopped",
        ),
        (injected(predicted="bound"), "the prediction is bound"),
    ],
)
def test_of_faults_the_rows_are_the_judge(made: Row, difference: str | None) -> None:
    assert made.differences == ([] if difference is None else [difference])


def test_of_faults_each_task_must_violate_exactly_where_it_has_a_second_row() -> None:
    """Also where the run as a whole has the right verdict, because of another task."""
    assert injected(executions=1, rows=1).differences == [
        "the database holds more than one effect of 0 tasks, and the verdict is violates",
        f"the database holds 1 rows for {KEY}, and its verdict is violates",
    ]
    made = injected()
    made.outcome.keys.append("other")
    made.outcome.rows["other"] = made.outcome.executions["other"] = 2
    assert made.differences == ["the database holds 2 rows for other, and its verdict is conforms"]


@pytest.mark.parametrize(("rows", "agrees"), [(1, True), (2, True), (3, False)])
def test_what_was_sent_again_may_be_there_as_often(rows: int, agrees: bool) -> None:
    """The broker was away, and gave no answer: it has one message of it or two, and each has an effect."""
    made = injected(word="conforms", executions=rows, rows=rows, restarted=0)
    sent = [msgspec.structs.replace(made.events[0], action=action, key=KEY) for action in ("Publish", "Republish")]
    assert (dataclasses.replace(made, events=sent).differences == []) is agrees


@pytest.mark.parametrize(
    ("rows", "mode", "expect", "code"),
    [
        ([row(), conforming()], None, None, 0),
        ([row(), conforming(restarted=0)], None, None, 1),
        ([row()], "faulty", None, 1),
        ([row()], "faulty", "violates", 0),
        ([row()], "faulty", "diverges", 1),
        ([row(word="conforms")], "faulty", None, 0),
        ([row(word="conforms")], "faulty", "violates", 1),
        ([row(word="vacuous")], "faulty", None, 3),
        ([row(word="vacuous")], "faulty", "violates", 3),
        ([row(executions=1)], "faulty", "violates", 1),
        ([conforming(executions=2)], "idempotent", None, 1),
    ],
)
def test_the_exit_code(rows: list[Row], mode: str | None, expect: str | None, code: int) -> None:
    assert exit_code(rows, mode=mode, expect=expect) == code


# --- what it prints


def test_the_table_has_prediction_observation_and_verdict_side_by_side() -> None:
    text = run_report.text([row(), conforming()], runtime="embedded", keep=None, color=False, quiet=False)
    assert text.split("\n\n")[-1].splitlines() == [
        "mode        predicted  states  depth  executions  rows  tasks  verdict   agree",
        "faulty      violates      186      9           2     2      1  violates  yes",
        "idempotent  conforms      186      9           1     1      1  conforms  yes",
        "2 of 2 agree",
    ]


def test_an_expected_violation_is_told_without_alarm() -> None:
    text = run_report.text([row()], runtime="embedded", keep=None, color=True, quiet=False)
    assert "verdict     violates NoDoubleExecution at event 7, as predicted" in text.splitlines()
    assert not re.search("✗|\x1b\\[31m|alarm", text)


def test_what_does_not_agree_is_told() -> None:
    text = run_report.text([row(executions=1)], runtime="embedded", keep=None, color=False, quiet=False)
    assert "database    2 rows for 7f3c…, but 1 executions in the log" in text.splitlines()
    assert any(line.startswith("does not agree: the log tells of 1 executions") for line in text.splitlines())


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([row(), conforming(restarted=0)], "1 of 2 agree"),
        ([row()], "violates NoDoubleExecution at event 7, as predicted"),
    ],
)
def test_quiet_prints_the_last_line_only(rows: list[Row], line: str) -> None:
    assert run_report.text(rows, runtime="embedded", keep=None, color=False, quiet=True) == f"{line}\n"


def cases(text: str) -> dict[str, list[type]]:
    """Of each case what it is: nothing where it passed."""
    suites = list(JUnitXml.fromstring(text.encode()))
    return {
        f"{suite.name.split('.')[1]} {case.name}": [type(one) for one in case.result]
        for suite in suites
        for case in suite
    }


def test_junit_takes_what_was_predicted_for_a_pass() -> None:
    found = cases(run_report.junit([row(), conforming()], tolerated=None, all_modes=True))
    assert {name for name in found if name.startswith("faulty")} == {
        "faulty action conformance",
        "faulty database",
        "faulty invariant NoDoubleExecution",
        "faulty invariant TypeOK",
        "faulty prediction",
    }
    assert [name for name, result in found.items() if result] == []


def test_junit_of_one_mode_fails_as_check_does_unless_it_was_expected() -> None:
    plain = cases(run_report.junit([row()], tolerated=None, all_modes=False))
    assert plain["faulty invariant NoDoubleExecution"] == [Failure]
    expected = cases(run_report.junit([row()], tolerated="violates", all_modes=False))
    assert [name for name, result in expected.items() if result] == []
    undecided = cases(run_report.junit([row(word="inconclusive")], tolerated="violates", all_modes=False))
    assert undecided["faulty invariant NoDoubleExecution"] == [Error]
    assert undecided["faulty expect violates"] == [Failure]


def test_junit_fails_where_the_database_disagrees() -> None:
    found = cases(run_report.junit([row(executions=1)], tolerated=None, all_modes=True))
    assert (found["faulty database"], found["faulty prediction"]) == ([Failure], [Failure])


# --- wrong use


def test_expect_needs_a_mode(run: Run) -> None:
    done = run("run", "celery", "--expect", "violates")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--expect needs --mode" in done.stderr


def test_a_folder_that_holds_something_is_not_written_into(run: Run, tmp_path: Path) -> None:
    (tmp_path / "evidence").touch()
    done = run("run", "celery", "--keep", str(tmp_path), "--json")
    assert (done.exit_code, json.loads(done.stdout)["errors"][0]["message"]) == (4, "is not empty")


def test_external_servers_need_their_urls(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPECWATCH_VALKEY_URL", "SPECWATCH_POSTGRES_URL"):
        monkeypatch.delenv(name, raising=False)
    done = run("run", "celery", "--mode", "faulty", "--runtime", "external", "--json")
    assert done.exit_code == 4
    assert "URL" in json.loads(done.stdout)["errors"][0]["message"]


# --- from beginning to end


def test_all_modes_agree_and_each_run_directory_is_judged_again(run_process: Process, run: Run, tmp_path: Path) -> None:
    keep, xml = tmp_path / "kept", tmp_path / "junit.xml"
    done = run_process("run", "celery", "--json", "--keep", str(keep), "--junit", str(xml))
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["schema"], [one["mode"] for one in document["rows"]]) == ("specwatch.run/1", list(MODES))
    for one in document["rows"]:
        assert (one["broker"], one["experiment"], one["fault"], one["agree"]) == (
            "celery",
            "visibility-timeout",
            None,
            True,
        )
        assert one["server"].startswith(("valkey ", "redis "))
    assert [tuple(one["observed"].values()) for one in document["rows"]] == [(2, 2, 1), (2, 2, 1), (1, 1, 1)]
    assert [one["verdict"] for one in document["rows"]] == ["violates", "violates", "conforms"]
    assert [one["predicted"]["outcome"] for one in document["rows"]] == ["violates", "violates", "pass"]
    assert [result for result in cases(xml.read_text(encoding="utf-8")).values() if result] == []
    for mode in MODES:
        kept = (keep / mode / "verdict.json").read_text(encoding="utf-8")
        for arguments in (("check", str(keep / mode)), ("check", "celery", str(keep / mode))):
            assert run(*arguments, "--json").stdout == kept
        assert (keep / mode / "report.txt").read_text(encoding="utf-8") == run("check", str(keep / mode)).stdout


def test_an_expected_violation_of_one_mode_exits_with_zero(run_process: Process) -> None:
    done = run_process("run", "celery", "--mode", "faulty", "--expect", "violates", "--seed", "7", "--no-color")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    key = msgspec.structs.replace(plan("faulty"), seed=7).ids()[0][:4]
    assert f"database    2 rows for {key}…, as many as the log tells of" in lines
    assert re.fullmatch(r"violates NoDoubleExecution at event \d+, as predicted", lines[-1])
    assert "(hidden)" in done.stdout
    assert "Execute" in done.stdout


def test_a_random_chaos_run_is_judged_task_by_task(run_process: Process, tmp_path: Path) -> None:
    """Faults of every kind that the broker can suffer, each proven, in all modes; the rows are the judge."""
    keep = tmp_path / "kept"
    done = run_process(
        *("run", "nats", "--faults", "random", "--seed", "3", "--tasks", "80", "--workers", "3"),
        *("--keep", str(keep), "--json"),
    )
    rows = json.loads(done.stdout)["rows"]
    assert [(one["mode"], one["differences"]) for one in rows] == [(mode, []) for mode in MODES]
    assert (done.returncode, done.stderr) == (0, "")
    assert [one["verdict"] for one in rows][2] == "conforms"
    for one in rows:
        assert (one["fault"], one["agree"], one["observed"]["keys"]) == ("random", True, 80)
        assert [fault["proven"] for fault in one["faults"]] == [True, True]
        lines = (keep / one["mode"] / "events.jsonl").read_text(encoding="utf-8").splitlines()
        told = [event for event in map(json.loads, lines) if event.get("lane") == "fault"]
        assert {event["params"]["kind"] for event in told} == {fault["kind"] for fault in one["faults"]}
