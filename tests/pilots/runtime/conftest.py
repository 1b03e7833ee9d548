"""A command that can be killed while a test looks on, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GONE_WITHIN = 5.0
"""Seconds after the command's death within which nothing of it may be left."""
PATIENCE = 60.0
"""Seconds for what has no promised time, on a machine with much else to do."""


def until(is_so: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Look again and again, for at most ``seconds``, whether something is so."""
    deadline = time.monotonic() + seconds
    while not (found := is_so()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def processes() -> dict[int, tuple[int, int]]:
    """The living processes: pid → parent and session."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (process / "stat").read_bytes().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state not in b"ZX":
            found[int(process.name)] = (int(parent), int(session))
    return found


def descendants(pid: int) -> set[int]:
    """All that is below a process now, whatever session it is in."""
    every, found = processes(), {pid}
    while more := {child for child, (parent, _) in every.items() if parent in found} - found:
        found |= more
    return found - {pid}


class Command:
    """Python code in a process and session of its own. It says ``ready`` when there is something to kill."""

    def __init__(
        self, code: str, folder: Path, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.output = folder / "command.out"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-c", code, str(folder)],
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def ready(self) -> set[int]:
        """Wait until the command says that it is ready; the processes below it."""
        assert until(lambda: "ready\n" in self.said() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()
        return descendants(self.process.pid)

    def left_after(self, number: int, family: set[int]) -> set[int]:
        """End the command by a signal; those of its family that are still there when they must not be."""
        assert family
        sessions = {session for pid, (_, session) in processes().items() if pid in family}
        self.process.send_signal(number)

        def left() -> set[int]:
            return {pid for pid, (_, session) in processes().items() if pid in family or session in sessions}

        until(lambda: not left(), GONE_WITHIN)
        return left()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start a command: ``command(code)``. The code finds the test's folder in ``sys.argv[1]``."""
    started: list[Command] = []

    def start(code: str, **more: object) -> Command:
        started.append(Command(code, tmp_path, **more))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., bool]:
    """``until(is_so, seconds)``: a bounded wait for what another process does."""
    return until


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process is there and no zombie."""
    return lambda pid: pid in processes()


@pytest.fixture(params=[signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["kill", "term", "ctrl-c"])
def ending(request: pytest.FixtureRequest) -> int:
    """A signal that ends a command."""
    number: int = request.param
    return number
