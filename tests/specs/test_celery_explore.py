"""CeleryETA in a breadth-first search has TLC's numbers: states generated, distinct states, depth."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

CELERY = Path(__file__).parents[2] / "specs" / "celery"


@pytest.mark.parametrize("deadlock", [True, False])
def test_faulty_breaks_the_invariant_in_five_states_and_needs_no_timeout(deadlock: bool) -> None:
    found = explore(load_spec(CELERY / "CeleryETA.tla", CELERY / "CeleryETA.faulty.cfg"), deadlock=deadlock)
    assert (found.outcome, found.invariant) == ("violates", "InvariantNoDoubleExecution")
    assert (found.generated, found.distinct, found.depth) == (53, 33, 5)
    assert [step.action for step in found.trace] == [None, "PublishTask", "PickupTask", "ExecuteTask", "ExecuteTask"]


def test_idempotent_ends_in_a_deadlock_when_all_is_published_and_acked() -> None:
    found = explore(load_spec(CELERY / "CeleryETA.tla", CELERY / "CeleryETA.idempotent.cfg"), deadlock=True)
    assert (found.outcome, found.generated, found.distinct, found.depth) == ("deadlock", 240, 99, 8)
    assert len(found.trace) == 7


@pytest.mark.parametrize(
    ("tasks", "distinct", "generated", "depth"),
    [
        (2, 127, 352, 9),
        (3, 1_105, 4_573, 13),
        (4, 9_031, 49_726, 17),
        pytest.param(5, 70_993, 487_675, 21, marks=pytest.mark.nightly),
        pytest.param(6, 543_607, 4_472_560, 25, marks=[pytest.mark.nightly, pytest.mark.timeout(7200)]),
    ],
)
def test_idempotent_holds_without_the_deadlock_check(tasks: int, distinct: int, generated: int, depth: int) -> None:
    spec = load_spec(CELERY / "CeleryETA.tla", CELERY / "CeleryETA.idempotent.cfg", constants={"MaxTasks": tasks})
    found = explore(spec, deadlock=False)
    assert (found.outcome, found.generated, found.distinct, found.depth) == ("pass", generated, distinct, depth)
