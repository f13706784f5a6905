"""One simulated run of a study: draw rows, bin, collect, tally. No network, no tokens, no single reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from aggregator.lab.simulation.draws import assign_rows, perturbed_counts
from aggregator.lab.simulation.linear_sums import is_linear
from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.protocols.additive.moments import BitTally
from aggregator.protocols.additive.reconstruct import Counts, Floats, SurveyTally
from aggregator.protocols.additive.ruled import SideTally
from aggregator.protocols.histogram.cohorts import bit_tally
from anon.errors import Refused
from anon.ldp import SCALE, Mechanism
from anon.protocols.categories import feature_map
from anon.protocols.histogram import one_bit
from anon.protocols.histogram.answers import answers_by_sum
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE, asks_label
from anon.protocols.histogram.binning import edges_from_histogram, level_edges
from anon.protocols.histogram.ruled import DeclaredSums, middle
from anon.protocols.histogram.thresholds import (
    Cuts,
    RoundCounts,
    asked_edges,
    known_shares,
    study_cuts,
    surveys_of_feature,
)
from anon.protocols.sortition import has_board
from anon.study.features import Feature
from anon.study.manifest import Manifest, Survey

_FEW_ROWS = 1 << 15
"""So many rows fit in 16 bits, which are sorted fastest."""


@frozen(eq=False)
class SimulatedTallies:
    """The cuts that binning found (declared ones included), what is known of shares, and the tallies of the cohorts."""

    cuts: Cuts
    train: tuple[SurveyTally, ...]
    scoring: tuple[SurveyTally, ...]
    bits: tuple[BitTally, ...] = ()
    shares: Mapping[str, tuple[float, ...]] = field(factory=dict)
    sides: Mapping[str, SideTally] = field(factory=dict)


@frozen(eq=False)
class Plan:
    """A manifest with its mechanisms built once, for many runs."""

    manifest: Manifest
    mechanisms: tuple[Mechanism, ...]

    @staticmethod
    def of(manifest: Manifest) -> Plan:
        """Build every survey's mechanism; a sum has none. Raises `Refused` where members write and add nothing up."""
        if has_board(manifest) and not is_linear(manifest):
            raise Refused("its members write to each other, and no lab simulates that; see `anonml study plan`")
        perturbed = [survey for survey in manifest.surveys if not survey.exact and not survey.written]
        return Plan(manifest, tuple(survey.build() for survey in perturbed))


Codes = Callable[[Counts | slice], Counts]
"""Which category each of the chosen people has."""


@frozen(eq=False)
class _Asked:
    """Who answers which survey: positions of people, or, of resampled peers, only how many."""

    members: Mapping[int, Counts]
    sizes: Mapping[int, int]
    generator: np.random.Generator

    def truth(self, survey: int, codes: Codes, m: int) -> Counts:
        """How many of those asked hold each of the m categories.

        Resampled peers are drawn with replacement, so that their categories are multinomial.
        """
        if survey in self.members:
            return np.bincount(codes(self.members[survey]), minlength=m).astype(np.int64)
        everyone = codes(slice(None))
        shares = np.bincount(everyone, minlength=m) / len(everyone)
        return self.generator.multinomial(self.sizes[survey], shares).astype(np.int64)


@frozen(eq=False)
class _Mapped:
    """People under known cuts: a category for each value of each feature, looked up for those who are asked."""

    people: People
    tables: Mapping[str, Counts]

    def codes(self, survey: Survey) -> Codes:
        """Each person's cell of the survey's features, with the label."""

        def of(chosen: Counts | slice) -> Counts:
            indices = {name: self.tables[name][self.people.columns[name].index[chosen]] for name in survey.features}
            return cells(indices, survey.features, survey.cards) * 2 + self.people.labels[chosen]

        return of


def collect(
    plan: Plan,
    people: People,
    generator: np.random.Generator,
    equal_parts: bool = False,
    resampled: int | None = None,
) -> SimulatedTallies:
    """One run with these people as the peers: every one of them sends all its packets.

    `resampled`: so many peers, each a copy of one of the people drawn with replacement, without holding any of them in
    memory. In designs of several slots the slots are then drawn apart.
    """
    members = _members(plan.manifest, len(people), generator, equal_parts, resampled)
    published = _ask_levels(plan, people, members, generator)
    cuts = study_cuts(plan.manifest, published)
    sides = _ask_about_score(plan, people, members, generator)
    mapped = _Mapped(people, _tables(plan.manifest.features, people, cuts))
    train: list[SurveyTally] = []
    scoring: list[SurveyTally] = []
    bits: list[BitTally] = []
    for survey in plan.manifest.surveys:
        if survey.kind == "bit":
            bits.append(_bit(survey, plan, mapped, members, generator))
        if survey.kind != "histogram":
            continue
        truth = members.truth(survey.survey, mapped.codes(survey), survey.m)
        scores = generator.binomial(truth, plan.manifest.learning.score_share).astype(np.int64)
        train.append(_tally(survey, plan, truth - scores, generator))
        scoring.append(_tally(survey, plan, scores, generator))
    shares = known_shares(plan.manifest, published)
    return SimulatedTallies(cuts, tuple(train), tuple(scoring), tuple(bits), shares, sides)


