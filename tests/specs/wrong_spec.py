"""What is said of a log that is judged by another broker's spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from specwatch.cli.app import app


def judged(target: str, log: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(CliRunner().invoke(app, ["check", target, str(log), "--json"]).stdout)
    return document


def reason(document: dict[str, Any]) -> list[str]:
    """The conjuncts that are false in the only finding."""
    [finding] = document["findings"]
    return [one["text"] for one in finding["explanation"]["conjuncts"] if one["value"].startswith("FALSE")]
