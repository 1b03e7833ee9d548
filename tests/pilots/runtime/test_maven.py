"""What a Maven repository has is fetched once, whole, and is what it was; where a fetch stopped, the next goes on."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specwatch.pilots.runtime import ServerError, maven, programs
from specwatch.pilots.runtime.maven import Artifact, Distribution

JAR = bytes(range(256)) * 40
OTHER = b"another"


class Repository(ThreadingHTTPServer):
    """Files by path, and what was asked for: (path, range). ``cut``: so many answers end after 1,000 bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.cut = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/maven2"


class Handler(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        path = self.path.removeprefix("/maven2/")
        wanted = self.headers["Range"]
        self.server.asked.append((path, wanted))
        data = self.server.files.get(path)
        if data is None:
            self.send_error(404)
            return
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        self.wfile.write(data[begin : begin + 1000] if self.server.cut else data[begin:])
        self.server.cut = max(0, self.server.cut - 1)

    def log_message(self, *_: object) -> None:
        """Nothing: stderr is not the test's."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository with two jars, of which a distribution ``two`` is made."""
    with Repository() as one:
        one.files = {"org/a/1/a-1.jar": JAR, "org/b/2/b-2.jar": OTHER}
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, f"{one.url}/")
        monkeypatch.setenv(maven.CACHE_VARIABLE, str(tmp_path / "cache"))
        monkeypatch.setattr(maven, "DISTRIBUTIONS", {"two": Distribution("two", "1.2", 17)})
        monkeypatch.setattr(maven, "artifacts", lambda _: [artifact(path, data) for path, data in one.files.items()])
        thread = threading.Thread(target=one.serve_forever, args=(0.01,))
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def artifact(path: str, data: bytes) -> Artifact:
    return Artifact(hashlib.sha256(data).hexdigest(), len(data), path)


def test_the_files_are_fetched_once(repository: Repository, tmp_path: Path) -> None:
    said: list[str] = []
    folder = maven.fetch("two", said.append)
    assert folder == tmp_path / "cache" / "two-1.2"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"a-1.jar": JAR, "b-2.jar": OTHER}
    assert said == ["two 1.2: 0 of 0 MB"] * 2
    assert maven.fetch("two") == folder
    assert [path for path, _ in repository.asked] == ["org/a/1/a-1.jar", "org/b/2/b-2.jar"]
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["two-1.2", "two.lock"]


def test_a_connection_that_breaks_goes_on_where_it_stopped(repository: Repository) -> None:
    repository.cut = 2
    assert (maven.fetch("two") / "a-1.jar").read_bytes() == JAR
    assert repository.asked[:3] == [
        ("org/a/1/a-1.jar", None),
        ("org/a/1/a-1.jar", "bytes=1000-"),
        ("org/a/1/a-1.jar", "bytes=2000-"),
    ]


def test_the_next_fetch_goes_on_where_the_last_one_gave_up(repository: Repository, tmp_path: Path) -> None:
    repository.cut = maven.ATTEMPTS
    with pytest.raises(ServerError, match=r"cannot fetch http.*/a-1\.jar: "):
        maven.fetch("two")
    assert not (tmp_path / "cache" / "two-1.2").exists()
    repository.asked.clear()
    assert (maven.fetch("two") / "a-1.jar").read_bytes() == JAR
    assert repository.asked[0] == ("org/a/1/a-1.jar", "bytes=3000-")


def test_a_file_that_is_another_is_refused_and_not_kept(repository: Repository, tmp_path: Path) -> None:
    good = dict(repository.files)
    maven_artifacts = maven.artifacts("two")
    repository.files["org/b/2/b-2.jar"] = b"forgery"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maven, "artifacts", lambda _: maven_artifacts)
        with pytest.raises(ServerError, match=r"b-2\.jar is not what it was: its SHA-256 is [0-9a-f]{64}, and "):
            maven.fetch("two")
    assert not (tmp_path / "cache" / "two-1.2").exists()
    repository.files = good
    repository.asked.clear()
    maven.fetch("two")
    assert repository.asked == [("org/b/2/b-2.jar", None)]


def test_what_the_repository_lacks_is_said(repository: Repository) -> None:
    wanted = maven.artifacts("two")
    repository.files = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maven, "artifacts", lambda _: wanted)
        with pytest.raises(ServerError, match=r"cannot fetch http.*/a-1\.jar: 404 Not Found"):
            maven.fetch("two")


def test_an_archive_is_unpacked_without_its_top_folder(repository: Repository) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, mode in (("top-1/bin/run", 0o755), ("top-1/conf/a.conf", 0o644)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = 2, mode
            tar.addfile(info, io.BytesIO(b"ok"))
    repository.files = {"org/c/1/c-1-bin.tar.gz": packed.getvalue()}
    folder = maven.fetch("two")
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == [
        "bin",
        "bin/run",
        "conf",
        "conf/a.conf",
    ]
    assert (folder / "bin" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("name", ["kafka", "pulsar"])
def test_what_a_broker_is_made_of_is_pinned(name: str) -> None:
    """The lock is what the pom's version resolves to."""
    wanted = maven.artifacts(name)
    assert all(len(one.sha256) == 64 and one.size > 0 for one in wanted)
    version = maven.DISTRIBUTIONS[name].version
    assert any(f"/{version}/" in one.path and f"org/apache/{name}/" in one.path for one in wanted)
    pom = Path(maven.__file__).parents[1] / name / "pom.xml"
    assert f"<version>{version}</version>" in pom.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('openjdk version "17.0.15" 2025-04-15', True),
        ('java version "21" 2023-09-19 LTS', True),
        ('openjdk version "11.0.2" 2019-01-15', False),
        ('java version "1.8.0_292"', False),
        ("nonsense", False),
    ],
)
def test_a_java_must_be_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, found: bool) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert maven.java(Distribution("two", "1.2", 17)) == (program if found else None)


def test_a_broker_that_was_not_fetched_is_none_and_how_to_get_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(maven.CACHE_VARIABLE, str(tmp_path))
    assert programs.programs("kafka") == []
    with pytest.raises(ServerError, match="no kafka server on this machine") as caught:
        programs.find("kafka")
    assert str(caught.value.hint).startswith("specwatch servers install kafka and ")
