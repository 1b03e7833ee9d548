"""What is run on Pulsar: its experiments, what a plan has besides, and how a run is judged."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from .. import bindings
from .. import plan as common
from ..plan import Mode, struck_of

EXPERIMENTS = {
    "ack-timeout": "a task that works longer than the ack timeout of {timeout:g} s, in a Shared subscription",
    "close": "a consumer that is closed while its task works, in a Shared subscription",
    "key-shared": "a consumer that is closed while its task works, in a Key_Shared subscription",
}

TIMEOUT = 10.0
"""Seconds: the shortest ack timeout that the client takes."""


class Plan(common.Plan, frozen=True, kw_only=True):
    """The timeout is the client's ack timeout."""

    subscription: Literal["Shared", "Key_Shared"] = "Shared"
    closes: bool = False
    """Whether the first copy of a struck task closes its consumer while it works."""


class Settings(common.Settings, frozen=True, kw_only=True):
    """What a worker or the producer is told."""

    plan: Plan

    @classmethod
    def from_environment(cls) -> Settings:
        """As of all pilots, with the plan's own fields."""
        return msgspec.json.decode(os.environ[common.ENVIRONMENT], type=cls)


def plan(mode: Mode, experiment: str = "ack-timeout", *, tasks: int = 1, workers: int = 2, seed: int = 0) -> Plan:
    """A plan in which the fault is sure to strike.

    What is asked for again may come to the same consumer. So a worker works on one message more than are struck, and on
    one besides for what a fault holds up.
    """
    struck = struck_of(tasks)
    return Plan(
        mode=mode,
        experiment=experiment,
        tasks=tasks,
        workers=workers,
        concurrency=struck + 2,
        struck=struck,
        seed=seed,
        timeout=TIMEOUT,
        subscription="Key_Shared" if experiment == "key-shared" else "Shared",
        closes=experiment != "ack-timeout",
    )


def binding(plan: common.Plan) -> str:
    """The binding by which a run is judged. All that the probe can tell is told, so that little is hidden."""
    return bindings.binding(
        plan,
        skew='skew = "250ms"   # from a receipt by the client, whose timer begins then, to the application\'s\n',
        hidden=f"""\
{bindings.CHECK}
# What is delivered to a worker that is stopped, or works on as much as it can, waits for it.
[hidden.Deliver]

# An ack goes a moment later, with others; a negative ack when its delay is over.
[hidden.AckArrives]
[hidden.Redeliver]

# The broker gives up a consumer that is gone, or that was silent for too long, and tells no one.
[hidden.Replay]

# The client tells no one. Its timer is as long as the consumer says.
{bindings.timer(plan, "AckTimeout", after="Pickup", length="ack_timeout")}""",
        never_lost=("Close",),
        terminal=("Done", "Fail", "Ack", "AckFail"),
        constants='Batched = { values = "b" }\n',
    )
