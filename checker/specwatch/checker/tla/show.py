r"""Trees printed back as TLA+, fully parenthesised: how a text was read, for ``specwatch parse --tree`` and for tests.

What is printed parses to a tree that is printed the same. A conjunction of three is ``((a /\ b) /\ c)``, bulleted or
not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from . import tree
from .operators import INFIX, POSTFIX, PREFIX

_Text = Generator[tree.Node, str, str]
"""The making of a node's text. It yields the nodes below, is sent their texts, and returns its own."""

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"})
_BRACKETED = (
    tree.Name, tree.Tuple, tree.SetEnumeration, tree.SetFilter, tree.SetMap, tree.FunctionConstructor,
    tree.FunctionSet, tree.RecordConstructor, tree.RecordSet, tree.Except,
)  # fmt: skip
_SYMBOLS = INFIX.keys() | PREFIX.keys() | POSTFIX.keys()


def show_tree(node: tree.Node) -> str:
    """A module, a unit or an expression as TLA+ text, every operator in parentheses."""
    stack: list[_Text] = [_text(node)]
    sent: str | None = None
    while True:
        try:
            # A generator that has not begun takes nothing but None.
            below = next(stack[-1]) if sent is None else stack[-1].send(sent)
            stack.append(_text(below))
            sent = None
        except StopIteration as done:
            stack.pop()
            if not stack:
                return str(done.value)
            sent = done.value


def _text(node: tree.Node) -> _Text:
    return _WAYS[type(node)](node)


def _all(nodes: Iterable[tree.Node], separator: str = ", ") -> _Text:
    texts = []
    for node in nodes:
        text = yield node
        texts.append(text)
    return separator.join(texts)


# --- leaves and operators ---------------------------------------------------------------------------------------------


def _plain(make: Callable[[Any], str]) -> Callable[[Any], _Text]:
    def text(node: tree.Node) -> _Text:
        yield from ()
        return make(node)

    return text


def _name(node: tree.Name) -> _Text:
    parts = []
    for step in node.path:
        arguments = yield from _arguments(step.arguments)
        parts.append(f"{step.name}({arguments})" if step.arguments else step.name)
    if node.name:
        parts.append(node.name)
    return "!".join(parts)


def _apply(node: tree.Apply) -> _Text:
    name = node.operator.name
    if not node.operator.path:
        if name in INFIX and len(node.arguments) == 2:
            return (yield from _infix(_written(name), node.arguments))
        if name in PREFIX and len(node.arguments) == 1:
            return f"({'-' if name == '-.' else name} {yield node.arguments[0]})"
        if name in POSTFIX and len(node.arguments) == 1:
            return f"({yield node.arguments[0]}{name})"
    return f"{yield node.operator}({yield from _arguments(node.arguments)})"


def _arguments(nodes: tuple[tree.Expression, ...]) -> _Text:
    text = yield from _all(nodes)
    first = nodes[0] if nodes else None
    # `(*` would begin a comment, and `(+)` is an operator of its own.
    return f" {text}" if isinstance(first, tree.Name) and first.name in _SYMBOLS else text


def _written(name: str) -> str:
    return {r"\land": "/\\", r"\lor": "\\/"}.get(name, name)


def _infix(operator: str, items: tuple[tree.Expression, ...]) -> _Text:
    text = yield items[0]
    pieces = [text]
    for item in items[1:]:
        text = yield item
        pieces.append(f" {operator} {text})")
    return "(" * (len(items) - 1) + "".join(pieces)


def _prime(node: tree.Prime) -> _Text:
    return f"({yield node.body}')"


def _function_application(node: tree.FunctionApplication) -> _Text:
    return f"{yield node.function}[{yield from _all(node.arguments)}]"


def _field(node: tree.Field) -> _Text:
    return f"{yield node.record}.{node.name}"


def _product(node: tree.Product) -> _Text:
    return "(" + (yield from _all(node.factors, " \\X ")) + ")"


# --- what binds names -------------------------------------------------------------------------------------------------


def _bound(node: tree.Bound) -> _Text:
    names = ", ".join(node.names)
    pattern = f"<<{names}>>" if node.tuple_pattern else names
    return pattern if node.domain is None else f"{pattern} \\in {yield node.domain}"


