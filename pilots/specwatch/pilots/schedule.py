"""When which fault strikes whom: from the text of ``--faults``, the same for the same seed.

``random`` draws from all kinds that the pilot can suffer; ``stall,kill,cut`` are these, one after the other, and a kind
may come twice. A worker that was killed has a successor, whose name is known beforehand: ``worker-5`` where there are
four.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Collection, Iterable, Sequence

import msgspec

from .errors import PilotError
from .faults import KINDS, Fault, Need
from .wishes import ANYONE

RANDOM = "random"
PACE = 0.15
"""Seconds between two messages: what a few workers can do, also on a machine with much else to do."""
LONGEST = 30.0
"""The most seconds over which messages are published."""
APART = 4.0
"""Seconds from one fault to the next, at the least: about as long as most of them last."""
TRAFFIC_AFTER = 6.0
"""Seconds, at the most a quarter of all, in which messages are still published when the last fault begins: one that has
to wait for another to be over must not come when all is done."""
SLACK = 1.5
"""Seconds that a fault lasts beyond the timeout, for those that look only now and then whether it is over."""
SHIFTS = (-5.0, -2.0, 2.0, 5.0)
"""Seconds by which a clock is wrong: more than any two clocks are taken to differ."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of a run, in the order of their starts."""

    faults: list[Fault]
    span: float
    """Seconds over which the producer spreads its messages; 0: all at once."""

    def needs(self, need: Need) -> bool:
        """Whether some fault is made with that."""
        return any(need in KINDS[fault.kind].needs for fault in self.faults)

    @property
    def sentence(self) -> str:
        """All of it on one line, for people."""
        return ", ".join(f"{fault.kind} of {_whom(fault)} at {fault.start:.1f} s" for fault in self.faults)


def possible(*, has: Iterable[Need]) -> tuple[str, ...]:
    """The kinds that can be made to happen with what there is: a server of others, say, is no ``broker`` to restart."""
    there = frozenset(has)
    return tuple(kind.name for kind in KINDS.values() if kind.needs <= there)


def parse(
    text: str,
    *,
    tasks: int,
    workers: int,
    seed: int,
    timeout: float,
    possible: Collection[str] = KINDS,
) -> Schedule:
    """The schedule that a text asks for; ``timeout`` is after how many seconds at the latest a message comes again.

    ``possible`` are the kinds that the pilot and its servers can suffer. Raises ``PilotError`` for any other.
    """
    names = [name.strip() for name in text.split(",")]
    if names == [RANDOM]:
        return random_schedule(seed, tasks=tasks, workers=workers, kinds=possible, timeout=timeout)
    for name in names:
        if name not in KINDS:
            raise PilotError(f"--faults {text}: {_unknown(name)}", hint=_kinds(possible))
        if name not in possible:
            raise PilotError(f"--faults {text}: {name} cannot be made to happen here", hint=_kinds(possible))
    return in_turn(names, tasks=tasks, workers=workers, seed=seed, timeout=timeout)


def in_turn(kinds: Sequence[str], *, tasks: int, workers: int, seed: int, timeout: float) -> Schedule:
    """These faults, one after the other, the first before the first message. Each strikes whoever works first."""
    chance = random.Random(seed)
    span = _span(tasks) if len(kinds) == 1 else min(LONGEST, max(_span(tasks), APART * len(kinds)))
    faults = [_fault(kind, ANYONE, place * span / len(kinds), timeout, chance) for place, kind in enumerate(kinds)]
    return Schedule(faults=faults, span=span if tasks > 1 else 0.0)


def random_schedule(seed: int, *, tasks: int, workers: int, timeout: float, kinds: Iterable[str] = KINDS) -> Schedule:
    """Faults at random times and of random kinds, no kind twice before each was there once.

    One every ``APART`` seconds of a span that grows with the tasks, so that a run ends soon after ``LONGEST``.
    """
    chance = random.Random(seed)
    drawable = [kind for kind in KINDS if kind in set(kinds)]
    span = _span(tasks)
    within = span - min(TRAFFIC_AFTER, span / 4)
    count = max(1, int(within / APART))
    alive = [f"worker-{number}" for number in range(1, workers + 1)]
    faults: list[Fault] = []
    bag: list[str] = []
    for place in range(count):
        if not bag:
            bag = chance.sample(drawable, len(drawable))
        kind = bag.pop()
        start = (place + chance.random() / 2) * within / count
        # Of few messages a worker may get none. And one that was struck last may still be: another need not wait.
        others = [name for name in alive if not faults or name != faults[-1].target] or alive
        target = chance.choice(others) if tasks >= 10 * workers else ANYONE
        if kind == "kill" and target != ANYONE:
            alive.remove(target)
            workers += 1
            alive.append(f"worker-{workers}")
        faults.append(_fault(kind, target, start, timeout, chance))
    return Schedule(faults=faults, span=span)


def _fault(kind: str, target: str, start: float, timeout: float, chance: random.Random) -> Fault:
    lasts = {"past the timeout": timeout + SLACK, "a while": 3.0, "a moment": 0.5}[KINDS[kind].lasts]
    by = {"delay": chance.uniform(0.05, 0.3), "clock": chance.choice(SHIFTS)}.get(kind, 0.0)
    return Fault(
        kind=kind,
        target="broker" if kind == "restart" else target,
        start=round(start, 3),
        duration=round(lasts * chance.uniform(1.0, 1.25), 3),
        by=round(by, 3),
    )


def _span(tasks: int) -> float:
    return min(LONGEST, PACE * tasks)


def _whom(fault: Fault) -> str:
    return "whoever works" if fault.target == ANYONE else fault.target


def _unknown(name: str) -> str:
    if not name:
        return "a kind of fault is missing"
    if name == RANDOM:
        return f"{RANDOM} stands alone"
    near = difflib.get_close_matches(name, [*KINDS, RANDOM], 1)
    return f"no kind of fault is called {name}" + (f"; is it {near[0]}?" if near else "")


def _kinds(possible: Collection[str]) -> str:
    return f"{RANDOM}, or one or more of {', '.join(name for name in KINDS if name in possible)}, with commas"
