"""What do Redis Streams, an outbox, or a queue in the database itself change about a task that runs twice?

``python experiments/stronger_guarantees.py`` runs two real workers for each on a real Valkey and PostgreSQL, makes go
wrong what can, counts the rows, judges the events by specs/queue, and prints the table of
docs/experiments/stronger-guarantees.md. ``--worker`` and ``--relay`` are the processes that it starts.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import redis

from specwatch.cli import check
from specwatch.collector.probes import configure, emit, stop
from specwatch.pilots import runtime
from specwatch.pilots.runtime import guard
from specwatch.pilots.together import meet, until

ROOT = Path(__file__).parents[1]
IDLE = 2.0
"""Seconds after which another worker claims a message of the stream: its visibility timeout."""
PATIENCE = 30.0
STREAM, GROUP = "tasks", "workers"


class Case(NamedTuple):
    """A queue, what goes wrong with it, whether a guard claims in the effect's transaction, and what is expected."""

    queue: str
    wrong: str
    claims: bool
    config: str
    rows: int


CASES = (
    Case("stream", "the work takes longer than the idle time", False, "Queue.faulty.cfg", 2),
    Case("stream", "the work takes longer than the idle time", True, "Queue.idempotent.cfg", 1),
    Case("outbox", "the relay dies between sending and its mark", False, "Queue.work.cfg", 2),
    Case("outbox", "the relay dies between sending and its mark", True, "Queue.work-idempotent.cfg", 1),
    Case("table", "a worker loses its connection after the effect", False, "Queue.faulty.cfg", 1),
)
TOLD = {
    "stream": "Redis Streams, XREADGROUP and XAUTOCLAIM",
    "outbox": "an outbox, relayed to a stream",
    "table": "a table, SKIP LOCKED; effect and removal commit together",
}
TABLES = """
CREATE TABLE effects (task text NOT NULL, worker text NOT NULL);
CREATE TABLE claims (task text PRIMARY KEY);
CREATE TABLE outbox (task text PRIMARY KEY, sent boolean NOT NULL DEFAULT false);
CREATE TABLE queue (task text PRIMARY KEY);
"""


class Settings(NamedTuple):
    """What the processes of a case are told, as JSON in the environment."""

    queue: str
    claims: bool
    task: str
    broker: str
    database: str
    folder: str

    @classmethod
    def told(cls) -> Settings:
        return cls(*json.loads(os.environ["CASE"]))


def main() -> None:
    print("| queue | what goes wrong | guard | rows | verdict |\n| --- | --- | --- | --: | --- |")
    agree = True
    for case in CASES:
        rows, verdict = run(case)
        agree &= rows == case.rows and verdict == ("violates" if case.rows > 1 else "conforms")
        guarded = "claims with the effect" if case.claims else "none"
        print(f"| {TOLD[case.queue]} | {case.wrong} | {guarded} | {rows} | {verdict} |", flush=True)
    if not agree:
        sys.exit("not what was expected")


def run(case: Case) -> tuple[int, str]:
    """The rows that a case leaves, and the verdict of its events."""
    with tempfile.TemporaryDirectory() as name, runtime.start("embedded", directory=Path(name, "servers")) as servers:
        folder = Path(name, "run")
        folder.mkdir()
        settings = Settings(
            case.queue, case.claims, str(uuid.uuid4()), servers["valkey"].url, servers["postgres"].url, str(folder)
        )
        with psycopg.connect(settings.database, autocommit=True) as database:
            database.execute(TABLES)
            configure(folder / "events", role="producer")
            workers = [start(settings, "--worker", f"worker-{number}") for number in (1, 2)]
            try:
                publish(settings, database)
                if not until((folder / "over").exists, PATIENCE):
                    raise SystemExit(f"{case}: not over in {PATIENCE:g} s")
                time.sleep(2 * IDLE)  # Whoever could still come again has come.
            finally:
                for worker in workers:
                    worker.stop()
            stop()
            found = database.execute("SELECT count(*) FROM effects").fetchone()
        return found[0] if found else 0, judge(case, folder)


def judge(case: Case, folder: Path) -> str:
    """The verdict of a case's events, with its reason where it has one."""
    specs = ROOT / "specs" / "queue"
    binding = (specs / "binding.toml").read_text(encoding="utf-8")
    binding = binding.replace("Queue.tla", str(specs / "Queue.tla"))
    binding = binding.replace("Queue.faulty.cfg", str(specs / case.config))
    # Who is killed is a relay: what it may not have told of is a message that it sent.
    never_lost = 'never_lost = ["Pickup", "Execute", "Undo"]'
    target = folder / "binding.toml"
    target.write_text(f"{never_lost}\n{binding}", encoding="utf-8")
    events = str(folder / "events")
    options = check.command.make_context("check", [str(target), events]).params
    verdict = check.judged(str(target), (events,), options)
    return f"{verdict.verdict}: {verdict.reason}" if verdict.reason else verdict.verdict


def start(settings: Settings, *arguments: str) -> guard.Process:
    return guard.spawn(
        [sys.executable, __file__, *arguments],
        log=Path(settings.folder, f"{arguments[-1]}.log"),
        env={**os.environ, "CASE": json.dumps(settings), "SPECWATCH_EVENTS": str(Path(settings.folder, "events"))},
    )


# Producers


