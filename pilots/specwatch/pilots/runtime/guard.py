"""Processes that never outlive the command: each runs below a guard of its own (``guard_main``).

The command holds the only write end of a pipe to the guard. When the command ends, in whatever way, the pipe ends, and
the guard stops the program. So a stop that was asked for and one that follows a SIGKILL are the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ServerError

GRACE = 2.0
"""Seconds between the stop signal and SIGKILL. With all else below 5 s, also on a busy machine."""


START_WAIT = 30.0
"""Seconds within which a guard must have begun, and have ended."""


@dataclass(frozen=True)
class User:
    """Whom a program runs as, if not as oneself."""

    name: str
    uid: int
    gid: int


class Process:
    """A guarded program. Use from one thread; ``stop`` it, or use it in ``with``."""

    def __init__(self, argv: Sequence[str], log: Path, pid: int, guard: subprocess.Popen[bytes]) -> None:
        self.argv = tuple(argv)
        self.log = log
        """Standard output and error of the program."""
        self.pid = pid
        """The program's own pid, which is its session's and process group's id too; not the guard's."""
        self._guard = guard
        self._code: int | None = None

    @property
    def guard_pid(self) -> int:
        return self._guard.pid

    def poll(self) -> int | None:
        """The exit code (negative: the signal) once the program and its descendants have ended, else None."""
        return self._read(0.0)

    def wait(self, timeout: float) -> int | None:
        """Wait at most ``timeout`` seconds for the end. Returns what ``poll`` would."""
        return self._read(timeout)

    def send_signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the program, with ``group`` to its process group (a worker and its pool, say).

        The guard sends it, since it alone knows that the pid is still the program's. Nothing happens after the end.
        """
        assert self._guard.stdin is not None
        if not self._guard.stdin.closed:
            _order(self._guard, str(-number if group else number))

    def terminate(self) -> None:
        """Ask the program to end, by SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program. The guard then kills what it leaves; ``poll`` says when all have ended."""
        self.send_signal(signal.SIGKILL)

    def stop(self) -> int:
        """End the program and all its descendants, and remove its directories; returns the exit code.

        Takes at most the grace of ``spawn`` and some 3 s. For a gentler stop ``terminate`` and ``wait`` first.
        """
        assert self._guard.stdout is not None
        _end(self._guard)
        code = self.poll()
        self._guard.stdout.close()
        return -signal.SIGKILL if code is None else code

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self, timeout: float) -> int | None:
        assert self._guard.stdout is not None
        if self._code is None and not self._guard.stdout.closed:
            line = _line(self._guard.stdout.fileno(), timeout)
            if line is not None:
                # No line and the end of the pipe: the guard was killed, and the program with it.
                self._code = int(line.removeprefix("exited ")) if line else -signal.SIGKILL
        return self._code


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stop_signal: int = signal.SIGTERM,
    grace: float = GRACE,
    user: User | None = None,
    remove: Sequence[Path] = (),
    prepare: Callable[[], None] | None = None,
) -> Process:
    """Start a program below a guard. Its output is appended to ``log``; its input is empty.

    ``env`` is the whole environment (default: this process's), ``cwd`` defaults to this process's. At the end it gets
    ``stop_signal``, and SIGKILL after ``grace`` seconds; then the guard removes the directories in ``remove``.
    ``prepare`` makes them, when the guard knows of them already. Raises ``ServerError`` if the program does not start.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard_main.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd="/",
            env=None if env is None else dict(env),
            start_new_session=True,  # Ctrl-C goes to a terminal's whole group: the guard must not hear it.
        )
    try:
        _order(guard, json.dumps({"parent": os.getpid(), "remove": [str(path.absolute()) for path in remove]}))
        if prepare is not None:
            prepare()
        program = {
            "argv": list(argv),
            "cwd": str((cwd or Path.cwd()).absolute()),
            "user": [user.uid, user.gid] if user else None,
            "stop_signal": int(stop_signal),
            "grace": grace,
        }
        _order(guard, json.dumps(program))
        assert guard.stdout is not None
        said = _line(guard.stdout.fileno(), START_WAIT) or ""
        if not said.startswith("started "):
            why = said.removeprefix("failed ") or "its guard does not start"
            whom = f" as {user.name}" if user else ""
            raise ServerError(f"cannot start {argv[0]}{whom}: {why}", file=str(log))
        return Process(argv, log, int(said.removeprefix("started ")), guard)
    except BaseException:
        _end(guard)
        assert guard.stdout is not None
        guard.stdout.close()
        raise


def _order(guard: subprocess.Popen[bytes], line: str) -> None:
    assert guard.stdin is not None
    # A guard that has been killed is seen on its own pipe.
    with contextlib.suppress(BrokenPipeError):
        os.write(guard.stdin.fileno(), f"{line}\n".encode())


def _end(guard: subprocess.Popen[bytes]) -> None:
    """Tell a guard to end all by closing its pipe, and wait for it."""
    assert guard.stdin is not None
    guard.stdin.close()
    try:
        guard.wait(START_WAIT)
    except subprocess.TimeoutExpired:  # It is paused, or waits for a disk. On Linux the program dies with it.
        guard.kill()
        guard.wait()


def _line(descriptor: int, timeout: float) -> str | None:
    """The next line of a guard: "" at the pipe's end, None if there is none within ``timeout`` seconds."""
    ready, _, _ = select.select([descriptor], [], [], timeout)
    if not ready:
        return None
    line = b""
    # Byte by byte: the line after this one may be there already. The guard writes a line in one piece.
    while (byte := os.read(descriptor, 1)) not in (b"\n", b""):
        line += byte
    return line.decode(errors="replace")
