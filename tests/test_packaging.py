"""What a user installs is what a checkout holds: the four rooms as one package, typed, with the specs."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("checker", "collector", "pilots", "cli")


def build(target: str, project: Path, into: Path) -> Path:
    """Build a ``wheel`` or an ``sdist`` in this environment: no isolation, so no network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (built,) = into.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return contents(build("wheel", ROOT, tmp_path_factory.mktemp("wheel")))


def test_a_wheel_holds_every_module_of_every_room(wheel: dict[str, bytes]) -> None:
    modules = {
        path.relative_to(ROOT / room).as_posix(): path.read_bytes()
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
    }
    assert {name: data for name, data in wheel.items() if name.endswith(".py")} == modules


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_of_a_wheel_is_marked_as_typed(wheel: dict[str, bytes], room: str) -> None:
    assert f"specwatch/{room}/py.typed" in wheel


def test_a_wheel_holds_the_specs(wheel: dict[str, bytes]) -> None:
    specs = {
        f"specwatch/{path.relative_to(ROOT).as_posix()}": path.read_bytes()
        for path in (ROOT / "specs").rglob("*")
        if path.is_file()
    }
    assert specs
    assert {name: data for name, data in wheel.items() if name.startswith("specwatch/specs/")} == specs


def test_a_wheel_holds_the_package_and_nothing_beside_it(wheel: dict[str, bytes]) -> None:
    """No test, no tool and no bare ``checker`` lands in a user's environment."""
    assert {name.split("/")[0].split("-")[0] for name in wheel} == {"specwatch"}
    assert {name.split("/")[1] for name in wheel if name.startswith("specwatch/")} == {*ROOMS, "specs"}


def test_a_source_distribution_builds_the_same_wheel(wheel: dict[str, bytes], tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        # Not extractall(filter=…): Debian 12 has Python 3.11.2, and tarfile learnt to filter in 3.11.4.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "source")
    (project,) = (tmp_path / "source").iterdir()
    assert contents(build("wheel", project, tmp_path / "wheel")) == wheel


def test_all_is_every_other_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    others = ",".join(name for name in extras if name != "all")
    assert extras["all"] == [f"specwatch[{others}]"]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    command = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1]
    readme = [line.strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()]
    assert command in readme
