"""Sequences. As in TLC, ``Len``, ``Tail``, ``SubSeq`` and ``\\o`` take strings too; ``Head`` and ``Append`` do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..values import FALSE, TRUE, SequenceSet, Value, ValueProblem, concrete, is_set, kind_in_words
from .module import Builtin, StandardModule, integer


def _sequence(value: Value, operator: str, *, strings: bool = False) -> Any:
    value = concrete(value)
    if type(value) is tuple or (strings and type(value) is str):
        return value
    raise ValueProblem(f"{operator} is applied to {kind_in_words(value)}, not to a sequence")


def seq(base: Value) -> Value:
    """``Seq(S)``."""
    if not is_set(base):
        raise ValueProblem(f"Seq is applied to {kind_in_words(base)}, not to a set")
    return SequenceSet(base)


def length(items: Value) -> Value:
    """``Len(s)``."""
    return len(_sequence(items, "Len", strings=True))


def concatenation(left: Value, right: Value) -> Value:
    """``s \\o t``."""
    left, right = _sequence(left, "\\o", strings=True), _sequence(right, "\\o", strings=True)
    if type(left) is not type(right):
        raise ValueProblem(f"\\o joins {kind_in_words(left)} and {kind_in_words(right)}")
    return left + right


def append(items: Value, item: Value) -> Value:
    """``Append(s, e)``."""
    return (*_sequence(items, "Append"), concrete(item))


def head(items: Value) -> Value:
    """``Head(s)``."""
    items = _sequence(items, "Head")
    if not items:
        raise ValueProblem("Head is applied to the empty sequence")
    return items[0]


def tail(items: Value) -> Value:
    """``Tail(s)``."""
    items = _sequence(items, "Tail", strings=True)
    if not items:
        raise ValueProblem("Tail is applied to the empty sequence")
    return items[1:]


def subsequence(items: Value, first: Value, last: Value) -> Value:
    """``SubSeq(s, m, n)``."""
    items = _sequence(items, "SubSeq", strings=True)
    first, last = integer(first, "SubSeq", "second argument"), integer(last, "SubSeq", "third argument")
    if first > last:
        return items[:0]
    if first < 1 or last > len(items):
        raise ValueProblem(
            f"SubSeq asks for {first}..{last} of {kind_in_words(items)}, which has {len(items)} elements"
        )
    return items[first - 1 : last]


def select(items: Value, test: Callable[[Value], Value]) -> Value:
    """``SelectSeq(s, Test)``."""
    chosen = []
    for item in _sequence(items, "SelectSeq"):
        answer = test(item)
        if answer is TRUE:
            chosen.append(item)
        elif answer is not FALSE:
            raise ValueProblem(f"the test of SelectSeq gives {kind_in_words(answer)}, not a Boolean")
    return tuple(chosen)


MODULE = StandardModule(
    "Sequences",
    (),
    {
        "Seq": Builtin(1, seq),
        "Len": Builtin(1, length),
        "\\o": Builtin(2, concatenation),
        "Append": Builtin(2, append),
        "Head": Builtin(1, head),
        "Tail": Builtin(1, tail),
        "SubSeq": Builtin(3, subsequence),
        "SelectSeq": Builtin(2, select, {1: 1}),
    },
)
