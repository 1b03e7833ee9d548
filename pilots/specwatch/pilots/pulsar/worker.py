"""A worker of the pilot, a process of its own: ``python -m specwatch.pilots.pulsar.worker NAME``.

A consumer of pulsar-client as people write it: one loop receives, a pool of threads works, and each acks its message
when the work is done. A consumer that was closed is followed by another.
"""

from __future__ import annotations

import json
import platform
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pulsar

from specwatch.collector.probes import configure
from specwatch.collector.probes.pulsar import executed, handling, instrument, skipped

from .. import together, wishes
from ..guards import GUARDS, Copy
from ..together import say_ready
from . import subscription
from .plan import Settings

LISTEN = 0.2
"""Seconds that a consumer waits for a message: within so long a worker hears that it is to stop."""


class Worker:
    """One process: a client, a consumer, and threads."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.stopping = threading.Event()

    def run(self) -> None:
        """Take messages until the worker is to stop; then finish what is being worked on."""
        client = instrument(subscription.client(self.settings), worker=self.name, execute="told")
        concurrency = self.settings.plan.concurrency
        free = threading.Semaphore(concurrency)
        with ThreadPoolExecutor(concurrency) as pool:
            while not self.stopping.is_set():
                try:
                    self._consume(client, pool, free)
                except pulsar.PulsarException as error:
                    print(f"{self.name}: {error!r}", file=sys.stderr)
                    self.stopping.wait(LISTEN)
        client.close()

    def _consume(self, client: Any, pool: ThreadPoolExecutor, free: threading.Semaphore) -> None:
        consumer = subscription.subscribe(client, self.settings, self.name)
        say_ready(self.settings, self.name)
        while not self.stopping.is_set():
            if not free.acquire(timeout=LISTEN):
                continue
            try:
                message = consumer.receive(round(LISTEN * 1000))
            except pulsar.Timeout:
                free.release()
                continue
            except pulsar.PulsarException:
                free.release()
                raise
            pool.submit(self._work, consumer, message).add_done_callback(lambda _: free.release())

    def _work(self, consumer: Any, message: Any) -> None:
        task = json.loads(message.data())
        wish = wishes.take(self.settings.directory, self.name, task["id"])
        meet = self._meeting(consumer, message, task["id"]) if task["struck"] else None
        if wish is not None and wish.kind == "long":
            meet = wish.wait
        copy = Copy(self.settings, (task["id"], 0), self.name, meet, executed, skipped)
        try:
            with handling(message):
                GUARDS[self.settings.plan.mode](copy)
        except Exception as error:
            print(f"{task['id']}: {error!r}", file=sys.stderr)
            consumer.negative_acknowledge(message)  # It comes again.
            return
        if wish is not None and wish.kind == "hold":
            wish.wait()
        if wish is not None and wish.kind == "nack":
            consumer.negative_acknowledge(message)
            return
        try:
            consumer.acknowledge(message)
        except pulsar.PulsarException as error:
            print(f"{task['id']}: not acked: {error!r}", file=sys.stderr)  # Its consumer is closed: it comes again.

    def _meeting(self, consumer: Any, message: Any, task: str) -> Callable[[], None]:
        """What a struck body calls where it is to work long: until another copy of it has come as far."""
        copies = Path(self.settings.directory, "copies", task)

        def meet() -> None:
            first = not copies.exists()
            if first and self.settings.plan.closes:
                copies.mkdir(parents=True, exist_ok=True)
                consumer.close()
            together.meet(copies, self.settings.plan.patience)

        return meet


def main() -> int:
    """Run until SIGTERM; returns the exit code."""
    configure(role="worker")
    settings = Settings.from_environment()
    worker = Worker(settings, f"{sys.argv[1]}@{platform.node()}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
