"""The producer, a process of its own: publishes the tasks as soon as all workers are ready, and ends."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from specwatch.collector.probes import configure
from specwatch.collector.probes.pulsar import instrument

from ..plan import Settings
from ..together import LOOK, READY_WAIT, Pace, workers_are_ready
from . import subscription


def publish(settings: Settings) -> None:
    """Publish all tasks. Raises ``pulsar.PulsarException``."""
    import pulsar

    plan = settings.plan
    client = instrument(subscription.client(settings))
    producer: Any = None
    pace = Pace(plan)
    for number, identity in enumerate(plan.ids()):
        task = {"id": identity, "struck": number < plan.struck}
        time.sleep(pace.pause())
        deadline = time.monotonic() + READY_WAIT
        while True:
            try:
                if producer is None:
                    producer = client.create_producer(subscription.topic(settings))
                producer.send(json.dumps(task).encode(), properties={"id": identity}, partition_key=identity)
                break
            except pulsar.PulsarException as error:
                # Sent again, it may be there twice: two messages, and each is worked on.
                if time.monotonic() > deadline:
                    raise
                print(f"{identity}: {error!r}", file=sys.stderr)
                time.sleep(LOOK)
    client.close()


def main() -> int:
    """Returns the exit code: 1 if the workers did not get ready."""
    settings = Settings.from_environment()
    configure(role="producer")
    if not workers_are_ready(settings):
        return 1
    publish(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
