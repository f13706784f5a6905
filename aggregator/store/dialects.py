"""Which database a home has: the SQLite file in it, or the one on a PostgreSQL server that `anonml aggregator init
--database DATABASE` named."""

from __future__ import annotations

import importlib.util

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from aggregator.store import answers, buckets, enrolments, lists, packets, studies
from aggregator.store.database import Database
from aggregator.store.home import DATABASE_URL, KEYS_KEPT, Home
from aggregator.store.sqlite import SqliteDatabase
from anon.errors import Malformed, Refused
from anon.storage.durable import reading
from anon.storage.private_files import write_private
from anon.text.sentences import Term

DRIVER = "postgresql+asyncpg"
TABLES = (studies.TABLES, enrolments.TABLES, packets.TABLES, lists.TABLES, buckets.TABLES, answers.TABLES)
"""All tables of an aggregator."""


def database_of(home: Home) -> Database:
    """The home's database, not opened yet. Raises `Refused` where the extra for it is missing."""
    kept = home.path / DATABASE_URL
    if not kept.exists():
        return SqliteDatabase(home.database)
    with reading(kept, KEYS_KEPT, Term("the database's address")):
        return _on_a_server(kept.read_text("utf-8"))


async def set_up(home: Home, url: str) -> None:
    """Make the tables at `url` and have the home use them from now on.

    Raises `Malformed` for another address, and `Refused` for a home that has studies elsewhere and for a server that
    keeps what is erased.
    """
    kept, database = home.path / DATABASE_URL, begun_at(url)
    if home.database.exists():
        raise Refused(
            f"{home.path}: this home has a database already; name a new folder with --home, or take its studies along "
            "with `anonml aggregator move`"
        )
    if kept.exists() and kept.read_text("utf-8") != url:
        raise Refused(f"{home.path}: this home has a database already; name a new folder with --home")
    try:
        await database.create(*TABLES)
        await database.belong_to(home.public_key)
    finally:
        await database.close()
    keep_address(home, url)


def begun_at(url: str) -> Database:
    """The database at an address, not opened yet. Raises `Malformed` for another address."""
    try:
        named = make_url(url)
    except (ArgumentError, ValueError):
        named = None
    # Of a password with an unspelt @ the rest would be taken for the host, told and asked for in the network.
    if named is None or named.drivername != DRIVER or "@" in (named.host or ""):
        raise Malformed(f"--database: expected {DRIVER}://USER@HOST/NAME; a password's @ is written %40")
    return _on_a_server(url)


def keep_address(home: Home, url: str) -> None:
    """The home uses the database there from now on."""
    write_private(home.path / DATABASE_URL, url.encode())


def _on_a_server(url: str) -> Database:
    if importlib.util.find_spec("asyncpg") is None:
        raise Refused("a database on a PostgreSQL server needs an extra: './anonml-...whl[aggregator,postgres]'")
    from aggregator.store.postgres import PostgresDatabase  # late: most homes have a file

    return PostgresDatabase(url)
