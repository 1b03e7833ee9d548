"""The text report, for people who run systems: what happened, then why, then what was read and what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from specwatch.checker.behaviour import Event, Ledger
from specwatch.checker.verdict import WORST_FIRST, Conjunct, Explanation, Finding, HiddenStep, Verdict, Word

from .writing import Shortener, legend_in_use, readable, rfc3339, value_text

MARKS: dict[Word, str] = {"conforms": "✓", "violates": "✗", "diverges": "✗", "inconclusive": "?", "vacuous": "–"}

_STYLES: dict[Word, str] = {"conforms": "32", "violates": "31", "diverges": "31", "inconclusive": "33", "vacuous": "33"}
_BOLD, _DIM, _RED = "1", "2", "31"

_IN_FULL = 3
"""How many findings that tell the same story are shown in full; of the others one line each."""

_PROSE_WIDTH = 600
"""Sentences are shown to this many characters; values to fewer."""

_PARAM_WIDTH = 40
_BEFORE_DIFFERENCE = 40
"""How much of a changed value is shown before the place where it differs."""

_LEGEND_ROWS = 20
_RULES = 4
_GAPS = 10

_OUTCOMES: dict[Word, str] = {
    "conforms": "every event is explained by the spec",
    "violates": "",
    "diverges": "",
    "inconclusive": "the evidence does not decide",
    "vacuous": "nothing was checked",
}

_UNDECIDED: dict[str, str] = {
    "bound": "given up at a bound",
    "clock": "with clocks too far apart",
    "gap": "across a gap",
    "in-flight": "in flight at the end",
    "open-at-start": "open at start",
    "open-tail": "held by crashed emitters",
    "run-level": "whose run fails as a whole",
    "unparsed": "with unparsed records",
}
"""Reasons in words, for ``7,900 open at start``; any other stands for itself."""

Paint = Callable[[str, str], str]
"""(style, text) → the text in that style."""


def render(verdict: Verdict, *, color: bool = False) -> str:
    """The report, a text of many lines that ends with a newline. ``color`` adds terminal colours."""
    paint: Paint = _ansi if color else _plain
    shorten = Shortener(verdict.findings)
    blocks = [_outcome(verdict, paint)] if not verdict.findings else []
    blocks.extend(_kinds(verdict, shorten))
    blocks.extend(_findings(verdict, shorten, paint))
    blocks.append([*_account(verdict, paint), counts(verdict, color=color)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def counts(verdict: Verdict, *, color: bool = False) -> str:
    """The last line: how many behaviours came to which verdict."""
    paint: Paint = _ansi if color else _plain
    behaviours = verdict.behaviours
    parts = []
    for word in WORST_FIRST:
        count = getattr(behaviours, word)
        if word == "inconclusive" and count:
            why = ", ".join(reasons(verdict))
            part = f"undecided {count:,} ({_share(count, behaviours.total)}{': ' if why else ''}{readable(why)})"
        elif count:
            part = f"{word} {count:,}"
            if word == "conforms" and verdict.ledger.loss == "unmeasurable":
                part += " (as far as logged)"
        else:
            continue
        parts.append(paint(_STYLES[word], part))
    if not parts:
        parts = [paint(_STYLES["vacuous"], "no behaviours")]
    unmet = [readable(name) for name, met in verdict.require if not met]
    if unmet:
        parts.append(paint(_STYLES["vacuous"], f"required and never happened: {', '.join(unmet)}"))
    return " · ".join(parts)


def reasons(verdict: Verdict) -> list[str]:
    """Why behaviours are undecided, each with how many: ``204 held by crashed worker-17``."""
    return [f"{count:,} {_in_words(verdict, reason, count)}" for reason, count in verdict.undecided_by_reason.items()]


def _in_words(verdict: Verdict, reason: str, count: int) -> str:
    if reason == "open-tail":
        # ``open-tail: worker-17 was killed while it held …``, for each finding where all are listed.
        told = [finding.reason or "" for finding in verdict.findings]
        emitters = [text.split()[1] for text in told if text.startswith("open-tail: ")]
        if len(emitters) == count and len(set(emitters)) == 1:
            return f"held by crashed {emitters[0]}"
    return _UNDECIDED.get(reason, reason)


def _share(count: int, total: int) -> str:
    """``0.07 %``: in percent with two decimals at most."""
    percent = 100 * count / max(total, 1)
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %" if percent >= 0.01 else "< 0.01 %"


def render_finding(finding: Finding) -> str:
    """One finding in full, without colours."""
    return "\n".join(_finding(finding, Shortener([finding]), _plain))


def _plain(_: str, text: str) -> str:
    return text


def _ansi(style: str, text: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


# --- the outcome and the findings


def _outcome(verdict: Verdict, paint: Paint) -> list[str]:
    word = verdict.verdict
    said = readable(verdict.reason or _OUTCOMES[word])
    if word == "conforms" and verdict.ledger.loss == "unmeasurable":
        said += " (as far as logged)"
    lines = [f"{paint(_STYLES[word], f'{MARKS[word]} {word}')}  {said}"]
    if word == "conforms" and verdict.invariants:
        lines.append(f"  holds in every state: {', '.join(verdict.invariants)}")
    return lines


def _kinds(verdict: Verdict, shorten: Shortener) -> Iterable[list[str]]:
    if len(verdict.findings) < 2 or not verdict.kinds:
        return
    rows = [("kind", "count", "first", "last", "example", "cause")]
    for kind in verdict.kinds:
        example = shorten(value_text(kind.example)) if kind.example is not None else ""
        first, last = ("" if time is None else str(time) for time in (kind.first, kind.last))
        rows.append((readable(kind.kind), f"{kind.count:,}", first, last, example, readable(kind.cause or "")))
    yield [f"  {line}" for line in _table(rows)]


def _findings(verdict: Verdict, shorten: Shortener, paint: Paint) -> Iterable[list[str]]:
    told: dict[tuple[str, str], int] = {}
    brief = []
    for finding in verdict.findings:
        story = (finding.verdict, _subject(finding).partition(":")[0])
        told[story] = told.get(story, 0) + 1
        if told[story] <= _IN_FULL:
            yield _finding(finding, shorten, paint)
        else:
            brief.append(_headline(finding, shorten, paint))
    if brief:
        yield brief
    unlisted = verdict.behaviours.total - verdict.behaviours.conforms - len(verdict.findings)
    if verdict.findings and unlisted > 0:
        yield [f"… and {unlisted:,} more that are not listed (--max-findings)"]


def _subject(finding: Finding) -> str:
    """What a finding is about: the invariant, the action, or the reason."""
    if finding.verdict == "violates":
        return finding.invariant or ""
    if finding.verdict == "diverges":
        return finding.action or (finding.event.action if finding.event else "")
    return finding.reason or ""


def _headline(finding: Finding, shorten: Shortener, paint: Paint) -> str:
    word = finding.verdict
    parts = [paint(_STYLES[word], f"{MARKS[word]} {word}"), paint(_BOLD, shorten(_subject(finding)))]
    if finding.at is not None:
        parts.append("in the initial state" if finding.at == 0 else f"at event {finding.at}")
    if finding.run is not None:
        parts.append(f"run {readable(finding.run)}")
    if finding.key is not None:
        parts.append(f"key {shorten(value_text(finding.key))}")
    if finding.provisional:
        parts.append("(provisional)")
    return "  ".join(part for part in parts if part)


def _finding(finding: Finding, shorten: Shortener, paint: Paint) -> list[str]:
    why = finding.explanation or Explanation(summary="")
    lines = [_headline(finding, shorten, paint)]
    for label, text in (("cause: ", why.cause), ("remedy:", why.remedy)):
        if text:
            lines.append(f"  {label} {shorten(text, _PROSE_WIDTH)}")
    if why.summary and why.summary != finding.reason:
        lines.append(f"  {shorten(why.summary, _PROSE_WIDTH)}")
    timeline = _timeline(finding, shorten, paint)
    if timeline:
        lines.extend(("", *timeline))
    reasons = [*_conjuncts(finding, why, shorten, paint), *_change(finding, why, shorten)]
    if finding.verdict == "diverges":
        reasons.append(f"  enabled instead:  {', '.join(map(shorten, why.enabled_instead)) or 'no action'}")
        if why.legal_if:
            reasons.append(f"  legal if:  {shorten(why.legal_if, _PROSE_WIDTH)}")
    reasons.extend(f"  {shorten(margin, _PROSE_WIDTH)}" for margin in why.margins)
    if reasons:
        lines.extend(("", *reasons))
    return lines


# --- the timeline


def _timeline(finding: Finding, shorten: Shortener, paint: Paint) -> list[str]:
    """The events up to the failing one with the hidden steps between them, in columns."""
    events = finding.context or ([(finding.at, finding.event)] if finding.event is not None and finding.at else [])
    if not events:
        return []
    shown = [event for _, event in events]
    clock = _Clock([event.time for event in shown if event.time is not None])
    first = events[0][0]
    last = events[-1][0]
    rows: list[tuple[str, ...]] = []
    marks = []
    for number, event in events:
        for step in (step for step in finding.hidden if step.before == number):
            rows.append(_hidden_row(step, shorten))
            marks.append("·")
        failing = number == finding.at and finding.verdict in ("violates", "diverges")
        rows.append(_event_row(number, event, clock, shorten))
        marks.append("▶" if failing else " ")
    for step in (step for step in finding.hidden if step.before > last):
        rows.append(_hidden_row(step, shorten))
        marks.append("·")
    lines = []
    earlier = sum(step.before < first for step in finding.hidden)
    if first > 1:
        hidden = f", with {earlier} hidden {'step' if earlier == 1 else 'steps'}" if earlier else ""
        lines.append(paint(_DIM, f"  … {first - 1:,} earlier {'event' if first == 2 else 'events'}{hidden}"))
    for mark, row in zip(marks, _table(rows), strict=True):
        line = f"{mark} {row}"
        lines.append(paint({"▶": _RED, "·": _DIM}[mark], line) if mark != " " else line)
    return lines


def _event_row(number: int, event: Event, clock: _Clock, shorten: Shortener) -> tuple[str, ...]:
    params = _params(((name, value_text(value)) for name, value in event.params.items()), shorten)
    place = f"{readable(PurePath(event.source.file).name)}:{event.source.line}" if event.source else ""
    when = "" if event.time is None else clock(event.time)
    return (str(number), when, shorten(event.emitter or ""), readable(event.action), params, place)


def _hidden_row(step: HiddenStep, shorten: Shortener) -> tuple[str, ...]:
    # What a step chose by itself may be a whole record of the spec; the way to the failure is told by the plain ones.
    plain = {name: value for name, value in step.params.items() if not value.startswith(("[", "(", "<<", "{"))}
    params = _params(((name, _unquoted(value)) for name, value in (plain or step.params).items()), shorten)
    return ("", "(hidden)", "", readable(step.action), params, f"inserted: needed before event {step.before}")


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' and '"' not in value[1:-1] else value


def _params(params: Iterable[tuple[str, str]], shorten: Shortener) -> str:
    return "  ".join(f"{readable(name)}={shorten(value, _PARAM_WIDTH)}" for name, value in params)


class _Clock:
    """Writes times of day: dated where they are of several days, in milliseconds where that tells them apart."""

    def __init__(self, times: list[int]) -> None:
        self._with_date = len({str(rfc3339(time))[:10] for time in times}) > 1
        different = len(set(times))
        self._digits = next((n for n in (3, 6) if len({time // 10 ** (9 - n) for time in times}) == different), 9)

    def __call__(self, time: int) -> str:
        text = rfc3339(time)
        if isinstance(text, float):
            return str(text)
        day, _, clock = text.rstrip("Z").partition("T")
        whole, _, part = clock.partition(".")
        clock = f"{whole}.{part.ljust(self._digits, '0')[: self._digits]}"
        return f"{day} {clock}" if self._with_date else clock


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows in columns; a column that is empty in every row is left out."""
    kept = [index for index in range(len(rows[0])) if any(row[index] for row in rows)]
    widths = {index: max(len(row[index]) for row in rows) for index in kept}
    return ["  ".join(row[index].ljust(widths[index]) for index in kept).rstrip() for row in rows]


