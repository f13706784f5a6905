"""Packets of version 2: each refusal one case; a packet of the other version is none of the study's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve

from aggregator.audit import audit_documents
from aggregator.rules.lifecycle import Phase
from anon.protocols import posts
from anon.protocols.registry import HISTOGRAM
from anon.sealing import pure
from anon.sealing import seal as hpke_seal
from anon.sealing.opening import Opener
from anon.transparency.transcript import parse_transcript
from anon.wire import packet_v2
from anon.wire.cbor import encode
from anon.wire.messages import Packet, pad, seal
from anon.wire.packet_v2 import Occasion, PacketV2, enrolment_info, packet_info, parse_published
from peer.rules.packet_lifecycle import Status
from tests.peer.test_exact_release import STUDY as EXACT
from tests.support import exact_sum
from tests.support.world import FakePeer, World, has, in_memory, posted, published, sealed, study_text


@pytest.fixture
async def collecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[World, FakePeer]]:
    """A study without shares whose window is open, and one of its members."""
    monkeypatch.setattr(HISTOGRAM, "packet_versions", (2, 1))
    async with in_memory(tmp_path / "home", study_text()) as running:
        peers = await running.collecting(2)
        yield running, peers[0]


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _padded(running: World, packet: PacketV2) -> bytes:
    return pad(packet.to_bytes(), running.live.packet_intake.rules.plain_bytes)


def _at(peer: FakePeer, packet: PacketV2, **changes: int) -> PacketV2:
    """The peer's own packet on another occasion, with a token that fits."""
    return peer.signed(evolve(packet, occasion=evolve(packet.occasion, **changes)))


def _version_1(running: World, packet: PacketV2) -> bytes:
    old = Packet(packet.occasion.study, packet.occasion.slot, packet.survey, packet.report, packet.token)
    return old.to_bytes()


Case = Callable[[World, FakePeer, PacketV2], bytes]

