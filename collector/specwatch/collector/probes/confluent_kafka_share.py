"""Probes for Kafka's share groups (KIP-932) with confluent-kafka.

    from specwatch.collector.probes.confluent_kafka_share import ShareConsumer, executed, handling

    consumer = ShareConsumer({…, "share.acknowledgement.mode": "explicit"}, worker="worker-2")
    consumer.subscribe(["orders"])
    for message in consumer.poll(1.0):
        with handling(message):
            ...
            executed()
        consumer.acknowledge(message)
        consumer.commit_sync()

The events are the actions of ``specs/kafka/ShareGroup.tla``: t is what the message is known by, w the member's name, p
its partition (``topic/3``), o its offset, a how often it was delivered before this. What no client sees (that a lock is
over) is no event.

A word about a message is told when the broker has answered, with the time before it was asked: ``Ack``, ``Nack``
(release) or ``Reject`` if it took it, ``AckFail`` if not. Producers are those of ``probes.confluent_kafka``. (Read in
confluent-kafka 2.16.)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

import confluent_kafka
from confluent_kafka import AcknowledgeType

from . import deliveries, kafka
from .deliveries import REMEMBERED, Delivery, executed, guarded, skipped, undone
from .emitter import Moment, emit, moment
from .kafka import Key, Place

__all__ = ["ShareConsumer", "executed", "handling", "skipped", "undone"]

WORDS = {AcknowledgeType.ACCEPT: "Ack", AcknowledgeType.RELEASE: "Nack", AcknowledgeType.REJECT: "Reject"}
"""What each word is called where the broker took it."""

_held: OrderedDict[tuple[Place, int], Delivery] = OrderedDict()
"""By place and number of delivery: what the members of this process received last."""


class ShareConsumer(confluent_kafka.ShareConsumer):
    """A ``confluent_kafka.ShareConsumer`` that emits events.

    ``worker`` is this member's name, by default ``host/pid``. ``key`` says what a message is known by, the name of a
    header or a function of the message; one that has none is known by its place, ``topic/partition/offset``.
    ``execute`` says what tells of the effect: ``"told"``, ``executed`` alone; ``"return"``, also the end of
    ``handling`` where nothing was said in it, with the field ``inferred``.
    """

    def __init__(
        self,
        config: dict[str, Any],
        *,
        worker: str | None = None,
        key: Key = "id",
        execute: Literal["return", "told"] = "return",
    ) -> None:
        super().__init__(config)
        self.specwatch = kafka.Member(worker, key, infers=execute == "return")
        self._unanswered: dict[Place, Delivery] = {}
        """What this member received and has no answer of."""
        self._words: dict[Place, str] = {}
        """What it said of some of that."""
        self._asked: Moment = moment()
        self._heard: Callable[[Any, Any], None] | None = None
        super().set_acknowledgement_commit_callback(self._answered)

    def set_acknowledgement_commit_callback(self, callback: Callable[[Any, Any], None] | None) -> None:
        """As of the base class; it is called when the events are told."""
        self._heard = callback

    def poll(self, *arguments: Any, **named: Any) -> Any:
        """As of the base class."""
        self._asked = moment()
        messages = super().poll(*arguments, **named)
        for message in messages:
            if message.error() is None:
                guarded(lambda message=message: self._pickup(message))  # type: ignore[misc]
        return messages

    def acknowledge(self, message: Any, *arguments: Any, **named: Any) -> None:
        """As of the base class: nothing is sent yet."""
        super().acknowledge(message, *arguments, **named)
        guarded(lambda: self._say(_place(message), *arguments, **named))

    def acknowledge_offset(self, topic: str, partition: int, offset: int, *arguments: Any, **named: Any) -> None:
        """As of the base class: nothing is sent yet."""
        super().acknowledge_offset(topic, partition, offset, *arguments, **named)
        guarded(lambda: self._say(Place(topic, partition, offset), *arguments, **named))

    def commit_sync(self, *arguments: Any, **named: Any) -> Any:
        """As of the base class."""
        self._asked = moment()
        return super().commit_sync(*arguments, **named)

    def commit_async(self) -> None:
        """As of the base class: the answer is heard when something else is called."""
        self._asked = moment()
        super().commit_async()

    def close(self) -> None:
        """As of the base class: what was said is sent, and what was not is for the next."""
        at = self._asked = moment()
        super().close()
        guarded(lambda: emit("Close", params={"w": self.specwatch.name}, at=at))

    def _pickup(self, message: Any) -> None:
        place = _place(message)
        headers, key = message.headers(), self.specwatch.key
        found = kafka.header(headers, key) if isinstance(key, str) else key(message)
        delivery = self._unanswered[place] = _held[place, message.delivery_count()] = Delivery(
            found or str(place),
            self.specwatch.name,
            message.delivery_count() - 1,
            infers=self.specwatch.infers,
            extra={},
            traceparent=kafka.header(headers, "traceparent"),
        )
        if len(_held) > REMEMBERED:
            _held.popitem(last=False)
        delivery.tell("Pickup", params={"p": kafka.partition(place), "o": place.offset})

    def _say(self, place: Place, ack_type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        self._words[place] = WORDS[AcknowledgeType(ack_type)]

    def _answered(self, offsets: Any, error: Any) -> None:
        guarded(lambda: self._tell(offsets, error))
        if self._heard is not None:
            self._heard(offsets, error)

    def _tell(self, offsets: Any, error: Any) -> None:
        for one, numbers in offsets.items():
            for offset in sorted(numbers):
                place = Place(one.topic, one.partition, offset)
                # Where the application says nothing, the client accepts.
                word = self._words.pop(place, "Ack")
                delivery = self._unanswered.pop(place, None)
                if delivery is None:
                    continue
                if error is None:
                    delivery.tell(word, at=self._asked)
                else:
                    delivery.tell("AckFail", at=self._asked, word=word, reason=_reason(error))


def handling(message: Any) -> AbstractContextManager[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    return deliveries.handling_of(_held.get((_place(message), message.delivery_count())))


def _place(message: Any) -> Place:
    return Place(message.topic(), message.partition(), message.offset())


def _reason(error: Any) -> str:
    found = error.args[0] if isinstance(error, confluent_kafka.KafkaException) else error
    return str(found.name())
