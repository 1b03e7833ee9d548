"""The binding by which a run is judged: what is the same of all pilots, and a pilot's own."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .plan import Plan


def binding(
    plan: Plan,
    *,
    hidden: str,
    terminal: Iterable[str],
    constants: str,
    scope: str = "key",
    skew: str = "",
    never_lost: Iterable[str] = (),
    unwritten: int | None = None,
) -> str:
    """The ``binding.toml`` of a run directory.

    ``hidden`` is TOML, with comments: ``hidden = […]``, or the tables ``[hidden.X]`` and what they need. ``constants``
    are lines of its table besides ``Tasks`` and ``Workers``. ``skew``: a line with its comment. ``never_lost`` are
    actions besides those that no pilot does. ``unwritten``: how many steps a worker that was killed may have kept from
    its log, by default one of each of its threads, and one.
    """
    tables = "[hidden." in hidden  # Which stand at the end.
    kept = plan.concurrency + 1 if unwritten is None else unwritten
    return f"""\
# How this run was judged; `specwatch check` and this folder's name judge it again.

spec = "spec.tla"
config = "spec.cfg"
format = "native"
scope = "{scope}"
order = "total"  # one machine, one clock: events.jsonl is in the order in which things happened
{skew}start = "init"
require = {json.dumps(plan.required)}
{"" if tables else chr(10) + hidden}
# The pilot commits once and takes nothing back, its producer, which may publish again, is not killed, and who is killed
# closes nothing.
never_lost = {json.dumps(["Republish", "Undo", *never_lost])}
# A process tells of one worker, and writes what it did before it goes on: what is missing of one that was killed is no
# more than a step of each of its threads.
by_emitter = ["w"]
unwritten = {kept}

terminal = {json.dumps(list(terminal))}

[key]
param = "t"

[constants]
Tasks = {{ keys = true }}
Workers = {{ values = "w" }}
{constants}{chr(10) + hidden if tables else ""}"""


def timer(plan: Plan, action: str, *, after: str, length: str) -> str:
    """The table of a hidden step that comes a while after another; ``length`` names a setting, the plan's timeout.

    Times of a log whose clock was made wrong say nothing about it, and then it may come at any time.
    """
    if "clock" in plan.faults or "random" in plan.faults:
        return f"[hidden.{action}]\n"
    return f"""\
[hidden.{action}]
after = "{after}"
min = "{length}"

[settings]
{length} = "{plan.timeout:g}s"
"""


CHECK = """\
# What a guard answers is seen in what follows, Execute or Skip.
[hidden.Check]
"""
