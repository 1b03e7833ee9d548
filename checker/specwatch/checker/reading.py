"""What an event means to a spec: the actions that it may be, the parameters that it binds, what it observed.

An action or a parameter that the spec lacks is a mistake of the binding, and refused. A value outside a quantifier's
set is none: then no step is the event.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .behaviour import Event, Json
from .observe import candidates, matches, misplaced
from .predicates import Predicate
from .spec import Action, Spec, State, Successor
from .tla.errors import TlaError
from .tla.values import Value


class EventError(TlaError):
    """An event speaks of what the spec lacks: a mistake in the binding, not a verdict. Carries the event's place in
    the log.
    """

    def __init__(self, message: str, event: Event, number: int, *, hint: str | None = None) -> None:
        source = event.source
        super().__init__(message, file=source.file if source else None, hint=hint)
        self.line = source.line if source else None
        self.event = event
        self.number = number


@dataclass(frozen=True, slots=True)
class Reading:
    """An event as the spec understands it: the actions that it may mean, by the parameters that it binds."""

    event: Event
    requests: tuple[tuple[frozenset[Action], dict[str, list[Json]]], ...]
    expected: tuple[Predicate, ...] = ()
    """What holds after it."""


def read_event(spec: Spec, event: Event, number: int) -> Reading:
    """Finds what an event means.

    :raises EventError: an action that Next lacks, or a parameter that the action lacks.
    """
    for name in (event.action, *event.alternatives):
        _refuse_unknown(spec, name, event, number)
    actions = actions_of(spec, event)
    by_params: dict[tuple[tuple[str, str], ...], list[Action]] = {}
    for action in actions:
        meant = [(name, action.parameter(name)) for name in event.params]
        if all(parameter is not None for _, parameter in meant):
            by_params.setdefault(tuple((name, parameter or name) for name, parameter in meant), []).append(action)
    if not by_params:
        known = known_names(actions)
        lacking = [name for name in event.params if all(action.parameter(name) is None for action in actions)]
        # Each parameter may be known to some action of a group, and no action know them all.
        unknown = lacking[0] if lacking else ", ".join(event.params)
        near = difflib.get_close_matches(unknown, known, 2, 0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"its parameters are {', '.join(known) or 'none'}"
        raise EventError(
            f"event {number} gives {event.action} the parameter {unknown}, which it lacks", event, number, hint=hint
        )
    requests = []
    for pairs, group in by_params.items():
        bound: dict[str, list[Json]] = {}
        for name, parameter in pairs:
            bound.setdefault(parameter, []).append(event.params[name])
        requests.append((frozenset(group), bound))
    expected = tuple(
        spec.predicates.parse(text, known_names(actions), where)
        for text in event.expect
        for where in (f"expect of event {number}, {event.action}",)
    )
    return Reading(event, tuple(requests), expected)


def actions_of(spec: Spec, event: Event) -> list[Action]:
    """The actions that an event may mean, by its own name and those of its alternatives."""
    return [action for name in (event.action, *event.alternatives) for action in spec.named(name)]


def check_events(spec: Spec, events: Iterable[Event]) -> None:
    """Refuses what the spec lacks before anything is replayed, be it after the step that decides.

    :raises EventError: as :func:`read_event` does.
    """
    known: set[tuple[str, ...]] = set()
    for number, event in enumerate(events, 1):
        refuse_misplaced(event, number)
        form = (event.action, *event.alternatives, "", *event.params, "", *event.expect)
        if form not in known:
            read_event(spec, event, number)
            known.add(form)


def _refuse_unknown(spec: Spec, name: str, event: Event, number: int) -> None:
    if not spec.named(name):
        near = difflib.get_close_matches(name, spec.names(), 3, 0.5)
        defined = f" (it is defined, and no part of {spec.next_name})" if name in spec.program.definitions else ""
        raise EventError(
            f"event {number} is {name}, and the spec has no such action{defined}",
            event,
            number,
            hint=f"did you mean {' or '.join(near)}?" if near else f"its actions are {', '.join(spec.names())}",
        )


def known_names(actions: Iterable[Action]) -> list[str]:
    """The names by which an expression may speak of the parameters of some actions."""
    return sorted({name for action in actions for name in (*action.parameters, *action.aliases)})


def chosen(successor: Successor) -> dict[str, Value]:
    """The values of a step's parameters, by all names that they have."""
    params = dict(successor.params)
    return {**{name: params[bound] for name, bound in successor.action.aliases.items()}, **params}


def event_fields(event: Event) -> dict[str, Json]:
    """What ``$name`` means in an expression over an event: a parameter, else a further field of the record."""
    return {**(event.extra or {}), **event.params}


def taken(spec: Spec, reading: Reading, state: State) -> Iterator[Successor]:
    """The steps from a state that an event may be: its actions, its parameters, what it observed before and after."""
    event = reading.event
    if event.before and not observed(spec, event.before, state):
        return
    for actions, bound in reading.requests:

        def choose(name: str, collection: Value, bound: dict[str, list[Json]] = bound) -> list[Value] | None:
            given = bound.get(name)
            if given is None:
                return None
            found = candidates(given[0], collection, spec.models)
            return (
                found
                if len(given) == 1
                else [value for value in found if all(matches(item, value) for item in given[1:])]
            )

        for successor in spec.successors(state, actions, choose):
            if event.state and not observed(spec, event.state, successor.state, state):
                continue
            if all(
                predicate.holds(spec, successor.state, bound=chosen(successor), fields=event_fields(event), event=event)
                for predicate in reading.expected
            ):
                yield successor


def observed(spec: Spec, seen: dict[str, Json], state: State, before: State | None = None) -> bool:
    """Whether a state is what an event observed. A variable that the spec lacks was never seen: FALSE.

    ``before`` is the state that the step starts from, where deltas may have been observed.
    """
    values = spec.mapping(state)
    known = {} if before is None else spec.mapping(before)
    return all(name in values and matches(part, values[name], before=known.get(name)) for name, part in seen.items())


def refuse_misplaced(event: Event, number: int) -> None:
    """Refuses deltas that stand where none can be.

    :raises EventError: in what was observed before the step, in a parameter, or inside a whole value.
    """
    for what, seen in (("state", event.state), ("before", event.before), ("params", event.params)):
        for name, part in (seen or {}).items():
            wrong = misplaced(part, after=what == "state")
            if wrong is not None:
                raise EventError(
                    f"event {number}, {event.action}: {what}.{name}: {wrong}",
                    event,
                    number,
                    hint="#delta, #added, #removed and #appended say what a step changed: in state, for a variable "
                    "or inside objects",
                )
