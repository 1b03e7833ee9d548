"""Probes for Celery on Redis or Valkey: what producers, a worker's main process and its pool children do.

    from specwatch.collector.probes.celery import executed, instrument

    app = Celery(...)
    instrument(app)

The events are the actions of ``specs/celery/CeleryRedis.tla``: t is the task's id, w the worker's node name, a the
attempt (the message's ``retries``), r whether the message says that it was redelivered. What no worker saw (the
visibility timeout, a crash) is no event. Tasks that are called in place, eagerly or as functions, are none either.

Celery has signals for the body. It has none for the receipt of a message that it then discards, for acks, and for what
is put back when a worker stops. These are taken where they happen: in the strategy that is given each message, in the
message's own ``ack`` and ``reject``, in the request that ends a task in the main process, and in the channel's
``restore_unacked``. (Read in celery and kombu 5.5 to 5.7.)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Literal

from celery import current_task, signals  # type: ignore[import-untyped]
from celery.exceptions import Ignore, Reject, Retry, Terminated  # type: ignore[import-untyped]
from celery.worker import strategy as strategies  # type: ignore[import-untyped]
from kombu.exceptions import DecodeError
from kombu.utils.imports import symbol_by_name

from .emitter import Moment, configure, emit, fail, moment, start, stop

REMEMBERED = 10_000
"""So many of the ids that a process published last are remembered, to know one that is published again."""

Execute = Literal["return", "told"]

_STRATEGY = "celery.worker.strategy:default"
_execute: Execute = "return"
_published: OrderedDict[str, None] = OrderedDict()


def instrument(app: Any, *, execute: Execute = "return") -> None:
    """Make ``app`` emit events, in whichever process it runs. To be called where the app is made.

    ``execute`` says what tells of a task's effect. ``"told"``: its body alone, by ``executed``. ``"return"``: where the
    body has said nothing (no ``executed``, ``skipped`` or ``undone``), its return does, for the effect is durable then
    at the latest; such an event has the field ``inferred``.

    Signals are the process's, not the app's: if a process has several apps, all of them are told of.
    """
    global _execute
    _execute = execute
    app.Task.Strategy = f"{__name__}:receive"
    for signal, tell in (
        (signals.worker_init, _worker_begins),
        (signals.worker_process_init, _child_begins),
        (signals.worker_process_shutdown, _child_ends),
        (signals.before_task_publish, _publish),
        (signals.task_unknown, _unknown),
        (signals.task_rejected, _unusable),
        (signals.task_prerun, _prerun),
        (signals.task_success, _success),
        (signals.task_failure, _failure),
        (signals.task_retry, _retry),
        (signals.task_postrun, _postrun),
    ):
        signal.connect(tell, dispatch_uid=f"{__name__}.{tell.__name__}")


def executed(**extra: Any) -> None:
    """Say, in a task's body, that its effect has become durable: after the commit, where the INSERT returned a row.

    ``extra`` are further fields of the event. Never raises; outside a body that a worker runs it counts as a failure.
    """
    _tell_by_hand("Execute", extra)


def skipped(**extra: Any) -> None:
    """Say, in a task's body, that its guard found the work done."""
    _tell_by_hand("Skip", extra)


def undone(**extra: Any) -> None:
    """Say, in a task's body, that what ``executed`` told of was taken back: the transaction failed after all."""
    _tell_by_hand("Undo", extra)


