"""A NATS of the run's own: JetStream on loopback, for it alone, and gone with it; and one of others'."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from specwatch.pilots import runtime
from specwatch.pilots.runtime import ServerError, embedded, external, nats, programs

COMMAND = """
import pathlib, signal, sys
from specwatch.pilots import runtime
with runtime.start("embedded", directory=pathlib.Path(sys.argv[1]) / "run", needs=["nats"]):
    print("ready", flush=True)
    signal.pause()
"""
EXTERNAL = """
import pathlib, signal, sys
from specwatch.pilots import runtime
from specwatch.pilots.runtime import nats
with runtime.start("external", directory=pathlib.Path(sys.argv[1]) / "run", needs=["nats"]) as up:
    name = up["nats"].prefix + "tasks"
    nats.ask(up["nats"].url, lambda client: client.jetstream().add_stream(name=name, subjects=[name]))
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def theirs() -> Iterator[runtime.Server]:
    """A server that a run started, and that is another's to the next."""
    with (
        tempfile.TemporaryDirectory() as folder,
        runtime.start("embedded", directory=Path(folder), needs=["nats"]) as up,
    ):
        yield up["nats"]


@pytest.fixture(autouse=True)
def no_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECWATCH_NATS_URL", raising=False)


def make(server: runtime.Server, *names: str) -> None:
    async def add(client: Any) -> None:
        for name in names:
            await client.jetstream().add_stream(name=name, subjects=[name])

    nats.ask(server.url, add)


def port(server: runtime.Server) -> int:
    number = urlsplit(server.url).port
    assert number is not None
    return number


def listens(number: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", number)) == 0


def test_it_answers_and_keeps_its_streams_in_the_folder_of_the_run(tmp_path: Path) -> None:
    with runtime.start("embedded", directory=tmp_path / "run", needs=["nats"]) as up:
        server = up["nats"]
        assert (server.name, server.version) == ("nats", programs.find("nats").version)
        assert (server.log, server.prefix) == (tmp_path / "run/logs/nats.log", "")
        make(server, "tasks")
        assert [path.name for path in (tmp_path / "run").glob("specwatch-nats-*/store/**/tasks")] == ["tasks"]
    assert list((tmp_path / "run").glob("specwatch-*")) == []
    assert not Path(f"/proc/{server.pid}").exists()
    with pytest.raises(ServerError, match=r"no answer from 127\.0\.0\.1:\d+: .*refused"):
        nats.ask_nats(server.url)


def test_who_does_not_know_the_password_is_refused(theirs: runtime.Server) -> None:
    with pytest.raises(ServerError, match=r"no answer from .*[Aa]uthorization"):
        nats.ask_nats(f"nats://127.0.0.1:{port(theirs)}")
    with pytest.raises(ServerError, match=r"no answer from .*[Aa]uthorization"):
        nats.ask_nats(f"nats://specwatch:guess@127.0.0.1:{port(theirs)}")
    password = urlsplit(theirs.url).password or ""
    assert password not in Path(f"/proc/{theirs.pid}/cmdline").read_text(encoding="utf-8")
    assert password not in repr(theirs)
    assert theirs.address == f"127.0.0.1:{port(theirs)}"


def test_a_port_that_someone_else_took_is_no_failure(
    theirs: runtime.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = embedded.free_port()
    ports = [free, port(theirs)]
    monkeypatch.setattr(embedded, "free_port", ports.pop)
    with runtime.start("embedded", directory=tmp_path, needs=["nats"]) as up:
        assert port(up["nats"]) == free


def test_a_server_without_jetstream_is_refused_with_what_to_do(tmp_path: Path, until: Callable[..., bool]) -> None:
    number = embedded.free_port()
    program = programs.find("nats").path
    with (tmp_path / "log").open("wb") as log:
        plain = subprocess.Popen([str(program), "--addr", "127.0.0.1", "--port", str(number)], stdout=log, stderr=log)
    url = f"nats://127.0.0.1:{number}"
    try:
        assert until(lambda: listens(number))
        with pytest.raises(ServerError, match=r"has no JetStream\n  hint: nats-server --jetstream"):
            nats.ask_nats(url)
    finally:
        plain.kill()
        plain.wait()


def test_however_the_command_ends_no_server_and_no_folder_is_left(
    command: Callable[..., Any], ending: int, until: Callable[..., bool]
) -> None:
    one = command(COMMAND)
    family = one.ready()
    assert len(family) == 2  # the guard and the server
    assert one.left_after(ending, family) == set()
    assert until(lambda: not list(one.folder.glob("run/specwatch-*")), 5)


def test_of_a_server_of_others_a_run_uses_streams_of_its_own_that_end_with_it(
    theirs: runtime.Server, tmp_path: Path
) -> None:
    urls = {"nats": theirs.url}
    with runtime.start("external", directory=tmp_path, needs=["nats"], urls=urls) as up:
        server = up["nats"]
        assert (server.version, server.pid, server.log) == (theirs.version, None, None)
        make(server, "theirs", f"x{server.prefix}tasks", f"{server.prefix}tasks", f"{server.prefix}more")
        assert nats.streams(theirs.url, server.prefix) == [f"{server.prefix}more", f"{server.prefix}tasks"]
        assert len(nats.streams(theirs.url, "")) == 4
    assert nats.streams(theirs.url, "") == ["theirs", f"x{server.prefix}tasks"]
    nats.delete_streams(theirs.url, "")


def test_streams_of_a_killed_command_are_removed(
    theirs: runtime.Server, command: Callable[..., Any], ending: int, until: Callable[..., bool]
) -> None:
    one = command(EXTERNAL, env={"SPECWATCH_NATS_URL": theirs.url})
    family = one.ready()
    assert len(nats.streams(theirs.url, "specwatch:")) == 1
    assert one.left_after(ending, family) == set()
    assert until(lambda: not nats.streams(theirs.url, "specwatch:"), 5)


def test_more_streams_than_one_answer_names_are_all_found(theirs: runtime.Server) -> None:
    names = [f"many-{number:03}" for number in range(300)]

    async def add(client: Any) -> None:
        for name in names:
            config = json.dumps({"name": name, "subjects": [name], "storage": "memory"}).encode()
            await client.request(f"$JS.API.STREAM.CREATE.{name}", config)

    nats.ask(theirs.url, add)
    assert nats.streams(theirs.url, "many-") == names
    nats.delete_streams(theirs.url, "many-")
    assert nats.streams(theirs.url, "many-") == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:4222", "the NATS server must be given as a URL\n  hint: SPECWATCH_NATS_URL=nats://"),
        (None, "no URL of a nats server is given\n  hint: SPECWATCH_NATS_URL=nats://"),
    ],
)
def test_a_url_that_is_none_says_how_one_looks(url: str | None, says: str) -> None:
    with pytest.raises(ServerError) as caught:
        external.find("nats", url)
    assert says in str(caught.value)


def test_a_server_that_is_not_there_is_said_without_the_password(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        urls = {"nats": f"nats://me:secret@127.0.0.1:{taken.getsockname()[1]}"}
        with (
            pytest.raises(ServerError, match=r"no answer from 127\.0\.0\.1:\d+: .*refused") as caught,
            runtime.start("external", directory=tmp_path, needs=["nats"], urls=urls),
        ):
            pass
    assert "secret" not in str(caught.value)
    assert "is SPECWATCH_NATS_URL right?" in str(caught.value)
