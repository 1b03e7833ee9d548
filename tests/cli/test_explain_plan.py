"""``explain-plan`` from end to end: what falls apart by a key, and what does not and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from click.testing import Result

if TYPE_CHECKING:
    from tests.cli.conftest import Queue

Run = Callable[..., Result]

SWITCH = r"""---- MODULE Switch ----
EXTENDS Naturals
CONSTANTS Lamps, Most
VARIABLES lit, power, meter
Init == /\ lit = [l \in Lamps |-> FALSE]
        /\ power = TRUE
        /\ meter = 0
Turn(l) == power /\ lit' = [lit EXCEPT ![l] = ~@] /\ UNCHANGED <<power, meter>>
Cut == power' = FALSE /\ lit' = [l \in Lamps |-> FALSE] /\ UNCHANGED meter
Read == meter' = (meter + 1) % Most /\ UNCHANGED <<lit, power>>
Next == Cut \/ Read \/ \E l \in Lamps : Turn(l)
====
"""


def test_a_spec_that_falls_apart_is_told_part_by_part(run: Run, queue: Queue) -> None:
    """Its constants need no values for that."""
    spec = queue.write("Switch.tla", SWITCH)
    found = run("explain-plan", spec)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        "✓ separable by l, which ranges over Lamps",
        "",
        "  of one key",
        "    variables  lit",
        "    actions    Turn",
        "",
        "  of the run, common to all keys",
        "    variables  power, meter",
        "    actions    Cut, Read",
        "",
        "  Keys see what these actions change, and must agree on it. --scope key needs them logged, each with",
        "  all of its parameters: Cut",
    ]
    assert run("explain-plan", spec, "--quiet").stdout == "✓ separable by l, which ranges over Lamps\n"


def test_json_of_a_spec_that_falls_apart(run: Run, queue: Queue) -> None:
    spec = queue.write("Switch.tla", SWITCH)
    found = run("explain-plan", spec, "--json")
    assert (found.exit_code, found.stderr) == (0, "")
    assert json.loads(found.stdout) == {
        "schema": "specwatch.plan/1",
        "exit_code": 0,
        "separable": True,
        "key": "l",
        "keys": "Lamps",
        "variables": {"keyed": ["lit"], "run_level": ["power", "meter"]},
        "actions": {"keyed": ["Turn"], "run_level": ["Cut", "Read"], "choices": ["Cut"]},
        "coupled": None,
        "spec": {"path": spec, "config": None},
    }


def test_what_couples_two_keys_is_told_with_a_caret_and_a_hint(run: Run, queue: Queue) -> None:
    found = run("explain-plan", queue.spec)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        "✗ not separable: logs are judged with --scope run",
        "",
        f"{queue.spec}:9:8: action Publish: t is used as a value, and not only as the place in a function",
        r"      /\ t \notin ready",
        "         ^",
        "  hint: keep what depends on it in a function over Tasks",
    ]
    assert run("explain-plan", queue.spec, "--quiet").stdout == "✗ not separable: logs are judged with --scope run\n"


def test_json_of_what_couples_two_keys(run: Run, queue: Queue) -> None:
    document = json.loads(run("explain-plan", queue.spec, "--json").stdout)
    assert (document["separable"], document["key"], document["variables"]["keyed"]) == (False, None, [])
    assert document["coupled"] == {
        "part": "action Publish",
        "message": "t is used as a value, and not only as the place in a function",
        "text": "t",
        "file": queue.spec,
        "line": 9,
        "column": 8,
        "hint": "keep what depends on it in a function over Tasks",
    }


def test_the_key_is_the_one_asked_for_else_the_bindings(run: Run, queue: Queue) -> None:
    spec = queue.write("Switch.tla", SWITCH)
    assert "no action has a parameter lamp" in run("explain-plan", spec, "--key", "lamp").stdout
    binding = queue.write("binding.toml", 'spec = "Switch.tla"\n[key]\nparam = ["l", "m"]\n')
    assert "the key is l and m" in run("explain-plan", binding).stdout
    assert run("explain-plan", binding, "--key", "l").stdout.startswith("✓ separable by l")


def test_the_shipped_spec_falls_apart_by_task(run: Run) -> None:
    document = json.loads(run("explain-plan", "celery", "--json").stdout)
    assert (document["separable"], document["key"], document["keys"]) == (True, "t", "Tasks")


def test_what_cannot_be_read_is_exit_code_4(run: Run, queue: Queue) -> None:
    for argument in (
        str(queue.folder / "Nowhere.tla"),
        queue.write("Broken.tla", "---- MODULE Broken ----\nA == 1 +\n"),
    ):
        found = run("explain-plan", argument)
        assert (found.exit_code, found.stdout) == (4, "")
        document = json.loads(run("explain-plan", argument, "--json").stdout)
        assert document["schema"] == "specwatch.error/1"
    assert run("explain-plan", queue.spec, "--config", "nowhere.cfg").exit_code == 4
    assert run("explain-plan").exit_code == 2
