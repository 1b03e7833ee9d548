r"""What a token is by its neighbours, so that the grammar needs no look-ahead.

* A ``MARKER`` stands before each definition, since nothing ends the one before it (SANY's ``belchDEF``).
* An operator where an operand is meant is a ``SYMBOL``, as in ``Foo(+, \cup)`` and ``I!+(1, 2)``; ``/\`` there begins a
  bulleted list: ``AND_BULLET``, ``OR_BULLET``.
* ``{`` and ``[`` are ``BOUND_BRACE`` and ``BOUND_BRACKET`` before ``x \in`` or ``<<x, y>> \in`` (``matchFcnConst``).
* After ``!`` comes a name or a ``SELECTOR`` (``V!1``, ``V!<<``, ``V!:``).
* ``<1>2`` is a ``STEP_NAME`` where an operand is meant.
* ``1.5`` is a ``DECIMAL``.
* A record's first field is a ``FIELD``, and reserved words are names where they are fields.
* ``CASE`` that begins a proof step is a ``PROOF_CASE``.
"""

from __future__ import annotations

import re

from .operators import INFIX, POSTFIX, PREFIX
from .scan import RESERVED, Token

OPERAND_ENDS = frozenset(
    {"NAME", "NUMBER", "DECIMAL", "STRING", "STEP_NAME", "SYMBOL", "SELECTOR", ")", "]", "}", ">>", "_", *POSTFIX}
)
"""The kinds of tokens that can end an operand: an operator after one of them is infix or postfix."""

_BULLETS = {"/\\": "AND_BULLET", "∧": "AND_BULLET", "\\/": "OR_BULLET", "∨": "OR_BULLET"}
_ARGUMENT_ENDS = frozenset({",", ")", "<-"})
_UNIT_STARTS = frozenset({
    "LOCAL", "INSTANCE", "THEOREM", "PROPOSITION", "ASSUME", "ASSUMPTION", "FOOTER", "SEPARATOR", "HEADER", "CONSTANT",
    "VARIABLE", "RECURSIVE",
})  # fmt: skip
_STEP_STARTS_AFTER = frozenset({"OBVIOUS", "OMITTED", "PROOF", "QED"})
_STEP_NAME = re.compile(r"<[0-9]+>[A-Za-z0-9_]+|<\*>[A-Za-z0-9]+")
_WORDS = frozenset(RESERVED.values())
_OPERATORS = INFIX.keys() | PREFIX.keys() | POSTFIX.keys()


def classify(tokens: list[Token]) -> list[Token]:
    """The tokens with their kinds as above, and the markers."""
    heads = _definition_heads(tokens)
    found: list[Token] = []
    before = ""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if index in heads:
            found.append(Token("MARKER", token.text, token.start, token.end))
            before = "MARKER"
        after = tokens[index + 1].kind if index + 1 < len(tokens) else ""
        if index + 1 in heads:
            after = "MARKER"
        kind = token.kind
        if kind == "NUMBER" and after == "." and tokens[index + 2].kind == "NUMBER" and before != "!":
            last = tokens[index + 2]
            token = Token("DECIMAL", f"{token.text}.{last.text}", token.start, last.end)
            index += 2
        elif before == "!" and kind not in ("NAME", "(", "[", "."):
            token = _after_bang(token)
        elif before == "[" and after in ("|->", ":") and (kind == "NAME" or kind in _WORDS):
            token = token._replace(kind="FIELD")
        elif kind in _WORDS and (before == "." or (before == "," and after in ("|->", ":"))):
            token = token._replace(kind="NAME")
        elif kind == "CASE" and before == "STEP":
            token = token._replace(kind="PROOF_CASE")
        elif before not in OPERAND_ENDS:
            if kind in _OPERATORS:
                token = _operator_as_operand(token, before, after)
            elif kind in ("{", "[") and _is_bound(tokens, index + 1, kind):
                token = token._replace(kind="BOUND_BRACE" if kind == "{" else "BOUND_BRACKET")
            elif kind == "STEP" and before not in _STEP_STARTS_AFTER and _STEP_NAME.fullmatch(token.text):
                token = token._replace(kind="STEP_NAME")
        found.append(token)
        before = token.kind
        index += 1
    return found


def _after_bang(token: Token) -> Token:
    if token.kind in _OPERATORS:
        return token._replace(kind="SYMBOL")
    if token.kind in ("<<", ">>", ":", "NUMBER"):
        return token._replace(kind="SELECTOR")
    return token


def _operator_as_operand(token: Token, before: str, after: str) -> Token:
    is_argument = after in _ARGUMENT_ENDS or (before == "<-" and (after == "MARKER" or after in _UNIT_STARTS))
    if token.text in _BULLETS:
        return token._replace(kind="SYMBOL" if is_argument else _BULLETS[token.text])
    if (token.kind in PREFIX or token.kind == "-") and not is_argument:
        return token
    return token if token.kind == "-." else token._replace(kind="SYMBOL")


def _is_bound(tokens: list[Token], index: int, opener: str) -> bool:
    """Whether ``x, y \\in`` or ``<<x, y>> \\in`` begins at the index (or ``x, y |->``, where the ``\\in`` lacks)."""
    if tokens[index].kind == "<<":
        depth = 0
        while tokens[index].kind in ("<<", ">>", "NAME", ","):
            depth += {"<<": 1, ">>": -1}.get(tokens[index].kind, 0)
            index += 1
            if depth == 0:
                return tokens[index].kind == r"\in"
        return False
    first = index
    while tokens[index].kind == "NAME":
        after = tokens[index + 1].kind
        if after != ",":
            return after == r"\in" or (after == "|->" and opener == "[" and index > first)
        index += 2
    return False


def _definition_heads(tokens: list[Token]) -> set[int]:
    """The index of the first token of what each ``==`` defines."""
    return {_head(tokens, index - 1) for index, token in enumerate(tokens) if token.kind == "==" and index > 0}


def _head(tokens: list[Token], index: int) -> int:
    kind = tokens[index].kind
    if kind in (")", "]"):
        depth = 0
        while index >= 0:
            depth += {")": 1, "]": 1, "]_": 1, "(": -1, "[": -1}.get(tokens[index].kind, 0)
            if depth == 0:
                break
            index -= 1
        return index - 1 if index > 0 and tokens[index - 1].kind == "NAME" else max(index, 0)
    if kind == "NAME" and index > 0:
        operator = tokens[index - 1].kind
        if operator in INFIX:
            is_infix_head = index > 1 and tokens[index - 2].kind == "NAME"
            return index - 2 if is_infix_head and not (index > 2 and tokens[index - 3].kind == "<-") else index
        if operator in PREFIX:
            return index - 1
    elif kind in _OPERATORS and index > 0:
        return index - 1
    return index
