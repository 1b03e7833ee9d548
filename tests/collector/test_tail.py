"""Logs on disk and on stdin: what is found, how it is opened, and what is said of what cannot be read."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from specwatch.collector.errors import CollectorError
from specwatch.collector.receive import tail
from specwatch.collector.receive.tail import Log, find


def names(*paths: Path) -> list[str]:
    return [log.name for log in find([str(path) for path in paths])]


def lines(path: Path | str) -> list[tuple[int, bytes]]:
    [log] = find([str(path)])
    return list(log.lines())


def read_all(paths: Iterable[Path | str]) -> None:
    for log in find([str(path) for path in paths]):
        list(log.lines())


def refusal(*paths: Path | str) -> CollectorError:
    with pytest.raises(CollectorError) as caught:
        read_all(paths)
    return caught.value


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that every user may enter: pytest's own are for one user only."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """For root no file is closed, so that a test as root becomes nobody for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "gzip in two members": lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
    "zstandard": lambda data: zstandard.compress(data),
    "zstandard in two frames": lambda data: zstandard.compress(data[:7]) + zstandard.compress(data[7:]),
}


@pytest.mark.parametrize("how", COMPRESSED)
def test_compression_is_known_by_the_first_bytes_and_not_by_the_name(tmp_path: Path, how: str) -> None:
    path = tmp_path / "misleading.txt"
    data = COMPRESSED[how](b'{"a": 1}\n{"b": 2}\n')
    path.write_bytes(data)
    [log] = find([str(path)])
    assert list(log.lines()) == [(1, b'{"a": 1}'), (2, b'{"b": 2}')]
    assert log.sha256 == hashlib.sha256(data).hexdigest()
    assert log.digest == hashlib.sha256(b'{"a": 1}\n{"b": 2}\n').digest()


@pytest.mark.parametrize("how", ["gzip", "zstandard"])
@pytest.mark.parametrize("cut", [5, 20])
def test_a_damaged_compressed_log_is_refused_with_a_way_to_read_the_rest(tmp_path: Path, how: str, cut: int) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes(COMPRESSED[how](b"".join(b"%d\n" % number for number in range(5000)))[:-cut])
    error = refusal(path)
    assert "damaged or cut off" in error.message
    assert error.hint is not None
    assert str(path) in error.hint


def test_garbage_after_the_magic_bytes_is_refused(tmp_path: Path) -> None:
    for magic in (tail.GZIP, tail.ZSTD):
        path = tmp_path / "bad.log"
        path.write_bytes(magic + b"nonsense" * 10)
        assert "damaged" in refusal(path).message


