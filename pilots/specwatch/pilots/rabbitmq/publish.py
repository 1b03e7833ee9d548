"""The producer, a process of its own: publishes the tasks as soon as all workers are ready, and ends."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pika  # type: ignore[import-untyped]

from specwatch.collector.probes import configure
from specwatch.collector.probes.pika import instrument

from ..plan import Settings
from ..runtime.errors import ServerError
from ..runtime.rabbitmq import connect
from ..together import LOOK, READY_WAIT, workers_are_ready
from . import queues

ANSWER_WAIT = 20.0
"""Seconds for an answer of the broker, on a machine with much else to do."""


class Producer:
    """Publishes over a connection, and over another where that is lost."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.queue = queues.name(settings.prefix)
        self._open()

    def publish(self, task: dict[str, Any]) -> None:
        """Publish until the broker confirms it: what is told as published is in the queue."""
        properties = pika.BasicProperties(message_id=task["id"], delivery_mode=2)
        while True:
            try:
                self.channel.basic_publish("", self.queue, json.dumps(task).encode(), properties, mandatory=True)
                return
            except pika.exceptions.AMQPError:
                self._open()

    def pause(self, seconds: float) -> None:
        """Wait, and listen: a connection that is lost meanwhile is not found out by a message that gets no confirm."""
        try:
            self.connection.sleep(seconds)
        except pika.exceptions.AMQPError:
            self._open()

    def close(self) -> None:
        """Say goodbye."""
        self.connection.close()

    def _open(self) -> None:
        deadline = time.monotonic() + READY_WAIT
        while True:
            try:
                self.connection = connect(self.settings.broker, wait=ANSWER_WAIT)
                self.channel = instrument(self.connection.channel())
                queues.declare(self.channel, self.settings.prefix, self.settings.plan.timeout)
                self.channel.confirm_delivery()
                return
            except (pika.exceptions.AMQPError, ServerError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK)


def main() -> int:
    """Returns the exit code: 1 if the workers did not get ready."""
    settings = Settings.from_environment()
    plan = settings.plan
    configure(role="producer")
    if not workers_are_ready(settings):
        return 1
    producer = Producer(settings)
    for number, identity in enumerate(plan.ids()):
        producer.publish({"id": identity, "struck": number < plan.struck})
        producer.pause(plan.span / plan.tasks)
    producer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
