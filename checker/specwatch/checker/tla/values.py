"""TLA+ values in one canonical form, so that equal values are equal in Python too.

==================  ==================================================================================================
Boolean             :data:`TRUE`, :data:`FALSE`: never Python's, whose ``False == 0`` would leak into sets and functions
integer, string     ``int``, ``str``
model value         :class:`ModelValue`: equal to itself only
function            domain 1..n (a sequence, a tuple): ``tuple``; any other (a record too): ``immutables.Map``
set                 ``frozenset``; a set that need not be listed: :class:`Interval`, :class:`PowerSet`, … (``SetValue``)
==================  ==================================================================================================

A ``SetValue`` or :class:`LazyFunction` lives only until it is compared, stored in another value or assigned to a
variable:
:func:`concrete` turns it into its canonical form then. Infinite sets stay what they are, and equal themselves only.

The order of values is TLC's (``truth/README-expressions.md``): model values, Booleans, integers, strings, sets by
size and then elementwise, functions by the size of their domain, then domain, then values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

from immutables import Map

Value = Any
"""A TLA+ value: one of the rows above."""


class ValueProblem(Exception):
    """A value cannot be computed. Carries no place: the evaluator adds the expression (``TlaEvaluationError``)."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Boolean:
    """A TLA+ Boolean. Unlike Python's it equals no number; it equals Python's own, for callers' convenience."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self is other or other is self.value

    def __hash__(self) -> int:
        return 0x7A1A + self.value

    def __repr__(self) -> str:
        return "TRUE" if self.value else "FALSE"

    def __reduce__(self) -> tuple[Callable[[bool], Boolean], tuple[bool]]:
        return boolean, (self.value,)


TRUE = Boolean(True)
FALSE = Boolean(False)
BOOLEAN = frozenset({TRUE, FALSE})


def boolean(value: bool) -> Boolean:
    """The TLA+ Boolean of a Python one."""
    return TRUE if value else FALSE


class ModelValue:
    """A model value: interned by name, so that identity is equality."""

    __slots__ = ("name",)
    _known: ClassVar[dict[str, ModelValue]] = {}
    name: str

    def __new__(cls, name: str) -> ModelValue:
        known = cls._known.get(name)
        if known is None:
            known = cls._known[name] = super().__new__(cls)
            known.name = name
        return known

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[type[ModelValue], tuple[str]]:
        return ModelValue, (self.name,)


# --- sets that need not be listed -----------------------------------------------------------------------------------


class SetValue:
    """A set known by a rule. ``contains`` never lists it; ``listed`` yields its elements in ascending order."""

    __slots__ = ()
    finite = True

    def contains(self, value: Value) -> bool:
        raise NotImplementedError

    def listed(self) -> Iterator[Value]:
        raise NotImplementedError

    def size(self) -> int:
        raise NotImplementedError


class Interval(SetValue):
    """``low..high``; empty where high < low."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    def contains(self, value: Value) -> bool:
        if type(value) is int:
            return self.low <= value <= self.high
        if self.low <= self.high:
            comparable(value, self.low)
        return False

    def listed(self) -> Iterator[Value]:
        return iter(range(self.low, self.high + 1))

    def size(self) -> int:
        return max(0, self.high - self.low + 1)


class InfiniteSet(SetValue):
    """``Nat``, ``Int``, ``Real``, ``STRING``, or a set that is made of such a one; ``name`` is for sentences."""

    __slots__ = ("name", "test")
    finite = False

    def __init__(self, name: str, test: Callable[[Value], bool]) -> None:
        self.name = name
        self.test = test

    def contains(self, value: Value) -> bool:
        return self.test(value)

    def listed(self) -> Iterator[Value]:
        raise ValueProblem(f"the elements of {self.name} cannot be listed: it is infinite")

    def size(self) -> int:
        raise ValueProblem(f"{self.name} is infinite")


