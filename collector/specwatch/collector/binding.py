"""The binding: which record is which action with which parameters. A TOML file, read with positions for its mistakes.

``load_binding(path)`` gives a ``Binding``; ``Mapper(binding)`` makes events of records. What the file may say is told
with examples in ``docs/binding.md``. Where the sketch of the format left something open, this was chosen:

* ``"$field"`` alone is the field's value, of the type it has; ``"$a.b"`` is the field ``a.b``, else ``b`` inside ``a``;
  ``"${field name}"`` is for names of other characters. A text with ``$field`` in its midst is a text made of values. A
  ``$$`` is a dollar. A value never becomes part of a TLA+ expression.
* A field that a parameter needs and the record lacks makes the record unparsed. A missing ``emitter``, ``seq``,
  ``time``, ``until``, ``run``, ``boot`` or ``attempt`` is no mistake; one of a wrong type is.
* ``[intern] id = 0``: the values of the parameter ``id`` become integers from 0, in the sorted order of the originals.
* ``[hidden]`` may be a list of names, or tables; ``max`` in it bounds the hidden steps between two events.
* ``start`` may be a word, or a table with ``mode``, ``within``, ``states`` and ``first``.
* In ``expect`` a ``$name`` is the rule's parameter of that name, else the record's field. ``$name.part`` is TLA+'s own
  way into the value. The text stays as it is; the values of the fields go with the event.
"""

from __future__ import annotations

import pathlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from specwatch.checker.behaviour import Order, Scope, Start

from .decode import DECODERS
from .errors import CollectorError, nearest
from .receive.tail import unreadable
from .rules import Binding, Cause, Constant, Hidden, Join, Key, Made, Origin, Rule, bound_of, bounds, with_settings
from .template import Test, Value, field, respelt, test_of, value_of
from .times import duration
from .toml_positions import Path, positions

__all__ = [
    "Binding",
    "Cause",
    "Constant",
    "Hidden",
    "Key",
    "Origin",
    "Rule",
    "bounds",
    "load_binding",
    "parse_binding",
    "with_settings",
]


