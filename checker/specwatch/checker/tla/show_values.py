"""Values printed as TLC prints them, on one line (``tlc2.value.impl``, ``toString``)."""

from __future__ import annotations

import re

from immutables import Map

from .values import (
    Boolean,
    FunctionSet,
    InfiniteSet,
    Interval,
    LazyFunction,
    ModelValue,
    PowerSet,
    ProductSet,
    RecordSet,
    SequenceSet,
    SetValue,
    Value,
    ValueProblem,
    concrete,
    elements,
    is_finite,
    order_key,
)

_FIELD = re.compile(r"[A-Za-z0-9_]+")
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"})
_SHORT = 60


def show(value: Value) -> str:
    """A value as TLA+ text: ``<<1, 2>>``, ``[a |-> 1]``, ``(n1 :> 0 @@ n2 :> 1)``, ``{1, 2}``."""
    kind = type(value)
    if kind is str:
        return f'"{value.translate(_ESCAPES)}"'
    if kind is int or kind is Boolean or kind is ModelValue:
        return str(value)
    if kind is tuple:
        return f"<<{', '.join(map(show, value))}>>"
    if kind is frozenset:
        return f"{{{', '.join(map(show, _ascending(value)))}}}"
    if kind is Map:
        keys = _ascending(frozenset(value))
        if all(type(key) is str and _FIELD.fullmatch(key) for key in keys):
            return f"[{', '.join(f'{key} |-> {show(value[key])}' for key in keys)}]"
        return f"({' @@ '.join(f'{show(key)} :> {show(value[key])}' for key in keys)})"
    if kind is LazyFunction:
        if is_finite(value.domain):
            return show(concrete(value))
        return f"[x \\in {show(value.domain)} |-> ...]"
    if isinstance(value, SetValue):
        return _show_set(value)
    return str(value)


def _show_set(value: SetValue) -> str:
    if isinstance(value, Interval):
        return f"{value.low}..{value.high}" if value.low <= value.high else "{}"
    if isinstance(value, InfiniteSet):
        return value.name
    if isinstance(value, SequenceSet):
        return f"Seq({show(value.base)})"
    if value.finite:
        return show(concrete(value))
    if isinstance(value, PowerSet):
        return f"SUBSET {show(value.base)}"
    if isinstance(value, FunctionSet):
        return f"[{show(value.domain)} -> {show(value.range)}]"
    if isinstance(value, RecordSet):
        return f"[{', '.join(f'{name} : {show(field)}' for name, field in value.fields.items())}]"
    assert isinstance(value, ProductSet)
    return " \\X ".join(map(show, value.factors))


def _ascending(items: frozenset[Value]) -> tuple[Value, ...]:
    try:
        return elements(items)
    except ValueProblem:
        # A set of different kinds has no order in TLC, and still has to be shown in the error that says so.
        return tuple(sorted(items, key=order_key))


def show_short(value: Value) -> str:
    """A value for the middle of a sentence: cut where it grows long."""
    text = show(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."
