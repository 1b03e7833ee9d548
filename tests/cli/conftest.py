"""A small queue with a log for each ending, and two ways to run the command: in this process, and as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from specwatch.cli.app import app

MODULE = r"""---- MODULE Queue ----
EXTENDS Naturals
CONSTANT Tasks
VARIABLES ready, runs
vars == <<ready, runs>>
Init == /\ ready = {}
        /\ runs = [t \in Tasks |-> 0]
Publish(t) ==
    /\ t \notin ready
    /\ ready' = ready \cup {t}
    /\ UNCHANGED runs
Execute(t) ==
    /\ t \in ready
    /\ runs' = [runs EXCEPT ![t] = @ + 1]
    /\ UNCHANGED ready
Ack(t) ==
    /\ t \in ready
    /\ ready' = ready \ {t}
    /\ UNCHANGED runs
Next == \E t \in Tasks : Publish(t) \/ Execute(t) \/ Ack(t)
Spec == Init /\ [][Next]_vars
NoDouble == \A t \in Tasks : runs[t] <= 1
Bound == \A t \in Tasks : runs[t] <= 1
====
"""
CONFIG = 'SPECIFICATION Spec\nCONSTANT Tasks = {"a", "b"}\nINVARIANT NoDouble\n'


def events(*steps: str, **fields: Any) -> str:
    """Native events as JSON lines from words like ``Publish:a``."""
    lines = []
    for step in steps:
        action, _, task = step.partition(":")
        lines.append(json.dumps({"action": action, "params": {"t": task} if task else {}, **fields}))
    return "".join(f"{line}\n" for line in lines)


class Queue:
    """The files of the example, in a folder of its own."""

    module = MODULE
    config_text = CONFIG
    events = staticmethod(events)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def spec(self) -> str:
        return str(self.folder / "Queue.tla")

    @property
    def config(self) -> str:
        return str(self.folder / "Queue.cfg")

    def write(self, name: str, text: str | bytes) -> str:
        """A file beside the spec; its path."""
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def log(self, *steps: str, **fields: Any) -> str:
        """A log of native events; its path."""
        return self.write("log.jsonl", events(*steps, **fields))


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    example = Queue(tmp_path)
    example.write("Queue.tla", MODULE)
    example.write("Queue.cfg", CONFIG)
    return example


@pytest.fixture
def run() -> Callable[..., Result]:
    """The command in this process: ``run("check", …)`` → ``exit_code``, ``stdout``, ``stderr``."""

    def invoke(*arguments: str, **more: Any) -> Result:
        return CliRunner().invoke(app, list(arguments), **more)

    return invoke


@pytest.fixture
def run_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command as a process of its own: what a user sees."""

    def start(*arguments: str, env: dict[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "specwatch.cli", *arguments],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **(env or {})},
            timeout=120,
            check=False,
            **more,
        )

    return start
