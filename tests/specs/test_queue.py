"""Queue in each setting, explored; and each of its actions in a run that it allows, and in one that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cases.case_files import judged, word
from tests.cases.test_kinds import log

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

QUEUE = Path(__file__).parents[2] / "specs" / "queue"


@pytest.mark.parametrize(
    ("config", "invariant", "steps"),
    [
        ("faulty", "NoDoubleExecution", "Publish Pickup Start Execute VisTimeout Pickup Start Execute"),
        ("early", "AckedWasExecuted", "Publish Pickup Ack Crash"),
        (
            "check-then-insert",
            "NoDoubleExecution",
            "Publish Pickup Start Check VisTimeout Pickup Start Check Execute Execute",
        ),
        ("work", "NoDoubleExecution", "Publish Pickup Pickup Start Start Execute Execute"),
    ],
)
def test_what_breaks_breaks_by_these_steps(config: str, invariant: str, steps: str) -> None:
    found = explore(load_spec(QUEUE / "Queue.tla", QUEUE / f"Queue.{config}.cfg"))
    assert (found.outcome, found.invariant) == ("violates", invariant)
    assert [step.action for step in found.trace][1:] == steps.split()


@pytest.mark.parametrize("config", ["no-redelivery", "idempotent", "work-idempotent"])
def test_what_holds_holds_in_every_state(config: str) -> None:
    """One worker, who may hold a message twice: two have more states, and no others."""
    found = explore(load_spec(QUEUE / "Queue.tla", QUEUE / f"Queue.{config}.cfg", constants_text={"Workers": "{w1}"}))
    assert (found.outcome, found.invariant) == ("pass", None)


BEGUN = ("Publish t=T", "Pickup t=T", "Start t=T")
EXECUTED = (*BEGUN, "Execute t=T")
ACKED = (*EXECUTED, "Done t=T", "Ack t=T")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (ACKED, "conforms"),
        (("Publish t=T", "Publish t=T"), "diverges 2"),
        ((*BEGUN, "Done t=T"), "diverges 4"),
        ((*EXECUTED, "Execute t=T"), "diverges 5"),
        ((*ACKED, "Ack t=T"), "diverges 7"),
        ((*ACKED, "Done t=T"), "diverges 7"),
        # an ack comes when the worker likes, once
        (("Publish t=T", "Pickup t=T", "Ack t=T", "Start t=T", "Execute t=T", "Done t=T"), "conforms"),
        (("Publish t=T", "Pickup t=T", "Ack t=T", "Ack t=T"), "diverges 4"),
        # the broker puts back what is out, once for each time that it is
        ((*EXECUTED, "VisTimeout t=T", "Done t=T", "Ack t=T", "Pickup t=T r=true"), "conforms"),
        ((*ACKED, "VisTimeout t=T"), "diverges 7"),
        ((*BEGUN, "VisTimeout t=T", "VisTimeout t=T"), "diverges 5"),
        ((*BEGUN, "Requeue t=T"), "diverges 4"),
        ((*BEGUN, "ConnLost", "Requeue t=T", "Pickup t=T r=true"), "conforms"),
        ((*BEGUN, "ConnLost", "VisTimeout t=T", "Requeue t=T"), "diverges 6"),
        # the worker's word
        ((*BEGUN, "Nack t=T", "Pickup t=T r=true"), "conforms"),
        ((*BEGUN, "Nack t=T", "Execute t=T"), "diverges 5"),
        ((*BEGUN, "Reject t=T"), "conforms"),
        ((*BEGUN, "Reject t=T", "Pickup t=T"), "diverges 5"),
        ((*BEGUN, "VisTimeout t=T", "Reject t=T", "Pickup t=T"), "conforms"),
        ((*BEGUN, "Fail t=T", "Ack t=T"), "conforms"),
        (("Publish t=T", "Pickup t=T", "Fail t=T"), "diverges 3"),
        ((*BEGUN, "Retry t=T", "Ack t=T", "Pickup t=T a=1", "Start t=T", "Execute t=T"), "conforms"),
        ((*BEGUN, "Retry t=T", "Ack t=T", "Pickup t=T a=2"), "diverges 6"),
        # the transaction failed after all
        ((*EXECUTED, "Undo t=T", "Execute t=T", "Done t=T", "Ack t=T"), "conforms"),
        ((*EXECUTED, "Undo t=T", "Done t=T"), "diverges 6"),
        # there is no guard, so there is nothing to skip
        ((*BEGUN, "Skip t=T"), "diverges 4"),
        # a worker dies
        ((*BEGUN, "Crash", "Requeue t=T", "Pickup t=T r=true"), "conforms"),
        ((*BEGUN, "Crash", "Start t=T"), "diverges 5"),
        ((*BEGUN, "VisTimeout t=T", "Pickup t=T", "Crash", "Requeue t=T", "Requeue t=T"), "diverges 8"),
        (("ConnUp", *ACKED), "conforms"),
    ],
)
def test_each_action_where_nothing_is_hidden(steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("queue", "faulty", log(*steps), hidden=[])) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((*EXECUTED, "Pickup t=T", "Start t=T", "Skip t=T", "Done t=T", "Ack t=T", "Done t=T", "Ack t=T"), "conforms"),
        ((*BEGUN, "Pickup t=T", "Start t=T", "Skip t=T", "Execute t=T"), "conforms"),
        ((*BEGUN, "Skip t=T"), "diverges 4"),
        ((*EXECUTED, "Pickup t=T", "Start t=T", "Execute t=T"), "diverges 7"),
        ((*EXECUTED, "Undo t=T", "Pickup t=T", "Start t=T", "Execute t=T"), "conforms"),
    ],
)
def test_with_an_atomic_claim(steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("queue", "idempotent", log(*steps))) == expected