def _is_integer(value: Value, name: str) -> bool:
    if type(value) is int:
        return True
    if type(value) is ModelValue:
        return False
    raise ValueProblem(f"{kind_in_words(value)} is compared with the integers of {name}")


def _is_string(value: Value) -> bool:
    if type(value) is str:
        return True
    if type(value) is ModelValue:
        return False
    raise ValueProblem(f"{kind_in_words(value)} is compared with the strings of STRING")


NAT = InfiniteSet("Nat", lambda value: _is_integer(value, "Nat") and value >= 0)
INT = InfiniteSet("Int", lambda value: _is_integer(value, "Int"))
REAL = InfiniteSet("Real", lambda value: _is_integer(value, "Real"))
STRING = InfiniteSet("STRING", _is_string)


class PowerSet(SetValue):
    """``SUBSET base``."""

    __slots__ = ("base",)

    def __init__(self, base: Value) -> None:
        self.base = base

    @property
    def finite(self) -> bool:  # type: ignore[override]
        return is_finite(self.base)

    def contains(self, value: Value) -> bool:
        return is_subset(value, self.base)

    def listed(self) -> Iterator[Value]:
        # By size and then elementwise is itertools' order over the sorted base.
        base = elements(self.base)
        for count in range(len(base) + 1):
            for chosen in itertools.combinations(base, count):
                yield frozenset(chosen)

    def size(self) -> int:
        return 1 << size(self.base)


class FunctionSet(SetValue):
    """``[domain -> range]``."""

    __slots__ = ("domain", "range")

    def __init__(self, domain: Value, range_: Value) -> None:
        self.domain = domain
        self.range = range_

    @property
    def finite(self) -> bool:  # type: ignore[override]
        return is_finite(self.domain) and is_finite(self.range)

    def contains(self, value: Value) -> bool:
        function = as_function(value, "[S -> T]")
        if function is None:
            return False
        return equal(domain(function), self.domain) and all(member(item, self.range) for item in range_of(function))

    def listed(self) -> Iterator[Value]:
        keys = elements(self.domain)
        for values in itertools.product(elements(self.range), repeat=len(keys)):
            yield function_of(zip(keys, values, strict=True))

    def size(self) -> int:
        return int(size(self.range) ** size(self.domain))


