"""A folder for what a run does not keep: it is gone however the command ends, SIGKILL included."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .runtime.guard import GRACE, spawn

KEEPER = f"trap 'kill $!; sleep {GRACE + 0.5}; exit' TERM; sleep 2147483647 & wait"
"""A program that does nothing. Once the command has died it waits for the workers to end: they write to the folder."""


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A new folder below the system's temporary directory, removed at the end by the guard of a process of its own.

    Raises ``ServerError`` where no process can be started.
    """
    parent = Path(tempfile.gettempdir()).absolute()
    folder = parent / f"specwatch-{os.getpid()}-{os.urandom(4).hex()}"

    with spawn(
        ["/bin/sh", "-c", KEEPER],
        log=Path(os.devnull),
        cwd=parent,
        grace=GRACE + 1.5,
        remove=[folder],
        prepare=lambda: folder.mkdir(mode=0o700),
    ) as keeper:
        try:
            yield folder
        finally:
            keeper.kill()
