"""Probes for Celery on Redis or Valkey: what producers, a worker's main process and its pool children do.

    from specwatch.collector.probes.celery import instrument

    app = Celery(...)
    instrument(app)

The events are the actions of ``specs/celery/CeleryRedis.tla``: t is the task's id, w the worker's node name, a the
attempt (the message's ``retries``), r whether the message says that it was redelivered.

Celery has signals for the body, and none for the receipt of a message that is then discarded, for acks, and for what is
put back when a worker stops. These are taken where they happen: in the strategy that is given each message, in the
message's own ``ack`` and ``reject``, and in the channel's ``restore_unacked`` (kombu 5.5 and 5.7, celery 5.5 to 5.7).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from celery import signals  # type: ignore[import-untyped]
from celery.exceptions import Ignore, Reject, WorkerLostError  # type: ignore[import-untyped]
from celery.worker import strategy as strategies  # type: ignore[import-untyped]
from kombu.exceptions import DecodeError  # type: ignore[import-untyped]
from kombu.utils.imports import symbol_by_name  # type: ignore[import-untyped]

from .emitter import Moment, configure, emit, fail, moment, start, stop

STRATEGY = "celery.worker.strategy:default"
REMEMBERED = 10_000
"""So many of the ids that a process published last are remembered, to know one that is published again."""

Execute = Literal["return", "told"]


def instrument(app: Any, *, execute: Execute = "return") -> None:
    """Make ``app`` emit events, in whichever process it runs. To be called where the app is made.

    ``execute`` says what tells of a task's effect. ``"told"``: ``executed()`` alone. ``"return"``: for a body that said
    nothing itself (no ``executed``, ``skipped`` or ``undone``), its return.
    """
    global _execute
    _execute = execute
    app.Task.Strategy = f"{__name__}:receive"
    signals.worker_init.connect(_worker_init, dispatch_uid=__name__)
    signals.worker_process_init.connect(_child_init, dispatch_uid=__name__)
    signals.worker_process_shutdown.connect(_child_shutdown, dispatch_uid=__name__)
    signals.before_task_publish.connect(_publish, dispatch_uid=__name__)
    signals.task_unknown.connect(_unknown, dispatch_uid=__name__)
    signals.task_rejected.connect(_unusable, dispatch_uid=__name__)
    signals.task_prerun.connect(_prerun, dispatch_uid=__name__)
    signals.task_success.connect(_success, dispatch_uid=__name__)
    signals.task_failure.connect(_failure, dispatch_uid=__name__)
    signals.task_retry.connect(_retry, dispatch_uid=__name__)
    signals.task_postrun.connect(_postrun, dispatch_uid=__name__)


def executed(**extra: Any) -> None:
    """Say, in a task's body, that its effect has become durable: after the commit, where the INSERT returned a row."""
    _told("Execute", extra)


def skipped(**extra: Any) -> None:
    """Say, in a task's body, that its guard found the work done."""
    _told("Skip", extra)


def undone(**extra: Any) -> None:
    """Say, in a task's body, that what ``executed`` told of was taken back: the transaction failed after all."""
    _told("Undo", extra)


_execute: Execute = "return"
_node = ""
_published: OrderedDict[str, None] = OrderedDict()


# The body --------------------------------------------------------------------------------------------------------------


def _request() -> Any:
    from celery import current_task

    request = current_task.request if current_task else None
    return request if request is not None and request.id and not request.is_eager else None


def _told(action: str, extra: Mapping[str, Any]) -> None:
    try:
        request = _request()
        if request is None:
            raise LookupError(f"{action} was told outside the body of a task that a worker runs")
        request.specwatch_told = True
        _of_body(action, request, **extra)
    except Exception as error:
        fail(error)


def _of_body(action: str, request: Any, **extra: Any) -> None:
    attempt = request.retries or 0
    properties = request.properties or {}
    delivery = request.delivery_info or {}
    emit(
        action,
        t=request.id,
        w=request.hostname,
        a=attempt,
        key=request.id,
        attempt=attempt,
        extra={
            "task": request.task,
            "delivery_tag": properties.get("delivery_tag"),
            "redelivered": bool(delivery.get("redelivered")),
            **extra,
        },
        traceparent=getattr(request, "traceparent", None),
    )


def _running(sender: Any, task_id: str) -> Any:
    """The request of the body that runs here and now, or None: signals come from the main process too."""
    request = sender.request
    return request if request.id == task_id and not request.is_eager else None


def _prerun(sender: Any = None, task_id: str = "", **_: Any) -> None:
    _guarded(lambda: _tell_body("Start", sender, task_id))


