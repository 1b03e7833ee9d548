"""The RabbitMQ pilot: what each mode does under each experiment, on real servers, and that the replay says so."""

from __future__ import annotations

import itertools
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.pilots.bench import PATIENCE, VERDICTS, Bench, judged

from specwatch.pilots import runtime
from specwatch.pilots.experiment import Experiment
from specwatch.pilots.plan import MODES, Mode, Plan, Settings
from specwatch.pilots.rabbitmq import PILOT, queues
from specwatch.pilots.rabbitmq.plan import CONFIGS, EXPERIMENTS
from specwatch.pilots.runtime import Server, ServerError, rabbitmq

pytestmark = pytest.mark.usefixtures("rabbitmq_here")

SPECS = Path(__file__).parents[2] / "specs" / "rabbitmq"


def plan(mode: Mode, experiment: str = "consumer-timeout", **more: int) -> Plan:
    return PILOT.plan(mode, experiment, **more)


@pytest.fixture(scope="module")
def bench(rabbitmq_node: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("rabbitmq")
    directory = Path(tempfile.gettempdir())
    with runtime.start("embedded", directory=directory, needs=["postgres"], logs=folder / "logs") as servers:
        yield Bench(PILOT, {"rabbitmq": rabbitmq_node, **servers}, folder)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_behaves_under_a_fault_as_its_model_predicts(bench: Bench, mode: Mode, experiment: str) -> None:
    outcome = bench.run(plan(mode, experiment))
    verdict = judged(outcome.directory)
    [rows] = outcome.rows.values()
    assert (outcome.unsettled, outcome.disagreements, outcome.restarted) == (None, [], 1)
    assert (verdict.verdict, verdict.ledger.unparsed, verdict.ledger.gaps) == (VERDICTS[mode], 0, [])
    lost = "ChannelLost" if experiment == "consumer-timeout" else "ConnLost"
    assert lost in verdict.coverage
    if mode == "idempotent":
        assert (rows, verdict.require) == (1, [("Skip", True)])
    else:
        assert (rows, verdict.findings[0].invariant) == (2, "NoDoubleExecution")


def test_many_messages_of_which_a_few_are_struck(bench: Bench) -> None:
    outcome = bench.run(plan("faulty", tasks=60))
    verdict = judged(outcome.directory)
    assert (outcome.unsettled, outcome.disagreements) == (None, [])
    twice = {key for key, rows in outcome.rows.items() if rows > 1}
    assert (len(outcome.rows), len(twice)) == (60, 1)
    assert {finding.key for finding in verdict.findings if finding.verdict == "violates"} == twice
    assert (verdict.behaviours.violates, verdict.behaviours.diverges, verdict.behaviours.inconclusive) == (1, 0, 0)


def test_what_a_killed_worker_held_is_decided_as_the_rows_say(bench: Bench) -> None:
    """The broker gives its message to another at once: a socket that closes is heard."""
    # The other copy meets no one any more: it must be done before the broker has waited for it too long as well.
    with bench.experiment(msgspec.structs.replace(plan("faulty"), patience=0.5)) as one:
        killed = first(one, "Execute")
        one.workers[killed].send_signal(signal.SIGKILL)
        one.settle()
        outcome = one.finish(SPECS)
    verdict = judged(outcome.directory)
    assert (outcome.unsettled, list(outcome.rows.values())) == (None, [2])
    assert verdict.verdict == "violates"


def first(one: Experiment, action: str) -> str:
    """The worker of the first event of an action, as soon as there is one."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for event in one.look():
            if event["action"] == action:
                return str(event["params"].get("w"))
        time.sleep(0.01)
    raise AssertionError(f"no {action} within {PATIENCE:g} s")


def test_a_broker_of_others_is_left_as_it_was(bench: Bench, tmp_path: Path) -> None:
    """Queues and tables of a run are in a namespace of its own there, which is gone afterwards."""
    node = bench.servers["rabbitmq"]
    urls = {name: server.url for name, server in bench.servers.items()}

    def queued() -> set[str]:
        return set(rabbitmq.control(node, "list_queues", "name", "--no-table-headers").split())

    before = queued()
    own = msgspec.structs.replace(plan("idempotent"), struck=0)
    with (
        runtime.start("external", directory=tmp_path, needs=PILOT.needs, urls=urls) as servers,
        Experiment(PILOT, own, servers, tmp_path / "run", tmp_path / "scratch") as one,
    ):
        one.settle()
        during = queued()
        outcome = one.finish(SPECS)
    assert (list(outcome.rows.values()), outcome.disagreements) == ([1], [])
    assert (len(during - before), queued()) == (1, before)


def test_the_producer_outlives_its_broker(bench: Bench) -> None:
    """What is told as published is in the queue, also where the broker was gone meanwhile."""
    node = bench.servers["rabbitmq"]
    slow = msgspec.structs.replace(plan("idempotent", tasks=10), struck=0, span=5.0)
    with bench.experiment(slow) as one:
        first(one, "Publish")
        rabbitmq.control(node, "stop_app")
        rabbitmq.control(node, "start_app")
        one.settle()
        outcome = one.finish(SPECS)
    assert (outcome.unsettled, sorted(outcome.rows.values()), outcome.disagreements) == (None, [1] * 10, [])
    assert judged(outcome.directory).behaviours.conforms == 10


def test_what_waits_is_counted_by_the_broker(rabbitmq_node: Server) -> None:
    settings = Settings(
        plan=plan("faulty"), broker=rabbitmq_node.url, prefix="waiting.", database="", directory="", name=""
    )
    assert PILOT.waiting(settings) == 0  # No one has made the queue yet.
    with closing(rabbitmq.connect(rabbitmq_node.url)) as connection:
        channel = connection.channel()
        queue = queues.declare(channel, settings.prefix, 3)
        channel.confirm_delivery()
        for _ in range(2):
            channel.basic_publish("", queue, b"")
        assert PILOT.waiting(settings) == 2
        channel.queue_delete(queue)
    with pytest.raises(ServerError):
        PILOT.waiting(msgspec.structs.replace(settings, broker="amqp://127.0.0.1:1/"))


def test_every_mode_has_a_config_that_is_there() -> None:
    assert set(CONFIGS) == set(itertools.product(MODES, EXPERIMENTS))
    assert [name for name in CONFIGS.values() if not (SPECS / name).is_file()] == []


@pytest.mark.parametrize(("tasks", "workers"), [(1, 1), (1, 2), (200, 4), (1000, 1), (1000, 64)])
def test_a_struck_message_never_takes_the_last_consumer(tasks: int, workers: int) -> None:
    """Each struck message holds a consumer until another copy has come as far, which needs one of its own."""
    made = plan("check-then-insert", tasks=tasks, workers=workers)
    assert 1 <= made.struck <= made.tasks
    assert made.concurrency * made.workers > made.struck


def test_queues_of_every_experiment_are_known_to_who_removes_them() -> None:
    """A run's prefix is the server's, with mode and experiment."""
    known = queues.names("specwatch:1:")
    made = {queues.name(f"specwatch:1:{mode}.{experiment}.") for mode in MODES for experiment in EXPERIMENTS}
    assert set(known) == made
