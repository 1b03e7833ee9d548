"""Values with a unit, and what the undecided share does to the exit code."""

from __future__ import annotations

from fractions import Fraction

import click
import pytest

from specwatch.checker.verdict import EXIT_CODES, Behaviours, Verdict, Word
from specwatch.cli.check import allow_inconclusive
from specwatch.cli.units import Duration, Share, Size


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("50ms", 0.05), ("2 m", 120), ("1d", 86400)]
)
def test_a_bare_time_is_in_seconds(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize(("text", "size"), [("1000", 1000), ("800MB", 800_000_000), ("2GiB", 2**31), ("1k", 1000)])
def test_a_size_is_in_bytes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize(("text", "share"), [("0.1%", Fraction(1, 1000)), ("0.001", Fraction(1, 1000)), ("100 %", 1)])
def test_a_share_is_exact(text: str, share: Fraction) -> None:
    assert Share().convert(text, None, None) == share


@pytest.mark.parametrize("text", ["", "-1", "x", "1 fortnight", "101%", "1.0001"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Share().convert(text, None, None)


def verdict(word: Word, *, require_met: bool = True, **counts: int) -> Verdict:
    behaviours = Behaviours(total=sum(counts.values()), **counts)
    return Verdict(
        verdict=word, exit_code=EXIT_CODES[word], behaviours=behaviours, require=[("VisTimeout", require_met)]
    )


@pytest.mark.parametrize(
    ("share", "given", "exit_code"),
    [
        ("0.1%", verdict("inconclusive", inconclusive=1, conforms=999), 0),
        ("0.1%", verdict("inconclusive", inconclusive=2, conforms=998), 3),
        ("50%", verdict("inconclusive", inconclusive=1, conforms=1), 0),
        ("50%", verdict("inconclusive", inconclusive=1, vacuous=1, conforms=1), 3),
        ("100%", verdict("inconclusive", inconclusive=5), 3),
        ("100%", verdict("inconclusive", require_met=False, inconclusive=1, conforms=9), 3),
        ("100%", verdict("violates", violates=1, inconclusive=1, conforms=9), 1),
        ("100%", verdict("vacuous", vacuous=1), 3),
        ("0", verdict("conforms", conforms=1), 0),
    ],
)
def test_an_allowed_undecided_share_gives_the_exit_code_of_the_rest(share: str, given: Verdict, exit_code: int) -> None:
    word = given.verdict
    allow_inconclusive(given, Share().convert(share, None, None))
    assert (given.exit_code, given.verdict) == (exit_code, word)
