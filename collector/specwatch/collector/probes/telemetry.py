"""Events as OpenTelemetry log records, and the trace that an event belongs to.

Libraries depend on the API alone, and an application without OpenTelemetry pays nothing: nothing of it is imported
here. What the application has imported is looked up where it is then.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Mapping
from typing import Any

Json = Any

_NOT_ATTRIBUTES = frozenset({"params", "time", "trace_id", "span_id"})


class Telemetry:
    """The live path of one process's events, as soon as the application has configured a provider of loggers."""

    def __init__(self, at_exit: Callable[[], None]) -> None:
        """``at_exit`` is what the process does when it ends, and is registered for that."""
        self._at_exit = at_exit
        self._provider: Any = None
        self._logger: Any = None

    def logger(self) -> Any:
        """The logger of the provider that is configured now, or None."""
        api = sys.modules.get("opentelemetry._logs")
        if api is None:
            return None
        provider = api.get_logger_provider()
        if provider is not self._provider:
            self._provider = provider
            # The API's own stand-ins (no-op and proxy) tell no one.
            told = not type(provider).__module__.startswith("opentelemetry._logs")
            self._logger = provider.get_logger("specwatch.probes") if told else None
            if told:
                # A provider shuts itself down at exit. What is registered after it runs before it.
                atexit.unregister(self._at_exit)
                atexit.register(self._at_exit)
        return self._logger

    def emit(self, event: Mapping[str, Json], nanoseconds: int) -> None:
        """Send a record named ``specwatch.<Action>``; its attributes are the event's fields and parameters."""
        logger = self.logger()
        if logger is None:
            return
        attributes = {f"specwatch.{name}": _plain(event[name]) for name in event if name not in _NOT_ATTRIBUTES}
        attributes |= {f"specwatch.params.{name}": _plain(value) for name, value in event["params"].items()}
        logger.emit(
            timestamp=nanoseconds,
            observed_timestamp=nanoseconds,
            event_name=f"specwatch.{event['action']}",
            attributes=attributes,
            **_context(event),
        )


def trace_of(traceparent: object) -> dict[str, str]:
    """``trace_id`` and ``span_id`` in hex: of the current span, else of the W3C header that came with a message."""
    api = sys.modules.get("opentelemetry.trace")
    if api is not None:
        context = api.get_current_span().get_span_context()
        if context.is_valid:
            return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
    if isinstance(traceparent, str):
        parts = traceparent.split("-")
        if len(parts) >= 4 and _is_hex(parts[1], 32) and _is_hex(parts[2], 16):
            return {"trace_id": parts[1], "span_id": parts[2]}
    return {}


def _is_hex(text: str, digits: int) -> bool:
    # Zero is the form's "none".
    return len(text) == digits and set(text) <= set("0123456789abcdef") and text.strip("0") != ""


def _plain(value: Json) -> str | bool | int | float:
    if isinstance(value, str | bool | int | float):
        return value
    from .encoding import encoded

    return encoded(value).decode()


def _context(event: Mapping[str, Json]) -> dict[str, Any]:
    """The trace that came with a message, for a record that is emitted outside any span."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None or "trace_id" not in event or api.get_current_span().get_span_context().is_valid:
        return {}
    parent = api.SpanContext(int(event["trace_id"], 16), int(event["span_id"], 16), is_remote=True)
    return {"context": api.set_span_in_context(api.NonRecordingSpan(parent))}
