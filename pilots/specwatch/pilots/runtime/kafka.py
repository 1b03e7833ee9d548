"""Apache Kafka: a broker for a run, or what a run uses of brokers that others run."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from . import maven, programs
from .embedded import environment, free_port, new_folder, up
from .errors import ClientMissing, ServerError
from .guard import Process, spawn
from .servers import ANSWER_WAIT, Server, address

HEAP = "512m"
START_WAIT = 90.0
"""Seconds within which a broker must be up, on a machine with much else to do. Alone it takes four."""


def start(directory: Path, logs: Path) -> tuple[Server, Process]:
    """Start a broker that is its own controller (KRaft), with its data in a folder below ``directory``.

    Raises ``ServerError``.
    """
    program = programs.find("kafka")
    java = maven.java(maven.DISTRIBUTIONS["kafka"])
    assert java is not None, "else no program was found"
    command = [str(java), f"-Xmx{HEAP}", "-cp", f"{program.path}/*"]
    log = logs / "kafka.log"
    clusters: list[str] = []

    def attempt(port: int) -> Process:
        home = new_folder(directory, "kafka")
        config = home / "server.properties"
        # As Kafka writes a UUID; an option would begin with a dash.
        clusters.append("s" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22])

        def prepare() -> None:
            home.mkdir(mode=0o700)
            settings = properties(home, port=port, controller=free_port())
            config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
            layout = ["format", "--standalone", "-t", clusters[-1], "-c", str(config)]
            tool = [*command, "kafka.tools.StorageTool", *layout]
            done = subprocess.run(tool, capture_output=True, text=True, env=environment(), cwd=home, check=False)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
                raise ServerError(f"{program.version} cannot lay out its data: {said[-1]}")

        return spawn(
            [*command, "kafka.Kafka", str(config)],
            log=log,
            env=environment(),
            cwd=directory,
            remove=[home],
            prepare=prepare,
        )

    def ask(port: int, process: Process) -> Server:
        url = f"kafka://127.0.0.1:{port}"
        if ask_kafka(url) != clusters[-1]:
            raise ServerError(f"another server answers on port {port}")
        return Server("kafka", url, program.version, process.log, process.pid)

    return up(program.version, log, attempt, ask, START_WAIT)


def properties(home: Path, *, port: int, controller: int) -> Mapping[str, object]:
    """What a broker of its own is told: all on loopback, one copy of everything, and groups that form at once."""
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "log.dirs": home / "data",
        "num.partitions": 1,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        # By default a group waits for members that may come, and a session lasts 6 s at the least.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.min.heartbeat.interval.ms": 300,
        # With the protocol of KIP-848 the broker says both; a session is as long as the pilot's members want.
        "group.consumer.session.timeout.ms": 4000,
        "group.consumer.heartbeat.interval.ms": 500,
        "group.share.min.record.lock.duration.ms": 1000,
    }


def servers(url: str) -> str:
    """What a client calls ``bootstrap.servers``: the hosts and ports of a URL, several with commas.

    Raises ``ServerError`` where it is not one of Kafka.
    """
    parts = urlsplit(url)
    if parts.scheme != "kafka" or not parts.netloc:
        raise ServerError("not a URL of Kafka", hint="kafka://host:9092, or kafka://one:9092,other:9092")
    return parts.netloc


def ask_kafka(url: str) -> str:
    """The id of the cluster at a URL. Raises ``ServerError`` where none answers."""
    client = admin(url)
    from confluent_kafka import KafkaException

    try:
        return str(client.list_topics(timeout=ANSWER_WAIT).cluster_id)
    except KafkaException as error:
        raise ServerError(f"no answer from {address(url)}: {error.args[0].str()}") from None


def admin(url: str) -> Any:
    """A client that makes and deletes topics. Nothing is asked yet. Raises ``ServerError``."""
    try:
        from confluent_kafka.admin import AdminClient
    except ImportError:
        raise ClientMissing("confluent-kafka", "pilots") from None
    # What it cannot do is said by what asks it, and not on stderr as well.
    settings: dict[str, Any] = {"bootstrap.servers": servers(url), "log_level": 0, "error_cb": lambda _: None}
    return AdminClient(settings)


def topics(url: str, prefix: str) -> list[str]:
    """The topics whose names begin with a prefix. Raises ``ServerError``."""
    client = admin(url)
    from confluent_kafka import KafkaException

    try:
        return [name for name in client.list_topics(timeout=ANSWER_WAIT).topics if name.startswith(prefix)]
    except KafkaException as error:
        raise ServerError(f"no answer from {address(url)}: {error.args[0].str()}") from None


def delete_all(url: str, prefix: str) -> None:
    """Delete the topics and the groups whose names begin with a prefix. Raises ``ServerError``."""
    client = admin(url)
    from confluent_kafka import KafkaException

    try:
        groups = client.list_consumer_groups(request_timeout=ANSWER_WAIT).result().valid
        names = [group.group_id for group in groups if group.group_id.startswith(prefix)]
        deleted = client.delete_consumer_groups(names) if names else {}
        if found := topics(url, prefix):
            deleted |= client.delete_topics(found)
        for future in deleted.values():
            future.result()
    except KafkaException as error:
        raise ServerError(f"{address(url)} does not delete: {error.args[0].str()}") from None
