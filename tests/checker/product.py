"""What the product says of events, in the judge's words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
from tests.checker.judge import Json
from tests.checker.judge_rules import REFUSED, UNDECIDED, Ruling
from tests.checker.models import MODELS

from specwatch.checker.api import Options, judge, load_spec
from specwatch.checker.behaviour import Behaviour, Event, Ledger, Loss, Order
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaError
from specwatch.checker.verdict import Finding, Verdict


@cache
def spec_of(name: str, config: str) -> Spec:
    model = MODELS[name, config]
    return load_spec(model.spec, model.config)


def least_sets(invariant: str | None) -> frozenset[frozenset[str]]:
    """``A+B|C`` as sets."""
    return frozenset(frozenset(one.split("+")) for one in invariant.split("|")) if invariant else frozenset()


def asked(
    spec: Spec,
    events: Sequence[Mapping[str, Json]],
    options: Options,
    order: Order = "total",
    *,
    skew: int = 0,
    losses: Sequence[Loss] = (),
    began: int | None = None,
) -> Verdict | None:
    """The verdict on one behaviour; None where an event speaks of what the spec lacks."""
    behaviour = Behaviour(
        events=[msgspec.convert(dict(event), Event) for event in events],
        order=order,
        skew=skew,
        losses=list(losses),
        began=began,
    )
    try:
        return judge(spec, [behaviour], options, Ledger(read=len(events), mapped=len(events)))
    except TlaError:
        return None


def ruling(verdict: Verdict | None) -> Ruling:
    """The verdict on the one behaviour that there was."""
    if verdict is None:
        return REFUSED
    if not verdict.findings:
        return Ruling(verdict.verdict, hidden=verdict.hidden_steps)
    (finding,) = verdict.findings
    return Ruling(finding.verdict, finding.at, least_sets(finding.invariant), verdict.hidden_steps, reason_of(finding))


def by_key(verdict: Verdict) -> dict[str, Ruling]:
    """The verdicts of the keys that do not conform, by the key's JSON."""
    return {
        json.dumps(finding.key): Ruling(
            finding.verdict, finding.at, least_sets(finding.invariant), reason=reason_of(finding)
        )
        for finding in verdict.findings
    }


def reason_of(finding: Finding) -> str | None:
    """The word with which the reason of what is undecided begins."""
    return finding.reason.partition(":")[0] if finding.verdict == UNDECIDED and finding.reason else None
