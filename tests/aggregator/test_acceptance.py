"""Packets: each refusal one case, and what must be acknowledged however late it comes."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from attrs import evolve

from anon.crypto.sealing import seal
from anon.crypto.sealing.opening import Opener
from anon.protocols.sortition import tag_context
from anon.wire.packets import Dummy, Packet, enrolment_info, packet_info, pad
from anon.wire.replies import REPLY_BYTES, WORDS, encode_reply
from tests.anon.credential.draft_form import drafted
from tests.support.clock import Clock
from tests.support.packets import boxed, moved, posted, spelled
from tests.support.world import FakePeer, World, begin, in_memory, make_app, sealed, study_text


@pytest.fixture
async def collecting(tmp_path: Path) -> AsyncIterator[tuple[World, list[FakePeer]]]:
    """A one-packet study whose window is open, with four members."""
    async with in_memory(tmp_path / "home", study_text()) as running:
        peers = await running.collecting(4)
        yield running, peers


def _flip(data: bytes, place: int) -> bytes:
    flipped = bytearray(data)
    flipped[place] ^= 1
    return bytes(flipped)


def _padded(running: World, packet: Packet) -> bytes:
    return pad(packet.to_bytes(), running.live.packet_intake.rules.layout.plain_size)


def _posted(running: World, plaintext: bytes) -> bytes:
    return posted(running.live.manifest, plaintext)


def _resigned(running: World, peer: FakePeer, packet: Packet, **changes: object) -> bytes:
    """The peer's own packet, changed and with a token that fits the change."""
    return sealed(running.live, peer.signed(evolve(packet, **changes)))


def _other_survey(running: World, packet: Packet) -> int:
    return next(one.survey for one in running.live.manifest.surveys if one.survey != packet.survey)


def _other_report(peer: FakePeer, packet: Packet) -> bytes:
    while (report := peer.report(packet.survey)) == packet.report:
        pass
    return report


def _draft_form(running: World, peer: FakePeer, packet: Packet) -> Packet:
    """The packet with a token as the drafts have it, which holds, filled with zeros to the length of ours."""
    token = drafted(peer.credential, tag_context(running.live.manifest, 0), packet.presentation_header())
    return evolve(packet, token=token.ljust(len(packet.token), b"\0"))


def _another_key() -> bytes:
    """A key of the same kind as the study's."""
    return Opener(os.urandom(32)).public_key


def _for(running: World, packet: Packet, info: bytes) -> bytes:
    """Sealed by HPKE to the study's key for another purpose."""
    return seal(_padded(running, packet), running.live.manifest.sealing_key, info)


Case = Callable[[World, FakePeer, Packet], bytes]

