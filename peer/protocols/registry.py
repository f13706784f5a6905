"""Which peer half belongs to a study's design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen

from anon.errors import Malformed
from anon.protocols.contract import Answering, Continue, DocumentArrived, Finish
from anon.study.manifest import Manifest
from peer.protocols import histogram
from peer.protocols.histogram import Record


class PeerHalf(Protocol):
    """What the session needs of a peer's half. Pure; only `answers` sees the record."""

    def drawn_surveys(self, manifest: Manifest, seed: bytes, tags: Sequence[bytes]) -> tuple[int, ...]:
        """The survey that each slot's tag draws, in the order of slots."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[tuple[str, int], ...]:
        """The documents (kind, part) without which the survey cannot be answered."""

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[Answering, ...]:
        """One answer for each of the slots (slot, survey) whose documents are among these. Raises `Malformed`."""


@frozen
class HistogramHalf:
    """`peer.protocols.histogram`, driven over the documents at hand."""

    def drawn_surveys(self, manifest: Manifest, seed: bytes, tags: Sequence[bytes]) -> tuple[int, ...]:
        """See `PeerHalf`."""
        return histogram.drawn_surveys(manifest, seed, tags)

    def needs(self, manifest: Manifest, survey: int) -> tuple[tuple[str, int], ...]:
        """See `PeerHalf`."""
        return histogram.needs(manifest, survey)

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[Answering, ...]:
        """See `PeerHalf`."""
        found: list[Answering] = []
        moved = histogram.start(manifest, record, slots)
        for document in documents:
            found += _answerings(moved)
            if isinstance(moved, Finish):
                return tuple(found)
            moved = histogram.step(moved.state, document)
        return (*found, *_answerings(moved))


def _answerings(moved: Continue[histogram.Waiting] | Finish) -> list[Answering]:
    return [one for one in moved.outgoing if isinstance(one, Answering)]


_BY_DESIGN: dict[str, PeerHalf] = {"one-packet": HistogramHalf(), "paper": HistogramHalf()}


def half_of(manifest: Manifest) -> PeerHalf:
    """The half of the study's design. Raises `Malformed` for an unknown one."""
    if manifest.design not in _BY_DESIGN:
        raise Malformed(f"manifest: unknown design {manifest.design!r}; update this program")
    return _BY_DESIGN[manifest.design]
