"""Apache Pulsar: a standalone server for a run, or what a run uses of one that others run."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from . import maven, programs
from .embedded import environment, free_port, new_folder, up
from .errors import ServerError
from .guard import Process, spawn
from .servers import ANSWER_WAIT, Server, address

MEMORY = "-Xms128m -Xmx512m -XX:MaxDirectMemorySize=256m"
START_WAIT = 120.0
"""Seconds within which a server must be up, on a machine with much else to do. Alone it takes eight."""
KEEP_ALIVE = 2
"""Seconds between two looks of the broker whether a client that said nothing is still there."""
TOPICS = "persistent/public/default"


def start(directory: Path, logs: Path) -> tuple[Server, Process]:
    """Start a standalone server, its data in a folder below ``directory``. Raises ``ServerError``."""
    program = programs.find("pulsar")
    java = maven.java(maven.DISTRIBUTIONS["pulsar"])
    assert java is not None, "else no program was found"
    log = logs / "pulsar.log"
    started: list[tuple[str, int]] = []

    def attempt(port: int) -> Process:
        home = new_folder(directory, "pulsar")
        web = free_port()
        started.append((home.name, web))

        def prepare() -> None:
            home.mkdir(mode=0o700)
            shipped = (program.path / "conf" / "standalone.conf").read_text(encoding="utf-8")
            config = configured(shipped, cluster=home.name, port=port, web=web)
            (home / "standalone.conf").write_text(config, encoding="utf-8")

        variables = {
            "JAVA_HOME": str(java.resolve().parents[1]),
            "PULSAR_MEM": MEMORY,
            "PULSAR_GC_LOG": " ",  # Else it writes one.
            "PULSAR_LOG_DIR": str(home / "logs"),
            "PULSAR_STANDALONE_CONF": str(home / "standalone.conf"),
        }
        folders = ["--metadata-dir", str(home / "metadata"), "--bookkeeper-dir", str(home / "bookkeeper")]
        return spawn(
            # No worker for functions, no storage for their state.
            [str(program.path / "bin" / "pulsar"), "standalone", "-nfw", "-nss", "-a", "127.0.0.1", *folders],
            log=log,
            env={**environment(), **variables},
            cwd=directory,
            remove=[home],
            prepare=prepare,
        )

    def ask(port: int, process: Process) -> Server:
        cluster, web = started[-1]
        url = f"pulsar://127.0.0.1:{port}/?admin=http://127.0.0.1:{web}"
        version, found = ask_pulsar(url)
        if found != cluster:
            raise ServerError(f"another server answers on port {web}")
        return Server("pulsar", url, version, process.log, process.pid)

    return up(program.version, log, attempt, ask, START_WAIT)


def configured(shipped: str, *, cluster: str, port: int, web: int) -> str:
    """The configuration of a server of its own: the shipped one, but all on loopback, and what a run needs."""
    own = {
        "clusterName": cluster,
        "brokerServicePort": port,
        "webServicePort": web,
        "bindAddress": "127.0.0.1",
        "advertisedAddress": "127.0.0.1",
        # Where its book keeper listens; else on all.
        "listeningInterface": "lo",
        "acknowledgmentAtBatchIndexLevelEnabled": "true",
        "allowAutoTopicCreationType": "non-partitioned",
        # A consumer that answers no more is given up within two of these, and not within a minute.
        "keepAliveIntervalSeconds": KEEP_ALIVE,
    }
    kept = [line for line in shipped.splitlines() if line.partition("=")[0].strip() not in own]
    return "\n".join([*kept, *(f"{name}={value}" for name, value in own.items())]) + "\n"


def service(url: str) -> str:
    """What a client connects to. Raises ``ServerError`` where it is not a URL of Pulsar."""
    parts = urlsplit(url)
    if parts.scheme not in ("pulsar", "pulsar+ssl") or not parts.netloc:
        raise ServerError("not a URL of Pulsar", hint="pulsar://host:6650/?admin=http://host:8080")
    return f"{parts.scheme}://{parts.netloc}"


def ask_pulsar(url: str) -> tuple[str, str]:
    """Version ("pulsar 4.0.8") and cluster of the server at a URL, whose broker is ready.

    Raises ``ServerError`` where none answers.
    """
    version = _ask(url, "GET", "brokers/version").decode().strip()
    clusters = json.loads(_ask(url, "GET", "clusters"))
    _ask(url, "GET", "brokers/health")
    own = [name for name in clusters if name != "global"]
    return f"pulsar {version}", str(own[0] if own else "")


def topics(url: str, prefix: str) -> list[str]:
    """The topics whose names begin with a prefix, without what stands before them. Raises ``ServerError``."""
    names = (str(name).rpartition("/")[2] for name in json.loads(_ask(url, "GET", TOPICS)))
    return [name for name in names if name.startswith(prefix)]


def delete_topics(url: str, prefix: str) -> None:
    """Delete the topics whose names begin with a prefix, also where someone holds them. Raises ``ServerError``."""
    for name in topics(url, prefix):
        _ask(url, "DELETE", f"{TOPICS}/{quote(name)}?force=true")


def stats(url: str, topic: str) -> dict[str, Any]:
    """What the broker says of a topic: its subscriptions with ``msgBacklog`` and ``unackedMessages``, its producers.

    Raises ``ServerError``.
    """
    found: dict[str, Any] = json.loads(_ask(url, "GET", f"{TOPICS}/{quote(topic)}/stats"))
    return found


def _ask(url: str, method: str, path: str) -> bytes:
    parts = urlsplit(url)
    service(url)
    admin = parse_qs(parts.query).get("admin", [f"http://{parts.hostname}:8080"])[0]
    request = urllib.request.Request(f"{admin}/admin/v2/{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_WAIT) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            raise ServerError(f"{address(admin)} answers {error.code} {error.reason} to {path}") from None
    except (OSError, http.client.HTTPException) as error:
        raise ServerError(f"no answer from {address(admin)}: {getattr(error, 'reason', error)}") from None
