"""Scope ``key`` refuses what two keys could explain themselves by differently, and what speaks of several keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specwatch.checker import check
from specwatch.checker.behaviour import Event
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaError

MakeSpec = Callable[..., Spec]

FLAGS = """EXTENDS FiniteSets, Naturals
CONSTANT K
VARIABLES v, n
Init == v = [t \\in K |-> 0] /\\ n = 0
Flip(b) == v' = [t \\in K |-> b] /\\ UNCHANGED n
Noise == n' = 1 /\\ UNCHANGED v
Is(k, b) == v[k] = b /\\ UNCHANGED <<v, n>>
Next == Noise \\/ (\\E b \\in 0..1 : Flip(b)) \\/ \\E t \\in K : \\E b \\in 0..1 : Is(t, b)
"""
CONFIG = 'CONSTANT K = {"a", "b"} INIT Init NEXT Next'


def event(action: str, params: dict[str, object], **more: object) -> Event:
    return Event(action=action, params=params, **more)  # type: ignore[arg-type]


def is_(key: str, number: int, **more: object) -> Event:
    return event("Is", {"t": key, "b": number}, **more)


def test_a_choice_that_shows_in_keys_alone_is_refused(make_spec: MakeSpec) -> None:
    """Without a key there is nothing to see of what Flip changed: a and b could each have had their own b."""
    spec = make_spec(FLAGS, CONFIG)
    split = [is_("a", 0), is_("b", 1)]
    assert check(spec, [event("Flip", {}), *split]).verdict == "diverges"
    with pytest.raises(TlaError, match="leaves open"):
        check(spec, [event("Flip", {}), *split], scope="key")
    assert check(spec, [event("Flip", {"b": 1}), *split], scope="key").verdict == "diverges"
    told = [event("Flip", {"b": 1}), is_("a", 1), is_("b", 1)]
    assert check(spec, told, scope="key").verdict == "conforms"


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param({"state": {"n": 1}}, id="observed"),
        pytest.param({"expect": ["n = 1"]}, id="expected"),
    ],
)
def test_what_keys_have_seen_of_the_run_they_agree_on(make_spec: MakeSpec, seen: dict[str, object]) -> None:
    """One key saw that Noise had been, and later another that it had not."""
    spec = make_spec(FLAGS, CONFIG)
    events = [is_("a", 0, **seen), is_("b", 0, state={"n": 0})]
    assert check(spec, events, hidden=["Noise"]).verdict == "diverges"
    with pytest.raises(TlaError, match="Noise is hidden"):
        check(spec, events, hidden=["Noise"], scope="key")
    assert check(spec, [is_("a", 0), is_("b", 0)], hidden=["Noise"], scope="key").verdict == "conforms"


@pytest.mark.parametrize(
    ("expected", "refused"),
    [
        ("v[t] = 0", False),
        ("v[k] = $b /\\ t = $t", False),
        ("v[$t] = 0", False),
        ('v["a"] = 0', True),
        ("Cardinality(DOMAIN v) = 2", True),
        ("Cardinality(K) = 2", True),
    ],
)
def test_an_event_expects_something_of_its_own_key_alone(make_spec: MakeSpec, expected: str, refused: bool) -> None:
    spec = make_spec(FLAGS, CONFIG)
    events = [is_("a", 0, expect=[expected])]
    assert check(spec, events).verdict == "conforms"
    if refused:
        with pytest.raises(TlaError, match="expects something of other keys"):
            check(spec, events, scope="key")
    else:
        assert check(spec, events, scope="key").verdict == "conforms"


def test_an_event_of_the_run_observes_no_key(make_spec: MakeSpec) -> None:
    spec = make_spec(FLAGS, CONFIG)
    events = [event("Flip", {"b": 1}, state={"v": {"a": 1, "b": 1}}), is_("a", 1)]
    assert check(spec, events).verdict == "conforms"
    with pytest.raises(TlaError, match="is about no key, and observed v"):
        check(spec, events, scope="key")
