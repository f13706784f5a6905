"""The section of a study file whose parties average models under the noise of the smallest of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from anon.errors import InvalidValue
from anon.protocols.sum.sections import BOUNDS as OF_SUMS
from anon.protocols.sum.sections import WORDS as OF_SECTIONS
from anon.protocols.sum.sections import Averaging
from anon.study.proposal import Proposal
from anon.study.records import RECORD
from anon.values import frozen

DESIGN: Final = "oblivious-averaging"
FEWEST, MOST = 3, 10
"""Parties: of two, each would know the other's weights but for their noise."""
KEY_BITS, LEAST_BITS = 3072, 512


def demand_bits(bits: int) -> None:
    """Raises `InvalidValue`."""
    if not LEAST_BITS <= bits <= KEY_BITS or bits % 128:
        raise InvalidValue(f"key_bits: expected {KEY_BITS}, or on one machine a multiple of 128 from {LEAST_BITS} on")


@frozen
class ObliviousAveraging(Averaging):
    """As `Averaging`, of a record. `key_bits`: of the Paillier keys, fewer in a trial on one machine alone."""

    has_tellers: ClassVar[bool] = False
    key_bits: int = KEY_BITS

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        demand_bits(self.key_bits)
        if proposal.unit != RECORD:
            raise InvalidValue('unit: its noise is for one record of a party; write unit = "record"')
        if proposal.cohort.minimum < FEWEST or not 0 < proposal.cohort.maximum <= MOST:
            raise InvalidValue(f"cohort: expected a minimum of at least {FEWEST}, and a maximum of at most {MOST}")


WORDS: Final[Mapping[str, str]] = {
    **OF_SECTIONS["averaging"],
    "kind": "The mean of parties' models with the noise of the smallest of them, which is chosen unseen.",
    "epsilon": "Central and pure, of the published mean: if no party works with the aggregator.",
    "key_bits": "Bits of the Paillier keys: 3072, or fewer in a trial on one machine.",
}
"""A sentence for every key."""
BOUNDS: Final = {**OF_SUMS["averaging"], "key_bits": {"minimum": LEAST_BITS, "maximum": KEY_BITS}}
