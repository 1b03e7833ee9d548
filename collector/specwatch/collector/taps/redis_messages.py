"""What messages of Celery say of themselves on Redis and Valkey, whichever tap has heard them."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from .writing import Seen

REMEMBERED = 100_000
"""So many of the messages that were sent last are known by their tags."""
ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What comes of text that is no JSON."""

Message = dict[str, Any]


class Key:
    """Where a message says what it is about. Raises ``ValueError`` for a text that is no such place."""

    def __init__(self, text: str) -> None:
        self.place, *self.path = text.split(".")
        if self.place not in ("header", "property", "body") or not self.path or "" in self.path:
            raise ValueError(f"{text!r} is not header.NAME, property.NAME or body.PATH")

    def of(self, message: Message) -> Any:
        """What a message is about; None where it does not say."""
        found: Any = {"header": message.get("headers"), "property": message.get("properties")}.get(self.place)
        if self.place == "body":
            found = _body(message)
        for name in self.path:
            if isinstance(found, dict):
                found = found.get(name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return None
        return found


def _body(message: Message) -> Any:
    body = message.get("body")
    try:
        if isinstance(body, str) and message.get("properties", {}).get("body_encoding") == "base64":
            body = base64.b64decode(body)
        return msgspec.json.decode(body) if isinstance(body, (str, bytes)) else body
    except (*ERRORS, binascii.Error):
        return None


class About(msgspec.Struct, frozen=True):
    """What is known of a message by its tag."""

    key: Any
    attempt: int
    redelivered: bool
    task: str | None

    def seen(self, action: str, *, tag: str, alternatives: Sequence[str] = (), **params: Any) -> Seen:
        return Seen(
            action=action,
            params={"t": self.key, **params},
            key=self.key,
            attempt=self.attempt,
            alternatives=list(alternatives),
            extra={"task": self.task, "delivery_tag": tag},
        )


class Messages:
    """The messages that were seen, by their tags, and what they are about. No more than ``REMEMBERED``."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self._tags: OrderedDict[str, About] = OrderedDict()
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def read(self, payload: bytes | Message) -> tuple[str, About] | None:
        """Tag and content of a message of kombu that is a task; None for anything else."""
        try:
            message = msgspec.json.decode(payload) if isinstance(payload, bytes) else payload
            headers, properties = message["headers"], message["properties"]
            tag, name = properties["delivery_tag"], headers["task"]
            redelivered = bool((properties.get("delivery_info") or {}).get("redelivered"))
            key = self.key.of(message)
        except (*ERRORS, KeyError, TypeError, AttributeError):
            return None
        if key is None or not isinstance(tag, str):
            return None
        about = About(key, headers.get("retries") or 0, redelivered, name if isinstance(name, str) else None)
        self._tags[tag] = about
        self._tags.move_to_end(tag)
        if len(self._tags) > REMEMBERED:
            self._tags.popitem(last=False)
        return tag, about

    def entry(self, entry: bytes) -> About | None:
        """What an entry of the hash is about: ``[message, exchange, routing key]``; None where it is none."""
        try:
            received = self.read(msgspec.json.decode(entry)[0])
        except (*ERRORS, IndexError, KeyError, TypeError):
            return None
        return None if received is None else received[1]

    def get(self, tag: str) -> About | None:
        return self._tags.get(tag)

    def is_new(self, key: Any) -> bool:
        """Whether a key is one that was not seen before; it then was."""
        name = msgspec.json.encode(key)
        new = name not in self._keys
        self._keys[name] = None
        self._keys.move_to_end(name)
        if len(self._keys) > REMEMBERED:
            self._keys.popitem(last=False)
        return new


def pickup(about: About, tag: str) -> Seen:
    """A receipt, after which a body may do what no one sees."""
    seen = about.seen("Pickup", tag=tag, a=about.attempt, r=about.redelivered)
    seen.body = True
    return seen
