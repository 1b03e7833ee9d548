"""What a tap writes: numbered events in one file, and in another what may have followed them unseen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..probes.emitter import Emitter, Moment


class Seen(msgspec.Struct, kw_only=True):
    """What a tap has seen, not yet numbered."""

    action: str
    params: dict[str, Any] = {}
    key: Any = None
    attempt: int | None = None
    alternatives: list[str] = []
    """What else it may have been."""
    extra: dict[str, Any] = {}
    body: bool = False
    """Whether a worker may now do what no one sees."""
    lane: str | None = None
    """``emitter`` for what is no step: something of the tap itself."""
    missed: int = 0
    """So many events were not seen before this one."""


class Writer(Emitter):
    """The emitter of a tap. In ``folder`` are ``<role>-<pid>.jsonl``, native events, and ``<role>-bodies-<pid>.jsonl``:
    for each receipt a record ``{"body": "begins", …}`` of the same numbering, which a binding joins with an end that
    never comes. Two files, since a log is in one format.
    """

    def __init__(self, folder: Path, role: str) -> None:
        super().__init__(str(folder / f"{role}-{os.getpid()}.jsonl"), role)
        folder.mkdir(parents=True, exist_ok=True)
        self._bodies = (folder / f"{role}-bodies-{os.getpid()}.jsonl").open("ab", buffering=0)
        self.start()

    def write(self, seen: Seen, at: Moment) -> None:
        """Number and write what was seen. What was missed before it spends its numbers: the gap shows it."""
        with self._lock:
            self._seq += seen.missed
            event: dict[str, Any] = {**seen.extra, "action": seen.action, "params": seen.params}
            for name in ("key", "attempt", "alternatives", "lane"):
                if (value := getattr(seen, name)) not in (None, []):
                    event[name] = value
            self.emit(event, {}, at)
            if seen.body:
                self._seq += 1
                self._body(seen, {"time": self._rfc3339(at.time), "seq": self._seq})

    def _body(self, seen: Seen, more: Mapping[str, Any]) -> None:
        record = {"body": "begins", "key": seen.key, "params": seen.params, "attempt": seen.attempt}
        self._bodies.write(msgspec.json.encode({**record, **more, **self._identity}) + b"\n")

    def close(self, *, is_whole: bool = True) -> None:
        """End it. ``is_whole``: all up to here was seen, and ``EmitterStop`` says so; else what came last is open."""
        if is_whole:
            self.stop()
        self.release()
        self._bodies.close()
