"""Why: the invariant with the values that make it false; the conjuncts of the action that could not happen; what could.

An explanation is made by the oracle from the nodes that the replay ended with, on the way with the fewest hidden steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from immutables import Map

from .actions import Action
from .behaviour import Behaviour, Event, Json
from .observe import candidates, matches, model_names, to_value
from .paths import Break, Filled, Inserted, Node, Outcome, Way
from .reading import Reading, event_fields, taken
from .replay import Replay
from .spec import Spec, State
from .tla import tree
from .tla.errors import TlaEvaluationError
from .tla.evaluate import Branch, Environment, Given, Inline, Leaf, Operator, Step, Thunk
from .tla.show_values import show, show_short
from .tla.values import ModelValue, Value, ValueProblem, elements, is_finite
from .verdict import Conjunct, Explanation, Finding, HiddenStep

# An explanation is for reading: what is beyond these counts would not be read, and could cost more than the replay.
_CONTEXT = 12
_STATES = 200
_CHOICES = 50
_STEPS = 500
_INSTEAD = 10
_READ = 4


def call(action: str, params: Iterable[tuple[str, str]]) -> str:
    """``Pickup(t = "t1", w = "w1")``: an action with parameters that are TLA+ text already."""
    inside = ", ".join(f"{name} = {value}" for name, value in params)
    return f"{action}({inside})" if inside else action


def _call(action: Action, params: tuple[tuple[str, Value], ...]) -> str:
    return call(action.label, ((name, show_short(value)) for name, value in params))


def event_call(event: Event) -> str:
    """An event as it is spoken of in a sentence."""
    return call(event.action, ((name, _json(value)) for name, value in event.params.items()))


def _json(value: Json) -> str:
    try:
        return show_short(to_value(value))
    except ValueProblem:
        return str(value)


def explain(spec: Spec, behaviour: Behaviour, replay: Replay, outcome: Outcome) -> Finding:
    """The finding for a behaviour that violates or diverges."""
    if outcome.word == "violates":
        return _explain_break(spec, behaviour, replay, outcome)
    return _explain_divergence(spec, behaviour, replay, outcome)


def hidden_steps(replay: Replay, node: Node) -> list[HiddenStep]:
    """The hidden steps on the way to a node."""
    return [
        HiddenStep(
            before=replay.number(step.before),
            action=step.action.label,
            params={name: show(value) for name, value in step.params},
        )
        for step in Way.steps(node.way)
        if isinstance(step, Inserted)
    ]


def _fillings(replay: Replay, node: Node) -> list[str]:
    """What was lost, as the way to a node takes it, in sentences."""
    return [
        f"what is missing ({replay.windows[step.window].loss.detail}) is taken for {_call(step.action, step.params)}, "
        f"before event {replay.number(step.before)}"
        for step in Way.steps(node.way)
        if isinstance(step, Filled)
    ]


def _events(behaviour: Behaviour, replay: Replay, node: Node) -> list[Event]:
    """The events that a node explains, in the order in which its way takes them."""
    if behaviour.order == "total":
        return behaviour.events[: node.cut[0]]
    done = [0] * len(replay.lanes)
    found = []
    for step in Way.steps(node.way):
        if isinstance(step, int):
            found.append(replay.lanes[step][done[step]])
            done[step] += 1
    return found


def _context(replay: Replay, events: list[Event], last: Event | None) -> list[tuple[int, Event]]:
    """The last events that have to do with the failing one: its key, or a parameter's value."""
    numbered = [(replay.number(number), event) for number, event in enumerate(events, 1)]
    if last is not None:
        values = {value for value in last.params.values() if isinstance(value, (str, int))}
        related = [
            (number, event)
            for number, event in numbered
            if event is last
            or (last.key is not None and event.key == last.key)
            or any(isinstance(value, (str, int)) and value in values for value in event.params.values())
        ]
        numbered = related
    return numbered[-_CONTEXT:]


# --- a broken invariant ---------------------------------------------------------------------------------------------


