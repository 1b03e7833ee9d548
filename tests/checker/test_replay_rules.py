"""The rules of the replay, one plain test each: what a path is, which parts of an event count, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specwatch.checker import check, load_spec, tla
from specwatch.checker.spec import Spec
from specwatch.checker.verdict import Verdict
from specwatch.cli.app import app

TRACES = Path(__file__).parents[1] / "corpus" / "truth" / "traces"

# One counter: Tick may be hidden, Read(v) shows its value, Reset is possible above 0, Flag shows whether it is even.
COUNTER = """EXTENDS Naturals
VARIABLES n, resets
vars == <<n, resets>>
Init == n = 0 /\\ resets = 0
Tick == n < 9 /\\ n' = n + 1 /\\ UNCHANGED resets
Leap == n < 6 /\\ n' = n + 4 /\\ UNCHANGED resets
Read(v) == n = v /\\ UNCHANGED vars
Reset == n > 0 /\\ n' = 0 /\\ resets' = resets + 1
Flag(even) == even = (n % 2 = 0) /\\ UNCHANGED vars
Next == Tick \\/ Leap \\/ Reset \\/ (\\E v \\in 0..9 : Read(v)) \\/ \\E even \\in BOOLEAN : Flag(even)
Short == n < 2
Low == n <= 5
Calm == resets <= 1
"""
CONFIG = "INIT Init NEXT Next INVARIANTS Low Calm"

Make = Callable[..., Spec]
Json = Any


def event(action: str, **params: Json) -> dict[str, Json]:
    return {"action": action, "params": params}


@pytest.fixture
def counter(make_spec: Make) -> Spec:
    return make_spec(COUNTER, CONFIG)


def truth(module: str, config: str) -> Spec:
    return load_spec(TRACES / f"{module}.tla", TRACES / f"{module}.{config}.cfg")


def at(verdict: Verdict) -> tuple[str, int | None]:
    """The verdict, and the event at which it was settled."""
    return verdict.verdict, verdict.findings[0].at if verdict.findings else None


# --- paths ----------------------------------------------------------------------------------------------------------


def test_a_hidden_step_before_an_enabled_event_may_be_the_only_explanation(counter: Spec) -> None:
    """Read with its value left out is enabled at once; two ticks before it let two more reach 4 in the next gap."""
    events = [event("Read"), event("Read", v=4)]
    assert at(check(counter, events, hidden=["Tick"], hidden_max=2)) == ("conforms", None)
    assert at(check(counter, events, hidden=["Tick"], hidden_max=1)) == ("diverges", 2)


def test_a_hidden_step_before_an_enabled_event_may_be_the_only_good_explanation() -> None:
    """The second Take is enabled at once, and takes what is not there."""
    racy, events = truth("TokenBucket", "racy"), [event("Take", k=2), event("Take", k=2)]
    assert at(check(racy, events)) == ("violates", 2)
    assert at(check(racy, events, hidden=["Refill"])) == ("conforms", None)


def test_the_bound_holds_for_each_gap_and_for_all_hidden_actions_together(counter: Spec) -> None:
    events = [event("Read", v=2), event("Read", v=4)]
    assert check(counter, events, hidden=["Tick"], hidden_max=2).hidden_steps == 4
    assert at(check(counter, events, hidden=["Tick"], hidden_max=1)) == ("diverges", 1)
    back = [event("Read", v=1), event("Read", v=0), event("Read", v=1)]
    assert at(check(counter, back, hidden=["Tick", "Reset"], hidden_max=1)) == ("conforms", None)
    both = [event("Read", v=2), event("Read", v=1)]
    assert at(check(counter, both, hidden=["Tick", "Reset"], hidden_max=2)) == ("conforms", None)
    assert at(check(counter, [event("Tick"), *both], hidden=["Tick", "Reset"], hidden_max=1)) == ("diverges", 3)


def test_without_a_bound_any_number_of_hidden_steps_may_come(counter: Spec) -> None:
    assert check(counter, [event("Read", v=5)], hidden=["Tick"]).hidden_steps == 5


def test_a_bound_of_zero_allows_none(counter: Spec) -> None:
    assert at(check(counter, [event("Read", v=1)], hidden=["Tick"], hidden_max=0)) == ("diverges", 1)


def test_no_hidden_step_follows_the_last_event(counter: Spec) -> None:
    """One more tick would break Low."""
    events = [event("Tick") for _ in range(5)]
    verdict = check(counter, events, hidden=["Tick"])
    assert (verdict.verdict, verdict.hidden_steps) == ("conforms", 0)


def test_an_invariant_that_breaks_in_a_hidden_step_stays_broken(counter: Spec) -> None:
    """Two leaps lead above 5, and Reset back to 0."""
    events = [event("Read", v=8), event("Reset"), event("Read", v=0)]
    verdict = check(counter, events, hidden=["Leap"])
    assert at(verdict) == ("violates", 1)
    assert verdict.findings[0].invariant == "Low"
    only_high = [event("Read", v=8), event("Read", v=0)]
    assert at(check(counter, only_high, hidden=["Leap", "Reset"], hidden_max=2)) == ("violates", 1)


def test_the_fewest_hidden_steps_are_shown_also_where_a_later_gap_has_them(make_spec: Make) -> None:
    """Before the door opens two steps lead to 2, behind it one does."""
    spec = make_spec(
        "EXTENDS Naturals VARIABLES n, open\n"
        "Init == n = 0 /\\ open = FALSE\n"
        "Step == n < 2 /\\ n' = n + 1 /\\ UNCHANGED open\n"
        "Open == open' = TRUE /\\ UNCHANGED n\n"
        "Jump == open /\\ n' = 2 /\\ UNCHANGED open\n"
        "Two == n = 2 /\\ UNCHANGED <<n, open>>\n"
        "Next == Step \\/ Open \\/ Jump \\/ Two"
    )
    verdict = check(spec, [event("Open"), event("Two")], hidden=["Step", "Jump"])
    assert (verdict.verdict, verdict.hidden_steps, verdict.coverage["Jump"]) == ("conforms", 1, 1)


def test_a_step_that_changes_nothing_is_a_step_with_its_guard(counter: Spec) -> None:
    assert at(check(counter, [event("Read", v=0), event("Read", v=0)])) == ("conforms", None)
    assert at(check(counter, [event("Read", v=0), event("Read", v=1)])) == ("diverges", 2)


def test_a_guard_in_next_counts(make_spec: Make) -> None:
    spec = make_spec(
        "EXTENDS Naturals VARIABLE n\nInit == n = 0\nUp == n' = n + 1\nDown == n' = n - 1\n"
        "Next == n < 2 /\\ (Up \\/ Down)"
    )
    assert at(check(spec, [event("Up"), event("Up"), event("Down")])) == ("diverges", 3)


def test_a_settled_violation_stands_whatever_comes_later(counter: Spec) -> None:
    events = [*[event("Tick")] * 6, event("Reset"), event("Read", v=7)]
    assert at(check(counter, events)) == ("violates", 6)


def test_broken_paths_do_not_outlive_the_good_ones(counter: Spec) -> None:
    """A good and a broken path explain the first event; neither explains the second."""
    events = [event("Flag", even=True), event("Read", v=3)]
    assert at(check(counter, events, hidden=["Leap"])) == ("diverges", 2)


def test_least_sets_together_with_plus_on_different_paths_with_a_bar(make_spec: Make) -> None:
    body = (
        "EXTENDS Naturals VARIABLES a, b\nInit == a = 0 /\\ b = 0\n"
        "Left == a' = 1 /\\ UNCHANGED b\nRight == b' = 1 /\\ UNCHANGED a\nBoth == a' = 1 /\\ b' = 1\n"
        "Some == Left \\/ Right \\/ Both\nNext == Some\nA == a = 0\nB == b = 0"
    )
    spec = make_spec(body, "INIT Init NEXT Next INVARIANTS A B")
    found = check(spec, [event("Both")]).findings[0].invariant
    assert found == "A+B"
    found = check(spec, [event("Some")]).findings[0].invariant
    assert found is not None
    assert set(found.split("|")) == {"A", "B"}


def test_at_0_is_a_broken_start_before_anything_else(make_spec: Make) -> None:
    spec = make_spec(COUNTER.replace("Init == n = 0", "Init == n = 7"), CONFIG)
    assert at(check(spec, [event("Read", v=1)])) == ("violates", 0)


def test_one_good_start_of_several_is_enough(make_spec: Make) -> None:
    spec = make_spec(COUNTER.replace("Init == n = 0", "Init == n \\in {3, 7}"), CONFIG)
    assert at(check(spec, [event("Read")])) == ("conforms", None)
    assert at(check(spec, [event("Read", v=7)])) == ("violates", 1)


def test_no_events_are_vacuous_even_where_the_start_is_broken(make_spec: Make) -> None:
    spec = make_spec(COUNTER.replace("Init == n = 0", "Init == n = 7"), CONFIG)
    verdict = check(spec, [])
    assert (verdict.verdict, verdict.exit_code) == ("vacuous", 3)
    assert verdict.findings[0].reason is not None
    assert verdict.findings[0].reason.startswith("no-events")


# --- what an event says ---------------------------------------------------------------------------------------------


def test_a_parameter_left_out_may_have_any_value(counter: Spec) -> None:
    assert at(check(counter, [event("Tick"), event("Read")])) == ("conforms", None)
    assert at(check(counter, [event("Tick"), {"action": "Read"}])) == ("conforms", None)


def test_state_was_observed_after_the_step_and_before_in_the_state_that_it_starts_from(counter: Spec) -> None:
    tick = {"action": "Tick", "before": {"n": 0}, "state": {"n": 1}}
    assert at(check(counter, [tick])) == ("conforms", None)
    assert at(check(counter, [{**tick, "state": {"n": 0}}])) == ("diverges", 1)
    assert at(check(counter, [{**tick, "before": {"n": 1}}])) == ("diverges", 1)


def test_before_is_observed_after_the_hidden_steps(counter: Spec) -> None:
    tick = {"action": "Tick", "before": {"n": 2}}
    verdict = check(counter, [tick], hidden=["Tick"])
    assert (verdict.verdict, verdict.hidden_steps) == ("conforms", 2)


def test_an_observed_variable_or_key_that_is_missing_matches_no_step(counter: Spec) -> None:
    assert at(check(counter, [{"action": "Tick", "state": {"m": 1}}])) == ("diverges", 1)
    lock = truth("LeaseLock", "fenced")
    assert at(check(lock, [{**event("Acquire", c="a"), "state": {"my": {"a": 1}}}])) == ("conforms", None)
    assert at(check(lock, [{**event("Acquire", c="a"), "state": {"my": {"z": 1}}}])) == ("diverges", 1)


def test_an_object_names_some_keys_and_a_map_all_of_them() -> None:
    lock = truth("LeaseLock", "fenced")
    part, whole = {"#map": [["a", 1]]}, {"#map": [["b", 0], ["a", 1]]}
    assert at(check(lock, [{**event("Acquire", c="a"), "state": {"my": part}}])) == ("diverges", 1)
    assert at(check(lock, [{**event("Acquire", c="a"), "state": {"my": whole}}])) == ("conforms", None)


@pytest.mark.parametrize("value", ["1", True, [1], {"#set": [1]}, {"v": 1}, 1.5, None, 10, -1])
def test_a_value_of_another_kind_or_outside_the_quantified_set_matches_no_step(counter: Spec, value: Json) -> None:
    assert at(check(counter, [event("Tick"), event("Read", v=value)])) == ("diverges", 2)


def test_a_boolean_parameter_is_no_number(counter: Spec) -> None:
    assert at(check(counter, [event("Flag", even=True)])) == ("conforms", None)
    assert at(check(counter, [event("Flag", even=1)])) == ("diverges", 1)


def test_model_values_are_written_by_name() -> None:
    spec = truth("Election", "durable")
    voted = {**event("Vote", n="n2", c="n1"), "state": {"voted": {"n2": "n1", "n3": "None"}}}
    events = [event("Timeout", n="n1"), voted, {**event("Lead", n="n1"), "state": {"leaders": {"#set": [[1, "n1"]]}}}]
    assert at(check(spec, events)) == ("conforms", None)
    assert at(check(spec, [event("Timeout", n="n9")])) == ("diverges", 1)


RECORDS = """EXTENDS Naturals
VARIABLE got
Messages == [kind : {"ask", "tell"}, from : {1, 2}]
Init == got = {}
Receive == \\E m \\in Messages : m.kind = "ask" /\\ got' = got \\union {m}
Next == Receive
Few == \\A m \\in got : m.from = 1"""


def test_a_record_parameter_may_be_given_in_part(make_spec: Make) -> None:
    spec = make_spec(RECORDS, "INIT Init NEXT Next INVARIANT Few")
    assert at(check(spec, [event("Receive", m={"kind": "ask"})])) == ("conforms", None)
    assert at(check(spec, [event("Receive", m={"from": 2})])) == ("violates", 1)
    assert at(check(spec, [event("Receive", m={"from": 2, "kind": "tell"})])) == ("diverges", 1)
    assert at(check(spec, [event("Receive", m={"size": 2})])) == ("diverges", 1)
    # Inside a set an object is the whole record.
    assert at(check(spec, [{"action": "Receive", "state": {"got": {"#set": [{"from": 1}]}}}])) == ("diverges", 1)


def test_an_event_may_name_a_group_of_actions() -> None:
    conn = truth("Conn", "all")
    assert at(check(conn, [event("Client"), event("Server"), event("Client")])) == ("conforms", None)
    assert at(check(conn, [event("Server")])) == ("diverges", 1)
    sent = [event("Open"), event("Accept"), event("Established"), event("Client", m="a")]
    assert at(check(conn, [*sent, event("Recv", m="a")])) == ("conforms", None)
    assert at(check(conn, [*sent, event("Recv", m="b")])) == ("diverges", 5)


def test_a_group_may_be_hidden() -> None:
    verdict = check(truth("Conn", "all"), [event("Established")], hidden=["Client", "Server"], hidden_max=2)
    assert (verdict.verdict, verdict.hidden_steps) == ("conforms", 2)


def test_a_formal_parameter_works_beside_the_name_bound_in_next() -> None:
    """Next binds ``r``, the definitions call it ``rm``."""
    spec = truth("TwoPhase", "ok")
    for name in ("r", "rm"):
        events = [event("Prepare", **{name: "r1"}), event("RcvPrepared", **{name: "r1"})]
        assert at(check(spec, events)) == ("conforms", None)
        events[1] = event("RcvPrepared", **{name: "r2"})
        assert at(check(spec, events)) == ("diverges", 2)
    # Given under both names, both must hold.
    assert at(check(spec, [event("Prepare", r="r1", rm="r2")])) == ("diverges", 1)


# --- order ----------------------------------------------------------------------------------------------------------


def test_with_order_emitter_nothing_holds_between_emitters() -> None:
    spec = truth("BoundedBuffer", "ok")
    events = [
        {**event("Get", u="x"), "emitter": "consumer", "seq": 1},
        {**event("Put", u="y", v=1), "emitter": "producer", "seq": 1},
    ]
    assert at(check(spec, events, order="emitter")) == ("conforms", None)
    assert at(check(spec, events)) == ("diverges", 1)


def test_with_order_emitter_seq_orders_an_emitters_events_whatever_their_lines() -> None:
    spec = truth("BoundedBuffer", "ok")
    events = [
        {**event("Get", u="x"), "emitter": "one", "seq": 2},
        {**event("Put", u="y", v=1), "emitter": "one", "seq": 1},
    ]
    assert at(check(spec, events, order="emitter")) == ("conforms", None)
    events[0]["seq"], events[1]["seq"] = 1, 2
    assert at(check(spec, events, order="emitter")) == ("diverges", 1)


def test_with_order_emitter_at_counts_events_in_the_order_that_goes_furthest() -> None:
    """The consumer alone fails at once; the producer's two events go well before it must fail."""
    spec = truth("BoundedBuffer", "ok")
    events = [{**event("Peek", v=3), "emitter": "consumer", "seq": 1}]
    events += [{**event("Put", u="x", v=1), "emitter": "producer", "seq": seq} for seq in (1, 2)]
    assert at(check(spec, events, order="emitter")) == ("diverges", 3)


