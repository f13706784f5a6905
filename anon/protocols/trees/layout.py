"""The one survey of a study of trees, and the plan of its trees, which follows from features and survey alone.

The survey names the features that split; a target stands last. Cards are the places. Parameters: the most splits of a
path, the most rows of a tree, and 1 where a feature stands in the label's place.

The plan is add-remove, with half of the survey's epsilon: a record replaced meets two paths, and costs all of it. A
tree does not tell the number of its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from attrs import evolve

from anon.errors import InvalidValue, Malformed
from anon.ldp import NanoEpsilon
from anon.protocols.categories import feature_map, label_category
from anon.protocols.contract import Record
from anon.protocols.trees.attributes import Attribute, LabelledRow, NumberAttribute, TextAttribute
from anon.protocols.trees.growing import TreePlan
from anon.protocols.trees.written import length
from anon.study.designs import Tables
from anon.study.features import Feature
from anon.study.manifest import POSTED, Manifest, Survey, Window
from anon.study.records import MOST_OF_MEMBER, RECORD
from anon.study.slots import Row, Slot

KIND: Final = "tree"
SLOTS: Final = (Slot(0, (Row(0, 1),)),)
UNHURRIED: Final = 240
"""Seconds to settle, of which a machine has a quarter for its queries and its tree. It is never given more than that
quarter, 60 s."""
_LABELS: Final = 2
_PARAMETERS: Final = 3


def survey_of(
    features: Sequence[Feature], target: str, depth: int, rows: int, epsilon: int, window: Window
) -> Survey:
    """The survey of a tree. Raises `InvalidValue` where none can be grown by these features."""
    asked = [feature for feature in features if feature.name != target]
    asked += [feature for feature in features if feature.name == target]
    if bool(target) and (not asked or asked[-1].name != target):
        raise InvalidValue("design.target: expected the name of a feature")
    names, cards = tuple(each.name for each in asked), tuple(each.cardinality for each in asked)
    parameters = (depth, rows, int(bool(target)))
    survey = Survey(0, KIND, names, cards, 0, POSTED, 0, 0, epsilon, window, size=1, parameters=parameters)
    return evolve(survey, size=length(plan_of(features, survey)))


def plan_of(features: Sequence[Feature], survey: Survey) -> TreePlan:
    """The plan of all trees. Raises `InvalidValue`."""
    kinds = {feature.name: feature.kind for feature in features}
    depth, _rows, targeted = survey.parameters
    split = list(zip(survey.features, survey.cards, strict=True))[: -1 if targeted else None]
    attributes = tuple(_attribute(name, places, kinds[name]) for name, places in split)
    classes = survey.cards[-1] if targeted else _LABELS
    return TreePlan(attributes, classes, NanoEpsilon(survey.epsilon // 2), "add-remove", depth)


def _attribute(name: str, places: int, kind: str) -> Attribute:
    """Places are the feature's categories: those of numbers are split at a cut, and all others into any two sets."""
    if kind == "numeric":
        return NumberAttribute(name, tuple(range(places + 1)))
    return TextAttribute(name, tuple(map(str, range(places))))


@lru_cache(maxsize=16)
def plan_for(study: Manifest) -> TreePlan:
    """The plan of a study's trees."""
    return plan_of(study.features, study.surveys[0])


def target_of(study: Manifest) -> Feature | None:
    """The feature in the label's place, where there is one."""
    survey = study.surveys[0]
    return study.feature(survey.features[-1]) if survey.parameters[-1] else None


def labelled(study: Manifest, record: Record) -> list[LabelledRow]:
    """The places and the class of each of a member's records, whatever they hold."""
    target, names = target_of(study), [attribute.name for attribute in plan_for(study).attributes]
    maps = {feature.name: feature_map(feature, feature.cuts) for feature in study.features}
    found = []
    for held in record.rows:
        row = tuple(maps[name](held.values.get(name)) for name in names)
        if target is None:
            label = label_category(study.label, held.label)
        else:
            label = maps[target.name](held.values.get(target.name))
        found.append(LabelledRow(row, label))
    return found


def demand_time(most: int, settle: int) -> None:
    """Raises `InvalidValue` where many records could make a machine late: then a tree of none leaves, which is more
    than one record's difference."""
    if most > MOST_OF_MEMBER and settle < UNHURRIED:
        raise InvalidValue(f"schedule.settle: expected {UNHURRIED}s or more for more than {MOST_OF_MEMBER} records")


def check(study: Manifest) -> None:
    """Raises `Malformed` unless the one survey is that of its trees."""
    if study.part or len(study.surveys) != 1 or study.slots != SLOTS:
        raise Malformed("manifest: its surveys are not those of trees; do not take part")
    if study.records is None or study.records.unit != RECORD:
        raise Malformed("manifest: a tree protects each record, and it promises something else; do not take part")
    if any(feature.binned_privately for feature in study.features):
        raise Malformed("manifest: a feature has no declared cuts; do not take part")
    survey = study.surveys[0]
    try:
        depth, rows, targeted = survey.parameters
        target = survey.features[-1] if targeted else ""
        made = survey_of(study.features, target, depth, rows, survey.epsilon, survey.window)
        demand_time(study.records.most, study.timetable.settled - study.timetable.enrol_closes)
    except InvalidValue as fault:
        raise Malformed(f"manifest: its trees cannot be grown: {fault}; do not take part") from None
    if survey != made:
        raise Malformed("manifest: its survey is not that of its trees; do not take part")


def form(cards: Mapping[str, int], tables: Tables) -> None:
    """The form of the one design. Raises `InvalidValue`."""
    if [[survey.kind for survey in surveys] for surveys in tables] != [[KIND]]:
        raise InvalidValue("design: expected one slot with one tree")
    survey = tables[0][0]
    if survey.mechanism != POSTED or len(survey.parameters) != _PARAMETERS:
        raise InvalidValue("design: expected a posted tree with three parameters")
    if dict(zip(survey.features, survey.cards, strict=True)) != cards or len(survey.features) != len(cards):
        raise InvalidValue("design: expected each feature once, with all of its categories")
