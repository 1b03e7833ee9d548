"""A tap for NATS JetStream: what publishers, the server and the workers of one consumer say to each other.

    python -m specwatch.collector.taps.nats nats://127.0.0.1:4222 ORDERS billing tapped/     # until SIGINT or SIGTERM
    specwatch check specs/nats/binding.tap.toml tapped/

It is one more client of the account, and subscribes to what others say: the stream's subjects, the inboxes that the
server delivers into, the workers' words about deliveries, and the server's advisories. Neither the application nor its
consumer is changed: no ``sample_freq`` is needed.

``--key`` says what a message is known by: the name of a header (default: ``Nats-Msg-Id``), or a path into its JSON,
``$.order.id``; one that has none is known by its sequence in the stream.

What is seen, in the order of the server (tried on 2.15):

- ``Publish``, ``Republish``: a message is sent to a subject of the stream;
- ``PubAck``: the server's answer to it, and whether it was dropped as a duplicate;
- ``Pickup``: the server delivers it. It may yet lie in a client's buffer, or be lost with it, unseen;
- ``Ack``, ``Nack``, ``NackDelayed``, ``Reject``, ``InProgress``: a worker's word, on ``$JS.ACK.…``, which also says of
  which delivery;
- ``Park``: the advisory MAX_DELIVERIES.

Hidden: all that a worker does between receipt and ack, and which worker it is; and AckWait, when it is over.

What it costs: the server sends the tap each message and each answer to a request of the account, once more. A tap that
reads too slowly is cut off, and says so. The account's user must be allowed to subscribe to ``_INBOX.>`` and ``$JS.>``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import CollectorError
from ..probes.deliveries import known_by
from ..probes.emitter import moment
from .writing import Seen, Writer

REMEMBERED = 100_000
"""So many messages, and so many deliveries that a word was said of, are known."""
WAIT = 10.0
"""Seconds within which the server must answer."""

WORDS = {"+ACK": "Ack", "": "Ack", "+NXT": "Ack", "-NAK": "Nack", "+TERM": "Reject", "+WPI": "InProgress"}


class Remembered:
    """The latest of so many; older ones are forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, str] = OrderedDict()

    def get(self, name: Hashable) -> str | None:
        return self._known.get(name)

    def take(self, name: Hashable) -> bool:
        """Whether the name was known; it then is no more."""
        return self._known.pop(name, None) is not None

    def put(self, name: Hashable, value: str = "") -> bool:
        """Whether the name is new."""
        new = name not in self._known
        self._known[name] = value
        self._known.move_to_end(name)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return new


class Reading:
    """Makes events of what is said in an account about one consumer of a stream."""

    def __init__(self, stream: str, consumer: str, key: str) -> None:
        self.stream = stream
        self.consumer = consumer
        self.key = key
        self._published = Remembered()
        self._asked = Remembered()
        """By the inbox for the answer, what a publication is known by; "" where its sequence will say."""
        self._keys = Remembered()
        """By sequence, what a message is known by."""
        self._delivered = Remembered()
        self._said = Remembered()
        self._ahead = Remembered()
        """What was heard of a message before that it was published, which it was."""
        self._answered = Remembered()
        """By inbox, answers that were heard before what they answer."""
        self._began = moment().time

    def read(self, message: Any, *, published: bool) -> Iterator[Seen]:
        """What a message tells; ``published``: it was sent to a subject of the stream."""
        if message.subject.startswith("$JS.EVENT.ADVISORY."):
            yield from self._advisory(message)
        elif message.subject.startswith("$JS.ACK."):
            yield from self._word(message)
        elif message.reply.startswith("$JS.ACK."):
            yield from self._delivery(message)
        elif published:
            yield from self._publication(message)
        else:
            yield from self._answer(message)

    def _publication(self, message: Any) -> Iterator[Seen]:
        key = known_by(self.key, message, message.headers, message.data)
        if message.reply:
            self._asked.put(message.reply, key or "")
        if key is not None and not self._ahead.take(key):
            yield self._publish(key)
        early = self._answered.get(message.reply) if message.reply else None
        if early is not None and self._answered.take(message.reply):
            yield from self._told(key or "", early)

    def _publish(self, key: str) -> Seen:
        return self._seen("Publish" if self._published.put(key) else "Republish", key)

    def _answer(self, message: Any) -> Iterator[Seen]:
        asked = self._asked.get(message.subject)
        if asked is not None:
            yield from self._told(asked, message.data)
        elif b'"stream"' in message.data:  # What asks for it may be heard of after it.
            self._answered.put(message.subject, message.data.decode(errors="replace"))

    def _told(self, asked: str, data: str | bytes) -> Iterator[Seen]:
        try:
            answer = json.loads(data)
            sequence, dropped = int(answer["seq"]), bool(answer.get("duplicate"))
        except (ValueError, TypeError, KeyError):
            return  # It was refused.
        key = asked or str(sequence)
        if not asked and not self._ahead.take(key):
            yield self._publish(key)
        if not dropped:
            self._keys.put(sequence, key)
        yield self._seen("PubAck", key, seq=sequence, dup=dropped)

    def _delivery(self, message: Any) -> Iterator[Seen]:
        about = self._about(message.reply)
        if about is None:
            return
        key = known_by(self.key, message, message.headers, message.data) or str(about[0])
        self._keys.put(about[0], key)
        # The server has many hands: a message may be heard of on its way out before it is heard of on its way in.
        if self._published.get(key) is None:
            if int(_words(message.reply)[5]) >= self._began:
                self._ahead.put(key)
            yield self._publish(key)
        yield from self._received(about, key)

    def _received(self, about: tuple[int, int], key: str) -> Iterator[Seen]:
        if self._delivered.put(about):
            seen = self._seen("Pickup", key, a=about[1], r=about[1] > 0)
            seen.body = True
            yield seen

    def _word(self, message: Any) -> Iterator[Seen]:
        about = self._about(message.subject)
        if about is None:
            return
        word, _, more = message.data.decode(errors="replace").partition(" ")
        action = WORDS.get(word)
        key = self._keys.get(about[0])
        # What was delivered before the tap began is no one's here; and a delivery's second word does nothing.
        if action is None or key is None or (action != "InProgress" and not self._said.put(about)):
            return
        yield from self._received(about, key)
        yield self._seen("NackDelayed" if action == "Nack" and more else action, key, a=about[1])

    def _advisory(self, message: Any) -> Iterator[Seen]:
        try:
            told = json.loads(message.data)
            key = self._keys.get(told["stream_seq"])
        except (ValueError, TypeError, KeyError):
            return
        if key is not None:
            yield self._seen("Park", key)

    def _about(self, subject: str) -> tuple[int, int] | None:
        """The sequence in the stream and the deliveries before this one, of ``$JS.ACK.…``; None of another consumer."""
        words = _words(subject)
        if len(words) < 7 or words[:2] != [self.stream, self.consumer]:
            return None
        return int(words[3]), int(words[2]) - 1

    def _seen(self, action: str, key: str, **params: Any) -> Seen:
        extra = {"stream": self.stream, "consumer": self.consumer}
        return Seen(action=action, params={"t": key, **params}, key=key, attempt=params.get("a"), extra=extra)


