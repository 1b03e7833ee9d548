"""Probes for Kafka with confluent-kafka: what producers and the members of a consumer group do.

    from specwatch.collector.probes.confluent_kafka import Consumer, executed, handling

    consumer = Consumer({...}, worker="worker-2")     # in the place of confluent_kafka.Consumer
    consumer.subscribe(["orders"])
    message = consumer.poll(1.0)
    with handling(message):
        ...
        executed()
    consumer.commit(message=message, asynchronous=False)

The events are the actions of ``specs/kafka/Kafka.tla``: t is what a message is known by, w the member's name, p its
partition (``topic/3``), o an offset; of a commit, the offset that is committed: all below it is done. What no client
sees (that the group gave a member up) is no event: its next ``Lost`` or ``CommitFail`` tells it, later.

A message is told of when ``poll`` or ``consume`` gives it to the application; what librdkafka has fetched before is
not. A commit is told when the group has taken it, with the time before it was asked for; what librdkafka commits by
itself (``enable.auto.commit``) when it says so. (Read in confluent-kafka 2.8 to 2.16.)
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal

import confluent_kafka

from .emitter import Moment, emit, fail, moment

REMEMBERED = 10_000
"""So many of the messages that were received last, and of the ids that were published last, are remembered."""

Key = str | Callable[[Any], str | None]
"""How a message's id is found: the name of a header, or a function of the message."""
Place = tuple[str, int, int]

_received: OrderedDict[Place, _Receipt] = OrderedDict()
_published: OrderedDict[str, None] = OrderedDict()
_running: ContextVar[_Receipt | None] = ContextVar("specwatch_kafka_running", default=None)


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
        self.specwatch_worker = worker or f"{os.uname().nodename}/{os.getpid()}"
        self.specwatch_key = key
        self.specwatch_infers = execute == "return"
        heard = config.get("on_commit")

        def on_commit(error: Any, partitions: Any) -> None:
            _guarded(lambda: self._committed(error, partitions, moment()))
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
                _guarded(lambda: self._tell_partitions(action, partitions))

            return callback

        return super().subscribe(
            topics,
            on_assign=telling("Assign", on_assign),
            on_revoke=telling("Revoke", on_revoke),
            on_lost=telling("Lost", lost),
        )

    def poll(self, *arguments: Any, **named: Any) -> Any:
        message = super().poll(*arguments, **named)
        _guarded(lambda: self._pickup([message]))
        return message

    def consume(self, *arguments: Any, **named: Any) -> Any:
        messages = super().consume(*arguments, **named)
        _guarded(lambda: self._pickup(messages))
        return messages

    def commit(self, *arguments: Any, **named: Any) -> Any:
        """As of the base class. What is asked for asynchronously is told by ``on_commit``."""
        at = moment()
        asked = named.get("offsets") or self._next(arguments[0] if arguments else named.get("message"))
        try:
            taken = super().commit(*arguments, **named)
        except confluent_kafka.KafkaException as error:
            reason = error.args[0]
            _guarded(lambda: self._committed(reason, asked, at))
            raise
        if taken is not None:
            _guarded(lambda: self._committed(None, taken, at))
        return taken

    def seek(self, partition: Any) -> Any:
        answer = super().seek(partition)
        _guarded(lambda: self._tell("Seek", p=_partition(partition), o=partition.offset))
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
            place = (message.topic(), message.partition(), message.offset())
            identity = known_by(self.specwatch_key, message) or "/".join(map(str, place))
            receipt = _received[place] = _Receipt(identity, self.specwatch_worker, self.specwatch_infers)
            _received.move_to_end(place)
            if len(_received) > REMEMBERED:
                _received.popitem(last=False)
            receipt.tell("Pickup", p=f"{place[0]}/{place[1]}", o=place[2])

    def _committed(self, error: Any, partitions: Sequence[Any] | None, at: Moment) -> None:
        for one in partitions or ():
            why = error or one.error
            if one.offset >= 0 and (why is None or why.code() != confluent_kafka.KafkaError._NO_OFFSET):
                more = {} if why is None else {"reason": why.name()}
                self._tell("Commit" if why is None else "CommitFail", at, p=_partition(one), o=one.offset, **more)

    def _tell_partitions(self, action: str, partitions: Sequence[Any]) -> None:
        for one in partitions:
            self._tell(action, p=_partition(one))

    def _tell(self, action: str, at: Moment | None = None, *, p: str, **more: Any) -> None:
        params = {"w": self.specwatch_worker, "p": p, **({"o": more.pop("o")} if "o" in more else {})}
        emit(action, params=params, at=at, extra=more or None)


