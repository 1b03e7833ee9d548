"""Servers that are Java programs: from a Maven repository into a cache, each file by its checksum.

A broker's folder has a ``pom.xml``, and beside it ``artifacts.lock``, what that resolves to: a line a file, with its
SHA-256, its size and its path in the repository. No Maven is needed to get them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import os
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import ServerError

REPOSITORY = "https://repo.maven.apache.org/maven2"
REPOSITORY_VARIABLE = "SPECWATCH_MAVEN_URL"
"""The environment variable that names another repository, a mirror."""
CACHE_VARIABLE = "SPECWATCH_CACHE"
"""The environment variable that names the folder of what was fetched, by default that of the user's caches."""
CHUNK = 1 << 20
ATTEMPTS = 3
"""How often a file is asked for where the connection breaks; each goes on where the one before stopped."""
ANSWER_WAIT = 30.0
"""Seconds without a byte after which a connection counts as broken."""


@dataclass(frozen=True)
class Distribution:
    """A server that a Maven repository has."""

    name: str
    """``kafka``; its folder below ``pilots`` holds ``artifacts.lock``."""
    version: str
    java: int
    """The oldest Java that runs it."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def folder(self) -> Path:
        """Where its files are once they are fetched."""
        return cache() / f"{self.name}-{self.version}"


class Artifact(NamedTuple):
    """A file of a repository."""

    sha256: str
    size: int
    path: str


DISTRIBUTIONS = {
    "kafka": Distribution("kafka", "4.4.0", 17),
    "pulsar": Distribution("pulsar", "4.0.8", 17),
}


def cache() -> Path:
    """The folder of what was fetched."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specwatch" / "servers"


def artifacts(name: str) -> list[Artifact]:
    """What a distribution is made of."""
    lock = Path(__file__).parents[1] / name / "artifacts.lock"
    rows = (line.split() for line in lock.read_text(encoding="ascii").splitlines())
    return [Artifact(sha256, int(size), path) for sha256, size, path in rows]


def fetch(name: str, say: Callable[[str], object] = lambda _: None) -> Path:
    """The folder of a distribution, fetched unless it is there: the jars, or what an archive holds.

    What was fetched of it before is not fetched again, and the folder appears when it is whole. ``say`` is told how far
    it is. Raises ``ServerError``.
    """
    distribution = DISTRIBUTIONS[name]
    folder = distribution.folder
    if folder.is_dir():
        return folder
    wanted = artifacts(name)
    total = sum(one.size for one in wanted)
    try:
        with _alone(distribution):
            if folder.is_dir():
                return folder  # Another has fetched it meanwhile.
            half = folder.with_name(f"{folder.name}.part")
            files = half / "files"
            files.mkdir(parents=True, exist_ok=True)
            done = 0
            for one in wanted:
                _get(one, files / Path(one.path).name)
                done += one.size
                say(f"{distribution.title}: {done / 1e6:.0f} of {total / 1e6:.0f} MB")
            whole = _unpacked(files, half / "unpacked") if wanted[0].path.endswith(".tar.gz") else files
            whole.rename(folder)
            shutil.rmtree(half)
    except OSError as error:
        raise ServerError(f"{distribution.title} cannot be kept: {error.strerror or error}", file=str(folder)) from None
    return folder


def java(distribution: Distribution) -> Path | None:
    """A Java that runs a distribution, that of JAVA_HOME or on PATH; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    for program in (Path(home, "bin", "java") if home else None, shutil.which("java")):
        if program is not None and _java_version(Path(program)) >= distribution.java:
            return Path(program)
    return None


def _java_version(program: Path) -> int:
    """The feature release of a Java, 17; 0 where it does not run."""
    try:
        said = subprocess.run([str(program), "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    # openjdk version "17.0.15" 2025-04-15
    number = said.partition('"')[2].partition('"')[0].partition(".")[0]
    return int(number) if number.isdecimal() else 0


@contextlib.contextmanager
def _alone(distribution: Distribution) -> Iterator[None]:
    """One at a time fetches a distribution."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{distribution.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _get(one: Artifact, file: Path) -> None:
    """Fetch a file, unless it is there, and go on where an earlier attempt has stopped."""
    if file.exists() and _sha256(file) == one.sha256:
        return
    base = os.environ.get(REPOSITORY_VARIABLE) or REPOSITORY
    url = f"{base.rstrip('/')}/{one.path}"
    part = file.with_name(f"{file.name}.part")
    for left in reversed(range(ATTEMPTS)):
        try:
            _continue(url, part, one.size)
            break
        except (OSError, http.client.HTTPException, ValueError) as error:
            # What is on the disk stays for the next attempt, but for a file that is none of the repository's.
            if not left or isinstance(error, ValueError):
                raise ServerError(
                    f"cannot fetch {url}: {_reason(error)}",
                    hint=f"again goes on where it stopped; a mirror may be named in {REPOSITORY_VARIABLE}",
                ) from None
    found = _sha256(part)
    if found != one.sha256:
        part.unlink()
        raise ServerError(
            f"{url} is not what it was: its SHA-256 is {found}, and {one.sha256} is expected",
            hint=f"try another repository: {REPOSITORY_VARIABLE}",
        )
    part.rename(file)


def _continue(url: str, part: Path, size: int) -> None:
    """Append to a file what it lacks."""
    begun = part.stat().st_size if part.exists() else 0
    if begun >= size:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={begun}-"} if begun else {})
    with urllib.request.urlopen(request, timeout=ANSWER_WAIT) as answer:
        goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        with part.open("ab" if goes_on else "wb") as file:
            shutil.copyfileobj(answer, file, CHUNK)
    if part.stat().st_size < size:
        raise http.client.IncompleteRead(b"", size - part.stat().st_size)


def _unpacked(files: Path, into: Path) -> Path:
    """What the one archive among the files holds, without its top folder."""
    (archive,) = files.iterdir()
    shutil.rmtree(into, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="tar")
    (top,) = into.iterdir()
    return top


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()) or type(error).__name__
