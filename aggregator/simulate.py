"""`simulate`: what a study would give, from data that staff already have. No network and no cryptography.

The same study file, category map, mechanism objects and learner as the real protocol; only the sum over peers is drawn
at once (`simulation.draws`). Every peer takes part and sends all its packets.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from attrs import asdict, frozen
from numpy.typing import NDArray

from aggregator.protocols.histogram.ensemble import LearnedStudy, Subject, learn
from aggregator.protocols.histogram.reconstruct import Floats
from aggregator.simulation.ceilings import binned_ceiling, raw_ceiling
from aggregator.simulation.people import People
from aggregator.simulation.run import Collected, Plan, categories, cells, collect
from anon.errors import Malformed
from anon.ldp import NANO
from anon.model import Model
from anon.resolve import StudyKeys, resolve
from anon.study.proposal import Proposal

NO_KEYS = StudyKeys(bytes(32), bytes(32), bytes(96), bytes(32))
HELD_OUT = 0.3


@frozen
class SimulationResult:
    """Means over the trials on people who were no peers, with standard errors of the AUC's mean; epsilons as numbers.

    `auc_min` and `auc_p01` are the worst trial and the first percentile. The keys are documented in docs/figures.md.
    """

    trials: int
    peers: int
    auc_mean: float
    auc_se: float
    auc_min: float
    auc_p01: float
    f1_mean: float
    f1_se: float
    accuracy_mean: float
    accuracy_se: float
    ece_mean: float
    epsilon_record: float
    epsilon_eq6: float
    auc_ceiling_binned: float
    auc_ceiling_raw: float

    def figures(self) -> dict[str, int | float]:
        """What `simulate --json` writes."""
        return asdict(self)


@frozen
class TrialScores:
    """One trial's model on the test people. `ece`: the expected calibration error over tenths of equal size."""

    auc: float
    f1: float
    accuracy: float
    ece: float


def simulate(
    study: Proposal,
    data: People,
    trials: int,
    seed: int,
    test: People | None = None,
    *,
    peers: int | None = None,
    shuffle_labels: bool = False,
    equal_parts: bool = False,
    ceilings: bool = True,
    held_out: float = HELD_OUT,
    progress: Callable[[int], None] = lambda done: None,
) -> SimulationResult:
    """Run the study `trials` times and score each model on `test` (without it, on a share `held_out` of `data`).

    `peers`: so many are drawn anew from `data` in each trial, with replacement where that is more than there are (no
    memory is taken for them); without it all take part. Deterministic in `seed`. Raises `Malformed` for impossible
    numbers.
    """
    generator = np.random.default_rng(seed)
    if test is None:
        data, test = _split(data, held_out, generator)
    if trials < 1 or (peers is not None and peers < 1):
        raise Malformed("simulate: expected at least 1 trial and at least 1 peer")
    resampled = peers if peers is not None and peers > len(data) else None
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    scores = []
    for done in range(trials):
        chosen = _drawn(data, peers, generator)
        if shuffle_labels:
            chosen = People(chosen.columns, generator.permutation(chosen.labels))
        scores.append(run_trial(plan, chosen, test, generator, equal_parts, resampled))
        progress(done + 1)
    first = _drawn(data, peers, generator)
    binned, raw = (binned_ceiling(plan, first, test), raw_ceiling(plan, first, test)) if ceilings else (0.0, 0.0)
    return _result(plan, resampled or len(first), scores, binned, raw)


def _drawn(data: People, peers: int | None, generator: np.random.Generator) -> People:
    if peers is None or peers >= len(data):
        return data
    return data.take(generator.choice(len(data), peers, replace=False))


def run_trial(
    plan: Plan,
    people: People,
    test: People,
    generator: np.random.Generator,
    equal_parts: bool = False,
    resampled: int | None = None,
) -> TrialScores:
    """One run of the study with `people` as peers, its model scored on `test`. `resampled` as in `collect`."""
    return evaluate(learn_once(plan, people, generator, equal_parts, resampled).model, test)


def learn_once(
    plan: Plan,
    people: People,
    generator: np.random.Generator,
    equal_parts: bool = False,
    resampled: int | None = None,
) -> LearnedStudy:
    """One run of the study with `people` as peers, up to its model."""
    return learn_collected(plan, collect(plan, people, generator, equal_parts, resampled))


