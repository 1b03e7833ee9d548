"""Each fault does what it says to real processes and real connections, is proven where it did, and never where not.

The workers are programs of a few lines, and so is their broker: it delivers again what was not acked in time.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specwatch.collector.probes.emitter import Emitter
from specwatch.pilots import processes, proxy, wishes
from specwatch.pilots.faults import KINDS, Fault, Record
from specwatch.pilots.injector import Injector, shifted_time
from specwatch.pilots.proxy import Links
from specwatch.pilots.restart import Broker
from specwatch.pilots.runtime import Server, guard
from specwatch.pilots.schedule import Schedule
from specwatch.pilots.strikes import STRIKES

TIMEOUT = 0.5
"""Seconds after which a message that was not acked comes again."""
PATIENCE = 60.0
PACE = 0.05
"""Seconds between two messages, while a fault lasts."""

WORKER = """
import json, os, socket, sys, time
from specwatch.collector.probes import configure, emit, moment, start
from specwatch.pilots import wishes

name, host, port, shared = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
configure(role=name)
start()
if os.fork() == 0:  # A child, as the pool of a worker is.
    while True:
        time.sleep(1)

def tell(action, key, at=None):
    emit(action, t=key, w=name, key=key, at=at)

def ask(line, **words):
    connection.sendall(json.dumps(dict(words, w=name)).encode() + b"\\n")
    return json.loads(lines.readline())

while True:
    try:
        connection = socket.create_connection((host, port))
        lines = connection.makefile()
        while True:
            key = ask(lines, get=True)
            if key is None:
                time.sleep(0.01)
                continue
            tell("Pickup", key)
            wish = wishes.take(shared, name, key)
            tell("Start", key)
            tell("Execute", key)
            if wish and wish.kind != "nack" and not key.startswith("found-"):
                wish.wait()
            tell("Done", key)
            at = moment()  # As a probe stamps a word: before it is said.
            if wish and wish.kind == "nack":
                ask(lines, nack=key)
                tell("Nack", key, at)
            else:
                ask(lines, ack=key)
                tell("Ack", key)
    except (OSError, ValueError):
        time.sleep(0.01)
"""


class Queue:
    """A broker: hands out each message again ``TIMEOUT`` seconds after it was handed out and not acked."""

    def __init__(self) -> None:
        self.ready: deque[str] = deque()
        self.unacked: dict[str, float] = {}
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                connection.sendall(json.dumps(self.answer(**json.loads(line))).encode() + b"\n")

    def answer(self, w: str, get: bool = False, ack: str = "", nack: str = "") -> str | None:
        with self.lock:
            if ack or nack:
                self.unacked.pop(ack or nack, None)
                self.ready.extend([nack] if nack else [])
                return None
            late = [key for key, until in self.unacked.items() if until < time.monotonic()]
            for key in late:
                del self.unacked[key]
            self.ready.extendleft(late)
            if not self.ready:
                return None
            key = self.ready.popleft()
            self.unacked[key] = time.monotonic() + TIMEOUT
            return key

    def redeliver(self, key: str) -> bool:
        with self.lock:
            if key not in self.unacked:
                return False
            del self.unacked[key]
            self.ready.appendleft(key)
            return True


class Bench:
    """Workers at such a broker, each by a proxy of its own, and who publishes."""

    def __init__(self, folder: Path, queue: Queue, links: Links | None) -> None:
        self.folder = folder
        self.queue = queue
        self.links = links
        self.raw = folder / "raw"
        self.shared = folder / "shared"
        self.raw.mkdir()
        self.shared.mkdir()
        self.workers: dict[str, guard.Process] = {}
        self.numbers = itertools.count(1)
        self.producer = Emitter(str(self.raw / "producer.jsonl"), "producer")
        self.producer.start()
        self.keys = (f"task-{number}" for number in itertools.count(1))

    def add_worker(self) -> str:
        name = f"worker-{next(self.numbers)}"
        host, port = "127.0.0.1", self.queue.port
        if self.links is not None:
            self.links.add(name)
            host, port = self.links.address(name)
        self.workers[name] = guard.spawn(
            [sys.executable, "-c", WORKER, name, host, str(port), str(self.shared)],
            log=self.folder / f"{name}.log",
            env={**os.environ, "SPECWATCH_EVENTS": str(self.raw)},
        )
        return name

    def publish(self) -> None:
        key = next(self.keys)
        self.producer.emit({"action": "Publish", "params": {"t": key}, "key": key}, {}, None)
        self.queue.ready.append(key)

    def make(self, *faults: Fault, publishes: bool = True, **more: Any) -> Injector:
        """Make faults happen, and publish meanwhile."""
        injector = Injector(
            self,
            Schedule(faults=list(faults), span=0.0),
            timeout=TIMEOUT,
            links=self.links,
            redeliver=self.queue.redeliver,
            **more,
        )
        deadline = time.monotonic() + PATIENCE
        due = time.monotonic()
        while not injector.step() and time.monotonic() < deadline:
            if publishes and time.monotonic() >= due:
                self.publish()
                due += PACE
            time.sleep(0.005)
        assert injector.is_over
        return injector

    def faults(self) -> list[dict[str, Any]]:
        """The events of faults that were written."""
        path = self.raw / "faults.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def close(self) -> None:
        for process in self.workers.values():
            process.kill()
        for process in self.workers.values():
            process.stop()
        self.queue.listener.close()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Three workers for all tests, which begin with whoever is alive then."""
    folder, queue = tmp_path_factory.mktemp("faults"), Queue()
    with proxy.start("127.0.0.1", queue.port, [], log=folder / "proxy.log") as links:
        bench = Bench(folder, queue, links)
        for _ in range(3):
            bench.add_worker()
        try:
            yield bench
        finally:
            bench.close()


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Bench]:
    """A bench without workers and without a proxy."""
    bench = Bench(tmp_path, Queue(), None)
    yield bench
    bench.close()


