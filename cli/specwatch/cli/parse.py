"""``specwatch parse FILE…``: syntax and names of TLA+ modules; exit code 0 or 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .app import Subcommand
from .errors import Several
from .output import output_options, write, write_json

if TYPE_CHECKING:
    from specwatch.checker.tla.modules import Program


@click.command("parse", cls=Subcommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--tree", is_flag=True, help="Print each module fully parenthesised.")
@output_options
def command(files: tuple[str, ...], tree: bool, json: bool, quiet: bool, no_color: bool) -> int:
    """Check the syntax and names of TLA+ modules.

    Every FILE is looked at, also after an error. Exit code 0: all are well-formed; 4: not all.
    """

    from specwatch.checker.tla.modules import load

    errors: list[Exception] = []
    good = []
    for file in files:
        try:
            program = load(file)
            good.append({"file": file, "module": program.root.name, "tree": _tree(program) if tree else None})
        except Exception as error:
            errors.append(error)
    if errors and json:
        raise Several(errors)
    if json:
        write_json({"schema": "specwatch.parse/1", "exit_code": 0, "files": good})
    for row in good if not json else ():
        if row["tree"]:
            write(f"{row['tree']}\n")
        elif not quiet:
            write(f"{row['file']}: module {row['module']} is well-formed\n")
    if errors:
        raise Several(errors)
    return 0


def _tree(program: Program) -> str:
    from specwatch.checker.tla.show import show_tree

    return show_tree(program.root)
