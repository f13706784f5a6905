"""The protocol `sum` at the aggregator: rounds whose sums the tellers publish, and the model that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from aggregator.protocols.contract import LearningResult, PartScore, ReportPart
from aggregator.protocols.estimates import Estimate
from aggregator.protocols.linear_report import linear_report
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.tally import Tally
from anon.errors import Malformed
from anon.protocols.contract import MODEL, Place
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.published import PublishedModel
from anon.protocols.sum.design import GRADIENT, MARGINALS, MOMENTS, TABLES, column_of, one_in, summed_of
from anon.protocols.sum.parties import GIVEN, strength_of
from anon.protocols.sum.rule import SCORES, enough_for, rule_of
from anon.protocols.sum.standing import RoundSum, arrangement_of, final_weights, read_sums, ruled_after, sum_asked
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.columns import CONSTANT
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.tables import TableSums
from anon.protocols.vectors.transfer import TransferredVotes, public_rows
from anon.sharing.round_document import demand_listed
from anon.study.features import LARGEST_NUMBER
from anon.study.manifest import Manifest, Survey
from anon.wire.packets import PublishedPacket

if TYPE_CHECKING:
    from aggregator.protocols.additive.results import Subject


@frozen
class LearnedLinear:
    """A linear model, and the standard error of each of its weights where they are known.

    Nothing else stands behind it than the published sums.
    """

    model: LinearModel
    errors: tuple[float, ...] = ()

    @property
    def results(self) -> Mapping[Place, bytes]:
        """The model alone."""
        return {MODEL: self.model.to_json().encode()}


@frozen
class HiddenVectors:
    """The part of a protocol whose packets tell an aggregator nothing, and of which none is kept for scoring."""

    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        """Nothing."""
        return np.zeros(0, dtype=np.int64)

    def part_scores(self, model: PublishedModel) -> tuple[PartScore, ...]:
        """None."""
        return ()

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        """None."""
        return None


@frozen
class OpenedSum(HiddenVectors):
    """The part of one whose members open a sum together, from which a linear model follows."""

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        """The linear model's columns."""
        if not isinstance(learned, LearnedLinear):
            raise TypeError(f"not learned from an opened sum: {type(learned).__name__}")
        return linear_report(learned.model, learned.errors)


@frozen
class SumPart(HiddenVectors):
    """See `aggregator.protocols.contract`."""

    def check_sums(
        self,
        study: Manifest,
        number: int,
        body_untrusted: bytes,
        members: int,
        tags: Mapping[int, Sequence[bytes]] | None,
    ) -> Mapping[int, int]:
        """See `SummingPart`. Each round has one survey, and its number is the round's."""
        arrangement, slot = arrangement_of(study), sum_asked(study, number).slot
        by_slot = None if tags is None else {slot: tags.get(number, ())}
        left_out = demand_listed(arrangement, study.study_id, number, body_untrusted, members, by_slot)
        return {number: left_out[slot]} if left_out else {}

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearningResult:
        """The model of the published sums. Every packet trains: none is kept for scoring."""
        return learned_from(study, read_sums(study, documents, len(study.surveys)), documents.get(GIVEN, b""))

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        """The tables with their effects, or the linear model's columns."""
        if isinstance(learned, LearnedLinear):
            return linear_report(learned.model, learned.errors)
        from aggregator.protocols.additive.report import values_of
        from aggregator.protocols.additive.results import LearnedStudy
        from aggregator.protocols.sum.drawn import rows_told

        if not isinstance(learned, LearnedStudy):
            raise TypeError(f"not learned by the protocol of sums: {type(learned).__name__}")
        template = files("aggregator.protocols.sum").joinpath("tables.html").read_text("utf-8")
        return ReportPart(template, {**values_of(study, learned), **rows_told(learned), "belief": learned.model.belief})


def learned_from(
    study: Manifest, sums: Sequence[RoundSum], given: bytes = b"", with_influence: bool = True
) -> LearningResult:
    """The model of these sums, one for each round, and of the public rows where members voted on some. Raises
    `Malformed` for sums that do not fit the study."""
    kind = study.surveys[0].kind
    if kind in (TABLES, MARGINALS):
        return _learned_tables(study, sums[0], with_influence)
    if kind == SCORES:
        return _learned_rule(study, sums)
    if kind == GRADIENT:
        return LearnedLinear(_descended(study, sums))
    return learned_of(study, study.surveys[0], _noisy(study, sums[0]), given)


def learned_of(study: Manifest, survey: Survey, found: NoisySum, given: bytes = b"") -> LearnedLinear:
    """The model of one noisy sum: of products, of weights, or of votes on given public rows. Raises `Malformed`."""
    if survey.kind == MOMENTS:
        return _ridge(study, survey, found)
    return LearnedLinear(_of_parties(study, survey, found, given))


def _noisy(study: Manifest, found: RoundSum) -> NoisySum:
    parties = arrangement_of(study).summing
    return NoisySum(found.values, found.accepted, found.noise / parties, parties)


