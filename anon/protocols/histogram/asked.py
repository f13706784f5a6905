"""The histogram's surveys that ask about the label: learning is about them. Its others find cuts."""

from __future__ import annotations

from typing import Final

from anon.study.manifest import Survey

MIDDLE: Final = "middle"
SIDE: Final = "side"
SCORE: Final = "score"
"""The kinds of the local rule's surveys (`anon.protocols.histogram.ruled`)."""


def asks_label(survey: Survey) -> bool:
    """True if this survey of a histogram study is learned from. Its answer tells something of the label, or, of a
    side, how answers that do are to be read."""
    return survey.kind in ("histogram", "bit", SIDE, SCORE)
