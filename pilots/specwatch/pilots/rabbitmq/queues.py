"""The pilot's queue: its name, how it is made, and what waits in it."""

from __future__ import annotations

from typing import Any

from ..plan import MODES
from .plan import EXPERIMENTS

EXPIRES = 600_000
"""Milliseconds after which the broker removes a queue that no one uses any more, be whoever should have dead."""


def name(prefix: str) -> str:
    """The queue of an experiment; ``prefix`` is that of its ``Settings``."""
    return f"{prefix}pilot"


def names(prefix: str) -> list[str]:
    """All queues that runs make which use a server with this prefix."""
    return [name(f"{prefix}{mode}.{experiment}.") for mode in MODES for experiment in EXPERIMENTS]


def declare(channel: Any, prefix: str, timeout: float) -> str:
    """Make the queue where it is not there yet; the same for who comes later. Returns its name.

    A server that others run has its own ``consumer_timeout``; from RabbitMQ 3.12 a queue may have another, ``timeout``
    seconds. Earlier ones leave that argument alone.
    """
    arguments = {"x-expires": EXPIRES, "x-consumer-timeout": round(timeout * 1000)}
    queue = name(prefix)
    channel.queue_declare(queue, durable=True, arguments=arguments)
    return queue


def waiting(broker: str, prefix: str) -> int:
    """Messages that no one has, by the broker's own count. Raises ``ServerError``.

    It tells no client of those that are out and not acked. They are in the account of the workers' events.
    """
    from ..runtime.errors import ServerError
    from ..runtime.rabbitmq import connect, reason

    connection = connect(broker)
    import pika  # type: ignore[import-untyped]

    try:
        answer = connection.channel().queue_declare(name(prefix), passive=True)
        return int(answer.method.message_count)
    except pika.exceptions.ChannelClosedByBroker as error:
        if error.reply_code == 404:  # Neither a worker nor the producer has made it yet.
            return 0
        raise ServerError(reason(error)) from None
    except pika.exceptions.AMQPError as error:
        raise ServerError(f"the broker does not answer any more: {reason(error)}") from None
    finally:
        if connection.is_open:
            connection.close()
