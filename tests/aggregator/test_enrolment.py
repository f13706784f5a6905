"""Admission: once per invite, the same answer for the same bytes, and a door that closes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from aggregator.store import enrolments
from anon.credential import commit
from anon.crypto.sealing import OVERHEAD
from tests.support.documents import read_roster
from tests.support.packets import boxed
from tests.support.world import FakePeer, World, in_memory, published, study_text


def _sealed(running: World, plaintext: bytes) -> bytes:
    return boxed(running.live.manifest, "enrol", plaintext)


@pytest.fixture
def running(on_each_dialect: World) -> World:
    """Every test here runs over each dialect."""
    return on_each_dialect


@pytest.mark.slow
async def test_the_same_bytes_are_accepted_again_also_after_closing(running: World) -> None:
    peer, other = await running.enrol(2)
    assert await running.live.enrol(peer.sealed_enrolment()) == "accepted"
    await running.close_enrolment([peer, other])
    assert await running.live.enrol(peer.sealed_enrolment()) == "accepted"
    assert len(read_roster((await published(running.live))["roster", 0], running.live.study)) == 2


async def test_the_same_key_with_other_bytes_is_refused(running: World) -> None:
    (peer,) = await running.enrol(1)
    peer.contribution = os.urandom(32)
    assert await running.live.enrol(peer.sealed_enrolment()) == "already-enrolled-differently"


async def test_an_invite_admits_once(running: World) -> None:
    await running.enrol(1)
    again = FakePeer(running.live.manifest, running.invites[0].code)
    assert await running.live.enrol(again.sealed_enrolment()) == "invite-spent"


@pytest.mark.parametrize("code", ["", "guessed"])
async def test_an_unknown_invite_is_refused(running: World, code: str) -> None:
    assert await running.live.enrol(FakePeer(running.live.manifest, code).sealed_enrolment()) == "unknown-invite"


@pytest.mark.slow
async def test_nobody_new_after_closing(running: World) -> None:
    peers = await running.enrol(2)
    late = FakePeer(running.live.manifest, running.invites[5].code)
    running.clock.seconds = running.live.manifest.timetable.enrol_closes
    assert await running.live.enrol(late.sealed_enrolment()) == "enrolment-closed"
    await running.close_enrolment(peers)
    running.clock.seconds = running.live.manifest.timetable.enrol_closes - 50
    assert await running.live.enrol(late.sealed_enrolment()) == "enrolment-closed", "the clock went back"


async def test_who_leaves_frees_the_invite_and_no_late_copy_enrols_again(running: World) -> None:
    peer, _ = await running.enrol(2)
    copy = peer.sealed_enrolment()
    assert await running.live.withdraw(peer.sealed_withdrawal()) == "withdrawn"
    assert await running.live.withdraw(peer.sealed_withdrawal()) == "withdrawn"
    assert await running.live.enrol(copy) == "not-enrolled"
    successor = FakePeer(running.live.manifest, peer.code)
    assert await running.live.enrol(successor.sealed_enrolment()) == "accepted"


async def test_a_withdrawal_frees_the_leavers_invite_and_no_other(running: World) -> None:
    leaver, member = await running.enrol(2)
    assert await running.live.withdraw(leaver.sealed_withdrawal()) == "withdrawn"
    thief = FakePeer(running.live.manifest, member.code)
    assert await running.live.enrol(thief.sealed_enrolment()) == "invite-spent"


async def test_erasure_leaves_no_row_about_who_enrolled_or_left(running: World) -> None:
    leaver, _member = await running.enrol(2)
    assert await running.live.withdraw(leaver.sealed_withdrawal()) == "withdrawn"
    await running.app._tools.enrolments.erase(running.live.study)
    about_members = ("enrolments", "invites", "listed_keys", "withdrawals", "enrolled")
    assert set(about_members) == set(enrolments.TABLES.tables)
    assert [await running.rows(f"SELECT count(*) FROM {name}") for name in about_members] == [[(0,)]] * 5


@pytest.mark.slow
async def test_a_withdrawal_that_overtakes_its_enrolment_strikes_the_key_off(running: World) -> None:
    first, second = await running.enrol(2)
    hasty = FakePeer(running.live.manifest, running.invites[2].code)
    assert await running.live.withdraw(hasty.sealed_withdrawal()) == "withdrawn"
    assert await running.live.enrol(hasty.sealed_enrolment()) == "not-enrolled"
    successor = FakePeer(running.live.manifest, hasty.code)
    assert await running.live.enrol(successor.sealed_enrolment()) == "accepted", "its invite is still free"
    await running.close_enrolment([first, second, successor])
    roster = read_roster((await published(running.live))["roster", 0], running.live.study)
    assert bytes(hasty.key.verify_key) not in {entry.key for entry in roster}


async def test_a_withdrawal_while_the_enrolments_proof_is_checked_strikes_the_key_off(running: World) -> None:
    hasty = FakePeer(running.live.manifest, running.invites[0].code)
    enrolling = asyncio.create_task(running.live.enrol(hasty.sealed_enrolment()))
    await asyncio.sleep(0)
    assert await running.live.withdraw(hasty.sealed_withdrawal()) == "withdrawn"
    assert await enrolling == "not-enrolled"
    assert await running.app._tools.enrolments.count(running.live.study) == 0


@pytest.mark.slow
async def test_a_flood_of_invented_withdrawals_is_bounded_and_hinders_no_member(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.rules.enrol.MOST_REMEMBERED", 5)
    (member,) = await running.enrol(1)
    words = [
        await running.live.withdraw(FakePeer(running.live.manifest).sealed_withdrawal()) for _ in range(8)
    ]
    assert words == ["withdrawn"] * 5 + ["busy"] * 3
    hasty = FakePeer(running.live.manifest, running.invites[1].code)
    assert await running.live.withdraw(hasty.sealed_withdrawal()) == "busy"  # and so it comes again
    assert await running.live.enrol(hasty.sealed_enrolment()) == "accepted"
    assert await running.live.withdraw(hasty.sealed_withdrawal()) == "withdrawn"
    assert await running.live.withdraw(member.sealed_withdrawal()) == "withdrawn"
    assert await running.app._tools.enrolments.count(running.live.study) == 0


@pytest.mark.slow
async def test_leaving_is_for_members_before_closing(running: World) -> None:
    peers = await running.enrol(2)
    stranger = FakePeer(running.live.manifest)
    await running.close_enrolment(peers)
    assert await running.live.withdraw(stranger.sealed_withdrawal()) == "not-enrolled"
    assert await running.live.withdraw(peers[0].sealed_withdrawal()) == "enrolment-closed"


async def test_bad_enrolments_are_refused_by_name(running: World) -> None:
    live, peer = running.live, FakePeer(running.live.manifest, running.invites[0].code)
    good = peer.enrolment()
    wrong_proof = bytearray(peer.secrets.commitment_with_proof)
    wrong_proof[-1] ^= 1
    too_many = commit(2, os.urandom).commitment_with_proof
    cases = {
        "wrong-size": [b"", bytes(OVERHEAD), bytes(10_000)],
        "sealed-to-another-key": [os.urandom(OVERHEAD + 400)],
        "malformed": [
            _sealed(running, good[:-1]),
            _sealed(running, good + b"\0"),
            _sealed(running, peer.enrolment(too_many)),
            _sealed(running, peer.enrolment(study=bytes(32))),
            _sealed(running, peer.enrolment(peer.secrets.commitment_with_proof[:-32])),
        ],
        "rejected-proof": [
            _sealed(running, good[:-1] + bytes([good[-1] ^ 1])),
            _sealed(running, peer.enrolment(bytes(wrong_proof))),
            _sealed(running, peer.enrolment(bytes(48) + peer.secrets.commitment_with_proof[48:])),
        ],
    }
    for word, posts in cases.items():
        for post in posts:
            assert await live.enrol(post) == word
    assert await live.enrol(_sealed(running, good)) == "accepted", "none of them spent the invite"


async def test_a_full_roster_turns_away(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text(maximum=2)) as running:
        await running.enrol(2)
        third = FakePeer(running.live.manifest, running.invites[2].code)
        assert await running.live.enrol(third.sealed_enrolment()) == "roster-full"


async def test_a_list_of_keys_admits_only_those(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text(admission="allow-list")) as running:
        listed, stranger = FakePeer(running.live.manifest), FakePeer(running.live.manifest)
        await running.app.list_keys(running.live.study, [bytes(listed.key.verify_key)])
        assert await running.live.enrol(listed.sealed_enrolment()) == "accepted"
        assert await running.live.enrol(stranger.sealed_enrolment()) == "key-not-listed"


async def test_open_admission_takes_anyone(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text(admission="open")) as running:
        assert await running.live.enrol(FakePeer(running.live.manifest).sealed_enrolment()) == "accepted"


@pytest.mark.parametrize("database_url", [""])
async def test_nothing_stored_names_an_invite_code(running: World) -> None:
    await running.enrol(1)
    stored = b"".join(one.read_bytes() for one in running.app.home.path.glob("aggregator.sqlite*"))
    assert not any(invite.code.encode() in stored for invite in running.invites)
