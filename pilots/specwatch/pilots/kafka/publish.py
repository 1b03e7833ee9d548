"""The producer, a process of its own: publishes the tasks as soon as all workers are ready, and ends."""

from __future__ import annotations

import json
import sys
import time

from specwatch.collector.probes import configure
from specwatch.collector.probes.confluent_kafka import Producer

from ..plan import Settings
from ..runtime.kafka import servers
from ..together import READY_WAIT, Pace, workers_are_ready
from . import group


def publish(settings: Settings) -> int:
    """Publish all tasks, each to its partition in turn; returns 0, or how many the broker did not take."""
    plan = settings.plan
    # Sent again by itself, without a second message where the broker has it already.
    producer = Producer(
        {
            "bootstrap.servers": servers(settings.broker),
            "enable.idempotence": True,
            "delivery.timeout.ms": round(READY_WAIT * 1000),
            "linger.ms": 0,
        }
    )
    pace = Pace(plan)
    for number, identity in enumerate(plan.ids()):
        task = {"id": identity, "struck": number < plan.struck}
        time.sleep(pace.pause())
        producer.produce(
            group.topic(settings),
            json.dumps(task).encode(),
            partition=number % group.partitions(settings),
            headers={"id": identity},
        )
        # Where the broker is away it waits, as every producer does.
        if left := producer.flush(READY_WAIT):
            return left
    return 0


def main() -> int:
    """Returns the exit code: 1 if the workers did not get ready, or a message was not taken."""
    settings = Settings.from_environment()
    configure(role="producer")
    if not workers_are_ready(settings):
        return 1
    return int(publish(settings) > 0)


if __name__ == "__main__":
    sys.exit(main())
