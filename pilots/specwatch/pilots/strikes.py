"""How each kind of fault is made to happen, and by what it is seen that it did.

A strike is a generator that yields whenever it has to wait, so that several go on at once; what it has changed it
heals in ``finally``, also where it is closed before its end.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import processes, wishes
from .errors import PilotError
from .faults import Fault, Record
from .proxy import Counts, Links
from .runtime import guard
from .wishes import ANYONE, Asked

if TYPE_CHECKING:
    from .injector import Injector

Steps = Generator[None, None, None]

PATIENCE = 20.0
"""Seconds that a fault waits for what must come before it: a worker, a body, an end."""
AFTERWARDS = 15.0
"""Seconds beyond the timeout that it waits for someone to notice it: a receipt, a new connection."""
SETTLED = ("Ack", "Nack", "Reject", "Revoke", "Expire", "Fail", "Retry")
"""What a worker says last of a message."""


class Strike:
    """A fault that happens: what it works with, and its record."""

    def __init__(self, injector: Injector, fault: Fault) -> None:
        self.injector = injector
        self.fault = fault
        self.record = Record(fault=fault, target=fault.target)

    @property
    def name(self) -> str:
        """The worker that is struck."""
        return self.record.target

    @property
    def process(self) -> guard.Process:
        return self.injector.bench.workers[self.name]

    def wait(self, is_so: Callable[[], bool], seconds: float, *, beyond_restarts: bool = False) -> Steps:
        """Wait until something is so, at most some seconds. Whoever wants to know asks again.

        ``beyond_restarts``: the seconds begin anew as long as the broker is away because of another fault.
        """
        deadline = self.injector.clock() + seconds
        while not is_so() and self.injector.clock() < deadline:
            yield
            if beyond_restarts and self.injector.is_restarting:
                deadline = self.injector.clock() + seconds

    def last(self, seconds: float) -> Steps:
        """Wait for some seconds."""
        yield from self.wait(lambda: False, seconds)

    def begin(self) -> None:
        self.record.began = time.monotonic_ns()

    def end(self) -> None:
        self.record.ended = time.monotonic_ns()

    def notice(self, is_seen: Callable[[], bool] | None = None) -> Steps:
        """Wait until the fault had traffic under it, or something better is seen; then it is over."""
        yield from self.wait(is_seen or (lambda: self.traffic() > 0), self.injector.timeout + AFTERWARDS)
        self.end()

    # What it sees

    def during(self) -> Iterator[Mapping[str, Any]]:
        """The events of workers since it began, until it ended."""
        ended = self.record.ended or time.monotonic_ns()
        for event in self.injector.events:
            if (
                event.get("lane") is None
                and "w" in event.get("params", {})
                and self.record.began <= event["monotonic"] <= ended
            ):
                yield event

    def traffic(self) -> int:
        """How many events there were under it: of other workers, or of a message that it struck. Of the worker itself
        where its network or its clock is what is struck, and it goes on."""
        whole = self.fault.kind in ("delay", "clock", "restart")
        return sum(
            whole or event["params"]["w"] != self.name or event.get("key") in self.record.struck
            for event in self.during()
        )

    def received_again(self) -> bool:
        """Whether a message that it struck was received since it began."""
        return any(event["action"] == "Pickup" and event.get("key") in self.record.struck for event in self.during())

    def said(self, action: str, key: str) -> Mapping[str, Any] | None:
        """What the worker said last of a key with this action."""
        return next(
            (
                event
                for event in reversed(self.injector.events)
                if event["action"] == action and event.get("key") == key and event["params"].get("w") == self.name
            ),
            None,
        )

    # What it needs

    def worker(self) -> Steps:
        """Wait for the worker to be there: a successor may not have been started yet."""
        if self.fault.target == ANYONE:
            self.record.target = next(iter(self.injector.bench.workers))
            return
        yield from self.wait(lambda: self._found() is not None, PATIENCE)
        found = self._found()
        if found is None:
            raise PilotError(f"there was no worker {self.fault.target} within {PATIENCE:g} s")
        self.record.target = found

    def _found(self) -> str | None:
        # A node name has the host behind it.
        names = list(self.injector.bench.workers)
        return next((name for name in names if name.partition("@")[0] == self.fault.target), None)

    def links(self) -> Links:
        if self.injector.links is None:
            raise PilotError("there is no proxy between the worker and the broker")
        return self.injector.links

    def link(self) -> str:
        """The worker's name as its proxy has it."""
        names = self.links().names
        return self.name if self.name in names else self.name.partition("@")[0]

    def body(self, asked: Asked, waits: bool = True) -> Steps:
        """Wait until a body of the worker has taken a wish, and has come as far as that says."""
        # Before the first message is published, the workers are still starting: that has its own limit elsewhere.
        yield from self.wait(lambda: self.injector.first is not None or asked.taken() is not None, math.inf)
        while True:
            yield from self.wait(lambda: asked.taken() is not None, PATIENCE, beyond_restarts=True)
            taken = asked.taken()
            if taken is None:
                raise PilotError(f"{self.whom()} began no body within {PATIENCE:g} s")
            self.record.target = next(
                (name for name in list(self.injector.bench.workers) if name == taken[0]), taken[0]
            )
            self.record.struck = [taken[1]]
            if not waits:
                return
            yield from self.wait(lambda: asked.is_waiting() or self._is_over(asked), PATIENCE)
            if asked.is_waiting():
                return
            if not self._is_over(asked):
                raise PilotError(f"the body of {taken[1]} did not come as far within {PATIENCE:g} s")
            asked.ask()

    def _is_over(self, asked: Asked) -> bool:
        """Whether the body that took a wish to be long is over, since it found its work done."""
        return asked.kind == "long" and any(
            event["action"] in ("Done", "Fail") and event.get("key") in self.record.struck
            for event in reversed(self.injector.events)
            if event["monotonic"] >= asked.asked and event["params"].get("w") == self.name
        )

    def whom(self) -> str:
        return "any worker" if self.fault.target == ANYONE else self.fault.target

    def asks(self, kind: wishes.Kind) -> Asked:
        """Ask the worker's next body for something, for longer than this fault can last."""
        limit = self.fault.duration + self.injector.timeout + AFTERWARDS + PATIENCE
        return Asked(self.injector.bench.shared, self.fault.target, kind, limit)


