"""``specwatch explain-plan SPEC``: does the spec fall apart by a key, so that each key can be judged alone?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .app import Subcommand
from .output import output_options, plain, wants_color, write, write_json, write_stderr
from .target import Target, resolve

if TYPE_CHECKING:
    from specwatch.checker.slicing import Coupled, Separable
    from specwatch.checker.spec import Action, Spec

SCHEMA = "specwatch.plan/1"
WIDTH = 100


@click.command("explain-plan", cls=Subcommand)
@click.argument("spec")
@click.option(
    "--config", metavar="CFG", help="The configuration; without it <Module>.cfg beside the spec, else Init and Next."
)
@click.option("--key", metavar="PARAM", help="The parameter that is the key; without it the binding's, else the first.")
@output_options
def command(spec: str, config: str | None, key: str | None, json: bool, quiet: bool, no_color: bool) -> int:
    """Say whether SPEC falls apart by a key, as --scope key needs: a .tla file, a binding (.toml) or a shipped name.

    If it does: what belongs to a key, and what is common to all. If not: what couples two keys, and where.

    Exit code 0: that was found out, whatever it is; 4: the spec has an error.
    """
    from specwatch.checker.slicing import Coupled, separable

    target = resolve(spec, config=config)
    loaded = _load(target)
    for warning in loaded.warnings:
        write_stderr(f"warning: {warning}")
    asked = key or (target.binding.key.param if target.binding and target.binding.key else None)
    try:
        proof = separable(loaded, asked, run_level=True)
    except Coupled as coupled:
        if json:
            write_json(_document(loaded, None, coupled))
        else:
            write(_text_of_coupled(coupled, color=wants_color(no_color), quiet=quiet))
        return 0
    if json:
        write_json(_document(loaded, proof, None))
    else:
        write(_text(loaded, proof, color=wants_color(no_color), quiet=quiet))
    return 0


def _load(target: Target) -> Spec:
    """The spec. What its constants are is nothing to the proof, so that those without a value get some."""
    from specwatch.checker.spec import Spec
    from specwatch.checker.tla.config import Config, parse_config
    from specwatch.checker.tla.modules import load, read_text

    program = load(target.spec)
    config = parse_config(read_text(Path(target.config)), target.config) if target.config else Config()
    known = {*config.constants, *config.replacements}
    lacking = {name for name, parameter in program.constants.items() if not parameter.arity and name not in known}
    # A constant from the log has a value of its own, also where the config replaces it by a definition.
    logged = (target.binding.constants.keys() if target.binding else set()) - config.constants.keys()
    return Spec(program, config, target.spec, dict.fromkeys(lacking | logged, frozenset()))


def _document(spec: Spec, proof: Separable | None, coupled: Coupled | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "exit_code": 0,
        "separable": proof is not None,
        "key": proof and proof.key,
        "keys": proof and proof.keys,
        "variables": {
            "keyed": [] if proof is None else [name for name in spec.variables if name in proof.keyed],
            "run_level": [] if proof is None else [name for name in spec.variables if name not in proof.keyed],
        },
        "actions": {
            "keyed": [] if proof is None else _labels(spec, set(spec.actions) - proof.run_level),
            "run_level": [] if proof is None else _labels(spec, proof.run_level),
            "choices": [] if proof is None else _labels(spec, proof.choices),
        },
        "coupled": None if coupled is None else _place(coupled),
        "spec": {"path": spec.path, "config": spec.config.path},
    }


def _place(coupled: Coupled) -> dict[str, Any]:
    span = coupled.span
    return {
        "part": coupled.part,
        "message": coupled.what,
        "text": span.text,
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "hint": coupled.hint,
    }


def _labels(spec: Spec, actions: Iterable[Action]) -> list[str]:
    """Actions by name, in the order of the text."""
    chosen = set(actions)
    return list(dict.fromkeys(action.label for action in spec.actions if action in chosen))


def _text(spec: Spec, proof: Separable, *, color: bool, quiet: bool) -> str:
    headline = f"✓ separable by {proof.key}, which ranges over {proof.keys}"
    lines = [f"\x1b[32m{headline}\x1b[0m" if color else headline]
    if quiet:
        return f"{lines[0]}\n"
    document = _document(spec, proof, None)
    for title, part in (("of one key", "keyed"), ("of the run, common to all keys", "run_level")):
        lines += ["", f"  {title}"]
        for kind in ("variables", "actions"):
            lines += _wrapped(f"    {kind:11}", document[kind][part])
    lines.append("")
    if document["actions"]["choices"]:
        lines.append(
            "  Keys see what these actions change, and must agree on it. --scope key needs them logged, each with"
        )
        lines += _wrapped("  all of its parameters: ", document["actions"]["choices"])
    else:
        lines.append("  --scope key judges each key by its own events and those of the run.")
    return "\n".join(lines) + "\n"


def _wrapped(head: str, names: Sequence[str]) -> list[str]:
    """Names after a head, on as many lines as they need."""
    text = ", ".join(names) or "none"
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


def _text_of_coupled(coupled: Coupled, *, color: bool, quiet: bool) -> str:
    from specwatch.checker.tla.errors import TlaError

    headline = "✗ not separable: logs are judged with --scope run"
    lines = [f"\x1b[31m{headline}\x1b[0m" if color else headline]
    if not quiet:
        told = TlaError(coupled.message, coupled.span, hint=coupled.hint)
        lines += ["", *map(plain, str(told).split("\n"))]
    return "\n".join(lines) + "\n"
