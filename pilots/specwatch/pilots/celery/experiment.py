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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import run_directory
from ..errors import PilotError
from ..run_directory import Line, Trail
from ..runtime import Server, guard
from ..runtime.servers import connect_postgres, connect_valkey
from . import tables
from .plan import REQUIRED, Plan, Settings

if TYPE_CHECKING:
    import psycopg

SPEC = "CeleryRedis.tla"
CLIENTS = ("celery", "kombu", "redis", "psycopg")

LOOK = 0.2
"""Seconds between two looks at the events and the broker."""
DEADLINE = 60.0
"""Seconds within which all must have been done, and one more for each ten tasks."""
STOP_WAIT = 10.0
"""Seconds for a worker's warm shutdown."""

ENDS = frozenset({"Done", "Fail", "Retry", "Revoke", "Expire"})
"""The actions that end a copy's body, or the copy before its body begins."""


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

    @property
    def disagreements(self) -> list[tuple[str, int, int]]:
        """(key, executions, rows) where the log and the database do not tell the same."""
        return [
            (key, self.executions.get(key, 0), self.rows.get(key, 0))
            for key in sorted({*self.executions, *self.rows})
            if self.executions.get(key, 0) != self.rows.get(key, 0)
        ]


class Experiment:
    """The workers and the producer of one experiment; use it in ``with``, then ``settle``, then ``finish``.

    ``directory`` becomes the run directory and must not hold another. ``scratch`` is a folder for what is not kept;
    experiments in different modes may share it. Raises ``PilotError`` and ``ServerError``.
    """

    def __init__(self, plan: Plan, servers: Mapping[str, Server], directory: Path, scratch: Path) -> None:
        self.plan = plan
        self.servers = servers
        self.directory = directory
        self.scratch = scratch
        self.shared = scratch / plan.mode
        self.raw = directory / "raw"
        self.logs = directory / "logs"
        self.settings = Settings(
            plan=plan,
            broker=servers["valkey"].url,
            prefix=f"{servers['valkey'].prefix}{plan.mode}.{plan.experiment}.",
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
        for number in range(1, self.plan.workers + 1):
            name = f"worker-{number}"
            self.workers[f"{name}@{platform.node()}"] = self._spawn(name, ["-m", f"{__package__}.worker", name])
        self.producer = self._spawn("producer", ["-m", f"{__package__}.publish"])

    def _spawn(self, name: str, arguments: Sequence[str]) -> guard.Process:
        # Celery reads some of its settings from the environment, and prefers them to the application's.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CELERY_")}
        environment.update(self.settings.environment(), SPECWATCH_EVENTS=str(self.raw), PYTHONUNBUFFERED="1")
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

    def settle(self) -> None:
        """Wait until every task was published, every copy is done with and the broker holds nothing, or time is over.

        A worker that has died takes its copies with it. Raises ``PilotError`` if none is left, the producer has failed
        or the broker does not answer.
        """
        broker = connect_valkey(self.settings.broker)
        import redis

        deadline = time.monotonic() + DEADLINE + self.plan.tasks / 10
        quiet = False
        try:
            while True:
                open_ = self._open(broker)
                # Between the queue and the worker's account a message is in neither: one look does not prove much.
                if open_ is None and quiet:
                    return
                if time.monotonic() > deadline:
                    self.unsettled = open_
                    return
                quiet = open_ is None
                time.sleep(LOOK)
        except redis.RedisError as error:
            raise PilotError(
                f"the broker does not answer any more: {error}", file=_log(self.servers["valkey"])
            ) from None
        finally:
            broker.close()

    def _open(self, broker: Any) -> str | None:
        """What is still going on, for people; None where nothing is."""
        events = self.look()
        dead = {name for name, process in self.workers.items() if process.poll() is not None}
        self._check(dead)
        published = sum(event["action"] == "Publish" for event in events)
        if published < self.plan.tasks:
            return f"{published} of {self.plan.tasks} tasks were published"
        waiting = broker.llen(f"{self.settings.prefix}pilot") + broker.hlen(f"{self.settings.prefix}unacked")
        copies: Counter[tuple[str, str]] = Counter()
        for event in events:
            change = 1 if event["action"] == "Pickup" else -1 if event["action"] in ENDS else 0
            if change and event["params"]["w"] not in dead:
                copies[event["params"]["t"], event["params"]["w"]] += change
        held = sum(max(count, 0) for count in copies.values())
        if waiting or held:
            return f"{waiting} messages were not acknowledged, {held} copies were held by workers"
        return None

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
        for process in self.workers.values():
            process.terminate()

    def finish(self, spec_folder: Path) -> Outcome:
        """Stop the workers, count the rows, write the run directory. ``spec_folder`` holds the spec and its configs."""
        self.wind_down()
        until = time.monotonic() + STOP_WAIT
        for process in self.workers.values():
            process.wait(max(0.0, until - time.monotonic()))
        self._end()
        with self._database() as connection:
            counted = tables.count(connection, self.settings)
        events = run_directory.merge(self.raw)
        keys = [event["key"] for event in events if event["action"] == "Publish"]
        outcome = Outcome(
            directory=self.directory,
            keys=keys,
            executions=run_directory.executions(events),
            rows={**dict.fromkeys(keys, 0), **counted},
            restarted=run_directory.restarted(events),
            unsettled=self.unsettled,
            versions=self._versions(),
        )
        for server in self.servers.values():
            if server.log is not None:
                shutil.copyfile(server.log, self.logs / server.log.name)
        run_directory.write(
            self.directory,
            events=events,
            rows=outcome.rows,
            spec=spec_folder / SPEC,
            config=spec_folder / self.plan.config,
            binding=binding(self.plan),
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
            "clients": {name: importlib.metadata.version(name) for name in CLIENTS},
            "python": platform.python_version(),
            "plan": msgspec.to_builtins(self.plan),
        }


def binding(plan: Plan) -> str:
    """The binding by which a run is judged. All that the probes can tell is told, so that little is hidden."""
    required = ", ".join(f'"{name}"' for name in REQUIRED[plan.mode])
    return f"""\
# How this run was judged; `specwatch check` and this folder's name judge it again.

spec = "spec.tla"
config = "spec.cfg"
format = "native"
scope = "run"
order = "total"  # one machine, one clock: events.jsonl is in the order in which things happened
start = "init"
require = [{required}]

# VisTimeout: Redis tells no one. Check: what a guard answers is seen in what follows, Execute or Skip.
# Resend: the next attempt is sent before the retry is told.
hidden = ["Check", "Resend", "VisTimeout"]

terminal = ["Done", "Fail", "Ack", "Reject", "Revoke", "Expire"]

[key]
param = "t"

[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
"""


def _log(server: Server) -> str | None:
    return None if server.log is None else str(server.log)


def _last_line(log: Path) -> str | None:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), None)
