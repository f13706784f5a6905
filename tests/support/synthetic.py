"""Stored packets without a valid token: for what an aggregator does with packets once they are accepted."""

from __future__ import annotations

import os

from aggregator.rules.accepted import AcceptedPacket
from aggregator.study.live import LiveStudy
from anon.credential import token_size
from anon.crypto import labels
from anon.ldp import RawCategory
from anon.protocols.sortition import draw, occasion_of
from anon.study.manifest import Manifest
from anon.wire.cbor import sha256
from anon.wire.packets import PublishedPacket


def synthetic(manifest: Manifest, seed: bytes, slot: int = 0) -> AcceptedPacket:
    """A packet of a random tag that answers the survey which the tag drew."""
    tag = os.urandom(48)
    token = tag + bytes(token_size(manifest.packets) - len(tag))
    survey = manifest.survey(draw(manifest.slots[slot], seed, tag))
    mechanism = survey.build()
    report = bytes(mechanism.perturb(RawCategory(tag[0] % survey.m, survey.m), os.urandom))
    plaintext = PublishedPacket(occasion_of(manifest, slot), survey.survey, report, (), token).to_bytes()
    return AcceptedPacket(slot, tag, survey.survey, plaintext, sha256(labels.PACKET_DIGEST, plaintext))


async def fill(live: LiveStudy, count: int) -> list[AcceptedPacket]:
    """Store so many packets in every slot of a study whose roster is closed."""
    issued = live.packet_intake.issued
    assert issued is not None
    made = [synthetic(live.manifest, issued.seed, slot.slot) for slot in live.manifest.slots for _ in range(count)]
    await live.tools.packets.insert(live.study, made)
    return made