def categories(features: Sequence[Feature], people: People, cuts: Mapping[str, tuple[float, ...]]) -> dict[str, Counts]:
    """Each person's category of each feature, by the protocol's own map; shape (people,) each."""
    tables = _tables(features, people, cuts)
    return {name: table[people.columns[name].index] for name, table in tables.items()}


def _tables(features: Sequence[Feature], people: People, cuts: Mapping[str, tuple[float, ...]]) -> dict[str, Counts]:
    return {
        feature.name: category_table(feature, people.columns[feature.name], cuts.get(feature.name, feature.cuts))
        for feature in features
    }


def category_table(feature: Feature, column: FeatureColumn, cuts: Sequence[float]) -> Counts:
    """`feature_category` of each of the column's values, all at once for numbers. Shape (values,)."""
    if feature.kind == "categorical":
        return np.array([*map(feature_map(feature, cuts), column.values)], dtype=np.int64)
    own = feature.missing == "own"
    table = np.searchsorted(cuts, _filled(feature, column, 0.0 if own else float(feature.missing))).astype(np.int64)
    if own:
        table[np.isnan(column.numbers)] = len(cuts) + 1
    return table


def level_table(feature: Feature, column: FeatureColumn, edges: Sequence[float]) -> Counts:
    """`level_category` of each of the column's values, all at once. Shape (values,)."""
    missing = sum(feature.range) / 2 if feature.missing == "own" else float(feature.missing)
    return np.searchsorted(edges, _filled(feature, column, missing)).astype(np.int64)


def _filled(feature: Feature, column: FeatureColumn, missing: float) -> Floats:
    filled: Floats = np.where(np.isnan(column.numbers), missing, column.numbers)
    return np.minimum(np.maximum(filled, feature.range[0]), feature.range[1])


def cells(indices: Mapping[str, Counts], features: Sequence[str], cards: Sequence[int]) -> Counts:
    """The mixed radix cell of everybody in a subset of features, without the label."""
    index: Counts = np.zeros_like(indices[features[0]])
    for name, card in zip(features, cards, strict=True):
        index = index * card + indices[name]
    return index


def exact_cuts(plan: Plan, people: People) -> Cuts:
    """The cuts that binning would find without noise: for the ceiling on the same bins."""
    cuts: Cuts = {}
    for feature in plan.manifest.features:
        if feature.kind != "numeric":
            continue
        cuts[feature.name] = feature.cuts
        asking = [s for s in plan.manifest.surveys if not asks_label(s) and s.features == (feature.name,)]
        if asking and asking[0].kind == "quantile":
            edges = level_edges(feature, asking[0].m)
            truth = np.bincount(_levels(feature, people, edges)(slice(None)), minlength=asking[0].m)
            cuts[feature.name] = edges_from_histogram(edges, truth.tolist(), len(people), feature.bins)
        elif asking:
            cuts[feature.name] = (_median(feature, people),)
    return cuts


def _members(
    manifest: Manifest, peers: int, generator: np.random.Generator, equal_parts: bool, resampled: int | None
) -> _Asked:
    members: dict[int, Counts] = {}
    sizes: dict[int, int] = {}
    for slot in manifest.slots:
        weights = [row.weight for row in slot.rows]
        if resampled is not None:
            shares = np.array(weights) / sum(weights)
            ends = np.rint(np.cumsum(shares) * resampled).astype(np.int64)
            drawn = np.diff(ends, prepend=0) if equal_parts else generator.multinomial(resampled, shares)
            sizes.update({row.survey: int(size) for row, size in zip(slot.rows, drawn, strict=True)})
            continue
        rows = assign_rows(weights, peers, generator, equal_parts)
        order = np.argsort(rows.astype(np.int16) if len(slot.rows) < _FEW_ROWS else rows, kind="stable")
        ends = np.cumsum(np.bincount(rows, minlength=len(slot.rows)))
        for row, part in zip(slot.rows, np.split(order, ends[:-1]), strict=True):
            members[row.survey] = part
    return _Asked(members, sizes, generator)


