"""CeleryRedis in each setting: what holds, what breaks, and by which steps. One config a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

CELERY = Path(__file__).parents[2] / "specs" / "celery"


@pytest.mark.parametrize(
    ("config", "invariant", "steps"),
    [
        ("faulty", "NoDoubleExecution", "Publish Pickup Start Execute VisTimeout Pickup Start Execute"),
        ("early-eta", "NoDoubleExecution", "Publish Pickup VisTimeout Pickup Ack Start Execute Ack Start Execute"),
        (
            "check-then-insert",
            "NoDoubleExecution",
            "Publish Pickup Start Check VisTimeout Pickup Start Check Execute Execute",
        ),
        (
            "early-check-then-insert",
            "NoDoubleExecution",
            "Publish Pickup VisTimeout Pickup Ack Start Check Ack Start Check Execute Execute",
        ),
        ("early", "AckedWasExecuted", "Publish Pickup Ack Crash"),
        # The body that claimed is cut off with its pool child, whose message is requeued: that needs no timeout.
        ("idempotent-lost", "AckedWasExecuted", "Publish Pickup Start Check Nack Pickup Start Check Skip Done Ack"),
        ("unfenced-ack", "AckIsFenced", "Publish Pickup Start VisTimeout Pickup Fail Ack"),
    ],
)
def test_what_breaks_breaks_by_these_steps(config: str, invariant: str, steps: str) -> None:
    found = explore(load_spec(CELERY / "CeleryRedis.tla", CELERY / f"CeleryRedis.{config}.cfg"))
    assert (found.outcome, found.invariant) == ("violates", invariant)
    assert [step.action for step in found.trace][1:] == steps.split()


@pytest.mark.parametrize(
    ("config", "generated", "distinct"),
    [
        ("no-redelivery", 136, 24),
        ("idempotent", 18_369, 1_192),
        ("idempotent-crash", 22_247, 1_459),
    ],
)
def test_what_holds_holds_in_every_state(config: str, generated: int, distinct: int) -> None:
    """The distinct states are those of a search written separately, in Python, without this checker."""
    found = explore(load_spec(CELERY / "CeleryRedis.tla", CELERY / f"CeleryRedis.{config}.cfg"))
    assert (found.outcome, found.generated, found.distinct) == ("pass", generated, distinct)


def test_a_claim_holds_also_for_copies_that_waited_for_one_eta() -> None:
    found = explore(load_spec(CELERY / "CeleryRedis.tla", CELERY / "CeleryRedis.early-idempotent.cfg"))
    assert (found.outcome, found.invariant) == ("pass", None)
