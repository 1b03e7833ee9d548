"""What the probe for pulsar-client tells of a real Pulsar, that the spec takes it, and what the broker does there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pulsar.asyncio
import pytest
from click.testing import CliRunner

from specwatch.cli.app import app
from specwatch.collector.probes.pulsar import executed, handling, instrument, skipped, undone
from specwatch.pilots.runtime import Server
from specwatch.pilots.runtime.pulsar import service

Event = dict[str, Any]
PATIENCE = 40.0
ACK_TIMEOUT = 10_000
"""Milliseconds: the shortest that the client takes."""
SOON = 1.0
"""Seconds within which the broker has an ack, or a message that would come has come."""


class Bench:
    """A topic of its own, and clients that are closed at the end."""

    def __init__(self, url: str, stack: contextlib.ExitStack) -> None:
        self.url = url
        self.topic = f"probe-{secrets.token_hex(4)}"
        self.stack = stack

    def client(self, worker: str | None = None) -> Any:
        one = instrument(pulsar.Client(self.url), worker=worker, execute="told")
        self.stack.callback(self._close, one)
        return one

    @staticmethod
    def _close(client: Any) -> None:
        with contextlib.suppress(pulsar.PulsarException):
            client.close()

    def consumer(self, worker: str, kind: Any = pulsar.ConsumerType.Shared, **more: Any) -> Any:
        return self.client(worker).subscribe(
            self.topic,
            "s",
            consumer_type=kind,
            initial_position=pulsar.InitialPosition.Earliest,
            **{"receiver_queue_size": 1, "negative_ack_redelivery_delay_ms": 100, **more},
        )

    def publish(self, *ids: str, batch: bool = False) -> None:
        more = {"batching_enabled": True, "batching_max_publish_delay_ms": 200} if batch else {}
        producer = self.client().create_producer(self.topic, **more)
        for identity in ids:
            producer.send_async(identity.encode(), None, properties={"id": identity})
        producer.flush()


@pytest.fixture
def bench(pulsar_broker: Server, told: Any) -> Iterator[Bench]:
    with contextlib.ExitStack() as stack:
        yield Bench(service(pulsar_broker.url), stack)


def received(*consumers: Any, within: float = PATIENCE) -> tuple[Any, Any]:
    """The next message, and who of them has it."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        for consumer in consumers:
            with contextlib.suppress(pulsar.Timeout):
                return consumer.receive(50), consumer
    raise AssertionError("nothing was received")


def nothing_comes(*consumers: Any) -> bool:
    try:
        received(*consumers, within=2 * SOON)
    except AssertionError:
        return True
    return False


def words(events: list[Event]) -> list[str]:
    """``Pickup A 0``: action, worker and redelivery count."""
    own = [(event["action"], event["params"].get("w"), event["params"].get("a")) for event in events]
    return [" ".join(str(part) for part in parts if part is not None) for parts in own]


def verdict(path: Path, events: list[Event], *options: str) -> str:
    """What ``specwatch check pulsar`` says of events."""
    log = path / "judged.jsonl"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    return str(json.loads(CliRunner().invoke(app, ["check", "pulsar", str(log), "--json", *options]).stdout)["verdict"])


def test_a_message_from_its_publication_to_the_ack(bench: Bench, told: Any, tmp_path: Path) -> None:
    consumer = bench.consumer("A")
    bench.publish("one")
    message, _ = received(consumer)
    with handling(message):
        executed(rows=1)
    consumer.acknowledge(message)
    consumer.acknowledge(message)  # Said twice it is one ack.
    consumer.close()
    events = told()
    assert words(events) == ["Publish", "Pickup A 0", "Start A 0", "Execute A 0", "Done A 0", "Ack A 0", "Close A"]
    assert {event["key"] for event in events if "t" in event["params"]} == {"one"}
    assert (events[1]["params"]["b"], events[3]["rows"]) == (False, 1)
    assert events[1]["topic"].endswith(bench.topic)
    assert verdict(tmp_path, events) == "conforms"
    assert verdict(tmp_path, events, "--strict") == "conforms"


