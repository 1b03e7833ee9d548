"""How fast logs become behaviours, and how much memory that takes: native events and bound JSON lines, each key once.

``python benchmarks/collect.py [EVENTS …]`` prints a line for each size and format; each is measured in a process of its
own. Memory is the peak of the whole process, interpreter included.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SIZES = (10_000, 100_000, 1_000_000)
BINDING = """
[key]
param = "t"
from = "task_id"

[constants]
Tasks = { keys = true }

[[rule]]
match = { event = "task.pickup" }
action = "Pickup"
params = { t = "$task_id" }
emitter = "$hostname/$pid"
seq = "$seq"
time = "$timestamp"
"""


def native(count: int) -> Iterator[str]:
    """Events with everything that a probe gives."""
    for number in range(1, count + 1):
        yield json.dumps(
            {
                "action": "Pickup",
                "params": {"t": f"{number:032x}"},
                "key": f"{number:032x}",
                "emitter": f"worker-{number % 4}/{number % 4}",
                "seq": (number + 3) // 4 if number % 4 else number // 4,
                "time": f"2030-01-01T10:{number // 60_000 % 60:02d}:{number // 1000 % 60:02d}.{number % 1000:03d}Z",
            }
        )


def structlog(count: int) -> Iterator[str]:
    """The same, as an application logs it."""
    for line in native(count):
        event = json.loads(line)
        hostname, pid = event["emitter"].split("/")
        yield json.dumps(
            {
                "event": "task.pickup",
                "level": "info",
                "task_id": event["key"],
                "hostname": hostname,
                "pid": int(pid),
                "seq": event["seq"],
                "timestamp": event["time"],
            }
        )


def measure(form: str, path: str) -> None:
    """Collect one log, and print what it took as JSON."""
    from specwatch.collector.assemble import collect
    from specwatch.collector.binding import parse_binding

    begun, cpu = time.perf_counter(), time.process_time()
    collected = collect([path], parse_binding(BINDING) if form == "structlog" else None)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert not collected.ledger.gaps, "the log is whole"
    print(json.dumps({"events": collected.ledger.mapped, "seconds": seconds, "cpu": cpu, "peak_mb": peak}))


def main(arguments: list[str]) -> None:
    """Write a log of each size and format, and measure each in its own process."""
    if arguments[:1] == ["--measure"]:
        measure(*arguments[1:])
        return
    print(f"{'format':10} {'events':>9} {'CPU s':>7} {'events/s':>9} {'peak MB':>8}")
    for size in [int(argument) for argument in arguments] or SIZES:
        for form, lines in (("native", native), ("structlog", structlog)):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "log.jsonl")
                with path.open("w") as log:
                    log.writelines(line + "\n" for line in lines(size))
                answer = subprocess.run(
                    [sys.executable, __file__, "--measure", form, str(path)], check=True, capture_output=True, text=True
                )
            row = json.loads(answer.stdout)
            speed = row["events"] / row["cpu"]
            print(f"{form:10} {row['events']:>9,} {row['cpu']:>7.2f} {speed:>9,.0f} {row['peak_mb']:>8.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