def _quantifier(node: tree.Quantifier) -> _Text:
    return f"({node.kind} {yield from _all(node.bounds)} : {yield node.body})"


def _temporal_quantifier(node: tree.TemporalQuantifier) -> _Text:
    return f"({node.kind} {', '.join(node.names)} : {yield node.body})"


def _choose(node: tree.Choose) -> _Text:
    return f"(CHOOSE {yield node.bound} : {yield node.body})"


def _parameter(node: tree.Parameter) -> str:
    if node.name in INFIX and node.arity == 2:
        return f"_ {node.name} _"
    if node.name in PREFIX:
        return f"{node.name} _"
    if node.name in POSTFIX:
        return f"_ {node.name}"
    return node.name + (f"({', '.join('_' * node.arity)})" if node.arity else "")


def _parameters(parameters: tuple[tree.Parameter, ...]) -> str:
    return ", ".join(map(_parameter, parameters))


def _lambda(node: tree.Lambda) -> _Text:
    return f"LAMBDA {_parameters(node.parameters)} : {yield node.body}"


# --- sets, functions, records, tuples ---------------------------------------------------------------------------------


def _set_enumeration(node: tree.SetEnumeration) -> _Text:
    return "{" + (yield from _all(node.items)) + "}"


def _set_filter(node: tree.SetFilter) -> _Text:
    return f"{{{yield node.bound} : {yield node.predicate}}}"


def _set_map(node: tree.SetMap) -> _Text:
    return f"{{{yield node.body} : {yield from _all(node.bounds)}}}"


def _function_constructor(node: tree.FunctionConstructor) -> _Text:
    return f"[{yield from _all(node.bounds)} |-> {yield node.body}]"


def _function_set(node: tree.FunctionSet) -> _Text:
    return f"[{yield node.domain} -> {yield node.range}]"


def _record(node: tree.RecordConstructor | tree.RecordSet) -> _Text:
    arrow = "|->" if isinstance(node, tree.RecordConstructor) else ":"
    fields = []
    for name, value in node.fields:
        fields.append(f"{name} {arrow} {yield value}")
    return f"[{', '.join(fields)}]"


def _update(node: tree.Update) -> _Text:
    path = []
    for component in node.path:
        text = f".{component}" if isinstance(component, str) else f"[{yield from _all(component)}]"
        path.append(text)
    return f"!{''.join(path)} = {yield node.value}"


def _except(node: tree.Except) -> _Text:
    return f"[{yield node.base} EXCEPT {yield from _all(node.updates)}]"


def _tuple(node: tree.Tuple) -> _Text:
    return f"<<{yield from _all(node.items)}>>"


# --- control, actions, temporal formulas ------------------------------------------------------------------------------


def _if(node: tree.If) -> _Text:
    return f"(IF {yield node.condition} THEN {yield node.then} ELSE {yield node.otherwise})"


def _case(node: tree.Case) -> _Text:
    arms = []
    for guard, value in node.arms:
        arms.append(f"{yield guard} -> {yield value}")
    if node.other is not None:
        arms.append(f"OTHER -> {yield node.other}")
    return f"(CASE {' [] '.join(arms)})"


def _let(node: tree.Let) -> _Text:
    return f"(LET {yield from _all(node.units, ' ')} IN {yield node.body})"


def _label(node: tree.Label) -> _Text:
    parameters = f"({', '.join(node.parameters)})" if node.parameters else ""
    return f"({node.name}{parameters} :: {yield node.body})"


def _subscript(node: tree.Expression) -> _Text:
    """A subscript is a name, an operator's application, or in brackets: all else needs parentheses."""
    text = yield node
    is_application = isinstance(node, tree.Apply) and node.operator.name not in _SYMBOLS
    return text if is_application or isinstance(node, _BRACKETED) else f"({text})"


def _action_box(node: tree.ActionBox) -> _Text:
    left, right = ("[", "]_") if node.kind == "[]" else ("<<", ">>_")
    return f"({left}{yield node.action}{right}{yield from _subscript(node.subscript)})"


def _fairness(node: tree.Fairness) -> _Text:
    return f"{node.kind}_{yield from _subscript(node.subscript)}({yield node.action})"


# --- units ------------------------------------------------------------------------------------------------------------


