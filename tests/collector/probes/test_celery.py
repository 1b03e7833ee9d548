"""What the probes tell of a real Celery on a real Valkey, and that the shipped spec explains it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Bench

EFFECT = ["Publish", "Pickup", "Start", "Execute", "Done", "Ack"]

LATE = {
    "effect": EFFECT,
    "foreign": EFFECT,
    "silent": EFFECT,
    "taken_back": ["Publish", "Pickup", "Start", "Execute", "Undo", "Fail", "Ack"],
    "refuse": ["Publish", "Pickup", "Start", "Reject"],
    "once_again": ["Publish", "Pickup", "Start", "Nack", "Pickup", "Start", "Execute", "Done", "Ack"],
    "ignore": ["Publish", "Pickup", "Start", "Fail", "Ack"],
    "boom": ["Publish", "Pickup", "Start", "Fail", "Ack"],
    "no.such.task": ["Publish", "Pickup", "Reject"],
}


def attempts(story: list[str]) -> dict[str, list[str]]:
    """A story by attempt: the attempts of a retried task overlap."""
    found: dict[str, list[str]] = {}
    for action in story:
        found.setdefault(action[len(action.rstrip("0123456789")) :] or "0", []).append(action.rstrip("0123456789"))
    return found


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_every_ending_of_a_task_is_told_in_order_and_explained_by_the_spec(bench: Bench, pool: str) -> None:
    worker = bench.start_worker(pool=pool)
    ids = {task: bench.publish(task) for task in LATE}
    retried = bench.publish("twice")
    expired = bench.publish("effect", expires=-5)
    later = bench.publish("effect", countdown=0.5)
    bench.await_action(later, "Pickup")
    revoked = bench.publish("effect", countdown=4)  # It is discarded when its ETA comes, and not before.
    bench.revoke(revoked)
    for task, task_id in ids.items():
        bench.await_action(task_id, LATE[task][-1])
    bench.await_action(retried, "Ack2")
    bench.await_action(later, "Ack")
    bench.await_action(revoked, "Revoke")
    worker.stop()
    answer = bench.check()

    assert {task: bench.story(task_id) for task, task_id in ids.items()} == LATE
    assert attempts(bench.story(retried)) == {
        "0": ["Publish", "Pickup", "Start", "Retry", "Ack"],
        "1": ["Pickup", "Start", "Retry", "Ack"],
        "2": ["Pickup", "Start", "Execute", "Done", "Ack"],
    }
    assert bench.story(expired) == ["Publish", "Pickup", "Expire"]
    assert bench.story(later) == EFFECT
    assert bench.story(revoked) == ["Publish", "Pickup", "Revoke"]

    for name, events in bench.files().items():
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), name
        assert (events[0]["action"], events[-1]["action"]) == ("EmitterStart", "EmitterStop"), name
        assert len({(event["emitter"], event["boot"]) for event in events}) == 1, name
    processes = {"prefork": 4, "threads": 2, "solo": 2}  # The producer, the main process, the children.
    assert len(bench.files()) == processes[pool]
    assert (answer["verdict"], answer["reason"]) == ("conforms", None)


def test_events_carry_what_the_message_carries(bench: Bench) -> None:
    bench.start_worker(concurrency=1)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    task_id = bench.publish("once_again", headers={"traceparent": trace})
    bench.await_action(task_id, "Ack")

    events = bench.events(task_id)
    assert {(event["trace_id"], event["span_id"]) for event in events} == {tuple(trace.split("-")[1:3])}
    held = [event for event in events if event["action"] != "Publish"]
    assert {event["params"]["w"] for event in held} == {"A@h"}
    assert len({event["delivery_tag"] for event in held}) == 1
    redelivered = [event["params"]["r"] for event in held if event["action"] == "Pickup"]
    assert redelivered == [False, True]
    assert [event["redelivered"] for event in held] == [False] * 3 + [True] * 5
    assert {event["task"] for event in events} == {"celery_app.once_again"}


def test_an_early_ack_is_told_once_and_before_what_it_allows(bench: Bench) -> None:
    worker = bench.start_worker(ACKS="early")
    endings = {"effect": "Done", "boom": "Fail", "refuse": "Fail", "once_again": "Fail", "ignore": "Fail"}
    ids = {task: bench.publish(task) for task in endings}
    for task, task_id in ids.items():
        bench.await_action(task_id, endings[task])
        bench.await_action(task_id, "Ack")
    worker.stop()

    for task, task_id in ids.items():
        story = bench.story(task_id)
        # The main process tells the ack, a child the rest: either may be first after the receipt.
        body = [action for action in story if action != "Ack"]
        executes = ["Execute"] if task == "effect" else []
        assert body == ["Publish", "Pickup", "Start", *executes, endings[task]]
        assert story.count("Ack") == 1
        assert story.index("Ack") > story.index("Pickup")
    assert bench.check("--config", _config("early"))["verdict"] == "conforms"


def _config(mode: str) -> str:
    return str(Path(__file__).parents[3] / "specs" / "celery" / f"CeleryRedis.{mode}.cfg")


def test_a_killed_worker_leaves_no_stop_and_its_message_is_executed_elsewhere(bench: Bench, tmp_path: Path) -> None:
    first = bench.start_worker("A@h", concurrency=1, VISIBILITY_TIMEOUT="1")
    task_id = bench.publish("hold_once", str(tmp_path / "never"))
    bench.await_action(task_id, "Start")
    first.stop(signal.SIGKILL)
    second = bench.start_worker("B@h", concurrency=1, VISIBILITY_TIMEOUT="1")
    bench.await_action(task_id, "Ack")
    second.stop()

    assert bench.story(task_id) == ["Publish", "Pickup", "Start", *EFFECT[1:]]
    assert [event["params"]["w"] for event in bench.events(task_id)[1:]] == ["A@h"] * 2 + ["B@h"] * 5
    last = {name: events[-1]["action"] for name, events in bench.files().items()}
    assert {action for name, action in last.items() if name.startswith("A@h")} == {"Pickup", "Start"}
    assert {action for name, action in last.items() if name.startswith("B@h")} == {"EmitterStop"}
    assert bench.check()["verdict"] not in ("violates", "diverges")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGQUIT])
def test_what_a_stopping_worker_puts_back_is_told_by_delivery(
    bench: Bench, tmp_path: Path, how: signal.Signals
) -> None:
    """TERM lets the running body end; QUIT ends it, and puts its message back too."""
    gate = tmp_path / "gate"
    first = bench.start_worker("A@h", concurrency=1)
    running = bench.publish("hold_once", str(gate))
    bench.await_action(running, "Start")
    waiting = [bench.publish("effect") for _ in range(3)]
    for task_id in waiting:
        bench.await_action(task_id, "Pickup")
    first.process.send_signal(how)
    if how == signal.SIGTERM:
        gate.touch()
    first.process.wait(60)
    second = bench.start_worker("B@h", concurrency=1)
    for task_id in [running, *waiting]:
        bench.await_action(task_id, "Ack")
    second.stop()

    again = ["Publish", "Pickup", "RestoreOnShutdown", *EFFECT[1:]]
    assert [bench.story(task_id) for task_id in waiting] == [again] * 3
    cut_off = ["Publish", "Pickup", "Start", "RestoreOnShutdown", *EFFECT[1:]]
    assert bench.story(running) == (EFFECT if how == signal.SIGTERM else cut_off)
    assert bench.check()["verdict"] == "conforms"


def test_what_a_lost_connection_puts_back_is_told(bench: Bench, tmp_path: Path) -> None:
    """The body goes on, its ack meets the message's next delivery."""
    gate = tmp_path / "gate"
    worker = bench.start_worker("A@h", concurrency=1)
    task_id = bench.publish("hold", str(gate))
    bench.await_action(task_id, "Start")
    bench.command("CLIENT", "KILL", "TYPE", "normal")
    bench.await_action(task_id, "Pickup", 2)
    gate.touch()
    bench.await_action(task_id, "Execute", 2)
    worker.stop()

    story = bench.story(task_id)
    assert story[:5] == ["Publish", "Pickup", "Start", "RestoreOnShutdown", "Pickup"]
    answer = bench.check()
    assert (answer["verdict"], [finding["invariant"] for finding in answer["findings"]]) == (
        "violates",
        ["NoDoubleExecution"],
    )


