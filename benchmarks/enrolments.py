"""The event loop's time for an enrolment, and for a tick beside many of them.

    python -m benchmarks.enrolments [--posts 1024] [--enrolled 0,100000]

Real enrolments of one study by invite, sealed beforehand, come in together as from a server's connections. Rows of
invented members stand in the store before them. Processor time of the thread with the event loop is told from that of
the whole process and of its one worker. Prints a table and writes benchmarks/out/enrolments.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from nacl.signing import SigningKey

from aggregator.app import AggregatorApp
from aggregator.study.live import LiveStudy
from anon.credential import commit
from anon.protocols.posts import sealed_enrolment
from anon.wire.invite import Invite, invite_hash
from anon.wire.messages import Enrolment, sign_enrolment
from benchmarks.figures import Figure, publish
from benchmarks.server import STUDY, cpu_seconds
from examples.protocols import PROTOCOLS

AT_ONCE = 512
TICKS = 21


def post(live: LiveStudy, invite: Invite) -> bytes:
    """One member's enrolment, sealed."""
    key, secrets = SigningKey(os.urandom(32)), commit(live.manifest.packets, os.urandom)
    code, proof = invite_hash(live.study, invite.code), secrets.commitment_with_proof
    one = Enrolment(live.study, bytes(key.verify_key), os.urandom(32), proof, code)
    return sealed_enrolment(live.manifest, sign_enrolment(one, key))


def invent(database: Path, study: bytes, count: int) -> None:
    """Rows of `count` members whom nobody is."""
    keys = sorted(os.urandom(32) for _ in range(count))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO enrolments (study, key, contribution, commitment, digest, sound) VALUES (?, ?, ?, ?, ?, ?)",
            ((study, key, bytes(32), bytes(176), key, key) for key in keys),
        )
        connection.execute("DELETE FROM enrolled")


async def measure(home: Path, posts: int, enrolled: int) -> Figure:
    """Milliseconds of one enrolment, and of one tick while enrolment is open."""
    async with AggregatorApp(home, processes=1, protocols=PROTOCOLS) as app:
        text = STUDY.replace('admission = "open"', 'admission = "invite"\nmaximum = 150000')
        live = app.study((await app.create_study(PROTOCOLS.proposal(text.replace('"100s"', '"1h"')))).study_id)
        invent(app.home.database, live.study, enrolled)
        invites = await app.create_invites(live.study, posts + AT_ONCE, "127.0.0.1:1")
        made = [post(live, invite) for invite in invites]
        await asyncio.gather(*(live.enrol(one) for one in made[:AT_ONCE]))  # the worker process starts
        before, loop, wall = cpu_seconds(os.getpid()), time.thread_time(), time.perf_counter()
        own = time.process_time()
        for start in range(AT_ONCE, len(made), AT_ONCE):
            words = await asyncio.gather(*(live.enrol(one) for one in made[start : start + AT_ONCE]))
            assert set(words) == {"accepted"}, set(words)
        each = {
            "loop_ms": time.thread_time() - loop,
            "process_ms": time.process_time() - own,
            "with_worker_ms": cpu_seconds(os.getpid()) - before,
            "wall_ms": time.perf_counter() - wall,
        }
        ticks = [await _tick(app) for _ in range(TICKS)][1:]
        assert await live.tools.enrolments.enrolled(live.study) == enrolled + len(made)
    row: Figure = {"enrolled_before": enrolled, "posts": posts}
    row |= {name: round(1e3 * seconds / posts, 3) for name, seconds in each.items()}
    return row | {"tick_cpu_ms": round(1e3 * median(ticks), 2)}


async def _tick(app: AggregatorApp) -> float:
    before = time.process_time()
    await app.tick()
    return time.process_time() - before


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=1024)
    parser.add_argument("--enrolled", default="0,100000", help="how many stand in the store before, for each row")
    options = parser.parse_args()
    rows = []
    for enrolled in map(int, options.enrolled.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(measure(Path(folder) / "home", options.posts, enrolled)))
    publish("enrolments", rows, {"load": round(os.getloadavg()[0], 1)})


if __name__ == "__main__":
    main()
