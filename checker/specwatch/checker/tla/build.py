"""Grammar rules → tree nodes: one method a rule (or alias) of grammar.lark. Lark calls them bottom-up, in a loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from lark import Token as LarkToken
from lark import Transformer, v_args

from . import tree
from .errors import TlaSyntaxError
from .operators import Infix, Item, Operand, Prefix, Symbol, resolve
from .proofs import ProofPart, check_proof
from .scan import CANONICAL, Token
from .source import SourceText, Span

_E = TypeVar("_E", bound=tree.Expression)


class Lexeme(LarkToken):
    """A token as Lark wants it. ``type`` is the grammar's terminal; ``kind`` and ``place`` are the scanner's."""

    __slots__ = ("kind", "place", "span")
    kind: str
    place: int
    span: Span

    @classmethod
    def of(cls, terminal: str, token: Token, place: int, source: SourceText) -> Lexeme:
        lexeme = cls(terminal, token.text, token.start, end_pos=token.end)
        lexeme.kind = token.kind
        lexeme.place = place
        lexeme.span = Span(source, token.start, token.end)
        return lexeme


_Placed = Lexeme | tree.Node | Symbol
"""What has a ``span``."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Head:
    name: str
    parameters: tuple[tree.Parameter, ...]
    name_span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class _Instantiation:
    module: str
    substitutions: tuple[tree.Substitution, ...]
    span: Span


def _cover(first: _Placed | Span, last: _Placed | Span) -> Span:
    start = first if isinstance(first, Span) else first.span
    end = last if isinstance(last, Span) else last.span
    return dataclasses.replace(start, end=end.end)


def _widen(node: _E, first: _Placed, last: _Placed) -> _E:
    return dataclasses.replace(node, span=_cover(first, last))


def _without(items: Sequence[Any], *texts: str) -> tuple[Any, ...]:
    """The items that are no separator."""
    return tuple(item for item in items if not (isinstance(item, Lexeme) and item.kind in texts))


