"""Kafka in each setting, explored: what holds, what breaks, and by which steps. One config a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

KAFKA = Path(__file__).parents[2] / "specs" / "kafka"

BREAKS = {
    "faulty": ("NoDoubleExecution", "Publish Assign Pickup Start Execute Assign Pickup Start Execute"),
    "check-then-insert": (
        "NoDoubleExecution",
        "Publish Assign Pickup Start Check Assign Pickup Start Check Execute Execute",
    ),
    "early": ("AckedWasExecuted", "Publish Assign Pickup Commit Crash"),
    "idempotent-crash": (
        "AckedWasExecuted",
        "Publish Assign Pickup Start Check Assign Pickup Start Check Skip Done Commit Crash",
    ),
    "unfenced": (
        "CommitIsTheOwners",
        "Publish Assign Pickup Start Check Execute Done Assign Pickup Commit",
    ),
}
HOLDS = {"no-rebalance": (3_127, 184, 10), "idempotent": (101_051, 5_318, 17)}


@pytest.mark.parametrize("config", BREAKS)
def test_what_breaks_breaks_by_these_steps(config: str) -> None:
    found = explore(load_spec(KAFKA / "Kafka.tla", KAFKA / f"Kafka.{config}.cfg"))
    invariant, steps = BREAKS[config]
    assert (found.outcome, found.invariant) == ("violates", invariant)
    assert [step.action for step in found.trace][1:] == steps.split()


@pytest.mark.parametrize("config", HOLDS)
def test_what_holds_holds_in_every_state(config: str) -> None:
    found = explore(load_spec(KAFKA / "Kafka.tla", KAFKA / f"Kafka.{config}.cfg"))
    assert (found.outcome, found.generated, found.distinct, found.depth) == ("pass", *HOLDS[config])


def test_every_config_has_a_row() -> None:
    configs = {path.name.removeprefix("Kafka.").removesuffix(".cfg") for path in KAFKA.glob("Kafka.*.cfg")}
    assert configs == {*BREAKS, *HOLDS}
