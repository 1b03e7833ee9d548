"""The Pulsar case, and runs like it: a message that was asked for again has to say so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases.case_files import EPOCH, Native, case, judged, word
from tests.cases.test_kinds import log


def native(events: list[dict[str, Any]], *, counts: bool) -> list[Native]:
    """The lines as native events; what no log told is left out. The application works on what it receives.

    ``counts``: with the redelivery count of each receipt.
    """
    found: list[Native] = []
    for event in events:
        if event.get("hidden"):
            continue
        params: dict[str, Any] = {"t": event["task"]}
        time = EPOCH + event["t"]
        if event["action"] == "Deliver":
            more = {"a": event["redeliveryCount"]} if counts else {}
            found.append({"action": "Pickup", "params": {**params, **more}, "time": time})
            found.append({"action": "Execute", "params": params, "time": time})
        else:
            found.append({"action": event["action"], "params": params, "time": time})
    return found


@pytest.mark.parametrize(("counts", "expected"), [(True, "diverges 4"), (False, "violates 5 NoDoubleExecution")])
def test_a_message_that_timed_out_and_comes_again_uncounted(counts: bool, expected: str) -> None:
    """It was executed twice; and that it was asked for again is not what its second receipt says."""
    events = native(case("pulsar-6451-nack-after-timeout")["events"], counts=counts)
    assert [event["action"] for event in events] == ["Pickup", "Execute", "AckTimeout", "Pickup", "Execute"]
    assert word(judged("pulsar", "faulty", events)) == expected


TAKEN = ("Publish t=T", "Pickup t=T a=0")
ASKED = (*TAKEN, "AckTimeout t=T", "Pickup t=T a=1", "AckTimeout t=T")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((*TAKEN, "AckTimeout t=T", "Pickup t=T a=1"), "conforms"),
        ((*ASKED, "Pickup t=T a=2"), "conforms"),
        ((*ASKED, "Pickup t=T a=1"), "diverges 6"),
        ((*ASKED, "Pickup t=T a=3"), "diverges 6"),
        # asked for again and lost before it was received: that a log has to tell, or a binding to hide
        ((*TAKEN, "AckTimeout t=T", "Deliver t=T", "Replay t=T", "Pickup t=T a=0"), "conforms"),
        # not asked for: its consumer was lost, which no one tells
        ((*TAKEN, "Pickup t=T a=0"), "conforms"),
        # nor told of that: the client asked, which no one tells either
        ((*TAKEN, "Pickup t=T a=1"), "conforms"),
        ((*TAKEN, "Pickup t=T a=2"), "diverges 3"),
        # the client that lost its connection has forgotten its timer
        ((*TAKEN, "Replay t=T", "AckTimeout t=T"), "diverges 4"),
    ],
)
def test_the_count_of_what_comes_again(steps: tuple[str, ...], expected: str) -> None:
    assert word(judged("pulsar", "faulty", log(*steps))) == expected
