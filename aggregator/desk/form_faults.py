"""The faults of a form in the form's own words: each with the field that mends it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from aggregator.desk.form import (
    BEGINNING,
    BELIEVED,
    FROM_BELIEF,
    WITH_TELLERS,
    FormColumn,
    columns_of,
    lines_of,
    tellers_in,
)
from aggregator.desk.form_file import asked_about, believed
from anon.study.proposal import FEWEST_TELLERS

LABELS: Mapping[str, str] = {
    "title": "Title",
    "purpose": "Purpose",
    "contact": "Contact",
    "data_source": "Where people get the file of their data, step by step",
    "label": "Column to predict",
    "label_says": "In words",
    "positive": "Values that count as yes, one a line",
    "negative": "Values that count as no, one a line",
    "rate": "Of 100 people, about how many are a yes?",
    "people": "How many people do you expect?",
    "minimum": "Minimum: with fewer people the study ends, and nothing is sent",
    "admission": "Admission",
    "enrol": "How long to enrol, such as 7d or 12h",
    "collect": "How long to send answers, such as 3d or 12h",
    "epsilon": "Epsilon",
    "adds": "How answers are protected",
    "tellers": "Tellers, one a line: the name, then the address",
}
"""The words above each field."""
YES, NO = "Values that count as yes", "Values that count as no"
COLUMN_LABELS: Mapping[str, str] = {
    "use": "Ask about it", "says": "In words", "low": "From", "high": "To", "bins": "Bins", "cuts": "Own cut points",
    "expects": "More of it goes with", "categories": "Categories",
}
STEPS: Sequence[tuple[str, frozenset[str]]] = (
    ("What it is about", frozenset({"title", "purpose", "contact", "data_source"})),
    ("What each person's data look like", frozenset({"sample", "label", "label_says", "positive", "negative", "rate"})),
    (
        "Who takes part, who adds it up, and when",
        frozenset({"people", "minimum", "admission", "enrol", "collect", "adds", "tellers"}),
    ),
    ("Privacy, and what it leaves to be found", frozenset({"epsilon"})),
)
"""The head of each step of the form, and the fields in it. A column's fields are in the second one."""
COLUMNS_STEP = 1
_KEYS: Mapping[str, str] = {
    "label.name": "label", "label.description": "label_says", "label.query": "label", "label.positive": "positive",
    "label.negative": "negative", "label.positive, negative": "negative", "learning.base_rate": "rate",
    "cohort.minimum": "minimum", "cohort.minimum, maximum": "minimum", "cohort.admission": "admission",
    "design.epsilon": "epsilon", "schedule.enrol": "enrol", "schedule.collect": "collect",
    "schedule.enrol, settle, collect": "enrol", "tellers": "tellers",
    "title": "title", "purpose": "purpose", "contact": "contact", "data_source": "data_source",
}
_PARTS: Mapping[str, str] = {
    "name": "use", "query": "use", "kind": "use", "description": "says", "range": "low", "range[0]": "low",
    "range[1]": "high", "bins": "bins", "bins, cuts": "bins",
}
_SAID: Mapping[str, str] = {
    "rate": "expected a number above 0 and below 100",
    "minimum": "expected a whole number from 2 on",
    "enrol": "expected a number of days, or a length of time such as 7d, 12h or 90s",
    "collect": "expected a number of days, or a length of time such as 3d, 12h or 90s",
    "low": "expected two numbers, the first below the second",
}
"""Words in place of those for whoever writes the file."""
_FAULT = re.compile(r"study\.toml\.([a-z_.,\[\]0-9 ]+?): (.*)", re.DOTALL)
_FEATURE = re.compile(r"features\[(\d+)\]\.(.*)")
_COLUMN_FIELD = re.compile(r"c\d+_")
_QUERY = re.compile(r"([a-z][a-z0-9_]*)\.query: ")


@frozen
class FieldFault:
    """`field`: the id of the field that mends it, or nothing where the form has none. `says`: a sentence.

    `lacking`: in a few words what an empty field lacks; nothing for other faults."""

    field: str
    says: str
    lacking: str = ""


def form_faults(fields: Mapping[str, str], faults: Sequence[str]) -> tuple[FieldFault, ...]:
    """The faults that a check of the form's study file found, one for a field, those of empty fields first. None
    without faults of the check."""
    empty = list(_left_empty(fields)) if faults else []
    told = [_told(fields, fault) for fault in faults]
    if empty:  # faults that have no field of their own, or another in the same list, follow from these
        told = [fault for fault in told if fault.field not in ("", "label", "negative")]
    found: dict[str, FieldFault] = {}
    for found_fault in (*empty, *told):
        found.setdefault(found_fault.field or found_fault.says, found_fault)
    return tuple(found.values())


