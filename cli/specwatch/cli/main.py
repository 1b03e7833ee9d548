"""The entry point. Where no byte code is kept, click alone costs more to import than ``--help`` may: it comes later."""

from __future__ import annotations

import sys

from .commands import help_text


def main() -> None:
    """Run the command line and exit with its exit code."""
    if sys.argv[1:] == ["--help"]:
        sys.stdout.write(help_text())
        return
    # Integers of the log and of the spec are exact, whatever their size; Python refuses to print long ones by default.
    sys.set_int_max_str_digits(0)
    from .app import app

    app.main(prog_name="specwatch")
