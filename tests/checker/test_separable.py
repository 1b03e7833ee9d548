"""Separable specs with a run-level part: what is proven, what couples two keys, and that each coupling is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random

import pytest
from tests.checker.product_of_keys import Product, drawn_states

from specwatch.checker.slicing import Coupled, Effect, Separable, separable
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaEvaluationError

MakeSpec = Callable[..., Spec]

# A queue with a switch, a clock and a store of workers that are on. What stands in braces is replaced below.
QUEUE = """EXTENDS Naturals, FiniteSets
CONSTANTS K, W
VARIABLES kn, ks, on, clock, seen
run == <<on, clock, seen>>
Blank == [k \\in K |-> {}]
Filled(x) == [k \\in K |-> ks[k] \\union {x}]
Init ==
  /\\ on = TRUE
  /\\ clock = 0
  /\\ seen = [w \\in W |-> 0]
  /\\ kn = [k \\in K |-> clock]
  /\\ ks = Blank
Free(k, w) == w \\notin ks[k] /\\ on
Take(t, w) ==
  /\\ Free(t, w)
  /\\ ks' = [ks EXCEPT ![t] = @ \\union {w}]
  /\\ UNCHANGED <<kn, run>>
Give(t, w) ==
  /\\ w \\in ks[t]
  /\\ ks' = [ks EXCEPT ![t] = @ \\ {w}]
  /\\ kn' = IF clock > 0 THEN [kn EXCEPT ![t] = (@ + clock) % 3] ELSE kn
  /\\ UNCHANGED on /\\ clock' = clock /\\ UNCHANGED seen
Switch == on' = ~on /\\ UNCHANGED <<kn, ks, clock, seen>>
Tick == on /\\ clock' = (clock + 1) % 3 /\\ UNCHANGED <<kn, ks, on, seen>>
See(w) == seen' = [seen EXCEPT ![w] = (@ + clock) % 3] /\\ UNCHANGED <<kn, ks, on, clock>>
Lose(w) ==
  /\\ seen[w] # 1
  /\\ ks' = [k \\in K |-> ks[k] \\ {w}]
  /\\ kn' = IF on THEN kn ELSE [k \\in K |-> IF ks[k] = {} THEN 0 ELSE kn[k]]
  /\\ UNCHANGED run
Clear == ks' = Blank /\\ UNCHANGED <<kn, run>>
Fill(w) == ks' = Filled(w) /\\ UNCHANGED <<kn, run>>
Server == Switch \\/ Tick \\/ \\E w \\in W : See(w)
Next ==
  \\/ clock < 3 /\\ (\\E t \\in K : \\E w \\in W : Take(t, w) \\/ Give(t, w))
  \\/ Server
  \\/ \\E w \\in W : Lose(w) \\/ Fill(w)
  \\/ Clear
