"""Is a spec separable by a key, so that each key's events can be replayed alone?

A state is *separable* by a parameter ``t`` when every variable is a function over one declared constant ``K`` (the
keys), and every action, with its ``t \\in K``, reads and writes those functions at ``t`` only. Then the spec is the
product of one small spec a key: a step of one key commutes with those of all others, and a behaviour is explained
when each key's part of it is. :func:`separable` proves that from the text, or says which part couples two keys. It is
a sound analysis and no complete one: what it does not recognise it calls coupled, and the replay is then that of the
whole.

A key is moreover *opaque* here: it is never compared, stored or counted. So all keys behave alike, and what was
computed for one holds for every other (:mod:`.tables`).
"""

from __future__ import annotations

from dataclasses import dataclass

from .spec import Spec
from .tla import tree
from .tla.evaluate import Branch, Given, Inline, Leaf
from .tla.source import Span

Keys = frozenset[str]
"""The names that stand for the key where an expression is read."""

NO_KEY: Keys = frozenset()


@dataclass(frozen=True, slots=True)
class Separable:
    """A spec's state decomposes by the parameter ``key``, which ranges over the constant ``keys``."""

    key: str
    keys: str


class Coupled(Exception):
    """Something speaks of more than one key, or of the key itself. ``span`` says where, the text says what."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span

    def __str__(self) -> str:
        return f"{self.span.file}:{self.span.line}:{self.span.column}: {self.message}"


def separable(spec: Spec, key: str | None = None) -> Separable:
    """Proves that a spec is separable by a parameter; without one, by the first that all actions have and that will do.

    :raises Coupled: it is not, or it could not be shown.
    """
    if key is not None:
        return _Analysis(spec, key).run()
    common = [name for name in spec.actions[0].parameters if all(name in action.parameters for action in spec.actions)]
    reason: Coupled | None = None
    for name in common:
        try:
            return _Analysis(spec, name).run()
        except Coupled as coupled:
            reason = reason or coupled
    if reason is not None:
        raise reason
    lacking = next((action for action in spec.actions if not action.parameters), spec.actions[-1])
    raise Coupled(f"{lacking.name} and the other actions have no parameter in common", lacking.body.span)


class _Analysis:
    def __init__(self, spec: Spec, key: str) -> None:
        self.spec = spec
        self.key = key
        self.constant: str | None = None
        self.definitions = spec.program.definitions
        self.variables = frozenset(spec.variables)
        self._done: set[tuple[str, Keys, str]] = set()

    def run(self) -> Separable:
        for action in self.spec.actions:
            if self.key not in action.parameters:
                raise Coupled(f"{action.name} has no parameter {self.key}", action.body.span)
        # The set of keys is known before anything is read: it may stand above the quantifier, and is no value there.
        self.find_keys(self.spec.next)
        assert self.constant is not None  # every action has the parameter
        self.marked(self.spec.next, NO_KEY)
        self.init()
        for invariant in self.spec.invariants:
            self.invariant(invariant.expression)
        return Separable(self.key, self.constant)

    # --- Next ---------------------------------------------------------------------------------------------------------

    def find_keys(self, node: tree.Expression) -> None:
        """What the key ranges over, wherever in Next it is quantified."""
        if isinstance(node, Branch):
            for item, _ in node.items:
                self.find_keys(item)
        elif isinstance(node, tree.And):
            for item in node.items:
                self.find_keys(item)
        elif isinstance(node, (Given, Inline, tree.Let)):
            for bound in node.bounds if isinstance(node, Given) else ():
                if self.key in bound.names:
                    self.quantified_key(bound)
            self.find_keys(node.body)

    def marked(self, node: tree.Expression, keys: Keys) -> None:
        """The part of Next above its actions."""
        if isinstance(node, Branch):
            for item, _ in node.items:
                self.marked(item, keys)
        elif isinstance(node, Given):
            inner = keys
            for bound in node.bounds:
                if self.key in bound.names:
                    inner = inner | {self.key}
                elif bound.domain is not None:
                    self.value(bound.domain, keys)
            self.marked(node.body, inner)
        elif isinstance(node, Inline):
            self.marked(node.body, self.passed(node.parameters, node.arguments, keys))
        elif isinstance(node, Leaf):
            self.action(node.body, keys)
        elif isinstance(node, tree.Let):
            self.local(node.units, keys)
            self.marked(node.body, keys)
        elif isinstance(node, tree.And):
            for item in node.items:
                self.marked(item, keys)
        else:
            self.action(node, keys)

    def quantified_key(self, bound: tree.Bound) -> None:
        domain = bound.domain
        if bound.tuple_pattern or len(bound.names) > 1:
            raise Coupled(f"{self.key} is quantified together with another name", bound.span)
        # A constant that the config replaces by a definition has no value that could be cut down to one key.
        declared = isinstance(domain, tree.Name) and domain.name in self.spec.program.constants
        if not isinstance(domain, tree.Name) or not declared or domain.name not in self.spec.evaluator.constants:
            raise Coupled(f"{self.key} ranges over what is no declared constant", bound.span)
        if self.constant is None:
            self.constant = domain.name
        elif self.constant != domain.name:
            raise Coupled(f"{self.key} ranges over {domain.name} here and over {self.constant} elsewhere", bound.span)

    def action(self, node: tree.Expression, keys: Keys) -> None:
        """An action, or a part of one that may assign."""
        if isinstance(node, (tree.And, tree.Or)):
            for item in node.items:
                self.action(item, keys)
        elif isinstance(node, tree.Quantifier):
            self.domains(node.bounds, keys)
            self.action(node.body, keys)
        elif isinstance(node, tree.If):
            self.value(node.condition, keys)
            self.action(node.then, keys)
            self.action(node.otherwise, keys)
        elif isinstance(node, tree.Let):
            self.local(node.units, keys)
            self.action(node.body, keys)
        elif isinstance(node, tree.Apply) and self.assigned(node) is not None:
            self.assignment(node, keys)
        elif isinstance(node, tree.Apply) and node.operator.name == "UNCHANGED":
            if self.spec.evaluator.unchanged_variables(node.arguments[0]) is None:
                self.value(node.arguments[0], keys)
        else:
            called = self.called(node)
            if called is None:
                self.value(node, keys)
                return
            definition, arguments = called
            inner = self.passed(definition.parameters, arguments, keys)
            if self.first_time(definition.name, inner, "action"):
                self.action(definition.body, inner)

    def assigned(self, node: tree.Apply) -> str | None:
        """The variable of ``v' = …`` or ``v' \\in …``."""
        if node.operator.name in ("=", "\\in"):
            left = node.arguments[0]
            if isinstance(left, tree.Prime) and isinstance(left.body, tree.Name) and left.body.name in self.variables:
                return left.body.name
        return None

    def assignment(self, node: tree.Apply, keys: Keys) -> None:
        variable = self.assigned(node)
        assert variable is not None
        if node.operator.name == "=":
            self.function(node.arguments[1], variable, keys)
        else:
            self.functions(node.arguments[1], variable, keys)

    def function(self, node: tree.Expression, variable: str, keys: Keys) -> None:
        """``v``, or ``[v EXCEPT ![t] = …]``, or a choice between such: a next value that differs at the key only."""
        if isinstance(node, tree.Name) and node.name == variable:
            return
        if isinstance(node, tree.If):
            self.value(node.condition, keys)
            self.function(node.then, variable, keys)
            self.function(node.otherwise, variable, keys)
        elif isinstance(node, tree.Except) and isinstance(node.base, tree.Name) and node.base.name == variable:
            for update in node.updates:
                first, *rest = update.path
                if isinstance(first, str) or not self.is_key(first, keys):
                    raise Coupled(f"{variable} changes elsewhere than at {self.key}", update.span)
                for part in rest:
                    for index in () if isinstance(part, str) else part:
                        self.value(index, keys)
                self.value(update.value, keys)
        else:
            raise Coupled(f"{variable}' is not [{variable} EXCEPT ![{self.key}] = …]", node.span)

    def functions(self, node: tree.Expression, variable: str, keys: Keys) -> None:
        """A set of such functions."""
        if isinstance(node, tree.SetEnumeration):
            for item in node.items:
                self.function(item, variable, keys)
        elif isinstance(node, tree.If):
            self.value(node.condition, keys)
            self.functions(node.then, variable, keys)
            self.functions(node.otherwise, variable, keys)
        elif isinstance(node, tree.Apply) and node.operator.name == "\\union":
            for part in node.arguments:
                self.functions(part, variable, keys)
        else:
            raise Coupled(f"{variable}' is chosen from a set that is not written out", node.span)

    # --- Init and invariants ------------------------------------------------------------------------------------------

    def init(self) -> None:
        """Init gives each variable one function over the keys: ``v = [t \\in K |-> …]``."""
        given: set[str] = set()
        stack: list[tree.Expression] = [self.spec.init]
        while stack:
            node = stack.pop()
            called = self.called(node)
            if isinstance(node, tree.And):
                stack.extend(node.items)
            elif called is not None and not called[0].parameters:
                stack.append(called[0].body)
            else:
                given.add(self.initial(node))
        missing = self.variables - given
        if missing:
            raise Coupled(f"Init does not give {min(missing)} a function over the keys", self.spec.init.span)

    def initial(self, node: tree.Expression) -> str:
        if isinstance(node, tree.Apply) and node.operator.name == "=" and isinstance(node.arguments[0], tree.Name):
            variable, function = node.arguments[0].name, node.arguments[1]
            if variable in self.variables and isinstance(function, tree.FunctionConstructor):
                name = self.over_keys(function.bounds)
                if name is not None:
                    self.value(function.body, frozenset({name}))
                    return variable
        raise Coupled(f"Init is not of the form v = [{self.key} \\in {self.constant} |-> …] here", node.span)

    def invariant(self, node: tree.Expression) -> None:
        """``\\A t \\in K : P(t)``, a conjunction of such, or what speaks of no key at all."""
        called = self.called(node)
        if isinstance(node, tree.And):
            for item in node.items:
                self.invariant(item)
        elif called is not None and not called[0].parameters:
            self.invariant(called[0].body)
        elif isinstance(node, tree.Quantifier) and node.kind == "\\A" and self.over_keys(node.bounds) is not None:
            self.value(node.body, frozenset({self.over_keys(node.bounds) or ""}))
        else:
            self.value(node, NO_KEY)

    def over_keys(self, bounds: tuple[tree.Bound, ...]) -> str | None:
        """The name of a single bound over the constant of the keys."""
        if len(bounds) == 1 and len(bounds[0].names) == 1 and not bounds[0].tuple_pattern:
            domain = bounds[0].domain
            if isinstance(domain, tree.Name) and domain.name == self.constant:
                return bounds[0].names[0]
        return None

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: tree.Node, keys: Keys) -> None:
        """An expression that may read variables at the key, and nothing else of the state."""
        if isinstance(node, tree.Name):
            self.name(node, keys)
        elif isinstance(node, tree.FunctionApplication) and self.reads_variable(node.function):
            if not self.is_key(node.arguments, keys):
                raise Coupled(f"{node.span.text} reads elsewhere than at {self.key}", node.span)
        elif isinstance(node, tree.Apply):
            self.application(node, keys)
        elif isinstance(node, tree.Let):
            self.local(node.units, keys)
            self.value(node.body, keys)
        else:
            for child in tree.children(node):
                self.value(child, keys)

    def name(self, node: tree.Name, keys: Keys) -> None:
        name = self.meant(node.name)
        if node.name in keys:
            raise Coupled(f"{node.name} is used as a value, and not only as the place in a function", node.span)
        if name in self.variables:
            raise Coupled(f"{name} is read as a whole", node.span)
        if name == self.constant:
            raise Coupled(f"{name}, the set of all keys, is used as a value", node.span)
        definition = self.definition(name)
        if definition is not None and self.first_time(name, NO_KEY, "value"):
            self.value(definition.body, NO_KEY)

    def application(self, node: tree.Apply, keys: Keys) -> None:
        name = self.meant(node.operator.name)
        definition = self.definition(name)
        if isinstance(definition, tree.Definition):
            inner = self.passed(definition.parameters, node.arguments, keys)
            if self.first_time(name, inner, "value"):
                self.value(definition.body, inner)
        else:
            for argument in node.arguments:
                self.value(argument, keys)

    def passed(
        self, parameters: tuple[tree.Parameter, ...], arguments: tuple[tree.Expression, ...], keys: Keys
    ) -> Keys:
        """The parameters that stand for the key inside a definition; every other argument is a value of the
        caller's.
        """
        inner = set()
        for parameter, argument in zip(parameters, arguments, strict=True):
            if isinstance(argument, tree.Name) and argument.name in keys:
                inner.add(parameter.name)
            else:
                self.value(argument, keys)
        return frozenset(inner)

    def local(self, units: tuple[tree.Unit, ...], keys: Keys) -> None:
        for unit in units:
            if isinstance(unit, (tree.Definition, tree.FunctionDefinition)):
                if isinstance(unit, tree.FunctionDefinition):
                    self.domains(unit.bounds, keys)
                self.value(unit.body, keys)

    def domains(self, bounds: tuple[tree.Bound, ...], keys: Keys) -> None:
        for bound in bounds:
            if bound.domain is not None:
                self.value(bound.domain, keys)

    def reads_variable(self, node: tree.Expression) -> bool:
        """``v`` or ``v'``."""
        if isinstance(node, tree.Prime):
            node = node.body
        return isinstance(node, tree.Name) and node.name in self.variables

    def is_key(self, index: tuple[tree.Expression, ...], keys: Keys) -> bool:
        return len(index) == 1 and isinstance(index[0], tree.Name) and index[0].name in keys

    def meant(self, name: str) -> str:
        return self.spec.evaluator.replaced.get(name, name)

    def definition(self, name: str) -> tree.Definition | tree.FunctionDefinition | None:
        return None if name in self.spec.evaluator.constants else self.definitions.get(name)

    def called(self, node: tree.Expression) -> tuple[tree.Definition, tuple[tree.Expression, ...]] | None:
        """The definition that a node applies, with its arguments."""
        if isinstance(node, tree.Name):
            name = self.meant(node.name)
            arguments: tuple[tree.Expression, ...] = ()
        elif isinstance(node, tree.Apply):
            name, arguments = self.meant(node.operator.name), node.arguments
        else:
            return None
        definition = self.definition(name)
        return (definition, arguments) if isinstance(definition, tree.Definition) else None

    def first_time(self, name: str, keys: Keys, what: str) -> bool:
        """Whether a definition is looked at for the first time with these parameters as the key."""
        form = (name, keys, what)
        if form in self._done:
            return False
        self._done.add(form)
        return True
