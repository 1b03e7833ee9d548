"""Each action of CeleryRedis in a run that it allows, and in one that it does not. Events as a probe logs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Celery = Callable[..., Any]

RETRY = ("Pickup w=A a=0", "Start w=A a=0", "Retry w=A a=0", "Ack w=A a=0")
BEGUN = ("Publish", "Pickup w=A", "Start w=A")
EXECUTED = (*BEGUN, "Execute w=A")
ACKED = (*EXECUTED, "Done w=A", "Ack w=A")


def one(worker: str, attempt: int = 0) -> tuple[str, ...]:
    """One delivery from receipt to late ack."""
    return tuple(f"{action} w={worker} a={attempt}" for action in ("Pickup", "Start", "Execute", "Done", "Ack"))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # the ordinary life of a message
        (("Publish", *one("A")), "conforms"),
        (("Publish", "Pickup", "Start", "Execute", "Done", "Ack"), "conforms"),
        (("Publish", "Publish"), "diverges 2"),
        ((*BEGUN, "Done w=A"), "diverges 4"),
        ((*BEGUN, "Execute w=B"), "diverges 4"),
        ((*EXECUTED, "Ack w=A"), "diverges 5"),
        ((*EXECUTED, "Execute w=A"), "diverges 5"),
        ((*ACKED, "Done w=A"), "diverges 7"),
        # a timeout: it leaves the copy alone
        ((*EXECUTED, "VisTimeout", "Done w=A", "Ack w=A"), "conforms"),
        ((*EXECUTED, *one("B")), "violates 7 NoDoubleExecution"),
        ((*BEGUN, "Pickup w=B", "Start w=B", "Execute w=B", "Execute w=A"), "violates 7 NoDoubleExecution"),
        ((*BEGUN, "Pickup w=A", "Execute w=A", "Start w=A", "Execute w=A"), "violates 7 NoDoubleExecution"),
        ((*ACKED, "VisTimeout"), "diverges 7"),
        # a retry: the same id, a new message, attempt + 1
        (("Publish", *RETRY, *one("B", 1)), "conforms"),
        (("Publish", "Pickup", "Start", "Retry", "Pickup", "Start", "Execute", "Done", "Ack"), "conforms"),
        ((*EXECUTED, "Retry w=A", "Ack w=A", *one("B", 1)), "conforms"),
        (("Publish", *RETRY, *one("B", 1), *one("C", 1)), "violates 13 NoDoubleExecution"),
        (("Publish", *RETRY, *one("B", 2)), "diverges 6"),
        # ... of each copy of an attempt: two messages of the next one
        (
            (*BEGUN, "Pickup w=B", "Start w=B", "Retry w=A", "Retry w=B", *one("A", 1)[:3], *one("B", 1)[:3]),
            "violates 13 NoDoubleExecution",
        ),
        # ... whose message is received before the retry is told
        ((*BEGUN, "Pickup w=B a=1", "Retry w=A a=0", "Ack w=A a=0", "Start w=B", "Execute w=B"), "conforms"),
        ((*BEGUN, "Pickup w=B a=1 r=false", "Execute w=A"), "diverges 5"),
        # ... which excuses no second execution as long as it is not told
        (
            (*BEGUN, "Pickup w=B", "Pickup w=C", "Start w=B", "Execute w=B", "Start w=C", "Execute w=C"),
            "violates 9 NoDoubleExecution",
        ),
        # a failure
        ((*BEGUN, "Fail w=A", "Ack w=A"), "conforms"),
        (("Publish", "Pickup w=A", "Fail w=A"), "conforms"),  # a Start without a line is assumed
        (("Publish", "Fail w=A"), "diverges 2"),
        # rejected for good, or requeued
        ((*BEGUN, "Reject w=A"), "conforms"),
        ((*BEGUN, "Reject w=A", "Start w=A"), "diverges 5"),
        ((*BEGUN, "Nack w=A", "Pickup w=B r=true", "Start w=B", "Execute w=B"), "conforms"),
        ((*BEGUN, "Nack w=A", "Pickup w=B r=false"), "diverges 5"),
        ((*EXECUTED, "Nack w=A", "Pickup w=B", "Start w=B", "Execute w=B"), "violates 8 NoDoubleExecution"),
        # discarded
        (("Publish", "Pickup w=A", "Revoke w=A"), "conforms"),
        ((*BEGUN, "Revoke w=A"), "conforms"),
        (("Publish", "Pickup w=A", "Revoke w=A", "Start w=A"), "diverges 4"),
        (("Publish", "Pickup w=A", "Expire w=A"), "conforms"),
        ((*BEGUN, "Expire w=A"), "diverges 4"),
        # put back when a worker stops or lost its connection: a body that has begun may go on
        (("Publish", "Pickup w=A", "RestoreOnShutdown w=A", *one("B")), "conforms"),
        ((*BEGUN, "RestoreOnShutdown w=A", *one("B")), "conforms"),
        # a copy that waits in a pool of threads may outlive the lost connection
        (("Publish", "Pickup w=A", "RestoreOnShutdown w=A", "Start w=A"), "conforms"),
        ((*BEGUN, "RestoreOnShutdown w=A", *one("B")[:3], "Execute w=A"), "violates 8 NoDoubleExecution"),
        # a caller reuses an id
        ((*ACKED, "Republish", *one("B")), "conforms"),
        ((*ACKED, *one("B")), "violates 9 NoDoubleExecution"),
        ((*ACKED, "Pickup w=B r=false"), "diverges 7"),
        ((*ACKED, "Republish", *one("B"), *one("C")), "violates 15 NoDoubleExecution"),
        (("Republish",), "conforms"),  # a Publish without a line is assumed
        # the transaction failed after all
        ((*EXECUTED, "Undo w=A", "Execute w=A", "Done w=A", "Ack w=A"), "conforms"),
        ((*EXECUTED, "Undo w=A", "Pickup w=B", "Start w=B", "Execute w=B"), "conforms"),
        ((*BEGUN, "Undo w=A"), "diverges 4"),
        ((*EXECUTED, "Undo w=A", "Done w=A"), "diverges 6"),
        # a worker dies
        ((*BEGUN, "Crash w=A", *one("B")), "conforms"),
        ((*BEGUN, "Crash w=A", "Execute w=A"), "diverges 5"),
        ((*EXECUTED, "Crash w=A", *one("B")), "violates 8 NoDoubleExecution"),
        (("Publish", "LosePop", "Pickup w=A"), "diverges 3"),
        # there is no guard, so there is nothing to skip
        ((*BEGUN, "Skip w=A"), "diverges 4"),
    ],
)
def test_without_a_guard_and_with_late_acks(celery: Celery, steps: tuple[str, ...], expected: str) -> None:
    assert celery("faulty", *steps).word == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((*EXECUTED, "Pickup w=B", "Start w=B", "Skip w=B", "Done w=B", "Ack w=B", "Done w=A", "Ack w=A"), "conforms"),
        # the claim is taken before the effect is told
        ((*BEGUN, "Pickup w=B", "Start w=B", "Skip w=B", "Execute w=A"), "conforms"),
        ((*BEGUN, "Skip w=A"), "diverges 4"),
        ((*EXECUTED, "Pickup w=B", "Start w=B", "Execute w=B"), "diverges 7"),
        ((*BEGUN, "Pickup w=B", "Start w=B", "Skip w=B", "Execute w=B"), "diverges 7"),
        (("Publish", *RETRY, *one("B", 1)), "conforms"),
        # an undone claim is free again
        ((*EXECUTED, "Undo w=A", "Pickup w=B", "Start w=B", "Execute w=B"), "conforms"),
        # the id and attempt are the guard's key: a republished id finds its own claim
        ((*ACKED, "Republish", "Pickup w=B", "Start w=B", "Skip w=B", "Done w=B", "Ack w=B"), "conforms"),
    ],
)
def test_with_an_atomic_claim(celery: Celery, steps: tuple[str, ...], expected: str) -> None:
    assert celery("idempotent", *steps).word == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((*EXECUTED, "Pickup w=B", "Start w=B", "Skip w=B", "Done w=B", "Ack w=B"), "conforms"),
        ((*EXECUTED, "Pickup w=B", "Start w=B", "Execute w=B"), "diverges 7"),
        ((*BEGUN, "Pickup w=B", "Start w=B", "Execute w=A", "Execute w=B"), "violates 7 NoDoubleExecution"),
        ((*BEGUN, "Pickup w=B", "Start w=B", "Skip w=B"), "diverges 6"),
    ],
)
def test_with_a_look_before_the_insert(celery: Celery, steps: tuple[str, ...], expected: str) -> None:
    assert celery("check-then-insert", *steps).word == expected


@pytest.mark.parametrize(
    ("steps", "early", "late"),
    [
        (("Publish", "Pickup w=A", "Ack w=A", "Start w=A", "Execute w=A", "Done w=A"), "conforms", "diverges 3"),
        # the ack is the main process's, and may be told after the pool child's Start
        ((*BEGUN, "Ack w=A", "Execute w=A", "Done w=A"), "conforms", "diverges 4"),
        (("Publish", "Pickup w=A", "Ack w=A", "Ack w=A"), "diverges 4", "diverges 3"),
        (("Publish", "Pickup w=A", "Ack w=A", "Start w=A", "Fail w=A"), "conforms", "diverges 3"),
    ],
)
def test_when_the_ack_comes(celery: Celery, steps: tuple[str, ...], early: str, late: str) -> None:
    assert celery("early", *steps).word == early
    assert celery("faulty", *steps).word == late


def test_what_was_acked_and_never_executed_is_lost_unless_a_timeout_may_have_saved_it(celery: Celery) -> None:
    """A restore before the ack brings the message back; where every timeout is logged, there was none."""
    early = ("Publish", "Pickup w=A", "Ack w=A", "Crash w=A")
    assert celery("early", *early).word == "conforms"
    assert celery("early", *early, more=("--strict",)).word == "violates 4 AckedWasExecuted"
    claimed = (*BEGUN, "Check w=A", "Crash w=A", "VisTimeout", "Pickup w=B", "Start w=B", "Check w=B", "Skip w=B")
    assert celery("idempotent", *claimed, "Done w=B", "Ack w=B").word == "conforms"
    lost = celery("idempotent", *claimed, "Done w=B", "Ack w=B", more=("--strict",))
    assert lost.word == "violates 12 AckedWasExecuted"


def test_twenty_three_retries_of_one_id_conform(celery: Celery) -> None:
    retries = [step.replace("a=0", f"a={attempt}") for attempt in range(23) for step in RETRY]
    assert celery("faulty", "Publish", *retries, *one("A", 23)).word == "conforms"


def test_a_late_ack_takes_away_the_entry_of_another_worker(celery: Celery) -> None:
    """The tag survives the redelivery, so that after A's ack no timeout brings B's delivery back."""
    before = (*BEGUN, "VisTimeout", "Pickup w=B", "Execute w=A", "Done w=A")
    assert celery("faulty", *before, "VisTimeout", "Pickup w=C", more=("--strict",)).word == "conforms"
    assert celery("faulty", *before, "Ack w=A", "VisTimeout", more=("--strict",)).word == "diverges 9"


def test_an_ack_of_what_was_put_back_does_nothing_and_the_message_comes_again(celery: Celery) -> None:
    steps = (*EXECUTED, "VisTimeout", "Done w=A", "Ack w=A", "Pickup w=B r=true")
    assert celery("faulty", *steps, more=("--strict",)).word == "conforms"
    assert celery("faulty", *ACKED, "Pickup w=B", more=("--strict",)).word == "diverges 7"


def test_strict_assumes_nothing(celery: Celery) -> None:
    assert celery("faulty", "Pickup w=A").word == "conforms"
    assert celery("faulty", "Pickup w=A", more=("--strict",)).word == "diverges 1"


@pytest.mark.parametrize(("rows", "expected"), [(1, "conforms"), (2, "diverges 4")])
def test_rows_that_were_counted_are_compared(celery: Celery, tmp_path: Path, rows: int, expected: str) -> None:
    lines = [{"action": step.split()[0], "params": {"t": "T"}} for step in EXECUTED]
    lines[-1]["state"] = {"results": {"T": rows}}
    log = tmp_path / "observed.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert celery("faulty", log=log).word == expected


def test_tasks_do_not_touch_each_other(celery: Celery) -> None:
    steps = [f"{step} t={task}" for step in ACKED for task in ("T1", "T2")]
    assert celery("faulty", *steps).word == "conforms"
    twice = [f"{step} t=T2" for step in ("Pickup w=B", "Start w=B", "Execute w=B")]
    assert celery("faulty", *steps, *twice).word == "violates 9 NoDoubleExecution"  # of T2's own events
