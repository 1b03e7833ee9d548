"""What a tap at the server tells of a consumer, beside what its probes tell of the same run."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.collector.probes.nats_bench import SPECS, Bench, Event, Scenario, bench, judged, steps

from specwatch.collector.probes import configure, emitter
from specwatch.collector.probes.nats import executed, handling, instrument, skipped
from specwatch.collector.taps.nats import Reading, listen
from specwatch.collector.taps.writing import Writer
from specwatch.pilots import runtime

HEARD_WITHIN = 10.0
"""Seconds within which the server's word of something is heard, on a machine with much else to do."""
BINDING = str(SPECS / "binding.tap.toml")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with runtime.start("embedded", directory=tmp_path_factory.mktemp("nats"), needs=["nats"]) as up:
        yield up["nats"].url


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(emitter, "_failures", 0)
    yield
    configure("")


class Heard:
    """A scenario as its probes and as a tap have told it."""

    def __init__(self, folder: Path) -> None:
        self.probed = folder / "probed.jsonl"
        self.tapped = folder / "tapped"

    def lines(self) -> int:
        """How much the tap has heard so far."""
        return len(self.story()) if list(self.tapped.glob("tap-*.jsonl")) else 0

    def story(self) -> list[str]:
        """``Pickup 1``, …: what the tap heard, with the number of the delivery."""
        [path] = (path for path in self.tapped.glob("tap-*.jsonl") if "bodies" not in path.name)
        return [" ".join(str(event[name]) for name in ("action", "attempt") if name in event) for event in steps(path)]

    def verdicts(self, config: str, *more: str) -> tuple[str, str]:
        """By the tap alone, and by the probes alone."""
        options = ("--config", str(SPECS / f"JetStream.{config}.cfg"), *more)
        return judged(BINDING, self.tapped, *options)["verdict"], judged("nats", self.probed, *options)["verdict"]


def hear(
    url: str, folder: Path, scenario: Scenario, *, max_deliver: int | None = None, lines: int = 0, **how: Any
) -> Heard:
    """Run a scenario, and listen to it: until so many lines were written, or for some seconds."""
    heard = Heard(folder)
    configure(heard.probed)

    async def scene() -> None:
        name = f"t{folder.name}".replace(".", "_")
        async with bench(url, name, how, max_deliver) as one:
            client = await nats.connect(url, allow_reconnect=False)
            writer, ready, end = Writer(heard.tapped, "tap"), asyncio.Event(), asyncio.Event()
            reading = Reading(name, "c", how.get("key", "Nats-Msg-Id"))
            tap = asyncio.create_task(listen(client, reading, writer, ready=ready.set, end=end))
            await ready.wait()
            await scenario(one)
            await client.flush()
            deadline = time.monotonic() + HEARD_WITHIN
            while heard.lines() < lines and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            end.set()
            await tap
            writer.close()
            await client.close()

    asyncio.run(scene())
    configure("")
    return heard


def work(message: Any, *, done: bool = False) -> None:
    with handling(message):
        skipped() if done else executed()


