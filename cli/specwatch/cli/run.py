"""``specwatch run PILOT``: a chaos run. What the model predicts, what really happens, what the replay says of it."""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from specwatch.pilots import pilot as pilots
from specwatch.pilots.pilot import Pilot
from specwatch.pilots.plan import MODES, Mode, Plan

from . import run_report, shipped
from .app import Subcommand
from .errors import Refused
from .output import bound_options, output_options, shows_progress, verdict_options, wants_color, write, write_json

if TYPE_CHECKING:
    from specwatch.checker.behaviour import Event
    from specwatch.checker.explore import Exploration
    from specwatch.checker.verdict import Verdict
    from specwatch.pilots.experiment import Outcome
    from specwatch.pilots.runtime import Server
    from specwatch.pilots.schedule import Schedule

_F = TypeVar("_F", bound=Callable[..., Any])

_VERDICTS = ("conforms", "violates", "diverges", "inconclusive", "vacuous")
_EXPLORE_TIMEOUT = 45.0


@dataclass(frozen=True)
class Row:
    """One mode: what was predicted, what was observed, and the verdict."""

    pilot: Pilot
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
        return run_report.VERDICT_OF.get(self.prediction.outcome, self.prediction.outcome)

    @property
    def word(self) -> str:
        """The verdict of the run: no better than its faults allow, since what is not proven to have happened proves
        nothing."""
        word = self.verdict.verdict
        return self.outcome.doubt[0] if self.outcome.doubt and word in ("conforms", "vacuous") else word

    @property
    def reason(self) -> str | None:
        """Why it is inconclusive or vacuous."""
        return (
            self.outcome.doubt[1] if self.outcome.doubt and self.word != self.verdict.verdict else self.verdict.reason
        )

    @property
    def exit_code(self) -> int:
        """The verdict's."""
        return self.verdict.exit_code if self.word == self.verdict.verdict else 3

    @property
    def differences(self) -> list[str]:
        """Why prediction, database and verdict do not agree, as sentences; empty where they do."""
        found = [
            f"the log tells of {executions} executions of {key}, and the database holds {rows} rows"
            for key, executions, rows in self.outcome.disagreements
        ]
        if self.outcome.unsettled:
            found.append(f"it was not over in time: {self.outcome.unsettled}")
        twice = sum(rows > 1 for rows in self.outcome.rows.values())
        found += self._injected(twice) if self.plan.faults else self._struck(twice)
        if self.predicted == "conforms" and twice:
            found.append(f"predicted was one effect a task, and the database holds more for {twice}")
        missing = sum(rows == 0 for rows in self.outcome.rows.values())
        if missing:
            found.append(f"the database holds no effect of {missing} tasks")
        return found

    def _struck(self, twice: int) -> list[str]:
        """Of an experiment, whose strike is sure: it must have come, and what the model says can break must break."""
        found = []
        if not self.outcome.restarted:
            found.append("no task was started twice: the fault did not strike")
        if self.word != self.predicted:
            found.append(f"predicted was {self.predicted}, and the verdict is {self.word}{self._because}")
        if self.predicted == "violates" and not twice:
            found.append("predicted was a second effect, and the database holds none")
        return found

    def _injected(self, twice: int) -> list[str]:
        """Of faults, which need not break what can break: the rows are the judge. Each fault must be proven.

        A worker that was killed leaves open what it held, which is then undecided, and disagrees with nothing.
        """
        found = [f"a fault is not proven: {self.outcome.doubt[1]}"] if self.outcome.doubt else []
        word = self.verdict.verdict
        surely = sum(rows > self._sent[key] for key, rows in self.outcome.rows.items())
        if surely if word != "violates" else not twice:
            found.append(f"the database holds more than one effect of {twice} tasks, and the verdict is {word}")
        elif word not in ("conforms", "violates") and not self._left_open:
            found.append(f"the verdict is {word}{self._because}")
        found += self._by_task()
        if self.predicted not in ("conforms", "violates"):
            found.append(f"the prediction is {self.predicted}")
        return found

    def _by_task(self) -> list[str]:
        """Of each task: it must violate exactly where the database holds more than one effect of it.

        One that was sent again, since its broker was away and gave no answer, may be there as often.
        """
        verdict = self.verdict
        words = {finding.key: finding.verdict for finding in verdict.findings}
        all_told = len(words) == verdict.behaviours.total - verdict.behaviours.conforms
        return [
            f"the database holds {rows} rows for {key}, and its verdict is {words.get(key, 'conforms')}"
            for key, rows in self.outcome.rows.items()
            if (words.get(key) == "violates" and rows < 2) or (rows > self._sent[key] and key not in words and all_told)
        ]

    @functools.cached_property
    def _sent(self) -> dict[str, int]:
        """How often each task was sent, as far as the log tells; once at the least."""
        told = Counter(event.key for event in self.events if event.action in ("Publish", "Republish"))
        return {key: max(1, told[key]) for key in self.outcome.rows}

    @property
    def _left_open(self) -> bool:
        """Whether nothing but what a killed worker held is undecided."""
        verdict = self.verdict
        return (
            any(fault.fault.kind == "kill" and fault.is_proven for fault in self.outcome.faults)
            and verdict.verdict == "inconclusive"
            and set(verdict.undecided_by_reason) <= {"open-tail"}
        )

    @property
    def _because(self) -> str:
        return f" ({self.reason})" if self.reason else ""


