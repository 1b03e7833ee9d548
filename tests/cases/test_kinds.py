"""The kinds of fault that the cases are of, beyond the one input: other ids, workers, counts, intervals and orders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.case_files import EPOCH, Native, as_lines, inserted, judged, told_of, word

from specwatch.checker.behaviour import Scope
from specwatch.cli.app import app

few = settings(max_examples=15, deadline=None)


def log(*steps: str) -> list[Native]:
    """Native events from words like ``Pickup t=T w=A @3600.5``; without a time, a second after the one before."""
    events: list[Native] = []
    for step in steps:
        action, *parts = step.split()
        time = events[-1]["time"] + 1 if events else EPOCH
        params: dict[str, Any] = {}
        for part in parts:
            name, _, value = part.partition("=")
            if part.startswith("@"):
                time = EPOCH + type(EPOCH)(part[1:])
            else:
                params[name] = {"true": True, "false": False}.get(value, int(value) if name in ("a", "o") else value)
        event: Native = {"action": action, "params": params, "time": time}
        if "w" in params:
            event["emitter"] = params["w"]
        events.append(event)
    return events


def numbered(events: Sequence[Native], emitter: str = "worker") -> list[Native]:
    """The events of one emitter that numbers its records."""
    return [{**event, "emitter": emitter, "seq": number} for number, event in enumerate(events, 1)]


GUARDS = {"faulty": "violates {} NoDoubleExecution", "idempotent": "diverges {}"}
"""What a second execution is to a model without a guard, and to one with."""

BY_CONNECTION = ("Publish", "Start", "Check", "Requeue")
"""A broker without a timeout: only a lost connection brings a message back."""

SCOPES: list[Scope] = ["run", "key"]

both_modes = pytest.mark.parametrize("mode", GUARDS)
TARGETS = ["celery", "queue"]
both_targets = pytest.mark.parametrize("target", TARGETS)


# --- any history of redeliveries ------------------------------------------------------------------------------------


@dataclass
class History:
    """A run as a queue that delivers at least once lets it happen, with what is told of it, and who did what twice."""

    told: list[str] = field(default_factory=list)
    executions: list[int] = field(default_factory=list)
    """The numbers of the events that told of an execution."""
    redelivered: int = 0


@st.composite
def histories(draw: st.DrawFn, task: str = "T") -> History:
    """One message of one task: received any number of times by any worker, executed by any of its copies."""
    history = History()
    held: list[str] = []
    executed: list[str] = []
    done: list[str] = []
    received = 0
    for _ in range(draw(st.integers(1, 10))):
        able = ["Pickup"] * (received < 4) + ["Execute"] * bool(held) + ["Done"] * bool(executed)
        if not able:
            break
        action = draw(st.sampled_from(able))
        if action == "Pickup":
            worker = draw(st.sampled_from("AB"))
            held.append(worker)
            history.redelivered += received > 0
            received += 1
        elif action == "Execute":
            worker = held.pop(draw(st.integers(0, len(held) - 1)))
            executed.append(worker)
            history.executions.append(len(history.told) + 1)
        else:
            worker = executed.pop(draw(st.integers(0, len(executed) - 1)))
            done.append(worker)
        history.told.append(f"{action} t={task} w={worker}")
    # Once a copy is acked, its message comes no more.
    history.told += [f"Ack t={task} w={worker}" for worker in done if draw(st.booleans())]
    return history


@few
@given(
    history=histories(),
    target=st.sampled_from(TARGETS),
    mode=st.sampled_from(sorted(GUARDS)),
    scope=st.sampled_from(SCOPES),
)
def test_one_message_executes_once_however_often_it_comes(
    target: str, mode: str, scope: Scope, history: History
) -> None:
    """The second execution decides, in whichever worker and at whichever distance; receipts alone never do."""
    found = judged(target, mode, log(*history.told), scope=scope)
    if len(history.executions) < 2:
        assert found.verdict == "conforms"
    else:
        assert word(found) == GUARDS[mode].format(history.executions[1])


@few
@given(history=histories(), target=st.sampled_from(TARGETS))
def test_each_receipt_after_the_first_is_one_redelivery(target: str, history: History) -> None:
    """What is not logged is inferred and counted: a publish, a redelivery a receipt, a start an execution."""
    found = judged(target, "faulty", log(*history.told))
    if found.verdict == "conforms":
        assert found.hidden_steps == 1 + history.redelivered + len(history.executions)
    without = judged(target, "faulty", log(*history.told), hidden=["Publish", "Start"])
    second = [number for number, step in enumerate(history.told, 1) if step.startswith("Pickup")][1:2]
    assert word(without) == (f"diverges {second[0]}" if second else "conforms")


@settings(max_examples=8, deadline=None)
@given(data=st.data(), tasks=st.integers(2, 3))
def test_tasks_among_each_other_are_judged_as_each_alone(data: st.DataObject, tasks: int) -> None:
    """In scope key each task has the verdict of its own events; in scope run the earliest finding is the run's."""
    parts = [data.draw(histories(task=f"T{number}")) for number in range(tasks)]
    order = data.draw(st.permutations([number for number, part in enumerate(parts) for _ in part.told]))
    left = [iter(part.told) for part in parts]
    told = log(*(next(left[number]) for number in order))
    second = {f"T{n}": part.executions[1] for n, part in enumerate(parts) if len(part.executions) > 1}
    by_key = judged("celery", "faulty", told, scope="key")
    assert {finding.key: told_of(finding) for finding in by_key.findings} == {
        task: GUARDS["faulty"].format(at) for task, at in second.items()
    }
    places = [
        [place for place, event in enumerate(told, 1) if event["params"]["t"] == task][at - 1]
        for task, at in second.items()
    ]
    run = judged("celery", "faulty", told, scope="run")
    assert word(run) == (GUARDS["faulty"].format(min(places)) if places else "conforms")