def learn_collected(plan: Plan, collected: Collected) -> LearnedStudy:
    """The model that one run's tallies determine."""
    manifest = plan.manifest
    subject = Subject("simulated", manifest.title, manifest.label, manifest.features, collected.cuts, collected.shares)
    return learn(
        subject, collected.train, collected.scoring, manifest.learning, with_influence=False, bits=collected.bits
    )


def model_scores(model: Model, people: People) -> Floats:
    """What orders people: increasing in `model.probability`, for all of them at once."""
    found = categories(model.features, people, {cuts.feature: cuts.cuts for cuts in model.cuts})
    total = np.zeros(len(people))
    for table in model.tables:
        if model.ensemble == "soft":
            values = np.array(table.log_odds)
        else:
            values = table.weight * (2.0 * np.array(table.votes) - 1)
        total += values[cells(found, table.features, table.cards)]
    return total


def evaluate(model: Model, test: People) -> TrialScores:
    """ROC AUC, F1 and accuracy of a model; decisions are those of `Model.decide`."""
    ranks = model_scores(model, test)
    positive = test.labels == 1
    called = probabilities(model, ranks) >= model.threshold - 1e-9
    hits = int(np.sum(called & positive))
    wanted = int(called.sum() + positive.sum())
    return TrialScores(
        auc=roc_auc(ranks, positive),
        f1=2 * hits / wanted if wanted else 0.0,
        accuracy=float(np.mean(called == positive)),
        ece=calibration_error(probabilities(model, ranks), positive),
    )


def calibration_error(probabilities: Floats, positive: NDArray[np.bool_]) -> float:
    """The expected calibration error: people in ten equal parts by probability, |mean probability - share| averaged."""
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, 10) if len(part)]
    gaps = [abs(float(probabilities[part].mean() - positive[part].mean())) * len(part) for part in parts]
    return sum(gaps) / len(probabilities)


def probabilities(model: Model, ranks: Floats) -> Floats:
    """`Model.probability` of everybody from their ranks."""
    if model.ensemble == "soft":
        base = np.log(model.base_rate / (1 - model.base_rate))
        found: Floats = 1 / (1 + np.exp(-(base + ranks)))
        return found
    weight = sum(table.weight for table in model.tables)
    vote: Floats = np.clip((1 + ranks / weight) / 2, 0, 1) if weight > 0 else np.full(len(ranks), model.base_rate)
    return vote


def roc_auc(ranks: Floats, positive: NDArray[np.bool_]) -> float:
    """The share of (positive, negative) pairs in the right order, ties counting half; 1/2 without both labels."""
    _, index = np.unique(np.round(ranks, 9), return_inverse=True)
    for_label = [np.bincount(index[chosen], minlength=int(index.max()) + 1) for chosen in (positive, ~positive)]
    plus, minus = (counts.astype(float) for counts in for_label)
    pairs = plus.sum() * minus.sum()
    return float((plus @ (np.cumsum(minus) - minus / 2)) / pairs) if pairs else 0.5


def _split(data: People, share: float, generator: np.random.Generator) -> tuple[People, People]:
    order = generator.permutation(len(data))
    held = max(1, int(share * len(data)))
    return data.take(order[held:]), data.take(order[:held])


def _result(plan: Plan, peers: int, scores: list[TrialScores], binned: float, raw: float) -> SimulationResult:
    aucs = np.array([one.auc for one in scores])
    f1s = np.array([one.f1 for one in scores])
    accuracies = np.array([one.accuracy for one in scores])
    return SimulationResult(
        trials=len(scores),
        peers=peers,
        auc_mean=float(aucs.mean()),
        auc_se=_standard_error(aucs),
        auc_min=float(aucs.min()),
        auc_p01=float(np.quantile(aucs, 0.01)),
        f1_mean=float(f1s.mean()),
        f1_se=_standard_error(f1s),
        accuracy_mean=float(accuracies.mean()),
        accuracy_se=_standard_error(accuracies),
        ece_mean=float(np.mean([one.ece for one in scores])),
        epsilon_record=plan.manifest.epsilon / NANO,
        epsilon_eq6=plan.manifest.epsilon_per_attribute / NANO,
        auc_ceiling_binned=binned,
        auc_ceiling_raw=raw,
    )


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else 0.0
