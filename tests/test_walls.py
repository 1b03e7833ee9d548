"""Which room may import which: the directions of DESIGN, held over the syntax tree of every module.

An import counts wherever it stands: in a function, under ``if TYPE_CHECKING``, relative, or by ``import_module("…")``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("checker", "collector", "pilots", "cli")


@dataclass(frozen=True)
class Import:
    """``name`` is absolute; for ``from a import b`` it is ``a.b``, whether b is a module or not."""

    name: str
    line: int


@dataclass(frozen=True)
class Wall:
    """``forbidden`` holds for a name and all below it, but for ``allowed`` and all below it.

    ``facades`` are forbidden only as themselves: whoever holds the package holds, by attribute, all that it exports.
    """

    forbidden: tuple[str, ...]
    allowed: tuple[str, ...] = ()
    facades: tuple[str, ...] = ()

    def forbids(self, name: str) -> bool:
        if name in self.facades:
            return True
        return within(name, self.forbidden) and not within(name, self.allowed)


WALLS = {
    "checker": Wall(
        forbidden=("specwatch.collector", "specwatch.pilots", "specwatch.cli"),
        facades=("specwatch",),
    ),
    "collector": Wall(
        forbidden=("specwatch.checker", "specwatch.pilots", "specwatch.cli"),
        allowed=("specwatch.checker.behaviour",),
        facades=("specwatch",),
    ),
    "pilots": Wall(
        # specwatch.checker.check is the replay under its public name.
        forbidden=("specwatch.checker.replay", "specwatch.checker.report", "specwatch.checker.check", "specwatch.cli"),
        facades=("specwatch", "specwatch.checker"),
    ),
    "cli": Wall(forbidden=()),
}


def within(name: str, roots: tuple[str, ...]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


def absolute(name: str, level: int, package: str) -> str:
    """``name`` with ``level`` leading dots, seen from a module of ``package``."""
    if level == 0:
        return name
    base = package.split(".")[: len(package.split(".")) - (level - 1)]
    return ".".join([*base, name] if name else base)


def imports(source: str, package: str) -> Iterator[Import]:
    """All imports of a module whose ``__package__`` is ``package``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node.lineno)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = absolute(module or "", level, package)
                for alias in names:
                    yield Import(base if alias.name == "*" else f"{base}.{alias.name}", node.lineno)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                bare = name.lstrip(".")
                yield Import(absolute(bare, len(name) - len(bare), package), node.lineno)


def breaches(source: str, package: str) -> list[str]:
    """What a module of ``package`` (``specwatch.<room>…``) imports through a wall, as ``line: name``."""
    wall = WALLS[package.split(".")[1]]
    return [f"{found.line}: {found.name}" for found in imports(source, package) if wall.forbids(found.name)]


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def package_of(path: Path, room: str) -> str:
    return ".".join(path.parent.relative_to(ROOT / room).parts)


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_imports_through_a_wall(room: str) -> None:
    assert modules(room), f"the room {room} has no modules: this test looks at the wrong folder"
    found = {
        str(path.relative_to(ROOT)): broken
        for path in modules(room)
        if (broken := breaches(path.read_text(encoding="utf-8"), package_of(path, room)))
    }
    assert found == {}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_never_imported_by_its_bare_name(room: str) -> None:
    """``import checker`` works in a checkout whose folder is on the path, and nowhere else."""
    bare = [
        f"{path.relative_to(ROOT)}:{found.line}: {found.name}"
        for path in modules(room)
        for found in imports(path.read_text(encoding="utf-8"), package_of(path, room))
        if within(found.name, ROOMS)
    ]
    assert bare == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_a_part_of_one_namespace_package(room: str) -> None:
    """An ``__init__.py`` directly in ``specwatch/`` would hide the other three rooms."""
    inside = sorted(path.name for path in (ROOT / room / "specwatch").iterdir() if path.name != "__pycache__")
    assert inside == [room]


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("specwatch.checker", "import specwatch.collector.binding"),
        ("specwatch.checker", "from specwatch import cli"),
        ("specwatch.checker", "import specwatch"),
        ("specwatch.checker", "from .. import pilots"),
        ("specwatch.checker.tla", "from ...collector import binding"),
        ("specwatch.checker.tla", "from ...cli.main import main"),
        ("specwatch.checker", "def late():\n    from specwatch.collector import assemble"),
        (
            "specwatch.checker",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from specwatch.collector import a",
        ),
        ("specwatch.checker", "import importlib\nimportlib.import_module('specwatch.collector')"),
        ("specwatch.checker", "from importlib import import_module\nimport_module('..collector', __name__)"),
        ("specwatch.collector", "from specwatch.checker import verdict"),
        ("specwatch.collector", "from specwatch.checker import check"),
        ("specwatch.collector", "from specwatch.checker import *"),
        ("specwatch.collector", "import specwatch.checker"),
        ("specwatch.collector.decode", "from ...checker.tla import parse"),
        ("specwatch.collector.decode", "from ...checker.behaviours import Event"),
        ("specwatch.collector", "from ..pilots import faults"),
        ("specwatch.pilots", "from specwatch.checker.replay import replay"),
        ("specwatch.pilots", "from specwatch.checker.report.text import render"),
        ("specwatch.pilots", "from ..checker import report"),
        ("specwatch.pilots", "from specwatch.checker import check"),
        ("specwatch.pilots", "import specwatch.checker as checker"),
        ("specwatch.pilots.celery", "from ...cli import main"),
    ],
)
def test_the_walls_can_be_breached(package: str, source: str) -> None:
    """Without this, a walls test that sees nothing would pass for ever."""
    assert len(breaches(source, package)) == 1


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("specwatch.checker.tla", "from ..behaviour import Event\nfrom . import tree\nimport collections"),
        ("specwatch.collector", "from specwatch.checker.behaviour import Event"),
        ("specwatch.collector", "from specwatch.checker import behaviour"),
        ("specwatch.collector.decode", "from ...checker.behaviour import Event\nfrom ..binding import Binding"),
        ("specwatch.pilots", "from specwatch.checker.behaviour import Event\nfrom specwatch.collector import probes"),
        ("specwatch.cli", "from specwatch.checker import check\nfrom specwatch.collector import binding"),
    ],
)
def test_the_walls_have_doors(package: str, source: str) -> None:
    assert breaches(source, package) == []


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("specwatch.checker.behaviour", {"lark", "click"}),
        ("specwatch.cli.main", {"lark", "aiohttp", "rich"}),
    ],
)
def test_a_cheap_import_stays_cheap(module: str, heavy: set[str]) -> None:
    """Applications import the nouns, every ``--help`` the command's root: neither pays for what it does not use."""
    code = f"import sys, {module}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert heavy & set(done.stdout.split()) == set()
