"""What a broker's folder is to the rest: a ``Pilot``, held as ``PILOT``, which says what is run on it and how.

A new broker is such a folder, a row in ``NAMES``, and its spec.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .errors import PilotError
from .faults import Need
from .plan import Mode, Plan, Settings

NAMES = ("celery", "rabbitmq", "nats", "kafka", "pulsar")
"""In the order in which a matrix shows them."""

MODULES = {"confluent-kafka": "confluent_kafka", "nats-py": "nats", "pulsar-client": "pulsar"}
"""A client's distribution → what it is imported as, where something is checked before a run."""


@dataclass(frozen=True)
class Pilot:
    """A small application on a real broker, and what is told about it."""

    name: str
    """The stem: ``specs/<name>``, ``pilots/<name>``, ``compose/<name>.yaml``."""
    title: str
    """For people: "RabbitMQ"."""
    server: str
    """What the runtime starts, a row of ``runtime.programs.SOURCES``; PostgreSQL always besides."""
    clients: tuple[str, ...]
    """Distributions whose versions are reported."""
    experiments: Mapping[str, str]
    """Name → one sentence for people, with the plan's fields in braces. The first is the default."""
    configs: Mapping[tuple[Mode, str], str]
    """(mode, experiment) → the config in ``specs/<name>`` that describes it."""
    ends: frozenset[str]
    """The actions that end a copy's body, or the copy before its body begins."""
    worker: str
    """The module that is run as ``python -m … NAME``, a process for each worker."""
    producer: str
    """The module that is run as ``python -m …``: publishes when all workers are ready, over ``span``, and ends."""
    plan: Callable[..., Plan]
    """``plan(mode, experiment, *, tasks, workers, seed)``."""
    binding: Callable[[Plan], str]
    """The ``binding.toml`` of a run directory."""
    waiting: Callable[[Settings], int]
    """How many messages the broker has not seen settled, asked of the broker. Raises ``ServerError``."""
    redeliver: Callable[[Settings, str], bool] | None = None
    """Delivers the message of a key again before its timeout, where anyone can; whether it was held."""
    lacks: frozenset[Need] = frozenset()
    """What faults are made with, and cannot be had here: a proxy, a nack."""

    def spec(self, plan: Plan) -> str:
        """The module's file in ``specs/<name>``; its configs are called after it."""
        return f"{self.config(plan).partition('.')[0]}.tla"

    def config(self, plan: Plan) -> str:
        """The config's file in ``specs/<name>``."""
        return self.configs[plan.mode, plan.experiment]

    @property
    def needs(self) -> tuple[str, ...]:
        """The servers of a run, by name."""
        return (self.server, "postgres")


def load(name: str) -> Pilot:
    """The pilot of a broker. Raises ``PilotError`` where there is none, or a client of it is not installed."""
    if name not in NAMES:
        raise PilotError(f"no pilot is called {name}", hint=f"the pilots are {', '.join(NAMES)}")
    module = f"{__package__}.{name}"
    if importlib.util.find_spec(module) is None:
        raise PilotError(f"the pilot {name} is not there: {module} was not installed with the rest")
    pilot: Pilot = importlib.import_module(module).PILOT
    missing = [client for client in pilot.clients if not is_there(MODULES.get(client, client))]
    if missing:
        raise PilotError(f"not installed: {', '.join(missing)}", hint="pip install 'specwatch[pilots,embedded]'")
    return pilot


def is_there(module: str) -> bool:
    """Whether a module can be imported, or was: kombu puts one without a spec in its own place."""
    return module in sys.modules or importlib.util.find_spec(module) is not None
