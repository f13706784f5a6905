"""The contract of a protocol's peer part. Pure: it never sends, stores or waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast, runtime_checkable

from anon.errors import Malformed
from anon.ldp import PerturbedReport, RandomBytes, RawCategory
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.outgoing import Answer, OpenShares, RawVector, SealedShares
from anon.protocols.registry import parts_of
from anon.study.manifest import Manifest, Survey


class PeerPart(Protocol):
    """The part on the owner's machine. Only `answers` sees the record.

    A part is a `PerturbingPart`, a `SharingPart`, or both: as its answers are categories or exact vectors.
    """

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """The documents (kind, part) without which the survey cannot be answered."""

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """Read every document, also those that no drawn survey needs: whoever drew what stops at the same one. Raises
        `Malformed`."""

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[Answer, ...]:
        """One answer for each of the slots (slot, survey), none without a slot: their documents are among these. Raises
        `Malformed`, and never on account of the record: if there is an answer depends on study and documents alone."""

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """Random bytes that `perturb` or `cut` takes, for every record alike. The seals of shares take none of them."""


@runtime_checkable
class PerturbingPart(PeerPart, Protocol):
    """The part of a protocol whose answers are categories. Only `peer.release` calls `perturb`."""

    def perturb(self, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """The report of an answer, made by the survey's mechanism. Raises `ValueError` for another survey's answer."""


@runtime_checkable
class SharingPart(PeerPart, Protocol):
    """The part of a protocol whose answers are exact vectors. Only `peer.data.making` calls `cut`, away from every key
    and by a deadline; only `peer.release` calls `seal`."""

    def cut(
        self, manifest: Manifest, survey: Survey, slot: int, vector: RawVector, tag: bytes, random_bytes: RandomBytes
    ) -> OpenShares:
        """The shares of a vector for the packet with this tag (48 bytes), of the same lengths for every vector of the
        survey. Raises `ValueError` for another survey's vector."""

    def seal(self, manifest: Manifest, survey: Survey, slot: int, shares: OpenShares, tag: bytes) -> SealedShares:
        """The same, each sealed to its recipient: the same work whatever they hold. They have the survey's `size`."""


def part_of(manifest: Manifest) -> PeerPart:
    """The part of the study's protocol. Raises `Malformed` where the program has none."""
    if (part := parts_of(manifest).peer) is None:
        raise Malformed(f"manifest: protocol {manifest.protocol!r} cannot be run here; update this program")
    return cast(PeerPart, part)