def test_with_order_total_seq_is_no_order(counter: Spec) -> None:
    events = [{**event("Tick"), "emitter": "a", "seq": 2}, {**event("Reset"), "emitter": "a", "seq": 1}]
    assert at(check(counter, events)) == ("conforms", None)


def test_events_of_the_lanes_fault_and_emitter_are_no_steps(counter: Spec) -> None:
    events = [{"action": "EmitterStart", "lane": "emitter"}, event("Tick"), {"action": "Kill", "lane": "fault"}]
    assert at(check(counter, events)) == ("conforms", None)


# --- loss (through the command, which counts the numbers) -----------------------------------------------------------


def command(folder: Path, events: list[dict[str, Json]], *options: str, config: str = CONFIG) -> dict[str, Json]:
    (folder / "C.tla").write_text(f"---- MODULE C ----\n{COUNTER}====\n", encoding="utf-8")
    (folder / "C.cfg").write_text(config, encoding="utf-8")
    log = folder / "log.jsonl"
    log.write_text("".join(f"{json.dumps(one)}\n" for one in events), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(folder / "C.tla"), str(log), "--json", *options])
    found: dict[str, Json] = json.loads(result.stdout)
    assert result.exit_code == found["exit_code"]
    return found


def numbered(actions: list[dict[str, Json]], seqs: list[int]) -> list[dict[str, Json]]:
    return [{**one, "emitter": "w", "seq": seq} for one, seq in zip(actions, seqs, strict=True)]


