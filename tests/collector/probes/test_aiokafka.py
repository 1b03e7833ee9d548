"""What the probe for aiokafka tells of a real Kafka, and that the spec takes it."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import CommitFailedError  # type: ignore[import-untyped]
from click.testing import CliRunner
from confluent_kafka.cimpl import NewTopic

from specwatch.cli.app import app
from specwatch.collector.probes import aiokafka as probe
from specwatch.collector.probes import configure, failures, stop
from specwatch.collector.probes import kafka as common
from specwatch.pilots.runtime import Server, kafka

PATIENCE = 40.0


@pytest.fixture
def topic(kafka_broker: Server) -> str:
    """A topic of one partition."""
    name = f"probe-{secrets.token_hex(4)}"
    client = kafka.admin(kafka_broker.url)
    for future in client.create_topics([NewTopic(name, 1, 1)]).values():
        future.result(10)
    return name


def told_by(scenario: Callable[[], Awaitable[None]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """``Pickup one A 0``: what a scenario told."""
    monkeypatch.setattr(common, "_published", OrderedDict())
    before = failures()
    configure(folder / "events", role="test")
    asyncio.run(asyncio.wait_for(scenario(), 2 * PATIENCE))
    stop()
    configure("", role="test")
    assert failures() == before
    lines = [line for file in (folder / "events").glob("*.jsonl") for line in file.read_text().splitlines()]
    told = [event for event in map(json.loads, lines) if event.get("lane") != "emitter"]
    return [" ".join([e["action"], *(str(e["params"][n]) for n in ("t", "w", "o") if n in e["params"])]) for e in told]


def verdict(folder: Path) -> str:
    result = CliRunner().invoke(app, ["check", "kafka", str(folder / "events"), "--json"])
    return str(json.loads(result.stdout).get("verdict", result.stdout))


def member(broker: Server, topic: str, name: str, **more: Any) -> probe.AIOKafkaConsumer:
    settings = {
        "bootstrap_servers": kafka.servers(broker.url),
        "group_id": topic,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 3000,
        "heartbeat_interval_ms": 300,
    }
    return probe.AIOKafkaConsumer(topic, worker=name, execute="told", **{**settings, **more})


async def publish(broker: Server, topic: str, *ids: str | None) -> None:
    async with probe.AIOKafkaProducer(bootstrap_servers=kafka.servers(broker.url)) as producer:
        for identity in ids:
            headers = [] if identity is None else [("id", identity.encode())]
            await producer.send_and_wait(topic, b"work", headers=headers)


def without_groups(told: list[str]) -> list[str]:
    return [word for word in told if not word.startswith(("Assign", "Revoke"))]


def test_a_message_from_its_publication_to_the_commit(
    kafka_broker: Server, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        await publish(kafka_broker, topic, "one")
        async with member(kafka_broker, topic, "A") as consumer:
            message = await consumer.getone()
            with probe.handling(message):
                probe.executed()
            await consumer.commit()

    told = told_by(scenario, tmp_path, monkeypatch)
    expected = ["Publish one", "Pickup one A 0", "Start one A", "Execute one A", "Done one A", "Commit A 1"]
    assert without_groups(told) == expected
    assert told.count("Assign A") == 1
    assert verdict(tmp_path) == "conforms"


def test_who_goes_back_receives_it_again_and_a_batch_is_told_one_by_one(
    kafka_broker: Server, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        await publish(kafka_broker, topic, None, None)
        async with member(kafka_broker, topic, "A") as consumer:
            await consumer.getmany(timeout_ms=20_000, max_records=1)
            consumer.seek(TopicPartition(topic, 0), 0)
            async for message in consumer:
                with pytest.raises(ValueError, match="no"), probe.handling(message):
                    raise ValueError("no")
                break

    zero, one = f"{topic}/0/0", f"{topic}/0/1"
    expected = [f"Publish {zero}", f"Publish {one}", f"Pickup {zero} A 0", "Seek A 0"]
    assert without_groups(told_by(scenario, tmp_path, monkeypatch)) == [
        *expected,
        *(f"Pickup {zero} A 0", f"Start {zero} A", f"Fail {zero} A"),
    ]


def test_what_is_committed_by_itself_is_told(
    kafka_broker: Server, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        await publish(kafka_broker, topic, "one")
        automatic = {"enable_auto_commit": True, "auto_commit_interval_ms": 200}
        async with member(kafka_broker, topic, "A", **automatic) as consumer:
            with probe.handling(await consumer.getone()):
                probe.executed()

    told = told_by(scenario, tmp_path, monkeypatch)
    assert "Commit A 1" in told
    assert verdict(tmp_path) == "conforms"


def test_a_partition_is_taken_from_a_body_that_runs(
    kafka_broker: Server, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client joins again by itself, and the next owner receives what it still works on."""

    async def scenario() -> None:
        await publish(kafka_broker, topic, "one")
        async with member(kafka_broker, topic, "A") as first, AsyncExitStack() as stack:
            with probe.handling(await first.getone()):
                probe.executed()
                others = [await stack.enter_async_context(member(kafka_broker, topic, name)) for name in "BC"]
                waiting = [asyncio.create_task(one.getone()) for one in (first, *others)]
                done, pending = await asyncio.wait(waiting, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
                assert len(done) == 1
                with probe.handling(done.pop().result()):
                    probe.executed()

    told = told_by(scenario, tmp_path, monkeypatch)
    assert len([word for word in told if word.startswith("Pickup one")]) == 2
    assert verdict(tmp_path) == "violates"


def test_the_commit_of_a_member_that_the_group_gave_up_is_refused(
    kafka_broker: Server, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that keeps the loop busy for longer than the session lasts: no heartbeat is sent."""

    async def scenario() -> None:
        await publish(kafka_broker, topic, "one")
        async with member(kafka_broker, topic, "A", session_timeout_ms=1000) as first:
            with probe.handling(await first.getone()):
                probe.executed()
                time.sleep(3)
            with pytest.raises(CommitFailedError):
                await first.commit()

    told = told_by(scenario, tmp_path, monkeypatch)
    assert [word for word in told if word.startswith("Commit")] == ["CommitFail A 1"]
    assert verdict(tmp_path) == "conforms"
