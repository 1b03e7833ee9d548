"""A tap for Celery on Redis and Valkey: what clients say to the broker, by ``MONITOR``.

    python -m specwatch.collector.taps.redis redis://127.0.0.1:6379/0 tapped/     # until SIGINT or SIGTERM
    specwatch check specs/celery/binding.tap.toml tapped/

``--key`` says what the events are about: ``header.id`` (the default: the task's id), another header or property of the
message (``property.correlation_id``), or a place in its JSON body (``body.1.order``: of Celery's ``[args, kwargs, …]``
the keyword argument ``order``). ``--prefix`` is kombu's ``global_keyprefix``; without it every key ``…unacked`` is
looked at.

What is seen, in the order of the server, and how (read in kombu 5.5 to 5.7, transport/redis.py):

- ``Publish``, ``Republish``, ``Retry``: a message is pushed, by the id and the ``retries`` that it carries;
- ``Pickup``: HSET of its tag into ``unacked``, which follows BRPOP. A worker that dies in between has lost it, unseen;
- ``Ack``: HDEL of the tag, be it there or not. A revoked, expired or rejected task is settled by the same word;
- ``VisTimeout``, or ``RestoreOnShutdown``: HDEL and RPUSH in one transaction; ``Nack``: HDEL and LPUSH.

Hidden: all that a worker does between receipt and ack, and which worker it is, for a worker has many connections.

What it costs: the server copies each command to the tap. 20,000 messages (Valkey 9.1, LPUSH, BRPOP, and what a receipt
and an ack say) took 0.17 ms of the server's time each without a tap and 0.29 ms with one, and the tap 0.64 ms: it keeps
up with some 1,500 messages a second. A server that is busy for more than half of its time has no room for it.
MONITOR shows all data of all databases, and wants a user that may use it. ``redis_keyspace`` costs less and sees less.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from ..errors import CollectorError
from ..probes.emitter import Moment, moment
from .redis_messages import About, Key, Messages, pickup
from .writing import Seen, Writer

WAIT = 10.0
"""Seconds within which the server must answer."""
CHUNK = 1 << 16

_LINE = re.compile(rb"(\d+)\.(\d{6}) \[(\d+) (.*?)\] (?=\")")
_ARGUMENT = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


class Command(msgspec.Struct, frozen=True):
    """A line of MONITOR."""

    nanoseconds: int
    """Since the epoch, as the server's clock says."""
    database: int
    client: str
    """``host:port``, ``lua`` or ``unix:…``"""
    words: tuple[bytes, ...]

    @property
    def name(self) -> str:
        return self.words[0].decode(errors="replace").upper()


def command(line: bytes) -> Command | None:
    """What a line of MONITOR says; None where it is none."""
    head = _LINE.match(line)
    if head is None:
        return None
    seconds, micros, database, client = head.groups()
    words = tuple(
        _ESCAPE.sub(_unescaped, word) if b"\\" in word else word for word in _ARGUMENT.findall(line, head.end())
    )
    time_ = int(seconds) * 1_000_000_000 + int(micros) * 1_000
    return Command(time_, int(database), client.decode(errors="replace"), words) if words else None


