"""The command as click sees it: subcommands are imported when they are called, and every ending has its exit code."""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any, NoReturn

import click

from .commands import COMMANDS, help_text
from .errors import report


class Subcommand(click.Command):
    """A subcommand whose errors become exit code 4, as JSON with ``--json``. Its callback returns the exit code."""

    def invoke(self, ctx: click.Context) -> int:
        try:
            code: int = super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            return report(error, as_json=bool(ctx.params.get("json")))
        return code


class App(click.Group):
    """The group of the rows in ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = importlib.import_module(module, __package__).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"the commands are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no such command '{name}': {hint}", ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip("\n")

    def main(self, args: Any = None, prog_name: str | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run, and exit. Click's own ending would give an interrupt exit code 1, which here means a violation."""
        try:
            code: Any = super().main(args, prog_name, standalone_mode=False, **extra)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except click.Abort:
            click.echo("interrupted", err=True)
            code = 130
        except Exception as error:
            code = report(error, as_json=False)
        sys.exit(code if isinstance(code, int) else 0)


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from specwatch.checker.report.json import version

        click.echo(f"specwatch {version()}")
        ctx.exit()


@click.command(cls=App)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version)
def app() -> None:
    """Is what a distributed system just did a behaviour of its TLA+ specification?"""
