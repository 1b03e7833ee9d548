"""What pika's probe tells of a real RabbitMQ, and that the spec takes it."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pika  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from specwatch.cli.app import app
from specwatch.collector.probes import amqp, configure, failures, stop
from specwatch.collector.probes import pika as probe
from specwatch.pilots.runtime import Server, rabbitmq

Event = dict[str, Any]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Event]]]:
    """What the probe told so far, but for the process's own begin and end."""
    monkeypatch.setattr(amqp, "_published", OrderedDict())
    before = failures()
    configure(tmp_path / "events", role="test")

    def read() -> list[Event]:
        stop()
        lines = [line for file in (tmp_path / "events").glob("*.jsonl") for line in file.read_text().splitlines()]
        return [event for event in map(json.loads, lines) if event.get("lane") != "emitter"]

    yield read
    configure("", role="test")
    assert failures() == before


@pytest.fixture
def queue(rabbitmq_node: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name
    with closing(rabbitmq.connect(rabbitmq_node.url)) as connection:
        channel = connection.channel()
        channel.queue_declare(name)
        yield name
        channel.queue_delete(name)


@pytest.fixture
def connect(rabbitmq_node: Server) -> Iterator[Callable[[], Any]]:
    opened: list[Any] = []

    def one() -> Any:
        opened.append(rabbitmq.connect(rabbitmq_node.url, wait=20, heartbeat=0))
        return opened[-1]

    yield one
    for connection in opened:
        if connection.is_open:
            connection.close()


def verdict(tmp_path: Path, *more: str) -> str:
    result = CliRunner().invoke(app, ["check", "rabbitmq", str(tmp_path / "events"), "--json", *more])
    return str(json.loads(result.stdout).get("verdict", result.stdout))


def send(channel: Any, queue: str, *ids: str, **properties: Any) -> None:
    for identity in ids:
        channel.basic_publish("", queue, b"{}", pika.BasicProperties(message_id=identity, **properties))


def short(events: list[Event]) -> list[str]:
    """``Pickup a w1 1 r=False``"""
    return [
        " ".join(
            [event["action"], *(str(event["params"][name]) for name in ("t", "w", "c", "d") if name in event["params"])]
            + ([f"r={event['params']['r']}"] if "r" in event["params"] else [])
        )
        for event in events
    ]


def next_of(channel: Any, queue: str) -> Any:
    return next(channel.consume(queue, inactivity_timeout=20))


def test_a_callback_is_the_body_and_its_return_the_effect(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]], tmp_path: Path
) -> None:
    connection = connect()
    channel = probe.instrument(connection.channel(), worker="A")
    send(channel, queue, "one", "two")
    left = ["one", "two"]

    def store(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        left.remove(properties.message_id)
        if properties.message_id == "two":
            probe.skipped(because="seen")
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume(queue, store)
    while left:
        connection.process_data_events(1)
    connection.close()
    events = told()
    assert short(events) == [
        "Publish one",
        "Publish two",
        "Pickup one A 1 1 r=False",
        "Start one A 1 1",
        "Ack one A 1 1",
        "Execute one A 1 1",
        "Done one A 1 1",
        "Pickup two A 1 2 r=False",
        "Start two A 1 2",
        "Skip two A 1 2",
        "Ack two A 1 2",
        "Done two A 1 2",
        "ChannelLost A 1",
    ]
    assert (events[5]["inferred"], events[9]["because"], events[0]["key"]) == ("the body returned", "seen", "one")


def test_a_consumer_timeout_puts_all_back_and_late_acks_reach_no_one(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]], tmp_path: Path
) -> None:
    """A holds two messages for too long, and learns of it when it next speaks with the broker."""
    a = probe.instrument(connect().channel(), worker="A")
    send(a, queue, "one", "two")
    held = [next_of(a, queue) for _ in range(2)]
    with probe.handling(a, held[0][0].delivery_tag):
        probe.executed()
    b = probe.instrument(connect().channel(), worker="B")
    again = [next_of(b, queue) for _ in range(2)]
    for method, _, _ in again:
        with probe.handling(b, method.delivery_tag):
            probe.executed()
        b.basic_ack(method.delivery_tag)
    a.connection.process_data_events(0)
    for method, _, _ in held:
        with pytest.raises(pika.exceptions.AMQPError):
            a.basic_ack(method.delivery_tag)
    events = told()
    assert sorted(short(events)[4:]) == sorted(
        [
            "Start one A 1 1",
            "Execute one A 1 1",
            "Done one A 1 1",
            *(f"Pickup {name} B 1 {tag} r=True" for tag, name in enumerate((m[1].message_id for m in again), 1)),
            *(f"{word} {m[1].message_id} B 1 {m[0].delivery_tag}" for m in again for word in ("Start", "Execute")),
            *(f"{word} {m[1].message_id} B 1 {m[0].delivery_tag}" for m in again for word in ("Done", "Ack")),
            "ChannelLost A 1",
            "AckFail one A 1 1",
            "AckFail two A 1 2",
        ]
    )
    [lost] = [event for event in events if event["action"] == "ChannelLost"]
    assert "timed out" in lost["reason"]
    assert verdict(tmp_path) == "violates"
    assert verdict(tmp_path, "--config", "specs/rabbitmq/RabbitMQ.idempotent.cfg") == "diverges"


