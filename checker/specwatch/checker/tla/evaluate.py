"""The tree walker: what an expression is worth in a state or a step, and which steps an action allows. The oracle.

Three rules make it TLC's meaning and order:

- ``value`` computes, left to right, and stops as soon as the answer is known.
- ``steps`` enumerates: ``/\\`` threads what is assigned so far, ``\\/`` and ``\\E`` branch in the order of the text
and of the
  values; ``x' = e``, ``x' \\in S`` and ``UNCHANGED`` assign what has no value yet and compare what has.
- An operator's arguments and a LET's definitions are computed when they are used, in the step in which they are used.

An environment maps the names bound around an expression (parameters, quantified names, LET) to what they stand for;
a definition's body sees its own parameters only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from immutables import Map

from . import tree
from .builtins import Builtin
from .errors import TlaError, TlaEvaluationError
from .modules import Program
from .show_values import show_short
from .values import (
    BOOLEAN,
    FALSE,
    STRING,
    TRUE,
    Boolean,
    FunctionSet,
    InfiniteSet,
    LazyFunction,
    PowerSet,
    ProductSet,
    RecordSet,
    Value,
    ValueProblem,
    apply,
    boolean,
    concrete,
    domain,
    elements,
    equal,
    function_of,
    homogeneous,
    is_finite,
    is_function,
    is_record,
    is_set,
    is_subset,
    kind_in_words,
    listed_set,
    member,
    replace,
    union,
)

Environment: TypeAlias = dict[str, Any]

# Global state, and the only one here: an expression nests as deeply as the spec's own recursion does, and a level of
# it is a handful of Python frames. The limit is met by an error with a place (``guarded``), long before the C stack
# ends.
_RECURSION_LIMIT = 12_000
sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))


# How many elements of a set are gone through between two looks at the bounds of a search.
_MANY = 1024


class Step:
    """The pair of states in which an expression is read: ``before``, and ``after`` as far as it is assigned.

    ``after`` is None where only one state is meant; then, while an initial state is being built, ``before`` is what
    is assigned.
    """

    __slots__ = ("action", "after", "before", "chosen", "request")

    def __init__(
        self,
        before: Mapping[str, Value],
        after: Mapping[str, Value] | None = None,
        request: Request | None = None,
        action: Any = None,
        chosen: tuple[tuple[str, Value], ...] = (),
    ) -> None:
        self.before = before
        self.after = after
        self.request = request
        self.action = action
        """The action of the spec that is taken, once it is known (:class:`Leaf`)."""
        self.chosen = chosen
        """Its parameters with their values."""

    def assign(self, name: str, value: Value) -> Step:
        """The step with one more variable assigned."""
        if self.after is None:
            return Step({**self.before, name: value})
        return Step(self.before, {**self.after, name: value}, self.request)


class Thunk:
    """An expression not yet computed, with its environment. Computed at most once in each step."""

    __slots__ = ("environment", "node", "step", "value")

    def __init__(self, node: tree.Expression, environment: Environment) -> None:
        self.node = node
        self.environment = environment
        self.step: Step | None = None
        self.value: Value = None


class Operator:
    """An operator with the environment of its definition: a LET's, a LAMBDA, or one that is an argument."""

    __slots__ = ("body", "environment", "parameters")

    def __init__(self, parameters: tuple[tree.Parameter, ...], body: tree.Expression, environment: Environment) -> None:
        self.parameters = parameters
        self.body = body
        self.environment = environment


class Request:
    """Which of Next's steps are asked for: those of some actions, with some parameters bound."""

    __slots__ = ("actions", "choose")

    def __init__(self, actions: frozenset[Any], choose: Callable[[str, Value], list[Value] | None]) -> None:
        self.actions = actions
        self.choose = choose
        """For a parameter's name and the set it is quantified over: the values it may have, or None where it is
        open.
        """


# The four nodes below mark Next as it is split into actions (:mod:`..actions`). Their meaning is that of what they
# stand for.


@dataclass(frozen=True, slots=True, eq=False)
class Given(tree.Expression):
    """A leading ``\\E``: its names are parameters of the actions below it, which an event may bind."""

    bounds: tuple[tree.Bound, ...]
    body: tree.Expression


