"""The Celery pilot: a task that stores a row, made to run twice by a visibility timeout that expires under it.

``plan`` says what is run, ``app`` is the application, ``worker`` and ``publish`` are its processes.
"""

from __future__ import annotations

from .. import plan as common
from ..pilot import Pilot
from .plan import CONFIGS, EXPERIMENTS, binding, plan

QUEUE = "pilot"


def waiting(settings: common.Settings) -> int:
    """Tasks in the queue, and those that workers have and have not acked. Raises ``ServerError``."""
    import redis

    from ..runtime import ServerError
    from ..runtime.servers import connect_valkey

    broker = connect_valkey(settings.broker)
    try:
        return int(broker.llen(f"{settings.prefix}{QUEUE}") + broker.hlen(f"{settings.prefix}unacked"))
    except redis.RedisError as error:
        raise ServerError(f"the broker does not answer any more: {error}") from None
    finally:
        broker.close()


def redeliver(settings: common.Settings, key: str) -> bool:
    """Put a task back that a worker holds, as its visibility timeout would; whether it was held."""
    from ..redelivery import valkey

    return valkey(settings.broker, settings.prefix, key)


PILOT = Pilot(
    name="celery",
    title="Celery on Redis",
    server="valkey",
    clients=("celery", "kombu", "redis", "psycopg"),
    experiments=EXPERIMENTS,
    configs=CONFIGS,
    ends=frozenset({"Done", "Fail", "Retry", "Revoke", "Expire", "Nack", "Reject", "RestoreOnShutdown"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
    redeliver=redeliver,
)
