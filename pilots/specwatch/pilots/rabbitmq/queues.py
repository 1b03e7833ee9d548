"""The names of the queues that the pilot makes: known without a run, so that what is left of one can be removed."""

from __future__ import annotations

MODES = ("faulty", "check-then-insert", "idempotent")
EXPERIMENTS = ("consumer-timeout", "connection-cut")


def name(prefix: str) -> str:
    """The queue of an experiment; ``prefix`` is that of its ``Settings``."""
    return f"{prefix}pilot"


def names(prefix: str) -> list[str]:
    """All queues that runs make which use a server with this prefix."""
    return [name(f"{prefix}{mode}.{experiment}.") for mode in MODES for experiment in EXPERIMENTS]
