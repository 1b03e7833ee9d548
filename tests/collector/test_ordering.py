"""In which order events are handed over, and that their arrival does not matter."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collector.logs import Write, actions, e, losses, refusal

from specwatch.checker.behaviour import Order
from specwatch.collector.assemble import Collected, collect
from specwatch.collector.binding import parse_binding
from specwatch.collector.errors import CollectorError

ORDERS: list[Order] = ["total", "emitter", "time"]


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


def test_equal_times_stand_by_emitter(write: Write) -> None:
    path = write("a.jsonl", e("A", "z", time=1), e("B", "b", time=1), e("C", "z", time=1), e("D", "a", time=1))
    assert actions(collect([path], order="time")) == ["D", "B", "A", "C"]


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


def test_what_is_handed_over_says_which_order_it_has(write: Write) -> None:
    path = write("a.jsonl", e("A", "w", 1, time=1))
    handed = [collect([path], order=order, skew="50ms").behaviours[0] for order in ORDERS]
    assert [(behaviour.order, behaviour.skew) for behaviour in handed] == [
        ("total", 0),
        ("emitter", 0),
        ("time", 50_000_000),
    ]


@pytest.mark.parametrize(
    ("binding", "skew", "expected"),
    [("", None, "1 s"), ('skew = "50ms"', None, "0.05 s"), ('skew = "50ms"', "2s", "2 s")],
    ids=["by default", "of the binding", "as told"],
)
def test_how_far_clocks_may_differ_is_assumed(write: Write, binding: str, skew: str | None, expected: str) -> None:
    collected = collect([write("a.jsonl", e("A", time=1))], parse_binding(binding), order="time", skew=skew)
    assert collected.assumptions == [
        f"order: emitter order and causes; else times, where clocks differ by at most {expected}"
    ]


def test_an_event_without_an_emitter_is_of_its_file(write: Write) -> None:
    """Its lines keep their order against their own times."""
    one = write("a.jsonl", e("A", time=5), e("B", time=1))
    two = write("b.jsonl", e("C", time=2))
    assert actions(collect([one, two])) == actions(collect([two, one])) == ["C", "A", "B"]


def test_an_emitter_without_numbers_in_several_files_goes_on_in_time(write: Write) -> None:
    """A rotated file is older than the one that it was rotated from, whatever their names."""
    newer = write("worker.log", e("C", "w", time=3), e("D", "w", time=4))
    older = write("worker.log.1", e("A", "w", time=1), e("B", "w", time=2))
    for order in ORDERS[1:]:
        assert actions(collect([newer, older], order=order)) == ["A", "B", "C", "D"]


numbered = st.lists(
    st.tuples(
        st.sampled_from("vwx"),
        st.sampled_from(["A", "B", "EmitterStart", "EmitterStop", "Kill"]),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=14,
)


def log_of(rows: Iterable[tuple[str, str, int, int]]) -> list[dict[str, Any]]:
    """Numbered events, some of whose numbers are left out; some records have two parts, some begin another life."""
    seqs: dict[str, int] = {}
    boots: dict[str, int] = {}
    lines = []
    for emitter, action, time, what in rows:
        own: dict[str, Any] = {"time": time, "params": {"x": time}, "key": time}
        if what == 2:
            boots[emitter] = boots.get(emitter, 0) + 1
            seqs[emitter] = 0
        seqs[emitter] = seqs.get(emitter, 0) + 1 + (what == 1)
        own["boot"] = f"boot {boots.get(emitter, 0)}"
        if action.startswith("Emitter"):
            own["lane"] = "emitter"
        if action == "Kill":
            own |= {"lane": "fault", "params": {"emitter": "v"}}
        lines.append(e(action, emitter, seqs[emitter], **own))
        if what == 3:
            lines.append(e("C", emitter, seqs[emitter], part=1, **own))
    return lines


def without_sources(collected: Collected) -> bytes:
    """All that a verdict is made of."""
    for behaviour in collected.behaviours:
        for event in [*behaviour.events, *collected.fault_events]:
            event.source = None
    kept = msgspec.structs.asdict(collected)
    del kept["inputs"]
    return msgspec.json.encode(kept)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(rows=numbered, data=st.data(), order=st.sampled_from(["emitter", "time"]), parts=st.integers(1, 3))
def test_the_order_of_arrival_does_not_matter(write: Write, rows: Any, data: Any, order: Any, parts: int) -> None:
    """Under ``emitter`` and ``time`` numbered lines may come in any order, in any files, and twice."""
    lines = log_of(rows)
    twice = data.draw(st.lists(st.sampled_from(lines), max_size=2, unique_by=json.dumps))
    shuffled = data.draw(st.permutations([*lines, *twice]))
    expected = collect([write("whole.jsonl", *lines, *twice)], order=order)
    logs = [write(f"part{part}.jsonl", *shuffled[part::parts]) for part in range(parts)]
    assert without_sources(collect(logs, order=order)) == without_sources(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(data=st.data(), order=st.sampled_from(["emitter", "time"]))
def test_lines_without_numbers_may_be_interleaved_anyhow(write: Write, data: Any, order: Any) -> None:
    """What counts is the order of each emitter's own lines."""
    own = {
        emitter: [e(action, emitter, time=time) for time, action in enumerate(actions)]
        for emitter in "vw"
        for actions in [data.draw(st.lists(st.sampled_from("AB"), min_size=1, max_size=4))]
    }
    turns = data.draw(st.permutations([emitter for emitter, lines in own.items() for _ in lines]))
    left = {emitter: iter(lines) for emitter, lines in own.items()}
    expected = collect([write("whole.jsonl", *own["v"], *own["w"])], order=order)
    found = collect([write("other.jsonl", *(next(left[emitter]) for emitter in turns))], order=order)
    assert without_sources(found) == without_sources(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=numbered)
def test_time_order_never_contradicts_an_emitter(write: Write, rows: Any) -> None:
    collected = collect([write("a.jsonl", *log_of(rows))], order="time")
    seqs: dict[tuple[str | None, str | None], list[tuple[int | None, int]]] = {}
    for event in collected.behaviours[0].events:
        seqs.setdefault((event.emitter, event.boot), []).append((event.seq, event.part))
    assert seqs == {life: sorted(own, key=str) for life, own in seqs.items()}


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
