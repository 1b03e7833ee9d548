"""The events of this process: numbered, stamped and written, one line and one ``write`` each.

All global state of the probes is here: one emitter a process. A forked child gets one of its own, with its own file and
numbers from 1. The file is the authority; OpenTelemetry log records, where an SDK is configured, are the live path.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Literal, NamedTuple

from .telemetry import Json, Telemetry, trace_of

ENVIRONMENT = "SPECWATCH_EVENTS"
"""The variable that names the file or directory, where ``configure`` names none."""

OWN = frozenset({"emitter", "boot", "pid", "host"})
"""What stands at the end of each line: an application's further fields of these names are left out."""


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
    the environment's SPECWATCH_EVENTS holds; without either, or where it is empty, events go to OpenTelemetry alone, or
    nowhere.
    ``role`` is what this process is; by default its program's name. Nothing is written yet, and nothing is raised.
    """
    global _path, _role, _emitter
    with _lock:
        if path is not None:
            stop()
            _path, _emitter = os.fspath(path), None
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
        emitter = _emitter
        if emitter is None or emitter.pid != os.getpid():
            emitter = _current()
        if emitter.silent:
            return
        event: dict[str, Json]
        if not extra:
            event = {}
        elif OWN.isdisjoint(extra):
            event = {**extra}
        else:
            event = {name: extra[name] for name in extra if name not in OWN}
        event["action"] = action
        event["params"] = {**params, **named} if params else named
        # Written out, since most events have two of them, and a loop over ten costs more than the encoding.
        if key is not None:
            event["key"] = key
        if attempt is not None:
            event["attempt"] = attempt
        if lane is not None:
            event["lane"] = lane
        if run is not None:
            event["run"] = run
        if until is not None:
            event["until"] = until
        if state is not None:
            event["state"] = state
        if before is not None:
            event["before"] = before
        if expect is not None:
            event["expect"] = expect
        if after is not None:
            event["after"] = after
        if clock is not None:
            event["clock"] = clock
        emitter.emit(event, trace_of(traceparent), at)
    except Exception as error:
        fail(error)


def start() -> None:
    """Begin this process's events now (``EmitterStart``), and not with the first of them. Never raises."""
    try:
        emitter = _current()
        if not emitter.silent:
            emitter.start()
    except Exception as error:
        fail(error)


def stop() -> None:
    """End this process's events (``EmitterStop``). Called at exit; a child that ends by ``os._exit`` must call it.

    Never raises.
    """
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
        import logging  # Only here: an application that logs has it loaded, and another does not pay for it.

        logging.getLogger("specwatch.probes").warning(
            "an event could not be told; further failures are only counted: %s", error, exc_info=error
        )


def _thrown_by_a_signal(error: BaseException) -> bool:
    if not isinstance(error, Exception):
        return True  # KeyboardInterrupt, SystemExit, a greenlet's end: nothing in here raises them.
    import signal

    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


class Emitter:
    """One process's numbered events. Raises ``OSError`` for what cannot be written; its number is spent."""

    def __init__(self, path: str | None, role: str) -> None:
        # Only here: a program that imports the probes and never emits pays for no encoder.
        from .encoding import encoded

        self._encoded = encoded
        self.pid = os.getpid()
        self.host = os.uname().nodename
        self.name = f"{self.host}/{self.pid}"
        self.boot_id = _boot_id()
        # A pid comes again, on one boot too: when the emitter began tells its lives apart.
        self.boot = f"{self.boot_id}.{time.monotonic_ns()}"
        self._telemetry = Telemetry(at_exit=stop)
        self._file = None if path is None else _File(_file_path(path, role, self.pid))
        # Re-entrant, since a signal handler or a finaliser may emit in the midst of an event.
        self._lock = RLock()
        self._seq = 0
        self._stopped = False
        self._second = -1_000_000_000
        self._second_text = ""
        self._identity = {"emitter": self.name, "boot": self.boot, "pid": self.pid, "host": self.host}
        # The same for all lines, and so encoded once.
        self._end = b"," + encoded(self._identity)[1:] + b"\n"

    @property
    def silent(self) -> bool:
        """Whether there is no one to tell."""
        return self._file is None and self._telemetry.logger() is None

    def start(self) -> None:
        """Give number 1 to ``EmitterStart``, if it was not given yet."""
        with self._lock:
            if self._seq == 0:
                birth = {"boot_id": self.boot_id, "program": _program(), "python": sys.version.split()[0]}
                self._tell({"action": "EmitterStart", "params": {}, "lane": "emitter", **birth}, {}, None)

    def emit(self, event: dict[str, Json], trace: Mapping[str, str], at: Moment | None) -> None:
        """Number, stamp and write an event, which is changed by that."""
        if self._seq == 0:
            start()  # Not the method: a start that cannot be told costs this event nothing.
        self._tell(event, trace, at)
        if self._stopped:
            # What finalisers tell while the interpreter exits comes after the stop, and the stop is the last number.
            self._tell({"action": "EmitterStop", "params": {}, "lane": "emitter"}, {}, None)

    def stop(self) -> None:
        """Give the last number to ``EmitterStop``; nothing, if there was no first."""
        with self._lock:
            if self._seq and not self._stopped:
                self._stopped = True
                self._tell({"action": "EmitterStop", "params": {}, "lane": "emitter"}, {}, None)

    def release(self) -> None:
        """In a forked child: let go of the parent's file."""
        if self._file is not None:
            self._file.close()

    def _tell(self, event: dict[str, Json], trace: Mapping[str, str], at: Moment | None) -> None:
        if trace:
            event |= trace
        try:
            with self._lock:
                nanoseconds, event["monotonic"] = at or (time.time_ns(), time.monotonic_ns())
                # Spent even if the event cannot be told: the hole shows that one is missing. No call stands between
                # the number and the try, so that no signal handler runs there, to throw or to emit.
                self._seq = seq = self._seq + 1
                try:
                    self._write(event, seq, nanoseconds)
                except BaseException as error:
                    if _thrown_by_a_signal(error):
                        # Before or after the write, no one knows. Of two equal records one is a duplicate; a missing
                        # one is a hole in the numbers.
                        self._write(event, seq, nanoseconds)
                    raise
        finally:
            # What the file does not take may still be told live. Outside the lock: an exporter has locks of its own.
            if self._telemetry.logger() is not None and "seq" in event:
                self._telemetry.emit(event | self._identity, nanoseconds)

    def _write(self, event: dict[str, Json], seq: int, nanoseconds: int) -> None:
        event["seq"] = seq
        event["time"] = self._rfc3339(nanoseconds)
        if self._file is not None:
            self._file.append(self._encoded(event)[:-1] + self._end, event["monotonic"])

    def _rfc3339(self, nanoseconds: int) -> str:
        rest = nanoseconds - self._second
        if not 0 <= rest < 1_000_000_000:
            seconds, rest = divmod(nanoseconds, 1_000_000_000)
            self._second = nanoseconds - rest
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(seconds))
        return f"{self._second_text}{rest:09}Z"


