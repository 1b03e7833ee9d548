"""structlog events that name an action are emitted, and the application's own log stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from specwatch.collector.probes import StructlogProcessor, configure


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Path]:
    """The file that this process emits to."""
    configure(tmp_path / "events.jsonl")
    yield tmp_path / "events.jsonl"
    configure("")


def told(path: Path) -> list[dict[str, Any]]:
    """The steps, without what every event has."""
    everywhere = {"emitter", "seq", "time", "boot", "monotonic", "pid", "host"}
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{n: v for n, v in line.items() if n not in everywhere} for line in found if "lane" not in line]


def logger(*processors: Any) -> tuple[Any, list[str]]:
    """A structlog logger that renders JSON, and the lines that it wrote."""
    written: list[str] = []

    class Keep:
        def msg(self, text: str) -> None:
            written.append(text)

        info = msg

    chain = [*processors, structlog.processors.JSONRenderer()]
    return structlog.wrap_logger(Keep(), processors=chain, wrapper_class=structlog.BoundLogger), written


def test_an_event_with_an_action_is_emitted_and_passes_through(events: Path) -> None:
    log, written = logger(StructlogProcessor())
    log.bind(worker="A").info("stored", action="Execute", params={"t": "7f3c"}, key="7f3c", attempt=1, rows=2)
    assert told(events) == [
        {
            "action": "Execute",
            "params": {"t": "7f3c"},
            "key": "7f3c",
            "attempt": 1,
            "event": "stored",
            "worker": "A",
            "rows": 2,
        }
    ]
    assert [json.loads(line) for line in written] == [
        {
            "event": "stored",
            "action": "Execute",
            "params": {"t": "7f3c"},
            "key": "7f3c",
            "attempt": 1,
            "worker": "A",
            "rows": 2,
        }
    ]


@pytest.mark.parametrize("fields", [{}, {"action": ""}, {"action": 3}, {"action": None}, {"other": "Execute"}])
def test_other_events_pass_through_alone(events: Path, fields: dict[str, Any]) -> None:
    log, written = logger(StructlogProcessor())
    log.info("hello", **fields)
    assert told(events) == []
    assert [json.loads(line) for line in written] == [{"event": "hello", **fields}]


def test_the_action_may_stand_in_another_field(events: Path) -> None:
    log, _ = logger(StructlogProcessor(action="step"))
    log.info("stored", step="Execute", action="unrelated")
    # A further field named as one of an event's gives way to it.
    assert told(events) == [{"action": "Execute", "params": {}, "event": "stored"}]


def test_what_the_native_form_refuses_costs_the_log_nothing(events: Path) -> None:
    log, written = logger(StructlogProcessor())
    log.info("stored", action="Execute", params=["no", "mapping"])
    assert told(events) == [{"action": "Execute", "params": {}, "event": "stored"}]
    assert len(written) == 1
