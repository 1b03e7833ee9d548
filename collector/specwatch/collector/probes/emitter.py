"""The events of this process: numbered, stamped and written, one line and one ``write`` each.

All global state of the probes is here: one emitter a process. A forked child gets one of its own, with its own file and
numbers from 1. The file is the authority; OpenTelemetry log records, where an SDK is configured, are the live path.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any, Literal, NamedTuple

import msgspec

ENVIRONMENT = "SPECWATCH_EVENTS"
"""The variable that names the file or directory, where ``configure`` names none."""

Json = Any


class Moment(NamedTuple):
    """One reading of both clocks, in nanoseconds: since the epoch, UTC, and since some fixed point of this boot."""

    time: int
    monotonic: int


def moment() -> Moment:
    """Now."""
    return Moment(time.time_ns(), time.monotonic_ns())


def configure(path: str | os.PathLike[str] | None = None, *, role: str | None = None) -> None:
    """Say where the events of this process, and of those that it forks, are written.

    A ``path`` with a suffix (``events.jsonl``) is a file that all of them append to; any other is a directory in which
    each process has a file of its own, ``<role>-<pid>.jsonl``. It is made when the first event comes. Without ``path``
    the environment's SPECWATCH_EVENTS holds; without either, events go to OpenTelemetry alone, or nowhere.
    ``role`` is what this process is; by default its program's name. Nothing is written yet, and nothing is raised.
    """
    global _path, _role, _emitter
    if path is not None:
        _path = os.fspath(path)
        if _emitter is not None and _emitter.pid == os.getpid():
            _emitter.stop()
        _emitter = None
    if role is not None:
        _role = role


def emit(
    action: str,
    /,
    *,
    params: Mapping[str, Json] | None = None,
    key: Json = None,
    attempt: int | None = None,
    lane: Literal["fault", "emitter"] | None = None,
    run: str | None = None,
    until: Json = None,
    state: Mapping[str, Json] | None = None,
    before: Mapping[str, Json] | None = None,
    expect: Sequence[str] | None = None,
    after: Sequence[tuple[str, int]] | None = None,
    clock: Mapping[str, int] | None = None,
    extra: Mapping[str, Json] | None = None,
    traceparent: str | None = None,
    at: Moment | None = None,
    **named: Json,
) -> None:
    """Say that ``action`` happened, with its parameters: by name, or in ``params`` where a name is reserved here.

    The reserved words are the fields of a native event. ``extra`` are further fields, which give way to those.
    ``traceparent`` is a W3C trace context that came with a message; the current span of OpenTelemetry comes first.
    ``at`` is when it happened, if that was before now. Emit before an outgoing effect and after an incoming one.
    Never raises.
    """
    try:
        emitter = _current()
        if emitter.silent:
            return
        fields = {
            "key": key,
            "attempt": attempt,
            "lane": lane,
            "run": run,
            "until": until,
            "state": state,
            "before": before,
            "expect": expect,
            "after": after,
            "clock": clock,
        }
        emitter.emit(
            action,
            {**params, **named} if params else named,
            {name: value for name, value in fields.items() if value is not None},
            extra,
            traceparent,
            at,
        )
    except Exception as error:
        fail(error)


def start() -> None:
    """Begin this process's events now (``EmitterStart``), and not with the first of them. Never raises."""
    try:
        _current().start()
    except Exception as error:
        fail(error)


def stop() -> None:
    """End this process's events (``EmitterStop``). Called at exit; a pool's child must call it. Never raises."""
    try:
        if _emitter is not None and _emitter.pid == os.getpid():
            _emitter.stop()
    except Exception as error:
        fail(error)


def failures() -> int:
    """How often a probe of this process failed. The first failure was logged."""
    return _failures


def fail(error: Exception) -> None:
    """Count what went wrong inside a probe, and log it the first time.

    Raises ``error`` again if a signal handler threw it: a soft time limit that strikes in here is the application's.
    """
    global _failures
    if _thrown_by_a_signal(error):
        raise error
    _failures += 1
    if _failures == 1:
        import logging

        logging.getLogger("specwatch.probes").warning(
            "an event could not be told; further failures are only counted: %s", error, exc_info=error
        )


def _thrown_by_a_signal(error: Exception) -> bool:
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


