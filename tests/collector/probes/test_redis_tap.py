"""What a tap at the broker tells of a Celery application, beside what its probes tell of the same run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Bench

SPECS = Path(__file__).parents[3] / "specs" / "celery"
PATIENCE = 60.0


class Tap:
    """A tap that listens at a bench's broker."""

    def __init__(self, bench: Bench, folder: Path, *options: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "specwatch.collector.taps.redis", bench.url, str(folder), *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "listening\n"

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.wait(PATIENCE) == 0

    def story(self, key: str) -> list[str]:
        """The actions of a key, with the attempt where that is not 0."""
        [path] = (path for path in self.folder.glob("tap-*.jsonl") if "bodies" not in path.name)
        events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [f"{event['action']}{event['attempt'] or ''}" for event in events if event.get("key") == key]

    def check(self, config: str, binding: str = "tap") -> dict[str, Any]:
        return check(SPECS / f"binding.{binding}.toml", self.folder, config)


@pytest.fixture
def tap(bench: Bench, tmp_path: Path) -> Iterator[Tap]:
    tap = Tap(bench, tmp_path / "tapped")
    yield tap
    tap.end()


def check(target: Path, folder: Path, config: str) -> dict[str, Any]:
    """What ``specwatch check`` says of a folder of logs in a mode."""
    command = [sys.executable, "-m", "specwatch.cli", "check", str(target), str(folder), "--json"]
    done = subprocess.run(
        [*command, "--config", str(SPECS / f"CeleryRedis.{config}.cfg")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def by_key(answer: dict[str, Any], keys: list[str]) -> dict[str, str]:
    """The verdict of each key."""
    assert "findings" in answer, answer
    return {**dict.fromkeys(keys, "conforms"), **{one["key"]: one["verdict"] for one in answer["findings"]}}


def contradictions(
    bench: Bench, tap: Tap, keys: list[str], config: str, binding: str = "tap"
) -> tuple[list[str], str, str]:
    """Keys of which one says that all is well and the other that it is not; and what both say of the run."""
    tap.end()
    bench.stop_producer()
    tapped = tap.check(config, binding)
    probed = check(SPECS / "binding.toml", bench.events_directory, config)
    ours, theirs = by_key(tapped, keys), by_key(probed, keys)
    decided = ("conforms", "violates", "diverges")
    found = [key for key in keys if ours[key] != theirs[key] and ours[key] in decided and theirs[key] in decided]
    return found, tapped["verdict"], probed["verdict"]


HEARD = {
    "effect": ["Publish", "Pickup", "Ack"],
    "foreign": ["Publish", "Pickup", "Ack"],
    "silent": ["Publish", "Pickup", "Ack"],
    "taken_back": ["Publish", "Pickup", "Ack"],
    "refuse": ["Publish", "Pickup", "Ack"],
    "once_again": ["Publish", "Pickup", "Nack", "Pickup", "Ack"],
    "ignore": ["Publish", "Pickup", "Ack"],
    "boom": ["Publish", "Pickup", "Ack"],
    "no.such.task": ["Publish", "Pickup", "Ack"],
}


@pytest.mark.parametrize("acks", ["late", "early"])
def test_every_message_is_heard_in_order_and_no_verdict_contradicts_the_probes(
    bench: Bench, tap: Tap, acks: str
) -> None:
    worker = bench.start_worker(pool="solo", ACKS=acks)
    ids = {task: bench.publish(task) for task in HEARD}
    retried = bench.publish("twice")
    expired = bench.publish("effect", expires=-5)
    later = bench.publish("effect", countdown=0.5)
    last = "Ack" if acks == "late" else "Done"
    bench.await_action(retried, f"{last}2")
    bench.await_action(expired, "Expire")
    bench.await_action(later, last)
    for task in ("effect", "foreign", "silent"):
        bench.await_action(ids[task], last)
    worker.stop()
    keys = [*ids.values(), retried, expired, later]
    config = {"late": "faulty", "early": "early"}[acks]
    found, tapped, probed = contradictions(bench, tap, keys, config)
    # Acked early, nothing is left to be given back.
    heard = HEARD if acks == "late" else {**HEARD, "once_again": ["Publish", "Pickup", "Ack"]}
    assert {task: tap.story(task_id) for task, task_id in ids.items()} == heard
    assert sorted(tap.story(retried)) == sorted(
        ["Publish", "Pickup", "Retry", "Ack", "Pickup1", "Retry1", "Ack1", "Pickup2", "Ack2"]
    )
    assert tap.story(later) == ["Publish", "Pickup", "Ack"]
    assert (found, probed) == ([], "conforms")
    assert tapped in ("conforms", "inconclusive")


def test_a_second_execution_is_in_doubt_from_the_broker_alone(bench: Bench, tap: Tap, tmp_path: Path) -> None:
    """Its two receipts are heard, and the timeout between them, which no probe can tell of; not what came of them."""
    go = tmp_path / "go"
    for name in ("A@h", "B@h"):
        bench.start_worker(name, pool="solo", VISIBILITY_TIMEOUT="1")
    task = bench.publish("hold", str(go))
    bench.await_action(task, "Start", 2)
    go.touch()
    bench.await_action(task, "Ack", 2)
    other = bench.publish("effect")
    bench.await_action(other, "Ack")
    assert contradictions(bench, tap, [task, other], "faulty") == ([], "inconclusive", "violates")
    story = tap.story(task)
    assert story[:4] == ["Publish", "Pickup", "VisTimeout", "Pickup"]
    assert story.count("Ack") == 2


# On a machine with much else to do a notification may be looked into when its message has already moved on.
@pytest.mark.nightly
def test_notifications_tell_less_and_contradict_nothing(bench: Bench, tmp_path: Path) -> None:
    """Of a message that is received, put back, received again and acked twice, and of others that come and go."""
    bench.command("CONFIG", "SET", "notify-keyspace-events", "Kh")
    tap = Tap(bench, tmp_path / "tapped", "--source", "keyspace")
    go = tmp_path / "go"
    for name in ("A@h", "B@h"):
        bench.start_worker(name, pool="solo", VISIBILITY_TIMEOUT="1")
    task = bench.publish("hold", str(go))
    bench.await_action(task, "Start", 2)
    go.touch()
    bench.await_action(task, "Ack", 2)
    others = [bench.publish(name) for name in ("effect", "boom", "twice", "once_again", "effect")]
    bench.await_action(others[2], "Ack2")
    bench.await_action(others[3], "Ack")
    bench.await_action(others[4], "Ack")
    assert contradictions(bench, tap, [task, *others], "faulty", "keyspace") == ([], "inconclusive", "violates")
    assert tap.story(task)[:4] == ["Publish", "Pickup", "Ack", "Pickup"]  # Gone: an ack, for all that it can tell.


def test_a_server_that_does_not_notify_is_an_error_that_says_what_to_do(bench: Bench, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "specwatch.collector.taps.redis", bench.url, str(tmp_path / "tapped")]
    done = subprocess.run(
        [*command, "--source", "keyspace"], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert "the server does not notify of hashes: notify-keyspace-events is ''" in done.stderr
    assert "CONFIG SET notify-keyspace-events Kh" in done.stderr
