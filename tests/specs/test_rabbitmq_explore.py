"""RabbitMQ in each setting, explored: what breaks, by which steps; what holds; and that no invariant is idle."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.checker.explore import explore
from specwatch.checker.spec import load_spec

FOLDER = Path(__file__).parents[2] / "specs" / "rabbitmq"
SPEC = FOLDER / "RabbitMQ.tla"

BREAKS = {
    "faulty": ("NoDoubleExecution", "Publish Pickup Start Execute Requeue Pickup Start Execute"),
    "early": ("AckedWasExecuted", "Publish Pickup Ack Crash"),
    "check-then-insert": (
        "NoDoubleExecution",
        "Publish Pickup Start Check Requeue Pickup Start Check Execute Execute",
    ),
    "idempotent-lost": ("AckedWasExecuted", "Publish Pickup Start Check Crash Pickup Start Check Ack"),
    "two-at-work": ("OneAtWork", "Publish Pickup Start Requeue Pickup Start"),
    "republish": ("FlagTells", "Publish Pickup Republish Pickup"),
}
HOLDS = {"no-redelivery": (789, 35, 7), "idempotent": (23780, 1204, 19), "idempotent-crash": (35267, 1807, 19)}


@pytest.mark.parametrize("config", BREAKS)
def test_what_breaks_breaks_by_these_steps(config: str) -> None:
    found = explore(load_spec(SPEC, FOLDER / f"RabbitMQ.{config}.cfg"))
    assert (found.outcome, found.invariant) == ("violates", BREAKS[config][0])
    assert [step.action for step in found.trace][1:] == BREAKS[config][1].split()


@pytest.mark.parametrize("config", HOLDS)
def test_what_holds_holds_in_every_state(config: str) -> None:
    found = explore(load_spec(SPEC, FOLDER / f"RabbitMQ.{config}.cfg"))
    assert (found.outcome, found.invariant) == ("pass", None)
    assert (found.generated, found.distinct, found.depth) == HOLDS[config]


def test_there_is_a_row_for_every_config() -> None:
    configs = {path.name.removeprefix("RabbitMQ.").removesuffix(".cfg") for path in FOLDER.glob("*.cfg")}
    assert configs == {*BREAKS, *HOLDS}


WRONG = {
    # What the first models of such brokers had: the message comes back and is still out.
    "a close forgets what is out": (
        "returned' = [returned EXCEPT ![t] = @ + Cardinality(Out(On(deliveries[t], n, c)))]",
        "returned' = returned",
        "Conserved",
    ),
    "an ack of a closed channel is heard": (
        "/\\ acked' = [acked EXCEPT ![t] = IF x.entry = \"out\" THEN @ + 1 ELSE @]\n    /\\ said'",
        "/\\ acked' = [acked EXCEPT ![t] = @ + 1]\n    /\\ said'",
        "Conserved",
    ),
    "a word to the broker leaves an unknown entry": (
        'THEN [x EXCEPT !.entry = "back"] ELSE x : x \\in set}',
        'THEN [x EXCEPT !.entry = "away"] ELSE x : x \\in set}',
        "TypeOK",
    ),
}


@pytest.mark.parametrize("change", WRONG)
def test_what_the_broker_promises_breaks_in_a_model_that_does_not_keep_it(change: str, tmp_path: Path) -> None:
    right, wrong, invariant = WRONG[change]
    text = SPEC.read_text(encoding="utf-8")
    assert right in text
    spec = tmp_path / SPEC.name
    spec.write_text(text.replace(right, wrong), encoding="utf-8")
    found = explore(load_spec(spec, FOLDER / "RabbitMQ.faulty.cfg"))
    assert (found.outcome, found.invariant) == ("violates", invariant)
