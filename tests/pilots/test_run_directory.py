"""What becomes of the lines that the processes of a run have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specwatch.pilots.run_directory import Trail, executions, merge, renamed, restarted


def line(action: str, emitter: str, seq: int, monotonic: int, **more: Any) -> dict[str, Any]:
    return {"action": action, "emitter": emitter, "boot": "b", "seq": seq, "monotonic": monotonic, **more}


def write(folder: Path, name: str, *lines: dict[str, Any]) -> None:
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


def test_events_stand_in_the_order_of_the_machines_clock(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", line("Start", "a", 1, 30), line("Done", "a", 2, 50))
    write(tmp_path, "b.jsonl", line("Publish", "b", 1, 10), line("Pickup", "b", 2, 20), line("Ack", "b", 3, 60))
    assert [one["action"] for one in merge(tmp_path)] == ["Publish", "Pickup", "Start", "Done", "Ack"]


def test_an_emitters_numbers_rule_over_its_clock(tmp_path: Path) -> None:
    """An ack is stamped when it was said and numbered when the broker had taken it."""
    write(tmp_path, "a.jsonl", line("Pickup", "a", 1, 40), line("Ack", "a", 2, 30))
    write(tmp_path, "b.jsonl", line("Start", "b", 1, 35))
    assert [one["action"] for one in merge(tmp_path)] == ["Start", "Pickup", "Ack"]


def test_a_pid_that_came_again_is_another_emitter(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", line("Start", "a", 1, 10), {**line("Start", "a", 1, 5), "boot": "c"})
    assert [one["monotonic"] for one in merge(tmp_path)] == [5, 10]


def test_a_trail_gives_every_line_once_and_a_torn_one_when_it_is_whole(tmp_path: Path) -> None:
    trail, file = Trail(tmp_path), tmp_path / "a.jsonl"
    file.write_text('{"n": 1}\n{"n"')
    assert trail.new() == [{"n": 1}]
    assert trail.new() == []
    with file.open("a") as more:
        more.write(": 2}\n")
    write(tmp_path, "b.jsonl", {"n": 3})
    assert trail.new() == [{"n": 2}, {"n": 3}]


def test_rows_should_be_executions_less_what_was_undone() -> None:
    actions = [("Execute", "a"), ("Execute", "a"), ("Undo", "a"), ("Execute", "b"), ("Undo", "b"), ("Done", "c")]
    assert executions({"action": action, "key": key} for action, key in actions) == {"a": 1}


def test_a_retry_is_no_second_start_of_an_attempt() -> None:
    starts = [("a", 0), ("a", 1), ("b", 0), ("b", 0), ("b", 0)]
    assert restarted({"action": "Start", "key": key, "attempt": attempt} for key, attempt in starts) == 1


def test_a_module_is_renamed_in_its_header_alone() -> None:
    text = "text before\n---- MODULE Queue ----\nx == Queue\n---- MODULE Inner ----\n====\n====\n"
    assert renamed(text) == text.replace("MODULE Queue", "MODULE spec")
