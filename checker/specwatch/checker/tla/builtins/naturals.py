"""Naturals."""

from __future__ import annotations

from collections.abc import Callable

from ..values import NAT, Boolean, Interval, Value, ValueProblem, boolean
from .module import Builtin, StandardModule, integer


def _arithmetic(symbol: str, compute: Callable[[int, int], int]) -> Builtin:
    def function(left: Value, right: Value) -> Value:
        return compute(integer(left, symbol, "left side"), integer(right, symbol, "right side"))

    return Builtin(2, function)


def _comparison(symbol: str, compute: Callable[[int, int], bool]) -> Builtin:
    def function(left: Value, right: Value) -> Boolean:
        return boolean(compute(integer(left, symbol, "left side"), integer(right, symbol, "right side")))

    return Builtin(2, function)


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueProblem(f"the exponent of ^ is {exponent}; it must be 0 or more")
    if base == 0 and exponent == 0:
        raise ValueProblem("0^0 has no value")
    if abs(base) > 1 and exponent > 100_000:
        raise ValueProblem(f"{base}^{exponent} is too large to be computed")
    return int(base**exponent)


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise ValueProblem("the right side of \\div is 0")
    return left // right


def _remainder(left: int, right: int) -> int:
    if right <= 0:
        raise ValueProblem(f"the right side of % is {right}; it must be positive")
    return left % right


def interval(low: Value, high: Value) -> Value:
    """``low..high``."""
    return Interval(integer(low, "..", "left side"), integer(high, "..", "right side"))


MODULE = StandardModule(
    "Naturals",
    (),
    {
        "Nat": Builtin(0, lambda: NAT),
        "+": _arithmetic("+", lambda left, right: left + right),
        "-": _arithmetic("-", lambda left, right: left - right),
        "*": _arithmetic("*", lambda left, right: left * right),
        "^": _arithmetic("^", _power),
        "\\div": _arithmetic("\\div", _quotient),
        "%": _arithmetic("%", _remainder),
        "<": _comparison("<", lambda left, right: left < right),
        ">": _comparison(">", lambda left, right: left > right),
        "\\leq": _comparison("\\leq", lambda left, right: left <= right),
        "\\geq": _comparison("\\geq", lambda left, right: left >= right),
        "..": Builtin(2, interval),
    },
)
