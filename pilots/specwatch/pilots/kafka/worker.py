"""A worker of the pilot, a process of its own: ``python -m specwatch.pilots.kafka.worker NAME``.

A member of the consumer group as people write it: it polls for one message, works on it while no one polls, and commits
the offset when the work is done.
"""

from __future__ import annotations

import json
import platform
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from specwatch.collector.probes import configure
from specwatch.collector.probes.confluent_kafka import Consumer, executed, handling, skipped

from .. import together, wishes
from ..guards import GUARDS, Copy
from ..plan import Settings
from ..together import say_ready
from . import group

LISTEN = 0.2
"""Seconds that a poll waits: within so long a worker hears that it is to stop."""


class Worker:
    """The loop of one process."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.stopping = threading.Event()

    def run(self) -> None:
        """Take messages until the worker is to stop; then leave the group."""
        consumer = Consumer(group.member(self.settings), worker=self.name, execute="told")
        consumer.subscribe([group.topic(self.settings)], on_assign=lambda *_: say_ready(self.settings, self.name))
        try:
            while not self.stopping.is_set():
                message = consumer.poll(LISTEN)
                if message is None:
                    continue
                if message.error() is not None:
                    print(f"{self.name}: {message.error()}", file=sys.stderr)
                    continue
                self._work(consumer, message)
        finally:
            consumer.close()

    def _work(self, consumer: Consumer, message: Any) -> None:
        task = json.loads(message.value())
        wish = wishes.take(self.settings.directory, self.name, task["id"])
        meet = None
        if wish is not None and wish.kind == "long":
            meet = wish.wait
        elif task["struck"]:
            folder = Path(self.settings.directory, "copies", task["id"])
            meet = lambda: together.meet(folder, self.settings.plan.patience)  # noqa: E731
        copy = Copy(self.settings, (task["id"], 0), self.name, meet, executed, skipped)
        with handling(message):
            GUARDS[self.settings.plan.mode](copy)
        if wish is not None and wish.kind == "hold":
            wish.wait()
        try:
            consumer.commit(message=message, asynchronous=False)
        except KafkaException as error:
            print(f"{task['id']}: the commit was refused: {error}", file=sys.stderr)  # It comes again, to whomever.


def main() -> int:
    """Run until SIGTERM; returns the exit code."""
    configure(role="worker")
    settings = Settings.from_environment()
    worker = Worker(settings, f"{sys.argv[1]}@{platform.node()}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    group.make(settings)
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
