"""The faults of a form in the form's own words: each with the field that mends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from aggregator.desk.form import TELLERS, FormColumn, columns_of, lines_of, tellers_in
from aggregator.desk.form_file import asked_about
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
COLUMN_LABELS: Mapping[str, str] = {
    "use": "Ask about it", "says": "In words", "low": "From", "high": "To", "bins": "Bins", "cuts": "Own cut points",
    "expects": "More of it goes with", "categories": "Categories",
}
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
_QUERY = re.compile(r"([a-z][a-z0-9_]*)\.query: ")


@frozen
class FieldFault:
    """`field`: the id of the field that mends it, or nothing where the form has none. `says`: a sentence."""

    field: str
    says: str


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


def _left_empty(fields: Mapping[str, str]) -> Iterator[FieldFault]:
    columns = columns_of(fields)
    for name in ("title", "purpose", "contact"):
        if not fields[name].strip():
            yield FieldFault(name, f"{LABELS[name]}: fill it in; people read it before they say yes")
    if not columns:
        yield FieldFault("sample", "Sample file: read the columns of one, or name the columns one by one")
        return
    if not fields["label"].strip():
        yield FieldFault("label", f"{LABELS['label']}: choose one")
    if not fields["label_says"].strip():
        yield FieldFault("label_says", "What you want to predict, in words: fill it in")
    if not lines_of(fields["positive"]):
        yield FieldFault("positive", "Values that count as yes: write at least one")
    elif fields["label"].strip() and not _others(fields):
        yield FieldFault("negative", "Values that count as no: write at least one")
    if fields["adds"] == TELLERS and len(tellers_in(fields)) < FEWEST_TELLERS:
        yield FieldFault("tellers", "Tellers: name at least two, or choose answers that are changed at random")
    if not asked_about(fields):
        others = [column.number for column in columns if column.name != fields["label"]]
        yield FieldFault(f"c{others[0]}_use" if others else "sample", "Ask about at least one column, and tick it")
    for column in asked_about(fields):
        if not column.says.strip():
            yield _of_column(column, "says", "fill it in")


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
