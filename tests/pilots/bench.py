"""What the tests of all pilots run experiments on, and how they have these judged."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec

from specwatch.cli import check
from specwatch.pilots.experiment import Experiment, Outcome
from specwatch.pilots.pilot import Pilot
from specwatch.pilots.plan import Plan
from specwatch.pilots.runtime import Server

PATIENCE = 60.0
"""Seconds for a worker to come as far as a test wants it, on a machine with much else to do."""
VERDICTS = {"faulty": "violates", "check-then-insert": "violates", "idempotent": "conforms"}


class Bench:
    """Servers, and folders in which a pilot's experiments leave their runs."""

    def __init__(self, pilot: Pilot, servers: dict[str, Server], folder: Path) -> None:
        self.pilot = pilot
        self.servers = servers
        self.folder = folder
        self.specs = Path(__file__).parents[2] / "specs" / pilot.name
        self.numbers = itertools.count()

    def experiment(self, plan: Plan) -> Experiment:
        """An experiment with names and tables of its own, beside others in the same mode."""
        number = next(self.numbers)
        run, scratch = self.folder / f"run-{number}", self.folder / f"scratch-{number}"
        one = Experiment(self.pilot, plan, self.servers, run, scratch)
        one.settings = msgspec.structs.replace(one.settings, prefix=f"{number}.", name=f"{plan.mode}_{number}")
        return one

    def run(self, plan: Plan) -> Outcome:
        with self.experiment(plan) as one:
            one.settle()
            return one.finish(self.specs)


def judged(directory: Path) -> Any:
    """What ``specwatch check DIRECTORY`` says."""
    return check.judged(str(directory), (), check.command.make_context("check", [str(directory)]).params)
