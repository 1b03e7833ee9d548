"""What each name means: undefined names, arities, and names that are defined twice.

The rules are SANY's (``tla2sany/semantic/Generator``): a name is defined before it is used (but for RECURSIVE), and no
parameter, bound variable or LET may take a name that already has a meaning. EXTENDS and INSTANCE may bring a name
twice: the first one counts.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import tree
from .builtins import MODULES
from .errors import TlaSemanticError
from .operators import INFIX, MISTAKEN, POSTFIX, PREFIX
from .source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .modules import Program

Visit = Generator[tree.Node, None, None]
"""A visit of a node. It yields the nodes to be visited below it; the loop in ``_run`` does so, without recursion."""


@dataclass(slots=True)
class _Meaning:
    """What a name stands for. ``operators`` is the arity of each parameter that is an operator itself."""

    what: str
    arity: int = 0
    span: Span | None = None
    operators: Mapping[int, int] = field(default_factory=dict)
    function_arity: int | None = None
    exports: dict[str, _Meaning] | None = None
    is_usable: bool = True


_CORE_INFIX = (
    r"\land", r"\lor", "=>", r"\equiv", "~>", "-+->", "=", "/=", r"\in", r"\notin", r"\subseteq", "\\", r"\intersect",
    r"\union", r"\times", r"\cdot",
)  # fmt: skip
_CORE: dict[str, _Meaning] = {
    **{name: _Meaning("built-in operator", 2) for name in _CORE_INFIX},
    **{name: _Meaning("built-in operator", 1) for name in PREFIX if name != "-."},
    "'": _Meaning("built-in operator", 1),
    **{name: _Meaning("built-in constant") for name in ("TRUE", "FALSE", "BOOLEAN", "STRING")},
}

_HINTS = {
    **MISTAKEN,
    "ℕ": "write `Nat` and EXTENDS Naturals",
    "ℤ": "write `Int` and EXTENDS Integers",
    "ℝ": "write `Real` and EXTENDS Reals",
}


def check(program: Program) -> None:
    """Checks each module of a program, the extended ones first. Raises TlaSemanticError at the first mistake."""
    Scope(program)


class Scope:
    """The names that are known at the end of a program's root module. Making it checks the program."""

    def __init__(self, program: Program) -> None:
        self._checker = _Checker()
        for module in program.modules:
            _run(self._checker.module(module, dict(_CORE)), self._checker.visit)
        self._known = self._checker.scope

    def check(self, expression: tree.Expression, free: Mapping[str, str]) -> None:
        """Checks an expression that stands there, in which more names have a meaning: what each is, in words.

        :raises TlaSemanticError: at the first mistake.
        """
        checker = self._checker
        checker.scope = {**self._known, **{name: _Meaning(what) for name, what in free.items()}}
        checker.later, checker.has_at = {}, False
        _run(checker.visit(expression), checker.visit)


def _run(start: Visit, visit: Callable[[tree.Node], Visit]) -> None:
    stack = [start]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
        else:
            stack.append(visit(below))


