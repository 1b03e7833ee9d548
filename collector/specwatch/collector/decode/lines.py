"""What the decoders of JSON lines share: which lines are records, and what makes a record unfit to be believed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

DEEPEST = 128
"""Objects and arrays inside each other, so that no reader after this one runs out of stack."""

_NAMES = re.compile(rb'"((?:[^"\\]++|\\.)*+)"\s*+:')
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
_CAUSES = (
    b"During handling of the above exception, another exception occurred:",
    b"The above exception was the direct cause of the following exception:",
)


class Record(msgspec.Struct, gc=False):
    """The fields of one record, and the 1-based line that it begins at. Numbers with a fraction are ``Real``."""

    line: int
    fields: dict[str, Any]


class Broken(msgspec.Struct, gc=False):
    """A record that cannot be read. ``why`` completes the sentence "the line …"."""

    line: int
    why: str
    text: bytes


class Real(float):
    """A JSON number with a fraction or an exponent, which remembers how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Real:
        self = super().__new__(cls, text)
        self.text = text
        return self


def records(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The lines that are records: not the blank ones, and not those of a Python traceback."""
    traceback = False
    for number, line in lines:
        if line.startswith(b"{") and not traceback:
            yield number, line
            continue
        text = line.rstrip()
        if not text:
            continue
        if text == b"Traceback (most recent call last):" or text in _CAUSES:
            traceback = True
        elif traceback and line.startswith((b" ", b"\t")):
            pass
        elif traceback and not line.startswith(b"{"):
            traceback = False  # The exception's own line is the last of them.
        else:
            traceback = False
            yield number, line


def refused(line: bytes, names: int) -> str | None:
    """Why a line that parses must not be believed, if so. ``names`` is how many names the decoded objects have."""
    if line.count(b"{") + line.count(b"[") > DEEPEST and _depth(line) > DEEPEST:
        return f"is nested more than {DEEPEST} deep"
    if line.count(b'":') == names and b'" :' not in line:
        return None
    found = _NAMES.findall(line)
    if len(set(found)) != len(found):
        # Only here is the line read again: the same name in two objects is no matter.
        try:
            json.loads(line, object_pairs_hook=_without_contradiction)
        except _Contradiction as error:
            return f"gives {error} twice, with two values"
    return None


def count_names(value: Any) -> int:
    """How many names the objects of a JSON value have."""
    if isinstance(value, dict):
        return len(value) + sum(count_names(part) for part in value.values() if isinstance(part, dict | list))
    if isinstance(value, list):
        return sum(count_names(part) for part in value)
    return 0


def explained(error: Exception, line: bytes) -> str:
    """A decoding error as the end of the sentence "the line …"."""
    if isinstance(error, RecursionError):
        return f"is nested more than {DEEPEST} deep"
    if isinstance(error, msgspec.ValidationError):
        return f"is no event: {error}"
    try:
        line.decode()
    except UnicodeDecodeError as unicode_error:
        return f"is not UTF-8 (byte {unicode_error.start + 1})"
    if not line.lstrip().startswith(b"{"):
        return "is not a JSON object"
    return f"is not JSON: {str(error).removeprefix('JSON is malformed: ')}"


class _Contradiction(ValueError):
    pass


def _without_contradiction(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields and fields[name] != value:
            raise _Contradiction(repr(name[:60]))
        fields[name] = value
    return fields


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", line):
        if byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest
