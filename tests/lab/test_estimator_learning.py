"""The estimator learns, states its errors, and tells every setting that it reads from the data.

From data that teach nothing it predicts no better than the base rate.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from aggregator.estimator.classifier import LocallyPrivateClassifier, NotShownWarning, PrivacyLeakWarning
from aggregator.lab.simulation.evaluation import calibration_error

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::aggregator.estimator.classifier.NotShownWarning")]

RANGES = {0: (-3.0, 3.0), 1: (0.0, 10.0), 2: (0.0, 1.0)}


def people(rows: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Three numbers; the first two matter, the third does not. About three in ten are positive."""
    generator = np.random.default_rng(seed)
    table = np.column_stack([generator.normal(size=rows), generator.uniform(0, 10, rows), generator.random(rows)])
    log_odds = -1.2 + 1.2 * table[:, 0] + 0.3 * (table[:, 1] - 5)
    return table, (generator.random(rows) < 1 / (1 + np.exp(-log_odds))).astype(int)


X, Y = people(8000)
X_NEW, Y_NEW = people(8000, seed=2)


def fitted(epsilon: float = 2.0, **parameters) -> LocallyPrivateClassifier:
    return LocallyPrivateClassifier(epsilon, **{"ranges": RANGES, "random_state": 0, **parameters}).fit(X, Y)


@pytest.mark.parametrize("parameters", [
    {}, {"subset_size": 2}, {"subset_size": 3, "bins": 2}, {"mechanism": "krr"}, {"mechanism": "subset"},
    {"mechanism": "pq"},
    {"asks": "bits", "base_rate": 0.3},
])
def test_it_learns_under_every_design(parameters: dict) -> None:
    """Fixed seed. Without privacy logistic regression reaches 0.83."""
    learned = fitted(4.0, **parameters)
    assert roc_auc_score(Y_NEW, learned.predict_proba(X_NEW)[:, 1]) > 0.72
    assert learned.better_than_base_rate_
    few = "asks" in parameters  # 3 % of one-bit packets ask about the label: 230 people
    assert learned.base_rate_ == pytest.approx(Y.mean(), abs=0.12 if few else 0.06)
    assert 0 < learned.epsilon_spent_ <= 4.0
    assert learned.epsilon_spent_ > 3.99


def test_more_epsilon_tells_more() -> None:
    """Means of 8 fits with fixed seeds."""
    means = [
        np.mean(
            [roc_auc_score(Y_NEW, fitted(epsilon, random_state=seed).decision_function(X_NEW)) for seed in range(8)]
        )
        for epsilon in (0.2, 0.8, 4.0)
    ]
    assert means[0] + 0.02 < means[1] < means[2] - 0.01


def test_nothing_goes_with_a_shuffled_label() -> None:
    shuffled = np.random.default_rng(0).permutation(Y)
    with pytest.warns(NotShownWarning, match="not shown to beat the base rate"):
        learned = LocallyPrivateClassifier(8.0, ranges=RANGES, random_state=0).fit(X, shuffled)
    assert not learned.better_than_base_rate_
    assert np.abs(learned.predict_proba(X_NEW)[:, 1] - learned.base_rate_).max() < 0.1


def test_probabilities_are_calibrated() -> None:
    """The mean over 10 fits with fixed seeds."""
    errors = [
        calibration_error(fitted(2.0, random_state=seed).predict_proba(X_NEW)[:, 1], Y_NEW == 1) for seed in range(10)
    ]
    assert np.mean(errors) < 0.05


def test_a_decision_is_the_likelier_class_whatever_the_classes_are_called() -> None:
    names = np.where(Y == 1, "stays away", "comes")
    learned = LocallyPrivateClassifier(4.0, ranges=RANGES, random_state=0).fit(X.tolist(), names.tolist())
    assert learned.classes_.tolist() == ["comes", "stays away"]
    chosen = learned.predict(X_NEW)
    assert (chosen == np.where(learned.predict_proba(X_NEW)[:, 1] > 0.5, "stays away", "comes")).all()
    assert (chosen == np.where(learned.decision_function(X_NEW) > 0, "stays away", "comes")).all()
    assert np.mean((chosen == "stays away") == Y_NEW) > 0.72
    assert learned.model_.label.positive == ("stays away",)


def test_the_model_itself_predicts_the_same() -> None:
    learned = fitted()
    for row in X_NEW[:80]:
        found = learned.model_.categories(dict(zip(("x0", "x1", "x2"), row.tolist(), strict=True)))
        assert learned.model_.probability(found) == pytest.approx(learned.predict_proba([row])[0, 1], abs=1e-12)
        assert learned.model_.decide(found) == bool(learned.predict([row])[0])


