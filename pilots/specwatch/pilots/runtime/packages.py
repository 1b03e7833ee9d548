"""Servers that no wheel carries: from the packages of Debian and Ubuntu, without the service that they would start."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from . import maven
from .errors import ServerError
from .programs import SOURCES, programs

POLICY = Path("/usr/sbin/policy-rc.d")
"""What a package asks before it starts a service (invoke-rc.d(8)); where there is none, it starts it."""
REFUSAL = "#!/bin/sh\n# Of specwatch, while it installs a package: start nothing.\nexit 101\n"


def install(name: str, say: Callable[[str], object] = lambda _: None) -> None:
    """Install the package of a server, as root on Debian or Ubuntu; of a Java program, that of its Java, and its files
    from a Maven repository, which anyone may. ``say`` is told how far that is.

    Raises ``ServerError`` that says what to do.
    """
    source = SOURCES[name]
    if source.in_maven:
        distribution = maven.DISTRIBUTIONS[name]
        maven.fetch(name, say)
        if maven.java(distribution) is not None:
            return
    apt = shutil.which("apt-get")
    if apt is None:
        raise ServerError("no wheel carries it, and only Debian's and Ubuntu's package is known here", hint=source.hint)
    if os.geteuid() != 0:
        raise ServerError("no wheel carries it, and only root may install its package", hint=f"sudo {source.apt}")
    command = [apt, "install", "--yes", "--no-install-recommends", source.package]
    with nothing_started():
        # A machine's lists may be missing, or older than the packages.
        if not _run(command) and not (_run([apt, "update"]) and _run(command)):
            raise ServerError(f"{' '.join(command)} failed", hint=source.hint)
    # Nor when the system starts the next time.
    if systemctl := shutil.which("systemctl"):
        _run([systemctl, "disable", source.package])
    if not programs(name):
        raise ServerError(f"the package {source.package} has no program that runs on this machine", hint=source.hint)


@contextlib.contextmanager
def nothing_started() -> Iterator[None]:
    """While this lasts, packages start no service. What the system says about that stays, if it says something."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text(REFUSAL, encoding="ascii")
    try:
        POLICY.chmod(0o755)
        yield
    finally:
        POLICY.unlink()


def _run(command: list[str]) -> bool:
    # Its words are progress: stdout is the result only.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, env=environment, check=False).returncode == 0
