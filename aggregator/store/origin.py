"""The mark in a database on a server of whose it is and where it was made: a restored dump is a second copy.

Homes that are copies of one another, on several machines, may serve one database, of which one process leads. Another
aggregator's home may not. A database that came from a dump has another place than its mark says, or lacks the token of
the last time that the home was served. Two that are served would tell peers two stories
(`aggregator.store.duplicate_home`).

Not noticed: a copy of the server's files, whose number is the same, beside a home of that time.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, String, Table, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from anon.errors import Refused

TABLES = MetaData()
_origin = Table(
    "origin",
    TABLES,
    Column("key", LargeBinary(32), nullable=False),
    Column("server", String, nullable=False),
    Column("number", BigInteger, nullable=False),
)

_served = Table("served", TABLES, Column("token", LargeBinary(16), primary_key=True))


async def demand_key(connection: AsyncConnection, key: bytes, place: str) -> None:
    """Raises `Refused` for a database that another key's aggregator has; an unmarked one is this key's from now on."""
    kept = (await connection.execute(select(_origin.c.key))).scalar_one_or_none()
    if kept is None:
        server, number = await _here(connection)
        await connection.execute(insert(_origin).values(key=key, server=server, number=number))
    elif kept != key:
        raise Refused(f"{place}: it is the database of another aggregator; name a database of this home's own")


async def is_original(connection: AsyncConnection, last: bytes) -> bool:
    """False for a database that was copied, or is from before the `last` token."""
    kept = (await connection.execute(select(_origin.c.server, _origin.c.number))).one_or_none()
    known = (await connection.execute(select(_served.c.token).where(_served.c.token == last))).one_or_none()
    return (kept is None or tuple(kept) == await _here(connection)) and (known is not None or not last)


async def mark_served(connection: AsyncConnection, token: bytes) -> None:
    """It is served from here, by a home that keeps the token. Older tokens stay: copies of the home may have them."""
    server, number = await _here(connection)
    await connection.execute(update(_origin).values(server=server, number=number))
    await connection.execute(insert(_served).values(token=token))


async def _here(connection: AsyncConnection) -> tuple[str, int]:
    """The server's own number and the database's on it."""
    asked = (
        "SELECT system_identifier::text, oid::bigint FROM pg_control_system(), pg_database "
        "WHERE datname = current_database()"
    )
    server, number = (await connection.execute(text(asked))).one()
    return str(server), int(number)
