"""TARGET and LOG: which spec, config and binding a command means, and which files hold the log."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import shipped
from .errors import Refused

if TYPE_CHECKING:
    from specwatch.collector.binding import Binding

RUN_DIRECTORY = ("events.jsonl", "spec.tla", "spec.cfg", "binding.toml")
"""What makes a folder a run directory."""


@dataclass(frozen=True)
class Target:
    """What is judged against. ``config`` is None where Init and Next are meant."""

    spec: str
    config: str | None
    binding: Binding | None


@dataclass(frozen=True)
class Job:
    """A target and the logs to replay against it; ``notes`` say what was taken from a run directory."""

    target: Target
    logs: list[str]
    format: str | None
    notes: list[str]


def job(target: str, logs: Sequence[str], *, config: str | None, binding: str | None, format: str | None) -> Job:
    """What ``check TARGET LOG…`` means. A run directory among the logs stands for its ``events.jsonl``.

    A run directory alone, or with a shipped name, means that run's own spec, config and binding, so that it is judged
    as it was. Raises ``Refused``, click's ``UsageError`` where there is no log, and the errors of the binding.
    """
    if is_run_directory(target) and not logs:
        return _run(target, config=config, binding=binding)
    if not logs:
        raise click.UsageError("missing LOG: the logs to replay against TARGET (or give a run directory alone)")
    runs = [log for log in logs if is_run_directory(log)]
    if runs and len(runs) < len(logs):
        raise Refused("a run directory and other logs cannot be judged together", file=runs[0])
    if len(runs) == 1 and target in shipped.names() and binding is None:
        return _run(runs[0], config=config, binding=None)
    if not runs:
        return Job(resolve(target, config=config, binding=binding), list(logs), format, [])
    # The events of a run directory are native already: the binding's rules were applied when they were collected.
    notes = [f"{run} is a run directory: its events.jsonl is the log" for run in runs]
    logs = [str(Path(run) / "events.jsonl") for run in runs]
    return Job(resolve(target, config=config, binding=binding), logs, "native", notes)


def _run(directory: str, *, config: str | None, binding: str | None) -> Job:
    """A run directory, judged with what lies in it. The note names no path, so that it is the same wherever it lies."""
    folder = Path(directory)
    own = Target(
        spec=str(folder / "spec.tla"),
        config=_config(config, folder / "spec.tla") or str(folder / "spec.cfg"),
        binding=_load_binding(Path(binding) if binding else folder / "binding.toml"),
    )
    notes = ["a run directory is judged by its events.jsonl, with its own spec.tla, spec.cfg and binding.toml"]
    return Job(own, [str(folder / "events.jsonl")], "native", [] if config or binding else notes)


def resolve(target: str, *, config: str | None = None, binding: str | None = None) -> Target:
    """The spec, config and binding that TARGET names: a shipped name, a binding (.toml) or a spec (.tla).

    ``binding`` takes the place of the target's own; a spec's path in it does not. Raises ``Refused`` and the errors of
    the binding.
    """
    if target.endswith(".tla"):
        spec = _existing(Path(target), ".tla")
        loaded = _load_binding(Path(binding)) if binding else None
        return Target(str(spec), _config(config, spec) or _bound_config(loaded, binding) or _beside(spec), loaded)
    path = _existing(Path(target), ".toml") if target.endswith(".toml") else _shipped(target)
    own = _load_binding(path)
    if own.spec is None:
        raise Refused("the binding names no spec", file=str(path), hint='add a line like: spec = "Queue.tla"')
    spec = _existing(path.parent / own.spec, ".tla")
    chosen = _config(config, spec)
    if binding is None:
        return Target(str(spec), chosen or _bound_config(own, str(path)) or _beside(spec), own)
    other = _load_binding(Path(binding))
    return Target(
        str(spec), chosen or _bound_config(other, binding) or _bound_config(own, str(path)) or _beside(spec), other
    )


def is_run_directory(path: str) -> bool:
    """Whether a path is a folder that a chaos run left behind."""
    return all((Path(path) / name).is_file() for name in RUN_DIRECTORY)


def _shipped(target: str) -> Path:
    if target not in shipped.names() and Path(target).exists():
        raise Refused(
            "is neither a spec (.tla) nor a binding (.toml)",
            file=target,
            hint=f"TARGET comes before the logs; the shipped names are: {', '.join(shipped.names()) or 'none'}",
        )
    return shipped.binding_path(target)


def _load_binding(path: Path) -> Binding:
    from specwatch.collector.binding import load_binding

    return load_binding(str(_existing(path, ".toml")))


def _bound_config(binding: Binding | None, path: str | None) -> str | None:
    if binding is None or binding.config is None or path is None:
        return None
    return str(_existing(Path(path).parent / binding.config, ".cfg"))


def _config(config: str | None, spec: Path) -> str | None:
    """``--config`` as it is named from here, or as it is named beside the spec."""
    if config is None:
        return None
    path = Path(config)
    return str(_existing(path if path.exists() else spec.parent / config, ".cfg"))


def _beside(spec: Path) -> str | None:
    config = spec.with_suffix(".cfg")
    return str(config) if config.is_file() else None


def _existing(path: Path, suffix: str) -> Path:
    if path.is_dir():
        raise Refused("is a directory, not a file", file=str(path))
    if not path.exists():
        others = [other.name for other in path.parent.glob(f"*{suffix}")]
        near = difflib.get_close_matches(path.name, others, n=3, cutoff=0.5)
        raise Refused(
            "there is no such file", file=str(path), hint=f"did you mean {' or '.join(near)}?" if near else None
        )
    return path
