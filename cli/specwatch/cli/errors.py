"""Every ending that is no verdict: what it prints, and that its exit code is 4.

An error of the checker, of the collector or of the system becomes ``{file, line, column, message, hint}`` on stdout
with ``--json``, and text with a caret on stderr without. Anything else is a bug of this program: one line, never a
traceback, unless ``SPECWATCH_DEBUG=1`` asks for one.
"""

from __future__ import annotations

import os
import traceback
from typing import Any

import click

EXIT_CODE = 4


class Refused(Exception):
    """What the command itself cannot accept: a target that is not there, an option that this version does not have."""

    def __init__(self, message: str, *, file: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line: int | None = None
        self.column: int | None = None
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.file}: " if self.file else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint}"


class Several(Exception):
    """Errors that were found together, each with its own place."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__(f"{len(errors)} errors")
        self.errors = errors


def report(error: Exception, *, as_json: bool) -> int:
    """Print an error for its reader and return the exit code."""
    from .output import write_json, write_stderr

    errors = error.errors if isinstance(error, Several) else [error]
    if os.environ.get("SPECWATCH_DEBUG") == "1":
        click.echo("".join(traceback.format_exception(error)), err=True)
    if as_json:
        rows = [_row(one) for one in errors]
        write_json({"schema": "specwatch.error/1", "exit_code": EXIT_CODE, "errors": rows})
    else:
        for one in errors:
            write_stderr(_text(one))
    return EXIT_CODE


_TOLD = ("file", "line", "column", "message", "hint")


def _is_told(error: Exception) -> bool:
    """Whether an error was made for people. Each room has a type of its own for these, with the same fields."""
    return all(hasattr(error, name) for name in _TOLD)


def _row(error: Exception) -> dict[str, Any]:
    if _is_told(error):
        row = {name: getattr(error, name) for name in _TOLD}
        values = getattr(error, "values", None)
        return {**row, "values": values} if values else row
    file = (
        os.fsdecode(error.filename) if isinstance(error, OSError) and isinstance(error.filename, str | bytes) else None
    )
    return {"file": file, "line": None, "column": None, "message": _sentence(error), "hint": None}


def _text(error: Exception) -> str:
    if _is_told(error):
        return str(error)
    row = _row(error)
    return f"{row['file']}: {row['message']}" if row["file"] else row["message"]


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    if isinstance(error, MemoryError):
        return "out of memory: --max-memory or --max-states bound what the search may hold"
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300].removesuffix(":")
    return f"internal error, please report it: {said} (SPECWATCH_DEBUG=1 shows where)"
