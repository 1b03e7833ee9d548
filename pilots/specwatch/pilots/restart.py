"""A broker that stops and comes back, with its data and on its port, while workers want something of it."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import PilotError
from .runtime import Server, ServerError, guard
from .runtime.kafka import ask_kafka
from .runtime.nats import ask_nats
from .runtime.pulsar import ask_pulsar
from .runtime.rabbitmq import ask_rabbitmq, control
from .runtime.servers import ask_valkey, connect_valkey

WAIT = 60.0
"""Seconds within which a server must have stopped, and must answer again: Pulsar takes 24 on a busy machine, both."""
LOOK = 0.02


class Broker:
    """A server that a run has started, and that can be started again. One for all experiments on it; use it in ``with``
    inside of that which started the server.

    Where several ask for a restart at once, there is one.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._pid = server.pid
        self._process: guard.Process | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="restart")
        self._lock = threading.Lock()
        self._running: Future[dict[str, Any]] | None = None

    @property
    def can_restart(self) -> bool:
        """Whether it is the run's own: no one stops a server that others use."""
        return self.server.pid is not None

    def restart(self) -> Future[dict[str, Any]]:
        """Begin a restart. Its result is the evidence: for how many ``seconds`` the port was ``refused``, ``pids``.

        Raises, in the future's result, ``PilotError`` where it does not stop or does not come back.
        """
        with self._lock:
            if self._running is None or self._running.done():
                self._running = self._worker.submit(self._restart)
            return self._running

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.shutdown()
        if self._process is not None:
            self._process.stop()

    def _restart(self) -> dict[str, Any]:
        if not self.can_restart:
            raise PilotError(f"{self.server.version} is not the run's own, and is not restarted")
        before, began = self._pid, time.monotonic()
        if self.server.name == "rabbitmq":
            # The node stays, and with it its files and its cookie; all that speaks AMQP is stopped.
            control(self.server, "stop_app")
            refused = self._is_refused()
            control(self.server, "start_app")
        else:
            refused = self._exchange()
        seconds = time.monotonic() - began
        return {"pids": [before, self._pid], "refused": refused, "seconds": round(seconds, 3)}

    def _exchange(self) -> bool:
        """Stop the program and start it as it was started; whether its port was refused in between."""
        assert self._pid is not None
        proc = Path("/proc", str(self._pid))
        argv = [os.fsdecode(word) for word in (proc / "cmdline").read_bytes().split(b"\0")[:-1]]
        lines = (os.fsdecode(line) for line in (proc / "environ").read_bytes().split(b"\0") if b"=" in line)
        environment = dict(line.split("=", 1) for line in lines)
        # The title that it gives itself stands where its command line was.
        argv = _argv(self.server.name, self._pid, argv)
        folder, owner = (proc / "cwd").resolve(), proc.stat().st_uid
        self._stop(self._pid)
        refused = self._is_refused()
        process = guard.spawn(
            argv,
            log=self.server.log or Path(os.devnull),
            env=environment,
            cwd=folder,
            user=None if owner == os.geteuid() else _user(owner),
        )
        old, self._process, self._pid = self._process, process, process.pid
        if old is not None:
            old.stop()
        self._await(process)
        return refused

    def _stop(self, pid: int) -> None:
        if self.server.name == "valkey":
            client = connect_valkey(self.server.url)
            import redis

            with contextlib.closing(client):
                try:
                    client.execute_command("SHUTDOWN", "SAVE")
                except redis.ConnectionError:
                    pass  # That is its answer.
                except redis.RedisError as error:
                    raise PilotError(f"{self.server.version} does not stop: {error}") from None
        else:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + WAIT
        while Path("/proc", str(pid)).exists():
            if time.monotonic() > deadline:
                raise PilotError(f"{self.server.version} does not stop within {WAIT:g} s")
            time.sleep(LOOK)

    def _is_refused(self) -> bool:
        parts = urlsplit(self.server.url)
        try:
            with socket.create_connection((parts.hostname, parts.port), timeout=1):
                return False
        except OSError:
            return True

    def _await(self, process: guard.Process) -> None:
        deadline = time.monotonic() + WAIT
        while True:
            ended = process.wait(LOOK) is not None
            try:
                ASK[self.server.name](self.server.url)
                return
            except ServerError as error:
                if ended or time.monotonic() > deadline:
                    log = None if self.server.log is None else str(self.server.log)
                    raise PilotError(f"{self.server.version} does not come back: {error.message}", file=log) from None


ASK: dict[str, Callable[[str], object]] = {
    "valkey": ask_valkey,
    "nats": ask_nats,
    "rabbitmq": ask_rabbitmq,
    "kafka": ask_kafka,
    "pulsar": ask_pulsar,
}
"""How to ask a server whether it is there; each raises ``ServerError`` where it is not."""


def _argv(name: str, pid: int, argv: list[str]) -> list[str]:
    """The command by which a server was started. Valkey overwrites its own by a title without its file."""
    if name != "valkey":
        return argv
    program = str(Path("/proc", str(pid), "exe").resolve())
    return [program, str(Path("/proc", str(pid), "cwd").resolve() / "valkey.conf")]


def _user(uid: int) -> guard.User:
    entry = pwd.getpwuid(uid)
    return guard.User(entry.pw_name, entry.pw_uid, entry.pw_gid)
