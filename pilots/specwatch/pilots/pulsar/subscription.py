"""The topic and its subscription, as each process of the pilot knows them."""

from __future__ import annotations

from typing import Any

from .. import plan as common
from ..runtime.pulsar import service, stats, topics
from .plan import Settings

SUBSCRIPTION = "pilot"
OPERATION_WAIT = 5
"""Seconds within which the broker must answer the client."""
NACK_DELAY = 0.2
"""Seconds from a negative ack to the client's asking."""


def topic(settings: common.Settings) -> str:
    """The topic's name."""
    return f"{settings.prefix}pilot"


def client(settings: common.Settings) -> Any:
    """A ``pulsar.Client`` that connects again by itself whenever its connection is lost. Raises ``ServerError``."""
    import pulsar

    # No logger of Python's: the client's threads would call it while the interpreter ends, and abort the process.
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    return pulsar.Client(service(settings.broker), operation_timeout_seconds=OPERATION_WAIT, logger=logger)


def subscribe(client: Any, settings: Settings, worker: str) -> Any:
    """A consumer in whose queue one message may lie. Raises ``pulsar.PulsarException``."""
    import pulsar

    plan = settings.plan
    kinds = {"Shared": pulsar.ConsumerType.Shared, "Key_Shared": pulsar.ConsumerType.KeyShared}
    return client.subscribe(
        topic(settings),
        SUBSCRIPTION,
        consumer_type=kinds[plan.subscription],
        consumer_name=worker,
        initial_position=pulsar.InitialPosition.Earliest,
        receiver_queue_size=1,  # Without a queue the client has no ack timer.
        unacked_messages_timeout_ms=round(plan.timeout * 1000),
        negative_ack_redelivery_delay_ms=round(NACK_DELAY * 1000),
    )


def waiting(settings: common.Settings) -> int:
    """Messages that the broker has not seen acked. Raises ``ServerError``."""
    name = topic(settings)
    if name not in topics(settings.broker, name):
        return 0
    found = stats(settings.broker, name)["subscriptions"].get(SUBSCRIPTION)
    return 0 if found is None else int(found["msgBacklog"])
