"""The Celery pilot: what each mode does under each fault, on real servers, and that the replay says so."""

from __future__ import annotations

import itertools
import json
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.pilots.bench import PATIENCE, VERDICTS, Bench, judged

from specwatch.pilots import runtime
from specwatch.pilots.celery import PILOT
from specwatch.pilots.celery.app import meeting
from specwatch.pilots.celery.plan import CONFIGS, EXPERIMENTS, Settings, binding, plan
from specwatch.pilots.errors import PilotError
from specwatch.pilots.experiment import Experiment
from specwatch.pilots.plan import MODES, Mode
from specwatch.pilots.runtime.servers import connect_postgres, connect_valkey

SPECS = Path(__file__).parents[2] / "specs" / "celery"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("celery")
    with runtime.start("embedded", directory=Path(tempfile.gettempdir()), logs=folder / "logs") as servers:
        yield Bench(PILOT, servers, folder)


# --- the modes under the faults


def behaves(bench: Bench, mode: Mode, experiment: str) -> None:
    outcome = bench.run(plan(mode, experiment))
    verdict = judged(outcome.directory)
    [rows] = outcome.rows.values()
    assert (outcome.unsettled, outcome.disagreements, outcome.restarted) == (None, [], 1)
    assert (verdict.verdict, verdict.ledger.unparsed, verdict.ledger.gaps) == (VERDICTS[mode], 0, [])
    if mode == "idempotent":
        assert (rows, verdict.require) == (1, [("Skip", True)])
        assert verdict.coverage["Skip"] == verdict.coverage["Start"] - 1
    else:
        assert verdict.findings[0].invariant == "NoDoubleExecution"
        assert rows == 2 if experiment == "visibility-timeout" else rows > 1


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_behaves_under_a_fault_as_its_model_predicts(bench: Bench, mode: Mode, experiment: str) -> None:
    behaves(bench, mode, experiment)


@pytest.mark.nightly
@pytest.mark.parametrize("repetition", [1, 2, 3])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_it_does_so_each_time(bench: Bench, mode: Mode, experiment: str, repetition: int) -> None:
    behaves(bench, mode, experiment)


@pytest.mark.parametrize(("mode", "word"), [("faulty", "conforms"), ("idempotent", "vacuous")])
def test_a_task_that_retries_twice_conforms(bench: Bench, mode: Mode, word: str) -> None:
    """Three attempts, one effect, nothing put back. A guard that was never asked twice has proven nothing by that."""
    outcome = bench.run(msgspec.structs.replace(plan(mode), retries=2, struck=0))
    verdict = judged(outcome.directory)
    assert (list(outcome.rows.values()), outcome.disagreements, outcome.restarted) == ([1], [], 0)
    assert (verdict.verdict, verdict.behaviours.conforms, verdict.coverage["Retry"]) == (word, 1, 2)


@pytest.mark.parametrize(
    ("mode", "action", "rows", "word"), [("faulty", "Execute", 2, "violates"), ("idempotent", "Start", 1, "conforms")]
)
def test_what_a_killed_worker_held_is_decided_as_the_rows_say(
    bench: Bench, mode: Mode, action: str, rows: int, word: str
) -> None:
    """Killed after its effect, or at a moment when no log can tell whether it had one: what it may have done and not
    told is one step, and never that it took something back.
    """
    with bench.experiment(plan(mode)) as one:
        killed = first(one, action)
        one.workers[killed].send_signal(signal.SIGKILL)
        one.settle()
        outcome = one.finish(SPECS)
    verdict = judged(outcome.directory)
    assert (sum(outcome.rows.values()), verdict.verdict) == (rows, word)
    assert (outcome.unsettled, outcome.restarted) == (None, 1)


