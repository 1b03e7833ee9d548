"""What is missing from a log, and where it may have stood."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from tests.collector.logs import Write, actions, balanced, e, losses

from specwatch.checker.behaviour import Gap, Loss, Order
from specwatch.collector.assemble import Collected, collect
from specwatch.collector.binding import parse_binding

SECOND = 10**9
ORDERS: list[Order] = ["total", "emitter", "time"]


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


# Where something is missing


def places(collected: Collected) -> list[tuple[int | None, int, int | None]]:
    """Of each loss: how many records, after and before which place."""
    return [(loss.count, loss.after, loss.before) for loss in losses(collected)]


INTERLEAVED = [
    e("A1", "v", 1, time=1),
    e("B1", "w", 1, time=2),
    e("A2", "v", 2, time=3),
    e("B4", "w", 4, time=4),
    e("A5", "v", 5, time=5),
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("total", [(2, 1, 3), (2, 2, 4)]),
        ("time", [(2, 1, 3), (2, 2, 4)]),
        ("emitter", [(2, 1, 2), (2, 3, 4)]),
    ],
)
def test_a_gap_stands_between_its_neighbours_in_the_emitters_order(
    write: Write, order: Order, expected: list[tuple[int, int, int]]
) -> None:
    collected = collect([write("a.jsonl", *INTERLEAVED)], order=order)
    assert sorted(places(collected)) == expected
    times = {loss.emitter: (loss.begin, loss.end) for loss in losses(collected)}
    assert times == {"w": (2 * SECOND, 4 * SECOND), "v": (3 * SECOND, 5 * SECOND)}


@pytest.mark.parametrize(("skew", "settled"), [("0s", 5), ("1s", 4), ("3s", 2), ("9s", 0)])
def test_under_time_what_surely_came_before_is_settled(write: Write, skew: str, settled: int) -> None:
    lines = [e("A", "v", seq, time=seq) for seq in range(1, 6)] + [e("B", "w", 1, time=6), e("B", "w", 3, time=7)]
    assert [loss.settled for loss in losses(collect([write("a.jsonl", *lines)], order="time", skew=skew))] == [settled]


def test_what_may_not_have_ended_is_not_settled(write: Write) -> None:
    lines = [e("A", "v", 1, time=1, until=9), e("A", "v", 2, time=2), e("B", "w", 1, time=6), e("B", "w", 3, time=7)]
    assert [loss.settled for loss in losses(collect([write("a.jsonl", *lines)], order="time"))] == [0]


def test_a_gap_before_an_emitters_first_event_is_after_nothing(write: Write) -> None:
    lines = [e("A", "v", 1, time=1), e("B", "w", 3, time=2)]
    for order in ORDERS:
        [loss] = losses(collect([write("a.jsonl", *lines)], order=order))
        assert (loss.count, loss.after, loss.before) == (2, -1, 1)
        assert (loss.settled, loss.begin, loss.end) == (0, None, 2 * SECOND)


def test_the_records_beside_a_gap_need_be_no_steps(write: Write) -> None:
    """The start and stop of an emitter bound a gap in time, and the nearest steps in place."""
    lane = {"lane": "emitter"}
    lines = [
        e("EmitterStart", "w", 1, time=1, **lane),
        e("A", "w", 3, time=4),
        e("EmitterStop", "w", 6, time=8, **lane),
        e("B", "v", 1, time=9),
    ]
    first, second = losses(collect([write("a.jsonl", *lines)], order="time"))
    assert (first.count, first.after, first.before) == (1, -1, 0)
    assert (first.begin, first.end) == (1 * SECOND, 4 * SECOND)
    assert (second.count, second.after, second.before) == (2, 0, None)
    assert (second.begin, second.end) == (4 * SECOND, 8 * SECOND)


def test_a_gap_at_the_begin_of_a_later_life_comes_after_the_earlier_one(write: Write) -> None:
    lines = [
        e("A", "w", 1, boot="b1", time=1),
        e("EmitterStop", "w", 3, boot="b1", time=2, lane="emitter"),
        e("B", "w", 2, boot="b2", time=5),
    ]
    for order in ORDERS:
        first, second = sorted(losses(collect([write("a.jsonl", *lines)], order=order)), key=lambda loss: loss.detail)
        assert (first.detail, first.after, first.before) == ("w (boot b1) lacks seq 2", 0, 1)
        assert (second.detail, second.after, second.before) == ("w (boot b2) lacks seq 1", 0, 1)
        assert (second.begin, second.end) == (None, 5 * SECOND)


def test_a_gap_among_lines_out_of_order_may_be_anywhere_between_them(write: Write) -> None:
    lines = [e("X", "v", 1), e("A", "w", 1), e("D", "w", 4), e("B", "w", 2), e("Y", "v", 2)]
    assert places(collect([write("a.jsonl", *lines)])) == [(1, 1, 4)]


def test_a_clock_that_was_set_back_bounds_a_gap_by_both_times(write: Write) -> None:
    [loss] = losses(collect([write("a.jsonl", e("A", "w", 1, time=5), e("B", "w", 3, time=2))], order="time"))
    assert (loss.begin, loss.end) == (2 * SECOND, 5 * SECOND)


def test_a_start_without_a_run_is_of_the_run_of_its_emitter(write: Write) -> None:
    lines = [e("EmitterStart", "w", 1, lane="emitter"), e("A", "w", 2, run="r"), e("B", "w", 4, run="r")]
    collected = collect([write("a.jsonl", *lines)])
    assert collected.ledger.gaps == [Gap("w", 3, 3)]


def test_a_gap_of_an_emitter_without_steps_may_be_of_any_run(write: Write) -> None:
    lane = {"lane": "emitter"}
    lines = [e("A", run="r1"), e("B", run="r2"), e("EmitterStart", "w", 1, **lane), e("EmitterStop", "w", 3, **lane)]
    for behaviour in collect([write("a.jsonl", *lines)]).behaviours:
        assert [(loss.emitter, loss.after, loss.before) for loss in behaviour.losses] == [("w", -1, None)]


def test_a_later_first_number_is_no_gap_midway(write: Write) -> None:
    path = write("a.jsonl", e("A", "w", 5), e("B", "w", 7))
    assert places(collect([path], start="midway")) == [(1, 0, 1)]
    assert places(collect([path], start="state")) == [(1, 0, 1)]


# Numbers of what makes no event

NUMBERED = """
emitter = "$host"
seq = "$n"
time = "$ts"
[[rule]]
match = { event = "step" }
action = "A"
params = { t = "$id" }
[[rule]]
match = { event = "debug" }
ignore = "chatter"
"""


@pytest.mark.parametrize(
    "record", [{"event": "debug"}, {"event": "unknown"}, {"event": "step"}], ids=["ignored", "unmatched", "unparsed"]
)
def test_a_record_that_was_read_is_not_missing(write: Write, record: dict[str, Any]) -> None:
    lines = [{"event": "step", "host": "h", "id": 1, "n": n, "ts": n} for n in (1, 3)]
    collected = collect([write("a.log", lines[0], {**record, "host": "h", "n": 2}, lines[1])], parse_binding(NUMBERED))
    assert collected.ledger.gaps == []
    assert [loss.reason for loss in losses(collected)] == (["unparsed"] if record == {"event": "step"} else [])
    assert balanced(collected.ledger)


def test_records_that_make_no_event_and_come_twice_are_counted_as_what_they_are(write: Write) -> None:
    noise = [{"event": event, "host": "h", "n": n} for n, event in enumerate(("debug", "unknown", "step"), 1)]
    step = {"event": "step", "host": "h", "id": 1, "n": 4}
    one, two = write("a.log", *noise, step), write("b.log", *noise, {**step, "n": 5})
    ledger = collect([one, two], parse_binding(NUMBERED), order="emitter").ledger
    assert (ledger.ignored, ledger.unmatched, ledger.unparsed, ledger.mapped) == ({"chatter": 1}, 1, 1, 2)
    assert ledger.duplicate == 3
    assert balanced(ledger)


def test_an_event_has_its_number_before_what_makes_none(write: Write) -> None:
    """One of two records with one number is a step, the other was ignored: no contradiction."""
    lines = [{"event": "debug", "host": "h", "n": 1}, {"event": "step", "host": "h", "n": 1, "id": 2}]
    collected = collect([write("a.log", *lines)], parse_binding(NUMBERED))
    assert (actions(collected), losses(collected)) == (["A"], [])
    assert balanced(collected.ledger)


# When the log begins


def test_a_log_begins_with_the_first_record_that_has_a_time(write: Write) -> None:
    lines = [e("A", time=7), e("EmitterStart", "w", time=5, lane="emitter"), e("B", time=6)]
    path = write("a.jsonl", *lines)
    assert collect([path], order="total").behaviours[0].began == 5 * SECOND
    assert collect([path], order="time").behaviours[0].began == 5 * SECOND
    assert collect([write("b.jsonl", e("A"))]).behaviours[0].began is None


def test_a_record_that_no_rule_speaks_of_tells_when_its_log_begins(write: Write) -> None:
    lines = [{"event": "hello"}, {"event": "banner", "ts": 3}, {"event": "step", "id": 1, "ts": 4}]
    [behaviour] = collect([write("a.log", *lines)], parse_binding(NUMBERED)).behaviours
    assert behaviour.began == 3 * SECOND


# What is no loss


def test_records_that_no_rule_speaks_of_lose_nothing_and_the_first_three_are_shown(write: Write) -> None:
    step = {"event": "step", "id": 1, "ts": 1}
    path = write("a.log", *({"event": f"other {n}"} for n in range(5)), step)
    collected = collect([path], parse_binding(NUMBERED))
    assert (collected.ledger.unmatched, losses(collected)) == (5, [])
    assert collected.ledger.unmatched_examples == [f'{path}:{n}: {{"event":"other {n - 1}"}}' for n in (1, 2, 3)]


def test_a_traceback_belongs_to_the_line_before(write: Write) -> None:
    traceback = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "ValueError: no"]
    collected = collect([write("a.jsonl", e("A"), *traceback, e("B"))])
    assert (actions(collected), losses(collected)) == (["A", "B"], [])


@pytest.mark.parametrize(
    "line",
    ['{"params": {}}', '{"action": ""}', '{"action": 3}', '{"action": "A", "seq": -1}', '{"action": "A", "part": -1}'],
)
def test_a_native_line_that_says_no_action_is_a_loss_among_good_ones(write: Write, line: str) -> None:
    collected = collect([write("a.jsonl", e("A"), line, e("B"))])
    assert [(loss.reason, loss.settled, loss.after, loss.before) for loss in losses(collected)] == [
        ("unparsed", 1, 0, 1)
    ]
