"""What a tap at the broker tells of a queue, beside what the probes tell of the same run."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pika  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from specwatch.cli.app import app
from specwatch.collector.errors import CollectorError
from specwatch.collector.probes import amqp, configure
from specwatch.collector.probes.pika import executed, handling, instrument, skipped
from specwatch.collector.taps.rabbitmq import Reading, listen, main, tap
from specwatch.collector.taps.writing import Writer
from specwatch.pilots.runtime import Server, rabbitmq

SPECS = Path(__file__).parents[3] / "specs" / "rabbitmq"
BINDING = str(SPECS / "binding.tap.toml")
WAIT = 30.0


@pytest.fixture(scope="module")
def broker(rabbitmq_node: Server) -> Server:
    """The broker with its firehose on."""
    rabbitmq.control(rabbitmq_node, "trace_on")
    return rabbitmq_node


class Bench:
    """A queue, and workers who consume from it, each over a connection of its own."""

    def __init__(self, url: str, queue: str) -> None:
        self.url = url
        self.queue = queue
        self.connections: list[Any] = []
        self.publisher = self.channel("publisher")
        self.publisher.queue_declare(queue)
        self.publisher.confirm_delivery()

    def channel(self, worker: str) -> Any:
        self.connections.append(rabbitmq.connect(self.url, wait=WAIT, heartbeat=0))
        channel = instrument(self.connections[-1].channel(), worker=worker, execute="told")
        channel.basic_qos(prefetch_count=1)
        return channel

    def publish(self, key: str = "m") -> None:
        self.publisher.basic_publish("", self.queue, b"{}", pika.BasicProperties(message_id=key))

    def take(self, channel: Any) -> Any:
        """The next message's method frame."""
        return next(channel.consume(self.queue, inactivity_timeout=WAIT))[0]

    def close(self) -> None:
        self.publisher.queue_delete(self.queue)
        for connection in self.connections:
            if connection.is_open:
                connection.close()


def work(channel: Any, method: Any, *, done: bool = False) -> None:
    with handling(channel, method.delivery_tag):
        skipped() if done else executed()


def once(bench: Bench) -> None:
    bench.publish()
    a = bench.channel("A")
    method = bench.take(a)
    work(a, method)
    a.basic_ack(method.delivery_tag)


def lost(bench: Bench, *, guarded: bool) -> None:
    bench.publish()
    a, b = bench.channel("A"), bench.channel("B")
    work(a, bench.take(a))
    a.connection.close()
    method = bench.take(b)
    work(b, method, done=guarded)
    b.basic_ack(method.delivery_tag)


def lost_unguarded(bench: Bench) -> None:
    lost(bench, guarded=False)


def lost_guarded(bench: Bench) -> None:
    lost(bench, guarded=True)


def timed_out(bench: Bench) -> None:
    """The broker closes a channel, whose client hears of it when another has the message."""
    bench.publish()
    a, b = bench.channel("A"), bench.channel("B")
    work(a, bench.take(a))
    method = bench.take(b)
    work(b, method)
    b.basic_ack(method.delivery_tag)
    b.connection.close()
    a.connection.process_data_events(1)
    with pytest.raises(pika.exceptions.AMQPError):
        a.basic_ack(1)
    again = instrument(a.connection.channel(), worker="A", execute="told")
    bench.publish("other")
    method = bench.take(again)
    work(again, method)
    again.basic_ack(method.delivery_tag)


def given_back(bench: Bench) -> None:
    bench.publish()
    a = bench.channel("A")
    a.basic_nack(bench.take(a).delivery_tag)
    method = bench.take(a)
    work(a, method)
    a.basic_ack(method.delivery_tag)


def rejected(bench: Bench) -> None:
    bench.publish()
    a = bench.channel("A")
    a.basic_reject(bench.take(a).delivery_tag, requeue=False)


def published_twice(bench: Bench) -> None:
    bench.publish()
    bench.publish()
    a = bench.channel("A")
    for _ in range(2):
        method = bench.take(a)
        work(a, method)
        a.basic_ack(method.delivery_tag)


Scenario = Callable[[Bench], None]


