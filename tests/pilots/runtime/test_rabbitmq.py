"""A RabbitMQ of the run's own: on loopback, for it alone, and gone with it, epmd included; and one of others'."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from specwatch.pilots import runtime
from specwatch.pilots.rabbitmq import queues
from specwatch.pilots.runtime import ServerError, external, programs, rabbitmq

pytestmark = pytest.mark.usefixtures("rabbitmq_here")

COMMAND = """
import pathlib, signal, sys
from specwatch.pilots import runtime
with runtime.start("embedded", directory=pathlib.Path(sys.argv[1]) / "run", needs=["rabbitmq"]):
    print("ready", flush=True)
    signal.pause()
"""


def ports(server: runtime.Server) -> list[int]:
    """All that the node opens: for AMQP, for its tools, and epmd's."""
    names = ("RABBITMQ_NODE_PORT", "RABBITMQ_DIST_PORT", "ERL_EPMD_PORT")
    return [int(server.tools[name]) for name in names]


def listening(port: int) -> set[str]:
    """The addresses, as /proc has them, on which someone listens on a port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                found.add(local.rpartition(":")[0])
    return found


def test_the_node_answers_on_loopback_alone(rabbitmq_node: runtime.Server) -> None:
    assert rabbitmq_node.version == programs.find("rabbitmq").version
    own = {"0100007F", "00000000000000000000000001000000"}
    assert [bool(listening(port)) and listening(port) <= own for port in ports(rabbitmq_node)] == [True] * 3


def test_who_does_not_know_the_password_is_refused(rabbitmq_node: runtime.Server) -> None:
    url = rabbitmq_node.url.replace("specwatch:", "specwatch:not")
    with pytest.raises(ServerError, match=r"no answer from .*ACCESS_REFUSED"):
        rabbitmq.ask_rabbitmq(url)
    assert "specwatch:" in rabbitmq_node.url
    assert rabbitmq_node.url not in repr(rabbitmq_node)


def test_an_unacked_delivery_has_a_short_time(rabbitmq_node: runtime.Server) -> None:
    said = rabbitmq.control(rabbitmq_node, "eval", "application:get_env(rabbit, consumer_timeout).")
    assert said.strip() == f"{{ok,{rabbitmq.CONSUMER_TIMEOUT * 1000:.0f}}}"
    with pytest.raises(ServerError, match="rabbitmqctl nonsense: "):
        rabbitmq.control(rabbitmq_node, "nonsense")


def test_a_port_that_someone_else_took_is_no_failure(
    rabbitmq_node: runtime.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt has the port of the other node; the second has free ones."""
    from specwatch.pilots.runtime import embedded

    free = embedded.free_port
    taken = [ports(rabbitmq_node)[0]]
    monkeypatch.setattr(embedded, "free_port", lambda: taken.pop() if taken else free())
    with runtime.start("embedded", directory=tmp_path, needs=["rabbitmq"]) as up:
        assert ports(up["rabbitmq"])[0] != ports(rabbitmq_node)[0]
        assert rabbitmq.ask_rabbitmq(up["rabbitmq"].url) == rabbitmq_node.version
        opened = ports(up["rabbitmq"])
    assert [listening(port) for port in opened] == [set()] * 3
    assert list(tmp_path.glob("specwatch-*")) == []


def test_however_the_command_ends_no_process_and_no_folder_is_left(
    command: Callable[..., Any], until: Callable[..., bool]
) -> None:
    one = command(COMMAND)
    family = one.ready()
    assert len(family) > 4  # the guard, the node, its helpers, and epmd, which has made itself a daemon
    assert one.left_after(9, family) == set()
    assert until(lambda: not list(one.folder.glob("run/specwatch-*")), 5)


def test_of_a_server_of_others_a_run_uses_queues_of_its_own_that_end_with_it(
    rabbitmq_node: runtime.Server, tmp_path: Path
) -> None:
    urls = {"rabbitmq": rabbitmq_node.url}
    with runtime.start("external", directory=tmp_path, needs=["rabbitmq"], urls=urls) as up:
        server = up["rabbitmq"]
        assert (server.version, server.pid, server.log, dict(server.tools)) == (rabbitmq_node.version, None, None, {})
        with closing(rabbitmq.connect(server.url)) as connection:
            channel = connection.channel()
            for name in ("theirs", *queues.names(server.prefix)):
                channel.queue_declare(name, durable=True)
        assert len(rabbitmq.control(rabbitmq_node, "list_queues", "name", "--no-table-headers").split()) > 2
    assert rabbitmq.control(rabbitmq_node, "list_queues", "name", "--no-table-headers").split() == ["theirs"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "http://127.0.0.1:15672",
            "the RabbitMQ server must be given as a URL\n  hint: SPECWATCH_RABBITMQ_URL=amqp://",
        ),
        (None, "no URL of a rabbitmq server is given"),
    ],
)
def test_a_url_that_is_none_says_how_one_looks(url: str | None, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECWATCH_RABBITMQ_URL", raising=False)
    with pytest.raises(ServerError) as caught:
        external.find("rabbitmq", url)
    assert says in str(caught.value)


def test_a_connection_that_is_reset_in_the_moment_after_it_was_made_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What pika raises then is an error of no class of its own."""

    def connection(_: object) -> None:
        raise ValueError("Expected connected socket, but getpeername() failed")

    monkeypatch.setattr("pika.BlockingConnection", connection)
    with pytest.raises(ServerError, match=r"no answer from .*ValueError: Expected connected socket"):
        rabbitmq.connect("amqp://127.0.0.1:1")


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    urls = {"rabbitmq": f"amqp://guest:guest@127.0.0.1:{port}/"}
    with (
        pytest.raises(ServerError, match=r"no answer from .*\n  hint: is SPECWATCH_RABBITMQ_URL right\?"),
        runtime.start("external", directory=tmp_path, needs=["rabbitmq"], urls=urls),
    ):
        pass
