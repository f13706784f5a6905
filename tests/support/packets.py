"""A study's packets and posts as tests make, change and read them, whatever version the study's packets have."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from anon.errors import Malformed
from anon.protocols.posts import layout_of_packets, plain_size
from anon.sealing import seal as hpke_seal
from anon.sealing.opening import Opener
from anon.study.manifest import Manifest
from anon.wire.cbor import decode, encode
from anon.wire.messages import Dummy, Packet, pad, parse_dummy, parse_packet, seal, unpad, unseal
from anon.wire.packet_v2 import PacketV2, PublishedPacket, enrolment_info, packet_info, withdrawal_info
from anon.wire.packet_v2 import parse_packet as parse_packet_v2

AnyPacket = Packet | PacketV2
INFOS = {"enrol": enrolment_info, "withdraw": withdrawal_info, "packets": packet_info}
"""The purpose of a post in version 2, by where it goes."""
FIELDS = {
    1: ("version", "study", "slot", "survey", "report", "token"),
    2: ("version", "study", "round", "slot", "survey", "report", "shares", "token"),
}
"""The names of a plaintext's fields."""


def spelled(packet: AnyPacket, **changes: object) -> bytes:
    """The packet's plaintext with other values in some fields, whatever they are; None takes a field away."""
    fields: list[Any] = decode(packet.to_bytes(), "packet")
    named = dict(zip(FIELDS[fields[0]], fields, strict=True))
    assert changes.keys() <= named.keys()
    return encode([value for value in (named | changes).values() if value is not None])


def moved(packet: AnyPacket, **changes: object) -> AnyPacket:
    """The packet on another occasion: in another `study` or `slot`, in version 2 also `round`."""
    if isinstance(packet, PacketV2):
        return evolve(packet, occasion=evolve(packet.occasion, **changes))
    return evolve(packet, **changes)


def kept(packet: AnyPacket) -> Packet | PublishedPacket:
    """The packet as the aggregator keeps and publishes it."""
    return packet.published() if isinstance(packet, PacketV2) else packet


def boxed(manifest: Manifest, what: str, plaintext: bytes, key: bytes | None = None) -> bytes:
    """Bytes sealed as a post to `what` is, to the study's key if no other is given."""
    key = manifest.sealing_key if key is None else key
    if manifest.packet_version == 2:
        return hpke_seal(plaintext, key, INFOS[what](manifest.study_id))
    return seal(plaintext, key)


def posted(manifest: Manifest, plaintext: bytes) -> bytes:
    """Any plaintext, padded and sealed as packets of the study are."""
    return boxed(manifest, "packets", pad(plaintext, plain_size(manifest)))


def opened(manifest: Manifest, secret: bytes, what: str, sealed: bytes) -> bytes:
    """The plaintext of a post to `what`, without its padding. Raises what opening raises."""
    if manifest.packet_version == 2:
        plaintext = Opener(secret).open(sealed, INFOS[what](manifest.study_id))
    else:
        plaintext = unseal(sealed, secret)
    return unpad(plaintext, plain_size(manifest)) if what == "packets" else plaintext


def read(manifest: Manifest, plaintext: bytes) -> AnyPacket | Dummy:
    """The packet or the dummy that a plaintext is. Raises `Malformed`."""
    if manifest.packet_version == 2:
        return parse_packet_v2(pad(plaintext, plain_size(manifest)), layout_of_packets(manifest))
    try:
        return parse_dummy(plaintext)
    except Malformed:
        return parse_packet(plaintext)


def packet_in(manifest: Manifest, plaintext: bytes) -> AnyPacket:
    """The packet that a plaintext is. Raises `Malformed`."""
    found = read(manifest, plaintext)
    assert not isinstance(found, Dummy)
    return found
