"""Probes for RabbitMQ with pika: what publishers and consumers do, blocking or not.

    from specwatch.collector.probes.pika import executed, instrument

    channel = instrument(connection.channel(), worker="worker-2")

    def store(channel, method, properties, body):
        ...
        executed()

    channel.basic_consume("orders", store)

The events are those of ``probes.amqp``. A consumer's callback is the body: its begin is ``Start``, its end ``Done``.
Where it only hands the message on, say ``body="told"`` and put ``handling`` around the work. What no client sees (that
the broker has closed its channel, before it reads that) is no event. (Read in pika 1.3 and 1.4.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from .amqp import (
    Channel,
    Delivery,
    Execute,
    Key,
    executed,
    guarded,
    skipped,
    tell_published,
    undone,
)

__all__ = ["Execute", "Key", "executed", "handling", "instrument", "skipped", "undone"]

AnyChannel = TypeVar("AnyChannel")


def instrument(
    channel: AnyChannel,
    *,
    worker: str | None = None,
    key: Key = "message_id",
    execute: Execute = "return",
    body: Literal["callback", "told"] = "callback",
) -> AnyChannel:
    """Make a channel (``BlockingChannel`` or ``pika.channel.Channel``, open) emit events; returns it.

    To be called before it consumes or publishes. ``worker`` is the name of this consumer, by default ``host/pid``.
    ``key`` says what a message is known by. ``execute`` says what tells of the effect: ``"told"``, ``executed`` alone;
    ``"return"``, also the end of a body that has said nothing, with the field ``inferred``. ``body``: ``"callback"``,
    a consumer's callback is the body; ``"told"``, only ``handling`` is.
    """
    wrapped: Any = channel
    if not hasattr(wrapped, "specwatch"):
        guarded(lambda: _wrap(wrapped, worker, key, execute, body))
    return channel


def _wrap(wrapped: Any, worker: str | None, key: Key, execute: Execute, body: str) -> None:
    # A blocking channel or connection holds one that is not.
    inner = getattr(wrapped, "_impl", wrapped)
    connection = inner.connection
    number: int = inner.channel_number
    probe = Channel(connection, number, _own_end(connection), worker, key, execute == "return")
    wrapped.specwatch = probe
    inner.add_on_close_callback(lambda _, reason: guarded(lambda: _closed(probe, connection, reason)))

    publish, consume, get = wrapped.basic_publish, wrapped.basic_consume, wrapped.basic_get
    ack, nack, reject = wrapped.basic_ack, wrapped.basic_nack, wrapped.basic_reject

    def publishing(exchange: str, routing_key: str, body: Any, properties: Any = None, *args: Any, **more: Any) -> Any:
        data = body.encode() if isinstance(body, str) else body
        extra = {"exchange": exchange, "routing_key": routing_key}
        guarded(lambda: tell_published(key, properties, data, extra))
        return publish(exchange, routing_key, body, properties, *args, **more)

    def consuming(queue: str, on_message_callback: Any, auto_ack: bool = False, *args: Any, **more: Any) -> Any:
        callback = _receiving(probe, on_message_callback, auto_ack, body == "callback")
        return consume(queue, callback, auto_ack, *args, **more)

    def acking(delivery_tag: int = 0, multiple: bool = False) -> Any:
        with probe.saying("Ack", delivery_tag, multiple):
            return ack(delivery_tag, multiple)

    def nacking(delivery_tag: int = 0, multiple: bool = False, requeue: bool = True) -> Any:
        with probe.saying("Nack" if requeue else "Reject", delivery_tag, multiple):
            return nack(delivery_tag, multiple, requeue)

    def rejecting(delivery_tag: int = 0, requeue: bool = True) -> Any:
        with probe.saying("Nack" if requeue else "Reject", delivery_tag):
            return reject(delivery_tag, requeue)

    def getting(queue: str, *args: Any, **more: Any) -> Any:
        if inner is not wrapped:
            got = get(queue, *args, **more)
            auto_ack = more.get("auto_ack", args[0] if args else False)
            if got[0] is not None:
                guarded(lambda: _receive(probe, got[0], got[1], got[2], auto_ack))
            return got
        callback, *rest = args or (more.pop("callback"),)
        auto_ack = more.get("auto_ack", rest[0] if rest else False)
        return get(queue, _receiving(probe, callback, auto_ack, body == "callback"), *rest, **more)

    wrapped.basic_publish = publishing
    wrapped.basic_consume = consuming
    wrapped.basic_get = getting
    wrapped.basic_ack, wrapped.basic_nack, wrapped.basic_reject = acking, nacking, rejecting
    if inner is not wrapped:
        generate = wrapped.consume

        def generating(queue: str, auto_ack: bool = False, *args: Any, **more: Any) -> Iterator[Any]:
            for got in generate(queue, auto_ack, *args, **more):
                if got[0] is not None:
                    guarded(lambda: _receive(probe, got[0], got[1], got[2], auto_ack))  # noqa: B023 (called at once)
                yield got

        wrapped.consume = generating


@contextlib.contextmanager
def handling(channel: Any, delivery_tag: int) -> Iterator[None]:
    """The body that works on a delivery, where that is not the consumer's callback: ``Start``, then ``Done``."""
    probe: Channel | None = getattr(channel, "specwatch", None)
    delivery = probe.deliveries.get(delivery_tag) if probe is not None else None
    with delivery.handling() if delivery is not None else contextlib.nullcontext():
        yield


def _receive(probe: Channel, method: Any, properties: Any, body: bytes, auto_ack: bool) -> Delivery:
    return probe.receive(method.delivery_tag, method.redelivered, properties, body, acked=auto_ack)


def _receiving(probe: Channel, callback: Callable[..., Any], auto_ack: bool, is_body: bool) -> Callable[..., Any]:
    def receiving(channel: Any, method: Any, properties: Any, body: bytes) -> Any:
        received: list[Delivery] = []
        guarded(lambda: received.append(_receive(probe, method, properties, body, auto_ack)))
        with received[0].handling() if received and is_body else contextlib.nullcontext():
            return callback(channel, method, properties, body)

    return receiving


def _closed(probe: Channel, connection: Any, reason: Any) -> None:
    import pika.exceptions  # type: ignore[import-untyped]  # Here alone it is needed; who has a channel has it loaded.

    broken = isinstance(reason, pika.exceptions.AMQPConnectionError) or not connection.is_open
    probe.lost(reason, connection=broken)


def _own_end(connection: Any) -> str | None:
    """``127.0.0.1:40112``, as the broker names the connection; None where it cannot be read."""
    transport = getattr(connection, "_transport", None)
    socket = getattr(transport, "_sock", None)
    if socket is None:
        return None
    host, port, *_ = socket.getsockname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
