"""Packets: each refusal one case, and what must be acknowledged however late it comes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from attrs import evolve
from nacl.public import PrivateKey

from anon.credential import present
from anon.protocols.sortition import slot_context
from anon.wire.cbor import encode
from anon.wire.messages import Packet, pad, presentation_header, seal
from anon.wire.replies import REPLY_BYTES, WORDS, encode_reply
from tests.support.clock import Clock
from tests.support.world import FakePeer, World, begin, in_memory, make_app, sealed, study_text


@pytest.fixture
async def collecting(tmp_path: Path) -> AsyncIterator[tuple[World, list[FakePeer]]]:
    """A one-packet study whose window is open, with four members."""
    async with in_memory(tmp_path / "home", study_text()) as running:
        peers = await running.collecting(4)
        yield running, peers


def _with(running: World, plaintext: bytes) -> bytes:
    return seal(pad(plaintext, running.live.packet_intake.rules.plain_bytes), running.live.manifest.sealing_key)


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _other_survey(running: World, packet: Packet) -> int:
    return next(one.survey for one in running.live.manifest.surveys if one.survey != packet.survey)


def _resigned(peer: FakePeer, packet: Packet, **changes: object) -> Packet:
    """The peer's own packet, changed and with a token that fits the change."""
    changed = evolve(packet, **changes)
    proof = presentation_header(changed.study, changed.slot, changed.survey, changed.report)
    assert peer.credential is not None
    return evolve(changed, token=present(peer.credential, slot_context(peer.study, 0), proof, os.urandom))


Case = Callable[[World, FakePeer, Packet], bytes]

REFUSED: dict[str, tuple[str, Case]] = {
    "empty": ("wrong-size", lambda r, p, k: b""),
    "truncated": ("wrong-size", lambda r, p, k: sealed(r.live, k)[:-1]),
    "oversized": ("wrong-size", lambda r, p, k: sealed(r.live, k) + b"\0"),
    "random bytes": ("sealed-to-another-key", lambda r, p, k: os.urandom(r.live.packet_intake.rules.sealed_bytes)),
    "a bit flipped in the ciphertext": ("sealed-to-another-key", lambda r, p, k: _flip(sealed(r.live, k), 60)),
    "sealed to another key": (
        "sealed-to-another-key",
        lambda r, p, k: seal(pad(k.to_bytes(), r.live.packet_intake.rules.plain_bytes), bytes(PrivateKey.generate().public_key)),
    ),
    "padding that is not zero": (
        "malformed",
        lambda r, p, k: seal(
            _flip(pad(k.to_bytes(), r.live.packet_intake.rules.plain_bytes), r.live.packet_intake.rules.plain_bytes - 1),
            r.live.manifest.sealing_key,
        ),
    ),
    "not CBOR": ("malformed", lambda r, p, k: _with(r, b"\xff" * 100)),
    "CBOR with a byte after it": ("malformed", lambda r, p, k: _with(r, k.to_bytes() + b"\0")),
    "a number in more bytes than needed": (
        "malformed",
        lambda r, p, k: _with(r, k.to_bytes().replace(b"\x86\x01", b"\x86\x18\x01", 1)),
    ),
    "another version": ("malformed", lambda r, p, k: _with(r, _flip(k.to_bytes(), 1))),
    "a field too few": (
        "malformed",
        lambda r, p, k: _with(r, encode([1, k.study, k.slot, k.survey, k.report])),
    ),
    "true for a slot": (
        "malformed",
        lambda r, p, k: _with(r, encode([1, k.study, False, k.survey, k.report, k.token])),
    ),
    "a token too short": ("malformed", lambda r, p, k: sealed(r.live, evolve(k, token=k.token[:-1]))),
    "another study": ("wrong-study", lambda r, p, k: sealed(r.live, evolve(k, study=bytes(32)))),
    "a slot that is not there": ("unknown-slot", lambda r, p, k: sealed(r.live, _resigned(p, k, slot=1))),
    "a negative slot": ("unknown-slot", lambda r, p, k: sealed(r.live, _resigned(p, k, slot=-1))),
    "a survey that is not there": ("unknown-survey", lambda r, p, k: sealed(r.live, _resigned(p, k, survey=99))),
    "a survey the tag does not draw": (
        "wrong-draw",
        lambda r, p, k: sealed(r.live, _resigned(p, k, survey=_other_survey(r, k))),
    ),
    "a report too long": ("malformed-report", lambda r, p, k: sealed(r.live, _resigned(p, k, report=k.report + b"\0"))),
    "an empty report": ("malformed-report", lambda r, p, k: sealed(r.live, _resigned(p, k, report=b""))),
    "an impossible report": (
        "malformed-report",
        lambda r, p, k: sealed(r.live, _resigned(p, k, report=b"\xff" * len(k.report))),
    ),
    "a token for another report": (
        "rejected-proof",
        lambda r, p, k: sealed(r.live, evolve(k, report=_other_report(p, k))),
    ),
    "a forged token": (
        "rejected-proof",
        lambda r, p, k: sealed(r.live, evolve(k, token=k.token[:48] + os.urandom(len(k.token) - 48))),
    ),
    "a token with a bit flipped in its last scalar": (
        "rejected-proof",
        lambda r, p, k: sealed(r.live, evolve(k, token=_flip(k.token, len(k.token) - 1))),
    ),
}


