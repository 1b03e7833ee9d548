"""What a tap makes of the lines of MONITOR, and of what stands in a message."""

from __future__ import annotations

import base64
import json
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from specwatch.collector.probes.emitter import Moment
from specwatch.collector.taps import redis, redis_messages
from specwatch.collector.taps.redis import Command, Monitor, command
from specwatch.collector.taps.redis_keyspace import Unacked
from specwatch.collector.taps.redis_messages import Key, Messages
from specwatch.collector.taps.writing import Seen, Writer


def message(key: str = "7f3c", tag: str = "tag-1", retries: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "body": base64.b64encode(json.dumps([[7], {"order": {"id": 41}}, {}]).encode()).decode(),
        "headers": {"id": key, "task": "app.store", "retries": retries, **more},
        "properties": {"delivery_tag": tag, "delivery_info": {"exchange": ""}, "body_encoding": "base64"},
    }


def entry(sent: dict[str, Any]) -> str:
    """What a worker keeps of a message in the hash."""
    return json.dumps([sent, "", "work"])


def line(*words: str, client: str = "127.0.0.1:5000", database: int = 0) -> bytes:
    """A line as the server writes it."""
    quoted = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words)
    return f"1893492002.181000 [{database} {client}] {quoted}".encode()


def heard(*lines: bytes, **options: Any) -> list[Seen]:
    reading = Monitor(key=Key(options.pop("key", "header.id")), **options)
    return [seen for each in lines for _, seen in reading.read(each)]


def story(*lines: bytes, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(seen.action, seen.params) for seen in heard(*lines, **options)]


PUBLISH = line("LPUSH", "work", json.dumps(message()))
RECEIPT = [
    line("MULTI"),
    line("ZADD", "unacked_index", "1", "tag-1"),
    line("HSET", "unacked", "tag-1", entry(message())),
]
ACK = [line("MULTI"), line("ZREM", "unacked_index", "tag-1"), line("HDEL", "unacked", "tag-1"), line("EXEC")]
RECEIVED = [PUBLISH, *RECEIPT, line("EXEC")]


def restore(push: str, *, finds: bool = True) -> list[bytes]:
    """Putting back by tag: the hash is watched first, and nothing is pushed where the tag is no longer there."""
    pushed = [line(push, "work", json.dumps(message()))] if finds else []
    return [line("WATCH", "unacked"), line("HGET", "unacked", "tag-1"), *ACK[:-1], *pushed, line("EXEC")]


# --- lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'1.000001 [0 127.0.0.1:60866] "keys" "*"', Command(1_000_001_000, 0, "127.0.0.1:60866", (b"keys", b"*"))),
        (b'1.000000 [9 [::1]:6] "GET" ""', Command(1_000_000_000, 9, "[::1]:6", (b"GET", b""))),
        (b'1.000000 [0 lua] "GET" "a] \\"b\\""', Command(1_000_000_000, 0, "lua", (b"GET", b'a] "b"'))),
        (b'1.000000 [0 unix:/s] "SET" "\\\\\\r\\n\\t\\a\\b"', Command(10**9, 0, "unix:/s", (b"SET", b"\\\r\n\t\a\b"))),
        (b'1.000000 [0 a:1] "SET" "\\xc3\\xa9\\x00"', Command(10**9, 0, "a:1", (b"SET", "é\0".encode()))),
        (b'1.000000 [0 a:1] "AUTH" "(redacted)"', Command(10**9, 0, "a:1", (b"AUTH", b"(redacted)"))),
        (b"OK", None),
        (b"", None),
        (b'1.000000 [0 a:1] "', None),
    ],
)
def test_a_line_is_read_as_the_server_wrote_it(text: bytes, expected: Command | None) -> None:
    assert command(text) == expected


