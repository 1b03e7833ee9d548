"""A structlog processor: events that name an action are emitted, and all pass through unchanged."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from .emitter import emit

RESERVED = ("key", "lane", "run", "attempt", "until", "state", "before", "expect", "after", "clock")


class StructlogProcessor:
    """Emits each structlog event that has an action, with its fields.

        structlog.configure(processors=[StructlogProcessor(), structlog.processors.JSONRenderer()])
        log.info("stored", action="Execute", params={"t": task_id})

    ``action`` names the field that holds the action. A field ``params`` that is a mapping is the action's parameters,
    the fields of native events (``key``, ``attempt``, ``state`` …) keep their meaning, and all others stand beside
    them. What the processor returns is what it was given, so that the application's own log stays as it is.
    """

    def __init__(self, action: str = "action") -> None:
        self._action = action

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        action = event.get(self._action)
        if isinstance(action, str) and action:
            params = event.get("params")
            known = {name: event[name] for name in RESERVED if name in event}
            taken = {self._action, "params", *known}
            emit(
                action,
                params=params if isinstance(params, Mapping) else None,
                extra={name: value for name, value in event.items() if name not in taken},
                **known,
            )
        return event
