"""Made-up people rehearse a study on one machine. A study that others can reach is refused, and one that is not
served."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from attrs import define, field

from aggregator.app import AggregatorApp
from aggregator.network.onion_address import onion_addresses
from anon.errors import Refused
from anon.ldp import nano
from anon.protocols.resolve import resolve
from anon.wire.invite import Invite
from examples.rehearsal import _invited, _live, _settled, outcome
from peer.app import PeerApp
from peer.rules.consent import explain
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.home import PeerHome
from peer.store.records import OutboxEntry
from peer.store.summaries import StudyStatus
from tests.support.command_line import anonml, attempt, finish, start
from tests.support.protocols import PROTOCOLS, parse_proposal
from tests.support.sums import KEYS, MOMENTS, sum_study
from tests.support.world import study_text


@pytest.mark.parametrize(("onion", "said"), [(True, "others can reach this study"), (False, "nothing serves")])
async def test_a_study_of_others_and_one_that_nothing_serves_are_refused(
    tmp_path: Path, onion: bool, said: str
) -> None:
    async with AggregatorApp(tmp_path, processes=0) as app:
        named = onion_addresses(app.home, os.urandom) if onion else ""
        await app.create_study(PROTOCOLS.proposal(study_text()), named)
    with pytest.raises(Refused, match=said):
        await _invited(tmp_path, "", 0)


async def test_more_people_than_the_times_allow_are_refused_and_the_only_open_study_is_taken(tmp_path: Path) -> None:
    async with AggregatorApp(tmp_path, processes=0) as app:
        await app.create_study(PROTOCOLS.proposal(study_text().replace('enrol = "100s"', 'enrol = "1h"')), "")
        with app.home.place("127.0.0.1:8750"), pytest.raises(Refused, match="take at most --people 100,"):
            await _invited(tmp_path, "", 101)


@pytest.mark.parametrize("text", [study_text(minimum=3), sum_study(MOMENTS)], ids=["histogram", "sum"])
@pytest.mark.slow
def test_limits_and_rows_of_made_up_people_suit_the_study(tmp_path: Path, text: str) -> None:
    manifest = resolve(parse_proposal(text), KEYS, 1_800_000_000)
    invite = Invite("127.0.0.1:8080", key=bytes(32), study=bytes(32), code="")
    for number, peer in enumerate(_settled(tmp_path, [invite] * 3, manifest)):
        assert explain(manifest, peer.policy(), peer.budget(), 1_800_000_000).objections == ()
        peer.close()
        with closing(sqlite3.connect(PeerHome(tmp_path / str(number)).data_path)) as data:
            assert data.execute(f"SELECT count(*) FROM {manifest.tables[0].name}").fetchone() == (1,)


@pytest.mark.soak
@pytest.mark.process
async def test_made_up_people_bring_a_study_to_its_report(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "study.toml"
    lengths = study_text(minimum=3).replace('"100s"', '"15s"').replace('enrol = "15s"', 'enrol = "120s"')
    file.write_text(lengths)
    await anonml("study", "publish", file, "--loopback", "--home", home)
    serving = await start("aggregator", "serve", "--until-published", "--port", "0", "--home", home)
    assert serving.stdout is not None
    while b"serving at" not in await serving.stdout.readline():
        pass
    done = await attempt("study", "rehearse", "--people", "4", "--home", home)
    assert done.code == 0 and "4 made-up people take part" in done.out and "stopped" not in done.out, done
    assert "published" in (await finish(serving)).out
    await attempt("aggregator", "report", tmp_path / "report.html", "--home", home)
    assert (tmp_path / "report.html").stat().st_size


@define
class MadeUpPerson:
    """Says yes at once, and is done when it was looked at twice after that."""

    ended: asyncio.Event
    found: list[StudyStatus] = field(factory=list)

    async def manifest(self, _: Invite) -> None:
        """Nothing is asked of it."""

    async def join(self, *_: object) -> None:
        """A study whose one packet has left."""
        slot = OutboxEntry(0, 0, nano(1), None, None, 0.0, 1, Status.DELIVERED, "accepted")
        self.found.append(StudyStatus(bytes(32), "", State.CHECKED, "", nano(1), nano(1), (slot,)))

    async def run(self, _: float) -> None:
        """Until somebody saw it."""
        await self.ended.wait()

    def status(self) -> list[StudyStatus]:
        """Its study."""
        return self.found


def test_a_rehearsal_promises_no_report_that_is_not_there() -> None:
    said, code = outcome({"finished": 60}, "published")
    assert code == 0 and "The report is on the desk" in said
    for ended, phase in (({"finished": 60}, "ended"), ({"finished": 58, "ended": 2}, "published")):
        said, code = outcome(ended, phase)
        assert code == 1 and "The report" not in said and "says why" in said


async def test_a_rehearsal_tells_how_many_joined_and_how_many_packets_left() -> None:
    told, ended = list[str](), asyncio.Event()

    def progress(line: str) -> None:
        told.append(line)
        if "packets" in line:
            ended.set()

    manifest = resolve(parse_proposal(sum_study(MOMENTS)), KEYS, 1_800_000_000)
    peers = cast(Sequence[PeerApp], [MadeUpPerson(ended), MadeUpPerson(ended)])
    await _live(peers, [Invite("127.0.0.1:8080", key=bytes(32), study=bytes(32), code="")] * 2, manifest, progress)
    said = ["0 of 2 have said yes", "1 of 2 have said yes", "of 2 people 2 enrolled; 2 packets sent; 0 are done", ""]
    assert told == said
