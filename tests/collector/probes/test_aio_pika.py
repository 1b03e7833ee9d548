"""What aio-pika's probe tells of a real RabbitMQ, and that the spec takes it."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from click.testing import CliRunner

from specwatch.cli.app import app
from specwatch.collector.probes import aio_pika as probe
from specwatch.collector.probes import amqp, configure, failures, stop
from specwatch.pilots.runtime import Server

PATIENCE = 30.0
"""Seconds for what must come, on a machine with much else to do."""


def told_by(scenario: Callable[[], Awaitable[None]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """``Pickup one A 1 1 r=False``: what a scenario told."""
    monkeypatch.setattr(amqp, "_published", OrderedDict())
    before = failures()
    configure(folder / "events", role="test")
    asyncio.run(asyncio.wait_for(scenario(), 2 * PATIENCE))
    stop()
    configure("", role="test")
    assert failures() == before
    lines = [line for file in (folder / "events").glob("*.jsonl") for line in file.read_text().splitlines()]
    rows = []
    for event in map(json.loads, lines):
        if event.get("lane") != "emitter":
            params = event["params"]
            words = [event["action"], *(str(params[name]) for name in ("t", "w", "c", "d") if name in params)]
            rows.append(" ".join(words + ([f"r={params['r']}"] if "r" in params else [])))
    return rows


def verdict(folder: Path, *more: str) -> str:
    result = CliRunner().invoke(app, ["check", "rabbitmq", str(folder / "events"), "--json", *more])
    return str(json.loads(result.stdout).get("verdict", result.stdout))


async def send(channel: Any, queue: str, *ids: str) -> None:
    for identity in ids:
        await channel.default_exchange.publish(aio_pika.Message(b"{}", message_id=identity), queue)


async def one(queue: Any) -> Any:
    """The next message, by ``basic.get``."""
    while (message := await queue.get(fail=False)) is None:
        await asyncio.sleep(0.01)
    return message


def test_bodies_words_and_ends_are_told(rabbitmq_node: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with await aio_pika.connect(rabbitmq_node.url) as connection:
            channel = probe.instrument(await connection.channel(), worker="A")
            queue = await channel.declare_queue("aio-bodies", auto_delete=True)
            await send(channel, "aio-bodies", "one", "two", "three")
            async with queue.iterator() as messages:
                seen = 0
                async for message in messages:
                    seen += 1
                    if message.message_id == "three":
                        await message.reject()
                        break
                    async with message.process():
                        with probe.handling(message):
                            probe.skipped() if seen == 2 else None

    rows = told_by(scenario, tmp_path, monkeypatch)
    assert [row for row in rows if " one" in row] == [
        "Publish one",
        "Pickup one A 1 1 r=False",
        "Start one A 1 1",
        "Execute one A 1 1",
        "Done one A 1 1",
        "Ack one A 1 1",
    ]
    assert [row.split()[0] for row in rows if " two" in row] == ["Publish", "Pickup", "Start", "Skip", "Done", "Ack"]
    assert [row.split()[0] for row in rows if " three" in row] == ["Publish", "Pickup", "Reject"]
    assert rows[-1] in ("ChannelLost A 1", "ConnLost A")
    # The guard of this body never asked: without one there is nothing to skip.
    assert verdict(tmp_path) == "diverges"


def test_a_consumer_timeout_is_told_when_the_client_reads_it(
    rabbitmq_node: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with await aio_pika.connect(rabbitmq_node.url) as a, await aio_pika.connect(rabbitmq_node.url) as b:
            first = probe.instrument(await a.channel(), worker="A")
            queue = await first.declare_queue("aio-timeout", auto_delete=False)
            await send(first, "aio-timeout", "one")
            with probe.handling(await one(queue)):
                probe.executed()
            second = probe.instrument(await b.channel(), worker="B")
            same = await second.get_queue("aio-timeout")
            received: asyncio.Queue[Any] = asyncio.Queue()
            consuming = await same.consume(received.put)
            message = await asyncio.wait_for(received.get(), PATIENCE)
            with probe.handling(message):
                probe.executed()
            await message.ack()
            await same.cancel(consuming)
            await second.queue_delete("aio-timeout")

    rows = told_by(scenario, tmp_path, monkeypatch)
    assert rows.index("ChannelLost A 1") > rows.index("Execute one A 1 1")
    assert "Pickup one B 1 1 r=True" in rows
    assert verdict(tmp_path) == "violates"
    assert verdict(tmp_path, "--config", "specs/rabbitmq/RabbitMQ.idempotent.cfg") == "diverges"


def test_a_robust_channel_stays_instrumented_when_its_connection_was_lost(
    rabbitmq_node: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        connection = await aio_pika.connect_robust(rabbitmq_node.url, reconnect_interval=0.1)
        channel = probe.instrument(await connection.channel(), worker="A")
        queue = await channel.declare_queue("aio-robust")
        received: asyncio.Queue[Any] = asyncio.Queue()
        await queue.consume(received.put)
        await send(channel, "aio-robust", "one")
        await asyncio.wait_for(received.get(), PATIENCE)
        underlay = await channel.get_underlay_channel()
        await underlay.connection.close(ConnectionResetError("cut"))
        message = await asyncio.wait_for(received.get(), PATIENCE)
        await message.ack()
        await queue.delete(if_unused=False, if_empty=False)
        await connection.close()

    rows = told_by(scenario, tmp_path, monkeypatch)
    assert rows[:5] == [
        "Publish one",
        "Pickup one A 1 1 r=False",
        "ConnLost A",
        "Pickup one A 1 1 r=True",
        "Ack one A 1 1",
    ]
    assert verdict(tmp_path) == "conforms"
