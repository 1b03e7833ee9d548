"""The verdict: its values, its algebra, and what stands beside it. ``to_json`` is the stable ``specwatch.verdict/1``.

``inconclusive`` means that the evidence does not decide, and always has a reason; ``vacuous`` that nothing was checked.
Neither is ever folded into ``conforms``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from .behaviour import Event, Input, Json, Ledger

Word = Literal["conforms", "violates", "diverges", "inconclusive", "vacuous"]

WORST_FIRST: tuple[Word, ...] = ("violates", "diverges", "inconclusive", "vacuous", "conforms")
EXIT_CODES: dict[Word, int] = {"conforms": 0, "violates": 1, "diverges": 1, "inconclusive": 3, "vacuous": 3}


def worst(words: Iterable[Word]) -> Word:
    """The worst of some behaviours' verdicts; ``vacuous`` where there are none."""
    return min(words, key=WORST_FIRST.index, default="vacuous")


class Conjunct(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an action or invariant with its value (TLA+ text) in the state that is explained."""

    text: str
    file: str
    line: int
    column: int
    value: str
    values: dict[str, str] = {}
    """What it reads, by expression text: ``{'exec["t1"]': "2"}``."""


class HiddenStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that was inserted before event ``before`` (1-based). ``params`` are TLA+ text by name."""

    before: int
    action: str
    params: dict[str, str] = {}


class Explanation(msgspec.Struct, kw_only=True):
    """Why. ``summary`` is one sentence; ``steps`` is the way to the failure as the text report shows it."""

    summary: str
    cause: str | None = None
    remedy: str | None = None
    margins: list[str] = []
    conjuncts: list[Conjunct] = []
    enabled_instead: list[str] = []
    legal_if: str | None = None
    state_before: dict[str, str] = {}
    """Variables as TLA+ text in the state that the failing step starts from (for at 0 the initial state)."""
    state_change: dict[str, list[str]] = {}
    """For a break: what the step changed, by the smallest expression that names it: ``{'exec["t1"]': ["1", "2"]}``."""


class Finding(msgspec.Struct, kw_only=True):
    """One behaviour's verdict that is not ``conforms``. ``at`` counts its events from 1; 0 is the initial state."""

    verdict: Word
    run: str | None = None
    key: Json = None
    reason: str | None = None
    """For ``inconclusive`` and ``vacuous``: ``gap``, ``unparsed``, ``bound``, …, then a colon and the details."""
    at: int | None = None
    event: Event | None = None
    invariant: str | None = None
    """``A+B`` broken together on one path, ``A|B`` on different ones."""
    action: str | None = None
    provisional: bool = False
    hidden: list[HiddenStep] = []
    explanation: Explanation | None = None
    context: list[tuple[int, Event]] = msgspec.field(default_factory=list)
    """The last events before and with the failing one, with their numbers: for the text report, not in the JSON."""


class Behaviours(msgspec.Struct):
    """How many behaviours came to which verdict."""

    total: int = 0
    conforms: int = 0
    violates: int = 0
    diverges: int = 0
    inconclusive: int = 0
    vacuous: int = 0


class Kind(msgspec.Struct, kw_only=True):
    """Findings that tell the same story."""

    kind: str
    cause: str | None
    count: int
    first: str | float | None
    last: str | float | None
    example: Json


class SpecUsed(msgspec.Struct, kw_only=True):
    path: str
    sha256: str
    config: str | None


class Verdict(msgspec.Struct, kw_only=True):
    """The answer for one command. Attributes are named as in the JSON."""

    verdict: Word
    exit_code: int
    reason: str | None = None
    behaviours: Behaviours
    undecided_by_reason: dict[str, int] = {}
    kinds: list[Kind] = []
    findings: list[Finding] = []
    hidden_steps: int = 0
    coverage: dict[str, int] = {}
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    assumptions: list[str] = []
    inputs: list[Input] = []
    spec: SpecUsed | None = None
    invariants: list[str] = []
    """The invariants that were checked, for JUnit."""
    require: list[tuple[str, bool]] = []
    """What was required, and whether it happened."""
    legend: dict[str, str] = {}
    """Interned constants: printed form → original."""

    def to_json(self) -> str:
        """The verdict as one JSON object, schema ``specwatch.verdict/1``."""
        from .report.json import render

        return render(self)
