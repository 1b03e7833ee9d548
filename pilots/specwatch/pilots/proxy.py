"""TCP proxies between the workers of a run and their broker: one a worker, so that one worker's network can fail.

    with proxy.start("127.0.0.1", 6379, ["worker-1", "worker-2"], log=logs / "proxy.log") as links:
        url = links.url("worker-1", server.url)      # what the worker connects to
        links.cut("worker-1")                        # its connections are reset, and new ones until ``heal``
        links.delay("worker-1", 0.2)                 # each byte comes 0.2 s later, in both directions
        links.hold("worker-1")                       # a black hole: connections stay, and nothing arrives
        links.heal("worker-1")                       # as before; what was held arrives now
        links.counts("worker-1")                     # the proof: connections, resets, bytes

All proxies of a run are one guarded process, which the run connects to over loopback: ``python -m`` this module. It is
no thread, since a run explores its model meanwhile, and each byte would wait for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from .errors import PilotError
from .runtime import guard

ENVIRONMENT = "SPECWATCH_PROXY"
"""The variable that tells the process what to do; it holds the word by which it knows the run, and the run it."""

START_WAIT = 30.0
"""Seconds within which the process must have connected."""
ANSWER_WAIT = 10.0
"""Seconds within which it must answer."""
CHUNK = 1 << 16
HELD = 64
"""Chunks that wait in one direction of a connection; then its sender is no longer read, and waits too."""
PLAIN = frozenset({"redis", "amqp", "nats", "postgresql", "kafka", "pulsar", "tcp"})
"""Schemes without TLS, which would see that it does not speak to the server that it named."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What has gone through one proxy since it began."""

    connections: int = 0
    """Connections that a worker made, those included that were reset at once."""
    open: int = 0
    """Connections that are open now, to the worker and to the broker."""
    resets: int = 0
    """Connections that a cut has reset, or refused."""
    refused: int = 0
    """Connections that the broker did not take."""
    received: int = 0
    """Bytes that came in, from either side."""
    sent: int = 0
    """Bytes that went out. What came in and did not go out was held, or lost with its connection."""
    delayed: int = 0
    """Bytes that went out later than they came in, because of a delay or a black hole."""


class Links:
    """The proxies of a run, by worker. Safe to use from several threads.

    Each method raises ``PilotError`` where the process does not answer, and ``KeyError`` for an unknown worker.
    """

    def __init__(self, control: socket.socket, ports: dict[str, int], log: Path) -> None:
        self._ports = ports
        self._control = control
        self._answers = control.makefile("rb")
        self._lock = threading.Lock()
        self._log = log

    @property
    def names(self) -> list[str]:
        return list(self._ports)

    def address(self, name: str) -> tuple[str, int]:
        """Where a worker's proxy listens: host and port."""
        return "127.0.0.1", self._ports[name]

    def url(self, name: str, url: str) -> str:
        """A server's URL, with the proxy's host and port in place of the server's. Raises ``PilotError`` for TLS."""
        parts = urlsplit(url)
        if parts.scheme not in PLAIN:
            raise PilotError(
                f"a broker at {parts.scheme}:// cannot be reached through a proxy",
                hint="faults of the network need a broker without TLS",
            )
        user, at, _ = parts.netloc.rpartition("@")
        host, port = self.address(name)
        return urlunsplit(parts._replace(netloc=f"{user}{at}{host}:{port}"))

    def add(self, name: str) -> None:
        """Begin a proxy for one more worker; nothing where it has one."""
        if name not in self._ports:
            self._ports[name] = self._ask("add", name)["port"]

    def cut(self, name: str) -> Counts:
        """Reset all connections of a worker, and each new one until ``heal``."""
        return self._order("cut", name)

    def delay(self, name: str, seconds: float) -> Counts:
        """Let what comes from now on arrive so much later, in its order."""
        return self._order("delay", name, seconds=seconds)

    def hold(self, name: str) -> Counts:
        """Let nothing arrive, in either direction; connections stay, new ones too. ``heal`` lets it all arrive."""
        return self._order("hold", name)

    def heal(self, name: str) -> Counts:
        """End whatever is wrong with a worker's network."""
        return self._order("heal", name)

    def counts(self, name: str) -> Counts:
        return self._order("counts", name)

    def close(self) -> None:
        self._answers.close()
        self._control.close()

    def _order(self, order: str, name: str, **more: float) -> Counts:
        self._ports[name]  # A name that is not there is the caller's mistake.
        return msgspec.convert(self._ask(order, name, **more), Counts)

    def _ask(self, order: str, name: str, **more: float) -> Any:
        with self._lock:
            try:
                self._control.sendall(json.dumps({"order": order, "name": name, **more}).encode() + b"\n")
                answer = self._answers.readline()
            except (OSError, ValueError) as error:
                raise PilotError(f"the proxy does not answer: {error}", file=str(self._log)) from None
        if not answer:
            raise PilotError("the proxy has ended", file=str(self._log))
        return json.loads(answer)


