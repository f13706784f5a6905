"""scikit-learn's contract, and that epsilon is asked for and seen."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from aggregator.estimator.classifier import LocallyPrivateClassifier, PrivacyLeakWarning

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::aggregator.estimator.classifier.PrivacyLeakWarning",
        "ignore::aggregator.estimator.classifier.NotShownWarning",
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parameters", [
    {"epsilon": 0.001}, {"epsilon": 1.0}, {"epsilon": 1.0, "asks": "bits", "base_rate": 0.3},
])
def test_every_check_of_scikit_learn_passes(monkeypatch: pytest.MonkeyPatch, parameters: dict) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    results = check_estimator(LocallyPrivateClassifier(**parameters), on_skip=None, on_fail="raise")
    assert {one["status"] for one in results} <= {"passed", "skipped"}
    assert {one["check_name"] for one in results if one["status"] == "skipped"} <= {"check_array_api_input"}
    assert len(results) > 45


class Generous(LocallyPrivateClassifier):
    """With this much epsilon the checks of the score are passed too."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False
        return tags


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_the_score_pass_too_with_much_epsilon() -> None:
    results = check_estimator(Generous(epsilon=15.0), on_skip=None, on_fail="raise")
    assert sum(one["check_name"] == "check_classifiers_train" for one in results) == 3


def test_epsilon_is_required_and_visible() -> None:
    with pytest.raises(TypeError, match="epsilon"):
        LocallyPrivateClassifier()  # type: ignore[call-arg]
    assert inspect.signature(LocallyPrivateClassifier).parameters["epsilon"].default is inspect.Parameter.empty
    assert repr(LocallyPrivateClassifier(0.5)) == "LocallyPrivateClassifier(epsilon=0.5)"
    assert clone(LocallyPrivateClassifier(0.5, bins=3)).get_params()["epsilon"] == 0.5


X = np.column_stack([np.arange(40.0), np.tile([1.0, 2.0, 5.0, 8.0], 10)])
Y = np.arange(40) >= 20


@pytest.mark.parametrize("epsilon", [0, -1.0, None, "1", True, float("nan"), float("inf"), 20.1, 1e-10])
def test_an_epsilon_that_cannot_be_is_refused_by_name(epsilon: object) -> None:
    with pytest.raises(ValueError, match="epsilon: expected"):
        LocallyPrivateClassifier(epsilon).fit(X, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize(("parameters", "says"), [
    ({"asks": "both"}, "asks"),
    ({"asks": "bits"}, "base_rate"),
    ({"asks": "bits", "base_rate": 0.3, "subset_size": 2}, "subset_size"),
    ({"subset_size": 3}, "subset_size"),
    ({"subset_size": 0}, "subset_size"),
    ({"subset_size": 1.5}, "subset_size"),
    ({"mechanism": "laplace"}, "mechanism"),
    ({"bins": 1}, "bins"),
    ({"bins": 2.5}, "bins"),
    ({"binning_share": 0.9}, "binning_share"),
    ({"missing": "drop"}, "missing"),
    ({"base_rate": 0.0}, "base_rate"),
    ({"ranges": {0: (1, 0)}}, "range"),
    ({"ranges": {0: (0, float("inf"))}}, "range"),
    ({"ranges": {0: (0, 1, 2)}}, "ranges"),
    ({"ranges": {2: (0, 1)}}, "ranges"),
    ({"ranges": {"age": (0, 1)}}, "ranges"),
    ({"categories": {0: []}}, "categories"),
    ({"categories": {0: ["a", "a"]}}, "categories"),
])
def test_parameters_that_cannot_be_are_refused_by_name(parameters: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LocallyPrivateClassifier(1.0, **parameters).fit(X, Y)


def test_more_than_two_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        LocallyPrivateClassifier(1.0).fit(X, np.arange(40) % 3)


def test_unfitted_says_so() -> None:
    for method in ("predict", "predict_proba", "decision_function", "explain"):
        with pytest.raises(NotFittedError):
            getattr(LocallyPrivateClassifier(1.0), method)(X)


def test_a_seed_repeats_and_without_one_nothing_does() -> None:
    def scores(seed: int | None) -> list[float]:
        return LocallyPrivateClassifier(4.0, random_state=seed).fit(X, Y).decision_function(X).tolist()

    assert scores(3) == scores(3)
    assert scores(3) != scores(4)
    assert scores(None) != scores(None)


def test_without_a_seed_the_operating_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr("aggregator.estimator.classifier.os.urandom", urandom)
    LocallyPrivateClassifier(1.0, random_state=1).fit(X, Y)
    assert asked == []
    first = LocallyPrivateClassifier(1.0).fit(X, Y)
    assert asked == [32]
    assert first.model_ == LocallyPrivateClassifier(1.0).fit(X, Y).model_


def test_numpys_own_generator_of_random_numbers_is_left_alone() -> None:
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()
    LocallyPrivateClassifier(1.0, random_state=1).fit(X, Y)
    LocallyPrivateClassifier(1.0).fit(X, Y)
    assert np.random.get_state()[1].tolist() == before


def test_a_fitted_one_survives_pickling_and_its_model_is_checked() -> None:
    fitted = LocallyPrivateClassifier(4.0, random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.model_ == fitted.model_
    assert again.predict_proba(X).tolist() == fitted.predict_proba(X).tolist()
    state = fitted.__getstate__()
    state["model_"] = state["model_"].replace('"base_rate":0.', '"base_rate":7.')
    with pytest.raises(Exception, match="model"):
        LocallyPrivateClassifier(1.0).__setstate__(state)


def test_it_works_at_the_end_of_a_pipeline() -> None:
    with pytest.warns(PrivacyLeakWarning):
        chained = make_pipeline(FunctionTransformer(np.sqrt), LocallyPrivateClassifier(20.0, random_state=0)).fit(X, Y)
    assert chained.score(X, Y) > 0.6


def test_an_epsilon_of_many_digits_is_rounded_down() -> None:
    spent = LocallyPrivateClassifier(0.12345678999, random_state=0).fit(X, Y).epsilon_spent_
    assert 0.123456788 <= spent <= 0.123456789
