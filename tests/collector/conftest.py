"""Logs on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.collector.logs import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a log of lines, or of events given as dicts; answer its path."""

    def write(name: str, *lines: str | dict[str, Any], end: str = "\n") -> str:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path = tmp_path / name
        path.write_bytes(("\n".join(texts) + (end if texts else "")).encode())
        return str(path)

    return write
