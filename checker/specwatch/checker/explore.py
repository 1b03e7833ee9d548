"""Breadth-first model checking with TLC's order and TLC's counts (one worker; ``tlc2.tool.ModelChecker``).

``generated`` counts the initial states and every step that is found, as often as it is found; ``distinct`` the
different states within the CONSTRAINTs; ``depth`` the states on the longest of the shortest ways from an initial
state. The search stops at the first broken invariant or step property, or deadlock, so that the numbers are then those
up to it, and the counterexample is a shortest one. Invariants are checked on states outside the CONSTRAINTs too, which
are not followed further; step properties on every step that no ACTION_CONSTRAINT refuses, to a known state too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

from .bounds import BoundReached, Bounds
from .spec import Action, Spec, State, Successor
from .tla.errors import TlaEvaluationError
from .tla.evaluate import Step
from .tla.show_values import show
from .tla.values import Value

Outcome = Literal["pass", "violates", "deadlock", "assumption", "postcondition", "liveness", "error", "bound"]

EXIT_CODES: dict[Outcome, int] = {
    "pass": 0,
    "violates": 1,
    "deadlock": 1,
    "assumption": 1,
    "postcondition": 1,
    "liveness": 1,
    "error": 4,
    "bound": 3,
}


class TraceStep(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a counterexample with the step that led to it; the first has no action. All values are TLA+ text."""

    action: str | None
    params: dict[str, str]
    state: dict[str, str]


class Exploration(msgspec.Struct, kw_only=True):
    """What model checking found; ``exit_code`` is 3 for a pass that left something unchecked."""

    outcome: Outcome
    exit_code: int
    generated: int
    distinct: int
    depth: int
    invariant: str | None = None
    trace: list[TraceStep] = []
    unchecked: list[str] = []
    notes: list[str] = []
    """What the config asks for and the search does without, and why that changes no answer."""
    message: str | None = None
    seconds: float = 0.0

    def to_json(self) -> str:
        """The result as one JSON object, schema ``specwatch.explore/1``."""
        fields = {"schema": "specwatch.explore/1", **{name: getattr(self, name) for name in self.__struct_fields__}}
        return msgspec.json.encode(fields).decode()


class Progress(msgspec.Struct, frozen=True):
    """How far the search has come."""

    generated: int
    distinct: int
    depth: int
    queued: int


_REPORT_EVERY = 4096


