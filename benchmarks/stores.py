"""Storing packets in each database: CPU of this process and of the server, for a packet, and the time to compact.

    python -m benchmarks.stores [--packets N] [--url URL]     # URL: an empty database on a PostgreSQL server

Without a URL only the file is measured. Packets are made up; their tokens are never looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from nacl.signing import SigningKey

from aggregator.rules.accepted import AcceptedPacket
from aggregator.store.database import Database
from aggregator.store.dialects import TABLES
from aggregator.store.packets import PacketStore
from aggregator.store.sqlite import SqliteDatabase
from aggregator.store.studies import StudyStore

BATCH, PLAINTEXT = 256, 600


def made_up(number: int) -> AcceptedPacket:
    """A packet as long as a real one."""
    tag = hashlib.sha384(b"%d" % number).digest()
    body = hashlib.shake_256(tag).digest(PLAINTEXT)
    return AcceptedPacket(0, tag, 0, body, hashlib.sha256(body).digest())


async def measured(database: Database, packets: list[AcceptedPacket]) -> dict[str, float]:
    """Milliseconds for a packet, once stored and once acknowledged again, and seconds to compact."""
    await database.create(*TABLES)
    study = os.urandom(32)
    await StudyStore(database).add(study, "round", b"manifest", SigningKey(bytes(32)))
    store, figures = PacketStore(database), {}
    for name in ("stored", "again"):
        cpu, wall = time.process_time(), time.perf_counter()
        for start in range(0, len(packets), BATCH):
            await store.insert(study, packets[start : start + BATCH])
        figures[f"{name}_cpu_ms"] = round((time.process_time() - cpu) / len(packets) * 1e3, 4)
        figures[f"{name}_wall_ms"] = round((time.perf_counter() - wall) / len(packets) * 1e3, 4)
    wall = time.perf_counter()
    await store.compact(study)
    figures["compact_s"] = round(time.perf_counter() - wall, 3)
    await database.close()
    return figures


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packets", type=int, default=20_000)
    parser.add_argument("--url", default="")
    asked = parser.parse_args()
    packets = [made_up(number) for number in range(asked.packets)]
    with tempfile.TemporaryDirectory() as folder:
        figures = {"sqlite": await measured(SqliteDatabase(Path(folder, "aggregator.sqlite")), packets)}
    if asked.url:
        from aggregator.store.postgres import PostgresDatabase

        figures["postgres"] = await measured(PostgresDatabase(asked.url), packets)
    json.dump(figures, sys.stdout, indent=1)


if __name__ == "__main__":
    asyncio.run(main())
