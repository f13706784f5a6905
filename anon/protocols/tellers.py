"""The tellers of a study, for everybody who knows no protocol: all that is summed by tellers is arranged alike."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from anon.protocols.contract import SummedPart
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest

if TYPE_CHECKING:
    from anon.sharing.arrangement import Arrangement


@lru_cache(maxsize=64)
def tellers_of(study: Manifest) -> Arrangement | None:
    """The study's tellers and sums; None where answers are perturbed and there are no tellers. Raises `Malformed`."""
    protocol = protocol_of(study)
    return protocol.arrangement(study) if isinstance(protocol, SummedPart) else None
