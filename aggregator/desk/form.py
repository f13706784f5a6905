"""The form for a study: its fields, and the columns among them (`form_file` writes the study file that they say).

Fields are texts, as a browser sends them. A column has the fields c0_name, c0_use, c0_kind and so on; a feature is a
column that is used and is not the label's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count, takewhile

from attrs import frozen

from aggregator.lab.sample_file import SampleColumn
from anon.study.features import MOST_IN_COHORT
from anon.study.proposal import FEWEST_TELLERS

MOST_COLUMNS = 64
LONGEST_FIELD = 20_000
BEGINNING: Mapping[str, str] = {
    "title": "", "purpose": "", "contact": "", "data_source": "",
    "label": "", "label_says": "", "positive": "", "negative": "",
    "rate": "50", "epsilon": "2", "people": "", "minimum": "100", "admission": "invite", "enrol": "7", "collect": "3",
    "pace": "", "read": "", "adds": "", "tellers": "",
}
"""`pace`: `TRIAL`, or nothing for a real study. `read`: a sentence about the sample that was read. `people`: how many
are expected, for the forecast alone. `adds`: one of `WITH_TELLERS`, `BELIEF`, or nothing for answers that are changed
at random."""
TRIAL = "trial"
TRIAL_FIELDS: Mapping[str, str] = {"minimum": "2", "enrol": "5m", "collect": "2m"}
"""Begins a study on one computer, whose peers are started by hand. Each can be changed."""
MOST_REHEARSED = 150
"""A forecast for a whole year does not make a rehearsal last for hours."""
TELLERS, BELIEF, TELLERS_BELIEF = "tellers", "belief", "tellers-belief"
"""Answers stay exact with tellers; with `BELIEF` alone they are changed at random."""
WITH_TELLERS, FROM_BELIEF = (TELLERS, TELLERS_BELIEF), (BELIEF, TELLERS_BELIEF)
"""The choices with tellers, and those whose model starts from what staff believe."""
BELIEVED = 2
"""So many columns at least, of which staff say which way they point, make a belief."""
PROPOSED_BELOW = 1_000
"""With fewer people the form proposes tellers (docs/staff/class-size.md)."""
_COLUMN = re.compile(r"c\d{1,2}_(name|use|kind|says|low|high|bins|cuts|expects|categories|counts|sample|checked)\Z")
NUMERIC, CATEGORICAL = "numeric", "categorical"


@frozen
class FormColumn:
    """The fields of one column. `sample`: its bounds or categories as they were read from the sample file; `counts`:
    how many rows had each. `expects`: 1, -1 or nothing. `checked`: staff ticked that they checked these."""

    number: int
    name: str
    used: bool
    kind: str
    says: str
    low: str
    high: str
    bins: str
    cuts: str
    expects: str
    categories: str
    counts: str
    sample: str
    checked: bool

    @property
    def believed(self) -> bool:
        """True where staff say which way it points."""
        return self.expects in ("1", "-1")

    @property
    def as_read(self) -> bool:
        """True while its range or categories are those of the sample."""
        return bool(self.sample) and self.sample == _bounds(self.kind, self.low, self.high, self.categories)

    @property
    def placeholder(self) -> bool:
        """True while its words are those that the form wrote by itself."""
        return self.says == words_for(self.name)

    @property
    def values(self) -> tuple[str, ...]:
        """Its categories."""
        return tuple(lines_of(self.categories))


def words_for(name: str) -> str:
    """Words to begin from for a column, which staff are asked to correct."""
    return f"Your {name.replace('_', ' ')}"


def lines_of(text: str) -> list[str]:
    """The lines of a field that are not empty."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def tellers_in(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and address of each teller, in order: a line for each, or those that `anonml teller words` prints."""
    found: list[tuple[str, str]] = []
    lines = [line.rpartition(" ") for line in lines_of(fields["tellers"])] if fields["adds"] in WITH_TELLERS else []
    for (before, _, last), line in zip(lines, map("".join, lines), strict=True):
        name = before.strip().rstrip(",;")
        if found and name in ("", "address") and ":" in last and ":" not in found[-1][1]:
            found[-1] = (" ".join(filter(None, found[-1])).removeprefix("teller "), last)
        elif not line.startswith("words ") or ":" in last:
            found.append((name, last))
    return found


def lacking_tellers(fields: Mapping[str, str]) -> int:
    """How many tellers are still to be named before the study can be published."""
    return max(FEWEST_TELLERS - len(tellers_in(fields)), 0) if fields["adds"] in WITH_TELLERS else 0


