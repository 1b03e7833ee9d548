"""Probes for Kafka with aiokafka: what producers and the members of a consumer group do.

    from specwatch.collector.probes.aiokafka import AIOKafkaConsumer, executed, handling

    consumer = AIOKafkaConsumer("orders", group_id="billing", enable_auto_commit=False, worker="worker-2")
    async with consumer:
        async for message in consumer:
            with handling(message):
                ...
                executed()
            await consumer.commit()

The events are those of ``probes/kafka.py``. A message is told of when ``getone``, ``getmany`` or the iteration gives it
to the application. A commit, also one that the client makes by itself, is told when the group has answered, with the
time before it was asked. (Read in aiokafka 0.12 to 0.14. It has no callback for partitions that were taken: what it
revokes when it joins again after that is told as ``Revoke``.)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

import aiokafka  # type: ignore[import-untyped]
from aiokafka.abc import ConsumerRebalanceListener  # type: ignore[import-untyped]

from . import kafka
from .emitter import Moment, moment
from .kafka import Key, Member, Place, executed, guarded, skipped, undone

__all__ = ["AIOKafkaConsumer", "AIOKafkaProducer", "executed", "handling", "skipped", "undone"]


class AIOKafkaConsumer(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]
    """An ``aiokafka.AIOKafkaConsumer`` that emits events.

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
        if topics:
            self.subscribe(topics)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        super().subscribe(topics, pattern, _Listener(self.specwatch, listener))

    @property
    def _coordinator(self) -> Any:
        return self._specwatch_coordinator

    @_coordinator.setter
    def _coordinator(self, coordinator: Any) -> None:
        """The one way by which all commits go, the client's own too, is of what ``start`` makes here."""
        self._specwatch_coordinator = coordinator
        commit = getattr(coordinator, "_do_commit_offsets", None)
        if commit is not None:
            coordinator._do_commit_offsets = _told(self.specwatch, commit)

    async def getone(self, *partitions: Any) -> Any:
        message = await super().getone(*partitions)
        guarded(lambda: self._pickup(message))
        return message

    async def getmany(self, *partitions: Any, **named: Any) -> Any:
        batches = await super().getmany(*partitions, **named)
        for messages in batches.values():
            for message in messages:
                guarded(lambda message=message: self._pickup(message))  # type: ignore[misc]
        return batches

    def seek(self, partition: Any, offset: int) -> None:
        super().seek(partition, offset)
        guarded(lambda: self.specwatch.sought(partition, offset))

    def _pickup(self, message: Any) -> None:
        self.specwatch.pickup(_place(message), message, message.headers)


class AIOKafkaProducer(aiokafka.AIOKafkaProducer):  # type: ignore[misc]
    """An ``aiokafka.AIOKafkaProducer`` that emits ``Publish``, or ``Republish`` of an id that this process sent before.

    ``key`` is the name of the header that a message is known by. One without it is told of when the broker has it, by
    its place.
    """

    def __init__(self, *arguments: Any, key: str = "id", **named: Any) -> None:
        self.specwatch_key = key
        super().__init__(*arguments, **named)

    async def send(self, topic: str, *arguments: Any, **named: Any) -> Any:
        headers = named.get("headers") or (arguments[4] if len(arguments) > 4 else None)
        identity = kafka.header(headers, self.specwatch_key)
        if identity is not None:
            guarded(lambda: kafka.publish(identity))
        sent = await super().send(topic, *arguments, **named)
        if identity is None:
            sent.add_done_callback(lambda answer: guarded(lambda: _stored(answer)))
        return sent


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
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

    async def _hear(self, name: str, partitions: Any) -> None:
        answer = None if self.heard is None else getattr(self.heard, name)(partitions)
        if inspect.isawaitable(answer):
            await answer


def handling(message: Any) -> AbstractContextManager[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    return kafka.handling_at(_place(message))


def _told(member: Member, commit: Callable[[Any, Any], Awaitable[None]]) -> Callable[[Any, Any], Awaitable[None]]:
    async def told(assignment: Any, offsets: Any) -> None:
        at = moment()
        try:
            await commit(assignment, offsets)
        except Exception as error:
            name = type(error).__name__
            guarded(lambda: _answered(member, offsets, at, name))
            raise
        guarded(lambda: _answered(member, offsets, at))

    return told


def _answered(member: Member, offsets: Any, at: Moment, refused: str | None = None) -> None:
    for partition, one in offsets.items():
        member.committed(partition, one.offset, at, refused)


def _stored(answer: Any) -> None:
    if not answer.cancelled() and answer.exception() is None:
        kafka.publish(str(_place(answer.result())))


def _place(one: Any) -> Place:
    return Place(one.topic, one.partition, one.offset)