def _explain_break(spec: Spec, behaviour: Behaviour, replay: Replay, outcome: Outcome) -> Finding:
    least = outcome.invariants
    shortest = [node for node in outcome.nodes if node.hidden == outcome.hidden]
    # Of the ways with the fewest hidden steps one that breaks least: what is said then holds for the set that is named.
    node = next((node for node in shortest if node.broken in least), shortest[0])
    first = node.first_break
    # A broken node has broken something, at some event.
    assert first is not None
    assert outcome.at is not None
    events = _events(behaviour, replay, node)
    event = events[-1] if outcome.at else None
    name = "|".join("+".join(sorted(one)) for one in least)
    broke = "+".join(sorted(first.invariants))
    if first.at == 0:
        summary = f"every initial state breaks {broke}"
    elif first.hidden is not None:
        what = "the lost step" if _is_filled(node, first) else "the hidden step"
        summary = f"{what} {first.hidden.label} before event {replay.number(first.at)} breaks {broke}"
    else:
        summary = f"event {replay.number(first.at)}, {event_call(events[first.at - 1])}, breaks {broke}"
    if first.at != outcome.at:
        summary += f"; the last way around it ends at event {replay.number(outcome.at)}"
    return Finding(
        verdict="violates",
        at=replay.number(outcome.at),
        event=event,
        invariant=name,
        action=first.hidden.label if first.hidden is not None else event.action if event is not None else None,
        hidden=hidden_steps(replay, node),
        explanation=Explanation(
            summary=summary,
            margins=_fillings(replay, node),
            conjuncts=_false_parts(spec, first),
            state_before=_shown(spec, first.before if first.before is not None else first.after),
            state_change=_changed(spec, first),
        ),
        context=_context(replay, events, event),
    )


def _is_filled(node: Node, first: Break) -> bool:
    """Whether the step that broke something first is one that was lost."""
    steps = [step for step in Way.steps(node.way) if not isinstance(step, int) and step.before == first.at]
    return any(isinstance(step, Filled) and step.action is first.hidden for step in steps)


def _false_parts(spec: Spec, first: Break) -> list[Conjunct]:
    """The parts of what was broken that are FALSE: of the invariants, and of the actions of step properties."""
    after = Step(spec.mapping(first.after))
    broken: list[tuple[tree.Expression, Step]] = [
        (one.expression, after)
        for one in spec.invariants
        if one.name in first.invariants and not spec.holds(one.expression, after)
    ]
    if first.before is not None:
        step = Step(spec.mapping(first.before), spec.mapping(first.after))
        broken += [
            (one.expression, step)
            for one in spec.step_properties
            if one.name in first.invariants and not spec.holds(one.box, step)
        ]
    return [part for expression, where in broken for part in _falsified(spec, expression, {}, where)]


def _shown(spec: Spec, state: State) -> dict[str, str]:
    return {name: show(value) for name, value in spec.mapping(state).items()}


def _changed(spec: Spec, first: Break) -> dict[str, list[str]]:
    """What a step changed, by the smallest expression that names it."""
    if first.before is None:
        return {}
    changes: dict[str, list[str]] = {}
    for name, old, new in zip(spec.variables, first.before, first.after, strict=True):
        for where, one, other in _differences(name, old, new):
            changes[where] = [show(one), show(other)]
    return changes


def _differences(where: str, old: Value, new: Value) -> Iterator[tuple[str, Value, Value]]:
    if old == new:
        return
    if type(old) is Map and type(new) is Map and frozenset(old) == frozenset(new):
        for key in elements(frozenset(old)):
            yield from _differences(f"{where}[{show(key)}]", old[key], new[key])
    elif type(old) is tuple and type(new) is tuple and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True), 1):
            yield from _differences(f"{where}[{index}]", one, other)
    else:
        yield where, old, new


