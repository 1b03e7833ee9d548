"""The pilot's tables in PostgreSQL: made before the workers start, counted after they have stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .plan import Settings

if TYPE_CHECKING:
    import psycopg


def create(connection: psycopg.Connection, settings: Settings) -> None:
    """The tables of a mode. Only claims are unique: a second effect must be able to show itself."""
    from psycopg.sql import SQL, Identifier

    effects, claims = Identifier(settings.effects), Identifier(settings.claims)
    connection.execute(
        SQL(
            "CREATE TABLE {} (task text NOT NULL, attempt integer NOT NULL, worker text NOT NULL,"
            " at timestamptz NOT NULL DEFAULT clock_timestamp())"
        ).format(effects)
    )
    connection.execute(
        SQL("CREATE TABLE {} (task text NOT NULL, attempt integer NOT NULL, PRIMARY KEY (task, attempt))").format(
            claims
        )
    )


def count(connection: psycopg.Connection, settings: Settings) -> dict[str, int]:
    """Rows of each task that has any."""
    from psycopg.sql import SQL, Identifier

    query = SQL("SELECT task, count(*) FROM {} GROUP BY task ORDER BY task").format(Identifier(settings.effects))
    return dict(connection.execute(query).fetchall())
