"""Logs as they lie on disk, or come in on stdin: found, opened, decompressed and cut into lines in bounded memory.

``find`` turns what a user named (files, directories, globs, ``-``) into ``Log`` objects, which ``Log.lines()`` reads.
gzip and zstandard are known by their first bytes, never by the name. What can be wrong is a ``CollectorError``.
"""

from __future__ import annotations

import difflib
import glob
import gzip
import hashlib
import io
import os
import re
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from ..errors import CollectorError

CHUNK = 1 << 18
LONGEST_LINE = 64 << 20
"""In bytes. What is longer is no line of a log, and is not kept."""

SPOOL_IN_MEMORY = 16 << 20
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
BOM = b"\xef\xbb\xbf"
LOG_LIKE = re.compile(r"\.(?:log|jsonl|ndjson|out|err)(?:[.-]\w+)*(?:\.(?:gz|zst))?$", re.ASCII)
"""What is read out of a directory: ``worker.log``, ``events.jsonl.gz``, rotated ``worker.log.1``, ``app.log-20300101``.
"""


Opened = BinaryIO | io.RawIOBase
"""What a log's bytes are read from."""


class Log:
    """One log. When ``lines()`` has run to its end, ``sha256`` is that of the bytes on disk, ``digest`` of the text."""

    def __init__(self, name: str, opener: Callable[[], Opened]) -> None:
        self.name = name
        self.sha256 = ""
        self.digest = b""
        self.notes: dict[int, str] = {}
        """By line number, what is known of a line beside its text: that it has no end, that it was too long."""
        self._open = opener

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines with their 1-based numbers, without line ends. Can be called again: it begins anew.

        Raises ``CollectorError`` where the log cannot be read, is binary, or is damaged.
        """
        self.notes = {}
        text_hash = hashlib.sha256()
        try:
            with self._open() as raw:
                hashing = _Hashing(raw)
                yield from self._cut(_hashed(self._text(hashing), text_hash))
                hashing.drain()
        except OSError as error:
            raise unreadable(self.name, error) from None
        self.sha256 = hashing.hash.hexdigest()
        self.digest = text_hash.digest()

    def _text(self, raw: _Hashing) -> Iterator[bytes]:
        first = raw.read(CHUNK)
        if first.startswith(GZIP):
            chunks = self._gunzip(first, raw)
        elif first.startswith(ZSTD):
            chunks = self._unzstd(first, raw)
        else:
            chunks = _chain(first, raw)
        head = next(chunks, b"")
        self._refuse_binary(head)
        yield head.removeprefix(BOM)
        yield from chunks

    def _refuse_binary(self, head: bytes) -> None:
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CollectorError("the log is UTF-16", file=self.name, hint="convert it: iconv -f UTF-16 -t UTF-8")
        # Leading NULs are what a rotation by copytruncate leaves; what comes after them is a log.
        if b"\0" in head[:8192].lstrip(b"\0"):
            raise CollectorError("this is a binary file, not a log", file=self.name)

    def _gunzip(self, first: bytes, raw: _Hashing) -> Iterator[bytes]:
        try:
            with gzip.GzipFile(fileobj=_Replay(first, raw)) as text:
                while chunk := text.read(CHUNK):
                    yield chunk
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self._damaged("gzip", str(error), "gunzip -c") from None

    def _unzstd(self, first: bytes, raw: _Hashing) -> Iterator[bytes]:
        try:
            import zstandard
        except ImportError:
            raise CollectorError(
                "reading zstandard needs a package that is not installed",
                file=self.name,
                hint="pip install 'specwatch[collector]'",
            ) from None
        frames = zstandard.ZstdDecompressor()
        frame = frames.decompressobj()
        begun = False
        try:
            for chunk in _chain(first, raw):
                # Small bites: a bite may grow by a factor of tens of thousands.
                for start in range(0, len(chunk), 4096):
                    bite = chunk[start : start + 4096]
                    while bite:
                        begun = True
                        yield frame.decompress(bite)
                        bite = b""
                        if frame.eof:
                            bite, frame, begun = frame.unused_data, frames.decompressobj(), False
        except zstandard.ZstdError as error:
            raise self._damaged("zstandard", str(error), "zstd -dc") from None
        if begun:
            raise self._damaged("zstandard", "it ends in the middle", "zstd -dc")

    def _damaged(self, kind: str, why: str, command: str) -> CollectorError:
        return CollectorError(
            f"the {kind} file is damaged or cut off ({why})",
            file=self.name,
            hint=f"what can still be read: {command} {self.name} > part.log",
        )

    def _cut(self, chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        number = 0
        parts: list[bytes] = []
        size = 0
        for chunk in chunks:
            first, newline, rest = chunk.partition(b"\n")
            size += len(first)
            if size <= LONGEST_LINE:
                parts.append(first)
            if not newline:
                continue
            number += 1
            yield number, self._joined(number, parts, size)
            *whole, last = rest.split(b"\n")
            for line in whole:
                number += 1
                yield number, line
            parts, size = [last], len(last)
        if size:
            line = self._joined(number + 1, parts, size)
            self.notes.setdefault(number + 1, "is torn: it has no line end")
            yield number + 1, line

    def _joined(self, number: int, parts: list[bytes], size: int) -> bytes:
        if size > LONGEST_LINE:
            self.notes[number] = f"is {size} bytes long, more than a line may be"
            return parts[0][:1024] if parts else b"\0"
        return b"".join(parts)


class _Hashing(io.RawIOBase):
    """The bytes on disk, hashed as they are read."""

    def __init__(self, raw: Opened) -> None:
        self.raw = raw
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self.raw.read(size) or b""
        self.hash.update(chunk)
        return chunk

    def drain(self) -> None:
        while self.read(CHUNK):
            pass


class _Replay(io.RawIOBase):
    """A file whose first bytes have been read already."""

    def __init__(self, first: bytes, raw: _Hashing) -> None:
        self.first = first
        self.rest = raw

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.first:
            return self.rest.read(size)
        size = len(self.first) if size < 0 else size
        part, self.first = self.first[:size], self.first[size:]
        return part


def _chain(first: bytes, raw: _Hashing) -> Iterator[bytes]:
    while first:
        yield first
        first = raw.read(CHUNK)


def _hashed(chunks: Iterable[bytes], into: hashlib._Hash) -> Iterator[bytes]:
    for chunk in chunks:
        into.update(chunk)
        yield chunk


def find(paths: Sequence[str], stdin: IO[bytes] | None = None) -> list[Log]:
    """The logs behind files, directories (recursively), globs and ``-``, in the order named; a directory's are sorted.

    Raises ``CollectorError`` for what is not there, may not be read, or holds no log.
    """
    logs: list[Log] = []
    spooled: Log | None = None
    for path in paths:
        if path == "-":
            spooled = spooled or _spool("-", stdin or sys.stdin.buffer)
            logs.append(spooled)
        else:
            logs += [_log(found) for found in _expand(path)]
    return logs


def _expand(path: str) -> list[str]:
    try:
        found = [path]
        if glob.has_magic(path) and not Path(path).exists():
            # The module, not Path.glob, which takes no absolute pattern.
            found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207
            if not found:
                raise CollectorError("no file matches this pattern", file=path)
        return [
            file
            for match in found
            for file in (_in_directory(match) if stat.S_ISDIR(Path(match).stat().st_mode) else [match])
        ]
    except OSError as error:
        raise unreadable(path, error) from None


def _in_directory(directory: str) -> list[str]:
    # A run directory is judged by its events; the rest of it is where they came from.
    events = Path(directory, "events.jsonl")
    if events.is_file() and Path(directory, "spec.tla").is_file():
        return [str(events)]

    def refuse(error: OSError) -> None:
        raise unreadable(str(error.filename), error)

    found: list[str] = []
    others: list[str] = []
    for folder, folders, files in os.walk(directory, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if not name.startswith("."):
                (found if LOG_LIKE.search(name) else others).append(str(Path(folder, name)))
    if not found:
        hint = "it is empty"
        if others:
            seen = ", ".join(sorted(others)[:3])
            hint = f"logs are named *.log, *.jsonl, *.ndjson, *.out or *.err; name others themselves ({seen})"
        raise CollectorError("the directory holds no logs", file=directory, hint=hint)
    return sorted(found)


def _log(path: str) -> Log:
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISREG(mode):
            return Log(path, lambda: _open(path))
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
            raise CollectorError("this is neither a file nor a pipe", file=path)
        with _open(path) as pipe:
            return _spool(path, pipe)
    except OSError as error:
        raise unreadable(path, error) from None


def _open(path: str) -> BinaryIO:
    return Path(path).open("rb")


def _spool(name: str, stream: IO[bytes]) -> Log:
    """A stream can be read once, a log must be readable twice: once to judge, once to explain."""
    spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_IN_MEMORY)  # noqa: SIM115 (closed with the log)
    while chunk := stream.read(CHUNK):
        spool.write(chunk)
    log = Log(name, lambda: _Again(spool))
    weakref.finalize(log, spool.close)
    return log


class _Again(io.RawIOBase):
    """A spooled stream from its beginning. Closing it keeps the spool."""

    def __init__(self, spool: IO[bytes]) -> None:
        self.spool = spool
        spool.seek(0)

    def read(self, size: int = -1) -> bytes:
        return self.spool.read(size)


def unreadable(path: str, error: OSError) -> CollectorError:
    """The system's refusal to open a file, said as ours."""
    if isinstance(error, PermissionError):
        hint = "give the user who runs specwatch the right to read it"
        return CollectorError("no permission to read this", file=path, hint=hint)
    if isinstance(error, FileNotFoundError):
        return CollectorError("there is no such file", file=path, hint=_nearest_file(path))
    return CollectorError(f"cannot be read: {error.strerror or error}", file=path)


def _nearest_file(path: str) -> str | None:
    wanted = Path(path)
    try:
        names = [other.name for other in wanted.parent.iterdir()]
    except OSError:
        return None
    near = difflib.get_close_matches(wanted.name, names, n=1)
    return f"did you mean {wanted.parent / near[0]}?" if near else None