def test_a_message_is_published_received_and_acked() -> None:
    assert story(*RECEIVED, *ACK) == [
        ("Publish", {"t": "7f3c"}),
        ("Pickup", {"t": "7f3c", "a": 0, "r": False}),
        ("Ack", {"t": "7f3c", "a": 0}),
    ]
    published, received, _ = heard(*RECEIVED, *ACK)
    assert (published.key, published.attempt, published.body) == ("7f3c", 0, False)
    assert received.body
    assert received.extra == {"task": "app.store", "delivery_tag": "tag-1"}


def test_nothing_is_told_of_a_transaction_before_it_happens_or_where_it_does_not() -> None:
    assert story(PUBLISH, *RECEIPT) == [("Publish", {"t": "7f3c"})]
    assert story(PUBLISH, *RECEIPT, line("DISCARD")) == [("Publish", {"t": "7f3c"})]
    # Its keys were changed meanwhile: the server has run none of it, and shows none.
    assert story(*RECEIVED, *restore("RPUSH")[:2], line("MULTI"), line("EXEC"))[2:] == []


def test_transactions_of_several_clients_are_kept_apart() -> None:
    other = [line(*words, client="127.0.0.1:6000") for words in (("MULTI",), ("HDEL", "unacked", "tag-1"), ("EXEC",))]
    mixed = [*restore("RPUSH")[:3], *other, *restore("RPUSH")[3:]]
    assert [action for action, _ in story(*RECEIVED, *mixed)][2:] == ["Ack", "VisTimeout"]


def test_what_is_put_back_is_no_ack() -> None:
    timeout, nack = heard(*RECEIVED, *restore("RPUSH"))[-1], heard(*RECEIVED, *restore("LPUSH"))[-1]
    assert (timeout.action, timeout.params, timeout.alternatives) == (
        "VisTimeout",
        {"t": "7f3c"},
        ["RestoreOnShutdown"],
    )
    assert (nack.action, nack.params, nack.alternatives) == ("Nack", {"t": "7f3c", "a": 0}, [])


def test_a_restore_that_comes_too_late_is_nothing() -> None:
    assert story(*RECEIVED, *restore("RPUSH", finds=False))[2:] == []
    # And the next word of that client is an ack again.
    assert [action for action, _ in story(*RECEIVED, *restore("RPUSH", finds=False), *ACK)][2:] == ["Ack"]
    assert [action for action, _ in story(*RECEIVED, line("WATCH", "unacked"), line("UNWATCH"), *ACK)][2:] == ["Ack"]


def test_an_ack_is_heard_whoever_has_the_message_now() -> None:
    """The tag survives redelivery: two workers may say the same word of it, and both are heard."""
    assert [action for action, _ in story(*RECEIVED, *restore("RPUSH"), *RECEIPT, line("EXEC"), *ACK, *ACK)] == [
        "Publish",
        "Pickup",
        "VisTimeout",
        "Pickup",
        "Ack",
        "Ack",
    ]


def test_a_redelivered_message_says_so() -> None:
    again = message()
    again["properties"]["delivery_info"]["redelivered"] = True
    assert story(line("HSET", "unacked", "tag-1", entry(again))) == [("Pickup", {"t": "7f3c", "a": 0, "r": True})]


def test_a_retry_is_the_end_of_the_attempt_before_and_an_id_that_comes_again_a_republish() -> None:
    retry = line("LPUSH", "work", json.dumps(message(tag="tag-2", retries=1)))
    again = line("LPUSH", "work", json.dumps(message(tag="tag-3")))
    assert story(PUBLISH, retry, again) == [
        ("Publish", {"t": "7f3c"}),
        ("Retry", {"t": "7f3c", "a": 0}),
        ("Republish", {"t": "7f3c"}),
    ]
    assert heard(retry)[0].attempt == 0


