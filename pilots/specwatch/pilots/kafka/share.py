"""The share group: how its broker is told of it, and what a member does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..plan import Settings
from ..runtime.errors import ServerError
from ..runtime.kafka import admin, servers
from ..runtime.servers import ANSWER_WAIT, address
from .group import topic


def make(settings: Settings) -> None:
    """Tell the broker how long it is to lock a record, and from where the group begins. Raises ``ServerError``."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (  # type: ignore[attr-defined]
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    wanted = {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": str(round(settings.plan.timeout * 1000)),
    }
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()]
    resource = ConfigResource(ResourceType.GROUP, topic(settings), incremental_configs=entries)
    client = admin(settings.broker)  # It must outlive what was asked of it.
    for future in client.incremental_alter_configs([resource], request_timeout=ANSWER_WAIT).values():
        try:
            future.result()
        except KafkaException as error:
            raise ServerError(f"no share group at {address(settings.broker)}: {error.args[0].str()}") from None


def member(settings: Settings) -> dict[str, Any]:
    """What a member of the share group is told: it says a word of each message itself, and takes few at a time."""
    return {
        "bootstrap.servers": servers(settings.broker),
        "group.id": topic(settings),
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": 1,
        "reconnect.backoff.max.ms": 500,
        "log_level": 3,  # That it is a preview it says as a warning.
    }


def say_settled(settings: Settings, identity: str) -> None:
    """Say that the broker took the word that a message is done."""
    folder = _settled(settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / identity).touch()


def waiting(settings: Settings) -> int:
    """Messages of which no member has the broker's word that they are done: the client has no way to ask for them."""
    folder = _settled(settings)
    return settings.plan.tasks - (len(list(folder.iterdir())) if folder.is_dir() else 0)


def _settled(settings: Settings) -> Path:
    return Path(settings.directory, "settled")
