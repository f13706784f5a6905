"""The sections of a study file whose answers are exact and whose sums are noisy.

Each promises a central (epsilon, delta), delta being 1e-6, for one person replaced by another. It holds if one of the
study's tellers is honest; with a spare, if two of the three are.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, Final

from attrs import field

from anon.errors import InvalidValue
from anon.study.features import LARGEST_NUMBER, Feature, demand_features, one_of
from anon.study.proposal import (
    FEWEST_TELLERS,
    MAX_EPSILON,
    MOST_TELLERS,
    DesignSection,
    Proposal,
    demand_decimals,
    epsilon_in_range,
)
from anon.study.records import PERSON
from anon.values import frozen

MOST_SUMMED_ROUNDS = 60
MOST_REACH = 1024
MOST_WORK: Final = 2**26
"""Multiplications of a member's own model: some five seconds of plain Python."""
MOST_DRAWN: Final = 100_000
"""Rows that a study draws from its model."""
TREE_FROM: Final = 3000.0
"""People times epsilon from which all pairs tell more than their noise takes (docs/decisions/0050-marginals.md)."""
LOCAL_STRENGTH: Final = Fraction(1, 100)
"""Lambda of a member's own logistic regression, whose votes alone leave."""
CLASSIFIERS: Final = ("logistic", "nearest", "tree")
"""A member's own classifiers, by the number that a survey names them by."""


@frozen
class ExactSums(DesignSection):
    """The part that all of them share."""

    epsilon: float = field(validator=epsilon_in_range)
    has_tellers: ClassVar[bool] = True

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        demand_features(proposal.features)
        if self.has_tellers:
            _demand_tellers(proposal)


def _demand_tellers(proposal: Proposal) -> None:
    names = [teller.name for teller in proposal.tellers]
    if not FEWEST_TELLERS <= len(names) <= MOST_TELLERS:
        raise InvalidValue(
            f"tellers: expected {FEWEST_TELLERS} to {MOST_TELLERS}, got {len(names)}; each is a [[tellers]] with a "
            "name and an address"
        )
    if len(set(names)) != len(names):
        raise InvalidValue("tellers: expected another name of each")
    if proposal.has_spare and [teller.spare for teller in proposal.tellers] != [False, False, True]:
        raise InvalidValue("tellers: a spare is the last of three; write spare = true there alone, or leave it out")
    if any(teller.second_entry for teller in proposal.tellers) and not proposal.has_spare:
        raise InvalidValue("tellers: second_entry belongs to a study with a spare; leave it out")


@frozen
class TablesSum(ExactSums):
    """Of each feature a table of counts by category and label, all of them in one sum, learned by the additive model.

    `pairs`: features that get a table of both together, without the label. Each table takes its part of epsilon.
    """

    pairs: tuple[tuple[str, str], ...] = ()

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_tables(proposal, self)


def _demand_tables(proposal: Proposal, design: TablesSum | Marginals) -> None:
    if proposal.binned:
        raise InvalidValue(
            f"features: {design.kind} asks once and finds no cuts; write cuts in place of bins of "
            f"{', '.join(proposal.binned)}"
        )
    known = {frozenset(pair) for pair in combinations((feature.name for feature in proposal.features), 2)}
    asked = [frozenset(pair) for pair in design.pairs]
    if len(set(asked)) != len(asked) or not set(asked) <= known:
        raise InvalidValue("design.pairs: expected different pairs of features that exist")


@frozen
class Marginals(ExactSums):
    """Tables of pairs of features with the label, in one sum: a graphical model of them, and rows drawn from it.

    `rows`: how many are drawn; left out (0), the cohort's minimum. `tree_from`: all pairs are asked where the cohort's
    minimum times epsilon is at least this. Below it the declared `pairs` are; a feature in none of them has a table of
    its own with the label.
    """

    rows: int = 0
    tree_from: float = TREE_FROM
    pairs: tuple[tuple[str, str], ...] = ()

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.rows <= MOST_DRAWN:
            raise InvalidValue(f"rows: expected 1 to {MOST_DRAWN}, or 0 for the cohort's minimum")
        if not 0 <= self.tree_from < LARGEST_NUMBER:
            raise InvalidValue("tree_from: expected at least 0")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_tables(proposal, self)

    def asked(self, proposal: Proposal) -> tuple[tuple[str, str], ...]:
        """The pairs that are asked, in the features' order."""
        declared = {frozenset(pair) for pair in self.pairs}
        every = tuple(combinations((feature.name for feature in proposal.features), 2))
        if proposal.cohort.minimum * self.epsilon >= self.tree_from:
            return every
        return tuple(pair for pair in every if frozenset(pair) in declared)


