"""A log of Kafka against the specs of other brokers: it does not fit, and what does not fit is named.

The log is that of a member that polls too late: its partition is given to another, which begins where the committed
offset stands.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.specs.wrong_spec import as_nats, judged, reason

ZOMBIE = (
    "Publish",
    "Assign A",
    "Pickup A 5",
    "Start A",
    "Execute A",
    "Assign B",
    "Pickup B 5",
    "Start B",
    "Done A",
    "CommitFail A 6",
    "Lost A",
)
OF_THE_GROUP = ("Assign", "Lost", "CommitFail")


def told(*steps: str) -> str:
    """Events as the probes for Kafka write them: ``Pickup A 5``."""
    lines = []
    for number, step in enumerate(steps, 1):
        action, *words = step.split()
        event: dict[str, Any] = {"action": action, "params": {}, "emitter": "all", "seq": number}
        if action not in OF_THE_GROUP:
            event |= {"params": {"t": "T"}, "key": "T"}
        if words:
            event["params"]["w"] = words[0]
        if action in (*OF_THE_GROUP, "Pickup"):
            event["params"]["p"] = "x/0"
        if words[1:]:
            event["params"]["o"] = int(words[1])
        event["time"] = f"2030-01-01T10:00:{number:02}Z"
        lines.append(json.dumps(event))
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(told(*ZOMBIE), encoding="utf-8")
    return path


def test_its_own_spec_takes_it(log: Path) -> None:
    assert judged("kafka", log)["verdict"] == "conforms"


def test_of_nats_it_would_be_a_number_of_deliveries_that_does_not_grow(log: Path, tmp_path: Path) -> None:
    """There each delivery is counted, and Kafka counts none."""
    binding = as_nats(tmp_path, {name: name for name in ("Pickup", "Start", "Execute", "Done")}, before=0, lost="Lost")
    document = judged(str(binding), log)
    assert document["verdict"] == "diverges"
    assert document["findings"][0]["event"]["params"] == {"t": "T", "w": "B", "a": 0}
    assert any("a >= x.n" in text for text in reason(document))


@pytest.mark.parametrize("target", ["celery", "rabbitmq", "nats", "pulsar"])
def test_what_another_spec_has_no_word_for_is_said_with_the_words_that_it_has(target: str, log: Path) -> None:
    document = judged(target, log)
    assert document["exit_code"] == 4
    [error, *_] = document["errors"]
    assert error["file"].endswith("events.jsonl")
    assert error["hint"]