def exit_code(rows: list[Row], *, mode: str | None, expect: str | None) -> int:
    """Of all modes: 0 where each agrees. Of one: the verdict's, 0 for the expected one; 1 if the database disagrees."""
    if mode is None:
        return int(any(row.differences for row in rows))
    (row,) = rows
    if row.outcome.disagreements:
        return 1
    if expect is None:
        return row.exit_code
    return 0 if row.word == expect else row.exit_code or 1


def plan_options(function: _F) -> _F:
    """``--faults``, ``--runtime``, ``--tasks``, ``--workers`` and ``--seed``: of the commands that run a pilot."""
    for option in (
        click.option(
            "--seed", type=int, default=0, show_default=True, metavar="N", help="Ids and faults are made from it."
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1, max=64),
            default=2,
            show_default=True,
            metavar="N",
            help="How many workers.",
        ),
        click.option(
            "--tasks", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="How many tasks."
        ),
        click.option(
            "--runtime",
            type=click.Choice(["embedded", "external"]),
            default="embedded",
            show_default=True,
            help="Servers that are started for the run, or servers that are there.",
        ),
        click.option(
            "--faults",
            metavar="KINDS",
            help="What is injected instead: random, or stall,kill,… (see docs/faults.md).",
        ),
    ):
        function = option(function)
    return function


@click.command("run", cls=Subcommand)
@click.argument("pilot", type=click.Choice(pilots.NAMES))
@click.option("--mode", type=click.Choice(MODES), help="One mode; without it all of them.")
@click.option("--experiment", metavar="NAME", help="What goes wrong (default: the pilot's first).")
@plan_options
@click.option(
    "--broker-url", metavar="URL", help="external: the broker (default: $SPECWATCH_VALKEY_URL, …_NATS_URL, …)."
)
@click.option("--valkey-url", metavar="URL", help="external: the same for a Valkey or Redis.")
@click.option("--postgres-url", metavar="URL", help="external: postgresql://… (default: $SPECWATCH_POSTGRES_URL).")
@click.option("--keep", metavar="DIR", help="Keep the run directory here; of several modes, one folder each in it.")
@click.option("--expect", type=click.Choice(_VERDICTS), help="With --mode: exit 0 if this is the verdict.")
@verdict_options
@bound_options
@output_options
def command(pilot: str, **given: Any) -> int:
    """Run a pilot on real servers, make its fault happen, and judge what it did.

    PILOT is celery (workers on Valkey or Redis) or another broker: a consumer that stores a row in PostgreSQL for each
    message. The model predicts what each mode does, the rows are counted after the workers stopped, and the events are
    replayed against the spec. With --faults, what the experiment strikes is left out, and faults are injected.

    Exit code 0: prediction, database and verdict agree in every mode; 1: they do not. With --mode: the verdict's, as
    for check; 0 where it is the one that --expect names.
    """
    if given["expect"] and not given["mode"]:
        raise click.UsageError("--expect needs --mode: without it every mode has the verdict that its model predicts")
    chosen = pilots.load(pilot)
    modes: tuple[Mode, ...] = (given["mode"],) if given["mode"] else MODES
    plans, faults = planned(chosen, modes, given)
    keep = None if given["keep"] is None else _new_folder(Path(given["keep"]))
    with ended_by_sigterm():
        rows = run(chosen, plans, faults, keep, given)
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


