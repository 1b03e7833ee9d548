"""The smallest examples on which the replay and the other judge once disagreed."""

from __future__ import annotations

import json

from tests.checker.judge import Json, judge
from tests.checker.judge_rules import UNDECIDED, Missing, Rules, judge_rules
from tests.checker.models import MODELS
from tests.checker.product import asked, by_key, ruling, spec_of

from specwatch.checker.api import Options
from specwatch.checker.behaviour import Behaviour, Event, Loss
from specwatch.checker.bounds import Bounds
from specwatch.checker.paths import Rules as ReplayRules
from specwatch.checker.replay import Replay
from specwatch.checker.timed import Timed

SECOND = 1_000_000_000


def event(action: str, emitter: str = "p", seq: int = 1, **params: Json) -> dict[str, Json]:
    key = {"key": params["t"]} if "t" in params else {}
    return {"action": action, "params": params, "emitter": emitter, "seq": seq, **key}


def test_causes_in_a_circle_decide_nothing() -> None:
    events = [{**event("Publish"), "after": [["q", 1]]}, {**event("Publish", "q"), "after": [["p", 1]]}]
    assert ruling(asked(spec_of("VisQueue", "claim"), events, Options(), "time")).reason == "clock"


def test_a_clock_does_not_speak_of_events_that_show_none() -> None:
    """The second event of q may have come after that of p, whose clock had seen one."""
    events = [event("Publish", "q"), event("Publish", "p", t="t2"), event("Pickup", "q", 2, t="t2")]
    events[1]["clock"] = {"p": 1, "q": 1}
    assert ruling(asked(spec_of("VisQueue", "late"), events, Options(), "time")).verdict == "conforms"


def test_times_that_go_backwards_forbid_no_hidden_step_that_no_time_bounds() -> None:
    events = [{**event("Acquire"), "time": 10}, {**event("Acquire", "q"), "time": 0}]
    timed = (Timed(action="Expire", after="Acquire", min=5),)
    options = Options(hidden=("Release", "Expire"), timed=timed, skew=0)
    assert ruling(asked(spec_of("LeaseLock", "unfenced"), events, options)).verdict == "conforms"


def test_a_lost_record_may_have_been_of_a_hidden_action() -> None:
    loss = Loss(reason="gap", detail="q lacks seq 1", emitter="q", count=1, after=-1, before=0)
    options = Options(hidden=("Acquire",), hidden_max=0)
    found = asked(spec_of("LeaseLock", "unfenced"), [event("Release", "q", 2)], options, losses=[loss])
    assert ruling(found).verdict == "conforms"


def test_what_was_in_flight_happened_once_at_most() -> None:
    flight = Event(action="Take", params={"k": 1})
    loss = Loss(reason="in-flight", detail="p had begun", emitter="p", after=-1, event=flight)
    events = [event("RefillAll", "q", 1), event("Refill", "q", 2)]
    assert ruling(asked(spec_of("TokenBucket", "exact"), events, Options(), losses=[loss])).answer == ("diverges", 2)


def test_what_was_in_flight_may_show_that_something_was_broken_before() -> None:
    """If it happened, both Ups were of a, and broke LowA; if it did not, one may have been of b."""
    told = event("Down", "p", 1, x="a") | {"state": {"a": 1}}
    events = [event("Up", "q", 1), event("Up", "q", 2)]
    missing = Missing("in-flight", event=told)
    assert judge_rules(MODELS["Twins", "one"], events, Rules(), [missing]).verdict == UNDECIDED
    flight = Event(action="Down", params={"x": "a"}, state={"a": 1})
    loss = Loss(reason="in-flight", detail="p had begun", emitter="p", count=1, after=-1, event=flight)
    assert ruling(asked(spec_of("Twins", "one"), events, Options(), losses=[loss])).verdict == UNDECIDED


def test_a_tail_is_open_for_the_keys_that_were_held_and_not_for_the_run() -> None:
    loss = Loss(reason="open-tail", detail="q ended", emitter="q", after=-1, keys=["t1"])
    found = asked(spec_of("Post", "two"), [event("Boot")], Options(key="t"), losses=[loss])
    assert ruling(found).answer == ("diverges", 1)


def test_a_tail_is_open_for_no_other_key() -> None:
    loss = Loss(reason="open-tail", detail="q ended", emitter="q", after=-1, keys=["t1"])
    found = asked(spec_of("Shelf", "two"), [event("Execute", t="t2")], Options(key="t"), losses=[loss])
    assert ruling(found).answer == ("diverges", 1)


def test_in_scope_run_each_key_could_be_open_at_the_start() -> None:
    events = [event("Publish", seq=1, t="t2"), event("Undo", seq=2, t="t1")]
    found = ruling(asked(spec_of("Shelf", "two"), events, Options(start="midway", key="t")))
    assert (found.verdict, found.reason) == (UNDECIDED, "open-at-start")


