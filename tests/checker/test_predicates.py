"""Expressions that speak about an event: what they may say, and how a mistake in one is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specwatch.checker import check
from specwatch.checker.api import Options, judge
from specwatch.checker.behaviour import Behaviour, Event, Json, Ledger, Source
from specwatch.checker.spec import Spec
from specwatch.checker.tla.errors import TlaError, TlaEvaluationError, TlaSemanticError, TlaSyntaxError

LOGS = """EXTENDS Naturals, Sequences
CONSTANT Servers
VARIABLES term, log
Small(n) == term < n
Init == term = 0 /\\ log = [s \\in Servers |-> <<>>]
Put(s) == term' = term + 1 /\\ log' = [log EXCEPT ![s] = Append(@, term)]
Next == \\E i \\in Servers : Put(i)
Live == <>(term = 3)
"""
CONFIG = "INIT Init NEXT Next CONSTANT Servers = {n1, n2}"


@pytest.fixture
def spec(make_spec: Callable[..., Spec]) -> Spec:
    return make_spec(LOGS, CONFIG)


def holds(spec: Spec, text: str, fields: dict[str, Json] | None = None) -> bool:
    """Whether a text holds after the first step, in which i is n1."""
    [initial] = spec.initial_states()
    step = next(spec.successors(initial))
    predicate = spec.predicates.parse(text, ["i"], "expect of event 3")
    return predicate.holds(spec, step.state, bound=dict(step.params), fields=fields or {})


@pytest.mark.parametrize(
    ("text", "fields", "answer"),
    [
        ("Len(log[i]) = $lastIndex + 1", {"lastIndex": 0}, True),
        ("Len(log[i]) = $lastIndex + 1", {"lastIndex": 1}, False),
        ("Small($n)", {"n": 2}, True),
        ("i = $who", {"who": "n1"}, True),  # the config's model value of that name
        ("log[$who] = <<0>>", {"who": "n1"}, True),
        ("log = $log", {"log": {"#map": [["n1", [0]], ["n2", []]]}}, True),
        ("log = $log", {"log": {"n1": [0], "n2": []}}, False),  # the keys of an object are strings
        ("${the term} = term", {"the term": 1}, True),
        ("$r.part.x = term", {"r": {"part": {"x": 1}}}, True),
        ("$name = \"$name\" ", {"name": "$name"}, True),  # in a string it is text
        ("$x = \"1 \\\\/ TRUE\"", {"x": "1 \\/ TRUE"}, True),  # a value is never read as TLA+
        ("term = $x", {"x": 1.5}, False),
        ("term = $x", {"x": None}, False),
        ("term = 1 (* not \"$this *) \\/ FALSE \\* nor $that", {}, True),
        ("ENABLED Put(i)", {}, True),
        ("term = 2 /\\ $missing = 1", {}, False),  # what is not asked for need not be there
    ],
)  # fmt: skip
def test_an_expression_reads_the_state_the_parameters_and_the_fields(
    spec: Spec, text: str, fields: dict[str, Json], answer: bool
) -> None:
    assert holds(spec, text, fields) is answer


@pytest.mark.parametrize(
    ("text", "error", "column", "sentence"),
    [
        ("term = ", TlaSyntaxError, 7, "Expected an expression after `=`"),
        ("", TlaSyntaxError, 1, "Expected an expression"),
        ("$r.$x = 1", TlaSyntaxError, 4, "`$x` is a value, and a name is wanted here"),
        ("\\E $x \\in 1..2 : TRUE", TlaSyntaxError, 4, "`$x` is a value, and a name is wanted here"),
        ("Smal(2)", TlaSemanticError, 1, "`Smal` is not defined"),
        ("$f(2)", TlaSemanticError, 1, "`$f` takes no argument"),
        ("\\A i \\in Servers : TRUE", TlaSemanticError, 4, "`i` has a meaning already: it is a parameter"),
        ("1 = term'", TlaSemanticError, 5, "`term'` speaks of a step, and there is one state here"),
        ("term = 1 /\\ Put(i)", TlaSemanticError, 13, "`Put` speaks of a step"),
        ("UNCHANGED term", TlaSemanticError, 1, "`UNCHANGED` speaks of a step"),
        ("TRUE => Live", TlaSemanticError, 9, "`Live` speaks of a whole behaviour"),
        ("term > $s", TlaEvaluationError, 1, 'the right side of > is the string "a", not an integer'),
        ("term + 1", TlaEvaluationError, 1, "the integer 2 stands where a Boolean is needed"),
        ("term = 1 /\\ $missing = 1", TlaError, 13, "the event has no field missing"),
    ],
)
def test_a_mistake_is_told_with_its_place_in_the_text(
    spec: Spec, text: str, error: type[TlaError], column: int, sentence: str
) -> None:
    with pytest.raises(TlaError) as caught:
        holds(spec, text, {"s": "a", "x": 1, "f": 1, "r": {}})
    assert type(caught.value) is error
    assert (caught.value.file, caught.value.line, caught.value.column) == ("expect of event 3", 1, column)
    assert sentence in caught.value.message


def test_a_text_is_parsed_once_and_still_tells_whose_it_is(spec: Spec) -> None:
    one = spec.predicates.parse("term = $x", ["i"], "expect of event 1")
    other = spec.predicates.parse("term = $x", ["i"], "expect of event 2")
    assert one.expression is other.expression
    [initial] = spec.initial_states()
    with pytest.raises(TlaError) as caught:
        other.holds(spec, initial, event=Event(action="Put", source=Source("a.log", 7)))
    assert caught.value.file == "expect of event 2"
    assert caught.value.message == "the event Put (a.log:7) has no field x, of which this speaks"


def test_a_predicate_tells_what_it_reads(spec: Spec) -> None:
    predicate = spec.predicates.parse("Small($n) /\\ ${a b} = {}", [], "w")
    assert predicate.variables == {"term"}
    assert predicate.fields == {"n", "a b"}


def test_a_replaced_definition_is_what_a_predicate_reads(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(
        "EXTENDS Naturals\nVARIABLES x, y\nP == x = 0\nQ == y = 0\nInit == x = 0 /\\ y = 1\nNext == UNCHANGED <<x, y>>",
        "INIT Init NEXT Next CONSTANT P <- Q",
    )
    predicate = spec.predicates.parse("P", [], "w")
    assert predicate.variables == {"y"}
    assert not predicate.holds(spec, (0, 1))


# --- in the replay


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [("Len(log[i]) = $n", "conforms"), ("Len(log[s]) = $n", "conforms"), ("log[i] = <<$n>>", "diverges")],
)
def test_what_is_expected_holds_after_the_step_under_either_name_of_a_parameter(
    spec: Spec, expected: str, verdict: str
) -> None:
    event = Event(action="Put", params={"i": "n1"}, expect=[expected], extra={"n": 1})
    assert check(spec, [event]).verdict == verdict


def test_what_is_expected_tells_apart_what_a_parameter_left_open_may_be(spec: Spec) -> None:
    events = [
        Event(action="Put", params={"i": "n1"}),
        Event(action="Put", expect=["i # $not"], extra={"not": "n1"}),
        Event(action="Put", params={"i": "n2"}, expect=["Len(log[i]) = 2"]),
    ]
    assert check(spec, events).verdict == "conforms"


def test_an_event_that_lacks_what_is_expected_of_it_is_refused_with_its_place(spec: Spec) -> None:
    event = Event(action="Put", expect=["term = $missing"], source=Source("a.log", 7))
    with pytest.raises(TlaError, match=r"the event Put \(a\.log:7\) has no field missing") as caught:
        check(spec, [event])
    assert caught.value.file == "expect of event 1, Put"


BAG = """EXTENDS Naturals
CONSTANT Nodes
VARIABLES net, got
Init == net = {} /\\ got = {}
Send(n) == net' = net \\union {n} /\\ got' = got
Drop(m) == m \\in net /\\ net' = net \\ {m} /\\ got' = got
Lose(m) == Drop(m)
Take(n) == n \\in net /\\ net' = net \\ {n} /\\ got' = got \\union {n}
Idle == net = {} /\\ UNCHANGED <<net, got>>
Next == (\\E n \\in Nodes : Send(n) \\/ Lose(n) \\/ Take(n)) \\/ Idle
"""


@pytest.mark.parametrize(
    ("when", "verdict"),
    [
        ("m # $n", "conforms"),  # under the name of the definition's parameter
        ("n # $n", "conforms"),  # under the name that Next binds
        ("n = $n", "diverges"),
        ("got = {} /\\ m # $n", "conforms"),  # in the state before it
        ("got # {} /\\ m # $n", "diverges"),
    ],
)
def test_a_hidden_step_comes_only_where_its_guard_over_the_next_event_holds(
    make_spec: Callable[..., Spec], when: str, verdict: str
) -> None:
    spec = make_spec(BAG, "INIT Init NEXT Next CONSTANT Nodes = {n1, n2}")
    events = [
        Event(action="Send", params={"n": "n1"}),
        Event(action="Send", params={"n": "n2"}),
        Event(action="Take", params={"n": "n2"}, state={"net": {"#set": []}}),
    ]
    options = Options(hidden=("Lose",), when=(("Lose", when),))
    assert judge(spec, [Behaviour(events=events)], options, Ledger()).verdict == verdict


def test_a_guard_over_a_field_that_the_next_event_lacks_allows_nothing(make_spec: Callable[..., Spec]) -> None:
    spec = make_spec(BAG, "INIT Init NEXT Next CONSTANT Nodes = {n1, n2}")
    events = [Event(action="Send", params={"n": "n1"}), Event(action="Idle")]
    options = Options(hidden=("Lose",), when=(("Lose", "m = $n"),))
    assert judge(spec, [Behaviour(events=events)], options, Ledger()).hidden_steps == 0
