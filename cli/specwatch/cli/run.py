"""``specwatch run PILOT``: a chaos run. What the model predicts, what really happens, what the replay says of it."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specwatch.pilots.celery.plan import EXPERIMENTS, MODES, Mode, Name, Plan, plan

from . import run_report, shipped
from .app import Subcommand
from .errors import Refused
from .output import bound_options, output_options, shows_progress, verdict_options, wants_color, write, write_json

if TYPE_CHECKING:
    from specwatch.checker.behaviour import Event
    from specwatch.checker.explore import Exploration
    from specwatch.checker.verdict import Verdict
    from specwatch.pilots.celery.experiment import Experiment, Outcome
    from specwatch.pilots.runtime import Server

_VERDICTS = ("conforms", "violates", "diverges", "inconclusive", "vacuous")
_EXPLORE_TIMEOUT = 45.0


@dataclass(frozen=True)
class Row:
    """One mode: what was predicted, what was observed, and the verdict."""

    plan: Plan
    server: str
    """The broker, as "valkey 9.1.2"."""
    prediction: Exploration
    outcome: Outcome
    verdict: Verdict
    events: list[Event] = field(repr=False)
    """The steps of the run, as they were judged."""

    @property
    def predicted(self) -> str:
        """The verdict that the prediction amounts to; the outcome itself where it amounts to none."""
        return {"pass": "conforms", "violates": "violates"}.get(self.prediction.outcome, self.prediction.outcome)

    @property
    def differences(self) -> list[str]:
        """Why prediction, database and verdict do not agree, as sentences; empty where they do."""
        found = [
            f"the log tells of {executions} executions of {key}, and the database holds {rows} rows"
            for key, executions, rows in self.outcome.disagreements
        ]
        if self.outcome.unsettled:
            found.append(f"it was not over in time: {self.outcome.unsettled}")
        if not self.outcome.restarted:
            found.append("no task was started twice: the fault did not strike")
        if self.verdict.verdict != self.predicted:
            reason = f" ({self.verdict.reason})" if self.verdict.reason else ""
            found.append(f"predicted was {self.predicted}, and the verdict is {self.verdict.verdict}{reason}")
        twice = sum(rows > 1 for rows in self.outcome.rows.values())
        if self.predicted == "violates" and not twice:
            found.append("predicted was a second effect, and the database holds none")
        if self.predicted == "conforms" and twice:
            found.append(f"predicted was one effect a task, and the database holds more for {twice}")
        missing = sum(rows == 0 for rows in self.outcome.rows.values())
        if missing:
            found.append(f"the database holds no effect of {missing} tasks")
        return found


def exit_code(rows: list[Row], *, mode: str | None, expect: str | None) -> int:
    """Of all modes: 0 where each agrees. Of one: the verdict's, 0 for the expected one; 1 if the database disagrees."""
    if mode is None:
        return int(any(row.differences for row in rows))
    (row,) = rows
    if row.outcome.disagreements:
        return 1
    if expect is None:
        return row.verdict.exit_code
    return 0 if row.verdict.verdict == expect else row.verdict.exit_code or 1


