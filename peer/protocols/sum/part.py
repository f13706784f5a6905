"""The protocol `sum` on the owner's machine: the exact vector of each round, cut into shares for the study's tellers.

Where the tellers have a spare, the vector is cut anew for each pair of them, by random bytes of its own.

Pure. A vector is total over values (`anon.protocols.sum.vector`). A later round needs the sums of all rounds before it,
from which the common model is recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.ldp import RandomBytes
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.outgoing import Contributing, OpenShares, RawVector, SealedShares, sealed
from anon.protocols.sum.design import CHECK, one_in, shape_of
from anon.protocols.sum.parties import GIVEN, VOTES
from anon.protocols.sum.shared import SumShared
from anon.protocols.sum.standing import SUMS, arrangement_of, place_of, read_sum, read_sums, told_before
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.tables import TableSums
from anon.sharing.quorum import quorums
from anon.sharing.sealed_shares import open_shares, seals
from anon.study.manifest import Manifest, Survey
from anon.values import frozen
from anon.wire.packets import Occasion


@frozen
class SumPart:
    """See `peer.protocols.contract`."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """See `PeerPart`."""
        asked = manifest.survey(survey)
        return (GIVEN,) if asked.kind == VOTES else tuple(place_of(number) for number in range(asked.round))

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """Every signature, list and share of every sum, the model that follows from them, and given public rows."""
        given = {(one.kind, one.part): one.body for one in documents if one.kind == GIVEN[0]}
        if given:
            SumShared().check_given(manifest, given)
        sums = [read_sum(manifest, one.part, one.body) for one in documents if one.kind == SUMS]
        if sums and [one.part for one in documents if one.kind == SUMS] == [*range(len(sums))]:
            told_before(manifest, manifest.survey(min(len(sums), len(manifest.surveys) - 1)), sums)

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[Contributing, ...]:
        """See `PeerPart`."""
        bodies = {(one.kind, one.part): one.body for one in documents}
        asked = [(slot, manifest.survey(survey)) for slot, survey in slots]
        ready = [(slot, one) for slot, one in asked if {*self.needs(manifest, one.survey)} <= bodies.keys()]
        if not ready:
            return ()
        sums = read_sums(manifest, bodies, max(survey.round for _, survey in ready))
        made = []
        for slot, survey in ready:
            told = told_before(manifest, survey, sums[: survey.round])
            vector = RawVector(vector_of(manifest, survey, record, told, bodies.get(GIVEN, b"")))
            made.append(Contributing(slot, survey.survey, vector))
        return tuple(made)

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """See `PeerPart`."""
        arrangement = arrangement_of(manifest)
        return len(arrangement.groups) * arrangement.prio3(arrangement.sums[survey.survey]).randomness_size

    def takes_part(self, manifest: Manifest, survey: Survey, lot: bytes) -> bool:
        """See `SharingPart`. Who checks the model does not train it."""
        share = one_in(manifest.surveys)
        return not share or checks(lot, share) is (survey.kind == CHECK)

    def cut(
        self, manifest: Manifest, survey: Survey, slot: int, vector: RawVector, tag: bytes, random_bytes: RandomBytes
    ) -> OpenShares:
        """See `SharingPart`."""
        if len(vector.values) != survey.m:
            raise ValueError(f"expected a vector of {survey.m} entries")
        occasion, measured = Occasion(manifest.study_id, survey.round, slot), measurement(survey, vector.values)
        sharings = [
            open_shares(quorum.arrangement, quorum.occasion(occasion), measured, tag, random_bytes)
            for quorum in quorums(manifest.study_id, arrangement_of(manifest))
        ]
        public = b"".join(sharing.public_share for sharing in sharings)
        return OpenShares(public, tuple(share for sharing in sharings for share in sharing.input_shares))

    def seal(self, manifest: Manifest, survey: Survey, slot: int, shares: OpenShares, tag: bytes) -> SealedShares:
        """See `SharingPart`."""
        occasion = Occasion(manifest.study_id, survey.round, slot)
        closing = [
            closed
            for quorum in quorums(manifest.study_id, arrangement_of(manifest))
            for closed in seals(quorum.arrangement, quorum.occasion(occasion), tag)
        ]
        return sealed(shares, closing)


def checks(lot: bytes, share: int) -> bool:
    """True of one lot in so many."""
    return int.from_bytes(lot, "big") * share >> 8 * len(lot) == 0


def measurement(survey: Survey, values: Sequence[int]) -> list[int]:
    """The vector as its proof takes it: the place of the one in each block of a table, else the entries."""
    shape = shape_of(survey)
    if not isinstance(shape, TableSums):
        return list(values)
    return [cells.index(1) for cells in shape.split(values)]
