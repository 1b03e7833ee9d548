"""What each action may read and write, entry by entry, read off its text.

A *cell* is an entry of a variable: ``v[p]``, where ``v`` is a function or record; whether ``p`` is in ``v``, where it
is a set or the domain of a function. The place in the variable is a term over the action's parameters
(:mod:`.places`); a variable that is read or written otherwise is read or written at every place. An action is inlined
as deeply as it goes, all branches together: what is found here is never less than what a step reads and writes.

How a cell is touched:

=========  =========================================================================================================
``READ``   the step may depend on it in any way
``NEED``   the step is possible only while the place is in the set (or domain)
``ADD``    after the step the place is in the set, whatever was there before, or it is not touched
``DROP``   after the step the place is not in the set (or domain), whatever was there before, or it is not touched
``WRITE``  it may change in any way
=========  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import NamedTuple, TypeAlias

from .places import UNKNOWN, OneOf, Parameter, RecordOf, Term, TupleOf, Unknown, constant, field_of, is_understood
from .spec import Action, Spec
from .tla import tree
from .tla.evaluate import Branch, Given, Inline, Leaf
from .tla.values import FALSE, TRUE, Value, concrete, is_set

MOST_NODES = 200_000
"""How much text is read, all definitions inlined, before it is given up."""


class NotUnderstood(Exception):
    """The text is too large when inlined, or has a form that nothing is known of."""


class Touch(Enum):
    READ = "read"
    NEED = "need"
    ADD = "add"
    DROP = "drop"
    WRITE = "write"


CHANGES = (Touch.ADD, Touch.DROP, Touch.WRITE)


class Cell(NamedTuple):
    variable: str
    place: Term


class Access(NamedTuple):
    cell: Cell
    touch: Touch


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an action's steps may touch. Each other field is a part of :attr:`accesses` that is known more surely."""

    accesses: tuple[Access, ...]
    needs: frozenset[Cell]
    """Places that must be in their set for any step."""
    drops: frozenset[Cell]
    """Places that no step leaves in their set, unless it also adds there."""
    only: Cell | None
    """The one cell that is written, where it is one."""
    facts: tuple[tuple[Term, Value], ...]
    """Terms over the parameters that have this value in every step."""


def footprints(spec: Spec) -> dict[Action, Footprint]:
    """The footprint of each action.

    :raises NotUnderstood: see there.
    """
    found: dict[Action, Footprint] = {}
    try:
        _Reading(spec).marked(spec.next, {}, _Trail(), found)
    except RecursionError:
        raise NotUnderstood from None
    return found


def units(spec: Spec) -> list[tuple[Cell, ...]]:
    r"""What each part of an invariant reads that is TRUE or FALSE by itself: ``P(x)`` of ``\A x \in S : P(x)``, for one
    ``x``, which the places name as if it were a parameter.

    :raises NotUnderstood: see there.
    """
    reading = _Reading(spec)
    try:
        return [cells for one in spec.invariants for cells in reading.units(one.expression, {}, _Trail())]
    except RecursionError:
        raise NotUnderstood from None


def read_by(spec: Spec, expression: tree.Expression, names: Mapping[str, Term]) -> tuple[Cell, ...]:
    """The cells that an expression may read; ``names`` are those that stand free in it.

    :raises NotUnderstood: see there.
    """
    trail = _Trail()
    _Reading(spec).read(expression, dict(names), trail)
    return tuple(cell for cell, _ in trail.accesses)


# --- names ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Delayed:
    """An expression in place of a name: an argument, or a LET's definition."""

    node: tree.Expression
    env: _Environment


@dataclass(frozen=True, slots=True, eq=False)
class _Operator:
    """A LET's operator, or one that is an argument."""

    parameters: tuple[tree.Parameter, ...]
    body: tree.Expression
    env: _Environment


_Environment: TypeAlias = "dict[str, Term | _Delayed | _Operator]"


@dataclass(slots=True)
class _Trail:
    """What was met on the way through an action."""

    accesses: dict[Access, None] = field(default_factory=dict)
    needs: set[Cell] = field(default_factory=set)
    drops: set[Cell] = field(default_factory=set)
    facts: list[tuple[Term, Value]] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    """Variables with two next values: then each is a condition on the other."""

    def copy(self) -> _Trail:
        return _Trail(
            dict(self.accesses), set(self.needs), set(self.drops), list(self.facts), set(self.assigned), set(self.twice)
        )

    def touch(self, variable: str, place: Term, touch: Touch) -> None:
        self.accesses[Access(Cell(variable, place), touch)] = None

    def footprint(self) -> Footprint:
        accesses = dict.fromkeys(
            Access(cell, Touch.WRITE) if touch in CHANGES and cell.variable in self.twice else Access(cell, touch)
            for cell, touch in self.accesses
        )
        written = {cell for cell, touch in accesses if touch in CHANGES}
        only = next(iter(written)) if len(written) == 1 else None
        return Footprint(
            tuple(accesses),
            frozenset(self.needs),
            frozenset(cell for cell in self.drops if cell.variable not in self.twice),
            only if only is not None and is_understood(only.place) else None,
            tuple(self.facts),
        )