@click.command("run", cls=Subcommand)
@click.argument("pilot", type=click.Choice(["celery"]))
@click.option("--mode", type=click.Choice(MODES), help="One mode; without it all of them.")
@click.option(
    "--experiment", type=click.Choice(EXPERIMENTS), default=EXPERIMENTS[0], show_default=True, help="What goes wrong."
)
@click.option(
    "--runtime",
    type=click.Choice(["embedded", "external"]),
    default="embedded",
    show_default=True,
    help="Servers that are started for the run, or servers that are there.",
)
@click.option("--valkey-url", metavar="URL", help="external: redis://… (default: $SPECWATCH_VALKEY_URL).")
@click.option("--postgres-url", metavar="URL", help="external: postgresql://… (default: $SPECWATCH_POSTGRES_URL).")
@click.option("--tasks", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="How many tasks.")
@click.option(
    "--workers", type=click.IntRange(min=1, max=64), default=2, show_default=True, metavar="N", help="How many workers."
)
@click.option("--keep", metavar="DIR", help="Keep the run directory here; of several modes, one folder each in it.")
@click.option("--expect", type=click.Choice(_VERDICTS), help="With --mode: exit 0 if this is the verdict.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="What the task ids are made from.")
@verdict_options
@bound_options
@output_options
def command(pilot: str, **given: Any) -> int:
    """Run a pilot on real servers, make its fault happen, and judge what it did.

    PILOT is celery: Celery workers on Valkey or Redis, whose task stores a row in PostgreSQL. The model predicts what
    each mode does, the rows are counted after the workers stopped, and the events are replayed against the spec.

    Exit code 0: prediction, database and verdict agree in every mode; 1: they do not. With --mode: the verdict's, as
    for check; 0 where it is the one that --expect names.
    """
    if given["expect"] and not given["mode"]:
        raise click.UsageError("--expect needs --mode: without it every mode has the verdict that its model predicts")
    _check_clients()
    keep = None if given["keep"] is None else _new_folder(Path(given["keep"]))
    modes: tuple[Mode, ...] = (given["mode"],) if given["mode"] else MODES
    experiment: Name = given["experiment"]
    plans = [
        plan(mode, experiment, tasks=given["tasks"], workers=given["workers"], seed=given["seed"]) for mode in modes
    ]
    with _ended_by_sigterm():
        rows = _run(plans, keep, given)
    code = exit_code(rows, mode=given["mode"], expect=given["expect"])
    if given["junit"]:
        text = run_report.junit(rows, tolerated=given["expect"] if given["mode"] else None, all_modes=not given["mode"])
        Path(given["junit"]).write_text(text, encoding="utf-8")
    if given["json"]:
        write_json(run_report.document(rows, code))
    else:
        color = wants_color(given["no_color"])
        write(run_report.text(rows, runtime=given["runtime"], keep=keep, color=color, quiet=given["quiet"]))
    return code


def _run(plans: list[Plan], keep: Path | None, given: Mapping[str, Any]) -> list[Row]:
    """All experiments at once, on one set of servers. While they run, the model is explored."""
    from specwatch.pilots import runtime
    from specwatch.pilots.celery.experiment import Experiment
    from specwatch.pilots.scratch import scratch

    say = _progress(given["quiet"])
    urls = {name: url for name, url in (("valkey", given["valkey_url"]), ("postgres", given["postgres_url"])) if url}
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(scratch())
        say(f"starting servers ({given['runtime']})")
        # Not below the scratch folder, which only this user may enter: PostgreSQL may have to run as another.
        servers = stack.enter_context(
            runtime.start(given["runtime"], directory=Path(tempfile.gettempdir()), urls=urls, logs=root / "logs")
        )
        running: list[Experiment] = []
        for own in plans:
            say(f"{own.mode}: starting {own.workers} workers")
            directory = (keep / own.mode if len(plans) > 1 else keep) if keep else root / "runs" / own.mode
            running.append(stack.enter_context(Experiment(own, servers, directory, root)))
        predictions = []
        for own in plans:
            say(f"{own.mode}: exploring the model, {own.config}")
            predictions.append(_predict(own, given))
        outcomes = []
        for own, one in zip(plans, running, strict=True):
            say(f"{own.mode}: waiting until every copy is done with")
            one.settle()
        for one in running:
            one.wind_down()
        for own, one in zip(plans, running, strict=True):
            say(f"{own.mode}: stopping the workers, counting rows")
            outcomes.append(one.finish(shipped.specs_folder() / "celery"))
        rows = []
        for own, prediction, outcome in zip(plans, predictions, outcomes, strict=True):
            say(f"{own.mode}: replaying {len(outcome.keys):,} tasks")
            rows.append(_judge(own, servers["valkey"], prediction, outcome, given))
        return rows


def _predict(own: Plan, given: Mapping[str, Any]) -> Exploration:
    """What the mode's model says of it: whether an invariant can break."""
    from specwatch.checker.api import load_spec
    from specwatch.checker.explore import explore

    folder = shipped.specs_folder() / "celery"
    return explore(
        load_spec(folder / "CeleryRedis.tla", folder / own.config),
        max_states=given["max_states"],
        timeout=_EXPLORE_TIMEOUT if given["timeout"] is None else given["timeout"],
        max_memory=given["max_memory"],
    )


def _judge(own: Plan, broker: Server, prediction: Exploration, outcome: Outcome, given: Mapping[str, Any]) -> Row:
    """Judge a run directory as ``check`` does, and put the verdict into it."""
    from specwatch.checker import report
    from specwatch.collector.assemble import collect

    from . import check

    directory = str(outcome.directory)
    bounds = ("max_states", "timeout", "max_memory", "max_findings", "allow_inconclusive")
    defaults = check.command.make_context("check", [directory]).params
    verdict = check.judged(directory, (), {**defaults, **{name: given[name] for name in bounds}})
    (outcome.directory / "verdict.json").write_text(f"{report.render('json', verdict)}\n", encoding="utf-8")
    (outcome.directory / "report.txt").write_text(report.render("text", verdict), encoding="utf-8")
    (behaviour,) = collect([directory], format="native", order="total").behaviours
    return Row(own, broker.version, prediction, outcome, verdict, behaviour.events)


def _check_clients() -> None:
    missing = [name for name in ("celery", "redis", "psycopg") if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(f"not installed: {', '.join(missing)}", hint="pip install 'specwatch[pilots,embedded]'")


def _new_folder(path: Path) -> Path:
    """The folder of ``--keep``, which must not hold anything: an earlier run is evidence."""
    if path.is_dir() and any(path.iterdir()):
        raise Refused("is not empty", file=str(path), hint="a run is kept in a folder of its own")
    path.mkdir(parents=True, exist_ok=True)
    return path


def _progress(quiet: bool) -> Any:
    """Says a line on stderr, where that is a terminal."""
    if not shows_progress(quiet):
        return lambda _: None

    def say(line: str) -> None:
        sys.stderr.write(f"{line} …\n")
        sys.stderr.flush()

    return say


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does: with everything that it started."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
