"""A model's face: initial states, steps, invariants. Everything else is built on it.

A state is a tuple of TLA+ values in the order of :attr:`Spec.variables`; :meth:`Spec.mapping` names them.
"""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from .actions import Action, split
from .behaviour import Json
from .observe import model_names, to_value
from .predicates import Predicates
from .tla import tree
from .tla.config import Config, Named, parse_config, parse_value
from .tla.errors import TlaConfigError, TlaError, TlaEvaluationError, TlaSemanticError
from .tla.evaluate import Evaluator, Request, Step
from .tla.levels import Level, Levels
from .tla.modules import Program, load, read_text, refuse_instances
from .tla.values import Value, ValueProblem

State: TypeAlias = tuple[Value, ...]
_K = TypeVar("_K")
_V = TypeVar("_V")
Choose: TypeAlias = Callable[[str, Value], "list[Value] | None"]

MOST_REMEMBERED = 20_000
"""So many states are remembered, where any are."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property of each state. ``name`` is as in the config."""

    name: str
    expression: tree.Expression


@dataclass(frozen=True, slots=True)
class StepProperty:
    """A property of each step, ``[][A]_v``: A, or nothing that v reads changes. ``name`` is as in the config."""

    name: str
    box: tree.ActionBox

    @property
    def expression(self) -> tree.Expression:
        """The action A."""
        return self.box.action

    @property
    def subscript(self) -> tree.Expression:
        """The expression v."""
        return self.box.subscript


@dataclass(frozen=True, slots=True)
class Successor:
    """A step: the state it leads to, the action, and the action's parameters."""

    state: State
    action: Action
    params: tuple[tuple[str, Value], ...]


class Memory:
    """What was found out about states that are met again: their steps, and the invariants that they break."""

    def __init__(self) -> None:
        self._steps: dict[tuple[State, frozenset[Action] | None], tuple[Successor, ...]] = {}
        self._broken: dict[State, frozenset[str]] = {}

    def successors(
        self, state: State, actions: frozenset[Action] | None, find: Callable[[], tuple[Successor, ...]]
    ) -> tuple[Successor, ...]:
        return _remembered(self._steps, (state, actions), find)

    def broken(self, state: State, find: Callable[[], frozenset[str]]) -> frozenset[str]:
        return _remembered(self._broken, state, find)


def _remembered(known: dict[_K, _V], key: _K, find: Callable[[], _V]) -> _V:
    found = known.get(key)
    if found is None:
        if len(known) >= MOST_REMEMBERED:
            known.clear()
        found = known[key] = find()
    return found


