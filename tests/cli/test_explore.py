"""``explore`` from end to end: each outcome with its exit code, and the counterexample."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import Result

if TYPE_CHECKING:
    from tests.cli.conftest import Queue

Run = Callable[..., Result]
RunProcess = Callable[..., subprocess.CompletedProcess[str]]

MODEL = Path(__file__).parents[2] / "specs" / "celery" / "CeleryETA.tla"
STEPS = r"""---- MODULE Steps ----
EXTENDS Naturals
CONSTANT Last
ASSUME Last > 0
VARIABLES n, even
Init == n = 0 /\ even = TRUE
Up == /\ n < Last
      /\ n' = n + 1
      /\ even' = ~even
Next == Up
Small == n < 3
Odd == n + TRUE
Done == <>(n = Last)
====
"""


def steps(queue: Queue, config: str) -> str:
    queue.write("Steps.cfg", f"INIT Init\nNEXT Next\n{config}\n")
    return queue.write("Steps.tla", STEPS)


@pytest.mark.parametrize(
    ("config", "arguments", "outcome", "exit_code"),
    [
        ("CONSTANT Last = 2", ["--no-deadlock"], "pass", 0),
        ("CONSTANT Last = 2", [], "deadlock", 1),
        ("CONSTANT Last = 2\nCHECK_DEADLOCK FALSE", [], "pass", 0),
        ("CONSTANT Last = 2\nCHECK_DEADLOCK FALSE", ["--deadlock"], "deadlock", 1),
        ("CONSTANT Last = 5\nINVARIANT Small", [], "violates", 1),
        ("CONSTANT Last = 0", [], "assumption", 1),
        ("CONSTANT Last = 9", ["--max-states", "3"], "bound", 3),
        ("CONSTANT Last = 2\nINVARIANT Odd", [], "error", 4),
        ("CONSTANT Last = 2\nPROPERTY Done", ["--no-deadlock"], "pass", 3),
        ("CONSTANT Last = 2\nPROPERTY Done", ["--no-deadlock", "--ignore-unchecked"], "pass", 0),
    ],
)
def test_each_outcome_has_its_exit_code(
    run: Run, queue: Queue, config: str, arguments: list[str], outcome: str, exit_code: int
) -> None:
    spec = steps(queue, config)
    found = run("explore", spec, "--json", *arguments)
    document: dict[str, Any] = json.loads(found.stdout)
    assert document["schema"] == "specwatch.explore/1"
    assert (document["outcome"], document["exit_code"], found.exit_code) == (outcome, exit_code, exit_code)
    assert run("explore", spec, *arguments).exit_code == exit_code


def test_the_counterexample_is_numbered_and_marks_what_changed(run: Run, queue: Queue) -> None:
    found = run("explore", steps(queue, "CONSTANT Last = 5\nINVARIANT Small"))
    assert found.exit_code == 1
    lines = found.stdout.splitlines()
    assert lines[0] == "✗ Small is violated"
    assert lines[2:5] == ["  1  initial state", "       n = 0", "       even = TRUE"]
    assert lines[5:8] == ["  2  Up", "     ▸ n = 1", "     ▸ even = FALSE"]
    assert lines[-1].startswith("4 states generated, 4 distinct states found, depth 4")


def test_json_has_the_counts_and_the_trace_with_parameters(run: Run, queue: Queue) -> None:
    found = json.loads(run("explore", queue.spec, "--json").stdout)
    assert (found["outcome"], found["invariant"]) == ("violates", "NoDouble")
    assert found["trace"][0] == {
        "action": None,
        "params": {},
        "state": {"ready": "{}", "runs": found["trace"][0]["state"]["runs"]},
    }
    assert [step["action"] for step in found["trace"]] == [None, "Publish", "Execute", "Execute"]
    assert found["trace"][1]["params"] == {"t": '"a"'}
    assert {"generated", "distinct", "depth", "unchecked", "message"} <= set(found)


def test_what_is_not_checked_is_named(run: Run, queue: Queue) -> None:
    found = run("explore", steps(queue, "CONSTANT Last = 2\nPROPERTY Done"), "--no-deadlock")
    assert "not checked: PROPERTY Done" in found.stdout


def test_quiet_prints_one_line(run: Run, queue: Queue) -> None:
    found = run("explore", queue.spec, "--quiet")
    assert found.stdout.startswith("violates: ")
    assert found.stdout.count("\n") == 1


def test_a_config_is_found_beside_the_spec(run: Run, queue: Queue) -> None:
    queue.write("Queue.one.cfg", 'SPECIFICATION Spec\nCONSTANT Tasks = {"a"}\n')
    found = run("explore", queue.spec, "--config", "Queue.two.cfg")
    assert found.exit_code == 4
    assert "Queue.one.cfg" in found.stderr


@pytest.mark.parametrize(
    ("mode", "arguments", "expected"),
    [
        ("faulty", [], ("violates", 53, 33, 5)),
        ("idempotent", [], ("deadlock", 240, 99, 8)),
        ("idempotent", ["--no-deadlock"], ("pass", 352, 127, 9)),
    ],
)
def test_the_shipped_model_has_the_numbers_of_tlc(
    run_process: RunProcess, mode: str, arguments: list[str], expected: tuple[str, int, int, int]
) -> None:
    done = run_process("explore", str(MODEL), "--config", f"CeleryETA.{mode}.cfg", "--json", *arguments)
    found = json.loads(done.stdout)
    assert (found["outcome"], found["generated"], found["distinct"], found["depth"]) == expected
    assert done.stderr == ""
