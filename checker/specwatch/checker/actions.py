"""Next, split into its actions.

A disjunct of Next is an action. It is named after the definitions it is reached through, the innermost first: with
``Client == Open \\/ Close`` and ``Next == Client \\/ Server``, one action is named ``Open``, ``Client`` and ``Next``,
and an event may name any of these. The leading ``\\E`` quantifiers on the way, outside or inside the named
definition, are its parameters, known by their bound names; where a definition's formal parameter is given a bound
name as it stands, the formal name works too. A guard beside a disjunction (``mode # "end" /\\ (A \\/ B)``) stays a
guard of each of its actions.

Splitting changes no step and no order: the marked tree generates what Next generates.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .tla import tree
from .tla.evaluate import Branch, Given, Inline, Leaf
from .tla.modules import Program


@dataclass(slots=True, eq=False)
class Action:
    """One action of Next. ``names`` holds ``name`` and the names of the groups around it."""

    name: str
    """The innermost definition's, as TLC prints it."""
    names: tuple[str, ...]
    parameters: tuple[str, ...]
    aliases: dict[str, str]
    """Formal parameter → the bound name that it stands for."""
    body: tree.Expression
    label: str = ""
    """The outermost name that means this action alone: with ``Publish(t) == Move(t, "out")``, ``Publish``."""

    def parameter(self, name: str) -> str | None:
        """The parameter that an event means by a name; None where the action has none such."""
        return name if name in self.parameters else self.aliases.get(name)


@dataclass(slots=True)
class Split:
    """Next as a marked tree, and its actions in the order of the text."""

    tree: tree.Expression
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """How a place in Next was reached: names from the outside in, parameters, and what local names stand for."""

    names: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    scope: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    local: frozenset[str] = frozenset()


def split(program: Program, next_name: str | None, next_expression: tree.Expression, replaced: dict[str, str]) -> Split:
    """Splits a next-state relation. ``next_name`` is its definition's, where it has one."""
    splitter = _Splitter(program, replaced)
    marked, actions = splitter.mark(next_expression, _Way(names=(next_name,) if next_name else ()))
    meanings = Counter(name for action in actions for name in action.names)
    for action in actions:
        # Next itself is no name to speak of, even where it has one action only.
        below = action.names[:-1] or action.names
        action.label = next((name for name in reversed(below) if meanings[name] == 1), action.name)
    return Split(marked, tuple(actions))


class _Splitter:
    def __init__(self, program: Program, replaced: dict[str, str]) -> None:
        self.program = program
        self.replaced = replaced
        self._acts: dict[str, bool] = {}

    def mark(self, node: tree.Expression, way: _Way) -> tuple[tree.Expression, list[Action]]:
        """The marked form of a part of Next, and the actions in it."""
        if isinstance(node, tree.Or):
            items, actions = [], []
            for item in node.items:
                marked, below = self.mark(item, way)
                items.append((marked, frozenset(below)))
                actions.extend(below)
            return Branch(node.span, tuple(items)), actions
        if isinstance(node, tree.Quantifier) and self._gives(node, way):
            names = tuple(name for bound in node.bounds for name in bound.names)
            inner = _Way(
                way.names,
                way.parameters + names,
                {**way.scope, **{name: name for name in names}},
                way.aliases,
                way.local,
            )
            marked, actions = self.mark(node.body, inner)
            return Given(node.span, node.bounds, marked), actions
        if isinstance(node, tree.Let):
            local = way.local | {
                unit.name for unit in node.units if isinstance(unit, (tree.Definition, tree.FunctionDefinition))
            }
            marked, actions = self.mark(node.body, _Way(way.names, way.parameters, way.scope, way.aliases, local))
            return tree.Let(node.span, node.units, marked), actions
        if isinstance(node, tree.Label):
            return self.mark(node.body, way)
        if isinstance(node, tree.And):
            groups = [index for index, item in enumerate(node.items) if self._is_group(item, way.local)]
            if len(groups) == 1:
                marked, actions = self.mark(node.items[groups[0]], way)
                items_ = tuple(marked if index == groups[0] else item for index, item in enumerate(node.items))
                return tree.And(node.span, items_), actions
        definition = self._called(node, way.local)
        if definition is not None:
            arguments = node.arguments if isinstance(node, tree.Apply) else ()
            scope = {
                parameter.name: way.scope[argument.name]
                for parameter, argument in zip(definition.parameters, arguments, strict=True)
                if isinstance(argument, tree.Name) and argument.name in way.scope
            }
            marked, actions = self.mark(
                definition.body,
                _Way((*way.names, definition.name), way.parameters, scope, {**way.aliases, **scope}),
            )
            return Inline(node.span, definition.parameters, arguments, marked), actions
        return self._leaf(node, way)

    def _leaf(self, node: tree.Expression, way: _Way) -> tuple[tree.Expression, list[Action]]:
        names = tuple(reversed(way.names)) or ("Next",)
        aliases = {name: bound for name, bound in way.aliases.items() if name not in way.parameters}
        action = Action(names[0], names, way.parameters, aliases, node)
        return Leaf(node.span, action, node), [action]

    def _gives(self, node: tree.Quantifier, way: _Way) -> bool:
        """Whether a quantifier's names are parameters: a bounded ``\\E`` whose names no outer one has taken."""
        names = [name for bound in node.bounds for name in bound.names]
        return (
            node.kind == "\\E"
            and all(bound.domain is not None for bound in node.bounds)
            and not any(name in way.parameters for name in names)
        )

    def _called(self, node: tree.Expression, local: frozenset[str]) -> tree.Definition | None:
        """The definition that a node applies, where it is an action's and not recursive."""
        if isinstance(node, tree.Apply):
            name = node.operator.name
        elif isinstance(node, tree.Name):
            name = node.name
        else:
            return None
        if name in local:
            return None
        name = self.replaced.get(name, name)
        definition = self.program.definitions.get(name)
        if not isinstance(definition, tree.Definition) or name in self.program.recursive or not self._is_action(name):
            return None
        if any(parameter.arity for parameter in definition.parameters):
            return None
        return definition

    def _is_action(self, name: str) -> bool:
        """Whether a definition speaks of the next state, however indirectly."""
        known = self._acts.get(name)
        if known is None:
            self._acts[name] = False  # a definition that reaches itself is an action by the rest of its body
            definition = self.program.definitions.get(name)
            known = definition is not None and any(self._speaks_of_next(node) for node in tree.walk(definition.body))
            self._acts[name] = known
        return known

    def _speaks_of_next(self, node: tree.Node) -> bool:
        if isinstance(node, (tree.Prime, tree.ActionBox)):
            return True
        if isinstance(node, tree.Name):
            return node.name == "UNCHANGED" or self._is_action(self.replaced.get(node.name, node.name))
        return False

    def _is_group(self, node: tree.Expression, local: frozenset[str]) -> bool:
        """Whether a conjunct is a disjunction of named actions, beside which the other conjuncts are guards."""
        if isinstance(node, tree.Or):
            return all(self._is_call(item, local) for item in node.items)
        if isinstance(node, tree.Quantifier):
            return node.kind == "\\E" and self._is_call(node.body, local)
        definition = self._called(node, local)
        if definition is None:
            return False
        body = definition.body
        while isinstance(body, tree.Quantifier) and body.kind == "\\E":
            body = body.body
        return isinstance(body, tree.Or) and self._is_group(body, frozenset())

    def _is_call(self, node: tree.Expression, local: frozenset[str]) -> bool:
        if isinstance(node, tree.And):
            return any(self._is_group(item, local) for item in node.items)
        return self._called(node, local) is not None or self._is_group(node, local)
