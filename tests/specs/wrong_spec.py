"""What is said of a log that is judged by another broker's spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from specwatch.cli.app import app


def judged(target: str, log: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(CliRunner().invoke(app, ["check", target, str(log), "--json"]).stdout)
    return document


def reason(document: dict[str, Any]) -> list[str]:
    """The conjuncts that are false in the only finding."""
    [finding] = document["findings"]
    return [one["text"] for one in finding["explanation"]["conjuncts"] if one["value"].startswith("FALSE")]


def as_nats(folder: Path, actions: Mapping[str, str], *, before: str | int, lost: str) -> Path:
    """A binding that reads a log of another broker as one of JetStream.

    ``actions``: what each is called there. ``before``: where an event says how often its message was delivered before.
    ``lost``: what is told of a worker that loses what it had, which there is no more than a lost connection.
    """
    specs = Path(__file__).parents[2] / "specs" / "nats"
    text = f"""
spec = "{specs / "JetStream.tla"}"
config = "{specs / "JetStream.faulty.cfg"}"
format = "structlog"
scope = "key"
order = "total"
hidden = ["Publish", "Start", "Check", "AckTimeout"]
emitter = "$emitter"
seq = "$seq"
time = "$time"
[key]
param = "t"
from = "key"
[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
Deliveries = {{ values = "a" }}
Sequences = {{ values = "seq" }}
[[rule]]
match = {{ action = "Publish" }}
action = "Publish"
params = {{ t = "$key" }}
[[rule]]
match = {{ action = "{lost}" }}
action = "ConnLost"
params = {{ w = "$params.w" }}
"""
    for action, name in actions.items():
        text += f"""
[[rule]]
match = {{ action = "{action}" }}
action = "{name}"
params = {{ t = "$key", w = "$params.w", a = {json.dumps(before)} }}
"""
    binding = folder / "as-nats.toml"
    binding.write_text(text, encoding="utf-8")
    return binding
