"""Delivering a message again before its timeout, from outside, as a broker might by a mistake or an operator by hand.

Only on Valkey and Redis: there the timeout is done by clients, and anyone may do it early. RabbitMQ delivers again when
a connection ends, which the kind ``cut`` does; NATS when its timer or a nack says so.
"""

from __future__ import annotations

import json

from .runtime.servers import connect_valkey


def valkey(url: str, prefix: str, key: str) -> bool:
    """Put a task back that a Celery worker holds, as its visibility timeout would; whether it was held.

    ``prefix`` is kombu's ``global_keyprefix``, ``key`` the task's id. Raises the client's errors.
    """
    from kombu.connection import Connection

    client = connect_valkey(url)
    try:
        held = client.hgetall(f"{prefix}unacked")
    finally:
        client.close()
    tags = [tag for tag, entry in held.items() if _task(entry) == key]
    if not tags:
        return False
    with Connection(url, transport_options={"global_keyprefix": prefix}) as connection:  # type: ignore[no-untyped-call]
        for tag in tags:
            connection.default_channel.qos.restore_by_tag(tag)
    return True


def _task(entry: str) -> str | None:
    """The id of the task in an entry of the hash ``unacked``: ``[message, exchange, routing key]``."""
    message = json.loads(entry)[0]
    found = message.get("headers", {}).get("id") or message.get("properties", {}).get("correlation_id")
    return None if found is None else str(found)
