"""What goes wrong in a run, told for people.

- ``PilotError``: an experiment that could not be made: a worker that does not start, a producer that fails
    - ``runtime.ServerError``: a server that is not there, does not come up or does not answer
"""

from __future__ import annotations


class PilotError(Exception):
    """A run that cannot be made.

    Has the fields of the other errors for people (``file``, ``line``, ``column``, ``message``, ``hint``), so that a
    command reports it as it reports them. ``file`` is the log that says more, where there is one.
    """

    def __init__(self, message: str, *, file: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line: int | None = None
        self.column: int | None = None
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.file}: " if self.file else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint}"
