"""Faults: what a run makes go wrong, as plain data, and what became of each.

A schedule says which, an injector makes them happen while an experiment runs, and proves each:

    plan = schedule.parse("stall,kill", tasks=20, workers=2, seed=7, timeout=3.0)   # or "random"
    with (
        proxy.start(host, port, names, log=…) as links,      # where plan.needs("proxy"); workers connect to it
        Broker(server) as broker,                            # one for all experiments on these servers
        Experiment(…) as one,
        Injector(one, plan, timeout=3.0, links=links, broker=broker) as injector,
    ):
        one.settle()          # must not be over before ``injector.is_over``, and bears a broker that is away
        injector.stop()       # heals whatever is not healed; before the workers are asked to stop
        …                     # the workers stop
        injector.finish()     # shifts the clocks of logs, ends raw/faults.jsonl; before raw/ is merged
    injector.records          # one for each fault; ``injector.doubt`` is what they mean for the verdict

What the pilot has to do for it: the producer spreads its messages over ``plan.span`` seconds, so that there is traffic
under each fault, and publishes again where the broker was away. A body asks ``wishes.take`` when it begins. A worker is
told its own URL, ``links.url(name, …)`` after ``links.add(name)``. ``add_worker`` starts one under a name that no other
had. A copy that was nacked is over. Such a run is judged with scope ``key``: a worker that was killed leaves in doubt
what it held, and nothing else.

Each fault is a line of ``raw/faults.jsonl``: lane ``fault``, the kind's action, ``time`` to ``until``, params ``kind``
and ``target``, and the proof; for a kill a line for each process that had told something, with its ``emitter``. One
that cannot be proven is a line of lane ``emitter``, ``FaultUnproven``: it is no fault, and nothing is required during
it.

Proven is a fault that took effect (the processes were stopped, the connections were reset, the broker was away, …) and
had traffic under it: receipts, bodies or acks of other workers or of the message that it struck. A run with one that
did not take effect is inconclusive, and one with one that nobody noticed is vacuous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

Need = Literal["body", "proxy", "nack", "broker", "redelivery"]
"""What a fault is made with: the pilot's body, a proxy, a worker's word that it wants a message again, a broker that
can be started again, and one whose redelivery can be brought about from outside."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    name: str
    """As it is written after ``--faults``."""
    action: str
    """What its event is called."""
    sentence: str
    """What it does, for people."""
    needs: frozenset[Need] = frozenset()
    lasts: Literal["past the timeout", "a moment", "a while"] = "a moment"


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "stall",
            "Stall",
            "a worker's processes are stopped with a message in their hands, until its timeout is over",
            frozenset({"body"}),
            "past the timeout",
        ),
        Kind("long", "LongTask", "a body works longer than the timeout", frozenset({"body"}), "past the timeout"),
        Kind(
            "kill",
            "Kill",
            "a worker is killed after the effect of a message and before its ack, and another takes its place",
            frozenset({"body"}),
        ),
        Kind(
            "cut",
            "Cut",
            "a worker's connections to the broker are reset with a message in its hands",
            frozenset({"body", "proxy"}),
        ),
        Kind("delay", "Delay", "all between a worker and the broker comes late", frozenset({"proxy"}), "a while"),
        Kind(
            "black-hole",
            "BlackHole",
            "nothing arrives between a worker and the broker, an ack neither, until the timeout is over",
            frozenset({"body", "proxy"}),
            "past the timeout",
        ),
        Kind("restart", "BrokerRestart", "the broker stops and comes back with its data", frozenset({"broker"})),
        Kind(
            "nack",
            "ForcedNack",
            "a worker asks for a message again whose work is done",
            frozenset({"body", "nack"}),
        ),
        Kind(
            "early",
            "EarlyRedelivery",
            "a message is delivered again before its timeout, while its body works",
            frozenset({"body", "redelivery"}),
        ),
        Kind("clock", "ClockShift", "the clock of a worker's log is wrong for a while", lasts="a while"),
    )
}
"""By name, in the order in which they are told of."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a schedule."""

    kind: str
    """A name in ``KINDS``."""
    target: str
    """A worker's name, ``worker-2``; ``*`` where it is whoever does the work first; ``broker``."""
    start: float
    """Seconds after the first message was published; 0 is before it."""
    duration: float = 0.0
    """Seconds; 0 where the fault is over when it has happened."""
    by: float = 0.0
    """Seconds by which a delay lets bytes come late, and a shift lets a clock be ahead (negative: behind)."""


class Record(msgspec.Struct, kw_only=True):
    """What became of a fault."""

    fault: Fault
    target: str
    """The worker that it struck; the schedule's where none was."""
    began: int = 0
    """Nanoseconds of the machine's monotonic clock, as ``ended``."""
    ended: int = 0
    struck: list[str] = []
    """The keys of the messages that it struck."""
    effect: str = ""
    """How it is known that it took effect, for people; "" where it is not."""
    traffic: int = 0
    """Events of workers while it lasted."""
    why_not: str = ""
    """Why it is not proven, for people."""
    evidence: dict[str, Any] = {}
    """What was seen: states of processes, counts of connections and bytes, pids."""

    @property
    def is_proven(self) -> bool:
        return bool(self.effect) and self.traffic > 0

    @property
    def sentence(self) -> str:
        """The fault and what is known of it, on one line."""
        head = f"{self.fault.kind} of {self.target} at {self.fault.start:.1f} s"
        if self.is_proven:
            return f"{head}: {self.effect}; {self.traffic} events under it"
        return f"{head}: not proven: {self.why_not or 'nobody did anything while it lasted'}"
