"""Each action of Kafka in a run that it allows, and in one that it does not. What is tried on a broker is in
``tests/collector/probes/test_confluent_kafka.py``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.cases.case_files import judged, word
from tests.cases.test_kinds import log

from specwatch.cli.app import app

GIVEN = ("Publish t=T", "Assign w=A p=x/0")
TAKEN = (*GIVEN, "Pickup t=T w=A p=x/0 o=5")
BEGUN = (*TAKEN, "Start t=T w=A")
EXECUTED = (*BEGUN, "Execute t=T w=A")
DONE = (*EXECUTED, "Done t=T w=A")
COMMITTED = (*DONE, "Commit w=A p=x/0 o=6")
ZOMBIE = (*BEGUN, "Assign w=B p=x/0", "Pickup t=T w=B p=x/0 o=5", "Start t=T w=B")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (COMMITTED, "conforms"),
        (("Publish t=T", "Publish t=T"), "diverges 2"),
        ((*BEGUN, "Done t=T w=A"), "diverges 5"),
        ((*EXECUTED, "Execute t=T w=A"), "diverges 6"),
        ((*DONE, "Done t=T w=A"), "diverges 7"),
        ((*BEGUN, "Fail t=T w=A"), "conforms"),
        ((*TAKEN, "Fail t=T w=A"), "diverges 4"),
        # only who believes to own a partition receives of it, each message once
        (("Publish t=T", "Pickup t=T w=A p=x/0 o=5"), "diverges 2"),
        ((*GIVEN, "Pickup t=T w=B p=x/0 o=5"), "diverges 3"),
        ((*GIVEN, "Pickup t=T w=A p=x/1 o=5"), "diverges 3"),
        ((*DONE, "Pickup t=T w=A p=x/0 o=5"), "diverges 7"),
        ((*GIVEN, "Revoke w=A p=x/0", "Pickup t=T w=A p=x/0 o=5"), "diverges 4"),
        ((*GIVEN, "Lost w=A p=x/0", "Pickup t=T w=A p=x/0 o=5"), "diverges 4"),
        # it is received again where the partition is given again, or its owner goes back
        ((*DONE, "Assign w=A p=x/0", "Pickup t=T w=A p=x/0 o=5"), "conforms"),
        ((*DONE, "Seek w=A p=x/0 o=5", "Pickup t=T w=A p=x/0 o=5"), "conforms"),
        ((*DONE, "Seek w=A p=x/0 o=6", "Pickup t=T w=A p=x/0 o=5"), "diverges 8"),
        ((*DONE, "Seek w=B p=x/0 o=5"), "diverges 2"),  # of the events of the run
        # the next owner begins at the committed offset
        ((*COMMITTED, "Assign w=B p=x/0", "Pickup t=T w=B p=x/0 o=5"), "diverges 9"),
        ((*DONE, "Commit w=A p=x/0 o=5", "Assign w=B p=x/0", "Pickup t=T w=B p=x/0 o=5"), "conforms"),
        # one message stands at one offset, unless it was sent again
        ((*DONE, "Pickup t=T w=A p=x/0 o=6"), "diverges 7"),
        ((*DONE, "Republish t=T", "Pickup t=T w=A p=x/0 o=6", "Start t=T w=A", "Execute t=T w=A"), "conforms"),
        # a zombie goes on, and the group refuses its commit
        (ZOMBIE, "conforms"),
        ((*ZOMBIE, "Execute t=T w=A", "Done t=T w=A", "CommitFail w=A p=x/0 o=6", "Lost w=A p=x/0"), "conforms"),
        ((*ZOMBIE, "Execute t=T w=A", "Done t=T w=A", "Commit w=A p=x/0 o=6"), "diverges 3"),
        ((*ZOMBIE, "Execute t=T w=A", "Execute t=T w=B"), "violates 9 NoDoubleExecution"),
        # a commit covers all below it, be they done or not
        ((*TAKEN, "Commit w=A p=x/0 o=6"), "violates 4 CommitIsTheOwners"),
        ((*TAKEN, "Commit w=A p=x/0 o=9"), "violates 4 CommitIsTheOwners"),
        ((*TAKEN, "Commit w=A p=x/0 o=5"), "conforms"),
        ((*BEGUN, "Crash w=A", "Start t=T w=A"), "diverges 6"),
        ((*BEGUN, "Crash w=A", "Commit w=A p=x/0 o=5"), "diverges 3"),
        ((*BEGUN, "Crash w=A", "Assign w=B p=x/0", "Pickup t=T w=B p=x/0 o=5"), "conforms"),
    ],
)
def test_an_action(steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("kafka", "faulty", log(*steps), hidden=[])) == expected


def test_the_model_falls_apart_by_message() -> None:
    found = json.loads(CliRunner().invoke(app, ["explain-plan", "kafka", "--json"]).stdout)
    assert (found["separable"], found["key"], found["keys"]) == (True, "t", "Tasks")
    assert set(found["variables"]["run_level"]) == {"assigned", "owners", "committed", "generation", "sought"}
