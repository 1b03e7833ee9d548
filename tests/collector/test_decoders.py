"""The contract of every decoder, over the whole table; what only one of them does is in its own test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from specwatch.checker.behaviour import Event
from specwatch.collector.decode import DECODERS, Broken, Record, detect

GOOD = b'{"action": "A", "params": {"t": "x"}}'
"""One record that every format of the table can read."""


def decode(name: str, *lines: bytes) -> list[Event | Record | Broken]:
    return list(DECODERS[name]("a.log", enumerate(lines, start=1)))


def line_of(item: Event | Record | Broken) -> int:
    if isinstance(item, Event):
        assert item.source is not None
        return item.source.line
    return item.line


every = pytest.mark.parametrize("name", DECODERS)


@every
def test_a_good_record_is_read(name: str) -> None:
    [item] = decode(name, GOOD)
    assert not isinstance(item, Broken)
    assert line_of(item) == 1


@every
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"action": "A"', "is not JSON"),
        (b'{"action": "A"} {"action": "B"}', "is not JSON"),
        (b'{"action": "A"}x', "is not JSON"),
        (b'{"action": "A", "params": {"n": NaN}}', "is not JSON"),
        (b'{"action": "A", "params": {"n": 01}}', "is not JSON"),
        (b'{"action": "A", "params": {"n": "\\ud800"}}', "is not JSON"),
        (b'{"action": "A", "params": {"n": "a\tb"}}', "is not JSON"),
        (b'{"action": "\xff"}', "is not UTF-8 (byte 13)"),
        (b"INFO: worker started", "is not a JSON object"),
        (b"\0\0\0\0", "is not a JSON object"),
        (b'{"action": "A", "params": {"x": ' + b"[" * 5000 + b"]" * 5000 + b"}}", "is nested more than 128 deep"),
        (b'{"action": "A", "params": {"x": ' + b"[" * 200 + b"]" * 200 + b"}}", "is nested more than 128 deep"),
        (b'{"action": "A", "action": "B"}', "gives 'action' twice, with two values"),
        (b'{"action": "A", "params": {"t": 1, "t": 2}}', "gives 't' twice, with two values"),
        (b'{"action": "A", "params" : {"t" :1, "t" :2}}', "gives 't' twice, with two values"),
        (b'{"action": "A", "params": {"n": ' + b"9" * 100_000 + b"}}", "is no event"),
    ],
    ids=lambda value: value[:40].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_a_broken_record_is_told_and_the_next_one_is_read(name: str, line: bytes, why: str) -> None:
    good, broken, after = decode(name, GOOD, line, GOOD)
    assert isinstance(broken, Broken), broken
    assert broken.why.startswith(why), broken.why
    assert broken.line == 2
    assert not isinstance(good, Broken)
    assert (line_of(after), type(after)) == (3, type(good))


@every
def test_a_name_given_twice_with_one_value_is_no_matter(name: str) -> None:
    [item] = decode(name, b'{"action": "A", "params": {"t": 1, "t": 1}, "action": "A"}')
    assert not isinstance(item, Broken)


@every
def test_one_name_in_two_objects_is_no_matter(name: str) -> None:
    [item] = decode(name, b'{"action": "A", "params": {"a": {"x": 1}, "b": [{"x": 2}, {"x": 3}]}}')
    assert not isinstance(item, Broken)


@every
def test_names_inside_texts_are_no_names(name: str) -> None:
    [item] = decode(name, b'{"action": "A", "params": {"t": "{\\"a\\": 1, \\"a\\": 2}", "u": "\\": "}}')
    assert not isinstance(item, Broken)


@every
def test_blank_lines_are_no_records_and_line_ends_of_windows_are_none_either(name: str) -> None:
    assert [line_of(item) for item in decode(name, b"", GOOD + b"\r", b"  \t", b"\r", GOOD)] == [2, 5]


@every
def test_a_traceback_belongs_to_the_record_before_it(name: str) -> None:
    traceback = b"""Traceback (most recent call last):
  File "app.py", line 1, in <module>
    job()
ValueError: bad

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "app.py", line 3, in <module>
RuntimeError: worse""".split(b"\n")
    items = decode(name, GOOD, *traceback, GOOD, b"lost")
    assert [(line_of(item), isinstance(item, Broken)) for item in items] == [(1, False), (12, False), (13, True)]


@every
def test_a_traceback_that_was_cut_off_hides_no_record(name: str) -> None:
    items = decode(name, b"Traceback (most recent call last):", b"  File", GOOD, b"lost")
    assert [(line_of(item), isinstance(item, Broken)) for item in items] == [(3, False), (4, True)]


@every
def test_integers_are_exact(name: str) -> None:
    numbers = [2**63, 2**64, 2**64 + 1, -(2**63) - 1, 10**1000]
    [item] = decode(name, json.dumps({"action": "A", "params": {"n": numbers}}).encode())
    params: Any = item.params if isinstance(item, Event) else item.fields["params"]  # type: ignore[union-attr]
    assert params["n"] == numbers
    assert all(type(number) is int for number in params["n"])


@every
def test_records_of_ten_megabytes_and_ids_of_ten_kilobytes_are_read(name: str) -> None:
    for size in (10_000, 10_000_000):
        [item] = decode(name, b'{"action": "A", "params": {"t": "' + b"x" * size + b'"}}')
        assert not isinstance(item, Broken)


@every
def test_a_decoder_reads_no_further_than_it_is_asked(name: str) -> None:
    """So that a live log gives each event when its line has come."""

    def lines() -> Iterable[tuple[int, bytes]]:
        yield 1, GOOD
        raise AssertionError("read ahead")

    assert not isinstance(next(DECODERS[name]("a.log", lines())), Broken)


@pytest.mark.parametrize(
    ("lines", "has_rules", "expected"),
    [
        ([GOOD], True, "native"),
        ([b'{"action": "A"}'], True, "native"),
        ([b'{"action": "A", "time": 3, "seq": 1}'], True, "native"),
        ([b'{"action": "Pickup", "ts": 1.5, "id": "7f"}'], True, "structlog"),
        ([b'{"action": "Pickup", "ts": 1.5, "id": "7f"}'], False, "native"),
        ([b'{"event": "task.pickup"}'], True, "structlog"),
        ([b'{"event": "task.pickup"}'], False, "native"),
        ([b"banner", b'{"action"', GOOD], True, "native"),
        ([b'{"action": 3, "params": {}}'], True, "structlog"),
        ([], True, "structlog"),
        ([], False, "native"),
    ],
)
def test_the_format_is_detected(lines: list[bytes], has_rules: bool, expected: str) -> None:
    """Rules are there to be used, unless the records surely say their actions themselves."""
    assert detect(lines, has_rules=has_rules) == expected
