"""Text → tree. Nothing but TlaSyntaxError escapes, whatever the text and however deep it nests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, UnexpectedToken
from lark.common import LexerConf
from lark.lexer import Lexer

from . import tree
from .build import Builder, Lexeme
from .context import classify
from .errors import TlaSyntaxError
from .junctions import bracket
from .mistakes import explain
from .scan import Token, module_tokens, tokens
from .source import SourceText

GRAMMAR = Path(__file__).parent / "grammar.lark"

MAX_DEPTH = 400
"""The deepest that expressions may nest. ``a + b + c + …`` and ``/\\`` lists count once, however long they are."""


def parse_module(text: str, path: str = "<string>") -> tree.Module:
    """The first module of a text; what stands before its header and after its ``====`` is no code.

    ``path`` is what error messages call the text. Raises TlaSyntaxError only.
    """
    source = SourceText(path, text)
    module = _parse(module_tokens(source), source, "module_alone")
    assert isinstance(module, tree.Module)
    return module


def parse_expression(text: str, path: str = "<expression>", *, fields: bool = False) -> tree.Expression:
    """The expression that a text is; with ``fields`` a ``$name`` in it is a Name. Raises TlaSyntaxError only."""
    source = SourceText(path, text)
    expression = _parse(tokens(source, fields=fields), source, "expression_alone")
    assert isinstance(expression, tree.Expression)
    return expression


def _parse(found: list[Token], source: SourceText, start: str) -> tree.Node:
    found = bracket(classify(found), source)
    try:
        parsed: Any = _parser().parse((found, source), start)
    except UnexpectedToken as problem:
        raise explain(problem, found, source, _spellings()) from None
    assert isinstance(parsed, tree.Node)  # what the builder makes of both start rules
    _check_depth(parsed)
    return parsed


def _check_depth(root: tree.Node) -> None:
    """Refuses a tree that those who walk it recursively could not walk."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise TlaSyntaxError(
                f"This is nested more than {MAX_DEPTH} deep", node.span, hint="name a part of it by a definition"
            )
        # The left spine of `a + b + c` costs no depth: see evaluate.py, which walks it in a loop.
        spine = isinstance(node, tree.Apply) and len(node.arguments) == 2
        for place, child in enumerate(tree.children(node)):
            stack.append((child, depth if spine and place == 1 and isinstance(child, tree.Apply) else depth + 1))


class _Tokens(Lexer):
    """Hands Lark the tokens that are already there. A token's kind is the spelling of a terminal, or its name."""

    def __init__(self, conf: LexerConf) -> None:
        self.terminals = {terminal.name: terminal.name for terminal in conf.terminals}
        for terminal in conf.terminals:
            self.terminals.setdefault(str(terminal.pattern.value), terminal.name)

    def lex(self, data: Any) -> Iterator[Lexeme]:  # type: ignore[override]
        found, source = data
        for index, token in enumerate(found):
            yield Lexeme.of(self.terminals.get(token.kind, token.kind), token, index, source)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    # Lark resolves shift/reduce conflicts in silence: a test holds the list of those that are meant.
    return Lark(
        GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer=_Tokens,
        start=["module_alone", "expression_alone"],
        keep_all_tokens=True,
        maybe_placeholders=True,
        transformer=Builder(),
    )


@lru_cache(maxsize=1)
def _spellings() -> dict[str, str]:
    """The name of each of the grammar's terminals → how it is written."""
    return {terminal.name: str(terminal.pattern.value) for terminal in _parser().terminals}
