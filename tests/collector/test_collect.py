"""From logs to behaviours: what is read, the ledger, rules at work, and constants from the log."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pytest
from tests.collector.logs import Write, actions, balanced, e, losses, refusal

from specwatch.checker.behaviour import Event, Input, Loss, Source
from specwatch.collector.assemble import collect
from specwatch.collector.binding import parse_binding

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
        count=1,
        after=0,
        begin=1_000_000_001,
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