def _head(name: str, parameters: tuple[tree.Parameter, ...]) -> str:
    names = [parameter.name for parameter in parameters]
    if name in INFIX and len(names) == 2:
        return f"{names[0]} {name} {names[1]}"
    if name in PREFIX:
        return f"{name} {names[0]}"
    if name in POSTFIX:
        return f"{names[0]} {name}"
    return f"{name}({_parameters(parameters)})" if parameters else name


def _local(node: tree.Definition | tree.FunctionDefinition | tree.Instance) -> str:
    return "LOCAL " if node.local else ""


def _definition(node: tree.Definition) -> _Text:
    return f"{_local(node)}{_head(node.name, node.parameters)} == {yield node.body}"


def _function_definition(node: tree.FunctionDefinition) -> _Text:
    return f"{_local(node)}{node.name}[{yield from _all(node.bounds)}] == {yield node.body}"


def _substitution(node: tree.Substitution) -> _Text:
    return f"{node.name} <- {yield node.value}"


def _instance(node: tree.Instance) -> _Text:
    head = f"{_head(node.name, node.parameters)} == " if node.name is not None else ""
    given = f" WITH {yield from _all(node.substitutions)}" if node.substitutions else ""
    return f"{_local(node)}{head}INSTANCE {node.module}{given}"


def _statement(keyword: str) -> Callable[[Any], _Text]:
    def text(node: tree.Assume | tree.Theorem) -> _Text:
        name = f"{node.name} == " if node.name is not None else ""
        body = "TRUE" if node.body is None else (yield node.body)
        return f"{keyword} {name}{body}"

    return text


def _module(node: tree.Module) -> _Text:
    lines = [f"---- MODULE {node.name} ----"]
    if node.extends:
        lines.append(f"EXTENDS {yield from _all(node.extends)}")
    for unit in node.units:
        text = yield unit
        lines.append(text)
    return "\n".join([*lines, "===="])


_WAYS: dict[type[tree.Node], Callable[[Any], _Text]] = {
    tree.Number: _plain(lambda node: _digits(node.value)),
    tree.Decimal: _plain(lambda node: node.text),
    tree.String: _plain(lambda node: f'"{node.value.translate(_ESCAPES)}"'),
    tree.Name: _name,
    tree.At: _plain(lambda node: "@"),
    tree.Apply: _apply,
    tree.And: lambda node: _infix("/\\", node.items),
    tree.Or: lambda node: _infix("\\/", node.items),
    tree.Prime: _prime,
    tree.FunctionApplication: _function_application,
    tree.Field: _field,
    tree.Product: _product,
    tree.Bound: _bound,
    tree.Quantifier: _quantifier,
    tree.TemporalQuantifier: _temporal_quantifier,
    tree.Choose: _choose,
    tree.Parameter: _plain(_parameter),
    tree.Lambda: _lambda,
    tree.SetEnumeration: _set_enumeration,
    tree.SetFilter: _set_filter,
    tree.SetMap: _set_map,
    tree.FunctionConstructor: _function_constructor,
    tree.FunctionSet: _function_set,
    tree.RecordConstructor: _record,
    tree.RecordSet: _record,
    tree.Update: _update,
    tree.Except: _except,
    tree.Tuple: _tuple,
    tree.If: _if,
    tree.Case: _case,
    tree.Let: _let,
    tree.Label: _label,
    tree.ActionBox: _action_box,
    tree.Fairness: _fairness,
    tree.Constants: _plain(lambda node: f"CONSTANT {_parameters(node.declarations)}"),
    tree.Variables: _plain(lambda node: f"VARIABLE {_parameters(node.declarations)}"),
    tree.Recursive: _plain(lambda node: f"RECURSIVE {_parameters(node.declarations)}"),
    tree.Definition: _definition,
    tree.FunctionDefinition: _function_definition,
    tree.Substitution: _substitution,
    tree.Instance: _instance,
    tree.Assume: _statement("ASSUME"),
    tree.Theorem: _statement("THEOREM"),
    tree.Module: _module,
}


def _digits(value: int) -> str:
    """A natural number's decimal digits. Python refuses to print thousands of them at once."""
    pieces = []
    while value >= 10**4000:
        value, rest = divmod(value, 10**4000)
        pieces.append(f"{rest:04000d}")
    return "".join([str(value), *reversed(pieces)])
