"""A worker of the pilot, a process of its own: ``python -m specwatch.pilots.nats.worker NAME``.

A pull consumer of nats-py with as many loops as the plan's concurrency. Each takes one message, works on it in a thread
and acks it when the work is done: nothing is taken that waits.
"""

from __future__ import annotations

import asyncio
import json
import platform
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from specwatch.collector.probes import configure
from specwatch.collector.probes.nats import executed, handling, instrument, skipped

from .. import wishes
from ..guards import GUARDS, Copy
from ..plan import Settings
from ..together import say_ready
from .consumer import CONSUMER, FETCH, connect, make, stream
from .meeting import Meeting

ACK_WAIT = 5.0
"""Seconds for the server's answer to an ack."""
PAUSE = 0.1
"""Seconds until a worker asks again that has lost its connection."""


class Worker:
    """The loops of one process."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Take messages until SIGTERM; then finish what is being worked on."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        client = await connect(self.settings)
        js = instrument(client.jetstream(), worker=self.name, execute="told")
        await make(js, self.settings)
        loops = [asyncio.create_task(self._loop(js)) for _ in range(self.settings.plan.concurrency)]
        say_ready(self.settings, self.name)
        try:
            await asyncio.gather(*loops)
        finally:
            await client.close()

    async def _loop(self, js: Any) -> None:
        from nats.errors import Error

        subscription = await js.pull_subscribe_bind(CONSUMER, stream(self.settings))
        while not self.stopping.is_set():
            try:
                [message] = await subscription.fetch(1, timeout=FETCH)
            except TimeoutError:
                continue
            except (Error, OSError) as error:
                print(f"no message: {error!r}", file=sys.stderr)
                await asyncio.sleep(PAUSE)
                continue
            await self._work(message)

    async def _work(self, message: Any) -> None:
        task = json.loads(message.data)
        wish = wishes.take(self.settings.directory, self.name, task["id"])
        meeting = Meeting(self.settings, task["id"], message.metadata.num_delivered) if task["struck"] else None
        meet = meeting.meet if meeting is not None else None
        if wish is not None and wish.kind == "long":
            meet = wish.wait
        copy = Copy(self.settings, (task["id"], 0), self.name, meet, executed, skipped)
        try:
            with handling(message):
                await asyncio.to_thread(GUARDS[self.settings.plan.mode], copy)
                if meeting is not None and self.settings.plan.experiment == "late-ack":
                    await asyncio.to_thread(meeting.outlast)
        except Exception as error:
            print(f"{task['id']}: {error!r}", file=sys.stderr)
            await self._say(task["id"], message.nak)  # It comes again.
            return
        if wish is not None and wish.kind == "hold":
            await asyncio.to_thread(wish.wait)
        if wish is not None and wish.kind == "nack":
            await self._say(task["id"], message.nak)
        elif await self._say(task["id"], lambda: message.ack_sync(timeout=ACK_WAIT)) and meeting is not None:
            meeting.acked()

    async def _say(self, task: str, word: Callable[[], Awaitable[Any]]) -> bool:
        """Whether a word was said, and answered if it has an answer. If it was not, the message comes again."""
        from nats.errors import Error

        try:
            await word()
        except (Error, OSError, TimeoutError) as error:
            print(f"{task}: the server was not told: {error!r}", file=sys.stderr)
            return False
        return True


def main() -> int:
    """Returns the exit code."""
    configure(role="worker")
    name = f"{sys.argv[1]}@{platform.node()}"
    asyncio.run(Worker(Settings.from_environment(), name).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
