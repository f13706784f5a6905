"""The paper's pipeline, many trials at once: Algorithm 1, histograms, partition classifiers, weighted vote.

Distributed as `aggregator.lab.simulation.simulate` with a study of the paper's design and equal parts, for binary
features; a test compares the two. It is here because the library fits its classifiers one by one: 40 of them for each
of 500 trials at each of 200 points would take hours. Differences that can be chosen: subsets drawn anew for each
trial (as in the paper's experiments), the score and whether it comes from a disjoint cohort or from the same noisy
histogram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from attrs import field, frozen

from aggregator.protocols.additive.reconstruct import Histogram
from aggregator.protocols.histogram.classifiers import tree as library_tree
from anon.ldp import build
from anon.protocols.histogram.binning import median_start, median_step, threshold
from benchmarks.paper.fitting import (
    Estimates,
    Noise,
    accuracy_of,
    auc_of,
    base_rates,
    equivalent,
    estimate,
    f1_of,
    logistic,
    papers_choice,
    perturbed,
    project,
    whole_nano,
)
from benchmarks.paper.population import Floats, Ints, Population

Subset = tuple[int, ...]
Layout = Sequence[Sequence[Subset]]
"""For each slot its rows: the features, by position, that the row's share of the peers is asked about together."""

CHUNK = 50
ROUNDS = 15


@frozen
class Setting:
    """The values that the paper varies. `epsilon` is that of each histogram and of each median; None perturbs nothing.

    `scored_on`: "others" is the disjoint cohort of `score_share`, "same" the very histogram that was fitted, which is
    what cross-validation inside one noisy histogram amounts to. `medians_known`: they cost nothing and are exact,
    which the paper's peers could not have.
    """

    partitions: int = 20
    subset_size: int = 1
    subsets: int = 2
    epsilon: float | None = None
    classifier: str = "logistic"
    score: str = "f1"
    scored_on: str = "others"
    score_share: float = 0.3
    mechanism: str = "auto"
    peers: int | None = None
    medians_known: bool = False

    def epsilon_record(self, binned: int) -> float:
        """The sum over everything one peer releases."""
        return (self.epsilon or 0.0) * self.releases(binned)

    def releases(self, binned: int) -> int:
        """How many things one peer releases: a histogram for each subset, and a bit for each median."""
        return self.subsets + (0 if self.medians_known else binned)

    def epsilon_eq6(self, binned: int) -> float:
        """Per-attribute (AnonML eq. 6): label k_h times, a binned feature once more than the others."""
        return (self.epsilon or 0.0) * max(self.subsets, 2 if binned else 1)


@frozen(eq=False)
class Truth:
    """One trial before noise: subsets asked, true counts of both cohorts (surveys, m), the test people's patterns."""

    subsets: tuple[Subset, ...]
    train: Ints
    scoring: Ints
    test: Ints = field(repr=False)


@frozen(eq=False)
class Trials:
    """ROC AUC and F1 of each trial's ensemble on the test people."""

    auc: Floats
    f1: Floats


def random_layout(width: int, setting: Setting, generator: np.random.Generator) -> Layout:
    """As in the paper: each partition is asked `subsets` random feature subsets that do not overlap."""
    size, count = setting.subset_size, setting.subsets
    if size * count > width:
        raise ValueError(f"{count} subsets of {size} features do not fit into {width} features")
    orders = [generator.permutation(width) for _ in range(setting.partitions)]
    return [
        [tuple(sorted(int(f) for f in order[slot * size : (slot + 1) * size])) for order in orders]
        for slot in range(count)
    ]


def run(
    population: Population,
    setting: Setting,
    trials: int,
    seed: int,
    layout: Layout | None = None,
) -> Trials:
    """The ensemble's scores in so many trials; subsets are drawn anew in each unless a layout is given."""
    generator = np.random.default_rng(seed)
    m = 2 ** (setting.subset_size + 1)
    noise = _noise(setting, m)
    aucs: list[Floats] = []
    f1s: list[Floats] = []
    for size in _chunks(trials):
        drawn = [_draw(population, setting, layout, generator) for _ in range(size)]
        found = learn(setting, noise, drawn, generator)
        aucs.append(np.array([one[0] for one in found]))
        f1s.append(np.array([one[1] for one in found]))
    return Trials(np.concatenate(aucs), np.concatenate(f1s))


