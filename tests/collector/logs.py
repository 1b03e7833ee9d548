"""What the tests of the collector share: events as they stand in a log, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specwatch.checker.behaviour import Ledger, Loss
from specwatch.collector.assemble import Collected, collect
from specwatch.collector.errors import CollectorError

Write = Callable[..., str]


def e(action: str, emitter: str | None = None, seq: int | None = None, **fields: Any) -> dict[str, Any]:
    own = {"action": action, "emitter": emitter, "seq": seq, **fields}
    return {name: value for name, value in own.items() if value is not None}


def actions(collected: Collected) -> list[str]:
    [behaviour] = collected.behaviours
    return [event.action for event in behaviour.events]


def losses(collected: Collected) -> list[Loss]:
    [behaviour] = collected.behaviours
    return behaviour.losses


def refusal(*paths: str, **options: Any) -> CollectorError:
    with pytest.raises(CollectorError) as caught:
        collect(paths, **options)
    return caught.value


def balanced(ledger: Ledger) -> bool:
    counted = ledger.mapped + sum(ledger.ignored.values()) + ledger.unmatched + ledger.unparsed + ledger.duplicate
    return ledger.read == counted