# --- why


def _conjuncts(finding: Finding, why: Explanation, shorten: Shortener, paint: Paint) -> list[str]:
    """For a break the false parts of the invariant; for a divergence all parts of the action, the false ones marked."""
    shown = why.conjuncts
    if finding.verdict == "violates":
        shown = [conjunct for conjunct in shown if conjunct.value == "FALSE"] or shown
        return [f"  {_conjunct(conjunct, shorten, paint)}" for conjunct in shown]
    if not shown:
        return []
    rows = []
    for conjunct in shown:
        # The values of what holds are left out: they would bury the ones that matter.
        held = conjunct.value == "TRUE"
        value = "TRUE" if held else _value(conjunct, shorten)
        rows.append(("✓" if held else "✗", *_place_and_text(conjunct, shorten), f"is {value}"))
    marked = zip(shown, _table(rows), strict=True)
    return [f"  {row}" if conjunct.value == "TRUE" else paint(_RED, f"  {row}") for conjunct, row in marked]


def _conjunct(conjunct: Conjunct, shorten: Shortener, paint: Paint) -> str:
    place, text = _place_and_text(conjunct, shorten)
    return f"{place}   {paint(_BOLD, text)}   is {_value(conjunct, shorten)}"


def _place_and_text(conjunct: Conjunct, shorten: Shortener) -> tuple[str, str]:
    # What was observed or expected stands in no spec: its place is the event's, if that has one.
    place = f"{readable(PurePath(conjunct.file).name)}:{conjunct.line}" if conjunct.line else "the event"
    return place, shorten(conjunct.text)


