"""Is a spec the product of its keys, as a proof claims? Looked up in states and steps, and not in the text."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

from specwatch.checker.slicing import Separable
from specwatch.checker.spec import Spec, State, Successor
from specwatch.checker.tla.values import FALSE, TRUE, Value, apply, function_of

Group = tuple[str, tuple[tuple[str, Value], ...]]
"""An action with its parameters."""


class Product:
    """A spec with two keys, its parts with one each, and the part without any."""

    def __init__(self, spec: Spec, proof: Separable) -> None:
        self.spec = spec
        self.proof = proof
        self.keys: list[Value] = sorted(spec.evaluator.constants[proof.keys])
        self.parts = {key: spec.with_constants({proof.keys: frozenset({key})}) for key in self.keys}
        self.none = spec.with_constants({proof.keys: frozenset()})

    def part(self, state: State, keys: list[Value]) -> State:
        """What some keys see of a state."""
        return tuple(
            function_of([(key, apply(value, key)) for key in keys]) if name in self.proof.keyed else value
            for name, value in zip(self.spec.variables, state, strict=True)
        )

    def of(self, state: State, names: frozenset[str], key: Value = None) -> tuple[Value, ...]:
        """The values of some variables; with a key those of keyed ones at it."""
        return tuple(
            apply(value, key) if key is not None and name in self.proof.keyed else value
            for name, value in zip(self.spec.variables, state, strict=True)
            if name in names
        )

    def check(self, states: list[State]) -> None:
        """Asserts all that the proof claims, in these states."""
        self.check_init()
        effects = {effect.action: effect for effect in self.proof.effects}
        outcomes: dict[Any, set[Any]] = defaultdict(set)
        for state in states:
            own = {key: self.part(state, [key]) for key in self.keys}
            broken = frozenset().union(*(self.parts[key].broken(own[key]) for key in self.keys))
            assert self.spec.broken(state) == broken, ("invariants", state)
            whole = groups(self.spec, state)
            alone = {key: groups(self.parts[key], own[key]) for key in self.keys}
            for action, params in whole.keys() | alone[self.keys[0]].keys() | alone[self.keys[1]].keys():
                found = whole[action, params]
                labelled = next(one for one in self.spec.actions if one.label == action)
                after = [successor.state for successor in found]
                if labelled not in self.proof.run_level:
                    key = dict(params)[self.proof.key]
                    other = next(one for one in self.keys if one != key)
                    assert all(self.part(one, [other]) == own[other] for one in after), ("other key", action, state)
                    expected = {successor.state for successor in alone[key][action, params]}
                    assert {self.part(one, [key]) for one in after} == expected, (action, params, state)
                    outcomes[action, without_key(params, self.proof.key), self.of(state, self.seen(), key)].add(
                        frozenset(self.of(one, self.proof.keyed, key) for one in after)
                    )
                    continue
                for key in self.keys:
                    expected = {successor.state for successor in alone[key][action, params]}
                    assert {self.part(one, [key]) for one in after} == expected, (action, params, state)
                effect = effects[labelled]
                shared = frozenset(self.spec.variables) - self.proof.keyed
                if labelled in self.proof.pointwise:
                    told = {self.of(one, shared) for one in after}
                    assert len(set(after)) == len(told), ("a choice of keyed values", action, state)
                else:
                    assert all(self.of(one, self.proof.keyed) == self.of(state, self.proof.keyed) for one in after)
                if labelled not in self.proof.choices:
                    seen = self.seen() - effect.changes
                    assert all(self.of(one, self.seen()) == self.of(state, seen | self.seen()) for one in after)
                fixed = frozenset(self.spec.variables) - effect.changes
                assert all(self.of(one, fixed) == self.of(state, fixed) for one in after), ("changes", action)
                decides = (effect.reads | effect.changes) & shared
                outcomes[action, params, self.of(state, decides)].add(
                    frozenset(self.of(one, effect.changes & shared) for one in after)
                )
            self.check_without_keys(state, whole)
        for asked, answers in outcomes.items():
            assert len(answers) == 1, ("something else is read", asked, answers)
        self.check_alike(states)

    def seen(self) -> frozenset[str]:
        return self.proof.shared | self.proof.keyed

    def check_init(self) -> None:
        whole = set(self.spec.initial_states())
        assert len(whole) <= 1
        for key in self.keys:
            assert {self.part(state, [key]) for state in whole} == set(self.parts[key].initial_states())
        one, other = self.keys
        assert {self.renamed(self.part(state, [one]), one, other) for state in whole} == set(
            self.parts[other].initial_states()
        )

    def check_without_keys(self, state: State, whole: dict[Group, list[Successor]]) -> None:
        alone = groups(self.none, self.part(state, []))
        labels = {action.label for action in self.proof.run_level}
        assert {group for group in alone if alone[group]} == {g for g in whole if whole[g] and g[0] in labels}
        for group, found in alone.items():
            expected = {self.part(successor.state, []) for successor in whole[group]}
            assert {successor.state for successor in found} == expected, ("without keys", group, state)

    def check_alike(self, states: list[State]) -> None:
        """A key's name means nothing."""
        one, other = self.keys
        for state in states:
            mine = self.part(state, [one])
            renamed = self.renamed(mine, one, other)
            assert self.parts[one].broken(mine) == self.parts[other].broken(renamed)
            steps = groups(self.parts[one], mine)
            expected = {
                (action, renamed_params(params, self.proof.key, other)): {
                    self.renamed(successor.state, one, other) for successor in found
                }
                for (action, params), found in steps.items()
            }
            found_ = {group: {s.state for s in steps_} for group, steps_ in groups(self.parts[other], renamed).items()}
            assert found_ == expected, ("names", state)

    def renamed(self, state: State, one: Value, other: Value) -> State:
        return tuple(
            function_of([(other, apply(value, one))]) if name in self.proof.keyed else value
            for name, value in zip(self.spec.variables, state, strict=True)
        )


def groups(spec: Spec, state: State) -> dict[Group, list[Successor]]:
    found: dict[Group, list[Successor]] = defaultdict(list)
    for successor in spec.successors(state):
        found[successor.action.label, tuple(sorted(successor.params))].append(successor)
    return found


def without_key(params: tuple[tuple[str, Value], ...], key: str) -> tuple[tuple[str, Value], ...]:
    return tuple(pair for pair in params if pair[0] != key)


def renamed_params(params: tuple[tuple[str, Value], ...], key: str, other: Value) -> tuple[tuple[str, Value], ...]:
    return tuple((name, other if name == key else value) for name, value in params)


def drawn_states(spec: Spec, kinds: dict[str, str], keyed: frozenset[str], draw: Random, number: int) -> list[State]:
    """States of the right types, reachable or not."""
    keys, workers = spec.evaluator.constants["K"], spec.evaluator.constants["W"]
    subsets = [frozenset(), frozenset({"v"}), frozenset({"w"}), frozenset(workers)]
    values: dict[str, list[Value]] = {"num": [0, 1, 2], "set": subsets, "flag": [TRUE, FALSE]}

    def value(kind: str) -> Value:
        if kind == "record":
            return function_of([("n", draw.choice(values["num"])), ("f", draw.choice(values["flag"]))])
        if kind == "by worker":
            return function_of([(worker, draw.choice(values["num"])) for worker in sorted(workers)])
        return draw.choice(values[kind])

    return [
        tuple(
            function_of([(key, value(kinds[name])) for key in sorted(keys)]) if name in keyed else value(kinds[name])
            for name in spec.variables
        )
        for _ in range(number)
    ]
