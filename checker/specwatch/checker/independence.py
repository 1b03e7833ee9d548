"""Before which events a hidden step need be tried: only where something that it changes matters.

Without this every enabled hidden step is tried before every event, and the states are multiplied by all subsets of
what is in flight, whether or not anything looks there again.

**Rule.** Before an event ``e`` only the *relevant* hidden steps are tried: those that may not be put off past ``e``,
and those that may not be put off past a relevant one. A step ``h`` may be put off past ``x`` if, wherever ``h`` then
``x`` is possible, one of these holds:

* ``x`` then ``h`` is possible and ends in the same state. So it is where neither writes a cell
  (:mod:`.footprints`) that the other touches; where ``h`` needs an element that ``x`` adds; where both add, or both
  drop. Moreover no part of an invariant may read a cell that ``h`` writes and one that ``x`` writes: then the state
  between the two breaks nothing that the state before, or the one after, does not.
* ``h`` then ``x`` is not possible for any values that make them touch the same cell: ``h`` drops what ``x`` needs.
* ``h`` writes a single cell, and ``x`` overwrites it unseen: then ``x`` alone ends in the same state.

**Why the answer is the same.** Take any path. In its first gap put off every irrelevant step, from the last to the
first, past the relevant ones after it and past ``e``: it lands in the next gap, or vanishes. Go on with the next gap.
What is put off past the last event is left out. The path that results explains the same events in the same order, is
tried by the rule, has no more hidden steps, and breaks nothing that the first did not. And what the rule tries is a
path of the whole search. So on each level there is a good path, and a path at all, in both or in neither; the least
sets of broken invariants and the fewest hidden steps are the same. Not the same are the *numbers of states*: unneeded
hidden steps reach more of them. And where the spec has no value in a state that only unneeded steps reach, that is
not found out.

Under a partial order the next event is any that is ready, and what is relevant to one of them is tried. An irrelevant
step is irrelevant to the one that comes on the path, and can be put off past it; the gap after it is judged by the
events that are ready then.

This is so only while a hidden step's other effects do not count: with ``hidden_max``, constraints that are kept,
properties of steps, time bounds, or guards over the next event, all steps matter. So they do before a lost record that
may be filled, since it may be any step; before the record's window, and once it is filled, the rule holds again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from .behaviour import Json
from .footprints import CHANGES, Access, Cell, Footprint, NotUnderstood, Touch, footprints, read_by, units
from .places import (
    UNKNOWN,
    Bindings,
    OneOf,
    Parameter,
    Pattern,
    Term,
    bind,
    both,
    constant,
    covers,
    fits,
    is_understood,
    known,
    merge,
    seen,
    seen_name,
)
from .spec import Action, Spec, State, Successor
from .tla.values import Value, ValueProblem, elements, is_finite, is_set, member

if TYPE_CHECKING:
    from .reading import Reading

MOST_KEPT = 10_000
"""For how many forms of events it is remembered what matters."""

MOST_PATTERNS = 100
"""How many patterns of one action are told apart; beyond, all its steps matter."""

_UNTOUCHED = {
    (Touch.READ, Touch.READ),
    (Touch.READ, Touch.NEED),
    (Touch.NEED, Touch.READ),
    (Touch.NEED, Touch.NEED),
    (Touch.NEED, Touch.ADD),
    (Touch.ADD, Touch.ADD),
    (Touch.DROP, Touch.NEED),
    (Touch.DROP, Touch.DROP),
}
"""How two steps may touch one cell, and the first be put off past the second."""


class Relevant:
    """The hidden steps that matter, by action: each pattern says what some parameters are."""

    def __init__(self, patterns: dict[Action, list[Bindings]]) -> None:
        self.patterns = patterns
        self.actions = frozenset(patterns)

    def __call__(self, successor: Successor) -> bool:
        """Whether a hidden step is one of them."""
        params = dict(successor.params)
        return any(
            all(fits(pattern, params[name]) for name, pattern in bindings.items())
            for bindings in self.patterns.get(successor.action, ())
        )

    def steps(self, spec: Spec, state: State) -> Iterator[Successor]:
        """Those from a state, without a look at the values that no pattern allows."""
        if self.actions:
            choose = None if spec.memory is not None else self._choose
            yield from filter(self, spec.successors(state, self.actions, choose))

    def _choose(self, name: str, collection: Value) -> list[Value] | None:
        patterns = [
            bindings.get(name, UNKNOWN)
            for action, group in self.patterns.items()
            if name in action.parameters
            for bindings in group
        ]
        if UNKNOWN in patterns:
            return None
        if all(isinstance(pattern, OneOf) for pattern in patterns):
            values = frozenset(v for pattern in patterns if isinstance(pattern, OneOf) for v in pattern.values)
            found = frozenset(value for value in values if _is_member(value, collection))
        elif type(collection) is frozenset or is_finite(collection):
            items = collection if type(collection) is frozenset else elements(collection)
            found = frozenset(item for item in items if any(fits(pattern, item) for pattern in patterns))
        else:
            return None
        return list(elements(found))


@dataclass(frozen=True, slots=True)
class _Step:
    """Steps that touch such cells, with what is known of the parameters that name them."""

    footprint: Footprint
    bindings: Bindings


def independence(spec: Spec, hidden: frozenset[Action]) -> Independence:
    """What matters before which events: found out once for a spec, whatever its sets of keys."""
    constants = spec.evaluator.constants.items()
    # Nothing that is found out depends on which elements a set has.
    values = frozenset((name, None if is_set(value) else value) for name, value in constants)
    form = Independence, hidden, values, frozenset(spec.evaluator.replaced.items())
    known = spec.kept.get(form)
    if not isinstance(known, Independence):
        known = spec.kept[form] = Independence(spec, hidden)
    return known


class Independence:
    """What matters before which events of a spec, where some actions are hidden."""

    def __init__(self, spec: Spec, hidden: frozenset[Action]) -> None:
        self.spec = spec
        self.hidden = [action for action in spec.actions if action in hidden]
        self._kept: dict[bytes, Relevant | None] = {}
        self._pairs: dict[tuple[int, Action], list[tuple[Access, Cell]]] = {}
        self._writes: dict[str, list[tuple[Action, Cell]]] = defaultdict(list)
        self._understood = True
        try:
            self._footprints = footprints(spec)
            self._units = units(spec)
            for action in self.hidden:
                for cell in _written(self._footprints[action]):
                    self._writes[cell.variable].append((action, cell))
        except NotUnderstood:
            self._understood = False

    def relevant(self, readings: Sequence[Reading]) -> Relevant | None:
        """The hidden steps that matter before some events, one of which comes next; None where all may."""
        if not self._understood:
            return None
        form = msgspec.json.encode([_form(reading) for reading in readings])
        if form not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            try:
                self._kept[form] = Relevant(self._closed(readings)[0])
            except NotUnderstood:
                self._kept[form] = None
        return self._kept[form]

    def looks(self, reading: Reading) -> list[tuple[str, Pattern]] | None:
        """The cells that an event, or a hidden step that matters before it, may look at, by variable; None where it may
        be all. All cells of a part of an invariant are, where one of them is written.
        """
        if not self._understood:
            return None
        try:
            _, steps = self._closed([reading])
        except NotUnderstood:
            return None
        found: dict[tuple[str, Pattern], None] = {}
        for step in steps:
            for (variable, place), touch in step.footprint.accesses:
                # What is added or dropped whatever was there is not looked at.
                if touch not in (Touch.ADD, Touch.DROP):
                    found[variable, known(place, step.bindings)] = None
            for one, other, names in self._tied(step):
                found[one.variable, known(one.place, names)] = None
                found[other.variable, known(other.place, names)] = None
        return list(found)

    def _closed(self, readings: Sequence[Reading]) -> tuple[dict[Action, list[Bindings]], list[_Step]]:
        """The relevant hidden steps before some events; and the steps that these may be, with the events' own."""
        found: dict[Action, list[Bindings]] = {}
        steps = [step for reading in readings for step in self._steps(reading)]
        for step in steps:  # which grows
            for action, bindings in self._before(step):
                patterns = found.setdefault(action, [])
                if len(patterns) >= MOST_PATTERNS:
                    bindings = {}
                if not any(_covers(other, bindings) for other in patterns):
                    patterns[:] = [other for other in patterns if not _covers(bindings, other)] + [bindings]
                    steps.append(_Step(self._footprints[action], bindings))
        return found, steps

    # --- what an event is ---------------------------------------------------------------------------------------------

    def _steps(self, reading: Reading) -> Iterator[_Step]:
        """The steps that an event may be; what it tells of the states before and after, as what is read there."""
        event = reading.event
        observed = (*(event.before or {}).items(), *(event.state or {}).items())
        yield _Step(_reading_of(Access(cell, Touch.READ) for one in observed for cell in self._told(*one)), {})
        for actions, bound in reading.requests:
            given: dict[str, Pattern] = {}
            for name, values in bound.items():
                pattern: Pattern | None = UNKNOWN
                for value in values:
                    pattern = None if pattern is None else both(pattern, seen(value, self.spec.models))
                if pattern is None:
                    break
                given[name] = pattern
            else:
                for action in sorted(actions, key=self.spec.actions.index):
                    footprint = self._footprints[action]
                    bindings = _with_facts(footprint, given)
                    if bindings is not None:
                        yield _Step(footprint, bindings)
                        yield _Step(_reading_of(self._expected(reading, action)), bindings)

    def _told(self, variable: str, value: Json) -> list[Cell]:
        """The cells that an observation is compared with: single fields of a function, or all of a variable."""
        if not isinstance(value, dict) or not value or any(name.startswith("#") for name in value):
            return [Cell(variable, UNKNOWN)]
        return [Cell(variable, seen_name(name, self.spec.models)) for name in value]

    def _expected(self, reading: Reading, action: Action) -> list[Access]:
        from .reading import event_fields

        names: dict[str, Term] = {name: Parameter(name) for name in action.parameters}
        names |= {name: Parameter(bound) for name, bound in action.aliases.items()}
        found = []
        for predicate in reading.expected:
            fields = predicate.environment(self.spec, {}, event_fields(reading.event))
            free = {**dict.fromkeys(predicate.spelt, UNKNOWN), **names}
            free |= {name: constant(value) for name, value in fields.items()}
            found += [Access(cell, Touch.READ) for cell in read_by(self.spec, predicate.expression, free)]
        return found

    # --- what cannot be put off past a step ---------------------------------------------------------------------------

    def _before(self, step: _Step) -> Iterator[tuple[Action, Bindings]]:
        """The hidden steps that may not be put off past a step."""
        for action in self.hidden:
            for access, cell in self._conflicts(step.footprint, action):
                bindings = bind(cell.place, known(access.cell.place, step.bindings))
                if bindings is not None:
                    yield from self._possible(action, bindings)
        for one, other, names in self._tied(step):
            # Alone, a cell that both write is between them as it is before or after.
            if other is not one or not is_understood(one.place):
                for action, cell in self._writes.get(other.variable, ()):
                    bindings = bind(cell.place, known(other.place, names))
                    if bindings is not None:
                        yield from self._possible(action, bindings)

    def _possible(self, action: Action, bindings: Bindings) -> Iterator[tuple[Action, Bindings]]:
        merged = _with_facts(self._footprints[action], bindings)
        if merged is not None:
            yield action, merged

    def _conflicts(self, later: Footprint, action: Action) -> list[tuple[Access, Cell]]:
        """How a step touches what a hidden one before it touches, so that they do not commute: its access, and the cell
        of the hidden one.
        """
        place = id(later), action
        pairs = self._pairs.get(place)
        if pairs is None:
            pairs = []
            own = self._footprints[action]
            for access in own.accesses:
                for other in later.accesses:
                    if access.cell.variable == other.cell.variable and not _may_wait(own, access, later, other):
                        pairs.append((other, access.cell))
            if any(later is one for one in self._footprints.values()):
                self._pairs[place] = pairs
        return pairs

    def _tied(self, step: _Step) -> Iterator[tuple[Cell, Cell, Bindings]]:
        """Two cells that a part of an invariant reads, the first of which a step may write, and what is known then of
        the names in their places.
        """
        for cell in _written(step.footprint):
            pattern = known(cell.place, step.bindings)
            for unit in self._units:
                for one in unit:
                    names = bind(one.place, pattern) if one.variable == cell.variable else None
                    if names is not None:
                        for other in unit:
                            yield one, other, names


