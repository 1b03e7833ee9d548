"""Probes for RabbitMQ with aio-pika: what publishers and consumers do, robust or not.

    from specwatch.collector.probes.aio_pika import executed, handling, instrument

    channel = instrument(await connection.channel(), worker="worker-2")
    queue = await channel.get_queue("orders")
    async with queue.iterator() as messages:
        async for message in messages:
            async with message.process():
                with handling(message):
                    ...
                    executed()

The events are those of ``probes.amqp``. A robust channel that is opened again after a loss stays instrumented. What no
client sees is no event; a word on a channel that aio-pika knows to be closed raises before it is said, and is none
either. When a channel is closed, aiormq cancels the callbacks that run on it. (Read in aio-pika 9.5 to 10.2.)
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .amqp import Channel, Execute, Key, executed, guarded, skipped, tell_published, undone

__all__ = ["Execute", "Key", "executed", "handling", "instrument", "skipped", "undone"]

AnyChannel = TypeVar("AnyChannel")


def instrument(
    channel: AnyChannel, *, worker: str | None = None, key: Key = "message_id", execute: Execute = "return"
) -> AnyChannel:
    """Make a channel of aio-pika, open, emit events; returns it. To be called before it consumes or publishes.

    ``worker`` is the name of this consumer, by default ``host/pid``. ``key`` says what a message is known by.
    ``execute`` says what tells of the effect: ``"told"``, ``executed`` alone; ``"return"``, also the end of
    ``handling`` where nothing was said in it, with the field ``inferred``.
    """
    wrapped: Any = channel
    underlay = wrapped.get_underlay_channel

    async def instrumented() -> Any:
        inner = await underlay()
        if not hasattr(inner, "specwatch"):
            guarded(lambda: _wrap(inner, worker, key, execute))
        return inner

    wrapped.get_underlay_channel = instrumented
    return channel


@contextlib.contextmanager
def handling(message: Any) -> Iterator[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    # The property raises when the channel is closed, and a body may begin then.
    channel = getattr(message, "_IncomingMessage__channel", None)
    probe: Channel | None = getattr(channel, "specwatch", None)
    delivery = probe.deliveries.get(message.delivery_tag) if probe is not None else None
    with delivery.handling() if delivery is not None else contextlib.nullcontext():
        yield


def _wrap(inner: Any, worker: str | None, key: Key, execute: Execute) -> None:
    probe = Channel(inner.connection, inner.number, None, worker, key, execute == "return")
    inner.specwatch = probe
    inner.closing.add_done_callback(lambda closing: guarded(lambda: _closed(probe, inner, closing)))
    publish, consume, get = inner.basic_publish, inner.basic_consume, inner.basic_get
    ack, nack, reject = inner.basic_ack, inner.basic_nack, inner.basic_reject

    def receive(message: Any, no_ack: bool) -> None:
        tag = getattr(message.delivery, "delivery_tag", None)
        if tag is not None:  # None: there was no message to get.
            properties, redelivered = message.header.properties, message.delivery.redelivered
            probe.receive(tag, redelivered, properties, message.body, acked=no_ack)

    async def publishing(body: bytes, *, exchange: str = "", routing_key: str = "", **more: Any) -> Any:
        extra = {"exchange": exchange, "routing_key": routing_key}
        guarded(lambda: tell_published(key, more.get("properties"), body, extra))
        return await publish(body, exchange=exchange, routing_key=routing_key, **more)

    async def consuming(
        queue: str, consumer_callback: Callable[[Any], Any], *, no_ack: bool = False, **more: Any
    ) -> Any:
        async def receiving(message: Any) -> Any:
            guarded(lambda: receive(message, no_ack))
            answer = consumer_callback(message)
            return await answer if inspect.isawaitable(answer) else answer

        return await consume(queue, receiving, no_ack=no_ack, **more)

    async def getting(queue: str = "", no_ack: bool = False, **more: Any) -> Any:
        message = await get(queue, no_ack, **more)
        guarded(lambda: receive(message, no_ack))
        return message

    async def acking(delivery_tag: int, multiple: bool = False, **more: Any) -> None:
        with probe.saying("Ack", delivery_tag, multiple):
            await ack(delivery_tag, multiple, **more)

    async def nacking(delivery_tag: int, multiple: bool = False, requeue: bool = True, **more: Any) -> None:
        with probe.saying("Nack" if requeue else "Reject", delivery_tag, multiple):
            await nack(delivery_tag, multiple, requeue, **more)

    async def rejecting(delivery_tag: int, *, requeue: bool = True, **more: Any) -> None:
        with probe.saying("Nack" if requeue else "Reject", delivery_tag):
            await reject(delivery_tag, requeue=requeue, **more)

    inner.basic_publish, inner.basic_consume, inner.basic_get = publishing, consuming, getting
    inner.basic_ack, inner.basic_nack, inner.basic_reject = acking, nacking, rejecting


def _closed(probe: Channel, inner: Any, closing: Any) -> None:
    error = None if closing.cancelled() else closing.exception()
    probe.lost(error or "closed", connection=inner.connection.closing.done() or not inner.connection.is_opened)
