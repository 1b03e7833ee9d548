"""``specwatch check TARGET LOG…``: replay recorded logs against a spec and give a verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .app import Subcommand
from .errors import Refused
from .output import bound_options, output_options, verdict_options, wants_color, write, write_json_text
from .target import job

if TYPE_CHECKING:
    from specwatch.checker.api import Options
    from specwatch.checker.verdict import Verdict
    from specwatch.collector.binding import Binding


_DEFAULT_TIMEOUT = 45.0
_DEFAULT_MEMORY = 900 * 10**6


def _names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """``--hidden A,B --hidden C`` as one tuple; None where the option was not given."""
    if not values:
        return None
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _pairs(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``--set a=1 --set b=2`` as a mapping."""
    pairs = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise click.BadParameter(f"{value!r} is not NAME=VALUE", param=param)
        pairs[name.strip()] = text.strip()
    return pairs


@click.command("check", cls=Subcommand)
@click.argument("target")
@click.argument("logs", nargs=-1, metavar="LOG...")
@click.option(
    "--config", metavar="CFG", help="The configuration; without it the binding's, <Module>.cfg, or Init and Next."
)
@click.option(
    "--binding", metavar="TOML", help="The binding that maps records to actions, in place of the target's own."
)
@click.option(
    "--constant", "constants", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="A constant, as in a .cfg."
)
@click.option(
    "--hidden", multiple=True, callback=_names, metavar="A,B", help="Actions that no one logs and that may be inserted."
)
@click.option("--hidden-max", type=click.IntRange(min=0), metavar="N", help="The most hidden steps between two events.")
@click.option(
    "--order", type=click.Choice(["total", "emitter", "time"]), help="What orders events: lines, or seq by emitter."
)
@click.option("--scope", type=click.Choice(["run", "key"]), help="One behaviour a run, or one a key.")
@click.option(
    "--start", type=click.Choice(["init", "midway", "state"]), help="Where the log begins in the spec's life."
)
@click.option("--skew", metavar="TIME", help="The most that two clocks differ.")
@click.option(
    "--require",
    multiple=True,
    callback=_names,
    metavar="A,B",
    help="Actions that must have happened, or it is vacuous.",
)
@click.option("--strict", is_flag=True, help="Insert no hidden step.")
@click.option("--format", metavar="NAME", help="The log's format, where it is not to be found out.")
@click.option("--keep-constraints", is_flag=True, help="Let the config's CONSTRAINT bound the replay too.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="A setting, as visibility_timeout=7200.",
)
@verdict_options
@bound_options
@output_options
def command(target: str, logs: tuple[str, ...], **given: Any) -> int:
    """Replay recorded logs against a spec and give a verdict.

    TARGET is a shipped name (celery), a binding (.toml) that names a spec and a config, or a spec (.tla). LOG is a
    file, a directory, a glob, - for stdin, or a run directory; gz and zst are read too. Options override the binding.
    A run directory alone, as TARGET, is judged again as it was.

    Exit code 0: conforms; 1: violates or diverges; 3: inconclusive or vacuous; 4: an unreadable spec, config, binding
    or log.
    """
    verdict = judged(target, logs, given)
    _print(verdict, given)
    return verdict.exit_code


def judged(target: str, logs: Sequence[str], given: Mapping[str, Any]) -> Verdict:
    """What ``check TARGET LOG…`` finds; ``given`` has all of its other options by name, as click parsed them."""
    began = time.monotonic()
    from specwatch.checker.api import judge, load_spec
    from specwatch.collector.assemble import collect

    asked = job(target, logs, config=given["config"], binding=given["binding"], format=given["format"])
    collected = collect(
        asked.logs,
        asked.target.binding,
        format=asked.format,
        order=given["order"],
        start=given["start"],
        skew=given["skew"],
        settings=given["settings"],
    )
    spec = load_spec(
        asked.target.spec,
        asked.target.config,
        constants=collected.constants,
        constants_text=given["constants"],
    )
    options = _options(asked.target.binding, given, began)
    verdict = judge(spec, collected.behaviours, options, collected.ledger, collected.fault_events)
    verdict.inputs = collected.inputs
    verdict.legend = collected.legend
    verdict.assumptions = [
        *asked.notes,
        *collected.assumptions,
        *verdict.assumptions,
    ]
    if given["allow_inconclusive"] is not None:
        allow_inconclusive(verdict, given["allow_inconclusive"])
    return verdict


