"""A stream on a real server, with one consumer and instrumented workers, for the length of a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from click.testing import CliRunner
from nats.js.api import AckPolicy, ConsumerConfig

from specwatch.cli.app import app
from specwatch.collector.probes import configure
from specwatch.collector.probes.nats import instrument

SPECS = Path(__file__).parents[3] / "specs" / "nats"
ACK_WAIT = 0.6
"""Seconds after which what was not acked is delivered again."""
PATIENCE = 30.0

Event = dict[str, Any]


@dataclass
class Bench:
    """A stream of one test with one consumer, and as many instrumented workers as are asked for."""

    client: Any
    name: str
    how: dict[str, Any]
    workers: dict[str, Any] = field(default_factory=dict)

    async def worker(self, name: str) -> Any:
        if name not in self.workers:
            js = instrument(self.client.jetstream(), worker=name, **self.how)
            self.workers[name] = await js.pull_subscribe_bind("c", self.name)
        return self.workers[name]

    async def take(self, name: str, patience: float = PATIENCE) -> Any:
        """The next message that a worker gets."""
        [message] = await (await self.worker(name)).fetch(1, timeout=patience)
        return message

    async def nothing_comes(self, name: str = "Z") -> bool:
        """Whether nothing is delivered for two AckWaits."""
        try:
            await self.take(name, 2 * ACK_WAIT)
        except (TimeoutError, nats.errors.TimeoutError):
            return True
        return False

    async def publish(self, data: bytes = b"", **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        js = instrument(self.client.jetstream(), **self.how)
        return await js.publish(self.name, data, headers=given or None)

    async def pending(self) -> int:
        info = await self.client.jetstream().consumer_info(self.name, "c")
        return int(info.num_ack_pending)


Scenario = Callable[[Bench], Awaitable[None]]


@asynccontextmanager
async def bench(url: str, name: str, how: dict[str, Any], max_deliver: int | None = None) -> AsyncIterator[Bench]:
    """A new stream with its consumer ``c``; both are deleted afterwards. ``how``: the options of ``instrument``."""
    client = await nats.connect(url)
    js = client.jetstream()
    await js.add_stream(name=name, subjects=[name])
    config = ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT, ack_wait=ACK_WAIT, max_deliver=max_deliver)
    await js.add_consumer(name, config)
    try:
        yield Bench(client, name, how)
    finally:
        await js.delete_stream(name)
        await client.close()


def play(url: str, events: Path, scenario: Scenario, *, max_deliver: int | None = None, **how: Any) -> list[Event]:
    """Run a scenario on a new stream; the events that it told of, which are written to a file."""
    configure(events)

    async def scene() -> None:
        async with bench(url, f"s{events.parent.name}".replace(".", "_"), how, max_deliver) as one:
            await scenario(one)

    asyncio.run(scene())
    configure("")
    return steps(events)


def steps(events: Path) -> list[Event]:
    """What a file tells of, but for its emitters' begins and ends."""
    text = events.read_text(encoding="utf-8") if events.exists() else ""
    told = [json.loads(line) for line in text.splitlines()]
    return [event for event in told if "lane" not in event]


def judged(target: str, log: Path, *options: str) -> Event:
    """What ``specwatch check --json`` says."""
    document: Event = json.loads(CliRunner().invoke(app, ["check", target, str(log), "--json", *options]).stdout)
    assert document["schema"] == "specwatch.verdict/1", document
    return document


def story(told: list[Event]) -> list[str]:
    """``Pickup(B, 1)``, …: each event with its worker and the number of its delivery."""
    return [
        f"{event['action']}({', '.join(str(event['params'][name]) for name in 'wa')})"
        if "w" in event["params"]
        else event["action"]
        for event in told
    ]