class RecordSet(SetValue):
    """``[a : S, b : T]``."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Value]) -> None:
        self.fields = fields

    @property
    def finite(self) -> bool:  # type: ignore[override]
        return all(is_finite(field) for field in self.fields.values())

    def contains(self, value: Value) -> bool:
        record = as_function(value, "a set of records")
        if (
            type(record) is not Map
            or len(record) != len(self.fields)
            or any(name not in record for name in self.fields)
        ):
            return False
        return all(member(record[name], allowed) for name, allowed in self.fields.items())

    def listed(self) -> Iterator[Value]:
        names = sorted(self.fields)
        for values in itertools.product(*(elements(self.fields[name]) for name in names)):
            yield function_of(zip(names, values, strict=True))

    def size(self) -> int:
        return prod(size(field) for field in self.fields.values())


class ProductSet(SetValue):
    r"""``A \X B \X …``."""

    __slots__ = ("factors",)

    def __init__(self, factors: tuple[Value, ...]) -> None:
        self.factors = factors

    @property
    def finite(self) -> bool:  # type: ignore[override]
        return all(is_finite(factor) for factor in self.factors)

    def contains(self, value: Value) -> bool:
        items = as_function(value, "a Cartesian product")
        if type(items) is not tuple or len(items) != len(self.factors):
            return False
        return all(member(item, factor) for item, factor in zip(items, self.factors, strict=True))

    def listed(self) -> Iterator[Value]:
        return itertools.product(*(elements(factor) for factor in self.factors))

    def size(self) -> int:
        return prod(size(factor) for factor in self.factors)


class SequenceSet(SetValue):
    """``Seq(base)``."""

    __slots__ = ("base",)
    finite = False

    def __init__(self, base: Value) -> None:
        self.base = base

    def contains(self, value: Value) -> bool:
        items = as_function(value, "Seq(S)")
        return type(items) is tuple and all(member(item, self.base) for item in items)

    def listed(self) -> Iterator[Value]:
        raise ValueProblem("the elements of Seq(S) cannot be listed: it is infinite")

    def size(self) -> int:
        raise ValueProblem("Seq(S) is infinite")


class LazyFunction:
    """A function whose values are computed when they are asked for: a recursive one, or one with an infinite domain."""

    __slots__ = ("compute", "domain", "known")

    def __init__(self, domain_: Value, compute: Callable[[Value], Value]) -> None:
        self.domain = domain_
        self.compute = compute
        self.known: dict[Value, Value] = {}

    def apply(self, argument: Value) -> Value:
        if argument not in self.known:
            if not member(argument, self.domain):
                raise KeyError(argument)
            self.known[argument] = self.compute(argument)
        return self.known[argument]


# --- canonical forms ------------------------------------------------------------------------------------------------


LARGEST_SET = 2_000_000
"""The most elements that a set by rule is listed to. A set of this size takes a few hundred megabytes."""


def _listable(value: SetValue) -> SetValue:
    if value.finite and value.size() > LARGEST_SET:
        raise ValueProblem(f"the set has {value.size():,} elements, and at most {LARGEST_SET:,} are listed")
    return value


_CANONICAL = frozenset({Boolean, int, str, ModelValue, tuple, Map, frozenset})


def concrete(value: Value) -> Value:
    """The canonical form of a value that may be a rule: what is finite is listed, infinite sets stay as they are."""
    if type(value) in _CANONICAL:
        return value
    if isinstance(value, SetValue):
        return frozenset(_listable(value).listed()) if value.finite else value
    if type(value) is LazyFunction:
        if not is_finite(value.domain):
            return value
        return function_of((argument, concrete(value.apply(argument))) for argument in elements(value.domain))
    return value


def function_of(pairs: Iterable[tuple[Value, Value]]) -> Value:
    """The function with these (argument, value) pairs, in its canonical form."""
    table = dict(pairs)
    if not table or 1 in table:
        count = len(table)
        try:
            return tuple([table[index] for index in range(1, count + 1)])
        except KeyError:
            pass
    return Map(table)


def is_set(value: Value) -> bool:
    return type(value) is frozenset or isinstance(value, SetValue)


def is_function(value: Value) -> bool:
    return type(value) in (tuple, Map, LazyFunction)


def is_record(value: Value) -> bool:
    return type(value) is Map and all(type(key) is str for key in value)


def as_function(value: Value, wanted: str) -> Value:
    """A function in canonical form; None for a model value; raises for a value of another kind."""
    value = concrete(value)
    if type(value) in (tuple, Map):
        return value
    if type(value) is ModelValue:
        return None
    raise ValueProblem(f"{kind_in_words(value)} is compared with the functions of {wanted}")


def domain(function: Value) -> Value:
    """DOMAIN of a function."""
    if type(function) is tuple:
        return Interval(1, len(function))
    if type(function) is Map:
        return frozenset(function)
    if type(function) is LazyFunction:
        return function.domain
    raise ValueProblem(f"DOMAIN is applied to {kind_in_words(function)}, not to a function")


def range_of(function: Value) -> Iterable[Value]:
    return function if type(function) is tuple else function.values()


def apply(function: Value, argument: Value) -> Value:
    """``function[argument]``."""
    if type(function) is tuple:
        if type(argument) is int and 0 < argument <= len(function):
            return function[argument - 1]
    elif type(function) is Map:
        found = function.get(argument, _ABSENT)
        if found is not _ABSENT:
            return found
    elif type(function) is LazyFunction:
        try:
            return function.apply(argument)
        except KeyError:
            pass
    else:
        raise ValueProblem(f"{kind_in_words(function)} is applied to an argument, and only a function can be")
    from .show_values import show

    if is_record(function) and type(argument) is str:
        raise ValueProblem(f'the record {show(function)} has no field "{argument}"')
    raise ValueProblem(
        f"the function is applied to {show(argument)}, which is outside its domain {show(domain(function))}"
    )


_ABSENT = object()


def replace(function: Value, argument: Value, value: Value) -> Value:
    """``[function EXCEPT ![argument] = value]``; an argument outside the domain changes nothing, as in TLC."""
    if type(function) is tuple:
        if type(argument) is int and 0 < argument <= len(function):
            return (*function[: argument - 1], value, *function[argument:])
        return function
    return function.set(argument, value) if argument in function else function


def is_finite(value: Value) -> bool:
    """Whether a set can be listed."""
    return type(value) is frozenset or (isinstance(value, SetValue) and value.finite)


def size(value: Value) -> int:
    """Cardinality of a set."""
    if type(value) is frozenset:
        return len(value)
    if isinstance(value, SetValue):
        return value.size()
    raise ValueProblem(f"Cardinality needs a set, and {kind_in_words(value)} is none")


def elements(value: Value) -> tuple[Value, ...]:
    """A set's elements in ascending order."""
    if type(value) is frozenset:
        return _sorted(value) if len(value) > 1 else tuple(value)
    if isinstance(value, SetValue):
        if isinstance(value, (Interval, PowerSet, ProductSet)):
            return tuple(_listable(value).listed())
        return _sorted(frozenset(_listable(value).listed()))
    raise ValueProblem(f"{kind_in_words(value)} stands where a set is needed")


