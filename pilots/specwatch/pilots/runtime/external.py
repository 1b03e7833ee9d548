"""Servers that others run: a run uses a namespace of its own there, and removes it afterwards.

In a Valkey these are the keys with a prefix (kombu: ``global_keyprefix``), in a RabbitMQ queues whose names have it, in
a NATS such streams with their subjects, in a Kafka such topics and groups, in a Pulsar such topics, in a PostgreSQL a
schema.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from . import kafka, pulsar
from .errors import ClientMissing, ServerError
from .guard import GRACE, START_WAIT, spawn
from .kafka import ask_kafka
from .nats import ask_nats, delete_streams
from .programs import SOURCES
from .pulsar import ask_pulsar
from .rabbitmq import ask_rabbitmq, delete_queues
from .servers import Server, address, ask_postgres, ask_valkey, connect_postgres, connect_valkey

SWEEP = "SPECWATCH_SWEEP"
"""How ``sweep`` is told what to remove: not by its command line, since URLs hold passwords."""
EXAMPLES = {
    "valkey": "redis://127.0.0.1:6379/0",
    "postgres": "postgresql://user:password@127.0.0.1:5432/database",
    "rabbitmq": "amqp://user:password@127.0.0.1:5672/vhost",
    "nats": "nats://user:password@127.0.0.1:4222",
    "kafka": "kafka://127.0.0.1:9092",
    "pulsar": "pulsar://127.0.0.1:6650/?admin=http://127.0.0.1:8080",
}


@dataclass(frozen=True)
class Namespace:
    """What a run may use of the servers; a URL is "" where it needs no server of that kind."""

    valkey: str
    prefix: str
    postgres: str
    schema: str
    rabbitmq: str = ""
    nats: str = ""
    kafka: str = ""
    pulsar: str = ""

    @property
    def dotted(self) -> str:
        """The prefix where a name has no colons."""
        return self.prefix.replace(":", ".")


@contextlib.contextmanager
def use(needs: Sequence[str], urls: Mapping[str, str], logs: Path) -> Iterator[dict[str, Server]]:
    """The servers at ``urls``, else at those in the environment, by name. Raises ``ServerError``."""
    found = {name: find(name, urls.get(name)) for name in needs}
    token = secrets.token_hex(6)
    own = Namespace(
        valkey=found.get("valkey", ""),
        prefix=f"specwatch:{token}:",
        postgres=found.get("postgres", ""),
        schema=f"specwatch_{token}",
        rabbitmq=found.get("rabbitmq", ""),
        nats=found.get("nats", ""),
        kafka=found.get("kafka", ""),
        pulsar=found.get("pulsar", ""),
    )
    servers = {name: ask(name, url, own) for name, url in found.items()}
    log = logs / "sweep.log"
    # If this process is killed, its keeper removes the namespace. It is there before there is anything to remove.
    with spawn(
        [sys.executable, "-m", "specwatch.pilots.runtime.sweep"],
        log=log,
        env={**os.environ, SWEEP: json.dumps(asdict(own))},
        grace=2 * GRACE,
    ) as keeper:
        deadline = time.monotonic() + START_WAIT
        while keeps(own) not in log.read_text(errors="replace"):
            if keeper.wait(0.02) is not None or time.monotonic() > deadline:
                raise ServerError("the keeper of the namespace does not start", file=str(log))
        if own.postgres:
            make_schema(own)
        try:
            yield servers
        finally:
            remove(own)
            keeper.kill()


def keeps(own: Namespace) -> str:
    """What the keeper of a namespace says when it is ready."""
    return f"keeps {own.prefix}* and {own.schema}"


def find(name: str, given: str | None = None) -> str:
    """The URL of a server: the one given, else that of the environment. Raises ``ServerError`` where there is none."""
    variable = SOURCES[name].variable
    url = given or os.environ.get(variable)
    hint = f"{variable}={EXAMPLES[name]}"
    if not url:
        raise ServerError(f"no URL of a {name} server is given", hint=hint)
    if name == "valkey":
        # The same protocol; clients know it by its old name.
        return url.replace("valkey", "redis", 1) if url.startswith(("valkey://", "valkeys://")) else url
    if name == "rabbitmq":
        if not url.startswith(("amqp://", "amqps://")):
            raise ServerError("the RabbitMQ server must be given as a URL", hint=hint)
        return url
    if name == "nats":
        if not url.startswith(("nats://", "tls://", "ws://", "wss://")):
            raise ServerError("the NATS server must be given as a URL", hint=hint)
        return url
    if name == "kafka":
        kafka.servers(url)
        return url
    if name == "pulsar":
        pulsar.service(url)
        return url
    if not url.startswith(("postgresql://", "postgres://")):
        raise ServerError("the PostgreSQL server must be given as a URL", hint=hint)
    return url


def ask(name: str, url: str, own: Namespace) -> Server:
    """The server at a URL, if it answers, as the run is to use it. Raises ``ServerError``."""
    try:
        if name == "valkey":
            return Server(name, url, ask_valkey(url)[0], prefix=own.prefix)
        if name == "rabbitmq":
            return Server(name, url, ask_rabbitmq(url), prefix=own.prefix)
        if name == "nats":
            return Server(name, url, ask_nats(url)[0], prefix=own.prefix)
        if name == "kafka":
            return Server(name, url, f"kafka (cluster {ask_kafka(url)})", prefix=own.dotted)
        if name == "pulsar":
            return Server(name, url, ask_pulsar(url)[0], prefix=own.dotted)
        return Server(name, with_search_path(url, own.schema), ask_postgres(url))
    except ClientMissing:
        raise
    except ServerError as error:
        raise ServerError(error.message, hint=f"is {SOURCES[name].variable} right?") from None


def make_schema(own: Namespace) -> None:
    """Make the schema. Raises ``ServerError`` where the user may not."""
    import psycopg

    with connect_postgres(own.postgres) as connection:
        try:
            connection.execute(f'CREATE SCHEMA "{own.schema}"')
        except psycopg.Error as error:
            hint = "the user needs CREATE on the database: GRANT CREATE ON DATABASE … TO …"
            raise ServerError(f"no schema of our own at {address(own.postgres)}: {error}", hint=hint) from None


def remove(own: Namespace) -> None:
    """Remove all that is in the namespace, and it. Raises ``ServerError`` that names what is left."""
    failed = []
    if own.valkey:
        try:
            _remove_keys(own)
        except ServerError as error:
            failed.append(f"keys {own.prefix}* are left at {address(own.valkey)}: {error.message}")
    if own.rabbitmq:
        try:
            _remove_queues(own)
        except ServerError as error:
            failed.append(f"queues {own.prefix}* are left at {address(own.rabbitmq)}: {error.message}")
    if own.nats:
        try:
            delete_streams(own.nats, own.prefix)
        except ServerError as error:
            failed.append(f"streams {own.prefix}* are left at {address(own.nats)}: {error.message}")
    if own.kafka:
        try:
            kafka.delete_all(own.kafka, own.dotted)
        except ServerError as error:
            failed.append(f"topics and groups {own.dotted}* are left at {address(own.kafka)}: {error.message}")
    if own.pulsar:
        try:
            pulsar.delete_topics(own.pulsar, own.dotted)
        except ServerError as error:
            failed.append(f"topics {own.dotted}* are left at {address(own.pulsar)}: {error.message}")
    if own.postgres:
        try:
            _remove_schema(own)
        except ServerError as error:
            failed.append(f"schema {own.schema} is left at {address(own.postgres)}: {error.message}")
    if failed:
        raise ServerError("; ".join(failed))


def _remove_keys(own: Namespace) -> None:
    client = connect_valkey(own.valkey)
    import redis

    try:
        # A round may miss what is added meanwhile, but what it finds is gone.
        for key in client.scan_iter(match=f"{own.prefix}*", count=1000):
            client.unlink(key)
    except (redis.RedisError, OSError) as error:
        raise ServerError(str(error)) from None
    finally:
        client.close()


def _remove_queues(own: Namespace) -> None:
    # AMQP has no word for "which queues are there": the pilot says which it may have made.
    from ..rabbitmq.queues import names

    delete_queues(own.rabbitmq, names(own.prefix))


def _remove_schema(own: Namespace) -> None:
    import psycopg

    with connect_postgres(own.postgres) as connection:
        try:
            connection.execute("SET lock_timeout = '1s'")
            connection.execute(f'DROP SCHEMA IF EXISTS "{own.schema}" CASCADE')
        except psycopg.Error as error:
            raise ServerError(str(error)) from None


def with_search_path(url: str, schema: str) -> str:
    """A libpq URL whose connections look for tables in a schema, and make them there."""
    parts = urlsplit(url)
    options = {}
    for part in filter(None, parts.query.split("&")):
        name, _, value = part.partition("=")
        options[name] = unquote(value)  # libpq takes a plus for a plus, so parse_qsl is wrong here.
    options["options"] = f"{options.get('options', '')} -csearch_path={schema}".strip()
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
    return urlunsplit(parts._replace(query=query))
