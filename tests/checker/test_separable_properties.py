"""Step properties and constraints of a separable spec: of one key or of the run, whatever steps others take."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from specwatch.checker.behaviour import Behaviour, Event, Ledger
from specwatch.checker.judging import Judge
from specwatch.checker.options import Options
from specwatch.checker.slicing import Coupled, separable
from specwatch.checker.spec import Spec
from specwatch.checker.verdict import Verdict

MakeSpec = Callable[..., Spec]

COUNTERS = """EXTENDS Naturals, FiniteSets
CONSTANT K
VARIABLES v, n
vars == <<v, n>>
Init == v = [t \\in K |-> 0] /\\ n = 0
Up(t) == v' = [v EXCEPT ![t] = (@ + 1) % 3] /\\ UNCHANGED n
Leap(t) == v' = [v EXCEPT ![t] = (@ + 2) % 3] /\\ UNCHANGED n
Tick == n' = (n + 1) % 3 /\\ UNCHANGED v
All == v' = [t \\in K |-> (v[t] + n) % 3] /\\ UNCHANGED n
Next == Tick \\/ All \\/ \\E t \\in K : Up(t) \\/ Leap(t)
Later(x) == x' >= x
"""
CONFIG = 'CONSTANT K = {"a", "b"} INIT Init NEXT Next'

GOOD = [
    "[][\\A t \\in K : v[t]' >= v[t]]_vars",
    "[][\\A t \\in K : Later(v[t])]_vars",
    "[][\\A t \\in K : v[t] = 2 => v[t]' = 2]_vars",
    "[][\\A t \\in K : [v[t]' = v[t] + 1]_(v[t])]_vars",
    "[][\\A t \\in K : [v[t]' = v[t] + n]_<<v[t], n>>]_vars",
    "[][\\A t \\in K : v[t]' = v[t] \\/ n > 0]_vars",
    "[][\\A t \\in K : v[t]' >= v[t]]_v",
    "[][n' >= n]_vars",
    "[][n' # 2]_n",
    "[][n' = n \\/ n' > n]_<<n>>",
    "[][n' >= n /\\ \\A t \\in K : v'[t] >= v[t]]_vars",
    "[][UNCHANGED n \\/ n' = n + 1]_vars",
    "[][n = 1 => \\A t \\in K : UNCHANGED (v[t])]_vars",
]
BAD = [
    ("[][\\A t \\in K : v[t]' = v[t] + 1]_vars", "may be FALSE of a step"),
    ("[][\\A t \\in K : v[t]' # v[t]]_vars", "may be FALSE of a step"),
    ("[][\\E t \\in K : v[t]' = v[t]]_vars", "the set of all keys"),
    ("[][\\A t, u \\in K : v[t]' >= v[u]]_vars", "the set of all keys"),
    ("[][Cardinality({t \\in K : v[t]' # v[t]}) <= 1]_vars", "the set of all keys"),
    ("[][n' = n + 1]_vars", "may be FALSE of a step"),
    ("[][v' # v]_vars", "v is read as a whole"),
    ("[][\\A t \\in K : v[t]' >= v[t] \\/ n' = n]_v", "the subscript lacks n"),
    ("[][\\A t \\in K : v[t]' >= v[t]]_n", "the subscript lacks v"),
    ("[][\\A t \\in K : v[t]' >= v[t]]_(n + 1)", "(n + 1) is more than variables"),
]


def spec_with(make_spec: MakeSpec, text: str, what: str = "PROPERTY") -> Spec:
    return make_spec(f"{COUNTERS}P == {text}\n", f"{CONFIG} {what} P")


@pytest.mark.parametrize("text", GOOD)
def test_a_property_of_each_key_or_of_the_run_is_separable(make_spec: MakeSpec, text: str) -> None:
    """And is broken by a log where it is broken by the part of it that is about one key."""
    spec = spec_with(make_spec, text)
    assert [one.name for one in spec.step_properties] == ["P"]
    separable(spec, "t", run_level=True)
    draw = Random(text)
    words = set()
    for _ in range(25):
        names = [draw.choice(["Up", "Up", "Leap", "Tick", "All"]) for _ in range(draw.randrange(1, 6))]
        events = [
            Event(action=name, params={"t": draw.choice("ab")} if name in ("Up", "Leap") else {}) for name in names
        ]
        found: list[int] = []
        for key in "ab":
            own = [number for number, event in enumerate(events, 1) if event.params.get("t", key) == key]
            alone = judged(spec.with_constants({"K": frozenset({key})}), [events[number - 1] for number in own])
            found += [own[at - 1] for at in broken_at(alone)]
        whole = judged(spec, events)
        assert broken_at(whole) == sorted(found)[:1], events
        words.add(whole.verdict)
    assert words <= {"conforms", "violates", "vacuous"}
    assert "conforms" in words


def broken_at(verdict: Verdict) -> list[int]:
    """The event that breaks it, if one does."""
    return [finding.at for finding in verdict.findings if finding.verdict == "violates" and finding.at is not None]


def judged(spec: Spec, events: list[Event]) -> Verdict:
    judge = Judge(spec, Options(), Ledger(read=len(events)), ())
    judge.answers.tables = None
    return judge.judge([Behaviour(events=events)])


@pytest.mark.parametrize(("text", "why"), BAD)
def test_a_property_that_another_keys_step_could_break_is_named(make_spec: MakeSpec, text: str, why: str) -> None:
    with pytest.raises(Coupled) as caught:
        separable(spec_with(make_spec, text), "t", run_level=True)
    assert caught.value.part == "property P"
    assert why in caught.value.message


def test_constraints_count_where_they_are_part_of_the_spec(make_spec: MakeSpec) -> None:
    for what, text in [("CONSTRAINT", "Cardinality({t \\in K : v[t] > 0}) < 2"), ("ACTION_CONSTRAINT", "v' # v")]:
        spec = spec_with(make_spec, text, what)
        separable(spec, "t", run_level=True)
        with pytest.raises(Coupled) as caught:
            separable(spec, "t", run_level=True, constraints=True)
        assert caught.value.part == what
    for what, text in [("CONSTRAINT", "\\A t \\in K : v[t] < 2"), ("ACTION_CONSTRAINT", "n' >= n")]:
        separable(spec_with(make_spec, text, what), "t", run_level=True, constraints=True)
