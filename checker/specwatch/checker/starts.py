"""Where a behaviour may have begun, if not in Init: the states that the explored model has, or that were observed."""

from __future__ import annotations

from dataclasses import dataclass

from .behaviour import Behaviour, Event
from .bounds import Bounds
from .observe import to_value
from .options import Options
from .reading import observed
from .slicing import Separable
from .spec import Memory, Spec, State
from .tla.errors import TlaConfigError
from .tla.values import Value, ValueProblem, apply, function_of

MOST_STATES = 5_000
"""So many states are explored to begin in; a model with more answers fewer questions, and never a wrong one."""


@dataclass(frozen=True, slots=True)
class Possible:
    """States to begin in. ``complete``: there are no others."""

    states: list[State]
    complete: bool
    unobserved: bool = False


class Starts:
    """The states to begin in, found once for each spec."""

    def __init__(self, spec: Spec, separable: Separable | None, bounds: Bounds, options: Options) -> None:
        self.spec = spec
        self.separable = separable
        self.bounds = bounds
        self.options = options
        self._whole: Possible | None = None
        self._of_one: Possible | None = None
        self._first: tuple[Value, Spec] | None = None
        self._key: Value | None = None
        """The key that stands for all of them, which are alike."""

    def reachable(self, key: Value | None) -> Possible:
        """The states that paths without a broken invariant lead to, within the config's constraints; or those that
        ``start.states`` names.

        :param key: for the spec with this key alone; None for the whole.
        """
        if key is None:
            if self._whole is None:
                self._whole = self._possible(self.spec)
            return self._whole
        if self._of_one is None:
            self._key = key
            self._of_one = self._possible(self.spec_of(key))
        if key == self._key:
            return self._of_one
        return Possible([self._renamed(state, key) for state in self._of_one.states], self._of_one.complete)

    def _possible(self, spec: Spec) -> Possible:
        named = self.options.start_states
        return self._explored(spec) if named is None else self._named(spec, named)

    def spec_of(self, key: Value) -> Spec:
        """The spec with one key alone; that of the first remembers its steps, by which others are answered too."""
        assert self.separable is not None  # there are keys
        if self._first is not None and key == self._first[0]:
            return self._first[1]
        spec = self.separable.spec_of(self.spec, key)
        if self._first is None:
            spec.memory = Memory()
            self._first = key, spec
        return spec

    def _renamed(self, state: State, key: Value) -> State:
        assert self.separable is not None  # there are keys
        assert self._key is not None
        return tuple(
            function_of([(key, apply(value, self._key))]) if name in self.separable.keyed else value
            for name, value in zip(self.spec.variables, state, strict=True)
        )

    def _named(self, spec: Spec, name: str) -> Possible:
        definition = spec.program.definitions.get(name)
        if definition is None:
            raise TlaConfigError(f"start.states: the module {spec.program.root.name} has no definition {name}")
        states = list(dict.fromkeys(spec.states_of(definition.body, name)))
        return Possible([state for state in states if not spec.broken(state)], True)

    def _explored(self, spec: Spec) -> Possible:
        complete = True
        found: dict[State, None] = {}
        for state in spec.initial_states():
            if not spec.broken(state):
                found[state] = None
        layer = list(found)
        while layer:
            following: list[State] = []
            for state in layer:
                if not spec.in_constraints(state):
                    complete = False
                    continue
                for successor in spec.successors(state):
                    self.bounds.check(0)
                    if successor.state in found or spec.broken(successor.state):
                        continue
                    if not spec.in_action_constraints(state, successor.state):
                        complete = False
                        continue
                    if len(found) >= MOST_STATES:
                        return Possible(list(found), False)
                    found[successor.state] = None
                    following.append(successor.state)
            layer = following
        return Possible(list(found), complete)

    def observed(self, spec: Spec, behaviour: Behaviour, key: Value | None) -> Possible:
        """The states that the first observation leaves: itself, where it is of everything before the first event."""
        first = next((event for event in behaviour.events if event.before or event.state), None)
        if first is None:
            return Possible([], False, unobserved=True)
        if first is behaviour.events[0] and first.before:
            whole = _whole(spec, first)
            if whole is not None:
                return Possible([whole], True)
            possible = self.reachable(key)
            return Possible([s for s in possible.states if observed(spec, first.before, s)], possible.complete)
        return self.reachable(key)


def _whole(spec: Spec, event: Event) -> State | None:
    """The state that an event observed, if it observed all of it: no object, which names only some fields."""
    seen = event.before or {}
    if set(seen) != set(spec.variables):
        return None
    values = []
    for name in spec.variables:
        part = seen[name]
        if isinstance(part, dict) and not (len(part) == 1 and next(iter(part)) in ("#set", "#map", "#tup")):
            return None
        try:
            values.append(to_value(part, spec.models))
        except ValueProblem:
            return None
    return tuple(values)


__all__ = ["MOST_STATES", "Possible", "Starts"]