@lru_cache(maxsize=4096)
def _sorted(items: frozenset[Value]) -> tuple[Value, ...]:
    kinds = {type(item) for item in items}
    if kinds == {int} or kinds == {str}:
        return tuple(sorted(items))
    homogeneous(items)
    return tuple(sorted(items, key=order_key))


def member(value: Value, collection: Value) -> bool:
    r"""``value \in collection``."""
    if type(collection) is frozenset:
        if isinstance(value, (SetValue, LazyFunction)):
            value = concrete(value)
        if value in collection:
            return True
        for item in collection:
            if type(item) is not ModelValue:
                comparable(value, item)
                break
        return False
    if isinstance(collection, SetValue):
        return collection.contains(value)
    raise ValueProblem(f"the right side of \\in is {kind_in_words(collection)}, not a set")


def is_subset(left: Value, right: Value) -> bool:
    r"""``left \subseteq right``."""
    if not is_set(left):
        if type(left) is ModelValue:
            return False
        raise ValueProblem(f"{kind_in_words(left)} stands where a set is needed")
    if type(left) is frozenset and type(right) is frozenset and left <= right:
        return True
    return all(member(item, right) for item in elements(left))


def union(left: Value, right: Value) -> Value:
    r"""``left \union right``; with an infinite side a set by rule, whose members are never listed."""
    if is_set(left) and is_set(right) and not (is_finite(left) and is_finite(right)):
        return InfiniteSet("the union", lambda value: member(value, left) or member(value, right))
    left, right = listed_set(left, "\\union"), listed_set(right, "\\union")
    result = left | right
    if left and right:
        homogeneous((_representative(left), _representative(right)))
    return result


def _representative(items: frozenset[Value]) -> Value:
    item = None
    for item in items:
        if type(item) is not ModelValue:
            break
    return item


def listed_set(value: Value, operator: str) -> frozenset[Value]:
    """A set as a frozenset."""
    if type(value) is frozenset:
        return value
    if isinstance(value, SetValue):
        return frozenset(_listable(value).listed())
    raise ValueProblem(f"{operator} is applied to {kind_in_words(value)}, not to a set")