class Producer(confluent_kafka.Producer):
    """A ``confluent_kafka.Producer`` that emits ``Publish``, or ``Republish`` of an id that this process sent before.

    ``key`` is the name of the header that a message is known by. One without it is told of when the broker has it, by
    its place.
    """

    def __init__(self, config: dict[str, Any], *, key: str = "id", **named: Any) -> None:
        self.specwatch_key = key
        super().__init__(config, **named)

    def produce(self, topic: str, *arguments: Any, **named: Any) -> Any:
        identity = _header(named.get("headers"), self.specwatch_key)
        if identity is not None:
            _guarded(lambda: _publish(identity))
        else:
            heard = named.pop("on_delivery", None) or named.pop("callback", None)

            def delivered(error: Any, message: Any) -> None:
                if error is None:
                    place = (message.topic(), message.partition(), message.offset())
                    _guarded(lambda: _publish("/".join(map(str, place))))
                if heard is not None:
                    heard(error, message)

            named["on_delivery"] = delivered
        return super().produce(topic, *arguments, **named)


class _Receipt:
    """A message in a member's hands."""

    def __init__(self, identity: str, worker: str, infers: bool) -> None:
        self.identity = identity
        self.worker = worker
        self.infers = infers
        self.told = False

    def tell(self, action: str, *, p: str | None = None, o: int | None = None, **extra: Any) -> None:
        place = {} if p is None else {"p": p, "o": o}
        emit(action, params={"t": self.identity, "w": self.worker, **place}, key=self.identity, extra=extra or None)

    def end(self) -> None:
        if self.infers and not self.told:
            self.tell("Execute", inferred="the body returned")
        self.tell("Done")


@contextlib.contextmanager
def handling(message: Any) -> Iterator[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    receipt = _received.get((message.topic(), message.partition(), message.offset()))
    token = _running.set(receipt)
    _guarded(lambda: _of(receipt).tell("Start"))
    try:
        yield
    except BaseException as error:
        name = type(error).__name__
        _guarded(lambda: _of(receipt).tell("Fail", exception=name))
        raise
    else:
        _guarded(lambda: _of(receipt).end())
    finally:
        _running.reset(token)


def executed(**extra: Any) -> None:
    """Say that the effect of the message that is handled here has become durable: after the commit of its transaction.

    ``extra`` are further fields of the event. Never raises.
    """
    _by_hand("Execute", extra)


def skipped(**extra: Any) -> None:
    """Say that the guard found the work done."""
    _by_hand("Skip", extra)


def undone(**extra: Any) -> None:
    """Say that what ``executed`` told of was taken back: the transaction failed after all."""
    _by_hand("Undo", extra)


def known_by(key: Key, message: Any) -> str | None:
    """The id of a message; None where it has none."""
    if not isinstance(key, str):
        return key(message)
    return _header(message.headers(), key)


def _header(headers: Any, name: str) -> str | None:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    value = next((value for key, value in pairs if key == name), None)
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _publish(identity: str) -> None:
    known = identity in _published
    _published[identity] = None
    _published.move_to_end(identity)
    if len(_published) > REMEMBERED:
        _published.popitem(last=False)
    emit("Republish" if known else "Publish", params={"t": identity}, key=identity)


def _by_hand(action: str, extra: dict[str, Any]) -> None:
    def tell() -> None:
        receipt = _of(_running.get())
        receipt.told = True
        receipt.tell(action, **extra)

    _guarded(tell)


def _of(receipt: _Receipt | None) -> _Receipt:
    if receipt is None:
        raise LookupError("no message is handled here that an instrumented consumer has received")
    return receipt


def _partition(one: Any) -> str:
    return f"{one.topic}/{one.partition}"


def _guarded(tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception as error:
        fail(error)
