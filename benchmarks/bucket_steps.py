"""Each step of a study in buckets by itself, on synthetic members and packets: CPU time, and memory of the process.

    python -m benchmarks.bucket_steps --members 100000 --members 1000000 --folder FOLDER [--sums]

A home is filled with members of one commitment and with packets of random tags, one each. Then every step runs in a
process of its own on that home, so that its peak of memory is its own. No key is behind them: signatures of
credentials are random bytes, and so are tokens. The audit therefore finds every one of them bad, and takes less time
than for good ones (`benchmarks.tokens`, `benchmarks.credentials`). Memory does not depend on it.

`--sums`: a study of exact sums, 25 features of ten categories and so 500 cells. Its two tellers are real ones while it
is published. They are shown no vector: their lists and noisy shares are signed with their keys, over all packets and
random numbers. `benchmarks.life_sums` has real ones.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.app import AggregatorApp
from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from aggregator.desk.archive import archive
from aggregator.intake.packets import RosterValues
from aggregator.rules.accepted import AcceptedPacket
from aggregator.rules.enrolled import StoredEnrolment
from aggregator.study import bucketing, effects
from aggregator.study.live import LiveStudy
from anon.credential import SIGNATURE_SIZE, commit, token_size
from anon.crypto import labels
from anon.ldp import RawCategory
from anon.protocols.sortition import draw, occasion_of
from anon.protocols.tellers import tellers_of
from anon.sharing.round_document import RoundSums, SlotSum
from anon.sharing.statements import AcceptedList, ListSignature, NoisyShare
from anon.study.manifest import Manifest
from anon.teller.home import open_home
from anon.wire.cbor import sha256
from anon.wire.packets import PublishedPacket
from benchmarks.server import STUDY
from benchmarks.tellers import NAMES, named, study_text, tellers
from examples.protocols import PROTOCOLS

_AT_ONCE = 5000
TEXT = STUDY.replace('admission = "open"', 'admission = "open"\nmaximum = 1000000')
Step = Callable[[LiveStudy, Path], Awaitable[None]]


def main() -> None:
    """One line for each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, action="append", default=[])
    parser.add_argument("--sums", action="store_true", help="a study of exact sums")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    told = parser.parse_args()
    for members in told.members or [10_000]:
        folder = told.folder / f"bucket-steps-{members}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in STEPS:
            if told.sums or name != "sums":
                _in_a_process(folder, members, name, told.sums)
        shutil.rmtree(folder)


def _in_a_process(folder: Path, members: int, name: str, sums: bool) -> None:
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(target=_measured, args=(folder, members, name, sums, sending))
    child.start()
    sending.close()
    seconds, before, peak = receiving.recv()
    child.join()
    took = f"{seconds:7.1f} s of CPU, peak {peak:5.0f} MB ({before:4.0f} at its start)"
    print(f"{members:9,} {name:12}: {took}", flush=True)


def _measured(folder: Path, members: int, name: str, sums: bool, sending: Connection) -> None:
    bucketing.issue_to = _issued_by_nobody
    before, start, figures = _peak(), time.process_time(), []

    async def run() -> None:
        async with AggregatorApp(folder / "home", processes=0, protocols=PROTOCOLS) as app:
            if name == "members":
                live = app.study((await _created(app, folder, sums, members)).study_id)
                _enrol(app.home.database, live, members)
            else:
                (live,) = app.studies()
                await STEPS[name](live, folder)
            figures.append((time.process_time() - start, before, _peak()))

    asyncio.run(run())
    sending.send(figures[0])


async def _created(app: AggregatorApp, folder: Path, sums: bool, members: int) -> Manifest:
    if not sums:
        return await app.create_study(PROTOCOLS.proposal(TEXT))
    text = study_text("tables-sum", named(folder), cohort=(20, members))
    with tellers(folder):
        return await app.create_study(PROTOCOLS.proposal(text))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _issued_by_nobody(study: LiveStudy, issued: RosterValues, enrolled: Sequence[StoredEnrolment]) -> list[bytes]:
    return [os.urandom(SIGNATURE_SIZE) for _ in enrolled]


