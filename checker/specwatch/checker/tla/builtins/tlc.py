"""TLC: what of it has a value. Its output operators are TRUE, and print nothing here."""

from __future__ import annotations

import itertools

from ..values import (
    FALSE,
    TRUE,
    Value,
    ValueProblem,
    as_function,
    concrete,
    domain,
    elements,
    function_of,
    kind_in_words,
)
from .module import Builtin, StandardModule


def single(argument: Value, value: Value) -> Value:
    """``d :> e``."""
    return function_of([(concrete(argument), concrete(value))])


def merged(left: Value, right: Value) -> Value:
    """``f @@ g``: the left one wins."""
    table: dict[Value, Value] = {}
    for side in (right, left):
        function = as_function(side, "@@")
        if function is None:
            raise ValueProblem(f"@@ is applied to {kind_in_words(side)}, not to a function")
        for argument in elements(domain(function)):
            table[argument] = function[argument - 1] if type(function) is tuple else function[argument]
    return function_of(table.items())


def permutations(collection: Value) -> Value:
    """``Permutations(S)``."""
    items = elements(collection)
    return frozenset(function_of(zip(items, order, strict=True)) for order in itertools.permutations(items))


def sort_sequence(items: Value, less: object) -> Value:
    """``SortSeq(s, Op)``: a stable insertion by ``Op``, which says that its first argument comes before its second."""
    result: list[Value] = []
    if type(items) is not tuple or not callable(less):
        raise ValueProblem(f"SortSeq is applied to {kind_in_words(items)}, not to a sequence")
    for item in items:
        place = len(result)
        while place > 0 and less(item, result[place - 1]) is TRUE:
            place -= 1
        result.insert(place, item)
    return tuple(result)


def checked(value: Value, message: Value) -> Value:
    """``Assert(value, message)``."""
    if value is TRUE:
        return TRUE
    if value is FALSE:
        from ..show_values import show

        raise ValueProblem(f"Assert failed: {message if type(message) is str else show(message)}")
    raise ValueProblem(f"the first argument of Assert is {kind_in_words(value)}, not a Boolean")


def rendered(value: Value) -> Value:
    """``ToString(v)``."""
    from ..show_values import show

    return show(concrete(value))


MODULE = StandardModule(
    "TLC",
    (),
    {
        ":>": Builtin(2, single),
        "@@": Builtin(2, merged),
        "Permutations": Builtin(1, permutations),
        "SortSeq": Builtin(2, sort_sequence, {1: 2}),
        "Assert": Builtin(2, checked),
        "Print": Builtin(2, lambda _shown, value: value),
        "PrintT": Builtin(1, lambda _shown: TRUE),
        "ToString": Builtin(1, rendered),
    },
)
