"""A member of a consumer group as people write it.

It polls for one message, works on it while no one polls, and commits the offset when the work is done.
"""

from __future__ import annotations

import json
import sys

from confluent_kafka import KafkaException

from specwatch.collector.probes.confluent_kafka import Consumer, executed, handling, skipped

from ..plan import Settings
from ..together import say_ready
from . import group
from .members import LISTEN, Member


class GroupMember(Member):
    """Has partitions of its own, and commits offsets."""

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__(settings, name, executed, skipped)

    def run(self) -> None:
        """As of the base class."""
        consumer = Consumer(group.member(self.settings), worker=self.name, execute="told")
        consumer.subscribe([group.topic(self.settings)], on_assign=lambda *_: say_ready(self.settings, self.name))
        try:
            while not self.stopping.is_set():
                message = consumer.poll(LISTEN)
                if message is None:
                    continue
                if message.error() is not None:
                    print(f"{self.name}: {message.error()}", file=sys.stderr)
                    continue
                task = json.loads(message.value())
                self.handle(task, handling(message))
                try:
                    consumer.commit(message=message, asynchronous=False)
                except KafkaException as error:
                    # It comes again, to whomever.
                    print(f"{task['id']}: the commit was refused: {error}", file=sys.stderr)
        finally:
            consumer.close()
