"""Integers."""

from __future__ import annotations

from ..values import INT, Value
from .module import Builtin, StandardModule, integer


def negative(value: Value) -> Value:
    """``-value``."""
    return -integer(value, "unary -")


MODULE = StandardModule("Integers", ("Naturals",), {"Int": Builtin(0, lambda: INT), "-.": Builtin(1, negative)})
