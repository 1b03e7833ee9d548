"""What is run before a change is shared. Each session syncs the locked environment, so that it tests what CI tests."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = ["lint", "types", "tests"]

PYTHONS = ["3.11", "3.12", "3.13"]


def sync(session: nox.Session) -> None:
    """Install the project and its locked dev group into the session's own environment."""
    environment = session.virtualenv.location
    session.run_install(
        "uv", "sync", "--locked", f"--python={environment}", env={"UV_PROJECT_ENVIRONMENT": environment}, external=True
    )


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    sync(session)
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    sync(session)
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    sync(session)
    session.run("mypy")


@nox.session(python=PYTHONS[0])
def nightly(session: nox.Session) -> None:
    """The tests that take minutes, with an hour each instead of five minutes."""
    sync(session)
    session.run("pytest", "-m", "nightly", "--timeout=3600", *session.posargs)
