"""One contract over every report and every verdict, and golden files for what people and scripts read.

A golden file is changed by hand, knowingly: no option of pytest rewrites it.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import junitparser
import pytest

from specwatch.checker import report
from specwatch.checker.behaviour import Event, Gap, Input, Ledger, Source
from specwatch.checker.report import text
from specwatch.checker.verdict import (
    EXIT_CODES,
    WORST_FIRST,
    Behaviours,
    Conjunct,
    Explanation,
    Finding,
    HiddenStep,
    Kind,
    SpecUsed,
    Verdict,
    Word,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "report"
TASK = "7f3c2d1e-0000-4000-8000-000000000001"
OTHER = "9a01b2c3-0000-4000-8000-000000000002"
START = 1_893_492_000_000_000_000  # 2030-01-01T10:00:00Z
NO_BEHAVIOURS = dict.fromkeys(("total", "conforms", "violates", "diverges", "inconclusive", "vacuous"), 0)
ODD = 'a"b\\<&>]]>\x1b[31m\x00\u202e\ud800é漢\U0001f600\n'


def event(action: str, line: int, milliseconds: int, worker: int, task: str = TASK) -> Event:
    return Event(
        action=action,
        params={"t": task},
        key=task,
        emitter=f"worker-{worker}",
        seq=line,
        time=START + milliseconds * 1_000_000,
        source=Source(f"logs/worker-{worker}.log", line),
        extra={"hostname": "h1"},
    )


def violation() -> Verdict:
    events = [
        event("Pickup", 12, 120, 1),
        event("Execute", 13, 121, 1),
        event("Pickup", 20, 2180, 2),
        event("Execute", 21, 2181, 2),
    ]
    explanation = Explanation(
        summary="Execute made NoDoubleExecution false",
        conjuncts=[
            Conjunct(
                text="results[t] <= 1",
                file="specs/celery/CeleryRedis.tla",
                line=74,
                column=5,
                value="FALSE",
                values={f'results["{TASK}"]': "2"},
            )
        ],
        state_before={"results": f'("{TASK}" :> 1)'},
        state_change={f'results["{TASK}"]': ["1", "2"]},
    )
    finding = Finding(
        verdict="violates",
        run="r1",
        key=TASK,
        at=7,
        event=events[-1],
        action="Execute",
        invariant="NoDoubleExecution",
        hidden=[
            HiddenStep(before=2, action="Sweep"),
            HiddenStep(before=6, action="VisTimeout", params={"t": f'"{TASK}"'}),
        ],
        explanation=explanation,
        context=list(enumerate(events, 4)),
    )
    return Verdict(
        verdict="violates",
        exit_code=1,
        behaviours=Behaviours(total=3, violates=1, inconclusive=1, conforms=1),
        undecided_by_reason={"gap": 1},
        findings=[
            finding,
            Finding(verdict="inconclusive", run="r2", reason="gap: worker-2 lacks seq 4–5", at=3),
        ],
        hidden_steps=2,
        coverage={"Pickup": 4, "Execute": 3, "Retry": 0},
        ledger=Ledger(
            read=41,
            mapped=36,
            ignored={"chatter": 3},
            unmatched=1,
            unparsed=1,
            gaps=[Gap("worker-2", 4, 5)],
            unmatched_examples=['worker-1.log:3: {"event": "boot"}'],
            unparsed_examples=['worker-2.log:40: {"event'],
            unused_rules=["rule 7 (Retry)"],
        ),
        assumptions=["clocks differ by at most 1 s"],
        inputs=[Input("logs/worker-1.log", "00" * 32)],
        spec=SpecUsed(path="specs/celery/CeleryRedis.tla", sha256="11" * 32, config="CeleryRedis.faulty.cfg"),
        invariants=["NoDoubleExecution", "TypeOK"],
        require=[("Pickup", True), ("VisTimeout", False)],
    )


def divergence() -> Verdict:
    explanation = Explanation(
        summary="Ack is not possible: the task is not executed",
        conjuncts=[
            Conjunct(text="t \\in active", file="Q.tla", line=60, column=9, value="TRUE", values={"active": "{7}"}),
            Conjunct(text="results[t] > 0", file="Q.tla", line=61, column=9, value="FALSE", values={"results[7]": "0"}),
            Conjunct(text="active' = active \\ {t}", file="Q.tla", line=62, column=9, value="TRUE"),
        ],
        enabled_instead=["Execute(7)", "VisTimeout(7)"],
        legal_if="an Execute of 7 before it",
        state_before={"active": "{7}", "results": "(7 :> 0)"},
    )
    failing = Event(action="Ack", params={"t": 7}, source=Source("trace.jsonl", 3))
    return Verdict(
        verdict="diverges",
        exit_code=1,
        behaviours=Behaviours(total=1, diverges=1),
        findings=[Finding(verdict="diverges", at=3, event=failing, action="Ack", explanation=explanation)],
        ledger=Ledger(read=3, mapped=3),
        invariants=["TypeOK"],
        spec=SpecUsed(path="Q.tla", sha256="22" * 32, config=None),
    )


def bare(word: Word) -> Verdict:
    """A verdict of that word with nothing beside it."""
    behaviours = Behaviours(total=1)
    setattr(behaviours, word, 1)
    reason = {"inconclusive": "bound: --max-states 10 was reached", "vacuous": "no events"}.get(word)
    return Verdict(verdict=word, exit_code=EXIT_CODES[word], reason=reason, behaviours=behaviours)


def many() -> Verdict:
    """As many findings as are ever listed, of five stories, and more that are not listed."""
    findings = [
        Finding(verdict=WORST_FIRST[n % 4], key=f"{n:032x}", at=n, reason="gap: of one", invariant="A+B", action="Act")
        for n in range(100)
    ]
    counts = Behaviours(total=1000, violates=925, diverges=25, inconclusive=25, vacuous=25)
    return Verdict(verdict="violates", exit_code=1, behaviours=counts, findings=findings)


def odd() -> Verdict:
    """Every string from outside holds quotes, markup, terminal commands and half surrogates, and is 10 kB long."""
    word = ODD * 600
    odd_event = Event(
        action=word,
        params={word: word},
        key=word,
        emitter=word,
        time=10**30,
        source=Source(word, 1),
        extra={word: word},
    )
    conjunct = Conjunct(text=word, file=word, line=1, column=1, value=word, values={word: word})
    explanation = Explanation(
        summary=word, cause=word, remedy=word, margins=[word], conjuncts=[conjunct], enabled_instead=[word],
        legal_if=word, state_before={word: word}, state_change={word: [word, word]},
    )  # fmt: skip
    step = HiddenStep(before=1, action=word, params={word: word})
    finding = Finding(
        verdict="diverges", run=word, key={"a": [word]}, reason=word, at=1, event=odd_event, action=word,
        invariant=word, hidden=[step], explanation=explanation, context=[(1, odd_event)],
    )  # fmt: skip
    other = Finding(verdict="violates", at=0, invariant=word, explanation=explanation)
    return Verdict(
        verdict="violates",
        exit_code=1,
        reason=word,
        behaviours=Behaviours(total=2, violates=1, diverges=1),
        undecided_by_reason={word: 1},
        findings=[finding, other],
        coverage={word: 1},
        ledger=Ledger(
            read=1, mapped=1, ignored={word: 1}, unmatched_examples=[word], gaps=[Gap(word, 1, 2)], bounds=[word]
        ),
        assumptions=[word],
        inputs=[Input(word, "00")],
        spec=SpecUsed(path=word, sha256="00", config=word),
        invariants=[word],
        require=[(word, False)],
        legend={"0": word},
    )


CASES = {word: bare(word) for word in WORST_FIRST} | {
    "violation": violation(),
    "divergence": divergence(),
    "many": many(),
    "odd": odd(),
    "nothing read": Verdict(verdict="vacuous", exit_code=3, reason="no events", behaviours=Behaviours()),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", report.FORMATS)
def test_a_report_is_a_text_that_can_be_written_and_is_the_same_each_time(name: str, case: str) -> None:
    text = report.render(name, CASES[case])
    assert text.encode("utf-8")
    assert text == report.render(name, CASES[case])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", report.FORMATS)
def test_a_report_holds_no_character_that_a_terminal_or_an_xml_reader_must_not_see(name: str, case: str) -> None:
    shown = set(report.render(name, CASES[case])) - {"\n"}
    assert not {character for character in shown if ord(character) < 32 or character in "\x7f\u202e\ufffe"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", report.FORMATS)
def test_a_report_says_which_verdict_it_is(name: str, case: str) -> None:
    word = CASES[case].verdict
    shown = report.render(name, CASES[case])
    assert (word if word != "inconclusive" else "undecided") in shown or word in shown


@pytest.mark.parametrize(("name", "ending"), [("text", "txt"), ("json", "json"), ("junit", "xml")])
@pytest.mark.parametrize("case", ["violation", "divergence", "conforms", "vacuous"])
def test_a_report_is_what_the_golden_file_says(name: str, ending: str, case: str) -> None:
    shown = report.render(name, CASES[case])
    if name == "json":
        document = json.loads(shown)
        document["version"] = "VERSION"
        shown = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    assert shown == (GOLDEN / f"{case}.{ending}").read_text(encoding="utf-8")


# --- text


def test_text_is_coloured_only_when_it_is_asked_for() -> None:
    assert "\x1b[" not in text.render(violation())
    coloured = text.render(violation(), color=True)
    assert "\x1b[31m✗ violates\x1b[0m" in coloured


def test_text_shortens_ids_so_that_different_ids_stay_different() -> None:
    near = TASK.replace("0001", "0009")
    verdict = violation()
    verdict.findings[0].context.insert(0, (3, event("Publish", 1, 1, 1, near)))
    shown = text.render(verdict)
    assert TASK not in shown
    assert near not in shown
    names = {word.partition("=")[2] for word in shown.split() if word.startswith("t=")}
    assert len(names) == 2


def test_text_of_ids_of_ten_thousand_characters_stays_readable() -> None:
    assert max(map(len, text.render(odd()).splitlines())) < 5_000


def test_text_never_shortens_the_name_of_an_invariant_or_action() -> None:
    name = "InvariantNoDoubleExecutionEver2"
    verdict = bare("violates")
    verdict.findings = [Finding(verdict="violates", at=1, invariant=name)]
    assert name in text.render(verdict)


def test_text_lists_at_most_three_findings_of_one_story_in_full_and_counts_the_rest() -> None:
    shown = text.render(many())
    assert "… and 900 more that are not listed" in shown
    assert "violates 925" in shown


def test_text_says_that_a_log_without_sequence_numbers_conforms_only_as_far_as_logged() -> None:
    verdict = bare("conforms")
    verdict.ledger.loss = "unmeasurable"
    assert "conforms 1 (as far as logged)" in text.render(verdict)


@pytest.mark.parametrize(
    ("undecided", "total", "share"),
    [(1, 1, "100 %"), (1, 3, "33.33 %"), (8104, 12_399_438, "0.07 %"), (1, 10**6, "< 0.01 %"), (1, 2, "50 %")],
)
def test_text_gives_the_undecided_share_in_percent(undecided: int, total: int, share: str) -> None:
    verdict = bare("inconclusive")
    verdict.behaviours = Behaviours(total=total, inconclusive=undecided, conforms=total - undecided)
    verdict.undecided_by_reason = {"open-at-start": undecided}
    assert f"undecided {undecided:,} ({share}: {undecided:,} open at start)" in text.counts(verdict)


@pytest.mark.parametrize(
    ("emitters", "told"),
    [
        (["worker-17", "worker-17"], "2 held by crashed worker-17"),
        (["worker-17", "worker-2"], "2 held by crashed emitters"),
        (["worker-17"], "2 held by crashed emitters"),  # the other one is not listed
    ],
)
def test_text_names_a_crashed_emitter_where_it_is_known_to_be_the_only_one(emitters: list[str], told: str) -> None:
    verdict = bare("inconclusive")
    verdict.behaviours = Behaviours(total=5, inconclusive=5)
    verdict.undecided_by_reason = {"open-tail": 2, "gap": 2, "incomplete": 1}
    verdict.findings = [
        Finding(verdict="inconclusive", reason=f"open-tail: {emitter} was killed while it held t1")
        for emitter in emitters
    ]
    assert f": {told}, 2 across a gap, 1 incomplete)" in text.counts(verdict)


def test_text_shows_kinds_whose_times_have_no_calendar() -> None:
    verdict = many()
    verdict.kinds = [
        Kind(kind="violates A", cause="slow", count=2, first=1e12, last="9999-12-31T23:59:59Z", example=None)
    ]
    row = ["violates", "A", "2", "1000000000000.0", "9999-12-31T23:59:59Z", "slow"]
    assert row in [line.split() for line in text.render(verdict).splitlines()]


def test_text_says_the_event_where_an_observation_has_no_place_in_a_log() -> None:
    verdict = divergence()
    why = verdict.findings[0].explanation
    assert why is not None
    why.conjuncts.append(Conjunct(text="x observed", file="", line=0, column=0, value="FALSE"))
    assert "✗  the event  x observed" in text.render(verdict)


def test_text_shows_a_large_changed_value_from_where_it_differs() -> None:
    verdict = violation()
    why = verdict.findings[0].explanation
    assert why is not None
    same = ", ".join(f"k{number} |-> 0" for number in range(1000))
    why.state_change = {"runs": [f"[{same}, last |-> 1]", f"[{same}, last |-> 2]"]}
    assert "last |-> 1] → …" in text.render(verdict)
    assert "last |-> 2]" in text.render(verdict)


def test_text_tells_times_apart_that_fall_into_one_millisecond() -> None:
    verdict = violation()
    finding = verdict.findings[0]
    assert finding.event is not None
    finding.event.time = START + 2_180_000_500
    shown = text.render(verdict)
    assert "10:00:02.180000500  worker-2  Execute" in shown
    assert "10:00:02.180000000  worker-2  Pickup" in shown


def test_text_says_why_the_exit_code_is_0_where_the_verdict_is_inconclusive() -> None:
    verdict = bare("inconclusive")
    verdict.exit_code = 0
    assert "--allow-inconclusive" in text.render(verdict)


def test_text_prints_only_the_interned_ids_that_are_in_use() -> None:
    verdict = divergence()
    verdict.legend = {str(number): f"task-{number}" for number in range(100_000)}
    shown = text.render(verdict)
    assert "7 = task-7" in shown
    assert len(shown) < 5_000


# --- JSON


def test_json_has_every_field_of_the_schema_and_nulls_where_nothing_is() -> None:
    document = json.loads(report.render("json", bare("conforms")))
    assert document["schema"] == "specwatch.verdict/1"
    promised = (
        "verdict exit_code reason behaviours undecided_by_reason kinds findings hidden_steps coverage ledger "
        "assumptions inputs spec version"
    )
    assert set(promised.split()) <= set(document)
    assert document["reason"] is None
    assert document["behaviours"] == NO_BEHAVIOURS | {"total": 1, "conforms": 1}
    ledger = "read mapped ignored unmatched unparsed duplicate late pruned gaps bounds loss"
    assert set(ledger.split()) <= set(document["ledger"])


@pytest.mark.parametrize("case", ["violation", "divergence", "many"])
def test_json_findings_have_every_field_even_without_an_explanation(case: str) -> None:
    for finding in json.loads(report.render("json", CASES[case]))["findings"]:
        promised = "run key verdict reason at event invariant action provisional hidden explanation"
        assert set(finding) == set(promised.split())
        why = "cause remedy summary margins conjuncts enabled_instead legal_if"
        assert set(why.split()) <= set(finding["explanation"])


def test_json_shortens_nothing_and_gives_the_event_in_its_native_form() -> None:
    finding = json.loads(report.render("json", violation()))["findings"][0]
    assert finding["key"] == TASK
    assert finding["event"] == {
        "action": "Execute",
        "params": {"t": TASK},
        "key": TASK,
        "emitter": "worker-2",
        "seq": 21,
        "time": "2030-01-01T10:00:02.181Z",
        "source": {"file": "logs/worker-2.log", "line": 21},
        "hostname": "h1",
    }
    assert finding["hidden"][1] == {"before": 6, "action": "VisTimeout", "params": {"t": f'"{TASK}"'}}


def test_json_keeps_integers_exact_and_odd_characters_whole() -> None:
    verdict = odd()
    verdict.findings[0].key = 10**30
    document = json.loads(report.render("json", verdict))
    assert document["findings"][0]["key"] == 10**30
    assert document["assumptions"] == [ODD * 600]


# --- JUnit


def junit_cases(verdict: Verdict) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(report.render("junit", verdict))
    return {case.attrib["name"]: case for case in root.iter("testcase")}


def outcome(case: ElementTree.Element) -> str:
    return ",".join(child.tag for child in case) or "passed"


def test_junit_has_a_case_an_invariant_one_for_conformance_and_one_a_require() -> None:
    outcomes = {name: outcome(case) for name, case in junit_cases(violation()).items()}
    assert outcomes == {
        "invariant NoDoubleExecution": "failure",
        "invariant TypeOK": "error",  # one behaviour is undecided
        "action conformance": "error",
        "require Pickup": "passed",
        "require VisTimeout": "error",
    }


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("conforms", "passed"),
        ("diverges", "failure"),
        ("inconclusive", "error"),
        ("vacuous", "error"),
        ("violates", "passed"),
    ],
)
def test_junit_tells_each_verdict_at_action_conformance(word: Word, expected: str) -> None:
    assert outcome(junit_cases(bare(word))["action conformance"]) == expected


@pytest.mark.parametrize("case", CASES)
def test_junit_skips_nothing_and_is_read_by_its_library(case: str) -> None:
    document = junitparser.JUnitXml.fromstring(report.render("junit", CASES[case]).encode())
    suites = list(document)
    assert len(suites) == 1
    assert suites[0].skipped == 0
    red = suites[0].failures + suites[0].errors
    assert (red == 0) == (CASES[case].verdict == "conforms")


def test_junit_is_never_green_for_an_invariant_whose_violations_are_not_listed() -> None:
    verdict = many()
    verdict.invariants = ["A", "B", "C"]
    verdict.behaviours = Behaviours(total=1000, violates=950, diverges=50)
    assert outcome(junit_cases(verdict)["invariant C"]) == "error"


def test_junit_has_one_case_for_a_property_of_states_and_steps() -> None:
    verdict = bare("conforms")
    verdict.invariants = ["Both", "Both"]
    assert list(junit_cases(verdict)) == ["invariant Both", "action conformance"]
    assert report.render("junit", verdict).count("<testcase") == 2


@pytest.mark.parametrize("named", ["A+B", "A|B"])
def test_junit_fails_every_invariant_that_a_finding_names(named: str) -> None:
    verdict = Verdict(
        verdict="violates",
        exit_code=1,
        behaviours=Behaviours(total=1, violates=1),
        findings=[Finding(verdict="violates", at=1, invariant=named)],
        invariants=["A", "B", "C"],
    )
    outcomes = {name: outcome(case) for name, case in junit_cases(verdict).items()}
    assert outcomes == {
        "invariant A": "failure",
        "invariant B": "failure",
        "invariant C": "passed",
        "action conformance": "passed",
    }


def test_junit_is_green_where_the_undecided_share_is_allowed() -> None:
    verdict = bare("inconclusive")
    verdict.exit_code = 0
    assert outcome(junit_cases(verdict)["action conformance"]) == "passed"


def test_junit_of_an_unmet_require_leaves_what_was_checked_green() -> None:
    verdict = bare("conforms")
    verdict.verdict, verdict.exit_code, verdict.require = "vacuous", 3, [("VisTimeout", False)]
    outcomes = {name: outcome(case) for name, case in junit_cases(verdict).items()}
    assert outcomes == {"action conformance": "passed", "require VisTimeout": "error"}
