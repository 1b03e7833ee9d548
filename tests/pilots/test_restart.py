"""A broker comes back with its data and on its port, and nothing of it is left when the run is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwatch.pilots import runtime
from specwatch.pilots.errors import PilotError
from specwatch.pilots.restart import Broker
from specwatch.pilots.runtime import Server
from specwatch.pilots.runtime.nats import ask
from specwatch.pilots.runtime.servers import connect_valkey


def test_a_valkey_keeps_what_it_held_each_time(tmp_path: Path) -> None:
    with runtime.start("embedded", directory=tmp_path, needs=("valkey",), logs=tmp_path / "logs") as servers:
        server = servers["valkey"]
        client = connect_valkey(server.url)
        pids = [server.pid]
        with Broker(server) as broker:
            for number in range(2):
                client.set(f"key-{number}", number)
                found = broker.restart().result(60)
                assert found["refused"]
                assert found["pids"][0] == pids[-1] != found["pids"][1]
                pids.append(found["pids"][1])
            assert [client.get("key-0"), client.get("key-1")] == ["0", "1"]
            assert len(set(pids)) == 3
        client.close()
    assert not any(Path("/proc", str(pid)).exists() for pid in pids)
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_nats_keeps_its_streams(tmp_path: Path) -> None:
    async def begin(client: object) -> None:
        await client.jetstream().add_stream(name="kept", subjects=["kept"])  # type: ignore[attr-defined]
        await client.jetstream().publish("kept", b"1")  # type: ignore[attr-defined]

    async def count(client: object) -> int:
        info = await client.jetstream().stream_info("kept")  # type: ignore[attr-defined]
        return int(info.state.messages)

    with runtime.start("embedded", directory=tmp_path, needs=("nats",), logs=tmp_path / "logs") as servers:
        url = servers["nats"].url
        ask(url, begin)
        with Broker(servers["nats"]) as broker:
            assert broker.restart().result(60)["refused"]
            assert ask(url, count) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_those_who_ask_at_once_get_one_restart(tmp_path: Path) -> None:
    with (
        runtime.start("embedded", directory=tmp_path, needs=("valkey",), logs=tmp_path / "logs") as servers,
        Broker(servers["valkey"]) as broker,
    ):
        first, second = broker.restart(), broker.restart()
        assert first is second
        assert first.result(60)["refused"]


def test_a_server_of_others_is_left_alone() -> None:
    with Broker(Server("valkey", "redis://127.0.0.1:1/0", "valkey 9.1.2")) as broker:
        assert not broker.can_restart
        with pytest.raises(PilotError, match="is not the run's own"):
            broker.restart().result(60)
