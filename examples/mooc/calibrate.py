"""How far the course study can get: many simulated collections with the study's own mechanisms, no network, no tokens.

    python -m examples.mooc.calibrate [--cohorts 8] [--trials 25] [--test 2000] [--shuffle-labels] [--json FILE]

Every peer answers one survey, all with equal chance; the aggregator's own learner makes the model. The ceiling is
logistic regression without privacy on all features of the same 500 peers in the same bins. Both are scored on students
of another seed. Needs numpy and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from aggregator.protocols.additive.reconstruct import SurveyTally
from aggregator.protocols.histogram.ensemble import Subject, learn
from aggregator.protocols.installed import PROTOCOLS
from anon.ldp import Mechanism, PerturbedReport, RawCategory, build, choose, nano
from anon.protocols.categories import Value, cell, clamp
from anon.protocols.histogram.sections import OnePacket
from anon.study.features import Feature
from anon.study.proposal import Proposal
from examples.mooc.features import STUDY, Record, evaluate
from examples.mooc.generate import generate

Array = NDArray[Any]
FIRST_SEED, TEST_SEED = 201, 2_001
"""Not those that the cuts and subsets of the study were chosen on."""


@frozen
class Survey:
    """The features asked and their positions in the study, their cardinalities, and the mechanism that answers."""

    names: tuple[str, ...]
    asked: tuple[int, ...]
    cards: tuple[int, ...]
    mechanism: Mechanism


def surveys(proposal: Proposal, epsilon: float) -> list[Survey]:
    """The histogram surveys of a one-packet study with declared cuts, at the given epsilon."""
    design = proposal.design
    if not isinstance(design, OnePacket) or proposal.binned:
        raise ValueError("expected a one-packet design and declared cuts")
    names = [feature.name for feature in proposal.features]
    found = []
    for subset in design.subsets or tuple(combinations(names, design.subset_size)):
        asked = tuple(names.index(name) for name in subset)
        cards = tuple(proposal.features[position].cardinality for position in asked)
        m = 2 * int(np.prod(cards))
        chosen = choose(m, nano(epsilon)) if design.mechanism == "auto" else build(design.mechanism, m, nano(epsilon))
        found.append(Survey(tuple(subset), asked, cards, chosen))
    return found


def collect(
    people: Sequence[Record], asked: Sequence[Survey], share: float, rng: np.random.Generator
) -> tuple[list[SurveyTally], list[SurveyTally]]:
    """The tallies of each survey, one report a person: those to learn from, and the `share` that only scores."""
    answers: list[list[list[PerturbedReport]]] = [[[] for _ in asked] for _ in range(2)]
    for person in people:
        number = int(rng.integers(len(asked)))
        survey = asked[number]
        where = cell(survey.cards, [person.categories[position] for position in survey.asked], person.label)
        report = survey.mechanism.perturb(RawCategory(where, survey.mechanism.m), rng.bytes)
        answers[int(rng.random() < share)][number].append(report)
    train, scoring = ([_tally(number, asked[number], found) for number, found in enumerate(part)] for part in answers)
    return train, scoring


def _tally(number: int, survey: Survey, reports: Sequence[PerturbedReport]) -> SurveyTally:
    counts = np.array(survey.mechanism.tally(reports), dtype=np.int64)
    return SurveyTally(number, survey.names, survey.cards, survey.mechanism, counts, len(reports))


def ensemble_auc(
    proposal: Proposal, train: Sequence[SurveyTally], scoring: Sequence[SurveyTally], test: Sequence[Record]
) -> float:
    """ROC AUC on the test students of the model that the aggregator learns from these tallies."""
    cuts = {feature.name: feature.cuts for feature in proposal.features}
    subject = Subject("00" * 32, proposal.title, proposal.label, proposal.features, cuts)
    model = learn(subject, train, scoring, proposal.learning, with_influence=False).model
    order = [feature.name for feature in proposal.features]
    scores = [model.probability(dict(zip(order, person.categories, strict=True))) for person in test]
    return float(roc_auc_score([person.label for person in test], scores))


def ceiling_auc(proposal: Proposal, people: Sequence[Record], test: Sequence[Record], *, binned: bool = True) -> float:
    """ROC AUC on the test students of logistic regression fitted to the same people without any privacy."""
    train_x, test_x = _design_matrix(proposal, people, binned), _design_matrix(proposal, test, binned)
    centre, scale = train_x.mean(axis=0), train_x.std(axis=0) + 1e-9
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    model.fit((train_x - centre) / scale, [person.label for person in people])
    return float(roc_auc_score([p.label for p in test], model.decision_function((test_x - centre) / scale)))


def _design_matrix(proposal: Proposal, people: Sequence[Record], binned: bool) -> Array:
    """Indicators of the categories, or the raw numbers (logarithm of 1 + x, missing and range as declared)."""
    if binned:
        cards = [feature.cardinality for feature in proposal.features]
        found = np.array([person.categories for person in people])
        return np.concatenate([np.eye(card)[found[:, column], 1:] for column, card in enumerate(cards)], axis=1)
    rows = [[_number(feature, person.values[feature.name]) for feature in proposal.features] for person in people]
    return np.asarray(np.log1p(np.array(rows)))


def _number(feature: Feature, value: Value) -> float:
    return clamp(feature, float(feature.missing if value is None else value))


def cohort(students: int, seed: int, shuffle_labels: bool) -> list[Record]:
    """Generate and evaluate one cohort with the study of this folder."""
    return evaluate(PROTOCOLS.load_proposal(STUDY), generate(students, seed, shuffle_labels=shuffle_labels))


def calibrate(cohorts: int, trials: int, tested: int, shuffle_labels: bool, jobs: int) -> dict[str, Any]:
    """The figures that the README states, for the study's epsilon and two smaller ones."""
    proposal = PROTOCOLS.load_proposal(STUDY)
    sizes = [500] * cohorts + [tested]
    seeds = [*range(FIRST_SEED, FIRST_SEED + cohorts), TEST_SEED]
    with ProcessPoolExecutor(jobs) as pool:
        *trained, test = pool.map(cohort, sizes, seeds, [shuffle_labels] * len(sizes))
    ceilings = [ceiling_auc(proposal, people, test) for people in trained]
    figures: dict[str, Any] = {
        "dropout_share": float(np.mean([person.label for person in test])),
        "auc_ceiling_binned": float(np.mean(ceilings)),
        "auc_ceiling_raw": float(np.mean([ceiling_auc(proposal, p, test, binned=False) for p in trained])),
    }
    for epsilon in (1.0, 2.0, 4.0):
        aucs = _trials(proposal, epsilon, trained, test, trials)
        # With shuffled labels the ceiling is 0.5 itself, and a share of nothing would mean nothing.
        reached = {} if shuffle_labels else _reached(aucs, np.array(ceilings)[:, None])
        figures[f"epsilon_{epsilon:g}"] = _summary(aucs) | reached
    return figures


