"""The pilot on NATS JetStream: a pull consumer of nats-py that stores a row for each message.

``ack-wait``: a consumer works longer than AckWait after its effect, and the message is delivered again. ``late-ack``:
the first consumer acks after that, which settles the second one's copy too: it may work as long as it likes, and
nothing comes a third time.
"""

from __future__ import annotations

from .. import bindings
from ..pilot import Pilot
from ..plan import MODES, Mode, Plan, Settings, striking

EXPERIMENTS = {
    "ack-wait": "a task that works longer than the AckWait of {timeout:g} s",
    "late-ack": "an ack that comes after the AckWait of {timeout:g} s, and settles the redelivered copy as well",
}


def plan(mode: Mode, experiment: str = "ack-wait", *, tasks: int = 1, workers: int = 2, seed: int = 0) -> Plan:
    """A plan in which the fault is sure to strike."""
    return striking(mode, experiment, tasks=tasks, workers=workers, seed=seed, timeout=2.0)


def binding(plan: Plan) -> str:
    """The binding by which a run is judged. All that the probes can tell is told, so that little is hidden."""
    return bindings.binding(
        plan,
        skew='skew = "250ms"   # from a delivery by the server to its receipt, and back\n',
        hidden=f"""\
{bindings.CHECK}
# What is delivered to a worker that is stopped waits for it.
[hidden.Deliver]

# The server tells no one. Its timer is as long as the consumer says, and nothing shortens it.
{bindings.timer(plan, "AckTimeout", after="Delivery", length="ack_wait")}""",
        terminal=("Done", "Fail", "Ack", "AckSent", "Reject", "RejectSent"),
        constants="""\
Deliveries = { values = "a" }
Sequences = { values = "seq" }
Deduplicates = true  # what the producer sends again, since no answer came, has its Nats-Msg-Id
""",
    )


def waiting(settings: Settings) -> int:
    """Messages that the server has not seen settled. Raises ``ServerError``."""
    from . import consumer

    return consumer.waiting(settings)


PILOT = Pilot(
    name="nats",
    title="NATS JetStream",
    server="nats",
    clients=("nats-py", "psycopg"),
    experiments=EXPERIMENTS,
    configs={(mode, experiment): f"JetStream.{mode}.cfg" for mode in MODES for experiment in EXPERIMENTS},
    ends=frozenset({"Done", "Fail"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
)
