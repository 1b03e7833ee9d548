"""What the probes for Kafka's clients have in common: the messages that members hold, and what is said of them.

The events are the actions of ``specs/kafka/Kafka.tla``: t is what a message is known by, w the member's name, p its
partition (``topic/3``), o an offset; of a commit, the offset that is committed: all below it is done. What no client
sees (that the group gave a member up) is no event: its next ``Lost`` or ``CommitFail`` tells it, later.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from .emitter import Moment, emit, fail

REMEMBERED = 10_000
"""So many of the messages that were received last, and of the ids that were published last, are remembered."""

Key = str | Callable[[Any], str | None]
"""How a message's id is found: the name of a header, or a function of the message."""


class Place(NamedTuple):
    """Where a message stands."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


_received: OrderedDict[Place, _Receipt] = OrderedDict()
_published: OrderedDict[str, None] = OrderedDict()
_running: ContextVar[_Receipt | None] = ContextVar("specwatch_kafka_running", default=None)


class _Receipt(NamedTuple):
    """A message in a member's hands. ``said``: what its body said of its effect."""

    identity: str
    worker: str
    infers: bool
    said: list[str]

    def tell(self, action: str, place: Place | None = None, **extra: Any) -> None:
        params: dict[str, Any] = {"t": self.identity, "w": self.worker}
        if place is not None:
            params |= {"p": partition(place), "o": place.offset}
        emit(action, params=params, key=self.identity, extra=extra or None)

    def end(self) -> None:
        if self.infers and not self.said:
            self.tell("Execute", inferred="the body returned")
        self.tell("Done")


class Member:
    """A member of a consumer group, by its name; by default ``host/pid``.

    ``infers``: whether a body that said nothing of its effect had it when it returned.
    """

    def __init__(self, name: str | None, key: Key, *, infers: bool) -> None:
        self.name = name or f"{os.uname().nodename}/{os.getpid()}"
        self.key = key
        self.infers = infers

    def pickup(self, place: Place, message: Any, headers: Any) -> None:
        """It received a message."""
        identity = header(headers, self.key) if isinstance(self.key, str) else self.key(message)
        receipt = _received[place] = _Receipt(identity or str(place), self.name, self.infers, [])
        _received.move_to_end(place)
        if len(_received) > REMEMBERED:
            _received.popitem(last=False)
        receipt.tell("Pickup", place)

    def partitions(self, action: str, ones: Iterable[Any]) -> None:
        """``Assign``, ``Revoke`` or ``Lost`` of each."""
        for one in ones:
            self._tell(action, {"p": partition(one)})

    def committed(self, one: Any, offset: int, at: Moment | None, refused: str | None = None) -> None:
        """The group's answer to the commit of a partition; ``refused``: why it did not take it."""
        action = "Commit" if refused is None else "CommitFail"
        self._tell(action, {"p": partition(one), "o": offset}, at, None if refused is None else {"reason": refused})

    def sought(self, one: Any, offset: int) -> None:
        """It went to an offset by itself."""
        self._tell("Seek", {"p": partition(one), "o": offset})

    def _tell(
        self, action: str, more: dict[str, Any], at: Moment | None = None, extra: dict[str, Any] | None = None
    ) -> None:
        emit(action, params={"w": self.name, **more}, at=at, extra=extra)


@contextlib.contextmanager
def handling_at(place: Place) -> Iterator[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    receipt = _received.get(place)
    token = _running.set(receipt)
    guarded(lambda: _of(receipt).tell("Start"))
    try:
        yield
    except BaseException as error:
        name = type(error).__name__
        guarded(lambda: _of(receipt).tell("Fail", exception=name))
        raise
    else:
        guarded(lambda: _of(receipt).end())
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


def publish(identity: str) -> None:
    """``Publish``, or ``Republish`` of an id that this process sent before."""
    known = identity in _published
    _published[identity] = None
    _published.move_to_end(identity)
    if len(_published) > REMEMBERED:
        _published.popitem(last=False)
    emit("Republish" if known else "Publish", params={"t": identity}, key=identity)


def header(headers: Any, name: str) -> str | None:
    """The value of a message's first header of a name; None where it has none."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    value = next((value for key, value in pairs if key == name), None)
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def partition(one: Any) -> str:
    """``topic/3``, of whatever has a topic and a partition."""
    return f"{one.topic}/{one.partition}"


def guarded(tell: Callable[[], None]) -> None:
    """Tell; what fails in it is counted, and never the application's."""
    try:
        tell()
    except Exception as error:
        fail(error)


def _by_hand(action: str, extra: dict[str, Any]) -> None:
    def tell() -> None:
        receipt = _of(_running.get())
        receipt.said.append(action)
        receipt.tell(action, **extra)

    guarded(tell)


def _of(receipt: _Receipt | None) -> _Receipt:
    if receipt is None:
        raise LookupError("no message is handled here that an instrumented consumer has received")
    return receipt