def test_contributions_add_up_and_an_idle_feature_adds_little() -> None:
    learned = fitted(4.0)
    told = learned.explain(X_NEW)
    assert told.feature_names == ("x0", "x1", "x2")
    assert told.contributions.shape == told.errors.shape == X_NEW.shape
    np.testing.assert_allclose(told.base + told.contributions.sum(axis=1), learned.decision_function(X_NEW), atol=1e-12)
    spread = told.contributions.std(axis=0)
    assert spread[0] > 3 * spread[2]
    assert spread[1] > 3 * spread[2]
    assert (told.errors > 0).all()


@pytest.mark.parametrize("parameters", [{}, {"subset_size": 2}, {"asks": "bits", "base_rate": 0.3}])
def test_stated_errors_are_those_of_repeated_fits(parameters: dict) -> None:
    """40 fits: repeated contributions spread as stated, within a factor of 1.9. With other seeds the largest of 18
    was 1.6, and chance alone deviates by a ninth."""
    binary = (X > [0.0, 5.0, 0.5]).astype(float)
    points = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    told = [
        LocallyPrivateClassifier(2.0, ranges=dict.fromkeys(range(3), (0, 1)), bins=2, random_state=seed, **parameters)
        .fit(binary, Y).explain(points)
        for seed in range(40)
    ]
    spread = np.std([one.contributions for one in told], axis=0)
    stated = np.mean([one.errors for one in told], axis=0)
    assert (spread / stated).max() < 1.9
    assert (spread / stated).min() > 1 / 1.9


def test_less_epsilon_is_less_sure() -> None:
    """Where the prior already knows that an effect is small, noise cannot make that less sure: not twice in all."""
    unsure, sure = (fitted(one, bins=2).explain(X[:20]).errors.mean(axis=0) for one in (0.7, 4.0))
    assert (unsure > 1.3 * sure).all()
    assert unsure.mean() > 2 * sure.mean()


def test_what_is_read_from_the_data_is_said() -> None:
    with pytest.warns(PrivacyLeakWarning, match=r"2 columns \(x0, x2\)"):
        learned = LocallyPrivateClassifier(1.0, ranges={1: (0, 10)}, random_state=0).fit(X, Y)
    assert learned.read_from_data_ == ("x0", "x2")


