"""What an application imports to say what it does: native events as JSON lines, and as OpenTelemetry log records.

    from specwatch.collector.probes import configure, emit

    configure("/var/log/app/events")          # or SPECWATCH_EVENTS=/var/log/app/events
    emit("Execute", t=task_id, w="worker-2")

``probes.celery.instrument(app)`` makes a Celery application say what its workers do; ``StructlogProcessor`` turns
structlog events into the same lines. A probe never breaks the application: what fails inside is counted
(``failures``), logged once, and never raised. Importing this package loads neither OpenTelemetry nor Celery.
"""

from __future__ import annotations

from .emitter import Moment, configure, emit, failures, moment, start, stop
from .structlog import StructlogProcessor

__all__ = ["Moment", "StructlogProcessor", "configure", "emit", "failures", "moment", "start", "stop"]