def _may_wait(own: Footprint, access: Access, later: Footprint, other: Access) -> bool:
    """Whether a hidden step may be put off past a later one, as far as one cell goes that they touch so."""
    if (access.touch, other.touch) in _UNTOUCHED:
        return True
    if access.cell in own.drops and other.cell in later.needs:
        return True
    return access.cell == own.only and other.touch in (Touch.ADD, Touch.DROP)


def _written(footprint: Footprint) -> list[Cell]:
    return list(dict.fromkeys(access.cell for access in footprint.accesses if access.touch in CHANGES))


def _reading_of(accesses: Iterable[Access]) -> Footprint:
    return Footprint(tuple(dict.fromkeys(accesses)), frozenset(), frozenset(), None, ())


def _with_facts(footprint: Footprint, bindings: Bindings) -> Bindings | None:
    """What is known of an action's parameters together with what its guards say; None where it is never possible."""
    found: dict[str, Pattern] | None = dict(bindings)
    for term, value in footprint.facts:
        own = bind(term, constant(value))
        found = None if own is None or found is None else merge(found, own)
    return None if found is None else {name: pattern for name, pattern in found.items() if pattern != UNKNOWN}


def _covers(one: Bindings, other: Bindings) -> bool:
    return all(covers(pattern, other.get(name, UNKNOWN)) for name, pattern in one.items())


def _is_member(value: Value, collection: Value) -> bool:
    try:
        return member(value, collection)
    except ValueProblem:
        return False


def _form(reading: Reading) -> list[object]:
    """All that the answer for an event depends on."""
    event = reading.event
    fields = event.extra if event.expect else None
    return [event.action, event.alternatives, event.params, event.before, event.state, event.expect, fields]


__all__ = ["Independence", "Relevant", "independence"]
