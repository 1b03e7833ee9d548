"""Probes for Kafka with kafka-python: what producers and the members of a consumer group do.

    from specwatch.collector.probes.kafka_python import KafkaConsumer, executed, handling

    consumer = KafkaConsumer("orders", group_id="billing", enable_auto_commit=False, worker="worker-2")
    for message in consumer:
        with handling(message):
            ...
            executed()
        consumer.commit()

The events are those of ``probes/kafka.py``. A message is told of when ``poll`` or the iteration gives it to the
application. A commit, also one that the client makes by itself, is told when the group has answered, with the time
before it was asked; one that the client asks for again is told each time. (Read in kafka-python 3.0.)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

import kafka as client  # type: ignore[import-untyped]

from . import kafka
from .emitter import Moment, moment
from .kafka import Key, Member, Place, executed, guarded, skipped, undone

__all__ = ["KafkaConsumer", "KafkaProducer", "executed", "handling", "skipped", "undone"]


class KafkaConsumer(client.KafkaConsumer):  # type: ignore[misc]
    """A ``kafka.KafkaConsumer`` that emits events.

    ``worker`` is this member's name, by default ``host/pid``. ``key`` says what a message is known by; one that has
    none is known by its place, ``topic/partition/offset``. ``execute`` says what tells of the effect: ``"told"``,
    ``executed`` alone; ``"return"``, also the end of ``handling`` where nothing was said in it, with the field
    ``inferred``.
    """

    def __init__(
        self,
        *topics: str,
        worker: str | None = None,
        key: Key = "id",
        execute: Literal["return", "told"] = "return",
        **named: Any,
    ) -> None:
        self.specwatch = Member(worker, key, infers=execute == "return")
        super().__init__(**named)
        # The one way by which all commits go, the client's own too.
        send = getattr(self._coordinator, "_send_offset_commit_request", None)
        if send is not None:
            self._coordinator._send_offset_commit_request = _told(self.specwatch, send)
        if topics:
            self.subscribe(topics)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """As of the base class; what the group says is told when the application's own listener is done with it."""
        super().subscribe(topics, pattern, _Listener(self.specwatch, listener))

    def poll(self, timeout_ms: Any = 0, max_records: Any = None, update_offsets: bool = True) -> Any:
        """As of the base class."""
        batches = super().poll(timeout_ms, max_records, update_offsets)
        if update_offsets:  # Else it is the iteration that asks, which may give less of it to the application.
            for messages in batches.values():
                for message in messages:
                    guarded(lambda message=message: self._pickup(message))  # type: ignore[misc]
        return batches

    def __next__(self) -> Any:
        message = super().__next__()
        guarded(lambda: self._pickup(message))
        return message

    def seek(self, partition: Any, offset: int) -> None:
        """As of the base class."""
        super().seek(partition, offset)
        guarded(lambda: self.specwatch.sought(partition, offset))

    def _pickup(self, message: Any) -> None:
        self.specwatch.pickup(_place(message), message, message.headers)


class KafkaProducer(client.KafkaProducer):  # type: ignore[misc]
    """A ``kafka.KafkaProducer`` that emits ``Publish``, or ``Republish`` of an id that this process sent before.

    ``key`` is the name of the header that a message is known by. One without it is told of when the broker has it, by
    its place.
    """

    def __init__(self, *, key: str = "id", **named: Any) -> None:
        self.specwatch_key = key
        super().__init__(**named)

    def send(
        self, topic: str, value: Any = None, key: Any = None, headers: Any = None, *more: Any, **named: Any
    ) -> Any:
        """As of the base class."""
        identity = kafka.header(headers, self.specwatch_key)
        if identity is not None:
            guarded(lambda: kafka.publish(identity))
        sent = super().send(topic, value, key, headers, *more, **named)
        if identity is None:
            sent.add_callback(lambda found: guarded(lambda: kafka.publish(str(_place(found)))))
        return sent


class _Listener(client.AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """Tells what the group says when the application's own listener is done with it."""

    def __init__(self, member: Member, heard: Any) -> None:
        self.member = member
        self.heard = heard

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self._hear("on_partitions_revoked", revoked)
        guarded(lambda: self.member.partitions("Revoke", revoked))

    async def on_partitions_assigned(self, assigned: Any) -> None:
        await self._hear("on_partitions_assigned", assigned)
        guarded(lambda: self.member.partitions("Assign", assigned))

    async def on_partitions_lost(self, lost: Any) -> None:
        await self._hear("on_partitions_lost", lost)
        guarded(lambda: self.member.partitions("Lost", lost))

    async def _hear(self, name: str, partitions: Any) -> None:
        answer = None if self.heard is None else getattr(self.heard, name)(partitions)
        if inspect.isawaitable(answer):
            await answer


def handling(message: Any) -> AbstractContextManager[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    return kafka.handling_at(_place(message))


def _told(member: Member, send: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    async def told(offsets: Any) -> Any:
        at = moment()
        try:
            answer = await send(offsets)
        except Exception as error:
            name = type(error).__name__
            guarded(lambda: _answered(member, offsets, at, name))
            raise
        guarded(lambda: _answered(member, offsets, at))
        return answer

    return told


def _answered(member: Member, offsets: Any, at: Moment, refused: str | None = None) -> None:
    for partition, one in offsets.items():
        member.committed(partition, one.offset, at, refused)


def _place(one: Any) -> Place:
    return Place(one.topic, one.partition, one.offset)