def _learned_tables(study: Manifest, found: RoundSum, with_influence: bool) -> LearningResult:
    from aggregator.protocols.sum.tables import learn_tables  # late: a server starts without scikit-learn

    design = summed_of(study, study.surveys[0])
    if not isinstance(design, TableSums):
        raise Malformed("sums: expected those of tables")
    noisy = _noisy(study, found)
    learned = learn_tables(_subject(study), design, noisy, study.learning, with_influence)
    told = evolve(learned, model=evolve(learned.model, chance=learned.chance, shown=learned.learnable))
    if study.surveys[0].kind != MARGINALS:
        return told
    from aggregator.protocols.sum.drawn import with_rows

    return with_rows(told, design, noisy, study.surveys[0].parameters[0])


def _learned_rule(study: Manifest, sums: Sequence[RoundSum]) -> LearningResult:
    from aggregator.protocols.sum.calibrated import learn_rule  # late: see above

    found, enough = ruled_after(study, sums), enough_for(study, sums[0].noise)
    learned = learn_rule(_subject(study), rule_of(study), found, sums[0].accepted, enough)
    return evolve(learned, model=evolve(learned.model, chance=learned.chance, shown=learned.learnable))


def _subject(study: Manifest) -> Subject:
    from aggregator.protocols.additive.results import Subject  # late: see above

    cuts = {one.name: one.cuts for one in study.features if one.kind == "numeric"}
    shares = {one.name: one.shares for one in study.features if one.shares}
    return Subject(study.study_id.hex(), study.title, study.label, study.features, cuts, shares)


def _ridge(study: Manifest, survey: Survey, found: NoisySum) -> LearnedLinear:
    """The regression of the target. A label's score, from -1 to 1, is the probability's distance from 1/2, doubled; as
    log-odds it is doubled once more, which agrees with it around 0 and everywhere in order and sign.

    It is tested against noise where each member has one record: how records of one member go together is not summed.
    """
    from aggregator.protocols.additive.noise_test import LEVEL  # late: see above
    from aggregator.protocols.sum.moments import ridge, ridge_errors
    from aggregator.protocols.sum.moments_noise_test import chance_of_products

    design = summed_of(study, survey)
    if not isinstance(design, MomentSums):
        raise Malformed("sums: expected those of moments")
    target = design.columns[-1].name
    of_label = target == study.label.name
    stretch = 2.0 if of_label else 1.0
    model, errors = ridge(design, target, found), ridge_errors(design, target, found)
    names = tuple(column.name for column in model.columns if column.name != CONSTANT)
    weights = {column.name: stretch * weight for column, weight in zip(model.columns, model.weights, strict=True)}
    spread = {column.name: stretch * error for column, error in zip(model.columns, errors, strict=True)}
    chance = None if study.records else chance_of_products(design, found)
    fitted = evolve(
        _linear(study, names, [weights[name] for name in names], weights[CONSTANT]),
        target=None if of_label else column_of(study.feature(target)),
        chance=chance,
        shown=None if chance is None else chance <= LEVEL,
    )
    return LearnedLinear(fitted, () if study.records else tuple(spread[name] for name in names))


def _descended(study: Manifest, sums: Sequence[RoundSum]) -> LinearModel:
    """The regression of the last weights. It is tested against noise where some members checked it."""
    from aggregator.protocols.additive.noise_test import LEVEL  # late: see above
    from aggregator.protocols.sum.gradient_noise_test import chance_of_agreement

    intercept, *weights = final_weights(study, sums)
    model = _linear(study, tuple(feature.name for feature in study.features), weights, intercept)
    design = summed_of(study, last := study.surveys[-1])
    if not isinstance(design, CheckSums):
        return model
    chance = chance_of_agreement(design, sums[last.round], one_in(study.surveys))
    return evolve(model, chance=chance, shown=chance <= LEVEL)


def _of_parties(study: Manifest, survey: Survey, found: NoisySum, given: bytes) -> LinearModel:
    """The mean of weights, or the model of votes. Columns of a record are scaled to a norm of at most 1 in both."""
    design = summed_of(study, survey)
    if isinstance(design, AveragedWeights):
        weights = design.mean(found.values, found.units)
    elif isinstance(design, TransferredVotes):
        from aggregator.protocols.sum.transferred import transferred

        votes = design.mean(found.values, found.units)
        fitted = transferred(public_rows(design, given), votes, strength_of(survey))
        weights = [weight / (float(design.norm) * sqrt(design.length)) for weight in fitted]
    else:
        raise Malformed("sums: expected those of weights or votes")
    intercept, *others = weights
    return _linear(study, tuple(feature.name for feature in study.features), others, intercept)


def _linear(study: Manifest, names: Sequence[str], weights: Sequence[float], intercept: float) -> LinearModel:
    """The model of these weights. A member that lies under masks makes a sum of any size: weights end where numbers of
    a model do."""
    features = tuple(study.feature(name) for name in names)
    return LinearModel(
        study=study.study_id.hex(),
        title=study.title,
        label=study.label,
        features=features,
        columns=tuple(map(column_of, features)),
        weights=tuple(map(_bounded, weights)),
        intercept=_bounded(intercept),
        many=study.records is not None,
    )


def _bounded(weight: float) -> float:
    return max(-float(LARGEST_NUMBER), min(float(LARGEST_NUMBER), weight))
