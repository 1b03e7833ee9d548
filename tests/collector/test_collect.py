"""From logs to behaviours: order, duplicates, gaps, losses, the ledger, and constants from the log."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwatch.checker.behaviour import Event, Gap, Input, Ledger, Loss, Source
from specwatch.collector.assemble import Collected, collect
from specwatch.collector.binding import parse_binding
from specwatch.collector.errors import CollectorError

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a log of lines, or of events given as dicts; answer its path."""

    def write(name: str, *lines: str | dict[str, Any], end: str = "\n") -> str:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path = tmp_path / name
        path.write_bytes(("\n".join(texts) + (end if texts else "")).encode())
        return str(path)

    return write


def e(action: str, emitter: str | None = None, seq: int | None = None, **fields: Any) -> dict[str, Any]:
    own = {"action": action, "emitter": emitter, "seq": seq, **fields}
    return {name: value for name, value in own.items() if value is not None}


def actions(collected: Collected) -> list[str]:
    [behaviour] = collected.behaviours
    return [event.action for event in behaviour.events]


def losses(collected: Collected) -> list[Loss]:
    [behaviour] = collected.behaviours
    return behaviour.losses


def refusal(*paths: str, **options: Any) -> CollectorError:
    with pytest.raises(CollectorError) as caught:
        collect(paths, **options)
    return caught.value


def balanced(ledger: Ledger) -> bool:
    counted = ledger.mapped + sum(ledger.ignored.values()) + ledger.unmatched + ledger.unparsed + ledger.duplicate
    return ledger.read == counted


# Reading


def test_one_log_is_one_behaviour_in_the_order_of_its_lines(write: Write) -> None:
    path = write("a.jsonl", e("A", time=9), e("B", time=1), e("C"))
    collected = collect([path])
    assert actions(collected) == ["A", "B", "C"]
    assert [event.source for event in collected.behaviours[0].events] == [Source(path, line) for line in (1, 2, 3)]
    assert (collected.behaviours[0].order, collected.behaviours[0].losses) == ("total", [])
    assert collected.inputs == [Input(path, hashlib.sha256(Path(path).read_bytes()).hexdigest())]
    assert (collected.ledger.read, collected.ledger.mapped) == (3, 3)


@pytest.mark.parametrize("lines", [[], ["{}"], ["{}", "", "{}"], [""], ["", "  "]], ids=str)
def test_a_log_that_says_nothing_is_an_empty_behaviour_and_no_mistake(write: Write, lines: list[str]) -> None:
    collected = collect([write("a.jsonl", *lines)])
    assert (actions(collected), losses(collected)) == ([], [])
    assert (collected.ledger.mapped, collected.ledger.unparsed) == (0, 0)
    assert balanced(collected.ledger)


def test_an_empty_object_among_good_events_is_a_loss(write: Write) -> None:
    collected = collect([write("a.jsonl", e("A"), "{}", e("B"))])
    assert collected.ledger.unparsed == 1
    assert [loss.settled for loss in losses(collected)] == [1]


@pytest.mark.parametrize(
    "lines",
    [
        ["no json"],
        ['{"event": "task.pickup"}'],
        ["[1]", "3"],
        ["{}", "x"],
        ['{"action": '],
        ['{"action": "A", "time": "2030-01-01T10:00:00"}'],
    ],
    ids=str,
)
def test_a_log_in_which_nothing_is_a_record_is_refused(write: Write, lines: list[str]) -> None:
    path = write("a.jsonl", *lines)
    error = refusal(path)
    assert error.file == path
    assert error.message.startswith("nothing in this log could be read")
    assert error.hint is not None


def test_one_unreadable_log_among_good_ones_is_refused_too(write: Write) -> None:
    good, bad = write("a.jsonl", e("A", time=1)), write("b.jsonl", "no json")
    assert refusal(good, bad).file == bad


def test_an_unknown_format_is_refused_with_those_there_are(write: Write) -> None:
    assert "native" in str(refusal(write("a.jsonl"), format="nativ").hint)


def test_scope_key_is_refused_until_it_is_there(write: Write) -> None:
    assert "scope = run" in refusal(write("a.jsonl"), scope="key").message


def test_events_from_stdin(write: Write) -> None:
    collected = collect(["-"], stdin=io.BytesIO(b'{"action": "A"}\n'))
    assert actions(collected) == ["A"]
    assert collected.inputs == [Input("-", hashlib.sha256(b'{"action": "A"}\n').hexdigest())]


