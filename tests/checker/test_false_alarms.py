"""Two figures over logs of which it is known what is true: wrong ``conforms``, and false alarms. Both are none.

The logs are written and read as real ones are: a file a process, rotated, by clocks that differ by up to a second.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from tests.checker.generator import Application, Log, cut, execute_again, lose, write

from specwatch.cli.app import app

CONFIG = Path(__file__).parents[2] / "specs" / "celery" / "CeleryRedis.idempotent.cfg"
DECIDED = 0.9
"""The least share of the keys touched by loss that must be decided all the same."""

TASKS = 20
TASKS_LOSSY = 50
TASKS_NIGHTLY = 1000


@dataclass
class Figures:
    """Counts over several logs."""

    wrong: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, log: Log, verdict: dict[str, Any]) -> None:
        """Hold a verdict against what is true of its log."""
        words = {finding["key"]: finding for finding in verdict["findings"]}
        keys = log.tasks()
        assert verdict["behaviours"]["total"] == len(keys), verdict["behaviours"]
        for key in sorted(keys):
            word = words[key]["verdict"] if key in words else "conforms"
            kind = "doubled" if key in log.doubled else "touched" if key in log.touched else "whole"
            self.counts[f"{kind} {word}"] += 1
            # Where a record is missing it may have been the Undo of the first: such a conforms names the gap.
            if key in log.doubled - log.touched and word == "conforms":
                self.wrong.append(f"{key} was executed twice")
            if key in log.doubled and key not in log.touched and word == "inconclusive":
                self.alarms.append(f"{key}, executed twice: {words[key]['reason']}")
            if key not in log.doubled and word in ("violates", "diverges"):
                self.alarms.append(f"{key} ({kind}) {word} at {words[key]['at']}")
            if kind == "whole" and word not in ("conforms", "violates", "diverges"):
                self.alarms.append(f"{key} {word}: {words[key]['reason']}")

    def of(self, kind: str) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith(kind))

    def hold(self) -> None:
        assert self.wrong == []
        assert self.alarms == []
        undecided = self.counts["touched inconclusive"]
        assert undecided <= (1 - DECIDED) * self.of("touched"), self.counts


def judged(folder: Path, draw: Random, log: Log, *options: str) -> dict[str, Any]:
    paths = write(draw, log, folder)
    arguments = ["check", "celery", *draw.sample(paths, len(paths)), "--config", str(CONFIG), "--json"]
    result = CliRunner().invoke(app, [*arguments, "--max-findings", "1000000", "--timeout", "3000", *options])
    assert result.exit_code in (0, 1, 3), result.output
    verdict: dict[str, Any] = json.loads(result.output)
    return verdict


def whole(folder: Path, draw: Random, tasks: int) -> Figures:
    """Nothing is missing: retries, warm restarts, rotation and skew alone."""
    figures = Figures()
    log = Application(draw).run(tasks)
    figures.add(log, judged(folder, draw, log))
    return figures


def lossy(folder: Path, draw: Random, tasks: int, share: float) -> Figures:
    figures = Figures()
    log = lose(draw, Application(draw).run(tasks), share)
    figures.add(log, judged(folder, draw, log))
    return figures


def crashed(folder: Path, draw: Random, tasks: int) -> Figures:
    """Workers die, and leave copies to the sweep."""
    figures = Figures()
    log = Application(draw, crashes=True).run(tasks)
    figures.add(log, judged(folder, draw, log))
    return figures


def midway(folder: Path, draw: Random, tasks: int) -> Figures:
    """The log begins when the application has long been running."""
    figures = Figures()
    log = Application(draw).run(tasks)
    begin, end = log.records[0].time, log.records[-1].time
    log = cut(log, draw.uniform(begin, begin + (end - begin) / 2))
    figures.add(log, judged(folder, draw, log, "--start", "midway"))
    return figures


def doubled(folder: Path, draw: Random, tasks: int, share: float) -> Figures:
    """Some tasks are executed twice, and some records are lost."""
    figures = Figures()
    log = execute_again(draw, Application(draw).run(tasks), tasks // 6)
    log = lose(draw, log, share)
    figures.add(log, judged(folder, draw, log))
    assert figures.of("doubled")
    return figures


def test_nothing_is_wrong_with_whole_logs(tmp_path: Path) -> None:
    whole(tmp_path, Random(1), TASKS).hold()


def test_a_lost_record_raises_no_alarm(tmp_path: Path) -> None:
    figures = lossy(tmp_path, Random(2), TASKS_LOSSY, 0.001)
    figures.hold()
    assert figures.of("touched")


def test_a_log_that_begins_midway_raises_no_alarm(tmp_path: Path) -> None:
    figures = midway(tmp_path, Random(4), TASKS // 2)
    assert (figures.wrong, figures.alarms) == ([], [])


def test_no_second_execution_conforms(tmp_path: Path) -> None:
    doubled(tmp_path, Random(5), TASKS, 0).hold()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_large_logs_raise_no_alarm(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    whole(tmp_path / "whole", draw, TASKS_NIGHTLY).hold()
    lossy(tmp_path / "lossy", draw, TASKS_NIGHTLY, 0.001).hold()
    doubled(tmp_path / "doubled", draw, TASKS_NIGHTLY, 0.001).hold()
    for figures in (
        crashed(tmp_path / "crashed", draw, TASKS_NIGHTLY // 10),
        midway(tmp_path / "midway", draw, TASKS_NIGHTLY),
    ):
        assert (figures.wrong, figures.alarms) == ([], [])
