"""Cuts that staff may declare where a study file leaves them to be found from perturbed answers.

Finding cuts takes members away from the real question, and in a small group finds mostly noise. With 2,000 people at
epsilon 1 cuts that somebody knew to matter gained .03 to .07 of AUC on four data sets (`benchmarks/directions.py`);
equal parts of the range, as suggested here, 0 to .02. They are a beginning for those who know better.
"""

from __future__ import annotations

from math import expm1, floor, log1p, log10

from anon.study.features import Feature
from anon.study.manifest import Manifest

FEW = 5_000
"""Up to so many people cuts are suggested."""

PARTS = 4


def suggested_cuts(manifest: Manifest, people: int | None = None) -> tuple[str, ...]:
    """A line for each number whose cuts would be found privately, and one that says why; empty for larger groups."""
    size = people or manifest.cohort.minimum
    found = [feature for feature in manifest.features if feature.binned_privately]
    if not found or size > FEW:
        return ()
    told = [f"cuts of {feature.name}: such as cuts = {_spelled(cuts_of(feature))}" for feature in found]
    why = (
        f"With {size:,} people, cuts that are looked for are mostly noise, and some members answer about nothing else. "
        "Declare those that you know to matter, such as a pass mark or no visit at all. To begin from, ranges in parts:"
    )
    return (why, *told)


def cuts_of(feature: Feature) -> tuple[float, ...]:
    """Round numbers that divide the declared range into `PARTS` parts, equal in the feature's scale. Of a count with a
    long tail (a log scale from 0) one part is 0 alone: none at all."""
    low, high = feature.range
    start, end = (log1p(low), log1p(high)) if feature.scale == "log" else (low, high)
    none = feature.scale == "log" and low == 0
    parts = PARTS - 1 if none else PARTS
    places = [start + (end - start) * part / parts for part in range(0 if none else 1, parts)]
    values = [expm1(place) if feature.scale == "log" else place for place in places]
    return tuple(sorted({rounded for value in values if low <= (rounded := _round(value, high - low)) < high}))


def _round(value: float, width: float) -> float:
    """Two digits, of the value or of the range's width, whichever is finer."""
    if not value:
        return 0.0
    return round(value, 1 - floor(log10(min(abs(value), width))))


def _spelled(cuts: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{cut:g}' for cut in cuts)}]"
