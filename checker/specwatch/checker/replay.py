"""The replay: is a behaviour one of the spec's? Two frontiers, one of paths that are good, one of paths that are
broken.

A *path* is an initial state, then for each event some hidden steps and one step of the event's action. It is *good*
while every state on it satisfies every invariant; once broken, always broken. *Level* n holds all paths that explain
exactly n events. At the first level without a good path, a broken one there makes the behaviour ``violates``, none
makes it ``diverges``; nothing later changes that. A good path at the last level: ``conforms``.
(``truth/README-traces.md``)

Under a partial order a level holds all *cuts* of n events: how many of each lane are explained (:mod:`.order`). A
total order is one lane. Nodes with the same cut, state and broken invariants have the same future, so only the one with
the fewest hidden steps is kept; that is all the memory there is, whatever the number of paths.

Hidden steps may come before any event, an enabled one too: trying them only when the next event is not enabled is wrong
(14 of 300 judged cases). They never follow the last event.

Where something is missing, a path may be *filled*: within the window of what was lost, each lost record is nothing or
one step of any action, which explains no event. Where no path is good, no filling has a good one, and the answer
stands. A good path is the answer of all fillings only where none of them leaves broken paths alone (``Outcome.lost``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from .behaviour import Behaviour, Event, Json
from .bounds import BoundReached, Bounds
from .independence import Independence, independence
from .observe import matches
from .order import Cut, Ordered, Window, ordered
from .paths import Break, Filled, Filling, Inserted, Key, Node, Outcome, Rules, Way
from .reading import Reading, check_events, chosen, event_fields, known_names, read_event, taken
from .remaining import Remaining
from .spec import Spec, State, Successor
from .timed import Marks, Span, Timing, dominates, span_of
from .tla.errors import TlaError, TlaEvaluationError

TOLD_APART = 3
"""Fillings of so many steps are told apart. Longer ones are one, and a broken path among them decides nothing."""

BEYOND: Filling = ("longer",)


def replay(spec: Spec, behaviour: Behaviour, rules: Rules, bounds: Bounds) -> Outcome:
    """Replays one behaviour.

    :raises EventError: an event names an action or parameter that the spec lacks.
    :raises TlaEvaluationError: the spec has no value at some event; the message names the event.
    """
    return Replay(spec, behaviour, rules, bounds).run()


class Replay:
    """The replay of one behaviour. :meth:`run` is all of it; explanations look into its parts again."""

    def __init__(
        self,
        spec: Spec,
        behaviour: Behaviour,
        rules: Rules,
        bounds: Bounds,
        *,
        numbers: list[int] | None = None,
        order: Ordered | None = None,
        starts: Sequence[State] | None = None,
        exact: bool = False,
    ) -> None:
        """
        :param numbers: where the events are a part of a larger behaviour, their numbers there.
        :param order: the behaviour's, where it is known already.
        :param exact: whether fillings are told apart, each with good and broken paths of its own.
        :param starts: the states that it may have begun in; None for those of Init.
        """
        self.spec = spec
        self.behaviour = behaviour
        self.numbers = numbers
        self.rules = rules
        self.bounds = bounds
        self.starts = starts
        self.exact = exact
        spec.evaluator.watch = bounds.watch
        self.total = behaviour.order == "total"
        self.size = len(behaviour.events)
        check_events(spec, behaviour.events)
        self.order = order if order is not None else ordered(behaviour)
        self.lanes = self.order.lanes
        self.windows = self.order.windows
        self.possible = frozenset(spec.actions) - rules.never_lost if rules.never_lost else None
        self.logged = frozenset(spec.actions) - rules.never_lost - rules.hidden
        self.held = [self._held(window) for window in self.windows]
        self.timing = Timing(spec, rules.timed) if rules.timed else None
        self.when = {
            action: spec.predicates.parse(text, known_names([action]), f"hidden.{name}.when")
            for name, text in rules.when
            for action in spec.named(name)
        }
        off = rules.everywhere or rules.hidden_max is not None or rules.keep_constraints or rules.timed or self.when
        self.independence: Independence | None = None
        self.remaining: Remaining | None = None
        if rules.hidden and not (off or spec.step_properties):
            self.independence = independence(spec, rules.hidden)
            self.remaining = Remaining(spec, self.independence, self.lanes)
        self._readings: dict[tuple[int, int], Reading] = {}

    def number(self, event: int) -> int:
        """How an event is spoken of, by its place among the events that are replayed."""
        return event if self.numbers is None or event == 0 else self.numbers[event - 1]

    def reading(self, cut: Cut, lane: int) -> Reading | None:
        """What the next event of a lane means; None where it cannot come yet, or there is none."""
        if not self.order.is_ready(cut, lane):
            return None
        place = lane, cut[lane]
        known = self._readings.get(place)
        if known is None:
            if len(self._readings) > 4 * len(self.lanes):
                self._readings.clear()  # those of earlier levels are not asked for again
            known = self._readings[place] = read_event(self.spec, self.lanes[lane][cut[lane]], sum(cut) + 1)
        return known

    def run(self) -> Outcome:
        if self.size == 0:
            return Outcome("vacuous")
        frontier: list[Node] = []
        level = 0
        try:
            frontier = self.start()
            if not any(not node.broken for node in frontier):
                return self.failed(0, frontier, [])
            while level < self.size:
                following = self.advance(frontier, level + 1)
                if not any(not node.broken for node in following):
                    return self.failed(level + 1, following, frontier)
                frontier = following
                level += 1
            lost = self.may_break(frontier)
        except BoundReached as bound:
            good = [node for node in frontier if not node.broken]
            return Outcome(
                "inconclusive", bound=self._given_up(bound, frontier), reached=level, nodes=good, hidden=_fewest(good)
            )
        good = [node for node in frontier if not node.broken]
        return Outcome(
            "conforms",
            hidden=_fewest(good),
            nodes=good,
            reached=level,
            good_states=len({node.state for node in good}),
            broken_states=len({node.state for node in frontier if node.broken}),
            lost=lost,
            filled=all(node.spans for node in good),
        )

    def _given_up(self, bound: BoundReached, frontier: list[Node]) -> str:
        """Which bound, and where, if many orders of the events were tried."""
        if len(self.lanes) == 1 or not frontier:
            return str(bound)
        cuts = {node.cut for node in frontier}
        cut = max(cuts)
        where = ", ".join(
            f"{name} {done} of {len(lane)}" for name, lane, done in zip(self.order.names, self.lanes, cut, strict=True)
        )
        return f"{bound}, among {len(cuts):,} orders of what had happened, such as {where}"

    def explained(self, cut: Cut) -> list[Event]:
        """The events that a cut explains, lane by lane."""
        return [event for lane, done in zip(self.lanes, cut, strict=True) for event in lane[:done]]

    def inserted(self, node: Node) -> Iterator[tuple[Inserted, Span]]:
        """The hidden steps on the way to a node, and when each may have been."""
        cut = [0] * len(self.lanes)
        for step in Way.steps(node.way):
            if isinstance(step, int):
                cut[step] += 1
            elif isinstance(step, Inserted):
                here = (step.before - 1,) if self.total else tuple(cut)
                yield step, self.at(here)

    def start(self) -> list[Node]:
        cut = (0,) * len(self.lanes)
        nodes: dict[Key, Node] = {}
        for state in self.spec.initial_states() if self.starts is None else self.starts:
            self.bounds.check(len(nodes))
            broken = self.spec.broken(state)
            first = Break(0, None, broken, None, state) if broken else None
            node = Node(cut, state, broken, first_break=first)
            nodes.setdefault(node.key, node)
        return list(nodes.values())

    def failed(self, level: int, following: list[Node], frontier: list[Node]) -> Outcome:
        good = [node for node in frontier if not node.broken]
        if following:
            return Outcome(
                "violates",
                at=level,
                hidden=_fewest(following),
                invariants=least({node.broken for node in following}),
                nodes=following,
                previous=good,
                reached=level,
                broken_states=len({node.state for node in following}) if level == self.size else 0,
            )
        return Outcome("diverges", at=level, hidden=_fewest(good), nodes=good, previous=good, reached=level)

    def advance(self, frontier: list[Node], level: int) -> list[Node]:
        """The nodes of the next level."""
        following: dict[Key, Node] = {}
        by_cut: dict[Cut, list[Node]] = {}
        for node in frontier:
            by_cut.setdefault(node.cut, []).append(node)
        for cut, group in by_cut.items():
            for nexts in self.nexts(cut):
                for node in self.closure(group, level, [reading for _, reading in nexts]):
                    for lane, reading in nexts:
                        for successor in self.taken(reading, node.state, level):
                            self.bounds.check(len(following))
                            reached = self.after(node, successor, level, lane)
                            known = following.get(reached.key)
                            if known is None or reached.hidden < known.hidden:
                                following[reached.key] = reached
        if self.timing is not None:
            return _undominated(following.values())
        nodes = list(following.values())
        if self.remaining is None or level == self.size:
            return nodes
        if not self.windows:
            return self.remaining.fewest(nodes)
        # What is still to be filled may look at anything.
        open_: list[Node] = []
        settled: list[Node] = []
        for node in nodes:
            (open_ if self.fillable(node) else settled).append(node)
        return open_ + self.remaining.fewest(settled)

    def nexts(self, cut: Cut) -> list[list[tuple[int, Reading]]]:
        """The events that may come next, with their lanes: together, or apart where a guard over the next event, or its
        time, makes each of them a closure of its own.
        """
        lanes = range(len(self.lanes))
        ready = [(lane, reading) for lane in lanes if (reading := self.reading(cut, lane)) is not None]
        return [[one] for one in ready] if self.when or self.timing is not None else [ready]

    def closure(self, group: list[Node], level: int, nexts: list[Reading]) -> Iterable[Node]:
        """The nodes of one cut with all that hidden and filled steps reach from them before event ``level``, which is
        one of ``nexts``.

        A node is looked at again where it is reached with fewer hidden steps in all. With ``hidden_max`` it counts how
        deep in this gap it is: one that is reached with more steps in all and fewer here may go further.
        """
        best: dict[tuple[Key, int], Node] = {(node.key, 0): node for node in group}
        cut = group[0].cut
        windows = [number for number, window in enumerate(self.windows) if window.is_open(cut)]
        if not self.rules.hidden and not windows:
            return best.values()
        matters = self.independence.relevant(nexts) if self.independence is not None else None
        if matters is not None and not matters.actions and not windows:
            return best.values()
        limit = self.rules.hidden_max
        layer = best
        while layer:
            found: dict[tuple[Key, int], Node] = {}
            for (_, depth), node in list(layer.items()):
                if limit is None or depth < limit:
                    # To what is filled here any step may matter.
                    if matters is None or any(self.may_fill(node, number) for number in windows):
                        steps = self.spec.successors(node.state, self.rules.hidden)
                    else:
                        steps = matters.steps(self.spec, node.state)
                    for successor in self.guarded(node.state, steps, level, None):
                        if self.when and not self.allowed(successor, node.state, nexts):
                            continue
                        self.bounds.check(len(best) + len(found))
                        reached = self.hidden(node, successor, level, nexts)
                        if reached is None:
                            continue
                        form = reached.key, 0 if limit is None else depth + 1
                        known = found.get(form) or best.get(form)
                        if known is None or reached.hidden < known.hidden:
                            found[form] = reached
                        elif reached.hidden == known.hidden and form not in found:
                            # As few hidden steps, and later: nearer to what needs them, which reads better.
                            best[form] = reached
                for reached in self.fill(node, windows, level, nexts):
                    self.bounds.check(len(best) + len(found))
                    form = reached.key, 0  # it was an event: the hidden steps before the next are counted anew
                    known = found.get(form) or best.get(form)
                    if known is None or reached.hidden < known.hidden:
                        found[form] = reached
            best.update(found)
            layer = found
        return best.values()

    def allowed(self, successor: Successor, state: State, nexts: list[Reading]) -> bool:
        """Whether a hidden step's guard over the next event holds."""
        guard = self.when.get(successor.action)
        if guard is None:
            return True
        [reading] = nexts
        try:
            return guard.holds(
                self.spec, state, bound=chosen(successor), fields=event_fields(reading.event), event=reading.event
            )
        except TlaEvaluationError:
            raise
        except TlaError:
            return False  # the next event does not say what the guard asks for

    def hidden(self, node: Node, successor: Successor, level: int, nexts: list[Reading]) -> Node | None:
        """The node that a hidden step leads to; None where its bounds of time forbid it."""
        marks = node.marks
        if self.timing is not None:
            between = self.between(node, nexts)
            span = self.timing.span(marks, successor.action, successor.params, between)
            if span is None:
                return None
            marks = self.timing.after(marks, successor.action, successor.params, span)
        way = Way(node.way, Inserted(level, successor.action, successor.params))
        return self.reached(node, successor, level, node.cut, way, hidden=True, marks=marks)

    def fill(self, node: Node, windows: list[int], level: int, nexts: list[Reading]) -> Iterator[Node]:
        """The nodes to which a lost record may have led."""
        for number in windows:
            window = self.windows[number]
            if not self.may_fill(node, number):
                continue
            for successor in self.guarded(node.state, self.lost_steps(window, node.state), level, None):
                if not self._may_be_about(number, successor):
                    continue
                marks = node.marks
                if self.timing is not None:
                    # A record of it that was lost comes no earlier than one that no one makes.
                    span = self.timing.span(marks, successor.action, successor.params, self.between(node, nexts))
                    if span is None:
                        continue
                    marks = self.timing.after(marks, successor.action, successor.params, span)
                way = Way(node.way, Filled(level, successor.action, successor.params, number))
                reached = self.reached(node, successor, level, node.cut, way, hidden=False, marks=marks, lost=True)
                reached.filled = self.filled(node, number, successor)
                reached.spans = True
                yield reached

    def fillable(self, node: Node) -> bool:
        """Whether any step may still be filled, here or later."""
        return any(
            not window.is_over(node.cut) and self.may_fill(node, number) for number, window in enumerate(self.windows)
        )

    def may_fill(self, node: Node, number: int) -> bool:
        """Whether another step of a window may be filled."""
        loss = self.windows[number].loss
        # What was in flight happened once or never.
        count = loss.count if loss.event is None else 1
        if count is None or node.filled in ((), BEYOND):
            return count != 0
        used = node.filled[number]
        return (len(used) if isinstance(used, tuple) else used if isinstance(used, int) else 0) < count

    def filled(self, node: Node, number: int, successor: Successor) -> Filling:
        """What was filled, after another step of a window: how many steps, or which where fillings are told apart."""
        if not self.exact:
            if self.windows[number].loss.count is None and self.windows[number].loss.event is None:
                return node.filled
            counts = [one if isinstance(one, int) else 0 for one in node.filled or (0,) * len(self.windows)]
            counts[number] += 1
            return tuple(counts)
        if node.filled == BEYOND:
            return BEYOND
        label = (successor.action.label, successor.params if self.windows[number].loss.event is None else ())
        steps = [one if isinstance(one, tuple) else () for one in node.filled or ((),) * len(self.windows)]
        steps[number] = (*steps[number], label)
        return tuple(steps) if sum(map(len, steps)) <= TOLD_APART else BEYOND

    def lost_steps(self, window: Window, state: State) -> Iterator[Successor]:
        event = window.loss.event
        if event is not None:
            return taken(self.spec, read_event(self.spec, event, 0), state)
        # An emitter that was cut off would have gone on with what it tells of.
        may_be = self.logged if window.loss.reason == "open-tail" else self.possible
        steps = self.spec.successors(state, may_be)
        told = window.loss.params
        if not told:
            return steps
        return (
            step for step in steps if all(matches(told[name], value) for name, value in step.params if name in told)
        )

    def _held(self, window: Window) -> list[Json] | None:
        """The keys that what is missing was about, as the spec knows them: an id may have been interned."""
        keys = window.loss.keys
        if keys is None or self.rules.key is None:
            return None
        return [*keys, *(event.params.get(self.rules.key) for event in self.behaviour.events if event.key in keys)]

    def _may_be_about(self, number: int, successor: Successor) -> bool:
        keys = self.held[number]
        if keys is None or self.rules.key is None:
            return True
        key = dict(successor.params).get(self.rules.key)
        return key is not None and any(matches(one, key) for one in keys)

    def between(self, node: Node, nexts: list[Reading]) -> Span:
        """When a step may be that no event tells of: between its neighbours, each widened by the skew."""
        ends = [span_of(reading.event)[1] for reading in nexts]
        return node.last - self.rules.skew, min(ends, default=math.inf) + self.rules.skew

    def at(self, cut: Cut) -> Span:
        """When a step at a cut may be: after what each lane told last, before what it tells next."""
        earliest, latest = -math.inf, math.inf
        for lane, done in zip(self.lanes, cut, strict=True):
            before = lane[done - 1].time if done else None
            if before is not None:
                earliest = max(earliest, before - self.rules.skew)
            after = (lane[done].until or lane[done].time) if done < len(lane) else None
            if after is not None:
                latest = min(latest, after + self.rules.skew)
        return earliest, latest

    def after(self, node: Node, successor: Successor, level: int, lane: int) -> Node:
        """The node that an event's step leads to."""
        event = self.lanes[lane][node.cut[lane]]
        cut = (*node.cut[:lane], node.cut[lane] + 1, *node.cut[lane + 1 :])
        marks = node.marks
        if self.timing is not None:
            marks = self.timing.after(marks, successor.action, successor.params, span_of(event))
        way = node.way if self.total else Way(node.way, lane)
        reached = self.reached(node, successor, level, cut, way, hidden=False, marks=marks)
        if self.timing is not None:
            reached.last = span_of(event)[0]
        if node.filled and not self.exact:
            # A window that has closed is forgotten, and paths that differ in it alone are one again.
            filled = tuple(
                used if all(here <= high for here, high in zip(cut, window.high, strict=True)) else 0
                for used, window in zip(node.filled, self.windows, strict=True)
            )
            reached.filled = filled if any(filled) else ()
        return reached

    def reached(
        self,
        node: Node,
        successor: Successor,
        level: int,
        cut: Cut,
        way: Way | None,
        *,
        hidden: bool,
        marks: Marks,
        lost: bool = False,
    ) -> Node:
        state = successor.state
        broken = self.spec.broken(state)
        if self.spec.step_properties:
            broken |= self.spec.broken_step(node.state, state)
        first = node.first_break
        if first is None and broken:
            first = Break(level, successor.action if hidden or lost else None, broken, node.state, state)
        return Node(
            cut,
            state,
            node.broken | broken,
            node.hidden + hidden,
            way,
            first,
            node.filled,
            node.spans,
            marks,
            node.last,
        )

    def may_break(self, frontier: list[Node]) -> bool:
        """At the last level: whether some filling leaves broken paths alone.

        Unless fillings are told apart, any broken path that needs one counts, though there may be a good one beside it
        with the same.
        """
        if not self.windows:
            return False
        # What was lost may have come after the last event, too; hidden steps only before it.
        windows = [number for number, window in enumerate(self.windows) if window.is_open(frontier[0].cut)]
        ends = list(frontier)
        if windows and not self.ended():
            for node in self.closure(frontier, self.size + 1, []):
                ends.extend(self.fill(node, windows, self.size + 1, []))
        good: dict[Filling, bool] = {}
        for node in ends:
            filling = node.filled if self.exact else (node.spans,)
            good[filling] = good.get(filling, False) or not node.broken
            if node.broken and (filling == BEYOND or (node.spans and not self.exact)):
                return True
        return not all(good.values())

    def ended(self) -> bool:
        """Whether the key's last event is one after which nothing comes."""
        return self.behaviour.events[-1].action in self.rules.terminal

    def taken(self, reading: Reading, state: State, level: int) -> Iterator[Successor]:
        return self.guarded(state, taken(self.spec, reading, state), level, reading.event)

    def guarded(self, state: State, steps: Iterator[Successor], level: int, event: Event | None) -> Iterator[Successor]:
        """Steps within the constraints, where these are kept; names the event at which the spec has no value."""
        try:
            for step in steps:
                if not self.rules.keep_constraints or (
                    self.spec.in_constraints(step.state) and self.spec.in_action_constraints(state, step.state)
                ):
                    yield step
        except TlaEvaluationError as error:
            what = f"event {level}, {event.action}" if event is not None else f"a hidden step before event {level}"
            source = (
                f" ({event.source.file}:{event.source.line})" if event is not None and event.source is not None else ""
            )
            raise TlaEvaluationError(
                f"{error.message}, in {what}{source}", error.span, hint=error.hint, values=error.values
            ) from None


def _undominated(nodes: Iterable[Node]) -> list[Node]:
    """Nodes without those for which another one, alike but for its times, does as well: an earlier mark, as few hidden
    steps.
    """
    groups: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[(*node.key[:-2], node.last)].append(node)
    kept: list[Node] = []
    for group in groups.values():
        best: list[Node] = []
        for node in sorted(group, key=lambda node: node.hidden):
            if not any(dominates(other.marks, node.marks) for other in best):
                best.append(node)
        kept.extend(best)
    return kept


def _fewest(nodes: Iterable[Node]) -> int:
    return min((node.hidden for node in nodes), default=0)


def least(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets that no other one is a part of, in a fixed order."""
    found = list(sets)
    return sorted((one for one in found if not any(other < one for other in found)), key=sorted)
