"""What goes wrong with servers, told for people.

- ``ServerError``: a server that is not there, does not come up or does not answer
    - ``ClientMissing``: the library that would ask it is not installed
"""

from __future__ import annotations

from ..errors import PilotError


class ServerError(PilotError):
    """A server that is not there, does not come up or does not answer. ``file`` is its log where there is one."""


class ClientMissing(ServerError):
    """A client library is not installed. No wait helps against that."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"the client library {library} is not installed", hint=f"pip install 'specwatch[{extra}]'")
