"""Figure 4: the ensemble on unperturbed data against standard learners, on raw and on binary features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from aggregator.lab.simulation.people import People
from anon.study.features import Feature
from benchmarks.figures import Figure
from benchmarks.paper.datasets import DataSet
from benchmarks.paper.fitting import mean_and_error
from benchmarks.paper.pipeline import Setting, auc_and_f1, random_layout, run
from benchmarks.paper.population import Floats, Ints, Population

PARTITIONS = 5
TREE_LEAF = 20

Learner = Callable[[int], Any]

LEARNERS: Mapping[str, Learner] = {
    "logistic regression": lambda seed: LogisticRegression(max_iter=2000),
    "decision tree": lambda seed: DecisionTreeClassifier(min_samples_leaf=TREE_LEAF, random_state=seed),
    "random forest": lambda seed: RandomForestClassifier(100, min_samples_leaf=5, random_state=seed),
    "AdaBoost": lambda seed: AdaBoostClassifier(n_estimators=100, random_state=seed),
    "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


def compare(data: DataSet, trials: int, seed: int) -> list[Figure]:
    """ROC AUC of every learner on raw and binary features, and of the ensemble over random partitions."""
    rows: list[Figure] = []
    people, test = data.papers_people
    tables = {"raw": raw_table(data.papers_study.features, people, test), "binary": binary_table(data.population)}
    for kind, (train_matrix, test_matrix) in tables.items():
        for name, make in LEARNERS.items():
            model = make(seed).fit(train_matrix, people.labels)
            auc = float(roc_auc_score(test.labels, model.predict_proba(test_matrix)[:, 1]))
            rows.append({"set": data.name, "features": kind, "learner": name, "auc": auc, "auc_se": None, "trials": 1})
        for size in (1, 3):
            often = trials if kind == "binary" else max(trials // 20, 3)
            aucs = _ensembles(data, kind, tables[kind], size, often, seed)
            mean, error = mean_and_error(aucs)
            rows.append(
                {"set": data.name, "features": kind, "learner": f"ensemble, {size} per subset", "auc": mean,
                 "auc_se": error, "trials": len(aucs)}
            )  # fmt: skip
    return rows


def _ensembles(
    data: DataSet, kind: str, tables: tuple[Floats, Floats], size: int, trials: int, seed: int
) -> list[float]:
    width = data.population.width
    setting = Setting(PARTITIONS, size, width // size)
    if kind == "binary":
        return [float(auc) for auc in run(data.population, setting, trials, seed).auc]
    people, test = data.papers_people
    generator = np.random.default_rng(seed)
    owners = _columns_of(data.papers_study.features, people)
    return [_raw_ensemble(tables, people.labels, test.labels, owners, setting, generator) for _ in range(trials)]


def _raw_ensemble(
    tables: tuple[Floats, Floats],
    labels: Ints,
    test_labels: Ints,
    owners: Ints,
    setting: Setting,
    generator: np.random.Generator,
) -> float:
    """The paper's vote of balanced trees, one for each partition and subset, weighted by F1 on a third held back."""
    total = np.zeros(len(test_labels))
    parts = np.array_split(generator.permutation(len(labels)), setting.partitions)
    layout = random_layout(int(owners.max()) + 1, setting, generator)
    for rows in layout:
        for part, subset in zip(parts, rows, strict=True):
            columns = np.flatnonzero(np.isin(owners, subset))
            fitted, held = part[len(part) // 3 :], part[: len(part) // 3]
            model = DecisionTreeClassifier(min_samples_leaf=TREE_LEAF, class_weight="balanced", random_state=0)
            model.fit(tables[0][np.ix_(fitted, columns)], labels[fitted])
            votes = model.predict(tables[0][np.ix_(held, columns)])
            hits = 2 * np.sum((votes == 1) & (labels[held] == 1))
            weight = hits / max(np.sum(votes) + np.sum(labels[held]), 1)
            total += weight * (2.0 * model.predict(tables[1][:, columns]) - 1)
    return auc_and_f1(total, test_labels, 1 - test_labels)[0]


def raw_table(features: tuple[Feature, ...], people: People, test: People) -> tuple[Floats, Floats]:
    """Standardised numbers and one-hot texts, as the queries return them; a missing number is the declared one."""
    found: list[list[Floats]] = [[], []]
    for feature in features:
        first, second = people.columns[feature.name], test.columns[feature.name]
        if feature.kind == "numeric":
            default = float(feature.missing)
            tables = [
                np.array([float(v) if isinstance(v, (int, float)) else default for v in one.values])[one.index]
                for one in (first, second)
            ]
            centre, scale = tables[0].mean(), tables[0].std() + 1e-9
            for place, table in enumerate(tables):
                found[place].append(((table - centre) / scale)[:, None])
        else:
            for place, one in enumerate((first, second)):
                rows = np.array([[float(value == known) for known in feature.categories] for value in one.values])
                found[place].append(rows[one.index])
    return np.hstack(found[0]), np.hstack(found[1])


def _columns_of(features: tuple[Feature, ...], people: People) -> Ints:
    widths = [1 if feature.kind == "numeric" else len(feature.categories) for feature in features]
    return np.repeat(np.arange(len(features)), widths)


def binary_table(population: Population) -> tuple[Floats, Floats]:
    """One column for each feature, cut at its exact median."""
    cuts = {place: one.median() for place, one in population.numbers.items()}
    patterns = population.patterns(cuts)
    first, second = (
        np.stack([(group >> place & 1).astype(float) for place in range(population.width)], axis=1)
        for group in patterns
    )
    return first, second