@contextlib.contextmanager
def start(host: str, port: int, names: Sequence[str], *, log: Path) -> Iterator[Links]:
    """Proxies to a server, one for each name, on free ports of loopback. They end with the block, or with the run.

    Raises ``PilotError``, as ``ServerError`` where no process can be started.
    """
    word = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        told = {"word": word, "run": listener.getsockname()[1], "host": host, "port": port, "names": list(names)}
        with guard.spawn(
            [sys.executable, "-m", __name__],
            log=log,
            env={**os.environ, ENVIRONMENT: json.dumps(told)},
        ) as process:
            control, ports = _connected(listener, word, process)
            links = Links(control, ports, log)
            try:
                yield links
            finally:
                links.close()


def _connected(listener: socket.socket, word: str, process: guard.Process) -> tuple[socket.socket, dict[str, int]]:
    """The process's connection, and the ports that it says. Others that connect do not know the word."""
    deadline = time.monotonic() + START_WAIT
    listener.settimeout(0.1)
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.settimeout(ANSWER_WAIT)
            with contextlib.suppress(OSError, ValueError, AttributeError), connection.makefile("rb") as lines:
                first = json.loads(lines.readline(CHUNK))
                if secrets.compare_digest(str(first.get("word")), word):
                    return connection, first["ports"]
            connection.close()
    raise PilotError("the proxy does not start", file=str(process.log))


# --- the process


class _Link:
    """One worker's proxy."""

    def __init__(self, host: str, port: int) -> None:
        self.upstream = host, port
        self.numbers = dict.fromkeys(Counts.__struct_fields__, 0)
        self.seconds = 0.0
        self.is_cut = False
        self.flows = asyncio.Event()
        self.flows.set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None

    async def listen(self) -> int:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=CHUNK)
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    # What the run orders

    def cut(self) -> None:
        self.is_cut = True
        self.numbers["resets"] += self.numbers["open"]
        for writer in list(self.writers):
            _reset(writer)

    def heal(self) -> None:
        self.is_cut, self.seconds = False, 0.0
        self.flows.set()

    def order(self, order: str, seconds: float = 0.0) -> dict[str, int]:
        orders: dict[str, Callable[[], object]] = {
            "cut": self.cut,
            "hold": self.flows.clear,
            "delay": lambda: setattr(self, "seconds", seconds),
            "heal": self.heal,
            "counts": lambda: None,
        }
        orders[order]()
        return self.numbers

    # What the worker does

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.numbers["connections"] += 1
        if self.is_cut:
            self.numbers["resets"] += 1
            _reset(writer)
            return
        try:
            other, others = await asyncio.open_connection(*self.upstream, limit=CHUNK)
        except OSError:
            self.numbers["refused"] += 1
            _reset(writer)
            return
        self.numbers["open"] += 1
        self.writers |= {writer, others}
        self.recheck()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self.flow(reader, others))
                both.create_task(self.flow(other, writer))
        except* (OSError, RuntimeError):
            # One side has reset its connection: so the other's is.
            for each in (writer, others):
                _reset(each)
        finally:
            self.numbers["open"] -= 1
            self.writers -= {writer, others}
            for each in (writer, others):
                each.close()

    def recheck(self) -> None:
        """A cut that came while the broker was asked is one of this connection too."""
        if self.is_cut:
            self.cut()

    async def flow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction of a connection, until its sender ends it."""
        waiting: asyncio.Queue[tuple[float, float, bytes]] = asyncio.Queue(HELD)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.send(waiting, writer))
            while True:
                data = await reader.read(CHUNK)
                self.numbers["received"] += len(data)
                await waiting.put((time.monotonic(), self.seconds, data))
                if not data:
                    return

    async def send(self, waiting: asyncio.Queue[tuple[float, float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            came, seconds, data = await waiting.get()
            early = came + seconds - time.monotonic()
            if early > 0:
                await asyncio.sleep(early)
            was_held = not self.flows.is_set()
            await self.flows.wait()
            if not data:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
            self.numbers["sent"] += len(data)
            if was_held or seconds > 0:
                self.numbers["delayed"] += len(data)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST, as a network does that lost it, and not by FIN, as a program does that has finished."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _main(told: dict[str, Any]) -> None:
    """Serve until the run closes its connection."""
    links = {name: _Link(told["host"], told["port"]) for name in told["names"]}
    ports = {name: await link.listen() for name, link in links.items()}
    reader, writer = await asyncio.open_connection("127.0.0.1", told["run"])
    writer.write(json.dumps({"word": told["word"], "ports": ports}).encode() + b"\n")
    while line := await reader.readline():
        request = json.loads(line)
        order, name = request.pop("order"), request.pop("name")
        if order == "add":
            links[name] = _Link(told["host"], told["port"])
            answer = {"port": await links[name].listen()}
        else:
            answer = links[name].order(order, **request)
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()


if __name__ == "__main__":
    # What is left open is cut by the end of the process, which is what the run wants.
    asyncio.run(_main(json.loads(os.environ.pop(ENVIRONMENT))))
