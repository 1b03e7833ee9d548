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
from specwatch.collector.binding import parse_binding


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


# Without numbers

LINES = """
emitter = "$host"
time = "$ts"
[[rule]]
match = { event = "debug" }
ignore = "chatter"
[[rule]]
actions = ["Pickup", "Start"]
params = { t = "$id" }
"""


def line(task: str, ts: int, host: str = "h", **more: Any) -> dict[str, Any]:
    return {"id": task, "ts": ts, "host": host, **more}


def pickups(write: Write, *records: dict[str, Any], rules: str = LINES) -> tuple[list[str], int]:
    """The tasks that were picked up, and how many records are duplicates."""
    collected = collect([write("a.log", *records)], parse_binding(rules), order="total")
    assert balanced(collected.ledger)
    [behaviour] = collected.behaviours
    return [event.params["t"] for event in behaviour.events if event.action == "Pickup"], collected.ledger.duplicate


def test_lines_that_nearly_all_come_twice_are_duplicates(write: Write) -> None:
    """A second handler, or both streams of a container."""
    records = [line(task, ts) for ts, task in enumerate("abc") for _ in range(2)]
    assert pickups(write, *records) == (["a", "b", "c"], 3)


def test_each_emitters_lines_are_looked_at_alone(write: Write) -> None:
    doubled = [line(task, ts) for ts, task in enumerate("abc")]
    other = [line(task, ts, "other") for ts, task in enumerate("xyz")]
    records = [record for pair in zip(doubled, other, doubled, strict=True) for record in pair]
    assert pickups(write, *records) == (["a", "x", "b", "y", "c", "z"], 3)


def test_a_log_may_begin_and_end_within_a_pair(write: Write) -> None:
    records = [line(str(ts), ts) for ts in range(20) for _ in range(2)][1:-1]
    assert pickups(write, *records) == ([str(ts) for ts in range(20)], 18)


@pytest.mark.parametrize(
    "records",
    [
        [line("a", 1), line("a", 1)],
        [line("a", 1), line("a", 1), line("b", 2), line("b", 2), line("c", 3), line("d", 4), line("e", 5)],
        [line("a", 1), line("a", 2), line("b", 3), line("b", 4)],
        [line("a", 1, n=1), line("a", 1, n=2), line("b", 3, n=3), line("b", 3, n=4)],
        [line("a", 1), line("b", 1), line("a", 1), line("b", 1)],
        [{"id": task, "host": "h"} for task in "aabbcc"],
    ],
    ids=["one pair", "few of many", "other times", "other fields", "not adjacent", "no times"],
)
def test_equal_lines_are_events_of_their_own_where(write: Write, records: list[dict[str, Any]]) -> None:
    """Wrongly taken for duplicates they would hide that something happened twice."""
    assert pickups(write, *records) == ([record["id"] for record in records], 0)


def test_numbers_tell_better_than_equal_lines(write: Write) -> None:
    rules = 'seq = "$n"\n' + LINES
    records = [line(task, ts, n=2 * ts + more) for ts, task in enumerate("abc") for more in range(2)]
    assert pickups(write, *records, rules=rules) == (["a", "a", "b", "b", "c", "c"], 0)


def test_native_events_without_numbers_are_looked_at_too(write: Write) -> None:
    twice = [e("A", "w", time=time, params={"x": time}) for time in range(4) for _ in range(2)]
    collected = collect([write("a.jsonl", *twice)])
    assert [event.params["x"] for event in collected.behaviours[0].events] == [0, 1, 2, 3]
    assert (collected.ledger.duplicate, collected.ledger.mapped) == (4, 4)


def test_both_halves_of_joined_records_may_come_twice(write: Write) -> None:
    rules = """
    time = "$ts"
    [[rule]]
    action = "Pickup"
    join = { start = { k = "s" }, end = { k = "e" }, on = "id" }
    params = { t = "$id" }
    """
    halves = [{"id": task, "k": k, "ts": ts} for ts, (task, k) in enumerate([("a", "s"), ("a", "e"), ("b", "s")])]
    collected = collect([write("a.log", *(half for half in halves for _ in range(2)))], parse_binding(rules))
    [behaviour] = collected.behaviours
    assert [(event.params["t"], event.time, event.until) for event in behaviour.events] == [("a", 0, 10**9)]
    assert [loss.reason for loss in behaviour.losses] == ["in-flight"]
    assert collected.ledger.duplicate == 3
    assert balanced(collected.ledger)


def test_what_is_written_twice_is_no_less_unmeasurable(write: Write) -> None:
    records = [line(task, ts) for ts, task in enumerate("abc") for _ in range(2)]
    assert collect([write("a.log", *records)], parse_binding(LINES)).ledger.loss == "unmeasurable"