def test_lanes_are_kept_beside_the_behaviour(write: Write) -> None:
    lines = [e("EmitterStart", "w", 1, lane="emitter"), e("A", "w", 2), e("Kill", lane="fault"), e("B", "w", 3)]
    collected = collect([write("a.jsonl", *lines)])
    assert actions(collected) == ["A", "B"]
    assert [event.action for event in collected.fault_events] == ["EmitterStart", "Kill"]
    assert collected.ledger.ignored == {"lane emitter": 1, "lane fault": 1}
    assert balanced(collected.ledger)


# Losses


def test_a_torn_last_line_is_a_loss_at_its_place(write: Write) -> None:
    path = write("a.jsonl", e("A"), e("B"), '{"action": "C", "par', end="")
    assert losses(collect([path])) == [
        Loss(reason="unparsed", settled=2, detail=f"{path}:3 is torn: it has no line end")
    ]


def test_a_last_line_without_end_that_is_whole_is_an_event(write: Write) -> None:
    collected = collect([write("a.jsonl", e("A"), e("B"), end="")])
    assert (actions(collected), losses(collected)) == (["A", "B"], [])


def test_the_first_unread_line_of_a_log_decides_and_the_others_are_counted(write: Write) -> None:
    path = write("a.jsonl", e("A"), "banner", e("B"), "{", "x")
    collected = collect([path])
    detail = f"{path}:2 is not a JSON object, and 2 more records of this log"
    assert losses(collected) == [Loss(reason="unparsed", settled=1, detail=detail)]
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
    one = write("a.jsonl", e("A", "v", time=1), "x", e("D", "v", time=4))
    two = write("b.jsonl", e("B", "w", time=2), e("C", "w", time=3))
    collected = collect([one, two])
    assert actions(collected) == ["A", "B", "C", "D"]
    assert [loss.settled for loss in losses(collected)] == [1]


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
    assert losses(collect([write("a.jsonl", *lines)])) == [Loss(reason="gap", settled=2, detail="w lacks seq 2")]


def test_under_emitter_order_a_gap_settles_nothing(write: Write) -> None:
    path = write("a.jsonl", e("A", "w", 1), e("B", "w", 4))
    expected = Loss(reason="gap", settled=0, detail="w lacks seq 2-3")
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
    assert losses(collected) == [Loss(reason="gap", settled=3, detail="w (boot b2) lacks seq 2")]


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


# Duplicates


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
def test_a_number_with_two_contents_is_a_loss_that_names_both_lines(write: Write, order: Any, settled: int) -> None:
    path = write("a.jsonl", e("A", "w", 1), e("B", "w", 2), e("C", "w", 2))
    collected = collect([path], order=order)
    [loss] = losses(collected)
    assert (loss.reason, loss.settled) == ("unparsed", settled)
    assert loss.detail.startswith(f"w gives the number 2 to two records, {path}:2 and {path}:3")
    assert sorted(actions(collected)) == ["A", "B", "C"]
    assert balanced(collected.ledger)


# Order


def test_several_logs_without_times_have_no_order(write: Write) -> None:
    one, two = write("a.jsonl", e("A", time=1)), write("b.jsonl", e("B"))
    error = refusal(one, two)
    assert (error.file, error.line) == (two, 1)
    assert "--order" in str(error.hint)


def test_a_second_log_without_events_asks_for_no_order(write: Write) -> None:
    assert actions(collect([write("a.jsonl", e("A")), write("b.jsonl")])) == ["A"]


def test_several_logs_with_times_are_ordered_by_them_and_that_is_assumed(write: Write) -> None:
    one = write("a.jsonl", e("B", time="1970-01-01T00:00:02Z"), e("D", time=4))
    two = write("b.jsonl", e("A", time=1), e("C", time="1970-01-01T01:00:03+01:00"))
    collected = collect([one, two])
    assert actions(collected) == ["A", "B", "C", "D"]
    assert [assumption.partition(":")[0] for assumption in collected.assumptions] == ["order"]


def test_logs_in_the_order_named_where_the_user_says_total(write: Write) -> None:
    one, two = write("a.jsonl", e("A")), write("b.jsonl", e("B"))
    assert actions(collect([two, one], order="total")) == ["B", "A"]
    assert actions(collect([two, one], parse_binding('order = "total"'))) == ["B", "A"]


def test_an_option_beats_the_binding(write: Write) -> None:
    path = write("a.jsonl", e("B", "w", 2), e("A", "w", 1))
    assert actions(collect([path], parse_binding('order = "total"'), order="emitter")) == ["A", "B"]