def _success(sender: Any = None, **_: Any) -> None:
    def tell() -> None:
        request = _running(sender, sender.request.id)
        if request is not None:
            if _execute == "return" and not getattr(request, "specwatch_told", False):
                _of_body("Execute", request, inferred="the body returned")
            _end_body("Done", request)

    _guarded(tell)


def _failure(sender: Any = None, task_id: str = "", exception: Any = None, **_: Any) -> None:
    # A body that rejects its message is told of by the main process, as Reject.
    if not isinstance(exception, Reject):
        _guarded(lambda: _tell_body("Fail", sender, task_id, exception=type(exception).__name__))


def _retry(sender: Any = None, request: Any = None, **_: Any) -> None:
    # Also sent, in the main process, for a body that was cancelled when the connection was lost: no retry was sent then.
    _guarded(lambda: _tell_body("Retry", sender, request.id))


def _postrun(sender: Any = None, task_id: str = "", state: Any = None, **_: Any) -> None:
    if state == "IGNORED" or (state == "REJECTED" and not sender.acks_late):
        # It ended without a word to anyone else; an early ack leaves nothing to reject.
        _guarded(lambda: _tell_body("Fail", sender, task_id, exception="Ignore" if state == "IGNORED" else "Reject"))


def _tell_body(action: str, sender: Any, task_id: str, **extra: Any) -> None:
    request = _running(sender, task_id)
    if request is None:
        return
    if action == "Start":
        _of_body(action, request, **extra)
    else:
        _end_body(action, request, **extra)


def _end_body(action: str, request: Any, **extra: Any) -> None:
    if not getattr(request, "specwatch_ended", False):
        request.specwatch_ended = True
        _of_body(action, request, **extra)


# Publishing ------------------------------------------------------------------------------------------------------------


def _publish(sender: Any = None, headers: Any = None, body: Any = None, **options: Any) -> None:
    def tell() -> None:
        fields = headers if headers and "id" in headers else body
        if not isinstance(fields, Mapping) or "id" not in fields:
            return
        if fields.get("retries"):
            return  # A body sends its next attempt; Retry, which follows, tells of it.
        identity = fields["id"]
        again = identity in _published
        if not again:
            request = _request()
            again = request is not None and request.id == identity  # A task that replaces itself.
        _published[identity] = None
        _published.move_to_end(identity)
        while len(_published) > REMEMBERED:
            _published.popitem(last=False)
        emit(
            "Republish" if again else "Publish",
            t=identity,
            key=identity,
            attempt=0,
            extra={"task": fields.get("task"), "queue": options.get("routing_key"), "eta": fields.get("eta")},
            traceparent=(headers or {}).get("traceparent"),
        )

    _guarded(tell)


# The worker's main process ---------------------------------------------------------------------------------------------


class Delivery:
    """A message that this worker holds, and what was told of it."""

    def __init__(self, message: Any, fields: Mapping[str, Any], node: str) -> None:
        self.id: str = fields["id"]
        self.attempt: int = fields.get("retries") or 0
        self.node = node
        self.redelivered = bool((message.delivery_info or {}).get("redelivered"))
        self.tag = message.delivery_tag
        self.task = fields.get("task")
        self.traceparent = (message.headers or {}).get("traceparent")
        self.settled = False
        """Whether an event that implies the ack was told: Revoke, Expire."""
        self.lost = False
        """Whether the pool child is gone without having told how the body ended."""

    def tell(self, action: str, *, at: Moment | None = None, params: Mapping[str, Any] | None = None, **extra: Any) -> None:
        """Emit an action of this copy."""
        emit(
            action,
            params={"t": self.id, "w": self.node, "a": self.attempt, **(params or {})},
            key=self.id,
            attempt=self.attempt,
            extra={"task": self.task, "delivery_tag": self.tag, "redelivered": self.redelivered, **extra},
            traceparent=self.traceparent,
            at=at,
        )

    def end_lost(self) -> None:
        """Tell of the body what its child cannot tell any more, once."""
        if self.lost:
            self.lost = False
            self.tell("Fail", exception="WorkerLostError")


def _worker_init(sender: Any = None, **_: Any) -> None:
    def begin() -> None:
        global _node
        _node = sender.hostname
        for task in sender.app.tasks.values():
            # A base that is not the app's own Task does not inherit from it.
            if task.Strategy == STRATEGY:
                task.Strategy = f"{__name__}:receive"
        configure(role=_node)
        start()

    _guarded(begin)


def _child_init(**_: Any) -> None:
    start()


def _child_shutdown(**_: Any) -> None:
    stop()


