"""The pilot on NATS JetStream: a pull consumer of nats-py that stores a row for each message.

``ack-wait``: a consumer works longer than AckWait after its effect, and the message is delivered again. ``late-ack``:
the first consumer acks after that, which settles the second one's copy too: it may work as long as it likes, and
nothing comes a third time.
"""

from __future__ import annotations

import json

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
    # Times of a log whose clock was made wrong say nothing about the timer.
    clocks = "clock" in plan.faults or "random" in plan.faults
    timer = "" if clocks else 'after = "Delivery"\nmin = "ack_wait"\n'
    return f"""\
# How this run was judged; `specwatch check` and this folder's name judge it again.

spec = "spec.tla"
config = "spec.cfg"
format = "native"
scope = "key"
order = "total"  # one machine, one clock: events.jsonl is in the order in which things happened
skew = "250ms"   # from a delivery by the server to its receipt, and back
start = "init"
require = {json.dumps(plan.required)}

# The pilot commits once and takes nothing back, and its producer, which may publish again, is not killed.
never_lost = ["Republish", "Undo"]
# A process tells of one worker, and writes what it did before it goes on: what is missing of one that was killed is no
# more than a step of each of its threads.
by_emitter = ["w"]
unwritten = {plan.concurrency + 1}

terminal = ["Done", "Fail", "Ack", "AckSent", "Reject", "RejectSent"]

[key]
param = "t"

[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Deliveries = {{ values = "a" }}
Sequences = {{ values = "seq" }}
Deduplicates = true  # what the producer sends again, since no answer came, has its Nats-Msg-Id

# What a guard answers is seen in what follows, Execute or Skip.
[hidden.Check]

# What is delivered to a worker that is stopped waits for it.
[hidden.Deliver]

# The server tells no one. Its timer is as long as the consumer says, and nothing shortens it.
[hidden.AckTimeout]
{timer}
[settings]
ack_wait = "{plan.timeout:g}s"
"""


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
