"""Accepted packets. Keyed by study, slot and tag in a table without row numbers: no column and no key tells when, in
which order or from where a packet came. Nothing here knows who enrolled.

No plaintext leaves this module that is not the one that was accepted: each is compared with its row's digest and key.
A row that fails is damaged. It is left out of what is read, and once `leave_out` has listed it, of every count as well.

Sealed shares have a table of their own. They are never published, and are erased once their sum is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.rules.accepted import AcceptedPacket, Place, relayed
from aggregator.store.crash_points import crash_point
from aggregator.store.database import Database, pages
from aggregator.store.studies import frozen_until
from aggregator.store.tables import bytes_column, key_column, study_table
from anon.study.manifest import Manifest
from anon.wire.packets import Relayed

TABLES = MetaData()
_AT_ONCE, _RELAYED_AT_ONCE = 400, 64

_packets = study_table(
    TABLES,
    "packets",
    Column("slot", Integer, primary_key=True),
    key_column("tag", 48),
    Column("survey", Integer, nullable=False),
    bytes_column("plaintext"),
    bytes_column("digest", 32),
)

_shares = study_table(
    TABLES,
    "packet_shares",
    Column("slot", Integer, primary_key=True),
    Column("teller", Integer, primary_key=True),
    key_column("tag", 48),
    bytes_column("share"),
)
"""The sealed shares of packets, each under its teller's number."""

_damaged = study_table(
    TABLES,
    "damaged_packets",
    Column("slot", Integer, primary_key=True),
    key_column("tag", 48),
)
"""Rows that are left out, by the key under which they stand."""

_SLOT, _SURVEY = (func.coalesce(cast(column, Integer), -1) for column in (_packets.c.slot, _packets.c.survey))
_TAG = cast(_packets.c.tag, LargeBinary)
_WHOLE = (cast(_packets.c.plaintext, LargeBinary), cast(_packets.c.digest, LargeBinary))
"""Whatever a damaged row holds in place of a number or of bytes, it is read as such."""
_IN_PLACE = ((_packets.c.slot == _SLOT) & (_packets.c.survey == _SURVEY) & (_packets.c.tag > b"")).label("in_place")
"""True for a row that is found by its key: a damaged one may hold a text in place of bytes."""


