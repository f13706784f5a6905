"""The host of the toy `letters` lies to one member, or to all: who believes no page sends nothing more, the others go
on, and an audit finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from anon.protocols.board import page_body, read_page
from anon.protocols.contract import Place
from anon.protocols.outgoing import OpenShares
from anon.route import Response
from anon.study.manifest import Manifest, Survey
from anon.transparency.documents import sign_head
from anon.transparency.equivocation import compare_chains, parse_evidence
from anon.wire.cbor import decode, encode
from anon.wire.packets import PublishedPacket
from examples.testing import MemoryRoute
from peer.rules.lifecycle import State
from tests.support import letters
from tests.support.documents import heads_answer
from tests.support.letters_world import (
    after,
    audited,
    bodies_of,
    demand_promises,
    go_on,
    learned,
    members,
    sent,
    surveys_sent,
)
from tests.support.tries import soaked
from tests.support.world import World

pytestmark = pytest.mark.slow
KEYS, ROWS, SHARES, VECTOR, CAME, OPENING = ALL = range(6)
ANSWERS = [1, 1, 0, 1]
VICTIM = 3
Lie = Callable[[bytes], bytes]


@define
class LyingRoute(MemoryRoute):
    """The aggregator's own key signs another story for this member."""

    lies: dict[Place, Lie] = field(factory=dict)

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route`."""
        what = self._left(path, None).what
        chain: list = []
        bodies: list[bytes] = []
        for signed in self.live.chain:
            place = (signed.head.kind, signed.head.part)
            bodies.append(self.lies.get(place, bytes)(await self.live.body_of(signed.head)))
            chain.append(sign_head(self.live.tools.home.signing_key, self.live.study, chain, *place, bodies[-1]))
        if what.startswith("heads"):
            return Response(200, heads_answer(what, chain, bodies, self.live.manifest))
        return Response(200, bodies[int(what.removeprefix("documents/"))])


def lied_to(world: World, lies: Mapping[Place, Lie]) -> LyingRoute:
    """From now on the last member hears these lies."""
    route = LyingRoute(world.live, world.clock, lies=dict(lies), requests=world.routes[VICTIM].requests)
    world.routes[VICTIM] = route
    world.restart(VICTIM)
    return route


def altered(study: Manifest, number: int, change: Callable[[list[PublishedPacket]], list[PublishedPacket]]) -> Lie:
    """The page with other packets."""

    def lie(body: bytes) -> bytes:
        packets = change(list(read_page(study, number, body).packets))
        return page_body(study.study_id, number, [packet.to_bytes() for packet in packets])

    return lie


def flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def of_survey(packet: PublishedPacket, survey: int) -> PublishedPacket:
    return evolve(packet, survey=survey, occasion=evolve(packet.occasion, slot=survey, round=letters.ROUND_OF[survey]))


Packets = list[PublishedPacket]
BAD: dict[str, Callable[[Packets], Packets]] = {
    "in another order": lambda packets: packets[::-1],
    "a packet twice": lambda packets: [packets[0], *packets],
    "of another study": lambda packets: [
        evolve(packets[0], occasion=evolve(packets[0].occasion, study=bytes(32))), *packets[1:]
    ],
    "of another round": lambda packets: [of_survey(packets[0], CAME), *packets[1:]],
    "of another slot": lambda packets: [evolve(packets[0], survey=VECTOR), *packets[1:]],
    "with a share": lambda packets: [evolve(packets[0], digests=(bytes(32),)), *packets[1:]],
    "an altered text": lambda packets: [evolve(packets[0], report=_other_text(packets[0])), *packets[1:]],
    "a shorter letter": lambda packets: [evolve(packets[0], report=packets[0].report[:-1]), *packets[1:]],
    "another's token": lambda packets: [evolve(packets[0], report=packets[1].report), *packets[1:]],
    "a token that is none": lambda packets: [evolve(packets[0], token=packets[0].token[:-1]), *packets[1:]],
    "a changed token": lambda packets: [
        evolve(packets[0], token=packets[0].token[:-1] + flipped(packets[0].token[-1:])), *packets[1:]
    ],
}
"""Pages of shares that no honest aggregator signs."""


UNFIT, TOO_LONG = "a page of this study", "nothing of it was read"
LONGER = ("a packet twice", "with a share")
"""Everybody wrote, and the page is longer than any can be."""


def _other_text(packet: PublishedPacket) -> bytes:
    return packet.report.replace(b"\x41\x00", b"\x41\x01", 1)


@pytest.mark.parametrize("name", soaked(4, BAD))
async def test_a_bad_page_stops_whom_it_is_shown(tmp_path: Path, name: str) -> None:
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world, until=world.live.manifest.timetable.settled)
        lied_to(world, {("page", 1): altered(world.live.manifest, 1, BAD[name])})
        await go_on(world)
        await demand_stopped(world, TOO_LONG if name in LONGER else UNFIT)


async def test_a_letter_that_a_part_cannot_write_ends_the_study_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mail is anybody's: a letter that its author never thought of ended the program of everybody it was sent to."""
    honest = letters.Peer.letters

    def unthought_of(self: letters.Peer, manifest: Manifest, survey: Survey, *told: Any) -> OpenShares:
        if survey.survey == CAME:
            raise ZeroDivisionError("a number out of a letter")
        return honest(self, manifest, survey, *told)

    monkeypatch.setattr(letters.Peer, "letters", unthought_of)
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world)
        for app in world.peers:
            (status,) = app.status()
            assert status.state is State.STOPPED and "cannot be written" in status.reason, status
        assert all(CAME not in surveys_sent(world, number) for number in range(len(ANSWERS)))


async def demand_stopped(world: World, reason: str) -> None:
    """The last member believed nothing after its shares; the other three have the right sum."""
    (status,) = world.peers[VICTIM].status()
    assert status.state is State.STOPPED and reason in status.reason, status
    assert surveys_sent(world, VICTIM) == [KEYS, ROWS, SHARES]
    bodies = await bodies_of(world)
    assert learned(bodies)[:2] == ("2", "3")
    assert all(surveys_sent(world, number) == list(ALL) for number in range(VICTIM))
    demand_promises(world)


RAW: dict[str, Lie] = {
    "no CBOR": lambda body: b"\xff" + body[1:],
    "another number": lambda body: body[:36] + flipped(body[36:]),
    "a byte behind": lambda body: body + b"\0",
    "nothing": lambda _body: b"",
}


@pytest.mark.parametrize("name", soaked(4, RAW))
async def test_bytes_that_are_no_page_stop_whom_they_are_shown(tmp_path: Path, name: str) -> None:
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world, until=world.live.manifest.timetable.settled)
        lied_to(world, {("page", 1): RAW[name]})
        await go_on(world)
        await demand_stopped(world, UNFIT)


async def test_a_page_longer_than_any_is_never_fetched(tmp_path: Path) -> None:
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world, until=world.live.manifest.timetable.settled)
        lied_to(world, {("page", 1): lambda body: body + bytes(1_000_000)})
        await go_on(world)
        await demand_stopped(world, TOO_LONG)
        number = next(signed.head.number for signed in world.live.chain if signed.head.kind == "page") + 1
        fetched = {request.what for request in world.routes[VICTIM].requests}
        assert f"documents/{number}" not in fetched


@pytest.mark.parametrize("change", [lambda body: body[:-1], lambda body: body + b"\0"])
async def test_a_seats_document_of_another_length_stops_whom_it_is_shown(tmp_path: Path, change: Lie) -> None:
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world, until=world.live.manifest.timetable.settled)
        lied_to(world, {letters.SEAT: change})
        await go_on(world)
        (status,) = world.peers[VICTIM].status()
        assert status.state is State.STOPPED, status
        assert surveys_sent(world, VICTIM) == [KEYS, ROWS, SHARES, VECTOR, CAME]
        assert learned(await bodies_of(world))[:2] == ("3", "4")


def without(study: Manifest, number: int, tag: bytes) -> Lie:
    """The page without a member."""
    return altered(study, number, lambda packets: [packet for packet in packets if packet.token[:48] != tag])


def tag_of(world: World, number: int) -> bytes:
    """A member's pseudonym."""
    return next(packet.tag for packet in sent(world, number) if packet.survey == KEYS)


@pytest.mark.parametrize("turn", soaked(4, range(4)))
async def test_a_member_that_a_page_leaves_out_falls_silent(tmp_path: Path, turn: int) -> None:
    """It cannot know if others see it. They do, and have their sum; with its number where that had come."""
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world, until=after(world, 0) - 2)
        lies: dict[Place, Lie] = {}
        lied_to(world, lies).lies = lies
        await go_on(world, until=world.live.rounds[turn].window.closes)
        own = tag_of(world, VICTIM)
        lies["page", turn] = without(world.live.manifest, turn, own)
        await go_on(world)
        assert max(map(letters.ROUND_OF.__getitem__, surveys_sent(world, VICTIM))) == turn
        assert learned(await bodies_of(world))[:2] == (("2", "3") if turn < 2 else ("3", "4"))
        demand_promises(world)


async def test_two_boards_are_evidence_and_whoever_sees_both_stops(tmp_path: Path) -> None:
    """One member reads another page of shares; its chain and anybody's are proof, and it keeps that proof itself when
    it is shown the other."""
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world, until=after(world, 0))
        other = tag_of(world, 0)
        route = lied_to(world, {("page", 1): without(world.live.manifest, 1, other)})
        await go_on(world, until=after(world, 2))
        assert VECTOR in surveys_sent(world, VICTIM)  # its own shares are on the page that it saw
        lied = (await route.get("", "/v1/x/heads", 1)).body
        evidence = compare_chains(world.live.manifest, world.live.heads(), lied)
        assert evidence is not None and parse_evidence(evidence.to_bytes(), None).number == 5
        route.lies.clear()
        await go_on(world)
        (status,) = world.peers[VICTIM].status()
        assert status.state is State.STOPPED, status
        demand_promises(world)


async def test_an_audit_finds_a_page_that_leaves_a_member_out(tmp_path: Path) -> None:
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world)
        bodies = await bodies_of(world)
        lie = without(world.live.manifest, 1, tag_of(world, 2))
        found = (await audited(world, bodies | {("page", 1): lie(bodies["page", 1])})).findings
        assert ("page 1", "has other packets than the transcripts") in {(one.document, one.fault) for one in found}


async def test_an_audit_finds_every_bad_page_and_goes_on(tmp_path: Path) -> None:
    """It was stopped by what a later round makes of such a page, and said nothing."""
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world)
        bodies = await bodies_of(world)
        lies = {name: altered(world.live.manifest, 1, change) for name, change in BAD.items()}
        for name, lie in (lies | RAW).items():
            found = (await audited(world, bodies | {("page", 1): lie(bodies["page", 1])})).findings
            assert "page 1" in {one.document for one in found}, (name, found)


async def test_an_audit_finds_a_longer_seats_document(tmp_path: Path) -> None:
    """Its values can be read, so nothing but its length tells."""
    async with members(tmp_path, ANSWERS) as world:
        await go_on(world)
        bodies = await bodies_of(world)
        study, second, salt = decode(bodies[letters.SEAT], "seat")
        found = (await audited(world, bodies | {letters.SEAT: encode([study, second, salt + b"\0"])})).findings
        assert ("seat 3", f"expected at most {len(bodies[letters.SEAT])} bytes") in {
            (one.document, one.fault) for one in found
        }