def test_under_time_the_order_of_an_emitter_beats_its_clock(write: Write) -> None:
    one = write("a.jsonl", e("A1", "v", 1, time=5), e("A2", "v", 2, time=1), e("A3", "v", 3, time=9))
    two = write("b.jsonl", e("B1", "w", 1, time=2), e("B2", "w", 2, time=7))
    assert actions(collect([one, two])) == ["B1", "A1", "A2", "B2", "A3"]


def test_ties_in_time_keep_the_order_of_the_log(write: Write) -> None:
    path = write("a.jsonl", e("A", "z", time=1), e("B", "b", time=1), e("C", "z", time=1), e("D", "a", time=1))
    assert actions(collect([path], order="time")) == ["A", "B", "C", "D"]


def test_order_time_needs_times(write: Write) -> None:
    path = write("a.jsonl", e("A", time=1), e("B"))
    assert (refusal(path, order="time").file, refusal(path, order="time").line) == (path, 2)


def test_order_emitter_needs_emitters(write: Write) -> None:
    path = write("a.jsonl", e("A", "w"), e("Kill", lane="fault"), e("B"))
    assert (refusal(path, order="emitter").file, refusal(path, order="emitter").line) == (path, 3)


def test_an_emitter_without_numbers_keeps_the_order_of_its_lines(write: Write) -> None:
    collected = collect([write("a.jsonl", e("B", "w"), e("X", "v"), e("A", "w"))], order="emitter")
    assert actions(collected) == ["X", "B", "A"]
    assert collected.behaviours[0].order == "emitter"


def test_lives_of_an_emitter_follow_each_other_in_time(write: Write) -> None:
    lines = [e("C", "w", 1, boot="b2", time=5), e("B", "w", 2, boot="b1", time=2), e("A", "w", 1, boot="b1", time=1)]
    assert actions(collect([write("a.jsonl", *lines)], order="emitter")) == ["A", "B", "C"]


def test_a_skew_that_is_no_duration_is_refused(write: Write) -> None:
    assert "no duration" in refusal(write("a.jsonl"), order="time", skew="fast").message


numbered = st.lists(
    st.tuples(st.sampled_from("vwx"), st.sampled_from("ABC"), st.integers(0, 3), st.booleans()), min_size=1, max_size=12
)


def log_of(rows: Iterable[tuple[str, str, int, bool]]) -> list[dict[str, Any]]:
    """Numbered events, some of whose numbers are left out."""
    seqs: dict[str, int] = {}
    lines = []
    for emitter, action, time, missing in rows:
        seqs[emitter] = seqs.get(emitter, 0) + 1 + missing
        lines.append(e(action, emitter, seqs[emitter], time=time, params={"x": time}))
    return lines


def without_sources(collected: Collected) -> bytes:
    """All that a verdict is made of."""
    for behaviour in collected.behaviours:
        for event in behaviour.events:
            event.source = None
    return msgspec.json.encode([collected.behaviours, collected.ledger, collected.constants, collected.legend])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=numbered, data=st.data(), order=st.sampled_from(["emitter", "time"]), parts=st.integers(1, 3))
def test_the_order_of_arrival_does_not_matter(write: Write, rows: Any, data: Any, order: Any, parts: int) -> None:
    """Under ``emitter`` and ``time`` numbered lines may come in any order, in any files, and twice."""
    lines = log_of(rows)
    shuffled = data.draw(st.permutations(lines))
    expected = collect([write("whole.jsonl", *lines)], order=order)
    logs = [write(f"part{part}.jsonl", *shuffled[part::parts]) for part in range(parts)]
    assert without_sources(collect(logs, order=order)) == without_sources(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=numbered)