def with_unnamed_tellers(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields for a forecast, which needs to know how many tellers add noise, not who they are."""
    unnamed = [f"unnamed teller {number} 127.0.0.1:{number}" for number in range(1, lacking_tellers(fields) + 1)]
    named = [f"{name} {address}" for name, address in tellers_in(fields)]
    return {**fields, "tellers": "\n".join([*named, *unnamed])}


def expected_people(fields: Mapping[str, str]) -> int | None:
    """How many people staff expect; None where they say nothing. Raises `ValueError` for another text."""
    text = fields["people"].replace(",", "").strip()
    if text and not (text.isdecimal() and 2 <= int(text[:9]) <= MOST_IN_COHORT):
        raise ValueError(f"expected a whole number from 2 to {MOST_IN_COHORT:,}")
    return int(text) if text else None


def proposes_tellers(fields: Mapping[str, str]) -> bool:
    """True for a group in which exact sums find more."""
    try:
        people = expected_people(fields) or int(fields["minimum"])
    except ValueError:
        return False
    return fields["adds"] not in WITH_TELLERS and people < PROPOSED_BELOW


def _bounds(kind: str, low: str, high: str, categories: str) -> str:
    return f"{low} {high}" if kind == NUMERIC else " | ".join(lines_of(categories))


def fields_of(sent: Mapping[str, object]) -> dict[str, str]:
    """The form's own fields among those that a browser sent, with the beginning's in place of those that are not
    there. A trial has its own beginning."""
    known = {
        name: value.replace("\r\n", "\n")[:LONGEST_FIELD]
        for name, value in sent.items()
        if isinstance(value, str) and (name in BEGINNING or _COLUMN.match(name))
    }
    fields = {**BEGINNING, **known}
    if fields["pace"] == TRIAL:
        fields |= {name: begun for name, begun in TRIAL_FIELDS.items() if fields[name] == BEGINNING[name]}
    return _with_yes(fields)


def rehearsed(fields: Mapping[str, str]) -> int:
    """How many people a rehearsal makes up: those whom staff expect, or 0 for the minimum."""
    try:
        return min(expected_people(fields) or 0, MOST_REHEARSED)
    except ValueError:
        return 0


def days(text: str) -> str:
    """A length of time as a study file spells it: a number alone is days."""
    return f"{text.strip()}d" if text.strip().isdecimal() else text.strip()


def _with_yes(fields: dict[str, str]) -> dict[str, str]:
    """The same with the one value that can only mean yes, where the label's column has yes and no alone."""
    if lines_of(fields["positive"]):
        return fields
    values = next((column.values for column in columns_of(fields) if column.name == fields["label"]), ())
    return fields | {"positive": yes_among(values)}


def yes_among(values: Iterable[str]) -> str:
    """The spelling of yes among the values yes and no; nothing where there are others."""
    spelled = {value.lower(): value for value in values}
    return spelled["yes"] if spelled.keys() == {"yes", "no"} else ""


def share_in_sample(fields: Mapping[str, str]) -> int | None:
    """Of 100 rows of the sample, how many are a yes; None where the sample does not tell."""
    column = next((column for column in columns_of(fields) if column.name == fields["label"]), None)
    yes = set(lines_of(fields["positive"]))
    if column is None or not yes:
        return None
    counts = [int(count[:9]) for count in lines_of(column.counts) if count.isdecimal()]
    if len(counts) != len(column.values) or not any(counts) or not yes <= set(column.values):
        return None
    found = sum(count for value, count in zip(column.values, counts, strict=True) if value in yes)
    return round(100 * found / sum(counts))


def columns_of(fields: Mapping[str, str]) -> tuple[FormColumn, ...]:
    """The columns, in order."""
    there = takewhile(lambda number: f"c{number}_name" in fields and number < MOST_COLUMNS, count())
    return tuple(_column(fields, number) for number in there)


def _column(fields: Mapping[str, str], number: int) -> FormColumn:
    def of(part: str, otherwise: str = "") -> str:
        return fields.get(f"c{number}_{part}", otherwise)

    kind = of("kind", CATEGORICAL)
    return FormColumn(
        number, of("name"), bool(of("use")), kind, of("says"), of("low"), of("high"), of("bins", "3"), of("cuts"),
        of("expects"), of("categories"), of("counts"), of("sample"), bool(of("checked"))
    )


def with_columns(fields: Mapping[str, str], found: Iterable[SampleColumn]) -> dict[str, str]:
    """The fields with these columns added behind those that are there already; one of a known name is left as it is."""
    known = columns_of(fields)
    names = {column.name for column in known}
    fresh = [column for column in found if column.name not in names][: MOST_COLUMNS - len(known)]
    added = dict(fields)
    for number, column in enumerate(fresh, len(known)):
        kind, low, high = NUMERIC if column.numeric else CATEGORICAL, f"{column.low:g}", f"{column.high:g}"
        categories = "\n".join(column.values)
        parts = {
            "name": column.name,
            "use": "on" if column.numeric or len(column.values) > 1 else "",
            "kind": kind,
            "says": words_for(column.name),
            "low": low,
            "high": high,
            "bins": "3",
            "categories": categories,
            "counts": "\n".join(map(str, column.counts)),
            "sample": _bounds(kind, low, high, categories),
        }
        added |= {f"c{number}_{part}": value for part, value in parts.items() if value or part != "use"}
    return added