class PacketStore:
    """Packets by (study, slot, tag)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def digests(self, study: bytes, places: Iterable[Place]) -> dict[Place, bytes]:
        """The digests of those places that are taken."""
        async with self._database.read() as connection:
            return await self._digests(connection, study, places)

    async def insert(
        self, study: bytes, packets: Sequence[AcceptedPacket], closes: Callable[[AcceptedPacket], int] | None = None
    ) -> dict[Place, bytes]:
        """Keep, in one durable transaction, the first packet for every place that is free.

        Returns the digest that now holds each place: where it is not the packet's own, the tag was spent otherwise.
        `closes`: the end of a packet's window. A packet whose window is frozen by then, by whichever process, is not
        kept; its place has no entry.
        """
        async with self._database.add(study) as connection:
            frozen = await frozen_until(connection, study) if closes else 0
            first: dict[Place, AcceptedPacket] = {}
            for packet in packets:
                if closes is None or closes(packet) > frozen:
                    first.setdefault(packet.place, packet)
            adding = self._database.insert_new(_packets).returning(_packets.c.slot, _packets.c.tag)
            rows = [_row(study, first[place]) for place in sorted(first)]  # no two processes lock crosswise
            fresh = sorted((row.slot, row.tag) for row in await connection.execute(adding, rows)) if rows else []
            holders = {place: first[place].digest for place in fresh}
            holders |= await self._digests(connection, study, first.keys() - holders.keys())
            shares = [row for place in fresh for row in _rows_of_shares(study, first[place])]
            if shares:
                await connection.execute(insert(_shares), shares)
            crash_point("before-commit-of-packets")
        crash_point("after-commit-of-packets")
        return holders

    async def pages_of(self, study: bytes, slot: int, survey: int) -> AsyncIterator[tuple[bytes, ...]]:
        """The sound plaintexts of a survey, sorted by tag, a page in memory at a time. Take all, and without pause."""
        here = (_packets.c.study == study) & (_packets.c.slot == slot) & (_packets.c.survey == survey) & ~_left_out()
        query = select(_SLOT, _TAG, _SURVEY, *_WHOLE).where(here).order_by(_packets.c.tag)
        async for rows in pages(self._database, query):
            sound = await asyncio.to_thread(_sound, study, [AcceptedPacket(*row) for row in rows])
            yield tuple(packet.plaintext for packet in sound)

    async def tags(self, study: bytes, slot: int, surveys: Collection[int]) -> bytes:
        """The tags of these surveys' packets in a slot, in order, laid end to end: 48 bytes a packet."""
        here = (_packets.c.study == study) & (_packets.c.slot == slot) & _packets.c.survey.in_(surveys)
        query = select(_packets.c.tag).where(here & ~_left_out()).order_by(_packets.c.tag)
        laid = bytearray()
        async for rows in pages(self._database, query):
            laid += b"".join(row.tag for row in rows)
        return bytes(laid)

    async def of_tags(self, study: bytes, slot: int, tags: Sequence[bytes]) -> tuple[bytes, ...]:
        """The sound plaintexts of a slot under these tags, sorted by tag."""
        here = (_packets.c.study == study) & (_packets.c.slot == slot)
        rows: list[AcceptedPacket] = []
        async with self._database.read() as connection:
            for start in range(0, len(tags), _AT_ONCE):
                some = tags[start : start + _AT_ONCE]
                query = self._database.found(here, _packets.c.tag, some, _SURVEY, *_WHOLE)
                rows += [AcceptedPacket(slot, *row) for row in await connection.execute(query)]
        sound = await asyncio.to_thread(_sound, study, rows)
        return tuple(packet.plaintext for packet in sorted(sound, key=lambda packet: packet.tag))

    async def relayed(self, study: bytes, slot: int, survey: int, teller: int) -> AsyncIterator[Relayed]:
        """The packets of a survey as this teller is shown them, in the order of their tags; a few in memory at a time.

        A share that is no longer the one that was accepted is left out, and so is one that was erased.
        """
        columns = (_TAG.label("tag"), cast(_packets.c.plaintext, LargeBinary), cast(_shares.c.share, LargeBinary))
        own = (_shares.c[name] == _packets.c[name] for name in ("study", "slot", "tag"))
        joined = _packets.join(_shares, and_(*own))
        here = (_packets.c.study == study) & (_packets.c.slot == slot) & (_packets.c.survey == survey) & ~_left_out()
        query = select(*columns).select_from(joined).where(here & (_shares.c.teller == teller))
        after = b""
        while True:
            page = query.where(_packets.c.tag > after).order_by(_packets.c.tag).limit(_RELAYED_AT_ONCE)
            async with self._database.read() as connection:
                rows = list(await connection.execute(page))
            for _tag, plaintext, share in rows:
                if (shown := relayed(plaintext, teller, share)) is not None:
                    yield shown
            if len(rows) < _RELAYED_AT_ONCE:
                return
            after = rows[-1].tag

    async def erase_shares(self, study: bytes, slots: Iterable[int]) -> None:
        """Delete every sealed share of these slots; the database's files keep no copy."""
        async with self._database.write() as connection:
            here = (_shares.c.study == study) & _shares.c.slot.in_(list(slots))
            await connection.execute(delete(_shares).where(here))
            crash_point("before-erasure")
        await self._database.forget(study, _shares)
        crash_point("after-erasure")

    async def leave_out(
        self, study: bytes, manifest: Manifest, surveys: Iterable[int], strays: bool
    ) -> tuple[Place, ...]:
        """List, durably, the rows of these surveys that are damaged; those that were not listed before.

        `strays`: also rows under a slot and survey that the study does not have.
        """
        places = {(slot_of(manifest, number), number) for number in surveys}
        known = {(slot.slot, row.survey) for slot in manifest.slots for row in slot.rows}

        def damaged(rows: Sequence[Row[*tuple[Any, ...]]]) -> list[Place]:
            asked = [
                (AcceptedPacket(*row[:-1]), row.in_place)
                for row in rows
                if (row[0], row[2]) in places or (strays and (row[0], row[2]) not in known)
            ]
            return [
                packet.place
                for packet, kept in asked
                if not (kept and (packet.slot, packet.survey) in known and packet.sound(study))
            ]

        query = select(_SLOT, _TAG, _SURVEY, *_WHOLE, _IN_PLACE).where((_packets.c.study == study) & ~_left_out())
        fresh: list[Place] = []
        async for some in pages(self._database, query):
            fresh += await asyncio.to_thread(damaged, some)
        fresh.sort()
        if fresh:
            async with self._database.write() as connection:
                listed = [{"study": study, "slot": slot, "tag": tag} for slot, tag in fresh]
                await connection.execute(self._database.insert_new(_damaged), listed)
        return tuple(fresh)

    async def left_out(self, study: bytes) -> tuple[Place, ...]:
        """Every row that was found damaged."""
        query = select(_damaged.c.slot, _damaged.c.tag).where(_damaged.c.study == study)
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_damaged.c.slot, _damaged.c.tag))
            return tuple((row.slot, row.tag) for row in rows)

    async def counts(self, study: bytes) -> Mapping[int, int]:
        """How many packets each survey has, without those left out; surveys without any have no entry."""
        here = (_packets.c.study == study) & ~_left_out()
        query = select(_packets.c.survey, func.count()).where(here).group_by(_packets.c.survey)
        async with self._database.read() as connection:
            return {row[0]: row[1] for row in await connection.execute(query)}

    async def _digests(
        self, connection: AsyncConnection, study: bytes, places: Iterable[Place]
    ) -> dict[Place, bytes]:
        by_slot: dict[int, list[bytes]] = {}
        for slot, tag in places:
            by_slot.setdefault(slot, []).append(tag)
        held: dict[Place, bytes] = {}
        for slot, tags in by_slot.items():
            for start in range(0, len(tags), _AT_ONCE):
                here = (_packets.c.study == study) & (_packets.c.slot == slot)
                some = tags[start : start + _AT_ONCE]
                rows = await connection.execute(self._database.found(here, _packets.c.tag, some, _packets.c.digest))
                held.update({(slot, row[0]): row[1] for row in rows})
        return held

    async def compact(self, study: bytes) -> None:
        """Leave no trace of the order in which a study's packets came, in the database's files or its log."""
        await self._database.compact(study)

    async def erase(self, study: bytes) -> None:
        """Delete every packet of a study; the database's files keep no copy."""
        async with self._database.write() as connection:
            await self._database.erase(connection, study, _packets, _shares, _damaged)
            crash_point("before-erasure")
        crash_point("after-erasure")


