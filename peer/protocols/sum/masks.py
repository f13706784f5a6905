"""The protocol `masks` on the owner's machine: the letters of its five rounds, of which one stands on the record.

Pure. A member's secrets follow from the random bytes of its earlier letters (`Correspondence.own`), so none is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.ldp import RandomBytes
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import Pages
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.outgoing import OpenShares
from anon.protocols.sum.masks.layout import masking_of, vector_survey
from anon.protocols.sum.masks.masking import (
    KEYS,
    LETTER,
    SHARES,
    VECTOR,
    agreed,
    commitment,
    hidden,
    masked,
    members,
    neighbours,
    noise_bytes,
    opening,
    public_of,
    seen,
    threshold,
)
from anon.protocols.sum.masks.shared import MasksShared
from anon.protocols.sum.masks.sharing import SECRET, SHARE, shares
from anon.protocols.sum.parties import GIVEN, VOTES
from anon.protocols.sum.vector import vector_of
from anon.study.manifest import Manifest, Survey
from anon.values import frozen
from peer.protocols.contract import Correspondence, LettersAlone

_SEED = 32
_SIZES = {KEYS: SECRET, SHARES: SECRET + 2 * _SEED}


@frozen
class MasksPart(LettersAlone):
    """See `peer.protocols.contract`."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """See `PeerPart`."""
        return (GIVEN,) if manifest.survey(survey).kind == VOTES else ()

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """Given public rows; the pages are the framework's to check."""
        given = {(one.kind, one.part): one.body for one in documents if one.kind == GIVEN[0]}
        if given:
            MasksShared().check_given(manifest, given)

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """See `PeerPart`."""
        return _SIZES.get(survey.survey, 0)

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> bool:
        """See `CorrespondingPart`."""
        return survey.survey == VECTOR and tag in hidden(pages, masking_of(manifest.part).least)

    def letters(
        self,
        manifest: Manifest,
        survey: Survey,
        record: Record | None,
        known: Correspondence,
        documents: Sequence[DocumentArrived],
        random_bytes: RandomBytes,
    ) -> OpenShares:
        """See `CorrespondingPart`. Zeros where the pages show too few for a vector to be hidden, and where too few
        signed who came: nothing may be opened then."""
        pages, least = known.pages, masking_of(manifest.part).least
        match survey.survey:
            case 0:
                return OpenShares(public_of(random_bytes(SECRET)), ())
            case 1:
                own, seed = random_bytes(SECRET), random_bytes(_SEED)  # the last 32 are the noise's
                if len(members(pages)) < least:
                    return OpenShares(bytes(survey.size), (bytes(LETTER),) * survey.m)
                return OpenShares(commitment(own), _shared(survey, known, own, seed))
            case 2:
                if record is None:
                    return OpenShares(bytes(survey.size), ())
                given = {(one.kind, one.part): one.body for one in documents}.get(GIVEN, b"")
                return OpenShares(_vector(manifest, record, known, given), ())
            case 3:
                return OpenShares(seen(pages), ())
        if not agreed(pages, least):
            return OpenShares(bytes(survey.size), ())
        return OpenShares(opening(pages, known.mail, known.tag, survey.size // SHARE, least), ())


def _shared(survey: Survey, known: Correspondence, own: bytes, seed: bytes) -> tuple[bytes, ...]:
    """For each neighbour its share of the key's secret and of the own mask's."""
    many, needed = len(neighbours(known.pages, known.tag)), threshold(known.pages, known.tag)
    of_key = shares(known.own[KEYS], seed, b"key", needed, many)
    of_own = shares(own, seed, b"own", needed, many)
    letters = [key + mask for key, mask in zip(of_key, of_own, strict=True)]
    return (*letters, *[bytes(LETTER)] * (survey.m - len(letters)))


def _vector(manifest: Manifest, record: Record, known: Correspondence, given: bytes) -> bytes:
    """The record's vector with this member's share of the noise, under its masks."""
    values = vector_of(manifest, vector_survey(manifest), record, given=given)
    random_bytes = noise_bytes(known.own[SHARES][-_SEED:], values)
    noise = DiscreteGaussian(masking_of(manifest.part).noise).vector(len(values), random_bytes)
    noisy = [value + drawn for value, drawn in zip(values, noise, strict=True)]
    own = known.own[SHARES][:SECRET]
    return masked(manifest.study_id, known.pages, known.tag, known.own[KEYS], own, noisy)
