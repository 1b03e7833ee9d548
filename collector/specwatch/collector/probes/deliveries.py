"""What the probes have in common for what numbers a message's deliveries: JetStream, Pulsar, Kafka's share groups.

A message that was received carries its ``Delivery``, where it can, as its attribute ``specwatch``. Parameters of the
events: t is what the message is known by, w the worker's name, a how often the message was delivered before this.
"""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from .emitter import Moment, emit, fail

REMEMBERED = 10_000
"""So many of the ids that a process published last are remembered, to know one that is published again."""

Key = str | Callable[[Any], str | None]
"""How a message's id is found: the name of a header or property; a path into its JSON, ``$.order.id``; or a function of
it."""

_running: ContextVar[Delivery | None] = ContextVar("specwatch_delivery_running", default=None)


class Delivery:
    """One delivery of a message to a worker. ``extra`` are further fields of all its events.

    ``infers``: whether a body that said nothing of its effect had it when it returned.
    """

    def __init__(
        self,
        key: str,
        worker: str,
        before: int,
        *,
        infers: bool,
        extra: Mapping[str, Any],
        traceparent: str | None = None,
    ) -> None:
        self.key = key
        self.worker = worker
        self.before = before
        self.infers = infers
        self.extra = dict(extra)
        self.traceparent = traceparent
        self.told = False
        """Whether the body has said what became of its effect."""

    def tell(
        self,
        action: str,
        *,
        at: Moment | None = None,
        until: str | None = None,
        params: Mapping[str, Any] | None = None,
        **extra: Any,
    ) -> None:
        """An event of it; ``params`` are further parameters."""
        emit(
            action,
            params={"t": self.key, "w": self.worker, "a": self.before, **(params or {})},
            key=self.key,
            at=at,
            until=until,
            extra={**self.extra, **extra},
            traceparent=self.traceparent,
        )

    def end(self) -> None:
        """Its body returned."""
        if self.infers and not self.told:
            self.tell("Execute", inferred="the body returned")
        self.tell("Done")


def handling(msg: Any) -> AbstractContextManager[None]:
    """The body that works on a message: its begin is ``Start``, its end ``Done``, or ``Fail`` where it raises."""
    return handling_of(getattr(msg, "specwatch", None))


@contextlib.contextmanager
def handling_of(delivery: Delivery | None) -> Iterator[None]:
    """The same of a delivery."""
    token = _running.set(delivery)
    guarded(lambda: _of(delivery).tell("Start"))
    try:
        yield
    except BaseException as error:
        name = type(error).__name__
        guarded(lambda: _of(delivery).tell("Fail", exception=name))
        raise
    else:
        guarded(lambda: _of(delivery).end())
    finally:
        _running.reset(token)


def executed(msg: Any = None, **extra: Any) -> None:
    """Say that a message's effect has become durable: after the commit, where the INSERT returned a row.

    ``msg`` is by default the one that is handled here; ``extra`` are further fields of the event. Never raises.
    """
    _by_hand("Execute", msg, extra)


def skipped(msg: Any = None, **extra: Any) -> None:
    """Say that the guard found the work done."""
    _by_hand("Skip", msg, extra)


def undone(msg: Any = None, **extra: Any) -> None:
    """Say that what ``executed`` told of was taken back: the transaction failed after all."""
    _by_hand("Undo", msg, extra)


class Publications:
    """The ids that a process published last: ``tell`` says ``Publish`` of a new one, and ``Republish`` of another."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def tell(self, key: str, at: Moment | None = None) -> None:
        again = key in self._known
        self._known[key] = None
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        emit("Republish" if again else "Publish", t=key, key=key, at=at)


def known_by(key: Key, message: Any, headers: Mapping[str, Any] | None, data: bytes) -> str | None:
    """The id of a message, as ``key`` finds it in its headers, its data, or the message itself; None without one."""
    found: Any
    if callable(key):
        found = key(message)
    elif key.startswith("$."):
        found = _at(key, data)
    else:
        found = (headers or {}).get(key)
    return None if found is None else str(found)


def guarded(tell: Callable[[], None]) -> None:
    """Tell; what fails in it is counted, and never the application's."""
    try:
        tell()
    except Exception as error:
        fail(error)


def _by_hand(action: str, msg: Any, extra: dict[str, Any]) -> None:
    def tell() -> None:
        delivery = _of(_running.get() if msg is None else getattr(msg, "specwatch", None))
        delivery.told = True
        delivery.tell(action, **extra)

    guarded(tell)


def _of(delivery: Delivery | None) -> Delivery:
    if delivery is None:
        raise LookupError("no message is handled here that an instrumented client has received")
    return delivery


def _at(path: str, data: bytes) -> Any:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    for name in path.removeprefix("$.").split("."):
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found