def test_nack_and_reject_are_told_as_what_they_do(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]], tmp_path: Path
) -> None:
    channel = probe.instrument(connect().channel(), worker="A")
    send(channel, queue, "one")
    channel.basic_nack(next_of(channel, queue)[0].delivery_tag)
    channel.basic_reject(next_of(channel, queue)[0].delivery_tag)
    channel.basic_nack(next_of(channel, queue)[0].delivery_tag, requeue=False)
    send(channel, queue, "two", "three")
    for _ in range(2):
        last = next_of(channel, queue)[0].delivery_tag
    channel.basic_ack(last, multiple=True)
    assert [row for row in short(told()) if not row.startswith("Publish")] == [
        "Pickup one A 1 1 r=False",
        "Nack one A 1 1",
        "Pickup one A 1 2 r=True",
        "Nack one A 1 2",
        "Pickup one A 1 3 r=True",
        "Reject one A 1 3",
        "Pickup two A 1 4 r=False",
        "Pickup three A 1 5 r=False",
        "Ack two A 1 4",
        "Ack three A 1 5",
    ]
    assert verdict(tmp_path) == "conforms"


def test_a_channel_number_that_is_opened_again_has_another_name(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]], tmp_path: Path
) -> None:
    """Tags begin again at 1: without it an old ack would be one of the new channel."""
    connection = connect()
    first = probe.instrument(connection.channel(), worker="A")
    send(first, queue, "one")
    next_of(first, queue)
    first.close()
    second = probe.instrument(connection.channel(), worker="A")
    assert second.channel_number == 1
    second.basic_ack(next_of(second, queue)[0].delivery_tag)
    assert [row for row in short(told()) if "Publish" not in row] == [
        "Pickup one A 1 1 r=False",
        "ChannelLost A 1",
        "Pickup one A 1.2 1 r=True",
        "Ack one A 1.2 1",
    ]
    assert verdict(tmp_path) == "conforms"


def test_a_connection_that_breaks_is_told_once(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]], tmp_path: Path
) -> None:
    connection = connect()
    one, two = (probe.instrument(connection.channel(), worker="A") for _ in range(2))
    send(one, queue, "one", "two")
    one.basic_qos(prefetch_count=1)
    two.basic_qos(prefetch_count=1)
    method = next_of(one, queue)[0]
    next_of(two, queue)
    connection._impl._transport._sock.shutdown(2)

    def speak() -> None:
        one.basic_ack(method.delivery_tag)
        connection.process_data_events(5)

    with pytest.raises(pika.exceptions.AMQPError):
        speak()
    other = probe.instrument(connect().channel(), worker="B")
    for _ in range(2):
        other.basic_ack(next_of(other, queue)[0].delivery_tag)
    rows = [row for row in short(told()) if "Publish" not in row]
    assert [row for row in rows if "Lost" in row] == ["ConnLost A"]
    assert [row for row in rows if row.startswith(("Pickup", "Ack ")) and " B " in row] == [
        "Pickup one B 1 1 r=True",
        "Ack one B 1 1",
        "Pickup two B 1 2 r=True",
        "Ack two B 1 2",
    ]
    assert verdict(tmp_path) == "conforms"


def test_a_consumer_without_acks_has_acked_when_it_is_given_the_message(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]]
) -> None:
    channel = probe.instrument(connect().channel(), worker="A")
    send(channel, queue, "one", "two")
    next(channel.consume(queue, auto_ack=True, inactivity_timeout=20))
    channel.cancel()
    channel.basic_get(queue, auto_ack=True)
    rows = [row.split()[0] for row in short(told())]
    assert rows[:4] == ["Publish", "Publish", "Pickup", "Ack"]


@pytest.mark.parametrize(
    ("key", "properties", "body", "expected"),
    [
        ("message_id", pika.BasicProperties(message_id="m"), b"", "m"),
        ("order", pika.BasicProperties(headers={"order": 7}), b"", "7"),
        ("order", pika.BasicProperties(), b"", None),
        ("$.order.id", None, b'{"order": {"id": "x"}}', "x"),
        ("$.order.id", None, b'{"order": 3}', None),
        ("$.order", None, b"no JSON", None),
        (lambda properties, body: body.decode(), None, b"the body", "the body"),
    ],
)
def test_a_message_is_known_by_what_the_application_says(
    key: probe.Key, properties: Any, body: bytes, expected: str | None
) -> None:
    assert amqp.known_by(key, properties, body) == expected


def test_a_body_that_raises_has_failed_and_one_whose_ack_fails_has_not(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]]
) -> None:
    connection = connect()
    channel = probe.instrument(connection.channel(), worker="A")
    send(channel, queue, "one")

    def store(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if method.redelivered:
            channel.close()
            channel.basic_ack(method.delivery_tag)
        channel.basic_nack(method.delivery_tag)
        raise ValueError(method.delivery_tag)

    channel.basic_consume(queue, store)
    with pytest.raises(ValueError, match="1"):
        connection.process_data_events(20)
    with pytest.raises(pika.exceptions.AMQPError):
        channel.start_consuming()
    rows = [row.split()[0] for row in short(told())]
    assert rows[:5] == ["Publish", "Pickup", "Start", "Nack", "Fail"]
    assert rows[5:] == ["Pickup", "Start", "ChannelLost", "AckFail", "Execute", "Done"]


def test_a_publisher_that_sends_an_id_again_republishes(
    connect: Callable[[], Any], queue: str, told: Callable[[], list[Event]]
) -> None:
    channel = probe.instrument(connect().channel())
    send(channel, queue, "twice", "twice")
    channel.basic_publish("", queue, "text without an id")
    assert short(told()) == ["Publish twice", "Republish twice"]