def planned(pilot: Pilot, modes: tuple[Mode, ...], given: Mapping[str, Any]) -> tuple[list[Plan], Schedule | None]:
    """The plans of the modes, and the faults, which are the same in each. Raises ``UsageError`` and ``PilotError``."""
    experiment = given["experiment"] or next(iter(pilot.experiments))
    if experiment not in pilot.experiments:
        known = ", ".join(pilot.experiments)
        raise click.UsageError(f"{pilot.name} has no experiment '{experiment}': it has {known}")
    plans = [
        pilot.plan(mode, experiment, tasks=given["tasks"], workers=given["workers"], seed=given["seed"])
        for mode in modes
    ]
    if not given["faults"]:
        return plans, None
    from specwatch.pilots.chaos import scheduled

    if given["workers"] < 2:
        raise click.UsageError("--faults needs two workers: one must be there to do what the other cannot")
    restarts = given["runtime"] == "embedded"
    made = [scheduled(pilot, own, given["faults"], restarts=restarts) for own in plans]
    return [own for own, _ in made], made[0][1]


def run(
    pilot: Pilot, plans: list[Plan], faults: Schedule | None, keep: Path | None, given: Mapping[str, Any]
) -> list[Row]:
    """All experiments at once, on one set of servers. While they run, the model is explored. Raises ``PilotError``."""
    from specwatch.pilots import chaos, runtime
    from specwatch.pilots.restart import Broker
    from specwatch.pilots.scratch import scratch

    say = progress(given["quiet"])
    specs = shipped.specs_folder() / pilot.name
    urls = {name: given[f"{name}_url"] for name in ("valkey", "postgres") if given[f"{name}_url"]}
    if given["broker_url"]:
        urls[pilot.server] = given["broker_url"]
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(scratch())
        say(f"starting servers ({given['runtime']})")
        # Not below the scratch folder, which only this user may enter: PostgreSQL may have to run as another.
        servers = stack.enter_context(
            runtime.start(
                given["runtime"],
                directory=Path(tempfile.gettempdir()),
                needs=pilot.needs,
                urls=urls,
                logs=root / "logs",
            )
        )
        broker = stack.enter_context(Broker(servers[pilot.server]))
        running: list[chaos.Chaos] = []
        for own in plans:
            say(f"{own.mode}: starting {own.workers} workers")
            directory = (keep / own.mode if len(plans) > 1 else keep) if keep else root / "runs" / own.mode
            started = chaos.start(pilot, own, servers, directory, root, faults=faults, broker=broker)
            running.append(stack.enter_context(started))
        predictions = []
        for own in plans:
            say(f"{own.mode}: exploring the model, {pilot.config(own)}")
            predictions.append(_predict(pilot, own, given))
        outcomes = []
        for own, one in zip(plans, running, strict=True):
            say(f"{own.mode}: waiting until every copy is done with")
            one.settle()
        for one in running:
            one.wind_down()
        for own, one in zip(plans, running, strict=True):
            say(f"{own.mode}: stopping the workers, counting rows")
            outcomes.append(one.finish(specs))
        rows = []
        for own, prediction, outcome in zip(plans, predictions, outcomes, strict=True):
            say(f"{own.mode}: replaying {len(outcome.keys):,} tasks")
            rows.append(_judge(pilot, own, servers[pilot.server], prediction, outcome, given))
        return rows


def _predict(pilot: Pilot, own: Plan, given: Mapping[str, Any]) -> Exploration:
    """What the mode's model says of it: whether an invariant can break."""
    folder = shipped.specs_folder() / pilot.name
    timeout = _EXPLORE_TIMEOUT if given["timeout"] is None else given["timeout"]
    limits = given["max_states"], timeout, given["max_memory"]
    return _explored(folder / pilot.spec(own), folder / pilot.config(own), *limits)


@functools.cache  # Of a matrix: experiments have models in common.
def _explored(
    spec: Path, config: Path, max_states: int | None, timeout: float | None, max_memory: int | None
) -> Exploration:
    from specwatch.checker.api import load_spec
    from specwatch.checker.explore import explore

    return explore(load_spec(spec, config), max_states=max_states, timeout=timeout, max_memory=max_memory)


def _judge(
    pilot: Pilot, own: Plan, broker: Server, prediction: Exploration, outcome: Outcome, given: Mapping[str, Any]
) -> Row:
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
    return Row(pilot, own, broker.version, prediction, outcome, verdict, behaviour.events)


def _new_folder(path: Path) -> Path:
    """The folder of ``--keep``, which must not hold anything: an earlier run is evidence."""
    if path.is_dir() and any(path.iterdir()):
        raise Refused("is not empty", file=str(path), hint="a run is kept in a folder of its own")
    path.mkdir(parents=True, exist_ok=True)
    return path


def progress(quiet: bool) -> Any:
    """Says a line on stderr, where that is a terminal."""
    if not shows_progress(quiet):
        return lambda _: None

    def say(line: str) -> None:
        sys.stderr.write(f"{line} …\n")
        sys.stderr.flush()

    return say


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does: with everything that it started."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
