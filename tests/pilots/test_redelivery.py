"""A message is delivered again before its timeout, where someone brings that about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specwatch.pilots import redelivery, runtime

kombu: Any = pytest.importorskip("kombu")
PREFIX = "run."


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with runtime.start("embedded", directory=tmp_path, needs=("valkey",), logs=tmp_path / "logs") as servers:
        yield servers["valkey"].url


def test_a_message_that_someone_holds_comes_again_at_once_and_says_so(url: str) -> None:
    with kombu.Connection(url, transport_options={"global_keyprefix": PREFIX}) as connection:
        channel = connection.default_channel
        channel.qos.restore_at_shutdown = False
        queue = kombu.Queue("work", kombu.Exchange("work"), routing_key="work")(channel)
        queue.declare()
        connection.Producer().publish({"n": 1}, "work", exchange="work", headers={"id": "task-1"})
        assert not redelivery.valkey(url, PREFIX, "task-1")  # No one holds it yet.
        first = queue.get()
        assert not first.headers.get("redelivered")
        assert queue.get() is None
        assert not redelivery.valkey(url, PREFIX, "task-2")
        assert redelivery.valkey(url, PREFIX, "task-1")
        again = queue.get()
        assert again.headers["id"] == "task-1"
        assert again.headers["redelivered"]
        assert again.delivery_tag == first.delivery_tag