class _Checker:
    def __init__(self) -> None:
        self.scope: dict[str, _Meaning] = {}
        self.modules: dict[str, dict[str, _Meaning]] = {
            name: {
                operator: _Meaning("operator", builtin.arity, operators=builtin.operators or {})
                for operator, builtin in module.operators.items()
            }
            for name, module in MODULES.items()
        }
        for name in MODULES:
            self.modules[name] = self._with_extended(name)
        # An unnamed INSTANCE of a module that is not at hand may bring any name.
        self.is_open = False
        self.has_at = False
        self.later: dict[str, Span] = {}
        self.visits: dict[type[tree.Node], Callable[[Any], Visit]] = {
            tree.Module: self._nested_module,
            tree.Constants: self._constants,
            tree.Variables: self._variables,
            tree.Recursive: self._recursive,
            tree.Definition: self._definition,
            tree.FunctionDefinition: self._function_definition,
            tree.Instance: self._instance,
            tree.Assume: self._assume,
            tree.Theorem: self._theorem,
            tree.Name: self._name,
            tree.At: self._at,
            tree.Apply: self._apply,
            tree.Product: self._product,
            tree.FunctionApplication: self._function_application,
            tree.Quantifier: self._bounded,
            tree.SetMap: self._bounded,
            tree.FunctionConstructor: self._bounded,
            tree.SetFilter: self._bounded_once,
            tree.Choose: self._bounded_once,
            tree.TemporalQuantifier: self._temporal_quantifier,
            tree.Lambda: self._stray_lambda,
            tree.Let: self._let,
            tree.Except: self._except,
            tree.RecordConstructor: self._record,
            tree.RecordSet: self._record,
        }

    def _with_extended(self, name: str) -> dict[str, _Meaning]:
        found = dict(self.modules[name])
        for extended in MODULES[name].extends:
            found = {**self._with_extended(extended), **found}
        return found

    def visit(self, node: tree.Node) -> Visit:
        special = self.visits.get(type(node))
        return special(node) if special is not None else self._below(node)

    def _below(self, node: tree.Node) -> Visit:
        yield from tree.children(node)

    # --- modules and their units --------------------------------------------------------------------------------------

    def module(self, module: tree.Module, outer: dict[str, _Meaning]) -> Visit:
        """Checks a module. ``outer`` is what is known before it begins."""
        self.scope = dict(outer)
        exported: dict[str, _Meaning] = {}
        for extended in module.extends:
            for name, meaning in self.modules.get(extended.name, {}).items():
                self.scope.setdefault(name, meaning)
                exported.setdefault(name, meaning)
        self.later = _definition_spans(module.units)
        before = set(self.scope)
        yield from module.units
        self._check_recursive(module.units)
        local = set(_local_names(module.units))
        own = {name: meaning for name, meaning in self.scope.items() if name not in before and name not in local}
        self.modules[module.name] = {**exported, **own}

    def _nested_module(self, module: tree.Module) -> Visit:
        if module.name in self.modules and module.name not in MODULES:
            raise TlaSemanticError(f"The module `{module.name}` is there already", module.span)
        outer, later = self.scope, self.later
        yield from self.module(module, outer)
        self.scope, self.later = outer, later

    def _constants(self, unit: tree.Constants) -> Visit:
        self._declare_all(unit.declarations, "constant")
        yield from ()

    def _variables(self, unit: tree.Variables) -> Visit:
        self._declare_all(unit.declarations, "variable")
        yield from ()

    def _declare_all(self, declarations: Iterable[tree.Parameter], what: str) -> None:
        for parameter in declarations:
            known = self.scope.get(parameter.name)
            # SANY only warns of a constant or a variable that is declared again.
            if known is None or known.what != what or known.arity != parameter.arity:
                self._add(parameter.name, _Meaning(what, parameter.arity, parameter.span), parameter.span)

    def _recursive(self, unit: tree.Recursive) -> Visit:
        for parameter in unit.declarations:
            self._add(parameter.name, _Meaning("recursive", parameter.arity, parameter.span), parameter.span)
        yield from ()

    def _check_recursive(self, units: Iterable[tree.Unit]) -> None:
        for unit in units:
            for parameter in unit.declarations if isinstance(unit, tree.Recursive) else ():
                if self.scope[parameter.name].what == "recursive":
                    raise TlaSemanticError(
                        f"`{parameter.name}` is declared RECURSIVE and never defined", parameter.span
                    )

    def _definition(self, unit: tree.Definition) -> Visit:
        with self._inside():
            for parameter in unit.parameters:
                self._add_bound(parameter.name, parameter.span, "parameter", parameter.arity)
            yield unit.body
        operators = {place: parameter.arity for place, parameter in enumerate(unit.parameters) if parameter.arity}
        clashes = unit.name in {parameter.name for parameter in unit.parameters}
        self._define(unit, _Meaning("operator", len(unit.parameters), unit.name_span, operators), clashes)

    def _function_definition(self, unit: tree.FunctionDefinition) -> Visit:
        arity = sum(1 if bound.tuple_pattern else len(bound.names) for bound in unit.bounds)
        clashes = unit.name in {name for bound in unit.bounds for name in bound.names}
        for bound in unit.bounds:
            if bound.domain is not None:
                yield bound.domain
        self._define(unit, _Meaning("function", 0, unit.name_span, function_arity=arity), clashes)
        with self._inside():
            self._add_bounds(unit.bounds)
            yield unit.body

    def _define(self, unit: tree.Definition | tree.FunctionDefinition, meaning: _Meaning, clashes: bool) -> None:
        known = self.scope.get(unit.name)
        if known is not None and known.what == "recursive":
            if known.arity != meaning.arity:
                raise TlaSemanticError(
                    f"`{unit.name}` is declared RECURSIVE with {_arguments(known.arity)} and defined with "
                    f"{_arguments(meaning.arity)}",
                    unit.span,
                )
            del self.scope[unit.name]
        if clashes:
            message = f"`{unit.name}` has a parameter of its own name"
            raise TlaSemanticError(message, unit.span, hint="rename the parameter")
        self._add(unit.name, meaning, unit.span)

    def _instance(self, unit: tree.Instance) -> Visit:
        exports = self.modules.get(unit.module)
        with self._inside():
            for parameter in unit.parameters:
                self._add_bound(parameter.name, parameter.span, "parameter", parameter.arity)
            given: set[str] = set()
            for substitution in unit.substitutions:
                if substitution.name in given:
                    raise TlaSemanticError(f"`{substitution.name}` is substituted twice", substitution.span)
                given.add(substitution.name)
                target = exports.get(substitution.name) if exports is not None else None
                if exports is not None and (target is None or target.what not in ("constant", "variable")):
                    names = [name for name, meaning in exports.items() if meaning.what in ("constant", "variable")]
                    raise TlaSemanticError(
                        f"`{substitution.name}` is no constant or variable of `{unit.module}`",
                        substitution.span,
                        hint=_nearest(substitution.name, names),
                    )
                yield from self._argument(substitution.value, target.arity if target is not None else None, unit.module)
            for name, meaning in (exports or {}).items():
                if meaning.what in ("constant", "variable") and name not in given and name not in self.scope:
                    raise TlaSemanticError(
                        f"INSTANCE {unit.module} leaves open what its {meaning.what} `{name}` is",
                        unit.span,
                        hint=f"add WITH {name} <- …",
                    )
        usable = _without_declarations(exports) if exports is not None else None
        if unit.name is None:
            self.is_open |= usable is None
            for name, meaning in (usable or {}).items():
                self.scope.setdefault(name, meaning)
        else:
            self._add(unit.name, _Meaning("instance", len(unit.parameters), unit.span, exports=usable), unit.span)

    def _assume(self, unit: tree.Assume) -> Visit:
        yield unit.body
        if unit.name is not None and self.scope.get(unit.name, _Meaning("")).what != "assumption":
            self._add(unit.name, _Meaning("assumption", 0, unit.span), unit.span)

    def _theorem(self, unit: tree.Theorem) -> Visit:
        if unit.body is not None:
            yield unit.body
        if unit.name is not None:
            self._add(unit.name, _Meaning("theorem", 0, unit.span, is_usable=unit.body is not None), unit.span)

    # --- names and what they are applied to ---------------------------------------------------------------------------

    def _name(self, node: tree.Name) -> Visit:
        yield from self._path(node)
        meaning = self._meaning(node)
        if meaning is None:
            return
        if meaning.what == "instance":
            raise TlaSemanticError(
                f"`{node.name}` is an instance, and no expression", node.span, hint=f"write `{node.name}!Name`"
            )
        if not meaning.is_usable:
            raise TlaSemanticError(f"`{node.name}` is an ASSUME … PROVE, and no expression", node.span)
        if meaning.arity:
            raise TlaSemanticError(f"`{node.name}` takes {_arguments(meaning.arity)}, and has none here", node.span)

    def _at(self, node: tree.At) -> Visit:
        if not self.has_at:
            raise TlaSemanticError(
                "`@` has no meaning here", node.span, hint="it is the old value, after the `=` of an EXCEPT"
            )
        yield from ()

    def _apply(self, node: tree.Apply) -> Visit:
        operator = node.operator
        yield from self._path(operator)
        meaning = self._meaning(operator)
        if meaning is not None and meaning.arity != len(node.arguments):
            has = _arguments(len(node.arguments))
            if meaning.function_arity is not None:
                hint = f"`{operator.name}` is a function: apply it by `{operator.name}[…]`"
            else:
                hint = None
            takes = _arguments(meaning.arity) if meaning.arity else "no argument"
            raise TlaSemanticError(f"`{operator.name}` takes {takes}, and has {has} here", node.span, hint=hint)
        for place, argument in enumerate(node.arguments):
            # RECURSIVE F(_) says how many arguments there are, and not which of them are operators.
            known = meaning is not None and meaning.what != "recursive"
            expected = meaning.operators.get(place, 0) if meaning is not None and known else None
            yield from self._argument(argument, expected, operator.name)

    def _argument(self, argument: tree.Expression, expected: int | None, operator: str) -> Visit:
        """Checks an argument of the arity that is expected: 0 is an expression, None is not known."""
        if isinstance(argument, tree.Lambda):
            if expected is not None and expected != len(argument.parameters):
                wanted = f"an operator with {_arguments(expected)}" if expected else "an expression"
                raise TlaSemanticError(
                    f"`{operator}` wants {wanted} here, not a LAMBDA with {_arguments(len(argument.parameters))}",
                    argument.span,
                )
            with self._inside():
                for parameter in argument.parameters:
                    self._add_bound(parameter.name, parameter.span, "parameter", 0)
                yield argument.body
        elif isinstance(argument, tree.Name) and expected != 0:
            yield from self._path(argument)
            meaning = self._meaning(argument)
            if meaning is not None and expected is not None and meaning.arity != expected:
                raise TlaSemanticError(
                    f"`{operator}` wants an operator with {_arguments(expected)} here; `{argument.name}` takes "
                    f"{_arguments(meaning.arity) if meaning.arity else 'none'}",
                    argument.span,
                )
        elif expected:
            raise TlaSemanticError(
                f"`{operator}` wants an operator with {_arguments(expected)} here, not an expression",
                argument.span,
                hint="name an operator, or write `LAMBDA x : …`",
            )
        else:
            yield argument

    def _path(self, node: tree.Name) -> Visit:
        for step in node.path:
            for argument in step.arguments:
                yield from self._argument(argument, None, step.name)

    def _meaning(self, node: tree.Name) -> _Meaning | None:
        """What a name stands for; None where that is not known (a selected subexpression, an instance not at hand)."""
        if not node.path:
            return self._look_up(node.name, node.span)
        names: dict[str, _Meaning] | None = None
        for place, step in enumerate(node.path):
            meaning = self._look_up(step.name, step.span) if place == 0 else (names or {}).get(step.name)
            if meaning is None:
                return None
            if meaning.arity != len(step.arguments):
                raise TlaSemanticError(
                    f"`{step.name}` takes {_arguments(meaning.arity)}, and has {_arguments(len(step.arguments))} here",
                    node.span,
                )
            names = meaning.exports
            if names is None:
                return None
        if names is None or node.name in names:
            return (names or {}).get(node.name)
        instance = node.path[-1].name
        # The name itself stands last.
        place_of_name = Span(node.span.source, max(node.span.start, node.span.end - len(node.name)), node.span.end)
        raise TlaSemanticError(
            f"`{node.name}` is not defined in the instance `{instance}`", place_of_name, hint=_nearest(node.name, names)
        )

    def _look_up(self, name: str, span: Span) -> _Meaning | None:
        meaning = self.scope.get(name)
        if meaning is not None or self.is_open:
            return meaning
        raise TlaSemanticError(f"`{name}` is not defined", span, hint=self._hint(name))

    def _hint(self, name: str) -> str | None:
        if name in _HINTS:
            return _HINTS[name]
        if name in self.later:
            return f"it is defined at line {self.later[name].line}: move that definition above"
        homes = [home for home, module in MODULES.items() if name in module.operators]
        if homes:
            return f"EXTENDS {homes[0]} defines it"
        if name in INFIX or name in POSTFIX or name in PREFIX:
            return f"no module here defines it: define `a {name} b == …`" if name in INFIX else None
        return _nearest(name, self.scope)

    def _product(self, node: tree.Product) -> Visit:
        yield from node.factors

    def _function_application(self, node: tree.FunctionApplication) -> Visit:
        yield from tree.children(node)
        function = node.function
        if isinstance(function, tree.Name) and not function.path:
            known = self.scope.get(function.name)
            arity = known.function_arity if known is not None else None
            if arity is not None and len(node.arguments) not in (1, arity):
                raise TlaSemanticError(
                    f"the function `{function.name}` takes {_arguments(arity)}, and has "
                    f"{_arguments(len(node.arguments))} here",
                    node.span,
                )

    # --- what binds names ---------------------------------------------------------------------------------------------

    def _bounded(self, node: tree.Quantifier | tree.SetMap | tree.FunctionConstructor) -> Visit:
        for bound in node.bounds:
            if bound.domain is not None:
                yield bound.domain
        with self._inside():
            self._add_bounds(node.bounds)
            yield node.body

    def _bounded_once(self, node: tree.SetFilter | tree.Choose) -> Visit:
        if node.bound.domain is not None:
            yield node.bound.domain
        with self._inside():
            self._add_bounds((node.bound,))
            yield node.predicate if isinstance(node, tree.SetFilter) else node.body

    def _temporal_quantifier(self, node: tree.TemporalQuantifier) -> Visit:
        with self._inside():
            for name, span in zip(node.names, node.name_spans, strict=True):
                self._add_bound(name, span, "bound variable", 0)
            yield node.body

    def _stray_lambda(self, node: tree.Lambda) -> Visit:
        yield from ()
        raise TlaSemanticError("a LAMBDA stands here, where an expression is wanted", node.span)

    def _let(self, node: tree.Let) -> Visit:
        with self._inside():
            later = self.later
            self.later = {**later, **_definition_spans(node.units)}
            yield from node.units
            self._check_recursive(node.units)
            self.later = later
            yield node.body

    def _except(self, node: tree.Except) -> Visit:
        yield node.base
        for update in node.updates:
            for component in update.path:
                if not isinstance(component, str):
                    yield from component
            had_at, self.has_at = self.has_at, True
            yield update.value
            self.has_at = had_at

    def _record(self, node: tree.RecordConstructor | tree.RecordSet) -> Visit:
        names: set[str] = set()
        for (name, value), span in zip(node.fields, node.name_spans, strict=True):
            if name in names:
                raise TlaSemanticError(f"the record has two fields `{name}`", span)
            names.add(name)
            yield value

    # --- the scope ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """What is added to the scope within is gone afterwards."""
        outer = self.scope
        self.scope = dict(outer)
        yield
        self.scope = outer

    def _add_bounds(self, bounds: Iterable[tree.Bound]) -> None:
        for bound in bounds:
            for name, span in zip(bound.names, bound.name_spans, strict=True):
                self._add_bound(name, span, "bound variable", 0)

    def _add_bound(self, name: str, span: Span, what: str, arity: int) -> None:
        self._add(name, _Meaning(what, arity, span), span)

    def _add(self, name: str, meaning: _Meaning, span: Span) -> None:
        known = self.scope.get(name)
        if known is not None:
            hint = f"give this {meaning.what} another name"
            raise TlaSemanticError(_defined_twice(name, known, span), span, hint=hint)
        self.scope[name] = meaning


def _defined_twice(name: str, known: _Meaning, span: Span) -> str:
    if known.span is None:
        what = "an operator of a standard module" if known.what == "operator" else f"a {known.what}"
        return f"`{name}` has a meaning already: it is {what}"
    where = "" if known.span.file == span.file else f" of {known.span.file}"
    return f"`{name}` has a meaning already: the {known.what} at line {known.span.line}{where}"


def _without_declarations(exports: dict[str, _Meaning]) -> dict[str, _Meaning]:
    return {name: meaning for name, meaning in exports.items() if meaning.what not in ("constant", "variable")}


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _nearest(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, [other for other in known if other[0].isalnum()], 1)
    return f"did you mean `{near[0]}`?" if near else None


def _definition_spans(units: Iterable[tree.Unit]) -> dict[str, Span]:
    return {unit.name: unit.name_span for unit in units if isinstance(unit, (tree.Definition, tree.FunctionDefinition))}


def _local_names(units: Iterable[tree.Unit]) -> Iterator[str]:
    for unit in units:
        if not isinstance(unit, tree.Definition | tree.FunctionDefinition | tree.Instance):
            continue
        if unit.local and unit.name is not None:
            yield unit.name
