"""The tellers of a study, for everybody who knows no protocol: all that is summed by tellers is arranged alike."""

from __future__ import annotations

from functools import lru_cache

from anon.protocols.registry import protocol_of
from anon.sharing.arrangement import Arrangement, parse_arrangement
from anon.study.manifest import Manifest


@lru_cache(maxsize=64)
def tellers_of(study: Manifest) -> Arrangement | None:
    """The study's tellers and sums; None where answers are perturbed and there are no tellers. Raises `Malformed`."""
    if study.packet_version == 1 or not protocol_of(study).share_sizes(study):
        return None
    return parse_arrangement(study.part)
