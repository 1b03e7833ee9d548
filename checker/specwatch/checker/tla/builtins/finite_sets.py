"""FiniteSets."""

from __future__ import annotations

from ..values import Value, ValueProblem, boolean, homogeneous, is_finite, is_set, kind_in_words, size
from .module import Builtin, StandardModule


def cardinality(collection: Value) -> Value:
    """``Cardinality(S)``."""
    if type(collection) is frozenset:
        homogeneous(collection)
    return size(collection)


def is_finite_set(collection: Value) -> Value:
    """``IsFiniteSet(S)``."""
    if not is_set(collection):
        raise ValueProblem(f"IsFiniteSet is applied to {kind_in_words(collection)}, not to a set")
    return boolean(is_finite(collection))


MODULE = StandardModule(
    "FiniteSets",
    (),
    {"Cardinality": Builtin(1, cardinality), "IsFiniteSet": Builtin(1, is_finite_set)},
)
