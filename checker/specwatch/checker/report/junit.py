"""The JUnit report: one test case an invariant or property of steps, one for action conformance, one a ``require``;
never one a key.

``violates`` and ``diverges`` are failures, ``inconclusive`` and ``vacuous`` are errors. Nothing is ever skipped: a
skipped case reads as green.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from specwatch.checker.verdict import Finding, Verdict

from .text import counts, reasons, render_finding
from .writing import printable

CONFORMANCE = "action conformance"

_SHOWN = 3
"""How many findings a failure's text holds."""


def render(verdict: Verdict) -> str:
    """The verdict as a JUnit XML document with one suite, named after the spec."""
    name = printable(PurePath(verdict.spec.path).stem) if verdict.spec else "specwatch"
    suite = TestSuite(f"specwatch {name}")
    broken = _by_invariant(verdict)
    doubt = _doubt(verdict)
    unlisted = verdict.behaviours.violates - sum(finding.verdict == "violates" for finding in verdict.findings)
    # Where the parts of one PROPERTY are of several kinds, its name may come twice.
    for invariant in dict.fromkeys((*verdict.invariants, *broken)):
        case = _case(name, f"invariant {invariant}", broken.get(invariant, []), doubt)
        if not case.result and unlisted > 0:
            case.result = [Error(f"{unlisted} violations are not listed and may be of this invariant", "violates")]
        suite.add_testcase(case)
    if unlisted > 0 and not any(case.result for case in suite):
        # Nothing listed names an invariant (--max-findings 0), and a broken run must not read as green.
        suite.add_testcase(_broken(name, f"{unlisted} behaviours break an invariant"))
    diverging = [finding for finding in verdict.findings if finding.verdict == "diverges"]
    case = _case(name, CONFORMANCE, diverging, doubt)
    if not case.result and verdict.behaviours.diverges:
        case.result = [Failure(f"{verdict.behaviours.diverges} behaviours diverge", "diverges")]
    suite.add_testcase(case)
    for required, met in verdict.require:
        case = TestCase(f"require {printable(required)}", classname=f"specwatch.{name}")
        if not met:
            case.result = [Error("required, and never happened", "vacuous")]
        suite.add_testcase(case)
    suite.add_property("verdict", verdict.verdict)
    suite.add_property("counts", counts(verdict))
    document = JUnitXml()
    document.add_testsuite(suite)
    text: str = document.tostring().decode("utf-8")  # type: ignore[no-untyped-call]  # junitparser leaves it untyped
    return f"{text}\n"


def _case(spec: str, name: str, findings: list[Finding], doubt: tuple[str, str] | None) -> TestCase:
    case = TestCase(printable(name), classname=f"specwatch.{spec}")
    if findings:
        first = findings[0]
        where = "in the initial state" if first.at == 0 else f"at event {first.at}"
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        failure = Failure(f"{first.verdict} {where}{more}", first.verdict)
        failure.text = "\n\n".join(map(render_finding, findings[:_SHOWN]))
        case.result = [failure]
    elif doubt:
        case.result = [Error(*doubt)]
    return case


def _broken(spec: str, message: str) -> TestCase:
    case = TestCase("invariants", classname=f"specwatch.{spec}")
    case.result = [Failure(message, "violates")]
    return case


def _by_invariant(verdict: Verdict) -> dict[str, list[Finding]]:
    """The violations by the invariant that they name; ``A+B`` and ``A|B`` name two."""
    found: dict[str, list[Finding]] = {}
    for finding in verdict.findings:
        if finding.verdict == "violates":
            for name in dict.fromkeys(re.split(r"[+|]", finding.invariant or "(unnamed)")):
                found.setdefault(name, []).append(finding)
    return found


def _doubt(verdict: Verdict) -> tuple[str, str] | None:
    """Why the cases that did not fail did not pass either: (message, type), or None where they passed."""
    behaviours = verdict.behaviours
    # --allow-inconclusive made the undecided share acceptable, so the CI that reads this file must not turn red for it.
    if behaviours.inconclusive and verdict.exit_code != 0:
        message = f"{behaviours.inconclusive} of {behaviours.total} behaviours are undecided"
        why = ", ".join(_reasons(verdict))
        return printable(f"{message}: {why}" if why else message), "inconclusive"
    if behaviours.vacuous or not behaviours.total:
        return printable(verdict.reason or "nothing was checked"), "vacuous"
    unmet = any(not met for _, met in verdict.require)
    if verdict.verdict == "inconclusive" and not behaviours.inconclusive:
        return printable(verdict.reason or "the evidence does not decide"), "inconclusive"
    if verdict.verdict == "vacuous" and not unmet:
        return printable(verdict.reason or "nothing was checked"), "vacuous"
    return None


def _reasons(verdict: Verdict) -> Iterable[str]:
    if verdict.undecided_by_reason:
        return reasons(verdict)
    undecided = (finding.reason for finding in verdict.findings if finding.verdict == "inconclusive")
    return dict.fromkeys(reason for reason in undecided if reason)