def _falsified(spec: Spec, node: tree.Expression, environment: Environment, step: Step) -> list[Conjunct]:
    """The parts that make a Boolean expression FALSE, as small as they can be told."""
    evaluator = spec.evaluator
    if isinstance(node, tree.And):
        for item in node.items:
            if not evaluator.truth(item, environment, step):
                return _falsified(spec, item, environment, step)
    elif isinstance(node, tree.Or):
        return [part for item in node.items for part in _falsified(spec, item, environment, step)]
    elif isinstance(node, tree.Quantifier) and node.kind == "\\A":
        for inner in evaluator.bindings(node.bounds, environment, step):
            if not evaluator.truth(node.body, inner, step):
                return _falsified(spec, node.body, inner, step)
    elif isinstance(node, tree.Let):
        return _falsified(spec, node.body, evaluator.let(node.units, environment), step)
    elif isinstance(node, tree.If):
        chosen = node.then if evaluator.truth(node.condition, environment, step) else node.otherwise
        return _falsified(spec, chosen, environment, step)
    elif isinstance(node, tree.Apply) and node.operator.name == "=>" and "=>" not in environment:
        told = _conjunct(spec, node.arguments[0], environment, step, "TRUE")
        return [told, *_falsified(spec, node.arguments[1], environment, step)]
    else:
        inlined = _inlined(spec, node, environment)
        if inlined is not None:
            return _falsified(spec, inlined[0], inlined[1], step)
    return [_conjunct(spec, node, environment, step, "FALSE")]


def _inlined(spec: Spec, node: tree.Expression, environment: Environment) -> tuple[tree.Expression, Environment] | None:
    """A definition's body in place of its application."""
    if isinstance(node, tree.Name):
        name = node.name
        arguments: tuple[tree.Expression, ...] = ()
    elif isinstance(node, tree.Apply):
        name, arguments = node.operator.name, node.arguments
    else:
        return None
    definition = spec.program.definitions.get(name)
    if name in environment or not isinstance(definition, tree.Definition) or name in spec.program.recursive:
        return None
    return definition.body, spec.evaluator.arguments(definition.parameters, arguments, environment)


def _conjunct(spec: Spec, node: tree.Node, environment: Environment, step: Step, value: str) -> Conjunct:
    return Conjunct(
        text=node.span.text,
        file=node.span.file,
        line=node.span.line,
        column=node.span.column,
        value=value,
        values=_read(spec, node, environment, step),
    )


def _read(spec: Spec, node: tree.Node, environment: Environment, step: Step) -> dict[str, str]:
    """What an expression reads, by the expression with its parameters' values: ``exec["t1"]`` → ``2``."""
    found: dict[str, str] = {}
    stack: list[tree.Node] = [node]
    while stack and len(found) < _READ:
        current = stack.pop()
        if isinstance(current, (tree.FunctionApplication, tree.Field, tree.Name, tree.Prime)):
            label = _label(spec, current, environment, step)
            if label is not None and label[1] and label[0] not in found:
                try:
                    found[label[0]] = show_short(spec.evaluator.value(current, environment, step))
                    continue
                except TlaEvaluationError:
                    pass
            if isinstance(current, tree.Prime):
                continue  # without the prime it would be another value
        stack.extend(reversed(tuple(tree.children(current))))
    return found


def _label(spec: Spec, node: tree.Expression, environment: Environment, step: Step) -> tuple[str, bool] | None:
    """An expression with parameters replaced by their values, and whether it tells more than it says (not a mere
    constant).
    """
    if isinstance(node, tree.Name):
        if node.name in spec.variables and node.name not in environment:
            return node.name, True
        bound = environment.get(node.name)
        if bound is None or isinstance(bound, Operator):
            return None
        if isinstance(bound, Thunk):
            return _label(spec, bound.node, bound.environment, step)
        return node.name, True
    if isinstance(node, tree.FunctionApplication):
        inner = _label(spec, node.function, environment, step)
        if inner is None:
            return None
        shown = []
        for argument in node.arguments:
            try:
                shown.append(show_short(spec.evaluator.value(argument, environment, step)))
            except TlaEvaluationError:
                return None
        return f"{inner[0]}[{', '.join(shown)}]", True
    if isinstance(node, tree.Prime) and isinstance(node.body, tree.Name):
        inner = _label(spec, node.body, environment, step)
        return None if inner is None else (f"{inner[0]}'", True)
    if isinstance(node, tree.Field):
        inner = _label(spec, node.record, environment, step)
        return None if inner is None else (f"{inner[0]}.{node.name}", True)
    return None


