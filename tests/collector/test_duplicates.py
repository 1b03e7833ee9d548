"""What came twice is counted, and never executed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.collector.logs import Write, actions, balanced, e, losses

from specwatch.checker.behaviour import Ledger
from specwatch.collector.assemble import collect


@pytest.mark.parametrize("how", ["same", "copy", "gzip", "zstandard", "symlink"])
def test_the_same_log_again_is_counted_and_never_executed(write: Write, tmp_path: Path, how: str) -> None:
    path = write("a.jsonl", e("A"), e("B"), "torn")
    data = Path(path).read_bytes()
    again = tmp_path / "again"
    if how == "symlink":
        again.symlink_to(path)
    else:
        again.write_bytes(
            gzip.compress(data) if how == "gzip" else zstandard.compress(data) if how == "zstandard" else data
        )
    collected = collect([path, path if how == "same" else str(again)])
    assert actions(collected) == ["A", "B"]
    assert (collected.ledger.read, collected.ledger.duplicate, collected.ledger.unparsed) == (6, 3, 1)
    assert len(collected.inputs) == 2
    assert balanced(collected.ledger)


def test_two_empty_logs_are_no_duplicates(write: Write) -> None:
    assert collect([write("a.jsonl"), write("b.jsonl")]).ledger == Ledger()


@pytest.mark.parametrize("order", ["total", "emitter"])
def test_a_number_that_comes_twice_with_one_content_is_a_duplicate(write: Write, order: Any) -> None:
    line = e("A", "w", 1, params={"x": {"b": 1, "a": 2}})
    other = e("A", "w", 1, params={"x": {"a": 2, "b": 1}})
    collected = collect([write("a.jsonl", line, e("B", "w", 2), other, e("C", "w", 3))], order=order)
    assert (actions(collected), losses(collected)) == (["A", "B", "C"], [])
    assert (collected.ledger.duplicate, collected.ledger.mapped) == (1, 3)
    assert balanced(collected.ledger)


def test_a_duplicate_in_another_log_is_one_too(write: Write) -> None:
    one = write("a.jsonl", e("A", "w", 1, time=1), e("B", "w", 2, time=2))
    two = write("b.jsonl", e("B", "w", 2, time=2), e("C", "w", 3, time=3))
    collected = collect([one, two])
    assert (actions(collected), collected.ledger.duplicate) == (["A", "B", "C"], 1)


def test_a_duplicate_in_a_lane_is_kept_once(write: Write) -> None:
    stop = e("EmitterStop", "w", 2, lane="emitter")
    collected = collect([write("a.jsonl", e("A", "w", 1), stop, stop)])
    assert [event.action for event in collected.fault_events] == ["EmitterStop"]
    assert (collected.ledger.duplicate, collected.ledger.ignored) == (1, {"lane emitter": 1})
    assert balanced(collected.ledger)


@pytest.mark.parametrize(("order", "settled"), [("total", 1), ("emitter", 0)])
def test_a_number_with_two_contents_is_a_loss(write: Write, order: Any, settled: int) -> None:
    """Its lines are named only where the verdict does not have to be the same for any order of them."""
    path = write("a.jsonl", e("A", "w", 1), e("B", "w", 2), e("C", "w", 2))
    collected = collect([path], order=order)
    [loss] = losses(collected)
    assert (loss.reason, loss.settled) == ("unparsed", settled)
    assert loss.detail.startswith("w gives the number 2 to two records")
    assert (f"{path}:2 and {path}:3" in loss.detail) == (order == "total")
    assert sorted(actions(collected)) == ["A", "B", "C"]
    assert balanced(collected.ledger)
