"""The protocol `groups` at the aggregator: everybody can add up the pages, so it knows no more than anybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import hypot
from typing import Final

from attrs import frozen

from aggregator.protocols.contract import LearningResult, ReportPart
from aggregator.protocols.sum.part import HiddenVectors, learned_of
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.tally import Tally
from anon.errors import Malformed
from anon.protocols.board import pages_in
from anon.protocols.contract import MODEL, Place
from anon.protocols.models.ensemble import EnsembleModel, GroupModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.groups.drawing import KEYS, OPENED, Group, came, step_of, told
from anon.protocols.sum.groups.layout import grouping_of, longest, weights_of, weights_survey
from anon.protocols.sum.groups.shared import drawn_groups
from anon.study.manifest import Manifest

_TEMPLATE: Final = """{% extends "report.html" %}
{% block results %}
<h2>The models</h2>
<p>Members were drawn into groups in each aggregation. The mean of a group's models is one model. The models with a
length predict together: the score is the mean of their probabilities.</p>
<div class="wide" tabindex="0" role="region" aria-label="groups">
<table><tr><th class="n">aggregation</th><th class="n">group</th><th class="n">members</th><th class="n">came</th>
<th class="n">length of the weights</th></tr>
{% for one in groups %}<tr><td class="n">{{ one.group.aggregation + 1 }}</td><td class="n">{{ one.group.number }}</td>
<td class="n">{{ one.group.members | length }}</td><td class="n">{{ one.came }}</td>
<td{% if not one.without %} class="n"{% endif %}>{{ one.without or "%.4g" | format(one.length) }}</td></tr>
{% endfor %}</table>
</div>
{% endblock %}
"""
_UNTOLD: Final = "none: a receiver told no sum, or fewer than half of the group came"
_TOO_LONG: Final = "left out: longer than all of the group's models and the noise together can be"


@frozen
class GroupSum:
    """A group's weights. `came`: how many members' they are. `without`: the reason why it has no model."""

    group: Group
    came: int
    model: LinearModel | None = None
    without: str = ""

    @property
    def length(self) -> float:
        """Of the mean weights, as the report shows it."""
        return hypot(self.model.intercept, *self.model.weights) if self.model else 0.0


@frozen
class LearnedEnsemble:
    """Groups' models. `groups`: all that were drawn, also those without one."""

    model: EnsembleModel
    groups: tuple[GroupSum, ...]

    @property
    def results(self) -> Mapping[Place, bytes]:
        """The ensemble alone."""
        return {MODEL: self.model.to_json().encode()}


@frozen
class EnsemblePart(HiddenVectors):
    """See `aggregator.protocols.contract`."""

    def ends(self, study: Manifest, number: int, documents: Mapping[Place, bytes]) -> bool:
        """True where no model can come any more: none is there, and fewer than a group told keys or opened values, or
        all rounds are over. A later aggregation without a group takes nothing from an earlier one."""
        if number == KEYS:
            return len(pages_in(study, documents)[KEYS].entries[KEYS]) < grouping_of(study.part).group
        aggregation, step = step_of(number)
        if step == OPENED:
            missing = not drawn_groups(study, aggregation, pages_in(study, documents))
        else:
            missing = number == len(study.surveys) - 1
        return missing and not any(found.model for found in group_sums(study, documents))

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearningResult:
        """The ensemble of all groups whose receivers told their sums."""
        found = tuple(group_sums(study, documents))
        return LearnedEnsemble(ensemble_of(found), found)

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        """A line for each group."""
        if not isinstance(learned, LearnedEnsemble):
            raise TypeError(f"not learned from groups: {type(learned).__name__}")
        return ReportPart(_TEMPLATE, {"groups": learned.groups})


def group_sums(study: Manifest, documents: Mapping[Place, bytes]) -> Iterator[GroupSum]:
    """Every group that was drawn, in order, with its model or the reason why it has none."""
    pages = pages_in(study, documents)
    for aggregation in range(grouping_of(study.part).aggregations):
        for group in drawn_groups(study, aggregation, pages):
            yield sum_of_group(study, group, len(came(pages, group)), told(pages, group))


def sum_of_group(study: Manifest, group: Group, many: int, values: Sequence[int] | None) -> GroupSum:
    """A group with the model of its noisy sum, which is of so many members' weights. None: a receiver told none."""
    grouping, survey = grouping_of(study.part), weights_survey(study)
    if values is None:
        return GroupSum(group, many, without=_UNTOLD)
    if hypot(*values) > longest(weights_of(survey), many, grouping):
        return GroupSum(group, many, without=_TOO_LONG)
    noisy = NoisySum(tuple(values), many, grouping.noise, grouping.receivers)
    return GroupSum(group, many, learned_of(study, survey, noisy).model)


def ensemble_of(found: Sequence[GroupSum]) -> EnsembleModel:
    """The ensemble of all models. Raises `Malformed` where there is none."""
    modelled = [(entry, entry.model) for entry in found if entry.model is not None]
    if not modelled:
        raise Malformed("groups: no group has a model")
    models = tuple(
        GroupModel(entry.group.aggregation + 1, entry.group.number, entry.came, model.weights, model.intercept)
        for entry, model in modelled
    )
    first = modelled[0][1]
    return EnsembleModel(
        first.study, first.title, first.label, first.features, first.columns, models, many=first.many
    )
