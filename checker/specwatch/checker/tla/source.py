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
        return line, _advance(self.text[self._starts[line - 1] : offset], 0) + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its end."""
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


class Columns:
    """Columns of offsets that mostly ascend: each stretch of a line is counted once, however long the line."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._offset = 0
        self._column = 0
        self._line_end = 0

    def of(self, offset: int) -> int:
        """The 1-based column of an offset."""
        if not self._offset <= offset < self._line_end:
            starts = self._source._starts
            line = self._source.line(offset)
            self._offset, self._column = starts[line - 1], 0
            self._line_end = starts[line] if line < len(starts) else len(self._source.text) + 1
        self._column = _advance(self._source.text[self._offset : offset], self._column)
        self._offset = offset
        return self._column + 1


def _advance(text: str, column: int) -> int:
    for character in text:
        if character == "\t":
            column += 8 - column % 8
        else:
            column += 2 if ord(character) > 0xFFFF else 1
    return column


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