def test_the_timer_is_the_clients_and_a_late_ack_settles_the_copy_that_another_has(
    bench: Bench, told: Any, tmp_path: Path
) -> None:
    first = bench.consumer("A", unacked_messages_timeout_ms=ACK_TIMEOUT)
    bench.publish("one")
    message, _ = received(first)
    second = bench.consumer("B", unacked_messages_timeout_ms=ACK_TIMEOUT)
    began = time.monotonic()
    with handling(message):
        executed()
        again, holder = received(second, first)
        assert time.monotonic() - began > 0.9 * ACK_TIMEOUT / 1000
        with handling(again):
            executed()
    first.acknowledge(message)
    time.sleep(SOON)
    other = bench.consumer("C")
    holder.close()
    assert nothing_comes(other)
    events = told()
    assert [event["params"]["a"] for event in events if event["action"] == "Pickup"] == [0, 1]
    assert verdict(tmp_path, events) == "violates"


def test_a_negative_ack_counts_and_only_who_has_the_message_may_say_it(bench: Bench, told: Any, tmp_path: Path) -> None:
    first, second = bench.consumer("A"), bench.consumer("B")
    bench.publish("one")
    counts = []
    for _ in range(3):
        message, holder = received(first, second)
        counts.append(message.redelivery_count())
        holder.negative_acknowledge(message)
    last, holder = received(first, second)
    other = second if holder is first else first
    other.negative_acknowledge(last.message_id())  # It received it too, or did not: it has it no more.
    assert nothing_comes(first, second)
    holder.acknowledge(last.message_id())
    events = told()
    assert (counts, last.redelivery_count()) == ([0, 1, 2], 3)
    assert [word.split()[0] for word in words(events)][:8] == ["Publish", *["Pickup", "Nack"] * 3, "Pickup"]
    assert verdict(tmp_path, events) == "conforms"


@pytest.mark.parametrize("index_acks", [False, True])
def test_an_ack_of_one_of_a_batch(bench: Bench, told: Any, tmp_path: Path, index_acks: bool) -> None:
    """Without index acks it is kept by the client until all are acked, and all come again."""
    more = {
        "receiver_queue_size": 10,
        "batch_index_ack_enabled": index_acks,
        "unacked_messages_timeout_ms": ACK_TIMEOUT,
    }
    consumer = bench.consumer("A", **more)
    bench.publish("a", "b", "c", batch=True)
    batch = [received(consumer)[0] for _ in "abc"]
    consumer.acknowledge(batch[1])
    again = [received(consumer)[0] for _ in ("ac" if index_acks else "abc")]
    assert [(one.data().decode(), one.redelivery_count()) for one in again] == [
        (letter, 1) for letter in ("ac" if index_acks else "abc")
    ]
    for one in again:
        consumer.acknowledge(one)
    consumer.close()
    assert nothing_comes(bench.consumer("B"))
    events = told()
    assert {event["params"]["b"] for event in events if event["action"] == "Pickup"} == {True}
    assert verdict(tmp_path, events) == "conforms"


DIES = """
import os, pulsar, sys, time
consumer = pulsar.Client(sys.argv[1]).subscribe(sys.argv[2], "s", consumer_type=pulsar.ConsumerType.Shared)
message = consumer.receive()
consumer.acknowledge(message)
os.kill(os.getpid(), 9)
"""


def test_an_ack_of_who_dies_at_once_is_lost_and_the_message_comes_uncounted(bench: Bench, told: Any) -> None:
    """The client keeps acks for a moment, to send them together; and says meanwhile that it has acked."""
    consumer = bench.consumer("A")  # So that there is a subscription, and the other one is not the last consumer.
    consumer.close()
    one = subprocess.Popen([sys.executable, "-c", DIES, bench.url, bench.topic], stderr=subprocess.DEVNULL)
    bench.publish("one")
    assert one.wait(PATIENCE) == -9
    message, _ = received(bench.consumer("B"))
    assert (message.data(), message.redelivery_count()) == (b"one", 0)


