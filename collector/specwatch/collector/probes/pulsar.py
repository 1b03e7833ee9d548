"""Probes for Apache Pulsar with pulsar-client: what producers and consumers do, also those of ``pulsar.asyncio``.

    from specwatch.collector.probes.pulsar import executed, handling, instrument

    client = instrument(pulsar.Client("pulsar://localhost:6650"), worker="worker-2")
    consumer = client.subscribe("orders", "billing", consumer_type=pulsar.ConsumerType.Shared)
    message = consumer.receive()
    with handling(message):
        ...
        executed()
    consumer.acknowledge(message)

The events are the actions of ``specs/pulsar/Pulsar.tla``: t is what the message is known by, w the worker's name, a its
redelivery count, b whether it came in a batch. What the client does by itself and tells no one (its timer, that its
connection is lost) is no event.

A message is told of when it is given to the application; what lies in the client's queue is not. An ack is told when it
is asked for: the client sends it a moment later, with others, and no answer is asked of the broker. (Read in
pulsar-client 3.6 to 3.13.)
"""

from __future__ import annotations

import inspect
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal, TypeVar

from .deliveries import REMEMBERED, Delivery, Key, Publications, executed, guarded, handling, known_by, skipped, undone
from .emitter import Moment, emit, moment

__all__ = ["Key", "executed", "handling", "instrument", "skipped", "undone"]

Client = TypeVar("Client")

Place = tuple[int, int, int]
"""Ledger, entry, and place in its batch (-1: it came in none): where a message stands, unique in a cluster."""


def instrument(
    client: Client,
    *,
    worker: str | None = None,
    key: Key = "id",
    execute: Literal["return", "told"] = "return",
) -> Client:
    """Make a ``pulsar.Client``, or one of ``pulsar.asyncio``, emit events; returns it. To be called before it
    subscribes.

    ``worker`` is the name of its consumers, by default ``host/pid``. ``key`` says what a message is known by; one that
    has none is known by its place, ``ledger:entry``, in a batch ``ledger:entry:place``. ``execute`` says what tells of
    the effect: ``"told"``, ``executed`` alone; ``"return"``, also the end of ``handling`` where nothing was said in it,
    with the field ``inferred``.

    All consumers of a client should be of one subscription: two subscriptions each get every message.
    """
    probe = _Probe(worker or f"{os.uname().nodename}/{os.getpid()}", key, execute == "return")
    patched: Any = client
    patched.subscribe = partial(probe.subscribing, patched.subscribe)
    patched.create_producer = partial(probe.producing, patched.create_producer)
    patched.close = partial(probe.closing, patched.close)
    return client


