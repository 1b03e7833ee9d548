"""``specwatch matrix``: every broker, experiment and mode, each as ``specwatch run`` runs it, side by side."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from specwatch.pilots import pilot as pilots
from specwatch.pilots.errors import PilotError
from specwatch.pilots.pilot import Pilot
from specwatch.pilots.plan import MODES

from . import matrix_report, run, run_report
from .app import Subcommand
from .errors import Refused
from .output import bound_options, output_options, wants_color, write, write_json

OPTIONS = "options.json"
"""What a kept matrix was begun with. Its presence says that the folder is one."""
ROWS = "rows.json"
"""The rows of one broker and experiment, written when they are complete."""
TOLD = ("faults", "runtime", "tasks", "workers", "seed")
"""The options that a matrix must be gone on with as it was begun."""


class Names(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """Names of pilots, with commas."""

    name = "names"

    def convert(
        self, value: tuple[str, ...] | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = [name.strip() for name in value.split(",")]
        for name in names:
            if name not in pilots.NAMES:
                near = difflib.get_close_matches(name, pilots.NAMES, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"the brokers are {', '.join(pilots.NAMES)}"
                self.fail(f"no broker is called '{name}': {hint}", param, ctx)
        return tuple(name for name in pilots.NAMES if name in names)


@click.command("matrix", cls=Subcommand)
@click.option("--only", type=Names(), default=pilots.NAMES, metavar="BROKER,...", help="These brokers (default: all).")
@run.plan_options
@click.option("--keep", metavar="DIR", help="Keep all run directories here, and go on where an earlier matrix stopped.")
@click.option("--markdown", is_flag=True, help="The table as Markdown.")
@click.option("--junit", metavar="FILE", help="Write a JUnit report too: a case a row.")
@bound_options
@output_options
def command(only: tuple[str, ...], **given: Any) -> int:
    """Run each broker's experiments in each mode on real servers, and show what was predicted, what happened and the
    verdict side by side.

    With --faults, faults are injected instead of the experiments. External servers are found by SPECWATCH_VALKEY_URL,
    SPECWATCH_NATS_URL and so on. A broker that cannot run is a row that says why.

    With --keep, DIR/BROKER/EXPERIMENT/MODE are run directories, and DIR holds matrix.json and matrix.md. The same
    command again runs what is missing; what a folder of DIR holds is not run again.

    Exit code 0: prediction, database and verdict agree in every row; 1: they do not, or a row could not be run.
    """
    keep = None if given["keep"] is None else _folder(Path(given["keep"]), given)
    with run.ended_by_sigterm():
        rows = _rows(only, keep, given)
    code = int(not all(row["agree"] for row in rows))
    document = matrix_report.document(rows, code)
    if keep is not None:
        _write(keep / "matrix.json", document)
        (keep / "matrix.md").write_text(matrix_report.markdown(rows), encoding="utf-8")
    if given["junit"]:
        Path(given["junit"]).write_text(matrix_report.junit(rows), encoding="utf-8")
    if given["json"]:
        write_json(document)
    elif given["markdown"] and not given["quiet"]:
        write(matrix_report.markdown(rows))
    else:
        write(matrix_report.text(rows, color=wants_color(given["no_color"]), quiet=given["quiet"]))
    return code


def _rows(names: tuple[str, ...], keep: Path | None, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of some brokers, in the order of ``NAMES``. Raises ``UsageError``."""
    say = run.progress(given["quiet"])
    rows: list[dict[str, Any]] = []
    for name in names:
        try:
            pilot = pilots.load(name)
        except PilotError as error:
            say(f"{name} cannot run: {error.message}")
            rows += matrix_report.unrun(name, None, given["faults"], error)
            continue
        # Faults are injected where no experiment strikes, so that all experiments are one.
        for experiment in list(pilot.experiments)[: 1 if given["faults"] else None]:
            what = f"faults {given['faults']}" if given["faults"] else experiment
            folder = None if keep is None else keep / name / what.replace(" ", "-")
            if folder is not None and (folder / ROWS).exists():
                say(f"{name}, {what}: is there already")
                rows += msgspec.json.decode((folder / ROWS).read_bytes())["rows"]
                continue
            say(f"{name}, {what}")
            try:
                made = _run(pilot, experiment, folder, given)
            except PilotError as error:
                say(f"{name}, {what} cannot run: {error.message}")
                rows += matrix_report.unrun(name, experiment, given["faults"], error)
                continue
            if folder is not None:
                _write(folder / ROWS, {"rows": made})
            rows += made
    return rows


def _run(pilot: Pilot, experiment: str, folder: Path | None, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All modes of an experiment. Raises ``PilotError``."""
    if folder is not None and folder.exists():
        shutil.rmtree(folder)  # It was stopped in its midst: no row tells of it.
    # What `run` can be told besides, and a matrix cannot.
    besides = {"max_findings": 100, "allow_inconclusive": None, "broker_url": None, "valkey_url": None}
    options = {**given, **besides, "postgres_url": None, "experiment": experiment}
    plans, faults = run.planned(pilot, MODES, options)
    rows = run.run(pilot, plans, faults, folder, options)
    return [{**run_report.document_row(row), "reason": None} for row in rows]


def _folder(path: Path, given: Mapping[str, Any]) -> Path:
    """The folder of ``--keep``: a new one, or that of a matrix that was begun in the same way. Raises ``Refused``."""
    told = {name: given[name] for name in TOLD}
    begun = path / OPTIONS
    if begun.exists():
        try:
            before = msgspec.json.decode(begun.read_bytes(), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise Refused(f"is not what a matrix writes: {error}", file=str(begun)) from None
        for name, value in told.items():
            if before.get(name) != value:
                raise Refused(
                    f"this matrix was begun with {_option(name, before.get(name))}, not {_option(name, value)}",
                    file=str(path),
                    hint="go on with the same options, or keep the new one in a folder of its own",
                )
        return path
    if path.is_dir() and any(path.iterdir()):
        raise Refused("is not empty, and no matrix was begun in it", file=str(path), hint="name a new folder")
    path.mkdir(parents=True, exist_ok=True)
    _write(begun, told)
    return path


def _option(name: str, value: object) -> str:
    return f"no --{name}" if value is None else f"--{name} {value}"


def _write(path: Path, what: dict[str, Any]) -> None:
    """Write JSON in one step, so that what is there is whole."""
    from specwatch.checker.report.json import dumps

    half = path.with_suffix(".half")
    half.write_text(f"{dumps(what)}\n", encoding="utf-8")
    half.replace(path)
