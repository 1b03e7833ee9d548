"""A log of RabbitMQ against the specs of other brokers: it does not fit, and what does not fit is named.

The log is that of a connection that is cut: the message comes again at once, and the late ack reaches no one, so that
it comes a third time when the second worker gives it back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.specs.wrong_spec import judged, reason

from specwatch.cli.shipped import binding_path

STEPS = (
    "Publish",
    "Pickup A r=false",
    "Start A",
    "Execute A",
    "Pickup B r=true",
    "Start B",
    "Done A",
    "Ack A",
    "Nack B",
    "Pickup C r=true",
)


def told(*steps: str) -> str:
    """Events as the probe for pika writes them, 10 ms apart: ``Pickup A r=false``."""
    lines = []
    for number, step in enumerate(steps, 1):
        action, *words = step.split()
        params: dict[str, Any] = {"t": "T"}
        if words:
            params |= {"w": words[0], "n": f"127.0.0.1:4000{words[0]}", "c": "1", "d": 1}
        if words[1:]:
            params["r"] = words[1] == "r=true"
        time = f"2030-01-01T10:00:00.{number:02}Z"
        lines.append(json.dumps({"action": action, "params": params, "key": "T", "emitter": "all", "time": time}))
    return "".join(f"{line}\n" for line in lines)


AS_ANOTHER = """
# A log of RabbitMQ, read as if it were one of another broker: it has neither channels nor delivery tags.
spec = "{spec}"
config = "{config}"
format = "structlog"
scope = "key"
order = "total"
emitter = "$emitter"
time = "$time"
terminal = ["Ack"]
[key]
param = "t"
from = "key"
[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
{constants}
{hidden}
[[rule]]
match = {{ action = "Publish" }}
action = "Publish"
params = {{ t = "$key" }}
"""
RULE = """
[[rule]]
match = {{ action = "{action}" }}
action = "{action}"
params = {{ t = "$key", w = "$params.w"{more} }}
"""
CELERY = """
[hidden.Check]
[hidden.VisTimeout]
after = "Pickup"
min = "visibility_timeout"
[settings]
visibility_timeout = "3600s"
"""
JETSTREAM = """
[hidden]
AckTimeout = {}
Check = {}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(told(*STEPS), encoding="utf-8")
    return path


def as_another(target: str, module: str, hidden: str, constants: str, folder: Path) -> str:
    specs = binding_path(target).parent.resolve()
    text = AS_ANOTHER.format(
        spec=specs / f"{module}.tla", config=specs / f"{module}.faulty.cfg", hidden=hidden, constants=constants
    )
    for action in ("Pickup", "Start", "Execute", "Done", "Ack", "Nack"):
        text += RULE.format(action=action, more=', r = "$params.r"' if action == "Pickup" else "")
    path = folder / f"as-{target}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_it_fits_its_own(log: Path) -> None:
    assert judged("rabbitmq", log)["verdict"] == "conforms"


def test_of_celery_on_redis_it_would_be_a_redelivery_before_its_time(log: Path, tmp_path: Path) -> None:
    """Redis knows of no connection: what was popped comes back after the visibility timeout, and not before."""
    document = judged(as_another("celery", "CeleryRedis", CELERY, "", tmp_path), log)
    assert (document["verdict"], document["findings"][0]["at"]) == ("diverges", 5)
    assert document["findings"][0]["event"]["action"] == "Pickup"
    assert "VisTimeout" in json.dumps(document["findings"][0]["explanation"])


def test_of_jetstream_it_would_be_a_message_that_comes_after_its_ack(log: Path, tmp_path: Path) -> None:
    """There a late ack settles the message, whoever has it by now."""
    constants = 'Deliveries = { values = "a" }\nSequences = { values = "seq" }'
    document = judged(as_another("nats", "JetStream", JETSTREAM, constants, tmp_path), log)
    assert document["verdict"] == "diverges"
    assert document["findings"][0]["at"] in (9, 10)
    assert reason(document)


@pytest.mark.parametrize("target", ["celery", "nats", "queue"])
def test_what_another_spec_has_no_word_for_is_said_with_the_words_that_it_has(target: str, log: Path) -> None:
    """Channels and tags are RabbitMQ's own."""
    document = judged(target, log)
    assert document["exit_code"] == 4
    [error, *_] = document["errors"]
    assert error["file"].endswith("events.jsonl")
    assert "the parameter n, which it lacks" in error["message"]
    assert error["hint"]
