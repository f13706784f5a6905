"""A member of the toy `letters` that lies: its place is real, and it writes whatever a test says."""

from __future__ import annotations

import os
from collections.abc import Sequence

from attrs import frozen

from anon.crypto.sealing import OVERHEAD, seal
from anon.crypto.sealing.opening import Opener
from anon.protocols.board import read_page
from anon.wire.letters import AGGREGATOR, letter_info, written_report
from anon.wire.packets import TAG_BYTES, Packet
from tests.support import letters
from tests.support.letters_world import bodies_of, go_on
from tests.support.world import FakePeer, World, sealed


@frozen
class Liar:
    """Its credential and its sealing key."""

    world: World
    peer: FakePeer
    opener: Opener

    @property
    def tag(self) -> bytes:
        """Its pseudonym for the whole study."""
        return self.writes(letters.KEYS, self.opener.public_key).token[:TAG_BYTES]

    def writes(self, survey: int, text: bytes, sealed_letters: Sequence[bytes] = ()) -> Packet:
        """A packet with a valid token for whatever it says."""
        return self.peer.packet(survey, survey, written_report(text, sealed_letters))

    async def posts(self, packet: Packet) -> str:
        """The aggregator's word."""
        return await self.world.live.submit(sealed(self.world.live, packet))

    async def says(self, survey: int, text: bytes, sealed_letters: Sequence[bytes] = ()) -> str:
        """Go to the middle of the survey's window and write."""
        window = self.world.live.manifest.survey(survey).window
        await go_on(self.world, until=(window.opens + window.closes) / 2)
        return await self.posts(self.writes(survey, text, sealed_letters))

    async def letters_to_all(self, body: bytes, info: bytes | None = None) -> list[bytes]:
        """This letter to every seat of its circle; `info`: for another purpose than the right one."""
        world, study = self.world, self.world.live.manifest
        page = read_page(study, 0, (await bodies_of(world))["page", 0])
        keys = page.texts(letters.KEYS)
        seats = [(AGGREGATOR, study.sealing_key), *((tag, key) for tag, key in keys.items() if tag != self.tag)]
        asked = study.survey(letters.SHARES)
        purposes = {tag: letter_info(study.study_id, letters.SHARES, self.tag, tag) for tag, _ in seats}
        found = [seal(body, key, purposes[tag] if info is None else info) for tag, key in seats]
        return found + [bytes(asked.letter_size + OVERHEAD)] * (asked.m - len(seats))


async def with_liar(world: World) -> Liar:
    """One more member, once the roster is closed."""
    peer = FakePeer(world.live.manifest, world.invites[len(world.peers)].code)
    assert await world.live.enrol(peer.sealed_enrolment()) == "accepted"
    await go_on(world, until=world.live.manifest.timetable.enrol_closes + 1)
    await peer.take_credential(world.live)
    return Liar(world, peer, Opener(os.urandom(32)))
