"""Which entry of a variable an action's text means, and what is known of it before any step is computed.

A *term* is read off the text: it says by an action's parameters which entry is meant, ``m.dest`` of ``log[m.dest]``.
A *pattern* is what is known of a value: nothing, that it is one of a few, that it is a record or tuple some parts of
which are known. :func:`known` makes a pattern of a term where something is known of the parameters, :func:`bind` finds
what must be known of the parameters so that a term fits a pattern.

Both are right in one direction only: a pattern fits every value that may be meant, and perhaps others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from immutables import Map

from .behaviour import Json
from .observe import to_value
from .tla.values import ModelValue, Value, ValueProblem

DEPTH = 3
"""How deep records and tuples are looked into. An action that wraps a message in another would never come to an end."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any value: a term that is not understood, and a pattern that fits all."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Both a term, with one value (a constant), and a pattern."""

    values: frozenset[Value]


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of a parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class FieldOf:
    """``record.name``."""

    record: Term
    name: str


@dataclass(frozen=True, slots=True)
class RecordOf:
    """``[name |-> term, …]``, with all its fields."""

    fields: tuple[tuple[str, Term], ...]


@dataclass(frozen=True, slots=True)
class TupleOf:
    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """A record of which these fields are known, whatever others it has."""

    fields: tuple[tuple[str, Pattern], ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple of so many items."""

    items: tuple[Pattern, ...]


Term: TypeAlias = "Unknown | OneOf | Parameter | FieldOf | RecordOf | TupleOf"
Pattern: TypeAlias = "Unknown | OneOf | Parts | Items"
Bindings: TypeAlias = Mapping[str, Pattern]
"""What is known of an action's parameters; nothing of one that is not named."""

UNKNOWN = Unknown()


def constant(value: Value) -> OneOf:
    return OneOf(frozenset((value,)))


def field_of(record: Term, name: str) -> Term:
    """``record.name``, as plainly as it can be said."""
    if isinstance(record, RecordOf):
        return dict(record.fields).get(name, UNKNOWN)
    return FieldOf(record, name) if isinstance(record, (Parameter, FieldOf)) else UNKNOWN


def is_understood(term: Term) -> bool:
    """Whether the parameters alone say what a term is worth."""
    if isinstance(term, FieldOf):
        return is_understood(term.record)
    if isinstance(term, RecordOf):
        return all(is_understood(part) for _, part in term.fields)
    if isinstance(term, TupleOf):
        return all(map(is_understood, term.items))
    return not isinstance(term, Unknown)


def known(term: Term, bindings: Bindings, depth: int = DEPTH) -> Pattern:
    """What a term is worth, as far as the parameters are known."""
    if isinstance(term, Parameter):
        return bindings.get(term.name, UNKNOWN)
    if isinstance(term, FieldOf):
        return _part(known(term.record, bindings, depth + 1), term.name)
    if isinstance(term, (RecordOf, TupleOf)):
        if depth == 0:
            return UNKNOWN
        if isinstance(term, TupleOf):
            return Items(tuple(known(item, bindings, depth - 1) for item in term.items))
        return _parts((name, known(part, bindings, depth - 1)) for name, part in term.fields)
    return term


def bind(term: Term, pattern: Pattern) -> dict[str, Pattern] | None:
    """What must be known of the parameters so that a term fits a pattern; None where it never does."""
    if isinstance(pattern, Unknown) or isinstance(term, Unknown):
        return {}
    if isinstance(term, Parameter):
        return {term.name: _cut(pattern, DEPTH)}
    if isinstance(term, FieldOf):
        return bind(term.record, Parts(((term.name, pattern),)))
    if isinstance(term, OneOf):
        return None if both(term, pattern) is None else {}
    found: dict[str, Pattern] = {}
    for part, needed in _needed(term, pattern):
        own = None if needed is None else bind(part, needed)
        merged = None if own is None else merge(found, own)
        if merged is None:
            return None
        found = merged
    return found


def _needed(term: RecordOf | TupleOf, pattern: OneOf | Parts | Items) -> Iterable[tuple[Term, Pattern | None]]:
    """The parts of a term, each with what it must fit; None for a part that never does."""
    if isinstance(pattern, OneOf):
        alike = _alike(term, pattern.values)
        if not alike:
            return [(UNKNOWN, None)]
        if isinstance(term, TupleOf):
            columns = zip(*alike, strict=True)
            return [(item, OneOf(frozenset(column))) for item, column in zip(term.items, columns, strict=True)]
        return [(part, OneOf(frozenset(value[name] for value in alike))) for name, part in term.fields]
    if isinstance(term, TupleOf):
        if isinstance(pattern, Items) and len(pattern.items) == len(term.items):
            return list(zip(term.items, pattern.items, strict=True))
        return [(UNKNOWN, None)]
    if isinstance(pattern, Parts):
        fields = dict(term.fields)
        return [(fields.get(name, UNKNOWN), part if name in fields else None) for name, part in pattern.fields]
    return [(UNKNOWN, None)]


