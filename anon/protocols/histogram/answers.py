"""From a record to the answer of a survey: the one way, and a total one, to a `RawCategory` out of somebody's data.

An `AnswerMap` holds the answer to every combination of categories before any value is seen. So whether there is an
answer, and to how many categories, depends on the study and its documents alone.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import final

from attrs import field

from anon.errors import Malformed
from anon.ldp import RawCategory
from anon.protocols.categories import TotalMap, cell, feature_map, label_map, level_map
from anon.protocols.contract import Record
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE, asks_label
from anon.protocols.histogram.one_bit import LEVELS, bit_answer, signs_of
from anon.protocols.histogram.ruled import DeclaredSums, level, middle
from anon.study.manifest import Manifest, Survey
from anon.text.sentences import say
from anon.values import frozen


@final
@frozen
class AnswerMap:
    """The answer of every record to one survey. `answers` holds one for each combination of categories, the last map's
    changing fastest. Raises `Malformed` when built with another number of them; never when called."""

    features: tuple[tuple[str, TotalMap], ...]
    label: TotalMap | None
    answers: tuple[RawCategory, ...] = field(repr=False)

    def __attrs_post_init__(self) -> None:
        cards = [total_map.cardinality for _, total_map in self.features]
        combinations = prod(cards) * (self.label.cardinality if self.label else 1)
        if len(self.answers) != combinations:
            raise Malformed(say(
                "survey: {answers} answers to {combinations} combinations; do not take part",
                answers=len(self.answers),
                combinations=combinations,
            ))

    def __call__(self, record: Record) -> RawCategory:
        """The answer of a record, whatever it holds."""
        index = 0
        for name, categories in self.features:
            index = index * categories.cardinality + categories(record.values.get(name))
        if self.label is not None:
            index = index * self.label.cardinality + self.label(record.label)
        return self.answers[index]


@final
@frozen
class SumMap:
    """The answer of every record to one survey about the declared score. `answers` holds one for each sum of `parts`
    that there can be, from `least` on, by label where there is one. It never raises when called."""

    features: tuple[tuple[str, TotalMap], ...]
    label: TotalMap | None
    parts: tuple[tuple[int, ...], ...]
    least: int
    answers: tuple[RawCategory, ...] = field(repr=False)

    def __call__(self, record: Record) -> RawCategory:
        """The answer of a record, whatever it holds."""
        index = -self.least
        for (name, categories), own in zip(self.features, self.parts, strict=True):
            index += own[categories(record.values.get(name))]
        if self.label is not None:
            index = index * self.label.cardinality + self.label(record.label)
        return self.answers[index]


def answer_map(manifest: Manifest, survey: Survey, published: cuts.Published) -> AnswerMap | SumMap:
    """The map of a survey whose documents have arrived. Raises `Malformed` for a survey that cannot be answered."""
    if survey.kind in (MIDDLE, SIDE, SCORE):
        return _sum_map(manifest, survey, published)
    features = tuple((name, _map(manifest, survey, name, published)) for name in survey.features)
    if tuple(total_map.cardinality for _, total_map in features) != survey.cards:
        raise Malformed(say(
            "survey {survey}: other cardinalities than its features have; do not take part",
            survey=survey.survey,
        ))
    if not asks_label(survey):
        return AnswerMap(features, None, tuple(RawCategory(level, survey.m) for level in range(survey.m)))
    return AnswerMap(features, label_map(manifest.label), _answers(survey))


def _sum_map(manifest: Manifest, survey: Survey, published: cuts.Published) -> SumMap:
    sums = DeclaredSums.of(manifest.features)
    found = 0.0
    for earlier in cuts.asked_before(manifest, survey):
        told = published[earlier.survey]
        found = middle(earlier.build(), told.counts[0], told.n)
    maps = tuple((feature.name, feature_map(feature, feature.cuts)) for feature in sums.features)
    label = label_map(manifest.label) if survey.kind == SCORE else None
    return SumMap(maps, label, sums.parts, sums.sums.start, answers_by_sum(sums, survey, found))


def answers_by_sum(sums: DeclaredSums, survey: Survey, found: float) -> tuple[RawCategory, ...]:
    """The answer of each sum, with the label also by label, which changes fastest. `found`: the middle of scores."""
    scores = [total / sums.unit for total in sums.sums]
    if survey.kind == MIDDLE:
        return tuple(RawCategory(level(score), LEVELS) for score in scores)
    above = [score > found for score in scores]
    if survey.kind == SIDE:
        return tuple(RawCategory(int(side), survey.m) for side in above)
    return tuple(bit_answer(1 if side else -1, label) for side in above for label in (0, 1))


def _map(manifest: Manifest, survey: Survey, name: str, published: cuts.Published) -> TotalMap:
    feature = manifest.feature(name)
    if not asks_label(survey):
        return level_map(feature, cuts.asked_edges(manifest, survey, published))
    numeric = feature.kind == "numeric"
    return feature_map(feature, cuts.feature_cuts(manifest, name, published) if numeric else ())


def _answers(survey: Survey) -> tuple[RawCategory, ...]:
    if survey.kind == "bit":
        return tuple(bit_answer(sign, label) for sign in signs_of(survey) for label in (0, 1))
    combinations = product(*(range(card) for card in survey.cards), (0, 1))
    return tuple(RawCategory(cell(survey.cards, places, label), survey.m) for *places, label in combinations)
