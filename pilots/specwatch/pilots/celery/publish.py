"""The producer, a process of its own: publishes the tasks as soon as all workers are ready, and ends."""

from __future__ import annotations

import sys
import time

from specwatch.collector.probes import configure

from ..together import Pace, workers_are_ready
from .app import make
from .plan import Settings


def main() -> int:
    """Returns the exit code: 1 if the workers did not get ready."""
    settings = Settings.from_environment()
    plan = settings.plan
    configure(role="producer")
    work = make(settings).tasks["pilot.work"]
    if not workers_are_ready(settings):
        return 1
    pace = Pace(plan)
    for number, identity in enumerate(plan.ids()):
        time.sleep(pace.pause())
        struck = number < plan.struck
        countdown = plan.countdown if struck and plan.experiment == "eta" else None
        work.apply_async(args=[struck], task_id=identity, countdown=countdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