def test_a_gap_is_filled_with_what_explains_the_events_and_the_verdict_says_so(tmp_path: Path) -> None:
    """Were the two records that are missing ticks, event 2 would be right."""
    found = command(tmp_path, numbered([event("Tick"), event("Read", v=3)], [1, 4]))
    assert (found["verdict"], found["exit_code"]) == ("conforms", 0)
    assert found["ledger"]["gaps"] == [{"emitter": "w", "from": 2, "to": 3}]
    assert any("w lacks seq 2-3" in line for line in found["assumptions"])


def test_a_gap_that_no_filling_makes_good_changes_nothing(tmp_path: Path) -> None:
    """One record is missing, and two would be needed. Missing records do not count in ``at``."""
    found = command(tmp_path, numbered([event("Tick"), event("Read", v=3)], [1, 3]))
    assert (found["verdict"], found["findings"][0]["at"]) == ("diverges", 2)


def test_a_gap_of_which_some_fillings_break_an_invariant_is_inconclusive(tmp_path: Path) -> None:
    """The missing record may have been the sixth tick, which breaks Low, or nothing."""
    found = command(tmp_path, numbered([*[event("Tick")] * 5, event("Reset")], [1, 2, 3, 4, 5, 7]))
    assert (found["verdict"], found["exit_code"]) == ("inconclusive", 3)
    assert found["undecided_by_reason"] == {"gap": 1}
    assert "w lacks seq 6" in found["findings"][0]["reason"]


