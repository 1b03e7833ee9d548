"""The Kafka case, and runs like it: what a commit says is done while a handler still works on it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases.case_files import EPOCH, Native, case, judged, word
from tests.cases.test_kinds import log

STEPS = {"Deliver": "Pickup", "Commit": "Commit", "Revoke": "Lost"}
"""The lines of librdkafka that are steps of a group. What it stores to be committed later, and that it leaves because
of its own timer, is not."""


def native(events: list[dict[str, Any]]) -> list[Native]:
    """The steps as native events. A task is a place: ``t/0/29``."""
    found: list[Native] = []
    for event in events:
        if event["action"] not in STEPS:
            continue
        topic, partition, offset = (event["task"] or "t/0/").split("/")
        params: dict[str, Any] = {"p": f"{topic}/{partition}"}
        if event["action"] == "Deliver":
            params |= {"t": event["task"], "o": int(offset)}
        elif event["action"] == "Commit":
            params["o"] = event["offset"]
        found.append({"action": STEPS[event["action"]], "params": params, "time": EPOCH + event["t"]})
    return found


def verdict(events: list[Native], mode: str = "faulty") -> str:
    """The word of a member's events, whose log begins when it has its partitions."""
    given = [
        {"action": "Assign", "params": {"p": partition}, "time": EPOCH}
        for partition in sorted({event["params"]["p"] for event in events if "p" in event["params"]})
    ]
    return word(judged("kafka", mode, [*given, *events], scope="run"))


@pytest.mark.parametrize("mode", ["faulty", "idempotent"])
def test_an_offset_that_is_committed_while_its_handler_runs(mode: str) -> None:
    """No duplicate; but a crash now loses the message."""
    events = native(case("ckp-552-maxpoll-with-autocommit")["events"])
    assert [event["action"] for event in events] == ["Pickup", "Commit", "Lost"]
    assert verdict(events, mode) == "violates 3 CommitIsTheOwners"


TAKEN = "Pickup t=T p=x/0 o=7"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((TAKEN, "Commit p=x/0 o=8"), "violates 3 CommitIsTheOwners"),
        ((TAKEN, "Commit p=x/0 o=7"), "conforms"),
        ((TAKEN, "Execute t=T", "Commit p=x/0 o=8"), "conforms"),
        ((TAKEN, "Pickup t=U p=x/0 o=8", "Execute t=U", "Commit p=x/0 o=9"), "violates 5 CommitIsTheOwners"),
        ((TAKEN, "Pickup t=U p=x/1 o=8", "Execute t=U", "Commit p=x/1 o=9"), "conforms"),
    ],
)
def test_a_commit_says_of_all_below_it_that_it_is_done(steps: tuple[str, ...], expected: str) -> None:
    assert verdict(log(*steps)) == expected