# --- receipts only --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("receipts", "workers"),
    [(1, [""]), (2, [" w=A"]), (25, [""]), (4, [" w=A", " w=B"]), (6, [" w=A", " w=B", " w=C"])],
)
def test_receipts_alone_conform_and_tell_how_many_redeliveries_there_were(receipts: int, workers: list[str]) -> None:
    told = log(*(f"Pickup t=T{workers[n % len(workers)]} @{3600.3 * n:.1f}" for n in range(receipts)))
    found = judged("celery", "faulty", told)
    assert (found.verdict, found.hidden_steps) == ("conforms", receipts)  # a publish, and a timeout each but the first


TIMED = """
[key]
param = "t"
[constants]
Tasks = { keys = true }
Workers = { values = "w" }
[hidden.Publish]
[hidden.VisTimeout]
after = "Pickup"
min = "visibility_timeout"
[settings]
visibility_timeout = "3600s"
"""


@pytest.mark.parametrize(
    ("steps", "timeout", "expected"),
    [
        # a sweep comes up to 100 s late, and clocks differ by a second
        (("Pickup t=T @0", "Pickup t=T @3685.2", "Pickup t=T @7285.8"), "3600", "conforms"),
        (("Pickup t=T @0", "Pickup t=T @3600.1"), "3600", "conforms"),
        (("Pickup t=T @0", "Pickup t=T @3500"), "3600", "diverges 2"),
        # each timeout is counted from the last receipt
        (("Pickup t=T @0", "Pickup t=T @3685.2", "Pickup t=T @7000"), "3600", "diverges 3"),
        (("Pickup t=T @0", "Pickup t=U @3000", "Pickup t=T @3700", "Pickup t=U @3900"), "3600", "diverges 4"),
        (("Pickup t=T @0", "Pickup t=T @3685.2"), "7200", "diverges 2"),
        # what the worker itself puts back comes at once
        (("Pickup t=T w=A @0", "RestoreOnShutdown t=T w=A @5", "Pickup t=T w=B @6"), "3600", "conforms"),
    ],
)
def test_with_a_known_timeout_no_redelivery_comes_before_it(
    steps: tuple[str, ...], timeout: str, expected: str, tmp_path: Path
) -> None:
    told, binding = tmp_path / "log.jsonl", tmp_path / "timed.toml"
    told.write_bytes(as_lines(log(*steps)))
    binding.write_text(TIMED)
    arguments = ["check", "celery", str(told), "--binding", str(binding), "--set", f"visibility_timeout={timeout}"]
    result = CliRunner().invoke(app, [*arguments, "--order", "total", "--json"])
    found = json.loads(result.stdout)
    at = [str(finding["at"]) for finding in found["findings"]]
    assert " ".join([found["verdict"], *at]) == expected


