"""Lark's "unexpected token" → a sentence for people, with the likely mistake and its correction."""

from __future__ import annotations

from lark import UnexpectedToken

from .errors import TlaSyntaxError
from .operators import INFIX, POSTFIX
from .scan import RESERVED, Token
from .source import SourceText, Span

_OPENERS = {"(": ")", "[": "]", "BOUND_BRACKET": "]", "{": "}", "BOUND_BRACE": "}", "<<": ">>"}
_CLOSERS = {")": ")", "]": "]", "]_": "]", "}": "}", ">>": ">>", ">>_": ">>"}
_CALLED = {
    "NAME": "a name", "FIELD": "a field", "NUMBER": "a number", "STRING": "a string", "MARKER": "a definition",
    "FOOTER": "`====`", "SEPARATOR": "`----`", "HEADER": "a module", "EOF": "the end of the text",
    "STEP": "a proof step", "NEXT": "the next bullet", "BOUND_BRACE": "`{`", "BOUND_BRACKET": "`[`",
}  # fmt: skip
_SHOWN = 5


def explain(
    problem: UnexpectedToken, found: list[Token], source: SourceText, spellings: dict[str, str]
) -> TlaSyntaxError:
    """The error to raise for Lark's. ``spellings`` says how each terminal of the grammar is written."""
    index: int = problem.token.place
    token = found[index]
    previous = found[index - 1] if index else None
    parser = problem.interactive_parser
    # Lark leaves accepts() without types.
    names: set[str] = parser.accepts() if parser is not None else set()  # type: ignore[no-untyped-call]
    accepted = {spellings.get(name, name) for name in names}
    special = _misused_pair(previous, token, accepted, source)
    if special is not None:
        return special
    span = Span(source, token.start, token.end)
    what = _expected(accepted)
    where = f" after `{previous.text}`" if previous is not None and previous.text and previous.kind != "CLOSE" else ""
    message = f"Expected {what}{where}, found {_found(token)}"
    return TlaSyntaxError(message, span, hint=_hint(token, index, found, accepted, source))


def _misused_pair(
    previous: Token | None, token: Token, accepted: set[str], source: SourceText
) -> TlaSyntaxError | None:
    """The mistakes that lie in the token before: SANY too reports them there, looking two tokens ahead."""
    if previous is None:
        return None
    pair = Span(source, previous.start, token.end)
    if (previous.kind, token.kind) == ("(", ")") and "NUMBER" in accepted:
        return TlaSyntaxError("`()` holds no argument", pair, hint="an operator without parameters is just its name")
    if previous.kind == "LOCAL":
        message = f"`LOCAL` cannot stand before `{token.text}`"
        return TlaSyntaxError(message, pair, hint="only definitions and INSTANCE can be LOCAL")
    if previous.kind in ("ASSUME", "ASSUMPTION") and token.kind == "ASSUME":
        return TlaSyntaxError(
            "An assumption is one expression", pair, hint="ASSUME … PROVE … is the statement of a THEOREM"
        )
    if previous.kind == "," and token.kind == "MARKER" and {"NAME", "SYMBOL"} <= accepted:
        return TlaSyntaxError(
            "Expected a substitution after `,`", Span(source, previous.start, previous.end), hint="remove the comma"
        )
    return None


def _found(token: Token) -> str:
    if token.kind == "EOF":
        return "the end of the text"
    if token.kind == "MARKER":
        return f"the beginning of a definition, `{token.text}`"
    if token.kind == "FOOTER":
        return "the end of the module"
    if token.text in RESERVED:
        return f"the reserved word `{token.text}`"
    return f"`{token.text}`"


def _expected(accepted: set[str]) -> str:
    if {"NUMBER", "STRING"} <= accepted:
        return "an expression"
    if {"VARIABLE", "THEOREM"} <= accepted:
        return "a definition, a declaration or `====`"
    kinds = accepted - INFIX.keys() - POSTFIX.keys() - {"CLOSE", "::", ".", "!", "SYMBOL", "-.", "NEXT"}
    if "=" in accepted and "+" not in accepted:
        kinds.add("=")
    parts = sorted(_CALLED.get(kind, f"`{kind}`") for kind in kinds)
    if "+" in accepted:
        parts = [part for part in parts if part not in ("`(`", "`[`")]
        parts.insert(0, "an operator")
    if len(parts) > _SHOWN:
        parts = [*parts[:_SHOWN], "…"]
    return " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts) or "something else"


def _hint(token: Token, index: int, found: list[Token], accepted: set[str], source: SourceText) -> str | None:
    previous = found[index - 1] if index else None
    following = found[index + 1] if index + 1 < len(found) else None
    wants_operand = {"NUMBER", "STRING"} <= accepted
    if token.kind == "EOF" and "FOOTER" in accepted:
        return "a module ends with `====`"
    if previous is not None and previous.kind == "SYMBOL" and previous.text == "=" and found[index - 2].kind == "!":
        return "`!=` is not TLA+: write `#` or `/=`"
    if token.kind == "MARKER" and wants_operand:
        return "`==` defines a name; to compare, write `=`"
    unclosed = _unclosed(found[:index])
    if token.kind in _CLOSERS:
        if unclosed is None:
            return f"there is no open bracket that `{token.text}` could close"
        closer = _OPENERS[unclosed.kind]
        if closer != _CLOSERS[token.kind]:
            line, column = source.position(unclosed.start)
            return f"`{unclosed.text}` at line {line}, column {column} is still open: close it with `{closer}`"
    if token.kind == "ELSE" or token.kind == "THEN":
        return f"`{token.kind}` needs an `IF` before it that is not yet complete"
    if token.kind == "CLOSE" and wants_operand and previous is not None:
        return "what stands at or left of a bullet's column ends its list: indent it further"
    if unclosed is not None and not wants_operand and _OPENERS[unclosed.kind] in accepted:
        line, column = source.position(unclosed.start)
        return f"`{unclosed.text}` at line {line}, column {column} is not closed"
    if token.kind == "NAME" and "MARKER" in accepted and _is_assigned(found, index):
        return "a definition is written with `==`"
    if token.text in RESERVED and "NAME" in accepted and not wants_operand:
        return f"`{token.text}` is a reserved word: choose another name"
    if following is not None and token.kind == "." and following.kind == "NUMBER":
        return "write a 0 before the decimal point"
    if token.kind == "IN" and previous is not None and previous.kind == "LET":
        return "a LET needs at least one definition"
    return None


def _unclosed(before: list[Token]) -> Token | None:
    """The innermost bracket that is open before a place."""
    stack: list[Token] = []
    for token in before:
        if token.kind in _OPENERS:
            stack.append(token)
        elif token.kind in _CLOSERS and stack and _OPENERS[stack[-1].kind] == _CLOSERS[token.kind]:
            stack.pop()
        elif token.kind in ("MARKER", "HEADER", "SEPARATOR"):
            stack.clear()
    return stack[-1] if stack else None


def _is_assigned(found: list[Token], index: int) -> bool:
    """Whether ``name =`` or ``name(…) =`` begins at the index."""
    index += 1
    if found[index].kind in ("(", "["):
        closer = _OPENERS[found[index].kind]
        while found[index].kind not in (closer, "EOF"):
            index += 1
        index += 1
    return index < len(found) and found[index].kind in ("=", ":=", "::=", ":", "<-")