def _value(conjunct: Conjunct, shorten: Shortener) -> str:
    values = ", ".join(f"{shorten(name)} = {shorten(value)}" for name, value in conjunct.values.items())
    return f"{shorten(conjunct.value)}{':  ' if values else ''}{values}"


def _change(finding: Finding, why: Explanation, shorten: Shortener) -> list[str]:
    rows: list[tuple[str, ...]]
    if why.state_change:
        label = "state before → after:"
        changes = why.state_change.items()
        rows = [("", shorten(name), " → ".join(map(shorten, _different(values)))) for name, values in changes]
    else:
        label = "initial state:" if finding.at == 0 else "state before:"
        rows = [("", f"{shorten(name)} = {shorten(value)}") for name, value in why.state_before.items()]
    if not rows:
        return []
    rows[0] = (label, *rows[0][1:])
    return [f"  {row}" for row in _table(rows)]


def _different(values: list[str]) -> list[str]:
    """Values from shortly before where they begin to differ: in a large state that is what matters."""
    columns = enumerate(zip(*values, strict=False))
    same = next((index for index, characters in columns if len(set(characters)) > 1), 0)
    if same <= 2 * _BEFORE_DIFFERENCE:
        return values
    return [f"…{value[same - _BEFORE_DIFFERENCE :]}" for value in values]


