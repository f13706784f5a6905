"""The protocol `groups` on the owner's machine: its letters, of which each aggregation's shares stand on the records.

Pure. Values follow from the random bytes of the first letters (`Correspondence.own`), so none is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.ldp import RandomBytes
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import Pages
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.outgoing import OpenShares
from anon.protocols.sum.groups import drawing
from anon.protocols.sum.groups.drawing import KEYS, OPENED, SEED, SHARED, SHARES, VALUE, step_of, survey_of
from anon.protocols.sum.groups.layout import grouping_of, weights_survey
from anon.protocols.sum.groups.shared import drawn_groups
from anon.protocols.sum.vector import vector_of
from anon.study.manifest import Manifest, Survey
from anon.values import frozen
from peer.protocols.contract import Correspondence, LettersAlone

_DRAWS: Final = (0, SEED, SEED)
"""Random bytes of each round of an aggregation."""


@frozen
class GroupsPart(LettersAlone):
    """See `peer.protocols.contract`."""

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """The pages alone, which are the framework's to check."""

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """See `PeerPart`."""
        return SEED if survey.survey == KEYS else _DRAWS[step_of(survey.survey)[1]]

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> bool:
        """See `CorrespondingPart`. True if the member was drawn into a group."""
        return _group(manifest, survey, tag, pages) is not None

    def letters(
        self,
        manifest: Manifest,
        survey: Survey,
        record: Record | None,
        known: Correspondence,
        documents: Sequence[DocumentArrived],
        random_bytes: RandomBytes,
    ) -> OpenShares:
        """See `CorrespondingPart`. Zeros of whoever is in no group, or is no receiver."""
        if survey.survey == KEYS:
            return OpenShares(_commitments(manifest, known.tag, random_bytes(SEED), survey.size), ())
        aggregation, step = step_of(survey.survey)
        if step == OPENED:
            return OpenShares(drawing.value_of(known.own[KEYS], aggregation), ())
        seed = random_bytes(SEED)
        if step == SHARES:
            if record is None:
                return OpenShares(bytes(survey.size), (bytes(survey.letter_size),) * survey.m)
            values = vector_of(manifest, weights_survey(manifest), record)
            return OpenShares(SHARED, tuple(drawing.shares(values, survey.m, seed)))
        return OpenShares(_told(manifest, survey, known, seed) or bytes(survey.size), ())


def _commitments(manifest: Manifest, tag: bytes, seed: bytes, size: int) -> bytes:
    many = (size - PUBLIC_KEY_SIZE) // VALUE
    values = [drawing.value_of(seed, number) for number in range(many)]
    return b"".join(
        drawing.commitment(manifest.study_id, tag, number, value) for number, value in enumerate(values)
    )


def _group(manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> drawing.Group | None:
    found = drawn_groups(manifest, step_of(survey.survey)[0], pages)
    return next((group for group in found if tag in group.members), None)


def _told(manifest: Manifest, survey: Survey, known: Correspondence, seed: bytes) -> bytes | None:
    """The sum of the shares that a receiver was sent, with its noise; None where one of them did not open."""
    group = _group(manifest, survey, known.tag, known.pages)
    if group is None or known.tag not in group.receivers:
        return None
    number = survey_of(group.aggregation, SHARES)
    letters = [known.mail.get((number, tag), b"") for tag in drawing.came(known.pages, group)]
    if not letters or {len(letter) for letter in letters} != {survey.size}:
        return None
    total = drawing.added(letters)
    drawn = drawing.stream("noise", seed, total)
    noise = DiscreteGaussian(grouping_of(manifest.part).noise).vector(len(total), drawn)
    return drawing.spelled([entry + more for entry, more in zip(total, noise, strict=True)])
