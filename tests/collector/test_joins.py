"""Two records that are one event with an interval: a span's start and its end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.collector.logs import Write, balanced, losses

from specwatch.checker.behaviour import Event, Gap, Loss, Order, Source
from specwatch.collector.assemble import Collected, collect
from specwatch.collector.binding import Binding, parse_binding

SPANS = """
emitter = "$host"
seq = "$n"
time = "$ts"
[key]
param = "t"
[[rule]]
match = { name = "execute" }
action = "Execute"
join = { start = { kind = "start" }, end = { kind = ["end", "error"] }, on = "span_id" }
params = { t = "$task", rows = "$rows" }
state = { rows = "$rows" }
[[rule]]
action = "Tick"
"""
SECOND = 10**9


def start(span: str, ts: float, n: int | None = None, host: str = "h", **more: Any) -> dict[str, Any]:
    own = {"name": "execute", "kind": "start", "span_id": span, "ts": ts, "n": n, "host": host, "task": span.upper()}
    return {**own, **more}


def end(span: str, ts: float, n: int | None = None, host: str = "h", **more: Any) -> dict[str, Any]:
    return {"name": "execute", "kind": "end", "span_id": span, "ts": ts, "n": n, "host": host, "rows": 1, **more}


def tick(ts: float, n: int | None = None, host: str = "h") -> dict[str, Any]:
    return {"name": "tick", "ts": ts, "n": n, "host": host}


def told(collected: Collected) -> list[tuple[Any, ...]]:
    """Action, key, and interval in seconds, of each event."""

    def seconds(time: int | None) -> float | None:
        return None if time is None else time / SECOND

    [behaviour] = collected.behaviours
    return [(event.action, event.key, seconds(event.time), seconds(event.until)) for event in behaviour.events]


def spans(binding: str = SPANS, **options: Any) -> Binding:
    return parse_binding(binding, "b.toml")


def test_a_start_and_an_end_are_one_event_that_stands_where_it_starts(write: Write) -> None:
    path = write("a.log", start("a", 1, 1), tick(2, 2), end("a", 3, 3, task="A2"))
    collected = collect([path], spans())
    [event, _] = collected.behaviours[0].events
    assert event == Event(
        action="Execute",
        params={"t": "A2", "rows": 1},
        key="A2",
        emitter="h",
        seq=1,
        time=SECOND,
        until=3 * SECOND,
        state={"rows": 1},
        source=Source(path, 1),
    )
    assert (losses(collected), collected.ledger.gaps) == ([], []), "the number of the end is not missing"
    assert (collected.ledger.read, collected.ledger.mapped) == (3, 3)
    assert balanced(collected.ledger)


def test_spans_may_overlap(write: Write) -> None:
    path = write("a.log", start("a", 1, 1), start("b", 2, 2), end("a", 3, 3), end("b", 4, 4))
    assert told(collect([path], spans())) == [("Execute", "A", 1, 3), ("Execute", "B", 2, 4)]


def test_an_id_that_comes_again_belongs_to_the_latest_start(write: Write) -> None:
    path = write("a.log", start("a", 1), end("a", 2), start("a", 3), start("a", 4), end("a", 5), end("a", 6))
    assert told(collect([path], spans())) == [
        ("Execute", "A", 1, 2),
        ("Execute", "A", 3, 6),
        ("Execute", "A", 4, 5),
    ]


def test_an_end_may_be_in_another_log(write: Write) -> None:
    """A rotation in between does no harm, whatever the logs are named."""
    older = write("worker.log.1", start("a", 1, 1), start("b", 2, 2))
    newer = write("worker.log", end("b", 3, 3), end("a", 4, 4))
    for paths in ([older, newer], [newer, older]):
        collected = collect(paths, spans(), order="emitter")
        assert told(collected) == [("Execute", "A", 1, 4), ("Execute", "B", 2, 3)]
        assert losses(collected) == []


def test_numbered_halves_may_come_in_any_order(write: Write) -> None:
    path = write("a.log", end("b", 4, 4), end("a", 3, 3), start("b", 2, 2), start("a", 1, 1))
    collected = collect([path], spans(), order="emitter")
    assert told(collected) == [("Execute", "A", 1, 3), ("Execute", "B", 2, 4)]
    assert losses(collected) == []


def test_a_start_without_an_end_is_in_flight(write: Write) -> None:
    """It has happened or not; a parameter that only the end gives may have any value."""
    path = write("a.log", tick(1, 1), start("a", 2, 2), tick(3, 3), tick(9, 1, host="v"))
    orders: list[Order] = ["total", "time", "emitter"]
    for order in orders:
        collected = collect([path], spans(), order=order)
        assert [event.action for event in collected.behaviours[0].events] == ["Tick"] * 3
        [loss] = losses(collected)
        assert (loss.reason, loss.emitter, loss.count, loss.keys) == ("in-flight", "h", 1, ["A"])
        assert (loss.after, loss.before, loss.begin, loss.end) == (0, None, 2 * SECOND, None)
        assert loss.event == Event(
            action="Execute",
            params={"t": "A"},
            key="A",
            emitter="h",
            seq=2,
            time=2 * SECOND,
            source=Source(path, 2),
        )
        assert collected.ledger.mapped == 4
        assert collected.ledger.gaps == []


def test_what_is_in_flight_is_in_the_sets_that_constants_are_and_is_interned(write: Write) -> None:
    binding = parse_binding("[intern]\nt = 0\n[constants]\nTasks = { keys = true }\n" + SPANS)
    collected = collect([write("a.log", start("a", 1), end("a", 2), start("b", 3))], binding)
    assert collected.constants["Tasks"] == {"#set": [0, 1]}
    [loss] = losses(collected)
    assert loss.event is not None
    assert (loss.event.params, loss.keys) == ({"t": 1}, ["B"])


def test_an_end_without_a_start_is_a_loss_in_a_log_that_begins_at_the_beginning(write: Write) -> None:
    path = write("a.log", tick(1, 1), end("a", 2, 2, task="A"), tick(3, 3))
    collected = collect([path], spans())
    assert [event.action for event in collected.behaviours[0].events] == ["Tick", "Tick"]
    what = f"{path}:2 ends what has no start in the log: rule 1 (Execute), b.toml:7"
    assert losses(collected) == [
        Loss(reason="unparsed", settled=1, detail=what, count=1, after=0, before=1, begin=1 * SECOND, end=2 * SECOND)
    ]
    assert (collected.ledger.unparsed, collected.ledger.mapped) == (1, 2)
    assert collected.ledger.unparsed_examples == [what]
    assert collected.ledger.gaps == []
    assert balanced(collected.ledger)


def test_midway_an_end_without_a_start_is_an_event_that_began_at_no_known_time(write: Write) -> None:
    path = write("a.log", tick(1, 7), end("a", 2, 8, task="A"), tick(3, 9))
    orders: list[Order] = ["total", "time"]
    for order in orders:
        collected = collect([path], spans(), start="midway", order=order)
        assert told(collected) == [("Tick", None, 1, None), ("Execute", "A", None, 2), ("Tick", None, 3, None)]
        assert (losses(collected), collected.ledger.mapped) == ([], 3)


def test_midway_an_end_that_does_not_say_enough_is_a_loss(write: Write) -> None:
    path = write("a.log", tick(1, 7), end("a", 2, 8))
    [loss] = losses(collect([path], spans(), start="midway"))
    assert loss.reason == "unparsed"
    assert "it has no field 'task'" in loss.detail


@pytest.mark.parametrize(
    ("lacking", "why"),
    [("rows", "it has no field 'rows'"), ("ts", "its end has no time"), ("span_id", "it has no field 'span_id'")],
)
def test_an_end_that_does_not_fit_is_a_loss(write: Write, lacking: str, why: str) -> None:
    path = write("a.log", start("a", 1), {**end("a", 2), lacking: None})
    collected = collect([path], spans())
    assert losses(collected)[-1].detail == f"{path}:2 does not fit rule 1 (Execute), b.toml:7: {why}"
    assert collected.ledger.unparsed == 1
    assert balanced(collected.ledger)


def test_the_end_is_the_later_time_where_a_clock_was_set_back(write: Write) -> None:
    assert told(collect([write("a.log", start("a", 5), end("a", 2))], spans())) == [("Execute", "A", 2, 5)]


def test_the_end_may_have_a_time_of_its_own(write: Write) -> None:
    rules = SPANS.replace('action = "Execute"', 'action = "Execute"\nuntil = "$done"')
    path = write("a.log", start("a", 1), end("a", 9, done=4))
    assert told(collect([path], spans(rules))) == [("Execute", "A", 1, 4)]


def test_records_may_be_joined_on_several_fields(write: Write) -> None:
    rules = SPANS.replace('on = "span_id"', 'on = ["host", "$span_id"]')
    path = write("a.log", start("a", 1), start("a", 2, host="v"), end("a", 3), end("a", 4, host="v"))
    assert told(collect([path], spans(rules))) == [("Execute", "A", 1, 3), ("Execute", "A", 2, 4)]


def test_a_joined_record_may_be_one_of_several_actions(write: Write) -> None:
    rules = SPANS.replace('action = "Execute"', 'actions = { any = ["Execute", "Skip"] }')
    [event] = collect([write("a.log", start("a", 1), end("a", 2))], spans(rules)).behaviours[0].events
    assert (event.action, event.alternatives) == ("Execute", ["Skip"])


def test_halves_that_come_twice_are_duplicates(write: Write) -> None:
    halves = [start("a", 1, 1), end("a", 2, 2)]
    one, two = write("a.log", *halves), write("b.log", *halves, tick(3, 3))
    collected = collect([one, two], spans(), order="emitter")
    assert told(collected) == [("Execute", "A", 1, 2), ("Tick", None, 3, None)]
    assert (collected.ledger.duplicate, losses(collected)) == (2, [])
    assert balanced(collected.ledger)


def test_a_start_that_another_log_has_with_its_end_is_not_in_flight(write: Write) -> None:
    one, two = write("a.log", start("a", 1, 1)), write("b.log", start("a", 1, 1), end("a", 2, 2))
    collected = collect([one, two], spans(), order="emitter")
    assert (told(collected), losses(collected)) == ([("Execute", "A", 1, 2)], [])


def test_a_copy_of_a_log_joins_nothing(write: Write) -> None:
    text = [start("a", 1), end("a", 2), start("b", 3)]
    collected = collect([write("a.log", *text), write("b.log", *text)], spans(), order="total")
    assert told(collected) == [("Execute", "A", 1, 2)]
    assert [loss.reason for loss in losses(collected)] == ["in-flight"]


def test_a_lost_end_leaves_a_gap_and_something_in_flight(write: Write) -> None:
    collected = collect([write("a.log", start("a", 1, 1), tick(3, 3))], spans())
    assert collected.ledger.gaps == [Gap("h", 2, 2)]
    assert sorted(loss.reason for loss in losses(collected)) == ["gap", "in-flight"]