@v_args(inline=True)
class Builder(Transformer[Lexeme, Any]):
    """Keeps nothing between calls: every lexeme knows its place."""

    # --- the module ---------------------------------------------------------------------------------------------------

    def module_alone(self, module: tree.Module, _eof: Lexeme) -> tree.Module:
        return module

    def expression_alone(self, expression: tree.Expression, _eof: Lexeme) -> tree.Expression:
        return expression

    def module(self, header: Lexeme, name: Lexeme, _separator: Lexeme, *rest: Any) -> tree.Module:
        extends: tuple[Lexeme, ...] = rest[1] if len(rest) == 4 else ()
        names = tuple(tree.Name(extended.span, str(extended)) for extended in extends)
        return tree.Module(_cover(header, rest[-1]), str(name), names, rest[-2], header.span.source)

    def units(self, *units: tree.Unit | None) -> tuple[tree.Unit, ...]:
        return tuple(unit for unit in units if unit is not None)

    def separator(self, _separator: Lexeme) -> None:
        return None

    def use_or_hide(self, *_parts: Any) -> None:
        return None

    def names(self, *items: Lexeme) -> tuple[Lexeme, ...]:
        return _without(items, ",")

    # --- declarations and definitions ---------------------------------------------------------------------------------

    def variables(self, keyword: Lexeme, names: tuple[Lexeme, ...]) -> tree.Variables:
        return tree.Variables(_cover(keyword, names[-1]), tuple(tree.Parameter(name.span, str(name)) for name in names))

    def constants(self, keyword: Lexeme, declarations: tuple[tree.Parameter, ...]) -> tree.Constants:
        return tree.Constants(_cover(keyword, declarations[-1]), declarations)

    def recursive(self, keyword: Lexeme, declarations: tuple[tree.Parameter, ...]) -> tree.Recursive:
        return tree.Recursive(_cover(keyword, declarations[-1]), declarations)

    def declarations(self, *items: tree.Parameter | Lexeme) -> tuple[tree.Parameter, ...]:
        return _without(items, ",")

    def named(self, name: Lexeme) -> tree.Parameter:
        return tree.Parameter(name.span, str(name))

    def named_operator(self, name: Lexeme, *holes: Lexeme) -> tree.Parameter:
        return tree.Parameter(_cover(name, holes[-1]), str(name), sum(hole.kind == "_" for hole in holes))

    def prefix_declaration(self, symbol: Symbol | Lexeme, hole: Lexeme) -> tree.Parameter:
        return tree.Parameter(_cover(symbol, hole), _canonical(symbol), 1)

    def infix_declaration(self, first: Lexeme, symbol: Symbol, last: Lexeme) -> tree.Parameter:
        return tree.Parameter(_cover(first, last), symbol.name, 2)

    def postfix_declaration(self, hole: Lexeme, symbol: Symbol) -> tree.Parameter:
        return tree.Parameter(_cover(hole, symbol), symbol.name, 1)

    def constant_head(self, name: Lexeme) -> _Head:
        return _Head(str(name), (), name.span)

    def operator_head(
        self, name: Lexeme, _open: Lexeme, parameters: tuple[tree.Parameter, ...], _close: Lexeme
    ) -> _Head:
        return _Head(str(name), parameters, name.span)

    def prefix_head(self, symbol: Symbol | Lexeme, name: Lexeme) -> _Head:
        return _Head(_canonical(symbol), (self.named(name),), symbol.span)

    def infix_head(self, left: Lexeme, symbol: Symbol, right: Lexeme) -> _Head:
        return _Head(symbol.name, (self.named(left), self.named(right)), symbol.span)

    def postfix_head(self, name: Lexeme, symbol: Symbol) -> _Head:
        return _Head(symbol.name, (self.named(name),), symbol.span)

    def definition(
        self, local: Lexeme | None, marker: Lexeme, head: _Head, _equals: Lexeme, body: tree.Expression
    ) -> tree.Definition:
        span = _cover(local or marker, body)
        return tree.Definition(span, head.name, head.parameters, body, local is not None, head.name_span)

    def function_definition(
        self, local: Lexeme | None, marker: Lexeme, name: Lexeme, *rest: Any
    ) -> tree.FunctionDefinition:
        _open, bounds, _close, _equals, body = rest
        return tree.FunctionDefinition(
            _cover(local or marker, body), str(name), bounds, body, local is not None, name.span
        )

    def instance_definition(
        self, local: Lexeme | None, marker: Lexeme, head: _Head, _equals: Lexeme, instance: _Instantiation
    ) -> tree.Instance:
        if not (head.name[0].isalnum() or head.name[0] in "_@"):
            raise TlaSyntaxError(
                f"An instance cannot be named by the operator `{head.name}`", instance.span, hint="give it a name"
            )
        span = _cover(local or marker, instance.span)
        return tree.Instance(
            span, head.name, head.parameters, instance.module, instance.substitutions, local is not None
        )

    def instance(self, keyword: Lexeme, module: Lexeme, *rest: Any) -> _Instantiation:
        substitutions = tuple(item for item in rest if isinstance(item, tree.Substitution))
        span = _cover(keyword, substitutions[-1] if substitutions else module)
        return _Instantiation(str(module), substitutions, span)

    def unnamed_instance(self, instance: _Instantiation) -> tree.Instance:
        return tree.Instance(instance.span, None, (), instance.module, instance.substitutions, False)

    def local_instance(self, keyword: Lexeme, instance: _Instantiation) -> tree.Instance:
        return tree.Instance(_cover(keyword, instance.span), None, (), instance.module, instance.substitutions, True)

    def substitution(self, name: Symbol | Lexeme, _arrow: Lexeme, value: tree.Expression) -> tree.Substitution:
        return tree.Substitution(_cover(name, value), _canonical(name), value)

    # --- assumptions, theorems ----------------------------------------------------------------------------------------

    def assume(self, keyword: Lexeme, body: tree.Expression) -> tree.Assume:
        return tree.Assume(_cover(keyword, body), None, body)

    def named_assume(
        self, keyword: Lexeme, _marker: Lexeme, name: Lexeme, _equals: Lexeme, body: tree.Expression
    ) -> tree.Assume:
        return tree.Assume(_cover(keyword, body), str(name), body)

    def theorem(self, keyword: Lexeme, statement: tree.Expression | Span, proof: tuple[ProofPart, ...]) -> tree.Theorem:
        return self._theorem(keyword, None, statement, proof)

    def named_theorem(
        self, keyword: Lexeme, _marker: Lexeme, name: Lexeme, _equals: Lexeme, *rest: Any
    ) -> tree.Theorem:
        return self._theorem(keyword, str(name), *rest)

    def _theorem(
        self, keyword: Lexeme, name: str | None, statement: tree.Expression | Span, proof: tuple[ProofPart, ...]
    ) -> tree.Theorem:
        check_proof(proof)
        body = statement if isinstance(statement, tree.Expression) else None
        return tree.Theorem(_cover(keyword, proof[-1].span if proof else statement), name, body)

    def assume_prove(self, keyword: Lexeme, *rest: Any) -> Span:
        return _cover(keyword, rest[-1])

    def proof(self, *parts: ProofPart) -> tuple[ProofPart, ...]:
        return parts

    def proof_keyword(self, keyword: Lexeme) -> ProofPart:
        return ProofPart("PROOF", keyword.span)

    def proof_end(self, keyword: Lexeme, *_facts: Any) -> ProofPart:
        return ProofPart("END", keyword.span)

    def step_with_proof(self, step: Lexeme, *_claim: Any) -> ProofPart:
        return ProofPart("CLAIM", step.span)

    def qed_step(self, step: Lexeme, _qed: Lexeme) -> ProofPart:
        return ProofPart("QED", step.span)

    def step(self, step: Lexeme, *_duty: Any) -> ProofPart:
        return ProofPart("STEP", step.span)

    # --- flat expressions ---------------------------------------------------------------------------------------------

    def closed(self, chain: list[Item], operand: Operand) -> tree.Expression:
        chain.append(operand)
        return resolve(chain)

    def open(self, chain: list[Item], expression: tree.Expression) -> tree.Expression:
        chain.append(Operand(expression))
        return resolve(chain)

    def labelled(self, chain: list[Item], label: Operand, colons: Lexeme, body: tree.Expression) -> tree.Expression:
        applied = label.node if isinstance(label.node, tree.Apply) else None
        name = applied.operator if applied is not None else label.node
        arguments = applied.arguments if applied is not None else ()
        names = [item.name for item in arguments if isinstance(item, tree.Name) and not item.path]
        if label.postfix or not isinstance(name, tree.Name) or name.path or len(names) != len(arguments):
            hint = "a label is `name ::` or `name(x, y) ::`"
            raise TlaSyntaxError("`::` does not follow a label", colons.span, hint=hint)
        node = tree.Label(_cover(label.node, body), name.name, tuple(names), body)
        chain.append(Operand(node))
        return resolve(chain)

    def no_operators(self) -> list[Item]:
        return []

    def with_prefix(self, chain: list[Item], symbol: Symbol | Lexeme) -> list[Item]:
        chain.append(Prefix(symbol if isinstance(symbol, Symbol) else Symbol("-.", str(symbol), symbol.span)))
        return chain

    def with_infix(self, chain: list[Item], operand: Operand, symbol: Symbol) -> list[Item]:
        chain.append(operand)
        chain.append(Infix(symbol))
        return chain

    def plain(self, atom: tree.Expression) -> Operand:
        return Operand(atom)

    def with_postfix(self, operand: Operand, symbol: Symbol) -> Operand:
        span = _cover(operand.node, symbol)
        if symbol.name == "'":
            node: tree.Expression = tree.Prime(span, operand.node)
        else:
            node = tree.Apply(span, tree.Name(symbol.span, symbol.name), (operand.node,))
        return Operand(node, (*operand.postfix, symbol))

    def function_application(
        self, operand: Operand, _open: Lexeme, arguments: tuple[tree.Expression, ...], close: Lexeme
    ) -> Operand:
        node = tree.FunctionApplication(_cover(operand.node, close), operand.node, arguments)
        return Operand(node, operand.postfix)

    def field(self, operand: Operand, _dot: Lexeme, name: Lexeme) -> Operand:
        return Operand(tree.Field(_cover(operand.node, name), operand.node, str(name)), operand.postfix)

    def expressions(self, *items: tree.Expression | Lexeme) -> tuple[tree.Expression, ...]:
        return _without(items, ",")

    # --- open-ended expressions ---------------------------------------------------------------------------------------

    def quantifier(
        self, kind: Lexeme, bounds: tuple[tree.Bound, ...], _colon: Lexeme, body: tree.Expression
    ) -> tree.Quantifier:
        return tree.Quantifier(_cover(kind, body), kind.kind, bounds, body)

    def unbounded_quantifier(
        self, kind: Lexeme, names: tuple[Lexeme, ...], _colon: Lexeme, body: tree.Expression
    ) -> tree.Quantifier:
        bound = tree.Bound(_cover(names[0], names[-1]), tuple(map(str, names)), False, None, _spans(names))
        return tree.Quantifier(_cover(kind, body), kind.kind, (bound,), body)

    def temporal_quantifier(
        self, kind: Lexeme, names: tuple[Lexeme, ...], _colon: Lexeme, body: tree.Expression
    ) -> tree.TemporalQuantifier:
        return tree.TemporalQuantifier(_cover(kind, body), kind.kind, tuple(map(str, names)), body, _spans(names))

    def unbounded_choose(
        self, keyword: Lexeme, pattern: Lexeme | tree.Bound, _colon: Lexeme, body: tree.Expression
    ) -> tree.Choose:
        return tree.Choose(_cover(keyword, body), _bound(pattern, None), body)

    def choose(self, keyword: Lexeme, pattern: Lexeme | tree.Bound, _in: Lexeme, *rest: Any) -> tree.Choose:
        domain, _colon, body = rest
        return tree.Choose(_cover(keyword, body), _bound(pattern, domain), body)

    def if_then_else(
        self, keyword: Lexeme, condition: tree.Expression, _then: Lexeme, then: tree.Expression, *rest: Any
    ) -> tree.If:
        _else, otherwise = rest
        return tree.If(_cover(keyword, otherwise), condition, then, otherwise)

    def case(self, keyword: Lexeme, arms: list[tuple[tree.Expression, tree.Expression]]) -> tree.Case:
        return tree.Case(_cover(keyword, arms[-1][1]), tuple(arms), None)

    def case_with_other(
        self, keyword: Lexeme, arms: list[tuple[tree.Expression, tree.Expression]], *rest: Any
    ) -> tree.Case:
        _box, _other, _arrow, other = rest
        return tree.Case(_cover(keyword, other), tuple(arms), other)

    def first_arm(self, arm: tuple[tree.Expression, tree.Expression]) -> list[tuple[tree.Expression, tree.Expression]]:
        return [arm]

    def next_arm(
        self,
        arms: list[tuple[tree.Expression, tree.Expression]],
        _box: Lexeme,
        arm: tuple[tree.Expression, tree.Expression],
    ) -> list[tuple[tree.Expression, tree.Expression]]:
        arms.append(arm)
        return arms

    def arm(
        self, guard: tree.Expression, _arrow: Lexeme, value: tree.Expression
    ) -> tuple[tree.Expression, tree.Expression]:
        return guard, value

    def let(self, keyword: Lexeme, *rest: Any) -> tree.Let:
        *units, _in, body = rest
        return tree.Let(_cover(keyword, body), tuple(units), body)

    def bounds(self, *items: tree.Bound | Lexeme) -> tuple[tree.Bound, ...]:
        return _without(items, ",")

    def names_bound(self, names: tuple[Lexeme, ...], _in: Lexeme, domain: tree.Expression) -> tree.Bound:
        return tree.Bound(_cover(names[0], domain), tuple(map(str, names)), False, domain, _spans(names))

    def tuple_bound(self, pattern: tree.Bound, _in: Lexeme, domain: tree.Expression) -> tree.Bound:
        return _bound(pattern, domain)

    def tuple_pattern(self, first: Lexeme, names: tuple[Lexeme, ...] | None, last: Lexeme) -> tree.Bound:
        return tree.Bound(_cover(first, last), tuple(map(str, names or ())), True, None, _spans(names or ()))

    # --- atoms --------------------------------------------------------------------------------------------------------

    def number(self, lexeme: Lexeme) -> tree.Number:
        base = {"b": 2, "o": 8, "h": 16}.get(lexeme[1:2].lower() if lexeme.startswith("\\") else "", 10)
        return tree.Number(lexeme.span, _natural(lexeme, base))

    def decimal(self, lexeme: Lexeme) -> tree.Decimal:
        return tree.Decimal(lexeme.span, str(lexeme))

    def string(self, lexeme: Lexeme) -> tree.String:
        return tree.String(lexeme.span, _unescape(lexeme[1:-1]))

    def named_reference(self, name: Lexeme | Symbol) -> tree.Name:
        if isinstance(name, Symbol) and name.name == r"\times":
            raise TlaSyntaxError(f"`{name.text}` cannot be used as an operator by itself", name.span)
        return tree.Name(name.span, _canonical(name))

    def selected(self, base: tree.Name | tree.Apply, _bang: Lexeme, name: Lexeme | Symbol) -> tree.Name:
        return tree.Name(_cover(base, name), _canonical(name), _path(base))

    def selected_arguments(self, base: tree.Name | tree.Apply, _bang: Lexeme, *rest: Any) -> tree.Name:
        arguments = _without(rest, "(", ",", ")")
        step = tree.PathStep(_cover(base, rest[-1]), "", arguments)
        return tree.Name(_cover(base, rest[-1]), "", (*_path(base), step))

    def applied(self, operator: tree.Name, *rest: Any) -> tree.Apply:
        return tree.Apply(_cover(operator, rest[-1]), operator, _without(rest, "(", ",", ")"))

    def applied_or_named(self, atom: tree.Expression) -> tree.Expression:
        return _at(atom)

    def lambda_(self, keyword: Lexeme, names: tuple[Lexeme, ...], _colon: Lexeme, body: tree.Expression) -> tree.Lambda:
        return tree.Lambda(_cover(keyword, body), tuple(self.named(name) for name in names), body)

    def action_box(self, first: Lexeme, action: tree.Expression, _close: Lexeme, v: tree.Expression) -> tree.ActionBox:
        return tree.ActionBox(_cover(first, v), "[]", action, _at(v))

    def action_diamond(
        self, first: Lexeme, action: tree.Expression, _close: Lexeme, v: tree.Expression
    ) -> tree.ActionBox:
        return tree.ActionBox(_cover(first, v), "<>", action, _at(v))

    def fairness_of_name(self, kind: Lexeme, applied: tree.Apply) -> tree.Fairness:
        if len(applied.arguments) != 1 or isinstance(applied.arguments[0], tree.Lambda):
            raise TlaSyntaxError(
                f"`{kind}` takes a subscript and one action", applied.span, hint=f"write `{kind}vars(Action)`"
            )
        subscript = _at(applied.operator)
        return tree.Fairness(_cover(kind, applied), kind.kind[:2], subscript, applied.arguments[0])

    def fairness(
        self, kind: Lexeme, subscript: tree.Expression, _open: Lexeme, action: tree.Expression, close: Lexeme
    ) -> tree.Fairness:
        return tree.Fairness(_cover(kind, close), kind.kind[:2], subscript, action)

    def conjunction(self, first: Lexeme, *rest: Any) -> tree.Expression:
        items = _without(rest, "NEXT", "CLOSE")
        return items[0] if len(items) == 1 else tree.And(_cover(first, items[-1]), items)

    def disjunction(self, first: Lexeme, *rest: Any) -> tree.Expression:
        items = _without(rest, "NEXT", "CLOSE")
        return items[0] if len(items) == 1 else tree.Or(_cover(first, items[-1]), items)

    def parenthesised(self, first: Lexeme, inner: tree.Expression, last: Lexeme) -> tree.Expression:
        # The span holds the parentheses, so that what covers it quotes them.
        return _widen(inner, first, last)

    def set_enumeration(self, first: Lexeme, *rest: Any) -> tree.SetEnumeration:
        items = rest[0] if len(rest) == 2 else ()
        return tree.SetEnumeration(_cover(first, rest[-1]), items)

    def membership_enumeration(
        self, first: Lexeme, pattern: Lexeme | tree.Bound, symbol: Lexeme, domain: tree.Expression, *rest: Any
    ) -> tree.SetEnumeration:
        names = _pattern_expression(pattern)
        member = tree.Apply(_cover(names, domain), tree.Name(symbol.span, r"\in"), (names, domain))
        others = rest[1] if len(rest) == 3 else ()
        return tree.SetEnumeration(_cover(first, rest[-1]), (member, *others))

    def set_filter(self, first: Lexeme, pattern: Lexeme | tree.Bound, _in: Lexeme, *rest: Any) -> tree.SetFilter:
        domain, _colon, predicate, last = rest
        return tree.SetFilter(_cover(first, last), _bound(pattern, domain), predicate)

    def set_map(
        self, first: Lexeme, body: tree.Expression, _colon: Lexeme, bounds: tuple[tree.Bound, ...], last: Lexeme
    ) -> tree.SetMap:
        return tree.SetMap(_cover(first, last), body, bounds)

    def tuple_(self, first: Lexeme, *rest: Any) -> tree.Tuple:
        items = rest[0] if len(rest) == 2 else ()
        return tree.Tuple(_cover(first, rest[-1]), items)

    def function_constructor(
        self, first: Lexeme, bounds: tuple[tree.Bound, ...], _arrow: Lexeme, body: tree.Expression, last: Lexeme
    ) -> tree.FunctionConstructor:
        return tree.FunctionConstructor(_cover(first, last), bounds, body)

    def function_set(
        self, first: Lexeme, domain: tree.Expression, _arrow: Lexeme, range_: tree.Expression, last: Lexeme
    ) -> tree.FunctionSet:
        return tree.FunctionSet(_cover(first, last), domain, range_)

    def record_constructor(self, first: Lexeme, *rest: Any) -> tree.RecordConstructor:
        return tree.RecordConstructor(_cover(first, rest[-1]), *_fields(rest))

    def record_set(self, first: Lexeme, *rest: Any) -> tree.RecordSet:
        return tree.RecordSet(_cover(first, rest[-1]), *_fields(rest))

    def except_(self, first: Lexeme, base: tree.Expression, _except: Lexeme, *rest: Any) -> tree.Except:
        return tree.Except(_cover(first, rest[-1]), base, _without(rest[:-1], ","))

    def update(self, bang: Lexeme, *rest: Any) -> tree.Update:
        *path, _equals, value = rest
        return tree.Update(_cover(bang, value), tuple(path), value)

    def field_component(self, _dot: Lexeme, name: Lexeme) -> str:
        if name == "@":
            raise TlaSyntaxError("`@` is no field", name.span)
        return str(name)

    def index_component(
        self, _open: Lexeme, indices: tuple[tree.Expression, ...], _close: Lexeme
    ) -> tuple[tree.Expression, ...]:
        return indices

    # --- operator symbols ---------------------------------------------------------------------------------------------

    def symbol(self, lexeme: Lexeme) -> Symbol:
        return Symbol(CANONICAL.get(str(lexeme), str(lexeme)), str(lexeme), lexeme.span)

    prefix = infix = postfix = symbol


