"""Events as OpenTelemetry log records: where an SDK is configured, and only there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

SDK = """
import json, sys
from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from specwatch.collector.probes import configure, emit, failures

exporter = InMemoryLogRecordExporter()

def provide():
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    _logs.set_logger_provider(provider)
    trace.set_tracer_provider(TracerProvider())

def records():
    return [
        {
            "event_name": data.log_record.event_name,
            "timestamp": data.log_record.timestamp,
            "attributes": dict(data.log_record.attributes),
            "trace_id": f"{data.log_record.trace_id:032x}",
            "span_id": f"{data.log_record.span_id:016x}",
        }
        for data in exporter.get_finished_logs()
    ]
"""
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def run(code: str, events: Path | str, preamble: str = SDK) -> Any:
    """What the program prints, as JSON. A provider is global to its process: each test has one of its own."""
    done = subprocess.run(
        [sys.executable, "-c", preamble + textwrap.dedent(code)],
        env={**os.environ, "SPECWATCH_EVENTS": str(events)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_record_says_what_the_line_says(tmp_path: Path) -> None:
    code = """
        provide()
        emit("Execute", t="7f3c", n=3, s=["x"], key="7f3c", attempt=1)
        print(json.dumps(records()))
    """
    start, record = run(code, tmp_path / "events.jsonl")
    line = json.loads((tmp_path / "events.jsonl").read_text().splitlines()[1])
    assert (start["event_name"], record["event_name"]) == ("specwatch.EmitterStart", "specwatch.Execute")
    assert record["attributes"] == {
        "specwatch.action": "Execute",
        "specwatch.params.t": "7f3c",
        "specwatch.params.n": 3,
        "specwatch.params.s": '["x"]',
        **{f"specwatch.{n}": line[n] for n in ("key", "attempt", "emitter", "seq", "boot", "monotonic", "pid", "host")},
    }
    whole, fraction = divmod(record["timestamp"], 10**9)
    assert line["time"].endswith(f".{fraction:09d}Z")
    assert whole > 0


def test_the_live_path_works_without_a_file_and_begins_when_there_is_a_provider() -> None:
    code = """
        emit("Before")
        provide()
        emit("After")
        print(json.dumps([(r["event_name"], r["attributes"]["specwatch.seq"]) for r in records()]))
    """
    assert run(code, "") == [["specwatch.EmitterStart", 1], ["specwatch.After", 2]]


def test_the_current_span_is_the_events_and_else_that_of_the_message(tmp_path: Path) -> None:
    code = f"""
        provide()
        with trace.get_tracer("test").start_as_current_span("body") as span:
            emit("Inside", traceparent={TRACEPARENT!r})
            context = span.get_span_context()
        emit("Outside", traceparent={TRACEPARENT!r})
        emit("Odd", traceparent="00-nonsense")
        emit("Nothing", traceparent="00-{"0" * 32}-{"0" * 16}-00")
        own = [f"{{context.trace_id:032x}}", f"{{context.span_id:016x}}"]
        print(json.dumps([own, [[r["trace_id"], r["span_id"]] for r in records()[1:]]]))
    """
    own, found = run(code, tmp_path / "events.jsonl")
    message = TRACEPARENT.split("-")[1:3]
    none = ["0" * 32, "0" * 16]
    assert found == [own, message, none, none]
    steps = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()][1:-1]
    assert [[step.get("trace_id"), step.get("span_id")] for step in steps] == [own, message, [None] * 2, [None] * 2]


def test_a_provider_that_fails_costs_no_line(tmp_path: Path) -> None:
    code = """
        import logging
        logging.disable()
        class Broken(LoggerProvider):
            def get_logger(self, *_, **__):
                raise RuntimeError("no logger")
        _logs.set_logger_provider(Broken())
        emit("A"); emit("B")
        print(json.dumps(failures()))
    """
    assert run(code, tmp_path / "events.jsonl") > 0
    actions = [json.loads(line)["action"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [action for action in actions if action in "AB"] == ["A", "B"]


def test_a_file_that_fails_costs_no_record(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("in the way")
    code = """
        import logging
        logging.disable()
        provide()
        emit("A")
        print(json.dumps([r["event_name"] for r in records()]))
    """
    assert run(code, tmp_path / "events") == ["specwatch.EmitterStart", "specwatch.A"]


def test_without_an_sdk_the_api_alone_changes_nothing(tmp_path: Path) -> None:
    code = """
        import json, sys
        from opentelemetry import _logs, trace
        from specwatch.collector.probes import emit, failures
        emit("A")
        print(json.dumps([failures(), "opentelemetry.sdk" in sys.modules]))
    """
    assert run(textwrap.dedent(code), tmp_path / "events.jsonl", preamble="") == [0, False]
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 3
