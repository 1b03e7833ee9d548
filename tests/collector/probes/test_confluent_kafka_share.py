"""What the probe for share groups tells of a real Kafka, that the spec takes it, and what the broker does there."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import AcknowledgeType
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from specwatch.cli.app import app
from specwatch.collector.probes import confluent_kafka as producers
from specwatch.collector.probes import confluent_kafka_share as probe
from specwatch.pilots.runtime import Server, kafka

Event = dict[str, Any]
BINDING = str(Path(__file__).parents[3] / "specs" / "kafka" / "binding.share.toml")
PATIENCE = 40.0
LOCK = 3.0
"""Seconds that the broker locks a record."""


@pytest.fixture
def topic(kafka_broker: Server) -> str:
    """A topic of one partition, and a share group of the same name that begins at its begin."""
    name = f"share-{secrets.token_hex(4)}"
    client = kafka.admin(kafka_broker.url)
    for future in client.create_topics([NewTopic(name, 1, 1)]).values():
        future.result(10)
    wanted = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(round(LOCK * 1000))}
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wanted.items()]
    group = ConfigResource(ResourceType.GROUP, name, incremental_configs=entries)
    for future in client.incremental_alter_configs([group]).values():
        future.result(10)
    return name


@pytest.fixture
def member(kafka_broker: Server, topic: str, told: Any) -> Iterator[Callable[..., probe.ShareConsumer]]:
    """A member of the share group, by name; closed at the end."""
    opened: list[probe.ShareConsumer] = []

    def make(name: str, mode: str = "explicit", **more: Any) -> probe.ShareConsumer:
        settings = {
            "bootstrap.servers": kafka.servers(kafka_broker.url),
            "group.id": topic,
            "share.acknowledgement.mode": mode,
            "log_level": 3,
        }
        one = probe.ShareConsumer(settings, worker=name, execute="told", **more)
        one.subscribe([topic])
        opened.append(one)
        return one

    yield make
    for one in opened:
        one.close()


def publish(broker: Server, topic: str, *ids: str | None) -> None:
    producer = producers.Producer({"bootstrap.servers": kafka.servers(broker.url)})
    for identity in ids:
        producer.produce(topic, b"work", **({} if identity is None else {"headers": {"id": identity}}))
    assert producer.flush(20) == 0


def received(*members: probe.ShareConsumer, within: float = PATIENCE) -> list[Any]:
    """The next messages of one of them, whose group may still have to form."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        for one in members:
            found = [message for message in one.poll(0.2) if message.error() is None]
            if found:
                return found
    raise AssertionError("nothing was received")


def words(events: list[Event]) -> list[str]:
    """``Pickup A 0``: action, member and deliveries before."""
    own = [(event["action"], event["params"].get("w"), event["params"].get("a")) for event in events]
    return [" ".join(str(part) for part in parts if part is not None) for parts in own]


def verdict(path: Path, events: list[Event], *options: str) -> str:
    log = path / "judged.jsonl"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    return str(json.loads(CliRunner().invoke(app, ["check", BINDING, str(log), "--json", *options]).stdout)["verdict"])


def test_a_message_from_its_publication_to_the_ack(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    consumer = member("A")
    publish(kafka_broker, topic, "one")
    [message] = received(consumer)
    with probe.handling(message):
        probe.executed(rows=1)
    consumer.acknowledge(message)
    assert list(consumer.commit_sync(10).values()) == [None]
    consumer.close()
    events = told()
    assert words(events) == ["Publish", "Pickup A 0", "Start A 0", "Execute A 0", "Done A 0", "Ack A 0", "Close A"]
    assert events[1]["params"] == {"t": "one", "w": "A", "a": 0, "p": f"{topic}/0", "o": 0}
    assert verdict(tmp_path, events) == verdict(tmp_path, events, "--strict") == "conforms"


def test_a_late_word_is_refused_and_the_next_one_has_the_message(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    first, second = member("A"), member("B")
    publish(kafka_broker, topic, "one")
    [message] = received(first)
    with probe.handling(message):
        probe.executed()
        [again] = received(second)
        with probe.handling(again):
            probe.executed()
    first.acknowledge(message)
    assert [error is None for error in first.commit_sync(10).values()] == [False]
    second.acknowledge(again)
    second.commit_sync(10)
    events = told()
    refused = next(event for event in events if event["action"] == "AckFail")
    assert (refused["reason"], refused["word"], refused["params"]["w"]) == ("INVALID_RECORD_STATE", "Ack", "A")
    assert words(events).count("Ack B 1") == 1
    assert verdict(tmp_path, events) == "violates"


def test_a_late_word_of_what_is_done_is_taken_and_does_nothing(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    first, second = member("A"), member("B")
    publish(kafka_broker, topic, "one")
    [message] = received(first)
    [again] = received(second)
    second.acknowledge(again)
    second.commit_sync(10)
    first.acknowledge(message)
    assert list(first.commit_sync(10).values()) == [None]
    events = told()
    assert words(events) == ["Publish", "Pickup A 0", "Pickup B 1", "Ack B 1", "Ack A 0"]
    assert verdict(tmp_path, events) == "conforms"


def test_what_is_released_comes_at_once_and_what_is_rejected_never(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    consumer = member("A")
    publish(kafka_broker, topic, "one", "two")
    heard: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda offsets, error: heard.append(error))
    found: list[tuple[int, int]] = []
    deadline = time.monotonic() + PATIENCE
    while sum(offset == 1 for offset, _ in found) < 1 or sum(offset == 0 for offset, _ in found) < 2:
        assert time.monotonic() < deadline
        for message in consumer.poll(0.2):
            found.append((message.offset(), message.delivery_count()))
            with pytest.raises(ValueError, match="no"), probe.handling(message):
                raise ValueError("no")
            if message.offset() == 0 and message.delivery_count() == 1:
                consumer.acknowledge_offset(topic, 0, 0, AcknowledgeType.RELEASE)
            else:
                consumer.acknowledge(message, AcknowledgeType.REJECT)
        consumer.commit_sync(10)
    consumer.close()
    events = told()
    assert sorted(found) == [(0, 1), (0, 2), (1, 1)]
    assert sorted(word for word in words(events) if word[0] in "NR") == ["Nack A 0", "Reject A 0", "Reject A 1"]
    assert set(heard) == {None}
    assert verdict(tmp_path, events) == "conforms"


def test_a_member_that_leaves_gives_back_what_it_said_nothing_of(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    first = member("A")
    publish(kafka_broker, topic, "one")
    received(first)
    first.close()
    [again] = received(member("B"), within=10 * LOCK)
    events = told()
    assert again.delivery_count() == 2
    assert words(events) == ["Publish", "Pickup A 0", "Close A", "Pickup B 1"]
    assert verdict(tmp_path, events, "--strict") == "conforms"


def test_without_a_word_the_client_accepts_when_it_polls_again(
    kafka_broker: Server, topic: str, member: Any, told: Any
) -> None:
    consumer = member("A", mode="implicit", key=lambda message: message.value().decode())
    publish(kafka_broker, topic, None)
    received(consumer)
    consumer.commit_async()
    deadline = time.monotonic() + PATIENCE
    while "Ack A 0" not in words(told()) and time.monotonic() < deadline:
        consumer.poll(0.2)
    events = told()
    assert [event["key"] for event in events] == [f"{topic}/0/0", "work", "work"]
