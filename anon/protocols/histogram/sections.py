"""The sections of a study file whose answers are perturbed and counted in histograms: one packet, and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Final

from attrs import field

from anon.errors import InvalidValue
from anon.protocols.histogram.ruled import DeclaredSums
from anon.study.features import demand_features, one_of
from anon.study.proposal import MAX_EPSILON, DesignSection, Proposal, epsilon_in_range
from anon.values import frozen

_MECHANISM = one_of("auto", "krr", "subset", "rappor", "pq")
MOST_SUBSETS = 4000
"""As many as the paper's design can have. One is resolved in about 2 ms, and every peer fetches them all."""


@frozen
class OnePacket(DesignSection):
    """Each peer answers one survey with the whole budget; about `binning_share` of the weight finds cuts.

    `asks = "tables"`: `subsets` names the feature subsets asked; left out, every combination of `subset_size` features.
    `asks = "bits"`: one-bit packets about single features, each feature equally often. `centre` is subtracted from the
    label before rounding; left out (0), it is `learning.base_rate`, the public guess of the share of positive labels. A
    centre of 0.5 makes less noise, but then learning must know how common each category is: declare `shares` of
    features where they are public knowledge. `label_share` of the weight asks about the label alone.
    `asks = "rule"`: the model is what staff expect, and answers correct it (`anon.protocols.histogram.ruled`).
    """

    epsilon: float = field(validator=epsilon_in_range)
    mechanism: str = field(default="auto", validator=_MECHANISM)
    subset_size: int = 1
    subsets: tuple[tuple[str, ...], ...] = ()
    binning_share: float = 0.1
    binning_levels: int = 16
    asks: str = field(default="tables", validator=one_of("tables", "bits", "rule"))
    centre: float = 0.0
    label_share: float = 0.03

    def __attrs_post_init__(self) -> None:
        if self.centre != 0 and not 0.001 <= self.centre <= 0.999:
            raise InvalidValue(f"centre: expected a share from 0.001 to 0.999, got {self.centre}")
        if not 0 <= self.label_share <= 0.5:
            raise InvalidValue(f"label_share: expected 0 to 0.5, got {self.label_share}")
        if self.asks != "tables" and (self.subsets or self.subset_size != 1):
            raise InvalidValue('subsets, subset_size: belong to asks = "tables"; a bit names its own')
        if not 1 <= self.subset_size <= 6:
            raise InvalidValue(f"subset_size: expected 1 to 6, got {self.subset_size}")
        if not 0.01 <= self.binning_share <= 0.5:
            raise InvalidValue(f"binning_share: expected 0.01 to 0.5, got {self.binning_share}")
        if not 4 <= self.binning_levels <= 64:
            raise InvalidValue(f"binning_levels: expected 4 to 64, got {self.binning_levels}")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        demand_features(proposal.features)
        asked = len(self.subsets) or comb(len(proposal.features), self.subset_size)
        if self.asks == "tables" and asked > MOST_SUBSETS:
            raise InvalidValue(
                f"design.subset_size: expected at most {MOST_SUBSETS} combinations of features, got {asked}; "
                "lower it, or name the subsets"
            )
        known = {feature.name for feature in proposal.features}
        for subset in self.subsets:
            if not subset or len(set(subset)) != len(subset) or not set(subset) <= known:
                raise InvalidValue("design.subsets: expected lists of different feature names that exist")
        if self.asks == "rule":
            _demand_rule(proposal)
        if self.asks != "tables" and proposal.learning.classifier != "additive":
            raise InvalidValue('learning.classifier: one-bit packets are learned by "additive"')
        _demand_binning_window(proposal)
        _demand_learner(proposal)