def _ask_levels(
    plan: Plan, people: People, members: _Asked, generator: np.random.Generator
) -> dict[int, RoundCounts]:
    """Every binning survey asks its own peers, round by round; everyone's rules make cuts of these answers."""
    published: dict[int, RoundCounts] = {}
    for name in [feature.name for feature in plan.manifest.features if feature.binned_privately]:
        for survey in surveys_of_feature(plan.manifest, name):
            edges = asked_edges(plan.manifest, survey, published)
            truth = members.truth(survey.survey, _levels(plan.manifest.feature(name), people, edges), survey.m)
            counts = perturbed_counts(plan.mechanisms[survey.survey], truth, generator)
            published[survey.survey] = RoundCounts.of(survey, int(truth.sum()), counts.tolist())
    return published


def _ask_about_score(
    plan: Plan, people: People, members: _Asked, generator: np.random.Generator
) -> dict[str, SideTally]:
    """The questions about the declared score, by kind; its middle is found first."""
    asked = {survey.kind: survey for survey in plan.manifest.surveys if survey.kind in (MIDDLE, SIDE, SCORE)}
    if not asked:
        return {}
    sums = DeclaredSums.of(plan.manifest.features)
    held = categories(sums.features, people, {})
    totals = np.sum([np.array(own)[held[name]] for name, own in zip(sums.names, sums.parts, strict=True)], axis=0)
    places, found, at = totals - sums.sums.start, dict[str, SideTally](), 0.0
    for kind in (MIDDLE, SIDE, SCORE):
        survey, mechanism = asked[kind], plan.mechanisms[asked[kind].survey]
        answers = answers_by_sum(sums, survey, at)
        index = 2 * places + people.labels if kind == SCORE else places
        values = np.array([answer.value for answer in answers], dtype=np.int64)[index]
        truth = members.truth(survey.survey, values.__getitem__, answers[0].m)
        if kind != SIDE:
            chances = [one_bit.chance_of(survey, value) / SCALE for value in range(len(truth))]
            plus = int(generator.binomial(truth, chances).sum())
            truth = np.array([truth.sum() - plus, plus], dtype=np.int64)
        people_asked, counts = int(truth.sum()), perturbed_counts(mechanism, truth, generator)
        found[kind] = SideTally.of(mechanism, counts)
        if kind == MIDDLE:
            at = middle(mechanism, int(counts[1]), people_asked)
    return found


def _levels(feature: Feature, people: People, edges: tuple[float, ...]) -> Codes:
    column = people.columns[feature.name]
    table = level_table(feature, column, edges)
    return lambda chosen: table[column.index[chosen]]


def _median(feature: Feature, people: People) -> float:
    column = people.columns[feature.name]
    numbers = np.minimum(np.maximum(column.numbers, feature.range[0]), feature.range[1])[column.index]
    if np.isnan(numbers).all():
        return feature.range[0]
    median = float(np.nanmedian(numbers))
    return median if median < feature.range[1] else feature.range[0]


def _tally(survey: Survey, plan: Plan, truth: Counts, generator: np.random.Generator) -> SurveyTally:
    mechanism = plan.mechanisms[survey.survey]
    counts = perturbed_counts(mechanism, truth, generator)
    return SurveyTally(survey.survey, survey.features, survey.cards, mechanism, counts, int(truth.sum()))


def _bit(
    survey: Survey,
    plan: Plan,
    mapped: _Mapped,
    members: _Asked,
    generator: np.random.Generator,
) -> BitTally:
    """Peers of one sign and label round alike, so that their +1s are binomial; random response is drawn after it."""
    by_category = members.truth(survey.survey, mapped.codes(survey), 2 * len(one_bit.signs_of(survey))).reshape(-1, 2)
    above = np.array(one_bit.signs_of(survey)) > 0
    groups = np.concatenate([by_category[~above].sum(axis=0), by_category[above].sum(axis=0)])
    chances = [one_bit.plus_share(survey, 1 if group >= 2 else -1, group % 2) / SCALE for group in range(4)]
    plus = int(generator.binomial(groups, chances).sum())
    truth = np.array([groups.sum() - plus, plus], dtype=np.int64)
    mechanism = plan.mechanisms[survey.survey]
    return bit_tally(survey, mechanism, perturbed_counts(mechanism, truth, generator), int(groups.sum()))