class Spec:
    """A module with a config, ready to be run.

    :raises TlaConfigError: a constant without a value, a name in the config that the module lacks.
    :raises TlaSemanticError: no Init or Next, or something that parses and is not evaluated yet.
    """

    def __init__(
        self, program: Program, config: Config, path: str, constants: Mapping[str, Value] | None = None
    ) -> None:
        refuse_instances(program)
        self.program = program
        self.config = config
        self.path = path
        self.variables: tuple[str, ...] = tuple(program.variables)
        self.warnings: list[str] = []
        given = {**config.constants, **(constants or {})}
        replaced = {name: target.name for name, target in config.replacements.items() if name not in (constants or {})}
        self._check_constants(given, replaced)
        self.evaluator = Evaluator(program, given, replaced)
        self.models = model_names(given.values())
        self.levels = Levels(program, self.evaluator.replaced, self.evaluator.constants)
        self.predicates = Predicates(self)
        init, next_ = self._behaviour_formula()
        self.init: tree.Expression = init
        self._next = split(program, next_.name if isinstance(next_, tree.Name) else None, self._body(next_), replaced)
        self.next: tree.Expression = self._next.tree
        self.next_name = next_.name if isinstance(next_, tree.Name) else "Next"
        self.actions: tuple[Action, ...] = self._next.actions
        self.kept: dict[Hashable, Any] = {}
        """What others found out about this spec and those with other constants, by all that it depends on."""
        self.memory: Memory | None = None
        """Set where the same states will be asked for again and again."""
        self.unchecked: list[str] = []
        self.invariants: list[Invariant] = [self._invariant(named) for named in config.invariants]
        self.step_properties: list[StepProperty] = []
        self.initial_properties: list[Invariant] = []
        """What a PROPERTY says of initial states alone."""
        for named in config.properties:
            self._property(named)
        self.unchecked += [f"POSTCONDITION {named.name}" for named in config.postconditions]
        self.constraints = [self._predicate(named, "CONSTRAINT") for named in config.constraints]
        self.action_constraints = [self._predicate(named, "ACTION_CONSTRAINT") for named in config.action_constraints]

    def with_constants(self, constants: Mapping[str, Value]) -> Spec:
        """The same module, config and actions, with other values for some declared constants."""
        other = copy.copy(self)
        other.memory = None
        replaced = {name: target for name, target in self.evaluator.replaced.items() if name not in constants}
        other.evaluator = Evaluator(self.program, {**self.evaluator.constants, **constants}, replaced)
        return other

    # --- the three functions --------------------------------------------------------------------------------------

    def initial_states(self) -> Iterator[State]:
        """The states that satisfy Init, in TLC's order and as often as TLC generates them."""
        return self.states_of(self.init, "Init")

    def states_of(self, predicate: tree.Expression, name: str) -> Iterator[State]:
        """The states that satisfy a predicate which gives every variable a value, as Init does."""
        for found in self.evaluator.guarded_steps(predicate, Step({})):
            yield self._complete(found.before, predicate, name)

    def successors(
        self, state: State, actions: frozenset[Action] | None = None, choose: Choose | None = None
    ) -> Iterator[Successor]:
        """The steps from a state, in TLC's order and as often as TLC generates them.

        :param actions: only these; None means all of Next.
        :param choose: what a parameter may be (:class:`.tla.evaluate.Request`); None leaves all open.
        """
        if self.memory is None or choose is not None:
            return self._successors(state, actions, choose)
        return iter(self.memory.successors(state, actions, lambda: tuple(self._successors(state, actions, None))))

    def _successors(
        self, state: State, actions: frozenset[Action] | None, choose: Choose | None
    ) -> Iterator[Successor]:
        request = None
        if actions is not None:
            request = Request(actions, choose or (lambda name, collection: None))
        for found in self.evaluator.guarded_steps(self.next, Step(self.mapping(state), {}, request)):
            assert found.after is not None
            yield Successor(
                self._complete(found.after, found.action.body, found.action.name), found.action, found.chosen
            )

    def broken(self, state: State) -> frozenset[str]:
        """The names of the invariants that a state breaks."""
        if self.memory is None:
            return self._broken(state)
        return self.memory.broken(state, lambda: self._broken(state))

    def _broken(self, state: State) -> frozenset[str]:
        step = Step(self.mapping(state))
        return frozenset(invariant.name for invariant in self.invariants if not self.holds(invariant.expression, step))

    def broken_step(self, before: State, after: State) -> frozenset[str]:
        """The names of the step properties that a step breaks."""
        if not self.step_properties:
            return frozenset()
        step = Step(self.mapping(before), self.mapping(after))
        return frozenset(one.name for one in self.step_properties if not self.holds(one.box, step))

    @property
    def checked(self) -> list[str]:
        """The names of all that is checked of states and steps, each once, in the order of the config."""
        names = [one.name for one in self.invariants] + [one.name for one in self.step_properties]
        return list(dict.fromkeys(names))

    # --- their parts ----------------------------------------------------------------------------------------------

    def holds(self, expression: tree.Expression, step: Step) -> bool:
        """Whether a Boolean expression is TRUE in a step."""
        return bool(self.evaluator.guarded(self.evaluator.truth, expression, {}, step))

    def mapping(self, state: State) -> dict[str, Value]:
        """A state as a mapping from variable to value."""
        return dict(zip(self.variables, state, strict=True))

    def named(self, name: str) -> tuple[Action, ...]:
        """The actions that a name means: its own, and those of a group."""
        return tuple(action for action in self.actions if name in action.names)

    def names(self) -> list[str]:
        """All names that an event may use."""
        return sorted({name for action in self.actions for name in action.names})

    def predicate(self, name: str) -> Invariant:
        """A definition of the module as a property of states: one of a last state, say.

        :raises TlaConfigError: there is none of this name, or it is no property of one state.
        """
        definition = self.program.definitions.get(name)
        if not isinstance(definition, tree.Definition):
            near = self._near(name, self.program.definitions).removeprefix("; ")
            raise TlaConfigError(f"the module {self.program.root.name} has no definition {name}", hint=near or None)
        if definition.parameters or self.levels.of(definition) > Level.STATE:
            what = "has parameters" if definition.parameters else "speaks of more than one state"
            raise TlaConfigError(f"{name} {what}, and is no property of a state", definition.name_span)
        return Invariant(name, definition.body)

    def false_assumption(self) -> tree.Assume | None:
        """The first ASSUME that is FALSE."""
        for assumption in self.program.assumptions:
            if not self.holds(assumption.body, Step({})):
                return assumption
        return None

    def in_constraints(self, state: State) -> bool:
        """Whether a state satisfies every CONSTRAINT."""
        step = Step(self.mapping(state))
        return all(self.holds(constraint, step) for constraint in self.constraints)

    def in_action_constraints(self, state: State, successor: State) -> bool:
        """Whether a step satisfies every ACTION_CONSTRAINT."""
        if not self.action_constraints:
            return True
        step = Step(self.mapping(state), self.mapping(successor))
        return all(self.holds(constraint, step) for constraint in self.action_constraints)

    def _complete(self, assigned: Mapping[str, Value], where: tree.Expression, name: str) -> State:
        try:
            return tuple([assigned[variable] for variable in self.variables])
        except KeyError:
            missing = [variable for variable in self.variables if variable not in assigned]
            prime = "" if name == "Init" else "'"
            raise TlaEvaluationError(
                f"{name} leaves {', '.join(missing)} without a value",
                where.span,
                hint=f"every step assigns every variable: {missing[0]}{prime} = …"
                + (f", or UNCHANGED {missing[0]}" if prime else ""),
            ) from None

    # --- from the config ------------------------------------------------------------------------------------------

    def _check_constants(self, given: Mapping[str, Value], replaced: Mapping[str, str]) -> None:
        program = self.program
        for name, parameter in program.constants.items():
            if name not in given and name not in replaced:
                raise TlaConfigError(
                    f"the constant {name} has no value",
                    parameter.span,
                    hint=f"give it one in {self.config.path or 'a .cfg'}: CONSTANT {name} = …, "
                    f"or on the command line: --constant {name}=…",
                )
            if parameter.arity and name in given:
                raise TlaConfigError(
                    f"the constant {name} is an operator with {parameter.arity} arguments, and has a value",
                    self.config.places.get(name, parameter.span),
                    hint=f"define the operator in a module, and write {name} <- Definition",
                )
        for name in [*given, *replaced]:
            if name not in program.constants and name not in program.definitions and name not in program.builtins:
                place = self.config.places.get(name)
                where = f"{place.file}:{place.line}: " if place else ""
                self.warnings.append(
                    f"{where}{name} is no constant of {program.root.name}: ignored{self._near(name, program.constants)}"
                )
        for name, target in replaced.items():
            place = self.config.replacements[name].span
            definition = program.definitions.get(target)
            if definition is None and target not in program.builtins:
                raise TlaConfigError(
                    f"{name} <- {target}: there is no definition of {target}",
                    place,
                    hint=self._near(target, program.definitions).removeprefix("; ") or None,
                )
            takes, needed = _arity(program, target), _arity(program, name)
            if takes != needed:
                raise TlaConfigError(
                    f"{name} <- {target}: {name} takes {needed} arguments, and {target} takes {takes}", place
                )

    @staticmethod
    def _near(name: str, names: Mapping[str, object]) -> str:
        near = difflib.get_close_matches(name, list(names), 2)
        return f"; did you mean {' or '.join(near)}?" if near else ""

    def _definition(self, named: Named, what: str) -> tree.Definition:
        definition = self.program.definitions.get(named.name)
        if not isinstance(definition, tree.Definition):
            near = self._near(named.name, self.program.definitions).removeprefix("; ")
            raise TlaConfigError(
                f"{what} {named.name}: the module {self.program.root.name} has no such definition",
                named.span,
                hint=near or None,
            )
        if definition.parameters:
            raise TlaConfigError(f"{what} {named.name} is an operator with parameters", named.span)
        return definition

    def _predicate(self, named: Named, what: str) -> tree.Expression:
        self._definition(named, what)
        return tree.Name(named.span, named.name)

    def _invariant(self, named: Named) -> Invariant:
        return Invariant(named.name, self._definition(named, "INVARIANT").body)

    def _property(self, named: Named) -> None:
        """A conjunction of ``[]P``, ``[][A]_v`` and P; what else is in it is named as unchecked."""
        parts = self._conjuncts(self._definition(named, "PROPERTY").body)
        unchecked = [part for part in parts if not self._checked(named, part)]
        if len(unchecked) == len(parts):
            self.unchecked.append(f"PROPERTY {named.name}")
        else:
            self.unchecked += [f"PROPERTY {named.name}, its part {part.span.text}" for part in unchecked]

    def _conjuncts(self, node: tree.Expression) -> list[tree.Expression]:
        """The parts of a temporal formula, also of those that it names."""
        found: list[tree.Expression] = []
        stack = [node]
        while stack:
            part = stack.pop()
            if isinstance(part, tree.And):
                stack.extend(reversed(part.items))
            elif isinstance(part, tree.Label):
                stack.append(part.body)
            elif isinstance(part, tree.Name) and self.levels.of(part) > Level.STATE and self._body(part) is not part:
                stack.append(self._body(part))
            else:
                found.append(part)
        return found

    def _checked(self, named: Named, part: tree.Expression) -> bool:
        """Whether a part of a PROPERTY is checked.

        :raises TlaConfigError: it is no temporal formula.
        """
        level = self.levels.of(part)
        if level <= Level.STATE:
            self.initial_properties.append(Invariant(named.name, part))
            return True
        if level == Level.ACTION:
            raise TlaConfigError(
                f"PROPERTY {named.name}: {part.span.text} speaks of a step, and of no behaviour",
                part.span,
                hint="write [][…]_vars for what is to hold in every step",
            )
        if not isinstance(part, tree.Apply) or part.operator.name != "[]":
            return False
        inner = part.arguments[0]
        while isinstance(inner, tree.Name) and self.levels.of(inner) == Level.ACTION and self._body(inner) is not inner:
            inner = self._body(inner)
        level = self.levels.of(inner)
        if isinstance(inner, tree.ActionBox) and inner.kind == "[]" and level == Level.ACTION:
            self.step_properties.append(StepProperty(named.name, inner))
        elif level <= Level.STATE:
            self.invariants.append(Invariant(named.name, inner))
        elif level == Level.ACTION:
            raise TlaConfigError(
                f"PROPERTY {named.name}: [] stands before what speaks of a step, and is not of the form [A]_v",
                part.span,
                hint="write [][A]_vars",
            )
        else:
            return False
        return True

    def _body(self, expression: tree.Expression) -> tree.Expression:
        """What a name stands for, where it is a definition's."""
        if isinstance(expression, tree.Name):
            name = self.evaluator.replaced.get(expression.name, expression.name)
            definition = self.program.definitions.get(name)
            if isinstance(definition, tree.Definition):
                return definition.body
        return expression

    def _behaviour_formula(self) -> tuple[tree.Expression, tree.Expression]:
        """Init and Next: as the config names them, out of its SPECIFICATION, or by these names."""
        config = self.config
        if config.specification is not None:
            return self._from_specification(config.specification)
        return self._by_name(config.init, "Init", "INIT"), self._by_name(config.next, "Next", "NEXT")

    def _by_name(self, named: Named | None, default: str, what: str) -> tree.Expression:
        if named is not None:
            self._definition(named, what)
            return tree.Name(named.span, named.name)
        definition = self.program.definitions.get(default)
        if isinstance(definition, tree.Definition):
            return tree.Name(definition.name_span, default)
        raise TlaSemanticError(
            f"the module {self.program.root.name} has no {default}",
            self.program.root.span,
            hint=f"define {default}, or name it in a config: {what} Definition",
        )

    def _from_specification(self, named: Named) -> tuple[tree.Expression, tree.Expression]:
        definition = self._definition(named, "SPECIFICATION")
        inits: list[tree.Expression] = []
        nexts: list[tree.Expression] = []
        stack: list[tree.Expression] = [definition.body]
        while stack:
            node = stack.pop(0)
            if isinstance(node, tree.And):
                stack[:0] = node.items
            elif isinstance(node, tree.Name) and self.levels.of(node) == Level.TEMPORAL:
                stack.insert(0, self._body(node))
            elif (
                isinstance(node, tree.Apply)
                and node.operator.name == "[]"
                and isinstance(node.arguments[0], tree.ActionBox)
            ):
                nexts.append(node.arguments[0].action)
            elif (
                isinstance(node, tree.Apply)
                and node.operator.name == "[]"
                and self.levels.of(node.arguments[0]) < Level.TEMPORAL
            ):
                raise TlaConfigError(
                    f"{node.span.text} restricts the steps of the SPECIFICATION {named.name}, and cannot be followed",
                    node.span,
                    hint="write it as a guard of Next, or as an INVARIANT if it is a property",
                )
            elif self.levels.of(node) < Level.TEMPORAL:
                inits.append(node)
        if len(nexts) > 1:
            raise TlaConfigError(
                f"the SPECIFICATION {named.name} has {len(nexts)} conjuncts of the form [][Next]_vars",
                definition.span,
                hint="what every step must satisfy is a guard of Next, or a PROPERTY",
            )
        if not nexts or not inits:
            raise TlaConfigError(
                f"the SPECIFICATION {named.name} is not of the form Init /\\ [][Next]_vars",
                definition.span,
                hint="or name the parts: INIT Init NEXT Next",
            )
        init = inits[0] if len(inits) == 1 else tree.And(definition.span, tuple(inits))
        return init, nexts[0]


