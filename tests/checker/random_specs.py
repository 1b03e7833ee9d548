"""Random small specs over keys, as TLA+ text: tame ones that are separable as they are written, and wild ones.

A wild one has, here and there, something that may speak of two keys, of the key itself, or of a run-level variable in
a keyed action, be it by way of a definition, a LET or a parameter. Whether it does is for the reader to find out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

CONFIG = 'CONSTANTS K = {{"a", "b"}} W = {{"v", "w"}}\nINIT Init NEXT Next\nINVARIANTS {invariants}\n'

INVARIANTS = ["Inv0", "Inv1", "Inv2", "Inv3"]
KEYED = {"ph": "num", "kn": "num", "ks": "set", "kf": "flag", "kr": "record"}
SHARED = {"mode": "num", "rn": "num", "rs": "set", "rf": "flag", "rw": "by worker", "rm": "num"}
FIRST = {
    "num": ["0", "1", "2"],
    "set": ["{}", "W", '{"v"}'],
    "flag": ["TRUE", "FALSE"],
    "record": ["[n |-> 0, f |-> TRUE]", "[n |-> 1, f |-> FALSE]"],
    "by worker": ["[x \\in W |-> 0]", "[x \\in W |-> 1]"],
}

HELPERS = r"""
Twice(n) == (n + n) % 3
Both(p, q) == p /\ q
If(A) == A
Do(A(_), x) == A(x)
"""


@dataclass(frozen=True)
class Where:
    """What may be read at a place: names of the key, of workers, of numbers; whether run-level variables, and which
    next values.
    """

    keys: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    shared: bool = True
    after: tuple[str, ...] = ()
    depth: int = 2

    @property
    def deeper(self) -> Where:
        return replace(self, depth=self.depth - 1)


@dataclass
class RandomSpec:
    """One spec. ``wild``: how likely each place is to be a wild one."""

    draw: Random
    wild: float = 0.0
    keyed: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    bound: int = 0

    def __post_init__(self) -> None:
        self.keyed = ["ph", *self.draw.sample(list(KEYED)[1:], self.draw.randint(0, 2))]
        self.shared = self.draw.sample(list(SHARED), self.draw.randint(0, 3))

    # --- small things -------------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def is_wild(self) -> bool:
        return self.chance(self.wild)

    def one_of(self, ways: list[Callable[[], str]]) -> str:
        """A way chosen first, and gone then."""
        return self.draw.choice(ways)()

    def of(self, names: list[str], kinds: dict[str, str], kind: str) -> list[str]:
        return [name for name in names if kinds[name] == kind]

    def fresh(self, stem: str) -> str:
        self.bound += 1
        return f"{stem}{self.bound}"

    def at_key(self, where: Where, kind: str) -> list[str]:
        """A keyed variable of a kind, at a key, now or next."""
        return [
            name if name not in where.after or self.chance(0.7) else self.draw.choice([f"{name}'", f"({name})'"])
            for name in self.of(self.keyed, KEYED, kind)
            if where.keys
        ]

    def read(self, where: Where, kind: str) -> list[str]:
        found = [f"{name}[{self.draw.choice(where.keys)}]" for name in self.at_key(where, kind)]
        if where.shared:
            shared = self.of(self.shared, SHARED, kind)
            found += [f"{name}'" if name in where.after and self.chance(0.5) else name for name in shared]
        return found

    def key(self, where: Where) -> str:
        """What is written where one key is meant and it may be the wrong one."""
        return self.draw.choice(['"a"', '"b"', "CHOOSE c \\in K : TRUE", *where.keys, *where.workers])

    # --- expressions --------------------------------------------------------------------------------------------------

    def number(self, where: Where) -> str:
        found = 3 * self.read(where, "num") + list(where.numbers) + [self.draw.choice("012")]
        found += [f"{name}[{self.draw.choice(where.keys)}].n" for name in self.at_key(where, "record")]
        if "rw" in self.shared and where.shared and where.workers:
            found.append(f"rw[{self.draw.choice(where.workers)}]")
        if self.is_wild():
            found = self.wild_numbers(where)
        if where.depth > 0 and self.chance(0.4):
            inner = where.deeper
            return self.one_of(
                [
                    lambda: f"((({self.number(inner)}) + ({self.number(inner)})) % 3)",
                    lambda: f"Twice({self.number(inner)})",
                    lambda: f"Cardinality({self.set(inner)})",
                    lambda: f"(IF {self.flag(inner)} THEN {self.number(inner)} ELSE {self.number(inner)})",
                    lambda: self.let(inner),
                    lambda: self.defined(inner, "number"),
                ]
            )
        return self.draw.choice(found)

    def wild_numbers(self, where: Where) -> list[str]:
        found = ["Cardinality(K)", "(IF K = {} THEN 1 ELSE 0)"]
        u = self.fresh("u")
        inner = replace(where, keys=(*where.keys, u), depth=0)
        found.append(f"Cardinality({{{u} \\in K : {self.flag(inner)}}})")
        found.append(f"(IF \\E {u}x \\in K : TRUE THEN 1 ELSE 0)")
        for name in self.keyed:
            if KEYED[name] == "num":
                found.append(f"{name}[{self.key(where)}]")
                found.append(f"(CHOOSE {u}n \\in 0..2 : \\E {u}y \\in K : {name}[{u}y] = {u}n)")
            found.append(f"Cardinality(DOMAIN {name})")
        for key in where.keys:
            found.append(f'(IF {key} = "a" THEN 1 ELSE 0)')
            found.append(f'Cardinality({{{key}}} \\ {{"a"}})')
            if "rw" in self.shared:
                found.append(f"(IF {key} \\in DOMAIN rw THEN rw[{key}] ELSE 0)")
        name = self.fresh("Fn")
        self.definitions.append(f"{name}[{name}x \\in K] == 0")
        found.append(f"Cardinality(DOMAIN {name})")
        return found

    def let(self, where: Where) -> str:
        name = self.fresh("n")
        return f"(LET {name} == {self.number(where)} IN Twice({name}))"

    def defined(self, where: Where, kind: str) -> str:
        """An expression by way of a definition of its own, with the key as its parameter."""
        name = self.fresh("D")
        numbers = {"number": self.number, "flag": self.flag, "set": self.set}[kind]
        if where.keys and self.chance(0.7):
            k = self.fresh("k")
            inner = Where(keys=(k,), shared=where.shared, depth=where.depth)
            self.definitions.append(f"{name}({k}) == {numbers(inner)}")
            argument = self.key(where) if self.is_wild() else self.draw.choice(where.keys)
            return f"{name}({argument})"
        if where.numbers and self.chance(0.5):
            n = self.fresh("m")
            inner = Where(numbers=(n,), shared=where.shared, depth=where.depth)
            self.definitions.append(f"{name}({n}) == {numbers(inner)}")
            return f"{name}({self.draw.choice(where.numbers)})"
        self.definitions.append(f"{name} == {numbers(Where(shared=where.shared, depth=where.depth))}")
        return name

    def set(self, where: Where) -> str:
        found = [*self.read(where, "set"), "{}", "W", *(f"{{{worker}}}" for worker in where.workers)]
        if self.is_wild():
            u = self.fresh("u")
            found = ["K", *(f"{{{key}}}" for key in where.keys)]
            for name in self.of(self.keyed, KEYED, "set"):
                found += [f"UNION {{{name}[{u}] : {u} \\in K}}", f"{name}[{self.key(where)}]"]
        if where.depth > 0 and self.chance(0.4):
            inner = where.deeper
            x = self.fresh("x")
            with_worker = replace(inner, workers=(*inner.workers, x))
            return self.one_of(
                [
                    lambda: f"(({self.set(inner)}) \\union ({self.set(inner)}))",
                    lambda: f"(({self.set(inner)}) \\ ({self.set(inner)}))",
                    lambda: f"{{{x} \\in W : {self.flag(with_worker)}}}",
                    lambda: self.defined(inner, "set"),
                ]
            )
        return self.draw.choice(found)

    def flag(self, where: Where) -> str:
        found = self.read(where, "flag")
        found += [f"{name}[{self.draw.choice(where.keys)}].f" for name in self.at_key(where, "record")]
        found += [f"{name} # {self.draw.choice('012')}" for name in self.read(where, "num")]
        found += [f"{name} # W" for name in self.read(where, "set")]
        found += [f"w \\in {name}" for name in self.read(where, "set") if "w" in where.workers]
        found = [f"({one})" for one in found] or ["TRUE"]
        if self.is_wild():
            found = self.wild_flags(where)
        if where.depth > 0 and self.chance(0.5):
            inner = where.deeper
            x = self.fresh("x")
            with_worker = replace(inner, workers=(*inner.workers, x))
            return self.one_of(
                [
                    lambda: f"({self.number(inner)} {self.draw.choice(['=', '#', '<', '<='])} {self.number(inner)})",
                    lambda: f"({self.set(inner)} {self.draw.choice(['=', '#', 'subset'])} {self.set(inner)})".replace(
                        "subset", "\\subseteq"
                    ),
                    lambda: f"~({self.flag(inner)})",
                    lambda: f"(({self.flag(inner)}) /\\ ({self.flag(inner)}))",
                    lambda: f"(({self.flag(inner)}) \\/ ({self.flag(inner)}))",
                    lambda: (
                        f"({self.draw.choice([chr(92) + 'E', chr(92) + 'A'])} {x} \\in W : {self.flag(with_worker)})"
                    ),
                    lambda: f"Both({self.flag(inner)}, {self.flag(inner)})",
                    lambda: self.defined(inner, "flag"),
                ]
            )
        return self.draw.choice(found)

    def wild_flags(self, where: Where) -> list[str]:
        u = self.fresh("u")
        inner = replace(where, keys=(*where.keys, u), depth=1)
        found = [
            f"(\\A {u} \\in K : {self.flag(inner)})",
            f"(\\E {u} \\in K : {self.flag(inner)})",
            "(K # W)",
            '("b" \\in K)',
            f"(Cardinality(K) > {self.draw.choice('12')})",
        ]
        for name in self.keyed:
            found += [f"(DOMAIN {name} = K)", f"({name} = {name})"]
            if KEYED[name] == "flag":
                found.append(f"{name}[{self.key(where)}]")
            found += [f"({name}[{key}] = {name}[{self.key(where)}])" for key in where.keys]
        found += [f'({key} = "a")' for key in where.keys] + [f"({key} \\in K)" for key in where.keys]
        found += [f"ENABLED ({name}' = {self.draw.choice('01')})" for name in self.shared if SHARED[name] == "num"]
        return found

    def record(self, where: Where) -> str:
        choices = [f"[n |-> {self.number(where)}, f |-> {self.flag(where)}]"]
        for name in self.of(self.keyed, KEYED, "record"):
            choices += [f"[{name}[{key}] EXCEPT !.n = {self.number(where)}]" for key in where.keys]
        return self.draw.choice(choices)

    def by_worker(self, where: Where) -> str:
        if "rw" in self.shared and where.workers and self.chance(0.5):
            return f"[rw EXCEPT ![{self.draw.choice(where.workers)}] = {self.number(where)}]"
        x = self.fresh("x")
        return f"[{x} \\in W |-> {self.number(replace(where, workers=(*where.workers, x)))}]"

    def expression(self, kind: str, where: Where) -> str:
        return {
            "num": self.number,
            "set": self.set,
            "flag": self.flag,
            "record": self.record,
            "by worker": self.by_worker,
        }[kind](where)

    # --- actions ------------------------------------------------------------------------------------------------------

    def kept(self, names: list[str]) -> list[str]:
        """Conjuncts that leave variables as they are."""
        if not names:
            return []
        form = self.draw.randrange(4)
        if form == 0:
            return [f"UNCHANGED {name}" for name in names]
        if form == 1:
            return [f"{name}' = {name}" for name in names]
        if form == 2:
            defined = self.fresh("vars")
            self.definitions.append(f"{defined} == <<{', '.join(names)}>>")
            return [f"UNCHANGED {defined}"]
        return [f"UNCHANGED <<{', '.join(names)}>>"]

    def keyed_action(self, name: str) -> tuple[str, str]:
        """An action with the key: how Next has it, and its definition."""
        worker = self.chance(0.4)
        where = Where(keys=("t",), workers=("w",) if worker else ())
        conjuncts = [self.flag(where) for _ in range(self.draw.choice([0, 0, 1, 2]))]
        if self.chance(0.8):
            phase = "0" if name == "Act0" else self.draw.choice("012")
            conjuncts.append(f"ph[t] {self.draw.choice(['=', '=', '<='])} {phase}")
        if "mode" in self.shared and self.chance(0.4):
            conjuncts.append(f"mode # {self.draw.choice('012')}")
        kept = []
        after: tuple[str, ...] = ()
        for variable in self.draw.sample(self.keyed, len(self.keyed)):
            if self.chance(0.35):
                kept.append(variable)
                continue
            if variable == "ph" and self.chance(0.6):
                conjuncts.append(f"ph' = [ph EXCEPT ![t] = {self.draw.choice('012')}]")
                continue
            conjuncts.append(self.keyed_change(variable, replace(where, after=after)))
            after = (*after, variable)
        shared = list(self.shared)
        if shared and self.is_wild():
            variable = shared.pop(self.draw.randrange(len(shared)))
            conjuncts.append(self.smuggled(variable, where))
        conjuncts += self.kept(kept + shared) if self.chance(0.5) else self.kept(kept) + self.kept(shared)
        if self.wild:
            self.draw.shuffle(conjuncts)
        body = self.shaped(conjuncts)
        if worker:
            return f"\\E t \\in K : \\E w \\in W : {name}(t, w)", f"{name}(t, w) == {body}"
        if self.chance(0.3):
            return f"\\E t \\in K : {name}(t)", f"{name}(key) == " + re.sub(r"\bt\b", "key", body)
        return f"\\E t \\in K : {name}(t)", f"{name}(t) == {body}"

    def keyed_change(self, variable: str, where: Where) -> str:
        kind = KEYED[variable]

        def value() -> str:
            return self.expression(kind, where)

        def update() -> str:
            key = self.key(where) if self.is_wild() else "t"
            if kind == "record" and self.chance(0.4):
                return f"[{variable} EXCEPT ![{key}].n = {self.number(where)}]"
            if kind == "num" and self.chance(0.4):
                return f"[{variable} EXCEPT ![{key}] = (@ + 1) % 3]"
            return f"[{variable} EXCEPT ![{key}] = {value()}]"

        if self.is_wild():
            u = self.fresh("u")
            return self.draw.choice(
                [
                    f"{variable}' = [{u} \\in K |-> {self.expression(kind, replace(where, keys=('t', u)))}]",
                    f"{variable}' = [{u} \\in K |-> IF {u} = t THEN {value()} ELSE {variable}[{u}]]",
                    f"{variable}' = [{u} \\in DOMAIN {variable} |-> {value()}]",
                    f"(\\A {u} \\in K : {variable}[{u}]' = {variable}[{u}]) /\\ {variable}' = {update()}",
                ]
            )
        form = self.draw.randrange(5)
        if form == 0:
            return f"{variable}' = IF {self.flag(where)} THEN {update()} ELSE {variable}"
        if form == 1:
            return f"{variable}' \\in {{{update()}, {update()}}}"
        if form == 2:
            return f"(({self.flag(where)} /\\ {variable}' = {update()}) \\/ {variable}' = {update()})"
        return f"{variable}' = {update()}"

    def smuggled(self, variable: str, where: Where) -> str:
        """A run-level variable's next value, written openly or not."""
        value = self.expression(SHARED[variable], where)
        closed = self.expression(SHARED[variable], Where(depth=1))
        name, p, q = self.fresh("S"), self.fresh("p"), self.fresh("q")
        form = self.draw.randrange(13)
        if form == 0:
            self.definitions.append(f"{name}({p}) == {p}' = {closed}")
            return f"{name}({variable})"
        if form == 1:
            self.definitions.append(f"{name}({p}, {q}) == {p} = {q}")
            return f"{name}({variable}', {value})"
        if form == 2:
            self.definitions.append(f"{name}({p}) == {variable}' = {p}")
            return f"Do({name}, {value})"
        if form == 3:
            return f"Do(LAMBDA {p} : {variable}' = {p}, {value})"
        if form == 4:
            self.definitions.append(f"{name}({p}, {q}) == UNCHANGED {p} \\/ {p}' = {q}")
            return f"{name}({variable}, {value})"
        return [
            f"If({variable}' = {value})",
            f"(LET {name} == {variable}' = {value} IN {name})",
            f"(LET {name}({p}) == {p} = {value} IN {name}({variable}'))",
            f"(CASE {self.flag(where)} -> {variable}' = {value} [] OTHER -> UNCHANGED {variable})",
            f"[{variable}' = {value}]_{variable}",
            f"({name}lab :: {variable}' = {value})",
            f"{variable}' \\in {{{variable}, {value}}}",
            f"(IF {self.flag(where)} THEN {variable}' = {value} ELSE {variable}' = {variable})",
        ][form - 5]

    def shaped(self, conjuncts: list[str]) -> str:
        """A conjunction, perhaps below something else."""
        body = "".join(f"\n  /\\ {item}" for item in conjuncts) or " TRUE"
        if self.chance(0.15):
            name = self.fresh("l")
            return f"LET {name} == {self.draw.choice(['1', 'TRUE'])} IN{body}"
        return body

    def run_level_action(self, name: str) -> tuple[str, str]:
        """An action without the key."""
        parameter = self.draw.choice(["", "w", "n"])
        where = Where(workers=("w",) if parameter == "w" else (), numbers=("n",) if parameter == "n" else ())
        conjuncts = [self.flag(where) for _ in range(self.draw.choice([0, 0, 1, 2]))]
        if "mode" in self.shared and self.chance(0.6):
            conjuncts.append(f"mode = {self.draw.choice('012')}")
        kept = []
        after: tuple[str, ...] = ()
        for variable in self.draw.sample(self.keyed + self.shared, len(self.keyed + self.shared)):
            if self.chance(0.5):
                kept.append(variable)
                continue
            now = replace(where, after=after)
            conjuncts.append(
                self.pointwise_change(variable, now) if variable in KEYED else self.shared_change(variable, now)
            )
            after = (*after, variable)
        if self.keyed and self.is_wild():
            conjuncts.append(self.pointwise_change(self.draw.choice(self.keyed), where))
        conjuncts += self.kept(kept)
        if self.wild:
            self.draw.shuffle(conjuncts)
        body = self.shaped(conjuncts)
        head = f"{name}({parameter})" if parameter else name
        over = {"": head, "w": f"\\E w \\in W : {head}", "n": f"\\E n \\in 0..1 : {head}"}[parameter]
        return over, f"{head} == {body}"

    def shared_change(self, variable: str, where: Where) -> str:
        value = self.expression(SHARED[variable], where)
        if self.is_wild():
            return self.smuggled(variable, where)
        form = self.draw.randrange(4)
        if form == 0:
            return f"{variable}' \\in {{{value}, {self.expression(SHARED[variable], where)}}}"
        if form == 1:
            return f"({variable}' = {value} \\/ UNCHANGED {variable})"
        return f"{variable}' = {value}"

    def pointwise_change(self, variable: str, where: Where) -> str:
        k = self.fresh("k")
        inner = replace(where, keys=(k,))
        function = f"[{k} \\in K |-> {self.expression(KEYED[variable], inner)}]"
        if self.is_wild():
            value = self.expression(KEYED[variable], where)
            return self.draw.choice(
                [
                    f"{variable}' = [{variable} EXCEPT ![{self.key(where)}] = {value}]",
                    f"{variable}' \\in {{{function}, {variable}}}",
                    f"({variable}' = {function} \\/ UNCHANGED {variable})",
                    f"(\\E x \\in 0..1 : {variable}' = IF x = 1 THEN {function} ELSE {variable})",
                    f"({variable}' = {function} /\\ {variable}' = {variable})",
                    f"(UNCHANGED {variable} /\\ {variable}' = {function})",
                    f"{variable}' = [{k} \\in DOMAIN {variable} |-> {variable}[{k}]]",
                ]
            )
        form = self.draw.randrange(5)
        if form == 0:
            return f"{variable}' = IF {self.flag(where)} THEN {function} ELSE {variable}"
        if form == 1 and not where.after:
            name = self.fresh("Reset")
            inner = Where(keys=(k,), depth=1)
            self.definitions.append(f"{name} == [{k} \\in K |-> {self.expression(KEYED[variable], inner)}]")
            return f"{variable}' = {name}"
        if form == 2 and not where.after:
            name, n = self.fresh("Reset"), self.fresh("n")
            inner = Where(keys=(k,), numbers=(n,), depth=1)
            self.definitions.append(f"{name}({n}) == [{k} \\in K |-> {self.expression(KEYED[variable], inner)}]")
            return f"{variable}' = {name}({self.number(where)})"
        return f"{variable}' = {function}"

    # --- the whole ----------------------------------------------------------------------------------------------------

    def init(self) -> str:
        conjuncts = []
        for name in self.shared:
            first = self.draw.choice(FIRST[SHARED[name]])
            if self.is_wild():
                conjuncts.append(
                    self.draw.choice(
                        [
                            f"{name} \\in {{{first}, {self.draw.choice(FIRST[SHARED[name]])}}}",
                            f"({name} = {first} \\/ {name} = {self.draw.choice(FIRST[SHARED[name]])})",
                        ]
                        + ([f"{name} = Cardinality(K)"] if SHARED[name] == "num" else [])
                        + ([f"{name} = K"] if SHARED[name] == "set" else [])
                    )
                )
            else:
                conjuncts.append(f"{name} = {first}")
        for name in self.keyed:
            first, other = self.draw.choice(FIRST[KEYED[name]]), self.draw.choice(FIRST[KEYED[name]])
            first = "0" if name == "ph" else first
            if self.is_wild():
                conjuncts.append(
                    self.draw.choice(
                        [
                            f"{name} \\in [K -> {{{first}, {other}}}]",
                            f'{name} = [k \\in K |-> IF k = "a" THEN {first} ELSE {other}]',
                            f"(\\E e \\in {{{first}}} : {name} = [k \\in K |-> e])",
                        ]
                    )
                )
            else:
                conjuncts.append(f"{name} = [k \\in K |-> {first}]")
        return "Init ==" + "".join(f"\n  /\\ {item}" for item in conjuncts)

    def invariant(self, name: str) -> str:
        k = self.fresh("k")
        of_key = f"\\A {k} \\in K : {self.flag(Where(keys=(k,)))}"
        shared = self.flag(Where())
        if self.is_wild():
            u = self.fresh("u")
            of_key = self.draw.choice(
                [
                    f"\\E {k} \\in K : {self.flag(Where(keys=(k,)))}",
                    f"\\A {k}, {u} \\in K : {self.flag(Where(keys=(k, u)))}",
                    f"\\A {k} \\in K : \\A {u} \\in K : {self.flag(Where(keys=(k, u)))}",
                    f"({of_key}) \\/ ({of_key.replace(k, u)})",
                    f"({of_key}) => ({of_key.replace(k, u)})",
                    f"~({of_key})",
                ]
            )
        text = self.draw.choice(
            [
                of_key,
                of_key,
                shared,
                f"({shared}) /\\ ({of_key})",
                f"({shared}) => ({of_key})",
                f"\\A {k}x \\in W : ({shared})",
            ]
        )
        return f"{name} == {text}"

    def text(self) -> str:
        """The module's body."""
        init = self.init()
        over, actions = [], []
        for number in range(self.draw.randint(2, 4)):
            place, definition = self.keyed_action(f"Act{number}")
            over.append(place)
            actions.append(definition)
        for number in range(self.draw.randint(0, 2) if self.shared or self.chance(0.3) else 0):
            place, definition = self.run_level_action(f"All{number}")
            over.append(place)
            actions.append(definition)
        self.draw.shuffle(over)
        guard = f"({self.flag(Where(depth=1))}) /\\ " if self.chance(0.15) else ""
        next_ = "Next == " + guard + "(" + "".join(f"\n  \\/ ({item})" for item in over) + ")"
        invariants = [self.invariant(name) for name in INVARIANTS]
        names = ", ".join(self.keyed + self.shared)
        return "\n".join(
            [
                "EXTENDS Naturals, FiniteSets",
                "CONSTANTS K, W",
                f"VARIABLES {names}",
                HELPERS,
                *self.definitions,
                init,
                *actions,
                next_,
                *invariants,
            ]
        )

    @staticmethod
    def config() -> str:
        return CONFIG.format(invariants=" ".join(INVARIANTS))
