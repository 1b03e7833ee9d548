"""What is shown of a tree parses to a tree that is shown the same, whatever the expression."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from specwatch.checker.tla.operators import INFIX, POSTFIX, PREFIX
from specwatch.checker.tla.parse import parse_expression, parse_module
from specwatch.checker.tla.show import show_tree

NAMES = st.sampled_from(["x", "y1", "Foo", "_a", "TRUE", "@", "1a"])
FIELDS = st.sampled_from(["a", "b1", "IF", "UNION"])


def joined(inner: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[str]:
    return st.lists(inner, min_size=least, max_size=3).map(", ".join)


def bounds(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pattern = st.one_of(st.just("p"), st.just("p, q"), st.just("<<p, q>>"), st.just("<<>>"))
    one = st.builds(lambda names, domain: f"{names} \\in {domain}", pattern, inner)
    return st.lists(one, min_size=1, max_size=2).map(", ".join)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of parenthesised ones."""
    part = inner.map(lambda text: f"({text})")
    infix, prefix, postfix = (st.sampled_from(sorted(table)) for table in (INFIX, PREFIX.keys() - {"-."}, POSTFIX))
    return st.one_of(
        st.builds(lambda a, symbol, b: f"{a} {symbol} {b}", part, infix, part),
        st.builds(lambda symbol, a: f"{symbol} {a}", st.one_of(prefix, st.just("-")), part),
        st.builds(lambda a, symbol: f"{a}{symbol}", part, postfix),
        st.builds(lambda a, items: f"{a}[{items}]", part, joined(inner, 1)),
        st.builds(lambda a, field: f"{a}.{field}", part, FIELDS),
        st.builds(lambda items: f"{{{items}}}", joined(part)),
        st.builds(lambda items: f"<<{items}>>", joined(inner)),
        st.builds(
            lambda items: f"Op( {items})", joined(st.one_of(inner, infix.filter(lambda name: name != r"\times")), 1)
        ),
        st.builds(lambda body: f"Op(LAMBDA p, q : {body})", inner),
        st.builds(lambda bound, body: f"\\A {bound} : {body}", bounds(inner), inner),
        st.builds(lambda body: f"\\E p, q : {body}", inner),
        st.builds(lambda domain, body: f"CHOOSE <<p>> \\in {domain} : {body}", inner, inner),
        st.builds(lambda domain, body: f"{{p \\in {domain} : {body}}}", inner, inner),
        st.builds(lambda body, bound: f"{{{body} : {bound}}}", part, bounds(inner)),
        st.builds(lambda bound, body: f"[{bound} |-> {body}]", bounds(inner), inner),
        st.builds(lambda a, b: f"[{a} -> {b}]", part, inner),
        st.builds(lambda field, a, b: f"[{field} |-> {a}, z |-> {b}]", FIELDS, inner, inner),
        st.builds(lambda field, a, b: f"[{field} : {a}, z : {b}]", FIELDS, inner, inner),
        st.builds(lambda a, i, field, b: f"[{a} EXCEPT ![{i}].{field} = {b}, !.w = @]", part, inner, FIELDS, inner),
        st.builds(lambda a, b, c: f"IF {a} THEN {b} ELSE {c}", inner, inner, inner),
        st.builds(lambda a, b, c: f"CASE {a} -> {b} [] OTHER -> {c}", part, part, inner),
        st.builds(lambda a, b: f"LET v == {a} f[p \\in {b}] == p a ++ b == v IN f[v]", inner, inner),
        st.builds(lambda a: f"[{a}]_<<x>>", part),
        st.builds(lambda a, v: f"<<{a}>>_{v}", inner, part),
        st.builds(lambda v, a: f"WF_{v}({a})", part, inner),
        st.builds(lambda a: f"lab(x) :: {a}", inner),
    )


EXPRESSIONS = st.recursive(
    st.one_of(
        NAMES, st.integers(0, 10**30).map(str), st.sampled_from(['""', '"a\\"b\\\\\\n"', "1.50", "I!J(1)!x", "V!1"])
    ),
    larger,
    max_leaves=12,
)


@given(EXPRESSIONS)
@settings(max_examples=200, deadline=None)
def test_showing_is_a_fixpoint_of_parsing(text: str) -> None:
    shown = show_tree(parse_expression(text))
    assert show_tree(parse_expression(shown)) == shown


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), st.sampled_from(["/\\", "\\/"]))
@settings(max_examples=50, deadline=None)
def test_a_bulleted_list_is_read_as_the_parenthesised_chain(items: list[str], bullet: str) -> None:
    bulleted = "\n".join(f"  {bullet} {item}" for item in items)
    chain = f" {bullet} ".join(f"({item})" for item in items)
    assert show_tree(parse_expression(bulleted)) == show_tree(parse_expression(chain))


def test_a_module_is_shown_with_its_units() -> None:
    text = (
        "---- MODULE M ----\nEXTENDS Naturals\nCONSTANT C, Op(_), _ \\prec _\nVARIABLE x, y\nASSUME (C = 1)\n"
        "RECURSIVE R(_)\nR(n) == R((n - 1))\n-. a == (0 - a)\na ^+ == a\nLOCAL f[i, j \\in C, <<k>> \\in C] == i\n"
        "I(a) == INSTANCE N WITH b <- (a + 1), F <- LAMBDA z : z\nTHEOREM T == TRUE\n===="
    )
    assert show_tree(parse_module(text)) == text


def test_an_operator_as_first_argument_begins_no_comment() -> None:
    assert show_tree(parse_expression("Op( *, +)")) == "Op( *, +)"
