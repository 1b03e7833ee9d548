"""Random small specs as text, with random logs of their steps: for what must hold of every spec.

Its variables are some of these: functions over two keys, sets of keys, a set of messages, a bag of messages that is a
function whose domain changes, a number. Its actions touch them in the ways that specs do: through definitions and their
arguments, LET, EXCEPT, whole functions, sets that grow and shrink, choices, branches, primed variables. Its invariants
tie cells together. Together the variables have few values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from immutables import Map

from specwatch.checker.behaviour import Event, Json
from specwatch.checker.spec import Spec, State
from specwatch.checker.tla.config import parse_config
from specwatch.checker.tla.modules import load_text
from specwatch.checker.tla.values import Boolean, ModelValue, Value

KINDS = {
    "f": "function",
    "g": "function",
    "h": "function",
    "s": "keys",
    "t": "keys",
    "net": "messages",
    "bag": "bag",
    "n": "number",
}
MANY = 300
"""The most states that the variables of a spec may have together."""

DEFINITIONS = r"""
Up(v) == (v + 1) % TOP
With(fn, k, v) == [fn EXCEPT ![k] = v]
Put(m, b) == IF m \in DOMAIN b THEN [b EXCEPT ![m] = 2] ELSE b @@ (m :> 1)
Less(m, b) == IF b[m] > 1 THEN [b EXCEPT ![m] = @ - 1] ELSE [x \in DOMAIN b \ {m} |-> b[x]]
Msg(k, c) == [to |-> k, n |-> c]
Set(v, e) == v = e
High(fn) == {k \in K : fn[k] > 0}
Most(a, b) == IF a > b THEN a ELSE b
RECURSIVE Sum(_, _)
Sum(fn, ks) == IF ks = {} THEN 0 ELSE LET one == CHOOSE k \in ks : TRUE IN fn[one] + Sum(fn, ks \ {one})
"""


@dataclass(frozen=True)
class SmallSpec:
    text: str
    config: str
    hidden: tuple[str, ...]

    def load(self) -> Spec:
        return Spec(load_text(self.text, "Small.tla"), parse_config(self.config, "Small.cfg"), "Small.tla")


class _Writer:
    """Writes one spec."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.top = draw.choice((2, 2, 2, 3))
        values = {"function": self.top**2, "keys": 4, "messages": 16, "bag": 81, "number": self.top}
        states, chosen = 1, []
        for name in draw.sample(sorted(KINDS), len(KINDS)):
            if states * values[KINDS[name]] <= MANY:
                states *= values[KINDS[name]]
                chosen.append(name)
        self.variables = [name for name in KINDS if name in chosen]
        self.own = self.variables

    @property
    def functions(self) -> list[str]:
        return [name for name in self.own if KINDS[name] == "function"]

    @property
    def sets(self) -> list[str]:
        return [name for name in self.own if KINDS[name] == "keys"]

    def has(self, name: str) -> bool:
        return name in self.own

    def narrow(self) -> None:
        """From now on few variables are spoken of: where each action spoke of all, every step would matter always."""
        self.own = sorted(self.draw.sample(self.variables, min(self.draw.choice((1, 1, 2, 2, 4)), len(self.variables))))

    def pick(self, *items: str) -> str:
        return self.draw.choice(items)

    # --- an action ------------------------------------------------------------------------------------------------

    def action(self, name: str) -> tuple[str, str]:
        """Its definition, and its disjunct of Next."""
        draw = self.draw
        self.narrow()
        parameters: list[tuple[str, str]] = []
        keys, messages = ['"a"', '"b"'], []
        for parameter in ("p", "q")[: draw.choice((0, 1, 1, 1, 1, 2))]:
            sets = ["K"] * 6 + [f"High({h})" for h in self.functions]
            for s in self.sets:
                sets += [s, s, f"(K \\ {s})", f'{{k \\in {s} : k # "a"}}']
            parameters.append((parameter, draw.choice(sets)))
            keys += [parameter] * 9
        if draw.random() < 0.4:
            if self.has("net"):
                whole = self.pick("net", "net", "{x \\in net : x.n = 0}", 'net \\union {Msg("a", 0)}')
                parameters.append(("m", whole))
                messages.append("m")
            elif self.has("bag"):
                parameters.append(("m", "DOMAIN bag"))
                messages.append("m")
        keys += ["m.to"] * 5 if messages else []
        conjuncts = self.conjuncts(keys, messages)
        formals = [self.draw.choice((parameter, parameter + "0")) for parameter, _ in parameters]
        body = "\n".join(f"  /\\ {one}" for one in conjuncts)
        for (parameter, _), formal in zip(parameters, formals, strict=True):
            if formal != parameter:
                body = f"  LET {parameter} == {formal} IN\n{body}"
        head = f"{name}({', '.join(formals)})" if parameters else name
        call = f"{name}({', '.join(parameter for parameter, _ in parameters)})" if parameters else name
        for parameter, collection in reversed(parameters):
            call = f"\\E {parameter} \\in {collection} : {call}"
        return f"{head} ==\n{body}\n", call

    def conjuncts(self, keys: list[str], messages: list[str]) -> list[str]:
        draw = self.draw
        if draw.random() < 0.08:
            guard = self.guard(keys, messages)
            branches = [self.conjuncts(keys, messages) for _ in range(2)]
            one, other = ("(" + " /\\ ".join(f"({part})" for part in branch) + ")" for branch in branches)
            return [draw.choice((f"({one} \\/ {other})", f"IF {guard} THEN {one} ELSE {other}"))]
        found = [self.guard(keys, messages) for _ in range(draw.choice((0, 0, 1, 1, 2)))]
        changed = draw.sample(self.own, min(draw.choice((1, 1, 1, 1, 1, 2)), len(self.own)))
        if "m" in messages and draw.random() < 0.6:
            changed = sorted({*changed, "net" if self.has("net") else "bag"})
        done: list[str] = []
        for name in changed:
            found.append(self.update(name, keys, messages, done))
            done.append(name)
        rest = [name for name in self.variables if name not in changed]
        if rest:
            found.append(f"UNCHANGED <<{', '.join(rest)}>>")
        if draw.random() < 0.1:
            found.append(self.primed_guard(done, keys))
        return found

    def key(self, keys: list[str]) -> str:
        return self.draw.choice(keys)

    def wide(self) -> bool:
        """Whether all of a variable may be read or written at once, which ties everything together."""
        return self.draw.random() < 0.08

    def number(self, keys: list[str], messages: list[str]) -> str:
        top = self.top
        options = [str(value) for value in range(top)] * 3
        options += [f"{h}[{self.key(keys)}]" for h in self.functions] * 2
        options += ["n"] * self.has("n") + [f"m.n % {top}"] * 2 * bool(messages)
        options += [f"bag[m] % {top}"] * (self.has("bag") and bool(messages))
        if self.wide():
            options = [f"Cardinality({s}) % {top}" for s in [*self.sets, *["net"] * self.has("net")]]
            options += [f"Sum({h}, K) % {top}" for h in self.functions]
        return self.draw.choice(options or ["1"])

    def guard(self, keys: list[str], messages: list[str]) -> str:
        one = self.plain_guard(keys, messages)
        shape = self.draw.random()
        if shape < 0.08:
            return f"~({one})"
        if shape < 0.16:
            return f"(({one}) \\/ {self.plain_guard(keys, messages)})"
        if shape < 0.2:
            return f"(({one}) => {self.plain_guard(keys, messages)})"
        return one

    def plain_guard(self, keys: list[str], messages: list[str]) -> str:
        number, key = self.number(keys, messages), self.key(keys)
        options = [f"{number} {self.pick('=', '#', '<', '>')} {self.pick('0', '1')}"]
        options.append(f"{number} <= Most({self.number(keys, messages)}, 0)")
        wide = []
        for h in self.functions:
            options += [f"{h}[{key}] = {self.pick('0', '1')}", f"{key} \\in High({h})"]
            wide += [f"\\E k \\in K : {h}[k] = {self.pick('0', '1')}", f"\\A k \\in K : {h}[k] < 1", f"{h} = {h}"]
        for s in self.sets:
            options += [f"{key} \\in {s}", f"{key} \\notin {s}", f"{key} \\in {s} \\union {{{self.key(keys)}}}"]
            wide += [f"{s} # {{}}", f"{{{key}}} \\subseteq {s}", f"Cardinality({s}) < 2"]
        if self.has("net"):
            options += [f"Msg({key}, 0) \\in net", f"Msg({key}, 1) \\notin net"]
            wide += ["Cardinality(net) < 2", f"\\E x \\in net : x.to = {key}", f"\\A x \\in net : x.to # {key}"]
        if self.has("bag"):
            options += [f"Msg({key}, 0) \\in DOMAIN bag", f"Msg({key}, 1) \\notin DOMAIN bag"]
            wide += ["DOMAIN bag = {}"]
        if messages:
            options += [f"m.n = {self.pick('0', '1')}", f"m.to = {key}", "m.to \\in K"]
        return self.draw.choice(wide if wide and self.wide() else options)

    def update(self, name: str, keys: list[str], messages: list[str], done: list[str]) -> str:
        key, other = self.key(keys), self.key(keys)
        number, guard = self.number(keys, messages), self.plain_guard(keys, messages)
        wide = []
        kind = KINDS[name]
        if kind == "function":
            again = self.draw.choice(done) if done else None
            if again is not None and self.draw.random() < 0.2:  # a primed read
                number = f"{again}'[{key}]" if KINDS[again] == "function" else "n'" if again == "n" else number
            options = [f"H' = [H EXCEPT ![{key}] = Up(@)]"] * 3
            options += [f"H' = [H EXCEPT ![{key}] = {number}]"] * 3
            options += [f"H' = With(H, {key}, {number})", f"Set(H', With(H, {key}, {number}))"]
            options += [f"H' = [H EXCEPT ![{key}] = {number}, ![{other}] = Up(@)]"]
            options += [f"H' = IF {guard} THEN [H EXCEPT ![{key}] = {number}] ELSE H"]
            options += [f"H' \\in {{[H EXCEPT ![{key}] = x] : x \\in 0 .. 1}}", f"H' \\in {{H, With(H, {key}, 0)}}"]
            wide += [f"H' = [k \\in K |-> IF k = {key} THEN {number} ELSE H[k]]", "H' \\in [K -> {0, 1}]"]
        elif kind == "keys":
            options = [f"H' = H \\union {{{key}}}", f"H' = H \\ {{{key}}}"] * 4
            options += [f"H' = (H \\ {{{key}}}) \\union {{{other}}}", f"H' \\in {{H, H \\union {{{key}}}}}"]
            options += [f"H' = IF {guard} THEN H \\union {{{key}}} ELSE H \\ {{{other}}}"]
            options += [f"H' = H \\union IF {guard} THEN {{{key}}} ELSE {{}}"]
            wide += [f"H' = {{k \\in H : k # {key}}}", "H' = {}"] + [
                f"H' = H \\union High({h})" for h in self.functions
            ]
        elif kind == "messages":
            new, newer = (f"Msg({one}, {self.bit(messages)})" for one in (key, other))
            options = [f"net' = net \\union {{{new}}}"] * 3
            options += [f"net' = net \\ {{{new}}}", f"net' = (net \\ {{{new}}}) \\union {{{newer}}}"]
            wide += ["net' = net \\union {Msg(k, 0) : k \\in K}", f"net' = {{x \\in net : x.to # {key}}}"]
            wide += [f"\\E x \\in net : x.to = {key} /\\ net' = net \\ {{x}}"]
            if messages:
                options += ["net' = net \\ {m}"] * 4 + [f"net' = (net \\ {{m}}) \\union {{{new}}}"] * 3
                options += [f"net' = (net \\union {{{new}}}) \\ {{m}}", "net' = net \\union {m}"]
                wide += [f"net' = net \\union {{[m EXCEPT !.to = {key}]}}"]
        elif kind == "bag":
            new = f"Msg({key}, {self.bit(messages)})"
            options = [f"bag' = Put({new}, bag)"] * 3
            if messages:
                options += ["bag' = Less(m, bag)"] * 3 + [f"bag' = Put({new}, Less(m, bag))"] * 2
                options += [f"bag' = Less(m, Put({new}, bag))", "bag' = [bag EXCEPT ![m] = 1]", "bag' = Put(m, bag)"]
        else:
            options = ["n' = Up(n)", "n' = 0", f"n' = {number}", f"n' \\in {{0, {number}}}"]
        chosen = self.draw.choice(wide if wide and self.wide() else options)
        return re.sub(r"\bH\b", name, chosen)

    def bit(self, messages: list[str]) -> str:
        options = ["0", "1", "1"] + ["m.n", "1 - m.n"] * bool(messages)
        options += ["IF n = 0 THEN 0 ELSE 1"] * self.has("n")
        return self.draw.choice(options)

    def primed_guard(self, done: list[str], keys: list[str]) -> str:
        name = self.draw.choice(done)
        kind = KINDS[name]
        if kind == "function":
            return self.pick(f"{name}'[{self.key(keys)}] < 2", f"Sum({name}, K)' < 4", f"{name}' # {name}")
        if kind == "number":
            return self.pick("n' # n", "n' < 2", "n' = n' /\\ n' \\in {0, 1}")
        return f"{name}' # {name}"

    # --- invariants -----------------------------------------------------------------------------------------------

    def invariant(self) -> str:
        self.narrow()
        options, wide = ["n < 1", "n # 1"] * self.has("n"), []
        for h in self.functions:
            options += [f"\\A k \\in K : {h}[k] < 1", f'{h}["a"] = 0', f"\\A k \\in K : {h}[k] # 2"]
            wide += [f"\\A j, k \\in K : j # k => {h}[j] + {h}[k] < 2", f"Sum({h}, K) # 2", f'{h}["a"] = {h}["b"]']
            for s in self.sets:
                options += [f"\\A k \\in K : k \\in {s} => {h}[k] > 0", f"\\A k \\in {s} : {h}[k] < 1"]
            if self.has("n"):
                options += [f'n > 0 => {h}["a"] # 1']
                wide += [f"\\A k \\in K : {h}[k] <= n"]
            if self.has("net"):
                options += [f"\\A x \\in net : {h}[x.to] < 1 \\/ x.n = 0"]
                options += [f"\\A k \\in K : Msg(k, 1) \\in net => {h}[k] = 0"]
            if self.has("bag"):
                options += [f"\\A x \\in DOMAIN bag : bag[x] <= {h}[x.to] + 1"]
        if len(self.functions) > 1:
            one, other = self.draw.sample(self.functions, 2)
            options += [f"\\A k \\in K : {one}[k] <= {other}[k]", f'({one}["a"] # {other}["b"] \\/ {one}["a"] = 0)']
            wide += [f"{one} # {other} \\/ {one} = [k \\in K |-> 0]"]
        for s in self.sets:
            options += [f'("a" \\in {s} => "b" \\notin {s})']
            wide += [f"Cardinality({s}) < 2"] + [f"n = 0 \\/ {s} # {{}}"] * self.has("n")
        if self.has("net"):
            options += ["\\A x \\in net : x.n = 0"]
            wide += ["Cardinality(net) < 3", "\\A x, y \\in net : x.to = y.to => x = y"]
        if self.has("bag"):
            options += ["\\A x \\in DOMAIN bag : bag[x] < 2"]
            wide += ["Cardinality(DOMAIN bag) < 3"]
        return self.draw.choice(wide if wide and self.draw.random() < 0.1 else options)

    def spec(self) -> SmallSpec:
        names = [f"A{number}" for number in range(self.draw.randint(4, 6))]
        actions = [self.action(name) for name in names]
        invariants = [f"I{number}" for number in range(self.draw.randint(1, 2))]
        starts = {
            "function": "[k \\in K |-> 0]",
            "keys": self.pick("{}", '{"a"}'),
            "messages": self.pick("{}", '{Msg("a", 0)}'),
            "bag": self.pick("<<>>", 'Msg("a", 0) :> 1'),
            "number": self.pick("0", "1"),
        }
        text = [
            "---- MODULE Small ----",
            "EXTENDS Naturals, FiniteSets, TLC",
            f"VARIABLES {', '.join(self.variables)}",
            'K == {"a", "b"}',
            DEFINITIONS.replace("TOP", str(self.top)),
            "Init ==",
            *(f"  /\\ {name} = {starts[KINDS[name]]}" for name in self.variables),
            *(definition for definition, _ in actions),
            "Next ==",
            *(f"  \\/ {call}" for _, call in actions),
            *(f"{name} == {self.one_or_two()}" for name in invariants),
            "====",
        ]
        hidden = self.draw.sample(names, self.draw.randint(1, 3))
        return SmallSpec("\n".join(text), f"INIT Init NEXT Next INVARIANTS {' '.join(invariants)}", tuple(hidden))

    def one_or_two(self) -> str:
        if self.draw.random() < 0.8:
            return self.invariant()
        return f"({self.invariant()}) /\\ ({self.invariant()})"


