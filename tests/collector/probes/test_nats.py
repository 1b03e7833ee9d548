"""What a nats-py application tells of itself, on a real server; and what the server does with what is said to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.collector.probes import nats_bench
from tests.collector.probes.nats_bench import ACK_WAIT, PATIENCE, SPECS, Bench, Event, judged, story

from specwatch.collector.probes import configure, emitter, failures
from specwatch.collector.probes.nats import executed, handling, instrument, skipped, undone
from specwatch.pilots import runtime


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with runtime.start("embedded", directory=tmp_path_factory.mktemp("nats"), needs=["nats"]) as up:
        yield up["nats"].url


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that this process emits to, for the length of a test."""
    monkeypatch.setattr(emitter, "_failures", 0)
    yield tmp_path / "events.jsonl"
    configure("")


@pytest.fixture
def play(url: str, events: Path) -> Callable[..., list[Event]]:
    """``play(scenario, key=…)``: run it on a new stream; the events that it told of."""
    return lambda scenario, **how: nats_bench.play(url, events, scenario, **how)


def verdict(path: Path, *options: str) -> str:
    """What ``specwatch check nats`` says of the events."""
    document = judged("nats", path, *options)
    if not document["findings"]:
        return str(document["verdict"])
    [finding] = document["findings"]
    return " ".join(str(finding[name]) for name in ("verdict", "at", "invariant") if finding[name] is not None)