def test_a_gap_of_which_every_filling_that_explains_the_events_breaks_an_invariant_violates(tmp_path: Path) -> None:
    found = command(tmp_path, numbered([*[event("Tick")] * 5, event("Tick")], [1, 2, 3, 4, 5, 7]))
    assert found["verdict"] == "inconclusive"  # a Reset may be missing
    found = command(tmp_path, numbered([*[event("Tick")] * 5, event("Read", v=6)], [1, 2, 3, 4, 5, 7]))
    assert (found["verdict"], found["findings"][0]["at"]) == ("violates", 6)


def test_probes_begin_at_1(tmp_path: Path) -> None:
    found = command(tmp_path, numbered([event("Tick")], [2]))
    assert found["ledger"]["gaps"] == [{"emitter": "w", "from": 1, "to": 1}]
    assert any("w lacks seq 1" in line for line in found["assumptions"])


@pytest.mark.parametrize(
    ("settling", "word"), [([event("Tick")] * 6, "violates"), ([event("Read", v=3)], "diverges")], ids=str
)
def test_a_verdict_settled_before_a_gap_stands(tmp_path: Path, settling: list[dict[str, Json]], word: str) -> None:
    seqs = [*range(1, len(settling) + 1), len(settling) + 3]
    found = command(tmp_path, numbered([*settling, event("Tick")], seqs))
    assert (found["verdict"], found["findings"][0]["at"]) == (word, len(settling))
    assert found["ledger"]["gaps"] != []