def _alike(term: RecordOf | TupleOf, values: frozenset[Value]) -> list[Value]:
    """The values that have the parts of a term, and no others."""
    if isinstance(term, TupleOf):
        return [value for value in values if type(value) is tuple and len(value) == len(term.items)]
    names = {name for name, _ in term.fields}
    return [value for value in values if type(value) is Map and set(value) == names]


def merge(one: Bindings, other: Bindings) -> dict[str, Pattern] | None:
    """What is known where both are; None where they exclude each other."""
    found = dict(one)
    for name, pattern in other.items():
        merged = both(found.get(name, UNKNOWN), pattern)
        if merged is None:
            return None
        found[name] = merged
    return found


def both(one: Pattern, other: Pattern) -> Pattern | None:
    """A pattern for the values that two patterns fit; None where there are none."""
    if isinstance(one, Unknown):
        return other
    if isinstance(other, Unknown):
        return one
    if isinstance(one, OneOf) or isinstance(other, OneOf):
        few, rest = (one, other) if isinstance(one, OneOf) else (other, one)
        assert isinstance(few, OneOf)
        values = frozenset(value for value in few.values if fits(rest, value))
        return OneOf(values) if values else None
    if isinstance(one, Parts) and isinstance(other, Parts):
        merged = merge(dict(one.fields), dict(other.fields))
        return None if merged is None else _parts(merged.items())
    if isinstance(one, Items) and isinstance(other, Items) and len(one.items) == len(other.items):
        items = [both(*pair) for pair in zip(one.items, other.items, strict=True)]
        found = tuple(item for item in items if item is not None)
        return Items(found) if len(found) == len(items) else None
    return None


def fits(pattern: Pattern, value: Value) -> bool:
    if isinstance(pattern, OneOf):
        return value in pattern.values
    if isinstance(pattern, Parts):
        return type(value) is Map and all(name in value and fits(part, value[name]) for name, part in pattern.fields)
    if isinstance(pattern, Items):
        return (
            type(value) is tuple
            and len(value) == len(pattern.items)
            and all(fits(*pair) for pair in zip(pattern.items, value, strict=True))
        )
    return True


def covers(one: Pattern, other: Pattern) -> bool:
    """Whether a pattern fits all that another one does, as far as can be told."""
    return (
        isinstance(one, Unknown)
        or one == other
        or (isinstance(other, OneOf) and all(fits(one, v) for v in other.values))
    )


def seen(observed: Json, models: frozenset[str]) -> Pattern:
    """What is known of a value that an event tells of (:mod:`.observe`); ``models`` are the spec's model values."""
    if isinstance(observed, str):
        return seen_name(observed, models)
    if isinstance(observed, list):
        return Items(tuple(seen(item, models) for item in observed))
    if isinstance(observed, dict):
        if observed and not any(name.startswith("#") or name in models for name in observed):
            return _parts((name, seen(part, models)) for name, part in observed.items())
        return UNKNOWN
    try:
        return constant(to_value(observed))
    except ValueProblem:
        return UNKNOWN


def seen_name(name: str, models: frozenset[str]) -> OneOf:
    """A string of an event: a string, or the model value of that name."""
    return OneOf(frozenset({name, ModelValue(name)} if name in models else {name}))


def _parts(fields: Iterable[tuple[str, Pattern]]) -> Pattern:
    found = tuple(sorted(((name, part) for name, part in fields if part != UNKNOWN), key=lambda field: field[0]))
    return Parts(found) if found else UNKNOWN


def _part(pattern: Pattern, name: str) -> Pattern:
    """What is known of a record's field."""
    if isinstance(pattern, OneOf):
        # A value without the field is none that the term can be read from.
        values = frozenset(value[name] for value in pattern.values if type(value) is Map and name in value)
        return OneOf(values) if values else UNKNOWN
    return dict(pattern.fields).get(name, UNKNOWN) if isinstance(pattern, Parts) else UNKNOWN


def _cut(pattern: Pattern, depth: int) -> Pattern:
    if isinstance(pattern, (Parts, Items)) and depth == 0:
        return UNKNOWN
    if isinstance(pattern, Parts):
        return _parts((name, _cut(part, depth - 1)) for name, part in pattern.fields)
    if isinstance(pattern, Items):
        return Items(tuple(_cut(item, depth - 1) for item in pattern.items))
    return pattern