def _unescaped(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == 3:
        return bytes([int(escaped[1:], 16)])
    return _ESCAPED.get(escaped, escaped)


class Monitor:
    """Makes events of the lines of MONITOR. Remembers each client's open transaction, and the messages."""

    def __init__(self, *, key: Key, prefix: str | None = None, database: int = 0) -> None:
        self.messages = Messages(key)
        self.database = database
        self._hash = None if prefix is None else f"{prefix}unacked".encode()
        self._open: dict[str, list[Command]] = {}
        """By client, the commands since its MULTI."""
        self._watching: set[str] = set()
        """Clients that have looked at the hash first: these restore, and do not ack."""

    def read(self, line: bytes) -> Iterator[tuple[int, Seen]]:
        """What a line tells, each with the time of the server, in nanoseconds."""
        said = command(line)
        if said is None or said.database != self.database:
            return
        client, name = said.client, said.name
        if name == "WATCH" and any(map(self._is_hash, said.words[1:])):
            self._watching.add(client)
        elif name == "UNWATCH":
            self._watching.discard(client)
        elif name == "MULTI":
            self._open[client] = []
        elif name in ("EXEC", "DISCARD"):
            group = self._open.pop(client, [])
            restores = client in self._watching
            self._watching.discard(client)
            if name == "EXEC":
                yield from self._told(group, restores)
        elif client in self._open:
            self._open[client].append(said)
        else:
            yield from self._told([said], False)

    def _is_hash(self, name: bytes) -> bool:
        return name == self._hash if self._hash is not None else name.endswith(b"unacked")

    def _told(self, group: list[Command], restores: bool) -> Iterator[tuple[int, Seen]]:
        """What a transaction, or a command on its own, tells."""
        gone: list[str] = []
        for said in group:
            if said.name == "HDEL" and self._is_hash(said.words[1]):
                gone += [tag.decode(errors="replace") for tag in said.words[2:]]
        for said in group:
            words = said.words
            if said.name in ("LPUSH", "RPUSH"):
                for payload in words[2:]:
                    sent = self.messages.read(payload)
                    if sent is not None:
                        yield said.nanoseconds, self._sent(*sent, back=restores and sent[0] in gone, first=said.name)
            elif said.name == "HSET" and self._is_hash(words[1]):
                for tag, entry in zip(words[2::2], words[3::2], strict=False):
                    received = self.messages.entry(entry)
                    if received is not None:
                        yield said.nanoseconds, pickup(received, tag.decode(errors="replace"))
            elif said.name == "HDEL" and self._is_hash(words[1]) and not restores:
                for tag in words[2:]:
                    name = tag.decode(errors="replace")
                    about = self.messages.get(name)
                    # One that was sent before the tap began, and not received since, is no one's here.
                    if about is not None:
                        yield said.nanoseconds, about.seen("Ack", tag=name, a=about.attempt)

    def _sent(self, tag: str, about: About, *, back: bool, first: str) -> Seen:
        if back:
            if first == "LPUSH":
                return about.seen("Nack", tag=tag, a=about.attempt)
            # Whose sweep or shutdown it was is not said.
            return about.seen("VisTimeout", tag=tag, alternatives=["RestoreOnShutdown"])
        new = self.messages.is_new(about.key)
        if about.attempt:
            ended = msgspec.structs.replace(about, attempt=about.attempt - 1)
            return ended.seen("Retry", tag=tag, a=ended.attempt)
        return about.seen("Publish" if new else "Republish", tag=tag)


class Line:
    """A connection to the server, until ``end``: then what has come by then is still read."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        if place.scheme not in ("redis", "rediss", "valkey", "valkeys"):
            raise CollectorError(
                f"not a URL of a Redis or Valkey: {place.scheme}://…", hint="redis://host:6379/0, or rediss://…"
            )
        self.database = int(place.path.strip("/") or 0)
        self.address = f"{place.hostname or 'localhost'}:{place.port or 6379}"
        self.ended = False
        self._socket = _connected(place.scheme, place.hostname or "localhost", place.port or 6379)
        self._rest = b""
        self._read: list[bytes] = []
        self._words = [unquote(word) for word in (place.username, place.password) if word]

    def log_in(self) -> None:
        """Say who one is, where the URL does. Raises ``CollectorError`` where that is refused."""
        if self._words:
            self.say("AUTH", *self._words)

    def say(self, *words: str) -> None:
        """Say a command whose answer is OK. Raises ``CollectorError`` for another answer."""
        encoded = [word.encode() for word in words]
        text = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
        self._socket.sendall(text)
        answer = next(self.lines(), b"-the connection was ended")
        if not answer.startswith(b"+"):
            raise CollectorError(
                f"{self.address} refuses {words[0]}: {answer[1:].decode(errors='replace')}",
                hint="the URL may hold a user and a password: redis://user:password@host:6379/0",
            )

    def lines(self) -> Iterator[bytes]:
        """What the server says, line by line."""
        while True:
            while self._read:
                yield self._read.pop()
            try:
                data = self._socket.recv(CHUNK)
            except OSError as error:
                raise CollectorError(f"{self.address} does not answer: {error}") from None
            if not data:
                return
            *lines, self._rest = (self._rest + data).split(b"\r\n")
            self._read = lines[::-1]

    def listen(self) -> None:
        """From now on, wait for what is said as long as it takes."""
        self._socket.settimeout(None)

    def end(self, *_: object) -> None:
        """Read no more than what has come. To be called from a signal's handler too."""
        self.ended = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        self._socket.close()


def monitor(line: Line, writer: Writer, *, key: Key, prefix: str | None, ready: Callable[[], None]) -> None:
    """Listen until ``line.end``. Raises ``CollectorError`` where the server ends the connection."""
    reading = Monitor(key=key, prefix=prefix, database=line.database)
    line.say("MONITOR")
    line.listen()
    ready()
    for said in line.lines():
        for nanoseconds, seen in reading.read(said[1:]):
            writer.write(seen, _at(nanoseconds))
    if not line.ended:
        raise CollectorError(
            f"{line.address} has ended the connection: what was said since is not known",
            hint="a tap that reads too slowly is cut off by client-output-buffer-limit",
        )


def _at(nanoseconds: int) -> Moment:
    """A time of the server on this machine's monotonic clock, which is the same one where both are one machine."""
    now = moment()
    return Moment(nanoseconds, now.monotonic - (now.time - nanoseconds))


def _connected(scheme: str, host: str, port: int) -> socket.socket:
    try:
        connection = socket.create_connection((host, port), timeout=WAIT)
        if scheme in ("rediss", "valkeys"):
            return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        return connection
    except OSError as error:
        raise CollectorError(f"no answer from {host}:{port}: {error}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Listen until SIGINT or SIGTERM. Returns 0 then, and 4 where the server cannot be listened to."""
    parser = argparse.ArgumentParser(prog="python -m specwatch.collector.taps.redis", description=_PURPOSE)
    parser.add_argument("url", help="redis://…, rediss://…")
    parser.add_argument("folder", type=Path, help="where events are written")
    parser.add_argument("--key", default="header.id", type=_key, help="what events are about (default: header.id)")
    parser.add_argument("--prefix", help="kombu's global_keyprefix (default: any; of keyspace: none)")
    parser.add_argument("--source", choices=("monitor", "keyspace"), default="monitor", help="(default: monitor)")
    given = parser.parse_args(arguments)
    try:
        if given.source == "keyspace":
            from .redis_keyspace import listen

            listen(given.url, given.folder, key=given.key, prefix=given.prefix or "", ready=_ready)
            return 0
        line = Line(given.url)
        with contextlib.closing(line):
            line.log_in()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, line.end)
            writer = Writer(given.folder, "tap")
            try:
                monitor(line, writer, key=given.key, prefix=given.prefix, ready=_ready)
            finally:
                writer.close(is_whole=line.ended)
    except CollectorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    return 0


def _ready() -> None:
    print("listening", flush=True)


_PURPOSE = "Write what Celery says to a Redis or Valkey, as events, without any change to the application."


def _key(text: str) -> Key:
    try:
        return Key(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
