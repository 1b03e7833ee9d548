"""What must have happened in a run for its verdict to mean anything: ``VisTimeout``, ``Pickup during fault``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .behaviour import Event
from .spec import Action
from .timed import Span, span_of


@dataclass(frozen=True, slots=True)
class Required:
    """An action that must have happened; ``during`` a fault: of that action's name, or any where it is ``fault``."""

    text: str
    names: frozenset[str]
    actions: frozenset[Action]
    during: str | None

    @classmethod
    def of(cls, text: str, actions: Callable[[str, str], tuple[Action, ...]]) -> Required:
        """Reads what was required. ``actions`` finds an action by name, or refuses it."""
        name, _, during = text.partition(" during ")
        found = frozenset(actions(name.strip(), "require"))
        return cls(text, frozenset({name.strip()}), found, during.strip() or None)

    def is_met(self, event: Event, faults: Sequence[Event]) -> bool:
        """Whether an event that was explained is what was required."""
        if event.action not in self.names and not self.names.intersection(event.alternatives):
            return False
        if self.during is None:
            return True
        return event.time is not None and self.is_during(span_of(event), faults)

    def is_during(self, span: Span, faults: Sequence[Event]) -> bool:
        """Whether a time, or some of it, lies within a fault."""
        if self.during is None:
            return True
        return any(
            fault.time is not None
            and fault.time <= span[1]
            and span[0] <= (math.inf if fault.until is None else fault.until)
            for fault in faults
            if self.during in ("fault", fault.action)
        )