def test_the_main_process_tells_what_a_lost_child_cannot(bench: Bench, tmp_path: Path) -> None:
    worker = bench.start_worker(concurrency=1)
    ids = [bench.publish(task) for task in ("die", "die_once")]
    retried = bench.publish("die_and_retry")
    timed_out = bench.publish("too_long", str(tmp_path / "never"))
    for task_id in [*ids, timed_out]:
        bench.await_action(task_id, "Ack")
    revoked = bench.publish("hold", str(tmp_path / "never"))
    bench.await_action(revoked, "Start")
    bench.revoke(revoked, terminate=True)
    bench.await_action(revoked, "Revoke")
    after = bench.publish("effect")
    bench.await_action(after, "Ack")
    bench.await_action(retried, "Ack1")
    worker.stop()

    assert attempts(bench.story(retried)) == {
        "0": ["Publish", "Pickup", "Start", "Retry", "Ack"],
        "1": ["Pickup", "Start", "Execute", "Done", "Ack"],
    }
    assert [bench.story(task_id) for task_id in [*ids, timed_out, revoked, after]] == [
        ["Publish", "Pickup", "Start", "Fail", "Ack"],
        ["Publish", "Pickup", "Start", "Nack", *EFFECT[1:]],
        ["Publish", "Pickup", "Start", "Fail", "Ack"],
        ["Publish", "Pickup", "Start", "Revoke"],
        EFFECT,
    ]
    # What a killed child may have done before it could tell is open: the spec explains all that was told.
    answer = bench.check()
    assert (answer["verdict"], answer["reason"].partition(":")[0]) == ("inconclusive", "open-tail")


