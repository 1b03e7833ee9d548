"""Expressions that speak about an event: what is expected after it (``expect``), and what lets a hidden step come
before it (``when``).

Such an expression stands at the end of the spec's module: it may use all that is defined there, the parameters of the
action, and ``$name`` (``${any name}``) for what the event says. A ``$name`` is a value, never text: it is parsed as a
name that no module can define, and bound when the expression is evaluated. It speaks of one state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .behaviour import Event, Json
from .observe import to_value
from .tla import tree
from .tla.errors import TlaError, TlaEvaluationError, TlaSemanticError, TlaSyntaxError
from .tla.evaluate import Environment, Step
from .tla.levels import Level, Levels
from .tla.names import Scope
from .tla.parse import parse_expression
from .tla.scan import FIELD, tokens
from .tla.source import SourceText, Span
from .tla.values import ModelValue, Value, ValueProblem

if TYPE_CHECKING:
    from .spec import Spec, State


@dataclass(frozen=True, slots=True)
class Predicate:
    """An expression over a state, an action's parameters and an event's fields. ``where`` is how errors call it."""

    text: str
    where: str
    expression: tree.Expression
    variables: frozenset[str]
    """The variables that it may read, through definitions too."""
    spelt: Mapping[str, str]
    """``$name`` as it is written → the field's name."""

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields that it reads."""
        return frozenset(self.spelt.values())

    def holds(
        self,
        spec: Spec,
        state: State,
        *,
        bound: Mapping[str, Value] | None = None,
        fields: Mapping[str, Json] | None = None,
        event: Event | None = None,
    ) -> bool:
        """Whether it is TRUE in a state.

        :param bound: the action's parameters.
        :param fields: what ``$name`` means.
        :param event: the event whose fields these are, for the place of an error.
        :raises TlaEvaluationError: it has no value.
        :raises TlaError: it reads a field that the event lacks.
        """
        environment = self.environment(spec, bound or {}, fields or {})
        try:
            step = Step(spec.mapping(state))
            return bool(spec.evaluator.guarded(spec.evaluator.truth, self.expression, environment, step))
        except TlaEvaluationError as error:
            raise self._told(error, environment, event) from None

    def environment(self, spec: Spec, bound: Mapping[str, Value], fields: Mapping[str, Json]) -> Environment:
        """What its free names stand for; a field that the event lacks is not among them."""
        known = {spelt: _value(fields[name], spec.models) for spelt, name in self.spelt.items() if name in fields}
        return {**bound, **known}

    def _told(self, error: TlaEvaluationError, environment: Environment, event: Event | None) -> TlaError:
        """The error with this predicate's own name for the text, which several may share."""
        span = error.span
        if span is None or span.source is not self.expression.span.source:
            return error
        span = Span(SourceText(self.where, self.text), span.start, span.end)
        name = self.spelt.get(span.text)
        if name is not None and span.text not in environment:
            place = f" ({event.source.file}:{event.source.line})" if event is not None and event.source else ""
            who = f"the event {event.action}{place}" if event is not None else "the event"
            return TlaError(
                f"{who} has no field {name}, of which this speaks",
                span,
                hint="log it, or guard this by what says that it is there",
            )
        return TlaEvaluationError(error.message, span, hint=error.hint, values=error.values)


def _value(given: Json, models: frozenset[str]) -> Value:
    try:
        return to_value(given, models)
    except ValueProblem:
        # What is no TLA+ value (1.5, null) is equal to nothing but itself, as a model value is.
        return ModelValue(json.dumps(given, ensure_ascii=False, sort_keys=True))


class Predicates:
    """Parses expressions in the context of a spec's module, each once."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._scope: Scope | None = None
        self._known: dict[tuple[str, tuple[str, ...]], Predicate] = {}

    def parse(self, text: str, names: Iterable[str], where: str) -> Predicate:
        """The predicate that a text is.

        :param names: the parameters that may stand free in it.
        :param where: what errors call it: ``hidden.Drop.when``.
        :raises TlaSyntaxError: it is no expression.
        :raises TlaSemanticError: a name that means nothing there, or it speaks of a step or a whole behaviour.
        """
        free = tuple(names)
        known = self._known.get((text, free))
        if known is None:
            known = self._known[text, free] = self._parsed(text, free, where)
        return known if known.where == where else replace(known, where=where)

    def _parsed(self, text: str, free: tuple[str, ...], where: str) -> Predicate:
        expression = parse_expression(text, where, fields=True)
        spelt = _fields(expression)
        if self._scope is None:
            self._scope = Scope(self._spec.program)
        meanings = {**dict.fromkeys(free, "parameter"), **dict.fromkeys(spelt, "field of the event")}
        self._scope.check(expression, meanings)
        evaluator = self._spec.evaluator
        levels = Levels(self._spec.program, evaluator.replaced, evaluator.constants)
        _refuse_time(expression, levels)
        return Predicate(text, where, expression, levels.variables(expression), spelt)


def _fields(expression: tree.Expression) -> dict[str, str]:
    """Every ``$name`` as it is written → the field's name.

    :raises TlaSyntaxError: one that is no value: ``r.$name``, ``[$name |-> 1]``.
    """
    source = expression.span.source
    names = {node.span.start for node in tree.walk(expression) if isinstance(node, tree.Name) and not node.path}
    found: dict[str, str] = {}
    for token in tokens(source, fields=True):
        match = FIELD.fullmatch(token.text)
        if match is None:
            continue
        if token.start not in names:
            span = Span(source, token.start, token.end)
            raise TlaSyntaxError(f"`{token.text}` is a value, and a name is wanted here", span)
        found[token.text] = match[1] or match[2]
    return found


def _refuse_time(expression: tree.Expression, levels: Levels) -> None:
    """Refuses what speaks of more than one state, at the smallest part that does."""
    for level, what in ((Level.TEMPORAL, "a whole behaviour"), (Level.ACTION, "a step")):
        if levels.of(expression) < level:
            continue
        part: tree.Node = expression
        while True:
            below = next((child for child in tree.children(part) if levels.of(child) >= level), None)
            if below is None:
                break
            part = below
        hint = None
        if isinstance(part, tree.Prime) or (isinstance(part, tree.Name) and part.name == "UNCHANGED"):
            hint = "write it without: an `expect` is read in the state after the step, a `when` in the one before"
        raise TlaSemanticError(
            f"`{part.span.text}` speaks of {what}, and there is one state here", part.span, hint=hint
        )


__all__ = ["Predicate", "Predicates"]
