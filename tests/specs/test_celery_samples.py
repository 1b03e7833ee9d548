"""Real runs, and runs of public bug reports, against each mode of CeleryRedis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "corpus" / "samples"
CASES = ROOT / "tests" / "corpus" / "cases"

Celery = Callable[..., Any]


@pytest.mark.parametrize(
    ("sample", "at"),
    [
        ("celery57_late_VT2", 4),
        ("celery57_eta5_VT2_earlyack", 5),
        ("celery57_late_ack_steals", 4),
        ("celery57_dedup_flag", 4),
        ("celery55_late_second_worker", 4),
    ],
)
class TestRecordedDuplicates:
    """Every recorded run executed its task again while, or after, another worker did: at the second Execute."""

    def log(self, sample: str) -> Path:
        return SAMPLES / f"{sample}.signals.jsonl"

    @pytest.mark.parametrize("mode", ["faulty", "early"])
    def test_without_a_guard_it_violates_at_the_second_execution(
        self, celery: Celery, sample: str, at: int, mode: str
    ) -> None:
        assert celery(mode, log=self.log(sample)).word == f"violates {at} NoDoubleExecution"

    def test_an_atomic_claim_would_not_have_let_it_happen(self, celery: Celery, sample: str, at: int) -> None:
        assert celery("idempotent", log=self.log(sample)).word == f"diverges {at}"

    def test_a_look_before_the_insert_helps_only_where_it_comes_after_the_effect(
        self, celery: Celery, sample: str, at: int
    ) -> None:
        raced = sample == "celery57_eta5_VT2_earlyack"  # both copies were received before either executed
        expected = f"violates {at} NoDoubleExecution" if raced else f"diverges {at}"
        assert celery("check-then-insert", log=self.log(sample)).word == expected


def test_every_recorded_run_of_the_corpus_is_judged_here() -> None:
    parameters = TestRecordedDuplicates.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert sorted(f"{sample}.signals.jsonl" for sample, _ in parameters) == sorted(
        path.name for path in SAMPLES.glob("*.signals.jsonl")
    )


def test_the_run_that_ships_is_the_recorded_one_byte_for_byte() -> None:
    name = "celery57_late_VT2.signals.jsonl"
    assert (ROOT / "specs" / "celery" / "recorded" / name).read_bytes() == (SAMPLES / name).read_bytes()


def test_a_message_without_the_redelivered_flag_is_no_redelivery(celery: Celery, tmp_path: Path) -> None:
    """The second receipt of this run with ``redelivered`` false would be a second message, which no one published."""
    lines = (SAMPLES / "celery57_late_VT2.signals.jsonl").read_text()
    log = tmp_path / "log.jsonl"
    log.write_text(lines.replace('"redelivered": true', '"redelivered": false'))
    assert celery("faulty", log=log).word == "diverges 3"


def case(name: str) -> list[str]:
    """What the logs of a bug report told, as native events; what no log told is left out."""
    document = json.loads((CASES / f"{name}.json").read_text())
    return [
        f"{event['action']} t={event['task']}" + (f" w={event['worker']}" if "worker" in event else "")
        for event in document["events"]
        if not event.get("hidden")
    ]


def test_two_copies_of_an_eta_task_execute_twice(celery: Celery) -> None:
    steps = case("celery-2481-eta-two-copies")
    assert celery("faulty", *steps).word == "violates 5 NoDoubleExecution"
    assert celery("early", *steps).word == "violates 5 NoDoubleExecution"
    assert celery("idempotent", *steps).word == "diverges 5"


@pytest.mark.parametrize(
    ("name", "timeouts"),
    [("celery-7009-receipts-only", 5), ("celery-4400-docker-doubled-lines", 2), ("pretix-2058-long-task", 3)],
)
def test_receipts_alone_violate_nothing_and_each_further_one_needs_a_timeout(
    celery: Celery, name: str, timeouts: int
) -> None:
    found = celery("faulty", *case(name))
    assert found.word == "conforms"
    starts = sum(step.startswith("Execute") for step in case(name))
    assert found.document["hidden_steps"] == 1 + timeouts + starts  # with the Publish, and a Start before an Execute


def test_the_key_decides_whether_two_messages_are_one_task(celery: Celery) -> None:
    """That log has no line for an execution: Done is its only sign."""
    more = ("--hidden", "Publish,Start,Execute,VisTimeout")
    steps = case("celery-3270-different-ids")
    assert celery("faulty", *steps, more=more).word == "conforms"
    by_argument = [step.replace("ID-A", "path").replace("ID-B", "path") for step in steps]
    assert celery("faulty", *by_argument, more=more).word == "violates 4 NoDoubleExecution"
