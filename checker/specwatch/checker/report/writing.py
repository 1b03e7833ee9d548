"""What the formats share: times, characters that may be shown, and ids cut short for reading."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Iterable

from specwatch.checker.behaviour import Json
from specwatch.checker.verdict import Finding, Verdict

_EPOCH = datetime.datetime(1970, 1, 1)

# Control characters (a log may hold terminal commands), bidirectional overrides (they reorder what stands beside them),
# line separators, half surrogates (undecodable file names) and the code points that XML forbids.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)

VALUE_WIDTH = 160
"""A value longer than this is cut for reading: a state may hold a million keys."""

_ID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{8,}|(?=[^\W_]*\d)[^\W_]{20,}")
"""What reads as an id: a UUID, or a long run of letters and digits with a digit in it (hex, ULID, KSUID)."""

_LONG = 40
"""Any other string is shown whole up to this many characters."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"()\[\]{}<>,;=…]{20,}')
"""What may be cut short in a text: a string literal, or a long word."""


def rfc3339(nanoseconds: int) -> str | float:
    """A time in nanoseconds since the epoch as RFC 3339 text in UTC with 0, 3, 6 or 9 decimals.

    As seconds where RFC 3339 has no form for it (before year 1, after 9999): native events may hold both.
    """
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    try:
        text = (_EPOCH + datetime.timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return nanoseconds / 1_000_000_000
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z" if digits else f"{text}Z"


def printable(text: str) -> str:
    """The text on one line, with the characters that a terminal or an XML reader must not see written as escapes."""
    return _UNPRINTABLE.sub(lambda match: _escape(match.group()), text)


def _escape(character: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = ord(character)
    return named.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def readable(text: str, width: int = VALUE_WIDTH) -> str:
    """The text cut at ``width`` characters and made printable."""
    return printable(text if len(text) <= width else f"{text[: width - 1]}…")


def value_text(value: Json) -> str:
    """A JSON value for reading: a string as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


class Shortener:
    """Makes texts fit for reading: long ids cut short, so that different ids stay different within one report."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        words: set[str] = set()
        for finding in findings:
            words.update(finding_values(finding))
            words.update(word.strip('"') for text in finding_texts(finding) for word in _TOKEN.findall(text))
        ids = sorted(word for word in words if _ID.fullmatch(word))
        others = sorted(word for word in words if len(word) > _LONG and not _ID.fullmatch(word))
        self._short = {**_shorten(ids, ((4, 0), (8, 0), (12, 0), (4, 4))), **_shorten(others, ((16, 8), (24, 12)))}

    def __call__(self, text: str, width: int = VALUE_WIDTH) -> str:
        """The text with every long id in it cut short, printable, and itself cut at ``width`` characters."""
        return readable(self._short[text] if text in self._short else _TOKEN.sub(self._replace, text), width)

    def _replace(self, match: re.Match[str]) -> str:
        word = match.group()
        if word.startswith('"'):
            inner = word[1:-1]
            return f'"{self._short.get(inner, inner)}"'
        return self._short.get(word, word)


def _shorten(words: list[str], cuts: tuple[tuple[int, int], ...]) -> dict[str, str]:
    for head, tail in cuts:
        short = {word: f"{word[:head]}…{word[len(word) - tail :]}" for word in words}
        if len(set(short.values())) == len(words):
            return short
    digests = {word: hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()[:8] for word in words}
    return {word: f"{word[:8]}…#{digest}" for word, digest in digests.items()}


def finding_values(finding: Finding) -> Iterable[str]:
    """The values in a finding that came from the log, each of which may be an id as a whole."""
    yield value_text(finding.key)
    for event in [event for _, event in finding.context] + ([finding.event] if finding.event else []):
        yield from map(value_text, event.params.values())


def finding_texts(finding: Finding) -> Iterable[str]:
    """Every text of a finding in which an id may stand among other things."""
    for step in finding.hidden:
        yield from step.params.values()
    why = finding.explanation
    if why is not None:
        yield why.summary
        yield from (text for text in (why.cause, why.remedy, why.legal_if) if text)
        yield from why.margins
        yield from why.enabled_instead
        for conjunct in why.conjuncts:
            yield from (conjunct.text, conjunct.value, *conjunct.values, *conjunct.values.values())
        yield from (text for item in why.state_before.items() for text in item)
        for expression, values in why.state_change.items():
            yield from (expression, *values)


def legend_in_use(verdict: Verdict) -> dict[str, str]:
    """The interned ids that the findings print. The whole legend may have a million rows."""
    if not verdict.legend:
        return {}
    words = set()
    for finding in verdict.findings:
        for text in (*finding_values(finding), *finding_texts(finding)):
            words.update(re.findall(r"\w+", text))
    # Where several parameters are interned, the printed form is ``param=0``.
    return {printed: original for printed, original in verdict.legend.items() if printed.rpartition("=")[2] in words}