REFUSED: dict[str, tuple[str, Case]] = {
    "empty": ("wrong-size", lambda r, p, k: b""),
    "truncated": ("wrong-size", lambda r, p, k: sealed(r.live, k)[:-1]),
    "oversized": ("wrong-size", lambda r, p, k: sealed(r.live, k) + b"\0"),
    "random bytes": (
        "sealed-to-another-key",
        lambda r, p, k: os.urandom(r.live.packet_intake.rules.layout.sealed_size),
    ),
    "a bit flipped in the encapsulation": ("sealed-to-another-key", lambda r, p, k: _flip(sealed(r.live, k), 20)),
    "a bit flipped in the ciphertext": ("sealed-to-another-key", lambda r, p, k: _flip(sealed(r.live, k), -60)),
    "a bit flipped at the end": ("sealed-to-another-key", lambda r, p, k: _flip(sealed(r.live, k), -1)),
    "sealed to another key": (
        "sealed-to-another-key", lambda r, p, k: boxed(r.live.manifest, "packets", _padded(r, k), _another_key()),
    ),
    "padding that is not zero": (
        "malformed", lambda r, p, k: boxed(r.live.manifest, "packets", _flip(_padded(r, k), -1)),
    ),
    "not CBOR": ("malformed", lambda r, p, k: _posted(r, b"\xff" * 100)),
    "CBOR with a byte after it": ("malformed", lambda r, p, k: _posted(r, k.to_bytes() + b"\0")),
    "a number in more bytes than needed": (
        "malformed", lambda r, p, k: _posted(r, k.to_bytes()[:1] + b"\x18" + k.to_bytes()[1:]),
    ),
    "an unknown version": ("malformed", lambda r, p, k: _posted(r, spelled(k, version=3))),
    "an earlier version": ("malformed", lambda r, p, k: _posted(r, spelled(k, version=1))),
    "a field too few": ("malformed", lambda r, p, k: _posted(r, spelled(k, token=None))),
    "true for a slot": ("malformed", lambda r, p, k: _posted(r, spelled(k, slot=False))),
    "a token too short": ("malformed", lambda r, p, k: sealed(r.live, evolve(k, token=k.token[:-1]))),
    "cover traffic where there is none": ("malformed", lambda r, p, k: _posted(r, _dummy(r))),
    "another study": ("wrong-study", lambda r, p, k: sealed(r.live, moved(k, study=bytes(32)))),
    "a slot that is not there": ("unknown-slot", lambda r, p, k: sealed(r.live, p.signed(moved(k, slot=1)))),
    "a survey that is not there": ("unknown-survey", lambda r, p, k: _resigned(r, p, k, survey=99)),
    "a survey the tag does not draw": ("wrong-draw", lambda r, p, k: _resigned(r, p, k, survey=_other_survey(r, k))),
    "an empty report": ("malformed-report", lambda r, p, k: _resigned(r, p, k, report=b"")),
    "an impossible report": ("malformed-report", lambda r, p, k: _resigned(r, p, k, report=b"\xff" * len(k.report))),
    "a token for another report": (
        "rejected-proof",
        lambda r, p, k: sealed(r.live, evolve(k, report=_other_report(p, k))),
    ),
    "a forged token": (
        "rejected-proof", lambda r, p, k: sealed(r.live, evolve(k, token=k.token[:48] + os.urandom(len(k.token) - 48))),
    ),
    "a token of the drafts' form, made to fit": (
        "rejected-proof",
        lambda r, p, k: sealed(r.live, _draft_form(r, p, k)),
    ),
    "a token with a bit flipped in its last scalar": (
        "rejected-proof", lambda r, p, k: sealed(r.live, evolve(k, token=_flip(k.token, -1))),
    ),
    "a negative slot": ("malformed", lambda r, p, k: _posted(r, spelled(k, slot=-1))),
    "a report too long": (
        "malformed",
        lambda r, p, k: _posted(r, p.signed(evolve(k, report=k.report + b"\0")).to_bytes()),
    ),
    "another round": ("unknown-slot", lambda r, p, k: sealed(r.live, p.signed(moved(k, round=1)))),
    "a share where there is none": (
        "malformed", lambda r, p, k: _posted(r, p.signed(evolve(k, report=b"", shares=(k.report,))).to_bytes()),
    ),
    "sealed for another study": ("sealed-to-another-key", lambda r, p, k: _for(r, k, packet_info(bytes(32)))),
    "sealed as an enrolment": ("sealed-to-another-key", lambda r, p, k: _for(r, k, enrolment_info(r.live.study))),
}


def _dummy(running: World) -> bytes:
    (window,) = running.windows
    return Dummy(running.live.study, window.opens, window.closes).to_bytes()


@pytest.mark.slow
async def test_a_bad_packet_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """Each case with a packet of its own; the same member's good packet is accepted after all of them."""
    async with in_memory(tmp_path / "home", study_text()) as running:
        live, (peer, _) = running.live, await running.collecting(2)
        said = {name: await live.submit(case(running, peer, peer.packet())) for name, (_, case) in REFUSED.items()}
        assert said == {name: word for name, (word, _) in REFUSED.items()}
        assert await running.app._tools.packets.counts(live.study) == {}
        packet = peer.packet()
        assert await live.submit(sealed(live, packet)) == "accepted"
        assert await live.submit(sealed(live, packet)) == "accepted", "the same again, under another seal"
        assert await live.submit(sealed(live, peer.packet())) == "tag-spent"
        assert live.answers.packets.exact() == Counter([*said.values(), "accepted", "accepted", "tag-spent"])