@frozen
class Paper(DesignSection):
    """The paper's design: `subsets_per_partition` (k_h) histogram slots of `partitions` (k_p) rows with `subset_size`
    (k_s) features each, and one binning slot per numeric feature without declared cuts."""

    epsilon_histogram: float = field(validator=epsilon_in_range)
    epsilon_binning: float = field(validator=epsilon_in_range)
    partitions: int = 20
    subset_size: int = 1
    subsets_per_partition: int = 2
    mechanism: str = field(default="auto", validator=_MECHANISM)
    binning: str = field(default="median", validator=one_of("median", "quantile"))
    binning_rounds: int = 15
    binning_levels: int = 16

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.partitions <= 200:
            raise InvalidValue(f"partitions: expected 1 to 200, got {self.partitions}")
        if not 1 <= self.subset_size <= 6 or not 1 <= self.subsets_per_partition <= 20:
            raise InvalidValue("subset_size, subsets_per_partition: expected 1 to 6 and 1 to 20")
        if not 2 <= self.binning_rounds <= 40:
            raise InvalidValue(f"binning_rounds: expected 2 to 40, got {self.binning_rounds}")
        if not 4 <= self.binning_levels <= 64:
            raise InvalidValue(f"binning_levels: expected 4 to 64, got {self.binning_levels}")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        demand_features(proposal.features)
        if self.subset_size * self.subsets_per_partition > len(proposal.features):
            raise InvalidValue("design: subset_size x subsets_per_partition exceeds the number of features")
        if self.binning == "median" and any(feature.bins > 2 for feature in proposal.features):
            raise InvalidValue('design.binning: "median" gives two bins; set bins = 2 or binning = "quantile"')
        _demand_binning_window(proposal)
        _demand_learner(proposal)


def _demand_rule(proposal: Proposal) -> None:
    if sum(bool(feature.expects) for feature in proposal.features) < 2:
        raise InvalidValue("design.asks: the rule needs at least two features that say what they expect")
    if proposal.binned:
        raise InvalidValue(f"design.asks: the rule needs declared cuts; {', '.join(proposal.binned)} have none")
    DeclaredSums.of(proposal.features)
    if proposal.schedule.binning < 1:
        raise InvalidValue("schedule.binning: required, because the middle of the declared score is found first")


def _demand_binning_window(proposal: Proposal) -> None:
    if proposal.binned and proposal.schedule.binning < 1:
        raise InvalidValue(
            f"schedule.binning: required, because cuts of {', '.join(proposal.binned)} are found privately; "
            "or write cuts in place of bins"
        )


def _demand_learner(proposal: Proposal) -> None:
    expecting = [feature.name for feature in proposal.features if feature.expects]
    if expecting and proposal.learning.classifier != "additive":
        raise InvalidValue(
            f'learning.classifier: only "additive" learns from what {", ".join(expecting)} expects; set it, or leave '
            "expects out"
        )


WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "one-packet": {
        "kind": "Each member answers one drawn question with the whole budget.",
        "epsilon": "Everything that a member releases about itself, together.",
        "mechanism": "auto takes the least error of the label contrast.",
        "subset_size": "How many features one question combines.",
        "subsets": "The combinations of features that are asked; left out, all of subset_size.",
        "binning_share": "The share of members who help to find cuts instead.",
        "binning_levels": "How many levels a question about cuts has.",
        "asks": "tables: features with the label; bits: one of them each; rule: a model of expected directions.",
        "centre": "Subtracted from the label before a bit is drawn; 0 takes learning.base_rate.",
        "label_share": "The share of bits that ask about the label alone.",
    },
    "paper": {
        "kind": "The paper's design of several packets.",
        "epsilon_histogram": "Of each histogram packet.",
        "epsilon_binning": "Of each binning packet.",
        "partitions": "k_p: rows of each slot's table.",
        "subset_size": "k_s: features in each subset.",
        "subsets_per_partition": "k_h: histogram packets of each member.",
        "mechanism": "auto takes the least error of the label contrast.",
        "binning": "By a median in rounds, or by quantiles of one small histogram.",
        "binning_rounds": "Rounds of the median search.",
        "binning_levels": "Levels of the histogram for quantiles.",
    },
}
"""By design a sentence for every key of its section."""

BOUNDS: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    "one-packet": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "subset_size": {"minimum": 1, "maximum": 6},
        "binning_share": {"minimum": 0.01, "maximum": 0.5},
        "binning_levels": {"minimum": 4, "maximum": 64},
        "label_share": {"minimum": 0, "maximum": 0.5},
    },
    "paper": {
        "epsilon_histogram": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "epsilon_binning": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "subset_size": {"minimum": 1, "maximum": 6},
        "binning_levels": {"minimum": 4, "maximum": 64},
        "partitions": {"minimum": 1, "maximum": 200},
        "subsets_per_partition": {"minimum": 1, "maximum": 20},
        "binning_rounds": {"minimum": 2, "maximum": 40},
    },
}
"""By design the bounds of keys, as JSON Schema spells them."""
