"""The definitions of a LET see those before them, whichever kind they are of."""

from __future__ import annotations

import pytest

from specwatch.checker import tla


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (r"LET a == 2 f[x \in 1..3] == x + a IN f[2]", "4"),
        (r"LET g[x \in 1..3] == x * 2 f[x \in 1..3] == g[x] + 1 IN f", "<<3, 5, 7>>"),
        (r"LET Op(n) == n + 1 f[x \in 1..2] == Op(x) IN f", "<<2, 3>>"),
        (r"LET f[x \in 1..3] == x * x a == f[3] IN a", "9"),
        (r"LET f[n \in 0..5] == IF n = 0 THEN 1 ELSE n * f[n - 1] IN f[5]", "120"),
        (r"LET a == 1 IN LET f[x \in {a}] == x + a IN f[1]", "2"),
    ],
)
def test_a_definition_sees_those_before_it(expression: str, value: str) -> None:
    assert tla.show(tla.evaluate(expression, extends=["Naturals"])) == value
