"""A run directory: what a chaos run leaves behind, and what ``specwatch check DIRECTORY`` judges again.

``raw/*.jsonl`` is what each process wrote, ``events.jsonl`` all of it in one order, ``logs/`` what the programs said,
``rows.csv`` what the database held. ``spec.tla``, ``spec.cfg`` and ``binding.toml`` say how it is judged, and
``versions.json`` what it ran on. The command adds ``verdict.json`` and ``report.txt``.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

Line = dict[str, Any]
"""A native event as a probe wrote it, with ``monotonic`` (nanoseconds) beside its own fields."""

_HEADER = re.compile(r"^(-{4,} *MODULE +)\w+( *-{4,})", re.MULTILINE)


class Trail:
    """Reads the events of a run while they are written: what was added to ``raw/`` since the last look."""

    def __init__(self, raw: Path) -> None:
        self.raw = raw
        self._read: dict[Path, int] = {}

    def new(self) -> list[Line]:
        """The events of all complete lines that were not yet given, file by file."""
        lines: list[Line] = []
        for path in sorted(self.raw.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
            complete = data[: data.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(complete)
            lines.extend(msgspec.json.decode(line) for line in complete.splitlines() if line.strip())
        return lines


def merge(raw: Path) -> list[Line]:
    """All events of a run on one machine, in an order that no cause contradicts.

    The machine's monotonic clock is one for all processes: what was received is later than what was sent. Within an
    emitter its own numbers rule, since an event may be stamped before it is numbered (an ack: when it was said).
    """
    emitters: dict[tuple[str, str], list[Line]] = {}
    for line in Trail(raw).new():
        emitters.setdefault((line["emitter"], line["boot"]), []).append(line)
    placed: list[tuple[int, tuple[str, str], int, Line]] = []
    for name, lines in emitters.items():
        latest = 0
        for line in sorted(lines, key=lambda line: line["seq"]):
            latest = max(latest, line["monotonic"])
            placed.append((latest, name, line["seq"], line))
    return [line for *_, line in sorted(placed, key=lambda place: place[:3])]


def executions(events: Iterable[Line]) -> dict[str, int]:
    """Execute − Undo of each key that has any: the rows that the database should hold."""
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.get("key", "")] += {"Execute": 1, "Undo": -1}.get(event["action"], 0)
    return {key: count for key, count in sorted(counts.items()) if count}


def restarted(events: Iterable[Line]) -> int:
    """How many keys had the body of one attempt begin more than once: what the fault is there to bring about."""
    begun = Counter((event.get("key"), event.get("attempt")) for event in events if event["action"] == "Start")
    return len({key for (key, _), count in begun.items() if count > 1})


def write(
    directory: Path,
    *,
    events: Sequence[Line],
    rows: Mapping[str, int],
    spec: Path,
    config: Path,
    binding: str,
    versions: Mapping[str, Any],
) -> None:
    """Write all but ``raw/`` and ``logs/``, which the run's processes have written, and what only the judge knows."""
    with (directory / "events.jsonl").open("wb") as file:
        file.writelines(msgspec.json.encode(event) + b"\n" for event in events)
    with (directory / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("key", "rows"), *sorted(rows.items())])
    text = spec.read_text(encoding="utf-8")
    (directory / "spec.tla").write_text(renamed(text), encoding="utf-8")
    (directory / "spec.cfg").write_bytes(config.read_bytes())
    (directory / "binding.toml").write_text(binding, encoding="utf-8")
    original = {"spec": spec.name, "sha256": hashlib.sha256(text.encode()).hexdigest(), "config": config.name}
    document = msgspec.json.encode({**versions, "model": original})
    (directory / "versions.json").write_bytes(msgspec.json.format(document, indent=2) + b"\n")


def renamed(spec: str) -> str:
    """The module's text under the name ``spec``, as a file ``spec.tla`` must hold it; all lines stay where they are."""
    return _HEADER.sub(r"\1spec\2", spec, count=1)
