"""The peer's part of `sum`, whose code is loaded when a study of sums asks it (`anon.protocols.sum.protocol`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from anon.ldp import RandomBytes
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.outgoing import Answer, OpenShares, RawVector, SealedShares
from anon.study.manifest import Manifest, Survey

if TYPE_CHECKING:
    from peer.protocols.sum.part import SumPart


def _part() -> SumPart:
    from peer.protocols.sum.part import SumPart

    return SumPart()


@frozen
class LateSumPart:
    """See `peer.protocols.contract`; each member is that of `peer.protocols.sum.part`."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """See `PeerPart`."""
        return _part().needs(manifest, survey)

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """See `PeerPart`."""
        _part().check_documents(manifest, documents)

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[Answer, ...]:
        """See `PeerPart`."""
        return _part().answers(manifest, record, slots, documents)

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """See `PeerPart`."""
        return _part().random_size(manifest, survey)

    def cut(
        self, manifest: Manifest, survey: Survey, slot: int, vector: RawVector, tag: bytes, random_bytes: RandomBytes
    ) -> OpenShares:
        """See `SharingPart`."""
        return _part().cut(manifest, survey, slot, vector, tag, random_bytes)

    def seal(self, manifest: Manifest, survey: Survey, slot: int, shares: OpenShares, tag: bytes) -> SealedShares:
        """See `SharingPart`."""
        return _part().seal(manifest, survey, slot, shares, tag)
