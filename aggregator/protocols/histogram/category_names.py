"""The names of what an open or closed survey of the histogram estimates, for the desk."""

from __future__ import annotations

from collections.abc import Mapping

from anon.protocols.histogram.asked import SIDE
from anon.protocols.histogram.one_bit import ROUNDED
from anon.protocols.histogram.thresholds import RoundCounts, asked_before, asked_edges, feature_cuts
from anon.protocols.names import cell_names, interval_names, with_label
from anon.study.manifest import Manifest, Survey

ONE_BIT = (*ROUNDED, SIDE)


def category_names(manifest: Manifest, survey: Survey, published: Mapping[int, RoundCounts]) -> list[str]:
    """The names of the categories; of a yes/no question that of its yes alone."""
    feature = survey.features[0]
    if survey.kind in ONE_BIT:
        return ["answered plus"]
    if survey.kind == "threshold":
        return [f"{feature} > {asked_edges(manifest, survey, published)[0]:.6g}"]
    if survey.kind == "quantile":
        return interval_names(feature, asked_edges(manifest, survey, published))
    cuts = [feature_cuts(manifest, name, published) if manifest.feature(name).kind == "numeric" else ()
            for name in survey.features]
    return with_label(manifest, cell_names(manifest, survey.features, survey.cards, cuts))


def can_be_named(manifest: Manifest, survey: Survey, published: Mapping[int, RoundCounts]) -> bool:
    """True if the documents that say what the survey asks are published."""
    return all(earlier.survey in published for earlier in asked_before(manifest, survey))
