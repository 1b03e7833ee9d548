"""A run of the Celery pilot, judged from the broker alone and from the probes alone: neither contradicts the other."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specwatch.pilots import runtime
from specwatch.pilots.runtime import Server

SPECS = Path(__file__).parents[2] / "specs" / "celery"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    logs = tmp_path_factory.mktemp("servers")
    with runtime.start("embedded", directory=Path(tempfile.gettempdir()), logs=logs) as servers:
        yield servers


def specwatch(*words: str) -> Any:
    """What a command says as JSON."""
    command = [sys.executable, "-m", "specwatch.cli", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("mode", "tapped", "probed"),
    [
        ("faulty", "inconclusive", "violates"),
        pytest.param("check-then-insert", "inconclusive", "violates", marks=pytest.mark.nightly),
        ("idempotent", "conforms", "conforms"),
    ],
)
def test_the_tap_is_in_doubt_where_the_rows_are_two_and_sure_where_none_can_be(
    servers: dict[str, Server], tmp_path: Path, mode: str, tapped: str, probed: str
) -> None:
    valkey, folder, run = servers["valkey"].url, tmp_path / "tapped", tmp_path / "run"
    tap = subprocess.Popen(
        [sys.executable, "-m", "specwatch.collector.taps.redis", valkey, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert tap.stdout is not None
    with tap.stdout:
        assert tap.stdout.readline() == "listening\n"
        urls = ["--valkey-url", valkey, "--postgres-url", servers["postgres"].url]
        answer = specwatch(
            *("run", "celery", "--mode", mode, "--tasks", "4", "--runtime", "external", *urls, "--keep", str(run))
        )
        tap.send_signal(signal.SIGTERM)
        assert tap.wait(PATIENCE) == 0
    told = specwatch(
        *("check", str(SPECS / "binding.tap.toml"), str(folder), "--config", f"{SPECS}/CeleryRedis.{mode}.cfg")
    )
    assert (told["verdict"], answer["rows"][0]["verdict"]) == (tapped, probed)
    with (run / "rows.csv").open(encoding="utf-8") as file:
        rows = {row["key"]: int(row["rows"]) for row in csv.DictReader(file)}
    assert len(rows) == told["behaviours"]["total"] == 4
    # Key by key, with the rows as the judge: it doubts each that has two, and no key without a second receipt.
    doubted = {finding["key"]: finding["reason"] for finding in told["findings"]}
    assert set(doubted) == {key for key, count in rows.items() if count > 1}
    assert all(reason.startswith("in-flight") for reason in doubted.values())
