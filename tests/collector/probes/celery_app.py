"""The Celery application of the tests. Run as a program it is their producer.

Configured by the environment: BROKER is a URL, VISIBILITY_TIMEOUT seconds, ACKS late or early, TASKS_PER_CHILD a
number. A producer reads one JSON object a line: ``{"task": NAME, "args": [...], "options": {...}}`` publishes, and the
task's id is printed; ``{"revoke": ID}`` revokes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import Celery, Task  # type: ignore[import-untyped]
from celery.exceptions import Ignore, Reject  # type: ignore[import-untyped]

from specwatch.collector.probes.celery import executed, instrument, skipped, undone

app = Celery("celery_app", broker=os.environ["BROKER"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": float(os.environ.get("VISIBILITY_TIMEOUT", "3600")),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
    task_acks_late=os.environ.get("ACKS", "late") == "late",
    task_ignore_result=True,
    worker_max_tasks_per_child=int(os.environ.get("TASKS_PER_CHILD", "0")) or None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
)
instrument(app)


def task(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """``app.task``, which has no types."""
    made: Callable[[Callable[..., None]], Any] = app.task(**options)
    return made


class Foreign(Task):  # type: ignore[misc]
    """A base that is not the app's own."""


def wait_for(path: str) -> None:
    """Until the test makes this file: bodies go on when they are told to, so that no test counts on a duration."""
    deadline = time.monotonic() + 30
    while not Path(path).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.01)


@task()
def effect() -> None:
    executed()


@task(base=Foreign)
def foreign() -> None:
    executed()


@task()
def silent() -> None:
    """Says nothing of its effect."""


@task()
def guarded() -> None:
    skipped()


@task()
def taken_back() -> None:
    executed()
    undone()
    raise RuntimeError("the transaction failed")


@task(bind=True, max_retries=5)
def twice(self: Any) -> None:
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    executed()


@task()
def refuse() -> None:
    raise Reject("never", requeue=False)


@task(bind=True)
def once_again(self: Any) -> None:
    if not self.request.delivery_info["redelivered"]:
        raise Reject("later", requeue=True)
    executed()


@task()
def ignore() -> None:
    raise Ignore


@task()
def boom() -> None:
    raise ValueError("boom")


@task(bind=True)
def replace_itself(self: Any) -> None:
    raise self.replace(effect.si())


@task()
def hold(path: str) -> None:
    wait_for(path)
    executed()


@task(bind=True)
def hold_once(self: Any, path: str) -> None:
    """Waits at the first delivery, and not when it is delivered again."""
    if not self.request.delivery_info["redelivered"]:
        wait_for(path)
    executed()


@task(bind=True)
def die(self: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task(bind=True, reject_on_worker_lost=True)
def die_once(self: Any) -> None:
    if not self.request.delivery_info["redelivered"]:
        os.kill(os.getpid(), signal.SIGKILL)
    executed()


@task(bind=True, retry_on_worker_lost=True, default_retry_delay=0)
def die_and_retry(self: Any) -> None:
    if self.request.retries == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    executed()


@task(time_limit=1)
def too_long(path: str) -> None:
    wait_for(path)


def main() -> None:
    """Publish what stdin says."""
    for line in sys.stdin:
        command = json.loads(line)
        if "revoke" in command:
            app.control.revoke(command["revoke"], terminate=command.get("terminate", False))
            print(command["revoke"], flush=True)
        else:
            result = app.send_task(command["task"], command.get("args", []), **command.get("options", {}))
            print(result.id, flush=True)


if __name__ == "__main__":
    main()