def first(one: Experiment, action: str) -> str:
    """The worker of the first event of an action, as soon as there is one."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for event in one.look():
            if event["action"] == action:
                return str(event["params"]["w"])
        time.sleep(0.01)
    raise AssertionError(f"no {action} within {PATIENCE:g} s")


def test_workers_that_cannot_start_are_told_of_with_their_log(bench: Bench) -> None:
    one = bench.experiment(plan("faulty"))
    unknown = msgspec.structs.replace(one.plan, mode="unknown")
    one.settings = msgspec.structs.replace(one.settings, plan=unknown)
    with one, pytest.raises(PilotError) as told:
        one.settle()
    assert told.value.file is not None
    assert Path(told.value.file).read_text(encoding="utf-8")


# --- what a run leaves behind


def test_servers_of_others_are_left_as_they_were(bench: Bench, tmp_path: Path) -> None:
    """Keys, tables and rows of a run are in a namespace of its own there, which is gone afterwards."""
    urls = {name: server.url for name, server in bench.servers.items()}

    def everything() -> tuple[set[str], set[tuple[str, ...]]]:
        broker = connect_valkey(urls["valkey"])
        with connect_postgres(urls["postgres"]) as database:
            tables = database.execute("SELECT schemaname, tablename FROM pg_tables").fetchall()
        keys = {str(key) for key in broker.scan_iter()}
        broker.close()
        return keys, set(tables)

    before = everything()
    own = msgspec.structs.replace(plan("idempotent"), struck=0)
    with (
        runtime.start("external", directory=tmp_path, urls=urls, logs=tmp_path / "logs") as servers,
        Experiment(PILOT, own, servers, tmp_path / "run", tmp_path / "scratch") as one,
    ):
        one.settle()
        during = everything()
        outcome = one.finish(SPECS)
    assert (list(outcome.rows.values()), outcome.disagreements) == ([1], [])
    assert len(during[0]) > len(before[0])
    assert len(during[1]) > len(before[1])
    assert everything() == before


def test_a_run_directory_is_judged_again_wherever_it_lies(bench: Bench, tmp_path: Path) -> None:
    outcome = bench.run(msgspec.structs.replace(plan("faulty"), struck=0))
    (tmp_path / "copy").symlink_to(outcome.directory)
    texts = [judged(folder).to_json() for folder in (outcome.directory, tmp_path / "copy")]
    here, there = (json.loads(text) for text in texts)
    for document in (here, there):
        assert Path(document.pop("inputs")[0]["path"]).name == "events.jsonl"
        document["spec"].pop("path")
        document["spec"].pop("config")
    assert here == there
    assert {path.name for path in outcome.directory.iterdir()} == {
        "binding.toml",
        "events.jsonl",
        "logs",
        "raw",
        "rows.csv",
        "spec.cfg",
        "spec.tla",
        "versions.json",
    }
    logs = {path.name for path in (outcome.directory / "logs").iterdir()}
    assert logs == {"postgres.log", "producer.log", "valkey.log", "worker-1.log", "worker-2.log"}
    versions = json.loads((outcome.directory / "versions.json").read_text(encoding="utf-8"))
    assert versions["servers"] == {name: server.version for name, server in bench.servers.items()}
    assert (versions["model"]["spec"], versions["plan"]["tasks"]) == ("CeleryRedis.tla", 1)


# --- the plan


def test_a_seed_makes_the_same_ids_in_every_mode() -> None:
    ids = {mode: plan(mode, tasks=3, seed=7).ids() for mode in MODES}
    assert len(set(ids["faulty"])) == 3
    assert ids["faulty"] == ids["idempotent"]
    assert plan("faulty", tasks=3, seed=8).ids() != ids["faulty"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(("tasks", "workers"), [(1, 1), (1, 2), (200, 4), (1000, 1), (1000, 64)])
def test_a_struck_task_never_takes_the_last_child(experiment: str, tasks: int, workers: int) -> None:
    """Each struck task holds a child until another copy has come as far, which needs a child of its own."""
    made = plan("check-then-insert", experiment, tasks=tasks, workers=workers)
    assert 1 <= made.struck <= made.tasks
    children = made.concurrency * (made.workers if made.late_ack else 1)
    assert children > made.struck


def test_every_mode_has_a_config_that_is_there() -> None:
    assert set(CONFIGS) == set(itertools.product(MODES, EXPERIMENTS))
    assert [name for name in CONFIGS.values() if not (SPECS / name).is_file()] == []


def test_the_binding_of_a_run_requires_what_its_mode_must_have_shown() -> None:
    from specwatch.collector.binding import parse_binding

    made = {mode: parse_binding(binding(plan(mode))) for mode in MODES}
    assert {mode: one.require for mode, one in made.items()} == {
        "faulty": [],
        "check-then-insert": [],
        "idempotent": ["Skip"],
    }
    assert (made["faulty"].spec, made["faulty"].config, made["faulty"].format) == ("spec.tla", "spec.cfg", "native")


# --- the meeting of copies


@pytest.fixture
def meet(tmp_path: Path) -> Callable[..., Callable[[], None]]:
    def make(task: str, patience: float) -> Callable[[], None]:
        own = msgspec.structs.replace(plan("faulty"), patience=patience)
        settings = Settings(plan=own, broker="", prefix="", database="", directory=str(tmp_path), name="faulty")
        return meeting(settings, task, 0)

    return make


def test_the_second_copy_to_come_does_not_wait(meet: Callable[..., Callable[[], None]]) -> None:
    meet("t", 0.0)()
    began = time.monotonic()
    meet("t", PATIENCE)()
    assert time.monotonic() - began < PATIENCE / 2


def test_a_copy_that_stays_alone_waits_no_longer_than_its_patience(meet: Callable[..., Callable[[], None]]) -> None:
    began = time.monotonic()
    meet("other", 0.0)()
    meet("t", 0.2)()
    assert 0.2 <= time.monotonic() - began < PATIENCE
