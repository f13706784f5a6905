"""The aggregator's part in binning: counting the answers. What follows from them is `anon.protocols.histogram.cuts`."""

from __future__ import annotations

from collections.abc import Sequence

from anon.protocols.histogram.cuts import Answers
from anon.study.manifest import Survey


def count(survey: Survey, reports: Sequence[bytes]) -> Answers:
    """The answers in the reports of one binning survey."""
    mechanism = survey.build()
    return Answers.of(survey, len(reports), mechanism.tally([mechanism.parse(report) for report in reports]))