def fault(kind: str, target: str = "*", duration: float = 2 * TIMEOUT, by: float = 0.0, start: float = 0.0) -> Fault:
    return Fault(kind=kind, target=target, start=start, duration=duration, by=by)


def proven(bench: Bench, made: Injector) -> tuple[Record, dict[str, Any]]:
    """The one fault that was made, and its event, which says what the record says."""
    [record] = made.records
    assert record.is_proven, record.sentence
    assert made.doubt is None
    event = bench.faults()[-1]
    assert event["emitter"] == made._emitter.name
    assert (event["lane"], event["action"], event["proven"]) == ("fault", KINDS[record.fault.kind].action, True)
    assert (event["params"]["kind"], event["params"]["target"]) == (record.fault.kind, record.target)
    assert (event["traffic"], event["struck"], event["monotonic"]) == (record.traffic, record.struck, record.began)
    assert event["until"] > event["time"]
    return record, event


def times(made: Injector, record: Record, action: str) -> list[tuple[str, int]]:
    """By whom and when something was said of the message that was struck."""
    [key] = record.struck
    return [
        (event["params"]["w"], event["monotonic"])
        for event in made.look()
        if event["action"] == action and event.get("key") == key
    ]


# --- faults that happen


def test_a_stalled_worker_is_stopped_until_another_has_its_message(bench: Bench) -> None:
    made = bench.make(fault("stall"))
    record, _ = proven(bench, made)
    assert set(record.evidence["states"].values()) == {"T"}
    assert len(record.evidence["states"]) == 2  # The worker and its child.
    assert record.ended - record.began >= 2 * TIMEOUT * 1e9
    (first, _), (second, again), *_ = times(made, record, "Pickup")
    assert first == record.target != second
    assert record.began < again < record.ended
    assert until(lambda: "T" not in processes.of_session(bench.workers[first].pid).values())
    # It goes on, and acks what is no longer its own.
    assert until(lambda: first in dict(times(made, record, "Ack")))


def test_a_long_task_is_received_again_while_it_works(bench: Bench) -> None:
    made = bench.make(fault("long"))
    record, _ = proven(bench, made)
    (first, _), (_, again), *_ = times(made, record, "Pickup")
    assert first == record.target
    assert record.began < again < record.ended
    assert until(lambda: first in dict(times(made, record, "Ack")))
    assert dict(times(made, record, "Ack"))[first] > record.ended


def test_a_body_that_finds_its_work_done_is_not_the_one_that_takes_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "keys", itertools.chain(["found-done"], bench.keys))
    made = bench.make(fault("long"))
    record, _ = proven(bench, made)
    assert record.struck != ["found-done"]
    assert any(event["action"] == "Done" and event["key"] == "found-done" for event in made.look() if "key" in event)


