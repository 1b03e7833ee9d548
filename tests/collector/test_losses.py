"""What is missing from a log, and where it may have stood."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from tests.collector.logs import Write, actions, balanced, e, losses

from specwatch.checker.behaviour import Gap, Loss
from specwatch.collector.assemble import collect
from specwatch.collector.binding import parse_binding


def test_a_torn_last_line_is_a_loss_at_its_place(write: Write) -> None:
    path = write("a.jsonl", e("A"), e("B"), '{"action": "C", "par', end="")
    detail = f"{path}:3 is torn: it has no line end"
    assert losses(collect([path])) == [Loss(reason="unparsed", settled=2, detail=detail, count=1, after=1)]


def test_a_last_line_without_end_that_is_whole_is_an_event(write: Write) -> None:
    collected = collect([write("a.jsonl", e("A"), e("B"), end="")])
    assert (actions(collected), losses(collected)) == (["A", "B"], [])


def test_the_first_unread_line_of_a_log_decides_and_the_others_are_counted(write: Write) -> None:
    path = write("a.jsonl", e("A"), "banner", e("B"), "{", "x")
    collected = collect([path])
    detail = f"{path}:2 is not a JSON object, and 2 more records of this log"
    assert losses(collected) == [Loss(reason="unparsed", settled=1, detail=detail, count=3, after=0)]
    assert collected.ledger.unparsed == 3
    examples = [example.split(" ")[0] for example in collected.ledger.unparsed_examples]
    assert examples == [f"{path}:{line}" for line in (2, 4, 5)]
    assert balanced(collected.ledger)


def test_lost_lines_of_two_logs_one_after_the_other(write: Write) -> None:
    one, two = write("a.jsonl", e("A"), "x"), write("b.jsonl", e("B"), "y", e("C"))
    assert [loss.settled for loss in losses(collect([one, two], order="total"))] == [1, 2]


def test_nothing_is_settled_by_a_lost_line_where_lines_have_no_order(write: Write) -> None:
    path = write("a.jsonl", e("A", "w", 1), "x")
    assert [loss.settled for loss in losses(collect([path], order="emitter"))] == [0]


def test_a_lost_line_under_time_stands_between_its_neighbours_in_the_log(write: Write) -> None:
    one = write("a.jsonl", e("A", "v", time=1), e("B", "v", time=3), "x", e("E", "v", time=6))
    two = write("b.jsonl", e("C", "w", time=4), e("D", "w", time=5))
    collected = collect([one, two])
    assert actions(collected) == ["A", "B", "C", "D", "E"]
    [loss] = losses(collected)
    assert (loss.settled, loss.after, loss.before) == (1, 1, 4)
    assert (loss.begin, loss.end) == (3 * 10**9, 6 * 10**9)


def test_under_time_a_lost_line_is_not_surely_later_than_those_after_it(write: Write) -> None:
    path = write("a.jsonl", e("A", "v", time=1), e("B", "v", time=9), "x", e("C", "w", time=3), e("D", "w", time=4))
    assert [loss.settled for loss in losses(collect([path], order="time"))] == [1]


def test_a_lost_line_belongs_to_the_runs_of_its_log(write: Write) -> None:
    one = write("a.jsonl", e("A", run="r1"), "x")
    two = write("b.jsonl", e("B", run="r2"), e("C", run="r2"))
    first, second = collect([one, two], order="total").behaviours
    assert [loss.settled for loss in first.losses] == [1]
    assert second.losses == []


@pytest.mark.parametrize(
    ("seqs", "gaps"),
    [
        ([1, 2, 3], []),
        ([0, 1, 2], []),
        ([1, 2, 4], [(3, 3, 2)]),
        ([1, 5, 9], [(2, 4, 1), (6, 8, 2)]),
        ([3, 4], [(1, 2, 0)]),
        ([2], [(1, 1, 0)]),
        ([1, 10**30], [(2, 10**30 - 1, 1)]),
    ],
)
def test_a_missing_number_is_a_gap_settled_up_to_the_last_event_before_it(
    write: Write, seqs: list[int], gaps: list[tuple[int, int, int]]
) -> None:
    collected = collect([write("a.jsonl", *(e("A", "w", seq) for seq in seqs))])
    assert collected.ledger.gaps == [Gap("w", first, last) for first, last, _ in gaps]
    assert [loss.settled for loss in losses(collected)] == [settled for _, _, settled in gaps]
    assert all(loss.reason == "gap" for loss in losses(collected))
    assert collected.ledger.loss == "measured"


def test_a_gap_counts_the_events_of_all_emitters_before_it(write: Write) -> None:
    lines = [e("A", "v", 1), e("B", "w", 1), e("C", "v", 2), e("D", "w", 3), e("E", "v", 3)]
    assert losses(collect([write("a.jsonl", *lines)])) == [
        Loss(reason="gap", settled=2, detail="w lacks seq 2", emitter="w", count=1, after=1, before=3)
    ]


def test_under_emitter_order_a_gap_settles_nothing(write: Write) -> None:
    path = write("a.jsonl", e("A", "w", 1), e("B", "w", 4))
    expected = Loss(reason="gap", settled=0, detail="w lacks seq 2-3", emitter="w", count=2, after=0, before=1)
    assert losses(collect([path], order="emitter")) == [expected]


def test_lines_out_of_the_order_of_their_numbers_stay_as_they_stand_under_total(write: Write) -> None:
    collected = collect([write("a.jsonl", e("C", "w", 3), e("A", "w", 1), e("B", "w", 2))])
    assert (actions(collected), losses(collected)) == (["C", "A", "B"], [])


def test_a_gap_among_lines_out_of_order_may_stand_as_early_as_a_later_number(write: Write) -> None:
    collected = collect([write("a.jsonl", e("A", "w", 1), e("D", "w", 4), e("B", "w", 2))])
    assert [loss.settled for loss in losses(collected)] == [1]


def test_a_log_that_begins_midway_has_no_gap_at_its_begin(write: Write) -> None:
    path = write("a.jsonl", e("A", "w", 7), e("B", "w", 9))
    assert collect([path], start="midway").ledger.gaps == [Gap("w", 8, 8)]
    assert collect([path], parse_binding('start = "midway"')).ledger.gaps == [Gap("w", 8, 8)]
    assert collect([path]).ledger.gaps == [Gap("w", 1, 6), Gap("w", 8, 8)]


def test_each_life_of_an_emitter_counts_from_one(write: Write) -> None:
    lines = [e("A", "w", 1, boot="b1"), e("B", "w", 2, boot="b1"), e("C", "w", 1, boot="b2"), e("D", "w", 3, boot="b2")]
    collected = collect([write("a.jsonl", *lines)])
    assert actions(collected) == ["A", "B", "C", "D"]
    detail = "w (boot b2) lacks seq 2"
    expected = Loss(reason="gap", settled=3, detail=detail, emitter="w", count=1, after=2, before=3)
    assert losses(collected) == [expected]


def test_a_boot_on_the_first_record_holds_for_those_after_it(write: Write) -> None:
    start: dict[str, Any] = {"lane": "emitter"}
    lines = [
        e("Start", "w", 1, boot="b1", **start),
        e("A", "w", 2),
        e("Start", "w", 1, boot="b2", **start),
        e("B", "w", 2),
    ]
    collected = collect([write("a.jsonl", *lines)])
    assert (actions(collected), losses(collected), collected.ledger.duplicate) == (["A", "B"], [], 0)


def test_each_run_counts_from_one(write: Write) -> None:
    lines = [e("A", "w", 1, run="r2"), e("B", "w", 1, run="r1"), e("C", "w", 2, run="r1"), e("D", "w", 3, run="r2")]
    first, second = collect([write("a.jsonl", *lines)]).behaviours
    assert [(first.run, len(first.events)), (second.run, len(second.events))] == [("r1", 2), ("r2", 2)]
    assert (first.losses, [loss.settled for loss in second.losses]) == ([], [1])


def test_loss_is_unmeasurable_where_an_event_has_no_number(write: Write) -> None:
    assert collect([write("a.jsonl", e("A", "w", 1), e("B"))]).ledger.loss == "unmeasurable"
    assert collect([write("a.jsonl", e("A", "w", 1))]).ledger.loss == "measured"


def test_many_gaps_are_found_in_time_that_grows_with_the_log_alone(write: Write) -> None:
    collected = collect([write("a.jsonl", *(e("A", "w", seq) for seq in range(1, 20_000, 2)))])
    assert [loss.settled for loss in losses(collected)] == list(range(1, 10_000))


def test_an_event_costs_no_more_memory_than_what_it_holds(write: Write) -> None:
    """A million events, each with a key of its own, must leave room for the replay in one gigabyte."""
    count = 5_000
    lines = (
        e("A", "w", seq, key=f"{seq:032x}", params={"t": f"{seq:032x}"}, time=f"2030-01-01T00:00:00.{seq:06d}Z")
        for seq in range(1, count + 1)
    )
    path = write("a.jsonl", *lines)
    collect([path])
    tracemalloc.start()
    try:
        collected = collect([path])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(actions(collected)) == count
    assert kept / count < 620
