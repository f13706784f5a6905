"""Packets accepted a second, and processor time for each, by `serve --workers N` on a PostgreSQL server.

    python -m benchmarks.workers --url URL [--workers 1 2 4] [--rate 1000] [--packets 2000] [--processes 0]

URL: an empty database of a server on this machine; it is emptied after each row. The packets are those of
`benchmarks.load`, prepared beforehand and offered faster than they can be taken. Clients, processes and database share
the cores: a row says what they do together, and its processor times what each part would take of a machine of its own.
Prints a table and writes benchmarks/out/workers.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import text

from aggregator.store.dialects import TABLES
from aggregator.store.home import open_home
from aggregator.store.moving import move
from aggregator.store.postgres import PostgresDatabase
from benchmarks.figures import Figure, publish
from benchmarks.load import KEPT, WARM_UP, Made, load_kept, missing_and_doubled, offer, peak_memory, prepare, quantile
from benchmarks.server import cpu_seconds, post

WARM_RATE = 100.0


async def measure(options: argparse.Namespace) -> list[Figure]:
    """One row for each number of processes."""
    count, folder = options.packets + WARM_UP * max(options.workers), options.kept / "study"
    kept = load_kept(folder, count)
    if kept is None:
        start = time.perf_counter()
        await prepare(folder, count)
        print(f"{count} members and packets made in {time.perf_counter() - start:.0f} s")
        kept = load_kept(folder, count)
        if kept is None:
            raise RuntimeError("what was prepared cannot be read")
    return [await _served(options, folder / "home", *kept, workers) for workers in options.workers]


async def _served(options: argparse.Namespace, prepared: Path, study: str, made: list[Made], workers: int) -> Figure:
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        shutil.copytree(prepared, home)
        await move(open_home(home, os.urandom), options.url)
        database = PostgresDatabase(options.url)
        command = [sys.executable, "-m", "anonml", "aggregator", "serve", "--home", str(home), "--port", "0", "--json"]
        more = ["--workers", str(workers), "--processes", str(options.processes)]
        server = await asyncio.create_subprocess_exec(*command, *more, stdout=subprocess.PIPE)
        try:
            if server.stdout is None:
                raise RuntimeError("the server has no output")
            port = int(str(json.loads(await server.stdout.readline())["address"]).rpartition(":")[2])
            await all_there(database, workers)

            def send(packet: bytes) -> asyncio.Future[str]:
                return asyncio.ensure_future(post(port, f"/v1/{study}/packets", packet))

            row, accepted = await offered(options, database, [server.pid], send, made, workers)
        finally:
            server.send_signal(signal.SIGTERM)
            await server.wait()
        faults = await compared(database, accepted)
        await _emptied(database)
        return {"workers": workers} | row | faults


async def compared(database: PostgresDatabase, accepted: list[bytes]) -> Figure:
    """How many of the accepted packets are not in the database, and how many rows are there twice."""
    async with database.read() as connection:
        stored = [bytes(one[0]) for one in await connection.execute(text("SELECT digest FROM packets"))]
    lost, doubled = missing_and_doubled(accepted, stored)
    return {"lost": lost, "doubled": doubled}


async def offered(
    options: argparse.Namespace,
    database: PostgresDatabase,
    pids: Sequence[int],
    send: Callable[[bytes], asyncio.Future[str]],
    made: list[Made],
    workers: int,
) -> tuple[Figure, list[bytes]]:
    """A row of these serving programs, `workers` processes in all, and the digests of all packets that they took."""
    warming = WARM_UP * workers
    warm = await offer(send, made[:warming], WARM_RATE, 0)
    postmaster = await _postmaster(database)
    before, stored_before, own = sum(map(cpu_seconds, pids)), cpu_seconds(postmaster), time.process_time()
    answered = await offer(send, made[warming : warming + options.packets], options.rate, 1)
    cpu, stored = sum(map(cpu_seconds, pids)) - before, cpu_seconds(postmaster) - stored_before
    ordered, taken = sorted(answered.latencies), len(answered.accepted)
    row: Figure = {
        "packets": sum(answered.words.values()),
        "accepted": taken,
        "again_accepted": answered.again["accepted"],
        "accepted_per_second": round(taken / answered.seconds, 1),
        "p50_ms": round(quantile(ordered, 0.5) * 1e3, 1),
        "p95_ms": round(quantile(ordered, 0.95) * 1e3, 1),
        "processes_cpu_ms_each": round(cpu / max(taken, 1) * 1e3, 3),
        "database_cpu_ms_each": round(stored / max(taken, 1) * 1e3, 3),
        "clients_cpu_ms_each": round((time.process_time() - own) / max(taken, 1) * 1e3, 3),
        "memory_mib": round(sum(map(peak_memory, pids)), 1),
        "load": round(os.getloadavg()[0], 1),
    }
    return row, [*warm.accepted, *answered.accepted]


async def all_there(database: PostgresDatabase, workers: int) -> None:
    """Wait until so many processes are connected."""
    named = text("SELECT count(DISTINCT application_name) FROM pg_stat_activity WHERE datname = current_database()")
    async with database.read() as connection:
        while int((await connection.execute(named)).scalar_one()) < workers + 1:  # this program has one
            await asyncio.sleep(0.2)
            await connection.rollback()
    await asyncio.sleep(2)


async def _postmaster(database: PostgresDatabase) -> int:
    """The parent of all processes of the database's server."""
    async with database.read() as connection:
        backend = int((await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one())
    return _parent(backend)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def _emptied(database: PostgresDatabase) -> None:
    """Without all that `move` made."""
    async with database.write() as connection:
        for group in TABLES:
            await connection.run_sync(group.drop_all)
        await connection.execute(text("DROP TABLE schema_number, origin, served"))
    await database.close()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="an empty database on a PostgreSQL server of this machine")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="processes that serve")
    parser.add_argument("--rate", type=float, default=1000.0, help="packets offered a second")
    parser.add_argument("--packets", type=int, default=2000, help="packets for each row")
    parser.add_argument("--processes", type=int, default=0, help="processes that verify, for each that serves")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where members and packets are kept for later runs")
    options = parser.parse_args()
    rows = asyncio.run(measure(options))
    about: Figure = {"offered_per_second": options.rate, "verifying_processes": options.processes}
    publish("workers", rows, {"cores": os.cpu_count(), **about})


if __name__ == "__main__":
    main()
