"""A log of JetStream against the specs of other brokers: it does not fit, and what does not fit is named.

The log is that of the ordinary duplicate: a worker executes and works on, AckWait is over, and the message comes again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.specs.wrong_spec import judged, reason


def told(*steps: str) -> str:
    """Events as the probe for nats-py writes them: ``Pickup A 0``."""
    lines = []
    for number, step in enumerate(steps, 1):
        action, *words = step.split()
        event: dict[str, Any] = {"action": action, "params": {"t": "T"}, "key": "T", "emitter": "p", "seq": 1}
        if words:
            worker, before = words[0], int(words[1])
            event["params"] |= {"w": worker, "a": before} | ({"r": before > 0} if action == "Pickup" else {})
            event |= {"consumer": "c", "stream_seq": 1, "consumer_seq": before + 1, "emitter": worker}
        event |= {"seq": number, "emitter": "all", "time": f"2030-01-01T10:00:0{number % 10}Z"}
        lines.append(json.dumps(event))
    return "".join(f"{line}\n" for line in lines)


TWICE = ("Publish", "Pickup A 0", "Start A 0", "Execute A 0", "Pickup A 1", "Start A 1", "Done A 0", "Ack A 0")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(told(*TWICE), encoding="utf-8")
    return path


def test_it_fits_its_own(log: Path) -> None:
    assert judged("nats", log)["verdict"] == "conforms"


def test_of_celery_it_would_be_a_retry_that_no_one_sent(log: Path) -> None:
    """Celery's messages carry their attempt, and one that was restored carries the same as before."""
    document = judged("celery", log)
    assert (document["verdict"], document["findings"][0]["at"]) == ("diverges", 5)
    assert "a \\in Waiting(t)" in reason(document)


AS_RABBITMQ = """
# A log of JetStream, read as if it were one of RabbitMQ: a worker's connection has one channel, the consumer, and the
# sequence is the delivery tag.
spec = "{spec}"
config = "{config}"
format = "structlog"
scope = "key"
order = "total"
hidden = ["Publish", "Start", "Check", "Requeue", "Return", "WordLost"]
emitter = "$emitter"
seq = "$seq"
time = "$time"
[key]
param = "t"
from = "key"
[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Connections = {{ values = "n" }}
Channels = {{ values = "c" }}
Tags = {{ values = "d" }}
[[rule]]
match = {{ action = "Publish" }}
action = "Publish"
params = {{ t = "$key" }}
"""
RULE = """
[[rule]]
match = {{ action = "{action}" }}
action = "{action}"
params = {{ t = "$key", w = "$params.w", n = "$params.w", c = "$consumer", d = "$stream_seq"{more} }}
"""


def test_of_rabbitmq_it_would_be_a_delivery_tag_given_twice(log: Path, tmp_path: Path) -> None:
    specs = Path(__file__).parents[2] / "specs" / "rabbitmq"
    text = AS_RABBITMQ.format(spec=specs / "RabbitMQ.tla", config=specs / "RabbitMQ.faulty.cfg")
    for action in ("Pickup", "Start", "Execute", "Done", "Ack"):
        text += RULE.format(action=action, more=', r = "$params.r"' if action == "Pickup" else "")
    binding = tmp_path / "as-rabbitmq.toml"
    binding.write_text(text, encoding="utf-8")
    document = judged(str(binding), log)
    assert (document["verdict"], document["findings"][0]["at"]) == ("diverges", 5)
    assert "\\A x \\in On(deliveries[t], n, c) : x.d # d" in reason(document)


def test_what_another_spec_has_no_word_for_is_said_with_the_words_that_it_has(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(told("Publish", "Pickup A 0", "InProgress A 0"), encoding="utf-8")
    for target in ("celery", "rabbitmq"):
        document = judged(target, log)
        assert document["exit_code"] == 4
        [error, *_] = document["errors"]
        assert error["file"].endswith("events.jsonl")
        assert error["hint"]
