"""Positions: every key that ``tomllib`` reads is found where it stands."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwatch.collector.toml_positions import Path, positions

TRICKY = '''
# key = "in a comment"
top = 1
a.b . "c.d" = "x = [1, {y = 2}] # no comment"
'single' = 'it is' # comment [not.a.table]
multi = """
[not.a.table]
not_a_key = 1 \\"""
""""
literal = \'\'\'
also = not
\'\'\'
date = 1979-05-27T07:32:00Z
list = [ # comment ]
  { k = 1, l.m = [ {n = "}"} ] }, # ,
  [ 1, [ 2, "]" ] ],
]

[table.'quo ted'."es\\u0063\\U0001F600"]
x = { }
empty = []
[[array]]
name = "one"
[array.sub]
deep = true
[[array.inner]]
z = 1
[[array.inner]]
z = 2
[[array]]
name = "two"
[ spaced . out ]
y=1'''


def paths(value: Any, path: Path = ()) -> set[Path]:
    """Every way to a key, and to every element of a list."""
    found: set[Path] = set()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in items:
        found |= {(*path, step)} | paths(part, (*path, step))
    return found


def test_every_key_is_found_and_nothing_else() -> None:
    assert set(positions(TRICKY)) == paths(tomllib.loads(TRICKY))


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        (("top",), "top = 1"),
        (("a", "b", "c.d"), '"c.d" ='),
        (("single",), "'single'"),
        (("list", 0, "l", "m", 0, "n"), 'n = "}"'),
        (("list", 1, 1, 1), '"]" ]'),
        (("table", "quo ted", "esc😀"), '"es\\u0063\\U0001F600"]'),
        (("array", 0, "sub", "deep"), "deep"),
        (("array", 0, "inner", 1, "z"), "z = 2"),
        (("array", 1), 'array]]\nname = "two"'),
        (("spaced", "out", "y"), "y=1"),
    ],
    ids=str,
)
def test_a_position_is_where_the_key_begins(path: Path, begins: str) -> None:
    assert TRICKY[positions(TRICKY)[path] :].startswith(begins)


keys = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5)
values = st.recursive(
    st.integers(-9, 9) | st.booleans() | st.text(st.characters(exclude_categories=["C"]), max_size=8),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(keys, parts, max_size=3),
    max_leaves=8,
)


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {inline(part)}" for key, part in value.items())
            + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(keys, values, max_size=4))
def test_any_document_of_inline_values(document: dict[str, Any]) -> None:
    text = "\n".join(f"{json.dumps(key, ensure_ascii=False)} = {inline(value)}" for key, value in document.items())
    assert set(positions(text)) == paths(tomllib.loads(text)) == paths(document)
