"""The producer, a process of its own: publishes the tasks as soon as all workers are ready, and ends."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pika  # type: ignore[import-untyped]

from specwatch.collector.probes import configure
from specwatch.collector.probes.pika import instrument

from ..plan import Settings
from ..runtime.rabbitmq import connect
from . import queues

READY_WAIT = 60.0
"""Seconds within which the workers must be ready."""
ANSWER_WAIT = 20.0
"""Seconds for an answer of the broker, on a machine with much else to do."""
LOOK = 0.05


def main() -> int:
    """Returns the exit code: 1 if the workers did not get ready."""
    settings = Settings.from_environment()
    plan = settings.plan
    configure(role="producer")
    ready = Path(settings.directory, "ready")
    deadline = time.monotonic() + READY_WAIT
    while not ready.is_dir() or len(list(ready.iterdir())) < plan.workers:
        if time.monotonic() > deadline:
            print(f"the workers were not ready within {READY_WAIT:g} s", file=sys.stderr)
            return 1
        time.sleep(LOOK)
    connection = connect(settings.broker, wait=ANSWER_WAIT)
    channel = instrument(connection.channel())
    queue = queues.declare(channel, settings.prefix, plan.timeout)
    # A confirm for each: what is told as published is in the queue, or the producer fails.
    channel.confirm_delivery()
    for number, identity in enumerate(plan.ids()):
        body = json.dumps({"id": identity, "struck": number < plan.struck}).encode()
        properties = pika.BasicProperties(message_id=identity, delivery_mode=2)
        channel.basic_publish("", queue, body, properties, mandatory=True)
        connection.sleep(plan.span / plan.tasks)
    connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
