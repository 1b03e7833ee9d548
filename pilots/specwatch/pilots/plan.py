"""What is run: the plan of one experiment in one mode, and what a pilot's processes are told of it."""

from __future__ import annotations

import os
import random
import uuid
from typing import Literal, get_args

import msgspec

Mode = Literal["faulty", "check-then-insert", "idempotent"]
"""How a message's work guards its effect: ``guards`` has one function for each."""

MODES: tuple[Mode, ...] = get_args(Mode)

ENVIRONMENT = "SPECWATCH_PILOT"
"""The environment variable that holds the ``Settings`` of a pilot's process, as JSON."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment in one mode; use a pilot's ``plan`` to make one. Times are seconds.

    A broker that needs more fields has a subclass, and one of ``Settings`` for its processes.
    """

    mode: Mode
    experiment: str
    tasks: int
    workers: int
    concurrency: int
    """How many messages each worker works on at a time."""
    struck: int
    """How many of the tasks the experiment strikes, the first ones: they take, or wait, longer than the timeout."""
    seed: int
    timeout: float = 2.0
    """After how long the broker gives a message to another worker."""
    patience: float = 20.0
    """The longest that a struck task works: until another copy of it has come as far, or this time is over."""
    faults: str = ""
    """What was injected beside the experiment, as it was written after ``--faults``; "" where nothing was."""
    span: float = 0.0
    """Over how long the producer spreads its messages; 0: all at once."""

    @property
    def late_ack(self) -> bool:
        """Whether the ack comes when the work is done, so that work that takes long is what is delivered again."""
        return True

    @property
    def required(self) -> tuple[str, ...]:
        """What must have happened: a guard that was never asked twice has proven nothing.

        No model has a Skip without a second Start, so that a run that conforms and has a Skip has both. What was
        injected is proven by itself, and not each fault makes a body begin twice.
        """
        return ("Skip",) if self.mode == "idempotent" and not self.faults else ()

    def ids(self) -> list[str]:
        """The tasks' ids: the same for the same seed, in every mode."""
        numbers = random.Random(self.seed)
        return [str(uuid.UUID(int=numbers.getrandbits(128), version=4)) for _ in range(self.tasks)]


def struck_of(tasks: int) -> int:
    """How many of so many tasks an experiment strikes: one of fifty, and a few at the most."""
    return min(max(1, tasks // 50), 4)


def striking(mode: Mode, experiment: str, *, tasks: int, workers: int, seed: int, timeout: float) -> Plan:
    """A plan in which the fault is sure to strike: a struck task holds its consumer until another copy has come as far,
    and there are consumers enough for all copies.
    """
    struck = struck_of(tasks)
    return Plan(
        mode=mode,
        experiment=experiment,
        tasks=tasks,
        workers=workers,
        concurrency=1 + struck // workers,
        struck=struck,
        seed=seed,
        timeout=timeout,
    )


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker or the producer is told: the plan, and where its servers and its folder are."""

    plan: Plan
    broker: str
    """The broker's URL: ``redis://…``, ``amqp://…``, ``nats://…``; a worker's may be that of a proxy before it."""
    prefix: str
    """What every name in the broker begins with."""
    database: str
    """A libpq URL."""
    directory: str
    """A folder that the processes of one experiment share."""
    name: str
    """What the tables are named after."""

    @property
    def effects(self) -> str:
        """The table in which each row is one effect: ``task``, ``attempt``, ``worker``."""
        return f"effects_{self.name}"

    @property
    def claims(self) -> str:
        """The table of claims, unique by ``task`` and ``attempt``."""
        return f"claims_{self.name}"

    def environment(self) -> dict[str, str]:
        """The variable by which a process is told."""
        return {ENVIRONMENT: msgspec.json.encode(self).decode()}

    @classmethod
    def from_environment(cls) -> Settings:
        """Raises ``KeyError`` and ``msgspec.MsgspecError`` in a process that no experiment has started."""
        return msgspec.json.decode(os.environ[ENVIRONMENT], type=cls)
