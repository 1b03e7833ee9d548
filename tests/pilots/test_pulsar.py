"""The Pulsar pilot: what each mode does under each experiment, on real servers, and that the replay says so."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pulsar
import pytest
from tests.pilots.bench import VERDICTS, Bench, judged

from specwatch.pilots import pilot, run_directory, runtime
from specwatch.pilots.chaos import scheduled
from specwatch.pilots.errors import PilotError
from specwatch.pilots.plan import MODES, Mode
from specwatch.pilots.pulsar import PILOT, subscription
from specwatch.pilots.pulsar.plan import EXPERIMENTS, Plan, Settings
from specwatch.pilots.runtime import ServerError
from specwatch.pilots.runtime.pulsar import service

SPECS = Path(__file__).parents[2] / "specs" / "pulsar"


def plan(mode: Mode, experiment: str = "ack-timeout", **more: int) -> Plan:
    made = PILOT.plan(mode, experiment, **more)
    assert isinstance(made, Plan)
    return made


@pytest.fixture(scope="module")
def bench(pulsar_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder, needs = tmp_path_factory.mktemp("pulsar"), ("pulsar", "postgres")
    with runtime.start("embedded", directory=Path(tempfile.gettempdir()), needs=needs, logs=folder / "logs") as servers:
        yield Bench(PILOT, servers, folder)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_behaves_under_a_fault_as_its_model_predicts(bench: Bench, mode: Mode, experiment: str) -> None:
    outcome = bench.run(plan(mode, experiment))
    verdict = judged(outcome.directory)
    [rows] = outcome.rows.values()
    assert (outcome.unsettled, outcome.disagreements, outcome.restarted) == (None, [], 1)
    assert (verdict.verdict, verdict.ledger.unparsed, verdict.ledger.gaps) == (VERDICTS[mode], 0, [])
    if mode == "idempotent":
        assert (rows, verdict.require) == (1, [("Skip", True)])
    else:
        assert (rows, verdict.findings[0].invariant) == (2, "NoDoubleExecution")
    if experiment != "ack-timeout":
        told = [event["action"] for event in run_directory.merge(outcome.directory / "raw")]
        assert told.count("AckFail") == 1  # The first one's word came when its consumer was closed.


def test_a_redelivery_is_never_earlier_than_the_ack_timeout(bench: Bench) -> None:
    """By the run's own binding: the same events, with the second receipt too early, diverge at it."""
    outcome = bench.run(plan("faulty"))
    path = outcome.directory / "events.jsonl"
    events = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    first, second = (event for event in events if event["action"] == "Pickup")
    for event in events[events.index(second) :]:
        event["time"] = first["time"]
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    verdict = judged(outcome.directory)
    assert (verdict.verdict, verdict.findings[0].event.action) == ("diverges", "Pickup")


def test_what_waits_is_counted_by_the_broker(bench: Bench) -> None:
    url = bench.servers["pulsar"].url
    settings = Settings(plan=plan("faulty"), broker=url, prefix="waiting.", database="", directory="", name="")
    assert PILOT.waiting(settings) == 0  # No one has made the topic yet.
    client = pulsar.Client(service(url))
    consumer = subscription.subscribe(client, settings, "A")
    producer = client.create_producer(subscription.topic(settings))
    for _ in range(2):
        producer.send(b"work")
    consumer.receive(10_000)
    assert PILOT.waiting(settings) == 2
    client.close()
    with pytest.raises(ServerError):
        PILOT.waiting(msgspec.structs.replace(settings, broker="pulsar://127.0.0.1:1/?admin=http://127.0.0.1:1"))


def test_every_mode_has_a_config_that_is_there() -> None:
    assert pilot.load("pulsar") is PILOT
    assert set(PILOT.configs) == set(itertools.product(MODES, EXPERIMENTS))
    assert [name for name in PILOT.configs.values() if not (SPECS / name).is_file()] == []


@pytest.mark.parametrize(("tasks", "workers"), [(1, 1), (1, 2), (200, 4), (1000, 64)])
def test_a_worker_goes_on_that_has_all_that_is_struck(tasks: int, workers: int) -> None:
    made = plan("faulty", tasks=tasks, workers=workers)
    assert 1 <= made.struck < made.concurrency


@pytest.mark.parametrize("kind", ["cut", "delay", "black-hole", "early"])
def test_a_fault_that_no_one_can_make_here_is_refused(kind: str) -> None:
    with pytest.raises(PilotError, match=f"{kind} cannot be made to happen here"):
        scheduled(PILOT, plan("faulty"), kind, restarts=True)