def test_an_id_that_is_published_again_is_told_as_that(bench: Bench) -> None:
    """By the producer that published it before, and by a task that replaces itself."""
    worker = bench.start_worker(concurrency=1)
    task_id = bench.publish("effect", task_id="again")
    bench.await_action(task_id, "Ack")
    bench.publish("effect", task_id="again")
    bench.await_action(task_id, "Ack", 2)
    replaced = bench.publish("replace_itself")
    bench.await_action(replaced, "Ack", 2)
    worker.stop()

    assert bench.story(task_id) == [*EFFECT, "Republish", *EFFECT[1:]]
    assert sorted(bench.story(replaced)) == sorted([*EFFECT, "Republish", "Pickup", "Start", "Fail", "Ack"])
    assert bench.check()["verdict"] == "conforms"


@pytest.mark.parametrize(
    ("spoilt", "reason"),
    [
        ({"body": "bm9uc2Vuc2U="}, "the message cannot be decoded"),
        ({"headers": {"eta": "nonsense"}}, None),
        ({"content-type": "application/x-python-serialize"}, None),
    ],
)
def test_a_message_that_no_worker_can_use_is_received_and_rejected(
    bench: Bench, spoilt: dict[str, Any], reason: str | None
) -> None:
    """Celery acks or rejects such a message; each way it is gone."""
    task_id = bench.publish("effect", countdown=0)
    (length, message) = bench.take("celery")
    assert length == 0
    for name, value in spoilt.items():
        message[name] = {**message[name], **value} if isinstance(value, dict) else value
    stranger = {**message, "headers": {}, "body": "e30="}  # No message of a task, and so no event.
    bench.command("LPUSH", "celery", json.dumps(stranger))
    bench.command("LPUSH", "celery", json.dumps(message))
    worker = bench.start_worker(concurrency=1)
    bench.await_action(task_id, "Reject")
    worker.stop()

    assert bench.story(task_id) == ["Publish", "Pickup", "Reject"]
    assert bench.events(task_id)[-1].get("reason") == reason
    assert {event["key"] for event in bench.events()} == {task_id}
    assert "an event could not be told" not in worker.log.read_text()
    assert bench.check()["verdict"] == "conforms"


def test_a_child_that_is_replaced_ends_its_events(bench: Bench) -> None:
    worker = bench.start_worker(concurrency=1, TASKS_PER_CHILD="1")
    for task_id in [bench.publish("effect") for _ in range(2)]:
        bench.await_action(task_id, "Ack")
    worker.stop()
    bodies = [[event["action"] for event in file] for file in bench.files().values()]
    assert bodies.count(["EmitterStart", "Start", "Execute", "Done", "EmitterStop"]) == 2


def test_probes_that_cannot_write_leave_the_application_at_work(bench: Bench, tmp_path: Path) -> None:
    """The directory is a file: nothing can be told, and one line of each process's log says so."""
    (tmp_path / "events").write_text("in the way")
    key = "done"
    worker = bench.start_worker(concurrency=1)
    bench.publish("twice", task_id=key)
    bench.publish("effect")

    from .conftest import eventually

    eventually(lambda: worker.log.read_text().count("succeeded in") == 2, "both tasks are done")
    worker.stop()
    assert worker.log.read_text().count("an event could not be told") == 2
    assert (tmp_path / "events").read_text() == "in the way"


def test_no_process_outlives_its_worker(bench: Bench) -> None:
    worker = bench.start_worker(concurrency=2)
    task_id = bench.publish("effect")
    bench.await_action(task_id, "Ack")
    worker.stop()
    children = [event["pid"] for file in bench.files().values() for event in file[:1] if file[0]["pid"] != os.getpid()]
    assert worker.process.pid in children
    bench.stop_producer()
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
