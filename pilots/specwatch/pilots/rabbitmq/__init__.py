"""The RabbitMQ pilot: a consumer that stores a row, made to do it twice by a channel that is closed under it.

``plan`` says what is run, ``worker`` and ``publish`` are its processes, ``queues`` is the queue between them.
"""

from __future__ import annotations

from .. import plan as common
from ..pilot import Pilot
from .plan import CONFIGS, EXPERIMENTS, binding, plan


def waiting(settings: common.Settings) -> int:
    """Messages in the queue. AMQP tells no one of those that workers have: they are in the events.

    Raises ``PilotError``.
    """
    from . import queues

    return queues.waiting(settings.broker, settings.prefix)


PILOT = Pilot(
    name="rabbitmq",
    title="RabbitMQ",
    server="rabbitmq",
    clients=("pika", "psycopg"),
    experiments=EXPERIMENTS,
    configs=CONFIGS,
    ends=frozenset({"Done", "Fail"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
)