# --- in a body's midst


def stall(strike: Strike) -> Steps:
    """SIGSTOP to all processes of the worker, SIGCONT after a while that is longer than the timeout."""
    asked = strike.asks("long")
    try:
        yield from strike.body(asked)
        process = strike.process
        try:
            process.send_signal(signal.SIGSTOP, group=True)
            yield from strike.wait(lambda: _are_stopped(process.pid), PATIENCE)
            if not _are_stopped(process.pid):
                raise PilotError(f"the processes of {strike.name} were not stopped: {_states(process.pid)}")
            strike.begin()
            stopped = processes.of_session(process.pid)
            yield from strike.last(strike.fault.duration)
            yield from strike.wait(strike.received_again, AFTERWARDS)
            still = processes.of_session(process.pid)
            strike.end()
        finally:
            process.send_signal(signal.SIGCONT, group=True)
        strike.record.evidence = {"states": {str(pid): state for pid, state in still.items()}}
        if still == stopped and set(still.values()) == {"T"}:
            seconds = (strike.record.ended - strike.record.began) / 1e9
            strike.record.effect = f"its {len(still)} processes were stopped for {seconds:.1f} s"
        yield from strike.wait(lambda: "T" not in processes.of_session(process.pid).values(), PATIENCE)
    finally:
        asked.release()


def _are_stopped(pid: int) -> bool:
    states = processes.of_session(pid).values()
    return bool(states) and set(states) == {"T"}