class Emitter:
    """One process's numbered events.

    The lock is re-entrant, since a signal handler or a finaliser may emit in the midst of an event.
    """

    def __init__(self, path: str | None, role: str) -> None:
        self.pid = os.getpid()
        self.host = os.uname().nodename
        self.name = f"{self.host}/{self.pid}"
        self.boot_id = _boot_id()
        # A pid comes again, on one boot too: when the emitter began tells its lives apart.
        self.boot = f"{self.boot_id}.{time.monotonic_ns()}"
        self.path = None if path is None else _file(path, role, self.pid)
        self._seq = 0
        self._stopped = False
        self._lock = RLock()
        self._fd: int | None = None
        self._inode: tuple[int, int] | None = None
        self._torn = False
        self._second = -1
        self._second_text = ""
        self._telemetry = Telemetry()

    @property
    def silent(self) -> bool:
        """Whether there is no one to tell."""
        return self.path is None and self._telemetry.logger() is None

    def start(self) -> None:
        """Number 1, if it was not given yet."""
        if self._seq == 0 and not self.silent:
            self._emit("EmitterStart", {}, {"lane": "emitter"}, self._birth(), None, None)

    def emit(
        self,
        action: str,
        params: Mapping[str, Json],
        fields: Mapping[str, Json],
        extra: Mapping[str, Json] | None,
        traceparent: str | None,
        at: Moment | None,
    ) -> None:
        """Number, stamp and write an event."""
        if self._seq == 0:
            self.start()
        self._emit(action, params, fields, extra, traceparent, at)
        if self._stopped:
            # What finalisers tell while the interpreter exits comes after the stop, which must be last.
            self._emit("EmitterStop", {}, {"lane": "emitter"}, None, None, None)

    def stop(self) -> None:
        """The last number. Nothing, if there was no first."""
        if self._seq and not self._stopped:
            self._stopped = True
            self._emit("EmitterStop", {}, {"lane": "emitter"}, None, None, None)

    def _birth(self) -> dict[str, Json]:
        return {"boot_id": self.boot_id, "program": _program(), "python": sys.version.split()[0]}

    def _emit(
        self,
        action: str,
        params: Mapping[str, Json],
        fields: Mapping[str, Json],
        extra: Mapping[str, Json] | None,
        traceparent: str | None,
        at: Moment | None,
    ) -> None:
        trace = _trace(traceparent)
        with self._lock:
            if at is None:
                at = Moment(time.time_ns(), time.monotonic_ns())
            # The number is spent even if the event cannot be told: the gap shows that one is missing.
            self._seq += 1
            event: dict[str, Json] = {
                **(extra or {}),
                "action": action,
                "params": params,
                **fields,
                "emitter": self.name,
                "seq": self._seq,
                "time": self._rfc3339(at.time),
                "boot": self.boot,
                "monotonic": at.monotonic,
                "pid": self.pid,
                "host": self.host,
                **trace,
            }
            if self.path is not None:
                self._append(_encoded(event))
        self._telemetry.emit(event, at)

    def _rfc3339(self, nanoseconds: int) -> str:
        second, rest = divmod(nanoseconds, 1_000_000_000)
        if second != self._second:
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._second_text}.{rest:09d}Z"

    def _append(self, line: bytes) -> None:
        if self._fd is None or not self._is_ours(self._fd):
            self._open()
        assert self._fd is not None, "opening raises where it fails"
        if self._torn:
            line = b"\n" + line
        written = False
        try:
            count = os.write(self._fd, line)
            written = True
        except OSError:
            raise
        except BaseException:
            # Thrown in by a signal handler, before or after the write: of two equal records one is a duplicate, while
            # a missing one is a hole in the numbers.
            if not written:
                os.write(self._fd, line)
            raise
        self._torn = count < len(line)
        if self._torn:
            raise OSError(errno.ENOSPC, f"only {count} of {len(line)} bytes were written", self.path)

    def _is_ours(self, fd: int) -> bool:
        """Whether the descriptor is still this file: a program that closes what it does not know may have reused it."""
        try:
            found = os.fstat(fd)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def _open(self) -> None:
        assert self.path is not None, "only what has a path is written"
        self._fd = None
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)  # noqa: PTH103, PTH120 (pathlib costs 5 ms)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
        found = os.fstat(fd)
        self._inode = (found.st_dev, found.st_ino)
        if stat.S_ISREG(found.st_mode) and found.st_size:
            # Another process of this pid may have died, or the disk been full, in the midst of a line.
            self._torn = os.pread(fd, 1, found.st_size - 1) != b"\n"
        self._fd = fd

    def forget(self) -> None:
        """In a forked child: let go of the parent's file."""
        fd, self._fd = self._fd, None
        if fd is not None and self._is_ours(fd):
            os.close(fd)


