"""``parse`` from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from click.testing import Result

if TYPE_CHECKING:
    from tests.cli.conftest import Queue

Run = Callable[..., Result]

BROKEN = "---- MODULE Broken ----\nA == 1 +\nB == 2\n====\n"
UNDEFINED = "---- MODULE Undefined ----\nEXTENDS Naturals\nA == 1 + Bee\n====\n"


def test_a_well_formed_module_is_exit_code_0(run: Run, queue: Queue) -> None:
    found = run("parse", queue.spec)
    assert (found.exit_code, found.stderr) == (0, "")
    assert "module Queue is well-formed" in found.stdout
    assert run("parse", queue.spec, "--quiet").stdout == ""


def test_tree_prints_operators_fully_parenthesised(run: Run, queue: Queue) -> None:
    module = queue.write("Ops.tla", "---- MODULE Ops ----\nEXTENDS Naturals\nA == 1 + 2 * 3\n====\n")
    found = run("parse", "--tree", module)
    assert found.exit_code == 0
    assert "(1 + (2 * 3))" in found.stdout


def test_every_file_is_looked_at_after_an_error(run: Run, queue: Queue) -> None:
    files = [queue.write("Broken.tla", BROKEN), queue.spec, queue.write("Undefined.tla", UNDEFINED)]
    found = run("parse", *files)
    assert found.exit_code == 4
    assert "module Queue is well-formed" in found.stdout
    assert f"{files[0]}:3:" in found.stderr
    assert f"{files[2]}:3:10" in found.stderr
    assert "^" in found.stderr


def test_json_has_one_error_a_file(run: Run, queue: Queue) -> None:
    files = [queue.write("Broken.tla", BROKEN), queue.spec, queue.write("Undefined.tla", UNDEFINED)]
    found = run("parse", "--json", *files)
    document = json.loads(found.stdout)
    assert (found.exit_code, found.stderr) == (4, "")
    assert (document["schema"], document["exit_code"]) == ("specwatch.error/1", 4)
    assert [(error["file"], error["line"]) for error in document["errors"]] == [(files[0], 3), (files[2], 3)]
    assert all(set(error) == {"file", "line", "column", "message", "hint"} for error in document["errors"])


def test_json_of_good_files_names_them(run: Run, queue: Queue) -> None:
    document = json.loads(run("parse", "--json", queue.spec).stdout)
    assert document == {
        "schema": "specwatch.parse/1",
        "exit_code": 0,
        "files": [{"file": queue.spec, "module": "Queue", "tree": None}],
    }


def test_a_file_that_is_not_there_is_exit_code_4(run: Run, queue: Queue) -> None:
    found = run("parse", str(queue.folder / "Nowhere.tla"))
    assert found.exit_code == 4
    assert "Nowhere.tla" in found.stderr
