"""A running server, and how to ask one who it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ClientMissing, ServerError

if TYPE_CHECKING:
    import psycopg

ANSWER_WAIT = 2
"""Seconds within which a server must answer one question."""


@dataclass(frozen=True)
class Server:
    """A server that answered. ``log`` and ``pid`` are None where the run did not start it."""

    name: str
    """``valkey`` (also for a Redis), ``postgres`` or another row of ``programs.SOURCES``."""
    url: str = field(repr=False)
    """``redis://…``, ``amqp://…``, a libpq URL with user and database, … It holds a password: print ``address``."""
    version: str
    """"valkey 9.1.2", "redis 7.0.15", "postgresql 18.6"."""
    log: Path | None = None
    pid: int | None = None
    prefix: str = ""
    """What the run's names in a server that others use too must begin with; "" where it has one of its own."""
    tools: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment by which the tools of a RabbitMQ find the run's own node."""

    @property
    def address(self) -> str:
        return address(self.url)


def address(url: str) -> str:
    """Host, port and database of a URL, without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def connect_valkey(url: str) -> Any:
    """A client of Valkey or Redis that gives up soon. Any: redis-py types each answer as awaitable or not.

    Nothing is asked yet. Raises ``ServerError``.
    """
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        raise ClientMissing("redis", "pilots") from None
    try:
        return redis.Redis.from_url(
            url,
            socket_timeout=ANSWER_WAIT,
            socket_connect_timeout=ANSWER_WAIT,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
    except ValueError as error:
        raise ServerError(f"not a URL of a Valkey or Redis: {_sentence(error)}") from None


def ask_valkey(url: str) -> tuple[str, int]:
    """Version and pid of the server at a URL. Raises ``ServerError`` where none answers, or not to us."""
    client = connect_valkey(url)
    import redis

    try:
        info = client.info("server")
    except (redis.RedisError, OSError) as error:
        raise ServerError(f"no answer from {address(url)}: {_sentence(error)}") from None
    finally:
        client.close()
    kind = "valkey" if "valkey_version" in info else "redis"
    return f"{kind} {info[f'{kind}_version']}", int(info["process_id"])


def connect_postgres(url: str) -> psycopg.Connection:
    """A connection to PostgreSQL, each statement of which is a transaction. Raises ``ServerError``."""
    try:
        import psycopg
    except ImportError:
        raise ClientMissing("psycopg", "postgres") from None
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=ANSWER_WAIT)
    except psycopg.Error as error:
        raise ServerError(f"no answer from {address(url)}: {_sentence(error)}") from None


def ask_postgres(url: str) -> str:
    """Version of the server at a URL. Raises ``ServerError`` where none answers, or not to us."""
    with connect_postgres(url) as connection:
        said = connection.info.parameter_status("server_version") or ""
    # Distributions add themselves: "15.8 (Debian 15.8-0+deb12u1)".
    return f"postgresql {said.split(' ')[0]}"


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())