# --- equality and order ---------------------------------------------------------------------------------------------

_KINDS: dict[type, str] = {
    Boolean: "Boolean",
    int: "integer",
    str: "string",
    frozenset: "set",
    tuple: "function",
    Map: "function",
    LazyFunction: "function",
}


def kind(value: Value) -> str:
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    return "set" if isinstance(value, SetValue) else "model value" if type(value) is ModelValue else "operator"


def kind_in_words(value: Value) -> str:
    """``the integer 3``, ``the set {1, 2}``: for sentences."""
    from .show_values import show_short

    word = kind(value)
    if word == "function":
        word = "tuple" if type(value) is tuple else "record" if is_record(value) else "function"
    return f"the {word} {show_short(value)}"


def equal(left: Value, right: Value) -> bool:
    """``left = right``. Raises :class:`ValueProblem` where TLC refuses to compare (``1 = TRUE``, ``{1} = {"a"}``)."""
    if isinstance(left, (SetValue, LazyFunction)):
        left = concrete(left)
    if isinstance(right, (SetValue, LazyFunction)):
        right = concrete(right)
    if left == right:
        return True
    comparable(left, right)
    return False


def comparable(left: Value, right: Value) -> None:
    """Raises :class:`ValueProblem` where two *unequal* values are of kinds that cannot be compared.

    Sizes and lengths are compared first, as in TLC: ``{1} = {"a", "b"}`` is FALSE, ``{1} = {"a"}`` is refused.
    """
    a, b = type(left), type(right)
    if a is b and (a is int or a is str or a is Boolean):
        return
    if a is ModelValue or b is ModelValue:
        return
    if kind(left) != kind(right):
        raise ValueProblem(
            f"{kind_in_words(left)} is compared with {kind_in_words(right)}",
            hint="values of different kinds are neither equal nor unequal: compare like with like",
        )
    if a is frozenset and b is frozenset:
        if len(left) == len(right):
            _first_difference(_sorted(left), _sorted(right))
    elif a is tuple and b is tuple:
        if len(left) == len(right):
            _first_difference(left, right)
    elif a is Map and b is Map:
        if len(left) == len(right):
            keys, others = _sorted(frozenset(left)), _sorted(frozenset(right))
            if keys != others:
                _first_difference(keys, others)
            else:
                _first_difference([left[key] for key in keys], [right[key] for key in keys])
    elif {a, b} == {tuple, Map} and len(left) == len(right) and len(left) > 0:
        comparable(1, next(iter(left if a is Map else right)))


def _first_difference(left: Iterable[Value], right: Iterable[Value]) -> None:
    for one, other in zip(left, right, strict=True):
        if one != other:
            comparable(one, other)
            return


def homogeneous(items: Iterable[Value]) -> None:
    """Raises :class:`ValueProblem` where a set would hold values of different kinds. Model values go with
    everything.
    """
    first = None
    for item in items:
        if type(item) is ModelValue:
            continue
        if first is None:
            first = item
        elif type(item) is not type(first) and kind(item) != kind(first):
            comparable(first, item)


_RANK = {"model value": 0, "Boolean": 1, "integer": 2, "string": 3, "set": 4, "function": 5}


def order_key(value: Value) -> tuple[Any, ...]:
    """A key that sorts values in TLC's order."""
    rank = _RANK[kind(value)]
    if rank == 0:
        return (0, value.name)
    if rank == 1:
        return (1, value.value)
    if rank in (2, 3):
        return (rank, value)
    if rank == 4:
        items = elements(value)
        return (4, len(items), tuple(order_key(item) for item in items))
    value = concrete(value)
    if type(value) is tuple:
        return (5, len(value), tuple((2, index + 1) for index in range(len(value))), tuple(map(order_key, value)))
    keys = elements(frozenset(value))
    return (5, len(keys), tuple(map(order_key, keys)), tuple(order_key(value[key]) for key in keys))