REFUSED: dict[str, tuple[str, Case]] = {
    "truncated": ("wrong-size", lambda r, p, k: sealed(r.live, k)[:-1]),
    "a bit flipped in the encapsulation": ("sealed-to-another-key", lambda r, p, k: _flip(sealed(r.live, k), 60)),
    "a bit flipped in the ciphertext": ("sealed-to-another-key", lambda r, p, k: _flip(sealed(r.live, k), 1200)),
    "sealed to another key": (
        "sealed-to-another-key",
        lambda r, p, k: hpke_seal(_padded(r, k), Opener(os.urandom(32)).public_key, packet_info(k.occasion.study)),
    ),
    "sealed for another study": (
        "sealed-to-another-key", lambda r, p, k: hpke_seal(_padded(r, k), r.live.manifest.sealing_key, packet_info(bytes(32))),
    ),
    "sealed as an enrolment": (
        "sealed-to-another-key",
        lambda r, p, k: hpke_seal(_padded(r, k), r.live.manifest.sealing_key, enrolment_info(k.occasion.study)),
    ),
    "a packet of version 1": ("malformed", lambda r, p, k: posted(r.live, _version_1(r, k))),
    "its published form is version 2, one field is of version 1": (
        "malformed", lambda r, p, k: posted(r.live, _flip(_flip(k.to_bytes(), 1), 0)),
    ),
    "cover traffic where there is none": ("malformed", lambda r, p, k: posted(r.live, encode([2, "cover", k.occasion.study, 0, 1]))),
    "a share where there is none": ("malformed", lambda r, p, k: posted(r.live, p.signed(evolve(k, report=b"", shares=(k.report,))).to_bytes())),
    "another study": ("wrong-study", lambda r, p, k: sealed(r.live, evolve(k, occasion=evolve(k.occasion, study=bytes(32))))),
    "a slot that is not there": ("unknown-slot", lambda r, p, k: sealed(r.live, _at(p, k, slot=1))),
    "another round": ("unknown-slot", lambda r, p, k: sealed(r.live, _at(p, k, round=1))),
    "a survey that is not there": ("unknown-survey", lambda r, p, k: sealed(r.live, p.signed(evolve(k, survey=99)))),
    "a survey the tag does not draw": ("wrong-draw", lambda r, p, k: sealed(r.live, p.signed(evolve(k, survey=1 - k.survey)))),
    "an empty report": ("malformed-report", lambda r, p, k: sealed(r.live, p.signed(evolve(k, report=b"")))),
    "a token for another report": (
        "rejected-proof", lambda r, p, k: sealed(r.live, evolve(k, report=next(one for _ in range(10_000) if (one := p.report(k.survey)) != k.report))),
    ),
    "a token with a bit flipped": ("rejected-proof", lambda r, p, k: sealed(r.live, evolve(k, token=_flip(k.token, len(k.token) - 1)))),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_packet_is_refused_and_changes_nothing(collecting: tuple[World, FakePeer], name: str) -> None:
    running, peer = collecting
    word, case = REFUSED[name]
    packet = peer.packet_v2()
    assert await running.live.submit(case(running, peer, packet)) == word
    assert await running.app._tools.packets.counts(running.live.study) == {}
    assert await running.live.submit(sealed(running.live, packet)) == "accepted"
    assert await running.live.submit(sealed(running.live, packet)) == "accepted", "the same again, under another seal"
    assert await running.live.submit(sealed(running.live, peer.packet_v2())) == "tag-spent"


async def test_a_packet_of_version_2_in_a_study_of_version_1(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        (peer, *_) = await running.collecting(2)
        old = peer.packet()
        new = peer.signed(PacketV2(Occasion(old.study, 0, 0), old.survey, old.report, (), b""))
        assert await running.live.submit(posted(running.live, new.to_bytes()[:-4])) == "malformed"
        assert await running.live.submit(posted(running.live, new.published().to_bytes())) in ("malformed", "wrong-size")
        whole = hpke_seal(new.to_bytes(), Opener(bytes(32)).public_key, packet_info(old.study))
        assert await running.live.submit(whole) == "wrong-size"
        key = running.live.manifest.sealing_key
        assert await running.live.submit(seal(pad(new.to_bytes(), running.live.packet_intake.rules.plain_bytes), key)) == "malformed"
        assert await running.live.submit(sealed(running.live, old)) == "accepted"


# Exact sums


@pytest.fixture
def exact() -> Iterator[None]:
    exact_sum.register()
    yield
    exact_sum.forget()


async def _collecting(running: World) -> list[FakePeer]:
    """Three members, and the first round's window open."""
    peers = await running.enrol(3)
    await running.close_enrolment(peers)
    await running.go_to(running.windows[0].opens)
    return peers


SHARES: dict[str, tuple[str, Callable[[FakePeer, PacketV2], PacketV2]]] = {
    "a share of another length": ("malformed", lambda p, k: p.signed(evolve(k, shares=(k.shares[0][:-1], k.shares[1] + b"\0")))),
    "a share too few": ("malformed", lambda p, k: p.signed(evolve(k, shares=k.shares[:1]))),
    "shares in another order": ("rejected-proof", lambda p, k: evolve(k, shares=k.shares[::-1])),
    "a bit flipped in a share": ("rejected-proof", lambda p, k: evolve(k, shares=(_flip(k.shares[0], 1130), k.shares[1]))),
    "replayed in the next slot and round": ("rejected-proof", lambda p, k: evolve(k, occasion=evolve(k.occasion, round=1, slot=1), survey=1)),
    "replayed in the next slot": ("unknown-slot", lambda p, k: evolve(k, occasion=evolve(k.occasion, slot=1))),
    "replayed in the next round": ("unknown-slot", lambda p, k: evolve(k, occasion=evolve(k.occasion, round=1))),
}


@pytest.mark.parametrize("name", SHARES)
async def test_bad_shares_are_refused(tmp_path: Path, exact: None, name: str) -> None:
    async with in_memory(tmp_path / "home", EXACT) as running:
        (peer, *_) = await _collecting(running)
        word, change = SHARES[name]
        good = exact_sum.packet(peer, (1, 1))
        bad = change(peer, good)
        if bad.occasion.slot == 1 and word == "rejected-proof":
            await running.go_to(running.live.manifest.survey(1).window.opens)
        assert await running.live.submit(sealed(running.live, bad)) == word
        assert await running.app._tools.packets.counts(running.live.study) == {}


async def test_a_study_of_exact_sums_keeps_relays_and_never_publishes_shares(tmp_path: Path, exact: None) -> None:
    async with in_memory(tmp_path / "home", EXACT) as running:
        live, store = running.live, running.app._tools.packets
        peers = await _collecting(running)
        shares: list[bytes] = []
        for survey in live.manifest.surveys:
            await running.go_to(survey.window.opens)
            for number, peer in enumerate(peers):
                packet = exact_sum.packet(peer, (number % 2, 1), slot=survey.survey)
                assert await live.submit(sealed(live, packet)) == "accepted"
                shares += packet.shares
            shown = [[one async for one in store.relayed(live.study, survey.survey, survey.survey, recipient)] for recipient in (0, 1)]
            assert [one.tag for one in shown[0]] == sorted(one.tag for one in shown[1])
            assert exact_sum.added(shown) == [1, 3]
            await running.go_to(survey.window.closes)
        assert has(live, "transcript", 1) and has(live, "seed", 1)  # the toy has no report of its own
        documents = await published(live)
        assert not any(share in body for share in shares for body in documents.values())
        for survey in live.manifest.surveys:
            _, plaintexts = parse_transcript(documents["transcript", survey.survey], live.study)
            assert [len(parse_published(one).digests) for one in plaintexts] == [2, 2, 2]
        numbered = {one.head.number: await live.body_of(one.head) for one in live.chain}
        result = audit_documents(live.heads(), numbered)
        assert result.ok and result.packets == 6, result.lines()
        await running.go_to(live.manifest.timetable.ends + live.manifest.release.retention + 1)
        assert live.phase is Phase.ERASED
        assert [one async for one in store.relayed(live.study, 0, 0, 0)] == []


async def test_what_a_phone_seals_in_python_alone_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real peers from joining to inclusion; each seal of theirs is the one that phones have."""
    sealed_in_python: list[bytes] = []

    def seal_as_a_phone(plaintext: bytes, public_key: bytes, info: bytes) -> bytes:
        sealed_in_python.append(info)
        return pure.seal(plaintext, public_key, info)

    monkeypatch.setattr(HISTOGRAM, "packet_versions", (2, 1))
    monkeypatch.setattr(packet_v2, "seal", seal_as_a_phone)
    monkeypatch.setattr(posts, "hpke_seal", seal_as_a_phone)
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=2)) as running:
        study = running.live.study
        await running.settle_in(2)
        await running.go_on()
        assert set(sealed_in_python) == {packet_info(study), enrolment_info(study)}
        posts_of_packets = [one for route in running.routes for one in route.packets()]
        assert {len(one.body or b"") for one in posts_of_packets} == {running.live.packet_intake.rules.sealed_bytes}
        assert {one.answer for one in posts_of_packets} == {b"accepted".ljust(64)}
        for app in running.peers:
            assert [slot.status for slot in app.status()[0].slots] == [Status.INCLUDED]
