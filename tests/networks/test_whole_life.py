"""The whole life of a study with 10,000 members, and in the soak with 100,000: real programs, real tokens, real peers.

The driver is `benchmarks.life`. Its own rules are tested with less.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve

from anon.crypto import labels
from anon.transparency.documents import body_digest
from anon.wire.cbor import sha256
from anon.wire.messages import credential_header
from anon.wire.replies import REPLY_BYTES, encode_reply
from benchmarks.life import live
from benchmarks.life_figures import MOST_DOWNLOADED, MOST_MIB, Outcome, Stage, compared
from benchmarks.life_http import Connection, post_all
from benchmarks.life_members import EACH, keys_of, make_enrolments, make_packets, parts_of, read_parts
from benchmarks.life_program import FileClock
from benchmarks.life_running import Memory
from benchmarks.life_study import STUDY
from tests.support.documents import read_credentials, read_roster
from tests.support.world import in_memory, published

HERE = Path("/proc/self/clear_refs")


@pytest.mark.soak
@pytest.mark.skipif(not HERE.exists(), reason="memory of other programs is read from /proc")
async def test_five_thousand_members_in_buckets_lose_nothing(tmp_path: Path) -> None:
    await _lives(tmp_path, 5_000)


@pytest.mark.soak
@pytest.mark.skipif(not HERE.exists(), reason="memory of other programs is read from /proc")
async def test_a_hundred_thousand_members_lose_nothing(tmp_path: Path) -> None:
    await _lives(tmp_path, 100_000)


async def _lives(folder: Path, members: int) -> None:
    outcome = await live(folder, members, 3, 1)
    found = (outcome.lost, outcome.strange, outcome.doubled, outcome.included)
    assert found == (0, 0, 0, 3), outcome
    synthetic = members - 3
    assert outcome.words == {
        "enrolments": Counter(accepted=synthetic),
        "packets": Counter(accepted=synthetic + -(-synthetic // 10)),
    }
    assert 0 < max(outcome.downloaded) <= MOST_DOWNLOADED and len(outcome.downloaded) == 3
    assert outcome.peak <= MOST_MIB, outcome.stages
    audit = outcome.audit
    assert (audit["verdict"], audit["findings"], audit["not_checked"]) == ("all-checked", [], [])
    assert (audit["enrolled"], audit["packets"], audit["model_checked"]) == (members, members, True)
    assert outcome.ok


def test_a_packet_that_is_lost_strange_or_doubled_is_counted() -> None:
    assert compared([b"a", b"b"], [b"b", b"a"]) == (0, 0, 0)
    assert compared([b"a", b"b"], [b"b"]) == (1, 0, 0)
    assert compared([b"a"], [b"a", b"c"]) == (0, 1, 0)
    assert compared([b"a"], [b"a", b"a"]) == (0, 0, 1)


GOOD = Outcome(
    members=20,
    stages=(Stage("sent", 1.0, 1.0, 1.0, Memory(100.0, MOST_MIB)),),
    words={"packets": Counter(accepted=18)},
    downloaded=(MOST_DOWNLOADED, 1),
    included=2,
    lost=0,
    strange=0,
    doubled=0,
    audit={"verdict": "all-checked", "enrolled": 20, "packets": 20, "model_checked": True},
)


@pytest.mark.parametrize(
    "fault",
    [
        {"lost": 1},
        {"strange": 1},
        {"doubled": 1},
        {"included": 1},
        {"downloaded": (MOST_DOWNLOADED + 1, 1)},
        {"stages": (Stage("sent", 1.0, 1.0, 1.0, Memory(100.0, MOST_MIB + 1)),)},
        {"words": {"packets": Counter(accepted=17, busy=1)}},
        {"audit": {**GOOD.audit, "verdict": "not-all-checked"}},
        {"audit": {**GOOD.audit, "packets": 19}},
        {"audit": {**GOOD.audit, "enrolled": 19}},
        {"audit": {**GOOD.audit, "model_checked": False}},
    ],
)
def test_each_fault_fails_the_whole(fault: dict[str, object]) -> None:
    assert GOOD.ok
    assert not evolve(GOOD, **fault).ok


async def test_bodies_are_posted_over_few_connections_some_twice_and_again_when_one_breaks() -> None:
    came: Counter[bytes] = Counter()
    connections = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        for number in range(100):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"POST /v1/study/packets HTTP/1.1\r\n")
            came[await reader.readexactly(1)] += 1
            if number == 3:
                break  # the answer to this one is lost
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % REPLY_BYTES + encode_reply("accepted"))
        writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        bodies = [bytes([number]) for number in range(20)]
        words = await post_all(port, "/v1/study/packets", bodies, 3, lambda number: number % 10 == 0)
        assert words == Counter(accepted=22)
        assert came.keys() == set(bodies) and came.total() > 22
        assert len(connections) < 12
        refusing = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await Connection(refusing.sockets[0].getsockname()[1]).post("/v1/study/packets", b"1")
        refusing.close()
        for writer in connections:
            writer.close()


def test_a_clock_in_a_file_is_read_by_all_who_open_it(tmp_path: Path) -> None:
    clock = FileClock(tmp_path / "clock", 5.0)
    other = FileClock(tmp_path / "clock")
    clock.set(7.5)
    assert (clock(), other()) == (7.5, 7.5)


def test_members_are_made_in_parts() -> None:
    assert parts_of(2 * EACH + 1) == [EACH, EACH, 1]


@pytest.mark.slow
async def test_members_made_by_a_driver_enrol_and_send(tmp_path: Path) -> None:
    """The aggregator checks each commitment, draw and token. Tables that the members share change nothing."""
    async with in_memory(tmp_path / "home", STUDY.format(members=20)) as world:
        study, manifest = world.live, world.live.manifest.to_bytes()
        for number, count in enumerate((18, 2)):
            make_enrolments(tmp_path, number, manifest, count)
        posts = [*read_parts(tmp_path, "enrolments", [18, 2])]
        assert {await study.enrol(post) for post in posts} == {"accepted"} and len(posts) == 20
        await world.close_enrolment([])
        documents = await published(study)
        roster = read_roster(documents["roster", 0], study.study)
        issued = read_credentials(documents["credentials", 0], study.study)
        signatures = {entry.key: signature for entry, signature in zip(roster, issued, strict=True)}
        header = credential_header(study.study, body_digest(documents["roster", 0]))
        assert study.packet_intake.issued is not None
        for number in range(2):
            own = {key: signatures[key] for key in keys_of(tmp_path, number)}
            make_packets(tmp_path, number, manifest, header, study.packet_intake.issued.seed, own)
        await world.go_to(world.opens)
        sealed = [*read_parts(tmp_path, "packets", [18, 2])]
        assert [await study.submit(packet) for packet in sealed] == ["accepted"] * 20
        kept = await world.rows("SELECT plaintext FROM packets")
        digests = [sha256(labels.PACKET_DIGEST, packet) for (packet,) in kept]
        assert compared(read_parts(tmp_path, "digests", [18, 2]), digests) == (0, 0, 0)