# --- a step that the spec does not allow ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Outside:
    """A parameter's value that is not in its set."""

    value: Json
    domain: tree.Expression
    environment: Environment
    step: Step


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An event tried in a state: each conjunct with its value, and the step as far as it could be built."""

    conjuncts: tuple[Conjunct, ...]
    step: Step
    action: Action
    chosen: tuple[tuple[str, Value], ...] = ()
    """The parameters, as far as they have a value."""
    outside: tuple[_Outside, ...] = ()

    @property
    def false(self) -> int:
        return sum(conjunct.value != "TRUE" for conjunct in self.conjuncts)

    def and_(self, conjunct: Conjunct, step: Step | None = None) -> _Attempt:
        return replace(self, conjuncts=(*self.conjuncts, conjunct), step=step or self.step)

    def choosing(self, name: str, value: Value) -> _Attempt:
        return replace(self, chosen=(*self.chosen, (name, value)))


def _explain_divergence(spec: Spec, behaviour: Behaviour, replay: Replay, outcome: Outcome) -> Finding:
    assert outcome.at is not None  # a divergence is at an event
    best: tuple[int, int, Node, Reading, _Attempt] | None = None
    for node, reading in _last_tries(replay, outcome):
        for attempt in _attempts(spec, reading, node.state):
            if best is None or (attempt.false, node.hidden) < best[:2]:
                best = (attempt.false, node.hidden, node, reading, attempt)
    assert best is not None  # a good node of the level before has an event to try
    _, _, node, reading, attempt = best
    event = reading.event
    false = [conjunct for conjunct in attempt.conjuncts if conjunct.value != "TRUE"]
    cause, remedy = next((found for one in attempt.outside if (found := _model_bound(spec, one))), (None, None))
    what = f"{false[0].text} is {false[0].value}" if false else "what was observed is not what the step does"
    instead, legal_if = _instead(spec, reading, node.state)
    events = [*_events(behaviour, replay, node), event]
    return Finding(
        verdict="diverges",
        at=replay.number(outcome.at),
        event=event,
        action=event.action,
        hidden=hidden_steps(replay, node),
        explanation=Explanation(
            summary=f"event {replay.number(outcome.at)}, {event_call(event)}, is no step of the spec here: {what}",
            cause=cause,
            remedy=remedy,
            margins=_fillings(replay, node),
            conjuncts=list(attempt.conjuncts),
            enabled_instead=instead,
            legal_if=legal_if,
            state_before=_shown(spec, node.state),
        ),
        context=_context(replay, events, event),
    )


def _last_tries(replay: Replay, outcome: Outcome) -> Iterator[tuple[Node, Reading]]:
    """The good nodes before the failing event, those with hidden steps inserted too, with the events that were tried
    there.
    """
    assert outcome.at is not None
    by_cut: dict[tuple[int, ...], list[Node]] = {}
    for node in outcome.previous:
        by_cut.setdefault(node.cut, []).append(node)
    for cut, group in by_cut.items():
        for nexts in replay.nexts(cut):
            closure = replay.closure(group, outcome.at, [reading for _, reading in nexts])
            for node in islice((node for node in closure if not node.broken), _STATES):
                for _, reading in nexts:
                    yield node, reading


def _attempts(spec: Spec, reading: Reading, state: State) -> Iterator[_Attempt]:
    """The event tried as each action that it may be, with each choice of what it leaves open."""
    event = reading.event
    step = Step(spec.mapping(state), {})
    for actions, bound in reading.requests:
        for action in spec.actions:
            if action not in actions:
                continue
            tries = _try(spec, spec.next, action, bound, {}, _Attempt((), step, action))
            for attempt in islice(tries, _CHOICES):
                yield _with_expectations(spec, reading, _with_observations(spec, event, state, attempt))


def _with_observations(spec: Spec, event: Event, state: State, attempt: _Attempt) -> _Attempt:
    """Adds what was observed before and after, where it is not what the state is."""
    before = spec.mapping(state)
    after = attempt.step.after or {}
    for seen, values, known, when in ((event.before, before, {}, "before"), (event.state, after, before, "after")):
        for name, part in (seen or {}).items():
            if name not in spec.variables:
                attempt = attempt.and_(_observation(event, f"the spec has no variable {name}", {}))
            elif name in values:
                for text, shown in _unlike(name, part, values[name], known.get(name), when):
                    attempt = attempt.and_(_observation(event, text, shown))
    return attempt


def _observation(event: Event, text: str, values: dict[str, str], value: str = "FALSE") -> Conjunct:
    """What stands in no spec, told at the event's place in the log."""
    source = event.source
    return Conjunct(
        text=text,
        file=source.file if source else "",
        line=source.line if source else 0,
        column=1 if source else 0,
        value=value,
        values=values,
    )


