"""Which protocol a study's design belongs to."""

from __future__ import annotations

from anon.errors import Malformed
from anon.protocols.contract import StudyProtocol
from anon.protocols.histogram.study import HistogramProtocol
from anon.study.manifest import Manifest

_BY_DESIGN: dict[str, StudyProtocol] = {"one-packet": HistogramProtocol(), "paper": HistogramProtocol()}


def protocol_of(study: Manifest) -> StudyProtocol:
    """The protocol of the study's design. Raises `Malformed` for an unknown design."""
    if study.design not in _BY_DESIGN:
        raise Malformed(f"manifest: unknown design {study.design!r}; update this program")
    return _BY_DESIGN[study.design]
