"""A log of Pulsar against the specs of other brokers: it does not fit, and what does not fit is named.

The log is that of a consumer that is gone: what it held comes again at once, and uncounted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.specs.wrong_spec import as_nats, judged, reason

TWICE = (
    "Publish",
    "Pickup A 0",
    "Start A 0",
    "Execute A 0",
    "Close A",
    "Pickup B 0",
    "Start B 0",
    "Done A 0",
    "AckFail A 0",
)


def told(*steps: str) -> str:
    """Events as the probe for pulsar-client writes them: ``Pickup A 0``."""
    lines = []
    for number, step in enumerate(steps, 1):
        action, *words = step.split()
        event: dict[str, Any] = {"action": action, "params": {}, "emitter": "all", "seq": number}
        if action != "Close":
            event |= {"params": {"t": "T"}, "key": "T"}
        if words:
            event["params"]["w"] = words[0]
        if words[1:]:
            event["params"]["a"] = int(words[1])
        if action == "Pickup":
            event["params"]["b"] = False
        event["time"] = f"2030-01-01T10:00:0{number % 10}Z"
        lines.append(json.dumps(event))
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(told(*TWICE), encoding="utf-8")
    return path


def test_its_own_spec_takes_it(log: Path) -> None:
    assert judged("pulsar", log)["verdict"] == "conforms"


def test_of_nats_it_would_be_a_number_of_deliveries_that_does_not_grow(log: Path, tmp_path: Path) -> None:
    """There a consumer that is gone brings nothing back, and each delivery is counted."""
    names = {name: name for name in ("Pickup", "Start", "Execute", "Done")}
    binding = as_nats(tmp_path, {**names, "AckFail": "AckSent"}, before="$params.a", lost="Close")
    document = judged(str(binding), log)
    assert (document["verdict"], document["findings"][0]["at"]) == ("diverges", 6)
    assert any("a >= x.n" in text for text in reason(document))


@pytest.mark.parametrize("target", ["celery", "rabbitmq", "nats", "kafka"])
def test_what_another_spec_has_no_word_for_is_said_with_the_words_that_it_has(target: str, log: Path) -> None:
    document = judged(target, log)
    assert document["exit_code"] == 4
    [error, *_] = document["errors"]
    assert error["file"].endswith("events.jsonl")
    assert error["hint"].startswith("its parameters are ")
