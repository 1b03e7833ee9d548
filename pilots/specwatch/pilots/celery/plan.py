"""What is run: the plan of one experiment in one mode, and what the pilot's processes are told of it."""

from __future__ import annotations

import os
import random
import uuid
from typing import Literal, get_args

import msgspec

Mode = Literal["faulty", "check-then-insert", "idempotent"]
"""How the task guards its effect: ``guards`` has one function for each."""

Name = Literal["visibility-timeout", "eta"]
"""``visibility-timeout``: late acks, and a task that works longer than the timeout. ``eta``: early acks, and a task
that waits for its countdown in a worker's memory longer than the timeout."""

MODES: tuple[Mode, ...] = get_args(Mode)
EXPERIMENTS: tuple[Name, ...] = get_args(Name)

CONFIGS: dict[tuple[Mode, Name], str] = {
    ("faulty", "visibility-timeout"): "CeleryRedis.faulty.cfg",
    ("check-then-insert", "visibility-timeout"): "CeleryRedis.check-then-insert.cfg",
    ("idempotent", "visibility-timeout"): "CeleryRedis.idempotent.cfg",
    ("faulty", "eta"): "CeleryRedis.early-eta.cfg",
    ("check-then-insert", "eta"): "CeleryRedis.early-check-then-insert.cfg",
    ("idempotent", "eta"): "CeleryRedis.early-idempotent.cfg",
}
"""Which config of ``specs/celery`` describes a mode: the guard, and when the ack comes."""

REQUIRED: dict[Mode, tuple[str, ...]] = {"faulty": (), "check-then-insert": (), "idempotent": ("Skip",)}
"""What must have happened: a guard that was never asked twice has proven nothing. The model has no Skip without a
second Start, so that a run that conforms and has a Skip has both."""

ENVIRONMENT = "SPECWATCH_CELERY_PILOT"
"""The environment variable that holds the ``Settings`` of a pilot's process, as JSON."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment in one mode. Times are seconds; use ``plan`` to make one."""

    mode: Mode
    experiment: Name
    tasks: int
    workers: int
    concurrency: int
    """Pool children of each worker."""
    struck: int
    """How many of the tasks the fault strikes, the first ones: they take, or wait, longer than the timeout."""
    seed: int
    visibility_timeout: int = 2
    """Whole seconds. The sweep runs every second, so that a redelivery comes 2 to 3 s after the pickup."""
    countdown: float = 5.0
    """With ``eta``: how far ahead a struck task's time is. Two timeouts and a sweep: two or three copies wait."""
    patience: float = 20.0
    """The longest that a struck task works: until another copy of it has come as far, or this time is over."""
    retries: int = 0
    """How often each task fails and is retried before it stores anything."""

    @property
    def late_ack(self) -> bool:
        return self.experiment == "visibility-timeout"

    @property
    def config(self) -> str:
        return CONFIGS[self.mode, self.experiment]

    def ids(self) -> list[str]:
        """The tasks' ids: the same for the same seed, in every mode."""
        numbers = random.Random(self.seed)
        return [str(uuid.UUID(int=numbers.getrandbits(128), version=4)) for _ in range(self.tasks)]


def plan(
    mode: Mode, experiment: Name = "visibility-timeout", *, tasks: int = 1, workers: int = 2, seed: int = 0
) -> Plan:
    """A plan in which the fault is sure to strike: one task of fifty, and enough pool children for all its copies."""
    struck = min(max(1, tasks // 50), 4)
    # A struck task holds its child until another copy has come as far: a child must be free for that copy. With late
    # acks a worker takes no more than it has children, so that one free child anywhere is enough; ETA tasks are taken
    # by whoever is first.
    concurrency = 1 + struck // workers if experiment == "visibility-timeout" else 1 + struck
    return Plan(
        mode=mode,
        experiment=experiment,
        tasks=tasks,
        workers=workers,
        concurrency=concurrency,
        struck=struck,
        seed=seed,
    )


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker or the producer is told: the plan, and where its servers and its folder are."""

    plan: Plan
    broker: str
    """``redis://…``"""
    prefix: str
    """What every key in the broker begins with."""
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
