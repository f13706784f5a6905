"""People as bit patterns: what the fast form of the paper's pipeline draws from.

In the paper every feature is binary, so a person under given cuts is one number of `features` bits and a label.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.lab.simulation.run import categories
from anon.protocols.categories import clamp
from anon.study.features import Feature
from anon.study.proposal import Proposal

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@frozen(eq=False)
class Numbers:
    """One numeric feature without declared cuts: the different values in order, and each person's place among them."""

    feature: Feature
    values: Floats
    train: NDArray[np.int32]
    test: NDArray[np.int32]

    def above(self, cut: float) -> int:
        """The first place whose value lies above the cut."""
        return int(np.searchsorted(self.values, cut, side="right"))

    def median(self) -> float:
        """The cut that Algorithm 1 looks for, found without noise: the median, kept below the maximum."""
        middle = float(np.median(self.values[self.train]))
        return middle if middle < self.feature.range[1] else self.feature.range[0]


@frozen(eq=False)
class Population:
    """`fixed_*`: the bits of categorical features and declared cuts, and the label above them; (people,) each."""

    study: Proposal
    numbers: Mapping[int, Numbers]
    fixed_train: Ints
    fixed_test: Ints

    @property
    def width(self) -> int:
        """How many features."""
        return len(self.study.features)

    def __len__(self) -> int:
        return len(self.fixed_train)

    @staticmethod
    def of(study: Proposal, people: People, test: People) -> Population:
        """Raises `ValueError` unless every feature has two categories, as in the paper."""
        if any(feature.cardinality != 2 for feature in study.features):
            raise ValueError("the paper's pipeline has binary features: expected two categories each")
        numbers: dict[int, Numbers] = {}
        fixed = []
        for group in (people, test):
            known = [feature for feature in study.features if not feature.binned_privately]
            found = categories(known, group, {})
            bits = group.labels << len(study.features)
            for place, feature in enumerate(study.features):
                if not feature.binned_privately:
                    bits = bits | (found[feature.name] << place)
            fixed.append(bits)
        for place, feature in enumerate(study.features):
            if feature.binned_privately:
                first, second = (_values(feature, group.columns[feature.name]) for group in (people, test))
                values, index = np.unique(np.concatenate([first, second]), return_inverse=True)
                places: NDArray[np.int32] = index.astype(np.int32)
                numbers[place] = Numbers(feature, values, places[: len(first)], places[len(first) :])
        return Population(study, numbers, fixed[0], fixed[1])

    def patterns(self, cuts: Mapping[int, float]) -> tuple[Ints, Ints]:
        """The bits of every peer and of every test person under these cuts, label on top."""
        train, test = self.fixed_train.copy(), self.fixed_test.copy()
        for place, one in self.numbers.items():
            start = one.above(cuts[place])
            train += (one.train >= start).astype(np.int64) << place
            test += (one.test >= start).astype(np.int64) << place
        return train, test


def _values(feature: Feature, column: FeatureColumn) -> Floats:
    if isinstance(feature.missing, str):
        raise TypeError("the paper's pipeline has no category for missing values: declare what one counts as")
    missing = float(feature.missing)
    table = [clamp(feature, float(v)) if isinstance(v, (int, float)) else missing for v in column.values]
    return np.array([clamp(feature, value) for value in table])[column.index]