def test_time_order_never_contradicts_an_emitter(write: Write, rows: Any) -> None:
    collected = collect([write("a.jsonl", *log_of(rows))], order="time")
    seqs: dict[str | None, list[int | None]] = {}
    for event in collected.behaviours[0].events:
        seqs.setdefault(event.emitter, []).append(event.seq)
    assert seqs == {emitter: sorted(own, key=lambda seq: seq or 0) for emitter, own in seqs.items()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(
    lines=st.lists(st.sampled_from(['{"action": "A"}', '{"action": "B", "params": {"x": 1}}', "{", "", "{}"])),
    torn=st.booleans(),
)
def test_compression_changes_nothing_that_is_read(write: Write, tmp_path: Path, lines: list[str], torn: bool) -> None:
    path = write("a.jsonl", '{"action": "Z"}', *lines, end="" if torn else "\n")
    data = Path(path).read_bytes()
    for compress in (gzip.compress, zstandard.compress):
        (tmp_path / "other").write_bytes(compress(data))
        plain, other = collect([path]), collect([str(tmp_path / "other")])
        assert [event.action for event in plain.behaviours[0].events] == actions(other)
        assert [loss.settled for loss in losses(plain)] == [loss.settled for loss in losses(other)]
        assert (plain.ledger.read, plain.ledger.unparsed) == (other.ledger.read, other.ledger.unparsed)


# What the binding takes from the log

KEYED = """
[key]
param = "t"
[constants]
Tasks = { keys = true }
Workers = { values = "w" }
N = { count = "keys" }
Most = { count = "Pickup" }
Limit = 3
Names = { "#set" = ["a"] }
"""
KEYED_LINES = [
    e("Pickup", params={"t": "b", "w": "w2"}),
    e("Pickup", params={"t": "a", "w": "w1"}),
    e("Tick"),
    e("Ack", params={"t": "b"}),
]


def test_constants_from_the_log(write: Write) -> None:
    collected = collect([write("a.jsonl", *KEYED_LINES)], parse_binding(KEYED))
    assert collected.constants == {
        "Tasks": {"#set": ["a", "b"]},
        "Workers": {"#set": ["w1", "w2"]},
        "N": 2,
        "Most": 2,
        "Limit": 3,
        "Names": {"#set": ["a"]},
    }
    assert [event.key for event in collected.behaviours[0].events] == ["b", "a", None, "b"]
    assert collected.legend == {}


def test_interned_ids_are_integers_in_sorted_order_with_a_legend(write: Write) -> None:
    binding = parse_binding(KEYED + "[intern]\nt = 0\n")
    collected = collect([write("a.jsonl", *KEYED_LINES)], binding)
    assert collected.constants["Tasks"] == {"#set": [0, 1]}
    assert collected.legend == {"0": "a", "1": "b"}
    assert [event.params.get("t") for event in collected.behaviours[0].events] == [1, 0, None, 1]
    assert [event.key for event in collected.behaviours[0].events] == ["b", "a", None, "b"]


def test_ids_of_several_parameters_are_interned_apart(write: Write) -> None:
    collected = collect([write("a.jsonl", *KEYED_LINES)], parse_binding(KEYED + "[intern]\nt = 0\nw = 1\n"))
    assert collected.legend == {"t=0": "a", "t=1": "b", "w=1": "w1", "w=2": "w2"}
    assert collected.behaviours[0].events[0].params == {"t": 1, "w": 2}


def test_interning_reaches_observed_values_but_not_the_names_of_fields(write: Write) -> None:
    binding = parse_binding("[intern]\nt = 0\n")
    lines = [e("A", params={"t": "b"}, state={"ready": {"#set": ["b", "other"]}}, before={"last": "b"})]
    [event] = collect([write("a.jsonl", *lines)], binding).behaviours[0].events
    assert (event.state, event.before) == ({"ready": {"#set": [0, "other"]}}, {"last": 0})
    error = refusal(write("b.jsonl", e("A", params={"t": "b"}, state={"count": {"b": 1}})), binding=binding)
    assert "interned id 'b'" in error.message


def test_distinct_values_are_distinct_in_tla_too(write: Write) -> None:
    lines = [e("A", params={"v": value}) for value in (1, True, "1", {"a": 1}, [1], 1, {"a": 1})]
    collected = collect([write("a.jsonl", *lines)], parse_binding('[constants]\nV = { values = "v" }'))
    assert [repr(value) for value in collected.constants["V"]["#set"]] == ["1", "[1]", "True", "{'a': 1}", "'1'"]


def test_settings_are_assumptions_and_can_be_overridden(write: Write) -> None:
    binding = parse_binding('[settings]\nvisibility_timeout = "3600s"\nack = "late"\n')
    path = write("a.jsonl", e("A"))
    assert collect([path], binding).assumptions == ["visibility_timeout = 3600s", "ack = late"]
    assert collect([path], binding, settings={"visibility_timeout": "7200"}).assumptions[0] == (
        "visibility_timeout = 7200"
    )
    assert refusal(path, binding=binding, settings={"visiblity_timeout": "1"}).hint == (
        "did you mean 'visibility_timeout'?"
    )
    assert "is a duration" in refusal(path, binding=binding, settings={"visibility_timeout": "long"}).message


# Rules

RULES = """
[[rule]]
match = { event = "task.pickup" }
action = "Pickup"
params = { t = "$task_id" }
emitter = "$hostname/$pid"
seq = "$seq"
time = "$timestamp"

[[rule]]
match = { event = "debug*" }
ignore = "chatter"

[[rule]]
match = { event = "never" }
action = "Never"
"""
PICKUP = {"event": "task.pickup", "task_id": "7f", "hostname": "h", "pid": 3, "seq": 1, "timestamp": 1.000000001}


def test_records_become_events_by_the_rules(write: Write) -> None:
    path = write("a.log", PICKUP, {"event": "debug.x"}, {"event": "other", "n": 1.5}, "torn {")
    collected = collect([path], parse_binding(RULES, "b.toml"))
    assert collected.behaviours[0].events == [
        Event(action="Pickup", params={"t": "7f"}, emitter="h/3", seq=1, time=1_000_000_001, source=Source(path, 1))
    ]
    ledger = collected.ledger
    assert (ledger.read, ledger.mapped, ledger.ignored, ledger.unmatched, ledger.unparsed) == (
        4,
        1,
        {"chatter": 1},
        1,
        1,
    )
    assert ledger.unmatched_examples == [f'{path}:3: {{"event":"other","n":1.5}}']
    assert ledger.unused_rules == ["rule 3 (Never), b.toml:14"]
    assert balanced(ledger)


def test_a_record_that_a_rule_speaks_of_and_cannot_read_is_a_loss(write: Write) -> None:
    path = write("a.log", PICKUP, {"event": "task.pickup", "hostname": "h"})
    [loss] = losses(collect([path], parse_binding(RULES, "b.toml")))
    assert loss == Loss(
        reason="unparsed",
        settled=1,
        detail=f"{path}:2 does not fit rule 1 (Pickup), b.toml:2: it has no field 'task_id'",
    )


def test_native_events_need_no_rules_even_where_there_are_some(write: Write) -> None:
    collected = collect([write("a.jsonl", e("Pickup", params={"t": "7f"}))], parse_binding(RULES + KEYED))
    assert collected.behaviours[0].events[0].key == "7f"
    assert collected.constants["Tasks"] == {"#set": ["7f"]}


def test_unmatched_records_are_an_error_where_the_binding_says_so(write: Write) -> None:
    path = write("a.log", PICKUP, {"event": "other"})
    error = refusal(path, binding=parse_binding('unmatched = "error"\n' + RULES))
    assert (error.file, error.line) == (path, 2)


def test_a_log_of_another_format_is_refused_under_rules(write: Write) -> None:
    path = write("a.log", "[2030-01-01 10:00:00,000: INFO/MainProcess] Task app.job[7f] received")
    assert "another format" in str(refusal(path, binding=parse_binding(RULES)).hint)


def test_runs_of_rules_are_behaviours_of_their_own(write: Write) -> None:
    rules = '[[rule]]\naction = "$"\nrun = "$run"\n'
    collected = collect([write("a.log", {"run": 2}, {"run": 1}, {"run": 2})], parse_binding(rules))
    assert [(behaviour.run, len(behaviour.events)) for behaviour in collected.behaviours] == [("1", 1), ("2", 2)]


# The recorded corpus

CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize("path", sorted((CORPUS / "truth" / "traces").glob("*/*.jsonl")), ids=lambda path: path.stem)
def test_every_judged_trace_is_read_without_loss(path: Path) -> None:
    collected = collect([str(path)])
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(event.action, event.params) for event in collected.behaviours[0].events] == [
        (event["action"], event.get("params", {})) for event in written
    ]
    assert (losses(collected), collected.ledger.gaps) == ([], [])


def test_numbers_out_of_line_order_leave_no_place_for_an_event_without_one(tmp_path: Path) -> None:
    log = tmp_path / "mixed.jsonl"
    lines = [
        {"action": "A", "emitter": "w", "seq": 2},
        {"action": "B", "emitter": "w"},
        {"action": "C", "emitter": "w", "seq": 1},
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(CollectorError, match="its place is not known") as caught:
        collect([str(log)], order="emitter")
    assert caught.value.line == 2


def test_equal_times_stand_in_an_order_that_is_not_that_of_the_arguments(tmp_path: Path) -> None:
    logs = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for log in logs:
        log.write_text(json.dumps({"action": log.stem.upper(), "emitter": log.stem, "time": 1}) + "\n")
    forwards, backwards = (
        [event.action for event in collect([str(log) for log in order]).behaviours[0].events]
        for order in (logs, logs[::-1])
    )
    assert forwards == backwards == ["A", "B"]