def test_missing_zstandard_names_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(zstandard.compress(b"x\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert refusal(path).hint == "pip install 'specwatch[collector]'"


@given(st.binary(max_size=400).map(lambda data: data.replace(b"\0", b"\n")), st.lists(st.integers(1, 40)))
def test_chunks_do_not_change_the_lines(data: bytes, sizes: list[int]) -> None:
    """However the bytes come in, the lines and what is known of them are the same."""
    data = b"x" + data  # No magic bytes and no byte order mark.

    class Chunked(io.RawIOBase):
        def __init__(self) -> None:
            self.data, self.sizes = data, list(sizes)

        def read(self, size: int = -1) -> bytes:
            size = self.sizes.pop(0) if self.sizes else 3
            part, self.data = self.data[:size], self.data[size:]
            return part

    log = Log("chunked", Chunked)
    expected = data.split(b"\n")
    torn = expected.pop() if not data.endswith(b"\n") else (expected.pop() and b"")
    expected += [torn] if torn else []
    assert list(log.lines()) == list(enumerate(expected, start=1))
    assert set(log.notes) == ({len(expected)} if torn else set())
    assert log.sha256 == hashlib.sha256(data).hexdigest()


def test_a_log_can_be_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n2")
    [log] = find([str(path)])
    assert list(log.lines()) == list(log.lines()) == [(1, b"1"), (2, b"2")]


def test_stdin_is_read_twice_from_a_spool() -> None:
    [log] = find(["-"], io.BytesIO(b"1\n2\n"))
    assert log.name == "-"
    assert list(log.lines()) == list(log.lines()) == [(1, b"1"), (2, b"2")]


def test_a_pipe_is_spooled(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"1\n")
    os.close(write)
    try:
        assert lines(f"/dev/fd/{read}") == [(1, b"1")]
    finally:
        os.close(read)


def test_an_empty_log_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"")
    assert lines(tmp_path / "a.log") == []
    assert lines("/dev/null") == []


def test_a_line_without_end_is_noted_as_torn(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b'{"a": 1}\n{"a"')
    [log] = find([str(tmp_path / "a.log")])
    list(log.lines())
    assert log.notes == {2: "is torn: it has no line end"}


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert lines(tmp_path / "a.log") == [(1, b'{"a": 1}')]


def test_an_endless_line_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the longest line that is allowed, not by the log."""
    monkeypatch.setattr(tail, "LONGEST_LINE", 1000)
    monkeypatch.setattr(tail, "CHUNK", 300)
    (tmp_path / "a.log").write_bytes(b"x" * 5000 + b"\n" + b"y" * 1000 + b"\nz\n")
    [log] = find([str(tmp_path / "a.log")])
    read = list(log.lines())
    assert [number for number, _ in read] == [1, 2, 3]
    assert len(read[0][1]) <= 1024
    assert read[1:] == [(2, b"y" * 1000), (3, b"z")]
    assert log.notes == {1: "is 5000 bytes long, more than a line may be"}


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "core.log").write_bytes(b"\x7fELF\x02\x01\x01\0\0\0\0" * 100)
    error = refusal(tmp_path / "core.log")
    assert (error.file, error.message) == (str(tmp_path / "core.log"), "this is a binary file, not a log")


def test_a_compressed_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "core.gz").write_bytes(gzip.compress(b"a\0b\0" * 100))
    assert refusal(tmp_path / "core.gz").message == "this is a binary file, not a log"


def test_utf_16_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes('{"action": "A"}'.encode("utf-16"))
    assert refusal(tmp_path / "a.log").message == "the log is UTF-16"


def test_leading_nuls_of_a_rotation_are_no_binary_file(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\0" * 100 + b"x\ny\n")
    assert lines(tmp_path / "a.log")[1] == (2, b"y")


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "worker.log").write_bytes(b"")
    error = refusal(tmp_path / "wroker.log")
    assert error.message == "there is no such file"
    assert error.hint == f"did you mean {tmp_path / 'worker.log'}?"


def test_a_file_without_permission_is_named(open_to_all: Path) -> None:
    path = open_to_all / "a.log"
    path.write_bytes(b"x\n")
    path.chmod(0)
    with without_privileges():
        error = refusal(path)
    assert (error.file, error.message) == (str(path), "no permission to read this")
    assert error.hint is not None


def test_a_directory_without_permission_is_named(open_to_all: Path) -> None:
    folder = open_to_all / "closed"
    folder.mkdir(mode=0)
    try:
        with without_privileges():
            error = refusal(folder)
    finally:
        folder.chmod(0o700)
    assert (error.file, error.message) == (str(folder), "no permission to read this")


def test_a_directory_is_read_recursively_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    wanted = ["a.jsonl", "b/deep/w.log.1", "b/w.log", "b/x.ndjson.gz", "c.log-20300101.zst"]
    for name in [*wanted, "notes.md", "verdict.json", ".secret.log", ".hidden/x.log", "b/catalog"]:
        (tmp_path / name).write_bytes(b"x\n")
    assert names(tmp_path) == [str(tmp_path / name) for name in wanted]


def test_a_directory_without_logs_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"x\n")
    error = refusal(tmp_path)
    assert error.message == "the directory holds no logs"
    assert "data.csv" in str(error.hint)


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).hint == "it is empty"


def test_a_run_directory_is_its_events(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("events.jsonl", "spec.tla", "logs/worker.log"):
        (tmp_path / name).write_bytes(b"x\n")
    assert names(tmp_path) == [str(tmp_path / "events.jsonl")]


def test_a_glob_is_expanded_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("w2.log", "w1.log", "other.txt", "sub/w3.log"):
        (tmp_path / name).write_bytes(b"x\n")
    assert names(tmp_path / "w*.log") == [str(tmp_path / "w1.log"), str(tmp_path / "w2.log")]
    assert names(tmp_path / "**" / "w3.log") == [str(tmp_path / "sub" / "w3.log")]
    assert names(tmp_path / "s*") == [str(tmp_path / "sub" / "w3.log")]


def test_a_glob_without_match_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "*.log").message == "no file matches this pattern"


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "w[1].log").write_bytes(b"x\n")
    assert names(tmp_path / "w[1].log") == [str(tmp_path / "w[1].log")]


def test_a_socket_is_refused(tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert refusal(tmp_path / "s").message == "this is neither a file nor a pipe"
