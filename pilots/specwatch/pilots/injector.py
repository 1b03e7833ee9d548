"""Makes the faults of a schedule happen to an experiment that runs, in a thread of its own (see ``faults``)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from specwatch.collector.probes.emitter import Emitter, Moment, moment

from .errors import PilotError
from .faults import KINDS, Fault, Record
from .proxy import Links
from .restart import Broker
from .run_directory import Line, Trail
from .runtime import guard
from .schedule import Schedule
from .strikes import STRIKES, Steps, Strike
from .wishes import ANYONE

LOOK = 0.02
"""Seconds between two steps."""


class Bench(Protocol):
    """What an injector needs of an experiment."""

    @property
    def workers(self) -> Mapping[str, guard.Process]:
        """By the name that their events have as ``w``: ``worker-1`` or ``worker-1@host``."""

    @property
    def raw(self) -> Path:
        """The folder in which the probes write."""

    @property
    def shared(self) -> Path:
        """The folder that the experiment's processes share, where they look for wishes."""

    def add_worker(self) -> str:
        """Start one more worker under the next name, ``worker-5``, and add it to ``workers``; returns its key there.

        Called from the injector's thread.
        """


class Injector:
    """Makes faults happen. In ``with``, it does so in a thread; ``step`` does it in one's own.

    ``timeout`` is after how many seconds at the latest a message comes again. ``redeliver`` brings that about for a
    key, and returns whether it could. Faults that lack what they need are not proven, and say so.
    """

    def __init__(
        self,
        bench: Bench,
        schedule: Schedule,
        *,
        timeout: float,
        links: Links | None = None,
        broker: Broker | None = None,
        redeliver: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.bench = bench
        self.schedule = schedule
        self.timeout = timeout
        self.links = links
        self.broker = broker
        self.redeliver = redeliver
        self.clock = clock
        self.records: list[Record] = []
        """What became of each fault, in the order in which they were over."""
        self.events: list[Line] = []
        """What the probes have written so far."""
        self._trail = Trail(bench.raw)
        self.first: float | None = None
        """When the first message was published, by ``clock``."""
        self._due = sorted(schedule.faults, key=lambda fault: fault.start)
        self._running: list[tuple[Strike, Steps]] = []
        self._emitter = Emitter(str(bench.raw / "faults.jsonl"), "faults")
        self._over = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._finished = False
        self._failed = ""

    @property
    def is_over(self) -> bool:
        """Whether all faults have happened, and are healed."""
        return self._over.is_set()

    @property
    def is_restarting(self) -> bool:
        """Whether a fault has the broker stopped, or waits for someone to notice that it is there again."""
        return any(strike.fault.target == "broker" for strike, _ in self._running)

    @property
    def doubt(self) -> tuple[str, str] | None:
        """The verdict that the run has at best where a fault is not proven, and why; None where all are."""
        for record in self.records:
            if not record.effect:
                return "inconclusive", record.sentence
        return next((("vacuous", record.sentence) for record in self.records if not record.is_proven), None)

    def __enter__(self) -> Injector:
        self._thread = threading.Thread(target=self._run, name="injector", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Begin no more faults, heal what is not healed, and record what was not over as not proven."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        why_not = self._failed or "the run was over before it"
        for strike, steps in self._running:
            steps.close()
            self._note(strike, why_not)
        self._running.clear()
        for fault in self._due:
            self._tell(Record(fault=fault, target=fault.target, why_not=why_not))
        self._due.clear()
        self._over.set()

    def finish(self) -> list[Record]:
        """When the workers have ended: shift the clocks of their logs and end ``faults.jsonl``; returns ``records``."""
        self.stop()
        if not self._finished:
            self._finished = True
            for record in self.records:
                if record.fault.kind == "clock":
                    self._shift(record)
                    self._tell(record, again=True)
            self._emitter.stop()
        return self.records

    def step(self) -> bool:
        """Do what is due now; returns ``is_over``."""
        self.look()
        now = self.clock()
        for fault in list(self._due):
            if self._may_begin(fault, now):
                self._due.remove(fault)
                strike = Strike(self, fault)
                self._running.append((strike, STRIKES[fault.kind](strike)))
        for strike, steps in list(self._running):
            self._go_on(strike, steps)
        if not self._due and not self._running:
            self._over.set()
        return self.is_over

    def look(self) -> list[Line]:
        """All events so far."""
        new = self._trail.new()
        self.events.extend(new)
        if self.first is None and any(event["action"] == "Publish" for event in new):
            self.first = self.clock()
        return self.events

    # Steps

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and not self.step():
                self._stopping.wait(LOOK)
        except Exception as error:  # As below: no one would hear of it.
            self._failed = f"{type(error).__name__}: {error}"
            self._over.set()

    def _may_begin(self, fault: Fault, now: float) -> bool:
        if fault.start > 0 and (self.first is None or now < self.first + fault.start):
            return False
        # One fault at a time for each worker, and always one worker without: someone must do the work.
        busy = [strike.fault.target for strike, _ in self._running if strike.fault.target != "broker"]
        if fault.target == "broker":
            return all(strike.fault.target != "broker" for strike, _ in self._running)
        return fault.target not in busy and ANYONE not in busy and len(busy) < max(1, len(self.bench.workers) - 1)

    def _go_on(self, strike: Strike, steps: Steps) -> None:
        why_not = ""
        try:
            next(steps)
            return
        except StopIteration:
            pass
        except PilotError as error:
            why_not = error.message
        except Exception as error:  # In a thread no one would hear of it, and the run would wait for ever.
            why_not = f"{type(error).__name__}: {error}"
        self._running.remove((strike, steps))
        self._note(strike, why_not)

    # Records

    def _note(self, strike: Strike, why_not: str) -> None:
        record = strike.record
        if not self._failed:
            self.look()
        if why_not and not record.why_not:
            record.effect, record.why_not = "", why_not
        record.ended = record.ended or moment().monotonic
        if record.began:
            record.traffic = strike.traffic()
        self._tell(record)

    def _tell(self, record: Record, again: bool = False) -> None:
        """Write a fault's events: one, or for a kill one for each emitter that it ended."""
        if not again:
            self.records.append(record)
            if record.fault.kind == "clock" and record.effect:
                return  # What it did is known in the end.
        self._emitter.start()
        fault = record.fault
        params: dict[str, Any] = {"kind": fault.kind, "target": record.target}
        more: dict[str, Any] = {
            "proven": record.is_proven,
            "effect": record.effect,
            "traffic": record.traffic,
            "struck": record.struck,
            "evidence": record.evidence,
            "scheduled": msgspec.to_builtins(fault),
        }
        # One reading of both clocks for begin and end, as far apart as the monotonic one says.
        now = moment()
        if not record.is_proven:
            event = {"action": "FaultUnproven", "params": params, "lane": "emitter", "why": record.sentence, **more}
            self._emitter.emit(event, {}, now)
            return
        began = Moment(now.time - (now.monotonic - record.began), record.began)
        until = _rfc3339(now.time - (now.monotonic - record.ended))
        for part in record.evidence.get("emitters", [None]) or [None]:
            own = params if part is None else {**params, "emitter": part}
            event = {"action": KINDS[fault.kind].action, "params": own, "lane": "fault", "until": until, **more}
            self._emitter.emit(event, {}, began)

    def _shift(self, record: Record) -> None:
        """Let the times of a worker's log be wrong while the fault lasted, as if its clock had been."""
        shifted = 0
        for path in sorted(self.bench.raw.glob("*.jsonl")):
            lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
            if not any(_is_of(line, record.target) for line in lines):
                continue
            for line in lines:
                if record.began <= line.get("monotonic", 0) <= record.ended:
                    line["time"] = shifted_time(line["time"], round(record.fault.by * 1_000_000_000))
                    shifted += 1
            path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        record.evidence["shifted"] = shifted
        record.traffic = shifted
        record.effect = f"{shifted} lines of its log are {abs(record.fault.by):g} s off" if shifted else ""
        record.why_not = "" if shifted else "it wrote nothing while its clock was wrong"


def _is_of(line: Mapping[str, Any], worker: str) -> bool:
    return bool(line.get("params", {}).get("w") == worker)


def shifted_time(text: str, nanoseconds: int) -> str:
    """An RFC 3339 time of a probe, so much later."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    seconds = round(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return _rfc3339(seconds * 1_000_000_000 + int(f"{rest:0<9}"[:9]) + nanoseconds)


def _rfc3339(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09}Z"