def test_counts_are_kept_as_long_as_a_consumer_stays(bench: Bench, told: Any, tmp_path: Path) -> None:
    first = bench.consumer("A")
    bench.publish("one")
    message, _ = received(first)
    first.negative_acknowledge(message)
    received(first)
    second = bench.consumer("B")
    first.close()
    kept, _ = received(second)
    second.close()
    forgotten, _ = received(bench.consumer("C"))
    assert (kept.redelivery_count(), forgotten.redelivery_count()) == (1, 0)
    assert verdict(tmp_path, told()) == "conforms"


def test_a_cumulative_ack_is_one_of_each_that_was_received(bench: Bench, told: Any, tmp_path: Path) -> None:
    consumer = bench.consumer("A", pulsar.ConsumerType.Failover, receiver_queue_size=10)
    bench.publish("a", "b", "c")
    messages = [received(consumer)[0] for _ in "abc"]
    consumer.acknowledge_cumulative(messages[1])
    consumer.close()
    message, _ = received(bench.consumer("B", pulsar.ConsumerType.Failover))
    assert message.data() == b"c"
    events = told()
    assert [event["key"] for event in events if event["action"] == "Ack"] == ["a", "b"]
    assert verdict(tmp_path, events, "--config", "Pulsar.early.cfg", "--start", "midway") != "diverges"


def test_a_cumulative_ack_that_is_refused_is_not_told(bench: Bench, told: Any) -> None:
    consumer = bench.consumer("A")
    bench.publish("a")
    message, _ = received(consumer)
    with pytest.raises(pulsar.CumulativeAcknowledgementNotAllowedError):
        consumer.acknowledge_cumulative(message)
    assert words(told()) == ["Publish", "Pickup A 0"]


def test_a_dead_letter_comes_no_more(bench: Bench, told: Any, tmp_path: Path) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(1, f"{bench.topic}-dead", "s")
    consumer = bench.consumer("A", dead_letter_policy=policy)
    dead = pulsar.Client(bench.url)
    bench.stack.callback(dead.close)
    letters = dead.subscribe(f"{bench.topic}-dead", "s", initial_position=pulsar.InitialPosition.Earliest)
    bench.publish("one")
    for _ in range(2):
        message, _ = received(consumer)
        with pytest.raises(ValueError, match="no"), handling(message):
            raise ValueError("no")
        consumer.negative_acknowledge(message)
    assert received(letters)[0].data() == b"one"
    assert nothing_comes(consumer)
    events = told()
    assert [event["params"]["a"] for event in events if event["action"] == "Pickup"] == [0, 1]
    assert verdict(tmp_path, events, "--constant", "MaxRedeliver=1") == "conforms"


def test_an_ack_of_a_consumer_that_is_closed_is_refused(bench: Bench, told: Any, tmp_path: Path) -> None:
    consumer = bench.consumer("A")
    bench.publish("one")
    message, _ = received(consumer)
    consumer.close()
    with pytest.raises(pulsar.AlreadyClosed):
        consumer.acknowledge(message)
    events = told()
    assert words(events) == ["Publish", "Pickup A 0", "Close A", "AckFail A 0"]
    assert events[-1]["exception"] == "AlreadyClosed"
    assert verdict(tmp_path, events) == "conforms"


