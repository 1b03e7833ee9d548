"""Servers that others run: a run sees and leaves nothing there but what is its own, and of that nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from specwatch.pilots import runtime
from specwatch.pilots.runtime import ServerError, external, servers

COMMAND = """
import pathlib, signal, sys
import psycopg
from specwatch.pilots import runtime
from specwatch.pilots.runtime.servers import connect_valkey
with runtime.start("external", directory=pathlib.Path(sys.argv[1]) / "run") as up:
    with psycopg.connect(up["postgres"].url) as connection:
        connection.execute("CREATE TABLE effects (task text)")
    connect_valkey(up["valkey"].url).set(up["valkey"].prefix + "celery", "a message")
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def theirs() -> Iterator[dict[str, str]]:
    """The URLs of servers that a run did not start."""
    with (
        tempfile.TemporaryDirectory() as folder,
        runtime.start("embedded", directory=Path(folder)) as up,
    ):
        yield {name: server.url for name, server in up.items()}


@pytest.fixture(autouse=True)
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VALKEY", "POSTGRES"):
        monkeypatch.delenv(f"SPECWATCH_{name}_URL", raising=False)


def keys(urls: dict[str, str]) -> list[str]:
    with closing(servers.connect_valkey(urls["valkey"])) as client:
        return sorted(client.keys())


def schemas(urls: dict[str, str]) -> list[str]:
    with psycopg.connect(urls["postgres"]) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'specwatch%'").fetchall()
        return [name for (name,) in rows]


def test_a_run_has_a_namespace_of_its_own_that_ends_with_it(theirs: dict[str, str], tmp_path: Path) -> None:
    with closing(servers.connect_valkey(theirs["valkey"])) as client:
        client.set("theirs", "kept")
    with (
        runtime.start("external", directory=tmp_path / "one", urls=theirs) as one,
        runtime.start("external", directory=tmp_path / "two", urls=theirs) as two,
    ):
        assert one["valkey"].prefix != two["valkey"].prefix
        for number, up in enumerate((one, two)):
            with psycopg.connect(up["postgres"].url) as connection:
                connection.execute("CREATE TABLE effects (task text)")
                connection.execute("INSERT INTO effects VALUES (%s)", [str(number)])
            with closing(servers.connect_valkey(up["valkey"].url)) as client:
                client.set(f"{up['valkey'].prefix}celery", number)
        with psycopg.connect(one["postgres"].url) as connection:
            assert connection.execute("SELECT task FROM effects").fetchall() == [("0",)]
        assert len(schemas(theirs)) == 2
        assert len(keys(theirs)) == 3
    assert (keys(theirs), schemas(theirs)) == (["theirs"], [])


def test_a_server_of_others_has_a_version_but_neither_pid_nor_log(theirs: dict[str, str], tmp_path: Path) -> None:
    with runtime.start("external", directory=tmp_path, urls=theirs) as up:
        assert {name: (row.version.split()[0], row.pid, row.log) for name, row in up.items()} == {
            "valkey": ("valkey", None, None),
            "postgres": ("postgresql", None, None),
        }


def test_only_what_is_needed_is_asked_for(theirs: dict[str, str], tmp_path: Path) -> None:
    with runtime.start("external", directory=tmp_path, needs=["valkey"], urls={"valkey": theirs["valkey"]}) as up:
        assert list(up) == ["valkey"]


def test_a_key_that_only_looks_like_ours_is_kept(theirs: dict[str, str], tmp_path: Path) -> None:
    with closing(servers.connect_valkey(theirs["valkey"])) as client:
        with runtime.start("external", directory=tmp_path, needs=["valkey"], urls=theirs) as up:
            near = f"x{up['valkey'].prefix}celery"
            client.set(near, "kept")
        assert client.get(near) == "kept"
        client.delete(near)


