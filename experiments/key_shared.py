"""Does a Key_Shared subscription of Pulsar remove the collision of an ack and a redelivery?

``python experiments/key_shared.py`` runs real workers on a real Pulsar and PostgreSQL and prints the table of
docs/experiments/key-shared.md: three causes of a redelivery, under Shared and under Key_Shared, with and without a
guard. Each worker works on one message at a time, or on several.
"""

from __future__ import annotations

import sys

import msgspec

from specwatch.cli import run
from specwatch.pilots import pilot as pilots
from specwatch.pilots.plan import MODES
from specwatch.pilots.pulsar.plan import Plan, plan
from specwatch.pilots.schedule import in_turn

CAUSES: dict[str, dict[str, object]] = {
    "the work takes longer than the ack timeout": {"closes": False},
    "the consumer is closed while it works": {"closes": True},
    "the worker is killed after the effect": {"faults": "kill", "struck": 0},
}
AT_ONCE = {"Shared": (3,), "Key_Shared": (1, 3)}
"""How many messages a worker works on at a time. One is enough for Key_Shared to make a difference."""
PATIENCE = 14.0
"""Seconds that a struck task works where no other copy of it comes as far: longer than the ack timeout."""
HEAD = ("subscription", "at a time", "what brings the message again", *(f"rows, {mode}" for mode in MODES), "at once")


def main() -> None:
    print(f"| {' | '.join(HEAD)} |\n| --- | --: | --- | --: | --: | --: | --- |")
    for cause, more in CAUSES.items():
        for subscription, numbers in AT_ONCE.items():
            for concurrency in numbers:
                sys.stderr.write(f"{subscription}, {concurrency} at a time: {cause}\n")
                found = [played(mode, subscription, concurrency, more) for mode in MODES]
                rows = [str(rows) for rows, _ in found]
                at_once = "yes" if any(overlap for _, overlap in found) else "no"
                cells = (subscription, str(concurrency), cause, *rows, at_once)
                print(f"| {' | '.join(cells)} |", flush=True)


def played(mode: str, subscription: str, concurrency: int, more: dict[str, object]) -> tuple[int, bool]:
    """The rows of the message that was struck, and whether two of its bodies ran at once."""
    made = plan(mode, "ack-timeout")  # type: ignore[arg-type]
    changed = {"subscription": subscription, "concurrency": concurrency, "patience": PATIENCE, **more}
    own: Plan = msgspec.structs.replace(made, **changed)
    faults = None
    if own.faults:
        faults = in_turn([own.faults], tasks=1, workers=own.workers, seed=own.seed, timeout=own.timeout)
    asked = run.command.make_context("run", ["pulsar", "--mode", mode]).params
    (row,) = run.run(pilots.load("pulsar"), [own], faults, None, asked)
    running, at_once = 0, False
    killed = {record.target for record in row.outcome.faults}
    for event in row.events:
        if event.action == "Start":
            running += 1
            at_once = at_once or running > 1
        elif event.action in ("Done", "Fail"):
            running -= 1
    # The body of a worker that was killed was over.
    return sum(row.outcome.rows.values()), at_once and not killed


if __name__ == "__main__":
    main()