class Heard:
    """A scenario as its probes and as a tap have told it."""

    def __init__(self, folder: Path) -> None:
        self.probed = folder / "probed.jsonl"
        self.tapped = folder / "tapped"

    def story(self) -> list[str]:
        [path] = (path for path in self.tapped.glob("tap-*.jsonl") if "bodies" not in path.name)
        events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [
            " ".join([event["action"], *(str(event["params"][name]) for name in "tcr" if name in event["params"])])
            for event in events
            if event.get("lane") != "emitter"
        ]

    def verdicts(self, config: str) -> tuple[str, str]:
        """By the tap alone, and by the probes alone."""
        options = ("--config", str(SPECS / f"RabbitMQ.{config}.cfg"))
        return judged(BINDING, self.tapped, *options), judged("rabbitmq", self.probed, *options)


def judged(target: str, log: Path, *options: str) -> str:
    document = json.loads(CliRunner().invoke(app, ["check", target, str(log), "--json", *options]).stdout)
    return str(document.get("verdict", document))


@pytest.fixture
def hear(broker: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Scenario], Heard]]:
    """Run a scenario, and listen to it."""
    monkeypatch.setattr(amqp, "_published", OrderedDict())

    def scene(scenario: Scenario) -> Heard:
        heard = Heard(tmp_path)
        configure(heard.probed)
        queue = f"tapped-{scenario.__name__}"
        writer, ready, end = Writer(heard.tapped, "tap"), threading.Event(), threading.Event()
        with closing(rabbitmq.connect(broker.url, wait=WAIT)) as connection:

            def listening() -> None:
                listen(connection, Reading(queue), writer, ready=ready.set, ended=end.is_set)

            thread = threading.Thread(target=listening)
            thread.start()
            assert ready.wait(WAIT)
            bench = Bench(broker.url, queue)
            try:
                scenario(bench)
            finally:
                bench.close()
                end.set()
                thread.join(WAIT)
        writer.close()
        configure("")
        return heard

    yield scene
    configure("")


STORIES: list[tuple[Scenario, list[str], dict[str, tuple[str, str]]]] = [
    (once, ["Publish m", "Pickup m 1 False"], {"faulty": ("conforms", "conforms")}),
    (
        lost_unguarded,
        ["Publish m", "Pickup m 1 False", "Pickup m 1 True"],
        {"faulty": ("inconclusive", "violates"), "idempotent": ("conforms", "diverges")},
    ),
    (
        lost_guarded,
        ["Publish m", "Pickup m 1 False", "Pickup m 1 True"],
        {"idempotent": ("conforms", "conforms")},
    ),
    (
        timed_out,
        ["Publish m", "Pickup m 1 False", "Pickup m 1 True", "Publish other", "Pickup other 1.2 False"],
        {"faulty": ("inconclusive", "violates")},
    ),
    (
        given_back,
        ["Publish m", "Pickup m 1 False", "Pickup m 1 True"],
        {"faulty": ("inconclusive", "conforms"), "idempotent": ("conforms", "conforms")},
    ),
    (rejected, ["Publish m", "Pickup m 1 False"], {"faulty": ("conforms", "conforms")}),
    (
        published_twice,
        ["Publish m", "Republish m", "Pickup m 1 False", "Pickup m 1 False"],
        {"faulty": ("conforms", "conforms")},
    ),
]


@pytest.mark.parametrize(("scenario", "story", "verdicts"), STORIES, ids=[row[0].__name__ for row in STORIES])
def test_the_tap_and_the_probes_tell_of_one_run_and_their_verdicts_do_not_contradict(
    hear: Callable[[Scenario], Heard], scenario: Scenario, story: list[str], verdicts: dict[str, tuple[str, str]]
) -> None:
    heard = hear(scenario)
    assert [row for row in heard.story() if "Close" not in row] == story
    found = {config: heard.verdicts(config) for config in verdicts}
    assert found == verdicts


def test_a_message_without_an_id_is_counted_and_left_out() -> None:
    reading = Reading("q", "$.id")
    header = {"routed_queues": ["q"], "properties": {}}
    assert [seen.key for seen in reading.read("publish.x", header, b'{"id": 7}')] == ["7"]
    assert list(reading.read("publish.x", header, b"{}")) == []
    assert list(reading.read("publish.x", {**header, "routed_queues": ["other"]}, b'{"id": 7}')) == []
    assert reading.without_id == 1


def test_a_broker_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["amqp://127.0.0.1:1/", "q", str(tmp_path)]) == 4
    assert capsys.readouterr().err.startswith("error: no answer from the broker")
    with pytest.raises(CollectorError):
        tap("http://127.0.0.1", "q", tmp_path)
