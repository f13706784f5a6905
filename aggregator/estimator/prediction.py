"""Predicting with a published model in scikit-learn's manner: raw rows in, calibrated probabilities and reasons out."""

from __future__ import annotations

import sys
import warnings
from math import log
from pathlib import Path
from typing import Any, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from aggregator.estimator.features import as_given, columns_of, numeric, safe_names
from aggregator.lab.simulation.evaluation import model_scores, probabilities
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import categories, cells
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.installed import load_model
from anon.protocols.models.tables import Model, demand_tables, from_json


class NotShownWarning(RuntimeWarning):
    """Noise alone could have counted as much: the model is not shown to beat the base rate."""


@frozen(eq=False)
class Explanation:
    """Each feature's term in the log-odds of the positive class, and its uncertainty.

    `decision_function(X)` is `base + contributions.sum(axis=1)`. `contributions` and `errors`: shape (rows, features).
    `errors` are posterior standard deviations, from the mechanism's known noise and the learner's prior: about two in
    three true contributions of the bin lie within one of them. They say nothing about what bins hide.
    """

    feature_names: tuple[str, ...]
    base: float
    contributions: Floats
    errors: Floats


class TablePrediction(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicting with `model_`, a published model, for raw rows; what the classifiers share."""

    model_: Model
    classes_: NDArray[Any]
    n_features_in_: int

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of `classes_[1]`, shape (rows,). A vote's share of weight is taken for a probability."""
        people = self._people(X)
        ranks = model_scores(self.model_, people)
        if self.model_.ensemble == "soft":
            found: Floats = _log_odds(self.model_.base_rate) + ranks
            return found
        share = np.clip(probabilities(self.model_, ranks), 1e-12, 1 - 1e-12)
        voted: Floats = np.log(share / (1 - share))
        return voted

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of `classes_`, shape (rows, 2): calibrated as far as the study measured (see
        `anon.protocols.models.tables`)."""
        people = self._people(X)
        positive = probabilities(self.model_, model_scores(self.model_, people))
        return np.column_stack([1 - positive, positive])

    def explain(self, X: Any) -> Explanation:
        """Each feature's contribution to the log-odds of each row, with its uncertainty.

        Raises `ValueError` for a model whose tables cannot be split by feature: a vote, or tables of several features.
        """
        people = self._people(X)
        model = self.model_
        if model.ensemble != "soft" or any(len(table.features) != 1 for table in model.tables):
            raise ValueError("explain: expected a soft model of single features; its classifier is not additive")
        indices = categories(model.features, people, {cuts.feature: cuts.cuts for cuts in model.cuts})
        places = {name: column for column, name in enumerate(self._study_names())}
        amounts, errors = np.zeros((len(people), len(places))), np.zeros((len(people), len(places)))
        for table in model.tables:
            index, column = cells(indices, table.features, table.cards), places[table.features[0]]
            amounts[:, column] += np.array(table.log_odds)[index]
            errors[:, column] = np.array(table.errors)[index] if table.errors else np.nan
        return Explanation(self._titles(), _log_odds(model.base_rate), amounts, errors)

    def _people(self, X: Any) -> People:
        check_is_fitted(self)
        table = self._table(X)
        columns = dict(zip(self._study_names(), columns_of(table), strict=True))
        titles = dict(zip(self._study_names(), self._titles(), strict=True))
        for feature in self.model_.features:
            if feature.kind == "numeric":
                columns[feature.name] = numeric(columns[feature.name], titles[feature.name])
        return People(columns, np.zeros(len(table), dtype=np.int64))

    def _table(self, X: Any) -> NDArray[Any]:
        """X checked as scikit-learn does: the columns of `fit`, in their order."""
        table: NDArray[Any] = validate_data(
            self, as_given(X), dtype=None, ensure_all_finite="allow-nan", reset=False
        )
        return table

    def _study_names(self) -> tuple[str, ...]:
        """The columns of X by the names that the model knows them by."""
        return safe_names(self._titles())

    def _titles(self) -> tuple[str, ...]:
        given = getattr(self, "feature_names_in_", None)
        return tuple(given) if given is not None else tuple(f"x{column}" for column in range(self.n_features_in_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The model travels as its JSON, so that loading passes through its checks."""
        state = dict(super().__getstate__())
        return state | {"model_": state["model_"].to_json()} if "model_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"model_": from_json(state["model_"])} if "model_" in state else state)


class PublishedClassifier(TablePrediction):
    """A study's published model as a fitted classifier: `PublishedClassifier(text).fit()` learns nothing.

    `PublishedClassifier.load("model.json")` does both; `model` is the text of that file. X has the model's features as
    columns with the values that its queries give: a data frame by name, in any order and among other columns; anything
    else in the model's order. A missing value is None, NaN or "". Text that is no number raises `ValueError` for a
    numeric feature.

    `predict` is the model's own decision, 1 for the positive label: its threshold is the study's, which need not be
    1/2. Where the study was not shown to beat a guess, `Model.predict` and the commands give no answer. scikit-learn
    has to have a class, so `predict` gives the decision all the same. It and the other methods then give a
    `NotShownWarning`, because that decision tells nothing. Raises `Malformed` for a text that is no model.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """The fitted classifier of a `model.json`. Raises `Malformed` for a file that is none, and `Refused` for a
        model without tables."""
        return cls(demand_tables(load_model(path)).to_json()).fit()

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Read the model. X and y are ignored: there is nothing left to learn."""
        self.model_ = from_json(self.model)
        self.classes_ = np.array([0, 1])
        self.feature_names_in_ = np.array([feature.name for feature in self.model_.features], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """`Model.decide` of each row, as 0 or 1; shape (rows,)."""
        chosen: NDArray[Any] = (self.predict_proba(X)[:, 1] >= self.model_.threshold - 1e-12).astype(np.int64)
        return chosen

    def _people(self, X: Any) -> People:
        people = super()._people(X)
        if self.model_.shown is False:
            warnings.warn(_NOT_SHOWN, NotShownWarning, stacklevel=_outside())
        return people

    def _table(self, X: Any) -> NDArray[Any]:
        names = self._titles()
        if hasattr(X, "columns"):
            lacking = [name for name in names if name not in X.columns]
            if lacking:
                raise ValueError(f"X: expected the columns {', '.join(names)}; {', '.join(lacking)} are missing")
            X = X[list(names)]
        table: NDArray[Any] = check_array(as_given(X), dtype=None, ensure_all_finite="allow-nan")
        if table.shape[1] != len(names):
            raise ValueError(f"X: expected the {len(names)} columns {', '.join(names)}, got {table.shape[1]} columns")
        return table

    def _study_names(self) -> tuple[str, ...]:
        return self._titles()


_NOT_SHOWN = (
    "the study did not show that this model beats a guess from how common the answer is: its predictions tell nothing"
)


def _outside() -> int:
    """The level at which `warnings.warn`, called by our caller, names the first line outside of this file."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        level, frame = level + 1, frame.f_back
    return level


def _log_odds(rate: float) -> float:
    return log(rate / (1 - rate))
