"""What is missing from a log is always said, is filled with what its emitter can have told, and takes its time last."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from tests.checker.generator import Application, Log, lose, write

from specwatch.checker.answers import Answers
from specwatch.cli.app import app

CONFIG = Path(__file__).parents[2] / "specs" / "celery" / "CeleryRedis.idempotent.cfg"

SPEC = """---- MODULE Jobs ----
EXTENDS Naturals
CONSTANTS Tasks, Workers
VARIABLES taken, rows
Init == taken = [t \\in Tasks |-> {}] /\\ rows = [t \\in Tasks |-> 0]
Take(t, w) == taken' = [taken EXCEPT ![t] = @ \\union {w}] /\\ UNCHANGED rows
Store(t) == taken[t] # {} /\\ rows[t] < 2 /\\ rows' = [rows EXCEPT ![t] = @ + 1] /\\ UNCHANGED taken
End(t) == rows[t] > 0 /\\ UNCHANGED <<taken, rows>>
Next == \\E t \\in Tasks : (\\E w \\in Workers : Take(t, w)) \\/ Store(t) \\/ End(t)
NeverBoth == \\A t \\in Tasks : taken[t] # {"w1", "w2"}
====
"""
BINDING = """
spec = "Jobs.tla"
config = "Jobs.cfg"
scope = "key"
terminal = ["End"]
{more}
[key]
param = "t"
[constants]
Tasks = {{ keys = true }}
"""

Json = dict[str, Any]


def e(action: str, t: str, emitter: str, seq: int, **params: str) -> Json:
    time = f"2030-01-01T10:00:{seq:02}Z"
    own = {"t": t, **params}
    return {"action": action, "key": t, "emitter": emitter, "seq": seq, "time": time, "params": own}


def judged(folder: Path, events: list[Json], *, more: str = "", options: tuple[str, ...] = ()) -> Json:
    (folder / "Jobs.tla").write_text(SPEC, encoding="utf-8")
    (folder / "Jobs.cfg").write_text('INIT Init NEXT Next INVARIANT NeverBoth CONSTANT Workers = {"w1", "w2"}')
    (folder / "binding.toml").write_text(BINDING.format(more=more), encoding="utf-8")
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    arguments = ["check", str(folder / "binding.toml"), str(folder / "log.jsonl"), "--json", *options]
    result = CliRunner().invoke(app, arguments)
    found: Json = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code
    return found


WITH_A_GAP = [e("Take", "a", "p", 1, w="w1"), e("Store", "a", "p", 3), e("End", "a", "p", 4)]


def test_what_an_emitter_lost_may_be_about_another_worker_unless_each_tells_of_its_own(tmp_path: Path) -> None:
    """Had w2 taken the task as well, the invariant would be broken; p has only ever told of w1."""
    assert judged(tmp_path, WITH_A_GAP)["undecided_by_reason"] == {"gap": 1}
    assert judged(tmp_path, WITH_A_GAP, more='by_emitter = ["w"]')["verdict"] == "conforms"


def test_what_is_never_lost_is_not_what_is_missing(tmp_path: Path) -> None:
    """A second Take in the gap would break the invariant; a Store in it breaks nothing."""
    found = judged(tmp_path, WITH_A_GAP, more='never_lost = ["Take"]')
    assert found["verdict"] == "conforms"
    assert "what is missing was none of these: Take" in found["assumptions"]
    assert judged(tmp_path, WITH_A_GAP, more='never_lost = ["Store"]')["undecided_by_reason"] == {"gap": 1}


def test_what_is_never_lost_must_be_an_action_that_is_logged(tmp_path: Path) -> None:
    found = judged(tmp_path, WITH_A_GAP, more='never_lost = ["Stored"]')
    assert found["errors"][0]["message"] == "never_lost: the spec has no action Stored"
    found = judged(tmp_path, WITH_A_GAP, more='never_lost = ["Store"]', options=("--hidden", "Store"))
    assert found["errors"][0]["message"] == "never_lost: Store is hidden, and so has no record"


KILLED = [
    {"action": "EmitterStart", "lane": "emitter", "emitter": "p", "seq": 1},
    e("Take", "a", "p", 2, w="w1"),
    e("Take", "a", "q", 1, w="w1"),
    e("Store", "a", "q", 2),
    e("End", "a", "q", 3),
]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ("", "inconclusive"),
        ("unwritten = 1", "inconclusive"),
        ('unwritten = 1\nnever_lost = ["Take"]', "conforms"),
        ('by_emitter = ["w"]\nunwritten = 1', "conforms"),
    ],
)
def test_an_open_tail_holds_no_more_than_may_be_unwritten_and_lost(tmp_path: Path, more: str, word: str) -> None:
    assert judged(tmp_path, KILLED, more=more)["verdict"] == word


def test_an_emitter_that_tells_of_several_workers_may_have_lost_a_record_of_any(tmp_path: Path) -> None:
    events = [*WITH_A_GAP, e("Take", "b", "p", 5, w="w2")]
    found = judged(tmp_path, events, more='by_emitter = ["w"]')
    assert {finding["key"]: finding["verdict"] for finding in found["findings"]}["a"] == "inconclusive"


def test_a_parameter_that_no_event_of_the_emitter_has_is_left_open(tmp_path: Path) -> None:
    events = [e("Take", "a", "q", 1, w="w1"), e("Store", "a", "p", 1), e("Store", "a", "p", 3)]
    assert judged(tmp_path, events, more='by_emitter = ["w"]')["undecided_by_reason"] == {"gap": 1}


def test_keys_of_which_nothing_is_missing_are_judged_first(tmp_path: Path) -> None:
    broken = [e("Take", "b", "q", 1, w="w1"), e("Take", "b", "q", 2, w="w2"), e("End", "b", "q", 3)]
    found = judged(tmp_path, [*WITH_A_GAP, *broken], more='start = { mode = "init", first = ["Take"] }')
    assert [finding["key"] for finding in found["findings"]] == ["b", "a"]


def test_keys_in_flight_at_the_end_of_the_log_are_named(tmp_path: Path) -> None:
    events = [e("Take", key, "p", seq, w="w1") for seq, key in enumerate("abcde", 1)]
    found = judged(tmp_path, [*events, e("Store", "a", "p", 6), e("End", "a", "p", 7)])
    assert found["verdict"] == "conforms"
    assert "conforms as far as the log goes: no terminal action ends b, c, d and 1 more" in found["assumptions"]


def test_a_loss_that_is_proven_is_counted_by_emitter_and_hour(tmp_path: Path) -> None:
    """No Store was told of, and no task ends without one."""
    one = [e("Take", "a", "p", 1, w="w1"), e("End", "a", "p", 2)]
    other = [e("Take", "b", "q", 1, w="w1"), e("End", "b", "q", 2)]
    late = [{**event, "time": event["time"].replace("T10", "T11")} for event in other]
    found = judged(tmp_path, [*one, *late], more='lossy = ["Store"]')
    assert found["ledger"]["loss"] == "proven"
    assert found["ledger"]["proven"] == [
        {"emitter": "p", "hour": "2030-01-01T10", "count": 1},
        {"emitter": "q", "hour": "2030-01-01T11", "count": 1},
    ]


# --- logs of a real kind ----------------------------------------------------------------------------------------------


def checked(folder: Path, log: Log) -> Json:
    paths = write(Random(0), log, folder)
    result = CliRunner().invoke(app, ["check", "celery", *paths, "--config", str(CONFIG), "--json"])
    found: Json = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code
    return found


@pytest.mark.parametrize("part", range(2))
def test_no_record_is_missing_in_silence(tmp_path: Path, part: int) -> None:
    """Any record of a process that is neither its first nor its last is taken away: the log says so, and a key that
    conforms all the same does so by name.
    """
    draw = Random(part)
    log = Application(draw).run(4)
    lives = [(record.event["emitter"], record.event["boot"]) for record in log.records]
    inner = [
        place
        for place, life in enumerate(lives)
        if life in lives[:place] and life in lives[place + 1 :] and log.records[place].key is not None
    ]
    for place in draw.sample(inner, 3):
        records = [record for other, record in enumerate(log.records) if other != place]
        found = checked(tmp_path / str(place), Log(records))
        emitter, seq = lives[place][0], log.records[place].event["seq"]
        assert {"emitter": emitter, "from": seq, "to": seq} in found["ledger"]["gaps"]
        assert found["verdict"] in ("conforms", "inconclusive")
        if found["verdict"] == "conforms":
            assert any(f"lacks seq {seq}" in line for line in found["assumptions"])


@pytest.mark.parametrize("part", range(2))
def test_a_key_is_answered_alike_by_the_steps_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    draw = Random(part)
    log = lose(draw, Application(draw).run(5), 0.05)
    found = checked(tmp_path / "alike", log)
    monkeypatch.setattr(Answers, "as_first", lambda self, behaviour: None)
    own = checked(tmp_path / "own", log)
    for verdict in (found, own):
        for name in ("inputs", "assumptions"):
            del verdict[name]
    assert found == own
