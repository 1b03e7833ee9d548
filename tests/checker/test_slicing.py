"""Separable specs: what is proven, what couples two keys, and that key by key is the same verdict as the whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from specwatch.checker import check, load_spec
from specwatch.checker.api import Options
from specwatch.checker.behaviour import Behaviour, Event, Ledger
from specwatch.checker.judging import Judge
from specwatch.checker.slicing import Coupled, separable
from specwatch.checker.spec import Spec
from specwatch.checker.tla.values import Boolean
from specwatch.checker.verdict import Verdict

CELERY = Path(__file__).parents[2] / "specs" / "celery"

# A queue that falls apart by task. The parts in braces are what the cases below replace.
QUEUE = """EXTENDS Naturals
CONSTANTS Tasks, Workers
VARIABLES ready, held, done
vars == <<ready, held, done>>
Init ==
  /\\ ready = [t \\in Tasks |-> FALSE]
  /\\ held = [t \\in Tasks |-> {}]
  /\\ done = [t \\in Tasks |-> 0]
Publish(t) == ~ready[t] /\\ ready' = [ready EXCEPT ![t] = TRUE] /\\ UNCHANGED <<held, done>>
Pickup(t, w) ==
  /\\ ready[t] /\\ w \\notin held[t]
  /\\ held' = [held EXCEPT ![t] = @ \\union {w}]
  /\\ UNCHANGED ready
  /\\ UNCHANGED done
Holders(k) == held[k]
Finish(k, w) ==
  /\\ w \\in Holders(k)
  /\\ held' = [held EXCEPT ![k] = @ \\ {w}]
  /\\ done' = IF done[k] < 9 THEN [done EXCEPT ![k] = @ + 1] ELSE done
  /\\ UNCHANGED <<ready>>
Return(t) == ready[t] /\\ ready' = [ready EXCEPT ![t] = FALSE] /\\ UNCHANGED <<held, done>>
Next == \\E t \\in Tasks :
  \\/ Publish(t) \\/ Return(t)
  \\/ \\E w \\in Workers : Pickup(t, w) \\/ Finish(t, w)
