"""What the categories of a survey are called, for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from anon.study.manifest import Manifest, Survey
from anon.study.parts import Feature


def bin_names(feature: Feature, cuts: Sequence[float], card: int) -> list[str]:
    """The names of a feature's `card` categories, given its cuts."""
    if feature.kind == "categorical":
        found = [f"{feature.name} {category}" for category in feature.categories]
    else:
        found = interval_names(feature.name, cuts)
    return [*found, f"{feature.name} missing"][:card]


def interval_names(name: str, cuts: Sequence[float]) -> list[str]:
    """What lies between cuts: one name more than there are cuts."""
    edges = [f"{cut:.6g}" for cut in cuts]
    if not edges:
        return [name]
    between = [f"{low} < {name} ≤ {high}" for low, high in pairwise(edges)]
    return [f"{name} ≤ {edges[0]}", *between, f"{name} > {edges[-1]}"]


def cell_names(manifest: Manifest, features: Sequence[str], cards: Sequence[int], cuts: Sequence[Sequence[float]]) -> (
    list[str]
):
    """The names of a subset's cells in the order of the histogram index, without the label. `cuts`: per feature."""
    names = [""]
    for name, card, inside in zip(features, cards, cuts, strict=True):
        bins = bin_names(manifest.feature(name), inside, card)
        names = [f"{before}, {one}" if before else one for before in names for one in bins]
    return names


def with_label(manifest: Manifest, cells: Sequence[str]) -> list[str]:
    """Each cell with both labels: the categories of a histogram survey."""
    return [f"{name}, {manifest.label.name} {sign}" for name in cells for sign in ("no", "yes")]


def survey_title(manifest: Manifest, survey: Survey) -> str:
    """What a survey asks."""
    asked = " × ".join(survey.features)
    kinds = {"histogram": f"{asked} × {manifest.label.name}", "bit": f"one bit about {asked} and {manifest.label.name}"}
    return kinds.get(survey.kind, f"cuts of {asked}")