def find_medians(population: Population, setting: Setting, generator: np.random.Generator) -> dict[int, float]:
    """Algorithm 1 for every numeric feature; each peer answers one threshold question about each. Noiseless: exact."""
    if setting.epsilon is None or setting.medians_known:
        return {place: one.median() for place, one in population.numbers.items()}
    mechanism = build("krr", 2, whole_nano(setting.epsilon))
    noise = Noise.of(mechanism)
    cuts: dict[int, float] = {}
    for place, one in population.numbers.items():
        order = generator.permutation(one.train) if setting.peers is None else generator.choice(
            one.train, setting.peers, replace=False)
        search = median_start(one.feature)
        for part in np.array_split(order, ROUNDS):
            yes = int(np.count_nonzero(part >= one.above(threshold(one.feature, search))))
            said = generator.binomial(yes, noise.p) + generator.binomial(len(part) - yes, noise.q)
            search = median_step(search, len(part), int(said), noise.p, noise.q)
        cuts[place] = threshold(one.feature, search)
    return cuts


def _draw(
    population: Population, setting: Setting, layout: Layout | None, generator: np.random.Generator
) -> Truth:
    slots = random_layout(population.width, setting, generator) if layout is None else layout
    train, test = population.patterns(find_medians(population, setting, generator))
    if setting.peers is not None:
        train = generator.choice(train, setting.peers, replace=False)
    m = 2 ** (setting.subset_size + 1)
    share = setting.score_share if setting.scored_on == "others" else 0.0
    subsets: list[Subset] = []
    counts: list[Ints] = []
    for rows in slots:
        order = generator.permutation(train)
        for part, subset in zip(np.array_split(order, len(rows)), rows, strict=True):
            places = _cell_of_pattern(subset, population.width)[part] + m * (generator.random(len(part)) < share)
            counts.append(np.bincount(places, minlength=2 * m))
            subsets.append(subset)
    both = np.array(counts, dtype=np.int64)
    return Truth(tuple(subsets), both[:, :m], both[:, m:], test)


@cache
def _cell_of_pattern(subset: Subset, width: int) -> Ints:
    patterns = np.arange(2 ** (width + 1))
    cell = np.zeros_like(patterns)
    for place in (*subset, width):
        cell = cell * 2 + (patterns >> place & 1)
    return cell


def learn(
    setting: Setting, noise: Noise, drawn: Sequence[Truth], generator: np.random.Generator
) -> list[tuple[float, float]]:
    """Perturb, fit, score, vote: (ROC AUC, F1) of each trial."""
    truth = np.array([one.train for one in drawn])
    kept = np.array([one.scoring for one in drawn])
    found = estimate(noise, perturbed(noise, truth, generator), truth.sum(axis=-1))
    rates = base_rates(found)
    contrast = _contrasts(setting, found, rates)
    votes = contrast > 0
    if setting.scored_on == "others":
        scoring = estimate(noise, perturbed(noise, kept, generator), kept.sum(axis=-1))
        cells = _pooled(scoring, [one.subsets for one in drawn])
        behind = np.broadcast_to(rates[:, None], votes.shape[:2])
    else:
        cells = project(found.shares)
        behind = np.clip(cells[..., 1::2].sum(axis=-1), 0.01, 0.99)
    pairs = cells.reshape(*votes.shape, 2)
    if setting.score == "f1":
        weights = f1_of(votes, pairs, behind)
    elif setting.score == "auc":
        weights = auc_of(contrast, pairs, behind)
    elif setting.score == "accuracy":
        weights = accuracy_of(votes, pairs)
    else:
        weights = np.ones(votes.shape[:2])
    tables = weights[..., None] * (2.0 * votes - 1)
    return [_evaluate(one, table) for one, table in zip(drawn, tables, strict=True)]


