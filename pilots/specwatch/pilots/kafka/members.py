"""What the members of both kinds of group have in common: a task's work, and what faults want of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from .. import together, wishes
from ..guards import GUARDS, Copy
from ..plan import Settings
from ..wishes import Wish

LISTEN = 0.2
"""Seconds that a poll waits: within so long a worker hears that it is to stop."""


class Member:
    """A worker's loop. ``executed`` and ``skipped`` are its probe's words."""

    def __init__(
        self, settings: Settings, name: str, executed: Callable[[], None], skipped: Callable[[], None]
    ) -> None:
        self.settings = settings
        self.name = name
        self.executed = executed
        self.skipped = skipped
        self.stopping = threading.Event()

    def run(self) -> None:
        """Take messages until the worker is to stop; then leave the group."""
        raise NotImplementedError

    def handle(self, task: dict[str, Any], body: AbstractContextManager[None]) -> Wish | None:
        """Do a task's work in its body, and wait after it where a fault wants that; what a fault wants, if any does."""
        wish = wishes.take(self.settings.directory, self.name, task["id"])
        meet = None
        if wish is not None and wish.kind == "long":
            meet = wish.wait
        elif task["struck"]:
            folder = Path(self.settings.directory, "copies", task["id"])
            meet = lambda: together.meet(folder, self.settings.plan.patience)  # noqa: E731
        copy = Copy(self.settings, (task["id"], 0), self.name, meet, self.executed, self.skipped)
        with body:
            GUARDS[self.settings.plan.mode](copy)
        if wish is not None and wish.kind == "hold":
            wish.wait()
        return wish
