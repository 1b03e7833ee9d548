"""Where a pilot's servers come from: ``embedded`` (started for the run) or ``external`` (URLs given).

``guard.spawn`` starts whatever must not outlive the command: the servers, and the pilot's workers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from . import guard
from .errors import ServerError
from .servers import Server

Kind = Literal["embedded", "external"]

__all__ = ["Kind", "Server", "ServerError", "guard", "start"]


@contextlib.contextmanager
def start(
    kind: Kind,
    *,
    directory: Path,
    needs: Sequence[str] = ("valkey", "postgres"),
    urls: Mapping[str, str] | None = None,
    logs: Path | None = None,
) -> Iterator[dict[str, Server]]:
    """The servers that a run needs, by name; they have answered.

    ``embedded``: new ones, whose folders are below ``directory`` and whose logs are in ``logs`` (default
    ``directory/logs``). Afterwards, and also when this process is killed, they are stopped and their folders removed;
    the logs stay. ``external``: those at ``urls``, or at the URLs in SPECWATCH_VALKEY_URL, SPECWATCH_POSTGRES_URL, …;
    what the run keeps there is its own (``Server.prefix``; a schema that the URL selects) and is removed afterwards.
    Raises ``ServerError``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    logs = logs or directory / "logs"
    with contextlib.ExitStack() as running:
        if kind == "embedded":
            from . import embedded, kafka, nats, pulsar, rabbitmq

            starters = {
                "valkey": embedded.start_valkey,
                "postgres": embedded.start_postgres,
                "rabbitmq": rabbitmq.start,
                "nats": nats.start,
                "kafka": kafka.start,
                "pulsar": pulsar.start,
            }
            servers = {}
            for name in needs:
                servers[name], process = starters[name](directory.absolute(), logs.absolute())
                running.enter_context(process)
        else:
            from . import external

            servers = running.enter_context(external.use(needs, urls or {}, logs.absolute()))
        yield servers