Small == \\A t \\in K : kn[t] <= clock + 2
Some == clock < 3 /\\ \\A t \\in K, w \\in W : w \\in ks[t] => kn[t] < 3
Whole == seen \\in [W -> 0..2]
While == on => \\A t \\in K : Cardinality(ks[t]) < 9
"""
CONFIG = 'CONSTANTS K = {"a", "b"} W = {"v", "w"} INIT Init NEXT Next INVARIANTS Small Some Whole While'
KINDS = {"kn": "num", "ks": "set", "on": "flag", "clock": "num", "seen": "by worker"}


def labels(actions: frozenset[object]) -> set[str]:
    return {getattr(action, "label", "") for action in actions}


def test_a_spec_of_keyed_and_run_level_parts_is_separable(make_spec: MakeSpec) -> None:
    spec = make_spec(QUEUE, CONFIG)
    proof = separable(spec, run_level=True)
    assert (proof.key, proof.keys, proof.keyed) == ("t", "K", frozenset({"kn", "ks"}))
    assert labels(proof.run_level) == {"Switch", "Tick", "See", "Lose", "Fill", "Clear"}
    assert labels(proof.pointwise) == {"Lose", "Fill", "Clear"}
    assert proof.shared == {"on", "clock"}
    # See changes what decides Lose, which changes what keys read.
    assert labels(proof.choices) == {"Switch", "Tick", "See", "Lose", "Fill", "Clear"}
    states = [*drawn_states(spec, KINDS, proof.keyed, Random(1), 40), *spec.initial_states()]
    Product(spec, proof).check(states)


def test_without_run_level_it_is_coupled(make_spec: MakeSpec) -> None:
    with pytest.raises(Coupled, match="have no parameter in common"):
        separable(make_spec(QUEUE, CONFIG))
    with pytest.raises(Coupled, match="Switch has no parameter t"):
        separable(make_spec(QUEUE, CONFIG), "t")


def test_what_no_key_sees_is_no_choice(make_spec: MakeSpec) -> None:
    proof = separable(make_spec(QUEUE.replace("seen[w] # 1", "TRUE"), CONFIG), run_level=True)
    assert "See" not in labels(proof.choices)
    assert labels(proof.choices_for(["seen"])) == labels(proof.choices) | {"See"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Take(t, w) ==", "Take(k, w) =="),
        ("kn = [k \\in K |-> clock]", "kn = [k \\in K |-> IF on THEN 0 ELSE 1]"),
        ("/\\ on = TRUE", "/\\ on = (Cardinality(W) = 2)"),
        ("Switch == on' = ~on", "Switch == on' \\in BOOLEAN"),
        ("Switch == on' = ~on", "Switch == (on' = TRUE \\/ on' = FALSE)"),
        ("Clear == ks' = Blank", "Clear == LET n == 1 IN ks' = (LET m == {} IN [k \\in K |-> m])"),
        ("Tick == on /\\", "Tick == on' = on /\\"),
        ("Lose(w) ==\n", "Lose(w) == CASE on -> FALSE [] OTHER ->\n"),
        ("Whole == ", "Whole == \\A w \\in W : \\A t \\in K : kn[t] + seen[w] \\in Nat\nOld == "),
    ],
)
def test_other_ways_to_say_it_are_understood_too(make_spec: MakeSpec, old: str, new: str) -> None:
    assert old in QUEUE
    text = QUEUE.replace(old, new, 1)
    if old.startswith("Take"):
        text = text.replace("Free(t, w)", "Free(k, w)").replace("![t] = @ \\union", "![k] = @ \\union")
    spec = make_spec(text, CONFIG)
    proof = separable(spec, run_level=True)
    states = [*drawn_states(spec, KINDS, proof.keyed, Random(2), 20), *spec.initial_states()]
    Product(spec, proof).check(states)


COUPLINGS = [
    # guards
    ("/\\ Free(t, w)", "/\\ \\A u \\in K : ks[u] = {} \\/ u = t", "the set of all keys"),
    ("/\\ Free(t, w)", '/\\ kn["a"] = 0', 'kn["a"] reads elsewhere than at t'),
    ("/\\ Free(t, w)", "/\\ Cardinality(K) = 1", "the set of all keys"),
    ("/\\ Free(t, w)", '/\\ t = "a"', "t is used as a value"),
    ("/\\ Free(t, w)", "/\\ Cardinality(DOMAIN kn) = 1", "kn is read as a whole"),
    ("Blank ==", "Zero[k \\in K] == 0\nBlank ==", None),
    ("clock < 3 /\\ (", "(\\E k \\in K : ks[k] = {}) /\\ (", "the set of all keys"),
    ("Switch == on'", "Switch == kn[CHOOSE k \\in K : TRUE] = 0 /\\ on'", "kn[CHOOSE k \\in K : TRUE] reads"),
    ("Tick == on /\\", "Tick == (\\A k \\in K : kn[k] = 0) /\\", "the set of all keys"),
    # next values of one key
    ("ks' = [ks EXCEPT ![t] = @ \\union {w}]", "ks' = [k \\in K |-> {w}]", "ks' is not [ks EXCEPT ![t] = …]"),
    ("![t] = @ \\union {w}]", '![t] = {w}, !["a"] = {}]', "ks changes elsewhere than at t"),
    ("![t] = @ \\union {w}]", "![t] = {t}]", "t is used as a value"),
    ("![t] = @ \\union {w}]", "![t] = UNION {ks[u] : u \\in K}]", "ks[u] reads elsewhere than at t"),
    # run-level variables in keyed actions
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ on' = FALSE /\\ clock' = clock", "on is common to all keys"),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ UNCHANGED on /\\ clock' = (clock + 1) % 3", "clock is common"),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ UNCHANGED on /\\ clock' \\in {0, clock}", "clock is common"),
    (
        "/\\ UNCHANGED on /\\ clock' = clock",
        "/\\ (CASE kn[t] = 0 -> on' = FALSE [] OTHER -> UNCHANGED on) /\\ clock' = clock",
        "on is common to all keys",
    ),
    (
        "/\\ UNCHANGED on /\\ clock' = clock",
        "/\\ (LET Off == on' = FALSE IN Off) /\\ clock' = clock",
        "speaks of a next value, and stands for another name",
    ),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ [on' = FALSE]_on /\\ clock' = clock", "is no action"),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ Set(on) /\\ clock' = clock", "x' may be any variable"),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ Be(on', FALSE) /\\ clock' = clock", "speaks of a next value"),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ Do(LAMBDA x : on' = x) /\\ clock' = clock", "speaks of a next value"),
    ("/\\ UNCHANGED on /\\ clock' = clock", "/\\ Do(SetOn) /\\ clock' = clock", "speaks of a next value"),
    # next values of all keys
    ("Clear == ks' = Blank", 'Clear == ks\' = [ks EXCEPT !["a"] = {}]', "ks' is not [t \\in K |-> …]"),
    (
        "Clear == ks' = Blank",
        "Clear == ks' = [k \\in K |-> UNION {ks[u] : u \\in K}]",
        "ks[u] reads elsewhere than at t",
    ),
    ("Clear == ks' = Blank", "Clear == ks' = [k \\in K |-> {k}]", "k is used as a value"),
    ("Clear == ks' = Blank", "Clear == ks' \\in {Blank, ks}", "two keys could see different ones"),
    ("Clear == ks' = Blank", "Clear == (ks' = Blank \\/ UNCHANGED ks)", "this leaves open how ks changes"),
    (
        "Clear == ks' = Blank",
        "Clear == on /\\ (\\E w \\in W : ks' = [k \\in K |-> {w}])",
        "this leaves open how ks changes",
    ),
    ("Clear == ks' = Blank", "Clear == UNCHANGED ks /\\ ks' = Blank", "ks' is given twice"),
    ("Clear == ks' = Blank", "Clear == on /\\ ks' = Blank /\\ ks' = [k \\in K |-> ks[k]]", "ks' is given twice"),
    ("Switch == on' = ~on", "Switch == on' = (kn[CHOOSE k \\in K : TRUE] = 0)", "kn[CHOOSE k \\in K : TRUE] reads"),
    # parameters
    ("Server == Switch", "Server == (\\E u \\in K : u = u /\\ Switch)", "u ranges over K"),
    ("Server == Switch", "Server == (\\E t \\in W : t = t /\\ Switch)", "t ranges over W here and over K elsewhere"),
    # Init
    ("/\\ on = TRUE", "/\\ on \\in BOOLEAN", "two keys could begin differently"),
    ("/\\ on = TRUE", "/\\ (on = TRUE \\/ on = FALSE)", "two keys could begin differently"),
    ("/\\ on = TRUE", "/\\ on = (Cardinality(K) = 1)", "the set of all keys"),
    ("kn = [k \\in K |-> clock]", "kn \\in [K -> {0, 1}]", "two keys could begin differently"),
    ("kn = [k \\in K |-> clock]", 'kn = [k \\in K |-> IF k = "a" THEN 0 ELSE 1]', "k is used as a value"),
    # invariants
    ("Whole ==", "Whole == Cardinality({k \\in K : ks[k] # {}}) < 2\nOld ==", "the set of all keys"),
    ("Whole ==", "Whole == \\A t, u \\in K : kn[t] = kn[u]\nOld ==", "the set of all keys"),
    ("Whole ==", "Whole == \\E t \\in K : kn[t] = 0\nOld ==", "the set of all keys"),
    ("Whole ==", "Whole == ~(\\A t \\in K : kn[t] = 0)\nOld ==", "the set of all keys"),
    ("Whole ==", "Whole == (\\A t \\in K : kn[t] = 0) => on\nOld ==", "the set of all keys"),
    ("Whole ==", 'Whole == kn = kn /\\ kn["a"] = 0\nOld ==', "kn is read as a whole"),
]
SETTERS = """Set(x) == x' = FALSE
Be(x, y) == x = y
SetOn(x) == on' = x
Do(A(_)) == A(FALSE)
"""


def coupled_spec(make_spec: MakeSpec, old: str, new: str) -> Spec:
    text = QUEUE.replace("Init ==", SETTERS + "Init ==", 1)
    assert old in text
    text = text.replace(old, new, 1)
    if "Zero[" in new:
        text = text.replace("/\\ Free(t, w)", "/\\ Cardinality(DOMAIN Zero) = 1")
    return make_spec(text, CONFIG)


@pytest.mark.parametrize(("old", "new", "why"), COUPLINGS)
def test_what_couples_two_keys_is_named(make_spec: MakeSpec, old: str, new: str, why: str | None) -> None:
    spec = coupled_spec(make_spec, old, new)
    with pytest.raises(Coupled) as caught:
        separable(spec, "t", run_level=True)
    assert (why or "the set of all keys") in caught.value.message
    assert caught.value.span.file.endswith("M.tla")
    assert caught.value.span.line > 1
    with pytest.raises(Coupled):
        separable(spec, run_level=True)


HARMLESS = ("u = u", "t = t", "Whole == kn = kn")
"""What the proof refuses although no state tells it from a separable spec."""

SHOWN = [coupling for coupling in COUPLINGS if not any(part in coupling[1] for part in HARMLESS)]


@pytest.mark.parametrize(("old", "new", "why"), SHOWN)
def test_what_is_called_coupling_is(make_spec: MakeSpec, old: str, new: str, why: str | None) -> None:
    """With the proof of the spec as it was before: that the spec as it is now is no product shows in its states. So the
    test that looks for wrong proofs would find one.
    """
    spec = coupled_spec(make_spec, old, new)
    proof = separable(make_spec(QUEUE, CONFIG, name="Old"), run_level=True)
    effects = []
    for effect in proof.effects:
        action = next(action for action in spec.actions if action.label == effect.action.label)
        effects.append(Effect(action, effect.reads | {"on"}, effect.changes | ({"on"} if "Switch" in new else set())))
    claimed: Separable = dataclasses.replace(proof, effects=tuple(effects))
    states = [*drawn_states(spec, KINDS, proof.keyed, Random(3), 30), *spec.initial_states()]
    with pytest.raises((AssertionError, TlaEvaluationError)):
        Product(spec, claimed).check(states)
