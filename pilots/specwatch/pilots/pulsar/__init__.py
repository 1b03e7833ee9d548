"""The pilot on Apache Pulsar: a subscription of pulsar-client that stores a row for each message.

``ack-timeout``: a consumer works longer than its ack timeout after its effect, so that its client asks for the message
again. ``close``: it closes its consumer while its work goes on, as an application does that is told to stop; the broker
gives the message to another at once. ``key-shared``: the same under Key_Shared, which keeps a key with one consumer as
long as that is there.
"""

from __future__ import annotations

import json

from ..pilot import Pilot
from ..plan import MODES, Mode, Plan, Settings, struck_of

EXPERIMENTS = {
    "ack-timeout": "a task that works longer than the ack timeout of {timeout:g} s, in a Shared subscription",
    "close": "a consumer that is closed while its task works, in a Shared subscription",
    "key-shared": "a consumer that is closed while its task works, in a Key_Shared subscription",
}

TIMEOUT = 10.0
"""Seconds: the shortest ack timeout that the client takes."""


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
    )


def binding(plan: Plan) -> str:
    """The binding by which a run is judged. All that the probe can tell is told, so that little is hidden."""
    # Times of a log whose clock was made wrong say nothing about the timer.
    clocks = "clock" in plan.faults or "random" in plan.faults
    timer = "" if clocks else 'after = "Pickup"\nmin = "ack_timeout"\n'
    return f"""\
# How this run was judged; `specwatch check` and this folder's name judge it again.

spec = "spec.tla"
config = "spec.cfg"
format = "native"
scope = "key"
order = "total"  # one machine, one clock: events.jsonl is in the order in which things happened
skew = "250ms"   # from a receipt by the client, whose timer begins then, to the application's
start = "init"
require = {json.dumps(plan.required)}

# The pilot commits once and takes nothing back, its producer, which may publish again, is not killed, and who is killed
# closes nothing.
never_lost = ["Republish", "Undo", "Close"]
# A process tells of one worker, and writes what it did before it goes on: what is missing of one that was killed is no
# more than a step of each of its threads.
by_emitter = ["w"]
unwritten = {plan.concurrency + 1}

terminal = ["Done", "Fail", "Ack", "AckFail"]

[key]
param = "t"

[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Batched = {{ values = "b" }}

# What a guard answers is seen in what follows, Execute or Skip.
[hidden.Check]

# What is delivered to a worker that is stopped, or works on as much as it can, waits for it.
[hidden.Deliver]

# An ack goes a moment later, with others; a negative ack when its delay is over.
[hidden.AckArrives]
[hidden.Redeliver]

# The broker gives up a consumer that is gone, or that was silent for too long, and tells no one.
[hidden.Replay]

# The client tells no one. Its timer is as long as the consumer says.
[hidden.AckTimeout]
{timer}
[settings]
ack_timeout = "{plan.timeout:g}s"
"""


def waiting(settings: Settings) -> int:
    """Messages that the broker has not seen acked. Raises ``ServerError``."""
    from . import subscription

    return subscription.waiting(settings)


PILOT = Pilot(
    name="pulsar",
    title="Apache Pulsar",
    server="pulsar",
    clients=("pulsar-client", "psycopg"),
    experiments=EXPERIMENTS,
    configs={(mode, experiment): f"Pulsar.{mode}.cfg" for mode in MODES for experiment in EXPERIMENTS},
    ends=frozenset({"Done", "Fail"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
    # Clients go on at the address that the broker tells them.
    lacks=frozenset({"proxy"}),
)
