"""The stream and its consumer, as each process of the pilot makes them: made once, and the same for who comes later."""

from __future__ import annotations

from typing import Any

from ..plan import Settings

CONSUMER = "pilot"
FETCH = 0.5
"""Seconds that one request for a message waits: within so long a worker hears that it is to stop."""


def stream(settings: Settings) -> str:
    """The stream's name, which is its only subject as well. A dot would be one of a subject's."""
    return f"{settings.prefix}pilot".replace(".", "-")


async def connect(settings: Settings) -> Any:
    """A connection (``nats.NATS``) that comes back whenever it is lost."""
    import nats

    async def heard(_: Exception) -> None:
        """A lost connection: what was asked for over it fails where it was asked."""

    return await nats.connect(
        settings.broker, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=heard, ping_interval=5
    )


async def make(js: Any, settings: Settings) -> None:
    """Make the stream and its consumer, with the short AckWait of the plan, where they are not there yet."""
    from nats.js.api import AckPolicy, ConsumerConfig

    name = stream(settings)
    await js.add_stream(name=name, subjects=[name])
    await js.add_consumer(
        name,
        ConsumerConfig(durable_name=CONSUMER, ack_policy=AckPolicy.EXPLICIT, ack_wait=settings.plan.timeout),
    )


def waiting(settings: Settings) -> int:
    """Messages that the server has not seen settled: not yet delivered, and pending. Raises ``ServerError``."""
    from nats.js.errors import NotFoundError

    from ..runtime.nats import ask

    async def count(client: Any) -> int:
        try:
            about = await client.jetstream().consumer_info(stream(settings), CONSUMER)
        except NotFoundError:
            return 0
        return int(about.num_pending + about.num_ack_pending)

    return ask(settings.broker, count)
