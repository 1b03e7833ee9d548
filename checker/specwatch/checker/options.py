"""What a binding or a command line says about the judging."""

from __future__ import annotations

import msgspec

from .behaviour import Scope, Start
from .order import Cause
from .timed import Timed


class Options(msgspec.Struct, kw_only=True):
    """Times are in nanoseconds, but for ``timeout`` (seconds); ``max_memory`` is in bytes."""

    hidden: tuple[str, ...] = ()
    hidden_max: int | None = None
    lossy: tuple[str, ...] = ()
    never_lost: tuple[str, ...] = ()
    """Actions that what is missing was not."""
    when: tuple[tuple[str, str], ...] = ()
    """Hidden actions, each with an expression over its parameters and the next event (``$name``)."""
    timed: tuple[Timed, ...] = ()
    skew: int = 1_000_000_000
    """The most that two clocks differ, where times bound a hidden step."""
    terminal: tuple[str, ...] = ()
    first: tuple[str, ...] = ("Publish",)
    """The actions with which a key's life begins."""
    complete: bool = False
    at_end: tuple[str, ...] = ()
    """Invariants of ends: definitions that hold of a complete behaviour's last state."""
    strict: bool = False
    scope: Scope = "run"
    key: str | None = None
    """The parameter that is the key; None for the first by which the spec is separable."""
    keys_logged: bool = False
    """Whether the spec's keys are those of the log, and no others."""
    start: Start = "init"
    start_within: int | None = None
    """How long after the log's first record a behaviour that begins may have begun before it."""
    start_states: str | None = None
    """The definition that the states satisfy in which a behaviour may have begun."""
    causes: tuple[Cause, ...] = ()
    require: tuple[str, ...] = ()
    keep_constraints: bool = False
    max_states: int | None = None
    timeout: float | None = None
    max_memory: int | None = None
    began: float | None = None
    """What ``time.monotonic`` showed when ``timeout`` began to count; None for when the judging begins."""
    max_findings: int = 100