def _contrasts(setting: Setting, found: Estimates, rates: Floats) -> Floats:
    trials, surveys, m = found.shares.shape
    shares = project(found.shares)
    weight = equivalent(found, rates)
    if setting.classifier == "logistic":
        return logistic(shares.reshape(-1, m), weight.reshape(-1)).reshape(trials, surveys, m // 2)
    if setting.classifier != "tree":
        raise ValueError(f"no such classifier: {setting.classifier}")
    return np.array([[_tree(setting, found, at, one, rates) for one in range(surveys)] for at in range(trials)])


def _tree(setting: Setting, found: Estimates, trial: int, survey: int, rates: Floats) -> Floats:
    """The library's own tree; it feels of the covariance only what `Estimates` keeps."""
    names = tuple(str(place) for place in range(setting.subset_size))
    covariance = np.diag(found.diagonal[trial, survey])
    even = np.arange(0, len(covariance), 2)
    covariance[even, even + 1] = covariance[even + 1, even] = found.between[trial, survey]
    histogram = Histogram(
        names, (2,) * setting.subset_size, int(found.n[trial, survey]), found.shares[trial, survey], covariance
    )
    return library_tree(histogram, float(rates[trial]), frozenset(names))


def _pooled(scoring: Estimates, subsets: Sequence[tuple[Subset, ...]]) -> Floats:
    """For each survey the shares of its subset in the scoring cohort, pooled over the trial's surveys of it."""
    precision = np.where(scoring.known, 1 / np.maximum(scoring.diagonal.mean(axis=-1), 1e-300), 0.0)
    pooled = np.empty_like(scoring.shares)
    for trial, asked in enumerate(subsets):
        numbers: dict[Subset, int] = {}
        group = np.array([numbers.setdefault(one, len(numbers)) for one in asked])
        belongs = (group[:, None] == np.arange(len(numbers))[None, :]) * precision[trial][:, None]
        total = belongs.sum(axis=0)
        mean = (belongs.T @ scoring.shares[trial]) / np.maximum(total, 1e-300)[:, None]
        mean[total == 0] = 1 / scoring.shares.shape[-1]
        pooled[trial] = mean[group]
    return pooled


def _evaluate(drawn: Truth, tables: Floats) -> tuple[float, float]:
    """Of the weighted vote, on all test people at once by their patterns."""
    width = _width(drawn)
    found = np.bincount(drawn.test, minlength=2 ** (width + 1)).reshape(2, -1)
    present = np.flatnonzero(found.sum(axis=0))
    ranks = np.zeros(len(present))
    for subset, table in zip(drawn.subsets, tables, strict=True):
        ranks += table[_cell_of_pattern(subset, width)[present] >> 1]
    return auc_and_f1(ranks, found[1, present], found[0, present])


def _width(drawn: Truth) -> int:
    """The label is the top bit of the largest pattern, as some test person is positive."""
    return int(drawn.test.max()).bit_length() - 1


def auc_and_f1(ranks: Floats, positive: Ints, negative: Ints) -> tuple[float, float]:
    """ROC AUC with ties counting half, and F1 of calling positive from 0 on, for groups of people of equal rank."""
    order, index = np.unique(np.round(ranks, 9), return_inverse=True)
    plus = np.bincount(index, weights=positive, minlength=len(order))
    minus = np.bincount(index, weights=negative, minlength=len(order))
    pairs = plus.sum() * minus.sum()
    auc = float(plus @ (np.cumsum(minus) - minus / 2) / pairs) if pairs else 0.5
    called = ranks >= -1e-9
    hits, wanted = positive[called].sum(), positive[called].sum() + negative[called].sum() + positive.sum()
    return auc, float(2 * hits / wanted) if wanted else 0.0


def _noise(setting: Setting, m: int) -> Noise:
    if setting.epsilon is None:
        return Noise.of(None)
    if setting.mechanism == "auto":
        return Noise.of(papers_choice(m, setting.epsilon))
    return Noise.of(build(setting.mechanism, m, whole_nano(setting.epsilon)))


def _chunks(trials: int) -> Iterator[int]:
    for start in range(0, trials, CHUNK):
        yield min(CHUNK, trials - start)


__all__ = ["Layout", "Setting", "Subset", "Trials", "find_medians", "random_layout", "run"]