def _states(pid: int) -> str:
    return ", ".join(f"{pid} {state}" for pid, state in processes.of_session(pid).items()) or "there are none"


def long(strike: Strike) -> Steps:
    """A body works for longer than the timeout."""
    asked = strike.asks("long")
    try:
        yield from strike.body(asked)
        strike.begin()
        yield from strike.last(strike.fault.duration)
        yield from strike.wait(strike.received_again, AFTERWARDS)
        strike.end()
    finally:
        asked.release()
    seconds = (strike.record.ended - strike.record.began) / 1e9
    (key,) = strike.record.struck
    # It must not have been over before, by its own limit or its process's end.
    settled = [event for event in strike.during() if _settles(event, key, strike.name)]
    strike.record.evidence = {"seconds": round(seconds, 3)}
    if not settled:
        strike.record.effect = f"the body of {key} worked for {seconds:.1f} s"


def _settles(event: Mapping[str, Any], key: str, worker: str) -> bool:
    return event["action"] in SETTLED and event.get("key") == key and event["params"]["w"] == worker


def kill(strike: Strike) -> Steps:
    """SIGKILL to all processes of the worker, after the effect and before the ack; then another is started."""
    asked = strike.asks("hold")
    bench = strike.injector.bench
    try:
        yield from strike.body(asked)
        (key,) = strike.record.struck
        process = strike.process
        killed = processes.of_session(process.pid)
        strike.injector.look()
        acked = any(_settles(event, key, strike.name) for event in strike.injector.events)
        executed = strike.said("Execute", key) or strike.said("Skip", key)
        strike.begin()
        process.send_signal(signal.SIGKILL, group=True)
        yield from strike.wait(lambda: not processes.of_session(process.pid), PATIENCE)
        left = processes.of_session(process.pid)
    finally:
        asked.release()
    successor = bench.add_worker()
    emitters = sorted(
        {
            event["emitter"]
            for event in strike.injector.events
            if event.get("pid") in killed and event["action"] == "EmitterStart" and event["host"] == os.uname().nodename
        }
    )
    strike.record.evidence = {"pids": sorted(killed), "emitters": emitters, "successor": successor}
    if killed and not left and executed and not acked:
        strike.record.effect = f"its {len(killed)} processes ended after the effect of {key} and before an ack"
    yield from strike.notice(strike.received_again)


def nack(strike: Strike) -> Steps:
    """A body does its work, and its worker asks for the message again."""
    asked = strike.asks("nack")
    try:
        yield from strike.body(asked, waits=False)
        (key,) = strike.record.struck
        yield from strike.wait(lambda: strike.said("Nack", key) is not None, PATIENCE)
        said = strike.said("Nack", key)
        if said is None:
            raise PilotError(f"{strike.name} did not say nack of {key} within {PATIENCE:g} s")
        strike.record.began = said["monotonic"] + 1
        strike.record.effect = f"it said nack of {key}"
        yield from strike.notice(strike.received_again)
    finally:
        asked.release()


def early(strike: Strike) -> Steps:
    """A message is delivered again while its first copy works, before its timeout."""
    if strike.injector.redeliver is None:
        raise PilotError("this broker delivers nothing early on demand")
    asked = strike.asks("long")
    try:
        yield from strike.body(asked)
        (key,) = strike.record.struck
        received = [
            event["monotonic"]
            for event in strike.injector.look()
            if event["action"] == "Pickup" and event.get("key") == key
        ]
        strike.begin()
        if strike.injector.redeliver(key):
            yield from strike.notice(strike.received_again)
            seconds = (strike.record.ended - max(received, default=0)) / 1e9
            strike.record.evidence = {"seconds": round(seconds, 3)}
            if strike.received_again():
                strike.record.effect = f"{key} was received again {seconds:.1f} s after it was received"
        else:
            strike.record.why_not = f"the broker no longer held {key}"
    finally:
        asked.release()


# --- in the network


