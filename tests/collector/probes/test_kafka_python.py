"""What the probe for kafka-python tells of a real Kafka, and that the spec takes it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.cimpl import NewTopic
from kafka import ConsumerRebalanceListener, TopicPartition  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]

from specwatch.cli.app import app
from specwatch.collector.probes import kafka_python as probe
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
def member(kafka_broker: Server, topic: str, told: Any) -> Iterator[Callable[..., Any]]:
    """A member of the group, by name; closed at the end."""
    opened: list[Any] = []

    def make(name: str, *topics: str, **more: Any) -> Any:
        settings = {
            "bootstrap_servers": kafka.servers(kafka_broker.url),
            "group_id": topic,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": 3000,
            "max_poll_interval_ms": 3000,
            "heartbeat_interval_ms": 300,
            "metadata_max_age_ms": 1000,
        }
        one = probe.KafkaConsumer(*(topics or (topic,)), worker=name, execute="told", **{**settings, **more})
        opened.append(one)
        return one

    yield make
    for one in opened:
        one.close(timeout_ms=5000)


def publish(broker: Server, topic: str, *ids: str | None) -> None:
    producer = probe.KafkaProducer(bootstrap_servers=kafka.servers(broker.url))
    for identity in ids:
        producer.send(topic, b"work", headers=[] if identity is None else [("id", identity.encode())])
    producer.flush(20)
    producer.close(5)


def received(*members: Any) -> tuple[Any, Any]:
    """The next message, of a group that may still have to form, and who has it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for one in members:
            for messages in one.poll(timeout_ms=200, max_records=1).values():
                return messages[0], one
    raise AssertionError("nothing was received")


def words(events: list[Event]) -> list[str]:
    """``Pickup A 0``: action, member and offset; without what the group says."""
    own = [(event["action"], event["params"].get("w"), event["params"].get("o")) for event in events]
    found = [" ".join(str(part) for part in parts if part is not None) for parts in own]
    return [word for word in found if not word.startswith(("Assign", "Revoke"))]


def verdict(path: Path, events: list[Event]) -> str:
    log = path / "judged.jsonl"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    return str(json.loads(CliRunner().invoke(app, ["check", "kafka", str(log), "--json"]).stdout)["verdict"])


def test_a_message_from_its_publication_to_the_commit(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    consumer = member("A")
    publish(kafka_broker, topic, "one")
    message = next(consumer)
    with probe.handling(message):
        probe.executed()
    consumer.commit()
    consumer.close()
    events = told()
    assert words(events) == ["Publish", "Pickup A 0", "Start A", "Execute A", "Done A", "Commit A 1"]
    assert {event["key"] for event in events if "t" in event["params"]} == {"one"}
    assert {event["params"]["p"] for event in events if "p" in event["params"]} == {f"{topic}/0"}
    assert verdict(tmp_path, events) == "conforms"


def test_a_message_without_an_id_is_known_by_its_place(
    kafka_broker: Server, topic: str, member: Any, told: Any
) -> None:
    publish(kafka_broker, topic, None)
    message, _ = received(member("A"))
    with pytest.raises(ValueError, match="no"), probe.handling(message):
        raise ValueError("no")
    steps = [event for event in told() if event["action"] != "Assign"]
    assert [(event["action"], event["key"]) for event in steps] == [
        (action, f"{topic}/0/0") for action in ("Publish", "Pickup", "Start", "Fail")
    ]


def test_who_goes_back_receives_it_again(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    consumer = member("A")
    publish(kafka_broker, topic, "one")
    received(consumer)
    consumer.seek(TopicPartition(topic, 0), 0)
    received(consumer)
    events = told()
    assert words(events) == ["Publish", "Pickup A 0", "Seek A 0", "Pickup A 0"]
    assert verdict(tmp_path, events) == "conforms"


def test_a_member_that_does_not_poll_is_given_up_and_its_commit_is_refused(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    first, second = member("A"), member("B")
    publish(kafka_broker, topic, "one")
    message, holder = received(first, second)
    other = second if holder is first else first
    with probe.handling(message):
        probe.executed()
        again, _ = received(other)
        with probe.handling(again):
            probe.executed()
    with pytest.raises(KafkaError):
        holder.commit()
    other.commit()
    events = told()
    told_words = [word.split()[0] for word in words(events)]
    assert (told_words.count("Pickup"), told_words.count("Commit")) == (2, 1)
    assert told_words.count("CommitFail") >= 1
    assert verdict(tmp_path, events) == "violates"


def test_what_is_committed_by_itself_is_told(
    kafka_broker: Server, topic: str, member: Any, told: Any, tmp_path: Path
) -> None:
    consumer = member("A", enable_auto_commit=True, auto_commit_interval_ms=60_000)
    publish(kafka_broker, topic, "one")
    message, _ = received(consumer)
    with probe.handling(message):
        probe.executed()
    consumer.close()
    events = told()
    assert "Commit A 1" in words(events)
    assert verdict(tmp_path, events) == "conforms"


def test_the_applications_own_listener_is_heard(kafka_broker: Server, topic: str, member: Any, told: Any) -> None:
    heard: list[str] = []

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            heard.extend(f"assigned {one.partition}" for one in assigned)

        def on_partitions_revoked(self, revoked: Any) -> None:
            heard.extend(f"revoked {one.partition}" for one in revoked)

    consumer = member("A")
    consumer.unsubscribe()
    consumer.subscribe([topic], listener=Listener())
    publish(kafka_broker, topic, "one")
    received(consumer)
    consumer.close()
    assert "assigned 0" in heard
    assert "Assign" in [event["action"] for event in told()]
