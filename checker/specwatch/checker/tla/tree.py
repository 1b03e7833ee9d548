"""The tree of a module. Classes are named after the grammar's rules; every node knows its place in the source.

Operators are spelled canonically, as in SANY: ``\\union`` for ``\\cup``, ``\\lnot`` for ``~``, ``/=`` for ``#``,
``\\leq`` for ``<=`` and ``=<``, ``-.`` for the unary minus (:mod:`.operators` has the table). Nodes compare by
identity, so that a node can be the key of what an analysis finds out about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from .source import SourceText, Span


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    span: Span


class Expression(Node):
    """Anything that can stand where a value is meant."""

    __slots__ = ()


# --- leaves ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Number(Expression):
    """A natural number, whatever base it was written in."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Decimal(Expression):
    """A number with a decimal point, as written. It parses; it has no value, as in TLC."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class String(Expression):
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expression):
    """An identifier, ``TRUE``, ``FALSE``, ``BOOLEAN``, ``STRING``, or an operator's symbol where one is an argument.

    ``path`` holds the instances before the last ``!``: ``A!B(1)!x`` is ``Name("x", (PathStep("A"),
    PathStep("B", (1,))))``. Selectors of subexpressions are names too (``V!1``, ``V!<<``), and ``V!(e)`` is
    ``Name("", (PathStep("V"), PathStep("", (e,))))``.
    """

    name: str
    path: tuple[PathStep, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PathStep(Node):
    """One ``I!`` or ``I(e, …)!`` before a name."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class At(Expression):
    """``@`` in an EXCEPT."""


# --- operators ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Apply(Expression):
    """An operator applied: ``Op(a, b)``, ``a + b``, ``~a``, ``a^+``. An argument may be an operator's Name or a Lambda.

    ``\\land``, ``\\lor``, ``\\times``, prime, application and field are nodes of their own.
    """

    operator: Name
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class And(Expression):
    """``a /\\ b /\\ c`` (flattened), or a bulleted list."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Or(Expression):
    """``a \\/ b \\/ c`` (flattened), or a bulleted list."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Prime(Expression):
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class FunctionApplication(Expression):
    """``f[a]`` or ``f[a, b]``, which is ``f[<<a, b>>]``."""

    function: Expression
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field(Expression):
    """``r.name``."""

    record: Expression
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Product(Expression):
    """``A \\X B \\X C``: n-ary, so that ``(A \\X B) \\X C`` is another tree."""

    factors: tuple[Expression, ...]


# --- bound variables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Bound(Node):
    """``x, y \\in S``, or ``<<x, y>> \\in S`` (``tuple_pattern``). ``domain`` is None where there is no bound.

    ``name_spans`` are the places of the names, here and in the nodes below.
    """

    names: tuple[str, ...]
    tuple_pattern: bool
    domain: Expression | None
    name_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Quantifier(Expression):
    """``\\A`` or ``\\E`` (``kind``). Bounds do not see each other's names."""

    kind: str
    bounds: tuple[Bound, ...]
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class TemporalQuantifier(Expression):
    """``\\AA`` or ``\\EE``."""

    kind: str
    names: tuple[str, ...]
    body: Expression
    name_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Choose(Expression):
    bound: Bound
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Parameter(Node):
    """A formal parameter: ``x`` (arity 0), ``F(_, _)`` or ``_ \\prec _`` (arity 2)."""

    name: str
    arity: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Lambda(Expression):
    parameters: tuple[Parameter, ...]
    body: Expression


# --- sets, functions, records, tuples -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SetEnumeration(Expression):
    """``{a, b}``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SetFilter(Expression):
    """``{x \\in S : p}``."""

    bound: Bound
    predicate: Expression


@dataclass(frozen=True, slots=True, eq=False)
class SetMap(Expression):
    """``{e : x \\in S, y \\in T}``."""

    body: Expression
    bounds: tuple[Bound, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionConstructor(Expression):
    """``[x \\in S, y \\in T |-> e]``."""

    bounds: tuple[Bound, ...]
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSet(Expression):
    """``[S -> T]``."""

    domain: Expression
    range: Expression


@dataclass(frozen=True, slots=True, eq=False)
class RecordConstructor(Expression):
    """``[a |-> 1, b |-> 2]``."""

    fields: tuple[tuple[str, Expression], ...]
    name_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RecordSet(Expression):
    """``[a : S, b : T]``."""

    fields: tuple[tuple[str, Expression], ...]
    name_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Update(Node):
    """``!.a[i, j] = e``: a path of fields (``str``) and indices (tuples of expressions), and the new value."""

    path: tuple[str | tuple[Expression, ...], ...]
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Except(Expression):
    base: Expression
    updates: tuple[Update, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tuple(Expression):
    items: tuple[Expression, ...]


# --- control --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class If(Expression):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Case(Expression):
    arms: tuple[tuple[Expression, Expression], ...]
    other: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Let(Expression):
    """``LET … IN body``; units are Definition, FunctionDefinition, Recursive and Instance."""

    units: tuple[Unit, ...]
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Label(Expression):
    """``name(x, y) :: body``."""

    name: str
    parameters: tuple[str, ...]
    body: Expression


# --- actions and temporal formulas ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ActionBox(Expression):
    """``[A]_v`` (``kind`` ``"[]"``) or ``<<A>>_v`` (``"<>"``)."""

    kind: str
    action: Expression
    subscript: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Fairness(Expression):
    """``WF_v(A)`` or ``SF_v(A)`` (``kind`` ``"WF"``, ``"SF"``)."""

    kind: str
    subscript: Expression
    action: Expression


# --- units of a module ----------------------------------------------------------------------------------------------


class Unit(Node):
    """What stands at the top of a module, or in a LET."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constants(Unit):
    declarations: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Variables(Unit):
    declarations: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Recursive(Unit):
    declarations: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Definition(Unit):
    """``Op(x, F(_)) == body``; infix, prefix and postfix symbols are names too. ``name_span`` is the name alone."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Expression
    local: bool
    name_span: Span


@dataclass(frozen=True, slots=True, eq=False)
class FunctionDefinition(Unit):
    """``f[x \\in S] == body``; ``f`` may stand in its own body."""

    name: str
    bounds: tuple[Bound, ...]
    body: Expression
    local: bool
    name_span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Substitution(Node):
    """``name <- expression`` of an INSTANCE."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Instance(Unit):
    """``I(x) == INSTANCE M WITH …``; ``name`` is None for a bare ``INSTANCE M``."""

    name: str | None
    parameters: tuple[Parameter, ...]
    module: str
    substitutions: tuple[Substitution, ...]
    local: bool


@dataclass(frozen=True, slots=True, eq=False)
class Assume(Unit):
    name: str | None
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Theorem(Unit):
    """A THEOREM, LEMMA, …: its statement where it is an expression (an ASSUME … PROVE is None); proofs are skipped."""

    name: str | None
    body: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Module(Unit):
    """A module. ``extends`` are Names; nested modules are among the units."""

    name: str
    extends: tuple[Name, ...]
    units: tuple[Unit, ...]
    source: SourceText


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order of the text."""
    kind: Any = type(node)  # mypy takes the __hash__ of a node's class for that of a node
    for name in _fields(kind):
        yield from _nodes(getattr(node, name))


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the text; without recursion, whatever the depth."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(tuple(children(current))))


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(
        field.name for field in fields(kind) if field.name not in ("span", "name_span", "name_spans", "source")
    )


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)
