"""Does a shorter or a longer visibility timeout of Celery on Redis reduce duplicates, and what does it cost?

``python experiments/visibility_timeout.py`` runs real workers on a real Valkey and PostgreSQL and prints the table of
docs/experiments/visibility-timeout.md. Tasks store a row, which nothing guards, and then work for a while, each for a
time of its own. For each timeout there are two runs: one without any fault, in which a task runs twice because of the
timeout alone, and one in which a worker is killed with a task in its hands, which another has to take over.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from specwatch.cli import check, run
from specwatch.pilots import pilot as pilots
from specwatch.pilots.celery.plan import Plan, plan
from specwatch.pilots.chaos import SWEEP
from specwatch.pilots.schedule import in_turn

TIMEOUTS = (1, 2, 3, 4, 5, 6, 8)
"""Seconds. The sweep that looks for what has timed out comes every second."""
TASKS = 30
LONGEST = 4.0
"""Seconds that the longest task works; the others less, uniformly."""
WORKERS = 2
CONCURRENCY = 2
HEAD = ("visibility timeout", "tasks that work longer", "with a second row", "rows", "verdict", "taken over after")


def main() -> None:
    print(f"| {' | '.join(HEAD)} |\n| --: | --: | --: | --: | --- | --: |")
    for timeout in TIMEOUTS:
        sys.stderr.write(f"visibility timeout {timeout} s\n")
        cells = (f"{timeout} s", *without_faults(timeout), f"{taken_over_after(timeout):.1f} s")
        print(f"| {' | '.join(cells)} |", flush=True)


def without_faults(timeout: int) -> tuple[str, ...]:
    """Of ``TASKS`` tasks: how many work longer, and have a second row; the rows; and the verdict, task by task."""
    own = planned(timeout, tasks=TASKS, longest=LONGEST)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "run")
        (row,) = run.run(pilots.load("celery"), [own], None, kept, asked())
        options = check.command.make_context("check", [str(kept), "--scope", "key"]).params
        tasks = check.judged(str(kept), (), options).behaviours
    rows = row.outcome.rows.values()
    longer = sum(own.lasts(key) > timeout for key in row.outcome.keys)
    words = [f"{word} {count}" for word, count in msgspec.to_builtins(tasks).items() if count and word != "total"]
    return str(longer), str(sum(count > 1 for count in rows)), str(sum(rows)), ", ".join(words)


def taken_over_after(timeout: int) -> float:
    """Seconds from the receipt of a task whose worker was then killed to its receipt by another worker."""
    own = msgspec.structs.replace(planned(timeout, tasks=4, longest=0.0), faults="kill")
    faults = in_turn(["kill"], tasks=own.tasks, workers=WORKERS, seed=own.seed, timeout=timeout + SWEEP)
    (row,) = run.run(pilots.load("celery"), [own], faults, None, asked())
    (record,) = row.outcome.faults
    if not record.is_proven:
        raise SystemExit(record.sentence)
    received = [event.time for event in row.events if event.action == "Pickup" and event.key == record.struck[0]]
    first, second, *_ = [time for time in received if time is not None]
    return (second - first) / 1e9


def planned(timeout: int, *, tasks: int, longest: float) -> Plan:
    """A plan in which no task meets its other copies: each works for its time."""
    made = plan("faulty", tasks=tasks, workers=WORKERS, seed=1)
    return msgspec.structs.replace(made, timeout=float(timeout), struck=0, concurrency=CONCURRENCY, longest=longest)


def asked() -> dict[str, object]:
    """The options of ``specwatch run celery --mode faulty``."""
    return run.command.make_context("run", ["celery", "--mode", "faulty"]).params


if __name__ == "__main__":
    main()