@pytest.mark.parametrize("receipts", [2, 5])
def test_with_every_timeout_logged_an_unexplained_receipt_diverges(receipts: int) -> None:
    told = log(*["Publish t=T", *["Pickup t=T"] * receipts])
    assert word(judged("celery", "faulty", told, hidden=[])) == "diverges 3"
    told = log("Publish t=T", *["Pickup t=T", "VisTimeout t=T"] * receipts)
    assert word(judged("celery", "faulty", told, hidden=[])) == "conforms"


@pytest.mark.parametrize("case", ["receipts", "executions"])
def test_doubled_records_are_no_second_receipts(case: str) -> None:
    """A doubled log handler gives each record twice under one number: three receipts stay three."""
    last = {"receipts": "Pickup t=T", "executions": "Execute t=T"}[case]
    once = numbered(log("Pickup t=T @0", "Pickup t=T @7495.825", f"{last} @11096.334"))
    twice = [event for event in once for _ in range(2)]
    found, doubled = judged("celery", "faulty", once), judged("celery", "faulty", twice)
    assert (doubled.verdict, doubled.hidden_steps) == (found.verdict, found.hidden_steps) == ("conforms", 3)
    assert (doubled.ledger.read, doubled.ledger.duplicate) == (6, 3)


# --- copies that waited for one ETA ---------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [2, 4])
@pytest.mark.parametrize("workers", ["A", "AB"])
@pytest.mark.parametrize("finish", ["each", "at the end"])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [*GUARDS.items(), ("early", GUARDS["faulty"]), ("check-then-insert", GUARDS["faulty"])],
)
def test_all_copies_run_at_the_eta(copies: int, workers: str, finish: str, mode: str, expected: str) -> None:
    """All were received before any ran, so that a guard that only looks may have looked for all of them."""
    names = [workers[n % len(workers)] for n in range(copies)]
    steps = [f"Pickup t=T w={name} @{3600.9 * n:.1f}" for n, name in enumerate(names)]
    if finish == "each":
        steps += [f"{action} t=T w={name}" for name in names for action in ("Execute", "Done")]
    else:
        steps += [f"{action} t=T w={name}" for action in ("Execute", "Done") for name in names]
    at = [number for number, step in enumerate(steps, 1) if step.startswith("Execute")][1]
    assert word(judged("celery", mode, log(*steps))) == expected.format(at)


def test_an_eta_task_that_runs_once_conforms_whichever_copy_ran() -> None:
    receipts = [f"Pickup t=T w={worker}" for worker in "ABC"]
    for worker in "ABC":
        told = log(*receipts, f"Execute t=T w={worker}", f"Done t=T w={worker}")
        assert judged("celery", "faulty", told).verdict == "conforms"
        assert judged("celery", "idempotent", told).verdict == "conforms"


# --- a body longer than the timeout ---------------------------------------------------------------------------------


@both_targets
@both_modes
@pytest.mark.parametrize("receipts", [1, 4])
@pytest.mark.parametrize("other", ["A", "B"])
def test_a_long_body_violates_when_a_further_copy_runs_and_not_before(
    target: str, mode: str, receipts: int, other: str
) -> None:
    again = [f"Pickup t=T w={other} @{3670.1 * n:.1f}" for n in range(1, receipts + 1)]
    told = log("Pickup t=T w=A @0", "Execute t=T w=A @0.019", *again, f"Done t=T w=A @{3700 * (receipts + 1)}")
    assert judged(target, mode, told).verdict == "conforms"
    told += [{"action": "Execute", "params": {"t": "T", "w": other}, "time": told[-1]["time"] + 1}]
    assert word(judged(target, mode, told)) == GUARDS[mode].format(len(told))


def test_a_second_success_without_its_begin_in_the_log_is_a_second_execution() -> None:
    """The log's ``succeeded`` lines are all that it has of executions."""
    told = log("Pickup t=T", "Pickup t=T @3670", "Done t=T @12826", "Done t=T @16400")
    may = ["Publish", "Start", "Execute", "VisTimeout"]
    assert judged("celery", "faulty", told[:3], hidden=may).verdict == "conforms"
    assert word(judged("celery", "faulty", told, hidden=may)) == "violates 4 NoDoubleExecution"
    assert word(judged("celery", "idempotent", told, hidden=[*may, "Check"])) == "diverges 4"


