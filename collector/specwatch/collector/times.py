"""Times and durations as exact integers of nanoseconds. A time is counted from the epoch, UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache

NANOSECONDS = 1_000_000_000
LATEST = 253_402_300_800 * NANOSECONDS
"""The end of the year 9999. A number beyond it does not count seconds."""

_SECOND = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)", re.ASCII)
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "min": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
    "d": 86400 * NANOSECONDS,
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h|d)?\s*", re.ASCII)


def from_rfc3339(text: str) -> int:
    """``2030-01-01T10:00:02.181Z`` as nanoseconds; digits beyond the ninth are cut off.

    Any offset; ``60`` is a second only where UTC can have a leap second, and is then the first of the next minute, as
    POSIX counts. Raises ``ValueError`` with a sentence.
    """
    second, rest = text[:19], text[19:]
    digits, offset = "", rest
    if rest.startswith("."):
        offset = rest[1:].lstrip("0123456789")
        digits = rest[1 : len(rest) - len(offset)]
        if not digits:
            raise ValueError(f"{_short(text)} is no RFC 3339 time")
    try:
        seconds = _seconds(second, offset)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{_short(text)} {error.args[0] if isinstance(error, _NoTime) else 'does not exist'}"
        ) from None
    return seconds * NANOSECONDS + (int(digits[:9].ljust(9, "0")) if digits else 0)


class _NoTime(ValueError):
    """The text has not the form of a time."""


@lru_cache(maxsize=4096)
def _seconds(second: str, offset: str) -> int:
    # Neighbouring records share their second, so that nearly every call is answered from the cache.
    match = _SECOND.fullmatch(second)
    if match is None:
        raise _NoTime("is no RFC 3339 time")
    moment = datetime.fromisoformat(f"{match[1]}T{match[2]}:00+00:00")
    if offset not in ("Z", "z"):
        shift = _OFFSET.fullmatch(offset)
        if shift is None:
            raise _NoTime("has no offset from UTC: Z or +hh:mm" if not offset else "is no RFC 3339 time")
        east = timedelta(hours=int(shift[2]), minutes=int(shift[3]))
        moment = moment - east if shift[1] == "+" else moment + east
    count = int(match[3])
    if count > 60 or (count == 60 and (moment.hour, moment.minute) != (23, 59)):
        raise ValueError(second)
    return (moment - _EPOCH) // timedelta(seconds=1) + count


def to_rfc3339(nanoseconds: int) -> str:
    """The shortest RFC 3339 text, in UTC, that says this time exactly."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{text}{fraction}Z"


def from_seconds(text: str) -> int:
    """A JSON number of seconds, read as an exact decimal, in nanoseconds; digits beyond the ninth are cut off.

    Raises ``ValueError`` with a sentence.
    """
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{_short(text)} is no number of seconds") from None
    # Tested before it is made an integer: 1e999999999 has a billion digits.
    if not seconds.is_finite() or seconds.adjusted() > 20:
        raise ValueError(f"{_short(text)} is no number of seconds")
    whole = int(seconds)
    if abs(whole) * NANOSECONDS >= LATEST:
        raise ValueError(f"{_short(text)} s is after the year 9999: is it in milliseconds or nanoseconds?")
    fraction = seconds - whole
    if fraction.adjusted() < -20:
        return whole * NANOSECONDS
    scaled = fraction * NANOSECONDS
    nanoseconds = int(scaled)
    return whole * NANOSECONDS + nanoseconds - (scaled < nanoseconds)


def duration(value: object) -> int:
    """``"50ms"``, ``"3600s"`` or a bare number of seconds as nanoseconds. Raises ``ValueError``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{_short(str(value))} is no duration: 50ms, 3600s, or a number of seconds")
    return int(Decimal(match[1]) * _UNITS[match[2] or "s"])


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
