"""Each action of ShareGroup in a run that it allows, and in one that it does not. What is tried on a broker is in
``tests/collector/probes/test_confluent_kafka_share.py``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cases.case_files import as_lines
from tests.cases.test_kinds import log
from tests.specs.wrong_spec import judged

from specwatch.cli.app import app

KAFKA = Path(__file__).parents[2] / "specs" / "kafka"

TAKEN = ("Publish t=T", "Pickup t=T w=A p=x/0 o=5 a=0")
BEGUN = (*TAKEN, "Start t=T w=A a=0")
EXECUTED = (*BEGUN, "Execute t=T w=A a=0")
DONE = (*EXECUTED, "Done t=T w=A a=0")
ACKED = (*DONE, "Ack t=T w=A a=0")
TAKEN_TWICE = (*BEGUN, "LockTimeout t=T", "Pickup t=T w=B p=x/0 o=5 a=1", "Start t=T w=B a=1")


@pytest.fixture
def binding(tmp_path: Path) -> Path:
    """The shipped one with nothing hidden."""
    text = (KAFKA / "binding.share.toml").read_text(encoding="utf-8")
    text = text.replace('spec = "', f'spec = "{KAFKA}/').replace('config = "', f'config = "{KAFKA}/')
    hidden = 'hidden = ["Publish", "Start", "Check", "LockTimeout", "Release"]'
    assert hidden in text
    path = tmp_path / "binding.toml"
    path.write_text(text.replace(hidden, "hidden = []"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (ACKED, "conforms"),
        (("Publish t=T", "Publish t=T"), "diverges 2"),
        ((*BEGUN, "Done t=T"), "diverges 4"),
        ((*EXECUTED, "Execute t=T"), "diverges 5"),
        ((*TAKEN, "Fail t=T"), "diverges 3"),
        ((*BEGUN, "Fail t=T", "Nack t=T", "Pickup t=T w=B p=x/0 o=5 a=1"), "conforms"),
        # a word comes when the member likes, once
        ((*TAKEN, "Ack t=T w=A", "Start t=T", "Execute t=T", "Done t=T"), "conforms"),
        ((*ACKED, "Ack t=T w=A"), "diverges 7"),
        # nothing comes again but by the lock, or by a member that is gone
        ((*BEGUN, "Pickup t=T w=B p=x/0 o=5 a=1"), "diverges 4"),
        ((*BEGUN, "Release t=T", "Pickup t=T w=B p=x/0 o=5 a=1"), "conforms"),
        ((*BEGUN, "Close w=A", "Pickup t=T w=B p=x/0 o=5 a=1"), "conforms"),
        ((*BEGUN, "Close w=B", "Pickup t=T w=B p=x/0 o=5 a=1"), "diverges 5"),
        ((*BEGUN, "Crash w=A", "Pickup t=T w=B p=x/0 o=5 a=1"), "conforms"),
        ((*BEGUN, "Crash w=A", "Execute t=T w=A"), "diverges 5"),
        ((*ACKED, "LockTimeout t=T"), "diverges 7"),
        ((*BEGUN, "LockTimeout t=T", "LockTimeout t=T"), "diverges 5"),
        # deliveries are counted, also those that no one told of
        ((*BEGUN, "LockTimeout t=T", "Pickup t=T w=B p=x/0 o=5 a=0"), "diverges 5"),
        ((*BEGUN, "LockTimeout t=T", "Pickup t=T w=B p=x/0 o=5 a=2"), "conforms"),
        (("Publish t=T", "Pickup t=T w=B p=x/0 o=5 a=1", "Pickup t=T w=A p=x/0 o=5 a=0"), "conforms"),
        ((*BEGUN, "LockTimeout t=T", "Acquire t=T", "Release t=T", "Pickup t=T w=B p=x/0 o=5 a=2"), "conforms"),
        ((*BEGUN, "Acquire t=T"), "diverges 4"),
        # a broker that begins anew has forgotten who has it, and what it had not written of its counts
        ((*BEGUN, "Forget t=T", "Pickup t=T w=B p=x/0 o=5 a=0", "AckFail t=T w=A", "Ack t=T w=B"), "conforms"),
        ((*TAKEN_TWICE, "Forget t=T", "Pickup t=T w=C p=x/0 o=5 a=1"), "conforms"),
        ((*ACKED, "Forget t=T"), "diverges 7"),
        # the copy goes on; a late word is refused where another has the record
        ((*TAKEN_TWICE, "Execute t=T w=A", "Execute t=T w=B"), "violates 8 NoDoubleExecution"),
        ((*TAKEN_TWICE, "Execute t=T w=A", "Done t=T w=A", "AckFail t=T w=A"), "conforms"),
        ((*TAKEN_TWICE, "Execute t=T w=A", "Done t=T w=A", "Ack t=T w=A"), "diverges 9"),
        ((*TAKEN_TWICE, "Nack t=T w=A a=0"), "diverges 7"),
        ((*BEGUN, "LockTimeout t=T", "Ack t=T w=A"), "diverges 5"),
        # ... and does nothing where it is done with
        (
            (*TAKEN_TWICE, "Fail t=T w=B", "Ack t=T w=B", "Fail t=T w=A", "Ack t=T w=A"),
            "conforms",
        ),
        (
            (*TAKEN_TWICE, "Fail t=T w=B", "Reject t=T w=B", "Nack t=T w=A", "Pickup t=T w=C p=x/0 o=5 a=2"),
            "diverges 10",
        ),
        # never again
        ((*BEGUN, "Fail t=T", "Reject t=T w=A", "LockTimeout t=T"), "diverges 6"),
        # one message stands at one offset, unless it was sent again
        ((*BEGUN, "Pickup t=T w=B p=x/0 o=6 a=0"), "diverges 4"),
        (
            (*EXECUTED, "Republish t=T", "Pickup t=T w=B p=x/0 o=6 a=0", "Start t=T w=B", "Execute t=T w=B"),
            "conforms",
        ),
        ((*EXECUTED, "Undo t=T", "Execute t=T", "Done t=T", "Ack t=T"), "conforms"),
        ((*BEGUN, "Skip t=T"), "diverges 4"),
    ],
)
def test_an_action(steps: tuple[str, ...], expected: str, binding: Path, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(as_lines(log(*steps)))
    document = judged(str(binding), path)
    found = [str(document["verdict"])]
    for finding in document["findings"]:
        found += [str(finding[name]) for name in ("at", "invariant") if finding[name] is not None]
    assert " ".join(found) == expected


def test_the_model_falls_apart_by_message() -> None:
    found = json.loads(CliRunner().invoke(app, ["explain-plan", str(KAFKA / "ShareGroup.tla"), "--json"]).stdout)
    assert (found["separable"], found["key"], found["keys"]) == (True, "t", "Tasks")
    assert found["variables"]["run_level"] == []
