"""Each action of JetStream in a run that it allows, and in one that it does not. What is tried on a server is in
``tests/collector/probes/test_nats.py``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cases.case_files import as_lines, judged, word
from tests.cases.test_kinds import log

from specwatch.cli.app import app

NATS = Path(__file__).parents[2] / "specs" / "nats"

TAKEN = ("Publish t=T", "Pickup t=T w=A a=0")
BEGUN = (*TAKEN, "Start t=T w=A")
EXECUTED = (*BEGUN, "Execute t=T w=A")
DONE = (*EXECUTED, "Done t=T w=A")
ACKED = (*DONE, "Ack t=T w=A")
TAKEN_TWICE = (*BEGUN, "AckTimeout t=T", "Pickup t=T w=B a=1 r=true", "Start t=T w=B")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (ACKED, "conforms"),
        (("Publish t=T", "Publish t=T"), "diverges 2"),
        (("Publish t=T", "Pickup t=T r=true"), "diverges 2"),
        ((*BEGUN, "Done t=T"), "diverges 4"),
        ((*EXECUTED, "Execute t=T"), "diverges 5"),
        ((*ACKED, "Ack t=T"), "diverges 7"),
        ((*ACKED, "Done t=T"), "diverges 7"),
        ((*BEGUN, "Fail t=T", "Ack t=T"), "conforms"),
        ((*TAKEN, "Fail t=T"), "diverges 3"),
        # a word comes when the worker likes, once
        ((*TAKEN, "Ack t=T w=A", "Start t=T", "Execute t=T", "Done t=T"), "conforms"),
        ((*TAKEN, "Ack t=T w=A", "Nack t=T w=A"), "diverges 4"),
        # nothing comes again but by the timer or a nak: not by a lost connection, not by a dead worker
        ((*BEGUN, "Pickup t=T w=B"), "diverges 4"),
        ((*BEGUN, "ConnLost w=A", "Pickup t=T w=B"), "diverges 5"),
        ((*BEGUN, "Crash w=A", "Pickup t=T w=B"), "diverges 5"),
        ((*BEGUN, "Crash w=A", "AckTimeout t=T", "Pickup t=T w=B a=1"), "conforms"),
        ((*BEGUN, "ConnLost w=A", "ConnUp w=A", "Execute t=T w=A", "Done t=T w=A", "Ack t=T w=A"), "conforms"),
        ((*BEGUN, "Crash w=A", "Execute t=T w=A"), "diverges 5"),
        ((*BEGUN, "AckTimeout t=T", "AckTimeout t=T"), "diverges 5"),
        ((*ACKED, "AckTimeout t=T"), "diverges 7"),
        # the number of deliveries only grows
        ((*BEGUN, "AckTimeout t=T", "Pickup t=T w=B a=0"), "diverges 5"),
        ((*BEGUN, "AckTimeout t=T", "Pickup t=T w=B a=0 r=true"), "diverges 5"),
        ((*BEGUN, "AckTimeout t=T", "Pickup t=T w=B a=1 r=false"), "diverges 5"),
        # one that no one told of is in a buffer, from where it may come, once
        (("Publish t=T", "Pickup t=T w=B a=1", "Pickup t=T w=A a=0"), "conforms"),
        (("Publish t=T", "Pickup t=T w=B a=1", "Ack t=T w=B", "Pickup t=T w=A a=0", "Start t=T w=A"), "conforms"),
        (("Publish t=T", "Pickup t=T w=B a=1", "Pickup t=T w=A a=0", "Pickup t=T w=C a=0"), "diverges 4"),
        # ... also after another's ack, where it was delivered before that
        ((*BEGUN, "AckTimeout t=T", "Deliver t=T", "Ack t=T w=A", "Pickup t=T w=B a=1 r=true"), "conforms"),
        ((*BEGUN, "AckTimeout t=T", "Deliver t=T", "AckTimeout t=T", "Pickup t=T a=1", "Pickup t=T a=2"), "conforms"),
        ((*BEGUN, "AckTimeout t=T", "Deliver t=T", "Pickup t=T a=2"), "diverges 6"),
        ((*BEGUN, "Deliver t=T"), "diverges 4"),
        ((*BEGUN, "Ack t=T w=A", "Deliver t=T"), "diverges 5"),
        # the copy goes on when its timer is over
        ((*BEGUN, "AckTimeout t=T", "Execute t=T w=A", "Done t=T w=A", "Ack t=T w=A"), "conforms"),
        ((*TAKEN_TWICE, "Execute t=T w=A", "Execute t=T w=B"), "violates 8 NoDoubleExecution"),
        # a late ack settles the redelivered copy, and the other worker's ack counts as little as it fails
        ((*TAKEN_TWICE, "Fail t=T w=A", "Ack t=T w=A", "AckTimeout t=T"), "diverges 9"),
        ((*TAKEN_TWICE, "Fail t=T w=A", "Ack t=T w=A", "Pickup t=T w=C a=2"), "diverges 9"),
        ((*TAKEN_TWICE, "Fail t=T w=A", "Ack t=T w=A", "Fail t=T w=B", "Ack t=T w=B"), "conforms"),
        # ... also where it is due and not yet delivered
        ((*EXECUTED, "AckTimeout t=T", "Done t=T w=A", "Ack t=T w=A", "Pickup t=T w=B a=1"), "diverges 8"),
        # an ack without an answer may not have reached the server
        ((*DONE, "AckSent t=T w=A", "AckTimeout t=T", "Pickup t=T w=B a=1"), "conforms"),
        ((*DONE, "AckSent t=T w=A", "Pickup t=T w=B a=1"), "diverges 7"),
        ((*TAKEN_TWICE, "Ack t=T w=A", "AckSent t=T w=B", "AckTimeout t=T"), "diverges 9"),
        # nak: at once, be the message another's by now
        ((*BEGUN, "Nack t=T w=A", "Pickup t=T w=B a=1"), "conforms"),
        ((*TAKEN_TWICE, "Nack t=T w=A", "Pickup t=T w=C a=2"), "conforms"),
        ((*TAKEN_TWICE, "Nack t=T w=A", "Nack t=T w=B", "Pickup t=T a=2", "Pickup t=T a=3"), "diverges 10"),
        ((*ACKED, "Nack t=T w=A"), "diverges 7"),
        ((*TAKEN_TWICE, "Ack t=T w=A", "Nack t=T w=B", "Pickup t=T w=C a=2"), "diverges 9"),
        # ... with a delay: when it is over
        ((*BEGUN, "NackDelayed t=T w=A", "Pickup t=T w=B a=1"), "diverges 5"),
        ((*BEGUN, "NackDelayed t=T w=A", "AckTimeout t=T", "Pickup t=T w=B a=1"), "conforms"),
        # term: never again, be it another's by now; if the server has it
        ((*BEGUN, "Reject t=T w=A", "AckTimeout t=T"), "diverges 5"),
        ((*TAKEN_TWICE, "Reject t=T w=A", "Nack t=T w=B", "Pickup t=T w=C a=2"), "diverges 9"),
        ((*BEGUN, "RejectSent t=T w=A", "AckTimeout t=T", "Pickup t=T w=B a=1"), "conforms"),
        # in progress: of a delivery that was made
        ((*BEGUN, "InProgress t=T w=A a=0", "InProgress t=T w=A a=0", "AckTimeout t=T"), "conforms"),
        ((*BEGUN, "InProgress t=T w=A a=1"), "diverges 4"),
        ((*TAKEN_TWICE, "AckTimeout t=T", "InProgress t=T w=A a=0", "Pickup t=T w=C a=2"), "conforms"),
        # parked: no one gets it, and a word about it does nothing
        ((*BEGUN, "AckTimeout t=T", "Park t=T", "Pickup t=T w=B a=1"), "diverges 6"),
        ((*BEGUN, "AckTimeout t=T", "Park t=T", "Nack t=T w=A", "Pickup t=T w=B a=1"), "diverges 7"),
        ((*DONE, "AckTimeout t=T", "Park t=T", "Ack t=T w=A"), "conforms"),
        ((*BEGUN, "Park t=T"), "diverges 4"),
        (("Publish t=T", "Park t=T"), "diverges 2"),
        # one answer a publishing
        (("Publish t=T", "PubAck t=T seq=100"), "conforms"),
        (("Publish t=T", "PubAck t=T seq=100", "PubAck t=T seq=101"), "diverges 3"),
        (("Publish t=T", "PubAck t=T seq=100 dup=true"), "diverges 2"),
        (("Publish t=T", "Republish t=T", "PubAck t=T seq=1", "PubAck t=T seq=1 dup=true"), "conforms"),
        (("Publish t=T", "Republish t=T", "PubAck t=T seq=1 dup=false", "PubAck t=T seq=1 dup=false"), "diverges 4"),
        (("Republish t=T",), "diverges 1"),
        # one more message, one more execution; none where it was dropped
        (
            (*EXECUTED, "Republish t=T", "Pickup t=T w=B a=0", "Start t=T w=B", "Execute t=T w=B"),
            "conforms",
        ),
        (
            (*EXECUTED, "Republish t=T", "PubAck t=T dup=true", "Pickup t=T w=B a=0"),
            "diverges 7",
        ),
        # the transaction failed after all
        ((*EXECUTED, "Undo t=T", "Execute t=T", "Done t=T", "Ack t=T"), "conforms"),
        ((*EXECUTED, "Undo t=T", "Done t=T"), "diverges 6"),
        # there is no guard, so there is nothing to skip
        ((*BEGUN, "Skip t=T"), "diverges 4"),
        # acked before it was done, and no one is left to do it
        ((*TAKEN, "Ack t=T w=A", "Crash w=A"), "violates 4 AckedWasExecuted"),
    ],
)  # fmt: skip
def test_each_action_where_nothing_is_hidden(steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("nats", "faulty", log(*steps), hidden=[])) == expected


AGAIN = ("Pickup t=T w=B a=1", "Start t=T w=B")


@pytest.mark.parametrize(
    ("mode", "steps", "expected"),
    [
        ("faulty", (*EXECUTED, *AGAIN, "Execute t=T w=B"), "violates 7 NoDoubleExecution"),
        ("idempotent", (*EXECUTED, *AGAIN, "Execute t=T w=B"), "diverges 7"),
        ("idempotent", (*EXECUTED, *AGAIN, "Skip t=T w=B", "Done t=T w=B", "Ack t=T w=B"), "conforms"),
        ("idempotent", (*BEGUN, *AGAIN, "Skip t=T w=B", "Execute t=T w=B"), "diverges 7"),
        ("idempotent", (*BEGUN, "Skip t=T w=A"), "diverges 4"),
        ("idempotent", (*EXECUTED, "Undo t=T w=A", *AGAIN, "Execute t=T w=B"), "conforms"),
        ("check-then-insert", (*EXECUTED, *AGAIN, "Execute t=T w=B"), "diverges 7"),
        ("check-then-insert", (*BEGUN, *AGAIN, "Execute t=T w=B", "Execute t=T w=A"), "violates 7 NoDoubleExecution"),
        ("check-then-insert", (*EXECUTED, *AGAIN, "Skip t=T w=B"), "conforms"),
    ],
)
def test_each_guard(mode: str, steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("nats", mode, log(*steps))) == expected


def test_a_log_that_names_neither_workers_nor_numbers_is_judged_all_the_same() -> None:
    once = ("Pickup t=T", "Start t=T", "Execute t=T", "Done t=T", "Ack t=T")
    assert word(judged("nats", "faulty", log(*once))) == "conforms"
    assert word(judged("nats", "faulty", log(*once, "Pickup t=T"))) == "diverges 6"
    assert word(judged("nats", "faulty", log(*once[:3], *once[:3]))) == "violates 6 NoDoubleExecution"


TIMED = """
spec = "{specs}/JetStream.tla"
config = "{specs}/JetStream.faulty.cfg"
scope = "run"
order = "total"
skew = "10ms"
[key]
param = "t"
[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Deliveries = {{ values = "a" }}
Sequences = {{ values = "seq" }}
[hidden.Deliver]
[hidden.AckTimeout]
after = "Delivery"
min = "2s"
"""


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # the timer cannot be over so soon after the delivery, nor if it was delivered when it was published
        ((*BEGUN, "Pickup t=T w=B a=1 @1.5"), "diverges 4"),
        ((*BEGUN, "Pickup t=T w=B a=1 @2.5"), "conforms"),
        # an ack in time: the message was not delivered again before it, and is not after it
        ((*BEGUN, "Ack t=T w=A @1.5", "Pickup t=T w=B a=1 @2.5"), "diverges 5"),
        # a late one: it may have been
        ((*BEGUN, "Ack t=T w=A @2.5", "Pickup t=T w=B a=1 @3"), "conforms"),
        ((*BEGUN, "Ack t=T w=A @2.5", "Pickup t=T w=B a=1 @3", "Pickup t=T w=B a=2 @5"), "diverges 6"),
        # what was in a buffer for long is soon due again
        (("Publish t=T @0", "Pickup t=T w=A a=0 @5", "Pickup t=T w=B a=1 @5.1"), "conforms"),
        (("Publish t=T @4", "Pickup t=T w=A a=0 @5", "Pickup t=T w=B a=1 @5.1"), "diverges 3"),
        ((*BEGUN, "Nack t=T w=A @0.3", "Pickup t=T w=B a=1 @0.4"), "conforms"),
    ],
)
def test_where_ack_wait_is_known_no_redelivery_is_early(steps: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    binding, events = tmp_path / "binding.toml", tmp_path / "events.jsonl"
    binding.write_text(TIMED.format(specs=NATS))
    first = [f"{step} @0.{number}" for number, step in enumerate(BEGUN)]
    told = [*first, *steps[len(BEGUN) :]] if steps[: len(BEGUN)] == BEGUN else steps
    events.write_bytes(as_lines(log(*told)))
    document = json.loads(CliRunner().invoke(app, ["check", str(binding), str(events), "--json"]).stdout)
    found = [f"{finding['verdict']} {finding['at']}" for finding in document["findings"]] or [document["verdict"]]
    assert found == [expected]


@pytest.mark.parametrize(("constant", "expected"), [("TRUE", "violates 8"), ("FALSE", "conforms")])
def test_what_was_published_again_buys_an_execution_unless_it_was_dropped(
    constant: str, expected: str, tmp_path: Path
) -> None:
    """A delivery with a number of its own may be of either message; dropped for certain, there is only one."""
    events = tmp_path / "events.jsonl"
    again = ("Republish t=T", "Pickup t=T w=B a=1 r=true", "Start t=T w=B", "Execute t=T w=B")
    events.write_bytes(as_lines(log(*EXECUTED, *again)))
    arguments = ["check", "nats", str(events), "--constant", f"Deduplicates={constant}", "--json"]
    document = json.loads(CliRunner().invoke(app, arguments).stdout)
    found = [f"{finding['verdict']} {finding['at']}" for finding in document["findings"]] or [document["verdict"]]
    assert found == [expected]
