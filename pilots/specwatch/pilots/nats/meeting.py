"""How a struck message's copies work longer than AckWait: by waiting for each other, never for a fixed time."""

from __future__ import annotations

from pathlib import Path

from ..plan import Settings
from ..together import meet, until


class Meeting:
    """The copies of one struck message, as one of them sees them. ``number``: its deliveries, this one included."""

    def __init__(self, settings: Settings, task: str, number: int) -> None:
        self.plan = settings.plan
        self.number = number
        self._folder = Path(settings.directory, "copies", task)
        self._acks = Path(settings.directory, "acks", task)

    def meet(self) -> None:
        """Wait until another copy has come as far."""
        meet(self._folder, self.plan.patience)

    def outlast(self) -> None:
        """Where this is the redelivered copy: go on until the first has acked, and then for longer than AckWait.

        If the late ack had not settled this copy's message, it would be delivered a third time meanwhile.
        """
        if self.number > 1:
            until(self._acks.exists, self.plan.patience)
            until(lambda: self._copies() > 2, 1.5 * self.plan.timeout)

    def acked(self) -> None:
        """Say that the server has a copy's ack."""
        self._acks.parent.mkdir(parents=True, exist_ok=True)
        self._acks.touch()

    def _copies(self) -> int:
        return len(list(self._folder.iterdir()))