def test_nothing_declared_depends_on_the_data() -> None:
    """Two tables without a value in common are asked the same questions, and nobody is warned."""
    declared = {"ranges": {0: (0, 1), 1: (5, 9)}, "categories": {2: ("a", "b")}, "random_state": 0}
    first = np.array([[0.1, 5.0, "a"], [0.2, 6.0, "a"], [0.3, 7.0, "a"]] * 20, dtype=object)
    other = np.array([[None, 80.0, "z"], [0.9, float("nan"), None], [-4.0, 0.0, "b"]] * 20, dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        one, two = (LocallyPrivateClassifier(1.0, **declared).fit(table, np.arange(60) % 2) for table in (first, other))
    assert one.model_.features == two.model_.features
    assert one.read_from_data_ == two.read_from_data_ == one.left_out_ == two.left_out_ == ()


def test_texts_and_missing_values() -> None:
    generator = np.random.default_rng(3)
    town = generator.choice(["here", "there", "nowhere"], 6000)
    age = generator.uniform(18, 80, 6000)
    table = np.column_stack([town.astype(object), np.where(generator.random(6000) < 0.2, None, age)])
    target = (generator.random(6000) < np.where(town == "here", 0.8, 0.2)).astype(int)
    with pytest.warns(PrivacyLeakWarning):
        learned = LocallyPrivateClassifier(4.0, random_state=0).fit(table, target)
    kinds = {feature.name: (feature.kind, feature.missing) for feature in learned.model_.features}
    assert kinds["x0"][0] == "categorical"
    assert kinds["x1"] == ("numeric", "own")
    here, there, missing = learned.predict_proba([["here", 30.0], ["there", 30.0], ["there", None]])[:, 1]
    assert here > 0.6
    assert there < 0.4
    assert missing < 0.4
    learned.predict_proba([["unheard of", 30.0], [None, 1e300], [3.5, float("nan")]])
    with pytest.raises(ValueError, match="x1: expected numbers"):
        learned.predict_proba([["here", "no number"]])


def test_data_frames_bring_their_names() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed (extra: test)")
    frame = pandas.DataFrame({"age": X[:, 1] * 8, "Town name": np.where(X[:, 0] > 0, "here", "there")})
    frame.loc[::9, "Town name"] = None
    limits = {"ranges": {"age": (0, 80)}, "categories": {"Town name": ["here", "there"]}}
    learned = LocallyPrivateClassifier(8.0, **limits, random_state=0).fit(frame, pandas.Series(Y))
    assert learned.feature_names_in_.tolist() == ["age", "Town name"]
    assert learned.explain(frame[:3]).feature_names == ("age", "Town name")
    assert [feature.name for feature in learned.model_.features] == ["x0", "x1"]
    assert roc_auc_score(Y, learned.decision_function(frame)) > 0.65
    with pytest.raises(ValueError, match="feature names should match"):
        learned.predict(frame.rename(columns={"age": "years"}))


def _says_the_base_rate(learned: LocallyPrivateClassifier, table: object) -> None:
    """It claims nothing, and of everybody nearly the base rate."""
    assert not learned.better_than_base_rate_
    np.testing.assert_allclose(learned.predict_proba(table)[:, 1], learned.base_rate_, atol=0.05, rtol=0)


@pytest.mark.filterwarnings("ignore::aggregator.estimator.classifier.PrivacyLeakWarning")
class TestWhatTeachesNothing:
    """Nothing crashes, and nothing is claimed."""

    @pytest.mark.parametrize("target", [np.zeros(50), np.ones(50, dtype=int), np.array(["no"] * 50)])
    def test_one_class_is_refused(self, target: np.ndarray) -> None:
        with pytest.raises(ValueError, match="two classes, got 1 class"):
            LocallyPrivateClassifier(1.0).fit(X[:50], target)

    def test_one_row_is_refused(self) -> None:
        with pytest.raises(ValueError, match="1 class"):
            LocallyPrivateClassifier(1.0).fit(X[:1], Y[:1])

    def test_two_rows_teach_nothing(self) -> None:
        for seed in range(10):
            _says_the_base_rate(LocallyPrivateClassifier(1.0, random_state=seed).fit(X[:2], [0, 1]), X)

    @pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.01])
    @pytest.mark.parametrize("parameters", [{}, {"asks": "bits", "base_rate": 0.3}])
    def test_a_tiny_epsilon_teaches_nothing(self, epsilon: float, parameters: dict) -> None:
        learned = fitted(epsilon, **parameters)
        _says_the_base_rate(learned, X)
        guess = parameters.get("base_rate", 0.5)
        assert abs(learned.base_rate_ - guess) < 0.2

    @pytest.mark.parametrize("value", [7.0, float("nan"), 0.0])
    def test_constant_columns_alone_teach_nothing(self, value: float) -> None:
        learned = LocallyPrivateClassifier(4.0, random_state=0).fit(np.full((2000, 2), value), Y[:2000])
        assert learned.left_out_ == ("x0", "x1")
        assert learned.base_rate_ == pytest.approx(Y[:2000].mean(), abs=0.05)
        table = [[1.0, 2.0], [float("nan"), value], [-1e300, 5.0]]
        np.testing.assert_allclose(learned.predict_proba(table)[:, 1], learned.base_rate_, atol=0.03)

    @pytest.mark.parametrize("value", [7.0, float("nan")])
    def test_a_constant_column_beside_others_adds_nothing(self, value: float) -> None:
        table = np.column_stack([X, np.full(len(X), value)])
        learned = LocallyPrivateClassifier(4.0, ranges=RANGES, random_state=0).fit(table, Y)
        assert learned.left_out_ == ("x3",)
        assert not learned.explain(table).contributions[:, 3].any()
        assert not learned.explain(table).errors[:, 3].any()
        assert roc_auc_score(Y, learned.decision_function(table)) > 0.75

    def test_a_declared_column_that_everybody_lacks_adds_nothing(self) -> None:
        """Fixed seed: its contribution stays within what its own error allows."""
        table = np.column_stack([X[:, :2], np.full(len(X), np.nan)])
        for missing in ("own", "middle"):
            learned = LocallyPrivateClassifier(4.0, ranges=RANGES, missing=missing, random_state=0).fit(table, Y)
            assert np.abs(learned.explain(table).contributions[:, 2]).max() < 0.15
            assert roc_auc_score(Y, learned.decision_function(table)) > 0.75

    def test_names_that_are_all_different_are_left_out(self) -> None:
        table = np.column_stack([X[:300].astype(object), [f"student {place}" for place in range(300)]])
        assert LocallyPrivateClassifier(4.0, random_state=0).fit(table, Y[:300]).left_out_ == ("x3",)

    @pytest.mark.parametrize("seed", range(5))
    def test_numbers_of_every_size_do_not_crash(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        table = np.column_stack([
            generator.normal(size=60) * 10.0 ** generator.integers(-300, 300, 60),
            1.0 + generator.integers(0, 9, 60) * 2.0**-52,
            generator.integers(0, 2, 60) * 5e-324,
            10.0 ** generator.uniform(0, 30, 60),
        ])
        learned = LocallyPrivateClassifier(2.0, random_state=seed).fit(table, generator.integers(0, 2, 60))
        assert np.isfinite(learned.decision_function(table)).all()
        assert np.isfinite(learned.explain(table).errors).all()
