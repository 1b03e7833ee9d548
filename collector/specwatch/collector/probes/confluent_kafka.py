"""Probes for Kafka with confluent-kafka: what producers and the members of a consumer group do.

    from specwatch.collector.probes.confluent_kafka import Consumer, executed, handling

    consumer = Consumer({...}, worker="worker-2")     # in the place of confluent_kafka.Consumer
    consumer.subscribe(["orders"])
    message = consumer.poll(1.0)
    with handling(message):
        ...
        executed()
    consumer.commit(message=message, asynchronous=False)

The events are those of ``probes/kafka.py``.
A message is told of when ``poll`` or ``consume`` gives it to the application; what librdkafka has fetched before is
not. A commit is told when the group has taken it, with the time before it was asked for; what librdkafka commits by
itself (``enable.auto.commit``) when it says so. (Read in confluent-kafka 2.8 to 2.16.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import confluent_kafka

from . import kafka
from .emitter import Moment, moment
from .kafka import Key, Member, Place, executed, guarded, skipped, undone

__all__ = ["Consumer", "Producer", "executed", "handling", "skipped", "undone"]


class Consumer(confluent_kafka.Consumer):
    """A ``confluent_kafka.Consumer`` that emits events.

    ``worker`` is this member's name, by default ``host/pid``. ``key`` says what a message is known by; one that has
    none is known by its place, ``topic/partition/offset``. ``execute`` says what tells of the effect: ``"told"``,
    ``executed`` alone; ``"return"``, also the end of ``handling`` where nothing was said in it, with the field
    ``inferred``.
    """

    def __init__(
        self,
        config: dict[str, Any],
        *,
        worker: str | None = None,
        key: Key = "id",
        execute: Literal["return", "told"] = "return",
        **named: Any,
    ) -> None:
        self.specwatch = Member(worker, key, infers=execute == "return")
        heard = config.get("on_commit")

        def on_commit(error: Any, partitions: Any) -> None:
            guarded(lambda: self._committed(error, partitions, moment()))
            if heard is not None:
                heard(error, partitions)

        super().__init__({**config, "on_commit": on_commit}, **named)

    def subscribe(self, topics: Any, on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> Any:
        """As of the base class; what the group says is told when the application's own callback is over."""
        lost = on_lost or on_revoke

        def telling(action: str, heard: Any) -> Callable[[Any, Any], None]:
            def callback(consumer: Any, partitions: Any) -> None:
                if heard is not None:
                    heard(consumer, partitions)
                guarded(lambda: self.specwatch.partitions(action, partitions))

            return callback

        return super().subscribe(
            topics,
            on_assign=telling("Assign", on_assign),
            on_revoke=telling("Revoke", on_revoke),
            on_lost=telling("Lost", lost),
        )

    def poll(self, *arguments: Any, **named: Any) -> Any:
        message = super().poll(*arguments, **named)
        guarded(lambda: self._pickup([message]))
        return message

    def consume(self, *arguments: Any, **named: Any) -> Any:
        messages = super().consume(*arguments, **named)
        guarded(lambda: self._pickup(messages))
        return messages

    def commit(self, *arguments: Any, **named: Any) -> Any:
        """As of the base class. What is asked for asynchronously is told by ``on_commit``."""
        at = moment()
        asked = named.get("offsets") or self._next(arguments[0] if arguments else named.get("message"))
        try:
            taken = super().commit(*arguments, **named)
        except confluent_kafka.KafkaException as error:
            reason = error.args[0]
            guarded(lambda: self._committed(reason, asked, at))
            raise
        if taken is not None:
            guarded(lambda: self._committed(None, taken, at))
        return taken

    def seek(self, partition: Any) -> Any:
        answer = super().seek(partition)
        guarded(lambda: self.specwatch.sought(partition, partition.offset))
        return answer

    @staticmethod
    def _next(message: Any) -> Sequence[Any]:
        """The offset after a message, which is what committing it means."""
        if message is None:
            return ()
        return (confluent_kafka.TopicPartition(message.topic(), message.partition(), message.offset() + 1),)

    def _pickup(self, messages: Sequence[Any]) -> None:
        for message in messages:
            if message is None or message.error() is not None:
                continue
            self.specwatch.pickup(_place(message), message, message.headers())

    def _committed(self, error: Any, partitions: Sequence[Any] | None, at: Moment) -> None:
        for one in partitions or ():
            why = error or one.error
            if one.offset >= 0 and (why is None or why.code() != confluent_kafka.KafkaError._NO_OFFSET):
                self.specwatch.committed(one, one.offset, at, None if why is None else why.name())


class Producer(confluent_kafka.Producer):
    """A ``confluent_kafka.Producer`` that emits ``Publish``, or ``Republish`` of an id that this process sent before.

    ``key`` is the name of the header that a message is known by. One without it is told of when the broker has it, by
    its place.
    """

    def __init__(self, config: dict[str, Any], *, key: str = "id", **named: Any) -> None:
        self.specwatch_key = key
        super().__init__(config, **named)

    def produce(self, topic: str, *arguments: Any, **named: Any) -> Any:
        identity = kafka.header(named.get("headers"), self.specwatch_key)
        if identity is not None:
            guarded(lambda: kafka.publish(identity))
        else:
            heard = named.pop("on_delivery", None) or named.pop("callback", None)

            def delivered(error: Any, message: Any) -> None:
                if error is None:
                    guarded(lambda: kafka.publish(str(_place(message))))
                if heard is not None:
                    heard(error, message)

            named["on_delivery"] = delivered
        return super().produce(topic, *arguments, **named)


def handling(message: Any) -> AbstractContextManager[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    return kafka.handling_at(_place(message))


def _place(message: Any) -> Place:
    return Place(message.topic(), message.partition(), message.offset())