def slot_of(manifest: Manifest, survey: int) -> int:
    """The slot whose table has the survey."""
    return next(slot.slot for slot in manifest.slots if any(row.survey == survey for row in slot.rows))


def in_words(place: Place) -> str:
    """A row, by its slot and the beginning of its tag."""
    return f"slot {place[0]}, tag {place[1][:4].hex()}…"


def _sound(study: bytes, rows: Sequence[AcceptedPacket]) -> tuple[AcceptedPacket, ...]:
    return tuple(row for row in rows if row.sound(study))


def _left_out() -> ColumnElement[bool]:
    listed = (_damaged.c.study == _packets.c.study) & (_damaged.c.slot == _SLOT)
    return exists().where(listed & (_damaged.c.tag == _TAG))


def _row(study: bytes, packet: AcceptedPacket) -> dict[str, bytes | int]:
    return {
        "study": study,
        "slot": packet.slot,
        "tag": packet.tag,
        "survey": packet.survey,
        "plaintext": packet.plaintext,
        "digest": packet.digest,
    }


def _rows_of_shares(study: bytes, packet: AcceptedPacket) -> list[dict[str, bytes | int]]:
    return [
        {"study": study, "slot": packet.slot, "teller": teller, "tag": packet.tag, "share": share}
        for teller, share in enumerate(packet.shares)
    ]
