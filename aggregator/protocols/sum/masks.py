"""The protocol `masks` at the aggregator: everybody can add up the pages, so it knows no more than anybody."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aggregator.protocols.contract import LearningResult
from aggregator.protocols.sum.part import OpenedSum, learned_of
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.tally import Tally
from anon.errors import Malformed
from anon.protocols.board import pages_in
from anon.protocols.contract import Place
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.masks.layout import masking_of, vector_survey
from anon.protocols.sum.masks.masking import CAME, KEYS, SHARES, VECTOR, agreed, came, members, opened, sharers, torn
from anon.protocols.sum.parties import GIVEN
from anon.study.manifest import Manifest


@frozen
class OpeningPart(OpenedSum):
    """See `aggregator.protocols.contract`."""

    def ends(self, study: Manifest, number: int, documents: Mapping[Place, bytes]) -> bool:
        """True where the sum can no longer be opened."""
        pages, least = pages_in(study, documents), masking_of(study.part).least
        if number == CAME:
            return not agreed(pages, least)
        if number == VECTOR:
            return len(came(pages, least)) < least or torn(pages, least)
        there = {KEYS: members, SHARES: sharers}.get(number)
        return len(there(pages)) < least if there is not None else _sum(study, documents) is None

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearningResult:
        """The model of the opened sum."""
        found = _sum(study, documents)
        if found is None:
            raise Malformed("masks: too few opened what came, or their shares do not fit")
        return learned_of(study, vector_survey(study), found, documents.get(GIVEN, b""))


def _sum(study: Manifest, documents: Mapping[Place, bytes]) -> NoisySum | None:
    """The sum of all vectors that came, with the noise of each member on every entry."""
    pages, masking = pages_in(study, documents), masking_of(study.part)
    values = opened(study.study_id, pages, masking.least, shape_of(vector_survey(study)).length)
    many = len(came(pages, masking.least))
    return None if values is None else NoisySum(tuple(values), many, masking.noise, many)
