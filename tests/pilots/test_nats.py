"""The NATS pilot: what each mode does under each experiment, on real servers, and that the replay says so."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.pilots.bench import VERDICTS, Bench, judged

from specwatch.pilots import pilot, run_directory, runtime
from specwatch.pilots.nats import EXPERIMENTS, PILOT, consumer
from specwatch.pilots.nats.meeting import Meeting
from specwatch.pilots.plan import MODES, Mode, Plan, Settings
from specwatch.pilots.runtime import ServerError

SPECS = Path(__file__).parents[2] / "specs" / "nats"


def plan(mode: Mode, experiment: str = "ack-wait", **more: int) -> Plan:
    return PILOT.plan(mode, experiment, **more)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder, needs = tmp_path_factory.mktemp("nats"), ("nats", "postgres")
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
    if experiment == "late-ack":
        late_ack(run_directory.merge(outcome.directory / "raw"), timeout=plan(mode, experiment).timeout)


def late_ack(events: list[dict[str, Any]], *, timeout: float) -> None:
    """The first copy acked when the second was out, which worked on for longer than AckWait; and no third came."""
    told = {(event["action"], event["params"].get("a")): event["monotonic"] for event in events}
    assert [event["params"]["a"] for event in events if event["action"] == "Pickup"] == [0, 1]
    assert told["Pickup", 1] < told["Ack", 0] < told["Done", 1] - timeout * 1e9
    assert told["Done", 1] < told["Ack", 1]


def test_a_redelivery_is_never_earlier_than_ack_wait(bench: Bench) -> None:
    """By the run's own binding: the same events, with the second receipt too early, diverge at it."""
    outcome = bench.run(plan("faulty"))
    path = outcome.directory / "events.jsonl"
    events = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    first, second = (event for event in events if event["action"] == "Pickup")
    later = events[events.index(second) :]
    # All that follows the second receipt comes as soon as its delivery could not have been.
    for event in later:
        event["time"] = first["time"]
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    verdict = judged(outcome.directory)
    assert (verdict.verdict, verdict.findings[0].event.action) == ("diverges", "Pickup")


def test_many_tasks_of_which_a_few_are_struck(bench: Bench) -> None:
    outcome = bench.run(plan("faulty", tasks=100))
    verdict = judged(outcome.directory)
    assert (outcome.unsettled, outcome.disagreements) == (None, [])
    twice = {key for key, rows in outcome.rows.items() if rows > 1}
    assert (len(outcome.rows), len(twice)) == (100, 2)
    assert {finding.key for finding in verdict.findings if finding.verdict == "violates"} == twice
    assert (verdict.behaviours.violates, verdict.behaviours.diverges, verdict.behaviours.inconclusive) == (2, 0, 0)


def test_what_waits_is_counted_by_the_server(bench: Bench, tmp_path: Path) -> None:
    made = plan("faulty")
    settings = Settings(
        plan=made, broker=bench.servers["nats"].url, prefix="waiting.", database="", directory="", name=""
    )
    assert PILOT.waiting(settings) == 0  # No one has made the stream yet.

    async def publish(client: Any) -> None:
        js = client.jetstream()
        await consumer.make(js, settings)
        await consumer.make(js, settings)
        for _ in range(2):
            await js.publish(consumer.stream(settings))
        await (await js.pull_subscribe_bind(consumer.CONSUMER, consumer.stream(settings))).fetch(1)

    runtime.nats.ask(settings.broker, publish)
    assert PILOT.waiting(settings) == 2
    with pytest.raises(ServerError):
        PILOT.waiting(msgspec.structs.replace(settings, broker="nats://127.0.0.1:1"))


def test_a_copy_that_meets_no_other_goes_on_when_its_patience_is_over(tmp_path: Path) -> None:
    made = msgspec.structs.replace(plan("faulty"), patience=0.1)
    settings = Settings(plan=made, broker="", prefix="", database="", directory=str(tmp_path), name="")
    began = time.monotonic()
    Meeting(settings, "task", 1).meet()
    assert time.monotonic() - began >= 0.1
    began = time.monotonic()
    Meeting(settings, "task", 2).meet()
    assert time.monotonic() - began < 0.1


@pytest.mark.parametrize(("tasks", "workers"), [(1, 1), (1, 2), (200, 4), (1000, 1), (1000, 64)])
def test_a_struck_task_never_takes_the_last_loop(tasks: int, workers: int) -> None:
    made = plan("check-then-insert", tasks=tasks, workers=workers)
    assert 1 <= made.struck <= made.tasks
    assert made.concurrency * made.workers > made.struck


def test_every_mode_has_a_config_that_is_there() -> None:
    assert pilot.load("nats") is PILOT
    assert set(PILOT.configs) == set(itertools.product(MODES, EXPERIMENTS))
    assert [name for name in PILOT.configs.values() if not (SPECS / name).is_file()] == []


def test_a_stream_s_name_is_one_that_a_server_takes() -> None:
    prefix = "specwatch:0a:faulty.ack-wait."
    settings = Settings(plan=plan("faulty"), broker="", prefix=prefix, database="", directory="", name="")
    name = consumer.stream(settings)
    assert name.startswith("specwatch:0a:")
    assert not set(name) & set(". *>/\\")


def test_where_clocks_are_made_wrong_times_say_nothing_of_the_timer() -> None:
    from specwatch.collector.binding import parse_binding
    from specwatch.collector.rules import bounds

    found = {}
    for faults in ("", "kill", "clock", "random"):
        made = parse_binding(PILOT.binding(msgspec.structs.replace(plan("idempotent"), faults=faults)))
        found[faults] = bounds(made)
        required = [] if faults else ["Skip"]  # not every fault brings a second copy about
        assert (made.require, set(made.hidden)) == (required, {"Check", "Deliver", "AckTimeout"})
    timed = {"AckTimeout": ("Delivery", 2_000_000_000, None)}
    assert found == {"": timed, "kill": timed, "clock": {}, "random": {}}
