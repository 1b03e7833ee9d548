"""Findings that tell the same story, counted as one kind."""

from __future__ import annotations

import msgspec

from .behaviour import Json
from .report.writing import rfc3339
from .verdict import Finding, Kind


class _Counted(msgspec.Struct):
    example: Json
    count: int = 0
    first: int | None = None
    last: int | None = None


class Kinds:
    """Counts findings by what they found; times in nanoseconds since the epoch."""

    def __init__(self) -> None:
        self._found: dict[str, _Counted] = {}

    def add(self, finding: Finding) -> None:
        what = finding.invariant or finding.action or (finding.reason or "").partition(":")[0]
        name = f"{finding.verdict} {what}".strip()
        kind = self._found.setdefault(name, _Counted(finding.key))
        kind.count += 1
        time = finding.event.time if finding.event is not None else None
        if time is not None:
            kind.first = time if kind.first is None else min(kind.first, time)
            kind.last = time if kind.last is None else max(kind.last, time)

    def listed(self) -> list[Kind]:
        """All kinds, the most frequent first."""
        return [
            Kind(
                kind=name,
                cause=None,
                count=kind.count,
                first=None if kind.first is None else rfc3339(kind.first),
                last=None if kind.last is None else rfc3339(kind.last),
                example=kind.example,
            )
            for name, kind in sorted(self._found.items(), key=lambda pair: -pair[1].count)
        ]
