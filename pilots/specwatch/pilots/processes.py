"""What /proc says of a worker's processes: that they were stopped, or are gone, is seen there and not believed."""

from __future__ import annotations

import contextlib
from pathlib import Path


def of_session(session: int) -> dict[int, str]:
    """The living processes of a session, and their states: pid → ``R``, ``S``, ``D`` or ``T`` (stopped).

    A guarded program's pid is its session's id too.
    """
    found = {}
    # Not "[0-9]*/stat": that looks each file up, and raises where a process ends meanwhile.
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name, in parentheses, may hold anything.
            state, _, _, own, *_ = (process / "stat").read_bytes().rpartition(b")")[2].split()
            if int(own) == session and state not in b"ZX":
                found[int(process.name)] = state.decode()
    return found
