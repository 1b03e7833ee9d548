"""Runs of the shipped specs, judged as a user would: through the command, with the shipped binding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specwatch.cli.app import app

SPECS = Path(__file__).parents[2] / "specs"


@dataclass(frozen=True)
class Judged:
    """What ``check --json`` said."""

    document: dict[str, Any]

    @property
    def word(self) -> str:
        """The verdict, with the event and the invariant of the first finding: ``violates 4 NoDoubleExecution``."""
        if not self.document["findings"]:
            return str(self.document["verdict"])
        finding = self.document["findings"][0]
        parts = (finding["verdict"], finding["at"], finding["invariant"])
        return " ".join(str(part) for part in parts if part is not None)


def events(*steps: str) -> str:
    """Native events of the task T, unless they name another, from words like ``Pickup w=A a=1``."""
    lines = []
    for step in steps:
        action, *words = step.split()
        params = {name: _value(value) for name, _, value in (word.partition("=") for word in words)}
        lines.append(json.dumps({"action": action, "params": {"t": "T", **params}}))
    return "".join(f"{line}\n" for line in lines)


def _value(text: str) -> Any:
    return json.loads(text) if text.isdigit() or text in ("true", "false") else text


@pytest.fixture
def celery(tmp_path: Path) -> Callable[..., Judged]:
    """``celery("faulty", "Publish", "Pickup w=A", …)``: native events against CeleryRedis in a mode.

    ``log`` is a log instead of events; ``more`` are options of the command.
    """

    def judge(mode: str, *steps: str, log: Path | None = None, more: tuple[str, ...] = ()) -> Judged:
        if log is None:
            log = tmp_path / "events.jsonl"
            log.write_text(events(*steps))
        config = SPECS / "celery" / f"CeleryRedis.{mode}.cfg"
        result = CliRunner().invoke(app, ["check", "celery", str(log), "--config", str(config), "--json", *more])
        document = json.loads(result.stdout)
        assert document["schema"] == "specwatch.verdict/1", document
        assert document["exit_code"] == result.exit_code
        return Judged(document)

    return judge
