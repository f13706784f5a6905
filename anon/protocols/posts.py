"""A study's posts to its aggregator, each sealed to the study's key by HPKE with X-Wing, for one study and one kind of
post alone (`anon.wire.packets`). All packets of a study, and its cover traffic, have one size.
"""

from __future__ import annotations

from functools import lru_cache

from anon.credential import token_size
from anon.crypto.sealing import OVERHEAD, seal
from anon.errors import Malformed
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest
from anon.wire.packets import (
    Dummy,
    Layout,
    Packet,
    SealedPacket,
    enrolment_info,
    seal_dummy,
    seal_packet,
    withdrawal_info,
)

_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def layout_of_packets(manifest: Manifest) -> Layout:
    """The lengths of the study's packets. `report` is that of its longest report. Raises `Malformed` for shares that
    are too short to be sealed."""
    shares = tuple(size - OVERHEAD for size in protocol_of(manifest).share_sizes(manifest))
    if any(size < 0 for size in shares):
        raise Malformed("manifest: its shares are too short to be sealed; do not take part")
    return Layout(manifest.report_size, shares, token_size(manifest.packets))


def recipients(manifest: Manifest) -> int:
    """How many shares each packet of the study has."""
    return len(layout_of_packets(manifest).shares)


def sealed_packet(manifest: Manifest, packet: Packet) -> SealedPacket:
    """A finished packet for the wire. Raises `Malformed` for one of other lengths."""
    manifest.survey(packet.survey).demand_report(packet.report)
    layout = layout_of_packets(manifest)
    layout.demand_shares(packet.shares)
    return seal_packet(packet, layout, manifest.sealing_key)


def sealed_dummy(manifest: Manifest, dummy: Dummy) -> SealedPacket:
    """Cover traffic for the wire."""
    return seal_dummy(dummy, layout_of_packets(manifest), manifest.sealing_key)


def sealed_enrolment(manifest: Manifest, signed: bytes) -> bytes:
    """A signed enrolment for the wire."""
    return seal(signed, manifest.sealing_key, enrolment_info(manifest.study_id))


def sealed_withdrawal(manifest: Manifest, signed: bytes) -> bytes:
    """A signed withdrawal for the wire."""
    return seal(signed, manifest.sealing_key, withdrawal_info(manifest.study_id))