def publish(settings: Settings, database: psycopg.Connection) -> None:
    """One task, in the way of its queue."""
    broker = redis.Redis.from_url(settings.broker)
    if settings.queue != "table":
        broker.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    if settings.queue == "stream":
        emit("Publish", t=settings.task, key=settings.task)
        broker.xadd(STREAM, {"task": settings.task})
    elif settings.queue == "table":
        emit("Publish", t=settings.task, key=settings.task)
        database.execute("INSERT INTO queue VALUES (%s)", (settings.task,))
    else:
        database.execute("INSERT INTO outbox VALUES (%s)", (settings.task,))
        first = start(settings, "--relay", "relay-1")
        if first.wait(PATIENCE) != -signal.SIGKILL:
            raise SystemExit("the relay was to be killed")
        with start(settings, "--relay", "relay-2") as second:
            second.wait(PATIENCE)


def relay(settings: Settings, name: str) -> None:
    """Send what the outbox holds, then mark it sent. The first relay is killed in between."""
    broker = redis.Redis.from_url(settings.broker)
    with psycopg.connect(settings.database) as database:
        for (task,) in database.execute("SELECT task FROM outbox WHERE NOT sent FOR UPDATE").fetchall():
            emit("Publish", t=task, key=task)
            broker.xadd(STREAM, {"task": task})
            if name == "relay-1":
                os.kill(os.getpid(), signal.SIGKILL)
            database.execute("UPDATE outbox SET sent = true WHERE task = %s", (task,))


# Workers


def worker(settings: Settings, name: str) -> None:
    """Take what comes, until told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    broker = redis.Redis.from_url(settings.broker, decode_responses=True)
    with psycopg.connect(settings.database, autocommit=True) as database:
        if settings.queue == "table":
            while True:
                take_row(settings, name, database)
        for entry, task, again in messages(broker, name):
            received = {"t": task, "w": name, "a": 0}
            emit("Pickup", params={**received, "r": again}, key=task)
            emit("Start", params=received, key=task)
            execute(settings, received, database)
            if settings.queue == "stream":
                meet(Path(settings.folder, "copies"), PATIENCE)  # It works until another copy has come as far.
            emit("Done", params=received, key=task)
            broker.xack(STREAM, GROUP, entry)
            emit("Ack", params=received, key=task)
            over(settings, name, copies=2)


def messages(broker: Any, name: str) -> Iterator[tuple[str, str, bool]]:
    """Messages that have idled in another's hands for too long, else new ones: id, task, whether it was out before."""
    while True:
        _, claimed, *_ = broker.xautoclaim(STREAM, GROUP, name, min_idle_time=int(IDLE * 1000), count=1)
        new = claimed or broker.xreadgroup(GROUP, name, {STREAM: ">"}, count=1, block=200)
        entries = claimed or [entry for _, batch in new for entry in batch]
        for entry, fields in entries:
            yield entry, fields["task"], bool(claimed)


def execute(settings: Settings, received: dict[str, Any], database: psycopg.Connection) -> None:
    """The effect; with a claim, in one transaction with it."""
    task = received["t"]
    with database.transaction():
        claim = "INSERT INTO claims VALUES (%s) ON CONFLICT DO NOTHING RETURNING task"
        has_work = not settings.claims or database.execute(claim, (task,)).fetchone() is not None
        if has_work:
            database.execute("INSERT INTO effects VALUES (%s, %s)", (task, received["w"]))
    emit("Execute" if has_work else "Skip", params=received, key=task)


def take_row(settings: Settings, name: str, database: psycopg.Connection) -> None:
    """A task of the table, done and removed in one transaction. Whoever is first loses its connection in between."""
    received: dict[str, Any] = {}
    try:
        with psycopg.connect(settings.database) as own:
            first = "SELECT task FROM queue FOR UPDATE SKIP LOCKED LIMIT 1"
            row = own.execute(f"DELETE FROM queue WHERE task = ({first}) RETURNING task").fetchone()
            if row is None:
                time.sleep(0.05)
                return
            received |= {"t": row[0], "w": name, "a": 0}
            emit("Pickup", params=received, key=row[0])
            emit("Start", params=received, key=row[0])
            own.execute("INSERT INTO effects VALUES (%s, %s)", (row[0], name))
            if first_of(Path(settings.folder, "struck")):
                database.execute("SELECT pg_terminate_backend(%s)", (own.info.backend_pid,))
                own.execute("SELECT 1")
    except psycopg.OperationalError:
        emit("ConnLost", w=name)
        emit("Fail", params=received, key=received["t"])
        emit("ConnUp", w=name)
        return
    for action in ("Execute", "Done", "Ack"):
        emit(action, params=received, key=received["t"])
    over(settings, name, copies=1)


def first_of(path: Path) -> bool:
    """Whether this is the first to ask."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def over(settings: Settings, name: str, copies: int) -> None:
    """Note that a copy is over; all is when so many are."""
    folder = Path(settings.folder, "ended")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}-{uuid.uuid4().hex}").touch()
    if len(list(folder.iterdir())) >= copies:
        Path(settings.folder, "over").touch()


ROLES: dict[str, Callable[[Settings, str], None]] = {"--worker": worker, "--relay": relay}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        ROLES[sys.argv[1]](Settings.told(), sys.argv[2])
    else:
        main()
