"""What the probe for confluent-kafka tells of a real Kafka, and that the spec takes it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from specwatch.cli.app import app
from specwatch.collector.probes import confluent_kafka as probe
from specwatch.pilots.runtime import Server, kafka

Event = dict[str, Any]
PATIENCE = 40.0


@pytest.fixture
def topic(kafka_broker: Server) -> str:
    """A topic of one partition."""
    name = f"probe-{secrets.token_hex(4)}"
    client = kafka.admin(kafka_broker.url)
    for future in client.create_topics([NewTopic(name, 1, 1)]).values():
        future.result(10)
    return name


@pytest.fixture
def member(kafka_broker: Server, topic: str) -> Iterator[Callable[..., probe.Consumer]]:
    """A member of the group, by name; closed at the end."""
    opened: list[probe.Consumer] = []

    def make(name: str, **more: Any) -> probe.Consumer:
        settings = {
            "bootstrap.servers": kafka.servers(kafka_broker.url),
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 3000,
            "max.poll.interval.ms": 3000,
            "heartbeat.interval.ms": 300,
            "topic.metadata.refresh.interval.ms": 500,
        }
        one = probe.Consumer({**settings, **more}, worker=name, execute="told")
        one.subscribe([topic])
        opened.append(one)
        return one

    yield make
    for one in opened:
        one.close()


def publish(broker: Server, topic: str, *ids: str | None) -> None:
    producer = probe.Producer({"bootstrap.servers": kafka.servers(broker.url)})
    for identity in ids:
        more = {} if identity is None else {"headers": {"id": identity}}
        producer.produce(topic, b"work", **more)
    assert producer.flush(20) == 0


def received(consumer: probe.Consumer) -> Any:
    """The next message, from a group that may still have to form."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("nothing was received")


def words(events: list[Event]) -> list[str]:
    """``Pickup A 0``: action, worker and offset."""
    own = [(event["action"], event["params"].get("w"), event["params"].get("o")) for event in events]
    return [" ".join(str(part) for part in parts if part is not None) for parts in own]


def verdict(path: Path, *events: Event) -> str:
    log = path / "judged.jsonl"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    return str(json.loads(CliRunner().invoke(app, ["check", "kafka", str(log), "--json"]).stdout)["verdict"])


def test_a_message_from_its_publication_to_the_commit(
    kafka_broker: Server, topic: str, member: Callable[..., probe.Consumer], told: Any, tmp_path: Path
) -> None:
    consumer = member("A")
    publish(kafka_broker, topic, "one")
    message = received(consumer)
    with probe.handling(message):
        probe.executed()
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    events = told()
    steps = [event for event in events if event["action"] != "Assign"]
    assert words(steps) == ["Publish", "Pickup A 0", "Start A", "Execute A", "Done A", "Commit A 1", "Revoke A"]
    assert {event["key"] for event in steps if "t" in event["params"]} == {"one"}
    assert {event["params"]["p"] for event in events if "p" in event["params"]} == {f"{topic}/0"}
    assert verdict(tmp_path, *events) == "conforms"


def test_a_message_without_an_id_is_known_by_its_place(
    kafka_broker: Server, topic: str, member: Callable[..., probe.Consumer], told: Any
) -> None:
    publish(kafka_broker, topic, None)
    with pytest.raises(ValueError, match="no"), probe.handling(received(member("A"))):
        raise ValueError("no")
    steps = [event for event in told() if event["action"] != "Assign"]
    assert [(event["action"], event["key"]) for event in steps] == [
        (action, f"{topic}/0/0") for action in ("Publish", "Pickup", "Start", "Fail")
    ]
    assert steps[-1]["exception"] == "ValueError"


def test_a_member_that_does_not_poll_is_given_up_and_its_commit_is_refused(
    kafka_broker: Server, topic: str, member: Callable[..., probe.Consumer], told: Any, tmp_path: Path
) -> None:
    """The next owner receives what the first still works on; the group refuses the first one's word."""
    first, second = member("A"), member("B")
    publish(kafka_broker, topic, "one")
    holder, other = _holder(first, second)
    message = holder[1]
    with probe.handling(message):
        probe.executed()
        again = received(other)  # Takes as long as the first one's interval, in which it does not poll.
        with probe.handling(again):
            probe.executed()
    with pytest.raises(KafkaException, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION|FENCED"):
        holder[0].commit(message=message, asynchronous=False)
    other.commit(message=again, asynchronous=False)
    events = told()
    told_words = [word.split()[0] for word in words(events)]
    assert told_words.count("Pickup") == 2
    assert (told_words.count("CommitFail"), told_words.count("Commit")) == (1, 1)
    assert verdict(tmp_path, *events) == "violates"


def _holder(first: probe.Consumer, second: probe.Consumer) -> tuple[tuple[probe.Consumer, Any], probe.Consumer]:
    """Who has the message, with it, and who has none; both poll until it is received."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for one, other in ((first, second), (second, first)):
            message = one.poll(0.1)
            if message is not None and message.error() is None:
                return (one, message), other
    raise AssertionError("nothing was received")


def test_who_goes_back_receives_it_again(
    kafka_broker: Server, topic: str, member: Callable[..., probe.Consumer], told: Any, tmp_path: Path
) -> None:
    consumer = member("A")
    publish(kafka_broker, topic, "one")
    received(consumer)
    consumer.seek(TopicPartition(topic, 0, 0))
    received(consumer)
    events = told()
    steps = [event for event in events if event["action"] != "Assign"]
    assert words(steps) == ["Publish", "Pickup A 0", "Seek A 0", "Pickup A 0"]
    assert verdict(tmp_path, *events) == "conforms"


def test_what_is_committed_by_itself_is_told_when_the_client_says_so(
    kafka_broker: Server, topic: str, member: Callable[..., probe.Consumer], told: Any
) -> None:
    heard: list[Any] = []
    more = {"enable.auto.commit": True, "auto.commit.interval.ms": 200}
    consumer = member("A", on_commit=lambda error, partitions: heard.append(error), **more)
    publish(kafka_broker, topic, "one")
    received(consumer)
    deadline = time.monotonic() + PATIENCE
    while not heard and time.monotonic() < deadline:
        consumer.poll(0.1)
    consumer.close()
    assert "Commit A 1" in words(told())
    assert heard[0] is None
