"""An emitter that tells of its start and not of its stop: what it may still have done is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specwatch.checker.behaviour import Loss
from specwatch.collector.assemble import collect
from specwatch.collector.binding import parse_binding

BINDING = parse_binding('terminal = ["Ack"]\n', "binding.toml")


def losses(tmp_path: Path, *lines: dict[str, Any]) -> list[Loss]:
    log = tmp_path / "events.jsonl"
    numbers: dict[str, int] = {}
    with log.open("w", encoding="utf-8") as file:
        for line in lines:
            emitter = line.get("emitter", "w")
            numbers[emitter] = numbers.get(emitter, 0) + 1
            file.write(json.dumps({"emitter": emitter, "seq": numbers[emitter], **line}) + "\n")
    [behaviour] = collect([str(log)], BINDING).behaviours
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
