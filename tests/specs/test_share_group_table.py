"""ShareGroup in each setting, explored: what holds, what breaks, and by which steps. One config a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

KAFKA = Path(__file__).parents[2] / "specs" / "kafka"

BREAKS = {
    "faulty": ("NoDoubleExecution", "Publish Pickup Start Execute LockTimeout Pickup Start Execute"),
    "check-then-insert": (
        "NoDoubleExecution",
        "Publish Pickup Start Check LockTimeout Pickup Start Check Execute Execute",
    ),
    "early": ("AckedWasExecuted", "Publish Pickup Ack Crash"),
    "idempotent-lost": ("AckedWasExecuted", "Publish Pickup Start Check Crash Pickup Start Check Ack"),
    "parked": ("ParkedWasExecuted", "Publish Pickup Crash Pickup Crash"),
    "unfenced": ("AckIsTheOwners", "Publish Pickup LockTimeout Pickup Ack"),
}
HOLDS = {
    "no-redelivery": (285, 30, 7),
    "idempotent": (9_190, 658, 15),
    "idempotent-crash": (9_945, 716, 15),
}


@pytest.mark.parametrize("config", BREAKS)
def test_what_breaks_breaks_by_these_steps(config: str) -> None:
    found = explore(load_spec(KAFKA / "ShareGroup.tla", KAFKA / f"ShareGroup.{config}.cfg"))
    invariant, steps = BREAKS[config]
    assert (found.outcome, found.invariant) == ("violates", invariant)
    assert [step.action for step in found.trace][1:] == steps.split()


@pytest.mark.parametrize("config", HOLDS)
def test_what_holds_holds_in_every_state(config: str) -> None:
    found = explore(load_spec(KAFKA / "ShareGroup.tla", KAFKA / f"ShareGroup.{config}.cfg"))
    assert (found.outcome, found.generated, found.distinct, found.depth) == ("pass", *HOLDS[config])


def test_every_config_has_a_row() -> None:
    configs = {path.name.removeprefix("ShareGroup.").removesuffix(".cfg") for path in KAFKA.glob("ShareGroup.*.cfg")}
    assert configs == {*BREAKS, *HOLDS}
