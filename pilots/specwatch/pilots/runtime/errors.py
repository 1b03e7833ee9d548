"""What goes wrong with servers, told for people.

- ``ServerError``: a server that is not there, does not come up or does not answer
    - ``ClientMissing``: the library that would ask it is not installed
"""

from __future__ import annotations


class ServerError(Exception):
    """A server that is not there, does not come up or does not answer.

    Has the fields of the other errors for people (``file``, ``line``, ``column``, ``message``, ``hint``), so that a
    command reports it as it reports them. ``file`` is the server's log where there is one.
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


class ClientMissing(ServerError):
    """A client library is not installed. No wait helps against that."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"the client library {library} is not installed", hint=f"pip install 'specwatch[{extra}]'")
