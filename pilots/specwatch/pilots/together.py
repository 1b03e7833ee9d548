"""How the processes of one experiment wait for each other: by files in the folder that they share."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from .plan import Plan, Settings

LOOK = 0.05
"""Seconds between two looks."""
READY_WAIT = 60.0
"""Seconds within which the workers must be ready, and a broker that was away must be there again."""


def say_ready(settings: Settings, worker: str) -> None:
    """Say that a worker takes messages from now on."""
    folder = _ready(settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / worker).touch()


def workers_are_ready(settings: Settings) -> bool:
    """Wait for all workers of the plan; where time is over first, say so on stderr."""
    folder = _ready(settings)
    if until(lambda: folder.is_dir() and len(list(folder.iterdir())) >= settings.plan.workers, READY_WAIT):
        return True
    print(f"the workers were not ready within {READY_WAIT:g} s", file=sys.stderr)
    return False


def meet(folder: Path, patience: float) -> None:
    """Called by each copy of a task, with a folder of the task: wait until another one has called it too.

    It stands for work that takes longer than the broker's timeout. A fixed time would do that as well, and on a busy
    machine would now and then be over too soon.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / uuid.uuid4().hex).touch()
    until(lambda: len(list(folder.iterdir())) > 1, patience)


def until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait for something, at most so long; whether it is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK)
    return True


class Pace:
    """When a producer publishes: spread over the time in which faults strike, if any do.

    Where the broker was away it goes on as slowly as before, so that the faults after that have traffic under them.
    """

    def __init__(self, plan: Plan) -> None:
        self._step = plan.span / plan.tasks
        self._due = time.monotonic()

    def pause(self) -> float:
        """Seconds until the next message."""
        now = time.monotonic()
        seconds = max(0.0, self._due - now)
        self._due = max(self._due, now) + self._step
        return seconds


def _ready(settings: Settings) -> Path:
    return Path(settings.directory, "ready")
