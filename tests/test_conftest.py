"""The rule of CI, that nothing is skipped, on a project of one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPED = (
    "import pytest\n\n@pytest.mark.skip(reason='no broker here')\ndef test_left_out(): ...\n\ndef test_sound(): ...\n"
)
SOUND = "def test_sound(): ...\n"


def run(folder: Path, source: str, ci: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-rs", "--no-fold-skipped", "-p", "xdist", "-n", "1"]
    environment = os.environ | {"CI": ci, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("source", "ci", "expected", "count"),
    [(SKIPPED, "true", 1, 1), (SKIPPED, "", 0, 1), (SOUND, "true", 0, 0)],
    ids=["a skip in CI", "a skip elsewhere", "no skip in CI"],
)
def test_only_a_skip_in_ci_is_a_failure(tmp_path: Path, source: str, ci: str, expected: int, count: int) -> None:
    done = run(tmp_path, source, ci)
    assert done.returncode == expected, done.stdout + done.stderr
    assert f"skipped tests: {count}" in done.stdout
    assert ("test_left_out" in done.stdout) == (count > 0)