@pytest.mark.slow
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


@pytest.mark.slow
async def test_no_packet_is_taken_after_counting_whatever_the_clock_says(
    collecting: tuple[World, list[FakePeer]],
) -> None:
    running, (peer, *_) = collecting
    await running.go_to(running.closes)
    running.clock.seconds = running.opens
    assert await running.live.submit(sealed(running.live, peer.packet())) == "window-closed"


@pytest.mark.slow
async def test_no_packet_is_taken_once_another_process_counted_its_window(
    collecting: tuple[World, list[FakePeer]],
) -> None:
    """It counts while this one still judges by what it knew."""
    running, (peer, *_) = collecting
    await running.live.tools.studies.freeze(running.live.study, int(running.closes))
    assert await running.live.submit(sealed(running.live, peer.packet())) == "window-closed"
    assert await running.live.tools.packets.counts(running.live.study) == {}


@pytest.mark.slow
async def test_before_credentials_no_window_is_open(collecting: tuple[World, list[FakePeer]]) -> None:
    running, (peer, *_) = collecting
    intake = running.live.packet_intake
    intake.issued, issued = None, intake.issued
    assert await running.live.submit(sealed(running.live, peer.packet())) == "window-not-open"
    intake.issued = issued
    assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"


@pytest.mark.slow
async def test_a_spent_tag_with_another_packet_is_refused(collecting: tuple[World, list[FakePeer]]) -> None:
    running, (peer, *_) = collecting
    packet = peer.packet()
    assert await running.live.submit(sealed(running.live, packet)) == "accepted"
    assert await running.live.submit(sealed(running.live, peer.packet())) == "tag-spent"
    assert await running.live.submit(sealed(running.live, packet)) == "accepted"


@pytest.mark.slow
async def test_two_packets_with_one_tag_in_one_batch_leave_one(collecting: tuple[World, list[FakePeer]]) -> None:
    running, (peer, other, *_) = collecting
    different = [peer.packet() for _ in range(3)]
    same = sealed(running.live, other.packet())
    posts = [sealed(running.live, one) for one in different] + [same, same]
    words = await asyncio.gather(*(running.live.submit(post) for post in posts))
    assert sorted(words[:3]) == ["accepted", "tag-spent", "tag-spent"]
    assert words[3:] == ["accepted", "accepted"]
    assert sum((await running.app._tools.packets.counts(running.live.study)).values()) == 2


@pytest.mark.slow
async def test_a_bad_token_does_not_harm_its_batch(collecting: tuple[World, list[FakePeer]]) -> None:
    running, peers = collecting
    packets = [peer.packet() for peer in peers]
    packets[1] = evolve(packets[1], token=_flip(packets[1].token, -1))
    packets[2] = evolve(packets[2], token=packets[2].token[:48] + packets[0].token[48:])
    words = await asyncio.gather(*(running.live.submit(sealed(running.live, one)) for one in packets))
    assert words[0] == words[3] == "accepted"
    assert words[1] == "rejected-proof"
    assert words[2] in ("rejected-proof", "wrong-draw")


@pytest.mark.slow
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
        here = moved(foreign, study=one.live.study)
        assert await one.live.submit(sealed(two.live, foreign)) == "sealed-to-another-key"
        assert await one.live.submit(sealed(one.live, foreign)) == "wrong-study"
        words = {await one.live.submit(sealed(one.live, evolve(here, survey=number))) for number in (0, 1)}
        assert words <= {"rejected-proof", "wrong-draw", "malformed-report"}
        assert await two.live.submit(sealed(two.live, foreign)) == "accepted"


def test_every_answer_has_one_length() -> None:
    assert {len(encode_reply(word)) for word in WORDS} == {REPLY_BYTES}