def test_however_the_command_ends_the_namespace_is_removed(
    theirs: dict[str, str], command: Callable[..., Any], ending: int, until: Callable[..., bool]
) -> None:
    one = command(COMMAND, env={f"SPECWATCH_{name.upper()}_URL": url for name, url in theirs.items()})
    family = one.ready()
    assert (len(schemas(theirs)), len([key for key in keys(theirs) if key.startswith("specwatch:")])) == (1, 1)
    assert one.left_after(ending, family) == set()
    assert until(lambda: not schemas(theirs), 5)
    assert [key for key in keys(theirs) if key.startswith("specwatch:")] == []


def test_an_error_in_the_body_is_passed_on_and_the_namespace_removed(theirs: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="body"), runtime.start("external", directory=tmp_path, urls=theirs):
        raise KeyError("body")
    assert schemas(theirs) == []


def test_the_url_given_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECWATCH_VALKEY_URL", "redis://there/1")
    assert external.find("valkey") == "redis://there/1"
    assert external.find("valkey", "redis://here/2") == "redis://here/2"
    assert external.find("valkey", "valkey://here/2") == "redis://here/2"
    assert external.find("valkey", "valkeys://here/2") == "rediss://here/2"


@pytest.mark.parametrize("name", ["valkey", "postgres"])
def test_without_a_url_the_error_shows_one(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(ServerError, match=f"no URL of a {name} server is given\n  hint: SPECWATCH_{name.upper()}_URL="),
        runtime.start("external", directory=tmp_path, needs=[name]),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "url", "message"),
    [
        ("valkey", "redis://:secret@127.0.0.1:1/0", r"no answer from 127.0.0.1:1/0: .*refused"),
        ("valkey", "http://127.0.0.1", r"not a URL of a Valkey or Redis"),
        ("postgres", "postgresql://me:secret@127.0.0.1:1/db", r"no answer from 127.0.0.1:1/db: .*refused"),
        ("postgres", "host=127.0.0.1 dbname=db", r"must be given as a URL"),
        ("postgres", "postgresql://127.0.0.1:port/db", r"no answer from .*invalid"),
    ],
)
def test_a_url_where_no_server_answers_is_an_error_without_the_password(
    tmp_path: Path, name: str, url: str, message: str
) -> None:
    with (
        pytest.raises(ServerError, match=message) as caught,
        runtime.start("external", directory=tmp_path, needs=[name], urls={name: url}),
    ):
        pass
    assert "secret" not in str(caught.value)
    assert f"SPECWATCH_{name.upper()}_URL" in str(caught.value)


def test_a_user_who_may_make_no_schema_is_told_what_is_needed(theirs: dict[str, str], tmp_path: Path) -> None:
    with psycopg.connect(theirs["postgres"], autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
    url = theirs["postgres"].replace(theirs["postgres"].partition("://")[2].partition("@")[0], "reader:reader")
    with (
        pytest.raises(ServerError, match=r"(?s)permission denied.*GRANT CREATE ON DATABASE"),
        runtime.start("external", directory=tmp_path, needs=["postgres"], urls={"postgres": url}),
    ):
        pass


def test_what_could_not_be_removed_is_named(tmp_path: Path) -> None:
    with runtime.start("embedded", directory=tmp_path, needs=["valkey"]) as up:
        own = external.Namespace(up["valkey"].url, "specwatch:0:", "", "specwatch_0")
    with pytest.raises(ServerError, match=r"keys specwatch:0:\* are left at 127.0.0.1:\d+/0: .*refused"):
        external.remove(own)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://h/db", "postgresql://h/db?options=-csearch_path%3Ds"),
        ("postgresql://h/db?sslmode=disable", "postgresql://h/db?sslmode=disable&options=-csearch_path%3Ds"),
        (
            "postgresql://h/db?options=-c%20jit%3Doff&application_name=a+b",
            "postgresql://h/db?options=-c%20jit%3Doff%20-csearch_path%3Ds&application_name=a%2Bb",
        ),
        ("postgresql://u:p%40@h:5/db", "postgresql://u:p%40@h:5/db?options=-csearch_path%3Ds"),
    ],
)
def test_a_schema_is_selected_by_the_url_and_its_other_options_stay(url: str, expected: str) -> None:
    assert external.with_search_path(url, "s") == expected
