"""Bindings: what they say, and what is said of their mistakes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from specwatch.checker.behaviour import Event, Source
from specwatch.collector.binding import Binding, Cause, Constant, Hidden, Key, load_binding, parse_binding
from specwatch.collector.decode.lines import Real, Record
from specwatch.collector.errors import CollectorError
from specwatch.collector.mapper import IGNORED, UNPARSED, Half, Left, Mapper


def refusal(text: str) -> CollectorError:
    with pytest.raises(CollectorError) as caught:
        parse_binding(text, "b.toml")
    return caught.value


def mapped(rules: str, **fields: Any) -> list[Event] | Half | Left:
    return Mapper(parse_binding(rules, "b.toml")).read(Record(5, fields), "a.log")


def event(rules: str, **fields: Any) -> Event:
    found = mapped(rules, **fields)
    assert isinstance(found, list), found
    [event] = found
    return event


def why(rules: str, **fields: Any) -> str:
    found = mapped(rules, **fields)
    assert isinstance(found, Left), found
    assert found.lane == UNPARSED
    return found.what


# What a binding says


def test_everything_that_stands_beside_the_rules() -> None:
    binding = parse_binding(
        """
        spec = "Q.tla"
        config = "Q.cfg"
        format = "structlog"
        scope = "key"
        order = "time"
        skew = "50ms"
        start = { mode = "midway", within = "visibility_timeout", states = "Reachable", first = ["Publish", "Send"] }
        complete = true
        unmatched = "error"
        require = ["Pickup", "Pickup during fault"]
        terminal = ["Ack"]
        at_end = ["NothingLost"]
        lossy = ["Publish"]
        never_lost = ["Undo"]
        unwritten = 2
        by_emitter = ["w"]
        intern = { t = 0 }
        [key]
        param = ["t", "u"]
        from = "id"
        [[cause]]
        first = "Pickup"
        then = ["Start"]
        on = ["t", "w"]
        [constants]
        Tasks = { keys = true }
        [hidden]
        max = 3
        Tick = {}
        [hidden.VisTimeout]
        after = "Pickup"
        min = "visibility_timeout"
        max = 60
        when = "t = $t"
        [settings]
        visibility_timeout = "3600s"
        ack = "late"
        """
    )
    assert binding == Binding(
        spec="Q.tla",
        config="Q.cfg",
        format="structlog",
        scope="key",
        order="time",
        skew=50_000_000,
        start="midway",
        start_within=3600 * 10**9,
        within="visibility_timeout",
        start_states="Reachable",
        first=("Publish", "Send"),
        complete=True,
        unmatched="error",
        require=["Pickup", "Pickup during fault"],
        terminal=["Ack"],
        at_end=["NothingLost"],
        causes=[Cause(first="Pickup", then=["Start"], on=["t", "w"])],
        lossy=["Publish"],
        never_lost=["Undo"],
        unwritten=2,
        by_emitter=["w"],
        intern={"t": 0},
        key=Key(param=["t", "u"], source="id"),
        constants={"Tasks": Constant(keys=True)},
        hidden={
            "Tick": Hidden(),
            "VisTimeout": Hidden(after="Pickup", min="visibility_timeout", max=60, when="t = $t"),
        },
        hidden_max=3,
        settings={"visibility_timeout": "3600s", "ack": "late"},
    )


def test_an_empty_file_is_the_binding_of_native_events() -> None:
    assert parse_binding("") == Binding()


def test_hidden_may_be_a_list_and_start_a_word() -> None:
    binding = parse_binding('hidden = ["A", "B"]\nstart = "init"\nskew = 1.5\n')
    assert (list(binding.hidden), binding.hidden_max, binding.start, binding.skew) == (
        ["A", "B"],
        None,
        "init",
        15 * 10**8,
    )


def test_a_binding_from_a_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_bytes(b'\xef\xbb\xbfspec = "Q.tla"\r\norder = "total"\r\n')
    assert load_binding(str(path)) == Binding(path=str(path), spec="Q.tla", order="total")


# Matching


@pytest.mark.parametrize(
    ("match", "fields", "expected"),
    [
        ('{ event = "a" }', {"event": "a"}, True),
        ('{ event = "a" }', {"event": "ab"}, False),
        ('{ event = "a" }', {}, False),
        ('{ event = "a" }', {"event": None}, False),
        ('{ event = "a", n = 1 }', {"event": "a", "n": 1}, True),
        ('{ event = "a", n = 1 }', {"event": "a", "n": 2}, False),
        ("{ n = 1 }", {"n": "1"}, False),
        ('{ n = "1" }', {"n": 1}, False),
        ("{ n = 1 }", {"n": True}, False),
        ("{ n = true }", {"n": 1}, False),
        ("{ n = 0.5 }", {"n": Real("0.50")}, True),
        ('{ event = ["a", "b"] }', {"event": "b"}, True),
        ('{ event = ["a", "b*"] }', {"event": "bcd"}, True),
        ('{ event = ["a", { regex = "^c" }] }', {"event": "cd"}, True),
        ("{ event = [] }", {"event": "a"}, False),
        ('{ event = "task.*" }', {"event": "task.pickup"}, True),
        ('{ event = "task.*" }', {"event": "atask.pickup"}, False),
        ('{ event = "task.?" }', {"event": "task.ab"}, False),
        ('{ event = "*" }', {"event": 3}, False),
        ('{ event = "[ab]x" }', {"event": "bx"}, True),
        ('{ event = { regex = "ick" } }', {"event": "pickup"}, True),
        ('{ event = { regex = "^ick$" } }', {"event": "pickup"}, False),
        ('{ "a.b" = 1 }', {"a": {"b": 1}}, True),
        ('{ "a.b" = 1 }', {"a.b": 1}, True),
        ('{ "a.b" = 1 }', {"a": 1}, False),
        ("{}", {"anything": 1}, True),
    ],
)
def test_match(match: str, fields: dict[str, Any], expected: bool) -> None:
    found = mapped(f'[[rule]]\nmatch = {match}\naction = "A"\n', **fields)
    assert isinstance(found, list) == expected


def test_the_first_rule_that_matches_wins() -> None:
    rules = """
    [[rule]]
    match = { event = "a" }
    ignore = "noise"
    [[rule]]
    match = { event = "*" }
    action = "First"
    [[rule]]
    action = "Second"
    """
    mapper = Mapper(parse_binding(rules, "b.toml"))
    assert mapper.read(Record(1, {"event": "a"}), "x") == Left(IGNORED, "noise", None)
    found = mapper.read(Record(1, {"event": "b"}), "x")
    assert isinstance(found, list)
    assert [event.action for event in found] == ["First"]
    assert mapper.unused_rules() == ["rule 3 (Second), b.toml:8"]


# Values

PARAM = '[[rule]]\naction = "A"\nparams = {{ x = {} }}\n'


@pytest.mark.parametrize(
    ("template", "fields", "expected"),
    [
        ('"$n"', {"n": 3}, 3),
        ('"$n"', {"n": 2**70}, 2**70),
        ('"$n"', {"n": True}, True),
        ('"$n"', {"n": "3"}, "3"),
        ('"$n"', {"n": Real("0.50")}, 0.5),
        ('"$n"', {"n": {"a": [1, Real("2.5")]}}, {"a": [1, 2.5]}),
        ('"$n"', {"n": '"]; DROP'}, '"]; DROP'),
        ('"$n"', {"n": "$other", "other": 1}, "$other"),
        ('"$a.b"', {"a": {"b": 1}}, 1),
        ('"$a.b"', {"a.b": 2, "a": {"b": 1}}, 2),
        ('"$a.b.c"', {"a": {"b.c": 3}}, 3),
        ('"$a.b.c"', {"a.b": {"c": 4}}, 4),
        ('"${odd name-1}"', {"odd name-1": 5}, 5),
        ('"$host/$pid"', {"host": "h", "pid": 7}, "h/7"),
        ('"$host/$t"', {"host": "h", "t": Real("1.50")}, "h/1.50"),
        ('"${host}.log"', {"host": "h"}, "h.log"),
        ('"$$n"', {"n": 1}, "$n"),
        ('"US$"', {}, "US$"),
        ('"literal"', {}, "literal"),
        ("3", {}, 3),
        ("true", {}, True),
        ('{ mtype = "Vote", from = "$n" }', {"n": 1}, {"mtype": "Vote", "from": 1}),
        ('["$n", 2]', {"n": 1}, [1, 2]),
        ('{ "#set" = ["$n"] }', {"n": 1}, {"#set": [1]}),
    ],
)
def test_values(template: str, fields: dict[str, Any], expected: Any) -> None:
    """A field keeps its type, a literal stays what it is, and nothing in a value is read again."""
    value = event(PARAM.format(template), **fields).params["x"]
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("template", "fields", "reason"),
    [
        ('"$n"', {}, "it has no field 'n'"),
        ('"$n"', {"n": None}, "it has no field 'n'"),
        ('"$a.b"', {"a": 3}, "it has no field 'a.b'"),
        ('{ m = "$n" }', {}, "it has no field 'n'"),
        ('"$h/$n"', {"h": 1}, "it has no field 'n'"),
        ('"$n"', {"n": Real("1e400")}, "the number '1e400' is out of range"),
    ],
)
def test_a_parameter_without_value_is_a_record_that_does_not_fit(template: str, fields: Any, reason: str) -> None:
    """Left out, it would mean "any value", which no one wrote."""
    assert why(PARAM.format(template), **fields) == f"does not fit rule 1 (A), b.toml:1: {reason}"


def test_spellings_are_known_by_field_and_by_parameter() -> None:
    rules = """
    [[rule]]
    action = "A"
    params = { r = "$role", s = "$n.state", n = "$code" }
    [values.role]
    StateFollower = "Follower"
    [values.s]
    up = true
    [values.code]
    7 = "seven"
    """
    assert event(rules, role="StateFollower", n={"state": "up"}, code=7).params == {
        "r": "Follower",
        "s": True,
        "n": "seven",
    }
    assert event(rules, role="Other", n={"state": "down"}, code=8).params == {"r": "Other", "s": "down", "n": 8}


FULL = """
[[rule]]
action = "A"
emitter = "$host/$pid"
seq = "$seq"
time = "$ts"
until = "$end"
run = "$run"
boot = "$boot"
attempt = "$attempt"
state = { n = "$n" }
before = { n = 0 }
"""


def test_everything_that_a_rule_can_give() -> None:
    fields = {"host": "h", "pid": 3, "seq": "41", "ts": "1970-01-01T00:00:01Z", "end": Real("1.5"), "run": 7}
    assert event(FULL, **fields, boot="b", attempt=2, n=1) == Event(
        action="A",
        emitter="h/3",
        seq=41,
        time=10**9,
        until=15 * 10**8,
        run="7",
        boot="b",
        attempt=2,
        state={"n": 1},
        before={"n": 0},
        source=Source("a.log", 5),
    )


def test_what_orders_events_may_be_missing() -> None:
    found = event(FULL, n=1, host="h")
    assert (found.emitter, found.seq, found.time, found.run) == (None, None, None, None)


def test_what_orders_events_may_stand_once_for_all_rules() -> None:
    rules = """
    emitter = "$host"
    time = "$ts"
    [[rule]]
    match = { e = "a" }
    action = "A"
    [[rule]]
    action = "B"
    emitter = "other"
    """
    assert [(found.emitter, found.time) for found in (event(rules, e="a", host="h", ts=1), event(rules, ts=1))] == [
        ("h", 10**9),
        ("other", 10**9),
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seq": "x"}, "seq is 'x', which is no number of a record"),
        ({"seq": True}, "seq is 'true', which is no number of a record"),
        ({"seq": -1}, "seq is '-1', which is no number of a record"),
        ({"seq": Real("1.5")}, "seq is '1.5', which is no number of a record"),
        ({"ts": "10:00"}, "'10:00' is no RFC 3339 time"),
        ({"ts": "yesterday"}, "'yesterday' is no number of seconds"),
        ({"ts": [1]}, "'[1]' is no time"),
        ({"ts": 1796067208622}, "'1796067208622' s is after the year 9999: is it in milliseconds or nanoseconds?"),
    ],
)
def test_what_orders_events_must_be_of_its_kind(fields: dict[str, Any], reason: str) -> None:
    assert why(FULL, n=1, **fields) == f"does not fit rule 1 (A), b.toml:2: {reason}"


def test_a_time_is_read_as_it_was_written() -> None:
    assert event(FULL, n=1, ts=Real("1796067208.622714123")).time == 1_796_067_208_622_714_123
    assert event(FULL, n=1, ts="1796067208.622714123").time == 1_796_067_208_622_714_123


def test_the_key_is_a_field_or_several() -> None:
    assert event('[key]\nfrom = "id"\n[[rule]]\naction = "A"', id=3).key == 3
    assert event('[key]\nfrom = "$id"\n[[rule]]\naction = "A"').key is None
    assert event('[key]\nfrom = ["q", "n.id"]\n[[rule]]\naction = "A"', q="x", n={"id": 1}).key == ["x", 1]
    assert event('[key]\nfrom = ["q", "n.id"]\n[[rule]]\naction = "A"', q="x").key is None


def test_the_key_of_parameters() -> None:
    assert Key(param="t").of({"t": 1, "w": 2}) == 1
    assert Key(param="t").of({"w": 2}) is None
    assert Key(param=["t", "w"]).of({"t": 1, "w": 2}) == [1, 2]
    assert Key(param=["t", "w"]).of({"t": 1}) is None
    assert Key().of({"t": 1}) is None


# Mistakes

ONE_OF = "a rule has one of action, actions and ignore (with the reason)"
LIST_OF_ACTIONS = "actions must be a list of actions, or a table of alternatives"


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ("hiden = []", 1, 1, "unknown key 'hiden'", "did you mean 'hidden'?"),
        ("\n[kye]\nparam = 't'", 2, 2, "unknown key 'kye'", "did you mean 'key'?"),
        ("[key]\nform = 'x'", 2, 1, "unknown key 'form'", "did you mean 'from'?"),
        ("key = { param = 't', form = 'x' }", 1, 22, "unknown key 'form'", "did you mean 'from'?"),
        ("key.form = 'x'", 1, 5, "unknown key 'form'", "did you mean 'from'?"),
        ("[[rule]]\naction='A'\n[[rule]]\n  acton = 'B'", 4, 3, "unknown key 'acton'", "did you mean 'action'?"),
        ("rule = [{ action = 'A' }, { acton = 'B' }]", 1, 29, "unknown key 'acton'", "did you mean 'action'?"),
        ("[hidden.V]\nmins = 1", 2, 1, "unknown key 'mins'", "did you mean 'min'?"),
        ("[start]\nwithn = 1", 2, 1, "unknown key 'withn'", "did you mean 'within'?"),
        ("[constants]\nT = { key = true }", 2, 7, "unknown key 'key'", "did you mean 'keys'?"),
        ("[[rule]]\naction='A'\nmatch.e = { regx = 'x' }", 3, 13, "unknown key 'regx'", "did you mean 'regex'?"),
        ("zzz = 1", 1, 1, "unknown key 'zzz'", None),
        ("[[rule]]\naction = 3", 2, 1, "action must be a text, not an integer", None),
        ("[[rule]]\nparams = 'x'\naction = 'A'", 2, 1, "params must be a table, not a text", None),
        ("require = 'x'", 1, 1, "require must be a list, not a text", None),
        ("require = ['x', 3]", 1, 17, "an entry of require must be a text, not an integer", None),
        ("hidden = ['A', 1]", 1, 16, "an entry of hidden must be a text, not an integer", None),
        ("complete = 'yes'", 1, 1, "complete must be true or false, not a text", None),
        ("[values]\nrole = 'x'", 2, 1, "role must be a table, not a text", None),
        ("order = 'emiter'", 1, 1, "order cannot be 'emiter'", "it is one of: emitter, time, total"),
        ("start = 'middle'", 1, 1, "start cannot be 'middle'", "it is one of: init, midway, state"),
        ("unmatched = 'err'", 1, 1, "unmatched cannot be 'err'", "it is one of: count, error"),
        ("format = 'nativ'", 1, 1, "there is no format 'nativ'", "it is one of: auto, native, structlog"),
        ("skew = 'fast'", 1, 1, "'fast' is no duration: 50ms, 3600s, or a number of seconds", None),
        (
            "[start]\nwithin = 'x'",
            2,
            1,
            "'x' is no duration: 50ms, 3600s, or a number of seconds, and no name in [settings]",
            None,
        ),
        (
            "[hidden.V]\nmin = 'vis'\n[settings]\nviss = '1s'",
            2,
            1,
            "'vis' is no duration: 50ms, 3600s, or a number of seconds, and no name in [settings]",
            "did you mean 'viss'?",
        ),
        ("hidden.max = -1", 1, 8, "max must be a number of steps, 0 or more", None),
        ("hidden.A = 1", 1, 8, "A must be a table", "[hidden.A], or hidden = ['A']"),
        ("hidden = 'A'", 1, 1, "hidden must be a list of actions, or a table of them", None),
        ("hidden = ['A']\nterminal = ['A']", 2, 1, "A is hidden, and a hidden action cannot be terminal", None),
        ("hidden = ['A']\nnever_lost = ['A']", 2, 1, "A is hidden, and so may lack its record", None),
        ("lossy = ['A']\nnever_lost = ['A']", 2, 1, "A is lossy, and so may lack its record", None),
        ("unwritten = 0", 1, 1, "unwritten: Expected `int` >= 1", None),
        ("intern.t = 'x'", 1, 8, "t must be the first integer that stands for an id, 0 or more", None),
        ("[[rule]]\nmatch = {}", 1, 3, ONE_OF, None),
        ("[[rule]]\naction='A'\nignore='x'", 1, 3, ONE_OF, None),
        ("[[rule]]\naction='A'\nactions=['B']", 1, 3, ONE_OF, None),
        ("[[rule]]\naction=''", 2, 1, "the action is empty", None),
        (
            "[[rule]]\naction='A'\nmatch.x = []\nmatch.y = [[1]]",
            4,
            12,
            "y is matched by a value, a list of values, a glob or { regex = … }",
            None,
        ),
        (
            "[[rule]]\naction='A'\nmatch = { e = { regex = '(' } }",
            3,
            17,
            "this is no regular expression: missing ), unterminated subpattern at position 0",
            None,
        ),
        ("[constants]\nT = {}", 2, 1, "T must come from one thing", 'keys = true, values = "param" or count = "keys"'),
        ("[constants]\nT = { keys = false }", 2, 7, "keys can only be true", None),
        ("[[rule]]\nactions = []", 2, 1, LIST_OF_ACTIONS, 'actions = { any = ["A"] }'),
        ("[[rule]]\nactions = 'A'", 2, 1, LIST_OF_ACTIONS, 'actions = { any = ["A"] }'),
        ("[[rule]]\nactions = ['A', 3]", 2, 17, "an entry of actions must be a table, not an integer", None),
        ("[[rule]]\nactions = ['A', { acton = 'B' }]", 2, 19, "unknown key 'acton'", "did you mean 'action'?"),
        ("[[rule]]\nactions = { any = [] }", 2, 13, "any names no action", None),
        ("[[rule]]\nactions = { al = ['A'] }", 2, 13, "unknown key 'al'", None),
        ("[[rule]]\naction='A'\njoin = { start = {}, end = {} }", 3, 1, "join needs the key 'on'", None),
        ("[[rule]]\naction='A'\njoin = { start = {}, end = {}, on = [] }", 3, 32, "on names no field", None),
        ("[[rule]]\njoin = { start = {}, ende = {}, on = 'x' }", 2, 22, "unknown key 'ende'", "did you mean 'end'?"),
        (
            "[[rule]]\naction='A'\njoin = { start = { a = { regx = 'x' } }, end = {}, on = 'x' }",
            3,
            26,
            "unknown key 'regx'",
            "did you mean 'regex'?",
        ),
        (
            "[[rule]]\nactions=['A','B']\njoin = { start = {}, end = {}, on = 'x' }",
            3,
            1,
            "two records that are joined are one event",
            "action, or actions = { any = […] }",
        ),
        ("[[rule]]\naction='A'\nexpect = 'x'", 3, 1, "expect must be a list, not a text", None),
        ("[[cause]]\nfirst = 'A'\nthen = ['B']", 1, 3, "an entry of cause needs the key 'on'", None),
        ("[[cause]]\nfirst = 'A'\nthen = []\non = ['t']", 3, 1, "then is empty", None),
        ("[[cause]]\nfrist = 'A'\nthen = ['B']\non = ['t']", 2, 1, "unknown key 'frist'", "did you mean 'first'?"),
        ("[hidden.V]\nmin = 3", 1, 9, "V has a bound, and nothing that it counts from", 'after = "Pickup"'),
        ("a = \n", 1, 5, "this is no TOML: Invalid value", None),
        ("spec = 'x'\nspec = 'y'", 2, 11, "this is no TOML: Cannot overwrite a value", None),
        ("spec = 'x", 1, 10, "this is no TOML: Expected \"'\"", None),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_where_it_stands(text: str, line: int, column: int, message: str, hint: str | None) -> None:
    error = refusal(text)
    assert (error.line, error.column, error.message, error.hint) == (line, column, message, hint)
    assert error.file == "b.toml"


def test_the_caret_stands_under_the_key() -> None:
    assert str(refusal('[[rule]]\n\tacton = "A"\n')) == (
        "b.toml:2:2: unknown key 'acton'\n  \tacton = \"A\"\n  \t^^^^^\n  hint: did you mean 'action'?"
    )


def test_a_binding_nested_without_end_is_refused() -> None:
    assert "nested too deeply" in refusal("a = " + "[" * 100_000).message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.toml", None, "there is no such file"),
        ("", None, "this is a directory, not a binding"),
        ("latin.toml", b"spec = '\xe9'", "the binding is not UTF-8 (byte 9)"),
        ("binary.toml", b"\0\1\2", "this is no TOML: Invalid statement"),
    ],
)
def test_a_binding_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = os.fspath(tmp_path / name)
    if content is not None:
        Path(path).write_bytes(content)
    with pytest.raises(CollectorError) as caught:
        load_binding(path)
    assert (caught.value.file, caught.value.message) == (path, message)