def test_the_ordinary_life_of_a_message(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m-1", traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
        message = await bench.take("A")
        with handling(message):
            executed(rows=1)
        await message.ack_sync()
        assert await bench.pending() == 0

    told = play(scenario)
    life = ["Pickup(A, 0)", "Start(A, 0)", "Execute(A, 0)", "Done(A, 0)", "Ack(A, 0)"]
    assert story(told) == ["Publish", "PubAck", *life]
    assert {event["key"] for event in told} == {event["params"]["t"] for event in told} == {"m-1"}
    assert told[1]["params"] == {"t": "m-1", "seq": 1, "dup": False}
    assert told[2]["params"] == {"t": "m-1", "w": "A", "a": 0, "r": False}
    assert (told[2]["stream_seq"], told[2]["consumer_seq"], told[2]["consumer"]) == (1, 1, "c")
    assert told[4]["rows"] == 1
    assert {event.get("trace_id") for event in told[2:]} == {"a" * 32}
    assert told[-1]["time"] < told[-1]["until"]
    assert verdict(events) == "conforms"
    assert verdict(events, "--strict") == "conforms"


def test_a_late_ack_settles_the_redelivered_copy_and_the_other_ack_succeeds_too(
    play: Callable[..., list[Event]], events: Path
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        late, other = await bench.take("A"), await bench.take("B")
        await late.ack_sync()
        assert await bench.pending() == 0
        assert await bench.nothing_comes()
        assert (await other.ack_sync()).data == b""

    assert story(play(scenario)) == ["Publish", "PubAck", "Pickup(A, 0)", "Pickup(B, 1)", "Ack(A, 0)", "Ack(B, 1)"]
    assert verdict(events) == "conforms"
    # The spec's own sign of it: after the late ack nothing can come.
    with events.open("a") as file:
        file.write('{"action": "Pickup", "params": {"t": "m", "w": "C", "a": 2}, "time": "2100-01-01T00:00:00Z"}\n')
    assert verdict(events, "--order", "total") == "diverges 7"


def test_a_late_ack_settles_also_what_is_due_and_not_yet_delivered(play: Callable[..., list[Event]]) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish()
        message = await bench.take("A")
        await asyncio.sleep(2 * ACK_WAIT)  # The server's timer is what is tried here.
        await message.ack_sync()
        assert await bench.nothing_comes()

    play(scenario)


@pytest.mark.parametrize("late", [False, True], ids=["in time", "of another's delivery"])
def test_a_nak_makes_it_due_at_once(play: Callable[..., list[Event]], events: Path, late: bool) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message = await bench.take("A")
        if late:
            await bench.take("B")
        await message.nak()
        again = await bench.take("C", ACK_WAIT / 2)
        await again.ack_sync()

    told = story(play(scenario))
    assert told[-3:] == ["Nack(A, 0)", f"Pickup(C, {1 + late})", f"Ack(C, {1 + late})"]
    assert verdict(events) == "conforms"


def test_a_nak_with_a_delay_sets_the_timer_anew(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message = await bench.take("A")
        await message.nak(delay=3 * ACK_WAIT)
        assert await bench.nothing_comes("A")
        await (await bench.take("B")).ack_sync()

    assert story(play(scenario))[-4:] == ["Pickup(A, 0)", "NackDelayed(A, 0)", "Pickup(B, 1)", "Ack(B, 1)"]
    assert verdict(events) == "conforms"


def test_a_term_of_another_s_delivery_is_the_end_of_it(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message, _ = await bench.take("A"), await bench.take("B")
        await message.term()
        assert await bench.nothing_comes()

    assert story(play(scenario))[-2:] == ["Pickup(B, 1)", "RejectSent(A, 0)"]
    assert verdict(events) == "conforms"


def test_in_progress_keeps_the_timer_from_running_out(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message = await bench.take("A")
        waiting = asyncio.create_task(bench.take("B"))
        for _ in range(6):
            await asyncio.sleep(ACK_WAIT / 2)  # The server's timer is what is tried here.
            await message.in_progress()
        assert not waiting.done()
        await waiting

    told = story(play(scenario))
    assert told[-8:] == ["Pickup(A, 0)", *["InProgress(A, 0)"] * 6, "Pickup(B, 1)"]
    assert verdict(events) == "conforms"


def test_max_deliver_parks_it(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message, _ = await bench.take("A"), await bench.take("B")
        assert await bench.nothing_comes()
        await message.nak()
        assert await bench.nothing_comes()

    assert story(play(scenario, max_deliver=2))[-3:] == ["Pickup(A, 0)", "Pickup(B, 1)", "Nack(A, 0)"]
    assert verdict(events, "--constant", "MaxDeliver=2") == "conforms"
    assert verdict(events, "--constant", "MaxDeliver=1") == "diverges 4"


def test_an_ack_without_an_answer_is_told_as_sent(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message = await bench.take("A")
        await message.ack()
        with pytest.raises(nats.errors.MsgAlreadyAckdError):
            await message.ack()

    assert story(play(scenario))[-2:] == ["Pickup(A, 0)", "AckSent(A, 0)"]
    assert (verdict(events), failures()) == ("conforms", 0)


def test_an_ack_whose_answer_did_not_come_is_told_as_sent(play: Callable[..., list[Event]]) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        message = await bench.take("A")
        with pytest.raises(nats.errors.TimeoutError):
            await message.ack_sync(timeout=0)

    told = play(scenario)
    assert (story(told)[-1], told[-1]["exception"]) == ("AckSent(A, 0)", "TimeoutError")


def test_two_executions_violate_and_a_guard_skips(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(Nats_Msg_Id="m")
        first, second = await bench.take("A"), await bench.take("B")
        with handling(first):
            executed()
            undone()
            executed()
        with handling(second):
            skipped()
        for message in (first, second):
            await message.ack_sync()

    told = story(play(scenario))
    assert told[4:] == [
        "Start(A, 0)", "Execute(A, 0)", "Undo(A, 0)", "Execute(A, 0)", "Done(A, 0)",
        "Start(B, 1)", "Skip(B, 1)", "Done(B, 1)", "Ack(A, 0)", "Ack(B, 1)",
    ]  # fmt: skip
    assert verdict(events, "--config", str(SPECS / "JetStream.idempotent.cfg")) == "conforms"
    text = events.read_text(encoding="utf-8").replace('"Skip"', '"Execute"')
    events.write_text(text, encoding="utf-8")
    assert verdict(events) == "violates 11 NoDoubleExecution"


def test_a_body_that_says_nothing_has_executed_when_it_returns(play: Callable[..., list[Event]]) -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(2):
            await bench.publish()
        with handling(await bench.take("A")):
            pass
        with pytest.raises(ZeroDivisionError), handling(await bench.take("A")):
            raise ZeroDivisionError

    told = [event for event in play(scenario, answers=False) if event["action"] != "Pickup"]
    assert [event["action"] for event in told] == ["Publish", "Publish", "Start", "Execute", "Done", "Start", "Fail"]
    assert told[3]["inferred"]
    assert told[6]["exception"] == "ZeroDivisionError"


def test_where_it_must_be_told_nothing_is_inferred(play: Callable[..., list[Event]]) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish()
        with handling(await bench.take("A")):
            pass

    assert [event["action"] for event in play(scenario, execute="told")][-2:] == ["Start", "Done"]


@pytest.mark.parametrize(
    ("key", "data", "headers", "expected"),
    [
        ("Nats-Msg-Id", b"{}", {"Nats_Msg_Id": "m-1"}, "m-1"),
        ("Nats-Msg-Id", b"{}", {}, "1"),
        ("X-Order", b"{}", {"X_Order": "o-1", "Nats_Msg_Id": "m-1"}, "o-1"),
        ("$.order.id", b'{"order": {"id": 77}}', {}, "77"),
        ("$.order.id", b'{"order": 1}', {}, "1"),
        ("$.order.id", b"no JSON", {}, "1"),
        (lambda message: message.data.decode(), b"itself", {}, "itself"),
    ],
    ids=["the id", "no id", "a header", "a path", "no such path", "no JSON", "a function"],
)
def test_a_message_is_known_by_its_key_or_by_its_sequence(
    play: Callable[..., list[Event]], key: Any, data: bytes, headers: dict[str, str], expected: str
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish(data, **headers)
        await (await bench.take("A")).ack_sync()

    told = play(scenario, key=key)
    assert story(told) == ["Publish", "PubAck", "Pickup(A, 0)", "Ack(A, 0)"]
    assert {event["params"]["t"] for event in told} == {expected}
    assert failures() == 0


def test_what_the_server_drops_as_a_duplicate_is_answered_so(play: Callable[..., list[Event]], events: Path) -> None:
    async def scenario(bench: Bench) -> None:
        js = instrument(bench.client.jetstream())
        for _ in range(2):
            await js.publish(bench.name, headers={"Nats-Msg-Id": "m"})
        future = await js.publish_async(bench.name, headers={"Nats-Msg-Id": "m"})
        await future
        await asyncio.sleep(0)  # The future's callbacks come after it.

    told = play(scenario)
    assert story(told) == ["Publish", "PubAck", "Republish", "PubAck", "Republish", "PubAck"]
    assert [event["params"]["dup"] for event in told if event["action"] == "PubAck"] == [False, True, True]
    assert verdict(events) == "conforms"


def test_push_subscriptions_are_told_of_too(play: Callable[..., list[Event]]) -> None:
    """By callback, acked by the client when it returns; and message by message."""

    async def scenario(bench: Bench) -> None:
        js = instrument(bench.client.jetstream(), worker="A", answers=False)
        called = asyncio.Event()

        async def callback(message: Any) -> None:
            with handling(message):
                called.set()

        pushed = await js.subscribe(bench.name, None, callback)
        await js.publish(bench.name, headers={"Nats-Msg-Id": "m"})
        await asyncio.wait_for(called.wait(), PATIENCE)
        await pushed.drain()
        following = await js.subscribe(bench.name, durable="d", manual_ack=True)
        await (await following.next_msg(PATIENCE)).ack_sync()

    life = ["Pickup(A, 0)", "Start(A, 0)", "Execute(A, 0)", "Done(A, 0)", "AckSent(A, 0)"]
    assert story(play(scenario)) == ["Publish", *life, "Pickup(A, 0)", "Ack(A, 0)"]


def test_the_worker_is_by_default_the_process(play: Callable[..., list[Event]], url: str) -> None:
    async def scenario(bench: Bench) -> None:
        js = instrument(bench.client.jetstream(), answers=False)
        subscription = await js.pull_subscribe(bench.name, durable="d", stream=bench.name)
        await js.publish(bench.name)
        await js.publish(bench.name)
        assert len(await subscription.fetch(2, timeout=PATIENCE)) == 2

    told = [event for event in play(scenario) if event["action"] == "Pickup"]
    assert [event["params"]["w"] for event in told] == [f"{os.uname().nodename}/{os.getpid()}"] * 2


def test_what_the_probe_cannot_tell_costs_the_application_nothing(play: Callable[..., list[Event]]) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.publish()
        message = await bench.take("A")
        await message.ack_sync()
        with handling(object()):
            executed()

    def key(message: Any) -> str:
        raise ValueError("no key")

    assert play(scenario, key=key) == []
    assert failures() > 2
