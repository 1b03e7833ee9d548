"""How fast a behaviour is replayed and a model explored, and how both grow.

``python benchmarks/replay.py`` prints three tables in Markdown. Times are CPU seconds of the work alone; memory is the
peak of a process of its own, interpreter and spec included. The traces are those of the Celery model of TLC's table in
docs/performance.md: random steps of Publish, Pickup and VisTimeout over so many ids, no step hidden, ids bound.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from specwatch.checker import check, explore, load_spec
from specwatch.checker.behaviour import Event

CELERY = Path(__file__).parents[1] / "specs" / "celery"
REPLAYS = ((1_000, 100), (10_000, 100), (1_000, 1_000))
TASKS = (100, 1_000, 10_000, 100_000)
EXPLORATIONS = (2, 3, 4, 5)


def trace(count: int, ids: int) -> list[Event]:
    """A behaviour of the model in which no id executes."""
    draw = random.Random(1)
    ready: list[int] = []
    active: list[int] = []
    published = 0
    events: list[Event] = []
    while len(events) < count:
        possible = (
            ["PublishTask"] * (published < ids) + ["PickupTask"] * bool(ready) + ["VisTimeoutExpired"] * bool(active)
        )
        action = draw.choice(possible)
        if action == "PublishTask":
            task, published = published, published + 1
            ready.append(task)
        else:
            source, target = (ready, active) if action == "PickupTask" else (active, ready)
            task = source.pop(draw.randrange(len(source)))
            target.append(task)
        events.append(Event(action=action, params={"id": task}))
    return events


def replay(count: int, ids: int) -> str:
    """One row of the first table."""
    spec = load_spec(CELERY / "CeleryETA.tla", CELERY / "CeleryETA.faulty.cfg", constants={"MaxTasks": ids})
    events = trace(count, ids)
    began = time.process_time()
    verdict = check(spec, events)
    seconds = time.process_time() - began
    assert verdict.verdict == "conforms"
    return f"| {count:,} events, {ids:,} ids | {seconds:.2f} | {count / seconds:,.0f} | {_peak():.0f} |"


def tasks_by_key(tasks: int) -> str:
    """One row of the second table: so many tasks, each published, picked up, started, executed, done and acked."""
    worker = {"w": "w1", "a": 0}
    steps = {
        "Publish": {},
        "Pickup": {**worker, "r": False},
        "Start": worker,
        "Execute": worker,
        "Done": worker,
        "Ack": worker,
    }
    names = [f"{number:032x}" for number in range(tasks)]
    events = [
        Event(action=action, params={"t": name, **params}, key=name)
        for first in range(0, tasks, 50)
        for action, params in steps.items()
        for name in names[first : first + 50]
    ]
    constants = {"Tasks": {"#set": names}, "Workers": {"#set": ["w1"]}}
    spec = load_spec(CELERY / "CeleryRedis.tla", CELERY / "CeleryRedis.faulty.cfg", constants=constants)
    began = time.process_time()
    verdict = check(spec, events, hidden=["Publish", "Start", "Check", "Resend", "VisTimeout"])
    seconds = time.process_time() - began
    assert verdict.verdict == "conforms"
    return f"| {tasks:,} tasks, {len(events):,} events | {seconds:.2f} | {len(events) / seconds:,.0f} | {_peak():.0f} |"


def exploration(tasks: int) -> str:
    """One row of the second table."""
    spec = load_spec(CELERY / "CeleryETA.tla", CELERY / "CeleryETA.idempotent.cfg", constants={"MaxTasks": tasks})
    began = time.process_time()
    found = explore(spec, deadlock=False)
    seconds = time.process_time() - began
    return (
        f"| {tasks} | {found.generated:,} | {found.distinct:,} | {found.depth} | {seconds:.2f} | "
        f"{found.generated / seconds:,.0f} | {_peak():.0f} |"
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Each row in a process of its own, so that no peak hides another."""
    if len(sys.argv) > 1:
        rows: dict[str, Callable[..., str]] = {"replay": replay, "tasks": tasks_by_key, "explore": exploration}
        print(rows[sys.argv[1]](*map(int, sys.argv[2:])))
        return
    print("| replay | CPU s | events/s | peak MB |\n|---|---|---|---|", flush=True)
    for row in REPLAYS:
        subprocess.run([sys.executable, __file__, "replay", *map(str, row)], check=True)
    print("\n| separable, 5 actions hidden | CPU s | events/s | peak MB |\n|---|---|---|---|", flush=True)
    for tasks in TASKS:
        subprocess.run([sys.executable, __file__, "tasks", str(tasks)], check=True)
    print(
        "\n| MaxTasks | generated | distinct | depth | CPU s | generated/s | peak MB |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for tasks in EXPLORATIONS:
        subprocess.run([sys.executable, __file__, "explore", str(tasks)], check=True)


if __name__ == "__main__":
    main()
