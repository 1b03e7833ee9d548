"""An emitter that tells of its start and not of its stop: what it may still have done is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specwatch.checker.behaviour import Loss
from specwatch.collector.assemble import collect
from specwatch.collector.binding import Binding, parse_binding

BINDING = parse_binding('terminal = ["Ack"]\n', "binding.toml")


def losses(tmp_path: Path, *lines: dict[str, Any], binding: Binding = BINDING) -> list[Loss]:
    log = tmp_path / "events.jsonl"
    numbers: dict[str, int] = {}
    with log.open("w", encoding="utf-8") as file:
        for line in lines:
            emitter = line.get("emitter", "w")
            numbers[emitter] = numbers.get(emitter, 0) + 1
            file.write(json.dumps({"emitter": emitter, "seq": numbers[emitter], **line}) + "\n")
    [behaviour] = collect([str(log)], binding).behaviours
    return behaviour.losses


START = {"action": "EmitterStart", "lane": "emitter"}
STOP = {"action": "EmitterStop", "lane": "emitter"}


def event(action: str, key: str | None = "a", emitter: str = "w") -> dict[str, Any]:
    return {"action": action, "params": {"t": key or "a"}, "key": key, "emitter": emitter}


def test_the_keys_that_it_held_are_open_after_its_last_event(tmp_path: Path) -> None:
    found = losses(tmp_path, START, event("Pickup"), event("Pickup", "b"), event("Ack", "b"), event("Pickup", "c", "x"))
    assert [(loss.reason, loss.settled, loss.keys) for loss in found] == [("open-tail", 3, ["a"])]
    assert found[0].detail == "w ended without EmitterStop while it held a"


@pytest.mark.parametrize(
    "lines",
    [
        [START, event("Pickup"), STOP],
        [START, event("Pickup"), event("Ack")],
        [event("Pickup")],
        [START, event("Pickup", "a", "x")],
    ],
    ids=["it stopped", "it held nothing", "it is no probe", "it did nothing"],
)
def test_there_is_no_open_tail_where(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert losses(tmp_path, *lines) == []


def test_an_event_without_a_key_may_be_about_any(tmp_path: Path) -> None:
    [loss] = losses(tmp_path, START, event("Pickup", None))
    assert loss.keys is None


def test_an_event_without_a_key_may_be_about_any_where_others_of_its_action_have_one(tmp_path: Path) -> None:
    [loss] = losses(tmp_path, START, event("Pickup", None), event("Pickup", "b", "x"))
    assert loss.keys is None


def test_an_event_of_an_action_that_has_no_key_holds_none(tmp_path: Path) -> None:
    """A connection that was lost is of no key: what its emitter held are the keys of its other events."""
    lost = {"action": "Disconnect", "params": {"w": "w"}, "key": None, "emitter": "w"}
    [loss] = losses(tmp_path, START, event("Pickup"), lost)
    assert (loss.keys, loss.after) == (["a"], 1)
    assert losses(tmp_path, START, lost, event("Pickup", "a", "x")) == []


def test_a_binding_may_say_how_much_is_unwritten_at_the_most(tmp_path: Path) -> None:
    [loss] = losses(tmp_path, START, event("Pickup"))
    assert loss.count is None
    [loss] = losses(tmp_path, START, event("Pickup"), binding=parse_binding("unwritten = 2", "binding.toml"))
    assert loss.count == 2


# Where it is open


SECOND = 10**9


def test_a_tail_begins_at_the_last_step_and_has_no_end(tmp_path: Path) -> None:
    log = [{**START, "time": 1}, {**event("Pickup"), "time": 2}, {**event("Pickup", "b", "x"), "time": 3}]
    [loss] = losses(tmp_path, *log)
    assert (loss.emitter, loss.count, loss.after, loss.before) == ("w", None, 0, None)
    assert (loss.begin, loss.end) == (2 * SECOND, None)


def test_a_tail_ends_where_the_next_life_begins(tmp_path: Path) -> None:
    log = [
        {**START, "boot": "b1", "seq": 1},
        {**event("Pickup"), "boot": "b1", "seq": 2, "time": 2},
        {**START, "boot": "b2", "seq": 1},
        {**event("Pickup", "b"), "boot": "b2", "seq": 2, "time": 5},
        {**STOP, "boot": "b2", "seq": 3},
    ]
    [loss] = losses(tmp_path, *log)
    assert (loss.after, loss.before, loss.begin, loss.end) == (0, 1, 2 * SECOND, 5 * SECOND)


def test_each_emitter_has_a_tail_of_its_own(tmp_path: Path) -> None:
    found = losses(tmp_path, START, {**START, "emitter": "x"}, event("Pickup"), event("Pickup", "b", "x"))
    assert [(loss.emitter, loss.after, loss.keys) for loss in found] == [("w", 0, ["a"]), ("x", 1, ["b"])]


def test_the_stop_counts_by_its_number_and_not_by_its_line(tmp_path: Path) -> None:
    log = [{**STOP, "seq": 3}, {**event("Pickup"), "seq": 2}, {**START, "seq": 1}]
    assert losses(tmp_path, *log) == []


# Faults


def kill(emitter: str = "w", action: str = "Kill", time: float = 9) -> dict[str, Any]:
    params = {"emitter": emitter}
    return {"lane": "fault", "action": action, "params": params, "emitter": "chaos", "time": time}


@pytest.mark.parametrize("action", ["Kill", "KillWorker", "Crash", "SIGKILL", "OOMKilled"])
def test_a_fault_that_kills_opens_the_tail_of_the_emitter_that_it_names(tmp_path: Path, action: str) -> None:
    [loss] = losses(tmp_path, {**event("Pickup"), "time": 1}, kill(action=action))
    assert (loss.reason, loss.emitter, loss.keys, loss.after) == ("open-tail", "w", ["a"], 0)
    assert loss.detail == "w was killed while it held a"


@pytest.mark.parametrize(
    "lines",
    [
        [{**event("Pickup"), "time": 1}, kill(action="Pause")],
        [{**event("Pickup"), "time": 1}, kill("x")],
        [START, {**event("Pickup"), "time": 1}, STOP, kill()],
        [{**event("Pickup"), "time": 1}, {**event("Ack"), "time": 2}, kill()],
        [{**event("Pickup"), "time": 1}, kill(time=5), {**event("Start"), "time": 20}],
    ],
    ids=["it was paused", "another one was killed", "it had stopped", "it held nothing", "its numbers go on"],
)
def test_a_fault_opens_no_tail_where(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert losses(tmp_path, *lines) == []


def test_a_fault_kills_the_life_that_had_begun(tmp_path: Path) -> None:
    log = [
        {**event("Pickup"), "boot": "b1", "seq": 1, "time": 1},
        {**kill(time=5)},
        {**event("Pickup", "b"), "boot": "b2", "seq": 1, "time": 10},
    ]
    [loss] = losses(tmp_path, *log)
    assert (loss.keys, loss.after, loss.before) == (["a"], 0, 1)


def test_without_boots_or_numbers_the_tail_ends_where_events_go_on(tmp_path: Path) -> None:
    """Stock logs: the next life has the same name. Within the skew no one knows which life an event is of."""
    times = [("a", 1), ("b", 4.5), ("c", 5.5), ("d", 20)]
    log = [{**event("Pickup", key), "time": time, "seq": None} for key, time in times]
    [loss] = losses(tmp_path, *log, {**kill(time=5), "seq": None})
    assert (loss.keys, loss.after, loss.before) == (["a", "b", "c"], 0, 3)


def test_what_a_killed_emitter_did_just_before_may_be_all_that_it_did(tmp_path: Path) -> None:
    log = [{**event("Pickup"), "time": 4.5, "seq": None}, {**event("Start"), "time": 20, "seq": None}]
    [loss] = losses(tmp_path, *log, {**kill(time=5), "seq": None})
    assert (loss.keys, loss.after, loss.before, loss.begin) == (["a"], -1, 1, None)


def test_a_fault_that_did_not_end_an_emitter_leaves_its_tail_where_it_is(tmp_path: Path) -> None:
    log = [START, {**event("Pickup"), "time": 1}, kill(time=5), {**event("Start"), "time": 20}]
    assert [(loss.after, loss.detail) for loss in losses(tmp_path, *log)] == [
        (1, "w ended without EmitterStop while it held a")
    ]


def test_each_life_under_one_name_has_a_tail(tmp_path: Path) -> None:
    log = [{**event("Pickup", key), "time": time, "seq": None} for key, time in [("a", 1), ("b", 20), ("c", 40)]]
    kills = [{**kill(time=time), "seq": None} for time in (30, 10, 50)]
    assert [(loss.after, loss.before) for loss in losses(tmp_path, *log, *kills)] == [(0, 1), (1, 2), (2, None)]


def test_that_nothing_more_was_received_is_an_assumption(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps({"emitter": "w", "seq": n, **line}) + "\n" for n, line in enumerate([START], 1)))
    received = "open tails: w ended without EmitterStop, and had received no key that no event of theirs tells of"
    assert collect([str(log)], BINDING).assumptions == [received]
    bounded = collect([str(log)], parse_binding("unwritten = 2", "binding.toml")).assumptions
    assert bounded == [received, "each of these had left no more than 2 events unwritten"]
