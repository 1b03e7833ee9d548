"""What is run on Kafka: its experiments, and how a run is judged."""

from __future__ import annotations

from .. import bindings
from ..plan import Mode, Plan, struck_of

EXPERIMENTS = {
    "poll-overrun": "a task that works longer than the max.poll.interval.ms of {timeout:g} s",
    "consumer-protocol": "the same with the group protocol of KIP-848",
    "share-group": "a share group, and a task that works longer than its record is locked, {timeout:g} s",
}
MODELS = {"poll-overrun": "Kafka", "consumer-protocol": "Kafka", "share-group": "ShareGroup"}
"""Which module of ``specs/kafka`` each is judged by."""


def plan(mode: Mode, experiment: str = "poll-overrun", *, tasks: int = 1, workers: int = 2, seed: int = 0) -> Plan:
    """A plan in which the fault is sure to strike: a member works on one message at a time, so that one must be left
    for the other copy of what is struck.
    """
    return Plan(
        mode=mode,
        experiment=experiment,
        tasks=tasks,
        workers=workers,
        concurrency=1,
        struck=min(struck_of(tasks), max(1, workers - 1)),
        seed=seed,
        timeout=4.0,
    )


def binding(plan: Plan) -> str:
    """The binding by which a run is judged. All that the probes can tell is told, so that little is hidden."""
    places = 'Partitions = { values = "p" }\nOffsets = { values = "o" }\n'
    if plan.experiment != "share-group":
        return bindings.binding(plan, hidden=bindings.CHECK, terminal=("Done", "Fail"), constants=places)
    restarts = "restart" in plan.faults or "random" in plan.faults
    forgets = (
        "# A broker that is started again has forgotten who had a record.\n[hidden.Forget]\n\n" if restarts else ""
    )
    return bindings.binding(
        plan,
        skew='skew = "250ms"   # from a delivery by the broker to its receipt, and back\n',
        hidden=f"""\
{bindings.CHECK}
# What is delivered to a member that is stopped waits for it.
[hidden.Acquire]

# The broker gives up a member that is gone, and tells no one.
[hidden.Release]

{forgets}# A lock is over, and it tells no one. It is as long as the group says.
{bindings.timer(plan, "LockTimeout", after="Delivery", length="lock")}""",
        never_lost=("Close",),
        terminal=("Done", "Fail", "Ack", "AckFail", "Reject"),
        constants=f'{places}Deliveries = {{ values = "a" }}\n',
    )