class _Search:
    """The states seen so far, each with how it was reached first."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.reached: dict[State, tuple[State, Action, tuple[tuple[str, Value], ...]] | None] = {}
        self.generated = 0
        self.depth = 0
        self.queue: deque[tuple[State, int]] = deque()
        self.outside: dict[State, tuple[State, Action, tuple[tuple[str, Value], ...]] | None] = {}

    def trace(self, state: State, last: Successor | None = None) -> list[TraceStep]:
        """The way to a state by which it was reached first, and a last step from it."""
        steps: list[TraceStep] = []
        at: State | None = state
        while at is not None:
            shown = self._shown(at)
            way = self.outside.get(at) if at in self.outside else self.reached.get(at)
            if way is None:
                steps.append(TraceStep(action=None, params={}, state=shown))
                break
            at, action, params = way
            steps.append(self._step(action, params, shown))
        steps.reverse()
        if last is not None:
            steps.append(self._step(last.action, last.params, self._shown(last.state)))
        return steps

    def _shown(self, state: State) -> dict[str, str]:
        return {name: show(value) for name, value in self.spec.mapping(state).items()}

    @staticmethod
    def _step(action: Action, params: tuple[tuple[str, Value], ...], shown: dict[str, str]) -> TraceStep:
        return TraceStep(action=action.name, params={name: show(value) for name, value in params}, state=shown)


def explore(
    spec: Spec,
    *,
    deadlock: bool | None = None,
    max_states: int | None = None,
    timeout: float | None = None,
    max_memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Exploration:
    """Explores all states of a spec.

    :param deadlock: whether a state without a step is an error; None leaves it to CHECK_DEADLOCK, and that to TRUE.
    :param max_states: distinct states; the other bounds as in :class:`.bounds.Bounds`.
    :param progress: called now and then, from this thread.
    """
    if deadlock is None:
        deadlock = spec.config.check_deadlock is not False
    bounds = Bounds(max_states, timeout, max_memory, clock)
    spec.evaluator.watch = bounds.watch
    search = _Search(spec)
    began = clock()
    current: State | None = None
    notes = [
        f"{what} {named.name} is not applied: every state is explored, and the counts are those without it"
        for named, what in ((spec.config.symmetry, "SYMMETRY"), (spec.config.view, "VIEW"))
        if named is not None
    ] + spec.warnings
    if spec.config.alias is not None:
        notes.append(f"ALIAS {spec.config.alias.name} is not applied: states are shown by the spec's own variables")

    def result(outcome: Outcome, **more: object) -> Exploration:
        unchecked = list(spec.unchecked)
        return Exploration(
            outcome=outcome,
            exit_code=3 if unchecked and outcome == "pass" else EXIT_CODES[outcome],
            generated=search.generated,
            distinct=len(search.reached),
            depth=search.depth,
            unchecked=unchecked,
            notes=notes,
            seconds=clock() - began,
            **more,  # type: ignore[arg-type]
        )

    def found(state: State, way: tuple[State, Action, tuple[tuple[str, Value], ...]] | None, depth: int) -> str | None:
        """Takes in a state; the invariant that it breaks, if any."""
        nonlocal current
        search.generated += 1
        if state in search.reached:
            return None
        if way is not None and not spec.in_action_constraints(way[0], state):
            return None
        inside = spec.in_constraints(state)
        if inside:
            search.reached[state] = way
            search.depth = max(search.depth, depth)
        else:
            search.outside[state] = way
        current = state
        step = Step(spec.mapping(state))
        for invariant in spec.invariants if way is not None else (*spec.invariants, *spec.initial_properties):
            if not spec.holds(invariant.expression, step):
                return invariant.name
        if inside:
            search.queue.append((state, depth))
        return None

    try:
        assumption = spec.false_assumption()
        if assumption is not None:
            line, column = assumption.span.line, assumption.span.column
            return result(
                "assumption",
                message=f"{assumption.span.file}:{line}:{column}: the ASSUME {assumption.body.span.text} is FALSE",
            )
        for state in spec.initial_states():
            broken = found(state, None, 1)
            if broken is not None:
                return result("violates", invariant=broken, trace=search.trace(state))
        reported = 0
        while search.queue:
            state, depth = search.queue.popleft()
            current = state
            stuck = True
            for successor in spec.successors(state):
                stuck = False
                broken = found(successor.state, (state, successor.action, successor.params), depth + 1)
                if broken is not None:
                    return result("violates", invariant=broken, trace=search.trace(successor.state))
                if spec.step_properties and spec.in_action_constraints(state, successor.state):
                    current = state
                    unlike = spec.broken_step(state, successor.state)
                    if unlike:
                        name = next(one.name for one in spec.step_properties if one.name in unlike)
                        return result("violates", invariant=name, trace=search.trace(state, successor))
            if stuck and deadlock:
                return result("deadlock", trace=search.trace(state), message="no step is possible in the last state")
            bounds.check(len(search.reached))
            if progress is not None and len(search.reached) >= reported + _REPORT_EVERY:
                reported = len(search.reached)
                progress(Progress(search.generated, len(search.reached), search.depth, len(search.queue)))
    except TlaEvaluationError as error:
        return result("error", message=str(error), trace=search.trace(current) if current is not None else [])
    except BoundReached as bound:
        return result("bound", message=f"the search was given up: {bound}")
    return result("pass")
