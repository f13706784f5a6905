"""Accepted packets. Keyed by study, slot and tag in a table without row numbers: no column and no key tells when, in
which order or from where a packet came. Nothing here knows who enrolled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen
from sqlalchemy import Column, Integer, LargeBinary, MetaData, Table, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.crash import crash_point
from aggregator.store import Database

TABLES = MetaData()
_AT_ONCE = 400

_packets = Table(
    "packets",
    TABLES,
    Column("study", LargeBinary(32), primary_key=True),
    Column("slot", Integer, primary_key=True),
    Column("tag", LargeBinary(48), primary_key=True),
    Column("survey", Integer, nullable=False),
    Column("plaintext", LargeBinary, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    sqlite_with_rowid=False,
)

Place = tuple[int, bytes]
"""Slot and tag."""


@frozen
class Accepted:
    """One packet to keep: its place, survey, whole plaintext and that plaintext's digest."""

    slot: int
    tag: bytes
    survey: int
    plaintext: bytes = field(repr=False)
    digest: bytes

    @property
    def place(self) -> Place:
        """What is unique."""
        return self.slot, self.tag


class PacketStore:
    """Packets by (study, slot, tag)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def digests(self, study: bytes, places: Iterable[Place]) -> dict[Place, bytes]:
        """The digests of those places that are taken."""
        async with self._database.read() as connection:
            return await _digests(connection, study, places)

    async def insert(self, study: bytes, packets: Sequence[Accepted]) -> dict[Place, bytes]:
        """Keep, in one durable transaction, the first packet for every place that is free.

        Returns the digest that now holds each place: where it is not the packet's own, the tag was spent otherwise.
        """
        async with self._database.write() as connection:
            holders = await _digests(connection, study, (packet.place for packet in packets))
            fresh: dict[Place, Accepted] = {}
            for packet in packets:
                if packet.place not in holders:
                    holders[packet.place] = packet.digest
                    fresh[packet.place] = packet
            if fresh:
                await connection.execute(insert(_packets), [_row(study, fresh[place]) for place in sorted(fresh)])
            crash_point("before-commit-of-packets")
        crash_point("after-commit-of-packets")
        return holders

    async def of_survey(self, study: bytes, slot: int, survey: int) -> tuple[bytes, ...]:
        """The plaintexts of a survey, sorted by tag."""
        here = (_packets.c.study == study) & (_packets.c.slot == slot) & (_packets.c.survey == survey)
        async with self._database.read() as connection:
            rows = await connection.execute(select(_packets.c.plaintext).where(here).order_by(_packets.c.tag))
            return tuple(row.plaintext for row in rows)

    async def counts(self, study: bytes) -> Mapping[int, int]:
        """How many packets each survey has; surveys without any are left out."""
        query = select(_packets.c.survey, func.count()).where(_packets.c.study == study).group_by(_packets.c.survey)
        async with self._database.read() as connection:
            return {row[0]: row[1] for row in await connection.execute(query)}

    async def compact(self) -> None:
        """Leave no trace of the order in which packets came, in the file or its log."""
        await self._database.compact()

    async def erase(self, study: bytes) -> None:
        """Delete every packet of a study; the file keeps no copy (secure_delete)."""
        async with self._database.write() as connection:
            await connection.execute(delete(_packets).where(_packets.c.study == study))
            crash_point("before-erasure")
        crash_point("after-erasure")


async def _digests(connection: AsyncConnection, study: bytes, places: Iterable[Place]) -> dict[Place, bytes]:
    by_slot: dict[int, list[bytes]] = {}
    for slot, tag in places:
        by_slot.setdefault(slot, []).append(tag)
    found: dict[Place, bytes] = {}
    for slot, tags in by_slot.items():
        for start in range(0, len(tags), _AT_ONCE):
            some = _packets.c.tag.in_(tags[start : start + _AT_ONCE])
            here = (_packets.c.study == study) & (_packets.c.slot == slot) & some
            rows = await connection.execute(select(_packets.c.tag, _packets.c.digest).where(here))
            found.update({(slot, row.tag): row.digest for row in rows})
    return found


def _row(study: bytes, packet: Accepted) -> dict[str, bytes | int]:
    return {
        "study": study,
        "slot": packet.slot,
        "tag": packet.tag,
        "survey": packet.survey,
        "plaintext": packet.plaintext,
        "digest": packet.digest,
    }