# --- by message id, or by what the work is --------------------------------------------------------------------------


@pytest.mark.parametrize("messages", [2, 4])
@pytest.mark.parametrize("acked", [False, True])
@pytest.mark.parametrize("workers", ["A", "AB"])
def test_messages_about_one_work_are_duplicates_only_by_the_work(messages: int, acked: bool, workers: str) -> None:
    """Different ids are different messages, be the first settled or not when the second comes."""

    def told(names: Sequence[str]) -> list[Native]:
        life = ["Pickup", "Execute", "Done", *["Ack"] * acked]
        holders = [workers[n % len(workers)] for n in range(messages)]
        return log(*(f"{action} t={t} w={w}" for t, w in zip(names, holders, strict=True) for action in life))

    ids, work = [f"id-{n}" for n in range(messages)], ["menu#87"] * messages
    second = 2 + 3 + acked
    for target in ("celery", "queue"):
        for mode in GUARDS:
            assert judged(target, mode, told(ids)).verdict == "conforms"
    assert word(judged("queue", "work", told(work))) == GUARDS["faulty"].format(second)
    assert word(judged("queue", "work-idempotent", told(work))) == GUARDS["idempotent"].format(second)


def test_one_id_that_was_acked_and_comes_again_is_no_redelivery() -> None:
    """Where no timeout can have struck before the ack: a settled message comes no more, and another of the work may."""
    told = log(*[f"{action} t=T" for _ in range(2) for action in ("Pickup", "Execute", "Done", "Ack")])
    assert word(judged("queue", "faulty", told, hidden=BY_CONNECTION)) == "diverges 5"
    assert word(judged("queue", "faulty", told)) == "violates 6 NoDoubleExecution"
    assert word(judged("queue", "work", told, hidden=BY_CONNECTION)) == "violates 6 NoDoubleExecution"


def test_a_work_that_was_published_twice_and_ran_once_conforms() -> None:
    told = log("Publish t=T", "Publish t=T", "Pickup t=T", "Execute t=T", "Pickup t=T", "Skip t=T", "Done t=T")
    assert judged("queue", "work-idempotent", told).verdict == "conforms"
    assert word(judged("queue", "idempotent", told)) == "diverges 2"  # one message has an id


@both_targets
def test_the_same_id_executes_twice_by_either_key(target: str) -> None:
    told = log("Pickup t=T w=A", "Pickup t=T w=B", "Execute t=T w=A", "Execute t=T w=B")
    assert word(judged(target, "faulty", told)) == "violates 4 NoDoubleExecution"
    assert word(judged("queue", "work", told)) == "violates 4 NoDoubleExecution"


# --- retries --------------------------------------------------------------------------------------------------------

WHOLE = ("Pickup t=T", "Start t=T", "Execute t=T", "Done t=T")


@both_targets
@both_modes
@pytest.mark.parametrize("retries", [1, 2])
@pytest.mark.parametrize("executes", [False, True])
def test_each_attempt_may_execute_once(target: str, mode: str, retries: int, executes: bool) -> None:
    """A retry buys one more execution, and a redelivery after it none."""
    told = ["Publish t=T"]
    for attempt in range(retries):
        life = ["Pickup", "Start", *["Execute"] * executes, "Retry", "Ack"]
        told += [f"{action} t=T w=A a={attempt}" for action in life]
    told += [f"{action} t=T w=B a={retries}" for action in ("Pickup", "Start", "Execute", "Done")]
    assert judged(target, mode, log(*told)).verdict == "conforms"
    told += [f"{action} t=T w=A a={retries}" for action in ("Pickup", "Start", "Execute")]
    assert word(judged(target, mode, log(*told))) == GUARDS[mode].format(len(told))


@both_targets
@both_modes
def test_retries_without_their_number_buy_as_many_executions(target: str, mode: str) -> None:
    """Where no line tells the attempt, two attempts may still execute no more than twice."""
    told = ["Pickup t=T", "Execute t=T", "Retry t=T", *WHOLE]
    assert judged(target, mode, log(*told)).verdict == "conforms"
    told += ["Pickup t=T", "Execute t=T"]
    assert word(judged(target, mode, log(*told))) == GUARDS[mode].format(len(told))


