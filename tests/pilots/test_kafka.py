"""The Kafka pilot: what each mode does when a member polls too late, on real servers, and that the replay says so."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer
from tests.pilots.bench import PATIENCE, VERDICTS, Bench, judged

from specwatch.pilots import pilot, runtime
from specwatch.pilots.chaos import scheduled
from specwatch.pilots.errors import PilotError
from specwatch.pilots.kafka import PILOT, group
from specwatch.pilots.kafka.plan import EXPERIMENTS
from specwatch.pilots.plan import MODES, Mode, Plan, Settings
from specwatch.pilots.runtime import ServerError, kafka

SPECS = Path(__file__).parents[2] / "specs" / "kafka"


def plan(mode: Mode, experiment: str = "poll-overrun", **more: int) -> Plan:
    return PILOT.plan(mode, experiment, **more)


@pytest.fixture(scope="module")
def bench(kafka_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder, needs = tmp_path_factory.mktemp("kafka"), ("kafka", "postgres")
    with runtime.start("embedded", directory=Path(tempfile.gettempdir()), needs=needs, logs=folder / "logs") as servers:
        yield Bench(PILOT, servers, folder)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_behaves_under_the_fault_as_its_model_predicts(bench: Bench, mode: Mode, experiment: str) -> None:
    outcome = bench.run(plan(mode, experiment))
    verdict = judged(outcome.directory)
    [rows] = outcome.rows.values()
    assert (outcome.unsettled, outcome.disagreements, outcome.restarted) == (None, [], 1)
    assert (verdict.verdict, verdict.ledger.unparsed, verdict.ledger.gaps) == (VERDICTS[mode], 0, [])
    if experiment != "share-group":
        assert verdict.coverage["CommitFail"] == 1  # The first one's word came too late.
    if mode == "idempotent":
        assert (rows, verdict.require) == (1, [("Skip", True)])
    else:
        assert (rows, verdict.findings[0].invariant) == (2, "NoDoubleExecution")


def test_what_waits_is_counted_by_the_broker(bench: Bench) -> None:
    url = bench.servers["kafka"].url
    settings = Settings(plan=plan("faulty"), broker=url, prefix="waiting.", database="", directory="", name="")
    assert PILOT.waiting(settings) == 0  # No one has made the topic yet.
    group.make(settings)
    group.make(settings)
    producer = Producer({"bootstrap.servers": kafka.servers(url)})
    for number in range(2):
        producer.produce(group.topic(settings), b"work", partition=number)
    assert producer.flush(20) == 0
    deadline = time.monotonic() + PATIENCE
    while (found := asked(settings)) is None and time.monotonic() < deadline:
        time.sleep(0.1)  # The group's coordinator is still made.
    assert found == 2
    with pytest.raises(ServerError):
        PILOT.waiting(msgspec.structs.replace(settings, broker="kafka://127.0.0.1:1"))


def asked(settings: Settings) -> int | None:
    with contextlib.suppress(ServerError):
        return PILOT.waiting(settings)
    return None


def test_every_mode_has_a_config_that_is_there() -> None:
    assert pilot.load("kafka") is PILOT
    assert set(PILOT.configs) == set(itertools.product(MODES, EXPERIMENTS))
    assert [name for name in PILOT.configs.values() if not (SPECS / name).is_file()] == []


@pytest.mark.parametrize(("tasks", "workers"), [(1, 1), (1, 2), (200, 4), (1000, 64)])
def test_someone_is_left_for_what_is_struck(tasks: int, workers: int) -> None:
    made = plan("faulty", tasks=tasks, workers=workers)
    assert 1 <= made.struck <= max(1, workers - 1)


@pytest.mark.parametrize("kind", ["cut", "delay", "black-hole", "nack", "early"])
def test_a_fault_that_no_one_can_make_here_is_refused(kind: str) -> None:
    with pytest.raises(PilotError, match=f"{kind} cannot be made to happen here"):
        scheduled(PILOT, plan("faulty"), kind, restarts=True)
