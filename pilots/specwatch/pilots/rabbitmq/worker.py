"""A worker of the pilot, a process of its own: ``python -m specwatch.pilots.rabbitmq.worker NAME``.

A consumer with pika as people write it: it takes one message at a time, works on it while no one reads its connection,
acks it when the work is done, and opens what was closed again. A worker has as many of them as the plan's concurrency,
each with a thread and a connection of its own.
"""

from __future__ import annotations

import json
import platform
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika  # type: ignore[import-untyped]

from specwatch.collector.probes import configure
from specwatch.collector.probes.pika import executed, handling, instrument, skipped

from .. import together, wishes
from ..guards import GUARDS, Copy
from ..plan import Settings
from ..runtime.errors import ServerError
from ..runtime.rabbitmq import connect, reason
from ..together import say_ready
from . import queues
from .publish import ANSWER_WAIT

LISTEN = 0.2
"""Seconds that a consumer listens before it looks whether it is to stop."""
PAUSE = 0.1
"""Seconds until a consumer connects again that has lost its connection."""


class Consumer:
    """One loop of a worker: a connection, a channel, one message at a time."""

    def __init__(self, settings: Settings, worker: str, stopping: threading.Event, ready: threading.Barrier) -> None:
        self.settings = settings
        self.worker = worker
        self.stopping = stopping
        self.ready = ready
        self.waited = False

    def run(self) -> None:
        """Consume until the worker is to stop, and finish what is being worked on."""
        connection: Any = None
        while not self.stopping.is_set():
            try:
                if connection is None or not connection.is_open:
                    # A busy consumer answers no heartbeat: without them a body may be as long as it likes.
                    connection = connect(self.settings.broker, wait=ANSWER_WAIT, heartbeat=0)
                self._consume(connection)
            except (pika.exceptions.AMQPError, ServerError, OSError) as error:
                print(f"{self.worker}: {reason(error)}", file=sys.stderr)
                self.stopping.wait(PAUSE)
        if connection is not None and connection.is_open:
            connection.close()

    def _consume(self, connection: Any) -> None:
        channel = instrument(connection.channel(), worker=self.worker, execute="told")
        queue = queues.declare(channel, self.settings.prefix, self.settings.plan.timeout)
        channel.basic_qos(prefetch_count=1)
        messages = channel.consume(queue, inactivity_timeout=LISTEN)
        if not self.waited:
            self.waited = True
            self.ready.wait()
        for method, _, body in messages:
            if method is not None:
                self._work(channel, method, json.loads(body))
            if self.stopping.is_set():
                return

    def _work(self, channel: Any, method: Any, task: dict[str, Any]) -> None:
        wish = wishes.take(Path(self.settings.directory), self.worker, task["id"])
        meet = self._meeting(channel, method, task["id"]) if task["struck"] else None
        if wish is not None and wish.kind == "long":
            meet = wish.wait
        copy = Copy(self.settings, (task["id"], 0), self.worker, meet, executed, skipped)
        try:
            with handling(channel, method.delivery_tag):
                GUARDS[self.settings.plan.mode](copy)
        except Exception as error:
            print(f"{task['id']}: {error!r}", file=sys.stderr)
            channel.basic_nack(method.delivery_tag)  # It comes again.
            return
        if wish is not None and wish.kind == "hold":
            wish.wait()
        if wish is not None and wish.kind == "nack":
            channel.basic_nack(method.delivery_tag)
        else:
            channel.basic_ack(method.delivery_tag)

    def _meeting(self, channel: Any, method: Any, task: str) -> Callable[[], None]:
        """What a struck body calls where it is to work long: until another copy of it has come as far."""

        def meet() -> None:
            if self.settings.plan.experiment == "connection-cut" and not method.redelivered:
                cut(channel)
            together.meet(Path(self.settings.directory, "copies", task), self.settings.plan.patience)

        return meet


def cut(channel: Any) -> None:
    """Cut a channel's connection as a network does: neither side says goodbye, and the client learns of it later."""
    channel.connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)


def main() -> int:
    """Run until SIGTERM; returns the exit code."""
    settings = Settings.from_environment()
    configure(role="worker")
    name = f"{sys.argv[1]}@{platform.node()}"
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    ready = threading.Barrier(settings.plan.concurrency + 1)
    consumers = [Consumer(settings, name, stopping, ready) for _ in range(settings.plan.concurrency)]
    threads = [threading.Thread(target=consumer.run, daemon=True) for consumer in consumers]
    for thread in threads:
        thread.start()
    ready.wait()
    say_ready(settings, name)
    for thread in threads:
        # A signal is heard between two looks.
        while thread.is_alive():
            thread.join(LISTEN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
