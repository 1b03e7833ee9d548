"""What the spec's constants take from the log, and ids that become integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from specwatch.checker.behaviour import Behaviour, Event, Json

from .errors import at
from .rules import Binding, Constant


def constants_from(binding: Binding, behaviours: list[Behaviour]) -> dict[str, Json]:
    """The constants that the binding declares, by name, as JSON; a set is ``{"#set": [...]}``, sorted."""
    return {name: _value(constant, binding, behaviours) for name, constant in binding.constants.items()}


def _events(behaviours: list[Behaviour]) -> Iterator[Event]:
    """All events, those too that had not ended with the log."""
    for behaviour in behaviours:
        yield from behaviour.events
        yield from (loss.event for loss in behaviour.losses if loss.event is not None)


def _value(constant: Constant, binding: Binding, behaviours: list[Behaviour]) -> Json:
    if constant.keys:
        return {"#set": _distinct(_keys(binding, behaviours))}
    if constant.values is not None:
        return {"#set": _distinct(_values(constant.values, behaviours))}
    if constant.count == "keys":
        return len(_distinct(_keys(binding, behaviours)))
    if constant.count is not None:
        return sum(event.action == constant.count for event in _events(behaviours))
    return constant.literal


def _values(name: str, behaviours: list[Behaviour]) -> Iterator[Json]:
    return (event.params[name] for event in _events(behaviours) if name in event.params)


def _keys(binding: Binding, behaviours: list[Behaviour]) -> Iterator[Json]:
    """The key as the spec sees it: the parameter where there is one, which may have been interned; else as logged."""
    for event in _events(behaviours):
        key = None if binding.key is None else binding.key.of(event.params)
        if key is None:
            key = event.key
        if key is not None:
            yield key


def _distinct(values: Iterable[Json]) -> list[Json]:
    """Each value once, sorted: numbers, then other values, then texts."""
    strings: list[str] = []
    others: dict[bytes, Json] = {}
    for value in values:
        if isinstance(value, str):
            strings.append(value)
        else:
            others[msgspec.json.encode(value, order="deterministic")] = value
    # Sorted first and thinned then: a set of a million texts would take more memory than the list.
    strings.sort()
    strings[:] = (text for text, _ in groupby(strings))
    return [*sorted(others.values(), key=_rank), *strings] if others else strings


def _rank(value: Json) -> tuple[int, Any]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (0, value)
    return (1, msgspec.json.encode(value, order="deterministic"))


def intern(binding: Binding, behaviours: list[Behaviour]) -> dict[str, str]:
    """Replace the values of interned parameters by integers, numbered in the sorted order of the originals.

    The events' ``params`` and observed values change; ``key`` stays as logged. Returns the legend.
    """
    legend: dict[str, str] = {}
    for name, first in binding.intern.items():
        originals = _distinct(_values(name, behaviours))
        number = {_known(original): first + place for place, original in enumerate(originals)}
        for original, place in zip(originals, number.values(), strict=True):
            label = str(place) if len(binding.intern) == 1 else f"{name}={place}"
            legend[label] = original if isinstance(original, str) else msgspec.json.encode(original).decode()
        for event in _events(behaviours):
            if name in event.params:
                event.params[name] = number[_known(event.params[name])]
            if event.state is not None:
                event.state = _interned(event.state, number, event)
            if event.before is not None:
                event.before = _interned(event.before, number, event)
    return legend


def _known(value: Json) -> object:
    # True and 1 are one key to Python, and two values to TLA+.
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic")


def _interned(value: Any, number: dict[object, int], event: Event) -> Any:
    if isinstance(value, str):
        return number.get(value, value)
    if isinstance(value, list):
        return [_interned(part, number, event) for part in value]
    if isinstance(value, dict):
        for name in value:
            if name in number:
                raise at(
                    event.source,
                    f"an observed value has the interned id {name!r} as the name of a field",
                    'a function of interned ids is observed as {"#map": [[id, value], …]}',
                )
        return {name: _interned(part, number, event) for name, part in value.items()}
    return value
