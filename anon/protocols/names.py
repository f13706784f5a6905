"""The names of categories, for people: as tables write them, and as sentences do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from anon.study.features import Feature
from anon.study.manifest import Manifest
from anon.text.foreign import Quoted
from anon.text.sentences import NOTHING, Sentence, listed, say


def bin_names(feature: Feature, cuts: Sequence[float], card: int) -> list[str]:
    """The names of a feature's `card` categories, given its cuts."""
    if feature.kind == "categorical":
        found = [f"{feature.name} {category}" for category in feature.categories]
    else:
        found = interval_names(feature.name, cuts)
    return [*found, f"{feature.name} missing"][:card]


def interval_names(name: str, cuts: Sequence[float]) -> list[str]:
    """The names of the bins between cuts: one name more than there are cuts."""
    edges = [f"{cut:.6g}" for cut in cuts]
    if not edges:
        return [name]
    inside = [f"{low} < {name} ≤ {high}" for low, high in pairwise(edges)]
    return [f"{name} ≤ {edges[0]}", *inside, f"{name} > {edges[-1]}"]


def cell_names(manifest: Manifest, features: Sequence[str], cards: Sequence[int], cuts: Sequence[Sequence[float]]) -> (
    list[str]
):
    """The names of a subset's cells in the order of the histogram index, without the label. `cuts`: per feature."""
    names = [""]
    for name, card, inside in zip(features, cards, cuts, strict=True):
        bins = bin_names(manifest.feature(name), inside, card)
        names = [f"{before}, {bin_name}" if before else bin_name for before in names for bin_name in bins]
    return names


def with_label(manifest: Manifest, cells: Sequence[str]) -> list[str]:
    """Each cell with both labels: the categories of a histogram survey."""
    return [f"{name}, {manifest.label.name} {sign}" for name in cells for sign in ("no", "yes")]


def category_text(feature: Feature, place: int) -> Sentence:
    """The statement about somebody that a category of a feature makes, as far as it is known before cuts are found."""
    return say("{name}: {category}", name=Quoted(feature.name), category=category_alone(feature, place))


def category_alone(feature: Feature, place: int) -> Sentence | Quoted:
    """The same without the feature's name."""
    if feature.missing == "own" and place == feature.cardinality - 1:
        return say("not known")
    if feature.kind == "categorical":
        return Quoted(feature.categories[place])
    if feature.cuts:
        return between(feature.cuts, place)
    return say("part {place} of {bins} from low to high", place=place + 1, bins=feature.bins)


def expectation(feature: Feature, label: str) -> Sentence:
    """The direction that staff declared for a feature, in words; empty where they declared none."""
    if not feature.expects:
        return NOTHING
    name, said = Quoted(feature.name), Quoted(label)
    if feature.kind == "numeric" and feature.expects[0] > 0:
        return say("Staff expect that the higher {name} is, the more often {label} is a yes.", name=name, label=said)
    if feature.kind == "numeric":
        return say("Staff expect that the higher {name} is, the less often {label} is a yes.", name=name, label=said)
    signed = list(zip(feature.categories, feature.expects, strict=True))
    more, less = (listed(word for word, sign in signed if sign == wanted) for wanted in (1, -1))
    if not less:
        return say("Staff expect that {label} is a yes more often for: {more}.", label=said, more=more)
    if not more:
        return say("Staff expect that {label} is a yes less often for: {less}.", label=said, less=less)
    return say(
        "Staff expect that {label} is a yes more often for: {more}; and less often for: {less}.",
        label=said, more=more, less=less,
    )  # fmt: skip


def between(edges: Sequence[float], place: int) -> Sentence:
    """Where a value in this bin lies."""
    if place == 0:
        return say("up to {edge:g}", edge=edges[0])
    if place == len(edges):
        return say("above {edge:g}", edge=edges[-1])
    return say("above {low:g}, up to {high:g}", low=edges[place - 1], high=edges[place])
