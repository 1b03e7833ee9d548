"""The producer, a process of its own: publishes the tasks as soon as all workers are ready, and ends."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from specwatch.collector.probes import configure
from specwatch.collector.probes.nats import instrument

from ..plan import Settings
from ..together import LOOK, READY_WAIT, Pace, workers_are_ready
from .consumer import connect, make, stream

ANSWER_WAIT = 5.0
"""Seconds for the server's answer."""


async def publish(settings: Settings) -> None:
    """Publish all tasks. Raises ``nats.errors.Error``."""
    plan = settings.plan
    client = await connect(settings)
    js = instrument(client.jetstream(), answers=False)
    await make(js, settings)
    pace = Pace(plan)
    for number, identity in enumerate(plan.ids()):
        task = {"id": identity, "struck": number < plan.struck}
        await asyncio.sleep(pace.pause())
        await send(js, stream(settings), identity, json.dumps(task).encode())
    await client.close()


async def send(js: Any, subject: str, identity: str, payload: bytes) -> None:
    """Publish until the server has answered. It drops what it has already, by its id. Raises ``nats.errors.Error``."""
    from nats.errors import Error

    deadline = time.monotonic() + READY_WAIT
    while True:
        try:
            await js.publish(subject, payload, headers={"Nats-Msg-Id": identity}, timeout=ANSWER_WAIT)
            return
        except (Error, OSError, TimeoutError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(LOOK)


def main() -> int:
    """Returns the exit code: 1 if the workers did not get ready."""
    settings = Settings.from_environment()
    configure(role="producer")
    if not workers_are_ready(settings):
        return 1
    asyncio.run(publish(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
