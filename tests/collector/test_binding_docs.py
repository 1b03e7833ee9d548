"""The examples of the binding's reference are true: each is run as it is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from specwatch.collector.assemble import collect
from specwatch.collector.binding import parse_binding
from specwatch.collector.errors import CollectorError

PAGE = (Path(__file__).parents[2] / "docs" / "binding.md").read_text()


class Example(NamedTuple):
    """A binding, a log, and what is printed to come out: events (``json``) or constants."""

    binding: str
    log: str
    kind: str
    expected: Any


def examples() -> list[Example]:
    found: list[Example] = []
    binding = log = ""
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if kind == "toml":
            binding, log = text, ""
        elif kind == "jsonl":
            log = text
        else:
            found.append(Example(binding, log, kind, json.loads(text)))
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.binding.splitlines()[-1])
def test_an_example_does_what_the_page_says(example: Example, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(example.log)
    collected = collect([str(path)], parse_binding(example.binding))
    [behaviour] = collected.behaviours
    if example.kind == "constants":
        assert collected.constants == example.expected
    else:
        events = [{**msgspec.to_builtins(event), "source": None} for event in behaviour.events]
        assert events == [{**expected, "source": None} for expected in example.expected]
    assert (collected.ledger.unmatched, collected.ledger.unparsed, behaviour.losses) == (0, 0, [])


@pytest.mark.parametrize("text", re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_every_binding_on_the_page_can_be_read(text: str) -> None:
    parse_binding(text)


def test_the_page_has_examples() -> None:
    assert len(examples()) >= 7


def test_the_mistake_on_the_page_reads_as_printed() -> None:
    with pytest.raises(CollectorError) as caught:
        parse_binding('[[rule]]\nmatch = { event = "x" }\nacton = "Pickup"\n', "binding.toml")
    assert f"```\n{caught.value}\n```" in PAGE
