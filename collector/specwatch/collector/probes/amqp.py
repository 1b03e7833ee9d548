"""What the probes of RabbitMQ's clients have in common: the deliveries of a channel, and what is told of them.

The events are the actions of ``specs/rabbitmq/RabbitMQ.tla``: t is what the message is known by, w the worker's name,
n the connection (its own end of it, as the broker names it too), c the channel's number, d the delivery tag, r whether
the message says that it was redelivered. A channel number that a connection opens again is told as ``1.2``.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Literal

from .emitter import Moment, emit, fail, moment

REMEMBERED = 10_000
"""So many of the ids that a process published last are remembered, to know one that is published again."""

Key = str | Callable[[Any, bytes], str | None]
"""How a message's id is found: ``message_id``, its property; the name of a header; a path into its JSON,
``$.order.id``; or a function of its properties and its body."""

Execute = Literal["return", "told"]

_running: ContextVar[Delivery | None] = ContextVar("specwatch_amqp_running", default=None)
_published: OrderedDict[str, None] = OrderedDict()


def known_by(key: Key, properties: Any, body: bytes) -> str | None:
    """The id of a message, as ``key`` finds it; None where it has none."""
    if callable(key):
        found: Any = key(properties, body)
    elif key.startswith("$."):
        found = _at(key, body)
    elif key == "message_id":
        found = getattr(properties, "message_id", None)
    else:
        found = (getattr(properties, "headers", None) or {}).get(key)
    return None if found is None else str(found)


def _at(path: str, body: bytes) -> Any:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    for name in path.removeprefix("$.").split("."):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def guarded(tell: Callable[[], object]) -> None:
    """A probe never breaks the application."""
    try:
        tell()
    except Exception as error:
        fail(error)


def tell_published(key: Key, properties: Any, body: bytes, extra: Mapping[str, Any]) -> None:
    """``Publish``, or ``Republish`` of an id that this process published before. To be called before it is sent."""
    identity = known_by(key, properties, body)
    if identity is None:
        return
    known = identity in _published
    _published[identity] = None
    _published.move_to_end(identity)
    if len(_published) > REMEMBERED:
        _published.popitem(last=False)
    headers = getattr(properties, "headers", None) or {}
    emit(
        "Republish" if known else "Publish",
        t=identity,
        key=identity,
        attempt=0,
        extra=extra,
        traceparent=headers.get("traceparent"),
    )


class Channel:
    """An instrumented channel: what was received on it and is not settled."""

    def __init__(self, connection: Any, number: int, name: str | None, worker: str | None, key: Key, infers: bool):
        """``connection`` is the client's own object, on which is kept what its channels have in common; ``name`` is
        its own end, ``127.0.0.1:40112``, where that is known."""
        if not hasattr(connection, "specwatch"):
            connection.specwatch = _Connection(name or f"{os.uname().nodename}/{os.getpid()}/{id(connection):x}")
        self.connection: _Connection = connection.specwatch
        self.name = self.connection.opened(number)
        self.worker = worker or f"{os.uname().nodename}/{os.getpid()}"
        self.key = key
        self.infers = infers
        self.deliveries: dict[int, Delivery] = {}
        self._lost = False

    def receive(self, tag: int, redelivered: bool, properties: Any, body: bytes, *, acked: bool = False) -> Delivery:
        """Tell ``Pickup``; with ``acked`` (a consumer without acks) an ``Ack`` too, which is what that amounts to."""
        delivery = Delivery(self, tag, bool(redelivered), known_by(self.key, properties, body), properties)
        delivery.tell("Pickup", r=delivery.redelivered)
        if acked:
            delivery.tell("Ack", auto=True)
        else:
            self.deliveries[tag] = delivery
        return delivery

    @contextlib.contextmanager
    def saying(self, action: str, tag: int, multiple: bool = False) -> Iterator[None]:
        """Around a word to the broker: told when it was sent, with the time before; ``AckFail`` where it was not."""
        at = moment()
        try:
            yield
        except BaseException as error:
            reason = type(error).__name__
            guarded(lambda: self._said("AckFail", tag, multiple, at, word=action, reason=reason))
            raise
        guarded(lambda: self._said(action, tag, multiple, at))

    def _said(self, action: str, tag: int, multiple: bool, at: Moment, **extra: Any) -> None:
        # A tag of 0 with multiple=True is all.
        tags = [each for each in self.deliveries if each <= tag or tag == 0] if multiple else [tag]
        if multiple:
            extra["multiple"] = True
        for each in tags:
            # What was not received here is no one's delivery: the broker closes the channel for it.
            if (delivery := self.deliveries.pop(each, None)) is not None:
                delivery.unsaid = action == "AckFail"
                delivery.tell(action, at, **extra)

    def lost(self, reason: object, *, connection: bool) -> None:
        """Tell once that the channel is closed, or (once for all channels) its connection."""
        if self._lost or self.connection.lost:
            return
        self._lost = True
        extra = {"reason": " ".join(str(reason).split())}
        if connection:
            self.connection.lost = True
            emit("ConnLost", w=self.worker, n=self.connection.name, extra=extra)
        else:
            emit("ChannelLost", w=self.worker, n=self.connection.name, c=self.name, extra=extra)


class _Connection:
    """What the instrumented channels of a connection have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost = False
        self._numbers: dict[int, int] = {}

    def opened(self, number: int) -> str:
        """The name of a channel: its number, and from the second opening on which opening it is."""
        self._numbers[number] = times = self._numbers.get(number, 0) + 1
        return str(number) if times == 1 else f"{number}.{times}"


