"""How the processes of an experiment keep pace with each other."""

from __future__ import annotations

import time

import msgspec
import pytest

from specwatch.pilots import together
from specwatch.pilots.nats import plan


@pytest.mark.parametrize("span", [0.0, 10.0])
def test_a_producer_that_was_held_up_does_not_make_up_for_it(monkeypatch: pytest.MonkeyPatch, span: float) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    made = together.Pace(msgspec.structs.replace(plan("faulty", tasks=10), span=span))
    step = span / 10
    assert made.pause() == 0.0
    assert made.pause() == step
    now[0] += 60 + step  # The broker was away.
    assert made.pause() == 0.0
    assert made.pause() == step
