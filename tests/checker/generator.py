"""Logs of a Celery application on Redis as they really are, of which it is known what is true.

A small simulation of a broker, clients and workers whose guard claims an attempt before its effect: prefetched copies,
retries, warm restarts that give copies back, crashes that leave copies behind, visibility timeouts. All that it does is
a behaviour of CeleryRedis. Each process writes native events by a clock of its own; then records are lost, files are
rotated, the beginning is cut off, or a second execution is put in.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Json = Any

SKEW = 1.0
"""Seconds: the most that two clocks differ."""

BEGIN = 1_900_000_000.0


@dataclass
class Copy:
    """A delivery that a worker holds."""

    task: str
    attempt: int
    phase: str = "held"


@dataclass
class Process:
    """A client or a worker: its clock's offset, its life, and what it has written of it."""

    name: str
    offset: float
    boot: int = 0
    seq: int = 0
    up: bool = False
    copies: list[Copy] = field(default_factory=list)


@dataclass
class Record:
    """A record with the true time of what it tells, which no one sees."""

    time: float
    event: dict[str, Json]

    @property
    def logged(self) -> float:
        """The time by its process's clock."""
        time = self.event["time"]
        assert isinstance(time, float)
        return time

    @property
    def key(self) -> str | None:
        key = self.event.get("key")
        return key if isinstance(key, str) else None


@dataclass
class Log:
    """What was written. ``touched``: the keys of which something is missing, or about which something may be."""

    records: list[Record]
    touched: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    """The keys that were executed twice, and the log tells of both."""

    def tasks(self) -> set[str]:
        return {record.key for record in self.records if record.key is not None}

    def life(self, key: str) -> tuple[float, float]:
        """The first and last time of a task, as logged."""
        times = [record.logged for record in self.records if record.key == key]
        return min(times), max(times)


class Application:
    """The simulation. ``crashes``: whether workers die."""

    def __init__(self, draw: Random, workers: int = 4, *, crashes: bool = False) -> None:
        self.draw = draw
        self.crashes = crashes
        self.now = BEGIN
        self.records: list[Record] = []
        self.queue: list[tuple[str, int, bool]] = []
        self.late: list[tuple[float, str, int]] = []
        """Copies that their worker will not touch in time: when the sweep puts them back."""
        self.claims: dict[tuple[str, int], Copy] = {}
        self.retries: dict[str, int] = {}
        self.left: list[tuple[Process, int, str]] = []
        """What a crash left open: whose life, and of which task."""
        self.clients = [self.process(f"client-{number}") for number in range(2)]
        self.workers = [self.process(f"w{number}") for number in range(1, workers + 1)]
        for process in (*self.clients, *self.workers):
            self.start(process)

    def process(self, name: str) -> Process:
        return Process(name, self.draw.uniform(-SKEW / 2, SKEW / 2))

    def tell(self, process: Process, action: str, lane: Json = None, **params: Json) -> None:
        self.now += self.draw.expovariate(20.0)
        process.seq += 1
        event: dict[str, Json] = {
            "action": action,
            "emitter": process.name,
            "boot": f"{process.name}-{process.boot}",
            "seq": process.seq,
            "time": round(self.now + process.offset, 3),
        }
        if lane is not None:
            event["lane"] = lane
        else:
            event |= {"params": params, "key": params["t"]}
        self.records.append(Record(self.now, event))

    def start(self, process: Process) -> None:
        process.boot, process.seq, process.up = process.boot + 1, 0, True
        self.tell(process, "EmitterStart", "emitter")

    def run(self, tasks: int) -> Log:
        waiting = [f"t{number:05}" for number in range(tasks)]
        while waiting or self.queue or self.late or any(worker.copies for worker in self.workers):
            if waiting and len(self.queue) < 6:
                task = waiting.pop(0)
                self.retries[task] = self.draw.choice([0, 0, 0, 0, 1])
                self.tell(self.draw.choice(self.clients), "Publish", t=task)
                self.queue.append((task, 0, False))
            self.sweep()
            self.work(self.draw.choice(self.workers))
        for process in (*self.clients, *self.workers):
            if process.up:
                self.tell(process, "EmitterStop", "emitter")
        return Log(self.records, {task for _, _, task in self.left})

    def sweep(self) -> None:
        for entry in [entry for entry in self.late if entry[0] <= self.now]:
            self.late.remove(entry)
            self.queue.append((entry[1], entry[2], True))
        if not self.queue and self.late:
            self.now += 0.5

    def work(self, worker: Process) -> None:
        """One thing that a worker does next."""
        if not worker.up:
            if self.draw.random() < 0.2:
                self.start(worker)
        elif self.draw.random() < 0.01:
            self.restart(worker)
        elif self.queue and len(worker.copies) < 3 and self.draw.random() < 0.6:
            self.pick_up(worker)
        elif worker.copies:
            self.go_on(worker, worker.copies[0])

    def pick_up(self, worker: Process) -> None:
        task, attempt, redelivered = self.queue.pop(0)
        self.tell(worker, "Pickup", t=task, w=worker.name, a=attempt, r=redelivered)
        worker.copies.append(Copy(task, attempt))
        if not redelivered and self.retries[task] == 0 and self.draw.random() < 0.03:
            self.late.append((self.now + 5, task, attempt))

    def go_on(self, worker: Process, copy: Copy) -> None:
        own: dict[str, Json] = {"t": copy.task, "w": worker.name, "a": copy.attempt}
        if copy.phase == "held":
            self.tell(worker, "Start", **own)
            copy.phase = "begun"
        elif copy.phase == "begun" and copy.attempt < self.retries[copy.task]:
            self.tell(worker, "Retry", **own)
            self.queue.append((copy.task, copy.attempt + 1, False))
            copy.phase = "done"
        elif copy.phase == "begun":
            claimed = self.claims.setdefault((copy.task, copy.attempt), copy)
            copy.phase = "passed" if claimed is copy else "found"
        elif copy.phase in ("passed", "found"):
            self.tell(worker, "Execute" if copy.phase == "passed" else "Skip", **own)
            copy.phase = "over"
        elif copy.phase == "over":
            self.tell(worker, "Done", **own)
            copy.phase = "done"
        else:
            self.tell(worker, "Ack", **own)
            worker.copies.remove(copy)

    def restart(self, worker: Process) -> None:
        """A warm stop ends what has begun and gives back the rest; a crash leaves what has not begun to the sweep."""
        while worker.copies and worker.copies[0].phase != "held":
            self.go_on(worker, worker.copies[0])
        swept = {(task, attempt) for _, task, attempt in self.late}
        if any((copy.task, copy.attempt) in swept for copy in worker.copies):
            return
        if self.crashes and self.draw.random() < 0.5:
            for copy in worker.copies:
                self.left.append((worker, worker.boot, copy.task))
                self.late.append((self.now + 5, copy.task, copy.attempt))
        else:
            for copy in worker.copies:
                self.tell(worker, "RestoreOnShutdown", t=copy.task, w=worker.name, a=copy.attempt)
                self.queue.append((copy.task, copy.attempt, True))
            self.tell(worker, "EmitterStop", "emitter")
        worker.copies, worker.up = [], False


