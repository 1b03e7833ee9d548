"""What the subcommands share: the common options, and the two streams. stdout is the result only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from .units import Duration, Share, Size

_F = TypeVar("_F", bound=Callable[..., Any])


def output_options(function: _F) -> _F:
    """``--json``, ``--quiet`` and ``--no-color``, passed as ``json``, ``quiet`` and ``no_color``."""
    for option in (
        click.option("--no-color", is_flag=True, help="No colours, also on a terminal (as NO_COLOR does)."),
        click.option("--quiet", is_flag=True, help="The last line of the result only, and no progress."),
        click.option("--json", is_flag=True, help="The result as JSON."),
    ):
        function = option(function)
    return function


def bound_options(function: _F) -> _F:
    """``--max-states``, ``--timeout`` (seconds) and ``--max-memory`` (bytes). What reaches one is inconclusive."""
    for option in (
        click.option(
            "--max-memory", type=Size(), metavar="SIZE", help="The most memory: 800MB, 2GiB, none (check: 900MB)."
        ),
        click.option(
            "--timeout", type=Duration(), metavar="TIME", help="The longest time: 90 (seconds), 5m, none (check: 45s)."
        ),
        click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="The most states for the search."),
    ):
        function = option(function)
    return function


def verdict_options(function: _F) -> _F:
    """``--junit``, ``--max-findings`` and ``--allow-inconclusive``: of the commands that end with a verdict."""
    for option in (
        click.option(
            "--allow-inconclusive",
            type=Share(),
            metavar="SHARE",
            help="Exit 0 where at most this share (0.1%) is undecided.",
        ),
        click.option(
            "--max-findings",
            type=click.IntRange(min=0),
            default=100,
            show_default=True,
            metavar="N",
            help="How many findings to list; counts stay complete.",
        ),
        click.option("--junit", metavar="FILE", help="Write a JUnit report too."),
    ):
        function = option(function)
    return function


def wants_color(no_color: bool) -> bool:
    """Whether stdout is a terminal that wants colours."""
    return sys.stdout.isatty() and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def shows_progress(quiet: bool) -> bool:
    """Whether progress may be printed on stderr."""
    return sys.stderr.isatty() and not quiet


def write(text: str) -> None:
    """Print a result for people. What the terminal's encoding lacks is escaped, never an error."""
    _echo(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def write_json(document: dict[str, Any]) -> None:
    """Print a result for scripts: one JSON object on one line, in UTF-8 whatever the locale."""
    from specwatch.checker.report.json import dumps

    write_json_text(dumps(document))


def write_json_text(text: str) -> None:
    """Print JSON text on one line, in UTF-8 whatever the locale."""
    _echo(text.encode("utf-8") + b"\n")


def plain(line: str) -> str:
    """A line without terminal commands. Its tabs stay: a caret stands below them."""
    from specwatch.checker.report.writing import printable

    return "\t".join(map(printable, line.split("\t")))


def write_stderr(text: str) -> None:
    """Print lines for people on stderr. Source lines are quoted in them, so terminal commands are escaped."""
    lines = map(plain, text.split("\n"))
    encoding = sys.stderr.encoding or "utf-8"
    click.echo("\n".join(lines).encode(encoding, "backslashreplace").decode(encoding), err=True)


def _echo(data: bytes) -> None:
    try:
        click.echo(data, nl=False)
    except BrokenPipeError:
        # The reader (head, a pager) has gone. The exit code still says what was found, and Python must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