def _trials(
    proposal: Proposal, epsilon: float, trained: Sequence[Sequence[Record]], test: Sequence[Record], trials: int
) -> Array:
    asked, share = surveys(proposal, epsilon), proposal.learning.score_share
    rng = np.random.default_rng(7)
    return np.array(
        [[ensemble_auc(proposal, *collect(p, asked, share, rng), test) for _ in range(trials)] for p in trained]
    )


def _summary(aucs: Array) -> dict[str, float]:
    found = {"mean": aucs.mean(), "sd": aucs.std(), "min": aucs.min(), "max": aucs.max()}
    return {f"auc_{name}": float(value) for name, value in found.items()}


def _reached(aucs: Array, ceilings: Array) -> dict[str, float]:
    share = ((aucs - 0.5) / (ceilings - 0.5)).ravel()
    return {
        "reached_mean": float(share.mean()),
        "reached_min": float(share.min()),
        "reached_5th_percentile": float(np.quantile(share, 0.05)),
        "reached_below_0.9": float((share < 0.9).mean()),
    }


def main() -> None:
    """Read the command line, calibrate, print and optionally write the figures."""
    parser = argparse.ArgumentParser(prog="python -m examples.mooc.calibrate", description=__doc__.partition("\n")[0])
    parser.add_argument("--cohorts", type=int, default=8, help="cohorts of 500 to train on")
    parser.add_argument("--trials", type=int, default=25, help="collections for each cohort")
    parser.add_argument("--test", type=int, default=2000, help=f"students to score on, seed {TEST_SEED}")
    parser.add_argument("--shuffle-labels", action="store_true", help="everywhere, in the test students too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that evaluate queries")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    asked = parser.parse_args()
    figures = calibrate(asked.cohorts, asked.trials, asked.test, asked.shuffle_labels, asked.jobs)
    text = json.dumps(figures, indent=2)
    print(text)
    if asked.json:
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
