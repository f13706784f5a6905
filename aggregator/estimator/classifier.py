"""AnonML as a scikit-learn classifier on raw X, y: bins, perturbation and learning in one process.

    LocallyPrivateClassifier(epsilon=1.0, ranges={"age": (17, 90)}).fit(X, y).predict_proba(X_new)

Every row stands for one peer. The study, the category map, the mechanism objects and the learner are those of the real
protocol, as in `simulate`; there is no network, and no token.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from numbers import Real
from typing import Any, Self

import numpy as np
from attrs import evolve
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from aggregator.estimator.features import (
    FINE_EPSILON,
    LABEL,
    Declarations,
    DeclaredFeature,
    as_given,
    columns_of,
    declare,
    numeric,
)
from aggregator.estimator.prediction import Explanation, NotShownWarning, PublishedClassifier, TablePrediction
from aggregator.lab.simulation.pairs import asked_untried
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import NO_KEYS, learn_collected
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import AnonmlError, InvalidValue
from anon.ldp import NANO
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.resolve import resolve
from anon.study.features import Cohort, Label, Learning, Table
from anon.study.proposal import MAX_EPSILON, Proposal, Schedule

__all__ = ["Explanation", "LocallyPrivateClassifier", "NotShownWarning", "PrivacyLeakWarning", "PublishedClassifier"]


class PrivacyLeakWarning(RuntimeWarning):
    """Ranges or categories were read from the data: what they reveal is not covered by epsilon."""


class LocallyPrivateClassifier(TablePrediction):
    """A binary classifier that learns from one locally private report of each row.

    Every row of X, y is one simulated peer. It draws one question of the study, and answers with one perturbed packet.
    Only the sum of all packets is learned from. The fit therefore spends `epsilon` on every row's record, features and
    label together (record-level, pure local differential privacy).

    **Not covered by epsilon** are ranges, categories and missing values that are read from the data because they were
    not declared. A `PrivacyLeakWarning` names their columns. The set of the two classes and the number of rows are not
    covered either. Each further fit on the same rows, as in a grid search, spends `epsilon` again.

    Parameters
    ----------
    epsilon : float, required
        Record-level epsilon, above 0 and at most 20; rounded down to a multiple of 1e-9.
    asks : {"auto", "bits", "tables"}
        Histograms of `subset_size` features with the label ("auto"), or one-bit packets, which need `base_rate`.
    subset_size : int or "auto"
        Features in one table; "auto" is 1 below epsilon 4, and 2 from there where there are at most 150 pairs.
    mechanism : {"auto", "krr", "subset", "rappor", "pq"}
        Of tables and of binning; "auto" takes the one of least expected error.
    bins : int or "auto"
        Bins of a numeric feature, 2 to 32; "auto" is 2 below epsilon 0.8, else 4.
    binning_share : float
        Share of the rows that only help to find the bins of numeric features, 0.01 to 0.5.
    ranges : mapping of column name or position to (low, high)
        Numeric columns; values outside are clamped. Declare them from public knowledge.
    categories : mapping of column name or position to a sequence of texts
        Categorical columns; anything else, missing included, is a category of its own. A number is spelled 3 or 2.5.
    missing : {"auto", "own", "middle"}
        A missing number is a category of its own, or the middle of the range. "auto": its own in a column whose range
        is read from the data and which has missing values there, else the middle.
    base_rate : float, optional
        A public guess of the share of `classes_[1]`, 0.001 to 0.999, good to about 0.1. Never read from the data.
    random_state : int, RandomState or None
        None: numpy's generator with fresh seed of 256 bits from the operating system. **A seed is for simulation only:
        whoever knows it can take the noise off.** In either case the sum over the rows is drawn at once, in floating
        point; a real peer draws its report from the operating system in exact integers (`anon.ldp`).

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    model_ : the published model (`anon.protocols.models.tables.Model`), with a decision threshold of 1/2
    epsilon_spent_ : record-level epsilon by the integer probabilities actually used, at most `epsilon`
    base_rate_ : the estimated share of `classes_[1]`
    better_than_base_rate_ : False when noise alone could have counted as much (a study without any signal passes at
        most once in fifty): a `NotShownWarning` says so, and effects are drawn towards nothing as the noise demands
    chance_ : how often noise alone would count as much as was counted
    read_from_data_, left_out_ : names of columns that were not declared, and of those that were the same everywhere (or
        different everywhere, as a name is) and were asked nothing

    Examples
    --------
    >>> import numpy as np
    >>> from anonml import LocallyPrivateClassifier
    >>> X = np.array([["yes", "day"], ["no", "day"], ["yes", "night"], ["no", "night"]] * 500)
    >>> classifier = LocallyPrivateClassifier(2, categories={0: ["yes", "no"], 1: ["day", "night"]}, random_state=1)
    >>> classifier.fit(X, X[:, 0] == "yes").predict([["yes", "night"], ["no", "day"]])
    array([ True, False])
    >>> classifier.epsilon_spent_, classifier.better_than_base_rate_
    (2.0, True)
    """

    def __init__(
        self,
        epsilon: float,
        *,
        asks: str = "auto",
        subset_size: int | str = "auto",
        mechanism: str = "auto",
        bins: int | str = "auto",
        binning_share: float = 0.1,
        ranges: Mapping[str, tuple[float, float]] | Mapping[int, tuple[float, float]] | None = None,
        categories: Mapping[str, Sequence[str]] | Mapping[int, Sequence[str]] | None = None,
        missing: str = "auto",
        base_rate: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.asks = asks
        self.subset_size = subset_size
        self.mechanism = mechanism
        self.bins = bins
        self.binning_share = binning_share
        self.ranges = ranges
        self.categories = categories
        self.missing = missing
        self.base_rate = base_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Run the study once with the rows as peers. Raises `ValueError` for parameters or data that cannot be, as text
        that is no number in a column with a range. A missing value is None, NaN or ""."""
        epsilon = self._epsilon()
        table, target = validate_data(self, as_given(X), y, dtype=None, ensure_all_finite="allow-nan")
        self.classes_, labels = _two_classes(target)
        names, titles = self._study_names(), self._titles()
        try:
            known = self._declarations(epsilon)
            columns = [
                numeric(column, titles[place]) if place in known.ranges and place not in known.categories else column
                for place, column in enumerate(columns_of(table))
            ]
            declared = declare(columns, names, titles, known)
            plan = self._plan(declared, epsilon)
        except AnonmlError as fault:
            raise ValueError(str(fault)) from None
        self._warn(declared)
        names_asked = {feature.name for feature in plan.manifest.features}
        people = People(
            {name: column for name, column in zip(names, columns, strict=True) if name in names_asked}, labels
        )
        generator = self._generator()
        collected = collect(plan, people, generator)
        learned = learn_collected(plan, collected)
        self.better_than_base_rate_ = bool(learned.learnable)
        self.chance_ = float(learned.chance)
        self.model_ = evolve(learned.model, threshold=0.5, chance=self.chance_, shown=self.better_than_base_rate_)
        self._warn_of_noise()
        self.base_rate_ = self.model_.base_rate
        self.epsilon_spent_ = plan.manifest.epsilon / NANO
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of each row, shape (rows,). Where classes are uneven, `base_rate_` is the fairer
        threshold: `predict_proba(X)[:, 1] > base_rate_`."""
        above = self.decision_function(X) > 0
        chosen: NDArray[Any] = self.classes_[above.astype(int)]
        return chosen

    def _epsilon(self) -> float:
        given: Any = self.epsilon
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) <= MAX_EPSILON:
            raise ValueError(
                f"epsilon: expected the record-level epsilon to spend, a number above 0 and at most {MAX_EPSILON:g}, "
                f"got {given!r}"
            )
        rounded = float(Decimal(str(float(given))).quantize(Decimal("1e-9"), ROUND_FLOOR))
        if rounded == 0:
            raise ValueError(f"epsilon: expected at least 1e-9, got {given!r}")
        return rounded

    def _declarations(self, epsilon: float) -> Declarations:
        if self.missing not in ("auto", "own", "middle"):
            raise InvalidValue(f"missing: expected auto, own or middle, got {self.missing!r}")
        bins = (2 if epsilon < FINE_EPSILON else 4) if self.bins == "auto" else self.bins
        if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)):
            raise InvalidValue(f"bins: expected a whole number or auto, got {bins!r}")
        titles = self._titles()
        return Declarations(
            {_place(key, titles): _limits(key, limits) for key, limits in (self.ranges or {}).items()},
            {_place(key, titles): tuple(map(str, texts)) for key, texts in (self.categories or {}).items()},
            self.missing,
            int(bins),
        )

    def _plan(self, declared: Sequence[DeclaredFeature], epsilon: float) -> Plan:
        """The study, with its mechanisms. A column that is the same everywhere is asked only if all are."""
        features = tuple(choice.feature for choice in declared if not choice.constant) or (declared[0].feature,)
        positive, negative = _label_value(self.classes_[1]), _label_value(self.classes_[0])
        names = tuple(feature.name for feature in features)
        proposal = Proposal(
            version=1,
            title="A classifier on a table",
            purpose="A simulation on data at hand.",
            contact="nobody: this study is never published",
            label=Label(
                LABEL, "The class.", f"SELECT {LABEL} FROM person", (positive,), (negative,), "negative"
            ),
            features=features,
            design=self._design(len(features), epsilon),
            schedule=Schedule(86400, 3600, 86400, 86400),
            cohort=Cohort(2, 1_000_000),
            tables=(Table("person", (*names, LABEL)),),
            learning=Learning("additive", "soft", "auc", 0, 0.5 if self.base_rate is None else float(self.base_rate)),
        )
        return Plan.of(resolve(PROTOCOLS.proposed(proposal), NO_KEYS, 0, lambda below: 0))

    def _design(self, features: int, epsilon: float) -> OnePacket:
        if self.asks not in ("auto", "bits", "tables"):
            raise InvalidValue(f"asks: expected auto, bits or tables, got {self.asks!r}")
        if self.asks == "bits" and self.base_rate is None:
            raise InvalidValue(
                "base_rate: one-bit packets need a public guess of the share of the second class, got None"
            )
        size = self.subset_size
        if size == "auto":
            size = 2 if self.asks != "bits" and asked_untried(features, epsilon) else 1
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size > features:
            raise InvalidValue(
                f"subset_size: expected auto, or a whole number up to the {features} features, got {size!r}"
            )
        return OnePacket(
            "one-packet",
            epsilon,
            self.mechanism,
            int(size),
            binning_share=float(self.binning_share),
            asks="bits" if self.asks == "bits" else "tables",
        )

    def _warn(self, declared: Sequence[DeclaredFeature]) -> None:
        pairs = list(zip(self._titles(), declared, strict=True))
        self.read_from_data_ = tuple(title for title, choice in pairs if choice.read)
        self.left_out_ = tuple(title for title, choice in pairs if choice.constant)
        if self.read_from_data_:
            shown = ", ".join(map(str, self.read_from_data_[:5])) + (", ..." if len(self.read_from_data_) > 5 else "")
            warnings.warn(
                f"ranges or categories of {len(self.read_from_data_)} columns ({shown}) were read from the data, which "
                "epsilon does not cover; declare `ranges` and `categories` from public knowledge",
                PrivacyLeakWarning,
                stacklevel=3,
            )

    def _warn_of_noise(self) -> None:
        if not self.better_than_base_rate_:
            warnings.warn(
                f"in {100 * self.chance_:.2g} of 100 such fits a model looks this good by chance alone, so this one "
                "is not shown to beat the base rate; more rows, fewer features or a larger epsilon tell more",
                NotShownWarning,
                stacklevel=3,
            )

    def _generator(self) -> np.random.Generator:
        if self.random_state is None:
            return np.random.default_rng(int.from_bytes(os.urandom(32)))
        words = check_random_state(self.random_state).randint(0, 2**31, size=8)
        return np.random.default_rng(words.tolist())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # With the few hundred rows of a test, what epsilon leaves of the signal may be nothing.
        tags.classifier_tags.poor_score = True
        return tags


def _two_classes(target: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    check_classification_targets(target)
    target = column_or_1d(target, warn=True)
    kind = type_of_target(target, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    classes, labels = np.unique(target, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y: expected two classes, got 1 class; a study needs people of both to learn from")
    return classes, labels.astype(np.int64)


def _label_value(value: Any) -> str | int | float:
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, (int, float)) and not isinstance(plain, bool) else str(plain)


def _limits(key: str | int, limits: Sequence[float]) -> tuple[float, float]:
    if len(limits) != 2:
        raise InvalidValue(f"ranges: expected (low, high) for {key!r}")
    return float(limits[0]), float(limits[1])


def _place(key: str | int, titles: Sequence[str]) -> int:
    if isinstance(key, str) and key in titles:
        return titles.index(key)
    if isinstance(key, (int, np.integer)) and 0 <= key < len(titles):
        return int(key)
    raise InvalidValue(f"ranges, categories: expected column names or positions of X, got {key!r}")