class _Reading:
    """Reads expressions for what they touch, as :class:`.tla.evaluate.Evaluator` would evaluate them."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.definitions = spec.program.definitions
        self.variables = frozenset(spec.variables)
        self.constants = spec.evaluator.constants
        self._open: set[int] = set()
        recursive = (self.definitions.get(name) for name in spec.program.recursive)
        self._recursive = {id(definition.body) for definition in recursive if definition is not None}
        self._nodes = 0
        self._fresh = count()

    # --- Next ---------------------------------------------------------------------------------------------------------

    def marked(self, node: tree.Expression, env: _Environment, trail: _Trail, found: dict[Action, Footprint]) -> None:
        """The part of Next above its actions."""
        if isinstance(node, Branch):
            for item, _ in node.items:
                self.marked(item, env, trail.copy(), found)
        elif isinstance(node, Given):
            inner: _Environment = {**env, **{name: Parameter(name) for bound in node.bounds for name in bound.names}}
            self.chosen(node.bounds, env, inner, trail, Touch.NEED, True)
            self.marked(node.body, inner, trail, found)
        elif isinstance(node, Inline):
            self.marked(node.body, self.arguments(node.parameters, node.arguments, env), trail, found)
        elif isinstance(node, tree.Let):
            self.marked(node.body, self.let(node, env), trail, found)
        elif isinstance(node, tree.And):
            groups = [item for item in node.items if any(isinstance(part, Leaf) for part in tree.walk(item))]
            for item in node.items:
                if item not in groups:
                    self.act(item, env, trail, True)
            for item in groups:
                self.marked(item, env, trail, found)
        else:
            assert isinstance(node, Leaf)  # nothing else is left above an action
            self.act(node.body, env, trail, True)
            found[node.action] = trail.footprint()

    def act(self, node: tree.Expression, env: _Environment, trail: _Trail, sure: bool) -> None:
        """An action, or a part of one; ``sure`` where every step goes through it."""
        self.tick()
        if isinstance(node, tree.And):
            for item in node.items:
                self.act(item, env, trail, sure)
        elif isinstance(node, tree.Or):
            self.branches([(item, env) for item in node.items], trail)
        elif isinstance(node, tree.If):
            self.read(node.condition, env, trail)
            self.branches([(node.then, env), (node.otherwise, env)], trail)
        elif isinstance(node, tree.Case):
            for guard, _ in node.arms:
                self.read(guard, env, trail)
            bodies = [body for _, body in node.arms] + ([] if node.other is None else [node.other])
            self.branches([(body, env) for body in bodies], trail)
        elif isinstance(node, tree.Quantifier) and node.kind == "\\E":
            inner = self.unknown(node.bounds, env)
            self.chosen(node.bounds, env, inner, trail, Touch.NEED, sure)
            self.act(node.body, inner, trail, sure)
        elif isinstance(node, tree.Let):
            self.act(node.body, self.let(node, env), trail, sure)
        elif isinstance(node, tree.Label):
            self.act(node.body, env, trail, sure)
        elif isinstance(node, tree.Apply) and self.assigned(node, env) is not None:
            self.assignment(node, env, trail, sure)
        elif isinstance(node, tree.Apply) and node.operator.name == "UNCHANGED":
            names = self.named(node.arguments[0], env)
            if names is None:
                self.read(node.arguments[0], env, trail)
            for name in names or ():
                self.assign(name, trail)
        elif isinstance(node, (tree.Quantifier, tree.ActionBox)):
            if any(isinstance(part, (tree.Prime, tree.ActionBox)) for part in self.reachable(node, env)):
                self.anything(node, env, trail)
            else:
                self.read(node, env, trail)
        else:
            self.called_or_guard(node, env, trail, sure)

    def called_or_guard(self, node: tree.Expression, env: _Environment, trail: _Trail, sure: bool) -> None:
        called = self.called(node, env)
        if called is None:
            self.guard(node, env, trail, sure)
            return
        body, inner = called
        with self.inside(body) as first:
            if first:
                self.act(body, inner, trail, sure)
            else:
                self.anything(node, env, trail)

    def branches(self, items: list[tuple[tree.Expression, _Environment]], trail: _Trail) -> None:
        """Parts of which a step goes through one."""
        before = set(trail.assigned)
        after = set(before)
        for node, env in items:
            trail.assigned = set(before)
            self.act(node, env, trail, len(items) == 1)
            after |= trail.assigned
        trail.assigned = after

    def chosen(
        self,
        bounds: Iterable[tree.Bound],
        env: _Environment,
        inner: _Environment,
        trail: _Trail,
        touch: Touch,
        sure: bool,
    ) -> None:
        """The sets that a quantifier's names are taken from."""
        for bound in bounds:
            if bound.domain is None:
                raise NotUnderstood
            for item in self.bound_terms(bound, inner):
                self.member(item, bound.domain, env, trail, touch, sure)

    def guard(self, node: tree.Expression, env: _Environment, trail: _Trail, sure: bool) -> None:
        """A condition, which is TRUE in every step that goes through it."""
        if isinstance(node, tree.Apply) and node.operator.name == "\\in" and "\\in" not in self.definitions:
            item, collection = node.arguments
            self.read(item, env, trail)
            self.member(self.term(item, env), collection, env, trail, Touch.NEED, sure)
            return
        if sure and isinstance(node, tree.Apply) and node.operator.name == "=":
            left, right = (self.term(side, env) for side in node.arguments)
            for term, other in ((left, right), (right, left)):
                value = _value(other)
                if value is not None and is_understood(term) and _value(term) is None:
                    trail.facts.append((term, value))
        self.read(node, env, trail)

    # --- assignments --------------------------------------------------------------------------------------------------

    def assigned(self, node: tree.Apply, env: _Environment) -> str | None:
        """The variable of ``v' = …`` or ``v' \\in …``."""
        if node.operator.name not in ("=", "\\in"):
            return None
        left, inner = self.meant(node.arguments[0], env)
        return self.variable(left.body, inner) if isinstance(left, tree.Prime) else None

    def assign(self, variable: str, trail: _Trail) -> None:
        if variable in trail.assigned:
            trail.twice.add(variable)
        trail.assigned.add(variable)

    def assignment(self, node: tree.Apply, env: _Environment, trail: _Trail, sure: bool) -> None:
        variable = self.assigned(node, env)
        assert variable is not None
        self.assign(variable, trail)
        if node.operator.name == "=":
            self.next_value(variable, node.arguments[1], env, trail, sure)
        else:
            self.next_values(variable, node.arguments[1], env, trail, sure)

    def next_value(self, variable: str, node: tree.Expression, env: _Environment, trail: _Trail, sure: bool) -> None:
        if not self.update(variable, node, env, trail, sure):
            trail.touch(variable, UNKNOWN, Touch.WRITE)
            self.read(node, env, trail)

    def next_values(self, variable: str, node: tree.Expression, env: _Environment, trail: _Trail, sure: bool) -> None:
        """A set of next values."""
        node, env = self.meant(node, env)
        if isinstance(node, tree.SetEnumeration):
            for item in node.items:
                self.next_value(variable, item, env, trail, sure and len(node.items) == 1)
        elif isinstance(node, tree.SetMap):
            for bound in node.bounds:
                self.domain(bound, env, trail)
            self.next_value(variable, node.body, self.unknown(node.bounds, env), trail, sure)
        elif isinstance(node, tree.If):
            self.read(node.condition, env, trail)
            self.next_values(variable, node.then, env, trail, False)
            self.next_values(variable, node.otherwise, env, trail, False)
        else:
            trail.touch(variable, UNKNOWN, Touch.WRITE)
            self.read(node, env, trail)

    def update(self, variable: str, node: tree.Expression, env: _Environment, trail: _Trail, sure: bool) -> bool:
        """A next value that is made of the one before. Where it is not, says so, and has noted nothing."""
        self.tick()
        node, env = self.meant(node, env)
        if self.variable(node, env) == variable:
            return True
        if isinstance(node, tree.Except):
            if not self.update(variable, node.base, env, trail, sure):
                return False
            for update in node.updates:
                at = update.path[0]
                place = constant(at) if isinstance(at, str) else self.index(at, env)
                trail.touch(variable, place, Touch.WRITE)
                self.read(update, env, trail)
            return True
        if isinstance(node, tree.If):
            return self.one_of(variable, [node.then, node.otherwise], [node.condition], env, trail)
        if isinstance(node, tree.Case):
            bodies = [body for _, body in node.arms] + ([] if node.other is None else [node.other])
            return self.one_of(variable, bodies, [guard for guard, _ in node.arms], env, trail)
        if isinstance(node, tree.Let):
            return self.update(variable, node.body, self.let(node, env), trail, sure)
        if isinstance(node, tree.Label):
            return self.update(variable, node.body, env, trail, sure)
        if isinstance(node, tree.SetFilter):
            domain = node.bound.domain
            if domain is None or not self.update(variable, domain, env, trail, sure):
                return False
            trail.touch(variable, UNKNOWN, Touch.DROP)
            self.read(node.predicate, self.unknown((node.bound,), env), trail)
            return True
        if isinstance(node, tree.FunctionConstructor):
            return self.shortened(variable, node, env, trail, sure)
        if isinstance(node, tree.Apply) and node.operator.name in ("\\union", "\\", "\\intersect", "@@"):
            return self.combined(variable, node, env, trail, sure)
        called = self.called(node, env)
        if called is None:
            return False
        body, inner = called
        with self.inside(body) as first:
            return first and self.update(variable, body, inner, trail, sure)

    def one_of(
        self,
        variable: str,
        values: list[tree.Expression],
        conditions: list[tree.Expression],
        env: _Environment,
        trail: _Trail,
    ) -> bool:
        made = [self.update(variable, value, env, trail, False) for value in values]
        if not any(made):
            return False
        for condition in conditions:
            self.read(condition, env, trail)
        for value, understood in zip(values, made, strict=True):
            if not understood:
                trail.touch(variable, UNKNOWN, Touch.WRITE)
                self.read(value, env, trail)
        return True

    def combined(self, variable: str, node: tree.Apply, env: _Environment, trail: _Trail, sure: bool) -> bool:
        """``v \\union S``, ``v \\ S``, ``v \\intersect S``, ``v @@ f``."""
        name, (left, right) = node.operator.name, node.arguments
        if name in self.definitions:
            return False
        if not self.update(variable, left, env, trail, sure):
            if name == "\\" or not self.update(variable, right, env, trail, sure):
                return False
            left, right = right, left
        if name == "\\union":
            self.touched(variable, right, Touch.ADD, env, trail, sure)
        elif name == "\\":
            self.touched(variable, right, Touch.DROP, env, trail, sure)
        elif name == "\\intersect":
            trail.touch(variable, UNKNOWN, Touch.DROP)
            self.read(right, env, trail)
        else:
            self.overlaid(variable, right, env, trail)
        return True

    def touched(
        self, variable: str, node: tree.Expression, touch: Touch, env: _Environment, trail: _Trail, sure: bool
    ) -> None:
        """The elements of a set that are added to a variable, or taken from it."""
        self.tick()
        node, env = self.meant(node, env)
        if isinstance(node, tree.SetEnumeration):
            for item in node.items:
                self.read(item, env, trail)
                place = self.term(item, env)
                trail.touch(variable, place, touch)
                if sure and touch is Touch.DROP and is_understood(place):
                    trail.drops.add(Cell(variable, place))
        elif isinstance(node, tree.SetMap):
            for bound in node.bounds:
                self.domain(bound, env, trail)
            inner = self.unknown(node.bounds, env)
            self.read(node.body, inner, trail)
            trail.touch(variable, self.term(node.body, inner), touch)
        elif isinstance(node, tree.If):
            self.read(node.condition, env, trail)
            self.touched(variable, node.then, touch, env, trail, False)
            self.touched(variable, node.otherwise, touch, env, trail, False)
        elif isinstance(node, tree.Let):
            self.touched(variable, node.body, touch, self.let(node, env), trail, sure)
        elif isinstance(node, tree.Apply) and node.operator.name == "\\union" and "\\union" not in self.definitions:
            for part in node.arguments:
                self.touched(variable, part, touch, env, trail, sure)
        else:
            called = self.called(node, env)
            if called is None:
                trail.touch(variable, UNKNOWN, touch)
                self.read(node, env, trail)
                return
            body, inner = called
            with self.inside(body) as first:
                if not first:
                    raise NotUnderstood
                self.touched(variable, body, touch, inner, trail, sure)

    def overlaid(self, variable: str, node: tree.Expression, env: _Environment, trail: _Trail) -> None:
        """The entries of a function that is laid over a variable, or under it: ``m :> 1``."""
        node, env = self.meant(node, env)
        place: Term = UNKNOWN
        if isinstance(node, tree.Apply) and node.operator.name == ":>" and ":>" not in self.definitions:
            place = self.term(node.arguments[0], env)
        trail.touch(variable, place, Touch.WRITE)
        self.read(node, env, trail)

    def shortened(
        self, variable: str, node: tree.FunctionConstructor, env: _Environment, trail: _Trail, sure: bool
    ) -> bool:
        """``[x \\in DOMAIN v \\ {m} |-> v[x]]``: a function without some of its entries."""
        [bound, *more] = node.bounds
        body = node.body
        if more or len(bound.names) > 1 or bound.tuple_pattern or bound.domain is None:
            return False
        if not isinstance(body, tree.FunctionApplication) or self.variable(body.function, env) != variable:
            return False
        [index, *further] = body.arguments
        if further or not isinstance(index, tree.Name) or index.name != bound.names[0]:
            return False
        domain, inner = self.meant(bound.domain, env)
        if not isinstance(domain, tree.Apply) or domain.operator.name != "\\" or "\\" in self.definitions:
            return False
        whole, less = domain.arguments
        if not self.is_domain(whole, inner, variable):
            return False
        self.touched(variable, less, Touch.DROP, inner, trail, sure)
        return True

    def is_domain(self, node: tree.Expression, env: _Environment, variable: str) -> bool:
        node, env = self.meant(node, env)
        return (
            isinstance(node, tree.Apply)
            and node.operator.name == "DOMAIN"
            and self.variable(node.arguments[0], env) == variable
        )

    # --- conditions and values ----------------------------------------------------------------------------------------

    def member(
        self, item: Term, node: tree.Expression, env: _Environment, trail: _Trail, touch: Touch, sure: bool
    ) -> None:
        """``item \\in node``; the item itself is read elsewhere."""
        self.tick()
        node, env = self.meant(node, env)
        variable = self.variable(node, env)
        if isinstance(node, tree.Apply) and node.operator.name == "DOMAIN":
            variable = self.variable(node.arguments[0], env)
        if variable is not None:
            trail.touch(variable, item, touch)
            if touch is Touch.NEED and sure and is_understood(item):
                trail.needs.add(Cell(variable, item))
        elif isinstance(node, tree.SetFilter):
            self.filtered(item, node, env, trail, touch, sure)
        elif isinstance(node, tree.If):
            self.read(node.condition, env, trail)
            self.member(item, node.then, env, trail, touch, False)
            self.member(item, node.otherwise, env, trail, touch, False)
        elif isinstance(node, tree.Let):
            self.member(item, node.body, self.let(node, env), trail, touch, sure)
        elif isinstance(node, tree.Apply) and node.operator.name in ("\\union", "\\intersect", "\\"):
            self.member_of_both(item, node, env, trail, touch, sure)
        else:
            called = self.called(node, env)
            if called is None:
                self.read(node, env, trail)
                return
            body, inner = called
            with self.inside(body) as first:
                if first:
                    self.member(item, body, inner, trail, touch, sure)
                else:
                    self.recursive(node, env, trail)

    def member_of_both(
        self, item: Term, node: tree.Apply, env: _Environment, trail: _Trail, touch: Touch, sure: bool
    ) -> None:
        name, (left, right) = node.operator.name, node.arguments
        if name in self.definitions:
            self.read(node, env, trail)
        elif name == "\\union":
            self.member(item, left, env, trail, Touch.READ, False)
            self.member(item, right, env, trail, Touch.READ, False)
        else:
            self.member(item, left, env, trail, touch, sure)
            self.member(item, right, env, trail, touch if name == "\\intersect" else Touch.READ, sure)

    def filtered(
        self, item: Term, node: tree.SetFilter, env: _Environment, trail: _Trail, touch: Touch, sure: bool
    ) -> None:
        """``item \\in {x \\in S : P(x)}``."""
        assert node.bound.domain is not None  # the grammar has no unbounded filter
        self.member(item, node.bound.domain, env, trail, touch, sure)
        inner = self.unknown((node.bound,), env)
        if not node.bound.tuple_pattern:
            inner[node.bound.names[0]] = item
        if touch is Touch.NEED:
            self.act(node.predicate, inner, trail, sure)
        else:
            self.read(node.predicate, inner, trail)

    def read(self, node: tree.Node, env: _Environment, trail: _Trail) -> None:
        """An expression that is evaluated, in the state before the step or after it."""
        self.tick()
        if isinstance(node, tree.Name):
            self.read_name(node, env, trail)
        elif isinstance(node, tree.Apply):
            self.read_application(node, env, trail)
        elif isinstance(node, tree.FunctionApplication):
            variable = self.read_variable(node.function, env)
            if variable is None:
                self.read(node.function, env, trail)
            else:
                trail.touch(variable, self.index(node.arguments, env), Touch.READ)
            for argument in node.arguments:
                self.read(argument, env, trail)
        elif isinstance(node, tree.Field):
            variable = self.read_variable(node.record, env)
            if variable is None:
                self.read(node.record, env, trail)
            else:
                trail.touch(variable, constant(node.name), Touch.READ)
        elif isinstance(node, tree.Let):
            self.read(node.body, self.let(node, env), trail)
        elif isinstance(node, tree.Lambda):
            self.read(node.body, {**env, **{one.name: UNKNOWN for one in node.parameters}}, trail)
        elif isinstance(node, (tree.Quantifier, tree.SetMap, tree.FunctionConstructor)):
            for bound in node.bounds:
                self.domain(bound, env, trail)
            self.read(node.body, self.unknown(node.bounds, env), trail)
        elif isinstance(node, (tree.Choose, tree.SetFilter)):
            self.domain(node.bound, env, trail)
            body = node.body if isinstance(node, tree.Choose) else node.predicate
            self.read(body, self.unknown((node.bound,), env), trail)
        elif isinstance(node, (tree.Fairness, tree.TemporalQuantifier, tree.PathStep)):
            raise NotUnderstood
        else:
            for child in tree.children(node):
                self.read(child, env, trail)

    def read_name(self, node: tree.Name, env: _Environment, trail: _Trail) -> None:
        if node.path:
            raise NotUnderstood
        if node.name in env:
            bound = env[node.name]
            if isinstance(bound, _Delayed):
                self.read(bound.node, bound.env, trail)
            elif isinstance(bound, _Operator):
                self.read_body(bound.body, self.opaque(bound.parameters, bound.env), trail)
            return
        if node.name in self.variables:
            trail.touch(node.name, UNKNOWN, Touch.READ)
            return
        definition = self.definition(node.name)
        if isinstance(definition, tree.Definition):
            self.read_body(definition.body, self.opaque(definition.parameters, {}), trail)
        elif isinstance(definition, tree.FunctionDefinition):
            self.read_body(_function(definition), {definition.name: UNKNOWN}, trail)

    def read_application(self, node: tree.Apply, env: _Environment, trail: _Trail) -> None:
        if node.operator.path:
            raise NotUnderstood
        name = node.operator.name
        called = self.called(node, env)
        if called is not None:
            body, inner = called
            with self.inside(body) as first:
                if first:
                    self.read(body, inner, trail)
                else:
                    self.recursive(node, env, trail)
        elif name in ("\\in", "\\notin") and name not in self.definitions:
            item, collection = node.arguments
            self.read(item, env, trail)
            self.member(self.term(item, env), collection, env, trail, Touch.READ, False)
        else:
            if name in env or name in self.definitions:
                self.read_name(node.operator, env, trail)
            for argument in node.arguments:
                self.read(argument, env, trail)

    def read_body(self, body: tree.Expression, env: _Environment, trail: _Trail) -> None:
        with self.inside(body) as first:
            if first:
                self.read(body, env, trail)
            else:
                self.everything(self.reachable(body, env), trail, Touch.READ)

    def recursive(self, node: tree.Expression, env: _Environment, trail: _Trail) -> None:
        """An application inside the very definition that it applies."""
        self.everything(self.reachable(node, env), trail, Touch.READ)

    def anything(self, node: tree.Expression, env: _Environment, trail: _Trail) -> None:
        """A part of an action that is not understood: it may assign whatever it speaks of."""
        self.everything(self.reachable(node, env), trail, Touch.WRITE)
        trail.twice |= trail.assigned

    def everything(self, nodes: Iterable[tree.Node], trail: _Trail, touch: Touch) -> None:
        for node in nodes:
            if isinstance(node, tree.Name) and node.name in self.variables:
                trail.touch(node.name, UNKNOWN, touch)

    def reachable(self, node: tree.Node, env: _Environment) -> Iterator[tree.Node]:
        """All text that an expression may be evaluated by, once."""
        nothing: _Environment = {}
        done: set[tuple[int, int]] = set()
        stack: list[tuple[tree.Node, _Environment]] = [(node, env)]
        while stack:
            top, env = stack.pop()
            if (id(top), id(env)) in done:
                continue
            done.add((id(top), id(env)))
            for part in tree.walk(top):
                self.tick()
                yield part
                if isinstance(part, tree.Name):
                    bound = env.get(part.name)
                    definition = self.definition(part.name)
                    if isinstance(bound, _Delayed):
                        stack.append((bound.node, bound.env))
                    elif isinstance(bound, _Operator):
                        stack.append((bound.body, bound.env))
                    elif definition is not None:
                        stack.append((definition, nothing))

    # --- invariants ---------------------------------------------------------------------------------------------------

    def units(self, node: tree.Expression, env: _Environment, trail: _Trail) -> Iterator[tuple[Cell, ...]]:
        """The parts of an invariant, each with the cells that it reads; ``trail`` has what is read for all of them."""
        self.tick()
        called = self.called(node, env)
        if isinstance(node, tree.And):
            for item in node.items:
                yield from self.units(item, env, trail.copy())
        elif isinstance(node, tree.Label):
            yield from self.units(node.body, env, trail)
        elif isinstance(node, tree.Let):
            yield from self.units(node.body, self.let(node, env), trail)
        elif isinstance(node, tree.Apply) and node.operator.name == "=>" and "=>" not in self.definitions:
            self.read(node.arguments[0], env, trail)
            yield from self.units(node.arguments[1], env, trail)
        elif isinstance(node, tree.Quantifier) and node.kind == "\\A":
            names = [name for bound in node.bounds for name in bound.names]
            inner: _Environment = {**env, **{name: Parameter(f"{name} {next(self._fresh)}") for name in names}}
            self.chosen(node.bounds, env, inner, trail, Touch.READ, False)
            yield from self.units(node.body, inner, trail)
        elif called is not None and id(called[0]) not in self._recursive:
            yield from self.units(*called, trail)
        else:
            self.read(node, env, trail)
            yield tuple(dict.fromkeys(access.cell for access in trail.accesses))

    # --- terms --------------------------------------------------------------------------------------------------------

    def term(self, node: tree.Expression, env: _Environment) -> Term:
        """What an expression is worth, said by the parameters."""
        self.tick()
        node, env = self.meant(node, env)
        if isinstance(node, (tree.Number, tree.String)):
            return constant(node.value)
        if isinstance(node, tree.Field):
            return field_of(self.term(node.record, env), node.name)
        if isinstance(node, tree.RecordConstructor):
            return RecordOf(tuple((name, self.term(part, env)) for name, part in node.fields))
        if isinstance(node, tree.Tuple):
            return TupleOf(tuple(self.term(item, env) for item in node.items))
        if isinstance(node, tree.Let):
            return self.term(node.body, self.let(node, env))
        if isinstance(node, tree.Label):
            return self.term(node.body, env)
        if isinstance(node, tree.Name):
            return self.term_of_name(node, env)
        called = self.called(node, env)
        if called is None:
            return UNKNOWN
        body, inner = called
        with self.inside(body) as first:
            return self.term(body, inner) if first else UNKNOWN

    def term_of_name(self, node: tree.Name, env: _Environment) -> Term:
        if node.name in env:
            bound = env[node.name]
            return UNKNOWN if isinstance(bound, (_Delayed, _Operator)) else bound
        name = self.replaced(node.name)
        if name in self.variables:
            return UNKNOWN
        if name in self.constants:
            value = self.constants[name]
            # The set of keys differs between replays of one spec, and no place is named by it.
            return UNKNOWN if is_set(value) else constant(concrete(value))
        if self.definition(node.name) is None and name in ("TRUE", "FALSE"):
            return constant(TRUE if name == "TRUE" else FALSE)
        return UNKNOWN

    def index(self, arguments: tuple[tree.Expression, ...], env: _Environment) -> Term:
        """The place of ``f[a]`` or ``f[a, b]``."""
        terms = tuple(self.term(argument, env) for argument in arguments)
        return terms[0] if len(terms) == 1 else TupleOf(terms)

    def bound_terms(self, bound: tree.Bound, inner: _Environment) -> list[Term]:
        """The elements of its set that the names of a bound are, or are parts of."""
        found: list[Term] = []
        for name in bound.names:
            one = inner[name]
            assert not isinstance(one, (_Delayed, _Operator))  # they were bound just now
            found.append(one)
        return [TupleOf(tuple(found))] if bound.tuple_pattern else found

    # --- what names mean ----------------------------------------------------------------------------------------------

    def meant(self, node: tree.Expression, env: _Environment) -> tuple[tree.Expression, _Environment]:
        """What a name stands for, through arguments, LETs and definitions without parameters."""
        while isinstance(node, tree.Name) and not node.path:
            self.tick()
            if node.name in env:
                bound = env[node.name]
                if not isinstance(bound, _Delayed):
                    break
                node, env = bound.node, bound.env
                continue
            definition = None if node.name in self.variables else self.definition(node.name)
            if not isinstance(definition, tree.Definition) or definition.parameters:
                break
            node, env = definition.body, {}
        return node, env

    def variable(self, node: tree.Expression, env: _Environment) -> str | None:
        """The variable that an expression is, if it is one."""
        node, env = self.meant(node, env)
        if isinstance(node, tree.Name) and node.name in self.variables and node.name not in env:
            return node.name
        return None

    def read_variable(self, node: tree.Expression, env: _Environment) -> str | None:
        """The variable of ``v`` or ``v'``."""
        node, env = self.meant(node, env)
        return self.variable(node.body if isinstance(node, tree.Prime) else node, env)

    def named(self, node: tree.Expression, env: _Environment) -> list[str] | None:
        """The variables of a tuple of variables; None where there is more to it than names."""
        node, env = self.meant(node, env)
        if isinstance(node, tree.Tuple):
            parts = [self.named(item, env) for item in node.items]
            return None if any(part is None for part in parts) else [name for part in parts for name in part or ()]
        name = self.variable(node, env)
        return None if name is None else [name]

    def called(self, node: tree.Expression, env: _Environment) -> tuple[tree.Expression, _Environment] | None:
        """The body that an expression applies, with its environment."""
        if isinstance(node, tree.Name) and not node.path:
            if node.name in env:
                bound = env[node.name]
                return (bound.node, bound.env) if isinstance(bound, _Delayed) else None
            definition = None if node.name in self.variables else self.definition(node.name)
            known = isinstance(definition, tree.Definition) and not definition.parameters
            return (definition.body, {}) if known and definition is not None else None
        if isinstance(node, tree.Apply) and not node.operator.path:
            operator = env.get(node.operator.name)
            if isinstance(operator, _Operator):
                return operator.body, {**operator.env, **self.arguments(operator.parameters, node.arguments, env)}
            definition = None if node.operator.name in env else self.definition(node.operator.name)
            if isinstance(definition, tree.Definition):
                return definition.body, self.arguments(definition.parameters, node.arguments, env)
        return None

    def arguments(
        self, parameters: tuple[tree.Parameter, ...], arguments: tuple[tree.Expression, ...], env: _Environment
    ) -> _Environment:
        inner: _Environment = {}
        for parameter, argument in zip(parameters, arguments, strict=True):
            inner[parameter.name] = self.operator(argument, env) if parameter.arity else _Delayed(argument, env)
        return inner

    def operator(self, node: tree.Expression, env: _Environment) -> _Operator | Term:
        """An operator that is an argument."""
        if isinstance(node, tree.Lambda):
            return _Operator(node.parameters, node.body, env)
        if isinstance(node, tree.Name) and not node.path:
            bound = env.get(node.name)
            if isinstance(bound, (_Operator, Unknown)):
                return bound
            definition = None if node.name in env else self.definition(node.name)
            if isinstance(definition, tree.Definition):
                return _Operator(definition.parameters, definition.body, {})
            if definition is None:
                return UNKNOWN  # one of the language's own, which reads its arguments only
        raise NotUnderstood

    def opaque(self, parameters: tuple[tree.Parameter, ...], env: _Environment) -> _Environment:
        """The environment of an operator that is passed on as an argument, and applied to values out of sight."""
        if any(parameter.arity for parameter in parameters):
            raise NotUnderstood
        return {**env, **{parameter.name: UNKNOWN for parameter in parameters}}

    def let(self, node: tree.Let, env: _Environment) -> _Environment:
        inner = dict(env)
        recursive = {one.name for unit in node.units if isinstance(unit, tree.Recursive) for one in unit.declarations}
        for unit in node.units:
            if isinstance(unit, tree.Definition):
                if unit.name in recursive:
                    self._recursive.add(id(unit.body))
                if unit.parameters:
                    inner[unit.name] = _Operator(unit.parameters, unit.body, inner)
                else:
                    inner[unit.name] = _Delayed(unit.body, inner)
            elif isinstance(unit, tree.FunctionDefinition):
                inner[unit.name] = _Delayed(_function(unit), {**inner, unit.name: UNKNOWN})
            elif isinstance(unit, tree.Instance):
                raise NotUnderstood
        return inner

    def domain(self, bound: tree.Bound, env: _Environment, trail: _Trail) -> None:
        if bound.domain is not None:
            self.read(bound.domain, env, trail)

    def unknown(self, bounds: Iterable[tree.Bound], env: _Environment) -> _Environment:
        return {**env, **{name: UNKNOWN for bound in bounds for name in bound.names}}

    def replaced(self, name: str) -> str:
        return self.spec.evaluator.replaced.get(name, name)

    def definition(self, name: str) -> tree.Definition | tree.FunctionDefinition | None:
        name = self.replaced(name)
        return None if name in self.constants else self.definitions.get(name)

    @contextmanager
    def inside(self, body: tree.Expression) -> Iterator[bool]:
        """Whether a recursive definition's body is not being read already; it is until this ends."""
        if id(body) not in self._recursive:
            yield True
            return
        first = id(body) not in self._open
        self._open.add(id(body))
        try:
            yield first
        finally:
            if first:
                self._open.discard(id(body))

    def tick(self) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise NotUnderstood


def _value(term: Term) -> Value | None:
    """The value of a term that is a constant."""
    return next(iter(term.values)) if isinstance(term, OneOf) else None


def _function(definition: tree.FunctionDefinition) -> tree.FunctionConstructor:
    return tree.FunctionConstructor(definition.span, definition.bounds, definition.body)
