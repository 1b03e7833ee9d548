"""What holds for every test: in CI nothing is skipped, since a skipped rule is an unguarded one.

What a test needs and no wheel carries is installed where that can be done: as root on Debian and Ubuntu.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from specwatch.pilots.runtime import Server


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a run with skipped tests into a failed one where the environment says ``CI=true``."""
    if os.environ.get("CI") == "true" and skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many were skipped, also when none was: a silent zero looks like a summary that was cut off."""
    count = len(skipped(config))
    terminalreporter.write_line(f"skipped tests: {count}")
    if count and os.environ.get("CI") == "true":
        terminalreporter.write_line("CI=true: a skipped test is a failure", red=True)


def skipped(config: pytest.Config) -> list[object]:
    """The skips of all workers; empty in a worker of pytest-xdist, which has no terminal reporter of its own."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return list(reporter.stats.get("skipped", [])) if isinstance(reporter, pytest.TerminalReporter) else []


def here(name: str) -> None:
    """A server is on this machine, if need be from now on; else the test is skipped, and why is said."""
    from specwatch.pilots.runtime import ServerError, packages, programs

    lock = Path(tempfile.gettempdir(), f"specwatch-tests-packages-{os.geteuid()}.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # The tests run in several processes, and apt in one.
        if not programs.programs(name):
            try:
                packages.install(name)
            except ServerError as error:
                pytest.skip(f"no {name}: {error}")


def started(name: str) -> Iterator[Server]:
    """A server of these tests. It takes seconds to start: tests share it, and name what they make differently."""
    from specwatch.pilots import runtime

    with (
        tempfile.TemporaryDirectory() as folder,
        runtime.start("embedded", directory=Path(folder), needs=[name]) as up,
    ):
        yield up[name]


@pytest.fixture(scope="session")
def rabbitmq_here() -> None:
    here("rabbitmq")


@pytest.fixture(scope="session")
def rabbitmq_node(rabbitmq_here: None) -> Iterator[Server]:
    yield from started("rabbitmq")


@pytest.fixture(scope="session")
def kafka_here() -> None:
    here("kafka")


@pytest.fixture(scope="session")
def kafka_broker(kafka_here: None) -> Iterator[Server]:
    yield from started("kafka")


@pytest.fixture(scope="session")
def pulsar_here() -> None:
    here("pulsar")


@pytest.fixture(scope="session")
def pulsar_broker(pulsar_here: None) -> Iterator[Server]:
    yield from started("pulsar")
