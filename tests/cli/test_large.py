"""A million keys: the verdict, or inconclusive with the bound named, within a minute and a gigabyte."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

KEYS = 1_000_000


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = tmp_path_factory.mktemp("large") / "events.jsonl"
    with log.open("w", encoding="utf-8") as file:
        for number in range(1, KEYS + 1):
            task = f"task-{number:08d}"
            file.write(
                f'{{"action":"Publish","params":{{"t":"{task}"}},"key":"{task}","emitter":"p","seq":{number}}}\n'
            )
    return log


def check(*arguments: str) -> tuple[int, dict[str, object], int]:
    """Exit code, JSON, and the peak of memory in bytes (of the largest child so far)."""
    done = subprocess.run(
        [sys.executable, "-m", "specwatch.cli", "check", *arguments, "--json"], capture_output=True, check=False
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return done.returncode, json.loads(done.stdout), peak


def test_a_million_keys_of_a_separable_spec_are_judged(million: Path) -> None:
    code, verdict, peak = check("celery", str(million), "--timeout", "none", "--max-memory", "none")
    assert (code, verdict["verdict"]) == (0, "conforms")
    assert peak < 10**9


def test_a_spec_that_is_not_separable_ends_at_a_bound_that_is_named(million: Path, tmp_path: Path) -> None:
    """The state is one function over all keys, and an invariant speaks of all of them."""
    (tmp_path / "Whole.tla").write_text(
        "---- MODULE Whole ----\nEXTENDS FiniteSets, Naturals\nCONSTANT Tasks\nVARIABLE published\n"
        "Init == published = [t \\in Tasks |-> 0]\n"
        "Publish(t) == published' = [published EXCEPT ![t] = @ + 1]\n"
        "Next == \\E t \\in Tasks : Publish(t)\n"
        "Few == Cardinality({t \\in Tasks : published[t] > 0}) >= 0\n====\n"
    )
    (tmp_path / "Whole.cfg").write_text("INIT Init NEXT Next INVARIANT Few CONSTANT Tasks = {}")
    (tmp_path / "whole.toml").write_text(
        'spec = "Whole.tla"\n[key]\nparam = "t"\nfrom = "key"\n[constants]\nTasks = { keys = true }\n'
    )
    code, verdict, peak = check(str(tmp_path / "whole.toml"), str(million))
    assert (code, verdict["verdict"]) == (3, "inconclusive")
    assert str(verdict["reason"]).startswith("bound: more than")
    assert peak < 10**9
