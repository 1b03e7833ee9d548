"""What a worker of the pilot loads: the application of the experiment that has started it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from celery.signals import worker_ready  # type: ignore[import-untyped]

from .app import make
from .plan import Settings

settings = Settings.from_environment()
app = make(settings)


@worker_ready.connect  # type: ignore[untyped-decorator]
def say_ready(sender: Any, **_: Any) -> None:
    """Tell the producer that this worker takes tasks."""
    folder = Path(settings.directory, "ready")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / sender.hostname).touch()