@pytest.mark.parametrize(
    "other",
    [
        line("LPUSH", "work", "no json"),
        line("LPUSH", "work", "[1]"),
        line("LPUSH", "work", json.dumps({"headers": None, "properties": {}})),
        line("LPUSH", "reply", json.dumps({"headers": {}, "properties": {"delivery_tag": "t"}})),
        line("LPUSH", "work", "[" * 100_000),
        line("HSET", "unacked", "tag-1", "no json"),
        line("HSET", "unacked", "tag-1", "{}"),
        line("HSET", "users", "tag-1", entry(message())),
        line("HDEL", "unacked", "a tag that was never seen"),
        line("GET", "work"),
        line("LPUSH", "work", json.dumps(message()), database=1),
        b"OK",
    ],
)
def test_what_is_no_word_of_a_task_is_nothing(other: bytes) -> None:
    assert story(other) == []


def test_only_keys_with_the_prefix_are_looked_at() -> None:
    own = line("HSET", "run.unacked", "tag-1", entry(message()))
    assert [action for action, _ in story(own, prefix="run.")] == ["Pickup"]
    assert story(own, prefix="") == story(own, prefix="other.") == []
    assert [action for action, _ in story(own)] == ["Pickup"]


def test_no_more_messages_are_remembered_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_messages, "REMEMBERED", 2)
    sent = [line("LPUSH", "work", json.dumps(message(str(n), f"tag-{n}"))) for n in range(3)]
    acks = [line("HDEL", "unacked", f"tag-{n}") for n in range(3)]
    assert [(seen.action, seen.key) for seen in heard(*sent, *acks)][3:] == [("Ack", "1"), ("Ack", "2")]


# --- notifications


def looks(*looked: tuple[dict[str, dict[str, Any]], int, int]) -> list[tuple[str, Any, int]]:
    """Action, key and what was missed before it, from what stood in the hash, and how often it was notified of."""
    unacked = Unacked(Messages(Key("header.id")))
    unacked.begin({"old": entry(message("old", "old")).encode()})
    return [
        (seen.action, seen.key, seen.missed)
        for held, added, removed in looked
        for seen in unacked.looked({tag: entry(sent).encode() for tag, sent in held.items()}, added, removed)
    ]


def test_what_stands_in_the_hash_was_received_and_what_is_gone_was_acked_or_put_back() -> None:
    old, one, two = message("old", "old"), message("a", "tag-1"), message("b", "tag-2")
    assert looks(
        ({"old": old, "tag-1": one}, 1, 0),
        ({"old": old, "tag-1": one, "tag-2": two}, 1, 0),
        ({"tag-2": two}, 0, 2),  # What was there before the first look is told of by nothing.
        ({"tag-2": two, "tag-1": one, "old": old}, 2, 0),
    ) == [
        ("Publish", "a", 0),
        ("Pickup", "a", 0),
        ("Publish", "b", 0),
        ("Pickup", "b", 0),
        ("Ack", "a", 0),
        ("Pickup", "a", 0),
    ]


def test_a_retry_has_another_tag_and_a_republished_id_too() -> None:
    retry, again = message("a", "tag-2", retries=1), message("a", "tag-3")
    found = looks(({"tag-1": message("a", "tag-1")}, 1, 0), ({"tag-2": retry}, 1, 1), ({"tag-3": again}, 1, 1))
    assert [action for action, _, _ in found] == [
        "Publish",
        "Pickup",
        "Ack",
        "Pickup",
        "Ack",
        "Republish",
        "Pickup",
    ]


def test_what_came_and_went_between_two_looks_is_missed_with_its_body() -> None:
    one = message("a", "tag-1")
    assert looks(({"old": {}}, 1, 1)) == [("Looked", None, 3)]
    # Put back, and received again by its tag: the hash looks as before.
    assert looks(({"old": {}, "tag-1": one}, 1, 0), ({"old": {}, "tag-1": one}, 1, 1)) == [
        ("Publish", "a", 0),
        ("Pickup", "a", 0),
        ("Looked", None, 3),
    ]
    assert looks(({"old": {}, "tag-1": one}, 2, 1)) == [("Publish", "a", 3), ("Pickup", "a", 0)]


