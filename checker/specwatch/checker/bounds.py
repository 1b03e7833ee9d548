"""The bounds of a search: reaching one makes the answer ``inconclusive`` (``bound``), never wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_LOOK_EVERY = 256
_STATM = Path("/proc/self/statm")


class BoundReached(Exception):
    """A search was given up. The text names the bound and how to raise it."""


class Bounds:
    """Counts states and watches the clock and the process's memory.

    :param max_states: the most states to be held at once.
    :param timeout: seconds from the making of this object.
    :param max_memory: bytes of resident memory of the whole process.
    :param began: what ``clock`` showed when the time began to count; None for now.
    """

    def __init__(
        self,
        max_states: int | None = None,
        timeout: float | None = None,
        max_memory: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        began: float | None = None,
    ) -> None:
        self.max_states = max_states
        self.timeout = timeout
        self.max_memory = max_memory
        self.clock = clock
        self.began = clock() if began is None else began
        self._calls = 0

    def check(self, states: int) -> None:
        """Called for each state looked at, with how many are held. :raises BoundReached:"""
        if self.max_states is not None and states > self.max_states:
            raise BoundReached(f"more than {self.max_states:,} states at once (--max-states)")
        self._calls += 1
        if self._calls % _LOOK_EVERY == 0:
            self.watch()

    def watch(self) -> None:
        """Looks at the clock and the memory. :raises BoundReached:"""
        if self.timeout is not None and self.clock() - self.began > self.timeout:
            raise BoundReached(f"more than {self.timeout:g} s (--timeout)")
        if self.max_memory is not None and resident() > self.max_memory:
            raise BoundReached(f"more than {self.max_memory / 10**6:,.0f} MB of memory (--max-memory)")


def resident() -> int:
    """The process's resident memory in bytes; its peak where the system does not tell the present one."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
