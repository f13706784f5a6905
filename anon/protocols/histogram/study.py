"""The histogram protocol as both sides know it: what a study of it must satisfy and what it exposes."""

from __future__ import annotations

from anon.errors import Malformed
from anon.protocols.histogram import cuts
from anon.resolve import attribute_epsilon, total_epsilon
from anon.study.manifest import Manifest


class HistogramProtocol:
    """Packets of perturbed histogram cells (Cyphers & Veeramachaneni 2017, section VII). See `contract`."""

    name = "histogram"

    def check(self, study: Manifest) -> None:
        """Every declared epsilon is at least the recomputed one; every window lies within the timetable; every cut can
        be found."""
        recomputed = total_epsilon(study.surveys, study.slots)
        if study.epsilon < recomputed:
            raise Malformed(
                f"manifest: declares epsilon {study.epsilon} but its surveys cost {recomputed}; do not take part"
            )
        if study.epsilon_per_attribute < attribute_epsilon(study.surveys, study.slots):
            raise Malformed("manifest: declares too small a per-attribute epsilon; do not take part")
        cuts.check(study)
        table = study.timetable
        for survey in study.surveys:
            if not table.settled <= survey.window.opens < survey.window.closes <= table.ends:
                raise Malformed(
                    f"manifest: survey {survey.survey} is open outside the study's timetable; do not take part"
                )
            if survey.build().report_size > study.report_size:
                raise Malformed(f"manifest: survey {survey.survey} does not fit the packet size; do not take part")

    def exposure(self, study: Manifest) -> tuple[int, float]:
        """The record-level epsilon by the surveys' actual probabilities; delta is 0 (pure)."""
        return total_epsilon(study.surveys, study.slots), 0.0
