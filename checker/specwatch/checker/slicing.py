"""Is a spec separable by a key, so that each key's events can be replayed alone?

A variable is *keyed* when Init gives it as a function over one declared constant ``K`` (the keys) and every action
keeps it one; any other is *run-level*. An action with the parameter ``t \\in K`` is keyed too: it may read run-level
variables, and reads and writes keyed ones at ``t`` only. One without it is run-level: it may change keyed variables
for all keys alike, ``v' = [t \\in K |-> e]`` with ``v[t]`` in ``e``, and reads nothing else of them. Then the spec is
the product of its run-level part and one small spec a key: a step of one key commutes with those of all others, and a
behaviour is explained when each key's part of it, with the run-level steps, is. :func:`separable` proves that from the
text, or says which part couples two keys. It is a sound analysis and no complete one: what it does not recognise it
calls coupled, and the replay is then that of the whole.

What keys have in common they must agree on. So run-level steps that leave open what keys see of them are named
(:attr:`Separable.choices`): they may not be hidden.

A key is moreover *opaque* here: it is never compared, stored or counted. So all keys behave alike, and what was
computed for one holds for every other (:mod:`.tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from .spec import Action, Spec
from .stutter import is_true_of_stutter
from .tla import tree
from .tla.evaluate import Branch, Given, Inline, Leaf
from .tla.source import Span
from .tla.values import Value

Keys = frozenset[str]
"""The names that stand for the key where an expression is read."""

NO_KEY: Keys = frozenset()

Assigned = dict[str, bool]
"""The keyed variables that a part of an action gives a next value; TRUE where that may be another than before."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a run-level action reads and may change: variables, the keyed ones that it changes too."""

    action: Action
    reads: frozenset[str]
    changes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Separable:
    """A spec's state decomposes by the parameter ``key``, which ranges over the constant ``keys``."""

    key: str
    keys: str
    keyed: frozenset[str]
    """The variables that are functions over the keys; the others are run-level."""
    effects: tuple[Effect, ...] = ()
    """Of each run-level action: one without the key."""
    shared: frozenset[str] = frozenset()
    """The run-level variables that keyed actions, or properties of a key, read."""
    run_level: frozenset[Action] = field(init=False)
    """The actions without the key."""
    pointwise: frozenset[Action] = field(init=False)
    """The run-level actions that change keyed variables. Their parameters decide what they change, and nothing else
    that is not read from a state.
    """
    choices: frozenset[Action] = field(init=False)
    """The run-level actions by which keys may come to see another state: hidden, or with an open parameter, two keys
    could explain themselves by different histories of what they have in common.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "run_level", frozenset(effect.action for effect in self.effects))
        object.__setattr__(self, "pointwise", frozenset(e.action for e in self.effects if e.changes & self.keyed))
        object.__setattr__(self, "choices", self.choices_for(()))

    def spec_of(self, spec: Spec, *keys: Value) -> Spec:
        """The spec with these keys alone."""
        return spec.with_constants({self.keys: frozenset(keys)})

    def choices_for(self, observed: Iterable[str]) -> frozenset[Action]:
        """``choices``, where keyed events have observed these variables besides."""
        seen = self.shared | self.keyed | frozenset(observed)
        found: frozenset[Action] = frozenset()
        while True:
            more = frozenset(effect.action for effect in self.effects if effect.changes & seen)
            if more == found:
                return found
            # What decides such a step is seen by keys in what it changes.
            seen = seen.union(*(effect.reads for effect in self.effects if effect.action in more))
            found = more


class Coupled(Exception):
    """Something speaks of more than one key, or of the key itself. ``span`` says where, ``message`` what, ``hint`` what
    one could do. ``part`` is what it stands in: Init, an action, an invariant.
    """

    def __init__(self, message: str, span: Span, hint: str | None = None, part: str | None = None) -> None:
        super().__init__(message)
        self.what = message
        self.span = span
        self.hint = hint
        self.part = part
        self.stage = 0
        """How far the proof went, to tell the nearest of several reasons."""

    @property
    def message(self) -> str:
        """What couples, and in which part of the spec."""
        return f"{self.part}: {self.what}" if self.part else self.what

    def __str__(self) -> str:
        return f"{self.span.file}:{self.span.line}:{self.span.column}: {self.message}"


def separable(
    spec: Spec, key: str | Sequence[str] | None = None, *, run_level: bool = False, constraints: bool = False
) -> Separable:
    """Proves that a spec is separable by a parameter; without one, by the first that will do. Found out once for a
    spec: it depends on which constants have a value, and not on these.

    :param key: a parameter, or a sequence of one. Several together are not understood: such a spec is called coupled.
    :param run_level: whether actions without the key, and variables that are no functions over the keys, are allowed.
    :param constraints: whether the CONSTRAINTs are part of the spec.
    :raises Coupled: it is not separable, or it could not be shown.
    """
    if key is not None and not isinstance(key, str):
        if len(key) != 1:
            raise Coupled(
                f"the key is {' and '.join(key) or 'no parameter'}, and a spec is told apart by one parameter",
                spec.next.span,
                "let one parameter be the key, or one constant hold the pairs",
            )
        key = key[0]
    constants = frozenset(spec.evaluator.constants)
    form = Separable, key, run_level, constraints, constants, frozenset(spec.evaluator.replaced.items())
    found: Separable | Coupled | None = spec.kept.get(form)
    if found is None:
        try:
            found = _proof(spec, key, run_level, constraints)
        except Coupled as coupled:
            found = coupled
        spec.kept[form] = found
    if isinstance(found, Coupled):
        raise found.with_traceback(None)
    return found


def _proof(spec: Spec, key: str | None, run_level: bool, constraints: bool) -> Separable:
    local = _local_names(spec)
    if key is not None:
        return _Analysis(spec, key, local, run_level, constraints).run()
    reason: Coupled | None = None
    for name in _candidates(spec, run_level):
        try:
            return _Analysis(spec, name, local, run_level, constraints).run()
        except Coupled as coupled:
            if reason is None or coupled.stage > reason.stage:
                reason = coupled
    if reason is not None:
        raise reason
    lacking = next((action for action in spec.actions if not action.parameters), spec.actions[-1])
    what = f"{lacking.name} and the other actions have no parameter in common"
    if run_level:
        what = "no action has a parameter that could be the key"
    raise Coupled(what, lacking.body.span)


def read_for_key(spec: Spec, proof: Separable, expression: tree.Expression, names: Iterable[str]) -> frozenset[str]:
    """The run-level variables that an expression reads which is about one key, or about none.

    :param names: the free names in it that stand for the key. Here they may be used as values too.
    :raises Coupled: it speaks of other keys.
    """
    analysis = _Analysis(spec, proof.key, frozenset(), True, False)
    analysis.constant, analysis.keyed = proof.keys, proof.keyed
    analysis.is_opaque = False
    analysis.value(expression, frozenset(names))
    return frozenset(analysis.reads - proof.keyed)


def _candidates(spec: Spec, run_level: bool) -> list[str]:
    """The parameters that may be the key, in the order of the actions."""
    names = dict.fromkeys(name for action in spec.actions for name in action.parameters)
    return [name for name in names if run_level or all(name in action.parameters for action in spec.actions)]


def _local_names(spec: Spec) -> frozenset[str]:
    """The names of parameters, bound variables and what a LET defines.

    :raises Coupled: one of them has a meaning besides. SANY allows the name of what is declared further below.
    """
    program = spec.program
    local: set[str] = set()
    for definition in program.definitions.values():
        for node in tree.walk(definition):
            names: tuple[str, ...] = ()
            if isinstance(node, tree.Bound):
                names = node.names
            elif (
                isinstance(node, (tree.Parameter, tree.Definition, tree.FunctionDefinition)) and node is not definition
            ):
                names = (node.name,)
            for name in names:
                if name in program.variables or name in program.constants or name in program.definitions:
                    raise Coupled(f"{name} means two things: here, and further below", node.span, f"rename this {name}")
            local.update(names)
    return frozenset(local)


class _Analysis:
    def __init__(self, spec: Spec, key: str, local: frozenset[str], run_level: bool, constraints: bool) -> None:
        self.spec = spec
        self.key = key
        self.local_names = local
        self.may_be_shared = run_level
        self.constraints = constraints
        self.constant: str | None = None
        self.definitions = spec.program.definitions
        self.variables = frozenset(spec.variables)
        self.keyed = self.variables
        self.stage = 0
        self.is_run_level = False
        """Whether what is read now is an action without the key."""
        self.is_opaque = True
        """Whether the key may not be used as a value."""
        self.reads: set[str] = set()
        """The variables that what is read now has read so far."""
        self.changes: set[str] = set()
        """The variables that the action may have changed."""
        self._done: set[tuple[str, Keys]] = set()
        self._assigned: dict[tuple[str, Keys], Assigned | None] = {}
        self._hiding: dict[str, bool] = {}

    def run(self) -> Separable:
        try:
            return self.proven()
        except Coupled as coupled:
            coupled.stage = self.stage
            raise

    def proven(self) -> Separable:
        for action in self.spec.actions:
            if self.key not in action.parameters and not self.may_be_shared:
                raise Coupled(f"{action.name} has no parameter {self.key}", action.body.span)
        # The set of keys is known before anything is read: it may stand above the quantifier, and is no value there.
        self.find_keys(self.spec.next)
        if self.constant is None:
            known = dict.fromkeys(name for action in self.spec.actions for name in action.parameters)
            raise Coupled(
                f"no action has a parameter {self.key}",
                self.spec.next.span,
                f"the parameters are {', '.join(known)}" if known else None,
            )
        self.stage = 1
        with self.part("Init"):
            if self.may_be_shared:
                self.find_keyed()
            self.stage = 2
            self.init()
        self.stage = 3
        seen, effects = self.next()
        self.stage = 4
        seen |= self.properties()
        return Separable(self.key, self.constant, self.keyed, tuple(effects), frozenset(seen - self.keyed))

    @contextmanager
    def part(self, name: str, *, run_level: bool = False) -> Iterator[None]:
        """A part of the spec, read on its own."""
        self.is_run_level = run_level
        self.reads, self.changes = set(), set()
        self._done.clear()
        self._assigned.clear()
        try:
            yield
        except Coupled as coupled:
            coupled.part = coupled.part or name
            raise

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

    def next(self) -> tuple[set[str], list[Effect]]:
        """Each action with all that stands above it: what the keyed ones read, and what the others do."""
        seen: set[str] = set()
        effects = []
        for action in self.spec.actions:
            run_level = self.key not in action.parameters
            with self.part(f"action {action.label}", run_level=run_level):
                self.marked(self.spec.next, NO_KEY, action)
            if run_level:
                effects.append(Effect(action, frozenset(self.reads), frozenset(self.changes)))
            else:
                seen |= self.reads
        return seen, effects

    def marked(self, node: tree.Expression, keys: Keys, action: Action) -> Assigned:
        """The part of Next above an action, and the action."""
        if isinstance(node, Branch):
            return self.marked(next(item for item, below in node.items if action in below), keys, action)
        if isinstance(node, Given):
            inner = keys
            for bound in node.bounds:
                if self.key in bound.names:
                    inner = inner | {self.key}
                elif bound.domain is not None:
                    self.other_domain(bound, keys)
            return self.marked(node.body, inner, action)
        if isinstance(node, Inline):
            self.refuse_hiding(node.arguments)
            return self.marked(node.body, self.passed(node.parameters, node.arguments, keys), action)
        if isinstance(node, Leaf):
            return self.action(node.body, keys)
        if isinstance(node, tree.Let):
            self.local(node.units, keys, in_action=True)
            return self.marked(node.body, keys, action)
        if isinstance(node, tree.And):
            return self.together([(item, self.marked(item, keys, action)) for item in node.items])
        return self.action(node, keys)

    def quantified_key(self, bound: tree.Bound) -> None:
        domain = bound.domain
        if bound.tuple_pattern or len(bound.names) > 1:
            raise Coupled(f"{self.key} is quantified together with another name", bound.span, "quantify it alone")
        # A constant that the config replaces by a definition has no value that could be cut down to one key.
        declared = isinstance(domain, tree.Name) and domain.name in self.spec.program.constants
        if not isinstance(domain, tree.Name) or not declared or domain.name not in self.spec.evaluator.constants:
            raise Coupled(
                f"{self.key} ranges over what is no declared constant",
                bound.span,
                f"declare the set of keys, and quantify over it: CONSTANT Keys, \\E {self.key} \\in Keys : …",
            )
        if self.constant is None:
            self.constant = domain.name
        elif self.constant != domain.name:
            raise Coupled(f"{self.key} ranges over {domain.name} here and over {self.constant} elsewhere", bound.span)

    def other_domain(self, bound: tree.Bound, keys: Keys) -> None:
        """The set of a parameter that is not the key."""
        assert bound.domain is not None  # parameters are bounded
        if isinstance(bound.domain, tree.Name) and bound.domain.name == self.constant and self.is_run_level:
            raise Coupled(
                f"{', '.join(bound.names)} ranges over {self.constant}, the set of all keys, used as a value",
                bound.span,
                f"if it is the key of this action, call it {self.key} as elsewhere",
            )
        self.value(bound.domain, keys)

    def together(self, parts: Sequence[tuple[tree.Expression, Assigned]]) -> Assigned:
        """A conjunction's next values. A second one for the same variable is a guard that compares the two."""
        given: Assigned = {}
        for node, assigned in parts:
            for variable, changed in assigned.items():
                if self.is_run_level and variable in given and (changed or given[variable]):
                    raise Coupled(
                        f"{variable}' is given twice: the second is a guard that reads {variable} of all keys",
                        node.span,
                    )
                given[variable] = changed
        return given

    def apart(self, parts: Iterable[Assigned]) -> Assigned:
        """The next values of alternatives, of which the state decides."""
        given: Assigned = {}
        for assigned in parts:
            for variable, changed in assigned.items():
                given[variable] = given.get(variable, False) or changed
        return given

    def chosen(self, node: tree.Expression, assigned: Assigned) -> Assigned:
        """The next values of alternatives of which nothing decides."""
        if self.is_run_level and any(assigned.values()):
            variable = next(name for name, changed in assigned.items() if changed)
            raise Coupled(
                f"this leaves open how {variable} changes, and two keys could see different outcomes",
                node.span,
                "make each outcome an action of its own, or decide by IF",
            )
        return assigned

    def action(self, node: tree.Expression, keys: Keys) -> Assigned:
        """An action, or a part of one that may assign: all that the evaluator takes steps by."""
        if isinstance(node, tree.And):
            return self.together([(item, self.action(item, keys)) for item in node.items])
        if isinstance(node, tree.Or):
            return self.chosen(node, self.apart([self.action(item, keys) for item in node.items]))
        if isinstance(node, tree.Quantifier):
            self.domains(node.bounds, keys)
            return self.chosen(node, self.action(node.body, keys))
        if isinstance(node, tree.If):
            self.value(node.condition, keys)
            return self.apart([self.action(node.then, keys), self.action(node.otherwise, keys)])
        if isinstance(node, tree.Case):
            arms = [body for _, body in node.arms] + ([] if node.other is None else [node.other])
            for guard, _ in node.arms:
                self.value(guard, keys)
            return self.apart([self.action(body, keys) for body in arms])
        if isinstance(node, tree.Let):
            self.local(node.units, keys, in_action=True)
            return self.action(node.body, keys)
        if isinstance(node, tree.Label):
            return self.action(node.body, keys)
        if isinstance(node, tree.ActionBox):
            raise Coupled(f"{node.span.text} is no action that can be told apart by key", node.span)
        if isinstance(node, tree.Apply):
            return self.applied(node, keys)
        called = self.called(node)
        if called is not None:
            return self.called_action(called[0], NO_KEY)
        self.value(node, keys)
        return {}

    def applied(self, node: tree.Apply, keys: Keys) -> Assigned:
        """An operator applied, where an action may stand."""
        if node.operator.name in ("=", "\\in"):
            left = node.arguments[0]
            if isinstance(left, tree.Prime) and isinstance(left.body, tree.Name):
                if left.body.name in self.variables:
                    return self.assignment(left.body.name, node, keys)
                if self.may_be_shared_variable(left.body.name):
                    raise Coupled(f"{left.span.text} may be any variable", node.span, "write the variable's name")
        elif node.operator.name == "UNCHANGED":
            variables = self.spec.evaluator.unchanged_variables(node.arguments[0])
            if variables is not None:
                return {name: False for name in variables if name in self.keyed}
        called = self.called(node)
        if called is not None or node.operator.name in self.local_names:
            self.refuse_hiding(node.arguments)
        if called is not None:
            return self.called_action(called[0], self.passed(called[0].parameters, called[1], keys))
        self.value(node, keys)
        return {}

    def called_action(self, definition: tree.Definition, keys: Keys) -> Assigned:
        form = (definition.name, keys)
        if form not in self._assigned:
            self._assigned[form] = None
            self._assigned[form] = self.action(definition.body, keys)
        found = self._assigned[form]
        if found is None:
            # It reaches itself: in a keyed action it assigns by the rest of its body.
            if self.is_run_level:
                raise Coupled(f"{definition.name} is a recursive action", definition.name_span)
            return {}
        return found

    def assignment(self, variable: str, node: tree.Apply, keys: Keys) -> Assigned:
        """``v' = …`` or ``v' \\in …``."""
        right = node.arguments[1]
        if variable in self.keyed:
            if not self.is_run_level:
                if node.operator.name == "=":
                    self.function(right, variable, keys)
                else:
                    self.functions(right, variable, keys)
                return {variable: True}
            if node.operator.name != "=":
                raise Coupled(
                    f"{variable}' is one of several, and two keys could see different ones",
                    node.span,
                    "make each outcome an action of its own, or decide by IF",
                )
            return {variable: self.pointwise(right, variable, keys)}
        if isinstance(right, tree.Name) and right.name == variable and node.operator.name == "=":
            return {}
        if not self.is_run_level:
            raise Coupled(
                f"{variable} is common to all keys, and is changed for one of them",
                node.span,
                f"make it a function over {self.constant}, or change it in an action without {self.key}",
            )
        self.value(right, keys)
        self.changes.add(variable)
        return {}

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

    def pointwise(self, node: tree.Expression, variable: str, keys: Keys) -> bool:
        """``v``, or ``[t \\in K |-> …]``, or a decision between such: a next value that is alike for all keys. Whether
        it may be another than before.
        """
        if isinstance(node, tree.Name) and node.name == variable:
            return False
        if isinstance(node, tree.If):
            self.value(node.condition, keys)
            both = [self.pointwise(part, variable, keys) for part in (node.then, node.otherwise)]
            return any(both)
        if isinstance(node, tree.Let):
            self.local(node.units, keys)
            return self.pointwise(node.body, variable, keys)
        if self.over_keys(node) is None:
            raise Coupled(
                f"{variable}' is not [{self.key} \\in {self.constant} |-> …] in an action without {self.key}", node.span
            )
        self.for_each_key(node, keys)
        self.changes.add(variable)
        return True

    # --- Init ---------------------------------------------------------------------------------------------------------

    def conjuncts(self) -> Iterator[tree.Expression]:
        """What Init says, one thing at a time."""
        stack: list[tree.Expression] = [self.spec.init]
        while stack:
            node = stack.pop()
            called = self.called(node)
            if isinstance(node, tree.And):
                stack.extend(reversed(node.items))
            elif called is not None and not called[0].parameters:
                stack.append(called[0].body)
            else:
                yield node

    def find_keyed(self) -> None:
        """Which variables Init gives as functions over the keys."""
        found = set()
        for node in self.conjuncts():
            given = self.given(node)
            if given is not None and self.over_keys(given[1]) is not None:
                found.add(given[0])
        if not found:
            raise Coupled(
                f"no variable is given as a function over the keys, v = [{self.key} \\in {self.constant} |-> …]",
                self.spec.init.span,
            )
        self.keyed = frozenset(found)

    def init(self) -> None:
        """Init gives each keyed variable one function over the keys, and each other one value."""
        missing = set(self.variables)
        for node in self.conjuncts():
            given = self.given(node)
            if given is None:
                self.refuse_initial(node)
            variable, value = given
            missing.discard(variable)
            if variable in self.keyed:
                if self.over_keys(value) is None:
                    self.refuse_initial(node)
                self.for_each_key(value, NO_KEY)
            else:
                self.value(value, NO_KEY)
        if missing:
            what = "a value" if self.may_be_shared else "a function over the keys"
            raise Coupled(f"Init does not give {min(missing)} {what}", self.spec.init.span)

    def refuse_initial(self, node: tree.Expression) -> NoReturn:
        form = f"v = [{self.key} \\in {self.constant} |-> …]"
        if self.may_be_shared and isinstance(node, (tree.Or, tree.Quantifier, tree.Apply)):
            raise Coupled(
                f"Init is neither {form} nor v = … here, and two keys could begin differently",
                node.span,
                "give each variable one value",
            )
        raise Coupled(f"Init is not of the form {form} here", node.span)

    def given(self, node: tree.Expression) -> tuple[str, tree.Expression] | None:
        """The variable and the value of ``v = e``."""
        if isinstance(node, tree.Apply) and node.operator.name == "=" and isinstance(node.arguments[0], tree.Name):
            variable, value = node.arguments[0].name, node.arguments[1]
            if variable in self.variables:
                return variable, value
        return None

    # --- invariants and other properties ------------------------------------------------------------------------------

    def properties(self) -> set[str]:
        """The variables that properties of a key read."""
        states = [(f"invariant {one.name}", one.expression) for one in self.spec.invariants]
        steps: list[tuple[str, tree.Expression]] = [
            (f"property {one.name}", one.box) for one in self.spec.step_properties
        ]
        if self.constraints:
            states += [("CONSTRAINT", one) for one in self.spec.constraints]
            steps += [("ACTION_CONSTRAINT", one) for one in self.spec.action_constraints]
        seen: set[str] = set()
        for name, expression in states:
            with self.part(name):
                seen |= self.invariant(expression)
        for name, expression in steps:
            with self.part(name):
                seen |= self.step_property(expression)
        return seen

    def invariant(self, node: tree.Expression) -> set[str]:
        """``\\A t \\in K : P(t)``, a conjunction of such, or what speaks of no key at all: what it reads for a key."""
        called = self.called(node)
        if isinstance(node, tree.And):
            return set().union(*[self.invariant(item) for item in node.items])
        if called is not None and not called[0].parameters:
            return self.invariant(called[0].body)
        if isinstance(node, tree.Apply) and node.operator.name == "=>" and self.is_of_keys(node.arguments[1]):
            with self.reading() as seen:
                self.value(node.arguments[0], NO_KEY)
            return seen | self.invariant(node.arguments[1])
        if isinstance(node, tree.Quantifier) and self.is_of_keys(node):
            name = self.bound_key(node)
            with self.reading() as seen:
                self.domains(tuple(bound for bound in node.bounds if name not in bound.names), NO_KEY)
                if name is not None:
                    self.value(node.body, frozenset({name}))
                    return seen
            return seen | self.invariant(node.body)
        self.value(node, NO_KEY)
        return set()

    def step_property(self, node: tree.Expression) -> set[str]:
        """``[][A]_v``, or ``A`` alone (of a constraint): ``A`` is like an invariant, and TRUE of every step that leaves
        what it reads as it is, as a step of another key does. What it reads for a key.
        """
        subscript: list[str] | None = None
        called = self.called(node)
        while (called is not None and not called[0].parameters) or _is_box(node):
            if isinstance(node, tree.Apply) and node.operator.name == "[]":
                node = node.arguments[0]
            elif isinstance(node, tree.ActionBox):
                subscript = self.spec.evaluator.unchanged_variables(node.subscript)
                if subscript is None:
                    raise Coupled(f"{node.subscript.span.text} is more than variables", node.subscript.span)
                node = node.action
            elif called is not None:
                node = called[0].body
            called = self.called(node)
        with self.reading() as reads:
            seen = self.invariant(node)
        if subscript is not None and self.keyed.isdisjoint(reads) and self.keyed.isdisjoint(subscript):
            return seen  # no keyed step is one that it speaks of
        if not is_true_of_stutter(node, self.called):
            raise Coupled(
                "this may be FALSE of a step that changes nothing of what it reads, such as a step of another key",
                node.span,
                "allow for that: [A(t)]_<<v[t]>> for each key t",
            )
        if subscript is not None and not reads <= set(subscript):
            raise Coupled(f"the subscript lacks {min(reads - set(subscript))}, which is read here", node.span)
        return seen

    def bound_key(self, node: tree.Quantifier) -> str | None:
        """The name that ``\\A t \\in K : …`` binds to each key; bounds over other sets may stand beside it."""
        over = [bound for bound in node.bounds if self.is_constant_of_keys(bound.domain)]
        return over[0].names[0] if len(over) == 1 and len(over[0].names) == 1 and not over[0].tuple_pattern else None

    def is_of_keys(self, node: tree.Expression) -> bool:
        """Whether an invariant's part is one of each key, at least in part."""
        called = self.called(node)
        if isinstance(node, tree.And):
            return any(map(self.is_of_keys, node.items))
        if called is not None and not called[0].parameters and called[0].name not in self.spec.program.recursive:
            return self.is_of_keys(called[0].body)
        if isinstance(node, tree.Quantifier) and node.kind == "\\A":
            return self.bound_key(node) is not None or self.is_of_keys(node.body)
        return False

    def over_keys(self, node: tree.Expression) -> tree.FunctionConstructor | None:
        """The ``[t \\in K |-> …]`` that a node is, perhaps by way of a definition."""
        called = self.called(node)
        while called is not None and called[0].name not in self.spec.program.recursive:
            node = called[0].body
            called = self.called(node)
        if not isinstance(node, tree.FunctionConstructor) or len(node.bounds) != 1:
            return None
        bound = node.bounds[0]
        fits = len(bound.names) == 1 and not bound.tuple_pattern and self.is_constant_of_keys(bound.domain)
        return node if fits else None

    def for_each_key(self, node: tree.Expression, keys: Keys) -> None:
        """Reads such a function, and what the definitions on the way are given."""
        called = self.called(node)
        if called is not None:
            self.for_each_key(called[0].body, self.passed(called[0].parameters, called[1], keys))
        else:
            assert isinstance(node, tree.FunctionConstructor)  # that is what it is over the keys
            self.value(node.body, frozenset(node.bounds[0].names))

    def is_constant_of_keys(self, domain: tree.Expression | None) -> bool:
        return isinstance(domain, tree.Name) and domain.name == self.constant

    # --- expressions --------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[set[str]]:
        """What is read within, by itself and as a part of what is around it."""
        outer = self.reads
        self.reads = set()
        self._done.clear()
        yield self.reads
        outer |= self.reads
        self.reads = outer
        self._done.clear()

    def value(self, node: tree.Node, keys: Keys) -> None:
        """An expression that may read run-level variables, and keyed ones at the key."""
        if isinstance(node, tree.Name):
            self.name(node, keys)
        elif isinstance(node, tree.FunctionApplication) and self.reads_keyed(node.function):
            if not self.is_key(node.arguments, keys):
                where = f"elsewhere than at {self.key}"
                if self.is_run_level and not keys:
                    where = f"the part of one key, and the action has no parameter {self.key}"
                raise Coupled(f"{node.span.text} reads {where}", node.span)
            self.reads.update(part.name for part in tree.walk(node.function) if isinstance(part, tree.Name))
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
        if node.path:
            raise Coupled(f"{node.span.text} is a name that is not followed", node.span)
        if node.name in keys and not self.is_opaque:
            return
        if node.name in keys:
            raise Coupled(
                f"{node.name} is used as a value, and not only as the place in a function",
                node.span,
                f"keep what depends on it in a function over {self.constant}",
            )
        if name in self.keyed:
            raise Coupled(f"{name} is read as a whole", node.span, f"read it at the key, as in {name}[{self.key}]")
        if name in self.variables:
            self.reads.add(name)
            return
        if name == self.constant:
            raise Coupled(
                f"{name}, the set of all keys, is used as a value",
                node.span,
                "what ranges over all keys, or counts them, is judged by --scope run alone",
            )
        definition = self.definition(name)
        if definition is not None and self.first_time(name, NO_KEY):
            if isinstance(definition, tree.FunctionDefinition):
                self.domains(definition.bounds, NO_KEY)
            self.value(definition.body, NO_KEY)

    def application(self, node: tree.Apply, keys: Keys) -> None:
        if node.operator.path:
            raise Coupled(f"{node.operator.span.text} is a name that is not followed", node.operator.span)
        name = self.meant(node.operator.name)
        definition = self.definition(name)
        if isinstance(definition, tree.Definition):
            inner = self.passed(definition.parameters, node.arguments, keys)
            if self.first_time(name, inner):
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

    def local(self, units: tuple[tree.Unit, ...], keys: Keys, *, in_action: bool = False) -> None:
        """What a LET defines. In an action it may stand where a step is taken."""
        for unit in units:
            if isinstance(unit, (tree.Definition, tree.FunctionDefinition)):
                if isinstance(unit, tree.FunctionDefinition):
                    self.domains(unit.bounds, keys)
                if in_action:
                    self.refuse_hiding((unit.body,))
                self.value(unit.body, keys)

    def domains(self, bounds: tuple[tree.Bound, ...], keys: Keys) -> None:
        for bound in bounds:
            if bound.domain is not None:
                self.value(bound.domain, keys)

    def refuse_hiding(self, nodes: Iterable[tree.Expression]) -> None:
        """A run-level variable's next value could be given by way of a parameter or of a name in a LET, unseen."""
        for node in nodes:
            if self.hides(node):
                raise Coupled(
                    f"{node.span.text} speaks of a next value, and stands for another name",
                    node.span,
                    "write it where it is used",
                )

    def hides(self, node: tree.Node) -> bool:
        """Whether ``x'`` is in an expression, however indirectly, and ``x`` may be a run-level variable."""
        for part in tree.walk(node):
            if isinstance(part, tree.Prime) and isinstance(part.body, tree.Name):
                if self.may_be_shared_variable(part.body.name):
                    return True
            elif isinstance(part, tree.Name):
                name = self.meant(part.name)
                definition = self.definition(name)
                if definition is not None:
                    if name not in self._hiding:
                        self._hiding[name] = False  # a definition that reaches itself hides by the rest of its body
                        self._hiding[name] = self.hides(definition.body)
                    if self._hiding[name]:
                        return True
        return False

    def may_be_shared_variable(self, name: str) -> bool:
        """Whether a name is a run-level variable, or a parameter that may stand for one."""
        shared = self.variables - self.keyed
        return bool(shared) and (name in shared or name in self.local_names)

    def reads_keyed(self, node: tree.Expression) -> bool:
        """``v`` or ``v'``."""
        if isinstance(node, tree.Prime):
            node = node.body
        return isinstance(node, tree.Name) and node.name in self.keyed

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

    def first_time(self, name: str, keys: Keys) -> bool:
        """Whether a definition is read for the first time, in this part, with these parameters as the key."""
        form = (name, keys)
        if form in self._done:
            return False
        self._done.add(form)
        return True


def _is_box(node: tree.Expression) -> bool:
    return (isinstance(node, tree.Apply) and node.operator.name == "[]") or (
        isinstance(node, tree.ActionBox) and node.kind == "[]"
    )
