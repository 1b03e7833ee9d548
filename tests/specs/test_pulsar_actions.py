"""Each action of Pulsar in a run that it allows, and in one that it does not. What is tried on a server is in
``tests/collector/probes/test_pulsar.py``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.cases.case_files import judged, word
from tests.cases.test_kinds import log

from specwatch.cli.app import app

TAKEN = ("Publish t=T", "Pickup t=T w=A a=0 b=false")
BEGUN = (*TAKEN, "Start t=T w=A a=0")
EXECUTED = (*BEGUN, "Execute t=T w=A a=0")
DONE = (*EXECUTED, "Done t=T w=A a=0")
ACKED = (*DONE, "Ack t=T w=A a=0", "AckArrives t=T")
TIMED_OUT = (*BEGUN, "AckTimeout t=T w=A")
TAKEN_TWICE = (*TIMED_OUT, "Pickup t=T w=B a=1 b=false", "Start t=T w=B a=1")
BATCHED = ("Publish t=T", "Pickup t=T w=A a=0 b=true", "Start t=T w=A", "Execute t=T w=A", "Done t=T w=A")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (ACKED, "conforms"),
        (("Publish t=T", "Publish t=T"), "diverges 2"),
        ((*BEGUN, "Done t=T"), "diverges 4"),
        ((*EXECUTED, "Execute t=T"), "diverges 5"),
        ((*BEGUN, "Fail t=T", "Ack t=T"), "conforms"),
        ((*TAKEN, "Fail t=T"), "diverges 3"),
        # a word comes when the worker likes, once
        ((*TAKEN, "Ack t=T w=A", "Start t=T", "Execute t=T", "Done t=T"), "conforms"),
        ((*DONE, "Ack t=T w=A", "Ack t=T w=A"), "diverges 7"),
        ((*TAKEN, "Ack t=T w=A", "Nack t=T w=A"), "diverges 4"),
        # nothing comes again without a cause
        (("Publish t=T", "Pickup t=T w=A a=1"), "diverges 2"),
        ((*BEGUN, "Pickup t=T w=B a=0"), "diverges 4"),
        ((*BEGUN, "Pickup t=T w=B a=1"), "diverges 4"),
        # the client's timer: counted, and the copy goes on
        ((*TIMED_OUT, "Pickup t=T w=B a=1"), "conforms"),
        ((*TIMED_OUT, "Pickup t=T w=A a=1"), "conforms"),
        ((*TIMED_OUT, "Pickup t=T w=B a=0"), "diverges 5"),
        ((*BEGUN, "AckTimeout t=T w=B"), "diverges 4"),
        ((*TIMED_OUT, "AckTimeout t=T w=A"), "diverges 5"),
        ((*DONE, "Ack t=T w=A", "AckTimeout t=T w=A"), "diverges 7"),
        ((*TAKEN_TWICE, "Execute t=T w=A", "Execute t=T w=B"), "violates 8 NoDoubleExecution"),
        # a late ack settles the redelivered copy, and the other worker's ack does nothing
        ((*TAKEN_TWICE, "Fail t=T w=A", "Ack t=T w=A", "AckArrives t=T", "Crash w=B", "Pickup t=T a=1"), "diverges 11"),
        ((*TAKEN_TWICE, "Fail t=T w=A", "Ack t=T w=A", "AckArrives t=T", "Fail t=T w=B", "Ack t=T w=B"), "conforms"),
        ((*TIMED_OUT, "Ack t=T w=A", "AckArrives t=T", "Pickup t=T a=1"), "diverges 7"),
        ((*TIMED_OUT, "Ack t=T w=A", "Pickup t=T a=1"), "conforms"),  # It is still on its way.
        ((*DONE, "AckArrives t=T"), "diverges 6"),
        # of a batch: the timer is of all of it, and an ack of one need not have come
        ((*BATCHED, "Ack t=T w=A", "AckTimeout t=T w=A", "Pickup t=T w=A a=1 b=true"), "conforms"),
        ((*BATCHED, "Ack t=T w=A", "AckArrives t=T", "AckTimeout t=T w=A", "Pickup t=T w=A a=1"), "diverges 9"),
        # a negative ack: asked for when its delay is over, by the one who has it alone
        ((*BEGUN, "Nack t=T w=A", "Pickup t=T w=B a=1"), "diverges 5"),
        ((*BEGUN, "Nack t=T w=A", "Redeliver t=T w=A", "Pickup t=T w=B a=1"), "conforms"),
        ((*BEGUN, "Nack t=T w=A", "AckTimeout t=T w=A"), "diverges 5"),
        ((*TAKEN_TWICE, "Nack t=T w=A", "Redeliver t=T w=A", "Pickup t=T w=C a=2"), "diverges 9"),
        ((*TAKEN_TWICE, "Nack t=T w=B", "Redeliver t=T w=B", "Pickup t=T w=C a=2"), "conforms"),
        # a consumer that is gone: not counted, and with the last one the counts go
        ((*BEGUN, "ConnLost w=A", "Pickup t=T w=B a=0"), "conforms"),
        ((*BEGUN, "ConnLost w=A", "Pickup t=T w=B a=1"), "diverges 5"),
        ((*BEGUN, "ConnLost w=B", "Pickup t=T w=B a=0"), "diverges 5"),
        ((*TAKEN_TWICE, "ConnLost w=B", "Pickup t=T w=A a=1"), "conforms"),
        ((*TAKEN_TWICE, "ConnLost w=B", "Pickup t=T w=A a=0"), "conforms"),
        ((*TAKEN_TWICE, "ConnLost w=B", "Pickup t=T w=A a=2"), "diverges 8"),
        ((*BEGUN, "Replay t=T", "Pickup t=T w=B a=0"), "conforms"),
        (("Publish t=T", "Replay t=T"), "diverges 2"),
        # ... whose timers begin anew, and whose bodies and acks go on
        ((*BEGUN, "Replay t=T", "AckTimeout t=T w=A"), "diverges 5"),
        ((*BEGUN, "ConnLost w=A", "ConnUp w=A", "Execute t=T w=A", "Ack t=T w=A", "AckArrives t=T"), "conforms"),
        # closed: an ack is refused, or was sent before; a negative ack is forgotten
        ((*BEGUN, "Close w=A", "Pickup t=T w=B a=0", "AckFail t=T w=A", "Execute t=T w=A"), "conforms"),
        ((*BEGUN, "Nack t=T w=A", "Close w=A", "Redeliver t=T w=A"), "diverges 6"),
        ((*DONE, "Ack t=T w=A", "Close w=A", "AckArrives t=T"), "conforms"),
        ((*BEGUN, "AckFail t=T w=A", "Ack t=T w=A"), "diverges 5"),
        # dead, and an ack that had not gone is lost
        ((*BEGUN, "Crash w=A", "Execute t=T w=A"), "diverges 5"),
        ((*BEGUN, "Crash w=A", "Pickup t=T w=B a=0"), "conforms"),
        ((*DONE, "Ack t=T w=A", "Crash w=A", "AckArrives t=T"), "diverges 8"),
        ((*DONE, "Ack t=T w=A", "Crash w=A", "Pickup t=T w=B a=0"), "conforms"),
        # what lies in a queue comes once, whatever has become of it
        (("Publish t=T", "Deliver t=T", "Replay t=T", "Pickup t=T w=B a=0", "Pickup t=T w=A a=0"), "conforms"),
        (("Publish t=T", "Deliver t=T", "Pickup t=T w=B a=0", "Pickup t=T w=A a=0"), "diverges 4"),
        (("Publish t=T", "Deliver t=T", "Deliver t=T"), "diverges 3"),
        (("Publish t=T", "Deliver t=T", "Pickup t=T w=A a=0", "AckTimeout t=T w=A", "Pickup t=T a=1"), "conforms"),
        # one more message, one more execution
        ((*EXECUTED, "Republish t=T", "Pickup t=T w=B a=0", "Start t=T w=B", "Execute t=T w=B"), "conforms"),
        (("Republish t=T",), "diverges 1"),
        # the transaction failed after all
        ((*EXECUTED, "Undo t=T", "Execute t=T", "Done t=T", "Ack t=T"), "conforms"),
        ((*EXECUTED, "Undo t=T", "Done t=T"), "diverges 6"),
        # there is no guard, so there is nothing to skip; and no dead letter policy
        ((*BEGUN, "Skip t=T"), "diverges 4"),
        ((*BEGUN, "DeadLetter t=T w=A"), "diverges 4"),
    ],
)
def test_an_action(steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("pulsar", "faulty", log(*steps), hidden=[])) == expected


def test_what_was_asked_for_as_often_as_the_policy_allows_is_a_dead_letter() -> None:
    last = (*TAKEN_TWICE, "AckTimeout t=T w=B")
    dead = (*TAKEN_TWICE, "DeadLetter t=T w=B")
    found = [
        word(judged("pulsar", "dead-letter", log(*steps), hidden=[]))
        for steps in (last, dead, (*dead, "Pickup t=T w=A a=1"), (*TIMED_OUT, "DeadLetter t=T w=A"))
    ]
    assert found == ["diverges 7", "conforms", "diverges 8", "diverges 5"]


def test_the_model_falls_apart_by_message() -> None:
    found = json.loads(CliRunner().invoke(app, ["explain-plan", "pulsar", "--json"]).stdout)
    assert (found["separable"], found["key"], found["keys"]) == (True, "t", "Tasks")
    assert found["variables"]["run_level"] == []
