"""What is run with Celery: its experiments, and what they need beyond the common plan."""

from __future__ import annotations

import os
import random

import msgspec

from .. import bindings
from .. import plan as common
from ..plan import Mode, struck_of

EXPERIMENTS = {
    "visibility-timeout": "late ack, and a task that works longer than the visibility timeout of {timeout:g} s",
    "eta": "early ack, and a countdown of {countdown:g} s, longer than the visibility timeout of {timeout:g} s",
}
"""``visibility-timeout``: late acks, and a task that works longer than the timeout. ``eta``: early acks, and a task
that waits for its countdown in a worker's memory longer than the timeout."""

CONFIGS: dict[tuple[Mode, str], str] = {
    ("faulty", "visibility-timeout"): "CeleryRedis.faulty.cfg",
    ("check-then-insert", "visibility-timeout"): "CeleryRedis.check-then-insert.cfg",
    ("idempotent", "visibility-timeout"): "CeleryRedis.idempotent.cfg",
    ("faulty", "eta"): "CeleryRedis.early-eta.cfg",
    ("check-then-insert", "eta"): "CeleryRedis.early-check-then-insert.cfg",
    ("idempotent", "eta"): "CeleryRedis.early-idempotent.cfg",
}
"""Which config of ``specs/celery`` describes a mode: the guard, and when the ack comes."""


class Plan(common.Plan, frozen=True, kw_only=True):
    """The timeout is the visibility timeout. The sweep runs every second: a redelivery comes up to a second later."""

    countdown: float = 5.0
    """With ``eta``: how far ahead a struck task's time is. Two timeouts and a sweep: two or three copies wait."""
    retries: int = 0
    """How often each task fails and is retried before it stores anything."""
    longest: float = 0.0
    """The longest that a task works after its effect; each works for a time of its own, which its id tells."""

    def lasts(self, identity: str) -> float:
        """For how long the task of an id works after its effect, uniformly between nothing and ``longest``."""
        return self.longest * random.Random(identity).random()

    @property
    def late_ack(self) -> bool:
        return self.experiment == "visibility-timeout"


class Settings(common.Settings, frozen=True, kw_only=True):
    """What a worker or the producer is told."""

    plan: Plan

    @classmethod
    def from_environment(cls) -> Settings:
        """As of all pilots, with the plan's own fields."""
        return msgspec.json.decode(os.environ[common.ENVIRONMENT], type=cls)


def plan(
    mode: Mode, experiment: str = "visibility-timeout", *, tasks: int = 1, workers: int = 2, seed: int = 0
) -> Plan:
    """A plan in which the fault is sure to strike: one task of fifty, and enough pool children for all its copies."""
    struck = struck_of(tasks)
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


def binding(plan: common.Plan) -> str:
    """The binding by which a run is judged. All that the probes can tell is told, so that little is hidden."""
    return bindings.binding(
        plan,
        # A worker that was killed leaves in doubt what it held: that must not be the whole run.
        scope="key" if plan.faults else "run",
        hidden="""\
# VisTimeout: Redis tells no one. Check: what a guard answers is seen in what follows, Execute or Skip.
# Resend: the next attempt is sent before the retry is told.
hidden = ["Check", "Resend", "VisTimeout"]
""",
        unwritten=1,  # One thread of its main process tells of all.
        terminal=("Done", "Fail", "Ack", "Reject", "Revoke", "Expire"),
        constants="",
    )