def receive(task: Any, app: Any, consumer: Any) -> Callable[..., Any]:
    """Celery's own strategy, told of each message before it is even decoded."""
    with suppress(TypeError):
        task.Request = _probed(symbol_by_name(task.Request))
    handle = strategies.default(task, app, consumer)
    node = consumer.hostname

    def handler(message: Any, body: Any, *args: Any, **options: Any) -> Any:
        delivery = _pickup(message, body, node)
        try:
            return handle(message, body, *args, **options)
        except DecodeError:
            # Celery acks what it cannot decode, and sends no signal.
            if delivery is not None:
                delivery.settled = True
                delivery.tell("Reject", reason="the message could not be decoded")
            raise

    return handler


def _pickup(message: Any, body: Any, node: str) -> Delivery | None:
    try:
        at = moment()
        fields = message.headers if message.headers and "id" in message.headers else body
        delivery = Delivery(message, fields, node)
        delivery.tell("Pickup", at=at, params={"r": delivery.redelivered}, eta=fields.get("eta"))
        message.specwatch = delivery
        message.ack = _telling(delivery, message.ack, lambda *_, **__: "Ack")
        message.reject = _telling(
            delivery, message.reject, lambda requeue=False, **_: "Nack" if requeue else "Reject"
        )
        message.requeue = _telling(delivery, message.requeue, lambda: "Nack")
        _watch_restores(message.channel)
        return delivery
    except Exception as error:
        fail(error)
        return None


def _telling(delivery: Delivery, settle: Callable[..., Any], action: Callable[..., str]) -> Callable[..., Any]:
    """The message's own word to the broker, told of when the broker has taken it, with the time before it was said.

    An ack that was told first and then failed, or whose worker was killed between the two, would be one that never was.
    """

    def settling(*args: Any, **options: Any) -> Any:
        at = moment()
        result = settle(*args, **options)
        _guarded(lambda: _settled(delivery, action(*args, **options), at))
        return result

    return settling


def _settled(delivery: Delivery, action: str, at: Moment) -> None:
    if delivery.settled:
        return
    delivery.settled = True
    if action != "Nack":
        delivery.end_lost()
    delivery.tell(action, at=at)


def _watch_restores(channel: Any) -> None:
    """Of what a channel puts back when it closes, tell each delivery. Only virtual transports put back themselves."""
    qos = getattr(channel, "qos", None)
    if not hasattr(qos, "restore_unacked") or hasattr(qos, "specwatch"):
        return
    restore = qos.restore_unacked
    qos.specwatch = True

    def restoring(*args: Any, **options: Any) -> Any:
        at = moment()
        held = [message for tag, message in list(qos._delivered.items()) if tag not in qos._dirty]
        result = restore(*args, **options)
        _guarded(lambda: _restored(held, at))
        return result

    qos.restore_unacked = restoring


def _restored(messages: list[Any], at: Moment) -> None:
    for message in messages:
        delivery = getattr(message, "specwatch", None)
        if delivery is not None and not delivery.settled:
            delivery.tell("RestoreOnShutdown", at=at)


def _probed(base: Any) -> Any:
    """``base``, a class of requests, telling of what ends a task in the main process."""
    if issubclass(base, _Probed):
        return base
    return type(f"Probed{base.__name__}", (_Probed, base), {})


class _Probed:
    """Mixed into the class of requests that a task uses."""

    message: Any
    _already_revoked: bool

    def _announce_revoked(self, reason: Any, terminated: Any, signum: Any, expired: Any) -> None:
        def tell() -> None:
            delivery = getattr(self.message, "specwatch", None)
            if delivery is not None and not self._already_revoked:
                delivery.settled = True  # The ack that follows is a part of it.
                delivery.tell("Expire" if expired else "Revoke", terminated=bool(terminated))

        _guarded(tell)
        super()._announce_revoked(reason, terminated, signum, expired)  # type: ignore[misc]


def _message_fields(message: Any) -> Mapping[str, Any]:
    return message.headers if "id" in (message.headers or {}) else message.payload  # type: ignore[no-any-return]


def _unknown(sender: Any = None, message: Any = None, **_: Any) -> None:
    # The message was rejected before the signal came; no one else can have it, so that the order does not matter.
    def tell() -> None:
        delivery = Delivery(message, _message_fields(message), sender.hostname)
        delivery.tell("Pickup", params={"r": delivery.redelivered})
        delivery.tell("Reject", reason="unknown task")

    _guarded(tell)


def _unusable(sender: Any = None, message: Any = None, **_: Any) -> None:
    def tell() -> None:
        if getattr(message, "specwatch", None) is None:
            delivery = Delivery(message, _message_fields(message), sender.hostname)
            delivery.tell("Pickup", params={"r": delivery.redelivered})
            delivery.tell("Reject", reason="not a task's message")

    _guarded(tell)


def _guarded(tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception as error:
        fail(error)
