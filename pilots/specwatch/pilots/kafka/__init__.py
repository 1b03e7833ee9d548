"""The pilot on Kafka: a consumer group of confluent-kafka that stores a row for each message.

``poll-overrun``: a member works longer than ``max.poll.interval.ms`` after its effect. Its client leaves the group, the
partition is given to another, which begins at the committed offset, and the late commit is refused.
"""

from __future__ import annotations

import json

from ..pilot import Pilot
from ..plan import MODES, Mode, Plan, Settings, struck_of

EXPERIMENTS = {"poll-overrun": "a task that works longer than the max.poll.interval.ms of {timeout:g} s"}


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
    """The binding by which a run is judged. All that the probe can tell is told, so that little is hidden."""
    return f"""\
# How this run was judged; `specwatch check` and this folder's name judge it again.

spec = "spec.tla"
config = "spec.cfg"
format = "native"
scope = "key"
order = "total"  # one machine, one clock: events.jsonl is in the order in which things happened
start = "init"
require = {json.dumps(plan.required)}

# What a guard answers is seen in what follows, Execute or Skip.
hidden = ["Check"]

# The pilot commits once and takes nothing back, and its producer, which may publish again, is not killed.
never_lost = ["Republish", "Undo"]
# A process tells of one worker, and writes what it did before it goes on: what is missing of one that was killed is no
# more than a step of each of its threads.
by_emitter = ["w"]
unwritten = {plan.concurrency + 1}

terminal = ["Done", "Fail"]

[key]
param = "t"

[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Partitions = {{ values = "p" }}
Offsets = {{ values = "o" }}
"""


def waiting(settings: Settings) -> int:
    """Messages above the committed offsets. Raises ``ServerError``."""
    from . import group

    return group.waiting(settings)


PILOT = Pilot(
    name="kafka",
    title="Kafka",
    server="kafka",
    clients=("confluent-kafka", "psycopg"),
    spec="Kafka.tla",
    experiments=EXPERIMENTS,
    configs={(mode, "poll-overrun"): f"Kafka.{mode}.cfg" for mode in MODES},
    ends=frozenset({"Done", "Fail"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
    # Clients go on at the address that the broker tells them; and there is no word about one message.
    lacks=frozenset({"proxy", "nack"}),
)