def _arity(program: Program, name: str) -> int:
    definition = program.definitions.get(name)
    if definition is not None:
        return len(definition.parameters) if isinstance(definition, tree.Definition) else 0
    if name in program.constants:
        return program.constants[name].arity
    return program.builtins[name].arity if name in program.builtins else 0


def load_spec(
    path: str | os.PathLike[str],
    config: str | os.PathLike[str] | None = None,
    constants: Mapping[str, Json] | None = None,
    constants_text: Mapping[str, str] | None = None,
) -> Spec:
    """Loads a module with its config.

    :param config: a .cfg; without one ``<Module>.cfg`` beside the module, and without that Init and Next.
    :param constants: values from a log or a program, in JSON (:mod:`.observe`); they win over the config's.
    :param constants_text: values in the syntax of a .cfg; they win over both.
    :raises TlaError: with place and hint.
    :raises OSError: a file cannot be read.
    """
    program = load(path)
    file = Path(config) if config is not None else Path(path).with_suffix(".cfg")
    parsed = parse_config(read_text(file), str(file)) if config is not None or file.is_file() else Config()
    values = {name: _constant(name, given, parsed) for name, given in (constants or {}).items()}
    values.update((name, parse_value(text, f"--constant {name}")) for name, text in (constants_text or {}).items())
    return Spec(program, parsed, str(path), values)


def _constant(name: str, given: Json, config: Config) -> Value:
    """A constant from JSON. A string that the config knows as a model value is that model value."""
    try:
        return to_value(given, model_names(config.constants.values()))
    except ValueProblem as problem:
        raise TlaConfigError(f"the constant {name}: {problem.message}") from None


__all__ = ["Action", "Invariant", "Spec", "State", "StepProperty", "Successor", "TlaError", "load_spec"]
