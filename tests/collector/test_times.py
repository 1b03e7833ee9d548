"""Times are exact: nothing is rounded, and what is no time is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwatch.collector.times import LATEST, duration, from_rfc3339, from_seconds, to_rfc3339

EARLIEST = -62_135_596_800 * 10**9


@given(st.integers(EARLIEST, LATEST - 1))
def test_reading_undoes_printing(nanoseconds: int) -> None:
    assert from_rfc3339(to_rfc3339(nanoseconds)) == nanoseconds


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
)
def test_any_offset_is_the_same_instant(moment: datetime, minutes: int) -> None:
    here = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (here - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    assert from_rfc3339(here.isoformat()) == expected


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01 00:00:01.5+00:00", 1_500_000_000),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1970-01-01T00:00:00.1234567899999Z", 123_456_789),
        ("1969-12-31T23:59:59.25Z", -750_000_000),
        ("1970-01-01T00:00:00-00:00", 0),
        ("2016-12-31T23:59:60.5Z", 1_483_228_800_500_000_000),
        ("2017-01-01T00:59:60+01:00", 1_483_228_800_000_000_000),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
    ],
)
def test_rfc_3339(text: str, nanoseconds: int) -> None:
    assert from_rfc3339(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2030-01-01T10:00:00", "has no offset"),
        ("2030-01-01T10:00:00.5", "has no offset"),
        ("2030-13-01T10:00:00Z", "does not exist"),
        ("2023-02-29T10:00:00Z", "does not exist"),
        ("2030-01-01T24:00:00Z", "does not exist"),
        ("2030-01-01T10:60:00Z", "does not exist"),
        ("2030-01-01T10:00:61Z", "does not exist"),
        ("2030-01-01T10:00:60Z", "does not exist"),
        ("0001-01-01T00:00:00+01:00", "does not exist"),
        ("2030-01-01T10:00:00+24:00", "is no RFC 3339"),
        ("2030-01-01T10:00:00.Z", "is no RFC 3339"),
        ("2030-01-01T10:00:00..5Z", "is no RFC 3339"),
        ("2030-01-01T10:00:00.5ZZ", "is no RFC 3339"),
        ("2030-01-01", "is no RFC 3339"),
        ("yesterday", "is no RFC 3339"),
        ("٢٠٣٠-01-01T10:00:00Z", "is no RFC 3339"),
        ("", "is no RFC 3339"),
    ],
)
def test_what_is_no_rfc_3339_time(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        from_rfc3339(text)


@given(st.integers(-(10**20), 10**20), st.integers(0, 9))
def test_a_number_of_seconds_is_an_exact_decimal(digits: int, places: int) -> None:
    seconds = Decimal(digits).scaleb(-places)
    if abs(seconds) * 10**9 < LATEST:
        assert from_seconds(f"{seconds:f}") == digits * 10 ** (9 - places)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("1796067208.622714", 1_796_067_208_622_714_000),
        ("1796067208.622714123", 1_796_067_208_622_714_123),
        ("1796067208.6227141239", 1_796_067_208_622_714_123),
        ("1.5e3", 1_500_000_000_000),
        ("-0.25", -250_000_000),
        ("-0.0000000001", -1),
        ("1e-400", 0),
    ],
)
def test_seconds(text: str, nanoseconds: int) -> None:
    assert from_seconds(text) == nanoseconds


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "Infinity", "NaN", "true", "", "1796067208622"])
def test_what_is_no_number_of_seconds(text: str) -> None:
    """Among them numbers that would take gigabytes to write out, and milliseconds."""
    with pytest.raises(ValueError, match=r"no number of seconds|milliseconds"):
        from_seconds(text)


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("50ms", 50_000_000),
        ("3600s", 3_600_000_000_000),
        ("1.5 h", 5_400_000_000_000),
        ("2m", 120_000_000_000),
        ("2min", 120_000_000_000),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("7ns", 7),
        ("1d", 86_400_000_000_000),
        ("2", 2_000_000_000),
        (2, 2_000_000_000),
        (0.1, 100_000_000),
    ],
)
def test_durations(value: object, nanoseconds: int) -> None:
    """A bare number counts seconds."""
    assert duration(value) == nanoseconds


@pytest.mark.parametrize("value", ["fast", "", "-1s", "1 parsec", True, None, [1], "1e3s", "s"])
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        duration(value)