Once == \\A t \\in Tasks : done[t] <= 1
Counted == \\A u \\in Tasks : done[u] \\in Nat
Typed == Counted /\\ \\A t \\in Tasks : held[t] \\subseteq Workers
"""
CONFIG = 'CONSTANTS Tasks = {"a", "b"} Workers = {"v", "w"} INIT Init NEXT Next INVARIANTS Once Typed'


def test_a_spec_whose_state_is_functions_over_the_keys_is_separable(make_spec: Callable[..., Spec]) -> None:
    proof = separable(make_spec(QUEUE, CONFIG))
    assert (proof.key, proof.keys) == ("t", "Tasks")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("~ready[t] /\\", '~ready["a"] /\\', 'ready["a"] reads elsewhere than at t'),
        ("~ready[t] /\\", "\\A u \\in Tasks : ~ready[u] /\\", "Tasks, the set of all keys, is used as a value"),
        ("~ready[t] /\\", "ready # <<>> /\\ ~ready[t] /\\", "ready is read as a whole"),
        ("~ready[t] /\\", '~ready[t] /\\ t # "a" /\\', "t is used as a value"),
        ("![t] = TRUE]", '![t] = TRUE, !["a"] = FALSE]', "ready changes elsewhere than at t"),
        ("ready' = [ready EXCEPT ![t] = TRUE]", "ready' = [u \\in Tasks |-> TRUE]", "ready' is not [ready EXCEPT"),
        ("@ \\union {w}]", "@ \\union held[w]]", "held[w] reads elsewhere than at t"),
        ("Holders(k) == held[k]", "Holders(k) == UNION {held[u] : u \\in DOMAIN held}", "held[u] reads elsewhere"),
        ("[t \\in Tasks |-> 0]", "[t \\in Tasks |-> t]", "t is used as a value"),
        ("done = [t \\in Tasks |-> 0]", "done \\in [Tasks -> {0, 1}]", "Init is not of the form"),
        ("\\A t \\in Tasks : done[t] <= 1", "\\A t, u \\in Tasks : done[t] = done[u]", "the set of all keys"),
        ("\\A t \\in Tasks : done[t] <= 1", "\\E t \\in Tasks : done[t] <= 1", "the set of all keys"),
        ("\\E t \\in Tasks :\n", "\\E t \\in {x \\in Tasks : TRUE} :\n", "t ranges over what is no declared constant"),
        ("Next == \\E t", "Next == Tasks # {} /\\ \\E t", "Tasks, the set of all keys, is used as a value"),
        ("Next == \\E t", "Next == LET some == Tasks IN \\E t", "Tasks, the set of all keys, is used as a value"),
        ("Next == \\E t", "Some == Tasks # {}\nNext == Some /\\ \\E t", "the set of all keys, is used as a value"),
        ("Next == \\E t", "Next == \\E n \\in {Tasks} : \\E t", "Tasks, the set of all keys, is used as a value"),
        ("Publish(t) \\/ Return(t)", "Publish(t) \\/ UNCHANGED vars", None),
        (
            "Next == \\E t",
            "Reset == ready' = ready /\\ UNCHANGED <<held, done>>\nNext == Reset \\/ \\E t",
            "no parameter",
        ),
    ],
)
def test_what_couples_two_keys_is_named_with_its_place(
    make_spec: Callable[..., Spec], old: str, new: str, why: str | None
) -> None:
    assert old in QUEUE
    spec = make_spec(QUEUE.replace(old, new, 1), CONFIG)
    if why is None:
        assert separable(spec).key == "t"
        return
    with pytest.raises(Coupled) as caught:
        separable(spec)
    assert why in caught.value.message
    assert caught.value.span.line > 1


def test_a_set_of_keys_that_the_config_replaces_is_no_constant_to_cut_down(make_spec: Callable[..., Spec]) -> None:
    config = CONFIG.replace('Tasks = {"a", "b"}', "Tasks <- Names")
    spec = make_spec(QUEUE.replace("VARIABLES", 'Names == {"a", "b"}\nVARIABLES'), config)
    with pytest.raises(Coupled, match="no declared constant"):
        separable(spec)
    assert check(spec, [Event(action="Publish", params={"t": "a"})]).verdict == "conforms"


def test_the_shipped_model_is_separable_in_every_mode() -> None:
    for config in sorted(CELERY.glob("CeleryRedis.*.cfg")):
        proof = separable(load_spec(CELERY / "CeleryRedis.tla", config))
        assert (proof.key, proof.keys) == ("t", "Tasks"), config


def walk(spec: Spec, draw: random.Random, length: int, hidden: tuple[str, ...]) -> list[Event]:
    """Random steps of a spec as events, those of hidden actions left out, some parameters and observations too."""
    state = draw.choice(list(spec.initial_states()))
    events = []
    for _ in range(length):
        steps = list(spec.successors(state))
        if not steps:
            break
        step = draw.choice(steps)
        state = step.state
        if step.action.name in hidden:
            continue
        params = {
            name: value.value if isinstance(value, Boolean) else value
            for name, value in step.params
            if isinstance(value, (str, int, Boolean)) and (name == "t" or draw.random() < 0.8)
        }
        events.append(Event(action=step.action.name, params=params, key=params["t"]))
    return events


def damaged(events: list[Event], draw: random.Random) -> list[Event]:
    """One event dropped, doubled, moved, or renamed."""
    events = list(events)
    if len(events) > 1:
        place = draw.randrange(len(events) - 1)
        match draw.randrange(5):
            case 0:
                del events[place]
            case 1:
                events.insert(place, events[place])
            case 2:
                events[place], events[place + 1] = events[place + 1], events[place]
            case 3:
                events[place] = Event(action=draw.choice(events).action, params={"t": events[place].params["t"]})
    return events


def judged(spec: Spec, events: list[Event], hidden: tuple[str, ...], *, by_key: bool) -> Verdict:
    judge = Judge(spec, Options(hidden=hidden), Ledger(read=len(events)), ())
    if by_key:
        tables = judge.answers.tables
        assert tables is not None
        assert not events or tables.suits(Behaviour(events=events))
    else:
        judge.answers.tables = None
    return judge.judge([Behaviour(events=events)])


def essence(verdict: Verdict) -> tuple[object, ...]:
    finding = verdict.findings[0] if verdict.findings else None
    what = (finding.at, finding.invariant, finding.action) if finding else None
    return verdict.verdict, what, verdict.hidden_steps


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "hidden", [(), ("Return",), ("Publish", "Return")], ids=lambda names: "+".join(names) or "none"
)
def test_key_by_key_is_the_verdict_of_the_whole(
    make_spec: Callable[..., Spec], seed: int, hidden: tuple[str, ...]
) -> None:
    spec = make_spec(QUEUE, CONFIG)
    draw = random.Random(seed)
    words = set()
    for _ in range(25):
        events = damaged(walk(spec, draw, draw.randrange(1, 14), hidden), draw)
        by_key = judged(spec, events, hidden, by_key=True)
        assert essence(by_key) == essence(judged(spec, events, hidden, by_key=False)), events
        words.add(by_key.verdict)
    assert len(words) > 1


@pytest.mark.parametrize("mode", ["faulty", "idempotent"])
def test_key_by_key_is_the_verdict_of_the_whole_for_the_shipped_model(mode: str) -> None:
    tasks = {"Tasks": {"#set": ["a", "b"]}, "Workers": {"#set": ["v", "w"]}}
    spec = load_spec(CELERY / "CeleryRedis.tla", CELERY / f"CeleryRedis.{mode}.cfg", constants=tasks)
    hidden = ("Publish", "Start", "Check", "Resend", "VisTimeout")
    draw = random.Random(mode)
    for _ in range(25):
        events = damaged(walk(spec, draw, 9, hidden), draw)
        by_key, whole = (judged(spec, events, hidden, by_key=by_key) for by_key in (True, False))
        assert essence(by_key) == essence(whole), events


def test_an_observation_is_of_the_key_that_it_names_whatever_key_came_first(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        """EXTENDS Naturals
CONSTANT K
VARIABLE v
Init == v = [t \\in K |-> 0]
Step(t) == v' = [v EXCEPT ![t] = @ + 1]
Next == \\E t \\in K : Step(t)
Small == \\A t \\in K : v[t] < 2""",
        "CONSTANT K = {1, a} INIT Init NEXT Next INVARIANT Small",
    )
    seen = Event(action="Step", params={"t": "a"}, state={"v": {"a": 1}})
    one = Event(action="Step", params={"t": 1})
    assert check(spec, [one, seen]).verdict == "conforms"
    verdict = check(spec, [one, seen, one, one])
    assert (verdict.verdict, verdict.findings[0].at) == ("violates", 3)


def test_the_finding_speaks_of_the_whole_runs_events_and_of_the_one_key(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(QUEUE, CONFIG)
    events = [
        Event(action=action, params={"t": task} | ({"w": "v"} if action in ("Pickup", "Finish") else {}))
        for action, task in [
            ("Publish", "a"), ("Publish", "b"), ("Pickup", "a"), ("Pickup", "b"), ("Finish", "a"), ("Finish", "b"),
            ("Pickup", "b"), ("Pickup", "a"), ("Finish", "b"),
        ]
    ]  # fmt: skip
    verdict = check(spec, events)
    [finding] = verdict.findings
    assert (verdict.verdict, finding.at, finding.invariant) == ("violates", 9, "Once")
    assert finding.explanation is not None
    assert finding.explanation.summary == 'event 9, Finish(t = "b", w = "v"), breaks Once'
    assert [number for number, _ in finding.context] == [2, 4, 6, 7, 9]
    assert finding.explanation.state_change['done["b"]'] == ["1", "2"]
    assert "a" not in finding.explanation.state_before["done"]


def test_many_keys_cost_a_look_up_each(make_spec: Callable[..., Spec]) -> None:
    """The frontier of the whole would have two states for each returned task: 2 to the power of 500."""
    spec = make_spec(QUEUE, CONFIG.replace('{"a", "b"}', "{" + ", ".join(f'"{n}"' for n in range(500)) + "}"))
    events = [
        Event(action=action, params={"t": str(number)} | ({} if action == "Publish" else {"w": "v"}))
        for number in range(500)
        for action in ("Publish", "Pickup", "Finish")
    ]
    verdict = check(spec, events, hidden=["Return"])
    assert (verdict.verdict, verdict.coverage["Finish"]) == ("conforms", 500)