@pytest.mark.parametrize("batch", [False, True])
def test_a_message_without_an_id_is_known_by_its_place(bench: Bench, told: Any, batch: bool) -> None:
    producer = bench.client().create_producer(bench.topic, batching_enabled=batch, batching_max_publish_delay_ms=10)
    producer.send(b"one")
    heard: list[Any] = []
    producer.send_async(b"two", lambda result, found: heard.append(result))
    producer.flush()
    consumer = bench.consumer("A", receiver_queue_size=10)
    for _ in range(2):
        received(consumer)
    events = told()
    keys = {action: {event["key"] for event in events if event["action"] == action} for action in ("Publish", "Pickup")}
    assert keys["Publish"] == keys["Pickup"]
    assert {len(key.split(":")) for key in keys["Publish"]} == {3 if batch else 2}
    assert heard == [pulsar.Result.Ok]


@pytest.mark.parametrize(
    ("key", "found"), [("$.order.id", "7"), (lambda message: message.partition_key(), "k"), ("order", "P")]
)
def test_what_a_message_is_known_by(bench: Bench, told: Any, key: Any, found: str) -> None:
    client = instrument(pulsar.Client(bench.url), key=key)
    bench.stack.callback(client.close)
    consumer = client.subscribe(bench.topic, "s")
    producer = client.create_producer(bench.topic)
    for _ in range(2):
        producer.send(b'{"order": {"id": 7}}', properties={"order": "P"}, partition_key="k")
    with handling(received(consumer)[0]):
        pass
    events = told()
    assert [event["action"] for event in events] == ["Publish", "Republish", "Pickup", "Start", "Execute", "Done"]
    assert {event["key"] for event in events} == {found}
    assert events[4]["inferred"] == "the body returned"


def test_a_worker_is_closed_with_its_last_consumer(bench: Bench, told: Any) -> None:
    client = bench.client("A")
    first, _ = (client.subscribe(bench.topic, "s", consumer_type=pulsar.ConsumerType.Shared) for _ in range(2))
    first.close()
    assert words(told()) == []
    client.close()
    assert words(told()) == ["Close A"]


def test_a_listener_and_a_batch_receive(bench: Bench, told: Any) -> None:
    heard: list[str] = []

    def listener(consumer: Any, message: Any) -> None:
        with handling(message):
            executed()
            undone()
            skipped()
        consumer.acknowledge(message)
        heard.append(message.data().decode())

    bench.consumer("L", message_listener=listener)
    bench.publish("one")
    deadline = time.monotonic() + PATIENCE
    while not heard and time.monotonic() < deadline:
        time.sleep(0.05)
    policy = pulsar.ConsumerBatchReceivePolicy(2, -1, 2000)
    many = bench.client("M").subscribe(bench.topic, "other", batch_receive_policy=policy, receiver_queue_size=10)
    bench.publish("two", "three")
    assert len(many.batch_receive()) == 2
    story = words(told())
    assert story[:7] == [
        "Publish",
        "Pickup L 0",
        "Start L 0",
        "Execute L 0",
        "Undo L 0",
        "Skip L 0",
        "Done L 0",
    ]
    assert story.count("Pickup M 0") == 2


def test_the_client_for_asyncio(bench: Bench, told: Any, tmp_path: Path) -> None:
    async def play() -> None:
        client = instrument(pulsar.asyncio.Client(bench.url), worker="A", execute="told")
        producer = await client.create_producer(bench.topic)
        consumer = await client.subscribe(
            bench.topic, "s", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
        )
        await producer.send(b"one", properties={"id": "one"})
        message = await asyncio.wait_for(consumer.receive(), PATIENCE)
        await consumer.negative_acknowledge(message)
        message = await asyncio.wait_for(consumer.receive(), PATIENCE)
        with handling(message):
            executed()
        await consumer.acknowledge(message)
        await consumer.close()
        with pytest.raises(pulsar.asyncio.PulsarException):
            await consumer.acknowledge(message.message_id())
        await client.close()

    asyncio.run(play())
    events = told()
    life = ["Pickup A 0", "Nack A 0", "Pickup A 1", "Start A 1", "Execute A 1", "Done A 1", "Ack A 1"]
    assert words(events) == ["Publish", *life, "Close A"]
    assert verdict(tmp_path, events) == "conforms"
