"""A worker of the pilot, a process of its own: ``python -m specwatch.pilots.celery.worker NAME``.

It is what ``celery worker`` starts, without the command line around it, whose import takes a second a worker.
"""

from __future__ import annotations

import logging
import platform
import sys
from typing import Any

from celery.signals import worker_ready  # type: ignore[import-untyped]

from ..together import say_ready
from .app import make
from .plan import Settings


def main() -> int:
    """Run until SIGTERM asks for a warm shutdown; returns the exit code."""
    settings = Settings.from_environment()

    @worker_ready.connect(weak=False)  # type: ignore[untyped-decorator]
    def tell(sender: Any, **_: Any) -> None:
        say_ready(settings, sender.hostname)

    worker = make(settings).Worker(
        hostname=f"{sys.argv[1]}@{platform.node()}",
        pool_cls="prefork",
        concurrency=settings.plan.concurrency,
        loglevel=logging.INFO,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return worker.exitcode or 0


if __name__ == "__main__":
    sys.exit(main())
