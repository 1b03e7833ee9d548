"""NATS with JetStream: a server for a run, or what a run uses of a server that others run."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from . import programs
from .embedded import environment, new_folder, up
from .errors import ClientMissing, ServerError
from .guard import Process, spawn
from .servers import ANSWER_WAIT, Server, address

Answer = TypeVar("Answer")


def start(directory: Path, logs: Path) -> tuple[Server, Process]:
    """Start a server, JetStream's files with it in a folder below ``directory``. Raises ``ServerError``."""
    program = programs.find("nats")
    log = logs / "nats.log"
    password = secrets.token_hex(16)
    homes: list[Path] = []

    def attempt(port: int) -> Process:
        home = new_folder(directory, "nats")
        homes.append(home)
        config = home / "nats.conf"

        def prepare() -> None:
            home.mkdir(mode=0o700)
            settings = {
                "server_name": home.name,
                "host": "127.0.0.1",
                "port": port,
                "jetstream": {"store_dir": str(home / "store")},
                "authorization": {"user": "specwatch", "password": password},
            }
            config.touch(mode=0o600)
            config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is its format too.

        return spawn(
            [str(program.path), "--config", str(config)],
            log=log,
            env=environment(),
            cwd=directory,
            remove=[home],
            prepare=prepare,
        )

    def ask(port: int, process: Process) -> Server:
        url = f"nats://specwatch:{password}@127.0.0.1:{port}"
        version, name = ask_nats(url)
        if name != homes[-1].name:  # One that asks for no password lets everyone in.
            raise ServerError(f"another server answers on port {port}")
        return Server("nats", url, version, process.log, process.pid)

    return up(program.version, log, attempt, ask)


def ask_nats(url: str) -> tuple[str, str]:
    """Version ("nats 2.15.1") and name of the server at a URL, whose JetStream has answered.

    Raises ``ServerError`` where none answers, or not to us, or it has no JetStream.
    """

    async def about(client: Any) -> tuple[str, str]:
        await client.jetstream().account_info()
        info = client._server_info
        return f"nats {info['version']}", str(info["server_name"])

    return ask(url, about)


def ask(url: str, question: Callable[[Any], Awaitable[Answer]]) -> Answer:
    """What a question to a connected client (``nats.NATS``) gives; it has ``ANSWER_WAIT`` seconds for each word.

    Not to be called from a coroutine. Raises ``ServerError``.
    """
    try:
        import nats
        from nats.aio.client import Client
        from nats.js.errors import ServiceUnavailableError
    except ImportError:
        raise ClientMissing("nats-py", "pilots") from None

    errors: list[Exception] = []

    async def heard(error: Exception) -> None:
        errors.append(error)

    async def asked() -> Answer:
        client: Any = Client()
        try:
            await client.connect(
                url,
                connect_timeout=ANSWER_WAIT,
                allow_reconnect=False,
                max_reconnect_attempts=1,  # With none, it tries for ever.
                reconnect_time_wait=0,
                error_cb=heard,
            )
            return await question(client)
        finally:
            await client.close()
            # One that was not let in is closed, and leaves its socket open.
            if client._transport is not None:
                client._transport.close()
                await asyncio.sleep(0)

    try:
        return asyncio.run(asked())
    except ServiceUnavailableError:
        raise ServerError(f"the server at {address(url)} has no JetStream", hint="nats-server --jetstream") from None
    except nats.errors.NoServersError as error:
        why = reason(errors[-1] if errors else error)
        raise ServerError(f"no answer from {address(url)}: {why}") from None
    except (TimeoutError, nats.errors.Error, OSError) as error:
        raise ServerError(f"no answer from {address(url)}: {reason(error)}") from None
    except ValueError as error:
        raise ServerError(f"not a URL of a NATS server: {error}") from None


def streams(url: str, prefix: str) -> list[str]:
    """The streams whose names begin with a prefix. Raises ``ServerError``."""

    async def find(client: Any) -> list[str]:
        return await _names(client.jetstream(), prefix)

    return ask(url, find)


def delete_streams(url: str, prefix: str) -> None:
    """Delete the streams whose names begin with a prefix, and their consumers with them. Raises ``ServerError``."""

    async def delete(client: Any) -> None:
        manager = client.jetstream()
        for name in await _names(manager, prefix):
            await manager.delete_stream(name)

    ask(url, delete)


async def _names(manager: Any, prefix: str) -> list[str]:
    names: list[str] = []
    # An answer has no more than some hundred of them.
    while page := await manager.streams_info(offset=len(names)):
        names += [stream.config.name for stream in page]
    return [name for name in names if name.startswith(prefix)]


def reason(error: BaseException) -> str:
    """Why, in words: some errors of this client say nothing, and one tells of a number and a call."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    said = " ".join(str(error).split()).removeprefix("nats: ").strip("'")
    return said or type(error).__name__
