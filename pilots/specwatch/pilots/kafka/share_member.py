"""A member of a share group as people write it.

It works on what it polled, one message after the other, and says a word of each when the work on it is done.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaException

from specwatch.collector.probes.confluent_kafka_share import ShareConsumer, executed, handling, skipped

from ..plan import Settings
from ..together import say_ready
from . import group, share
from .members import LISTEN, Member


class ShareMember(Member):
    """Shares its partitions with all others, and says a word of each message."""

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__(settings, name, executed, skipped)

    def run(self) -> None:
        """As of the base class."""
        share.make(self.settings)
        consumer = ShareConsumer(share.member(self.settings), worker=self.name, execute="told")
        consumer.subscribe([group.topic(self.settings)])
        try:
            while not self.stopping.is_set():
                messages = consumer.poll(LISTEN)
                say_ready(self.settings, self.name)
                for message in messages:
                    if message.error() is not None:
                        print(f"{self.name}: {message.error()}", file=sys.stderr)
                    else:
                        self._work(consumer, message)
        finally:
            consumer.close()

    def _work(self, consumer: ShareConsumer, message: Any) -> None:
        task = json.loads(message.value())
        wish = self.handle(task, handling(message))
        again = wish is not None and wish.kind == "nack"
        try:
            consumer.acknowledge(message, AcknowledgeType.RELEASE if again else AcknowledgeType.ACCEPT)
            refused = [error for error in consumer.commit_sync().values() if error is not None]
        except KafkaException as error:
            refused = [error]
        if refused:
            print(f"{task['id']}: the word was refused: {refused[0]}", file=sys.stderr)  # It comes again, to whomever.
        elif not again:
            share.say_settled(self.settings, task["id"])