@frozen
class Moments(ExactSums):
    """The products of every two columns, summed once: a linear model of the target by the other columns.

    The columns are the features, each centred in its range, and the target. `target`: a feature that is predicted; left
    out, the label is. `reach`: the whole numbers on each side of a column's centre. `target_weight`: how much louder
    the target is than a feature. `norm`: the longest record, as a part of one with all columns at their ends. Longer
    records are shrunk, and the noise is smaller.
    """

    takes_many: ClassVar[bool] = True
    target: str = ""
    reach: int = 16
    target_weight: int = 1
    norm: float = 1.0

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.reach <= MOST_REACH or not 1 <= self.target_weight <= MOST_REACH:
            raise InvalidValue(f"reach, target_weight: expected 1 to {MOST_REACH}")
        if not 0.01 <= self.norm <= 1:
            raise InvalidValue(f"norm: expected 0.01 to 1, got {self.norm}")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_columns(proposal.features)
        names = {feature.name for feature in proposal.features}
        if self.target and (self.target not in names or len(names) < 2):
            raise InvalidValue("design.target: expected the name of a feature, and a feature beside it")


@frozen
class Gradient(ExactSums):
    """Logistic regression of the label in `rounds`, each from the sum of members' gradients at the last weights.

    `step` and `momentum` are those of the descent. `clip`: the longest gradient; longer ones are shrunk. The final
    weights are the mean over the `last` rounds; left out (0), over a third of them. Where members have one record each,
    a few train nothing: a last round is their check of the model.
    """

    takes_many: ClassVar[bool] = True
    rounds: int = 30
    step: float = 2.0
    momentum: float = 0.9
    clip: float = 1.0
    last: int = 0

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.rounds <= MOST_SUMMED_ROUNDS or not 0 <= self.last <= self.rounds:
            raise InvalidValue(f"rounds, last: expected 1 to {MOST_SUMMED_ROUNDS} rounds, and no more last ones")
        if not 0.001 <= self.step <= 100 or not 0 <= self.momentum <= 0.99 or not 0.01 <= self.clip <= 100:
            raise InvalidValue("step, momentum, clip: expected 0.001 to 100, 0 to 0.99, and 0.01 to 100")
        for name in ("step", "momentum", "clip"):
            demand_decimals(name, getattr(self, name))

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_columns(proposal.features)
        if proposal.many is None and len(proposal.features) < 2:
            raise InvalidValue("features: gradient needs two or more; with one, take moments")


@frozen
class Averaging(ExactSums):
    """Each member fits logistic regression to its own records, and sends the weights once; their mean is the model.

    `strength`: lambda of the regularisation. `clip`: the longest weights; longer ones are shrunk. Left out (0), none
    are shrunk. `norm` is that of `Moments`. The noise is for a member in place of another, or for a record among at
    least `least_records`.
    """

    takes_many: ClassVar[bool] = True
    strength: float = 0.01
    clip: float = 0.0
    norm: float = 1.0

    def __attrs_post_init__(self) -> None:
        if not 0.0001 <= self.strength <= 10 or not 0 <= self.clip <= 1000 or not 0.01 <= self.norm <= 1:
            raise InvalidValue("strength, clip, norm: expected 0.0001 to 10, 0 to 1000, and 0.01 to 1")
        for name in ("strength", "clip", "norm"):
            demand_decimals(name, getattr(self, name))

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_columns(proposal.features)
        if (many := proposal.many) is None:
            raise InvalidValue('records: averaging fits a model to the records of each member; write records = "many"')
        demand_work(many.most * (len(proposal.features) + 1), Fraction(str(self.strength)))


@frozen
class Transfer(ExactSums):
    """Each member trains a classifier of its own, and votes on public rows; a linear model learns from all votes.

    The public rows are the one given document, a table of every feature with so many `public_rows`. `classifier`: the
    members' own. `strength`: lambda of the model that is learned. `norm` is that of `Moments`. The unit is a member
    with all of its records.
    """

    takes_many: ClassVar[bool] = True
    takes_given: ClassVar[bool] = True
    public_rows: int = 0
    classifier: str = field(default="logistic", validator=one_of(*CLASSIFIERS))
    strength: float = 0.001
    norm: float = 1.0

    def __attrs_post_init__(self) -> None:
        if not 0.0001 <= self.strength <= 10 or self.public_rows < 1 or not 0.01 <= self.norm <= 1:
            raise InvalidValue(
                "strength, public_rows, norm: expected 0.0001 to 10, how many rows are given, and 0.01 to 1"
            )
        for name in ("strength", "norm"):
            demand_decimals(name, getattr(self, name))

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_columns(proposal.features)
        if len(proposal.given) != 1:
            raise InvalidValue("given: transfer reads public rows; name one file of them as [[given]]")
        if proposal.unit != PERSON:
            raise InvalidValue("unit: transfer promises about a member with all records; leave it out")
        width = len(proposal.features) + 1
        own = proposal.many.most if proposal.many else 1
        demand_votes_work(own, self.public_rows, width, self.classifier)


def demand_votes_work(own: int, public: int, width: int, classifier: str) -> None:
    """Raises `InvalidValue` where voting on so many public rows, or learning to, takes a member's machine too long."""
    if classifier == "logistic":
        demand_work(own * width, LOCAL_STRENGTH)
    if own * public * width > MOST_WORK:
        raise InvalidValue("public_rows: too many for a member's machine; give fewer, or lower most_records")


