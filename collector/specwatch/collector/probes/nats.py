"""Probes for NATS JetStream with nats-py: what publishers and consumers do, pull or push.

    from specwatch.collector.probes.nats import executed, handling, instrument

    js = instrument(nc.jetstream(), worker="worker-2")
    sub = await js.pull_subscribe("orders", durable="billing")
    for msg in await sub.fetch(10):
        with handling(msg):
            ...
            executed()
        await msg.ack_sync()

The events are the actions of ``specs/nats/JetStream.tla``: t is what the message is known by, w the worker's name, a
how often the message was delivered before this (``num_delivered`` - 1), r whether it was. What no client sees (AckWait,
a crash) is no event.

A message is told of when it is given to the application's own code; what a client buffers is not. ``ack_sync`` is told
as an ack that the server has; ``ack`` and ``term`` ask for no answer, and may be lost: that they were sent is what is
told. (Read in nats-py 2.10 to 2.16.)
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeVar

from nats.errors import NoRespondersError

from .deliveries import Delivery, Key, Publications, executed, guarded, handling, known_by, skipped, undone
from .emitter import Moment, emit, moment

__all__ = ["Key", "executed", "handling", "instrument", "skipped", "undone"]

Context = TypeVar("Context")


def instrument(
    js: Context,
    *,
    worker: str | None = None,
    key: Key = "Nats-Msg-Id",
    execute: Literal["return", "told"] = "return",
    answers: bool = True,
) -> Context:
    """Make a JetStream context (``nc.jetstream()``) emit events; returns it. To be called before it subscribes.

    ``worker`` is this consumer's name, by default ``host/pid``. ``key`` says what a message is known by; one that has
    none is known by its sequence in the stream. ``execute`` says what tells of the effect: ``"told"``, ``executed``
    alone; ``"return"``, also the end of ``handling`` where nothing was said in it, with the field ``inferred``.
    ``answers``: the server's answers to publishers are told as well (``PubAck``).

    All subscriptions of a context should be of one consumer: two consumers of a stream each get every message.
    """
    probe = _Probe(worker or f"{os.uname().nodename}/{os.getpid()}", key, execute == "return", answers)
    context: Any = js
    for name in ("pull_subscribe", "pull_subscribe_bind"):
        setattr(context, name, partial(probe.pulling, getattr(context, name)))
    context.subscribe = partial(probe.pushing, context.subscribe)
    context.subscribe_bind = partial(probe.pushing, context.subscribe_bind)
    context.publish = partial(probe.publishing, context.publish)
    context.publish_async = partial(probe.publishing, context.publish_async)
    return js


class _Probe:
    """What one context's subscriptions and publications tell."""

    def __init__(self, worker: str, key: Key, infers: bool, answers: bool) -> None:
        self.worker = worker
        self.key = key
        self.infers = infers
        self.answers = answers
        self.published = Publications()

    # Consumers

    async def pulling(self, subscribe: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        subscription = await subscribe(*args, **options)
        fetch = subscription.fetch

        async def fetching(*args: Any, **options: Any) -> Any:
            messages = await fetch(*args, **options)
            for message in messages:
                self.received(message)
            return messages

        subscription.fetch = fetching
        return subscription

    async def pushing(self, subscribe: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        given = inspect.signature(subscribe).bind(*args, **options)
        callback = given.arguments.get("cb")
        if callback is not None:

            async def called(message: Any) -> None:
                self.received(message)
                await callback(message)

            given.arguments["cb"] = called
            return await subscribe(*given.args, **given.kwargs)
        subscription = await subscribe(*args, **options)
        following = subscription.next_msg

        async def next_msg(*args: Any, **options: Any) -> Any:
            message = await following(*args, **options)
            self.received(message)
            return message

        subscription.next_msg = next_msg
        return subscription

    def received(self, message: Any) -> None:
        guarded(lambda: self._receive(message))

    def _receive(self, message: Any) -> None:
        # One way to subscribe leads over another; and some messages are the client's own, as a heartbeat is.
        if hasattr(message, "specwatch") or not message.reply.startswith("$JS.ACK."):
            return
        delivery = _Delivery(message, self._known_by(message), self)
        delivery.tell("Pickup", params={"r": delivery.before > 0})
        message.specwatch = delivery
        message.ack = delivery.saying(message.ack, lambda: "AckSent")
        message.ack_sync = delivery.asking(message.ack_sync)
        message.nak = delivery.saying(message.nak, lambda delay=None: "NackDelayed" if delay else "Nack")
        message.term = delivery.saying(message.term, lambda: "RejectSent")
        message.in_progress = delivery.saying(message.in_progress, lambda: "InProgress")

    def _known_by(self, message: Any) -> str:
        found = known_by(self.key, message, message.headers, message.data)
        return str(message.metadata.sequence.stream) if found is None else found

    # Publishers

    async def publishing(
        self, publish: Callable[..., Awaitable[Any]], subject: str, payload: bytes = b"", *args: Any, **options: Any
    ) -> Any:
        at = moment()
        key: str | None = None
        looked = False

        def tell() -> None:
            nonlocal key, looked
            given = inspect.signature(publish).bind(subject, payload, *args, **options).arguments
            message = _Outgoing(payload, given.get("headers"), subject)
            key = known_by(self.key, message, message.headers, payload)
            looked = True
            if key is not None:
                self.published.tell(key, at)

        guarded(tell)
        answer = await publish(subject, payload, *args, **options)
        if not looked:
            return answer
        if hasattr(answer, "add_done_callback"):
            answer.add_done_callback(lambda future: guarded(lambda: self._answered(key, future, at)))
        else:
            guarded(lambda: self._answer(key, answer, at))
        return answer

    def _answered(self, key: str | None, future: Any, at: Moment) -> None:
        if not future.cancelled() and future.exception() is None:
            self._answer(key, future.result(), at)

    def _answer(self, key: str | None, answer: Any, at: Moment) -> None:
        if key is None:
            # Its sequence is what it is known by, and that is known now.
            key = str(answer.seq)
            self.published.tell(key, at)
        if self.answers:
            extra = {"stream": answer.stream}
            emit("PubAck", t=key, seq=answer.seq, dup=bool(answer.duplicate), key=key, extra=extra)


class _Delivery(Delivery):
    """One delivery of a message: what is told of it has its key, its worker and its number."""

    def __init__(self, message: Any, key: str, probe: _Probe) -> None:
        metadata = message.metadata
        extra = {
            "stream": metadata.stream,
            "consumer": metadata.consumer,
            "stream_seq": metadata.sequence.stream,
            "consumer_seq": metadata.sequence.consumer,
        }
        super().__init__(
            key,
            probe.worker,
            metadata.num_delivered - 1,
            infers=probe.infers,
            extra=extra,
            traceparent=(message.headers or {}).get("traceparent"),
        )

    def saying(self, say: Callable[..., Awaitable[Any]], action: Callable[..., str]) -> Callable[..., Awaitable[Any]]:
        """A word to the server that has no answer. Told once it is sent, with the time before: so it stands before
        what it lets others do, and one that was not sent is none."""

        async def said(*args: Any, **options: Any) -> Any:
            at = moment()
            answer = await say(*args, **options)
            guarded(lambda: self.tell(action(*args, **options), at=at))
            return answer

        return said

    def asking(self, ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """An ack that is answered: the server had it at some time between the two."""

        async def asked(*args: Any, **options: Any) -> Any:
            at = moment()
            try:
                answer = await ask(*args, **options)
            except (TimeoutError, NoRespondersError) as error:
                name = type(error).__name__
                guarded(lambda: self.tell("AckSent", at=at, exception=name))
                raise
            guarded(lambda: self.tell("Ack", at=at, until=_rfc3339(moment().time)))
            return answer

        return asked


class _Outgoing:
    """What is about to be published, with the names that a received message has."""

    def __init__(self, data: bytes, headers: dict[str, str] | None, subject: str) -> None:
        self.data = data
        self.headers = headers
        self.subject = subject


def _rfc3339(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
