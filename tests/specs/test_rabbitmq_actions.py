"""Each action of RabbitMQ in a run that it allows, and in one that it does not; and what may have happened unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cases.case_files import EPOCH, Native, as_lines, inserted, judged, word
from tests.cases.test_kinds import log

from specwatch.cli.app import app

OF_MESSAGE = {"Publish", "Republish", "Return"}
OF_CHANNEL = {"Requeue", "ChannelClose", "AckTimeout", "AckAll"}


def events(*words: str) -> list[Native]:
    """Native events from words like ``Pickup T A1 r=true``: a message, a worker's letter and its channel's number.

    Each worker has one connection, named like it, and receives T under the tag 1 and U under 2.
    """
    told: list[Native] = []
    for number, text in enumerate(words):
        action, *parts = text.split()
        params: dict[str, Any] = {}
        for part in parts:
            name, equals, value = part.partition("=")
            if equals:
                params[name] = {"true": True, "false": False}.get(value) if name == "r" else int(value)
            elif part in "TU":
                params["t"] = part
                if action not in OF_MESSAGE | {"Requeue"}:
                    params["d"] = "TU".index(part) + 1
            elif action == "Crash":
                params["w"] = part
            else:
                params["n"] = part[0].lower()
                if part[1:]:
                    params["c"] = part[1:]
                if action not in OF_CHANNEL | {"ConnClose", "ConnError", "WordLost"}:
                    params["w"] = part[0]
        told.append({"action": action, "params": params, "time": EPOCH + number})
    return told


def verdict(*words: str, hidden: str = "", config: str = "faulty") -> str:
    return word(judged("rabbitmq", config, events(*words), hidden=hidden.split(), scope="run"))


HELD = ("Publish T", "Pickup T A1 r=false")
BEGUN = (*HELD, "Start T A1")
EXECUTED = (*BEGUN, "Execute T A1")
DONE = (*EXECUTED, "Done T A1")
BOTH = ("Publish T", "Publish U", "Pickup T A1 r=false", "Pickup U A1 r=false")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*DONE, "Ack T A1"), "conforms"),
        (("Publish T", "Publish T"), "diverges 2"),
        (("Publish T", "Pickup T A1 r=true"), "diverges 2"),
        ((*HELD, "Pickup T B1 r=true"), "diverges 3"),
        ((*BEGUN, "Done T A1"), "diverges 4"),
        ((*EXECUTED, "Execute T A1"), "diverges 5"),
        ((*DONE, "Ack T A1", "Ack T A1"), "diverges 7"),
        ((*BEGUN, "Skip T A1"), "diverges 4"),
        ((*BEGUN, "Fail T A1", "Ack T A1"), "conforms"),
        ((*HELD, "Fail T A1"), "diverges 3"),
        ((*EXECUTED, "Undo T A1", "Execute T A1", "Done T A1"), "conforms"),
        # an ack is said of a channel and a tag, and before the body if the worker likes
        ((*HELD, "Ack T A1", "Start T A1", "Execute T A1", "Done T A1"), "conforms"),
        ((*DONE, "Ack T A2"), "diverges 6"),
        ((*DONE, "Ack T B1"), "diverges 6"),
        # a channel that the broker closes: all that is out there is back at once, and nothing of others
        ((*BOTH, "ChannelClose A1", "Pickup U B1 r=true", "Pickup T B1 r=true"), "conforms"),
        ((*BOTH, "ChannelClose A2", "Pickup U B1 r=true"), "diverges 6"),
        ((*BOTH, "ChannelClose B1", "Pickup U B1 r=true"), "diverges 6"),
        ((*BOTH, "ChannelClose A1", "Pickup U B1 r=false"), "diverges 6"),
        ((*BOTH, "ConnClose A", "Pickup U B1 r=true", "Pickup T B1 r=true"), "conforms"),
        (("AckTimeout A1", "ChannelClose A1", "ConnError A", "ConnClose A"), "conforms"),
        # its copies go on, and their words reach no one
        ((*EXECUTED, "ChannelClose A1", "Done T A1", "Ack T A1", "Pickup T B1 r=true"), "conforms"),
        ((*EXECUTED, "ChannelClose A1", "Done T A1", "Nack T A1", "Pickup T B1 r=true"), "conforms"),
        (
            (*EXECUTED, "ChannelClose A1", "Nack T A1", "Pickup T B1 r=true", "Pickup T C1 r=true"),
            "diverges 8",
        ),
        ((*HELD, "ChannelClose A1", "Pickup T B1 r=true", "Ack T B1", "Ack T A1"), "conforms"),
        # once the worker knows, it says none
        ((*DONE, "ChannelLost A1", "AckFail T A1", "Pickup T B1 r=true"), "conforms"),
        ((*DONE, "ChannelLost A1", "Ack T A1"), "diverges 7"),
        ((*DONE, "ConnLost A", "Ack T A1"), "diverges 7"),
        ((*DONE, "ChannelLost A1", "Reject T A1"), "diverges 7"),
        # one that breaks under the word: it was heard, or not
        ((*DONE, "AckFail T A1", "Pickup T B1 r=true"), "conforms"),
        ((*DONE, "Ack T A1", "AckFail T A1"), "diverges 7"),
        # nothing new comes on a closed channel
        ((*BOTH, "ChannelLost A1", "Pickup T A2 r=true"), "conforms"),
        (("Publish T", "ChannelLost A1", "Pickup T A1 r=false"), "diverges 3"),
        (("Publish T", "ConnLost A", "Pickup T A2 r=false"), "diverges 3"),
        (("Publish T", "ConnLost A", "Pickup T B1 r=false"), "conforms"),
        # but what was in its buffer may be seen later, in whatever order
        (("Publish T", "Return T", "Pickup T B1 r=true", "ChannelLost A1", "Pickup T A1 r=false"), "conforms"),
        (("Publish T", "Return T", "Pickup T A1 r=false", "Ack T A1", "Pickup T B1 r=true"), "conforms"),
        (("Publish T", "Return T", "Pickup T A1 r=false", "Pickup T B1 r=false"), "diverges 4"),
        ((*BEGUN, "ChannelLost C1", "ChannelClose A1", "Pickup T B1 r=true", "Pickup T C1 r=true"), "conforms"),
        # a word that was on its way
        ((*DONE, "Ack T A1", "Pickup T B1 r=true"), "diverges 7"),
        ((*DONE, "Ack T A1", "WordLost T A1", "Pickup T B1 r=true"), "conforms"),
        ((*BEGUN, "Reject T A1", "WordLost T A1", "Pickup T B1 r=true"), "conforms"),
        ((*DONE, "WordLost T A1"), "diverges 6"),
        # nack and reject
        ((*BEGUN, "Nack T A1", "Pickup T A1 d=5 r=true"), "conforms"),
        ((*BEGUN, "Nack T A1", "Pickup T B1 r=false"), "diverges 5"),
        ((*BEGUN, "Reject T A1", "Pickup T B1 r=true"), "diverges 5"),
        # multiple=True settles what is below, on its own channel
        ((*BOTH, "AckAll A1 d=2", "ChannelClose A1", "Pickup T B1 r=true"), "diverges 7"),
        ((*BOTH, "AckAll A1 d=1", "ChannelClose A1", "Pickup U B1 r=true"), "conforms"),
        ((*BOTH, "AckAll A1 d=1", "ChannelClose A1", "Pickup T B1 r=true"), "diverges 7"),
        ((*BOTH, "AckAll A2 d=2", "ChannelClose A1", "Pickup T B1 r=true"), "conforms"),
        ((*HELD, "Ack T A1", "Crash A"), "violates 4 AckedWasExecuted"),
        # an id that is published again is one more message, without the flag
        ((*DONE, "Ack T A1", "Republish T", "Pickup T A1 d=3 r=false"), "conforms"),
        (("Republish T",), "diverges 1"),
        # a worker dies with all that it holds
        ((*BOTH, "Crash A", "Pickup T B1 r=true", "Pickup U B1 r=true"), "conforms"),
        ((*BEGUN, "Crash A", "Execute T A1"), "diverges 5"),
    ],
)
def test_each_action_where_nothing_is_hidden(words: tuple[str, ...], expected: str) -> None:
    assert verdict(*words) == expected


UNSEEN = "Check Requeue Return WordLost"


@pytest.mark.parametrize(
    ("words", "expected", "config"),
    [
        ((*EXECUTED, "Pickup T B1 r=true", "Start T B1", "Execute T B1"), "violates 7 NoDoubleExecution", "faulty"),
        ((*EXECUTED, "Pickup T B1 r=true", "Start T B1", "Execute T B1"), "diverges 7", "idempotent"),
        ((*EXECUTED, "Pickup T B1 r=true", "Start T B1", "Skip T B1"), "conforms", "idempotent"),
        ((*EXECUTED, "Pickup T B1 r=true", "Start T B1", "Skip T B1"), "diverges 7", "faulty"),
        (
            (*BEGUN, "Pickup T B1 r=true", "Start T B1", "Execute T B1", "Execute T A1"),
            "violates 7 NoDoubleExecution",
            "check-then-insert",
        ),
        (
            (*EXECUTED, "Pickup T B1 r=true", "Start T B1", "Execute T B1"),
            "diverges 7",  # B looked when the row was there
            "check-then-insert",
        ),
        # two executions of two messages are none too many
        ((*DONE, "Ack T A1", "Republish T", "Pickup T A1 d=3 r=false"), "conforms", "faulty"),
        # acked, and its worker died before the work: lost, unless the ack was not heard
        ((*HELD, "Ack T A1", "Crash A"), "conforms", "faulty"),
        # nothing unseen explains a redelivery without its flag
        ((*EXECUTED, "Pickup T B1 r=false"), "diverges 5", "faulty"),
    ],
)
def test_what_no_one_logs_is_found(words: tuple[str, ...], expected: str, config: str) -> None:
    assert verdict(*words, hidden=UNSEEN, config=config) == expected


def test_a_redelivery_needs_one_close() -> None:
    told = events(*EXECUTED, "Pickup T B1 r=true")
    assert judged("rabbitmq", "faulty", told).hidden_steps == 1
    strict = judged("rabbitmq", "faulty", told, hidden=["Publish", "Start"])
    assert word(strict) == "diverges 5"
    assert inserted(strict) == {}


def test_a_log_that_names_neither_channels_nor_tags_is_judged_too() -> None:
    told = ("Publish t=T", "Pickup t=T w=A", "Execute t=T w=A", "Pickup t=T w=B", "Execute t=T w=B")
    assert word(judged("rabbitmq", "faulty", log(*told))) == "violates 5 NoDoubleExecution"
    assert judged("rabbitmq", "idempotent", log(*told[:4], "Skip t=T w=B", "Ack t=T w=B")).verdict == "conforms"


def test_the_spec_falls_apart_by_message() -> None:
    result = CliRunner().invoke(app, ["explain-plan", "rabbitmq"])
    assert (result.exit_code, "separable by t" in result.stdout) == (0, True)


def test_a_log_is_checked_by_the_broker_s_name(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(as_lines(log("Publish t=T", "Pickup t=T w=A", "Execute t=T w=A")))
    document = json.loads(CliRunner().invoke(app, ["check", "rabbitmq", str(file), "--json"]).stdout)
    assert document["verdict"] == "conforms"