def test_a_key_that_the_spec_does_not_know_diverges_midway_too() -> None:
    events = [event("Execute", seq=1, t="t1"), event("Timeout", seq=2, t=9)]
    verdict = asked(spec_of("Post", "two"), events, Options(start="midway", scope="key", key="t"))
    assert verdict is not None
    assert {key: one.verdict for key, one in by_key(verdict).items()} == {json.dumps("t1"): UNDECIDED, "9": "diverges"}


def test_what_no_key_has_is_never_incomplete() -> None:
    options = Options(scope="key", key="t", complete=True, terminal=("Ack",))
    assert ruling(asked(spec_of("Post", "two"), [event("Stop")], options)).verdict == "conforms"


def test_a_guard_that_asks_for_what_the_next_event_does_not_say_does_not_hold() -> None:
    events = [event("Publish", seq=1, t="t1"), event("Pickup", seq=2, t="t1"), event("Stop", seq=3)]
    options = Options(hidden=("Timeout",), when=(("Timeout", "t = $t"),))
    assert ruling(asked(spec_of("Post", "two"), events, options)).verdict == "conforms"


def test_a_guard_over_a_value_of_another_kind_leaves_the_event_to_diverge() -> None:
    events = [event("Publish", seq=1, t="t1"), event("Publish", seq=2, t=True)]
    options = Options(hidden=("Timeout",), when=(("Timeout", "t = $t"),))
    assert ruling(asked(spec_of("Post", "two"), events, options)).answer == ("diverges", 2)


def test_a_parameter_that_the_spec_lacks_is_refused_after_a_divergence_too() -> None:
    events = [event("Execute", seq=1, t="t2"), event("Ack", seq=2, t="t2", lacking=3)]
    assert asked(spec_of("Shelf", "two"), events, Options()) is None


def test_a_state_reached_with_fewer_steps_in_all_may_be_deeper_in_its_gap() -> None:
    """A Jump and an Up before the last event; the state between them was reached by one Up of an earlier gap, too."""
    events = [event("Refill"), event("Deny", k=2), event("Deny")]
    hidden = ("Take", "RefillAll")
    spec, model = spec_of("TokenBucket", "racy"), MODELS["TokenBucket", "racy"]
    actions = frozenset(action for name in hidden for action in spec.named(name))
    told = [Event(action=one["action"], params=one["params"]) for one in events]
    outcome = Replay(spec, Behaviour(events=told), ReplayRules(actions, 3, everywhere=True), Bounds()).run()
    expected = judge(model, events, hidden, 3)
    assert (outcome.good_states, outcome.broken_states) == (expected.good_states, expected.broken_states)


def test_an_emitter_whose_own_times_go_back_is_not_believed() -> None:
    """By its times the first Acquire of p came after that of q; by its numbers p had given back before."""
    events = [
        {**event("Acquire", "p", 1, c="a"), "time": 20},
        {**event("Release", "p", 2, c="a"), "time": 5},
        {**event("Acquire", "q", 1, c="b"), "time": 5},
    ]
    assert ruling(asked(spec_of("LeaseLock", "fenced"), events, Options(), "time")).reason == "clock"


def test_a_lost_record_of_a_timed_action_comes_no_earlier_than_its_bound() -> None:
    """Only an Expire lets b in, and none comes within ten seconds, be it logged or not."""
    events = [{**event("Acquire", "p", 1, c="a"), "time": 0}, {**event("Acquire", "p", 3, c="b"), "time": 5 * SECOND}]
    timed = (Timed(action="Expire", after="Acquire", min=10 * SECOND),)
    told = Event(action="Expire")
    loss = Loss(reason="in-flight", detail="p had begun", emitter="p", after=0, before=1, event=told)
    for bounds, word in ((timed, "diverges"), ((), "conforms")):
        options = Options(hidden=("Expire",), timed=bounds, skew=0)
        assert ruling(asked(spec_of("LeaseLock", "unfenced"), events, options, "time", losses=[loss])).verdict == word


def test_what_was_in_flight_of_one_key_excuses_no_other() -> None:
    """t1 was received and never published; that a Publish of t2 was in flight says nothing of it."""
    flight = Event(action="Publish", params={"t": "t2"}, key="t2")
    loss = Loss(reason="in-flight", detail="p had begun", emitter="p", after=-1, event=flight)
    events = [event("Pickup", "r", t="t2"), event("Pickup", "q", 1, t="t1"), event("Publish", "q", 2, t="t1")]
    options = Options(hidden=("Ack", "Timeout"), scope="key", key="t")
    verdict = asked(spec_of("Shelf", "two"), events, options, losses=[loss])
    assert verdict is not None
    assert {one.key: (one.verdict, one.at) for one in verdict.findings} == {"t1": ("diverges", 1)}