def _enrol(database: Path, live: LiveStudy, members: int) -> None:
    proof = commit(live.manifest.packets, os.urandom).commitment_with_proof
    rows = (_row(live.study, StoredEnrolment(os.urandom(32), os.urandom(32), proof)) for _ in range(members))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO enrolments (study, key, contribution, commitment, digest, sound) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )


def _row(study: bytes, one: StoredEnrolment) -> tuple[bytes, ...]:
    return study, one.key, one.contribution, one.commitment, os.urandom(32), one.check()


def _packet(manifest: Manifest, seed: bytes) -> AcceptedPacket:
    tag = os.urandom(48)
    token = tag + bytes(token_size(manifest.packets) - len(tag))
    survey = manifest.survey(draw(manifest.slots[0], seed, tag))
    digests: tuple[bytes, ...] = ()
    if (arrangement := tellers_of(manifest)) is None:
        report = bytes(survey.build().perturb(RawCategory(tag[0] % survey.m, survey.m), os.urandom))
    else:
        report, digests = os.urandom(arrangement.public_size), (os.urandom(32), os.urandom(32))
    plaintext = PublishedPacket(occasion_of(manifest, 0), survey.survey, report, digests, token).to_bytes()
    return AcceptedPacket(0, tag, survey.survey, plaintext, sha256(labels.PACKET_DIGEST, plaintext))


async def _members(live: LiveStudy, folder: Path) -> None:
    raise AssertionError("the first step makes the study itself")


async def _roster(live: LiveStudy, folder: Path) -> None:
    await effects.publish_roster(live)
    await effects.reveal_seed(live)


async def _credentials(live: LiveStudy, folder: Path) -> None:
    await effects.issue_credentials(live)


async def _packets(live: LiveStudy, folder: Path) -> None:
    issued = live.packet_intake.issued
    assert issued is not None
    for start in range(0, live.rostered, _AT_ONCE):
        some = min(_AT_ONCE, live.rostered - start)
        await live.tools.packets.insert(live.study, [_packet(live.manifest, issued.seed) for _ in range(some)])


async def _compaction(live: LiveStudy, folder: Path) -> None:
    await live.tools.packets.compact(live.study)


async def _sums(live: LiveStudy, folder: Path) -> None:
    arrangement, occasion = tellers_of(live.manifest), occasion_of(live.manifest, 0)
    assert arrangement is not None and live.tellers is not None
    laid = await live.tools.packets.tags(live.study, 0, [0])
    listed = AcceptedList(occasion, tuple(laid[at : at + 48] for at in range(0, len(laid), 48)))
    keys = [open_home(folder / name, os.urandom).key for name in NAMES]
    share = bytes(16 * live.manifest.survey(0).m)
    signed = [ListSignature(occasion, number, listed.digest()).sign(key) for number, key in enumerate(keys)]
    noisy = [NoisyShare(occasion, number, listed.digest(), share).sign(key) for number, key in enumerate(keys)]
    slot = SlotSum(0, listed.to_bytes(), tuple(signed), tuple(noisy))
    live.tellers.summed[0] = RoundSums(live.study, 0, (slot,)).to_bytes()
    await effects.publish_counts(live)


async def _transcripts(live: LiveStudy, folder: Path) -> None:
    await effects.publish_transcripts(live)
    await effects.reveal_score_value(live)


async def _model(live: LiveStudy, folder: Path) -> None:
    await effects.publish_model(live)


async def _export(live: LiveStudy, folder: Path) -> None:
    await export_study(live, folder / "published")


async def _archive(live: LiveStudy, folder: Path) -> None:
    with (folder / "study.zip").open("wb") as packed:
        archive(folder / "published", packed)
    (folder / "study.zip").unlink()


async def _audit(live: LiveStudy, folder: Path) -> None:
    result = audit(folder / "published")
    assert result.model_checked and result.report_checked and result.packets == live.rostered, result.lines()[:5]


STEPS: dict[str, Step] = {
    "members": _members,
    "roster": _roster,
    "credentials": _credentials,
    "packets": _packets,
    "compaction": _compaction,
    "sums": _sums,
    "transcripts": _transcripts,
    "model": _model,
    "export": _export,
    "archive": _archive,
    "audit": _audit,
}

if __name__ == "__main__":
    main()