def _unlike(
    label: str, part: Json, value: Value, before: Value | None, when: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """The smallest parts of what was observed that are not so: each in words, with the values that it was read from."""
    if matches(part, value, before=before):
        return
    tag = next(iter(part)) if isinstance(part, dict) and len(part) == 1 else ""
    if isinstance(part, dict) and type(value) is Map and not tag.startswith("#"):
        known = before if type(before) is Map else Map()
        names = {key if isinstance(key, str) else str(key): key for key in value}
        for name, inner in part.items():
            if name not in names:
                yield f"{label} observed {when} the step with {show(name)} in it", {label: show_short(value)}
                continue
            key = names[name]
            yield from _unlike(f"{label}[{show(key)}]", inner, value[key], known.get(key), when)
        return
    values = {label: show_short(value)}
    if tag in _CHANGES:
        values = {f"{label} before": "nothing" if before is None else show_short(before), **values}
        yield f"{label} observed to {_CHANGES[tag]} {_json(part[tag])}", values
    else:
        yield f"{label} observed {when} the step as {_json(part)}", values


_CHANGES = {"#delta": "change by", "#added": "gain", "#removed": "lose", "#appended": "end with more:"}


def _with_expectations(spec: Spec, reading: Reading, attempt: _Attempt) -> _Attempt:
    """Adds what is expected after the event, where it is not TRUE in the state that the step leads to."""
    after = attempt.step.after or {}
    if len(after) < len(spec.variables):
        return attempt
    params = dict(attempt.chosen)
    bound = {**{name: params[other] for name, other in attempt.action.aliases.items() if other in params}, **params}
    step = Step(after)
    for predicate in reading.expected:
        environment = predicate.environment(spec, bound, event_fields(reading.event))
        try:
            if spec.evaluator.truth(predicate.expression, environment, step):
                continue
            value = "FALSE"
        except TlaEvaluationError as error:
            value = f"without a value ({error.message})"
        values = _read(spec, predicate.expression, environment, step)
        attempt = attempt.and_(_observation(reading.event, f"expected: {predicate.text}", values, value))
    return attempt


def _model_bound(spec: Spec, outside: _Outside) -> tuple[str, str] | None:
    """Cause and remedy, where a value is outside a set only because a constant of the config bounds the model."""
    parts = [outside.domain, *(item.node for item in outside.environment.values() if isinstance(item, Thunk))]
    for name in sorted({name for part in parts for name in spec.levels.constants(part)}):
        bound = spec.evaluator.constants.get(name)
        for raised in _raised(bound, outside.value):
            try:
                wider = spec.with_constants({name: raised})
                step = Step(outside.step.before, outside.step.after)
                collection = wider.evaluator.value(outside.domain, outside.environment, step)
            except TlaEvaluationError:
                continue
            if candidates(outside.value, collection, spec.models | model_names([raised])):
                value = _json(outside.value)
                told = f"{name} = {show_short(bound)} bounds the model: {value} is outside {outside.domain.span.text}"
                if type(raised) is int:
                    return told, f"raise {name}: --constant {name}={raised}"
                return told, f"let {name} hold {value} too: --constant '{name}={show_short(raised)}'"
    return None


def _raised(bound: Value | None, value: Json) -> Iterator[Value]:
    """Values of a constant that let more in: a larger number, a set with one more element of the same kind."""
    if type(bound) is int and type(value) is int:
        # 1..N, 0..N - 1, 1..N + 1, 1..2 * N.
        yield from (larger for larger in (value - 1, value, value + 1) if larger > bound)
    elif type(bound) is frozenset and bound:
        for item in (_meant(value), ModelValue(value) if isinstance(value, str) else None):
            if item is not None and all(type(item) is type(other) for other in bound):
                yield bound | {item}


def _try(
    spec: Spec,
    node: tree.Expression,
    action: Action,
    bound: dict[str, list[Json]],
    environment: Environment,
    attempt: _Attempt,
) -> Iterator[_Attempt]:
    """Goes down Next to one action, each conjunct on the way judged in the order of the text."""
    evaluator = spec.evaluator
    if isinstance(node, Branch):
        for item, actions in node.items:
            if action in actions:
                yield from _try(spec, item, action, bound, environment, attempt)
    elif isinstance(node, Inline):
        inner = evaluator.arguments(node.parameters, node.arguments, environment)
        yield from _try(spec, node.body, action, bound, inner, attempt)
    elif isinstance(node, Given):
        for choice, tried in _choices(spec, node, bound, environment, attempt):
            if choice is None:
                yield tried
            else:
                yield from _try(spec, node.body, action, bound, choice, tried)
    elif isinstance(node, Leaf):
        if node.action is action:
            yield from _judged(spec, node.body, environment, attempt)
    elif isinstance(node, tree.Let):
        yield from _try(spec, node.body, action, bound, evaluator.let(node.units, environment), attempt)
    elif isinstance(node, tree.And):
        yield from _try_all(spec, node.items, action, bound, environment, attempt)
    else:
        yield from _judged(spec, node, environment, attempt)


def _try_all(
    spec: Spec,
    items: tuple[tree.Expression, ...],
    action: Action,
    bound: dict[str, list[Json]],
    environment: Environment,
    attempt: _Attempt,
) -> Iterator[_Attempt]:
    if not items:
        yield attempt
        return
    for tried in _try(spec, items[0], action, bound, environment, attempt):
        yield from _try_all(spec, items[1:], action, bound, environment, tried)


def _choices(
    spec: Spec, node: Given, bound: dict[str, list[Json]], environment: Environment, attempt: _Attempt
) -> Iterator[tuple[Environment | None, _Attempt]]:
    """The parameters of an action: as the event gives them, in their set or not, or each that the set has. None where
    there is no value to go on with.
    """
    found: list[tuple[Environment, _Attempt]] = [(environment, attempt)]
    for part in node.bounds:
        assert part.domain is not None  # an unbounded quantifier gives no parameters
        collection = spec.evaluator.value(part.domain, environment, attempt.step)
        for index, name in enumerate(part.names):
            given = bound.get(name)
            if part.tuple_pattern or given is None:
                items = elements(collection)[:_CHOICES] if is_finite(collection) else ()
                values = [item[index] for item in items] if part.tuple_pattern else list(items)
                found = [
                    ({**inner, name: value}, tried.choosing(name, value)) for inner, tried in found for value in values
                ]
                if not found:
                    told = Conjunct(
                        text=f"\\E {part.span.text}",
                        file=part.span.file,
                        line=part.span.line,
                        column=part.span.column,
                        value="FALSE",
                        values={part.domain.span.text: show_short(collection)},
                    )
                    yield None, attempt.and_(told)
                    return
                continue
            inside = candidates(given[0], collection, spec.models)
            told = Conjunct(
                text=f"{name} \\in {part.domain.span.text}",
                file=part.span.file,
                line=part.span.line,
                column=part.span.column,
                value="TRUE" if inside else "FALSE",
                values={name: _json(given[0]), part.domain.span.text: show_short(collection)},
            )
            if not inside:
                outside = _Outside(given[0], part.domain, environment, attempt.step)
                found = [(inner, replace(tried, outside=(*tried.outside, outside))) for inner, tried in found]
            values = inside or [value for value in (_meant(given[0]),) if value is not None]
            if not values:
                yield None, attempt.and_(told)
                return
            found = [
                ({**inner, name: value}, tried.and_(told).choosing(name, value))
                for inner, tried in found
                for value in values
            ]
    yield from found


def _meant(observed_: Json) -> Value | None:
    try:
        return to_value(observed_)
    except ValueProblem:
        return None


def _judged(spec: Spec, node: tree.Expression, environment: Environment, attempt: _Attempt) -> Iterator[_Attempt]:
    """The conjuncts of an action's own body."""
    evaluator = spec.evaluator
    if isinstance(node, tree.And):
        tries = [attempt]
        for item in node.items:
            tries = [tried for before in tries[:_CHOICES] for tried in _judged(spec, item, environment, before)]
        yield from tries
        return
    if isinstance(node, tree.Quantifier) and node.kind == "\\E":
        try:
            inners = list(islice(evaluator.bindings(node.bounds, environment, attempt.step), _CHOICES))
        except TlaEvaluationError:
            inners = []
        if inners:
            for inner in inners:
                yield from _judged(spec, node.body, inner, attempt)
            return
    if isinstance(node, tree.Or):
        for item in node.items:
            yield from _judged(spec, item, environment, attempt)
        return
    if isinstance(node, tree.Let):
        yield from _judged(spec, node.body, evaluator.let(node.units, environment), attempt)
        return
    inlined = _inlined(spec, node, environment)
    if inlined is not None and isinstance(inlined[0], (tree.And, tree.Or, tree.Quantifier, tree.Apply)):
        yield from _judged(spec, *inlined, attempt)
        return
    yield _told(spec, node, environment, attempt)


def _told(spec: Spec, node: tree.Expression, environment: Environment, attempt: _Attempt) -> _Attempt:
    try:
        step = next(spec.evaluator.steps(node, environment, attempt.step), None)
        value = "FALSE" if step is None else "TRUE"
    except TlaEvaluationError as error:
        step, value = None, f"without a value ({error.message})"
    reading = Step(attempt.step.before, attempt.step.after)
    return attempt.and_(_conjunct(spec, node, environment, reading, value), step)


def _instead(spec: Spec, reading: Reading, state: State) -> tuple[list[str], str | None]:
    """The actions enabled in a state, those that share the event's parameters first; and one that would make the
    event legal.
    """
    event = reading.event
    given = {value for value in event.params.values() if isinstance(value, (str, int))}
    related: dict[str, None] = {}
    others: dict[str, None] = {}
    legal: str | None = None
    is_cut = False
    try:
        for count, successor in enumerate(spec.successors(state)):
            if count == _STEPS:
                is_cut = True
                break
            text = _call(successor.action, successor.params)
            shares = any(isinstance(value, (str, int)) and value in given for _, value in successor.params)
            (related if shares or not successor.params else others)[text] = None
            if legal is None and shares and any(True for _ in taken(spec, reading, successor.state)):
                legal = f"{text} had come before it"
    except TlaEvaluationError:
        is_cut = True  # what could not be computed is no alternative
    enabled = list(related | others)
    shown = enabled[:_INSTEAD]
    if len(enabled) > len(shown) or is_cut:
        # Steps that were not looked at may be more than these, or the same.
        shown.append(f"… and {'at least ' if is_cut else ''}{len(enabled) - len(shown)} more")
    return shown, legal


__all__ = ["call", "event_call", "explain", "hidden_steps"]
