"""What can be wrong with a log or a binding, said so that a person can mend it.

::

    CollectorError      a log or a binding that cannot be read, or that does not say what is needed (exit code 4)

An error carries facts as fields; the sentence with the caret is made only in ``__str__``. Errors of the system and of
libraries are translated once, where they are raised, and never escape.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from specwatch.checker.behaviour import Source


class CollectorError(Exception):
    """``file`` is named as the user named it; ``line`` and ``column`` are 1-based; None where there is no position.

    ``text`` is the source line at the position, ``width`` how many characters of it are meant: for the caret.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        text: str | None = None,
        width: int = 1,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint
        self.text = text
        self.width = width

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        lines = [f"{where}: {self.message}" if where else self.message]
        if self.text is not None and self.column is not None:
            # A tab in the text is a tab before the caret too, so that both end in the same place.
            margin = "".join("\t" if char == "\t" else " " for char in self.text[: self.column - 1])
            lines += [f"  {self.text}", f"  {margin}{'^' * max(1, self.width)}"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def at(source: Source | None, message: str, hint: str | None = None) -> CollectorError:
    """An error about the record that was read there."""
    if source is None:
        return CollectorError(message, hint=hint)
    return CollectorError(message, file=source.file, line=source.line, hint=hint)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """A hint at the name that was probably meant; None where none is near."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]!r}?" if near else None
