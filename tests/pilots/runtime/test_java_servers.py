"""Kafka and Pulsar of the run's own: the real ones, on loopback, and gone with it; and those of others."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specwatch.pilots import runtime
from specwatch.pilots.runtime import ServerError, external, kafka, maven, pulsar

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def listening(pid: int) -> set[str]:
    """The addresses, as /proc has them, on which a process listens."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = ""
        with contextlib.suppress(FileNotFoundError):  # It was closed meanwhile.
            target = str(link.readlink())
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1].rpartition(":")[0])
    return found


def test_kafka_answers_on_loopback_alone(kafka_broker: runtime.Server) -> None:
    assert kafka_broker.version == maven.DISTRIBUTIONS["kafka"].title
    assert kafka_broker.pid is not None
    opened = listening(kafka_broker.pid)
    assert opened
    assert opened <= LOOPBACK
    assert len(kafka.ask_kafka(kafka_broker.url)) == 22


def test_pulsar_answers_on_loopback_alone(pulsar_broker: runtime.Server) -> None:
    """Its book keeper too, which by default listens everywhere."""
    assert pulsar_broker.version == maven.DISTRIBUTIONS["pulsar"].title
    assert pulsar_broker.pid is not None
    opened = listening(pulsar_broker.pid)
    assert opened
    assert opened <= LOOPBACK
    assert pulsar.ask_pulsar(pulsar_broker.url)[0] == "pulsar 4.0.8"


def test_a_kafka_of_others_is_left_as_it_was(kafka_broker: runtime.Server, tmp_path: Path) -> None:
    from confluent_kafka.cimpl import NewTopic

    client = kafka.admin(kafka_broker.url)
    theirs = f"theirs-{secrets.token_hex(4)}"
    for future in client.create_topics([NewTopic(theirs, 1, 1)]).values():
        future.result(10)
    with runtime.start("external", directory=tmp_path, needs=["kafka"], urls={"kafka": kafka_broker.url}) as up:
        own = f"{up['kafka'].prefix}tasks"
        assert up["kafka"].version.startswith("kafka (cluster ")
        for future in client.create_topics([NewTopic(own, 1, 1)]).values():
            future.result(10)
        assert kafka.topics(kafka_broker.url, up["kafka"].prefix) == [own]
    assert kafka.topics(kafka_broker.url, up["kafka"].prefix) == []
    assert kafka.topics(kafka_broker.url, theirs) == [theirs]


def test_a_pulsar_of_others_is_left_as_it_was(pulsar_broker: runtime.Server, tmp_path: Path) -> None:
    from pulsar import Client, ConsoleLogger, LoggerLevel

    theirs = f"theirs-{secrets.token_hex(4)}"
    client = Client(pulsar.service(pulsar_broker.url), logger=ConsoleLogger(LoggerLevel.Error))
    try:
        client.create_producer(theirs)
        with runtime.start("external", directory=tmp_path, needs=["pulsar"], urls={"pulsar": pulsar_broker.url}) as up:
            own = f"{up['pulsar'].prefix}tasks"
            client.create_producer(own).send(b"1")
            assert pulsar.topics(pulsar_broker.url, up["pulsar"].prefix) == [own]
            assert pulsar.stats(pulsar_broker.url, own)["msgInCounter"] == 1
        assert pulsar.topics(pulsar_broker.url, up["pulsar"].prefix) == []
        assert pulsar.topics(pulsar_broker.url, theirs) == [theirs]
    finally:
        client.close()


@pytest.mark.parametrize(
    ("ask", "url", "message"),
    [
        (kafka.ask_kafka, "kafka://127.0.0.1:1", "no answer from 127.0.0.1:1: "),
        (kafka.ask_kafka, "redis://127.0.0.1:1", "not a URL of Kafka"),
        (pulsar.ask_pulsar, "pulsar://127.0.0.1:1/?admin=http://127.0.0.1:1", "no answer from 127.0.0.1:1: "),
        (pulsar.ask_pulsar, "127.0.0.1:1", "not a URL of Pulsar"),
    ],
)
def test_no_answer_is_an_error_for_people(ask: Callable[[str], Any], url: str, message: str) -> None:
    with pytest.raises(ServerError) as caught:
        ask(url)
    assert caught.value.message.startswith(message)


def test_a_url_in_the_environment_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kafka", "pulsar"):
        monkeypatch.setenv(f"SPECWATCH_{name.upper()}_URL", "localhost")
        with pytest.raises(ServerError, match="not a URL of"):
            external.find(name)
