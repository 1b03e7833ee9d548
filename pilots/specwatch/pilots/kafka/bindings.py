"""The bindings by which runs are judged. All that the probes can tell is told, so that little is hidden."""

from __future__ import annotations

import json

from ..plan import Plan

GROUP = """
# What a guard answers is seen in what follows, Execute or Skip.
[hidden.Check]
"""
SHARE_GROUP = """
Deliveries = {{ values = "a" }}

# What a guard answers is seen in what follows, Execute or Skip.
[hidden.Check]

# What is delivered to a member that is stopped waits for it.
[hidden.Acquire]

# The broker gives up a member that is gone, and tells no one.
[hidden.Release]

# Nor this. Its lock is as long as the group says.
[hidden.LockTimeout]
{timer}
[settings]
lock = "{lock:g}s"
"""


def binding(plan: Plan) -> str:
    """The ``binding.toml`` of a run directory."""
    lost, terminal, rest = ["Republish", "Undo"], ["Done", "Fail"], GROUP
    if plan.experiment == "share-group":
        # Who is killed closes nothing.
        lost, terminal = [*lost, "Close"], [*terminal, "Ack", "AckFail", "Reject"]
        # Times of a log whose clock was made wrong say nothing about the lock.
        clocks = "clock" in plan.faults or "random" in plan.faults
        timer = "" if clocks else 'after = "Delivery"\nmin = "lock"\n'
        rest = SHARE_GROUP.format(timer=timer, lock=plan.timeout)
    return f"""\
# How this run was judged; `specwatch check` and this folder's name judge it again.

spec = "spec.tla"
config = "spec.cfg"
format = "native"
scope = "key"
order = "total"  # one machine, one clock: events.jsonl is in the order in which things happened
skew = "250ms"   # from what the broker does to the receipt, and back
start = "init"
require = {json.dumps(plan.required)}

# The pilot commits once and takes nothing back, and its producer, which may publish again, is not killed.
never_lost = {json.dumps(lost)}
# A process tells of one worker, and writes what it did before it goes on: what is missing of one that was killed is no
# more than a step of each of its threads.
by_emitter = ["w"]
unwritten = {plan.concurrency + 1}

terminal = {json.dumps(terminal)}

[key]
param = "t"

[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Partitions = {{ values = "p" }}
Offsets = {{ values = "o" }}
{rest.lstrip()}"""
