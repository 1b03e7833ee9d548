"""Model checking: bounds, deadlock, errors and the shortest counterexample (the counts are in test_states_truth)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from specwatch.checker import explore
from specwatch.checker.explore import Progress
from specwatch.checker.spec import Spec

COUNTER = """EXTENDS Naturals
VARIABLE x
Init == x = 0
Up(n) == x < 10 /\\ x' = x + n
Next == \\E n \\in {1, 2} : Up(n)
Small == x < 5
"""
NAMED = "INIT Init NEXT Next"


def test_a_counterexample_is_a_shortest_one_with_its_parameters(make_spec: Callable[..., Spec]) -> None:
    found = explore(make_spec(COUNTER, NAMED + " INVARIANT Small"))
    assert (found.outcome, found.exit_code, found.invariant) == ("violates", 1, "Small")
    assert [(step.action, step.params, step.state) for step in found.trace] == [
        (None, {}, {"x": "0"}),
        ("Up", {"n": "1"}, {"x": "1"}),
        ("Up", {"n": "2"}, {"x": "3"}),
        ("Up", {"n": "2"}, {"x": "5"}),
    ]


@pytest.mark.parametrize(
    ("asked", "config", "outcome"),
    [
        (None, "", "deadlock"),
        (None, " CHECK_DEADLOCK FALSE", "pass"),
        (False, " CHECK_DEADLOCK TRUE", "pass"),
        (True, " CHECK_DEADLOCK FALSE", "deadlock"),
    ],
)
def test_the_option_beats_check_deadlock(
    make_spec: Callable[..., Spec], asked: bool | None, config: str, outcome: str
) -> None:
    assert explore(make_spec(COUNTER, NAMED + config), deadlock=asked).outcome == outcome


def test_a_bound_is_no_pass(make_spec: Callable[..., Spec]) -> None:
    found = explore(make_spec(COUNTER, NAMED), max_states=3)
    assert (found.outcome, found.exit_code) == ("bound", 3)
    assert "--max-states" in (found.message or "")


def test_the_clock_is_a_bound(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(COUNTER.replace("x < 10", "x < 1000"), NAMED)
    ticks: Iterator[float] = iter(range(10_000))
    found = explore(spec, timeout=1, clock=lambda: next(ticks))
    assert found.outcome == "bound"
    assert "--timeout" in (found.message or "")


def test_an_error_in_a_guard_names_expression_values_and_the_way_to_it(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(COUNTER.replace("x < 10 /\\", '(x = 2 => x < "a") /\\'), NAMED)
    found = explore(spec)
    assert (found.outcome, found.exit_code) == ("error", 4)
    assert 'the right side of < is the string "a", not an integer' in (found.message or "")
    assert found.trace[-1].state == {"x": "2"}


def test_a_false_assumption_is_an_outcome(make_spec: Callable[..., Spec]) -> None:
    found = explore(make_spec(COUNTER + "ASSUME 1 = 2", NAMED))
    assert (found.outcome, found.exit_code) == ("assumption", 1)


def test_what_is_not_checked_is_named_and_is_no_pass_for_scripts(make_spec: Callable[..., Spec]) -> None:
    found = explore(make_spec(COUNTER + "Live == <>(x = 9)", NAMED + " PROPERTY Live"), deadlock=False)
    assert (found.outcome, found.exit_code, found.unchecked) == ("pass", 3, ["PROPERTY Live"])


def test_progress_is_told_now_and_then(make_spec: Callable[..., Spec]) -> None:
    told: list[Progress] = []
    explore(make_spec(COUNTER.replace("x < 10", "x < 9000"), NAMED), progress=told.append)
    assert told
    assert told[0].distinct >= 4096


def test_the_json_has_the_fields_that_scripts_read(make_spec: Callable[..., Spec]) -> None:
    document = msgspec.json.decode(explore(make_spec(COUNTER, NAMED + " INVARIANT Small")).to_json())
    assert document["schema"] == "specwatch.explore/1"
    assert set(document) >= {
        "outcome", "exit_code", "generated", "distinct", "depth", "invariant", "trace", "unchecked", "message",
    }  # fmt: skip