def _words(subject: str) -> list[str]:
    """``<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`` of a ``$JS.ACK.…``.

    A newer form has a domain and the account before them, and one more word after them.
    """
    words = subject.split(".")[2:]
    return words[2:] if len(words) > 7 else words


async def listen(
    client: Any, reading: Reading, writer: Writer, *, ready: Callable[[], None], end: asyncio.Event
) -> None:
    """Listen until ``end``; what has come by then is still read. Raises ``CollectorError`` if the server goes away."""
    from nats.js.errors import NotFoundError

    js = client.jetstream()
    try:
        subjects = (await js.stream_info(reading.stream)).config.subjects or []
    except NotFoundError:
        raise CollectorError(f"there is no stream {reading.stream}") from None
    inboxes = ["_INBOX.>"]
    with contextlib.suppress(NotFoundError):
        about = await js.consumer_info(reading.stream, reading.consumer)
        into = about.config.deliver_subject
        inboxes += [into] if into and not into.startswith("_INBOX.") else []
    advisory = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{reading.stream}.{reading.consumer}"
    said: asyncio.Queue[Any] = asyncio.Queue()
    published = set()
    for subject in (*subjects, *inboxes, "$JS.ACK.>", advisory):
        subscription = await client.subscribe(subject, pending_msgs_limit=-1, pending_bytes_limit=-1)
        # One queue for all, since what came over one connection is in the order of the server, and stays so.
        subscription._pending_queue = said
        if subject in subjects:
            published.add(subscription._id)
    await client.flush()
    ready()
    ended = asyncio.create_task(end.wait())
    try:
        while True:
            following = asyncio.create_task(said.get())
            await asyncio.wait({following, ended}, return_when=asyncio.FIRST_COMPLETED, timeout=1)
            if not following.done():
                following.cancel()
                if client.is_closed:
                    raise CollectorError(
                        "the server has ended the connection: what was said since is not known",
                        hint="a tap that reads too slowly is cut off",
                    )
                if ended.done() and said.empty():
                    return
                continue
            message = following.result()
            for seen in reading.read(message, published=message._sid in published):
                writer.write(seen, moment())
    finally:
        ended.cancel()


async def tap(url: str, stream: str, consumer: str, folder: Path, *, key: str = "Nats-Msg-Id") -> None:
    """Write what is said until SIGINT or SIGTERM. Raises ``CollectorError``."""
    import nats

    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)

    async def heard(_: Exception) -> None:
        """What matters of it is that the connection is closed."""

    try:
        client = await nats.connect(
            url, connect_timeout=WAIT, allow_reconnect=False, max_reconnect_attempts=1, error_cb=heard
        )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise CollectorError(f"no answer from the server: {error}") from None
    try:
        # Without EmitterStop, where this raises: what was missed is not known, and an open tail says so.
        writer = Writer(folder, "tap")
        reading = Reading(stream, consumer, key)
        await listen(client, reading, writer, ready=lambda: print("listening", flush=True), end=end)
        writer.close()
    finally:
        await client.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Listen until SIGINT or SIGTERM. Returns 0 then, and 4 where the server cannot be listened to."""
    parser = argparse.ArgumentParser(
        prog="python -m specwatch.collector.taps.nats",
        description="Write what a JetStream and the workers of a consumer say to each other, as events.",
    )
    parser.add_argument("url", help="nats://…, tls://…")
    parser.add_argument("stream", help="the stream's name")
    parser.add_argument("consumer", help="the consumer's name")
    parser.add_argument("folder", type=Path, help="where events are written")
    parser.add_argument("--key", default="Nats-Msg-Id", help="a header's name, or $.path.in.json (Nats-Msg-Id)")
    given = parser.parse_args(arguments)
    try:
        asyncio.run(tap(given.url, given.stream, given.consumer, given.folder, key=given.key))
    except CollectorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
