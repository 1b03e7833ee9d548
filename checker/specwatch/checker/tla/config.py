"""Configurations (.cfg), as TLC's ``ModelConfig`` reads them: with the TLA+ lexer, white space separating and ending
nothing.

One difference is meant: TLC takes a lexical error for the end of the file, so that a stray backtick silently drops the
INVARIANT after it. Here it is an error with its place.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from .errors import TlaConfigError, TlaSyntaxError
from .scan import Token, tokens
from .source import SourceText, Span
from .values import FALSE, TRUE, ModelValue, Value, ValueProblem, homogeneous

_LISTS = {
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "CONSTRAINT": "constraints",
    "CONSTRAINTS": "constraints",
    "ACTION_CONSTRAINT": "action_constraints",
    "ACTION_CONSTRAINTS": "action_constraints",
    "POSTCONDITION": "postconditions",
    "POSTCONDITIONS": "postconditions",
}
_SINGLES = {
    "SPECIFICATION": "specification",
    "INIT": "init",
    "NEXT": "next",
    "VIEW": "view",
    "SYMMETRY": "symmetry",
    "ALIAS": "alias",
}
_CONSTANT_WORDS = {"CONSTANT", "CONSTANTS"}
KEYWORDS = {*_LISTS, *_SINGLES, *_CONSTANT_WORDS, "CHECK_DEADLOCK"}


@dataclass(frozen=True, slots=True)
class Named:
    """A name in a config, with its place."""

    name: str
    span: Span


@dataclass(slots=True)
class Config:
    """What a .cfg says. ``constants`` are values, ``replacements`` are ``name <- definition``."""

    path: str | None = None
    specification: Named | None = None
    init: Named | None = None
    next: Named | None = None
    invariants: list[Named] = field(default_factory=list)
    properties: list[Named] = field(default_factory=list)
    constraints: list[Named] = field(default_factory=list)
    action_constraints: list[Named] = field(default_factory=list)
    postconditions: list[Named] = field(default_factory=list)
    view: Named | None = None
    symmetry: Named | None = None
    alias: Named | None = None
    check_deadlock: bool | None = None
    constants: dict[str, Value] = field(default_factory=dict)
    replacements: dict[str, Named] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    """Where each constant was given."""


def parse_config(text: str, path: str = "<config>") -> Config:
    """Reads the text of a .cfg.

    :raises TlaConfigError: with the place and the likely mistake.
    """
    return _Reader(text, path).read()


def parse_value(text: str, path: str = "<constant>") -> Value:
    """One value in the syntax of a .cfg: a number, a string, TRUE, FALSE, a set, or a model value's name."""
    reader = _Reader(text, path)
    value = reader.value()
    if reader.token.kind != "EOF":
        raise reader.error(f"unexpected {reader.said()} after the value")
    return value


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self.source = SourceText(path, text)
        try:
            self.tokens = tokens(self.source)
        except TlaSyntaxError as error:
            raise TlaConfigError(error.message, error.span, file=error.file, hint=error.hint) from None
        self.index = 0
        self.config = Config(path)

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def said(self) -> str:
        return "the end of the file" if self.token.kind == "EOF" else f"`{self.token.text}`"

    def error(self, message: str, hint: str | None = None) -> TlaConfigError:
        return TlaConfigError(message, self.span(self.token), hint=hint)

    def advance(self) -> Token:
        token = self.token
        if token.kind != "EOF":
            self.index += 1
        return token

    def read(self) -> Config:
        while self.token.kind != "EOF":
            word = self.token.text
            if word in _CONSTANT_WORDS:
                self.advance()
                while self.at_name():
                    self.constant()
            elif word in _LISTS:
                self.advance()
                names: list[Named] = getattr(self.config, _LISTS[word])
                while self.at_name():
                    names.append(self.name())
            elif word in _SINGLES:
                self.single(word)
            elif word == "CHECK_DEADLOCK":
                self.advance()
                if self.token.text not in ("TRUE", "FALSE"):
                    raise self.error(f"CHECK_DEADLOCK is TRUE or FALSE, not {self.said()}")
                self.config.check_deadlock = self.advance().text == "TRUE"
            else:
                near = difflib.get_close_matches(word.upper(), sorted(KEYWORDS), 1)
                hint = (
                    f"did you mean {near[0]}?"
                    if near
                    else "a config consists of CONSTANTS, INIT, NEXT, SPECIFICATION, INVARIANTS, …"
                )
                if word == ",":
                    hint = "no commas between constants or names: white space is enough"
                raise self.error(f"unexpected {self.said()} in a config", hint)
        self.check()
        return self.config

    def check(self) -> None:
        config = self.config
        if config.specification is not None and (config.init is not None or config.next is not None):
            other = config.init or config.next
            assert other is not None
            raise TlaConfigError("SPECIFICATION stands beside INIT or NEXT", other.span, hint="give one or the other")

    def at_name(self) -> bool:
        return (
            self.token.kind not in ("EOF", "STRING", "NUMBER")
            and self.token.text not in KEYWORDS
            and _is_word(self.token.text)
        )

    def name(self) -> Named:
        if not self.at_name():
            raise self.error(f"expected a name, found {self.said()}")
        token = self.advance()
        text, end = token.text, token.end
        while self.token.kind == "!":
            self.advance()
            part = self.advance()
            text, end = f"{text}!{part.text}", part.end
        return Named(text, Span(self.source, token.start, end))

    def single(self, word: str) -> None:
        attribute = _SINGLES[word]
        if getattr(self.config, attribute) is not None:
            raise self.error(f"a second {word}", hint=f"a config has one {word}")
        self.advance()
        setattr(self.config, attribute, self.name())
        if self.at_name():
            raise self.error(f"a second name after {word}: {self.said()}", hint=f"{word} takes one name")

    def constant(self) -> None:
        name = self.name()
        if self.token.kind == "(":
            raise self.error(
                "a value for one argument of an operator cannot be given yet",
                hint=f"define the operator and write {name.name} <- Definition",
            )
        if self.token.kind == "<-":
            self.advance()
            self.module_prefix()
            target = self.name()
            self.config.replacements[name.name] = target
            self.config.constants.pop(name.name, None)
        elif self.token.kind == "=":
            self.advance()
            self.module_prefix()
            self.config.constants[name.name] = self.value()
            self.config.replacements.pop(name.name, None)
        else:
            raise self.error(f"expected `=` or `<-` after the constant {name.name}, found {self.said()}")
        self.config.places[name.name] = name.span
        if self.token.kind == ",":
            raise self.error("a comma between constants", hint="white space is enough: C = 1 S = {2}")

    def module_prefix(self) -> None:
        """``[Module]`` before a value or definition: there is one namespace here, so it says nothing more."""
        if self.token.kind == "[":
            self.advance()
            self.name()
            if self.token.kind != "]":
                raise self.error(f"expected `]`, found {self.said()}")
            self.advance()

    def value(self) -> Value:
        token = self.token
        if token.kind == "NUMBER":
            if not token.text.isdigit():
                raise self.error(f"{token.text} is no number of a config", hint="write it in decimal")
            self.advance()
            if self.token.kind in ("..", "."):
                raise self.error(
                    "a range cannot be a constant's value",
                    hint="list the elements, or define the set in a module: S <- Definition",
                )
            return int(token.text)
        if token.kind == "STRING":
            self.advance()
            return _unescaped(token.text[1:-1])
        if token.kind == "{":
            return self.set_of_values()
        if token.text in ("TRUE", "FALSE"):
            self.advance()
            return TRUE if token.text == "TRUE" else FALSE
        if self.at_name():
            self.advance()
            return ModelValue(token.text)
        hint = None
        if token.kind in ("-", "-."):
            hint = "a config has no negative numbers: define one in the module, and write C <- Definition"
        elif token.kind == "<<":
            hint = "a config has no tuples: define one in the module, and write C <- Definition"
        raise self.error(f"expected a value, found {self.said()}", hint)

    def set_of_values(self) -> Value:
        opening = self.advance()
        items: list[Value] = []
        if self.token.kind == "}":
            self.advance()
            return frozenset()
        while True:
            items.append(self.value())
            if self.token.kind == ",":
                self.advance()
                continue
            if self.token.kind != "}":
                raise self.error(f"expected `,` or `}}` in the set, found {self.said()}")
            closing = self.advance()
            break
        try:
            homogeneous(items)
        except ValueProblem as problem:
            raise TlaConfigError(problem.message, Span(self.source, opening.start, closing.end)) from None
        return frozenset(items)


def _is_word(text: str) -> bool:
    return text.replace("_", "a").isalnum() and not text.isdigit()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    for written, meant in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\\f", "\f"), ('\\"', '"'), ("\\\\", "\\")):
        text = text.replace(written, meant)
    return text
