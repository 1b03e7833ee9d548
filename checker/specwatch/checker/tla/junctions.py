r"""Bulleted lists: columns → brackets.

``/\ a`` over ``/\ b`` at one column becomes ``AND_OPEN a NEXT b CLOSE``. A token belongs to an item only if its column
is greater than the bullet's (SANY, ``tla2sany/parser/BracketStack``). Brackets inside an item do not lift that rule;
what closes a construct around the list closes the list wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from .context import OPERAND_ENDS
from .errors import TlaSyntaxError
from .scan import Token
from .source import Columns, SourceText, Span

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
_BREAKS = frozenset({
    "SEPARATOR", "FOOTER", "HEADER", "EOF", "VARIABLE", "CONSTANT", "ASSUME", "ASSUMPTION", "THEOREM", "PROPOSITION",
    "INSTANCE", "USE", "HIDE", "STEP", "BY", "OBVIOUS", "OMITTED", "PROOF", "PROVE", "DEF", "[]ASSUME", "[]PROVE",
})  # fmt: skip
_LET_BREAKS = frozenset({"MARKER", "LOCAL", "RECURSIVE"})

_ENDED_BY = {"(": "`)`", "[": "`]`", "BOUND_BRACKET": "`]`", "{": "`}`", "BOUND_BRACE": "`}`", "<<": "`>>`",
             "IF": "`ELSE`", "LET": "`IN`"}  # fmt: skip


@dataclass(slots=True)
class _Open:
    """A list, or a construct, that is not yet closed."""

    kind: str
    token: Token


def bracket(tokens: list[Token], source: SourceText) -> list[Token]:
    """The tokens with brackets in place of bullets.

    ``AND_OPEN`` and ``OR_OPEN`` stand for the first bullet, ``NEXT`` for each further one; a ``CLOSE`` has the place of
    the token that closes the list. Raises TlaSyntaxError at a token that stands at or left of the bullet of its item.
    """
    brackets = _Brackets(source)
    for token in tokens:
        brackets.add(token)
    return brackets.found


class _Brackets:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.columns = Columns(source)
        self.found: list[Token] = []
        self.stack: list[_Open] = []
        # The lists among the stack: where each stands in it, and the column of its bullets. Columns ascend.
        self.lists: list[tuple[int, int]] = []

    def add(self, token: Token) -> None:
        kind = token.kind
        if kind in _BREAKS:
            self._close(token, 0)
        elif kind in _LET_BREAKS:
            depth = len(self.stack)
            while depth and self.stack[depth - 1].kind != "LET":
                depth -= 1
            self._close(token, depth)
        if self._is_next_bullet(token):
            self.found.append(token._replace(kind="NEXT"))
            return
        if kind in _CLOSERS and not (kind == "[]" and not self._follows_operand()):
            self._close_around(token)
        elif kind == "CASE" or kind in _OPENERS:
            self.stack.append(_Open(kind, token))
        elif kind in _LISTS:
            token = token._replace(kind=_LISTS[kind])
            self.lists.append((len(self.stack), self.columns.of(token.start)))
            self.stack.append(_Open(token.kind, token))
        self.found.append(token)

    def _follows_operand(self) -> bool:
        return bool(self.found) and (self.found[-1].kind in OPERAND_ENDS or self.found[-1].kind == "CLOSE")

    def _close(self, by: Token, depth: int) -> None:
        """Closes all that was opened above a depth of the stack."""
        while self.lists and self.lists[-1][0] >= depth:
            self.lists.pop()
            self.found.append(by._replace(kind="CLOSE"))
        del self.stack[depth:]

    def _is_next_bullet(self, token: Token) -> bool:
        """Closes the lists that end at the token; True if it is the next bullet of one."""
        while self.lists:
            depth, column_of_bullets = self.lists[-1]
            column = self.columns.of(token.start)
            if column > column_of_bullets:
                return False
            innermost = self.stack[depth]
            is_next = column == column_of_bullets and _BULLETS.get(token.text) == innermost.kind
            inside = [opened for opened in self.stack[depth + 1 :] if opened.kind != "CASE"]
            continues_case = token.kind == "[]" and len(self.stack) > depth + 1 and self._follows_operand()
            if inside or continues_case:
                raise _misplaced(token, innermost, inside[-1] if inside else self.stack[-1], is_next, self.source)
            if is_next:
                self._close(token, depth + 1)
                return True
            self._close(token, depth)
        return False

    def _close_around(self, token: Token) -> None:
        """Closes the lists and CASEs that stand inside the construct which the token continues or ends."""
        depth = len(self.stack)
        while depth and self.stack[depth - 1].kind in ("AND_OPEN", "OR_OPEN", "CASE"):
            if self.stack[depth - 1].kind == "CASE" and token.kind in _CASE_PARTS:
                break
            depth -= 1
        self._close(token, depth)
        around = self.stack[-1].kind if self.stack else ""
        ends = token.kind in _ENDS or (token.kind == ":" and around in _QUANTIFIERS)
        if ends and token.kind in _OPENERS.get(around, ()):
            self.stack.pop()


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
        f"`{token.text}` belongs to {opened} and must stand to the right of the bullet `{bullet}` "
        f"(line {line}, column {column})",
        span,
        hint=f"indent it further than column {column}",
    )