class Delivery:
    """A message that this worker received."""

    def __init__(self, channel: Channel, tag: int, redelivered: bool, identity: str | None, properties: Any) -> None:
        self.channel = channel
        self.redelivered = redelivered
        self.told = False
        """Whether the body has said what it did."""
        self.unsaid = False
        """Whether the worker's word on it could not be said."""
        self.id = identity
        self._params: dict[str, Any] = {} if identity is None else {"t": identity}
        self._params.update(w=channel.worker, n=channel.connection.name, c=channel.name, d=tag)
        headers = getattr(properties, "headers", None) or {}
        self._extra = {name: headers[name] for name in ("x-delivery-count", "x-death") if name in headers}
        self._traceparent = headers.get("traceparent")

    def tell(self, action: str, at: Moment | None = None, *, r: bool | None = None, **extra: Any) -> None:
        emit(
            action,
            params=self._params if r is None else {**self._params, "r": r},
            key=self.id,
            attempt=0,
            extra={**self._extra, **extra},
            traceparent=self._traceparent,
            at=at,
        )

    @contextlib.contextmanager
    def handling(self) -> Iterator[None]:
        """The body: ``Start``, then ``Done``, or ``Fail`` where it raises."""
        token = _running.set(self)
        guarded(lambda: self.tell("Start"))
        try:
            yield
        except BaseException as error:
            name = type(error).__name__
            # A body that could not say its word has done its work.
            guarded(self._end if self.unsaid else lambda: self.tell("Fail", exception=name))
            raise
        else:
            guarded(self._end)
        finally:
            _running.reset(token)

    def _end(self) -> None:
        if self.channel.infers and not self.told:
            self.tell("Execute", inferred="the body returned")
        self.tell("Done")


def by_hand(action: str, delivery: Delivery | None, extra: Mapping[str, Any]) -> None:
    """What a body says of its effect; of the delivery that is handled here where it names none. Never raises."""

    def tell() -> None:
        found = _running.get() if delivery is None else delivery
        if found is None:
            raise LookupError(f"{action} was told where no message is handled that came over an instrumented channel")
        found.told = True
        found.tell(action, **extra)

    guarded(tell)


def executed(**extra: Any) -> None:
    """Say, in a body, that its effect has become durable: after the commit, where the INSERT returned a row.

    ``extra`` are further fields of the event. Never raises; where no message is handled it counts as a failure.
    """
    by_hand("Execute", None, extra)


def skipped(**extra: Any) -> None:
    """Say, in a body, that its guard found the work done."""
    by_hand("Skip", None, extra)


def undone(**extra: Any) -> None:
    """Say, in a body, that what ``executed`` told of was taken back: the transaction failed after all."""
    by_hand("Undo", None, extra)
