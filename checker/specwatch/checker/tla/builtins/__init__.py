"""The standard modules: one file a module, a function an operator.

A function takes values and returns a value. It raises :class:`~..values.ValueProblem`, without a place, where the
operator has no value; the evaluator adds the place. An operator that is an argument arrives as a Python callable.
"""

from __future__ import annotations

from . import finite_sets, integers, naturals, sequences, tlc
from .module import Builtin, StandardModule

MODULES: dict[str, StandardModule] = {
    "Naturals": naturals.MODULE,
    "Integers": integers.MODULE,
    "FiniteSets": finite_sets.MODULE,
    "Sequences": sequences.MODULE,
    "TLC": tlc.MODULE,
}

__all__ = ["MODULES", "Builtin", "StandardModule"]
