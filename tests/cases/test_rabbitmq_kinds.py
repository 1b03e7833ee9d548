"""The kinds that the cases of RabbitMQ are of: a channel's timeout, and the connection that was lost for it.

What a broker's own lines say names channels and no message; here messages are out on these channels, any number on any.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.case_files import EPOCH, Native, Telling, case, judged, word

from specwatch.checker.behaviour import Scope

few = settings(max_examples=15, deadline=None)

TIMEOUT = "aio-pika-288-broker-side-timeout"
LOSS = "lepus-145-timeout-then-channel-error"


def told(action: str, **params: object) -> Native:
    return {"action": action, "params": params, "time": EPOCH}


def out(task: str, channel: str, tag: int, worker: str = "A", connection: str = "k", r: bool = False) -> list[Native]:
    """A message that a worker has, and not acked."""
    return [told("Publish", t=task), told("Pickup", t=task, w=worker, n=connection, c=channel, d=tag, r=r)]


def again(task: str, tag: int) -> Native:
    return told("Pickup", t=task, w="B", n="other", c="1", d=tag, r=True)


def closing(name: str) -> list[Native]:
    """What the broker's lines of a case say, of the connection that the messages are on."""
    events = Telling().native(case(name)["events"])
    return [{**event, "params": {"n": "k", **event["params"]}} for event in events]


@few
@given(channels=st.lists(st.sampled_from("12"), min_size=1, max_size=5), name=st.sampled_from([TIMEOUT, LOSS]))
def test_all_that_is_unacked_there_comes_back_and_nothing_else(channels: list[str], name: str) -> None:
    """A timeout of channel 1 puts back what is out on 1; the lost connection what is out on any channel."""
    tasks = [f"T{number}" for number in range(len(channels))]
    held = [event for tag, pair in enumerate(zip(tasks, channels, strict=True), 1) for event in out(*pair, tag)]
    log = held + closing(name)
    for tag, (task, channel) in enumerate(zip(tasks, channels, strict=True), 1):
        comes = channel == "1" or name == LOSS
        found = judged("rabbitmq", "faulty", [*log, again(task, tag)], hidden=[], scope="run")
        assert word(found) == ("conforms" if comes else f"diverges {len(log) + 1}")


@pytest.mark.parametrize("name", [TIMEOUT, LOSS])
@pytest.mark.parametrize("scope", ["run", "key"])
def test_the_body_goes_on_and_is_a_second_execution(name: str, scope: Scope) -> None:
    """Nothing is taken from the worker: what it began it ends, and its ack reaches no one."""
    own = {"t": "T", "w": "A", "n": "k", "c": "1", "d": 1}
    other = {"t": "T", "w": "B", "n": "other", "c": "1", "d": 1}
    log = [*out("T", "1", 1), told("Start", **own), *closing(name), again("T", 1), told("Start", **other)]
    both = [*log, told("Execute", **other), told("Execute", **own)]
    assert word(judged("rabbitmq", "faulty", both, scope=scope)) == f"violates {len(both)} NoDoubleExecution"
    assert word(judged("rabbitmq", "idempotent", both, scope=scope)) == f"diverges {len(both)}"
    skips = [*log, told("Execute", **other), told("Skip", **own), told("Done", **own), told("Ack", **own)]
    assert word(judged("rabbitmq", "idempotent", skips, scope=scope)) == "conforms"
    late = [*skips, told("Pickup", t="T", w="C", n="third", c="1", d=1, r=True)]
    assert word(judged("rabbitmq", "idempotent", late, hidden=["Check"], scope=scope)) == f"diverges {len(late)}"


@pytest.mark.parametrize("name", [TIMEOUT, LOSS])
def test_what_was_acked_in_time_does_not_come_back(name: str) -> None:
    acked = [*out("T", "1", 1), told("Ack", t="T", w="A", n="k", c="1", d=1)]
    log = [*acked, *closing(name), again("T", 1)]
    assert word(judged("rabbitmq", "faulty", log, hidden=[])) == f"diverges {len(log)}"


def test_lines_alone_conform_whatever_channels_they_name() -> None:
    log = [event for n in range(1, 6) for event in (told("AckTimeout", c=str(n)), told("ChannelClose", c=str(n)))]
    assert word(judged("rabbitmq", "faulty", log, scope="run")) == "conforms"