def cut(strike: Strike) -> Steps:
    """RST to all connections of the worker, and to new ones for a moment."""
    asked = strike.asks("long")
    try:
        yield from strike.body(asked)
        links, link = strike.links(), strike.link()
        before = links.counts(link)
        try:
            strike.begin()
            links.cut(link)
            yield from strike.last(strike.fault.duration)
        finally:
            during = links.heal(link)
        asked.release()  # Not before: what it says next has no connection to go by.
        yield from strike.wait(lambda: links.counts(link).open > 0, strike.injector.timeout + AFTERWARDS)
        after = links.counts(link)
        resets, again = during.resets - before.resets, after.connections - during.connections
        strike.record.evidence = _difference(before, after)
        if before.open and resets >= before.open and after.open:
            strike.record.effect = f"{resets} of its connections were reset, {again} made again"
        yield from strike.notice()
    finally:
        asked.release()


def delay(strike: Strike) -> Steps:
    """All that goes between the worker and the broker comes later."""
    yield from strike.worker()
    links, link = strike.links(), strike.link()
    try:
        before = links.delay(link, strike.fault.by)
        strike.begin()
        yield from strike.last(strike.fault.duration)
        yield from strike.wait(lambda: strike.traffic() > 0, AFTERWARDS)
        strike.end()
    finally:
        after = links.heal(link)
    strike.record.evidence = _difference(before, after)
    late = after.delayed - before.delayed
    if late:
        strike.record.effect = f"{late} bytes came {strike.fault.by:g} s late"


def black_hole(strike: Strike) -> Steps:
    """Nothing arrives, in either direction: what the worker says meanwhile, an ack too, is heard when it is over."""
    asked = strike.asks("long")
    try:
        yield from strike.body(asked)
        links, link = strike.links(), strike.link()
        try:
            before = links.hold(link)
            strike.begin()
            asked.release()  # So that its ack goes into the hole.
            yield from strike.last(strike.fault.duration)
            yield from strike.wait(strike.received_again, AFTERWARDS)
            strike.end()
            during = links.counts(link)
        finally:
            links.heal(link)
        strike.record.evidence = _difference(before, during)
        swallowed, passed = during.received - before.received, during.sent - before.sent
        if swallowed > passed == 0:
            strike.record.effect = f"{swallowed} bytes were swallowed, on {during.open} connections"
    finally:
        asked.release()


def _difference(before: Counts, after: Counts) -> dict[str, int]:
    return {name: getattr(after, name) - getattr(before, name) for name in Counts.__struct_fields__}


# --- at the broker, and in a log


def restart(strike: Strike) -> Steps:
    """The broker stops and comes back."""
    broker = strike.injector.broker
    if broker is None or not broker.can_restart:
        raise PilotError("the broker is not the run's own, and is not restarted")
    strike.begin()
    future = broker.restart()
    yield from strike.wait(future.done, 4 * PATIENCE)
    if not future.done():
        raise PilotError(f"the broker was not back within {4 * PATIENCE:g} s")
    found = future.result()
    strike.record.evidence = found
    if found["refused"]:
        strike.record.effect = f"it refused connections, and was back after {found['seconds']:.1f} s"
    yield from strike.notice()


def clock(strike: Strike) -> Steps:
    """From here to there the times in the worker's log are to be wrong: they are changed when it has ended."""
    yield from strike.worker()
    strike.begin()
    yield from strike.last(strike.fault.duration)
    yield from strike.wait(lambda: any(event["params"]["w"] == strike.name for event in strike.during()), AFTERWARDS)
    strike.end()
    strike.record.effect = "its log is changed in the end"


STRIKES: dict[str, Callable[[Strike], Steps]] = {
    "stall": stall,
    "long": long,
    "kill": kill,
    "cut": cut,
    "delay": delay,
    "black-hole": black_hole,
    "restart": restart,
    "nack": nack,
    "early": early,
    "clock": clock,
}
"""By the names of ``faults.KINDS``."""