def demand_work(cells: int, strength: Fraction) -> None:
    """Raises `InvalidValue` where fitting so many values takes a member's machine too long."""
    from anon.protocols.vectors.logistic import steps_for  # late: other studies load nothing of it

    if 2 * cells * steps_for(strength) > MOST_WORK:
        raise InvalidValue(
            "strength: fitting takes a member's machine too long; raise it, lower most_records, or leave features out"
        )


def _demand_columns(features: tuple[Feature, ...]) -> None:
    """A column is a number whose missing value counts as the middle of its range."""
    if wrong := [feature.name for feature in features if feature.kind != "numeric"]:
        raise InvalidValue(f"features: this design adds up numbers; leave out {', '.join(wrong)}, or take tables-sum")
    if wrong := [feature.name for feature in features if feature.missing != "own"]:
        raise InvalidValue(
            f'features: a missing value counts as the middle of the range; write missing = "own" of {", ".join(wrong)}'
        )


WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "tables-sum": {
        "kind": "Tables of counts, summed exactly and published with noise.",
        "epsilon": "Central, at delta 1e-6, of all that is published: if one teller is honest (spare: two).",
        "pairs": "Pairs of features that get a table of both, without the label.",
    },
    "marginals": {
        "kind": "Tables of pairs of features with the label, summed exactly; rows drawn from a model of them.",
        "epsilon": "Central, at delta 1e-6, of all that is published: if one teller is honest (spare: two).",
        "rows": "How many rows are drawn; left out, the cohort's minimum.",
        "tree_from": "The cohort's minimum times epsilon from which all pairs are asked.",
        "pairs": "The pairs of features that are asked below that; features in none are asked alone.",
    },
    "moments": {
        "kind": "Products of every two columns, summed exactly and published with noise; a linear model.",
        "epsilon": "Central, at delta 1e-6, of all that is published: if one teller is honest (spare: two).",
        "target": "The feature that is predicted; left out, the label is.",
        "reach": "Whole numbers on each side of a column's centre.",
        "target_weight": "How much louder the target is than a feature.",
        "norm": "The longest record, as a part of one with all columns at their ends; longer ones are shrunk.",
    },
    "gradient": {
        "kind": "Logistic regression in rounds, each from a sum of clipped gradients.",
        "epsilon": "Central, at delta 1e-6, of all rounds together: if one teller is honest (spare: two).",
        "rounds": "Rounds, each with a packet of every member and a window of its own. One more checks the model.",
        "step": "The length of a step.",
        "momentum": "The part of the last step that goes on.",
        "clip": "The longest gradient; longer ones are shrunk.",
        "last": "Over how many last rounds the weights are averaged; left out, a third.",
    },
    "averaging": {
        "kind": "The mean of models that members fit to their own records, each in its own time.",
        "epsilon": "Central, at delta 1e-6, of all that is published: if one teller is honest (spare: two).",
        "strength": "Lambda of each member's regularised logistic regression.",
        "clip": "The longest weights of a member; longer ones are shrunk. Left out, none are.",
        "norm": "The longest record, as a part of one with all columns at their ends; longer ones are shrunk.",
    },
    "transfer": {
        "kind": "A model learned from votes of members' own classifiers on public rows.",
        "epsilon": "Central, at delta 1e-6, of all that is published: if one teller is honest (spare: two).",
        "public_rows": "How many rows the given table has.",
        "classifier": "The members' own: logistic, nearest or tree.",
        "strength": "Lambda of the model that is learned from the votes.",
        "norm": "The longest record, as a part of one with all columns at their ends; longer ones are shrunk.",
    },
}
"""By design a sentence for every key of its section."""

BOUNDS: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    "tables-sum": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
    },
    "marginals": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "rows": {"minimum": 0, "maximum": MOST_DRAWN},
        "tree_from": {"minimum": 0},
    },
    "moments": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "reach": {"minimum": 1, "maximum": MOST_REACH},
        "target_weight": {"minimum": 1, "maximum": MOST_REACH},
        "norm": {"minimum": 0.01, "maximum": 1},
    },
    "gradient": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "rounds": {"minimum": 1, "maximum": MOST_SUMMED_ROUNDS},
        "step": {"minimum": 0.001, "maximum": 100},
        "momentum": {"minimum": 0, "maximum": 0.99},
        "clip": {"minimum": 0.01, "maximum": 100},
        "last": {"minimum": 0, "maximum": MOST_SUMMED_ROUNDS},
    },
    "averaging": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "strength": {"minimum": 0.0001, "maximum": 10},
        "clip": {"minimum": 0, "maximum": 1000},
        "norm": {"minimum": 0.01, "maximum": 1},
    },
    "transfer": {
        "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
        "public_rows": {"minimum": 1},
        "strength": {"minimum": 0.0001, "maximum": 10},
        "norm": {"minimum": 0.01, "maximum": 1},
    },
}
"""By design the bounds of keys, as JSON Schema spells them."""
