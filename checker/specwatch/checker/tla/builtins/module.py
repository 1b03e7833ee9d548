"""What a standard module is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..values import Value, ValueProblem, kind_in_words


@dataclass(frozen=True, slots=True)
class Builtin:
    """An operator: its function takes as many values as its arity; ``operators`` gives the arity of operator
    arguments.
    """

    arity: int
    function: Callable[..., Value]
    operators: dict[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StandardModule:
    name: str
    extends: tuple[str, ...]
    operators: dict[str, Builtin]


def integer(value: Value, operator: str, side: str = "argument") -> int:
    """The integer that an operator needs."""
    if type(value) is int:
        return value
    raise ValueProblem(f"the {side} of {operator} is {kind_in_words(value)}, not an integer")