@both_targets
def test_a_retry_of_one_copy_does_not_excuse_the_other(target: str) -> None:
    """Two copies of attempt 0; one retries, and the attempt after it runs. Then the other copy runs too: by its
    attempt that is one execution each, and a third is one too many."""
    told = log(
        "Pickup t=T w=A a=0", "Pickup t=T w=B a=0", "Start t=T w=A a=0", "Retry t=T w=A a=0", "Pickup t=T w=A a=1"
    )
    told += log("Execute t=T w=A a=1", "Execute t=T w=B a=0", "Pickup t=T w=C a=1", "Execute t=T w=C a=1")
    for event in told:
        event.pop("time")
    assert word(judged(target, "faulty", told)) == "violates 9 NoDoubleExecution"


# --- a broker that restarts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", range(1, 5))
def test_a_lost_connection_brings_back_what_was_not_settled(lost: int) -> None:
    """Wherever it is lost between receipt and ack: before the body begins, while it runs, or before its ack."""
    life = ["Pickup t=T", "Start t=T", "Execute t=T", "Done t=T"]
    told = [*life[:lost], "ConnLost", "ConnUp", "Pickup t=T r=true", *life[lost:], "AckFail t=T"]
    found = judged("queue", "faulty", log(*told), hidden=BY_CONNECTION)
    assert found.verdict == "conforms"
    told += ["Execute t=T"]
    for mode, expected in GUARDS.items():
        found = judged("queue", mode, log(*told), hidden=BY_CONNECTION)
        assert word(found) == expected.format(len(told))
        assert inserted(found)["Requeue"] == 1


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # nothing was lost, or it was settled before
        (("Pickup t=T", "Pickup t=T"), "diverges 2"),
        (("Pickup t=T", "ConnUp", "Pickup t=T"), "diverges 3"),
        ((*WHOLE, "Ack t=T", "ConnLost", "Pickup t=T"), "diverges 7"),
        # what was put back says so
        (("Pickup t=T", "ConnLost", "Pickup t=T r=false"), "diverges 3"),
        (("Pickup t=T r=true",), "diverges 1"),
        # another worker's connection
        (("Pickup t=T w=A", "ConnLost w=B", "Pickup t=T w=B"), "diverges 3"),
        (("Pickup t=T w=A", "ConnLost w=A", "Pickup t=T w=B"), "conforms"),
        # each loss brings back each message once
        (("Pickup t=T", "Pickup t=U", "ConnLost", "Pickup t=T", "Pickup t=U"), "conforms"),
        (("Pickup t=T", "ConnLost", "Pickup t=T", "Pickup t=T"), "diverges 4"),
        (("Pickup t=T", "ConnLost", "Pickup t=T", "ConnLost", "Pickup t=T"), "conforms"),
        # the old connection's ack does not settle what came over the new one
        ((*WHOLE, "ConnLost", "Pickup t=T", "AckFail t=T", "ConnLost", "Pickup t=T"), "conforms"),
        # an ack that failed is the first sign of a loss
        ((*WHOLE, "AckFail t=T", "Pickup t=T r=true"), "conforms"),
        ((*WHOLE, "AckFail t=T", "Pickup t=T", "Execute t=T"), "violates 7 NoDoubleExecution"),
        (("Pickup t=T", "AckFail t=T"), "diverges 2"),
        # a worker that dies leaves its message to the next, and its effect too
        (("Pickup t=T w=A", "Crash w=A", "Pickup t=T w=B", "Execute t=T w=B"), "conforms"),
        (("Pickup t=T w=A", "Crash w=A", "Execute t=T w=A"), "diverges 3"),
        (("Pickup t=T w=A", "Execute t=T w=A", "Crash w=A", "Pickup t=T w=B", "Execute t=T w=B"),
         "violates 5 NoDoubleExecution"),
    ],
)  # fmt: skip
def test_what_a_lost_connection_explains(told: tuple[str, ...], expected: str) -> None:
    assert word(judged("queue", "faulty", log(*told), hidden=BY_CONNECTION)) == expected