def test_a_killed_worker_has_done_its_work_and_has_not_acked_and_has_a_successor(bench: Bench) -> None:
    made = bench.make(fault("kill"))
    record, event = proven(bench, made)
    killed = bench.workers[record.target]
    try:
        assert killed.wait(PATIENCE) == -9
        assert record.evidence["successor"] == list(bench.workers)[-1]
        assert record.target in dict(times(made, record, "Execute"))
        assert record.target not in dict(times(made, record, "Ack"))
        # By the emitter's name a reader knows whose events may be missing.
        emitter = next(line["emitter"] for line in made.events if line.get("pid") == killed.pid)
        assert record.evidence["emitters"] == [emitter]
        assert event["params"]["emitter"] == emitter
    finally:
        del bench.workers[record.target]
        killed.stop()


def test_a_nack_brings_the_message_back_at_once(bench: Bench) -> None:
    made = bench.make(fault("nack"))
    record, _ = proven(bench, made)
    assert [worker for worker, _ in times(made, record, "Nack")] == [record.target]
    assert len(times(made, record, "Pickup")) == 2


def test_an_early_redelivery_comes_before_the_timeout(bench: Bench) -> None:
    made = bench.make(fault("early"))
    record, _ = proven(bench, made)
    assert record.evidence["seconds"] < TIMEOUT
    assert len(times(made, record, "Pickup")) >= 2


def test_a_cut_resets_the_connection_and_the_worker_makes_another(bench: Bench) -> None:
    made = bench.make(fault("cut", duration=0.1))
    record, _ = proven(bench, made)
    assert record.evidence["resets"] >= 1
    assert record.evidence["connections"] > record.evidence["open"] == 0


def test_a_delay_lets_bytes_come_late(bench: Bench) -> None:
    links, name = bench.links, next(iter(bench.workers))
    assert links is not None
    already = links.counts(name).delayed
    made = bench.make(fault("delay", duration=0.5, by=0.05))
    record, _ = proven(bench, made)
    assert record.target == name
    assert record.evidence["delayed"] > 0
    # All that came in while it lasted goes out late, and nothing that came afterwards.
    healed = links.counts(name)
    assert until(lambda: links.counts(name).received > healed.received)
    assert until(lambda: links.counts(name).delayed == already + record.evidence["received"])


def test_a_black_hole_swallows_the_ack_until_the_message_was_delivered_again(bench: Bench) -> None:
    made = bench.make(fault("black-hole"))
    record, _ = proven(bench, made)
    (first, _), (second, again), *_ = times(made, record, "Pickup")
    assert first == record.target != second
    assert again < record.ended
    # The broker's answer to its ack, which it waits for, comes when the hole is gone.
    assert until(lambda: first in dict(times(made, record, "Ack")))
    assert dict(times(made, record, "Ack"))[first] > record.ended


def test_a_clock_shift_moves_the_times_of_one_log_and_only_while_it_lasts(bench: Bench, tmp_path: Path) -> None:
    own = Bench(tmp_path, bench.queue, bench.links)
    own.workers = dict(itertools.islice(bench.workers.items(), 1))
    [name] = own.workers
    for path in bench.raw.glob(f"{name}-*.jsonl"):
        (own.raw / path.name).symlink_to(path)
    made = own.make(fault("clock", name, duration=0.3, by=-5.0))
    assert own.faults() == []  # Nothing is known of it before the log is whole.
    for path in own.raw.glob(f"{name}-*.jsonl"):
        text = path.read_bytes()
        path.unlink()
        path.write_bytes(text[: text.rfind(b"\n") + 1])
    before = {line["seq"]: line for line in lines_of(own, name)}
    [record] = made.finish()
    assert record.is_proven
    assert [event["action"] for event in own.faults() if event["lane"] == "fault"] == ["ClockShift"]
    shifted = [line for line in lines_of(own, name) if line != before[line["seq"]]]
    assert len(shifted) == record.traffic > 0
    for line in shifted:
        assert record.began <= line["monotonic"] <= record.ended
        assert line == {**before[line["seq"]], "time": shifted_time(before[line["seq"]]["time"], -5_000_000_000)}
    made.finish()
    assert len([line for line in lines_of(own, name) if line != before[line["seq"]]]) == len(shifted)