def allow_inconclusive(verdict: Verdict, share: Fraction) -> None:
    """Give an inconclusive verdict the exit code of the worst of the rest, where the undecided are few enough.

    An unmet ``require`` stays 3, and so does a run in which nothing conforms; the verdict's word is unchanged.
    """
    from specwatch.checker.verdict import EXIT_CODES

    behaviours = verdict.behaviours
    if verdict.verdict != "inconclusive" or not behaviours.inconclusive or not behaviours.conforms:
        return
    if any(not met for _, met in verdict.require) or behaviours.inconclusive > share * behaviours.total:
        return
    verdict.exit_code = EXIT_CODES["vacuous" if behaviours.vacuous else "conforms"]


def _options(binding: Binding | None, given: Mapping[str, Any], began: float) -> Options:
    """The options of the replay: what was given, else what the binding says."""
    from specwatch.checker.api import Options
    from specwatch.collector.assemble import skew_of
    from specwatch.collector.binding import Binding, with_settings

    options = Options(
        hidden=given["hidden"] or (),
        hidden_max=given["hidden_max"],
        skew=skew_of(binding or Binding(), given["skew"]),
        strict=given["strict"],
        scope=given["scope"] or (binding.scope if binding else "run"),
        start=given["start"] or (binding.start if binding else None) or "init",
        require=given["require"] or (),
        keep_constraints=given["keep_constraints"],
        max_states=given["max_states"],
        # By default the answer comes within a minute and a gigabyte, reading and reporting included.
        timeout=_DEFAULT_TIMEOUT if given["timeout"] is None else given["timeout"],
        max_memory=_DEFAULT_MEMORY if given["max_memory"] is None else given["max_memory"],
        began=began,
        max_findings=given["max_findings"],
    )
    if binding is not None:
        _bind(options, with_settings(binding, given["settings"]), given)
    return options


def _bind(options: Options, binding: Binding, given: Mapping[str, Any]) -> None:
    """Adds what a binding says and nothing on the command line overrides."""
    from specwatch.checker.api import Cause, Timed
    from specwatch.collector.binding import bounds

    if given["hidden"] is None:
        options.hidden = tuple(binding.hidden)
    if given["hidden_max"] is None:
        options.hidden_max = binding.hidden_max
    if given["require"] is None:
        options.require = tuple(binding.require)
    options.lossy = tuple(binding.lossy)
    options.never_lost = tuple(binding.never_lost)
    options.terminal = tuple(binding.terminal)
    options.complete = binding.complete
    options.at_end = tuple(binding.at_end)
    options.first = tuple(binding.first)
    options.start_within = binding.start_within
    options.start_states = binding.start_states
    options.when = tuple((name, hidden.when) for name, hidden in binding.hidden.items() if hidden.when is not None)
    options.timed = tuple(
        Timed(action=name, after=after, min=least, max=most) for name, (after, least, most) in bounds(binding).items()
    )
    options.keys_logged = any(constant.keys for constant in binding.constants.values())
    options.causes = tuple(
        Cause(first=cause.first, then=tuple(cause.then), on=tuple(cause.on)) for cause in binding.causes
    )
    param = binding.key.param if binding.key is not None else None
    if isinstance(param, list):
        if len(param) > 1 and options.scope == "key":
            raise Refused(
                f"scope key: a key of several parameters ({', '.join(param)}) cannot tell behaviours apart",
                file=binding.path,
                hint="say --scope run, or let the spec have one parameter for them, a tuple",
            )
        param = param[0] if len(param) == 1 else None
    options.key = param


def _print(verdict: Verdict, given: Mapping[str, Any]) -> None:
    from specwatch.checker import report
    from specwatch.checker.report import text

    if given["junit"]:
        Path(given["junit"]).write_text(report.render("junit", verdict), encoding="utf-8")
    if given["json"]:
        write_json_text(report.render("json", verdict))
        return
    color = wants_color(given["no_color"])
    if given["quiet"]:
        write(f"{text.counts(verdict, color=color)}\n")
    else:
        write(text.render(verdict, color=color))
