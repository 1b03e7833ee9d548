"""What is run on RabbitMQ: its experiments."""

from __future__ import annotations

from .. import bindings
from .. import plan as common
from ..plan import MODES, Mode, Plan, striking
from ..runtime.rabbitmq import CONSUMER_TIMEOUT

EXPERIMENTS = {
    "consumer-timeout": "ack after the work, and work that takes longer than the consumer timeout of {timeout:g} s",
    "connection-cut": "ack after the work, and a connection that is cut while the work goes on",
}
"""Under both the broker puts the message back and gives it to another consumer, while the first works on."""

CONFIGS: dict[tuple[Mode, str], str] = {
    (mode, experiment): f"RabbitMQ.{mode}.cfg" for mode in MODES for experiment in EXPERIMENTS
}
"""Which config of ``specs/rabbitmq`` describes a mode. To the model a closed channel is one, for whatever reason."""


def plan(mode: Mode, experiment: str = "consumer-timeout", *, tasks: int = 1, workers: int = 2, seed: int = 0) -> Plan:
    """A plan in which the fault is sure to strike."""
    return striking(mode, experiment, tasks=tasks, workers=workers, seed=seed, timeout=CONSUMER_TIMEOUT)


def binding(plan: common.Plan) -> str:
    """The binding by which a run is judged. All that the probes can tell is told, so that little is hidden."""
    return bindings.binding(
        plan,
        hidden="""\
# Requeue: the broker closes a channel, and its worker learns of it later. Return and WordLost: what was on its way just
# then. Check: what a guard answers is seen in what follows, Execute or Skip.
hidden = ["Check", "Requeue", "Return", "WordLost"]
""",
        terminal=("Done", "Fail", "Ack", "AckFail", "Reject"),
        constants="""\
Connections = { values = "n" }
Channels = { values = "c" }
Tags = { values = "d" }
""",
    )
