"""What an event says, against what a TLA+ value is.

=====================  ============================================================================================
JSON                   TLA+
=====================  ============================================================================================
string                 a string, or the model value of that name
integer, true, false   an integer, a Boolean; never each other
array                  a sequence, compared whole; a function on 1..n is one
``{"#set": […]}``      a set, compared whole
``{"#map": [[k, v]]}`` a function, compared whole
``{"#tup": […]}``      a tuple
object                 a record or function: observed for a variable, or inside one that is, it names only some keys;
                       inside a set or array it is the whole record
``{"#delta": n}``      an integer that is by n more than before the step
``{"#added": […]}``    a set: that before the step with these, none of which was in it
``{"#removed": […]}``  a set: that before the step without these, all of which were in it
``{"#appended": […]}`` a sequence: that before the step with these at its end
=====================  ============================================================================================

A number with a fraction, and null, are no TLA+ values: they match nothing. (``truth/README-traces.md``)
The last four are *deltas*: they say what a step changed, so they stand where one is observed after a step, for a
variable or inside objects, and nowhere else (:func:`misplaced`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from immutables import Map

from .behaviour import Json
from .tla.values import (
    FALSE,
    TRUE,
    ModelValue,
    Value,
    ValueProblem,
    concrete,
    elements,
    function_of,
    is_finite,
    member,
)


def matches(observed: Json, value: Value, *, whole: bool = False, before: Value | None = None) -> bool:
    """Whether a value is what was observed; with ``whole`` an object names all of a record's fields.

    ``before`` is the value before the step, for deltas: without it they match nothing.
    """
    if observed is True or observed is False:
        return value is (TRUE if observed else FALSE)
    if isinstance(observed, int):
        return type(value) is int and value == observed
    if isinstance(observed, str):
        return value == observed if type(value) is str else type(value) is ModelValue and value.name == observed
    if isinstance(observed, list):
        return _is_sequence(observed, value)
    if isinstance(observed, dict):
        if len(observed) == 1:
            if "#set" in observed:
                return _is_set(observed["#set"], value)
            if "#map" in observed:
                return _is_function(observed["#map"], value)
            if "#tup" in observed:
                return _is_sequence(observed["#tup"], value)
            [(tag, change)] = observed.items()
            if tag in _DELTAS:
                # No TLA+ value is None.
                return before is not None and not whole and _DELTAS[tag](change, before, value)
        return _has_fields(observed, value, whole, before)
    return False


def _is_changed(by: Json, before: Value, value: Value) -> bool:
    return type(before) is int and type(value) is int and value - before == by


def _is_added(items: Json, before: Value, value: Value) -> bool:
    return _are_sets(before, value) and before <= value and _is_set(items, value - before)


def _is_removed(items: Json, before: Value, value: Value) -> bool:
    return _are_sets(before, value) and value <= before and _is_set(items, before - value)


def _are_sets(before: Value, value: Value) -> bool:
    return type(before) is frozenset and type(value) is frozenset


def _is_appended(items: Json, before: Value, value: Value) -> bool:
    if type(before) is not tuple or type(value) is not tuple or value[: len(before)] != before:
        return False
    return _is_sequence(items, value[len(before) :])


_DELTAS: dict[str, Callable[[Json, Value, Value], bool]] = {
    "#delta": _is_changed,
    "#added": _is_added,
    "#removed": _is_removed,
    "#appended": _is_appended,
}


def misplaced(observed: Json, *, after: bool = True) -> str | None:
    """What is wrong with the deltas in what was observed, as a sentence; None where nothing is.

    :param after: whether it was observed after a step, so that there may be deltas at all.
    """
    if isinstance(observed, list):
        return next((wrong for item in observed if (wrong := misplaced(item, after=False))), None)
    if not isinstance(observed, dict):
        return None
    if len(observed) == 1:
        [(tag, change)] = observed.items()
        if tag in _DELTAS:
            if not after:
                return f"{tag} stands where no step's change was observed"
            if tag == "#delta":
                return None if type(change) is int else f"#delta is {change!r}, and no integer"
            if not isinstance(change, list):
                return f"{tag} needs a list"
            return misplaced(change)
        if tag in ("#set", "#map", "#tup"):
            return misplaced(change, after=False)
    return next((wrong for item in observed.values() if (wrong := misplaced(item, after=after))), None)


def _is_sequence(items: Json, value: Value) -> bool:
    return (
        type(value) is tuple
        and isinstance(items, list)
        and len(value) == len(items)
        and all(matches(item, element, whole=True) for item, element in zip(items, value, strict=True))
    )


def _is_set(items: Json, value: Value) -> bool:
    if type(value) is not frozenset or not isinstance(items, list):
        return False
    found = set()
    for item in items:
        element = next((element for element in value if matches(item, element, whole=True)), None)
        if element is None:
            return False
        found.add(element)
    return len(found) == len(value)


def _is_function(pairs: Json, value: Value) -> bool:
    if not _are_pairs(pairs):
        return False
    if type(value) is tuple:
        table: Mapping[Value, Value] = dict(enumerate(value, 1))
    elif type(value) is Map:
        table = value
    else:
        return False
    found = set()
    for key, observed in pairs:
        argument = next((argument for argument in table if matches(key, argument, whole=True)), None)
        if argument is None or not matches(observed, table[argument], whole=True):
            return False
        found.add(argument)
    return len(found) == len(table)


def _are_pairs(pairs: Json) -> bool:
    return isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)


def _has_fields(observed: Mapping[str, Json], value: Value, whole: bool, before: Value | None) -> bool:
    if type(value) is tuple:
        return not observed and (not whole or not value)
    if type(value) is not Map or (whole and len(value) != len(observed)):
        return False
    for name, inner in observed.items():
        found = _field(value, name)
        known = _field(before, name) if type(before) is Map else None
        if found is None or not matches(inner, found, whole=whole, before=known):
            return False
    return True


def _field(function: Value, name: str) -> Value | None:
    return function.get(name, function.get(ModelValue(name)))


def candidates(observed: Json, collection: Value, models: frozenset[str]) -> list[Value]:
    """The elements of a set that an observed parameter may mean. ``models`` are the names of the spec's model values.

    A value of another kind than the set's elements is no member, and no error. An object gives some fields of a record.
    """
    if _is_partial(observed) and is_finite(collection):
        return [item for item in elements(collection) if matches(observed, item)]
    return [value for value in _meanings(observed, models) if _is_member(value, collection)]


def _is_partial(observed: Json) -> bool:
    return isinstance(observed, dict) and not any(tag in observed for tag in ("#set", "#map", "#tup"))


def _is_member(value: Value, collection: Value) -> bool:
    try:
        return member(value, collection)
    except ValueProblem:
        return False


def _meanings(observed: Json, models: frozenset[str]) -> Iterable[Value]:
    """What a JSON value may be: with strings as strings, and with those that name model values as model values."""
    try:
        plain = to_value(observed)
    except ValueProblem:
        return
    yield plain
    if models:
        named = to_value(observed, models)
        if named != plain:
            yield named


def to_value(observed: Json, models: frozenset[str] = frozenset()) -> Value:
    """The TLA+ value of a whole JSON value; strings among ``models`` are model values.

    :raises ValueProblem: a number with a fraction, or null.
    """
    if observed is True or observed is False:
        return TRUE if observed else FALSE
    if isinstance(observed, int):
        return observed
    if isinstance(observed, str):
        return ModelValue(observed) if observed in models else observed
    if isinstance(observed, list):
        return tuple(to_value(item, models) for item in observed)
    if isinstance(observed, dict):
        tagged = _tagged(observed, models) if len(observed) == 1 else None
        if tagged is not None:
            return tagged
        return function_of((name, to_value(item, models)) for name, item in observed.items())
    raise ValueProblem(f"{observed!r} is no TLA+ value")


def _tagged(observed: dict[str, Json], models: frozenset[str]) -> Value | None:
    """The value of ``{"#set": …}``, ``{"#map": …}`` or ``{"#tup": …}``; None for any other object."""
    [(tag, items)] = observed.items()
    if tag in ("#set", "#tup") and isinstance(items, list):
        values = (to_value(item, models) for item in items)
        return frozenset(values) if tag == "#set" else tuple(values)
    if tag == "#map" and _are_pairs(items):
        return function_of((to_value(key, models), to_value(item, models)) for key, item in items)
    if tag in ("#set", "#map", "#tup"):
        raise ValueProblem(
            f"{observed!r} is no TLA+ value: {tag} needs a list" + (" of pairs" if tag == "#map" else "")
        )
    return None


def model_names(values: Iterable[Value]) -> frozenset[str]:
    """The names of all model values in some values."""
    found: set[str] = set()
    stack = [concrete(value) for value in values]
    while stack:
        value = stack.pop()
        if type(value) is ModelValue:
            found.add(value.name)
        elif type(value) in (tuple, frozenset):
            stack.extend(value)
        elif type(value) is Map:
            stack.extend(value.keys())
            stack.extend(value.values())
    return frozenset(found)
