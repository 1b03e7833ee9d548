"""The topic and its consumer group, as each process of the pilot makes and knows them."""

from __future__ import annotations

from typing import Any

from ..plan import Settings
from ..runtime.errors import ServerError
from ..runtime.kafka import admin, servers
from ..runtime.servers import ANSWER_WAIT, address


def topic(settings: Settings) -> str:
    """The topic's name, and the group's."""
    return f"{settings.prefix}pilot"


def partitions(settings: Settings) -> int:
    """A partition for each worker; for a share group one, since of several each would be given to some members."""
    return 1 if settings.plan.experiment == "share-group" else settings.plan.workers


def make(settings: Settings) -> None:
    """Make the topic, where it is not there yet. Raises ``ServerError``."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    new = NewTopic(topic(settings), num_partitions=partitions(settings), replication_factor=1)
    client = admin(settings.broker)  # It must outlive what was asked of it.
    for future in client.create_topics([new], request_timeout=ANSWER_WAIT).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ServerError(f"no topic at {address(settings.broker)}: {error.args[0].str()}") from None


def member(settings: Settings) -> dict[str, Any]:
    """What a member of the group is told: times as short as the plan says, and no commit but the application's."""
    timeout = round(settings.plan.timeout * 1000)
    classic = {"session.timeout.ms": timeout, "heartbeat.interval.ms": 500}
    # There the broker says how long a session is.
    own = {"group.protocol": "consumer"} if settings.plan.experiment == "consumer-protocol" else classic
    return {
        "bootstrap.servers": servers(settings.broker),
        "group.id": topic(settings),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.interval.ms": timeout,
        **own,
        "topic.metadata.refresh.interval.ms": 1000,
        "reconnect.backoff.max.ms": 500,
    }


def waiting(settings: Settings) -> int:
    """Messages above the committed offsets. Raises ``ServerError``."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

    client, name = admin(settings.broker), topic(settings)
    try:
        if name not in client.list_topics(timeout=ANSWER_WAIT).topics:
            return 0
        parts = [TopicPartition(name, number) for number in range(partitions(settings))]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = client.list_offsets(dict.fromkeys(parts, latest), request_timeout=ANSWER_WAIT)
        ends = {part.partition: future.result().offset for part, future in asked.items()}
        group = ConsumerGroupTopicPartitions(name, parts)
        (future,) = client.list_consumer_group_offsets([group], request_timeout=ANSWER_WAIT).values()
        committed = {part.partition: max(0, part.offset) for part in future.result().topic_partitions}
    except KafkaException as error:
        raise ServerError(f"no answer from {address(settings.broker)}: {error.args[0].str()}") from None
    return sum(end - committed.get(number, 0) for number, end in ends.items())