async def once(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    message = await bench.take("A")
    work(message)
    await message.ack_sync()


async def twice(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    first, second = await bench.take("A"), await bench.take("B")
    for message in (first, second):
        work(message)
        await message.ack_sync()


async def twice_guarded(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    first, second = await bench.take("A"), await bench.take("B")
    work(first)
    work(second, done=True)
    await first.ack()
    await second.ack_sync()


async def failed(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    message = await bench.take("A")
    with pytest.raises(ZeroDivisionError), handling(message):
        raise ZeroDivisionError
    await message.nak()
    again = await bench.take("B")
    work(again)
    await again.ack_sync()


async def delayed(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    await (await bench.take("A")).nak(delay=0.2)
    message = await bench.take("B")
    await message.in_progress()
    work(message)
    await message.ack_sync()


async def terminated(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    await (await bench.take("A")).term()


async def parked(bench: Bench) -> None:
    await bench.publish(Nats_Msg_Id="m")
    first, second = await bench.take("A"), await bench.take("B")
    assert await bench.nothing_comes()
    work(first)
    await first.ack_sync()
    await second.ack_sync()


async def published_twice(bench: Bench) -> None:
    js = instrument(bench.client.jetstream())
    for _ in range(2):
        await js.publish(bench.name, headers={"Nats-Msg-Id": "m"})
    message = await bench.take("A")
    work(message)
    await message.ack_sync()


HEARD: dict[Any, tuple[list[str], str, str]] = {
    once: (["Publish", "PubAck", "Pickup 0", "Ack 0"], "conforms", "conforms"),
    twice: (["Publish", "PubAck", "Pickup 0", "Pickup 1", "Ack 0", "Ack 1"], "inconclusive", "violates"),
    failed: (["Publish", "PubAck", "Pickup 0", "Nack 0", "Pickup 1", "Ack 1"], "inconclusive", "conforms"),
    delayed: (
        ["Publish", "PubAck", "Pickup 0", "NackDelayed 0", "Pickup 1", "InProgress 1", "Ack 1"],
        "inconclusive",
        "conforms",
    ),
    terminated: (["Publish", "PubAck", "Pickup 0", "Reject 0"], "conforms", "conforms"),
    published_twice: (["Publish", "PubAck", "Republish", "PubAck", "Pickup 0", "Ack 0"], "conforms", "conforms"),
}


@pytest.mark.parametrize("scenario", HEARD, ids=lambda scenario: scenario.__name__)
def test_every_word_is_heard_in_order_and_no_verdict_contradicts_the_probes(
    url: str, tmp_path: Path, scenario: Scenario
) -> None:
    story, by_tap, by_probes = HEARD[scenario]
    heard = hear(url, tmp_path, scenario, lines=len(story))
    # The server answers a publisher while it delivers already: when that is heard is no matter.
    words = heard.story()
    assert words.count("PubAck") == story.count("PubAck")
    assert [word for word in words if word != "PubAck"] == [word for word in story if word != "PubAck"]
    assert heard.verdicts("faulty") == (by_tap, by_probes)
    tapped, probed = heard.verdicts("early")
    assert tapped == probed or "inconclusive" in (tapped, probed)


def test_with_a_guard_what_came_twice_was_executed_once(url: str, tmp_path: Path) -> None:
    heard = hear(url, tmp_path, twice_guarded)
    assert heard.story()[-4:] == ["Pickup 0", "Pickup 1", "Ack 0", "Ack 1"]
    assert heard.verdicts("idempotent") == ("conforms", "conforms")
    assert heard.verdicts("check-then-insert") == ("inconclusive", "conforms")
    assert heard.verdicts("faulty")[0] == "inconclusive"


def test_what_is_parked_is_heard_though_no_worker_is_told(url: str, tmp_path: Path) -> None:
    heard = hear(url, tmp_path, parked, max_deliver=2)
    assert heard.story() == ["Publish", "PubAck", "Pickup 0", "Pickup 1", "Park", "Ack 0", "Ack 1"]
    assert heard.verdicts("idempotent", "--constant", "MaxDeliver=2")[0] == "conforms"
    assert heard.verdicts("faulty", "--constant", "MaxDeliver=2") == ("inconclusive", "conforms")


@pytest.mark.parametrize(
    ("key", "data", "headers", "expected"),
    [
        ("Nats-Msg-Id", b"", {}, "1"),
        ("X-Order", b"", {"X_Order": "o"}, "o"),
        ("$.order.id", b'{"order": {"id": 7}}', {}, "7"),
    ],
    ids=["sequence", "header", "path"],
)
def test_the_tap_and_the_probes_know_a_message_by_the_same(
    url: str, tmp_path: Path, key: str, data: bytes, headers: dict[str, str], expected: str
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(data, **headers)
        message = await bench.take("A")
        work(message)
        await message.ack_sync()

    heard = hear(url, tmp_path, scenario, key=key)
    [path] = (path for path in heard.tapped.glob("tap-*.jsonl") if "bodies" not in path.name)
    assert {event["key"] for event in (*steps(path), *steps(heard.probed))} == {expected}
    assert heard.verdicts("faulty") == ("conforms", "conforms")


def test_the_command_listens_until_it_is_told_to_end(url: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(url, "command", {}) as one:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "specwatch.collector.taps.nats", url, "command", "c", str(tmp_path / "tapped"),
                stdout=subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout is not None
            assert await process.stdout.readline() == b"listening\n"
            await one.client.jetstream().publish("command", headers={"Nats-Msg-Id": "m"})
            await (await one.take("A")).ack_sync()
            await one.client.flush()
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0

    asyncio.run(scene())
    heard = Heard(tmp_path)
    assert heard.story() == ["Publish", "PubAck", "Pickup 0", "Ack 0"]
    assert judged(BINDING, heard.tapped)["verdict"] == "conforms"


@pytest.mark.parametrize(
    ("of", "says"), [("nats://127.0.0.1:1", "no answer from the server"), (None, "there is no stream none")]
)
def test_where_it_cannot_listen_it_says_why(url: str, tmp_path: Path, of: str | None, says: str) -> None:
    arguments = [of or url, "none", "c", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "specwatch.collector.taps.nats", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"error: {says}")


def test_words_of_a_newer_form_and_of_other_consumers_are_told_apart() -> None:
    reading = Reading("S", "c", "Nats-Msg-Id")
    read: Any = reading._about
    assert read("$JS.ACK.S.c.2.7.9.1796106632.0") == (7, 1)
    assert read("$JS.ACK._.HASH.S.c.2.7.9.1796106632.0.token") == (7, 1)
    assert read("$JS.ACK.S.d.2.7.9.1796106632.0") is None
    assert read("$JS.ACK.short") is None


class Said:
    """A message as a client gives it."""

    def __init__(self, subject: str, reply: str = "", data: bytes = b"", **headers: str) -> None:
        self.subject = subject
        self.reply = reply
        self.data = data
        self.headers = headers


def test_what_is_heard_in_another_order_is_told_in_its_own() -> None:
    """The server has many hands: a delivery may be heard before its publication, and a word before its delivery."""
    now = 4_000_000_000 * 10**9
    ack, again = f"$JS.ACK.S.c.1.1.1.{now}.0", f"$JS.ACK.S.c.2.1.2.{now}.0"
    said = [
        (Said("s", ack), False),  # delivered
        (Said("s", "_INBOX.answer"), True),  # published
        (Said("_INBOX.answer", data=b'{"stream": "S", "seq": 1}'), False),
        (Said(again), False),  # acked
        (Said("s", again), False),  # delivered
    ]
    for key, headers in (("1", {}), ("m", {"id": "m"})):
        reading = Reading("S", "c", "id")
        for one, _ in said:
            one.headers = headers
        told = [seen for one, published in said for seen in reading.read(one, published=published)]
        assert [seen.action for seen in told] == ["Publish", "Pickup", "PubAck", "Pickup", "Ack"]
        assert {seen.key for seen in told} == {key}
        assert [seen.attempt for seen in told] == [None, 0, None, 1, 1]


@pytest.mark.parametrize(("key", "headers"), [("1", {}), ("m", {"id": "m"})])
def test_an_answer_that_is_heard_before_what_it_answers_is_told_after_it(key: str, headers: dict[str, str]) -> None:
    reading = Reading("S", "c", "id")
    answer = Said("_INBOX.answer", data=b'{"stream": "S", "seq": 1}')
    assert list(reading.read(answer, published=False)) == []
    assert list(reading.read(Said("_INBOX.other", data=b"nothing of a stream"), published=False)) == []
    question = Said("s", "_INBOX.answer")
    question.headers = headers
    told = list(reading.read(question, published=True))
    assert [(seen.action, seen.key) for seen in told] == [("Publish", key), ("PubAck", key)]
    assert [seen.action for seen in reading.read(Said("s", "_INBOX.third", id="n"), published=True)] == ["Publish"]


def test_events_are_native(url: str, tmp_path: Path) -> None:
    heard = hear(url, tmp_path, once)
    [path] = (path for path in heard.tapped.glob("tap-*.jsonl") if "bodies" not in path.name)
    pickup: Event = next(event for event in steps(path) if event["action"] == "Pickup")
    assert pickup["params"] == {"t": "m", "a": 0, "r": False}
    [body] = (path for path in heard.tapped.glob("tap-bodies-*.jsonl"))
    assert json.loads(body.read_text(encoding="utf-8"))["body"] == "begins"