def test_with_order_emitter_no_verdict_is_settled_before_a_gap(tmp_path: Path) -> None:
    """Another emitter's missing records may come first."""
    events = [{**event("Read", v=3), "emitter": "v", "seq": 1}, *numbered([event("Tick")], [3])]
    assert command(tmp_path, events, "--order", "emitter")["verdict"] == "conforms"
    assert command(tmp_path, events[:1], "--order", "emitter")["verdict"] == "diverges"


def test_with_order_emitter_the_order_of_the_lines_changes_nothing_but_their_places(tmp_path: Path) -> None:
    events = numbered([event("Tick"), event("Tick"), event("Read", v=3)], [1, 2, 3])
    events += [{**event("Reset"), "emitter": "v", "seq": 1}]
    found = command(tmp_path, events, "--order", "emitter")
    turned = command(tmp_path, events[::-1], "--order", "emitter")
    for one in (found, turned):
        del one["inputs"]
        for finding in one["findings"]:
            del finding["event"]["source"]
    assert found == turned
    assert found["verdict"] == "diverges"


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        (event("Tik"), "event 2 is Tik", "Tick"),
        (event("tick"), "event 2 is tick", "Tick"),
        (event("Low"), "event 2 is Low", None),
        (event("Read", val=1), "parameter val", "v"),
        (event("Tick", v=1), "parameter v", None),
    ],
    ids=str,
)
def test_an_action_or_a_parameter_that_the_spec_lacks_is_refused_with_the_nearest_name(
    tmp_path: Path, counter: Spec, wrong: dict[str, Json], message: str, hint: str | None
) -> None:
    with pytest.raises(tla.TlaError, match=message) as caught:
        check(counter, [event("Tick"), wrong])
    assert hint is None or hint in (caught.value.hint or "")
    found = command(tmp_path, [event("Tick"), wrong])
    assert (found["schema"], found["exit_code"]) == ("specwatch.error/1", 4)
    [error] = found["errors"]
    assert (error["file"], error["line"]) == (str(tmp_path / "log.jsonl"), 2)
    assert message in error["message"]
    assert hint is None or hint in error["hint"]


