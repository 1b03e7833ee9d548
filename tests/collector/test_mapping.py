"""What rules make of records beyond one action each: several events, one of several, what is expected, other values."""

from __future__ import annotations

from typing import Any

import pytest
from tests.collector.logs import Write, balanced, losses

from specwatch.checker.behaviour import Event, Gap
from specwatch.collector.assemble import collect
from specwatch.collector.binding import bounds, parse_binding, with_settings
from specwatch.collector.errors import CollectorError


def told(event: Event) -> dict[str, Any]:
    """An event as what it says, without what it does not."""
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    default = Event(action="")
    return {name: value for name, value in fields.items() if name != "source" and value != getattr(default, name)}


def events(write: Write, rules: str, *records: dict[str, Any]) -> list[dict[str, Any]]:
    """What the rules make of records, all of which they can read."""
    collected = collect([write("a.log", *records)], parse_binding(rules, "b.toml"))
    assert (collected.ledger.unparsed, collected.ledger.unmatched) == (0, 0)
    assert balanced(collected.ledger)
    return [told(event) for event in collected.behaviours[0].events]


# One record, several events

SEQUENCE = """
emitter = "w"
seq = "$n"
[[rule]]
actions = ["Claim", { action = "Execute", params = { t = "$id", by = "$w" } }, "Ack"]
params = { t = "$id" }
before = { claimed = false }
state = { rows = "$rows" }
expect = ["rows[t] <= $limit"]
"""
CLAIM = {"n": 1, "id": "a", "w": "w1", "rows": 1, "limit": 3}


def test_a_record_may_be_several_events_in_a_row(write: Write) -> None:
    """What was observed before it was so before the first of them, what after it after the last."""
    same = {"emitter": "w", "seq": 1}
    assert events(write, SEQUENCE, CLAIM) == [
        {"action": "Claim", "params": {"t": "a"}, **same, "before": {"claimed": False}},
        {"action": "Execute", "params": {"t": "a", "by": "w1"}, **same, "part": 1},
        {
            "action": "Ack",
            "params": {"t": "a"},
            **same,
            "part": 2,
            "state": {"rows": 1},
            "expect": ["rows[t] <= $limit"],
            "extra": {"limit": 3},
        },
    ]


def test_the_events_of_one_record_have_one_number_and_are_one_in_the_ledger(write: Write) -> None:
    binding = parse_binding(SEQUENCE)
    collected = collect([write("a.log", CLAIM, {**CLAIM, "n": 2})], binding)
    assert (losses(collected), collected.ledger.gaps) == ([], [])
    assert (collected.ledger.read, collected.ledger.mapped, collected.ledger.duplicate) == (2, 2, 0)


def test_a_record_of_several_events_that_comes_twice_is_one_duplicate(write: Write) -> None:
    collected = collect([write("a.log", CLAIM, CLAIM, {**CLAIM, "n": 2})], parse_binding(SEQUENCE))
    assert [event.part for event in collected.behaviours[0].events] == [0, 1, 2, 0, 1, 2]
    assert (collected.ledger.duplicate, collected.ledger.mapped) == (1, 2)
    assert balanced(collected.ledger)


def test_a_lost_record_may_have_been_as_many_events_as_a_rule_makes(write: Write) -> None:
    collected = collect([write("a.log", CLAIM, {**CLAIM, "n": 4})], parse_binding(SEQUENCE))
    assert collected.ledger.gaps == [Gap("w", 2, 3)]
    assert [(loss.count, loss.after, loss.before) for loss in losses(collected)] == [(6, 2, 3)]


def test_native_parts_are_missing_and_double_one_by_one(write: Write) -> None:
    parts = [{"action": "A", "emitter": "w", "seq": 1, "part": part} for part in (0, 1, 1, 3)]
    collected = collect([write("a.jsonl", *parts, {"action": "A", "emitter": "w", "seq": 3, "part": 1})])
    assert (collected.ledger.duplicate, collected.ledger.mapped) == (1, 4)
    assert [event.part for event in collected.behaviours[0].events] == [0, 1, 3, 1]
    assert collected.ledger.gaps == [Gap("w", 1, 1), Gap("w", 2, 3)]
    assert [(loss.count, loss.after, loss.before) for loss in losses(collected)] == [(1, 1, 2), (2, 2, 3)]


# One record, one of several

ANY = """
[[rule]]
actions = { any = ["Drop", "Expire", "Reject"] }
params = { t = "$id" }
"""


