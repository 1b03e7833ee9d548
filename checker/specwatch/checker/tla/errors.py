"""What can be wrong with a specification, said so that a person can mend it.

::

    TlaError
    ├── TlaSyntaxError       the text is no TLA+ (scanner, bullets, grammar, precedence, a module not found)
    ├── TlaSemanticError     names, arities
    ├── TlaConfigError       the .cfg, or a constant without a value
    └── TlaEvaluationError   an expression that has no value (a type error, a function outside its domain, …)

An error carries facts as fields; the sentence with the caret is made only in ``__str__``.
Foreign errors (Lark's, Python's) are translated once, where they are raised, and never escape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .source import Span


class TlaError(Exception):
    """The root. ``line`` and ``column`` are 1-based and counted as SANY does; None where there is no position."""

    def __init__(
        self, message: str, span: Span | None = None, *, file: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.span = span
        self.file: str | None = file
        self.line: int | None = None
        self.column: int | None = None
        if span is not None:
            self.file = span.source.path
            self.line, self.column = span.source.position(span.start)

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        lines = [f"{where}: {self.message}" if where else self.message]
        if self.span is not None:
            lines.extend(self.span.caret())
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class TlaSyntaxError(TlaError):
    """The text is not TLA+."""


class TlaSemanticError(TlaError):
    """The text parses, and a name or an arity in it is wrong."""


class TlaConfigError(TlaError):
    """The configuration is wrong, or does not fit the module."""


class TlaEvaluationError(TlaError):
    """An expression has no value. ``values`` are the names around it with their values, as TLA+ text."""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        file: str | None = None,
        hint: str | None = None,
        values: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, span, file=file, hint=hint)
        self.values: dict[str, str] = values or {}

    def __str__(self) -> str:
        text = super().__str__()
        for name, value in self.values.items():
            text += f"\n  {name} = {value}"
        return text
