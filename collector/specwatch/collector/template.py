"""Templates and tests of the binding, as functions of a record's fields.

``"$field"`` alone is the field's value with its type; a text with ``$field`` in its midst is a text made of values.
What comes out is always a value, never a piece of a TLA+ expression.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .decode.lines import Real

Fields = Mapping[str, Any]

Value = Callable[[Fields], Any]
"""From a record's fields to a value; raises ``Lacks`` where a field is missing."""

Test = Callable[[Fields], bool]


class Lacks(Exception):
    """A record lacks a field that the rule needs."""

    def __str__(self) -> str:
        return f"it has no field {self.args[0]!r}"


_REFERENCE = re.compile(r"\$(?:\{([^{}]+)\}|([A-Za-z_@][\w@]*(?:\.[A-Za-z_@][\w@]*)*)|(\$))", re.ASCII)


def field(name: str) -> Value:
    """The value of a field, untouched. A dotted name is a field of that name, else a way into objects."""

    def flat(fields: Fields) -> Any:
        value = fields.get(name)
        if value is None:
            raise Lacks(name)
        return value

    def nested(fields: Fields) -> Any:
        value = _walk(fields, name)
        if value is None:
            raise Lacks(name)
        return value

    return nested if "." in name else flat


def _walk(value: Any, name: str) -> Any:
    """Names may hold dots themselves (OpenTelemetry's do), so the longest name that is there is taken first."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    end = name.rfind(".")
    while end > 0:
        if name[:end] in value:
            return _walk(value[name[:end]], name[end + 1 :])
        end = name.rfind(".", 0, end)
    return None


def plain(value: Any) -> Any:
    """A value as JSON has it: without the memory of how its numbers were written."""
    if type(value) is str:
        return value
    if type(value) is Real:
        number = float(value)
        if number in (float("inf"), float("-inf")):
            raise ValueError(f"the number {shown(value)} is out of range")
        return number
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return value


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Real):
        return value.text
    return msgspec.json.encode(value, enc_hook=float).decode()


def shown(value: Any) -> str:
    text = as_text(value)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def value_of(template: Any, spellings: Mapping[str, Mapping[str, Any]], *, exact: bool = False) -> Value:
    """A template as a function. ``exact`` keeps numbers as they were written, for times."""
    if isinstance(template, str):
        whole = _REFERENCE.fullmatch(template)
        if whole is not None and not whole[3]:
            name: str = whole[1] or whole[2]
            whole_field = field(name)
            spelt = spellings.get(name) or spellings.get(name.rpartition(".")[2])
            if spelt:
                known = spelt
                return lambda fields: respelt(whole_field(fields), known)
            return whole_field if exact else lambda fields: plain(whole_field(fields))
        if _REFERENCE.search(template):
            return _text_of(template, spellings)
        return lambda fields: template
    if isinstance(template, list):
        parts = [value_of(part, spellings) for part in template]
        return lambda fields: [part(fields) for part in parts]
    if isinstance(template, dict):
        named = [(name, value_of(part, spellings)) for name, part in template.items()]
        return lambda fields: {name: part(fields) for name, part in named}
    return lambda fields: template


def _text_of(template: str, spellings: Mapping[str, Mapping[str, Any]]) -> Value:
    parts: list[str | Value] = []
    end = 0
    for match in _REFERENCE.finditer(template):
        parts.append(template[end : match.start()])
        parts.append("$" if match[3] else value_of(match[0], spellings, exact=True))
        end = match.end()
    parts.append(template[end:])
    return lambda fields: "".join([part if isinstance(part, str) else as_text(part(fields)) for part in parts])


def respelt(value: Any, spelt: Mapping[str, Any]) -> Any:
    """A spelling that is not in the map stands for itself."""
    return spelt.get(as_text(value), plain(value))


def test_of(name: str, wanted: Any) -> Test:
    wanted_field = field(name)
    accepts = _accepts(wanted)

    def test(fields: Fields) -> bool:
        try:
            return accepts(wanted_field(fields))
        except Lacks:
            return False

    return test


def _accepts(wanted: Any) -> Callable[[Any], bool]:
    if isinstance(wanted, list):
        several = [_accepts(one) for one in wanted]
        return lambda value: any(one(value) for one in several)
    if isinstance(wanted, dict):
        search = re.compile(wanted["regex"]).search
        return lambda value: isinstance(value, str) and search(value) is not None
    if isinstance(wanted, str) and any(char in wanted for char in "*?["):
        glob = re.compile(fnmatch.translate(wanted)).match
        return lambda value: isinstance(value, str) and glob(value) is not None
    # True and 1 are equal to Python, and different in a log.
    return lambda value: value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
