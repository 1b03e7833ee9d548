"""A chaos run that is ended from outside, by whatever signal, leaves no process and no folder."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUN = """
from specwatch.cli.app import app
from specwatch.pilots.experiment import Experiment

settle = Experiment.settle

def said(self, *how):
    print("ready", flush=True)
    settle(self, *how)

Experiment.settle = said
app.main(["run", "celery", "--mode", "faulty"])
"""
"""Ready is when all is up: the servers, the workers, the producer, and the model is explored."""


def test_nothing_of_a_run_is_left(command: Callable[..., Any], until: Callable[..., bool], ending: int) -> None:
    started = command(RUN)
    family = started.ready()
    assert started.left_after(ending, family) == set()
    pattern = f"specwatch-{started.process.pid}-*"
    assert until(lambda: not list(Path(tempfile.gettempdir()).glob(pattern)))
    assert until(lambda: started.process.poll() is not None)
    killed = ending == signal.SIGKILL
    assert started.process.returncode == (-signal.SIGKILL if killed else 130)
    assert started.said().split() == (["ready"] if killed else ["ready", "interrupted"])
