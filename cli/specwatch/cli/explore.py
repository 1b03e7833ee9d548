"""``specwatch explore SPEC``: model-check a spec, breadth first, and print what TLC would count."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .app import Subcommand
from .output import (
    bound_options,
    output_options,
    plain,
    shows_progress,
    wants_color,
    write,
    write_json_text,
    write_stderr,
)
from .target import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specwatch.checker.explore import Exploration, Progress, TraceStep

OUTCOMES = {
    "pass": "no error: every reachable state was visited",
    "violates": "{name} is violated",
    "deadlock": "deadlock: no action is enabled in the last state",
    "assumption": "an ASSUME is false",
    "postcondition": "the POSTCONDITION is false",
    "liveness": "{name} is violated",
    "bound": "undecided: a bound was reached before every state was visited",
    "error": "the spec has an error",
}


@click.command("explore", cls=Subcommand)
@click.argument("spec")
@click.option(
    "--config", metavar="CFG", help="The configuration; without it <Module>.cfg beside the spec, else Init and Next."
)
@click.option(
    "--deadlock/--no-deadlock", default=None, help="Whether a deadlock is an error (default: yes, or CHECK_DEADLOCK)."
)
@click.option(
    "--ignore-unchecked", is_flag=True, help="Exit 0 also where the config asks for something that is not checked."
)
@bound_options
@output_options
def command(
    spec: str,
    config: str | None,
    deadlock: bool | None,
    ignore_unchecked: bool,
    max_states: int | None,
    timeout: float | None,
    max_memory: int | None,
    json: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Model-check SPEC: a .tla file, a binding (.toml) or a shipped name.

    Exit code 0: no error; 1: a violation, a deadlock or a false ASSUME; 3: a bound was reached, or something that the
    config asks for was not checked; 4: the spec has an error.
    """
    from specwatch.checker.api import load_spec
    from specwatch.checker.explore import explore

    target = resolve(spec, config=config)
    loaded = load_spec(target.spec, target.config)
    for warning in loaded.warnings:
        write_stderr(f"warning: {warning}")
    show = _Progress() if shows_progress(quiet) else None
    try:
        found = explore(
            loaded,
            deadlock=deadlock,
            max_states=max_states,
            timeout=timeout,
            max_memory=max_memory,
            progress=show,
        )
    finally:
        if show is not None:
            show.clear()
    if ignore_unchecked and found.outcome == "pass":
        found.exit_code = 0
    if json:
        write_json_text(found.to_json())
    else:
        write(text(found, color=wants_color(no_color), quiet=quiet))
    return found.exit_code


def text(found: Exploration, *, color: bool, quiet: bool) -> str:
    """The exploration for people: the outcome, the way to it with what each step changed, and the counts."""
    counts = (
        f"{found.generated:,} states generated, {found.distinct:,} distinct states found, depth {found.depth}, "
        f"{found.seconds:.2f} s"
    )
    if quiet:
        return f"{found.outcome}: {counts}\n"
    mark = {0: "✓", 1: "✗", 3: "?", 4: "✗"}[found.exit_code]
    headline = f"{mark} {OUTCOMES[found.outcome].format(name=found.invariant or '')}"
    style = {0: "32", 1: "31", 3: "33", 4: "31"}[found.exit_code]
    lines = [f"\x1b[{style}m{headline}\x1b[0m" if color else headline]
    if found.message:
        lines.extend(f"  {plain(line)}" for line in found.message.split("\n"))
    if found.trace:
        lines.extend(("", *_trace(found.trace, color)))
    lines.append("")
    lines.extend(f"not checked: {name}" for name in found.unchecked)
    lines.append(counts)
    return "\n".join(lines) + "\n"


def _trace(trace: Sequence[TraceStep], color: bool) -> list[str]:
    """The states in order; what differs from the state before is marked."""
    lines = []
    before: dict[str, str] = {}
    for number, step in enumerate(trace, 1):
        params = ", ".join(f"{name} = {value}" for name, value in step.params.items())
        lines.append(f"  {number}  {step.action or 'initial state'}{plain(f'({params})') if params else ''}")
        for name, value in step.state.items():
            changed = step.action is not None and before.get(name) != value
            line = f"     {'▸' if changed else ' '} {name} = {plain(value)}"
            lines.append(f"\x1b[1m{line}\x1b[0m" if changed and color else line)
        before = step.state
    return lines


class _Progress:
    """One line on stderr that is written over."""

    def __call__(self, progress: Progress) -> None:
        line = f"{progress.generated:,} generated, {progress.distinct:,} distinct, depth {progress.depth}"
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def clear(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
