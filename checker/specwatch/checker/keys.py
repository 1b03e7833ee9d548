"""Scope ``key``: a run's behaviour, told apart into one behaviour a key.

An action without the key parameter is *run-level*: its events are steps of every key's behaviour. That is sound where
the spec is separable (:mod:`.slicing`) and every event speaks of one key, or of none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from .behaviour import Behaviour, Event, Json
from .observe import candidates
from .paths import Rules
from .reading import EventError, actions_of, known_names, read_event, taken
from .slicing import Coupled, Separable, read_for_key
from .spec import Action, Spec, State
from .tla.errors import TlaConfigError
from .tla.values import elements, is_finite


class Keys:
    """Tells apart the behaviours of a separable spec.

    :raises TlaConfigError: a run-level action is hidden, and what it changes is read by keys: two keys could explain
        themselves by different histories.
    """

    def __init__(self, spec: Spec, separable: Separable, rules: Rules) -> None:
        self.spec = spec
        self.separable = separable
        self.hidden = rules.hidden
        self._forms: dict[tuple[str, ...], str | None] = {}
        self._observed: set[str] = set()
        """The run-level variables that keyed events, and guards of keyed hidden actions, read."""
        for name, text in rules.when:
            for action in spec.named(name):
                self._read_guard(name, text, action)
        self.refuse_hidden()

    def _read_guard(self, name: str, text: str, action: Action) -> None:
        where = f"hidden.{name}.when"
        guard = self.spec.predicates.parse(text, known_names([action]), where)
        key = [one for one in known_names([action]) if action.parameter(one) == self.separable.key]
        try:
            self._observed |= read_for_key(self.spec, self.separable, guard.expression, key)
        except Coupled as coupled:
            raise TlaConfigError(
                f"scope key: {where} speaks of other keys than its own: {coupled.message}", hint="say --scope run"
            ) from None

    def refuse_hidden(self) -> None:
        for action in sorted(self.choices() & self.hidden, key=lambda action: action.label):
            raise TlaConfigError(
                f"scope key: {action.label} is hidden and has no parameter {self.separable.key}, and keys read what it "
                "changes: two keys could explain themselves by different histories",
                action.body.span,
                hint="say --scope run, or log the action",
            )

    def choices(self) -> frozenset[Action]:
        """The run-level actions by which keys may come to see another state."""
        return self.separable.choices_for(self._observed)

    def split(self, behaviour: Behaviour) -> tuple[Behaviour | None, list[Json], Iterator[Behaviour]]:
        """The run-level events alone, if there are any; the keys as the spec knows them, and their behaviours, in the
        order of their first events.

        :raises EventError: an event that speaks of no key where its action has one, or of several.
        """
        places: dict[Json, list[int]] = {}
        shared: list[int] = []
        names: dict[Json, tuple[Json, Json]] = {}
        values: list[Json] = []
        for place, event in enumerate(behaviour.events):
            param = self._param(event, place + 1)
            self._refuse_expectations(event, param, place + 1)
            if param is None:
                self._refuse_keyed(event, place + 1)
                shared.append(place)
                continue
            value = event.params[param]
            key = value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic")
            self._refuse_others(event, value, place + 1)
            known = places.get(key)
            if known is None:
                places[key] = [place]
                names[key] = (value if event.key is None else event.key), value
                values.append(value)
            else:
                known.append(place)
        self.refuse_hidden()
        common = self._part(behaviour, shared, None, None) if shared else None

        def parts() -> Iterator[Behaviour]:
            for key, own in places.items():
                yield self._part(behaviour, sorted(own + shared) if shared else own, *names[key])

        return common, values, parts()

    def is_keyed(self, event: Event) -> bool:
        """Whether an event is about one key, and not about the run."""
        return self._param(event, 0) is not None

    def _param(self, event: Event, number: int) -> str | None:
        """The name under which an event gives its key; None for a run-level event."""
        form = (event.action, *event.alternatives, "", *event.params)
        if form not in self._forms:
            read_event(self.spec, event, number)
            actions = actions_of(self.spec, event)
            key = self.separable.key
            keyed = [action for action in actions if key in action.parameters]
            names = [name for name in event.params if any(action.parameter(name) == key for action in keyed)]
            if keyed and (len(names) != 1 or len(keyed) < len(actions)):
                what = "may be about several keys or none" if names else f"leaves the key {key} out of {event.action}"
                raise EventError(
                    f"scope key: event {number} {what}", event, number, hint="say --scope run, or log the key"
                )
            self._forms[form] = names[0] if keyed else None
        return self._forms[form]

    def _refuse_others(self, event: Event, key: Json, number: int) -> None:
        for seen in (event.state, event.before):
            for name, part in (seen or {}).items():
                if name not in self.separable.keyed:
                    self._observed.add(name)
                elif not isinstance(part, dict) or list(part) != [key]:
                    raise EventError(
                        f"scope key: event {number} observed {name} of other keys than its own, {key}",
                        event,
                        number,
                        hint=f"say --scope run, or observe {name} at the key alone",
                    )

    def _refuse_keyed(self, event: Event, number: int) -> None:
        for seen in (event.state, event.before):
            for name in seen or {}:
                if name in self.separable.keyed:
                    raise EventError(
                        f"scope key: event {number} is about no key, and observed {name} of them all",
                        event,
                        number,
                        hint=f"say --scope run, or do not observe {name} here",
                    )

    def _refuse_expectations(self, event: Event, param: str | None, number: int) -> None:
        """Refuses what an event expects of other keys than its own, and keeps what it reads that is common to all."""
        if not event.expect:
            return
        key = self.separable.key
        actions = actions_of(self.spec, event)
        names = {name for action in actions for name in action.aliases if action.parameter(name) == key} | {key}
        for predicate in read_event(self.spec, event, number).expected:
            own = names | {written for written, field in predicate.spelt.items() if field == param}
            try:
                read = read_for_key(self.spec, self.separable, predicate.expression, own if param else ())
            except Coupled as coupled:
                raise EventError(
                    f"scope key: event {number} expects something of other keys than its own: {coupled.message}",
                    event,
                    number,
                    hint="say --scope run, or expect it of the key alone",
                ) from None
            if param is not None:
                self._observed |= read

    def of_unseen(self, seen: Iterable[Json]) -> Spec:
        """The spec of the run-level part: with one key that has no events, for all those that have none; with no key
        where every key has some.
        """
        keys = self.spec.evaluator.constants[self.separable.keys]
        known = {value for key in seen for value in candidates(key, keys, self.spec.models)}
        unseen = next((key for key in elements(keys) if key not in known), None) if is_finite(keys) else None
        return self.separable.spec_of(self.spec, *(() if unseen is None else (unseen,)))

    def refuse_choices(self, common: Behaviour) -> None:
        """Refuses run-level events that leave open what they changed, where keys read it.

        :raises EventError: an unlogged parameter, or several outcomes.
        """
        spec = self.separable.spec_of(self.spec)
        choices = self.choices()
        states: set[State] = set(spec.initial_states())
        for number, event in enumerate(common.events, 1):
            actions = actions_of(spec, event)
            reading = read_event(spec, event, number)
            following: set[State] = set()
            for state in states:
                steps = list(taken(spec, reading, state))
                # Without keys, what a step changes of them shows in nothing but its parameters.
                outcomes = {
                    (step.state, step.action, step.params) if step.action in self.separable.pointwise else step.state
                    for step in steps
                }
                if len(outcomes) > 1 and not choices.isdisjoint(actions):
                    raise EventError(
                        f"scope key: {event.action} has no parameter {self.separable.key}, and this event leaves open "
                        "what it changed: two keys could explain themselves by different histories",
                        event,
                        number,
                        hint="say --scope run, or log all of its parameters",
                    )
                following.update(step.state for step in steps)
            states = following

    @staticmethod
    def _part(behaviour: Behaviour, places: list[int], key: Json, value: Json) -> Behaviour:
        """One key's behaviour: the key as it was logged, and as the spec knows it."""
        losses = [
            msgspec.structs.replace(
                loss,
                settled=bisect_left(places, loss.settled),
                after=bisect_right(places, loss.after) - 1,
                before=None if loss.before is None else bisect_left(places, loss.before),
                keys=None if loss.keys is None else [value],
            )
            for loss in behaviour.losses
            if loss.keys is None or key in loss.keys
        ]
        return msgspec.structs.replace(
            behaviour, events=[behaviour.events[place] for place in places], key=key, losses=losses
        )
