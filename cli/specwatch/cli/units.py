"""Values of options with a unit: times, sizes and shares."""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction
from typing import Any

import click

SECONDS = {"": 1, "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
SECONDS |= {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BYTES = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9}
BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "ki": 2**10, "mi": 2**20, "gi": 2**30}

_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([^\W\d_]*|%)\s*")


def _read(text: str, units: dict[str, Any]) -> Fraction | None:
    match = _NUMBER.fullmatch(text)
    if match is None or match[2].lower() not in units:
        return None
    return Fraction(match[1]) * Fraction(units[match[2].lower()])


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """A time in seconds, as a float: ``90``, ``90s``, ``1.5h``, ``50ms``; ``none`` is infinite."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if str(value).lower() == "none":
            return math.inf
        seconds = _read(str(value), SECONDS)
        if seconds is None or seconds == 0:
            self.fail(f"{value!r} is no time: write 90 (seconds), 90s, 5m or 2h", param, ctx)
        return float(seconds)


class Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: ``1000000``, ``800MB``, ``2GiB``; ``none`` is more than any machine has."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if str(value).lower() == "none":
            return sys.maxsize
        size = _read(str(value), BYTES)
        if size is None or size < 1:
            self.fail(f"{value!r} is no size: write 800MB or 2GiB", param, ctx)
        return int(size)


class Share(click.ParamType):  # type: ignore[type-arg]
    """A share of all, as an exact fraction: ``0.1%`` or ``0.001``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        share = _read(str(value), {"": 1, "%": Fraction(1, 100)})
        if share is None or share > 1:
            self.fail(f"{value!r} is no share: write 0.1% (or 0.001)", param, ctx)
        return share
