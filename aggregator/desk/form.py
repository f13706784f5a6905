"""The form for a study: its fields, the columns among them, and the study file that they say.

Fields are texts, as a browser sends them. A column has the fields c0_name, c0_use, c0_kind and so on; a feature is a
column that is used and is not the label's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count, takewhile
from math import isfinite

from attrs import frozen

from aggregator.lab.planning.study_file import literal
from aggregator.lab.sample_file import SampleColumn

MOST_COLUMNS = 64
LONGEST_FIELD = 20_000
TABLE = "person"
BEGINNING: Mapping[str, str] = {
    "title": "", "purpose": "", "contact": "", "data_source": "",
    "label": "", "label_says": "", "positive": "", "negative": "",
    "rate": "50", "epsilon": "2", "minimum": "100", "admission": "invite", "enrol": "7", "collect": "3",
}
_COLUMN = re.compile(r"c\d{1,2}_(name|use|kind|says|low|high|bins|categories)\Z")
NUMERIC, CATEGORICAL = "numeric", "categorical"


@frozen
class FormColumn:
    """The fields of one column."""

    number: int
    name: str
    used: bool
    kind: str
    says: str
    low: str
    high: str
    bins: str
    categories: str


def fields_of(sent: Mapping[str, object]) -> dict[str, str]:
    """The form's own fields among those that a browser sent, with the beginning's in place of those that are not
    there."""
    known = {
        name: value.replace("\r\n", "\n")[:LONGEST_FIELD]
        for name, value in sent.items()
        if isinstance(value, str) and (name in BEGINNING or _COLUMN.match(name))
    }
    return {**BEGINNING, **known}


def columns_of(fields: Mapping[str, str]) -> tuple[FormColumn, ...]:
    """The columns, in order."""
    there = takewhile(lambda number: f"c{number}_name" in fields and number < MOST_COLUMNS, count())
    return tuple(_column(fields, number) for number in there)


def _column(fields: Mapping[str, str], number: int) -> FormColumn:
    def of(part: str, otherwise: str = "") -> str:
        return fields.get(f"c{number}_{part}", otherwise)

    kind = of("kind", CATEGORICAL)
    return FormColumn(
        number, of("name"), bool(of("use")), kind, of("says"), of("low"), of("high"), of("bins", "3"), of("categories")
    )


def with_columns(fields: Mapping[str, str], found: Iterable[SampleColumn]) -> dict[str, str]:
    """The fields with these columns added behind those that are there already; one of a known name is left as it is."""
    known = columns_of(fields)
    names = {column.name for column in known}
    fresh = [column for column in found if column.name not in names][: MOST_COLUMNS - len(known)]
    added = dict(fields)
    for number, column in enumerate(fresh, len(known)):
        parts = {
            "name": column.name,
            "use": "on" if column.numeric or len(column.values) > 1 else "",
            "kind": NUMERIC if column.numeric else CATEGORICAL,
            "says": f"Your {column.name.replace('_', ' ')}",
            "low": f"{column.low:g}",
            "high": f"{column.high:g}",
            "bins": "3",
            "categories": "\n".join(column.values),
        }
        added |= {f"c{number}_{part}": value for part, value in parts.items() if value or part != "use"}
    return added


def text_of(fields: Mapping[str, str]) -> str:
    """The study file that the fields say. It may have faults, which a check names by their keys."""
    label = fields["label"].strip()
    features = [column for column in columns_of(fields) if column.used and column.name != label]
    columns = [*(column.name for column in features), label]
    about = {name: fields[name] for name in ("title", "purpose", "contact", "data_source")}
    if not about["data_source"].strip():
        del about["data_source"]
    sections = [
        _section("", version=1, **about),
        _section("[tables]", **{TABLE: columns}),
        _label(fields, label),
        *(_feature(column) for column in features),
        _section("[design]", kind="one-packet", epsilon=_value(fields["epsilon"])),
        _section("[learning]", classifier="additive", ensemble="soft", score_share=0, base_rate=_share(fields["rate"])),
        _section("[cohort]", minimum=_value(fields["minimum"]), admission=fields["admission"]),
        _section("[schedule]", enrol=_days(fields["enrol"]), settle="2h", collect=_days(fields["collect"]),
                 binning="1d" if any(column.kind == NUMERIC for column in features) else "0s"),
        _section("[release]", transcript="members", retention="90d"),
    ]
    return "\n".join(sections)


def _label(fields: Mapping[str, str], label: str) -> str:
    values = next((_lines(column.categories) for column in columns_of(fields) if column.name == label), [])
    positive = _lines(fields["positive"])
    negative = _lines(fields["negative"]) or [value for value in values if value not in positive]
    return _section(
        "[label]",
        name=label,
        description=fields["label_says"],
        query=f"SELECT {label} FROM {TABLE}",
        positive=[_value(value) for value in positive],
        negative=[_value(value) for value in negative],
        missing="negative",
    )


def _feature(column: FormColumn) -> str:
    asked = {"name": column.name, "kind": column.kind, "description": column.says,
             "query": f"SELECT {column.name} FROM {TABLE}", "missing": "own"}
    if column.kind == NUMERIC:
        bounds = {"range": [_value(column.low), _value(column.high)], "bins": _value(column.bins)}
        return _section("[[features]]", **asked, **bounds)
    return _section("[[features]]", **asked, categories=_lines(column.categories))


def _section(head: str, **entries: object) -> str:
    lines = [f"{name} = {literal(value)}" for name, value in entries.items()]
    return "\n".join([*([head] if head else []), *lines, ""])


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _value(text: str) -> int | float | str:
    """A number where the text is one, with a decimal comma or point; else the text, whose fault a check names."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        return text.strip()
    if not isfinite(number):
        return text.strip()
    return int(number) if number == int(number) else number


def _share(text: str) -> float | str:
    value = _value(text)
    return value if isinstance(value, str) else round(value / 100, 4)


def _days(text: str) -> str:
    return f"{text.strip()}d" if text.strip().isdecimal() else text.strip()
