"""An experiment with the faults that are injected into it, if any are; the rest of a run knows it only as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from . import proxy, schedule
from .experiment import Experiment, Outcome
from .faults import Need
from .injector import Injector
from .pilot import Pilot
from .plan import Plan
from .restart import Broker
from .runtime import Server
from .schedule import Schedule

SWEEP = 1.0
"""Seconds after its timeout within which a broker of a pilot has given a message to another worker."""


class Chaos:
    """One experiment that runs; ``start`` makes it."""

    def __init__(self, experiment: Experiment, injector: Injector | None) -> None:
        self.experiment = experiment
        self.injector = injector

    def settle(self) -> None:
        """Wait until all is done, and the faults are over. Raises ``PilotError`` where it cannot go on."""
        injector = self.injector
        self.experiment.settle(lambda: injector is None or injector.is_over)

    def wind_down(self) -> None:
        """Heal what is not healed, then ask the workers to stop when their bodies are done."""
        if self.injector is not None:
            self.injector.stop()
        self.experiment.wind_down()

    def finish(self, spec_folder: Path) -> Outcome:
        """Stop the workers, count the rows, write the run directory. ``spec_folder`` holds the spec and its configs."""
        if self.injector is None:
            return self.experiment.finish(spec_folder)
        injector = self.injector
        injector.stop()
        outcome = self.experiment.finish(spec_folder, ended=injector.finish)
        outcome.faults, outcome.doubt = injector.records, injector.doubt
        return outcome


@contextlib.contextmanager
def start(
    pilot: Pilot,
    plan: Plan,
    servers: Mapping[str, Server],
    directory: Path,
    scratch: Path,
    *,
    faults: Schedule | None = None,
    broker: Broker | None = None,
) -> Iterator[Chaos]:
    """Start an experiment, and its faults; arguments as of ``Experiment``. Raises ``PilotError``."""
    with contextlib.ExitStack() as stack:
        links = None
        if faults is not None and faults.needs("proxy"):
            url = urlsplit(servers[pilot.server].url)
            names = [f"worker-{number}" for number in range(1, plan.workers + 1)]
            log = directory / "logs" / "proxy.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            links = stack.enter_context(proxy.start(url.hostname or "127.0.0.1", url.port or 0, names, log=log))
        one = stack.enter_context(Experiment(pilot, plan, servers, directory, scratch, links))
        if faults is None:
            yield Chaos(one, None)
            return
        again = pilot.redeliver
        injector = Injector(
            one,
            faults,
            timeout=plan.timeout + SWEEP,
            links=links,
            broker=broker,
            redeliver=None if again is None else lambda key: again(one.settings, key),
        )
        yield Chaos(one, stack.enter_context(injector))


def scheduled(pilot: Pilot, plan: Plan, text: str, *, restarts: bool) -> tuple[Plan, Schedule]:
    """A plan under the faults of a text, and when they strike. ``restarts``: the broker is the run's own.

    The experiment's own strike is left out: what happens twice does so because of a fault. Raises ``PilotError``.
    """
    has: list[Need] = ["body", "proxy", "nack"]
    if restarts:
        has.append("broker")
    if pilot.redeliver is not None:
        has.append("redelivery")
    made = schedule.parse(
        text,
        tasks=plan.tasks,
        workers=plan.workers,
        seed=plan.seed,
        timeout=plan.timeout + SWEEP,
        possible=schedule.possible(has={*has} - pilot.lacks),
    )
    return msgspec.structs.replace(plan, faults=text, span=made.span, struck=0, concurrency=1), made
