"""A tap for RabbitMQ: what goes into queues, what comes out of them to whom, and which channels are closed.

    rabbitmqctl trace_on                                    # the firehose, of the virtual host /
    rabbitmq-plugins enable rabbitmq_event_exchange         # if channels are to be known; else the firehose alone
    python -m specwatch.collector.taps.rabbitmq amqp://127.0.0.1:5672/ orders tapped/     # until SIGINT or SIGTERM
    specwatch check specs/rabbitmq/binding.tap.toml tapped/

It is one more client, with a queue of its own that is bound to two exchanges of the broker: ``amq.rabbitmq.trace``, the
firehose, and ``amq.rabbitmq.event``. The application is not changed. ``--key`` says what a message is known by: its
property ``message_id`` (the default), the name of a header, or a path into its JSON, ``$.order.id``. One that has none
is counted and left out.

What is seen (tried on 3.10):

- ``Publish``, ``Republish``: a message is routed to the queue;
- ``Pickup``: the broker sends it to a channel, with its flag ``redelivered``. It may yet lie in a client's buffer;
- ``ChannelClose``, ``ConnClose``: a channel is gone. One that the broker closes is gone only when its client has heard
  of it, while its messages are put back at once: they may be redelivered before.

Hidden: all words of workers, acks too, since the firehose has none; all that a worker does, and which worker it is; and
the moment when messages are put back.

What it costs: with the firehose on, the broker publishes each message twice more, and the tap receives all of them, of
all queues of the virtual host. The user must be allowed to read both exchanges.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..errors import CollectorError
from ..probes.amqp import Key, known_by
from ..probes.emitter import moment
from .writing import Seen, Writer

FIREHOSE = "amq.rabbitmq.trace"
EVENTS = "amq.rabbitmq.event"
HEARD = {FIREHOSE: ("publish.#", "deliver.#"), EVENTS: ("channel.created", "channel.closed", "connection.closed")}
REMEMBERED = 100_000
"""So many ids that were published are known."""
LISTEN = 0.2
"""Seconds between two looks whether it is to end."""
WAIT = 10.0
"""Seconds within which the broker must answer."""


class Reading:
    """Makes events of what the broker tells about one queue."""

    def __init__(self, queue: str, key: Key = "message_id") -> None:
        self.queue = queue
        self.key = key
        self.without_id = 0
        """Messages that have no id to be known by."""
        self._published: OrderedDict[str, None] = OrderedDict()
        self._channels: dict[str, tuple[str, str]] = {}
        """By the broker's process, the connection and the name of an open channel."""
        self._opened: dict[tuple[str, int], int] = {}
        """How often a number was opened on a connection."""

    def read(self, routing_key: str, headers: Mapping[str, Any], body: bytes) -> Iterator[Seen]:
        """What a message of the two exchanges tells."""
        kind, _, rest = routing_key.partition(".")
        if kind == "publish":
            if self.queue in headers.get("routed_queues", ()):
                yield from self._publication(headers, body)
        elif kind == "deliver":
            if rest == self.queue:
                yield from self._delivery(headers, body)
        elif routing_key == "channel.created":
            self._open(headers)
        elif routing_key == "channel.closed":
            if (known := self._channels.pop(str(headers["pid"]), None)) is not None:
                yield Seen(action="ChannelClose", params={"n": known[0], "c": known[1]})
        elif routing_key == "connection.closed":
            own_end = _own_end(headers["name"])
            for name in [name for name in self._opened if name[0] == own_end]:
                del self._opened[name]
            yield Seen(action="ConnClose", params={"n": own_end})

    def _publication(self, headers: Mapping[str, Any], body: bytes) -> Iterator[Seen]:
        key = self._known_by(headers, body)
        if key is None:
            return
        known = key in self._published
        self._published[key] = None
        self._published.move_to_end(key)
        if len(self._published) > REMEMBERED:
            self._published.popitem(last=False)
        yield Seen(action="Republish" if known else "Publish", params={"t": key}, key=key, attempt=0)

    def _delivery(self, headers: Mapping[str, Any], body: bytes) -> Iterator[Seen]:
        key = self._known_by(headers, body)
        if key is None:
            return
        connection, number = _own_end(headers["connection"]), int(headers["channel"])
        params = {"t": key, "n": connection, "c": self._name(connection, number), "r": bool(headers["redelivered"])}
        yield Seen(action="Pickup", params=params, key=key, attempt=0, body=True)

    def _known_by(self, headers: Mapping[str, Any], body: bytes) -> str | None:
        properties = headers.get("properties") or {}
        message = SimpleNamespace(message_id=properties.get("message_id"), headers=properties.get("headers"))
        key = known_by(self.key, message, body)
        self.without_id += key is None
        return key

    def _open(self, headers: Mapping[str, Any]) -> None:
        name, _, rest = str(headers["name"]).rpartition(" (")
        connection, number = _own_end(name), int(rest.removesuffix(")"))
        self._opened[connection, number] = self._opened.get((connection, number), 0) + 1
        self._channels[str(headers["pid"])] = connection, self._name(connection, number)

    def _name(self, connection: str, number: int) -> str:
        """As a probe names it: its number, and from the second opening on which opening it is."""
        times = self._opened.get((connection, number), 1)
        return str(number) if times == 1 else f"{number}.{times}"


