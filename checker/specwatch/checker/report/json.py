"""The JSON report, schema ``specwatch.verdict/1``, listed in ``docs/json.md``. For scripts: nothing is cut short."""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any

import msgspec

from specwatch.checker.behaviour import Event
from specwatch.checker.verdict import Explanation, Finding, Verdict

from .writing import legend_in_use, rfc3339

SCHEMA = "specwatch.verdict/1"


def render(verdict: Verdict) -> str:
    """The verdict as one JSON object on one line."""
    return dumps(
        {
            "schema": SCHEMA,
            "verdict": verdict.verdict,
            "exit_code": verdict.exit_code,
            "reason": verdict.reason,
            "behaviours": verdict.behaviours,
            "undecided_by_reason": verdict.undecided_by_reason,
            "kinds": verdict.kinds,
            "findings": [_finding(finding) for finding in verdict.findings],
            "hidden_steps": verdict.hidden_steps,
            "coverage": verdict.coverage,
            "ledger": verdict.ledger,
            "assumptions": verdict.assumptions,
            "inputs": verdict.inputs,
            "spec": verdict.spec,
            "invariants": verdict.invariants,
            "require": [{"name": name, "met": met} for name, met in verdict.require],
            "legend": legend_in_use(verdict),
            "version": version(),
        }
    )


def dumps(document: dict[str, Any]) -> str:
    """One JSON object on one line, whatever its strings hold."""
    try:
        return msgspec.json.encode(document).decode()
    except UnicodeEncodeError:
        # A half surrogate (from a file name that is no UTF-8) has no UTF-8 form; in JSON it can be an escape.
        return json.dumps(msgspec.to_builtins(document), ensure_ascii=True)


def version() -> str:
    """The version of the installed product; ``0+unknown`` from a bare checkout."""
    try:
        return importlib.metadata.version("specwatch")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "run": finding.run,
        "key": finding.key,
        "verdict": finding.verdict,
        "reason": finding.reason,
        "at": finding.at,
        "event": None if finding.event is None else native_event(finding.event),
        "invariant": finding.invariant,
        "action": finding.action,
        "provisional": finding.provisional,
        "hidden": finding.hidden,
        "explanation": finding.explanation or Explanation(summary=finding.reason or ""),
    }


def native_event(event: Event) -> dict[str, Any]:
    """An event in its native form: times as RFC 3339 text, the record's own fields beside the known ones."""
    known: dict[str, Any] = msgspec.to_builtins(event)
    extra = known.pop("extra", None) or {}
    for name in ("time", "until"):
        if known.get(name) is not None:
            known[name] = rfc3339(known[name])
    others = {name: value for name, value in extra.items() if name not in known}
    return {"action": event.action, "params": event.params, **known, **others}
