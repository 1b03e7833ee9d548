"""A proxy does to a worker's connection what it is told, counts it, and does nothing else."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specwatch.pilots import proxy
from specwatch.pilots.errors import PilotError
from specwatch.pilots.proxy import Links

PATIENCE = 30.0


class Echo:
    """A server that says back what it hears, and ends a connection when its client has ended it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.ends: list[str] = []
        """How each connection ended: ``FIN`` or ``RST``."""
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    connection.sendall(data)
                self.ends.append("FIN")
            except ConnectionError:
                self.ends.append("RST")

    def close(self) -> None:
        # A shutdown, since a close alone does not wake who accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture(scope="module")
def running(echo: Echo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Links]:
    log = tmp_path_factory.mktemp("proxy") / "proxy.log"
    with proxy.start("127.0.0.1", echo.port, [], log=log) as links:
        yield links


@pytest.fixture
def links(running: Links, echo: Echo) -> Iterator[Links]:
    """Proxies to a worker of the test's own and to another, through one process for all tests."""
    echo.ends.clear()
    echo.accepted = 0
    for name in ("worker-1", "worker-2"):
        running._ports.pop(name, None)
        running.add(name)
    yield running
    # The ends that it leaves are not the next test's.
    for name in ("worker-1", "worker-2"):
        running.heal(name)
    assert until(lambda: len(echo.ends) == echo.accepted)


def connect(links: Links, name: str = "worker-1") -> socket.socket:
    connection = socket.create_connection(links.address(name), timeout=PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def says(connection: socket.socket, word: bytes) -> bytes:
    connection.sendall(word)
    return heard(connection, len(word))


def heard(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := connection.recv(count - len(data))):
        data += more
    return data


def until(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


def is_reset(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b"never"
    except ConnectionResetError:
        return True


def is_refused(links: Links) -> bool:
    """Whether a new connection is reset, be it before its maker knows that it was made."""
    try:
        with connect(links) as connection:
            return is_reset(connection)
    except ConnectionResetError:
        return True


def test_bytes_pass_in_both_directions_and_are_counted(links: Links) -> None:
    with connect(links) as connection:
        assert says(connection, b"ping") == b"ping"
        large = bytes(range(256)) * 4096
        threading.Thread(target=connection.sendall, args=(large,)).start()
        assert heard(connection, len(large)) == large
        counts = links.counts("worker-1")
        assert (counts.connections, counts.open, counts.resets, counts.delayed) == (1, 1, 0, 0)
        assert counts.received == counts.sent == 2 * (4 + len(large))
    assert links.counts("worker-2") == proxy.Counts()


def test_the_end_of_a_connection_is_passed_on_as_such(links: Links, echo: Echo) -> None:
    with connect(links) as connection:
        connection.sendall(b"last words")
        connection.shutdown(socket.SHUT_WR)
        assert heard(connection, 100) == b"last words"
    assert until(lambda: links.counts("worker-1").open == 0)
    assert until(lambda: echo.ends == ["FIN"])


def test_a_cut_resets_both_ends_and_new_connections_until_it_is_healed(links: Links, echo: Echo) -> None:
    with connect(links) as connection, connect(links, "worker-2") as spared:
        assert says(connection, b"a") == says(spared, b"a") == b"a"
        assert links.cut("worker-1").resets == 1
        assert is_reset(connection)
        assert until(lambda: echo.ends == ["RST"])
        assert is_refused(links)
        counts = links.counts("worker-1")
        assert (counts.connections, counts.open, counts.resets) == (2, 0, 2)
        assert says(spared, b"b") == b"b"
    links.heal("worker-1")
    with connect(links) as again:
        assert says(again, b"c") == b"c"
    assert links.counts("worker-1").resets == 2


def test_a_delay_lets_all_come_later_in_its_order(links: Links) -> None:
    with connect(links) as connection:
        assert says(connection, b"now") == b"now"
        links.delay("worker-1", 0.1)
        began = time.monotonic()
        for letter in b"later":
            connection.sendall(bytes([letter]))
        assert heard(connection, 5) == b"later"
        took = time.monotonic() - began
        # Once on the way there, once on the way back, however many pieces there are.
        assert took >= 0.2
        assert until(lambda: links.counts("worker-1").delayed == 10)
        links.heal("worker-1")
        assert says(connection, b"now") == b"now"
        assert links.counts("worker-1").delayed == 10


def test_a_black_hole_keeps_the_connection_and_all_that_is_sent(links: Links) -> None:
    with connect(links) as connection:
        assert says(connection, b"before") == b"before"
        before = links.hold("worker-1")
        connection.sendall(b"during")
        # The bytes have reached the proxy, and go no further.
        assert until(lambda: links.counts("worker-1").received == before.received + 6)
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
        held = links.counts("worker-1")
        assert (held.sent, held.open) == (before.sent, 1)
        connection.settimeout(PATIENCE)
        links.heal("worker-1")
        assert heard(connection, 6) == b"during"
        assert until(lambda: links.counts("worker-1").delayed == 6)


def test_a_black_hole_takes_new_connections_and_no_more_than_it_may_hold(links: Links) -> None:
    links.hold("worker-1")
    with connect(links) as connection:
        connection.settimeout(0.2)
        most = (proxy.HELD + 8) * proxy.CHUNK + (16 << 20)  # With what the system buffers.
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent <= most:
                sent += connection.send(bytes(proxy.CHUNK))
        assert sent <= most
        assert links.counts("worker-1").sent == 0


def test_a_broker_that_is_away_is_a_reset_and_counted(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with proxy.start("127.0.0.1", port, ["worker-1"], log=tmp_path / "proxy.log") as links:
        assert is_refused(links)
        assert until(lambda: links.counts("worker-1").refused == 1)


def test_a_worker_that_comes_later_gets_a_proxy_of_its_own(links: Links) -> None:
    assert "worker-3" not in links.names
    links.add("worker-3")
    address = links.address("worker-3")
    links.add("worker-3")
    assert links.address("worker-3") == address
    with connect(links, "worker-3") as connection:
        assert says(connection, b"hello") == b"hello"


def test_a_url_keeps_all_but_host_and_port(links: Links) -> None:
    port = links.address("worker-1")[1]
    assert links.url("worker-1", "redis://:secret@localhost:6379/3?a=b") == f"redis://:secret@127.0.0.1:{port}/3?a=b"
    assert links.url("worker-1", "nats://u:p@[::1]:4222") == f"nats://u:p@127.0.0.1:{port}"
    with pytest.raises(PilotError, match=r"(?s)rediss://.*TLS"):
        links.url("worker-1", "rediss://:secret@localhost:6379/3")


def test_a_proxy_ends_with_its_block_and_says_so(echo: Echo, tmp_path: Path) -> None:
    with proxy.start("127.0.0.1", echo.port, ["worker-1"], log=tmp_path / "proxy.log") as links:
        connection = connect(links)
        assert says(connection, b"a") == b"a"
    with connection:
        assert connection.recv(1) == b""
    with pytest.raises(PilotError, match="the proxy"):
        links.cut("worker-1")


def test_a_proxy_that_cannot_start_is_told_of_with_its_log(echo: Echo, tmp_path: Path) -> None:
    with (
        pytest.raises(PilotError, match="does not start") as told,
        proxy.start("127.0.0.1", echo.port, [["no name"]], log=tmp_path / "proxy.log"),  # type: ignore[list-item]
    ):
        pass
    assert told.value.file == str(tmp_path / "proxy.log")