def _canonical(name: Symbol | Lexeme) -> str:
    return name.name if isinstance(name, Symbol) else str(name)


def _at(atom: tree.Expression) -> tree.Expression:
    """``@`` is an identifier to the scanner: SANY accepts ``@ == 1``."""
    return tree.At(atom.span) if isinstance(atom, tree.Name) and atom.name == "@" and not atom.path else atom


def _path(base: tree.Name | tree.Apply) -> tuple[tree.PathStep, ...]:
    if isinstance(base, tree.Name):
        if not base.name:
            return base.path
        return (*base.path, tree.PathStep(base.span, base.name))
    return (*base.operator.path, tree.PathStep(base.span, base.operator.name, base.arguments))


def _bound(pattern: Lexeme | tree.Bound, domain: tree.Expression | None) -> tree.Bound:
    span = _cover(pattern, domain) if domain is not None else pattern.span
    if isinstance(pattern, tree.Bound):
        return tree.Bound(span, pattern.names, True, domain, pattern.name_spans)
    return tree.Bound(span, (str(pattern),), False, domain, (pattern.span,))


def _pattern_expression(pattern: Lexeme | tree.Bound) -> tree.Expression:
    if isinstance(pattern, tree.Bound):
        return tree.Tuple(pattern.span, tuple(tree.Name(pattern.span, name) for name in pattern.names))
    return tree.Name(pattern.span, str(pattern))


def _fields(items: tuple[Any, ...]) -> tuple[tuple[tuple[str, tree.Expression], ...], tuple[Span, ...]]:
    names = [item for item in items if isinstance(item, Lexeme) and item.kind in ("FIELD", "NAME")]
    values = [item for item in items if isinstance(item, tree.Expression)]
    return tuple(zip(map(str, names), values, strict=True)), _spans(names)


def _spans(lexemes: Sequence[Lexeme]) -> tuple[Span, ...]:
    return tuple(lexeme.span for lexeme in lexemes)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    result = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters)
            character = _ESCAPES.get(escaped, escaped)
        result.append(character)
    return "".join(result)


_CHUNK = 4000


def _natural(lexeme: Lexeme, base: int) -> int:
    """The value of a numeral. Long decimals go in pieces: Python refuses to read thousands of digits at once."""
    digits = str(lexeme[2:]) if base != 10 else str(lexeme)
    if base != 10 or len(digits) <= _CHUNK:
        return int(digits, base)
    value = 0
    for start in range(0, len(digits), _CHUNK):
        piece = digits[start : start + _CHUNK]
        value = value * 10 ** len(piece) + int(piece)
    return value
