"""JetStream in each setting, explored: what holds, what breaks, and by which steps. One config a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

NATS = Path(__file__).parents[2] / "specs" / "nats"

BREAKS = {
    "faulty": ("NoDoubleExecution", "Publish Pickup Start Execute AckTimeout Pickup Start Execute"),
    "check-then-insert": (
        "NoDoubleExecution",
        "Publish Pickup Start Check AckTimeout Pickup Start Check Execute Execute",
    ),
    "early": ("AckedWasExecuted", "Publish Pickup Ack Crash"),
    "idempotent-lost": (
        "AckedWasExecuted",
        "Publish Pickup Start Check AckTimeout Pickup Start Check Crash Ack",
    ),
    "unfenced-ack": ("AckIsFenced", "Publish Pickup AckTimeout Pickup Ack"),
    "parked": ("ParkedWasExecuted", "Publish Pickup AckTimeout Pickup AckTimeout Park Crash"),
}
HOLDS = {
    "no-redelivery": (357, 23, 7),
    "idempotent": (38_078, 1_414, 15),
    "idempotent-crash": (40_212, 1_518, 16),
    "republish": (13_437, 821, 15),
}


@pytest.mark.parametrize("config", BREAKS)
def test_what_breaks_breaks_by_these_steps(config: str) -> None:
    found = explore(load_spec(NATS / "JetStream.tla", NATS / f"JetStream.{config}.cfg"))
    invariant, steps = BREAKS[config]
    assert (found.outcome, found.invariant) == ("violates", invariant)
    assert [step.action for step in found.trace][1:] == steps.split()


@pytest.mark.parametrize("config", HOLDS)
def test_what_holds_holds_in_every_state(config: str) -> None:
    found = explore(load_spec(NATS / "JetStream.tla", NATS / f"JetStream.{config}.cfg"))
    assert (found.outcome, found.generated, found.distinct, found.depth) == ("pass", *HOLDS[config])


def test_every_config_has_a_row() -> None:
    configs = {path.name.removeprefix("JetStream.").removesuffix(".cfg") for path in NATS.glob("*.cfg")}
    assert configs == {*BREAKS, *HOLDS}