def lines_of(bench: Bench, name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(bench.raw.glob(f"{name}-*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


@pytest.mark.parametrize(
    ("time_", "seconds", "later"),
    [
        ("2030-01-01T00:00:00.000000001Z", 2, "2030-01-01T00:00:02.000000001Z"),
        ("2030-01-01T00:00:01.5Z", -2, "2029-12-31T23:59:59.500000000Z"),
        ("2030-01-01T00:00:01Z", 1, "2030-01-01T00:00:02.000000000Z"),
    ],
)
def test_a_time_is_shifted_to_the_nanosecond(time_: str, seconds: int, later: str) -> None:
    assert shifted_time(time_, seconds * 1_000_000_000) == later


def test_faults_happen_in_a_thread_too_one_at_a_time_for_a_worker(bench: Bench) -> None:
    schedule = Schedule(faults=[fault("long"), fault("nack", start=0.1), fault("long", start=0.1)], span=0.0)
    with Injector(bench, schedule, timeout=TIMEOUT, links=bench.links) as injector:
        assert until(lambda: bench.publish() or injector.is_over, pause=PACE)  # type: ignore[func-returns-value]
    assert [record.sentence for record in injector.records if not record.is_proven] == []
    spans = sorted((record.began, record.ended) for record in injector.records)
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(spans))


# --- faults that do not


def unproven(bench: Bench, made: Injector) -> str:
    """Why the one fault is not proven. It is an event of no fault, so that nothing can be said to be during it."""
    [record] = made.records
    assert not record.is_proven
    [event] = [line for line in bench.faults() if line["action"] not in ("EmitterStart", "EmitterStop")]
    assert (event["action"], event["lane"], event["proven"]) == ("FaultUnproven", "emitter", False)
    assert event["why"] == record.sentence
    return record.why_not


class Clock:
    """A clock on which each look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_fault_waits_for_a_broker_that_another_has_stopped(idle: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(Injector, "is_restarting", property(lambda _: now[0] < 100))
    idle.publish()
    made = Injector(idle, Schedule(faults=[fault("long")], span=0.0), timeout=TIMEOUT, clock=lambda: now[0])
    seen = []
    for seconds in (0.0, 50.0, 99.0, 101.0, 125.0):
        now[0] = seconds
        seen.append(made.step())
    assert seen == [False, False, False, False, True]
    assert made.records[0].why_not == "any worker began no body within 20 s"


@pytest.mark.parametrize("kind", ["stall", "long", "kill", "nack", "early", "cut", "black-hole"])
def test_a_fault_that_no_body_came_to_is_not_proven(idle: Bench, kind: str) -> None:
    idle.publish()
    made = idle.make(fault(kind), publishes=False, clock=Clock())
    assert unproven(idle, made) == "any worker began no body within 20 s"
    assert made.doubt == ("inconclusive", f"{kind} of * at 0.0 s: not proven: any worker began no body within 20 s")
    assert wishes.take(idle.shared, "worker-1", "task-9") is None  # What it asked for was taken back.


@pytest.mark.parametrize("kind", ["delay", "clock"])
def test_a_fault_of_a_worker_that_never_comes_is_not_proven(idle: Bench, kind: str) -> None:
    made = idle.make(fault(kind, "worker-7"), clock=Clock())
    assert unproven(idle, made) == "there was no worker worker-7 within 20 s"


def test_a_delay_without_a_proxy_is_not_proven(idle: Bench) -> None:
    idle.add_worker()
    made = idle.make(fault("delay"), publishes=False)
    assert unproven(idle, made) == "there is no proxy between the worker and the broker"


def test_a_broker_that_is_not_the_runs_own_is_not_restarted(idle: Bench) -> None:
    with Broker(Server("valkey", "redis://127.0.0.1:1/0", "valkey 9")) as broker:
        made = idle.make(fault("restart", "broker"), publishes=False, broker=broker)
    assert unproven(idle, made) == "the broker is not the run's own, and is not restarted"


def test_a_fault_that_nobody_noticed_makes_a_run_vacuous(idle: Bench) -> None:
    """It took effect, and no worker did anything meanwhile: nothing is known of how they bear it."""
    idle.add_worker()
    hello = b'{"w": "nobody", "get": true}\n'
    with (
        proxy.start("127.0.0.1", idle.queue.port, ["worker-1"], log=idle.folder / "proxy.log") as links,
        socket.create_connection(links.address("worker-1"), timeout=PATIENCE) as client,
    ):
        client.sendall(hello)
        assert client.recv(5) == b"null\n"
        schedule = Schedule(faults=[fault("delay", by=0.01)], span=0.0)
        injector = Injector(idle, schedule, timeout=0.1, links=links, clock=Clock())
        injector.step()
        client.sendall(hello)
        assert client.recv(5) == b"null\n"
        assert until(injector.step)
    assert unproven(idle, injector) == ""
    assert injector.doubt is not None
    assert injector.doubt[0] == "vacuous"
    assert injector.doubt[1].endswith("not proven: nobody did anything while it lasted")


def test_a_mistake_in_a_strike_is_a_fault_not_proven_and_no_run_that_hangs(
    idle: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(strike: object) -> Iterator[None]:
        yield
        raise ZeroDivisionError("a mistake")

    monkeypatch.setitem(STRIKES, "nack", broken)
    with Injector(idle, Schedule(faults=[fault("nack")], span=0.0), timeout=TIMEOUT) as injector:
        assert until(lambda: injector.is_over)
    assert unproven(idle, injector) == "ZeroDivisionError: a mistake"


def test_an_injector_that_cannot_read_the_events_is_over_and_says_why(idle: Bench) -> None:
    (idle.raw / "torn.jsonl").write_text("no json\n", encoding="utf-8")
    with Injector(idle, Schedule(faults=[fault("nack")], span=0.0), timeout=TIMEOUT) as injector:
        assert until(lambda: injector.is_over)
    assert "DecodeError" in unproven(idle, injector)


def test_a_run_that_is_over_heals_what_lasts_and_records_what_did_not_come(bench: Bench) -> None:
    schedule = Schedule(faults=[fault("stall", duration=1000.0), fault("long", start=900.0)], span=0.0)
    injector = Injector(bench, schedule, timeout=TIMEOUT, links=bench.links)

    def is_stopped() -> bool:
        bench.publish()
        injector.step()
        return any(set(processes.of_session(each.pid).values()) == {"T"} for each in bench.workers.values())

    assert until(is_stopped, pause=PACE), [record.sentence for record in injector.records]
    injector.stop()
    assert until(lambda: all("T" not in processes.of_session(each.pid).values() for each in bench.workers.values()))
    assert {record.why_not for record in injector.records} == {"the run was over before it"}
    assert [record.fault.kind for record in injector.records] == ["stall", "long"]
    assert injector.is_over


def until(is_so: Callable[[], object], pause: float = 0.005) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()) and time.monotonic() < deadline:
        time.sleep(pause)
    return bool(found)


# --- what a fault asks of a body


def test_a_wish_is_taken_once_by_whom_it_is_meant_for(tmp_path: Path) -> None:
    asked = wishes.Asked(tmp_path, "worker-2", "hold", 1.0)
    assert wishes.take(tmp_path, "worker-1@host", "a") is None
    assert asked.taken() is None
    wish = wishes.take(tmp_path, "worker-2@host", "b")
    assert wish is not None
    assert (wish.kind, wish.limit) == ("hold", 1.0)
    assert wishes.take(tmp_path, "worker-2@host", "c") is None
    assert asked.taken() == ("worker-2@host", "b")
    assert not asked.is_waiting()


def test_a_body_waits_until_it_is_released(tmp_path: Path) -> None:
    asked = wishes.Asked(tmp_path, wishes.ANYONE, "long", PATIENCE)
    wish = wishes.take(tmp_path, "worker-1", "a")
    assert wish is not None
    body = threading.Thread(target=wish.wait)
    body.start()
    assert until(asked.is_waiting)
    assert body.is_alive()
    asked.release()
    body.join(PATIENCE)
    assert not body.is_alive()


def test_a_body_does_not_wait_for_ever(tmp_path: Path) -> None:
    wishes.Asked(tmp_path, wishes.ANYONE, "long", 0.0)
    wish = wishes.take(tmp_path, "worker-1", "a")
    assert wish is not None
    wish.wait()


def test_a_wish_that_is_taken_back_is_no_ones_and_another_is_left_alone(tmp_path: Path) -> None:
    first = wishes.Asked(tmp_path, "worker-1", "hold", 1.0)
    assert wishes.take(tmp_path, "worker-1", "a") is not None
    wishes.Asked(tmp_path, "worker-1", "hold", 1.0)
    first.release()
    assert wishes.take(tmp_path, "worker-1", "b") is not None
    second = wishes.Asked(tmp_path, "worker-1", "hold", 1.0)
    second.release()
    assert wishes.take(tmp_path, "worker-1", "c") is None