def test_a_message_acked_before_its_worker_died_is_lost() -> None:
    """Unless a timeout struck before the ack, which then settled nothing."""
    told = log("Publish t=T", "Pickup t=T w=A", "Ack t=T w=A", "Start t=T w=A", "Crash w=A")
    assert word(judged("queue", "early", told, hidden=BY_CONNECTION)) == "violates 5 AckedWasExecuted"
    assert word(judged("queue", "early", told)) == "conforms"
    late = [event for event in told if event["action"] != "Ack"]
    assert word(judged("queue", "early", late, hidden=BY_CONNECTION)) == "conforms"


# --- two workers at one time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    ("mode", "expected"), [*GUARDS.items(), ("check-then-insert", "violates {} NoDoubleExecution")]
)
def test_equal_times_are_no_order(workers: int, mode: str, expected: str) -> None:
    """All receive, one executes, and whoever is next is one too many, in whatever order the lines stand. A guard that
    looks first does not help those that look at one time.
    """
    one = [f"{action} t=T w=worker-{n} @0" for n in range(workers) for action in ("Pickup", "Execute")]
    # With more workers than two, the first and the last order tell as much as all of them.
    orders = list(permutations(range(workers)))
    found = [
        judged("queue", mode, log(*(one[2 * n + k] for n in order for k in range(2))), order="time", skew="0s")
        for order in (orders[0], orders[-1])
    ]
    assert [word(verdict) for verdict in found] == [expected.format(workers + 2)] * 2
    assert inserted(found[0]) == inserted(found[1])


def test_workers_that_are_further_apart_than_their_clocks_are_in_order() -> None:
    """Who looks for the row a while after it was written finds it; with clocks that may differ by more, who knows."""
    told = log("Pickup t=T w=A @0", "Execute t=T w=A @0.1", "Pickup t=T w=B @10", "Execute t=T w=B @10.1")
    assert word(judged("queue", "check-then-insert", told, order="time", skew="1s")) == "diverges 4"
    assert word(judged("queue", "check-then-insert", told, order="time", skew="60s")) == "violates 4 NoDoubleExecution"
    assert word(judged("queue", "faulty", told, order="time", skew="1s")) == "violates 4 NoDoubleExecution"


@few
@given(data=st.data(), history=histories())
def test_two_workers_files_in_any_order_give_one_verdict(data: st.DataObject, history: History) -> None:
    """Each worker's lines stay in their order; how two workers' lines lie among each other is chance."""
    events = log(*history.told)
    lanes = [[event for event in events if event["emitter"] == worker] for worker in "AB"]
    shuffled = data.draw(st.permutations([number for number, lane in enumerate(lanes) for _ in lane]))
    left = [iter(lane) for lane in lanes]
    other = [next(left[number]) for number in shuffled]
    first, second = (judged("queue", "faulty", one, order="time", skew="0s") for one in (events, other))
    assert (word(first), first.hidden_steps, inserted(first)) == (word(second), second.hidden_steps, inserted(second))
    assert word(first) == word(judged("queue", "faulty", events))


# --- no id at all ---------------------------------------------------------------------------------------------------

BY_ID = """
scope = "run"
[key]
param = "t"
from = "message_id"
[constants]
Tasks = { keys = true }
Workers = { values = "w" }
[[rule]]
match = { event = "Sending menu" }
actions = ["Pickup", "Execute"]
params = { t = "$message_id", w = "$thread" }
"""


def test_a_handlers_line_without_the_id_that_its_binding_counts_by_decides_nothing(tmp_path: Path) -> None:
    """What the line was about is not known: it may be another run of the message that was named, or one of another."""
    lines = [{"event": "Sending menu", "message_id": "m1", "thread": "a"}, {"event": "Sending menu", "thread": "b"}]
    log, binding = tmp_path / "log.jsonl", tmp_path / "by-id.toml"
    binding.write_text(BY_ID)
    verdicts = []
    for known in (lines[:1], lines, [{**line, "message_id": "m1"} for line in lines]):
        log.write_text("".join(json.dumps(line) + "\n" for line in known))
        arguments = ["check", "queue", str(log), "--binding", str(binding), "--hidden", "Publish,Start,VisTimeout"]
        document = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
        verdicts.append((document["verdict"], (document["reason"] or "").partition(":")[0]))
    assert verdicts == [("conforms", ""), ("inconclusive", "unparsed"), ("violates", "")]
