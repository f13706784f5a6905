"""A study's packets and posts as tests make, change and read them."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from anon.crypto.sealing import seal
from anon.crypto.sealing.opening import Opener
from anon.protocols.posts import layout_of_packets
from anon.study.manifest import Manifest
from anon.wire.cbor import decode, encode
from anon.wire.packets import Dummy, Packet, enrolment_info, packet_info, pad, parse_packet, unpad, withdrawal_info

INFOS = {"enrol": enrolment_info, "withdraw": withdrawal_info, "packets": packet_info}
"""The purpose of a post, by where it goes."""
FIELDS = ("version", "study", "round", "slot", "survey", "report", "shares", "token")
"""The names of a plaintext's fields."""


def spelled(packet: Packet, **changes: object) -> bytes:
    """The packet's plaintext with other values in some fields, whatever they are; None takes a field away."""
    fields: list[Any] = decode(packet.to_bytes(), "packet")
    named = dict(zip(FIELDS, fields, strict=True))
    assert changes.keys() <= named.keys()
    return encode([value for value in (named | changes).values() if value is not None])


def moved(packet: Packet, **changes: object) -> Packet:
    """The packet on another occasion: in another `study`, `round` or `slot`."""
    return evolve(packet, occasion=evolve(packet.occasion, **changes))


def boxed(manifest: Manifest, what: str, plaintext: bytes, key: bytes | None = None) -> bytes:
    """Bytes sealed as a post to `what` is, to the study's key if no other is given."""
    return seal(plaintext, manifest.sealing_key if key is None else key, INFOS[what](manifest.study_id))


def posted(manifest: Manifest, plaintext: bytes) -> bytes:
    """Any plaintext, padded and sealed as packets of the study are."""
    return boxed(manifest, "packets", pad(plaintext, layout_of_packets(manifest).plain_size))


def opened(manifest: Manifest, secret: bytes, what: str, sealed: bytes) -> bytes:
    """The plaintext of a post to `what`, without its padding. Raises what opening raises."""
    plaintext = Opener(secret).open(sealed, INFOS[what](manifest.study_id))
    return unpad(plaintext, layout_of_packets(manifest).plain_size) if what == "packets" else plaintext


def read(manifest: Manifest, plaintext: bytes) -> Packet | Dummy:
    """The packet or the dummy that a plaintext is. Raises `Malformed`."""
    layout = layout_of_packets(manifest)
    return parse_packet(pad(plaintext, layout.plain_size), layout)


def packet_in(manifest: Manifest, plaintext: bytes) -> Packet:
    """The packet that a plaintext is. Raises `Malformed`."""
    found = read(manifest, plaintext)
    assert not isinstance(found, Dummy)
    return found