# --- damage -----------------------------------------------------------------------------------------------------------


def lose(draw: Random, log: Log, share: float) -> Log:
    """The log without some of its steps. Touched are the keys that may have been alive while one was lost, as far as
    times in the log can tell.
    """
    lost = [record for record in log.records if record.key is not None and draw.random() < share]
    kept = [record for record in log.records if record not in lost]
    touched = set(log.touched)
    lives = {key: log.life(key) for key in log.tasks()}
    for record in lost:
        emitter, boot = record.event["emitter"], record.event["boot"]
        own = [other for other in kept if other.event["emitter"] == emitter and other.event["boot"] == boot]
        before = max((other.logged for other in own if other.time < record.time), default=BEGIN) - SKEW
        after = min((other.logged for other in own if other.time > record.time), default=record.logged) + SKEW
        touched |= {key for key, (begin, end) in lives.items() if begin <= after and end >= before}
    # Of a second execution that was never told no one knows; a gap is named, and filled with nothing.
    untold = {record.key for record in lost if record.event["action"] == "Execute"}
    return Log(kept, touched, log.doubled - untold)


def cut(log: Log, time: float) -> Log:
    """The log from some time on. Touched are the keys that were alive then."""
    kept = [record for record in log.records if record.time >= time]
    gone = {record.key for record in log.records if record.time < time and record.key is not None}
    return Log(kept, log.touched | gone, log.doubled)


def execute_again(draw: Random, log: Log, count: int) -> Log:
    """The log in which some tasks were executed once more, after a redelivery that the guard should have stopped."""
    records = list(log.records)
    done = {record.key: record for record in records if record.event["action"] == "Execute"}
    chosen = draw.sample(sorted(key for key in done if key is not None and key not in log.touched), count)
    for key in chosen:
        first = done[key]
        # Right after the first worker has told of its own, by the same worker: its own order leaves no doubt.
        again = {**first.event, "seq": first.event["seq"] + 0.5}
        records.insert(records.index(first) + 1, Record(first.time, again))
    return renumbered(Log(records, set(log.touched), set(chosen)))


def renumbered(log: Log) -> Log:
    """The log with the numbers of each life anew, in the order in which they stand."""
    lives: dict[tuple[str, str], int] = {}
    records = []
    for record in log.records:
        life = record.event["emitter"], record.event["boot"]
        lives[life] = lives.get(life, 0) + 1
        records.append(Record(record.time, {**record.event, "seq": lives[life]}))
    return Log(records, log.touched, log.doubled)


# --- files ------------------------------------------------------------------------------------------------------------


def write(draw: Random, log: Log, folder: Path) -> list[str]:
    """A log of each process, rotated: the older files have numbers, and the oldest are compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {}
    for record in log.records:
        lines.setdefault(record.event["emitter"], []).append(json.dumps(record.event) + "\n")
    paths: list[str] = []
    for name, own in lines.items():
        parts = split(own, draw.choice([1, 1, 2, 3]))
        for age, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True):
            path = folder / (f"{name}.jsonl.{age}" if age else f"{name}.jsonl")
            text = "".join(part).encode()
            if age > 1:
                path = path.with_name(f"{path.name}.gz")
                text = gzip.compress(text, mtime=0)
            path.write_bytes(text)
            paths.append(str(path))
    return paths


def split(lines: Sequence[str], count: int) -> list[list[str]]:
    size = -(-len(lines) // count)
    return [list(lines[first : first + size]) for first in range(0, len(lines), size)]