def _other_report(peer: FakePeer, packet: Packet) -> bytes:
    while (report := peer.report(packet.survey)) == packet.report:
        pass
    return report


@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_packet_is_refused_and_changes_nothing(
    collecting: tuple[World, list[FakePeer]], name: str
) -> None:
    running, (peer, *_) = collecting
    word, case = REFUSED[name]
    packet = peer.packet()
    assert await running.live.submit(case(running, peer, packet)) == word
    assert await running.app._tools.packets.counts(running.live.study) == {}
    assert await running.live.submit(sealed(running.live, packet)) == "accepted"
    assert running.live.packet_answers.exact() == {word: 1, "accepted": 1}


async def test_windows_are_by_arrival_and_a_late_resend_is_acknowledged(
    collecting: tuple[World, list[FakePeer]],
) -> None:
    running, (early, late, punctual, _) = collecting
    live = running.live
    running.clock.seconds = running.opens - 0.001
    first = sealed(live, early.packet())
    assert await live.submit(first) == "window-not-open"
    running.clock.seconds = running.closes - 0.001
    assert await live.submit(first) == "accepted"
    kept = punctual.packet()
    assert await live.submit(sealed(live, kept)) == "accepted"
    running.clock.seconds = running.closes
    assert await live.submit(sealed(live, late.packet())) == "window-closed"
    assert await live.submit(first) == "accepted"
    await running.app.tick()
    assert await live.submit(sealed(live, kept)) == "accepted", "sealed anew, the same plaintext"
    assert await live.submit(sealed(live, late.packet())) == "window-closed"
    assert sum((await running.app._tools.packets.counts(live.study)).values()) == 2


async def test_no_packet_is_taken_after_counting_whatever_the_clock_says(
    collecting: tuple[World, list[FakePeer]],
) -> None:
    running, (peer, *_) = collecting
    await running.go_to(running.closes)
    running.clock.seconds = running.opens
    assert await running.live.submit(sealed(running.live, peer.packet())) == "window-closed"


async def test_a_spent_tag_with_another_packet_is_refused(collecting: tuple[World, list[FakePeer]]) -> None:
    running, (peer, *_) = collecting
    packet = peer.packet()
    assert await running.live.submit(sealed(running.live, packet)) == "accepted"
    assert await running.live.submit(sealed(running.live, peer.packet())) == "tag-spent"
    assert await running.live.submit(sealed(running.live, packet)) == "accepted"


async def test_two_packets_with_one_tag_in_one_batch_leave_one(collecting: tuple[World, list[FakePeer]]) -> None:
    running, (peer, other, *_) = collecting
    different = [peer.packet() for _ in range(3)]
    same = sealed(running.live, other.packet())
    posts = [sealed(running.live, one) for one in different] + [same, same]
    words = await asyncio.gather(*(running.live.submit(post) for post in posts))
    assert sorted(words[:3]) == ["accepted", "tag-spent", "tag-spent"]
    assert words[3:] == ["accepted", "accepted"]
    assert sum((await running.app._tools.packets.counts(running.live.study)).values()) == 2


async def test_a_bad_token_does_not_harm_its_batch(collecting: tuple[World, list[FakePeer]]) -> None:
    running, peers = collecting
    packets = [peer.packet() for peer in peers]
    packets[1] = evolve(packets[1], token=_flip(packets[1].token, 383))
    packets[2] = evolve(packets[2], token=packets[2].token[:48] + packets[0].token[48:])
    words = await asyncio.gather(*(running.live.submit(sealed(running.live, one)) for one in packets))
    assert words[0] == words[3] == "accepted"
    assert words[1] == "rejected-proof"
    assert words[2] in ("rejected-proof", "wrong-draw")


async def test_a_token_of_another_study_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        one, two = await begin(app, clock, study_text()), await begin(app, clock, study_text())
        peers, others = await one.enrol(2), await two.enrol(2)
        await one.close_enrolment(peers)
        for other in others:
            await other.take_credential(two.live)
        await two.go_to(two.opens)
        foreign = others[0].packet()
        moved = evolve(foreign, study=one.live.study)
        assert await one.live.submit(sealed(two.live, foreign)) == "sealed-to-another-key"
        assert await one.live.submit(sealed(one.live, foreign)) == "wrong-study"
        words = {await one.live.submit(sealed(one.live, evolve(moved, survey=number))) for number in (0, 1)}
        assert words <= {"rejected-proof", "wrong-draw", "malformed-report"}
        assert await two.live.submit(sealed(two.live, foreign)) == "accepted"


def test_every_answer_has_one_length() -> None:
    assert {len(encode_reply(word)) for word in WORDS} == {REPLY_BYTES}