def _own_end(connection: str) -> str:
    """The client's end of ``127.0.0.1:40112 -> 127.0.0.1:5672``."""
    return str(connection).partition(" -> ")[0]


def listen(
    connection: Any, reading: Reading, writer: Writer, *, ready: Callable[[], None], ended: Callable[[], bool]
) -> None:
    """Listen until ``ended``; what has come by then is still read.

    Raises ``CollectorError`` if the broker goes away: what was said since is not known.
    """
    import pika  # type: ignore[import-untyped]

    try:
        queue = _bound(connection)
        channel = connection.channel()
        ready()
        while True:
            over = ended()
            for method, properties, body in channel.consume(queue, auto_ack=True, inactivity_timeout=LISTEN):
                if method is None:
                    break
                for seen in reading.read(method.routing_key, properties.headers or {}, body):
                    writer.write(seen, moment())
            if over:
                return
    except pika.exceptions.AMQPError as error:
        raise CollectorError(
            f"the broker has ended the connection: what was said since is not known: {error!r}"
        ) from None


def _bound(connection: Any) -> str:
    """A queue of the tap's own, bound to the broker's exchanges, and gone with it. Raises ``CollectorError``."""
    import pika

    queue: str = connection.channel().queue_declare("", exclusive=True).method.queue
    for exchange, keys in HEARD.items():
        channel = connection.channel()
        try:
            for key in keys:
                channel.queue_bind(queue, exchange, key)
            channel.close()
        except pika.exceptions.ChannelClosedByBroker as error:
            if exchange == FIREHOSE or error.reply_code != 404:
                raise CollectorError(f"the broker does not let us hear {exchange}: {error.reply_text}") from None
            print("no events of channels: rabbitmq-plugins enable rabbitmq_event_exchange", file=sys.stderr)
    return queue


def tap(url: str, queue: str, folder: Path, *, key: Key = "message_id") -> None:
    """Write what is said until SIGINT or SIGTERM. Raises ``CollectorError``."""
    try:
        import pika
    except ImportError:
        raise CollectorError(
            "the client library pika is not installed", hint="pip install 'specwatch[pilots]'"
        ) from None
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: signals.append(received))
    try:
        parameters = pika.URLParameters(url)
        parameters.blocked_connection_timeout = WAIT
        connection = pika.BlockingConnection(parameters)
    except (pika.exceptions.AMQPError, OSError, ValueError) as error:
        raise CollectorError(f"no answer from the broker: {error!r}") from None
    try:
        # Without EmitterStop, where this raises: what was missed is not known, and an open tail says so.
        writer = Writer(folder, "tap")
        reading = Reading(queue, key)
        listen(connection, reading, writer, ready=lambda: print("listening", flush=True), ended=lambda: bool(signals))
        writer.close()
        if reading.without_id:
            print(f"{reading.without_id} messages had no id, and were left out", file=sys.stderr)
    finally:
        if connection.is_open:
            connection.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Listen until SIGINT or SIGTERM. Returns 0 then, and 4 where the broker cannot be listened to."""
    parser = argparse.ArgumentParser(
        prog="python -m specwatch.collector.taps.rabbitmq",
        description="Write what goes into a queue of RabbitMQ and out of it, as events.",
    )
    parser.add_argument("url", help="amqp://…, amqps://…")
    parser.add_argument("queue", help="the queue's name")
    parser.add_argument("folder", type=Path, help="where events are written")
    parser.add_argument("--key", default="message_id", help="a header's name, or $.path.in.json (message_id)")
    given = parser.parse_args(arguments)
    try:
        tap(given.url, given.queue, given.folder, key=given.key)
    except CollectorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