def in_steps(faults: Iterable[FieldFault]) -> tuple[tuple[FieldFault, ...], ...]:
    """The faults of each step of the form. One without a field is of the last step, which publishes."""
    found: list[list[FieldFault]] = [[] for _ in STEPS]
    for fault in faults:
        of_step = (place for place, (_, fields) in enumerate(STEPS) if fault.field in fields)
        found[COLUMNS_STEP if _COLUMN_FIELD.match(fault.field) else next(of_step, len(STEPS) - 1)].append(fault)
    return tuple(map(tuple, found))


def as_proposed(fields: Mapping[str, str]) -> tuple[bool, ...]:
    """Of each step, whether every field in it is still as the form begins."""
    changed = {name for name, begun in BEGINNING.items() if fields[name].strip() != begun}
    return tuple(not changed & of_step for _, of_step in STEPS)


def _left_empty(fields: Mapping[str, str]) -> Iterator[FieldFault]:
    columns = columns_of(fields)
    for name in ("title", "purpose", "contact"):
        if not fields[name].strip():
            yield FieldFault(name, f"{LABELS[name]}: fill it in; people read it before they say yes", LABELS[name])
    if not columns:
        yield FieldFault("sample", "Sample file: read the columns of one, or name the columns one by one", "Columns")
        return
    if not fields["label"].strip():
        yield FieldFault("label", f"{LABELS['label']}: choose one", LABELS["label"])
    if not fields["label_says"].strip():
        predicted = "What you want to predict, in words"
        yield FieldFault("label_says", f"{predicted}: fill it in", predicted)
    if not lines_of(fields["positive"]):
        yield FieldFault("positive", f"{YES}: write at least one", YES)
    elif fields["label"].strip() and not _others(fields):
        yield FieldFault("negative", f"{NO}: write at least one", NO)
    if fields["adds"] in WITH_TELLERS and len(tellers_in(fields)) < FEWEST_TELLERS:
        said = "Tellers: name at least two, or choose answers that are changed at random"
        yield FieldFault("tellers", said, "Two tellers")
    if fields["adds"] in FROM_BELIEF and believed(asked_about(fields)) < BELIEVED:
        said = "Your belief: say of two columns or more what more of them goes with, or choose other answers"
        yield FieldFault("adds", said, "Which way two columns point")
    if not asked_about(fields):
        others = [column.number for column in columns if column.name != fields["label"]]
        said = "Ask about at least one column, and tick it"
        yield FieldFault(f"c{others[0]}_use" if others else "sample", said, "A column to ask about")
    for column in asked_about(fields):
        if not column.says.strip():
            fault = _of_column(column, "says", "fill it in")
            yield evolve(fault, lacking=f"{column.name}, in words")


def _others(fields: Mapping[str, str]) -> bool:
    values = next((column.values for column in columns_of(fields) if column.name == fields["label"]), ())
    return bool(lines_of(fields["negative"]) or set(values) - set(lines_of(fields["positive"])))


def _told(fields: Mapping[str, str], fault: str) -> FieldFault:
    if query := _QUERY.match(fault):
        for column in columns_of(fields):
            if column.name == query[1]:
                return _of_column(column, "use", "a query cannot read this name; rename the column in the file")
    match = _FAULT.match(fault)
    if match is None:
        return FieldFault("", fault)
    key, says = match.groups()
    if feature := _FEATURE.match(key):
        return _of_feature(asked_about(fields), int(feature[1]), feature[2], says)
    field = _KEYS.get("tellers" if key.startswith("tellers[") else key, "")
    said = "expected values other than those of the other list" if "common value" in says else _SAID.get(field, says)
    return FieldFault(field, f"{_called(field)}: {said}") if field else FieldFault("", says)


def _called(field: str) -> str:
    return "The share of a yes" if field == "rate" else re.split("[,;]", LABELS[field])[0]


def _of_feature(asked: list[FormColumn], number: int, part: str, says: str) -> FieldFault:
    if number >= len(asked):
        return FieldFault("", says)
    plain = _PARTS.get(part, part.partition("[")[0])
    return _of_column(asked[number], plain if plain in COLUMN_LABELS else "use", _SAID.get(plain, says))


def _of_column(column: FormColumn, part: str, says: str) -> FieldFault:
    return FieldFault(f"c{column.number}_{part}", f"{column.name}, {COLUMN_LABELS[part]}: {says}")