def test_a_record_may_be_one_of_several_actions(write: Write) -> None:
    expected = {"action": "Drop", "alternatives": ["Expire", "Reject"], "params": {"t": 1}}
    assert events(write, ANY, {"id": 1}) == [expected]


def test_native_events_have_alternatives_and_parts_too(write: Write) -> None:
    log = write("a.jsonl", {"action": "A", "alternatives": ["B"], "part": 0}, {"action": "A", "part": 1})
    assert [told(event) for event in collect([log]).behaviours[0].events] == [
        {"action": "A", "alternatives": ["B"]},
        {"action": "A", "part": 1},
    ]


# What is expected, observed, and spelt otherwise

EXPECT = """
[[rule]]
action = "Append"
params = { i = "$node" }
expect = ["Len(log[i]) = $lastIndex + 1", "$i # $role $$ $m.term"]

[values.role]
StateLeader = "Leader"
"""


def test_expressions_stay_text_and_the_values_of_their_fields_go_with_the_event(write: Write) -> None:
    """A parameter is known by its name; a field's value is never pasted into the text."""
    record = {"node": "n1", "lastIndex": 4, "role": "StateLeader", "m": {"term": 2}, "i": "no one's"}
    [event] = events(write, EXPECT, record)
    assert event["expect"] == ["Len(log[i]) = $lastIndex + 1", "$i # $role $$ $m.term"]
    assert event["extra"] == {"lastIndex": 4, "role": "Leader", "m": {"term": 2}}


def test_a_field_that_an_expression_needs_and_the_record_lacks_is_a_loss(write: Write) -> None:
    path = write("a.log", {"node": "n1", "lastIndex": 4, "role": "x", "m": 1}, {"node": "n1", "role": "x", "m": 1})
    [loss] = losses(collect([path], parse_binding(EXPECT, "b.toml")))
    assert loss.detail.endswith("it has no field 'lastIndex'")


def test_observed_values_may_be_deltas(write: Write) -> None:
    rules = '[[rule]]\naction = "A"\nstate = { n = { "#delta" = "$more" }, m = { x = { "#delta" = -1 } } }\n'
    expected = {"action": "A", "state": {"n": {"#delta": 2}, "m": {"x": {"#delta": -1}}}}
    assert events(write, rules, {"more": 2}) == [expected]


def test_spellings_reach_observed_values_and_parts_of_parameters(write: Write) -> None:
    rules = """
    [[rule]]
    action = "A"
    params = { m = { role = "$r", to = "$to" } }
    state = { role = "$r", votes = { role = "$kind" } }
    before = { role = "$old" }
    [values.role]
    StateLeader = "Leader"
    StateFollower = "Follower"
    """
    [event] = events(write, rules, {"r": "StateLeader", "to": "StateLeader", "kind": "other", "old": "StateFollower"})
    assert event["params"] == {"m": {"role": "Leader", "to": "StateLeader"}}
    assert event["state"] == {"role": "Leader", "votes": {"role": "other"}}
    assert event["before"] == {"role": "Follower"}


# Bounds

TIMED = """
start = { mode = "midway", within = "visibility_timeout" }
[hidden.VisTimeout]
after = "Pickup"
min = "visibility_timeout"
[hidden.Sweep]
after = "Start"
min = 0.5
max = "1m"
[hidden.Check]
[settings]
visibility_timeout = "1h"
"""
SECOND = 10**9


def test_the_bounds_of_hidden_actions_are_durations_or_settings() -> None:
    binding = parse_binding(TIMED)
    assert bounds(binding) == {
        "VisTimeout": ("Pickup", 3600 * SECOND, None),
        "Sweep": ("Start", SECOND // 2, 60 * SECOND),
    }
    assert binding.start_within == 3600 * SECOND


def test_a_setting_that_is_overridden_changes_all_that_it_bounds() -> None:
    """A bare number is seconds."""
    binding = parse_binding(TIMED)
    assert bounds(binding, {"visibility_timeout": "2"})["VisTimeout"] == ("Pickup", 2 * SECOND, None)
    overridden = with_settings(binding, {"visibility_timeout": "2s"})
    assert bounds(overridden)["VisTimeout"] == ("Pickup", 2 * SECOND, None)
    assert overridden.start_within == 2 * SECOND
    assert binding.start_within == 3600 * SECOND, "the binding itself is as it was"


def test_a_setting_that_no_one_knows_is_refused() -> None:
    with pytest.raises(CollectorError) as caught:
        bounds(parse_binding(TIMED), {"visiblity_timeout": "2"})
    assert caught.value.hint == "did you mean 'visibility_timeout'?"
