"""Packets of some buckets checked: a piece of an audit that any process can do from public bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from attrs import frozen

from aggregator.rules.acceptance import PacketRules, check_report, demand_known
from aggregator.rules.refusal import PacketRefused
from aggregator.study.learn import Counting
from anon.credential import PublicKey, cached_verifier
from anon.errors import AnonmlError
from anon.protocols.registry import Protocols
from anon.study.manifest import Manifest
from anon.wire.messages import credential_header
from anon.wire.packets import PublishedPacket


@frozen
class PacketContext:
    """All that every packet is checked against."""

    manifest: bytes
    protocols: Protocols
    roster_digest: bytes
    seed: bytes
    score_value: bytes = b""
    """Empty where it was not revealed."""

    @property
    def counting(self) -> Counting:
        """The same for what is counted in the packets."""
        return Counting(self.manifest, self.protocols, self.score_value)


@frozen
class PacketVerdicts:
    """The tags in the order of the packets, the words of those that are refused, and how many tokens do not verify.

    `fault`: why a packet cannot be one of the study, None where all can.
    """

    tags: tuple[bytes, ...] = ()
    refused: tuple[str, ...] = ()
    bad_tokens: int = 0
    fault: str | None = None


def check_packets(asked: PacketContext, buckets: Sequence[Sequence[PublishedPacket]]) -> list[PacketVerdicts]:
    """For each bucket the verdict on its packets, of whichever surveys. All tokens are checked in one batch.

    Never raises for anything that they hold.
    """
    manifest = _manifest(asked.manifest, asked.protocols)
    rules = PacketRules(manifest.study_id, manifest, bytes(32))
    faults = [_fault(rules, packets) for packets in buckets]
    sound = [packet for packets, fault in zip(buckets, faults, strict=True) if fault is None for packet in packets]
    bad = iter(_bad_tokens(rules, asked.roster_digest, sound))
    verdicts = []
    for packets, fault in zip(buckets, faults, strict=True):
        if fault is not None:
            verdicts.append(PacketVerdicts(fault=fault))
            continue
        tags = tuple(packet.tag for packet in packets)
        verdicts.append(PacketVerdicts(tags, _refused(rules, packets, asked.seed), sum(islice(bad, len(packets)))))
    return verdicts


def _fault(rules: PacketRules, packets: Sequence[PublishedPacket]) -> str | None:
    try:
        for packet in packets:
            demand_known(rules, packet)
    except PacketRefused as turned:
        return str(turned)
    return None


def _refused(rules: PacketRules, packets: Sequence[PublishedPacket], seed: bytes) -> tuple[str, ...]:
    refused = []
    for packet in packets:
        try:
            check_report(rules, packet, seed)
        except PacketRefused as turned:
            refused.append(turned.word)
    return tuple(refused)


def _bad_tokens(rules: PacketRules, roster_digest: bytes, packets: Sequence[PublishedPacket]) -> list[bool]:
    manifest = rules.manifest
    header = credential_header(manifest.study_id, roster_digest)
    verifier = cached_verifier(PublicKey(manifest.credential_key), header, manifest.packets)
    verdicts = verifier.check_batch([rules.token_item(packet) for packet in packets], os.urandom)
    return [isinstance(verdict, AnonmlError) for verdict in verdicts]


@lru_cache(maxsize=2)
def _manifest(body: bytes, protocols: Protocols) -> Manifest:
    return protocols.manifest(body)