class _Probe:
    """What one client's consumers and producers tell."""

    def __init__(self, worker: str, key: Key, infers: bool) -> None:
        self.worker = worker
        self.key = key
        self.infers = infers
        self.published = Publications()
        self.open: list[Received] = []
        """What its consumers that are not closed hold."""

    # Consumers

    def subscribing(self, subscribe: Callable[..., Any], *args: Any, **options: Any) -> Any:
        given = inspect.signature(subscribe).bind(*args, **options)
        received: Received = OrderedDict()
        heard = given.arguments.get("message_listener")
        if heard is not None:

            def listener(consumer: Any, message: Any) -> None:
                # Each call has an object of its own for the consumer.
                guarded(lambda: _Consumer(self, received).instrument(consumer))
                guarded(lambda: self.received(message, received))
                heard(consumer, message)

            given.arguments["message_listener"] = listener

        def made(consumer: Any) -> None:
            _Consumer(self, received).instrument(consumer)
            self.open.append(received)

        return _then(lambda: subscribe(*given.args, **given.kwargs), made)

    def received(self, message: Any, received: Received) -> None:
        delivery = _Delivery(message, self)
        message.specwatch = received[delivery.place] = delivery
        received.move_to_end(delivery.place)
        if len(received) > REMEMBERED:
            received.popitem(last=False)
        delivery.tell("Pickup", params={"b": delivery.place[2] >= 0})

    def closing(self, close: Callable[..., Any]) -> Any:
        """Its consumers are closed with the client."""
        at = moment()
        return _then(close, lambda _: self.closed(at, *self.open))

    def closed(self, at: Moment, *these: Received) -> None:
        """Consumers are closed, and what they had is given to others. Told with the last, since it is of all."""
        before = len(self.open)
        self.open = [one for one in self.open if all(one is not other for other in these)]
        if before and not self.open:
            emit("Close", params={"w": self.worker}, at=at)

    # Producers

    def producing(self, create: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return _then(lambda: create(*args, **options), self._instrument)

    def _instrument(self, producer: Any) -> None:
        producer.send = partial(self.send, producer.send)
        if hasattr(producer, "send_async"):
            producer.send_async = partial(self.send_async, producer.send_async)

    def send(self, send: Callable[..., Any], content: Any, *args: Any, **options: Any) -> Any:
        at = moment()
        is_told = self._tell(inspect.signature(send).bind(content, *args, **options).arguments, at)
        # It is known by its place, and that is known when it is stored.
        stored = None if is_told else lambda found: self.published.tell(_text(place(found)), at)
        return _then(lambda: send(content, *args, **options), stored)

    def send_async(self, send: Callable[..., Any], content: Any, callback: Any, *args: Any, **options: Any) -> Any:
        at = moment()
        is_told = self._tell(inspect.signature(send).bind(content, callback, *args, **options).arguments, at)

        def called(result: Any, found: Any) -> None:
            if not is_told and result == type(result).Ok:
                guarded(lambda: self.published.tell(_text(place(found)), at))
            if callback is not None:
                callback(result, found)

        return send(content, called, *args, **options)

    def _tell(self, given: dict[str, Any], at: Moment) -> bool:
        """Tell that a message is published, if it has what it is known by; whether it has."""
        key: str | None = None

        def tell() -> None:
            nonlocal key
            message = _Outgoing(given)
            key = known_by(self.key, message, message.properties(), message.data())
            if key is not None:
                self.published.tell(key, at)

        guarded(tell)
        return key is not None


class _Delivery(Delivery):
    """A message in the application's hands. ``said``: whether a word was said of it to the broker."""

    def __init__(self, message: Any, probe: _Probe) -> None:
        self.place = place(message)
        self.said = False
        properties = message.properties()
        super().__init__(
            known_by(probe.key, message, properties, message.data()) or _text(self.place),
            probe.worker,
            message.redelivery_count(),
            infers=probe.infers,
            extra={"topic": message.topic_name(), "message_id": _text(self.place)},
            traceparent=properties.get("traceparent"),
        )


Received = OrderedDict[Place, _Delivery]
"""What a consumer received last and has said no word of, the latest delivery of each."""


class _Outgoing:
    """What is about to be published, with the methods that a received message has."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def data(self) -> bytes:
        content = self._given["content"]
        return content if isinstance(content, bytes) else str(content).encode()

    def properties(self) -> dict[str, str]:
        return self._given.get("properties") or {}

    def partition_key(self) -> str:
        return self._given.get("partition_key") or ""


class _Consumer:
    """What one consumer is told and tells: methods that are called in the place of its own."""

    def __init__(self, probe: _Probe, received: Received) -> None:
        self.probe = probe
        self.unacked = received

    def instrument(self, consumer: Any) -> None:
        for name in ("receive", "batch_receive", "acknowledge", "acknowledge_cumulative", "negative_acknowledge"):
            if hasattr(consumer, name):  # asyncio's has no batch_receive.
                setattr(consumer, name, partial(getattr(self, name), getattr(consumer, name)))
        consumer.close = partial(self.close, consumer.close)

    def receive(self, receive: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return _then(lambda: receive(*args, **options), lambda one: self.probe.received(one, self.unacked))

    def batch_receive(self, receive: Callable[..., Any]) -> Any:
        def tell(messages: list[Any]) -> None:
            for one in messages:
                self.probe.received(one, self.unacked)

        return _then(receive, tell)

    def acknowledge(self, acknowledge: Callable[..., Any], message: Any) -> Any:
        say = self._word(message)
        return _then(
            lambda: acknowledge(message), lambda _: say("Ack"), lambda error: say("AckFail", exception=_name(error))
        )

    def acknowledge_cumulative(self, acknowledge: Callable[..., Any], message: Any) -> Any:
        """All up to the message is acked, and of what this consumer has received each is told of."""
        at = moment()

        def tell(_: Any) -> None:
            last = place(message)
            for one in [one for found, one in self.unacked.items() if found <= last]:
                self._say(one, "Ack", at, cumulative=_text(last))

        return _then(lambda: acknowledge(message), tell)

    def negative_acknowledge(self, negative: Callable[..., Any], message: Any) -> Any:
        say = self._word(message)
        return _then(lambda: negative(message), lambda _: say("Nack"))

    def _word(self, message: Any) -> Callable[..., None]:
        """How to tell, when it is said, what is about to be said of a message or of what an id stands for."""
        at = moment()

        def say(action: str, **extra: Any) -> None:
            delivery: _Delivery | None = getattr(message, "specwatch", None)
            if delivery is None:
                delivery = self.unacked.get(place(message))
            if delivery is not None:
                self._say(delivery, action, at, **extra)

        return say

    def _say(self, delivery: _Delivery, action: str, at: Moment, **extra: Any) -> None:
        if delivery.said:  # Said once more it changes nothing.
            return
        delivery.said = True
        if self.unacked.get(delivery.place) is delivery:
            del self.unacked[delivery.place]
        delivery.tell(action, at=at, **extra)

    def close(self, close: Callable[..., Any]) -> Any:
        at = moment()
        return _then(close, lambda _: self.probe.closed(at, self.unacked))


def place(message: Any) -> Place:
    """Where a message stands, given it or its id: the client's methods take both."""
    found = message.message_id() if hasattr(message, "message_id") else message
    return found.ledger_id(), found.entry_id(), found.batch_index()


def _text(found: Place) -> str:
    return ":".join(str(number) for number in found if number >= 0)


def _then(
    call: Callable[[], Any], tell: Callable[[Any], None] | None, failed: Callable[[Exception], None] | None = None
) -> Any:
    """What a call returns, and what it returns is told of before that; of asyncio's, when it is awaited."""
    try:
        answer = call()
    except Exception as error:
        _refused(error, failed)
        raise
    if inspect.isawaitable(answer):
        return _awaited(answer, tell, failed)
    _told(answer, tell)
    return answer


async def _awaited(
    call: Awaitable[Any], tell: Callable[[Any], None] | None, failed: Callable[[Exception], None] | None
) -> Any:
    try:
        answer = await call
    except Exception as error:
        _refused(error, failed)
        raise
    _told(answer, tell)
    return answer


def _told(answer: Any, tell: Callable[[Any], None] | None) -> None:
    if tell is not None:
        guarded(lambda: tell(answer))


def _refused(error: Exception, failed: Callable[[Exception], None] | None) -> None:
    if failed is not None:
        guarded(lambda: failed(error))


def _name(error: Exception) -> str:
    return type(error).__name__
