"""The contract of a protocol's peer part. Pure: it never sends, stores or waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from attrs import field

from anon.errors import Malformed
from anon.ldp import PerturbedReport, RandomBytes, RawCategory
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.outgoing import Answer, OpenShares, RawVector, SealedShares
from anon.protocols.registry import parts_of
from anon.study.manifest import Manifest, Survey
from anon.values import frozen

if TYPE_CHECKING:
    from anon.protocols.board import Mail, Pages



class PeerPart(Protocol):
    """The part on the owner's machine. Only `answers` and `letters` see the record.

    A part is a `PerturbingPart`, a `SharingPart`, a `CorrespondingPart`, or several: as its answers are categories,
    exact vectors, or letters.
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
        """Random bytes that `perturb`, `cut` or `letters` takes, for every record alike. Seals take none of them."""


@runtime_checkable
class PerturbingPart(PeerPart, Protocol):
    """The part of a protocol whose answers are categories. Only `peer.release` calls `perturb`."""

    def perturb(self, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """The report of an answer, made by the survey's mechanism. Raises `ValueError` for another survey's answer."""


@runtime_checkable
class SharingPart(PeerPart, Protocol):
    """The part of a protocol whose answers are exact vectors. Only `peer.data.making` calls `cut`, away from every key
    and by a deadline; only `peer.release` calls `seal`."""

    def takes_part(self, manifest: Manifest, survey: Survey, lot: bytes) -> bool:
        """True if this member's vector in a survey is of its record. If not, it is zeros, and nothing is charged.
        `lot`: 32 bytes that its machine drew when it joined, the same throughout the study and unrelated to data."""

    def cut(
        self, manifest: Manifest, survey: Survey, slot: int, vector: RawVector, tag: bytes, random_bytes: RandomBytes
    ) -> OpenShares:
        """The shares of a vector for the packet with this tag (48 bytes), of the same lengths for every vector of the
        survey. Raises `ValueError` for another survey's vector."""

    def seal(self, manifest: Manifest, survey: Survey, slot: int, shares: OpenShares, tag: bytes) -> SealedShares:
        """The same, each sealed to its recipient: the same work whatever they hold. They have the survey's `size`."""


@frozen
class Correspondence:
    """All that a member knows of its study's letters when it writes. `tag`: its own pseudonym, or in a posted survey
    the tag of that occasion. `own`: by survey of its earlier letters that read no record, the random bytes that they
    took. `mail`: the letters that opened. `pages`: those before."""

    tag: bytes
    own: Mapping[int, bytes] = field(repr=False)
    mail: Mail = field(repr=False)
    pages: Pages = field(repr=False)


@runtime_checkable
class CorrespondingPart(PeerPart, Protocol):
    """The part of a protocol whose members write (`anon.protocols.board`). Only `peer.release` seals what it writes.

    No document needs to be named in `needs` for a written survey: whoever writes has read all of the board before.
    """

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> bool:
        """True if what this member writes in a survey stands on its record. It follows from public things alone. If
        not, the part is shown no record, and nothing is charged. It is not asked of a survey that costs nothing."""

    def letters(
        self,
        manifest: Manifest,
        survey: Survey,
        record: Record | None,
        known: Correspondence,
        documents: Sequence[DocumentArrived],
        random_bytes: RandomBytes,
    ) -> OpenShares:
        """The open text, and `m` letters in the order of the circle's seats. They have one length each, whether there
        is something to say or not; whoever has nothing for a seat writes it an empty letter. Never raises on account of
        record or mail. `random_bytes`: as many as `random_size` says, the operating system's.

        The text of the first survey with letters has its sealing key before it, which is not the part's to write."""

    def received(
        self, manifest: Manifest, known: Correspondence, documents: Sequence[DocumentArrived]
    ) -> Mapping[Place, bytes]:
        """Results for this member alone, once the last page is there; none where the protocol has none. Each is as the
        results of a study are spelled, and never leaves."""


class LettersAlone:
    """The part of a `CorrespondingPart` that writes all of its answers, reads the board alone, and keeps nothing."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """None."""
        return ()

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[Answer, ...]:
        """None."""
        return ()

    def received(
        self, manifest: Manifest, known: Correspondence, documents: Sequence[DocumentArrived]
    ) -> Mapping[Place, bytes]:
        """None."""
        return {}


def part_of(manifest: Manifest) -> PeerPart:
    """The part of the study's protocol. Raises `Malformed` where the program has none."""
    if (part := parts_of(manifest).peer) is None:
        raise Malformed(f"manifest: protocol {manifest.protocol!r} cannot be run here; update this program")
    return cast(PeerPart, part)