def small_spec(draw: Random) -> SmallSpec:
    return _Writer(draw).spec()


# --- logs ---------------------------------------------------------------------------------------------------------


def to_json(value: Value) -> Json:
    if isinstance(value, Boolean):
        return bool(value)
    if isinstance(value, ModelValue):
        return value.name
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, frozenset):
        return {"#set": sorted((to_json(item) for item in value), key=repr)}
    if isinstance(value, Map):
        if all(isinstance(name, str) for name in value):
            return {name: to_json(value[name]) for name in sorted(value)}
        return {"#map": sorted(([to_json(name), to_json(part)] for name, part in value.items()), key=repr)}
    return value


def walk(draw: Random, spec: Spec, hidden: tuple[str, ...], size: int) -> list[Event]:
    """A random behaviour of at most so many events, in which steps of hidden actions may be left out."""
    [state] = list(spec.initial_states())
    events: list[Event] = []
    for _ in range(3 * size):
        steps = list(spec.successors(state))
        if not steps or len(events) == size:
            break
        step = draw.choice(steps)
        if spec.broken(step.state) and draw.random() < 0.7:
            step = draw.choice(steps)
        if step.action.name not in hidden or draw.random() < 0.25:
            events.append(_event(draw, spec, step.action.name, dict(step.params), state, step.state))
        state = step.state
    return events