def test_a_misspelt_action_is_refused_also_after_the_event_that_settles(counter: Spec) -> None:
    with pytest.raises(tla.TlaError, match="event 2 is Tik"):
        check(counter, [event("Read", v=5), event("Tik")])


def test_an_error_inside_the_spec_names_the_event_and_the_values(make_spec: Make) -> None:
    spec = make_spec(
        "EXTENDS Naturals VARIABLE n\nInit == n = 0\nUp == n' = n + 1\nCut == n' = n + \"one\"\nNext == Up \\/ Cut"
    )
    with pytest.raises(tla.TlaEvaluationError, match="event 2, Cut") as caught:
        check(spec, [event("Up"), event("Cut")])
    assert caught.value.line == 5
    # A step that is not taken is not evaluated.
    assert at(check(spec, [event("Up"), event("Up")])) == ("conforms", None)


def test_a_hidden_action_that_the_spec_lacks_is_refused_with_the_nearest_name(counter: Spec) -> None:
    with pytest.raises(tla.TlaError, match="hidden: the spec has no action Tik") as caught:
        check(counter, [], hidden=["Tik"])
    assert "Tick" in (caught.value.hint or "")


def test_a_hidden_action_cannot_be_terminal(tmp_path: Path) -> None:
    binding = tmp_path / "binding.toml"
    binding.write_text('spec = "C.tla"\nterminal = ["Reset"]\n[hidden.Reset]\n', encoding="utf-8")
    found = command(tmp_path, [event("Tick")], "--binding", str(binding))
    assert (found["schema"], found["exit_code"]) == ("specwatch.error/1", 4)
    assert "Reset is hidden" in found["errors"][0]["message"]


