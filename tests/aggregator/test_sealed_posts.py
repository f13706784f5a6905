"""Packets of version 2: exact sums, each refusal one case, and phones; a packet of the other version is none of the
study's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from aggregator.audit import audit_documents
from aggregator.rules.lifecycle import Phase
from aggregator.study.publish import prepare
from anon.crypto.pure import sealing as pure
from anon.crypto.sealing.opening import Opener
from anon.protocols import posts
from anon.transparency.transcript import parse_transcript
from anon.wire import packets
from anon.wire.packets import Packet, enrolment_info, packet_info, parse_published
from examples.testing import all_contents
from peer.rules.packet_lifecycle import Status
from tests.peer.test_exact_release import STUDY as EXACT
from tests.support import exact_sum
from tests.support.documents import contents_of
from tests.support.fake_aggregator import DECLARED, PAPER
from tests.support.protocols import parse_proposal, with_toy
from tests.support.world import FakePeer, World, has, in_memory, published, sealed, study_text


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("text", [DECLARED, PAPER], ids=["one-packet", "paper"])
def test_every_new_study_is_sealed_to_by_hpke(text: str) -> None:
    """So recorded traffic stays closed, and the key that opens it is kept as X-Wing's seed."""
    manifest, secrets = prepare(parse_proposal(text), bytes(32), 1_800_000_000, os.urandom, lambda below: 0)
    assert manifest.sealing_key == Opener(secrets.sealing_key).public_key


# Exact sums


PROTOCOLS = with_toy(exact_sum.PROTOCOL)


async def _collecting(running: World) -> list[FakePeer]:
    """Three members, and the first round's window open."""
    peers = await running.enrol(3)
    await running.close_enrolment(peers)
    await running.go_to(running.windows[0].opens)
    return peers


SHARES: dict[str, tuple[str, Callable[[FakePeer, Packet], Packet]]] = {
    "a share of another length": (
        "malformed",
        lambda p, k: p.signed(evolve(k, shares=(k.shares[0][:-1], k.shares[1] + b"\0"))),
    ),
    "a share too few": ("malformed", lambda p, k: p.signed(evolve(k, shares=k.shares[:1]))),
    "shares in another order": ("rejected-proof", lambda p, k: evolve(k, shares=k.shares[::-1])),
    "a bit flipped in a share": (
        "rejected-proof",
        lambda p, k: evolve(k, shares=(_flip(k.shares[0], 1130), k.shares[1])),
    ),
    "replayed in the next slot and round": (
        "rejected-proof",
        lambda p, k: evolve(k, occasion=evolve(k.occasion, round=1, slot=1), survey=1),
    ),
    "replayed in the next slot": ("unknown-slot", lambda p, k: evolve(k, occasion=evolve(k.occasion, slot=1))),
    "replayed in the next round": ("unknown-slot", lambda p, k: evolve(k, occasion=evolve(k.occasion, round=1))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARES)
async def test_bad_shares_are_refused(tmp_path: Path, name: str) -> None:
    async with in_memory(tmp_path / "home", EXACT, protocols=PROTOCOLS) as running:
        (peer, *_) = await _collecting(running)
        word, change = SHARES[name]
        good = exact_sum.packet(peer, (1, 1))
        bad = change(peer, good)
        if bad.occasion.slot == 1 and word == "rejected-proof":
            await running.go_to(running.live.manifest.survey(1).window.opens)
        assert await running.live.submit(sealed(running.live, bad)) == word
        assert await running.app._tools.packets.counts(running.live.study) == {}


@pytest.mark.slow
async def test_a_study_of_exact_sums_keeps_relays_and_never_publishes_shares(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", EXACT, protocols=PROTOCOLS) as running:
        live, store = running.live, running.app._tools.packets
        peers = await _collecting(running)
        shares: list[bytes] = []
        for survey in live.manifest.surveys:
            await running.go_to(survey.window.opens)
            for number, peer in enumerate(peers):
                packet = exact_sum.packet(peer, (number % 2, 1), slot=survey.survey)
                assert await live.submit(sealed(live, packet)) == "accepted"
                shares += packet.shares
            shown = [
                [one async for one in store.relayed(live.study, survey.survey, survey.survey, recipient)]
                for recipient in (0, 1)
            ]
            assert [one.tag for one in shown[0]] == sorted(one.tag for one in shown[1])
            assert exact_sum.added(shown) == [1, 3]
            await running.go_to(survey.window.closes)
        assert has(live, "transcript", 1) and has(live, "seed", 1)  # the toy has no report of its own
        documents = await published(live)
        assert not any(share in body for share in shares for body in documents.values())
        for content in await contents_of(live, "transcript"):
            assert not any(share in content for share in shares)
            _, plaintexts = parse_transcript(content, live.study)
            assert [len(parse_published(one).digests) for one in plaintexts] == [2, 2, 2]
        numbered = {one.head.number: await live.body_of(one.head) for one in live.chain}
        result = audit_documents(live.heads(), numbered, contents=await all_contents(live), protocols=PROTOCOLS)
        assert result.ok and result.packets == 6, result.lines()
        await running.go_to(live.manifest.timetable.ends + live.manifest.release.retention + 1)
        assert live.phase is Phase.ERASED
        assert [one async for one in store.relayed(live.study, 0, 0, 0)] == []


@pytest.mark.slow
async def test_what_a_phone_seals_in_python_alone_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real peers from joining to inclusion; each seal of theirs is the one that phones have."""
    sealed_in_python: list[bytes] = []

    def seal_as_a_phone(plaintext: bytes, public_key: bytes, info: bytes) -> bytes:
        sealed_in_python.append(info)
        return pure.seal(plaintext, public_key, info)

    monkeypatch.setattr(packets, "seal", seal_as_a_phone)
    monkeypatch.setattr(posts, "seal", seal_as_a_phone)
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=2)) as running:
        study = running.live.study
        await running.settle_in(2)
        await running.go_on()
        assert set(sealed_in_python) == {packet_info(study), enrolment_info(study)}
        posts_of_packets = [one for route in running.routes for one in route.packets()]
        assert {len(one.body or b"") for one in posts_of_packets} == {
            running.live.packet_intake.rules.layout.sealed_size
        }
        assert {one.answer for one in posts_of_packets} == {b"accepted".ljust(64)}
        for app in running.peers:
            assert [slot.status for slot in app.status()[0].slots] == [Status.INCLUDED]
