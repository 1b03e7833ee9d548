"""What a probe costs an application: CPU time for an event, and for importing the probes.

``python benchmarks/probes.py`` prints a table. Each row is a process of its own: what is loaded in it is the row's
matter. ``least`` is the cheapest batch, which is what an event costs; ``median`` shows how busy the machine was. Files
are written where temporary files are.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH = 200
BATCHES = 300
IMPORTS = 7
ALLOWED = 10.0
"""Microseconds for an event, written to a file, without an SDK."""

ROWS = {
    "nothing configured": "",
    "file": "file",
    "file, OpenTelemetry's API loaded": "file api",
    "file and SDK, in memory": "file sdk",
    "structlog processor, file": "file structlog",
}


def event() -> Callable[[], Any]:
    """What a Celery worker emits for each step of a task."""
    from specwatch.collector.probes import emit

    task = "0aa5f1c9-1b1f-4a39-8a3e-7c0e7d1f2b11"
    extra = {"task": "app.job", "delivery_tag": "5c2b8c1e-3c0f-4d4e-9a57-9a1f4b0f7e55", "redelivered": False}
    return lambda: emit("Execute", t=task, w="worker-1@host", a=0, key=task, attempt=0, extra=extra)


def logged() -> Callable[[], Any]:
    """The same from a structlog event, without what structlog itself costs."""
    from specwatch.collector.probes import StructlogProcessor

    process = StructlogProcessor()
    task = "0aa5f1c9-1b1f-4a39-8a3e-7c0e7d1f2b11"
    fields = {"event": "stored", "action": "Execute", "params": {"t": task, "w": "w", "a": 0}, "key": task, "rows": 1}
    return lambda: process(None, "info", fields)


def measure(parts: str) -> None:
    """Print the least and the median of the batches, in microseconds for an event."""
    if "api" in parts:
        from opentelemetry import _logs, trace  # noqa: F401 (its being loaded is what is measured)
    if "sdk" in parts:
        from opentelemetry import _logs
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

        provider = LoggerProvider()
        exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
        _logs.set_logger_provider(provider)
    tell = logged() if "structlog" in parts else event()
    costs = []
    for _ in range(BATCHES):
        begun = time.process_time_ns()
        for _ in range(BATCH):
            tell()
        costs.append((time.process_time_ns() - begun) / BATCH / 1000)
    print(min(costs), statistics.median(costs))


def imported(names: str, byte_code: str) -> float:
    """Milliseconds of CPU that starting Python and importing takes, the least of some runs."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": byte_code, "PYTHONDONTWRITEBYTECODE": ""}
    costs = []
    for _ in range(IMPORTS):
        process = subprocess.Popen([sys.executable, "-c", f"import {names}"], env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        costs.append((usage.ru_utime + usage.ru_stime) * 1000)
    return min(costs)


def main(arguments: list[str]) -> None:
    """Print the tables; exit 1 where an event costs more than is allowed."""
    if arguments[:1] == ["--measure"]:
        measure(arguments[1])
        return
    print(f"{'CPU for an event':36}{'least µs':>10}{'median µs':>11}")
    least = {}
    with tempfile.TemporaryDirectory() as folder:
        for row, parts in ROWS.items():
            path = str(Path(folder, "events")) if "file" in parts else ""
            answer = subprocess.run(
                [sys.executable, __file__, "--measure", parts],
                env={**os.environ, "SPECWATCH_EVENTS": path},
                check=True,
                capture_output=True,
                text=True,
            )
            least[row], median = (float(figure) for figure in answer.stdout.split())
            print(f"{row:36}{least[row]:10.2f}{median:11.2f}")
        byte_code = str(Path(folder, "byte-code"))
        print(f"\n{'CPU for importing (with byte code)':36}{'ms':>10}")
        python = imported("sys", byte_code)
        for names in ("specwatch.collector.probes", "msgspec", "logging", "structlog", "celery"):
            print(f"{names:36}{imported(names, byte_code) - python:10.1f}")
    if least["file"] > ALLOWED:
        raise SystemExit(f"an event costs {least['file']:.1f} µs; {ALLOWED:g} are allowed")


if __name__ == "__main__":
    main(sys.argv[1:])
