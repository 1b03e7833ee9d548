"""The application: one task, which stores a row in the way of its mode."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery  # type: ignore[import-untyped]
from celery.exceptions import Reject  # type: ignore[import-untyped]

from specwatch.collector.probes.celery import executed, instrument, skipped

from .. import together, wishes
from ..guards import GUARDS, Copy
from . import QUEUE
from .plan import Settings


def make(settings: Settings) -> Celery:
    """The application of an experiment, with the task ``work`` and the broker's timeout and sweep set short."""
    plan = settings.plan
    app = Celery("pilot", broker=settings.broker, set_as_current=False)
    app.conf.update(
        broker_transport_options={
            "visibility_timeout": int(plan.timeout),
            # kombu 5.7 sweeps every interval × throttle seconds, by default 100.
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "global_keyprefix": settings.prefix,
        },
        broker_connection_retry_on_startup=True,
        task_default_queue=QUEUE,
        task_acks_late=plan.late_ack,
        # A broker that is away for a while keeps no one from publishing for good.
        task_publish_retry_policy={"max_retries": None, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 1},
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
    )
    instrument(app, execute="told")

    @app.task(name="pilot.work", bind=True, max_retries=None)  # type: ignore[untyped-decorator]
    def work(self: Any, struck: bool) -> None:
        request = self.request
        if request.retries < plan.retries:
            raise self.retry(countdown=0)
        wish = wishes.take(settings.directory, request.hostname, request.id)
        meet = meeting(settings, request.id, request.retries) if struck else None
        if wish is not None and wish.kind == "long":
            meet = wish.wait
        elif meet is None and plan.longest:
            meet = partial(time.sleep, plan.lasts(request.id))
        key = (request.id, request.retries)
        GUARDS[plan.mode](Copy(settings, key, request.hostname, meet, executed, skipped))
        if wish is not None and wish.kind == "hold":
            wish.wait()
        if wish is not None and wish.kind == "nack":
            raise Reject("asked for again", requeue=True)

    return app


def meeting(settings: Settings, task: str, attempt: int) -> Callable[[], None]:
    """What a copy calls to wait until another copy of its task and attempt has called it too."""
    folder = Path(settings.directory, "copies", f"{task}.{attempt}")
    return lambda: together.meet(folder, settings.plan.patience)
