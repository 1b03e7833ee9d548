"""The modes: how a task stores its effect, a row, and what it does against storing it twice.

Each function is the body of the task, with a connection of its own. ``Execute`` is told when the commit has succeeded,
so that no transaction fails after it and none of the modes has an ``Undo``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from .plan import Mode, Settings

GAP = 0.5
"""Seconds between the meeting of two copies that have looked and their inserts, for a third that looks just then."""


class Copy:
    """One copy of a task at work: which it is, how it tells of its work, and whether it meets its other copies."""

    def __init__(
        self,
        settings: Settings,
        key: tuple[str, int],
        worker: str,
        meet: Callable[[], None] | None,
        executed: Callable[[], None],
        skipped: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.key = key
        """The task's id and the attempt: what is to have one effect."""
        self.worker = worker
        self.meet = meet
        """Waits until another copy has come as far; None where this one is in no hurry and meets no one."""
        self.executed = executed
        """The probe's word for an effect that is durable."""
        self.skipped = skipped
        """The probe's word for work that was found done."""

    def transaction(self) -> AbstractContextManager[psycopg.Connection]:
        """A connection whose block is one transaction: committed at its end, rolled back where it raises."""
        return psycopg.connect(self.settings.database, connect_timeout=10)

    def insert(self, connection: psycopg.Connection) -> None:
        """The effect."""
        query = self.query("INSERT INTO {} (task, attempt, worker) VALUES (%s, %s, %s)", self.settings.effects)
        connection.execute(query, (*self.key, self.worker))

    def query(self, text: str, table: str) -> Composed:
        return SQL(text).format(Identifier(table))

    def work_long(self) -> None:
        """The rest of the task's work: what makes it longer than the broker's timeout."""
        if self.meet and self.settings.plan.late_ack:
            self.meet()


def faulty(copy: Copy) -> None:
    """No guard: store, then go on working."""
    with copy.transaction() as connection:
        copy.insert(connection)
    copy.executed()
    copy.work_long()


def check_then_insert(copy: Copy) -> None:
    """Look for the row, work, then insert it. Racy: another copy may look before this one has inserted.

    The work between the two is what makes the race sure: it lasts until another copy has looked as well, which is a
    redelivery later, at most the plan's ``patience``.
    """
    with copy.transaction() as connection:
        query = copy.query("SELECT 1 FROM {} WHERE task = %s AND attempt = %s LIMIT 1", copy.settings.effects)
        found = connection.execute(query, copy.key).fetchone()
    if found:
        copy.skipped()
        return
    if copy.meet:
        copy.meet()
        time.sleep(GAP)
    with copy.transaction() as connection:
        copy.insert(connection)
    copy.executed()


def idempotent(copy: Copy) -> None:
    """Claim and effect in one transaction: who gets no claim has nothing to do, and no claim outlives a crash."""
    with copy.transaction() as connection:
        query = copy.query(
            "INSERT INTO {} (task, attempt) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING task", copy.settings.claims
        )
        claimed = connection.execute(query, copy.key).fetchone()
        if claimed:
            copy.insert(connection)
    if claimed:
        copy.executed()
    else:
        copy.skipped()
    copy.work_long()


GUARDS: dict[Mode, Callable[[Copy], None]] = {
    "faulty": faulty,
    "check-then-insert": check_then_insert,
    "idempotent": idempotent,
}
