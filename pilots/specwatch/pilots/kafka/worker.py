"""A worker of the pilot, a process of its own: ``python -m specwatch.pilots.kafka.worker NAME``."""

from __future__ import annotations

import platform
import signal
import sys

from specwatch.collector.probes import configure

from ..plan import Settings
from . import group
from .members import Member


def main() -> int:
    """Run until SIGTERM; returns the exit code."""
    configure(role="worker")
    settings = Settings.from_environment()
    worker = member(settings, f"{sys.argv[1]}@{platform.node()}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    group.make(settings)
    worker.run()
    return 0


def member(settings: Settings, name: str) -> Member:
    """The experiment's kind of member. Imported late: a client may know only one kind."""
    if settings.plan.experiment == "share-group":
        from .share_member import ShareMember

        return ShareMember(settings, name)
    from .group_member import GroupMember

    return GroupMember(settings, name)


if __name__ == "__main__":
    sys.exit(main())