# --- the account


def _account(verdict: Verdict, paint: Paint) -> list[str]:
    lines = []
    if verdict.spec:
        config = f" with {verdict.spec.config}" if verdict.spec.config else ""
        lines.append(readable(f"spec: {verdict.spec.path}{config}", _PROSE_WIDTH))
    lines.extend((_read(verdict.ledger), *_losses(verdict.ledger)))
    if verdict.coverage:
        seen = [f"{name} {count:,}" for name, count in verdict.coverage.items() if count]
        unseen = [name for name, count in verdict.coverage.items() if not count]
        never = f"; never: {', '.join(unseen)}" if unseen else ""
        lines.append(readable(f"actions: {' · '.join(seen) or 'none'}{never}", _PROSE_WIDTH))
    if verdict.hidden_steps:
        lines.append(f"hidden steps inserted: {verdict.hidden_steps:,}")
    legend = legend_in_use(verdict)
    if legend:
        rows = [f"{printed} = {readable(original)}" for printed, original in list(legend.items())[:_LEGEND_ROWS]]
        more = f", … {len(legend) - len(rows):,} more" if len(legend) > len(rows) else ""
        lines.append(f"ids: {', '.join(rows)}{more}")
    lines.extend(f"assumed: {readable(assumption, _PROSE_WIDTH)}" for assumption in verdict.assumptions)
    if verdict.verdict == "inconclusive" and verdict.exit_code == 0:
        lines.append("exit code 0: what is undecided is within the share that --allow-inconclusive allows")
    return [paint(_DIM, line) for line in lines]


def _read(ledger: Ledger) -> str:
    ignored = sum(ledger.ignored.values())
    rules = ", ".join(f"{readable(rule)} {count:,}" for rule, count in ledger.ignored.items())
    parts = [f"{ledger.mapped:,} mapped"]
    if ignored:
        parts.append(f"{ignored:,} ignored ({rules})")
    for name in ("unmatched", "unparsed", "duplicate", "late", "pruned"):
        count = getattr(ledger, name)
        if count:
            parts.append(f"{count:,} {name}")
    return f"read {ledger.read:,} {'record' if ledger.read == 1 else 'records'}: {' · '.join(parts)}"


def _losses(ledger: Ledger) -> list[str]:
    lines = [f"  unmatched: {readable(example)}" for example in ledger.unmatched_examples]
    lines.extend(f"  unparsed: {readable(example)}" for example in ledger.unparsed_examples)
    for gap in ledger.gaps[:_GAPS]:
        numbers = str(gap.first) if gap.first == gap.last else f"{gap.first}–{gap.last}"
        lines.append(f"  gap: {readable(gap.emitter)} lacks seq {numbers}")
    if len(ledger.gaps) > _GAPS:
        lines.append(f"  … and {len(ledger.gaps) - _GAPS:,} more gaps")
    for proven in ledger.proven[:_GAPS]:
        when = f" in the hour of {proven.hour}" if proven.hour else ""
        lines.append(f"  loss: at least {proven.count:,} lack a record, as {readable(proven.emitter)} shows{when}")
    if len(ledger.proven) > _GAPS:
        lines.append(f"  … and {len(ledger.proven) - _GAPS:,} more such")
    if ledger.unused_rules:
        # A rule is ``rule 7 (Retry), FILE:LINE``. A binding for several kinds of log has many that never match.
        rules = [rule.partition(", ")[0] for rule in ledger.unused_rules]
        if len(rules) > _RULES:
            actions = dict.fromkeys(rule.rpartition("(")[2].rstrip(")") for rule in rules)
            rules = [f"{len(rules)} rules, of {', '.join(actions)}"]
        # Native events ask no rule, and one log may hold both.
        lines.append(f"  matched no record (native events need no rule): {readable(', '.join(rules), _PROSE_WIDTH)}")
    lines.extend(f"  bound: {readable(bound)}" for bound in ledger.bounds)
    return lines
