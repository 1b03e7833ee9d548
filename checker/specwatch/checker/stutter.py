"""Is an action TRUE of every step that changes nothing of what it reads? A proof from its text; sound, not complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, TypeAlias

from .tla import tree

Called: TypeAlias = Callable[[tree.Expression], "tuple[tree.Definition, tuple[tree.Expression, ...]] | None"]

REFLEXIVE = frozenset({"=", "\\leq", "\\geq", "\\subseteq", "=>", "\\equiv"})


def is_true_of_stutter(node: tree.Expression, called: Called, inside: frozenset[str] = frozenset()) -> bool:
    """Whether that can be seen: ``[A]_v``, ``UNCHANGED e``, ``x' >= x``, ``P => P'``, and what is built of such.

    :param called: the definition that a node applies, with its arguments.
    :param inside: the definitions that are looked into already.
    """

    def holds(part: tree.Expression) -> bool:
        return is_true_of_stutter(part, called, inside)

    if isinstance(node, tree.And):
        return all(map(holds, node.items))
    if isinstance(node, tree.Or):
        return any(map(holds, node.items)) or _one_denies_another(node.items)
    if isinstance(node, tree.Quantifier):
        return node.kind == "\\A" and holds(node.body)
    if isinstance(node, tree.If):
        return holds(node.then) and holds(node.otherwise)
    if isinstance(node, tree.Let):
        return holds(node.body)
    if isinstance(node, tree.ActionBox):
        return node.kind == "[]"
    found = called(node)
    if found is not None:
        name = found[0].name
        return name not in inside and is_true_of_stutter(found[0].body, called, inside | {name})
    if isinstance(node, tree.Apply):
        if node.operator.name == "UNCHANGED":
            return True
        if node.operator.name in REFLEXIVE and alike(*node.arguments):
            return True
        return node.operator.name == "=>" and holds(node.arguments[1])
    return False


def _one_denies_another(items: tuple[tree.Expression, ...]) -> bool:
    """``~P \\/ P'``."""
    denied = [item.arguments[0] for item in items if isinstance(item, tree.Apply) and item.operator.name == "\\lnot"]
    return any(alike(one, other) for one in denied for other in items)


def alike(left: Any, right: Any) -> bool:
    """Whether two trees are the same but for primes, and where they stand in the source."""
    left, right = _unprimed(left), _unprimed(right)
    if isinstance(left, tree.Node):
        return type(left) is type(right) and all(map(alike, _parts(left), _parts(right)))
    if isinstance(left, tuple):
        return isinstance(right, tuple) and len(left) == len(right) and all(map(alike, left, right))
    return bool(left == right)


def _unprimed(node: Any) -> Any:
    while isinstance(node, tree.Prime):
        node = node.body
    return node


def _parts(node: tree.Node) -> Iterator[Any]:
    return (getattr(node, one.name) for one in fields(node) if one.name not in ("span", "name_span", "name_spans"))
