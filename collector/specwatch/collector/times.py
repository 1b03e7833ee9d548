"""Times and durations as exact integers of nanoseconds. A time is counted from the epoch, UTC."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from functools import lru_cache

NANOSECONDS = 1_000_000_000
LATEST = 253_402_300_800 * NANOSECONDS
"""The end of the year 9999. A number beyond it does not count seconds."""

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
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
    match = _RFC3339.fullmatch(text)
    if match is None:
        if _RFC3339.fullmatch(text + "Z"):
            raise ValueError(f"the time {_short(text)} has no offset from UTC: Z or +hh:mm")
        raise ValueError(f"{_short(text)} is no RFC 3339 time")
    day, minute, second, fraction, sign, hours, minutes = match.groups()
    nanoseconds = int(fraction[:9].ljust(9, "0")) if fraction else 0
    try:
        return _whole_seconds(day, minute, second, sign, hours, minutes) * NANOSECONDS + nanoseconds
    except (ValueError, OverflowError):
        raise ValueError(f"the time {_short(text)} does not exist") from None


@lru_cache(maxsize=4096)
def _whole_seconds(day: str, minute: str, second: str, sign: str | None, hours: str | None, minutes: str | None) -> int:
    # Neighbouring records share their second, so that nearly every call is answered from the cache.
    moment = datetime.fromisoformat(f"{day}T{minute}:00+00:00")
    if sign:
        hour, rest = int(hours or 0), int(minutes or 0)
        if hour > 23 or rest > 59:
            raise ValueError(sign)
        offset = timedelta(hours=hour, minutes=rest)
        moment = moment - offset if sign == "+" else moment + offset
    seconds = int(second)
    if seconds > 60 or (seconds == 60 and (moment.hour, moment.minute) != (23, 59)):
        raise ValueError(second)
    return (moment - _EPOCH) // timedelta(seconds=1) + seconds


def to_rfc3339(nanoseconds: int) -> str:
    """The shortest RFC 3339 text, in UTC, that says this time exactly."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    text = text.rjust(19, "0")
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{text}{fraction}Z"


def from_seconds(text: str) -> int:
    """A JSON number of seconds, read as an exact decimal; digits beyond the ninth are cut off. Raises ``ValueError``."""
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