@dataclass(frozen=True, slots=True, eq=False)
class Branch(tree.Expression):
    """A disjunction of Next; each item with the actions below it."""

    items: tuple[tuple[tree.Expression, frozenset[Any]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Inline(tree.Expression):
    """A definition's marked body in place of its application."""

    parameters: tuple[tree.Parameter, ...]
    arguments: tuple[tree.Expression, ...]
    body: tree.Expression


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(tree.Expression):
    """An action: what stands here and below is not split further."""

    action: Any
    body: tree.Expression


class Evaluator:
    """Evaluates the expressions of one program with its constants.

    :param constants: values of the declared constants, and of definitions that the config replaces.
    :param replaced: ``name <- other`` of the config: names that mean another definition.
    """

    def __init__(
        self, program: Program, constants: Mapping[str, Value] | None = None, replaced: Mapping[str, str] | None = None
    ) -> None:
        self.program = program
        self.variables = frozenset(program.variables)
        self.constants: dict[str, Value] = dict(constants or {})
        self.replaced = dict(replaced or {})
        self.watch: Callable[[], None] | None = None
        """Called now and then while a large set is gone through: a search that must not run on raises from here."""
        self._known: dict[str, Value] = {}
        self._constant_level: dict[str, bool] = {}
        self._plain: dict[tree.Node, bool] = {}
        self._unchanged_names: dict[tree.Node, list[str]] = {}
        self._core_of: dict[tree.Node, Callable[[tuple[tree.Expression, ...], Environment, Step], Value]] = {}
        self._values: dict[type, Callable[[Any, Environment, Step], Value]] = {
            tree.Number: lambda node, env, step: node.value,
            tree.String: lambda node, env, step: node.value,
            tree.Decimal: self._decimal,
            tree.Name: self._name,
            tree.At: lambda node, env, step: env["@"],
            tree.Apply: self._apply,
            tree.And: self._and,
            tree.Or: self._or,
            tree.Prime: self._prime,
            tree.FunctionApplication: self._function_application,
            tree.Field: self._field,
            tree.Product: self._product,
            tree.Quantifier: self._quantifier,
            tree.Choose: self._choose,
            tree.SetEnumeration: self._set_enumeration,
            tree.SetFilter: self._set_filter,
            tree.SetMap: self._set_map,
            tree.FunctionConstructor: self._function_constructor,
            tree.FunctionSet: self._function_set,
            tree.RecordConstructor: self._record_constructor,
            tree.RecordSet: self._record_set,
            tree.Except: self._except,
            tree.Tuple: self._tuple,
            tree.If: self._if,
            tree.Case: self._case,
            tree.Let: self._let,
            tree.Label: lambda node, env, step: self.value(node.body, env, step),
            tree.Lambda: lambda node, env, step: Operator(node.parameters, node.body, env),
            tree.ActionBox: self._action_box,
            _LetFunction: lambda node, env, step: self._recursive_function(node.definition, env, step),
            tree.Fairness: self._temporal,
            tree.TemporalQuantifier: self._temporal,
        }
        self._core: dict[str, Callable[[tuple[tree.Expression, ...], Environment, Step], Value]] = {
            "=": lambda args, env, step: boolean(equal(self.value(args[0], env, step), self.value(args[1], env, step))),
            "/=": lambda args, env, step: boolean(
                not equal(self.value(args[0], env, step), self.value(args[1], env, step))
            ),
            "\\in": lambda args, env, step: boolean(self._member(args, env, step)),
            "\\notin": lambda args, env, step: boolean(not self._member(args, env, step)),
            "\\lnot": lambda args, env, step: FALSE if self.truth(args[0], env, step) else TRUE,
            "=>": lambda args, env, step: boolean(not self.truth(args[0], env, step) or self.truth(args[1], env, step)),
            "\\equiv": lambda args, env, step: boolean(
                self.truth(args[0], env, step) is self.truth(args[1], env, step)
            ),
            "\\subseteq": lambda args, env, step: boolean(is_subset(*self._both(args, env, step))),
            "\\union": lambda args, env, step: union(*self._both(args, env, step)),
            "\\intersect": self._intersection,
            "\\": self._difference,
            "SUBSET": self._powerset,
            "UNION": self._big_union,
            "DOMAIN": lambda args, env, step: domain(self.value(args[0], env, step)),
            "ENABLED": self._enabled,
            "UNCHANGED": self._unchanged,
        }
        for temporal in ("[]", "<>", "~>", "-+->"):
            self._core[temporal] = lambda args, env, step: self._temporal(args[0], env, step)
        self._step_rules: dict[type, Callable[[Any, Environment, Step], Iterator[Step]]] = {
            tree.And: lambda node, env, step: self._steps_and(node.items, 0, env, step),
            tree.Or: self._steps_or,
            tree.Quantifier: self._steps_quantifier,
            Given: self._steps_given,
            Branch: self._steps_branch,
            Leaf: self._steps_leaf,
            tree.If: self._steps_if,
            tree.Case: self._steps_case,
            tree.Let: lambda node, env, step: self.steps(node.body, self.let(node.units, env), step),
            tree.Label: lambda node, env, step: self.steps(node.body, env, step),
            tree.Apply: self._steps_apply,
            tree.Name: self._steps_name,
            tree.ActionBox: self._steps_action_box,
            Inline: lambda node, env, step: self.steps(
                node.body, self.arguments(node.parameters, node.arguments, env), step
            ),
        }

    # --- the two questions ------------------------------------------------------------------------------------------

    def value(self, node: tree.Expression, environment: Environment, step: Step) -> Value:
        """What an expression is worth. May be a set or function by rule (:func:`.values.concrete` lists it).

        :raises TlaEvaluationError: it has no value.
        """
        try:
            return self._values[type(node)](node, environment, step)
        except ValueProblem as problem:
            raise self._located(problem, node, environment) from None

    def truth(self, node: tree.Expression, environment: Environment, step: Step) -> bool:
        """Whether a Boolean expression is TRUE. Raises where it is no Boolean."""
        value = self.value(node, environment, step)
        if value is TRUE:
            return True
        if value is FALSE:
            return False
        raise TlaEvaluationError(
            f"{_said(value)} stands where a Boolean is needed", node.span, values=self._shown(environment)
        )

    def steps(self, node: tree.Expression, environment: Environment, step: Step) -> Iterator[Step]:
        """The steps that an action allows, with what was assigned before; in TLC's order, and as often as TLC
        generates them.
        """
        rule = self._step_rules.get(type(node))
        if rule is not None:
            return rule(node, environment, step)
        return iter((step,)) if self.truth(node, environment, step) else iter(())

    def guarded(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Asks a question, and turns what is no error of the spec yet into one: a value that cannot be listed, the
        stack's end.
        """
        try:
            return question(*arguments)
        except RecursionError:
            raise self._too_deep() from None
        except ValueProblem as problem:
            raise self._located(problem, self.program.root, {}) from None

    def guarded_steps(self, node: tree.Expression, step: Step) -> Iterator[Step]:
        """``steps`` from the outside: no foreign error."""
        walk = self.steps(node, {}, step)
        while True:
            try:
                found = next(walk, None)
            except RecursionError:
                raise self._too_deep() from None
            except ValueProblem as problem:
                raise self._located(problem, node, {}) from None
            if found is None:
                return
            yield found

    # --- names ------------------------------------------------------------------------------------------------------

    def _name(self, node: tree.Name, environment: Environment, step: Step) -> Value:
        name = node.name
        if name in environment:
            bound = environment[name]
            return self._forced(bound, step) if type(bound) is Thunk else bound
        if name in self.variables:
            try:
                return step.before[name]
            except KeyError:
                raise TlaEvaluationError(f"the variable {name} is read before it has a value", node.span) from None
        name = self.replaced.get(name, name)
        if name in self.constants:
            return self.constants[name]
        definition = self.program.definitions.get(name)
        if definition is not None:
            return self._defined(name, definition, step)
        if name == "TRUE":
            return TRUE
        if name == "FALSE":
            return FALSE
        if name == "BOOLEAN":
            return BOOLEAN
        if name == "STRING":
            return STRING
        builtin = self.program.builtins.get(name)
        if builtin is not None:
            return builtin.function() if builtin.arity == 0 else builtin
        if name in self._core:
            return _core_operator(node)
        raise TlaEvaluationError(f"{name} has no meaning here", node.span)

    def _forced(self, thunk: Thunk, step: Step) -> Value:
        if thunk.step is not step:
            thunk.value = self.value(thunk.node, thunk.environment, step)
            thunk.step = step
        return thunk.value

    def _defined(self, name: str, definition: tree.Definition | tree.FunctionDefinition, step: Step) -> Value:
        if name in self._known:
            return self._known[name]
        if isinstance(definition, tree.FunctionDefinition):
            value: Value = self._recursive_function(definition, {}, step)
        elif definition.parameters:
            return Operator(definition.parameters, definition.body, {})
        else:
            value = self.value(definition.body, {}, step)
        if self.is_constant(name):
            value = self._known[name] = concrete(value) if is_finite(value) else value
        return value

    def is_constant(self, name: str) -> bool:
        """Whether a definition reads neither variables nor primes, however indirectly."""
        name = self.replaced.get(name, name)
        if name in self.variables:
            return False
        known = self._constant_level.get(name)
        if known is None:
            # A recursive definition is as constant as the rest of its body.
            self._constant_level[name] = True
            definition = self.program.definitions.get(name)
            known = definition is None or all(
                not isinstance(node, (tree.Prime, tree.ActionBox))
                and not (isinstance(node, tree.Name) and not self.is_constant(node.name))
                for node in tree.walk(definition)
            )
            self._constant_level[name] = known
        return known

    def _apply(self, node: tree.Apply, environment: Environment, step: Step) -> Value:
        core = self._core_of.get(node)
        if core is not None:
            return core(node.arguments, environment, step)
        name = node.operator.name
        if name in environment:
            return self._call(environment[name], node, environment, step)
        name = self.replaced.get(name, name)
        definition = self.program.definitions.get(name)
        if definition is not None:
            if isinstance(definition, tree.Definition):
                inner = self.arguments(definition.parameters, node.arguments, environment)
                return self.value(definition.body, inner, step)
            raise TlaEvaluationError(f"{name} is a function: apply it with [ ], not with ( )", node.span)
        core = self._core.get(name)
        if core is not None:
            # No parameter and no definition can have the name of such an operator: this node means it for good.
            self._core_of[node] = core
            return core(node.arguments, environment, step)
        builtin = self.program.builtins.get(name)
        if builtin is not None:
            return self._call(builtin, node, environment, step)
        raise TlaEvaluationError(f"the operator {name} has no meaning here", node.operator.span)

    def _call(self, operator: Any, node: tree.Apply, environment: Environment, step: Step) -> Value:
        if type(operator) is Operator:
            inner = {**operator.environment, **self.arguments(operator.parameters, node.arguments, environment)}
            return self.value(operator.body, inner, step)
        if type(operator) is Builtin:
            values = []
            for index, argument in enumerate(node.arguments):
                if operator.operators and index in operator.operators:
                    values.append(self._callable(argument, environment, step))
                else:
                    values.append(self.value(argument, environment, step))
            return operator.function(*values)
        if type(operator) is Thunk:
            return self._call(self._forced(operator, step), node, environment, step)
        raise TlaEvaluationError(f"{node.operator.name} is no operator", node.operator.span)

    def _callable(self, node: tree.Expression, environment: Environment, step: Step) -> Callable[..., Value]:
        """An operator that is an argument, for a builtin: a Python function of values."""
        operator = self._operator(node, environment)

        def call(*values: Value) -> Value:
            if type(operator) is Builtin:
                return operator.function(*values)
            names = [parameter.name for parameter in operator.parameters]
            return self.value(operator.body, {**operator.environment, **dict(zip(names, values, strict=True))}, step)

        return call

    def _operator(self, node: tree.Expression, environment: Environment) -> Any:
        if isinstance(node, tree.Lambda):
            return Operator(node.parameters, node.body, environment)
        assert isinstance(node, tree.Name)  # the name check lets nothing else stand for an operator
        if node.name in environment:
            return environment[node.name]
        name = self.replaced.get(node.name, node.name)
        definition = self.program.definitions.get(name)
        if isinstance(definition, tree.Definition):
            return Operator(definition.parameters, definition.body, {})
        if name in self.program.builtins:
            return self.program.builtins[name]
        return _core_operator(node)

    def arguments(
        self, parameters: tuple[tree.Parameter, ...], arguments: tuple[tree.Expression, ...], environment: Environment
    ) -> Environment:
        """The environment of a definition's body: its parameters, bound to what they will be computed from."""
        inner: Environment = {}
        for parameter, argument in zip(parameters, arguments, strict=True):
            if parameter.arity:
                inner[parameter.name] = self._operator(argument, environment)
            elif isinstance(argument, tree.Name) and argument.name in environment:
                inner[parameter.name] = environment[argument.name]
            elif isinstance(argument, (tree.Number, tree.String)):
                inner[parameter.name] = argument.value
            else:
                inner[parameter.name] = Thunk(argument, environment)
        return inner

    # --- logic ------------------------------------------------------------------------------------------------------

    def _and(self, node: tree.And, environment: Environment, step: Step) -> Boolean:
        for item in node.items:
            if not self.truth(item, environment, step):
                return FALSE
        return TRUE

    def _or(self, node: tree.Or, environment: Environment, step: Step) -> Boolean:
        for item in node.items:
            if self.truth(item, environment, step):
                return TRUE
        return FALSE

    def _quantifier(self, node: tree.Quantifier, environment: Environment, step: Step) -> Boolean:
        for_all = node.kind == "\\A"
        for inner in self.bindings(node.bounds, environment, step):
            if self.truth(node.body, inner, step) is not for_all:
                return boolean(not for_all)
        return boolean(for_all)

    def _choose(self, node: tree.Choose, environment: Environment, step: Step) -> Value:
        for inner in self.bindings((node.bound,), environment, step):
            if self.truth(node.body, inner, step):
                names = node.bound.names
                return tuple(inner[name] for name in names) if node.bound.tuple_pattern else inner[names[0]]
        raise ValueProblem("no element of the set satisfies the CHOOSE")

    def bindings(self, bounds: tuple[tree.Bound, ...], environment: Environment, step: Step) -> Iterator[Environment]:
        """The environments of a quantifier's body: every choice of elements, the first name changing fastest (TLC's
        ``ContextEnumerator``).
        """
        sets = [self._domain(bound, environment, step) for bound in bounds]
        return self._bound(bounds, sets, len(bounds), environment)

    def _domain(self, bound: tree.Bound, environment: Environment, step: Step) -> tuple[Value, ...]:
        if bound.domain is None:
            raise TlaEvaluationError(
                "an unbounded quantifier cannot be computed", bound.span, hint="give it a set: x \\in S"
            )
        collection = self.value(bound.domain, environment, step)
        try:
            return elements(collection)
        except ValueProblem as problem:
            raise self._located(problem, bound.domain, environment) from None

    def _bound(
        self, bounds: tuple[tree.Bound, ...], sets: list[tuple[Value, ...]], count: int, environment: Environment
    ) -> Iterator[Environment]:
        """The choices for the first ``count`` bounds."""
        for inner in self._chosen(bounds[count - 1], sets[count - 1], environment):
            if count == 1:
                yield inner
            else:
                yield from self._bound(bounds, sets, count - 1, inner)

    def _watched(self, items: tuple[Value, ...]) -> Iterable[Value]:
        """The elements of a set, with a look at the bounds of the search now and then where they are many."""
        return items if self.watch is None or len(items) < _MANY else self._watching(items, self.watch)

    def _watching(self, items: tuple[Value, ...], watch: Callable[[], None]) -> Iterator[Value]:
        for index, item in enumerate(items):
            if index % _MANY == 0:
                watch()
            yield item

    def _chosen(self, bound: tree.Bound, items_: tuple[Value, ...], environment: Environment) -> Iterator[Environment]:
        items = self._watched(items_)
        if bound.tuple_pattern:
            for item in items:
                yield {**environment, **self._unpacked(bound, item)}
        elif len(bound.names) == 1:
            name = bound.names[0]
            for item in items:
                inner = environment.copy()
                inner[name] = item
                yield inner
        else:
            yield from self._chosen_each(bound.names, items_, environment)

    def _chosen_each(
        self, names: tuple[str, ...], items: tuple[Value, ...], environment: Environment
    ) -> Iterator[Environment]:
        if not names:
            yield environment
            return
        for item in items:
            yield from self._chosen_each(names[:-1], items, {**environment, names[-1]: item})

    def _unpacked(self, bound: tree.Bound, item: Value) -> Environment:
        if type(item) is not tuple or len(item) != len(bound.names):
            raise TlaEvaluationError(f"{_said(item)} does not fit the pattern <<{', '.join(bound.names)}>>", bound.span)
        return dict(zip(bound.names, item, strict=True))

    def _member(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> bool:
        value = self.value(arguments[0], environment, step)
        written = arguments[1]
        if isinstance(written, tree.SetEnumeration):
            # As in TLC the search stops at the first hit, so that `1 \in {1, "a"}` is TRUE.
            return any(equal(value, self.value(item, environment, step)) for item in written.items)
        return member(value, self.value(written, environment, step))

    # --- sets -------------------------------------------------------------------------------------------------------

    def _both(
        self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step
    ) -> tuple[Value, Value]:
        return self.value(arguments[0], environment, step), self.value(arguments[1], environment, step)

    def _set_enumeration(self, node: tree.SetEnumeration, environment: Environment, step: Step) -> Value:
        items = [concrete(self.value(item, environment, step)) for item in node.items]
        homogeneous(items)
        return frozenset(items)

    def _set_filter(self, node: tree.SetFilter, environment: Environment, step: Step) -> Value:
        names = node.bound.names
        assert node.bound.domain is not None  # the grammar has no unbounded filter
        base = self.value(node.bound.domain, environment, step)
        if is_set(base) and not is_finite(base):
            return InfiniteSet(
                node.span.text, lambda item: member(item, base) and self._satisfies(node, item, environment, step)
            )
        return frozenset(
            tuple(inner[name] for name in names) if node.bound.tuple_pattern else inner[names[0]]
            for inner in self.bindings((node.bound,), environment, step)
            if self.truth(node.predicate, inner, step)
        )

    def _satisfies(self, node: tree.SetFilter, item: Value, environment: Environment, step: Step) -> bool:
        chosen = self._unpacked(node.bound, item) if node.bound.tuple_pattern else {node.bound.names[0]: item}
        return self.truth(node.predicate, {**environment, **chosen}, step)

    def _set_map(self, node: tree.SetMap, environment: Environment, step: Step) -> Value:
        items = [
            concrete(self.value(node.body, inner, step)) for inner in self.bindings(node.bounds, environment, step)
        ]
        homogeneous(items)
        return frozenset(items)

    def _intersection(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Value:
        left, right = self._both(arguments, environment, step)
        if not is_finite(left) and is_finite(right):
            left, right = right, left
        if not is_set(right):
            raise ValueProblem(f"\\intersect is applied to {kind_in_words(right)}, not to a set")
        return frozenset(item for item in listed_set(left, "\\intersect") if member(item, right))

    def _difference(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Value:
        left, right = self._both(arguments, environment, step)
        if not is_set(right):
            raise ValueProblem(f"\\ is applied to {kind_in_words(right)}, not to a set")
        return frozenset(item for item in listed_set(left, "\\") if not member(item, right))

    def _powerset(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Value:
        base = self.value(arguments[0], environment, step)
        if not is_set(base):
            raise ValueProblem(f"SUBSET is applied to {kind_in_words(base)}, not to a set")
        return PowerSet(base)

    def _big_union(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Value:
        result: Value = frozenset()
        for item in elements(self.value(arguments[0], environment, step)):
            result = union(result, item)
        return result

    def _product(self, node: tree.Product, environment: Environment, step: Step) -> Value:
        factors = tuple(self.value(factor, environment, step) for factor in node.factors)
        for factor in factors:
            if not is_set(factor):
                raise ValueProblem(f"\\X is applied to {kind_in_words(factor)}, not to a set")
        return ProductSet(factors)

    # --- functions, records, tuples ---------------------------------------------------------------------------------

    def _function_application(self, node: tree.FunctionApplication, environment: Environment, step: Step) -> Value:
        function = self.value(node.function, environment, step)
        if not is_function(function):
            raise ValueProblem(f"{kind_in_words(function)} is applied to an argument, and only a function can be")
        return apply(function, self._index(node.arguments, environment, step))

    def _index(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Value:
        values = [concrete(self.value(argument, environment, step)) for argument in arguments]
        return values[0] if len(values) == 1 else tuple(values)

    def _field(self, node: tree.Field, environment: Environment, step: Step) -> Value:
        record = concrete(self.value(node.record, environment, step))
        if type(record) is Map:
            found = record.get(node.name)
            if found is not None:  # no TLA+ value is None
                return found
        if not is_record(record):
            raise ValueProblem(
                f"the field {node.name} is read from {kind_in_words(record)}, and only a record has fields"
            )
        return apply(record, node.name)

    def _function_constructor(self, node: tree.FunctionConstructor, environment: Environment, step: Step) -> Value:
        arguments, compute = self._rule(node.bounds, node.body, environment, step)
        if not is_finite(arguments):
            return LazyFunction(arguments, compute)
        try:
            return function_of((argument, compute(argument)) for argument in self._watched(elements(arguments)))
        except TlaEvaluationError:
            # As in TLC a function's values are computed when they are asked for: `[x \in {0, 1} |-> 1 \div x][1]` is 1.
            return LazyFunction(arguments, compute)

    def _recursive_function(self, definition: tree.FunctionDefinition, environment: Environment, step: Step) -> Value:
        inner = dict(environment)
        inner[definition.name] = LazyFunction(*self._rule(definition.bounds, definition.body, inner, step))
        return inner[definition.name]

    def _rule(
        self, bounds: tuple[tree.Bound, ...], body: tree.Expression, environment: Environment, step: Step
    ) -> tuple[Value, Callable[[Value], Value]]:
        """A function's domain, and how a value is computed. The environment is read when it is, not now."""
        if len(bounds) == 1 and (len(bounds[0].names) == 1 or bounds[0].tuple_pattern):
            bound = bounds[0]
            assert bound.domain is not None  # the grammar has no unbounded function
            arguments = self.value(bound.domain, environment, step)
            if not is_set(arguments):
                raise ValueProblem(f"the domain of the function is {kind_in_words(arguments)}, not a set")

            def chosen(argument: Value) -> Environment:
                return self._unpacked(bound, argument) if bound.tuple_pattern else {bound.names[0]: argument}
        else:
            by_key = {self._key(bounds, inner): inner for inner in self.bindings(bounds, environment, step)}
            arguments = frozenset(by_key)

            def chosen(argument: Value) -> Environment:
                return by_key[argument]

        return arguments, lambda argument: concrete(self.value(body, {**environment, **chosen(argument)}, step))

    def _key(self, bounds: tuple[tree.Bound, ...], inner: Environment) -> Value:
        key: list[Value] = []
        for bound in bounds:
            if bound.tuple_pattern:
                key.append(tuple(inner[name] for name in bound.names))
            else:
                key.extend(inner[name] for name in bound.names)
        return tuple(key)

    def _function_set(self, node: tree.FunctionSet, environment: Environment, step: Step) -> Value:
        sets = self.value(node.domain, environment, step), self.value(node.range, environment, step)
        for item in sets:
            if not is_set(item):
                raise ValueProblem(f"[S -> T] is built from {kind_in_words(item)}, not from a set")
        return FunctionSet(*sets)

    def _record_constructor(self, node: tree.RecordConstructor, environment: Environment, step: Step) -> Value:
        return Map({name: concrete(self.value(field, environment, step)) for name, field in node.fields})

    def _record_set(self, node: tree.RecordSet, environment: Environment, step: Step) -> Value:
        fields = {name: self.value(field, environment, step) for name, field in node.fields}
        for name, field in fields.items():
            if not is_set(field):
                raise ValueProblem(f"the field {name} of a set of records is {kind_in_words(field)}, not a set")
        return RecordSet(fields)

    def _tuple(self, node: tree.Tuple, environment: Environment, step: Step) -> Value:
        return tuple([concrete(self.value(item, environment, step)) for item in node.items])

    def _except(self, node: tree.Except, environment: Environment, step: Step) -> Value:
        function = concrete(self.value(node.base, environment, step))
        for update in node.updates:
            function = self._updated(function, update, 0, environment, step)
        return function

    def _updated(self, function: Value, update: tree.Update, depth: int, environment: Environment, step: Step) -> Value:
        part = update.path[depth]
        if not is_function(function) or type(function) is LazyFunction:
            raise ValueProblem(f"EXCEPT is applied to {kind_in_words(function)}, not to a function")
        argument = part if isinstance(part, str) else self._index(part, environment, step)
        if not member(argument, domain(function)):
            return function  # as in TLC, which warns
        old = apply(function, argument)
        if depth + 1 < len(update.path):
            return replace(function, argument, self._updated(old, update, depth + 1, environment, step))
        return replace(function, argument, concrete(self.value(update.value, {**environment, "@": old}, step)))

    # --- control ----------------------------------------------------------------------------------------------------

    def _if(self, node: tree.If, environment: Environment, step: Step) -> Value:
        chosen = node.then if self.truth(node.condition, environment, step) else node.otherwise
        return self.value(chosen, environment, step)

    def _case(self, node: tree.Case, environment: Environment, step: Step) -> Value:
        return self.value(self._arm(node, environment, step), environment, step)

    def _arm(self, node: tree.Case, environment: Environment, step: Step) -> tree.Expression:
        for guard, body in node.arms:
            if self.truth(guard, environment, step):
                return body
        if node.other is None:
            raise TlaEvaluationError(
                "no arm of the CASE is TRUE, and it has no OTHER", node.span, values=self._shown(environment)
            )
        return node.other

    def _let(self, node: tree.Let, environment: Environment, step: Step) -> Value:
        return self.value(node.body, self.let(node.units, environment), step)

    def let(self, units: tuple[tree.Unit, ...], environment: Environment) -> Environment:
        """The environment inside a LET. Its definitions see each other through it."""
        inner = dict(environment)
        for unit in units:
            if isinstance(unit, tree.Definition):
                if unit.parameters:
                    inner[unit.name] = Operator(unit.parameters, unit.body, inner)
                else:
                    inner[unit.name] = Thunk(unit.body, inner)
            elif isinstance(unit, tree.FunctionDefinition):
                inner[unit.name] = Thunk(_LetFunction(unit), inner)
            elif isinstance(unit, tree.Instance):
                raise TlaEvaluationError("INSTANCE in a LET parses, and cannot be evaluated yet", unit.span)
        return inner

    # --- actions as values, and what is no value ----------------------------------------------------------------------

    def _prime(self, node: tree.Prime, environment: Environment, step: Step) -> Value:
        if step.after is None:
            raise TlaEvaluationError("a primed expression has no value in a single state", node.span)
        if isinstance(node.body, tree.Name) and node.body.name in self.variables:
            try:
                return step.after[node.body.name]
            except KeyError:
                raise TlaEvaluationError(
                    f"{node.body.name}' is read before it has a value",
                    node.span,
                    hint=f"{node.body.name}' = … or {node.body.name}' \\in … must come before",
                ) from None
        return self.value(node.body, environment, self._shifted(step))

    def _shifted(self, step: Step) -> Step:
        assert step.after is not None
        return Step(step.after)

    def _enabled(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Boolean:
        return boolean(any(True for _ in self.steps(arguments[0], environment, Step(step.before, {}))))

    def _unchanged(self, arguments: tuple[tree.Expression, ...], environment: Environment, step: Step) -> Boolean:
        return boolean(
            equal(
                self.value(arguments[0], environment, step),
                self._prime(tree.Prime(arguments[0].span, arguments[0]), environment, step),
            )
        )

    def _action_box(self, node: tree.ActionBox, environment: Environment, step: Step) -> Boolean:
        acts = self.truth(node.action, environment, step)
        if acts is (node.kind == "[]"):
            return boolean(acts)
        return boolean(self._unchanged((node.subscript,), environment, step) is boolean(node.kind == "[]"))

    def _temporal(self, node: tree.Expression, environment: Environment, step: Step) -> NoReturn:
        raise TlaEvaluationError("a temporal formula has no value in a state", node.span)

    def _decimal(self, node: tree.Decimal, environment: Environment, step: Step) -> NoReturn:
        raise TlaEvaluationError(f"{node.text} has no value: only integers are computed", node.span)

    # --- steps ------------------------------------------------------------------------------------------------------

    def _steps_and(
        self, items: tuple[tree.Expression, ...], index: int, environment: Environment, step: Step
    ) -> Iterator[Step]:
        while index < len(items):
            item = items[index]
            index += 1
            if self._is_plain(item):
                if not self.truth(item, environment, step):
                    return
                continue
            for found in self.steps(item, environment, step):
                yield from self._steps_and(items, index, environment, found)
            return
        yield step

    def _is_plain(self, node: tree.Expression) -> bool:
        """Whether a conjunct can only be TRUE or FALSE: it neither assigns nor branches, and needs no enumeration."""
        plain = self._plain.get(node)
        if plain is None:
            if isinstance(node, tree.Apply):
                name = node.operator.name
                core = name in self._core and name not in self.program.definitions and name != "UNCHANGED"
                # `x = e` and `x \in S` assign while an initial state is built, and a parameter may stand for a
                # variable.
                assigns = name in ("=", "\\in", "\\subseteq")
                plain = core and (not assigns or not isinstance(node.arguments[0], (tree.Prime, tree.Name)))
            else:
                plain = type(node) not in self._step_rules
            self._plain[node] = plain
        return plain

    def _steps_or(self, node: tree.Or, environment: Environment, step: Step) -> Iterator[Step]:
        if step.after is None and len(step.before) == len(self.variables):
            # Once an initial state is complete, TLC reads a disjunction as a value.
            if self.truth(node, environment, step):
                yield step
            return
        for item in node.items:
            yield from self.steps(item, environment, step)

    def _steps_quantifier(self, node: tree.Quantifier, environment: Environment, step: Step) -> Iterator[Step]:
        if node.kind == "\\E":
            for inner in self.bindings(node.bounds, environment, step):
                yield from self.steps(node.body, inner, step)
        else:
            inners = list(self.bindings(node.bounds, environment, step))
            yield from self._steps_all(node.body, inners, 0, step)

    def _steps_all(self, body: tree.Expression, inners: list[Environment], index: int, step: Step) -> Iterator[Step]:
        if index == len(inners):
            yield step
            return
        for found in self.steps(body, inners[index], step):
            yield from self._steps_all(body, inners, index + 1, found)

    def _steps_branch(self, node: Branch, environment: Environment, step: Step) -> Iterator[Step]:
        wanted = None if step.request is None else step.request.actions
        for item, actions in node.items:
            if wanted is None or not wanted.isdisjoint(actions):
                yield from self.steps(item, environment, step)

    def _steps_leaf(self, node: Leaf, environment: Environment, step: Step) -> Iterator[Step]:
        for found in self.steps(node.body, environment, step):
            yield Step(found.before, found.after, found.request, node.action)

    def _steps_given(self, node: Given, environment: Environment, step: Step) -> Iterator[Step]:
        names = tuple(name for bound in node.bounds for name in bound.names)
        for inner in self.given(node, environment, step):
            for found in self.steps(node.body, inner, step):
                chosen = tuple((name, inner[name]) for name in names)
                yield Step(found.before, found.after, found.request, found.action, chosen + found.chosen)

    def given(self, node: Given, environment: Environment, step: Step) -> Iterator[Environment]:
        """The environments below an action's leading ``\\E``: what the request binds is tested against its set, not
        enumerated.
        """
        if step.request is None:
            return self.bindings(node.bounds, environment, step)
        found = [environment]
        for bound in node.bounds:
            assert bound.domain is not None  # an unbounded \E is no Given
            collection = self.value(bound.domain, environment, step)
            if bound.tuple_pattern:
                chosen = [self._unpacked(bound, item) for item in elements(collection)]
                fitting = [item for item in chosen if all(self._fits(step.request, *pair) for pair in item.items())]
                found = [{**outer, **item} for outer in found for item in fitting]
                continue
            for name in bound.names:
                values = step.request.choose(name, collection)
                if values is None:
                    values = list(self._domain(bound, environment, step))
                found = [{**outer, name: item} for outer in found for item in values]
        return iter(found)

    def _fits(self, request: Request, name: str, item: Value) -> bool:
        chosen = request.choose(name, frozenset({item}))
        return chosen is None or bool(chosen)

    def _steps_if(self, node: tree.If, environment: Environment, step: Step) -> Iterator[Step]:
        chosen = node.then if self.truth(node.condition, environment, step) else node.otherwise
        return self.steps(chosen, environment, step)

    def _steps_case(self, node: tree.Case, environment: Environment, step: Step) -> Iterator[Step]:
        return self.steps(self._arm(node, environment, step), environment, step)

    def _steps_name(self, node: tree.Name, environment: Environment, step: Step) -> Iterator[Step]:
        bound = environment.get(node.name)
        if type(bound) is Thunk:
            return self.steps(bound.node, bound.environment, step)
        name = self.replaced.get(node.name, node.name)
        definition = self.program.definitions.get(name)
        if isinstance(definition, tree.Definition) and node.name not in environment and name not in self.constants:
            return self.steps(definition.body, {}, step)
        return iter((step,)) if self.truth(node, environment, step) else iter(())

    def _steps_apply(self, node: tree.Apply, environment: Environment, step: Step) -> Iterator[Step]:
        name = node.operator.name
        bound = environment.get(name)
        if type(bound) is Operator:
            inner = {**bound.environment, **self.arguments(bound.parameters, node.arguments, environment)}
            return self.steps(bound.body, inner, step)
        name = self.replaced.get(name, name)
        definition = self.program.definitions.get(name)
        if isinstance(definition, tree.Definition):
            return self.steps(definition.body, self.arguments(definition.parameters, node.arguments, environment), step)
        if name == "=" or name == "\\in":
            target = self._target(node.arguments[0], environment, step)
            if target is not None:
                return self._assignments(name, target, node.arguments[1], environment, step)
        elif name == "UNCHANGED":
            return self._steps_unchanged(node.arguments[0], environment, step)
        elif name == "\\subseteq" and step.after is None:
            target = self._target(node.arguments[0], environment, step)
            if target is not None:
                base = self.value(node.arguments[1], environment, step)
                return iter([step.assign(target, item) for item in elements(PowerSet(base))])
        return iter((step,)) if self.truth(node, environment, step) else iter(())

    def _assignments(
        self, operator: str, target: str, right: tree.Expression, environment: Environment, step: Step
    ) -> Iterator[Step]:
        value = self.value(right, environment, step)
        if operator == "=":
            return iter((step.assign(target, concrete(value)),))
        try:
            return iter([step.assign(target, item) for item in elements(value)])
        except ValueProblem as problem:
            raise self._located(problem, right, environment) from None

    def _target(self, node: tree.Expression, environment: Environment, step: Step) -> str | None:
        """The variable that an expression would assign: one that is primed (unprimed in Init) and has no value yet."""
        node, environment = self._meant(node, environment)
        if step.after is not None:
            if not isinstance(node, tree.Prime):
                return None
            node = node.body
        name = self._variable(node, environment)
        if name is None or name in (step.before if step.after is None else step.after):
            return None
        return name

    def _meant(self, node: tree.Expression, environment: Environment) -> tuple[tree.Expression, Environment]:
        """What a name stands for, through the parameters of the definitions around it."""
        while isinstance(node, tree.Name):
            bound = environment.get(node.name)
            if type(bound) is not Thunk:
                break
            node, environment = bound.node, bound.environment
        return node, environment

    def _variable(self, node: tree.Expression, environment: Environment) -> str | None:
        """The variable that an expression is, if it is one."""
        node, environment = self._meant(node, environment)
        if isinstance(node, tree.Name) and node.name in self.variables and node.name not in environment:
            return node.name
        return None

    def _steps_unchanged(self, node: tree.Expression, environment: Environment, step: Step) -> Iterator[Step]:
        names = self._unchanged_names.get(node)
        if names is None:
            names = self._variables(node, {})
            if names is not None:
                # What means variables without an environment means them in every one: nothing may shadow a variable.
                self._unchanged_names[node] = names
            else:
                names = self._variables(node, environment)
        if names is None:
            return iter((step,)) if self._unchanged((node,), environment, step) is TRUE else iter(())
        if step.after is None:
            raise TlaEvaluationError("UNCHANGED has no meaning in a single state", node.span)
        after = dict(step.after)
        for name in names:
            old = step.before[name]
            if name not in after:
                after[name] = old
            elif not equal(after[name], old):
                return iter(())
        return iter((Step(step.before, after, step.request),))

    def _variables(self, node: tree.Expression, environment: Environment) -> list[str] | None:
        """The variables of a tuple of variables, however it is named; None where there is more to it than names."""
        if isinstance(node, tree.Tuple):
            found: list[str] = []
            for item in node.items:
                inner = self._variables(item, environment)
                if inner is None:
                    return None
                found.extend(inner)
            return found
        name = self._variable(node, environment)
        if name is not None:
            return [name]
        if isinstance(node, tree.Name) and node.name not in environment:
            definition = self.program.definitions.get(self.replaced.get(node.name, node.name))
            if isinstance(definition, tree.Definition) and not definition.parameters:
                return self._variables(definition.body, {})
        return None

    def unchanged_variables(self, node: tree.Expression) -> list[str] | None:
        """The variables that ``UNCHANGED node`` keeps; None where ``node`` is more than a tuple of variables."""
        return self._variables(node, {})

    def _steps_action_box(self, node: tree.ActionBox, environment: Environment, step: Step) -> Iterator[Step]:
        for found in self.steps(node.action, environment, step):
            if node.kind == "[]" or self._unchanged((node.subscript,), environment, found) is FALSE:
                yield found
        if node.kind == "[]":
            yield from self._steps_unchanged(node.subscript, environment, step)

    # --- errors -----------------------------------------------------------------------------------------------------

    def _located(self, problem: ValueProblem, node: tree.Node, environment: Environment) -> TlaEvaluationError:
        return TlaEvaluationError(problem.message, node.span, hint=problem.hint, values=self._shown(environment))

    def _shown(self, environment: Environment) -> dict[str, str]:
        return {
            name: show_short(value)
            for name, value in environment.items()
            if type(value) not in (Thunk, Operator, Builtin, LazyFunction)
        }

    def _too_deep(self) -> TlaError:
        return TlaEvaluationError(
            "the evaluation nests too deeply",
            self.program.root.span,
            hint="a recursive definition that never ends, or one that recurses over too many elements",
        )


class _LetFunction(tree.Expression):
    """The definition of a function in a LET, where an expression is expected: the thunk's node."""

    __slots__ = ("definition",)

    def __init__(self, definition: tree.FunctionDefinition) -> None:
        object.__setattr__(self, "span", definition.span)
        object.__setattr__(self, "definition", definition)


def _core_operator(node: tree.Name) -> Operator:
    """An operator of the language itself that is an argument, ``Fold(+, …)``: as if it were a LAMBDA over it."""
    count = 1 if node.name in ("\\lnot", "SUBSET", "UNION", "DOMAIN") else 2
    names = [f"operand {index}" for index in range(1, count + 1)]
    operands = tuple(tree.Name(node.span, name) for name in names)
    body: tree.Expression
    if node.name == "\\land":
        body = tree.And(node.span, operands)
    elif node.name == "\\lor":
        body = tree.Or(node.span, operands)
    else:
        body = tree.Apply(node.span, node, operands)
    return Operator(tuple(tree.Parameter(node.span, name) for name in names), body, {})


def _said(value: Value) -> str:
    return kind_in_words(value) if not isinstance(value, (Operator, Builtin)) else "an operator"
