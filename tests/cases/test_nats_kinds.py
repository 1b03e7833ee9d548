"""The kind that nats-7801 is of: what a publisher sent against what the stream stored, by its id and by sequence."""

from __future__ import annotations

import pytest
from tests.cases.case_files import EPOCH, Native, judged, told_of, word


def told(action: str, key: str, **params: object) -> Native:
    return {"action": action, "params": {"t": key, **params}, "time": EPOCH}


@pytest.mark.parametrize("mode", ["faulty", "check-then-insert", "idempotent"])
@pytest.mark.parametrize("published", [1, 2, 3])
@pytest.mark.parametrize("answers", [1, 3, 5])
def test_a_publishing_has_one_answer(mode: str, published: int, answers: int) -> None:
    """Whatever the sequences are: as many messages were stored as were sent, and the first one more is too much."""
    sent = [told("Publish" if number == 0 else "Republish", "P") for number in range(published)]
    stored = [told("PubAck", "P", seq=7000 - 13 * number) for number in range(answers)]
    expected = "conforms" if answers <= published else f"diverges {2 * published + 1}"
    assert word(judged("nats", mode, sent + stored)) == expected
    between = [event for pair in zip(sent, stored, strict=False) for event in pair]
    assert word(judged("nats", mode, between)) == "conforms"


@pytest.mark.parametrize("dropped", [1, 2])
def test_what_the_server_dropped_was_not_stored(dropped: int) -> None:
    """An answer that says so goes with a publishing of its own, and leaves one message to be executed."""
    again = [told("Republish", "P") for _ in range(dropped)]
    log = [told("Publish", "P"), *again, told("PubAck", "P", seq=100, dup=False)]
    log += [told("PubAck", "P", seq=100, dup=True) for _ in range(dropped)]
    once = [told("Pickup", "P", w="A", a=0), told("Execute", "P", w="A", a=0)]
    assert word(judged("nats", "faulty", log + once)) == "conforms"
    assert word(judged("nats", "faulty", [*log, told("PubAck", "P", seq=100, dup=True)])) == f"diverges {len(log) + 1}"
    twice = [told("Pickup", "P", w="B", a=1), told("Execute", "P", w="B", a=1)]
    assert word(judged("nats", "faulty", log + once + twice)) == f"violates {len(log) + 4} NoDoubleExecution"


def test_by_sequence_each_is_a_message_of_its_own() -> None:
    """Three of four messages are executed once, which is right by sequence; by the publisher's id it is not."""
    sequences = range(100, 104)
    by_sequence = [told("PubAck", str(seq), seq=seq) for seq in sequences]
    by_id = [told("Publish", "P"), *(told("PubAck", "P", seq=seq) for seq in sequences)]
    for seq in (101, 100, 103):
        for action in ("Pickup", "Execute"):
            by_sequence.append(told(action, str(seq), w="A", a=0))
            by_id.append(told(action, "P", w="A", a=0))
    assert word(judged("nats", "faulty", by_sequence)) == "conforms"
    [finding] = judged("nats", "faulty", by_id).findings
    assert told_of(finding) == "diverges 3"
