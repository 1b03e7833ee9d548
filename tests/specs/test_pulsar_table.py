"""Pulsar in each setting, explored: what holds, what breaks, and by which steps. One config a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

PULSAR = Path(__file__).parents[2] / "specs" / "pulsar"

BREAKS = {
    "faulty": ("NoDoubleExecution", "Publish Pickup Start Execute AckTimeout Pickup Start Execute"),
    "check-then-insert": (
        "NoDoubleExecution",
        "Publish Pickup Start Check AckTimeout Pickup Start Check Execute Execute",
    ),
    "early": ("AckedWasExecuted", "Publish Pickup Ack AckArrives Crash"),
    "idempotent-lost": (
        "AckedWasExecuted",
        "Publish Pickup Start Check Crash Pickup Start Check Skip Done Ack AckArrives",
    ),
    "unfenced-ack": ("AckIsFenced", "Publish Pickup Start AckTimeout Pickup Fail Ack AckArrives"),
    "dead-letter": ("DeadWasExecuted", "Publish Pickup AckTimeout Pickup DeadLetter Crash"),
    "batch": ("NoDoubleExecution", "Publish Pickup Start Execute Done Ack AckTimeout Pickup Start Execute"),
}
HOLDS = {
    "no-redelivery": (389, 29, 8),
    "single": (389, 29, 8),
    "idempotent": (83_394, 4_430, 17),
    "idempotent-crash": (86_807, 4_634, 17),
}


@pytest.mark.parametrize("config", BREAKS)
def test_what_breaks_breaks_by_these_steps(config: str) -> None:
    found = explore(load_spec(PULSAR / "Pulsar.tla", PULSAR / f"Pulsar.{config}.cfg"))
    invariant, steps = BREAKS[config]
    assert (found.outcome, found.invariant) == ("violates", invariant)
    assert [step.action for step in found.trace][1:] == steps.split()


@pytest.mark.parametrize("config", HOLDS)
def test_what_holds_holds_in_every_state(config: str) -> None:
    found = explore(load_spec(PULSAR / "Pulsar.tla", PULSAR / f"Pulsar.{config}.cfg"))
    assert (found.outcome, found.generated, found.distinct, found.depth) == ("pass", *HOLDS[config])


def test_every_config_has_a_row() -> None:
    configs = {path.name.removeprefix("Pulsar.").removesuffix(".cfg") for path in PULSAR.glob("*.cfg")}
    assert configs == {*BREAKS, *HOLDS}
