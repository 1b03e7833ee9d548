"""RabbitMQ for a run: a node of its own, beside whatever the system runs, with nothing of it left afterwards.

The scripts of a package start the system's node, with its data and its configuration; ``rabbitmq-server --version``
too. So a node is started by the script beside them, is told everything by its environment, and its version is read from
its files. All it opens is on loopback: the port of AMQP, the one for its tools, and epmd, which it starts and leaves
behind; the guard ends that with it.
"""

from __future__ import annotations

import secrets
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import programs
from .embedded import environment, free_port, new_folder, up
from .errors import ClientMissing, ServerError
from .guard import Process, spawn
from .servers import ANSWER_WAIT, Server, address

CONSUMER_TIMEOUT = 3.0
"""Seconds after which a node of the run closes the channel of a delivery that was not acked."""
TICK = 1.0
"""Seconds between its looks for such deliveries: the channel is closed up to this much later."""
START_WAIT = 120.0
"""Seconds within which a node must answer: five to twelve where the machine has little else to do."""
CONTROL_WAIT = 60.0
"""Seconds within which a tool must have ended: it starts an Erlang of its own."""

CONFIG = """\
[{{rabbit, [
  {{consumer_timeout, {timeout:.0f}}},
  {{channel_tick_interval, {tick:.0f}}},
  {{default_user, <<"specwatch">>}},
  {{default_pass, <<"{password}">>}},
  {{disk_free_limit, 1000000}},
  {{collect_statistics_interval, 60000}}
]}}].
"""


def start(directory: Path, logs: Path) -> tuple[Server, Process]:
    """Start a node with its folder below ``directory``. Raises ``ServerError``."""
    program = programs.find("rabbitmq")
    log = logs / "rabbitmq.log"
    password = secrets.token_hex(16)
    variables: dict[str, str] = {}

    def attempt(port: int) -> Process:
        home = new_folder(directory, "rabbitmq")
        epmd, tools = free_port(), free_port()
        variables.update(node_environment(home, port=port, epmd=epmd, tools=tools))

        def prepare() -> None:
            home.mkdir(mode=0o700)
            config = CONFIG.format(timeout=CONSUMER_TIMEOUT * 1000, tick=TICK * 1000, password=password)
            (home / "advanced.config").write_text(config, encoding="utf-8")
            # The exchange of the broker's own events is what a tap listens at.
            (home / "enabled_plugins").write_text("[rabbitmq_event_exchange].\n", encoding="utf-8")
            (home / "rabbitmq.conf").touch()
            # Made here, so that no one else can: who has it may do anything to the node.
            cookie = home / ".erlang.cookie"
            cookie.write_text(secrets.token_hex(16), encoding="ascii")
            cookie.chmod(0o400)

        return spawn(
            [str(program.path)],
            log=log,
            env={**environment(), **variables},
            cwd=directory,
            # Nothing it keeps is of use afterwards, and its own way to end takes seconds.
            stop_signal=signal.SIGKILL,
            remove=[home],
            prepare=prepare,
        )

    def ask(port: int, process: Process) -> Server:
        url = f"amqp://specwatch:{password}@127.0.0.1:{port}/{quote('/', safe='')}"
        return Server("rabbitmq", url, ask_rabbitmq(url), process.log, process.pid, tools=dict(variables))

    return up(program.version, log, attempt, ask, START_WAIT)


def node_environment(home: Path, *, port: int, epmd: int, tools: int) -> dict[str, str]:
    """What a node, and the tools that speak to it, are told; ``home`` is its folder, the rest are ports."""
    loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
    return {
        "HOME": str(home),
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"{home.name}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(tools),
        "RABBITMQ_BASE": str(home),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_CONFIG_FILES": str(home / "none"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{loopback} +S 2:2",
        # What is not under systemd runs below a shell, which then is the program that is watched.
        "RUNNING_UNDER_SYSTEMD": "true",
    }


def connect(url: str, *, wait: float = ANSWER_WAIT, **parameters: Any) -> Any:
    """A ``pika.BlockingConnection`` that gives up soon; ``parameters`` are further ones of pika's ``URLParameters``.

    Raises ``ServerError``.
    """
    try:
        import pika  # type: ignore[import-untyped]
    except ImportError:
        raise ClientMissing("pika", "pilots") from None
    try:
        options = pika.URLParameters(url)
    except (ValueError, TypeError) as error:
        raise ServerError(f"not a URL of a RabbitMQ: {error}") from None
    options.socket_timeout = options.stack_timeout = options.blocked_connection_timeout = wait
    options.connection_attempts = 1
    for name, value in parameters.items():
        setattr(options, name, value)
    try:
        return pika.BlockingConnection(options)
    except (pika.exceptions.AMQPError, OSError, ValueError) as error:
        # The last is what pika makes of a connection that is reset in the moment after it was made.
        raise ServerError(f"no answer from {address(url)}: {reason(error)}") from None


def ask_rabbitmq(url: str) -> str:
    """Version of the server at a URL. Raises ``ServerError`` where none answers, or not to us."""
    connection = connect(url)
    try:
        properties: Mapping[str, Any] = connection._impl.server_properties
        product = text(properties.get("product", "a server of AMQP")).lower()
        return f"{product} {text(properties.get('version', ''))}".strip()
    finally:
        connection.close()


def control(server: Server, *arguments: str) -> str:
    """What ``rabbitmqctl`` with these arguments says. Of a node that a run has started. Raises ``ServerError``."""
    program = programs.find("rabbitmq").path.with_name("rabbitmqctl")
    try:
        done = subprocess.run(
            [str(program), "--quiet", *arguments],
            env={**environment(), **server.tools},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CONTROL_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{program.name} {' '.join(arguments)}: {error}") from None
    if done.returncode != 0:
        raise ServerError(f"{program.name} {' '.join(arguments)}: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def delete_queues(url: str, names: list[str]) -> None:
    """Delete queues, be they there or not. Raises ``ServerError``."""
    connection = connect(url)
    import pika

    try:
        channel = connection.channel()
        for name in names:
            channel.queue_delete(name)
    except pika.exceptions.AMQPError as error:
        raise ServerError(reason(error)) from None
    finally:
        if connection.is_open:
            connection.close()


def reason(error: BaseException) -> str:
    """Why, in words: pika's errors hold others, or say nothing."""
    while (inner := next((arg for arg in error.args if isinstance(arg, BaseException)), None)) is not None:
        error = inner
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
