"""One experiment: real workers, a real fault, real rows. It emits, waits, stops and counts, and judges nothing."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from . import run_directory, tables
from .errors import PilotError
from .faults import Record
from .pilot import Pilot
from .plan import Plan, Settings
from .proxy import Links
from .run_directory import Line, Trail
from .runtime import Server, ServerError, guard
from .runtime.servers import connect_postgres

if TYPE_CHECKING:
    import psycopg

LOOK = 0.2
"""Seconds between two looks at the events and the broker."""
DEADLINE = 60.0
"""Seconds within which all must have been done, and one more for each ten tasks."""
QUIET = 2
"""So many looks in a row must show that nothing goes on."""
STOP_WAIT = 10.0
"""Seconds for a worker to finish what it works on."""


class Outcome(msgspec.Struct, kw_only=True):
    """What an experiment came to, before anyone has judged it."""

    directory: Path
    """The run directory, without ``verdict.json`` and ``report.txt``."""
    keys: list[str]
    """The tasks that were published."""
    executions: dict[str, int]
    """By key, as the events tell: Execute − Undo."""
    rows: dict[str, int]
    """By key, as the database tells, counted after the workers had stopped."""
    restarted: int
    """Keys whose body began more than once for one attempt: the fault did strike."""
    unsettled: str | None
    """What was still going on when the time was over; None where all was done."""
    versions: dict[str, Any]
    left: frozenset[str] = frozenset()
    """The keys of what workers held when they were killed: what they did of it last, they may not have told."""
    faults: list[Record] = []
    """What became of each fault that was injected."""
    doubt: tuple[str, str] | None = None
    """The verdict that the run has at best where a fault is not proven, and why."""

    @property
    def disagreements(self) -> list[tuple[str, int, int]]:
        """(key, executions, rows) where the log and the database do not tell the same, but for what was ``left``."""
        return [
            (key, self.executions.get(key, 0), self.rows.get(key, 0))
            for key in sorted({*self.executions, *self.rows} - self.left)
            if self.executions.get(key, 0) != self.rows.get(key, 0)
        ]


class Experiment:
    """The workers and the producer of one experiment; use it in ``with``, then ``settle``, then ``finish``.

    ``directory`` becomes the run directory and must not hold another. ``scratch`` is a folder for what is not kept;
    experiments in different modes may share it. With ``links`` each worker reaches the broker through its proxy.
    Raises ``PilotError`` and ``ServerError``.
    """

    def __init__(
        self,
        pilot: Pilot,
        plan: Plan,
        servers: Mapping[str, Server],
        directory: Path,
        scratch: Path,
        links: Links | None = None,
    ) -> None:
        self.pilot = pilot
        self.plan = plan
        self.servers = servers
        self.links = links
        self.directory = directory
        self.scratch = scratch
        self.shared = scratch / plan.mode
        self.raw = directory / "raw"
        self.logs = directory / "logs"
        self.settings = Settings(
            plan=plan,
            broker=servers[pilot.server].url,
            prefix=f"{servers[pilot.server].prefix}{plan.mode}.{plan.experiment}.",
            database=servers["postgres"].url,
            directory=str(self.shared),
            name=plan.mode.replace("-", "_"),
        )
        self.workers: dict[str, guard.Process] = {}
        """By node name: ``worker-1@host``."""
        self.producer: guard.Process | None = None
        self.events: list[Line] = []
        """What was emitted so far; ``look`` adds to it."""
        self.unsettled: str | None = None
        self._trail = Trail(self.raw)

    def __enter__(self) -> Experiment:
        self.raw.mkdir(parents=True)
        self.shared.mkdir(parents=True)
        with self._database() as connection:
            tables.create(connection, self.settings)
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    # Start and end

    def _start(self) -> None:
        for _ in range(self.plan.workers):
            self.add_worker()
        self.producer = self._spawn("producer", ["-m", self.pilot.producer], self.settings)

    def add_worker(self) -> str:
        """Start one more worker, under the next name; returns the name that its events have."""
        name = f"worker-{len(self.workers) + 1}"
        settings = self.settings
        if self.links is not None:
            self.links.add(name)
            settings = msgspec.structs.replace(settings, broker=self.links.url(name, settings.broker))
        key = f"{name}@{platform.node()}"
        self.workers[key] = self._spawn(name, ["-m", self.pilot.worker, name], settings)
        return key

    def _spawn(self, name: str, arguments: Sequence[str], settings: Settings) -> guard.Process:
        # Celery reads some of its settings from the environment, and prefers them to the application's.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CELERY_")}
        environment.update(settings.environment(), SPECWATCH_EVENTS=str(self.raw), PYTHONUNBUFFERED="1")
        return guard.spawn(
            [sys.executable, *arguments],
            log=self.logs / f"{name}.log",
            env=environment,
            cwd=self.shared,
        )

    def _end(self) -> None:
        """End whatever still runs, at once."""
        running = [process for process in (*self.workers.values(), self.producer) if process is not None]
        for process in running:
            process.send_signal(signal.SIGKILL, group=True)
        for process in running:
            process.stop()

    # What happens

    def look(self) -> list[Line]:
        """All events so far."""
        self.events.extend(self._trail.new())
        return self.events

    def settle(self, is_over: Callable[[], bool] = lambda: True) -> None:
        """Wait until every task was published, every copy is done with and the broker holds nothing, or time is over.

        Nor is it over before ``is_over`` says so: until then a broker may be away. A worker that has died takes its
        copies with it. Raises ``PilotError`` if none is left, the producer has failed or the broker does not answer.
        """
        deadline = time.monotonic() + DEADLINE + self.plan.span + self.plan.tasks / 10
        quiet = 0
        while True:
            over = is_over()
            try:
                open_ = self._open()
            except ServerError as error:
                if over and time.monotonic() > deadline:
                    raise PilotError(error.message, file=_log(self.servers[self.pilot.server])) from None
                open_ = error.message
            if open_ is None and not over:
                open_ = "the faults were not over"
            # Between the queue and the worker's account a message is in neither: one look does not prove much.
            quiet = 0 if open_ is not None else quiet + 1
            if quiet == QUIET:
                return
            if time.monotonic() > deadline:
                self.unsettled = open_
                return
            time.sleep(LOOK)

    def _open(self) -> str | None:
        """What is still going on, for people; None where nothing is. Raises ``ServerError``."""
        events = self.look()
        # A fault may add a worker meanwhile, in a thread of its own.
        dead = {name for name, process in list(self.workers.items()) if process.poll() is not None}
        self._check(dead)
        published = len({event["key"] for event in events if event["action"] == "Publish"})
        if published < self.plan.tasks:
            return f"{published} of {self.plan.tasks} tasks were published"
        assert self.producer is not None, "there is a producer from the start"
        if self.producer.poll() is None:
            return "the producer had not ended"  # What it has told of, its broker may not have yet.
        waiting = self.pilot.waiting(self.settings)
        held = len(self._held(events, self.workers.keys() - dead))
        if waiting or held:
            return f"{waiting} messages were not acknowledged, {held} copies were held by workers"
        return None

    def _held(self, events: Sequence[Line], workers: Collection[str]) -> list[str]:
        """The keys of the copies that some workers have and have not done with."""
        copies: Counter[tuple[str, str]] = Counter()
        for event in events:
            change = 1 if event["action"] == "Pickup" else -1 if event["action"] in self.pilot.ends else 0
            if change and event["params"]["w"] in workers:
                # A copy may end twice: done, and then rejected; or put back, while its body goes on.
                copy = event["params"]["t"], event["params"]["w"]
                copies[copy] = max(0, copies[copy] + change)
        return [key for (key, _), count in copies.items() for _ in range(count)]

    def _check(self, dead: set[str]) -> None:
        assert self.producer is not None, "there is a producer from the start"
        if self.producer.poll() not in (None, 0):
            raise PilotError("the producer has failed", file=str(self.producer.log))
        if len(dead) == len(self.workers):
            log = next(iter(self.workers.values())).log
            raise PilotError("no worker is left", file=str(log), hint=_last_line(log))

    # What comes of it

    def wind_down(self) -> None:
        """Ask the workers to stop when their bodies are done. ``finish`` does so too; of several, ask all first."""
        for process in list(self.workers.values()):
            process.terminate()

    def finish(self, spec_folder: Path, ended: Callable[[], object] = lambda: None) -> Outcome:
        """Stop the workers, count the rows, write the run directory. ``spec_folder`` holds the spec and its configs.

        ``ended`` is called when the workers have, before what they have written is put together.
        """
        killed = {name for name, process in list(self.workers.items()) if process.poll() is not None}
        self.wind_down()
        until = time.monotonic() + STOP_WAIT
        for process in list(self.workers.values()):
            process.wait(max(0.0, until - time.monotonic()))
        self._end()
        ended()
        with self._database() as connection:
            counted = tables.count(connection, self.settings)
        events = run_directory.merge(self.raw)
        # Where the broker was away, a message may have been published again.
        keys = list(dict.fromkeys(event["key"] for event in events if event["action"] == "Publish"))
        outcome = Outcome(
            directory=self.directory,
            keys=keys,
            executions=run_directory.executions(events),
            rows={**dict.fromkeys(keys, 0), **counted},
            restarted=run_directory.restarted(events),
            unsettled=self.unsettled,
            left=frozenset(self._held(events, killed)),
            versions=self._versions(),
        )
        for server in self.servers.values():
            if server.log is not None:
                shutil.copyfile(server.log, self.logs / server.log.name)
        run_directory.write(
            self.directory,
            events=events,
            rows=outcome.rows,
            spec=spec_folder / self.pilot.spec(self.plan),
            config=spec_folder / self.pilot.config(self.plan),
            binding=self.pilot.binding(self.plan),
            versions=outcome.versions,
        )
        return outcome

    @contextlib.contextmanager
    def _database(self) -> Iterator[psycopg.Connection]:
        with connect_postgres(self.settings.database) as connection:
            import psycopg

            try:
                yield connection
            except psycopg.Error as error:
                raise PilotError(f"the database refuses: {error}", file=_log(self.servers["postgres"])) from None

    def _versions(self) -> dict[str, Any]:
        return {
            "servers": {name: server.version for name, server in self.servers.items()},
            "clients": {name: importlib.metadata.version(name) for name in self.pilot.clients},
            "python": platform.python_version(),
            "plan": msgspec.to_builtins(self.plan),
        }


def _log(server: Server) -> str | None:
    return None if server.log is None else str(server.log)


def _last_line(log: Path) -> str | None:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), None)