# --- what a message is about


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("header.id", "7f3c"),
        ("property.delivery_tag", "tag-1"),
        ("property.delivery_info.exchange", ""),
        ("body.0.0", 7),
        ("body.1.order.id", 41),
        ("body.1.order", {"id": 41}),
        ("body.1.nothing", None),
        ("body.9", None),
        ("header.id.deeper", None),
    ],
)
def test_a_key_is_found_in_header_property_or_body(place: str, expected: Any) -> None:
    assert Key(place).of(message()) == expected


def test_a_body_that_is_no_json_says_nothing() -> None:
    assert Key("body.0").of({**message(), "body": "no base64"}) is None
    assert Key("body.0").of({"body": "[1]"}) == 1
    assert Key("body.0").of({}) is None


def test_events_are_about_the_key_that_was_chosen() -> None:
    assert story(*RECEIVED, key="body.1.order.id")[0] == ("Publish", {"t": 41})
    assert story(*RECEIVED, key="body.1.nothing") == []


@pytest.mark.parametrize("text", ["id", "header", "header.", "headers.id", "body..a", ""])
def test_a_key_that_is_no_place_is_refused_with_what_is_one(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        redis.main(["redis://127.0.0.1:1", str(tmp_path), "--key", text])
    assert "is not header.NAME, property.NAME or body.PATH" in capsys.readouterr().err


# --- what is written


def test_events_and_bodies_share_one_numbering_and_what_was_missed_spends_its_own(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "tap")
    at = Moment(1_893_492_002_181_000_000, 5)
    writer.write(Seen(action="Pickup", params={"t": "a"}, key="a", attempt=0, body=True), at)
    writer.write(Seen(action="Ack", key="a", alternatives=["Nack"], missed=3), at)
    writer.close(is_whole=True)
    events, bodies = (
        [json.loads(line) for path in tmp_path.glob(pattern) for line in path.read_text().splitlines()]
        for pattern in ("tap-[0-9]*.jsonl", "tap-bodies-*.jsonl")
    )
    assert [(event["seq"], event["action"]) for event in events] == [
        (1, "EmitterStart"),
        (2, "Pickup"),
        (7, "Ack"),
        (8, "EmitterStop"),
    ]
    assert events[1]["time"] == "2030-01-01T10:00:02.181000000Z"
    assert events[2]["alternatives"] == ["Nack"]
    [body] = bodies
    assert (body["body"], body["seq"], body["key"], body["attempt"]) == ("begins", 3, "a", 0)
    assert {(each["emitter"], each["boot"]) for each in [*events, body]} == {(body["emitter"], body["boot"])}


# --- servers that do not play along


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:1", "error: not a URL of a Redis or Valkey: http://…"),
        ("redis://127.0.0.1:1", "error: no answer from 127.0.0.1:1: "),
    ],
)
def test_a_server_that_is_not_there_is_an_error_for_people(
    url: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert redis.main([url, str(tmp_path)]) == 4
    assert capsys.readouterr().err.startswith(error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([b"-WRONGPASS invalid username-password pair\r\n"], "refuses AUTH: WRONGPASS invalid username-password pair"),
        ([b"+OK\r\n", b"-NOPERM no\r\n"], "refuses MONITOR: NOPERM no"),
        ([b"+OK\r\n", b"+OK\r\n"], "has ended the connection: what was said since is not known"),
    ],
)
def test_a_server_that_refuses_or_ends_is_an_error_and_leaves_an_open_end(
    answers: list[bytes],
    error: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                for answer in answers:
                    connection.recv(4096)
                    connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        port = listener.getsockname()[1]
        assert redis.main([f"redis://:secret@127.0.0.1:{port}/0", str(tmp_path)]) == 4
        server.join()
    told = capsys.readouterr().err
    assert f"error: 127.0.0.1:{port} {error}" in told
    assert "secret" not in told
    assert not any("EmitterStop" in path.read_text() for path in tmp_path.iterdir())
