r"""Bulleted lists: columns → brackets.

``/\ a`` over ``/\ b`` at one column becomes ``AND_OPEN a NEXT b CLOSE``. A token belongs to an item only if its column
is greater than the bullet's (SANY, ``tla2sany/parser/BracketStack``). Brackets inside an item do not lift that rule; what
closes a construct around the list closes the list wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from .context import OPERAND_ENDS
from .errors import TlaSyntaxError
from .scan import Token
from .source import SourceText, Span

_LISTS = {"AND_BULLET": "AND_OPEN", "OR_BULLET": "OR_OPEN"}
_BULLETS = {"/\\": "AND_OPEN", "∧": "AND_OPEN", "\\/": "OR_OPEN", "∨": "OR_OPEN"}

# What opens a construct that has to be ended → what goes on with it or ends it.
_OPENERS: dict[str, frozenset[str]] = {
    "(": frozenset({",", ")"}),
    "[": frozenset({",", ":", "->", "|->", "EXCEPT", "]", "]_"}),
    "BOUND_BRACKET": frozenset({",", "|->", "]"}),
    "{": frozenset({",", ":", "}"}),
    "BOUND_BRACE": frozenset({",", ":", "}"}),
    "<<": frozenset({",", ">>", ">>_"}),
    "IF": frozenset({"THEN", "ELSE"}),
    "LET": frozenset({"IN"}),
    **{kind: frozenset({",", ":"}) for kind in (r"\A", r"\E", r"\AA", r"\EE", "CHOOSE", "LAMBDA", "PICK")},
}
_ENDS = frozenset({")", "]", "]_", "}", ">>", ">>_", "ELSE", "IN"})
_QUANTIFIERS = frozenset({r"\A", r"\E", r"\AA", r"\EE", "CHOOSE", "LAMBDA", "PICK"})
# A CASE goes on as long as there are arms: nothing ends it, and what surrounds it closes it.
_CASE_PARTS = frozenset({"->", "[]"})
_CLOSERS = frozenset({*_CASE_PARTS, *(kind for kinds in _OPENERS.values() for kind in kinds)})

# What begins a new unit or a part of a proof, and so ends every list.
_BREAKS = frozenset(
    "SEPARATOR FOOTER HEADER EOF VARIABLE CONSTANT ASSUME ASSUMPTION THEOREM PROPOSITION INSTANCE USE HIDE STEP BY OBVIOUS "
    "OMITTED PROOF PROVE DEF []ASSUME []PROVE".split()
)
_LET_BREAKS = frozenset({"MARKER", "LOCAL", "RECURSIVE"})

_ENDED_BY = {"(": "`)`", "[": "`]`", "BOUND_BRACKET": "`]`", "{": "`}`", "BOUND_BRACE": "`}`", "<<": "`>>`",
             "IF": "`ELSE`", "LET": "`IN`"}  # fmt: skip


@dataclass(slots=True)
class _Open:
    """A list (``column`` is its bullets') or a construct (``column`` is 0) that is not yet closed."""

    kind: str
    token: Token
    column: int = 0

    @property
    def is_list(self) -> bool:
        return self.column > 0


def bracket(tokens: list[Token], source: SourceText) -> list[Token]:
    """The tokens with brackets in place of bullets.

    ``AND_OPEN`` and ``OR_OPEN`` stand for the first bullet, ``NEXT`` for each further one; a ``CLOSE`` has the place of the
    token that closes the list. Raises TlaSyntaxError at a token of an item that stands at or left of the item's bullet.
    """
    found: list[Token] = []
    stack: list[_Open] = []
    for token in tokens:
        kind = token.kind
        is_next = False
        if kind in _BREAKS:
            _close(found, stack, token, 0)
        else:
            if kind in _LET_BREAKS:
                lets = [depth for depth, opened in enumerate(stack) if opened.kind == "LET"]
                _close(found, stack, token, lets[-1] + 1 if lets else 0)
            is_next = _apply_columns(found, stack, token, source)
        if is_next:
            found.append(token._replace(kind="NEXT"))
            continue
        if kind in _CLOSERS and not (kind == "[]" and not _ends_operand(found)):
            _apply_closer(found, stack, token)
        elif kind == "CASE" or kind in _OPENERS:
            stack.append(_Open(kind, token))
        elif kind in _LISTS:
            token = token._replace(kind=_LISTS[kind])
            stack.append(_Open(token.kind, token, source.position(token.start)[1]))
        found.append(token)
    return found


def _ends_operand(found: list[Token]) -> bool:
    return bool(found) and (found[-1].kind in OPERAND_ENDS or found[-1].kind == "CLOSE")


def _close(found: list[Token], stack: list[_Open], by: Token, depth: int) -> None:
    """Closes all that was opened above a depth of the stack."""
    while len(stack) > depth:
        if stack.pop().is_list:
            found.append(by._replace(kind="CLOSE"))


def _apply_columns(found: list[Token], stack: list[_Open], token: Token, source: SourceText) -> bool:
    """Closes the lists that end at the token; True if it is the next bullet of one."""
    while True:
        depth = len(stack) - 1
        while depth >= 0 and not stack[depth].is_list:
            depth -= 1
        if depth < 0:
            return False
        innermost = stack[depth]
        column = source.position(token.start)[1]
        if column > innermost.column:
            return False
        is_next = column == innermost.column and _BULLETS.get(token.text) == innermost.kind
        inside = [opened for opened in stack[depth + 1 :] if opened.kind != "CASE"]
        if inside or (len(stack) > depth + 1 and token.kind == "[]" and _ends_operand(found)):
            raise _misplaced(token, innermost, inside[-1] if inside else stack[-1], is_next, source)
        _close(found, stack, token, depth + 1)
        if is_next:
            return True
        _close(found, stack, token, depth)


def _apply_closer(found: list[Token], stack: list[_Open], token: Token) -> None:
    kind = token.kind
    depth = len(stack)
    while depth and (stack[depth - 1].is_list or (stack[depth - 1].kind == "CASE" and kind not in _CASE_PARTS)):
        depth -= 1
    _close(found, stack, token, depth)
    if stack and kind in _OPENERS.get(stack[-1].kind, ()):
        if kind in _ENDS or (kind == ":" and stack[-1].kind in _QUANTIFIERS):
            stack.pop()


def _misplaced(token: Token, bullets: _Open, inside: _Open, is_next: bool, source: SourceText) -> TlaSyntaxError:
    line, column = source.position(bullets.token.start)
    span = Span(source, token.start, token.end)
    bullet = bullets.token.text
    opened_line, opened_column = source.position(inside.token.start)
    opened = f"`{inside.token.text}` (line {opened_line}, column {opened_column})"
    continues = token.kind in _OPENERS.get(inside.kind, ()) or (inside.kind == "CASE" and token.kind == "[]")
    if not continues and inside.kind in _ENDED_BY:
        ending = _ENDED_BY[inside.kind]
        what = f"the next `{bullet}`" if is_next else f"`{token.text}`"
        return TlaSyntaxError(
            f"{opened} has no {ending} before {what}",
            span,
            hint=f"add the {ending}; all of an item stands to the right of its bullet",
        )
    return TlaSyntaxError(
        f"`{token.text}` belongs to {opened} and must stand to the right of the bullet `{bullet}` (line {line}, column {column})",
        span,
        hint=f"indent it further than column {column}",
    )
