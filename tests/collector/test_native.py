"""Native events, field by field: the form that other programs write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specwatch.checker.behaviour import Event, Source
from specwatch.collector.decode import Broken, native


def decode(line: str) -> Event | Broken:
    [item] = native.decode("a.log", [(7, line.encode())])
    assert isinstance(item, Event | Broken)
    return item


def event(**fields: Any) -> Event:
    item = decode(json.dumps(fields))
    assert isinstance(item, Event), item
    return item


def test_every_field_is_read() -> None:
    line = """{"action": "Execute", "params": {"t": "7f"}, "key": "7f", "emitter": "worker-2", "seq": 41,
        "time": "2030-01-01T10:00:02.181Z", "until": 1893492002.5, "state": {"results": {"7f": 2}},
        "before": {"results": {"7f": 1}}, "expect": ["x > 1"], "lane": "fault", "run": "r1", "after": [["w", 3]],
        "clock": {"w": 4}, "boot": "b1", "attempt": 2, "source": {"file": "worker.log", "line": 21}, "note": [1.5]}"""
    assert decode(line.replace("\n", "")) == Event(
        action="Execute",
        params={"t": "7f"},
        key="7f",
        emitter="worker-2",
        seq=41,
        time=1_893_492_002_181_000_000,
        until=1_893_492_002_500_000_000,
        state={"results": {"7f": 2}},
        before={"results": {"7f": 1}},
        expect=["x > 1"],
        lane="fault",
        run="r1",
        after=[("w", 3)],
        clock={"w": 4},
        boot="b1",
        attempt=2,
        source=Source("worker.log", 21),
        extra={"note": [1.5]},
    )


def test_only_the_action_is_required() -> None:
    assert event(action="A") == Event(action="A", source=Source("a.log", 7))


def test_null_is_as_good_as_nothing() -> None:
    names = ["params", "key", "emitter", "seq", "time", "until", "state", "before", "expect", "lane", "run", "after"]
    assert event(action="A", **dict.fromkeys([*names, "clock", "boot", "attempt", "source"])) == event(action="A")


def test_unknown_fields_are_kept() -> None:
    assert event(action="A", level="info", nested={"a": [1]}).extra == {"level": "info", "nested": {"a": [1]}}


def test_numbers_name_emitters_runs_and_boots() -> None:
    numbered = event(action="A", emitter=3, run=4, boot=5)
    assert (numbered.emitter, numbered.run, numbered.boot) == ("3", "4", "5")


def test_a_source_of_another_form_is_no_source() -> None:
    for source in ("worker.log", {"file": "worker.log"}, {"file": 3, "line": 1}, {"file": "a", "line": "1"}):
        assert event(action="A", source=source).source == Source("a.log", 7)


def test_a_time_of_seconds_is_read_exactly() -> None:
    """A double has no more than microseconds today; the text has what was written."""
    item = decode('{"action": "A", "time": 1796067208.622714123, "level": "info"}')
    assert isinstance(item, Event)
    assert item.time == 1_796_067_208_622_714_123


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"params": {"t": 1}}',
        '{"Action": "A"}',
        '{"action": null}',
        '{"action": 3}',
        '{"action": ""}',
        '{"action": ["A"]}',
        "[]",
        '["A"]',
        '"A"',
        "3",
        '{"action": "A", "params": [1]}',
        '{"action": "A", "params": "t"}',
        '{"action": "A", "seq": "1"}',
        '{"action": "A", "seq": 1.5}',
        '{"action": "A", "seq": true}',
        '{"action": "A", "seq": -1}',
        '{"action": "A", "emitter": ["w"]}',
        '{"action": "A", "emitter": true}',
        '{"action": "A", "lane": "left"}',
        '{"action": "A", "state": [1]}',
        '{"action": "A", "expect": "x"}',
        '{"action": "A", "after": [["w"]]}',
        '{"action": "A", "time": true}',
        '{"action": "A", "time": [1]}',
        '{"action": "A", "time": ""}',
        '{"action": "A", "time": "10:00"}',
        '{"action": "A", "time": "2030-01-01T10:00:00"}',
        '{"action": "A", "time": 1796067208622}',
        '{"action": "A", "time": 1e999999999}',
        '{"action": "A", "until": "soon"}',
        '{"action": "A", "params": {"n": 1e400}}',
        '{"action": "A", "note": 1e400}',
    ],
)
def test_what_is_no_event(line: str) -> None:
    assert isinstance(decode(line), Broken)


def test_the_reason_names_what_is_wrong() -> None:
    reasons = {
        '{"action": "A", "seq": "1"}': "is no event: Expected `int | null`, got `str` - at `$.seq`",
        '{"action": "A", "time": "2030-01-01T10:00:00"}': (
            "is no event: '2030-01-01T10:00:00' has no offset from UTC: Z or +hh:mm"
        ),
        '{"params": {}}': "is no event: Object missing required field `action`",
    }
    assert {line: getattr(decode(line), "why", None) for line in reasons} == reasons
