"""Packets of some buckets checked: a piece of an audit that any process can do from public bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from attrs import frozen

from aggregator.rules.acceptance import OpenedPacket, PacketRules, check_report, read_packet
from aggregator.rules.refusal import PacketRefused
from aggregator.study.learn import Counting
from anon.credential import PublicKey, cached_verifier
from anon.errors import AnonmlError
from anon.protocols.registry import Protocols
from anon.study.manifest import Manifest
from anon.wire.messages import credential_header


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

    `fault`: why a packet cannot be read, None
    where all can; it is empty where the program's own words say nothing.
    """

    tags: tuple[bytes, ...] = ()
    refused: tuple[str, ...] = ()
    bad_tokens: int = 0
    fault: str | None = None


def check_packets(asked: PacketContext, buckets: Sequence[Sequence[bytes]]) -> list[PacketVerdicts]:
    """For each bucket the verdict on its packets, of whichever surveys. All tokens are checked in one batch.

    Never raises for anything that they hold.
    """
    manifest = _manifest(asked.manifest, asked.protocols)
    rules = PacketRules(manifest.study_id, manifest, bytes(32))
    read = [_read(rules, plaintexts) for plaintexts in buckets]
    opened = [packet for packets in read if not isinstance(packets, str) for packet in packets]
    bad = iter(_bad_tokens(rules, asked.roster_digest, opened))
    verdicts = []
    for packets in read:
        if isinstance(packets, str):
            verdicts.append(PacketVerdicts(fault=packets))
            continue
        tags = tuple(packet.kept.tag for packet in packets)
        verdicts.append(PacketVerdicts(tags, _refused(rules, packets, asked.seed), sum(islice(bad, len(packets)))))
    return verdicts


def _read(rules: PacketRules, plaintexts: Sequence[bytes]) -> list[OpenedPacket] | str:
    """The packets, or why one cannot be read."""
    try:
        return [read_packet(rules, plaintext) for plaintext in plaintexts]
    except AnonmlError as fault:
        return str(fault)
    except (KeyError, ValueError, TypeError):
        return ""


def _refused(rules: PacketRules, packets: Sequence[OpenedPacket], seed: bytes) -> tuple[str, ...]:
    refused = []
    for packet in packets:
        try:
            check_report(rules, packet, seed)
        except PacketRefused as turned:
            refused.append(turned.word)
    return tuple(refused)


def _bad_tokens(rules: PacketRules, roster_digest: bytes, opened: Sequence[OpenedPacket]) -> list[bool]:
    manifest = rules.manifest
    header = credential_header(manifest.study_id, roster_digest)
    verifier = cached_verifier(PublicKey(manifest.credential_key), header, manifest.packets)
    verdicts = verifier.check_batch([packet.token_item(rules) for packet in opened], os.urandom)
    return [isinstance(verdict, AnonmlError) for verdict in verdicts]


@lru_cache(maxsize=2)
def _manifest(body: bytes, protocols: Protocols) -> Manifest:
    return protocols.manifest(body)
