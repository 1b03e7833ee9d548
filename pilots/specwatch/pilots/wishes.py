"""What a fault asks of the next body that a worker runs: the pilot's part of a fault that strikes in the midst of work.

In the pilot, around what a body does (``directory`` is the folder that the processes of an experiment share):

    wish = wishes.take(directory, worker, key)
    meet = wish.wait if wish and wish.kind == "long" else …   # where the mode is weakest: before its ack, or its insert
    …                                                         # the body, with its effect
    if wish and wish.kind == "hold":
        wish.wait()                                           # the effect is durable, and nothing was acked
    if wish and wish.kind == "nack":
        …                                                     # say nack with requeue, instead of ack

``take`` costs two system calls where nothing is asked. A wish is a file, and who takes it renames it: one body does.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from pathlib import Path
from typing import Literal, NamedTuple, get_args

Kind = Literal["long", "hold", "nack"]
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
ANYONE = "*"
"""Instead of a worker's name: whichever worker is the first."""
LOOK = 0.02
"""Seconds between two looks whether a wait is over."""


class Wish(NamedTuple):
    """What a body has taken."""

    kind: Kind
    path: Path
    limit: float
    """The most seconds that it waits, also if no one is left to release it."""

    def wait(self) -> None:
        """Wait until the fault is done with this body."""
        self.path.with_suffix(".waiting").touch()
        released = self.path.with_suffix(".released")
        deadline = time.monotonic() + self.limit
        while not released.exists() and time.monotonic() < deadline:
            time.sleep(LOOK)


class Asked:
    """A wish, seen from the fault that has it."""

    def __init__(self, directory: Path, worker: str, kind: Kind, limit: float) -> None:
        self.kind = kind
        self._limit = limit
        self._folder = directory / "wishes"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._open = self._folder / f"{_file_name(worker)}.{kind}"
        self.ask()

    def ask(self) -> None:
        """Ask, or ask another body: the one that has taken it may have had nothing to do, and be over."""
        self.asked = time.monotonic_ns()
        self._id = uuid.uuid4().hex
        # Written elsewhere, so that no one takes a half of it.
        written = self._path("written")
        written.write_text(json.dumps({"id": self._id, "limit": self._limit}), encoding="utf-8")
        written.rename(self._open)

    def taken(self) -> tuple[str, str] | None:
        """Who has taken it, and of which key the body is; None as long as no one has."""
        try:
            worker, key = json.loads(self._path("taken").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return worker, key

    def is_waiting(self) -> bool:
        """Whether the body has come as far as the wish says."""
        return self._path("waiting").exists()

    def release(self) -> None:
        """Let the body go on; take the wish back if no body has it."""
        self._path("released").touch()
        with contextlib.suppress(FileNotFoundError, ValueError):
            if json.loads(self._open.read_text(encoding="utf-8"))["id"] == self._id:
                self._open.unlink()

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self._id}.{suffix}"


def take(directory: str | os.PathLike[str], worker: str, key: str) -> Wish | None:
    """What is asked of a body that begins, if anything is; no other body is then asked it."""
    folder = Path(directory, "wishes")
    try:
        names = os.listdir(folder)  # noqa: PTH208 (once a body)
    except FileNotFoundError:
        return None
    for name in names:
        whose, _, suffix = name.rpartition(".")
        kind = KINDS.get(suffix)
        if kind is not None and whose in (_file_name(worker), _file_name(ANYONE)):
            own = folder / f"{uuid.uuid4().hex}.own"
            try:
                (folder / name).rename(own)
            except FileNotFoundError:
                continue
            told = json.loads(own.read_text(encoding="utf-8"))
            written = own.with_suffix(".who")
            written.write_text(json.dumps([worker, key]), encoding="utf-8")
            written.rename(folder / f"{told['id']}.taken")
            return Wish(kind, folder / told["id"], told["limit"])
    return None


def _file_name(worker: str) -> str:
    """A worker's name without what a file's may not have, or what ends it here."""
    return "".join(letter if letter.isalnum() or letter in "-_@*" else "_" for letter in worker.partition("@")[0])