class _File:
    """A file that lines are appended to, by one ``write`` each. It is opened, and made, when the first one comes."""

    # A program that closes descriptors which it does not know may be given the same number for a socket, and a line
    # written there would break it. So the file is known by a number that is not given again as long as lower ones are
    # free, and is looked at now and then. (At each line, the look and the exact time of change that it makes the file
    # system keep would cost as much as the writing.)
    HIGH = 800
    LOOK = 1_000_000_000

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._inode = self._device = -1
        self._looked = 0
        self._torn = False

    def append(self, line: bytes, now: int) -> None:
        """Write a line. Raises ``OSError``; a part of the line that was written then is a line of its own.

        ``now`` is the monotonic clock's nanoseconds.
        """
        if not 0 <= now - self._looked < self.LOOK or self._fd < self.HIGH:
            self._looked = now
            if not self._is_open():
                self._open()
        try:
            self._write(line)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            self._open()
            self._write(line)

    def close(self) -> None:
        """Close the descriptor, if it is still this file's."""
        if self._is_open():
            os.close(self._fd)
        self._fd = -1

    def _write(self, line: bytes) -> None:
        if self._torn:
            line = b"\n" + line
        count = os.write(self._fd, line)
        self._torn = count != len(line)
        if self._torn:
            raise OSError(errno.ENOSPC, f"only {count} of {len(line)} bytes were written", self.path)

    def _is_open(self) -> bool:
        try:
            found = os.fstat(self._fd)
        except OSError:
            return False
        # One that was deleted would take lines that no one can read.
        return found.st_ino == self._inode and found.st_dev == self._device and found.st_nlink > 0

    def _open(self) -> None:
        self._fd = -1
        os.makedirs(os.path.dirname(self.path), exist_ok=True)  # noqa: PTH103, PTH120 (see _file_path)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_size:
            # An earlier process of this pid may have died in the midst of a line.
            self._torn = os.pread(fd, 1, found.st_size - 1) != b"\n"
        self._fd, self._inode, self._device = self._raised(fd), found.st_ino, found.st_dev

    def _raised(self, fd: int) -> int:
        try:
            high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, self.HIGH)
        except OSError:
            return fd  # The process may not have so many. Then each line looks first.
        os.close(fd)
        return high


def _file_path(path: str, role: str, pid: int) -> str:
    # Absolute, since a program may change its directory before a child begins. By os.path, since pathlib would double
    # what importing this module costs.
    path = os.path.abspath(path)  # noqa: PTH100
    if os.path.splitext(path)[1] and not os.path.isdir(path):  # noqa: PTH112, PTH122
        return path
    safe = "".join(letter if letter.isalnum() or letter in "._-@" else "_" for letter in role)
    return os.path.join(path, f"{safe or 'process'}-{pid}.jsonl")  # noqa: PTH118


def _program() -> str:
    folder, name = os.path.split(sys.argv[0] if getattr(sys, "argv", None) else "")
    if name == "__main__.py":
        name = os.path.basename(folder)  # noqa: PTH119
    return name if name not in ("", "-", "-c", "-m") else "python"


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        # Where the system has none: when it was booted, to the second, is as good among the boots of one host.
        return f"boot-{round(time.time() - time.monotonic())}"


_lock = RLock()
_path: str | None = None
_role: str | None = None
_emitter: Emitter | None = None
_failures = 0


def _current() -> Emitter:
    global _emitter
    # The pid is asked for too, since a fork below Python runs no hooks.
    if _emitter is None or _emitter.pid != os.getpid():
        with _lock:
            if _emitter is None or _emitter.pid != os.getpid():
                path = os.environ.get(ENVIRONMENT) if _path is None else _path
                _emitter = Emitter(path or None, _role or _program())
    return _emitter


def _in_forked_child() -> None:
    global _emitter, _failures, _lock
    _lock = RLock()  # Another thread of the parent may have held it.
    emitter, _emitter, _failures = _emitter, None, 0
    if emitter is not None:
        emitter.release()


os.register_at_fork(after_in_child=_in_forked_child)
# Registered early, so that it runs late: after most of what may still emit.
atexit.register(stop)
