"""The guard: a process that starts one program, and sees to it that nothing of it outlives the command.

Run as a script with the standard library alone, by ``guard.spawn``. Descriptor 0 is a pipe whose write end only the
command holds, 1 a pipe back to it, 2 the program's log. Two lines on 0 are JSON: whose guard this is and which
directories to remove at the end; then the program. Each line after them is a signal to send: ``N`` to the program,
``-N`` to its process group.

On 1 the guard says ``started PID`` or ``failed WHY``, and ``exited CODE`` once the program and all its descendants have
ended (a negative code is the signal that ended it).

The pipe's end (the command has closed it, or is dead, killed by whatever) is the one way in which all stops: the
program gets its stop signal, after ``grace`` seconds all that is left of it is killed, the directories are removed, and
the guard exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOOK = 0.5
"""Seconds between two looks whether the command is still the parent: a fork of it may hold the pipe open."""
KILL_WAIT = 1.5
"""Seconds after which a killed process that does not end (it waits for a disk) is left to the system."""


def main() -> int:
    """Guard one program from its start to its end. Returns the exit code of the guard itself."""
    wakeup, handle = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_blocking(handle, False)
    signal.set_wakeup_fd(handle, warn_on_full_buffer=False)
    told_to_stop: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: told_to_stop.append(received))
    prctl = _prctl()
    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    orders = Orders()
    parent, remove = -1, []
    tree: Tree | None = None
    program: dict[str, Any] = {}
    while not (told_to_stop or orders.ended) and parent in (-1, os.getppid()):
        select.select([0, wakeup], [], [], LOOK)
        with contextlib.suppress(BlockingIOError):
            os.read(wakeup, 4096)
        for line in orders.read():
            if parent == -1:
                whose = json.loads(line)
                parent, remove = whose["parent"], whose["remove"]
            elif not program:
                program = json.loads(line)
                tree = start(program, prctl)
            elif tree is not None:
                tree.signal(int(line))
        if tree is not None:
            tree.look()
    if tree is not None:
        tree.end(program["stop_signal"], program["grace"])
    for path in remove:
        shutil.rmtree(path, ignore_errors=True)
    return 0


class Orders:
    """The lines on descriptor 0."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        os.set_blocking(0, False)

    def read(self) -> list[bytes]:
        """The lines since the last look; waits for none."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(0, 65536):
                self._rest += data
            self.ended = True
        *lines, self._rest = self._rest.split(b"\n")
        return lines


class Tree:
    """A program and its descendants, known to be all of them where the system lets the guard adopt orphans (Linux)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.running = True

    def signal(self, number: int) -> None:
        """Send a signal to the program, or (negative) to its group. Once it is reaped, the pid may be another's."""
        if self.running:
            _send(self.pid if number > 0 else -self.pid, abs(number))

    def look(self) -> None:
        """Reap what has ended; when that is the program, end the rest of it and say so."""
        code = self._reap()
        if code is not None:
            self._kill()
            say(f"exited {code}")

    def end(self, stop_signal: int, grace: float) -> None:
        """Ask the program to stop, wait ``grace`` seconds, and kill what is left."""
        if not self.running:
            return
        _send(self.pid, stop_signal)
        _send(-self.pid, signal.SIGCONT)  # A paused program could not obey.
        code = self._wait(grace)
        if code is None:
            _send(-self.pid, signal.SIGKILL)
            code = self._wait(KILL_WAIT)
        self._kill()
        say(f"exited {-signal.SIGKILL if code is None else code}")

    def _wait(self, seconds: float) -> int | None:
        """The program's exit code as soon as it ends, None when it has not within ``seconds``."""
        deadline = time.monotonic() + seconds
        while True:
            code = self._reap()
            if code is not None or time.monotonic() > deadline:
                return code
            time.sleep(0.01)

    def _reap(self) -> int | None:
        """Reap every ended child, adopted ones too. The program's exit code if it was among them."""
        code = None
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.pid:
                    self.running = False
                    code = os.waitstatus_to_exitcode(status)
        return code

    def _kill(self) -> None:
        """Kill what the program has left, whatever session or group it has put itself into, until there is none."""
        _send(-self.pid, signal.SIGKILL)
        deadline = time.monotonic() + KILL_WAIT
        while time.monotonic() < deadline:
            left = children(os.getpid())
            if not left:
                return
            for pid in left:
                _send(pid, signal.SIGKILL)
            time.sleep(0.005)
            self._reap()


def start(plan: dict[str, Any], prctl: Callable[[int, int], object] | None) -> Tree | None:
    """Start the program in a session of its own, and say so; None, and said, where it cannot be started."""
    guard = os.getpid()

    def before_exec() -> None:
        # After the change of user, which clears it: if the guard itself is killed, so is the program.
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(1)

    user = plan["user"]
    try:
        program = subprocess.Popen(
            plan["argv"],
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            cwd=plan["cwd"],
            start_new_session=True,
            preexec_fn=before_exec,
            user=user[0] if user else None,
            group=user[1] if user else None,
            extra_groups=[] if user else None,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        say(f"failed {' '.join(str(error).split())}")
        return None
    program.returncode = 0  # The tree reaps it; Popen's own look at it would only get in the way.
    say(f"started {program.pid}")
    return Tree(program.pid)


def children(pid: int) -> list[int]:
    """The children of a process, as /proc has them; empty where there is no /proc."""
    found = []
    # Not "[0-9]*/stat": that looks each file up, and raises where a process ends meanwhile.
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name, in parentheses, may hold anything.
            fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(process.name))
    return found


def say(line: str) -> None:
    """Tell the command, if it is still there."""
    with contextlib.suppress(OSError):
        os.write(1, f"{line}\n".encode())


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if pid < 0:
            os.killpg(-pid, number)
        else:
            os.kill(pid, number)


def _prctl() -> Callable[[int, int], object] | None:
    if sys.platform != "linux":
        return None
    try:
        import ctypes
    except ImportError:
        return None
    function = ctypes.CDLL(None).prctl
    return lambda option, value: function(option, ctypes.c_ulong(value), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