class _StartTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table form of ``start``."""

    mode: Start | None = None
    within: str | int | float | None = None
    states: str | None = None
    first: tuple[str, ...] = ("Publish",)


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    """One of the events that a record makes, in the form that has parameters of its own."""

    action: str
    params: dict[str, Any] | None = None


class _Any(msgspec.Struct, forbid_unknown_fields=True):
    """The actions of which a record is one."""

    any: list[str]


class _Join(msgspec.Struct, forbid_unknown_fields=True):
    start: dict[str, Any]
    end: dict[str, Any]
    on: str | list[str]


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    match: dict[str, Any] = {}
    action: str | None = None
    ignore: str | None = None
    params: dict[str, Any] = {}
    emitter: str | None = None
    seq: str | int | None = None
    time: str | int | float | None = None
    until: str | int | float | None = None
    run: str | None = None
    boot: str | None = None
    attempt: str | int | None = None
    state: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    expect: list[str] = []
    actions: Any = None
    join: _Join | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    spec: str | None = None
    config: str | None = None
    format: str = "auto"
    scope: Scope = "run"
    order: Order | None = None
    skew: str | int | float | None = None
    start: Any = None
    complete: bool = False
    unmatched: Literal["count", "error"] = "count"
    require: list[str] = []
    terminal: list[str] = []
    at_end: list[str] = []
    cause: list[Cause] = []
    lossy: list[str] = []
    never_lost: list[str] = []
    unwritten: Annotated[int, msgspec.Meta(ge=1)] | None = None
    by_emitter: list[str] = []
    hidden: Any = None
    key: Key | None = None
    constants: dict[str, Any] = {}
    intern: dict[str, Any] = {}
    values: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    emitter: str | None = None
    seq: str | None = None
    time: str | None = None
    until: str | None = None
    run: str | None = None
    boot: str | None = None
    rule: list[_Rule] = []


def load_binding(path: str) -> Binding:
    """Read a binding file. Raises ``CollectorError`` with position, caret and the nearest right name."""
    try:
        data = pathlib.Path(path).read_bytes()
    except IsADirectoryError:
        raise CollectorError("this is a directory, not a binding", file=path) from None
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CollectorError(f"the binding is not UTF-8 (byte {error.start + 1})", file=path) from None
    return parse_binding(text, path)


def parse_binding(text: str, path: str | None = None) -> Binding:
    """A binding from its text; ``path`` is for messages. Raises ``CollectorError``."""
    text = text.replace("\r\n", "\n")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(error, text, path) from None
    except RecursionError:
        raise CollectorError("the binding is nested too deeply", file=path) from None
    return _Reader(document, text, path).binding()


def _syntax(error: Exception, text: str, path: str | None) -> CollectorError:
    where = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error))
    message = str(error)[: where.start()] if where else str(error)
    lines = text.split("\n")
    line, column = (int(where[1]), int(where[2])) if where and where[1] else (len(lines), len(lines[-1]) + 1)
    return CollectorError(f"this is no TOML: {message}", file=path, line=line, column=column, text=lines[line - 1])


_KINDS = {
    "str": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


class _Reader:
    """From a TOML document to a binding; knows where everything stands."""

    def __init__(self, document: dict[str, Any], text: str, path: str | None) -> None:
        self.document = document
        self.text = text
        self.path = path
        self.positions = positions(text)

    def fail(self, path: Path, message: str, hint: str | None = None) -> NoReturn:
        """Raise with the position of the longest beginning of ``path`` that has one."""
        known = path
        while known and known not in self.positions:
            known = known[:-1]
        offset = self.positions.get(known)
        if offset is None:
            raise CollectorError(message, file=self.path, hint=hint)
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        line = self.text[begin : end if end >= 0 else len(self.text)]
        name = known[-1]
        raise CollectorError(
            message,
            file=self.path,
            line=self.text.count("\n", 0, offset) + 1,
            column=offset - begin + 1,
            hint=hint,
            text=line,
            width=len(name) if isinstance(name, str) else 1,
        )

    def convert(self, value: Any, type_: Any, path: Path = ()) -> Any:
        """``msgspec.convert``, with its complaint said as ours and put where it belongs."""
        try:
            return msgspec.convert(value, type_)
        except msgspec.ValidationError as error:
            self._complain(str(error), type_, path)

    def _complain(self, complaint: str, type_: Any, path: Path) -> NoReturn:
        message, _, where = complaint.partition(" - at `")
        place = (*path, *self._place(where.removesuffix("`")))
        unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
        if unknown:
            names = self._fields_at(type_, place[len(path) :])
            self.fail((*place, unknown[1]), f"unknown key {unknown[1]!r}", nearest(unknown[1], names))
        enum = re.fullmatch(r"Invalid enum value '(.*)'", message, re.DOTALL)
        if enum:
            words = self._words_at(type_, place[len(path) :])
            self.fail(place, f"{place[-1]} cannot be {enum[1]!r}", f"it is one of: {', '.join(words)}")
        name: str | int = place[-1] if place else "the binding"
        if isinstance(name, int):
            name = f"an entry of {place[-2]}"
        expected = re.fullmatch(r"Expected `(.*)`, got `(.*)`", message)
        if expected:
            kinds = [_KINDS.get(kind, kind) for kind in expected[1].split(" | ") if kind != "null"]
            self.fail(place, f"{name} must be {' or '.join(kinds)}, not {_KINDS.get(expected[2], expected[2])}")
        missing = re.fullmatch(r"Object missing required field `(.*)`", message)
        if missing:
            self.fail(place, f"{name} needs the key {missing[1]!r}")
        self.fail(place, f"{name}: {message}")

    def _place(self, where: str) -> Path:
        """``$.rule[0].match`` as a path; where msgspec only says ``[...]``, the first key whose value is wrong."""
        place: Path = ()
        for name, number, _ in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]", where):
            if name or number:
                place = (*place, name or int(number))
            else:
                break
        return place

    def _fields_at(self, type_: Any, place: Path) -> list[str]:
        return [name for name in _struct_at(type_, place).__struct_encode_fields__ if name]

    def _words_at(self, type_: Any, place: Path) -> list[str]:
        struct = _struct_at(type_, place[:-1])
        hints = msgspec.inspect.type_info(struct)
        assert isinstance(hints, msgspec.inspect.StructType), "a word is always a struct's field"
        for known in hints.fields:
            if known.encode_name == place[-1]:
                options = known.type.types if isinstance(known.type, msgspec.inspect.UnionType) else (known.type,)
                return [str(word) for option in options for word in getattr(option, "values", ())]
        return []

    def binding(self) -> Binding:
        file: _File = self.convert(self.document, _File)
        if file.format != "auto" and file.format not in DECODERS:
            self.fail(("format",), f"there is no format {file.format!r}", f"it is one of: auto, {', '.join(DECODERS)}")
        for name, spellings in file.values.items():
            self.convert(spellings, dict[str, Any], ("values", name))
        start = self._start(file.start)
        if start.within is not None:
            self._bound(("start", "within"), start.within, file.settings)
        hidden, hidden_max = self._hidden(file)
        for number, cause in enumerate(file.cause):
            for name in ("then", "on"):
                if not getattr(cause, name):
                    self.fail(("cause", number, name), f"{name} is empty")
        for name in file.terminal:
            if name in hidden:
                self.fail(("terminal",), f"{name} is hidden, and a hidden action cannot be terminal")
        for name in file.never_lost:
            if name in hidden or name in file.lossy:
                what = "hidden" if name in hidden else "lossy"
                self.fail(("never_lost",), f"{name} is {what}, and so may lack its record")
        return Binding(
            path=self.path,
            spec=file.spec,
            config=file.config,
            format=file.format,
            scope=file.scope,
            order=file.order,
            skew=None if file.skew is None else self._duration(("skew",), file.skew),
            start=start.mode,
            start_within=None if start.within is None else bound_of(start.within, file.settings),
            start_states=start.states,
            first=start.first,
            within=start.within,
            complete=file.complete,
            unmatched=file.unmatched,
            require=file.require,
            terminal=file.terminal,
            at_end=file.at_end,
            causes=file.cause,
            lossy=file.lossy,
            never_lost=file.never_lost,
            unwritten=file.unwritten,
            by_emitter=file.by_emitter,
            hidden=hidden,
            hidden_max=hidden_max,
            key=file.key,
            constants={name: self._constant(name, value) for name, value in file.constants.items()},
            intern={name: self._first(("intern", name), first) for name, first in file.intern.items()},
            settings=file.settings,
            origin=self._origin(file, file),
            rules=[self._rule(file, number, rule) for number, rule in enumerate(file.rule)],
        )

    def _first(self, path: Path, first: Any) -> int:
        if type(first) is not int or first < 0:
            self.fail(path, f"{path[-1]} must be the first integer that stands for an id, 0 or more")
        return first

    def _start(self, value: Any) -> _StartTable:
        if isinstance(value, dict):
            table: _StartTable = self.convert(value, _StartTable, ("start",))
            return table
        word: _StartWord = self.convert({"start": value}, _StartWord)
        return _StartTable(mode=word.start)

    def _hidden(self, file: _File) -> tuple[dict[str, Hidden], int | None]:
        if file.hidden is None or isinstance(file.hidden, list):
            names: list[str] = self.convert(file.hidden or [], list[str], ("hidden",))
            return {name: Hidden() for name in names}, None
        if not isinstance(file.hidden, dict):
            self.fail(("hidden",), "hidden must be a list of actions, or a table of them")
        hidden: dict[str, Hidden] = {}
        most: int | None = None
        for name, value in file.hidden.items():
            path = ("hidden", name)
            if name == "max" and not isinstance(value, dict):
                if type(value) is not int or value < 0:
                    self.fail(path, "max must be a number of steps, 0 or more")
                most = value
                continue
            if not isinstance(value, dict):
                self.fail(path, f"{name} must be a table", f"[hidden.{name}], or hidden = [{name!r}]")
            hidden[name] = self.convert(value, Hidden, path)
            own = hidden[name]
            limits = [
                None if bound is None else self._bound((*path, limit), bound, file.settings)
                for limit, bound in (("min", own.min), ("max", own.max))
            ]
            if own.after is None and limits != [None, None]:
                self.fail(path, f"{name} has a bound, and nothing that it counts from", 'after = "Pickup"')
        return hidden, most

    def _bound(self, path: Path, value: Any, settings: Mapping[str, Any]) -> int:
        try:
            return bound_of(value, settings)
        except ValueError as error:
            self.fail(path, f"{error}, and no name in [settings]", nearest(str(value), settings))

    def _duration(self, path: Path, value: Any) -> int:
        try:
            return duration(value)
        except ValueError as error:
            self.fail(path, str(error))

    def _constant(self, name: str, value: Any) -> Constant:
        path: Path = ("constants", name)
        if not isinstance(value, dict) or (value and all(key.startswith("#") for key in value)):
            return Constant(literal=value)
        if len(value) != 1:
            self.fail(path, f"{name} must come from one thing", 'keys = true, values = "param" or count = "keys"')
        table: _ConstantTable = self.convert(value, _ConstantTable, path)
        if table.keys is False:
            self.fail((*path, "keys"), "keys can only be true")
        return Constant(keys=bool(table.keys), values=table.values, count=table.count)

    def _rule(self, file: _File, number: int, rule: _Rule) -> Rule:
        path: Path = ("rule", number)
        if [rule.action, rule.actions, rule.ignore].count(None) != 2:
            self.fail(path, "a rule has one of action, actions and ignore (with the reason)")
        if rule.action == "":
            self.fail((*path, "action"), "the action is empty")
        made = self._made(path, rule, file.values)
        if rule.join is not None and len(made) != 1:
            self.fail(
                (*path, "join"), "two records that are joined are one event", "action, or actions = { any = […] }"
            )
        names = "/".join(name for one in made for name in (one.action, *one.alternatives))
        what = names if rule.ignore is None else f"ignore {rule.ignore}"
        offset = self.positions.get(path, 0)
        line = self.text.count("\n", 0, offset) + 1
        params = {name for name, _ in made[-1].params} if made else set()
        return Rule(
            name=f"rule {number + 1} ({what}), {self.path or 'binding'}:{line}",
            tests=self._tests((*path, "match"), rule.match),
            ignore=rule.ignore,
            made=made,
            join=None if rule.join is None else self._join((*path, "join"), rule.join),
            origin=self._origin(rule, file),
            attempt=None if rule.attempt is None else value_of(rule.attempt, file.values),
            state=None if rule.state is None else self._observed(rule.state, file.values),
            before=None if rule.before is None else self._observed(rule.before, file.values),
            expect=rule.expect,
            fields=[(name, value_of(f"${name}", file.values)) for name in _fields(rule.expect) if name not in params],
        )

    def _origin(self, rule: _Rule | _File, file: _File) -> Origin:
        def template(name: str, *, exact: bool = False) -> Value | None:
            value = getattr(rule, name)
            value = getattr(file, name) if value is None else value
            return None if value is None else value_of(value, file.values, exact=exact)

        return Origin(
            emitter=template("emitter"),
            seq=template("seq"),
            time=template("time", exact=True),
            until=template("until", exact=True),
            run=template("run"),
            boot=template("boot"),
        )

    def _made(self, path: Path, rule: _Rule, spellings: Mapping[str, Mapping[str, Any]]) -> list[Made]:
        def made(action: str, alternatives: list[str], params: dict[str, Any]) -> Made:
            own = [(name, self._param(name, value, spellings)) for name, value in params.items()]
            return Made(action=action, alternatives=alternatives, params=own)

        if rule.action is not None:
            return [made(rule.action, [], rule.params)]
        if rule.actions is None:
            return []
        path = (*path, "actions")
        if isinstance(rule.actions, dict):
            names = self.convert(rule.actions, _Any, path).any
            if not names:
                self.fail((*path, "any"), "any names no action")
            return [made(names[0], names[1:], rule.params)]
        if not isinstance(rule.actions, list) or not rule.actions:
            self.fail(
                path, "actions must be a list of actions, or a table of alternatives", 'actions = { any = ["A"] }'
            )
        parts: list[Made] = []
        for number, one in enumerate(rule.actions):
            if isinstance(one, str):
                parts.append(made(one, [], rule.params))
            else:
                part: _Part = self.convert(one, _Part, (*path, number))
                parts.append(made(part.action, [], rule.params if part.params is None else part.params))
        return parts

    def _join(self, path: Path, join: _Join) -> Join:
        on = [join.on] if isinstance(join.on, str) else join.on
        if not on:
            self.fail((*path, "on"), "on names no field")
        return Join(
            start=self._tests((*path, "start"), join.start),
            end=self._tests((*path, "end"), join.end),
            on=[field(name.removeprefix("$")) for name in on],
        )

    def _observed(self, state: dict[str, Any], spellings: Mapping[str, Mapping[str, Any]]) -> Value:
        named = [(name, self._param(name, value, spellings)) for name, value in state.items()]
        return lambda fields: {name: value(fields) for name, value in named}

    def _param(self, name: str, value: Any, spellings: Mapping[str, Mapping[str, Any]]) -> Value:
        """``[values.NAME]`` is known by the name of the field, and by that of what it is a value of."""
        if isinstance(value, dict):
            return self._observed(value, spellings)
        made = value_of(value, spellings)
        spelt = spellings.get(name)
        if spelt and isinstance(value, str):
            known = spelt
            return lambda fields: respelt(made(fields), known)
        return made

    def _tests(self, path: Path, match: dict[str, Any]) -> list[Test]:
        return [self._test((*path, name), name, wanted) for name, wanted in match.items()]

    def _test(self, path: Path, name: str, wanted: Any) -> Test:
        for number, one in enumerate(wanted) if isinstance(wanted, list) else [(None, wanted)]:
            place = path if number is None else (*path, number)
            if isinstance(one, dict):
                regex: _Regex = self.convert(one, _Regex, place)
                try:
                    re.compile(regex.regex)
                except (re.error, RecursionError, OverflowError) as error:
                    self.fail((*place, "regex"), f"this is no regular expression: {error}")
            elif not isinstance(one, (str, int, float, bool)):
                self.fail(place, f"{name} is matched by a value, a list of values, a glob or {{ regex = … }}")
        return test_of(name, wanted)


def _fields(expressions: Iterable[str]) -> list[str]:
    """The names after a ``$`` in TLA+ expressions, each once. ``$$`` is an operator there."""
    names = (name for text in expressions for name in re.findall(r"(?<!\$)\$([A-Za-z_]\w*)", text, re.ASCII))
    return list(dict.fromkeys(names))


class _Regex(msgspec.Struct, forbid_unknown_fields=True):
    regex: str


class _StartWord(msgspec.Struct):
    start: Start | None = None


class _ConstantTable(msgspec.Struct, forbid_unknown_fields=True):
    keys: bool | None = None
    values: str | None = None
    count: str | None = None


def _struct_at(type_: Any, place: Path) -> Any:
    """The struct that a path leads to from ``type_``."""
    for step in place:
        if isinstance(step, int):
            continue
        if type_ is _File:
            type_ = {"rule": _Rule, "key": Key, "cause": Cause}.get(step, type_)
        elif type_ is _Rule:
            type_ = {"join": _Join}.get(step, type_)
    return type_
