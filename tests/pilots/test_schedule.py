"""What ``--faults`` asks for: the same faults for the same seed, within bounds, or an error that a person can use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specwatch.pilots.errors import PilotError
from specwatch.pilots.faults import KINDS
from specwatch.pilots.schedule import LONGEST, SLACK, TRAFFIC_AFTER, Schedule, parse, possible, random_schedule

SEEDS = range(40)


def chaos(seed: int, tasks: int = 200, workers: int = 4, timeout: float = 3.0) -> Schedule:
    return random_schedule(seed, tasks=tasks, workers=workers, timeout=timeout)


def test_a_seed_gives_the_same_schedule_each_time_and_another_seed_another() -> None:
    assert [chaos(seed) for seed in SEEDS] == [chaos(seed) for seed in SEEDS]
    assert len({str(chaos(seed)) for seed in SEEDS}) == len(SEEDS)


def test_a_run_of_200_tasks_has_several_faults_and_ends_soon() -> None:
    """Publishing lasts half a minute, and no fault begins after it: with its end, its redelivery and the start and end
    of the workers a run is below 90 s."""
    for seed in SEEDS:
        schedule = chaos(seed)
        assert schedule.span == LONGEST
        assert len(schedule.faults) == 6
        assert max(fault.start for fault in schedule.faults) <= LONGEST - TRAFFIC_AFTER
        assert all(fault.start + fault.duration < LONGEST + 7 for fault in schedule.faults)
        assert [fault.start for fault in schedule.faults] == sorted(fault.start for fault in schedule.faults)
        assert all(fault.start < LONGEST for fault in schedule.faults)


def test_each_kind_comes_before_any_comes_twice_and_all_come() -> None:
    for seed in SEEDS:
        kinds = [fault.kind for fault in chaos(seed).faults]
        assert len(set(kinds)) == len(kinds)
    assert {fault.kind for seed in SEEDS for fault in chaos(seed).faults} == set(KINDS)


def test_only_those_kinds_come_that_can_happen() -> None:
    kinds = {
        fault.kind
        for seed in SEEDS
        for fault in parse("random", tasks=200, workers=4, seed=seed, timeout=3.0, possible=("kill", "stall")).faults
    }
    assert kinds == {"kill", "stall"}


def test_what_can_happen_depends_on_what_there_is() -> None:
    assert possible(has=("body", "proxy", "nack", "broker", "redelivery")) == tuple(KINDS)
    assert possible(has=("body",)) == ("stall", "long", "kill", "clock")
    assert possible(has=("proxy", "broker")) == ("delay", "restart", "clock")


def test_what_is_to_outlast_the_timeout_does() -> None:
    lasting = {"stall", "long", "black-hole"}
    for seed in SEEDS:
        for fault in chaos(seed, timeout=5.0).faults:
            if fault.kind in lasting:
                assert 5.0 + SLACK <= fault.duration <= 9.0


def test_a_killed_worker_is_struck_no_more_and_its_successor_may_be() -> None:
    successors = 0
    for seed in SEEDS:
        schedule = random_schedule(seed, tasks=200, workers=2, timeout=3.0, kinds=("kill", "stall"))
        alive, number = {"worker-1", "worker-2"}, 2
        for fault in schedule.faults:
            assert fault.target in alive
            successors += fault.target not in ("worker-1", "worker-2")
            if fault.kind == "kill":
                number += 1
                alive = (alive - {fault.target}) | {f"worker-{number}"}
    assert successors


def test_few_tasks_strike_whoever_works_and_many_whom_the_schedule_says() -> None:
    assert {fault.target for seed in SEEDS for fault in chaos(seed, tasks=10).faults} <= {"*", "broker"}
    assert {fault.target for seed in SEEDS for fault in chaos(seed).faults} >= {"broker", "worker-1", "worker-4"}
    assert all(fault.target != "*" for seed in SEEDS for fault in chaos(seed).faults)


def test_faults_that_are_named_come_in_their_order_while_messages_do() -> None:
    schedule = parse("stall, kill,stall", tasks=20, workers=2, seed=7, timeout=3.0)
    assert [(fault.kind, fault.start) for fault in schedule.faults] == [("stall", 0.0), ("kill", 4.0), ("stall", 8.0)]
    assert schedule.span == 12.0
    assert (schedule.needs("body"), schedule.needs("proxy")) == (True, False)
    all_of_them = parse(",".join(KINDS), tasks=20, workers=2, seed=7, timeout=3.0)
    assert all(fault.start < all_of_them.span <= LONGEST for fault in all_of_them.faults)
    assert (
        schedule.sentence
        == "stall of whoever works at 0.0 s, kill of whoever works at 4.0 s, stall of whoever works at 8.0 s"
    )


def test_one_task_is_published_at_once() -> None:
    assert parse("kill", tasks=1, workers=2, seed=0, timeout=3.0).span == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stal", "--faults stal: no kind of fault is called stal; is it stall?"),
        ("stall,Kill", "--faults stall,Kill: no kind of fault is called Kill; is it kill?"),
        ("zzz", "--faults zzz: no kind of fault is called zzz"),
        ("rndom", "--faults rndom: no kind of fault is called rndom; is it random?"),
        ("stall,", "--faults stall,: a kind of fault is missing"),
        ("", "--faults : a kind of fault is missing"),
        ("random,kill", "--faults random,kill: random stands alone"),
        ("cut", "--faults cut: cut cannot be made to happen here"),
    ],
)
def test_what_cannot_be_asked_for_is_said_with_what_can(text: str, message: str) -> None:
    with pytest.raises(PilotError) as told:
        parse(text, tasks=1, workers=2, seed=0, timeout=3.0, possible=("kill", "stall"))
    assert (told.value.message, told.value.hint) == (message, "random, or one or more of stall, kill, with commas")


def test_the_documentation_tells_of_each_kind() -> None:
    text = (Path(__file__).parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", text, re.MULTILINE))
    assert rows == {kind.name: kind.action for kind in KINDS.values()}
