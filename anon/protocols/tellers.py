"""The tellers of a study, for everybody who knows no protocol: all that is summed by tellers is arranged alike."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from anon.protocols.contract import SummedPart
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest
from anon.transparency.fingerprint import teller_words
from anon.values import frozen

if TYPE_CHECKING:
    from anon.sharing.arrangement import Arrangement


@frozen
class PresentedTeller:
    """A teller as staff present it: `words` are of its lasting key, to compare with the teller's own place."""

    name: str
    words: str
    address: str


@lru_cache(maxsize=64)
def tellers_of(study: Manifest) -> Arrangement | None:
    """The study's tellers and sums; None where answers are perturbed and there are no tellers. Raises `Malformed`."""
    protocol = protocol_of(study)
    return protocol.arrangement(study) if isinstance(protocol, SummedPart) else None


def tellers_can(spare: bool) -> str:
    """The powers of one teller, and of several, in one sentence for staff."""
    together = "any two" if spare else "all"
    return (
        "One teller alone reads no answer, but can make the sum wrong, which no check shows; "
        f"{together} of them together can read exact answers."
    )


def presented_tellers(study: Manifest) -> tuple[PresentedTeller, ...]:
    """The tellers in their order, for desk, report, cards and mail; none where there are none."""
    arrangement = tellers_of(study)
    named = arrangement.tellers if arrangement is not None else ()
    return tuple(PresentedTeller(teller.name, teller_words(teller.key), teller.address) for teller in named)
