"""Which states are alike for all that is still to come.

A hidden step that mattered may leave something behind that matters no more: a second copy of a message that no later
event receives, a timeout before the last event of a task. Each such remnant doubles the states, though they go on
alike.

**Rule.** Two paths that explain the same events, broke the same invariants, and differ only in cells that are not
*live* have the same future; the one with fewer hidden steps is kept. A cell (:mod:`.footprints`) is live while an event
that is still to come, or a hidden step that matters before one (:mod:`.independence`), may look at it; and, where one
of these may write a cell that a part of an invariant reads, so are all cells of that part.

**Why.** A step that is taken from one of the two is possible from the other, and writes the same: all that it looks at
is live, and so is the same in both. After it they still differ in such cells only, since what is live later is live
now. A part of an invariant that reads cells of which one is written reads live ones only, and is TRUE in both or in
neither; any other is as it was, and if it is FALSE in one of the two, both are known to have broken its invariant.

Where something may still be filled, all cells are live.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from immutables import Map

from .behaviour import Event
from .independence import Independence
from .order import Cut
from .paths import Node
from .places import OneOf, Pattern, Unknown, fits
from .reading import read_event
from .spec import Spec, State
from .tla.values import Value

FEW = 8
"""So many paths are let be: to go on with them costs less than to find out which are alike."""

MOST_EVENTS = 20_000
"""The longest behaviour of which all events are looked at again for this."""


class Remaining:
    """The cells that are live in a behaviour, by how many events of each lane are explained. Found out when it is
    asked for.
    """

    def __init__(self, spec: Spec, independence: Independence, lanes: Sequence[Sequence[Event]]) -> None:
        self.spec = spec
        self.independence = independence
        self.events = lanes
        self.lanes: list[_Lane] = []

    def fewest(self, nodes: list[Node]) -> list[Node]:
        """Of nodes that go on alike, the first with the fewest hidden steps."""
        if len(nodes) <= FEW or sum(map(len, self.events)) > MOST_EVENTS:
            return nodes
        best: dict[object, Node] = {}
        for node in nodes:
            form = node.cut, self.seen(node.cut, node.state), node.broken, node.filled, node.spans
            known = best.get(form)
            if known is None or node.hidden < known.hidden:
                best[form] = node
        return list(best.values())

    def seen(self, cut: Cut, state: State) -> tuple[object, ...]:
        """What is live of a state: equal for two states that go on alike."""
        if not self.lanes:
            self.lanes = [_Lane(self.spec, self.independence, events) for events in self.events]
        return tuple(
            self._left(cut, variable, value) for variable, value in zip(self.spec.variables, state, strict=True)
        )

    def _left(self, cut: Cut, variable: str, value: Value) -> object:
        lanes = [(lane, done) for lane, done in zip(self.lanes, cut, strict=True) if lane.touches[variable] > done]
        if any(lane.whole[variable] > done for lane, done in lanes):
            return value
        if type(value) is frozenset:
            return frozenset(place for place in value if any(lane.last(variable, place) > done for lane, done in lanes))
        if type(value) is Map:
            entries = list(value.items())
        elif type(value) is tuple:
            entries = list(enumerate(value, 1))
        else:
            return None
        live = {
            place: part for place, part in entries if any(lane.last(variable, place) > done for lane, done in lanes)
        }
        return Map(live)


class _Lane:
    """For each cell, the last event of a lane that looks at it, counted from 1; 0 for none."""

    def __init__(self, spec: Spec, independence: Independence, events: Iterable[Event]) -> None:
        self.touches: dict[str, int] = dict.fromkeys(spec.variables, 0)
        """The last that looks at any cell of a variable."""
        self.whole: dict[str, int] = dict.fromkeys(spec.variables, 0)
        """The last that looks at all cells of a variable."""
        self._values: dict[str, dict[Value, int]] = defaultdict(dict)
        self._patterns: dict[str, list[tuple[int, Pattern]]] = defaultdict(list)
        self._known: dict[tuple[str, Value], int] = {}
        for number, event in enumerate(events, 1):
            looks = independence.looks(read_event(spec, event, number))
            if looks is None:
                self.touches = dict.fromkeys(spec.variables, number)
                self.whole = dict.fromkeys(spec.variables, number)
                continue
            for variable, pattern in looks:
                if variable in self.touches:
                    self._add(number, variable, pattern)

    def _add(self, number: int, variable: str, pattern: Pattern) -> None:
        self.touches[variable] = number
        if isinstance(pattern, Unknown):
            self.whole[variable] = number
        elif isinstance(pattern, OneOf):
            self._values[variable] |= dict.fromkeys(pattern.values, number)
        else:
            self._patterns[variable].append((number, pattern))

    def last(self, variable: str, place: Value) -> int:
        found = self._known.get((variable, place))
        if found is None:
            exact = self._values[variable].get(place, 0)
            later = (
                number
                for number, pattern in reversed(self._patterns[variable])
                if number <= exact or fits(pattern, place)
            )
            found = self._known[variable, place] = max(exact, next(later, 0))
        return found
