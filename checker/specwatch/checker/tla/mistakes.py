"""Lark's "unexpected token" → a sentence for people, with the likely mistake and its correction."""

from __future__ import annotations

from dataclasses import dataclass

from lark import UnexpectedToken

from .context import OPERAND_ENDS
from .errors import TlaSyntaxError
from .operators import INFIX, MISTAKEN, POSTFIX
from .scan import RESERVED, Token
from .source import SourceText, Span

_OPENERS = {"(": ")", "[": "]", "BOUND_BRACKET": "]", "{": "}", "BOUND_BRACE": "}", "<<": ">>"}
_CLOSERS = {")": ")", "]": "]", "]_": "]", "}": "}", ">>": ">>", ">>_": ">>"}
_UNIT_ENDS = ("MARKER", "FOOTER", "SEPARATOR", "HEADER", "EOF")
_CALLED = {
    "NAME": "a name", "FIELD": "a field", "NUMBER": "a number", "STRING": "a string", "MARKER": "a definition",
    "FOOTER": "`====`", "SEPARATOR": "`----`", "HEADER": "a module", "EOF": "the end of the text",
    "STEP": "a proof step", "BOUND_BRACE": "`{`", "BOUND_BRACKET": "`[`",
}  # fmt: skip
_OPERANDS = ("NAME", "NUMBER", "STRING", "(", "[", "{", "<<", "BOUND_BRACE", "BOUND_BRACKET", "IF", "CASE", "LET")
_SHOWN = 5
# What may follow any operand, and would only be noise in a list of what is expected.
_NOISE = {"CLOSE", "NEXT", "::", ".", "!", "(", "[", "BOUND_BRACE", "BOUND_BRACKET"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the parser stopped: at ``token``, after ``previous``; ``accepted`` are the kinds that could have come."""

    token: Token
    previous: Token
    following: Token
    before: list[Token]
    accepted: set[str]
    source: SourceText

    @property
    def wants_operand(self) -> bool:
        return {"NUMBER", "STRING"} <= self.accepted

    @property
    def wants_operator(self) -> bool:
        return {"+", "/"} <= self.accepted

    @property
    def wants_unit(self) -> bool:
        return {"VARIABLE", "THEOREM"} <= self.accepted

    @property
    def is_on_line_of_previous(self) -> bool:
        return self.source.line(self.token.start) == self.source.line(self.previous.start)

    def where(self, token: Token) -> str:
        line, column = self.source.position(token.start)
        return f"`{token.text}` at line {line}, column {column}"


def explain(
    problem: UnexpectedToken, found: list[Token], source: SourceText, spellings: dict[str, str]
) -> TlaSyntaxError:
    """The error to raise for Lark's. ``spellings`` says how each terminal of the grammar is written."""
    index: int = problem.token.place
    parser = problem.interactive_parser
    # Lark leaves accepts() without types.
    names: set[str] = parser.accepts() if parser is not None else set()  # type: ignore[no-untyped-call]
    nothing = Token("", "", 0, 0)
    previous = found[index - 1] if index else nothing
    is_bullet_end = found[index].kind == "CLOSE"
    # A list is closed by the token that comes next, and that is the one to speak of.
    after = index
    while found[after].kind == "CLOSE":
        after += 1
    place = _Place(
        found[after],
        previous,
        found[after + 1] if after + 1 < len(found) else nothing,
        found[:index],
        {spellings.get(name, name) for name in names},
        source,
    )
    special = _misused_pair(place)
    if special is not None:
        return special
    hint = _hint(place)
    # The bullets are of no account where a new unit begins at the left margin.
    is_bullet_end = is_bullet_end or (previous.kind == "CLOSE" and source.position(place.token.start)[1] > 1)
    if is_bullet_end and place.token.kind in _OPERANDS:
        hint = "what stands at or left of a bullet's column ends its list: indent it further"
    span = Span(source, place.token.start, place.token.end)
    return TlaSyntaxError(_message(place), span, hint=hint)


def _misused_pair(place: _Place) -> TlaSyntaxError | None:
    """The mistakes that lie in the token before: SANY too reports them there, looking two tokens ahead."""
    previous, token = place.previous, place.token
    pair = Span(place.source, previous.start, token.end)
    if (previous.kind, token.kind) == ("(", ")") and place.wants_operand:
        return TlaSyntaxError("`()` holds no argument", pair, hint="an operator without parameters is just its name")
    if previous.kind == "LOCAL":
        message = f"`LOCAL` cannot stand before `{token.text}`"
        return TlaSyntaxError(message, pair, hint="only definitions and INSTANCE can be LOCAL")
    if previous.kind in ("ASSUME", "ASSUMPTION") and token.kind == "ASSUME":
        hint = "ASSUME … PROVE … is the statement of a THEOREM"
        return TlaSyntaxError("An assumption is one expression", pair, hint=hint)
    if previous.kind == "," and token.kind == "MARKER" and {"NAME", "SYMBOL"} <= place.accepted:
        comma = Span(place.source, previous.start, previous.end)
        return TlaSyntaxError("Expected a substitution after `,`", comma, hint="remove the comma")
    return None


# --- the sentence -----------------------------------------------------------------------------------------------------


def _message(place: _Place) -> str:
    previous, token = place.previous, place.token
    after = f" after `{previous.text}`" if previous.text and previous.kind not in ("CLOSE", "MARKER") else ""
    found = f"`{token.text}`"
    if token.kind == "EOF":
        found = "the end of the text"
    elif token.kind == "MARKER":
        found = f"the beginning of a definition, `{token.text}`"
    elif token.kind == "FOOTER":
        found = "the end of the module"
    elif token.text in RESERVED:
        found = f"the reserved word `{token.text}`"
    return f"Expected {_expected(place)}{after}, found {found}"


def _expected(place: _Place) -> str:
    accepted = place.accepted
    if place.wants_operand:
        return "an expression"
    if place.wants_unit:
        return "an operator or the next definition" if place.wants_operator else "a definition, a declaration or `====`"
    if place.previous.kind == "MARKER":
        return "a name to define"
    if place.previous.kind in ("]_", ">>_", "WF_", "SF_"):
        return "a subscript (a name, a tuple or parentheses)"
    if place.previous.kind == "!" and "SYMBOL" in accepted:
        return "a name"
    if place.wants_operator:
        kinds = accepted - INFIX.keys() - POSTFIX.keys() - _NOISE
        parts = ["an operator", *sorted(_CALLED.get(kind, f"`{kind}`") for kind in kinds)]
    else:
        parts = sorted({_CALLED.get(kind, f"`{kind}`") for kind in accepted - {"CLOSE", "NEXT", "SYMBOL", "-."}})
    if len(parts) > _SHOWN:
        parts = [*parts[:_SHOWN], "…"]
    return " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


# --- the likely mistake -----------------------------------------------------------------------------------------------


def _hint(place: _Place) -> str | None:
    return _hint_from_words(place) or _hint_from_brackets(place) or _hint_from_constructs(place)


def _hint_from_words(place: _Place) -> str | None:
    """Other languages' spellings."""
    previous, token, before = place.previous, place.token, place.before
    if previous.kind == "SYMBOL" and previous.text == "=" and before[-2].kind == "!":
        return "`!=` is not TLA+: write `#` or `/=`"
    if token.kind == "MARKER" and place.wants_operand:
        if place.is_on_line_of_previous:
            return "`==` defines a name; to compare, write `=`"
        return f"the definition before `{token.text}` is not complete"
    for word in (token, previous):
        if word.kind == "NAME" and word.text in MISTAKEN:
            return MISTAKEN[word.text]
        if word.kind == "NAME" and word.text not in RESERVED and word.text.upper() in RESERVED and place.wants_unit:
            return f"reserved words are written in capitals: `{word.text.upper()}`"
    if token.kind == "<-":
        return "to compare, or to say what a primed variable equals, write `=`"
    if token.kind == "NAME" and "MARKER" in place.accepted and _is_assigned(place):
        return "a definition is written with `==`"
    if token.kind == "." and place.following.kind == "NUMBER":
        return "write a 0 before the decimal point"
    if token.kind == "EXTENDS":
        return "EXTENDS stands once, right after the module's header"
    if token.kind == "LAMBDA":
        return "a LAMBDA is only an argument: give the operator a name by a definition"
    if token.text in RESERVED and not place.wants_operand and ("NAME" in place.accepted and not place.wants_unit):
        return f"`{token.text}` is a reserved word: choose another name"
    return None


def _hint_from_brackets(place: _Place) -> str | None:
    token = place.token
    unclosed = _unclosed(place.before)
    if token.kind in _CLOSERS:
        if unclosed is None:
            return f"there is no open bracket that `{token.text}` could close"
        if _OPENERS[unclosed.kind] != _CLOSERS[token.kind]:
            return f"{place.where(unclosed)} is still open: close it with `{_OPENERS[unclosed.kind]}`"
    if unclosed is None:
        return None
    if token.kind == ":" and unclosed.kind == "BOUND_BRACE":
        return "a filter has one bound, `{x \\in S : p}`; a map has many, `{e : x \\in S, y \\in T}`"
    if token.kind == "->" and unclosed.kind == "BOUND_BRACKET":
        return "a function is `[x \\in S |-> e]`; the set of functions is `[S -> T]`"
    if token.kind == "," and unclosed.kind == "[" and place.accepted & {"->", "]"}:
        return "a record is `[a |-> 1, b |-> 2]`, a set of records `[a : S, b : T]`"
    if token.kind == "[" and "!" in place.accepted:
        return "an update is `![i] = e` or `!.field = e`"
    closes = _OPENERS[unclosed.kind] in place.accepted and not place.wants_operand
    if closes or token.kind in _UNIT_ENDS:
        return f"{place.where(unclosed)} is not closed"
    return None


def _hint_from_constructs(place: _Place) -> str | None:
    token, previous, accepted = place.token, place.previous, place.accepted
    if token.kind == "EOF" and "FOOTER" in accepted:
        return "a module ends with `====`"
    if accepted & {"THEN", "ELSE"}:
        return "a conditional has three parts: `IF … THEN … ELSE …`"
    if token.kind in ("THEN", "ELSE"):
        return f"`{token.kind}` needs an `IF` before it that is not yet complete"
    if token.kind == "IN" and previous.kind == "LET":
        return "a LET needs at least one definition"
    if "IN" in accepted:
        return "definitions are followed by IN: `LET x == … IN …`"
    if "->" in accepted and "EXCEPT" not in accepted:
        return "an arm of a CASE is `condition -> value`"
    if ":" in accepted and place.wants_operator:
        return "the bounds are followed by a colon: `\\A x \\in S : …`"
    if token.kind == ":":
        return "a bound is `x \\in S`"
    if r"\in" in accepted and not place.wants_operator:
        return "a bound is `x \\in S`"
    is_operand = token.kind in ("NAME", "NUMBER", "STRING") and previous.kind in OPERAND_ENDS
    if is_operand and "," in accepted and not place.wants_operator:
        return "names are separated by commas"
    if is_operand and place.is_on_line_of_previous and place.wants_operator:
        return f"an operator is missing between `{previous.text}` and `{token.text}`"
    return None


def _unclosed(before: list[Token]) -> Token | None:
    """The innermost bracket that is open before a place."""
    stack: list[Token] = []
    for token in before:
        if token.kind in _OPENERS:
            stack.append(token)
        elif token.kind in _CLOSERS and stack and _OPENERS[stack[-1].kind] == _CLOSERS[token.kind]:
            stack.pop()
        elif token.kind in ("HEADER", "SEPARATOR"):
            stack.clear()
    return stack[-1] if stack else None


def _is_assigned(place: _Place) -> bool:
    """Whether ``name =`` or ``name(…) =`` stands in the rest of the line."""
    line = place.source.line_text(place.source.line(place.token.start))
    head, equals, _body = line.partition("=")
    return bool(equals) and head.strip().rstrip(":").rstrip().startswith(place.token.text)