def _event(draw: Random, spec: Spec, action: str, params: dict[str, Value], before: State, after: State) -> Event:
    shown = {name: _some(draw, to_json(value)) for name, value in params.items() if draw.random() < 0.9}
    return Event(
        action=action,
        params=shown,
        emitter=draw.choice("uv"),
        state=_observed(draw, spec, after) if draw.random() < 0.1 else None,
        before=_observed(draw, spec, before) if draw.random() < 0.05 else None,
        expect=[_expected(draw, spec, params)] if draw.random() < 0.05 else [],
    )


def _observed(draw: Random, spec: Spec, state: State) -> dict[str, Json]:
    name = draw.choice(spec.variables)
    return {name: _some(draw, to_json(spec.mapping(state)[name]))}


def _some(draw: Random, seen: Json) -> Json:
    """A record or function in part."""
    if isinstance(seen, dict) and not any(name.startswith("#") for name in seen) and draw.random() < 0.3:
        return {name: part for name, part in seen.items() if draw.random() < 0.6}
    return seen


def _expected(draw: Random, spec: Spec, params: dict[str, Value]) -> str:
    options = [f"{name} # 7" for name in spec.variables if name == "n"]
    options += [
        f"{name}[{key}] < 2"
        for name in spec.variables
        if KINDS[name] == "function"
        for key in ('"a"', *set("pq") & set(params))
    ]
    options += [f'"a" \\in {name}' for name in spec.variables if KINDS[name] == "keys"]
    return draw.choice(options or ["TRUE"])


def damaged(draw: Random, events: list[Event], spec: Spec) -> list[Event]:
    """The events with one of them dropped, doubled, moved, taken for another, or freed of what it says."""
    events = list(events)
    at = draw.randrange(len(events))
    match draw.randrange(6):
        case 0:
            del events[at]
        case 1:
            events.insert(at, events[at])
        case 2:
            events.insert(draw.randrange(len(events)), events.pop(at))
        case 3:
            events[at] = Event(action=draw.choice(spec.actions).name, emitter=events[at].emitter)
        case 4:
            events[at] = Event(action=events[at].action, emitter=events[at].emitter, state=events[at].state)
        case _:
            del events[at + 1 :]
    return events