def _guarded(tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception as error:
        fail(error)


# The body, in whichever process runs it


def _tell_by_hand(action: str, extra: Mapping[str, Any]) -> None:
    def tell() -> None:
        request = _current_request()
        if request is None:
            raise LookupError(f"{action} was told outside the body of a task that a worker runs")
        request.specwatch_told = True
        _tell(action, request, **extra)

    _guarded(tell)


def _current_request() -> Any:
    request = current_task.request if current_task else None
    return request if request is not None and request.id and not request.is_eager else None


def _running(sender: Any, task_id: str) -> Any:
    """The request of the body that runs here and now, or None: signals of the body come from the main process too."""
    request = sender.request
    return request if request.id == task_id and not request.is_eager else None


def _tell(action: str, request: Any, **extra: Any) -> None:
    attempt = request.retries or 0
    emit(
        action,
        t=request.id,
        w=request.hostname,
        a=attempt,
        key=request.id,
        attempt=attempt,
        extra={
            "task": request.task,
            "delivery_tag": (request.properties or {}).get("delivery_tag"),
            "redelivered": bool((request.delivery_info or {}).get("redelivered")),
            **extra,
        },
        traceparent=getattr(request, "traceparent", None),
    )


def _tell_end(action: str, request: Any, **extra: Any) -> None:
    """How a body ended is told once: by the body, or by the main process for one that no longer can."""
    if not getattr(request, "specwatch_ended", False):
        request.specwatch_ended = True
        _tell(action, request, **extra)


def _prerun(sender: Any = None, task_id: str = "", **_: Any) -> None:
    def tell() -> None:
        if (request := _running(sender, task_id)) is not None:
            _tell("Start", request)

    _guarded(tell)


def _success(sender: Any = None, **_: Any) -> None:
    def tell() -> None:
        if (request := _running(sender, sender.request.id)) is not None:
            if _execute == "return" and not getattr(request, "specwatch_told", False):
                _tell("Execute", request, inferred="the body returned")
            _tell_end("Done", request)

    _guarded(tell)


def _failure(sender: Any = None, task_id: str = "", exception: Any = None, **_: Any) -> None:
    def tell() -> None:
        # What a body rejects is told of where the message is.
        if not isinstance(exception, Reject) and (request := _running(sender, task_id)) is not None:
            _tell_end("Fail", request, exception=type(exception).__name__)

    _guarded(tell)


def _retry(sender: Any = None, request: Any = None, **_: Any) -> None:
    def tell() -> None:
        # The main process sends this too for a body that it cancels when the connection is lost: no retry was sent.
        if (running := _running(sender, request.id)) is not None:
            _tell_end("Retry", running)

    _guarded(tell)


def _postrun(sender: Any = None, task_id: str = "", state: Any = None, **_: Any) -> None:
    def tell() -> None:
        # Such ends have no signal of their own. After an early ack nothing is left to reject.
        alone = state == "IGNORED" or (state == "REJECTED" and not sender.acks_late)
        if alone and (request := _running(sender, task_id)) is not None:
            _tell_end("Fail", request, exception="Ignore" if state == "IGNORED" else "Reject")

    _guarded(tell)


# Producers


def _publish(sender: Any = None, headers: Any = None, body: Any = None, **options: Any) -> None:
    def tell() -> None:
        fields = headers if headers and "id" in headers else body
        if not isinstance(fields, Mapping) or "id" not in fields:
            return
        if fields.get("retries"):
            return  # The next attempt, sent by a body; its Retry, which follows, tells of it.
        emit(
            "Republish" if _is_known(fields["id"]) else "Publish",
            t=fields["id"],
            key=fields["id"],
            attempt=0,
            extra={"task": fields.get("task"), "queue": options.get("routing_key"), "eta": fields.get("eta")},
            traceparent=(headers or {}).get("traceparent"),
        )

    _guarded(tell)


def _is_known(task_id: str) -> bool:
    """Whether this process published the id before, or runs its body, which then replaces itself."""
    known = task_id in _published
    _published[task_id] = None
    _published.move_to_end(task_id)
    if len(_published) > REMEMBERED:
        _published.popitem(last=False)
    if not known:
        request = _current_request()
        known = request is not None and request.id == task_id
    return known


# The life of a worker's processes


def _worker_begins(sender: Any = None, **_: Any) -> None:
    def begin() -> None:
        for task in sender.app.tasks.values():
            # A task whose base is not the app's own Task inherits nothing from that.
            if task.Strategy == _STRATEGY:
                task.Strategy = f"{__name__}:receive"
        configure(role=sender.hostname)

    _guarded(begin)
    start()


def _child_begins(**_: Any) -> None:
    start()


def _child_ends(**_: Any) -> None:
    stop()


# Messages, in the worker's main process


class _Delivery:
    """A message that this worker holds."""

    def __init__(self, message: Any, fields: Mapping[str, Any], node: str) -> None:
        self.id: str = fields["id"]
        self.attempt: int = fields.get("retries") or 0
        self.node = node
        self.redelivered = bool((message.delivery_info or {}).get("redelivered"))
        self.extra = {
            "task": fields.get("task"),
            "delivery_tag": message.delivery_tag,
            "redelivered": self.redelivered,
        }
        self.traceparent = (message.headers or {}).get("traceparent")
        self.settled = False
        """Whether an event was told that says what became of the message."""

    def tell(self, action: str, at: Moment | None = None, **extra: Any) -> None:
        params = {"t": self.id, "w": self.node, "a": self.attempt}
        if action == "Pickup":
            params["r"] = self.redelivered
        emit(
            action,
            params=params,
            key=self.id,
            attempt=self.attempt,
            extra={**self.extra, **extra},
            traceparent=self.traceparent,
            at=at,
        )

    def settle(self, action: str, at: Moment | None = None, **extra: Any) -> None:
        if not self.settled:
            self.settled = True
            self.tell(action, at, **extra)


def receive(task: Any, app: Any, consumer: Any) -> Callable[..., Any]:
    """Celery's own strategy, told of each message before it is even decoded. A task names it by its path."""

    def probe_requests() -> None:
        task.Request = _probed(symbol_by_name(task.Request))  # type: ignore[no-untyped-call]

    _guarded(probe_requests)
    handle = strategies.default(task, app, consumer)
    node = consumer.hostname

    def receiving(message: Any, body: Any, *args: Any, **options: Any) -> Any:
        _guarded(lambda: _pickup(message, body, node))
        try:
            return handle(message, body, *args, **options)
        except DecodeError:
            # Celery acks what it cannot decode, and sends no signal.
            _guarded(lambda: message.specwatch.settle("Reject", reason="the message cannot be decoded"))
            raise

    return receiving


def _pickup(message: Any, body: Any, node: str) -> None:
    fields = message.headers if message.headers and "id" in message.headers else body
    delivery = _Delivery(message, fields, node)
    delivery.tell("Pickup", eta=fields.get("eta"))
    message.specwatch = delivery
    message.ack = _telling(delivery, message.ack, lambda *_, **__: "Ack")
    message.reject = _telling(delivery, message.reject, lambda requeue=False: "Nack" if requeue else "Reject")
    message.requeue = _telling(delivery, message.requeue, lambda: "Nack")
    _watch_restores(message.channel)


def _telling(delivery: _Delivery, say: Callable[..., Any], action: Callable[..., str]) -> Callable[..., Any]:
    """A word to the broker that is told of once the broker has taken it, with the time before it was said.

    Told before, an ack that fails, or whose worker is killed on the way, would be an ack that never was; and the time
    is that before, so that it stands before what it lets other workers do.
    """

    def saying(*args: Any, **options: Any) -> Any:
        at = moment()
        answer = say(*args, **options)
        _guarded(lambda: delivery.settle(action(*args, **options), at))
        return answer

    return saying


def _watch_restores(channel: Any) -> None:
    """Tell of each delivery that a channel puts back when it closes. Only kombu's virtual transports do that."""
    qos: Any = getattr(channel, "qos", None)
    if not hasattr(qos, "restore_unacked") or hasattr(qos, "specwatch"):
        return
    restore = qos.restore_unacked

    def restoring(*args: Any, **options: Any) -> Any:
        at = moment()
        # Not those that were acked and not yet flushed.
        held = [message for tag, message in list(qos._delivered.items()) if tag not in qos._dirty]
        answer = restore(*args, **options)
        _guarded(lambda: _restored(held, at))
        return answer

    qos.specwatch = True
    qos.restore_unacked = restoring


def _restored(messages: list[Any], at: Moment) -> None:
    for message in messages:
        delivery = getattr(message, "specwatch", None)
        # Not settled by this: the body may go on, and its worker may yet say something of the tag.
        if delivery is not None and not delivery.settled:
            delivery.tell("RestoreOnShutdown", at)


def _unknown(sender: Any = None, message: Any = None, **_: Any) -> None:
    _guarded(lambda: _discarded(sender.hostname, message, "no such task is registered"))


def _unusable(sender: Any = None, message: Any = None, **_: Any) -> None:
    _guarded(lambda: _discarded(sender.hostname, message, "the message is not one of a task"))


def _discarded(node: str, message: Any, reason: str) -> None:
    """A message that reached no strategy: received, and rejected. One without a task's id is no one's."""
    if getattr(message, "specwatch", None) is None:
        fields = message.headers if message.headers and "id" in message.headers else message.payload
        if not isinstance(fields, Mapping) or "id" not in fields:
            return
        # It was rejected before the signal came. No one else can have it any more, so that the order is no matter.
        delivery = _Delivery(message, fields, node)
        delivery.tell("Pickup")
        delivery.settle("Reject", reason=reason)


# Requests: what ends a task in the worker's main process


def _probed(base: Any) -> Any:
    """``base``, a class of requests, that tells of such ends."""
    return base if issubclass(base, _Ends) else type(f"Probed{base.__name__}", (_Ends, base), {})


class _Ends:
    """Mixed into a class of requests. ``_untold`` is how the body ended, where its child cannot tell any more."""

    message: Any
    _context: Any
    _already_revoked: bool
    _already_cancelled: bool
    _untold: tuple[str, str] | None = None

    def acknowledge(self) -> None:
        # The end comes before its ack.
        self._tell_untold()
        super().acknowledge()  # type: ignore[misc]

    def reject(self, requeue: bool = False) -> None:
        if requeue:
            self._untold = None  # The Nack tells it all.
        self._tell_untold()
        super().reject(requeue=requeue)  # type: ignore[misc]

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        error = exc_info.exception
        error = getattr(error, "exc", error)  # Wrapped, where it has come from a child with its traceback.
        silent = self._already_revoked or self._already_cancelled
        if not return_ok and not silent and not isinstance(error, Terminated | Reject | Ignore | Retry):
            # From the pool, not from the body: the child was lost, or ran out of its time limit.
            self._untold = ("Fail", type(error).__name__)
        answer = super().on_failure(  # type: ignore[misc]
            exc_info, send_failed_event=send_failed_event, return_ok=return_ok
        )
        self._tell_untold()
        return answer

    def _success_was_stored(self) -> Any:
        found = super()._success_was_stored()  # type: ignore[misc]
        if found:
            self._untold = None  # The child was lost after its body had ended well, and had told so.
        return found

    def _retry_worker_lost(self, exc: Any, exc_info: Any) -> Any:
        failed, self._untold = self._untold, ("Retry", type(exc).__name__)
        sent = super()._retry_worker_lost(exc, exc_info)  # type: ignore[misc]
        if not sent:
            self._untold = failed
        return sent

    def _announce_revoked(self, reason: Any, terminated: Any, signum: Any, expired: Any) -> None:
        def tell() -> None:
            if not self._already_revoked:
                self._untold = None
                delivery = self.message.specwatch
                delivery.settled = True  # The ack that follows is a part of it.
                delivery.tell("Expire" if expired else "Revoke", terminated=bool(terminated))

        _guarded(tell)
        super()._announce_revoked(reason, terminated, signum, expired)  # type: ignore[misc]

    def _tell_untold(self) -> None:
        def tell() -> None:
            if self._untold is not None:
                (action, exception), self._untold = self._untold, None
                _tell_end(action, self._context, exception=exception)

        _guarded(tell)
