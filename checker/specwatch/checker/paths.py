"""What the replay keeps of paths: their ends, how these were reached, and what came of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .order import Cut
from .spec import Action, State
from .timed import Marks, Timed
from .tla.values import Value
from .verdict import Word

NOTHING_BROKEN: frozenset[str] = frozenset()
Filling = tuple[object, ...]
"""What was filled of each window: how many steps, or which; empty where nothing was."""

Key = tuple[Cut, State, frozenset[str], Filling, bool, Marks, float]


@dataclass(frozen=True, slots=True)
class Inserted:
    """A hidden step on a way: before which event (counted from 1), and what it was."""

    before: int
    action: Action
    params: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """A step that what was lost may have been: before which event (counted from 1), and of which window."""

    before: int
    action: Action
    params: tuple[tuple[str, Value], ...]
    window: int


@dataclass(frozen=True, slots=True)
class Break:
    """Where a path first broke an invariant: with event ``at`` itself, or before it in a step of ``hidden``, which no
    event tells of. 0 is the start.
    """

    at: int
    hidden: Action | None
    invariants: frozenset[str]
    before: State | None
    after: State


@dataclass(slots=True)
class Way:
    """How a node was reached: hidden and filled steps and, under a partial order, the lanes of its events. A linked
    list.
    """

    previous: Way | None
    step: Inserted | Filled | int

    @staticmethod
    def steps(way: Way | None) -> list[Inserted | Filled | int]:
        found: list[Inserted | Filled | int] = []
        while way is not None:
            found.append(way.step)
            way = way.previous
        return found[::-1]


@dataclass(slots=True)
class Node:
    """The end of some paths that are alike: what they explain, the spec's state, what they broke, and the fewest
    hidden steps.
    """

    cut: Cut
    state: State
    broken: frozenset[str] = NOTHING_BROKEN
    hidden: int = 0
    way: Way | None = None
    first_break: Break | None = None
    filled: Filling = ()
    """Of windows that are closed only where fillings are told apart."""
    spans: bool = False
    """Whether any step on the way was filled."""
    marks: Marks = ()
    last: float = -math.inf
    """When the last event was, where times bound hidden steps."""

    @property
    def key(self) -> Key:
        return self.cut, self.state, self.broken, self.filled, self.spans, self.marks, self.last


@dataclass(frozen=True, slots=True)
class Rules:
    """What the binding and the command line say about the replay."""

    hidden: frozenset[Action] = frozenset()
    hidden_max: int | None = None
    keep_constraints: bool = False
    """Whether a step that a CONSTRAINT or ACTION_CONSTRAINT cuts off in model checking is none here either."""
    when: tuple[tuple[str, str], ...] = ()
    """Hidden actions and the expression over the next event that each of their steps must satisfy."""
    timed: tuple[Timed, ...] = ()
    skew: int = 0
    """The most that two clocks differ, in nanoseconds."""
    key: str | None = None
    """The parameter that is the key."""
    terminal: frozenset[str] = frozenset()
    """Actions after which a key has no more events."""
    never_lost: frozenset[Action] = frozenset()
    """Actions that no missing record is taken for."""
    everywhere: bool = False
    """Whether hidden steps are tried before every event, also where nothing that they change matters."""


@dataclass(slots=True)
class Outcome:
    """What the replay found out about one behaviour.

    ``nodes`` are those of the level that decided: good ones for conforms, broken ones for violates, and for diverges
    the good ones of the level before. ``bound`` says which bound ended the search; ``nodes`` are those held then.
    """

    word: Word
    at: int | None = None
    hidden: int = 0
    invariants: list[frozenset[str]] = field(default_factory=list)
    """The least sets of invariants broken on the paths of level ``at``."""
    nodes: list[Node] = field(default_factory=list)
    previous: list[Node] = field(default_factory=list)
    """The good nodes of the level before ``at``."""
    bound: str | None = None
    reached: int = 0
    """The last level that was computed."""
    good_states: int = 0
    broken_states: int = 0
    filled: bool = False
    """With ``conforms``: whether every good path needs a filled step."""
    lost: bool = False
    """With ``conforms``: whether what is missing may have been such that only broken paths are left."""
