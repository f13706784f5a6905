"""The histogram's surveys that ask about the label: learning is about them. Its others find cuts."""

from __future__ import annotations

from anon.study.manifest import Survey


def asks_label(survey: Survey) -> bool:
    """True if an answer to this survey of a histogram study tells something of the label."""
    return survey.kind in ("histogram", "bit")


def asks_score(survey: Survey) -> bool:
    """True for the declared score (`anon.protocols.histogram.declared`): one bit about several features."""
    return survey.kind == "bit" and len(survey.features) > 1
