"""A source text and places in it.

Lines and columns are 1-based and counted as SANY does (``tla2sany`` ``SimpleCharStream``): a column is a UTF-16 unit,
a tab goes on to the next multiple of eight, and CR, LF and CRLF each end a line.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, eq=False)
class SourceText:
    """A file's text. ``path`` is what the user called it; offsets are Python string offsets into ``text``."""

    path: str
    text: str
    _starts: list[int] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self._starts.append(0)
        self._starts.extend(match.end() for match in _LINE_END.finditer(self.text))

    def line(self, offset: int) -> int:
        """The 1-based line of an offset."""
        return bisect.bisect_right(self._starts, offset)

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based (line, column) of an offset."""
        line = self.line(offset)
        column = 0
        for character in self.text[self._starts[line - 1] : offset]:
            if character == "\t":
                column += 8 - column % 8
            else:
                column += 2 if ord(character) > 0xFFFF else 1
        return line, column + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its end."""
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of offsets in a source text."""

    source: SourceText
    start: int
    end: int

    @property
    def text(self) -> str:
        """The source text in the range, white space folded to one space."""
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def file(self) -> str:
        return self.source.path

    @property
    def line(self) -> int:
        return self.source.line(self.start)

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    def caret(self) -> list[str]:
        """The source line and, under it, carets below the range (cut at the line's end)."""
        line = self.source.line(self.start)
        shown = self.source.line_text(line)
        offset_in_line = self.start - self.source._starts[line - 1]
        width = max(1, min(self.end - self.start, len(shown) - offset_in_line))
        # The pad repeats tabs, so that the caret stands under its character whatever the terminal's tab width.
        pad = "".join("\t" if character == "\t" else " " for character in shown[:offset_in_line])
        return [f"  {shown}", f"  {pad}{'^' * width}"]
