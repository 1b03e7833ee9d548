"""The subcommands: one row each. Reading this table, and printing ``--help``, imports no subcommand and no library."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "check": (".check", "Replay recorded logs against a spec: did it behave?"),
    "explain-plan": (".explain_plan", "Say whether a spec falls apart by a key, and if not, why."),
    "explore": (".explore", "Model-check a spec: every state that it can reach."),
    "matrix": (".matrix", "Every broker, experiment and mode: prediction, observation, verdict."),
    "parse": (".parse", "Check the syntax and names of TLA+ modules."),
    "run": (".run", "A chaos run: real servers, a real fault, and what the spec says of it."),
    "servers": (".servers", "Show which servers are here, and how to get the rest."),
}
"""A subcommand's name → its module, which holds it as ``command``, and its line in the help."""


def help_text() -> str:
    """What ``specwatch --help`` prints."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name.ljust(width)}  {line}" for name, (_, line) in COMMANDS.items())
    return f"""\
Usage: specwatch [OPTIONS] COMMAND [ARGS]...

  Is what a distributed system just did a behaviour of its TLA+ specification?

Commands:
{rows}

Options:
  --version  Show the version and exit.
  --help     Show this message and exit.

`specwatch COMMAND --help` tells a command's options.

Exit codes: 0 conforms, 1 violates or diverges, 2 usage, 3 inconclusive or
vacuous, 4 unreadable spec, config, binding or log, 130 interrupted.
"""