class Telemetry:
    """Events as OpenTelemetry log records, as soon as the application has configured a provider for these.

    Libraries depend on the API alone, and an application without it pays nothing: nothing is imported here.
    """

    def __init__(self) -> None:
        self._provider: Any = None
        self._logger: Any = None

    def logger(self) -> Any:
        """The logger of the provider that is configured now, or None."""
        api = sys.modules.get("opentelemetry._logs")
        if api is None:
            return None
        provider = api.get_logger_provider()
        if provider is not self._provider:
            self._provider = provider
            proxy = getattr(sys.modules.get("opentelemetry._logs._internal"), "ProxyLoggerProvider", ())
            unset = isinstance(provider, (api.NoOpLoggerProvider, proxy))
            self._logger = None if unset else provider.get_logger("specwatch.probes")
        return self._logger

    def emit(self, event: Mapping[str, Json], at: Moment) -> None:
        """Send a record with ``event_name`` ``specwatch.<Action>`` and the event's fields as attributes."""
        logger = self.logger()
        if logger is None:
            return
        attributes: dict[str, Json] = {}
        for name, value in event.items():
            if name == "params":
                attributes |= {f"specwatch.params.{param}": _attribute(given) for param, given in value.items()}
            elif name not in ("time", "trace_id", "span_id"):
                attributes[f"specwatch.{name}"] = _attribute(value)
        logger.emit(
            timestamp=at.time,
            observed_timestamp=at.time,
            event_name=f"specwatch.{event['action']}",
            body=event["action"],
            attributes=attributes,
            **_context(event),
        )


def _attribute(value: Json) -> str | bool | int | float:
    return value if isinstance(value, (str, bool, int, float)) else _encoded(value).decode().rstrip("\n")


def _context(event: Mapping[str, Json]) -> dict[str, Any]:
    """The trace context that came with a message, for a record that is emitted outside any span."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or "trace_id" not in event or trace.get_current_span().get_span_context().is_valid:
        return {}
    parent = trace.SpanContext(int(event["trace_id"], 16), int(event["span_id"], 16), is_remote=True)
    return {"context": trace.set_span_in_context(trace.NonRecordingSpan(parent))}


def _trace(traceparent: str | None) -> dict[str, str]:
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None:
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
    if isinstance(traceparent, str):
        parts = traceparent.split("-")
        if len(parts) >= 4 and len(parts[1]) == 32 and len(parts[2]) == 16:
            return {"trace_id": parts[1], "span_id": parts[2]}
    return {}


def _encoded(value: Json) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_shown) + b"\n"
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        # Integers beyond 64 bits, keys of odd types, lone surrogates.
        return json.dumps(value, default=_shown, ensure_ascii=False, skipkeys=True).encode(errors="replace") + b"\n"


def _shown(value: object) -> str:
    return str(value)


def _file(path: str, role: str, pid: int) -> str:
    if os.path.splitext(path)[1] and not os.path.isdir(path):  # noqa: PTH112, PTH122 (pathlib costs 5 ms)
        return os.path.abspath(path)  # noqa: PTH100
    # Absolute, since a program may change its directory before a child begins.
    safe = "".join(letter if letter.isalnum() or letter in "._-@" else "_" for letter in role)
    return os.path.join(os.path.abspath(path), f"{safe or 'process'}-{pid}.jsonl")  # noqa: PTH100, PTH118


def _program() -> str:
    path = sys.argv[0] if getattr(sys, "argv", None) else ""
    folder, name = os.path.split(path)
    if name == "__main__.py":
        name = os.path.basename(folder)  # noqa: PTH119
    return name if name not in ("", "-c", "-m") else "python"


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        # Where the system has none: when it was booted, to the second, is as good among the boots of one host.
        return f"boot-{round(time.time() - time.monotonic())}"


_path: str | None = None
_role: str | None = None
_emitter: Emitter | None = None
_failures = 0


def _current() -> Emitter:
    global _emitter
    if _emitter is None or _emitter.pid != os.getpid():
        path = _path if _path is not None else os.environ.get(ENVIRONMENT) or None
        _emitter = Emitter(path, _role or _program())
    return _emitter


def _in_forked_child() -> None:
    global _emitter, _failures
    if _emitter is not None:
        _emitter.forget()
    _emitter, _failures = None, 0


os.register_at_fork(after_in_child=_in_forked_child)
# Registered early, so that it runs late: after most of what may still emit.
atexit.register(stop)