# --- strict and require ---------------------------------------------------------------------------------------------


def test_strict_allows_no_hidden_step(tmp_path: Path, counter: Spec) -> None:
    events = [event("Read", v=1)]
    assert at(check(counter, events, hidden=["Tick"])) == ("conforms", None)
    assert at(check(counter, events, hidden=["Tick"], strict=True)) == ("diverges", 1)
    assert command(tmp_path, events, "--hidden", "Tick", "--strict")["verdict"] == "diverges"


def test_a_hidden_action_may_be_logged_too(counter: Spec) -> None:
    verdict = check(counter, [event("Tick"), event("Read", v=2)], hidden=["Tick"])
    assert (verdict.verdict, verdict.hidden_steps, verdict.coverage["Tick"]) == ("conforms", 1, 2)


def test_what_is_required_and_never_happened_makes_a_run_vacuous(counter: Spec) -> None:
    verdict = check(counter, [event("Tick")], require=["Tick", "Reset"])
    assert (verdict.verdict, verdict.exit_code) == ("vacuous", 3)
    assert verdict.reason is not None
    assert "Reset" in verdict.reason
    assert "Tick" not in verdict.reason
    assert verdict.require == [("Tick", True), ("Reset", False)]
    assert check(counter, [event("Tick"), event("Reset")], require=["Tick", "Reset"]).verdict == "conforms"


def test_a_required_hidden_action_counts_only_where_nothing_is_explained_without_it(counter: Spec) -> None:
    needed = check(counter, [event("Read", v=1)], hidden=["Tick"], require=["Tick"])
    assert (needed.verdict, needed.require) == ("conforms", [("Tick", True)])
    unneeded = check(counter, [event("Read", v=0)], hidden=["Tick"], require=["Tick"])
    assert (unneeded.verdict, unneeded.require) == ("vacuous", [("Tick", False)])
    either = check(counter, [event("Read", v=4)], hidden=["Tick", "Leap"], require=["Leap"])
    assert (either.verdict, either.require) == ("vacuous", [("Leap", False)])


def test_what_is_worse_than_an_unmet_requirement_stays(counter: Spec) -> None:
    verdict = check(counter, [event("Read", v=1)], require=["Reset"])
    assert (verdict.verdict, verdict.exit_code) == ("diverges", 1)


# --- what a config says ---------------------------------------------------------------------------------------------


def test_a_constraint_bounds_exploration_only_unless_it_is_kept(tmp_path: Path) -> None:
    events = [event("Tick"), event("Tick"), event("Tick")]
    found = command(tmp_path, events, config=f"{CONFIG} CONSTRAINT Short")
    assert found["verdict"] == "conforms"
    assert any("CONSTRAINT Short is ignored" in line for line in found["assumptions"])
    found = command(tmp_path, events, "--keep-constraints", config=f"{CONFIG} CONSTRAINT Short")
    assert (found["verdict"], found["findings"][0]["at"]) == ("diverges", 2)


def test_a_false_assume_is_refused(make_spec: Make) -> None:
    spec = make_spec("EXTENDS Naturals VARIABLE n\nASSUME 1 = 2\nInit == n = 0\nNext == n' = n")
    with pytest.raises(tla.TlaError, match="ASSUME"):
        check(spec, [event("Next")])
