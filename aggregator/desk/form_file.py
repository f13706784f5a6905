"""The study file that the form's fields say, and how long the study takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import floor, inf, isfinite, log10

from attrs import frozen

from aggregator.desk.form import (
    BELIEF,
    NUMERIC,
    TELLERS_BELIEF,
    WITH_TELLERS,
    FormColumn,
    columns_of,
    days,
    lines_of,
    tellers_in,
)
from aggregator.lab.planning.study_file import literal
from anon.errors import InvalidValue
from anon.study.durations import LONGEST_DURATION, duration, spelled
from anon.study.features import MAX_BINS

TABLE = "person"
RULE, CORRECTIONS = "rule", 2
"""The name of what starts from what staff believe, and a sum's rounds of corrections after the first one."""
RETENTION_DAYS = 90
"""Half of it a study waits for a teller that is away (`Manifest.sums_until`)."""
COMMENTS: Mapping[str, str] = {
    "[tables]": "The tables of the owner's own data that the queries below read.",
    "[label]": "The value that is learned. Any value that is neither positive nor negative counts as `missing` says.",
    "[[features]]": "A question about each person. Numbers are moved into `range`; where `bins` stands, their cuts are "
    "found privately. `missing`: own is a category of its own.",
    "[design]": "How members answer. Epsilon is of everything that a member releases, or with tellers of what is "
    "published.",
    "[[tellers]]": "Who adds up. Each has a home and a key of its own; at least one of them has to be honest.",
    "[learning]": "`base_rate` is a public guess of the share of positive labels; 0.5 counts as none.",
    "[cohort]": "With fewer members than `minimum` the study ends, and nothing is sent.",
    "[schedule]": "Fixed by publishing. `settle` follows each closing; in `binning` cuts are found, or the middle of "
    "what staff believe.",
    "[release]": "Whom the transcript is for (a statement, not a lock), and how long packets are kept after the end.",
}
"""A comment for each section; a file has it above the first of its kind."""


@frozen
class Pace:
    """The lengths of a study's stages as the study file writes them."""

    enrol: str
    settle: str
    binning: str
    collect: str


def text_of(fields: Mapping[str, str]) -> str:
    """The study file that the fields say. It may have faults, which a check names by their keys."""
    label = fields["label"].strip()
    features, pace, summed = asked_about(fields), pace_of(fields), fields["adds"] in WITH_TELLERS
    columns, cut = [*(column.name for column in features), label], summed or fields["adds"] == BELIEF
    about = {name: fields[name] for name in ("title", "purpose", "contact", "data_source")}
    if not about["data_source"].strip():
        del about["data_source"]
    sections = [
        _section("", version=1, **({"protocol": "sum"} if summed else {}), **about),
        _section("[tables]", **{TABLE: columns}),
        _label(fields, label),
        *(_feature(column, number == 0, cut) for number, column in enumerate(features)),
        _design(fields),
        _section("[learning]", classifier="additive", ensemble="soft", score_share=0, base_rate=_share(fields["rate"])),
        _section("[cohort]", minimum=_value(fields["minimum"]), admission=fields["admission"]),
        _section("[schedule]", enrol=pace.enrol, settle=pace.settle, binning=pace.binning, collect=pace.collect),
        _section("[release]", transcript="members", retention=f"{RETENTION_DAYS}d"),
        *(
            _section("[[tellers]]", number == 0, name=name, address=address)
            for number, (name, address) in enumerate(tellers_in(fields))
        ),
    ]
    return "\n".join(sections)


def asked_about(fields: Mapping[str, str]) -> list[FormColumn]:
    """The columns that are features, in the file's order."""
    return [column for column in columns_of(fields) if column.used and column.name != fields["label"].strip()]


def pace_of(fields: Mapping[str, str]) -> Pace:
    """The stages' lengths: two are typed, and the others follow how long answers are collected.

    Settling takes a sixth of it, at most two hours. Finding cuts takes as long as it, at most a day, and no time where
    all cuts are declared. So does finding the middle from which a belief is judged.
    """
    collect = days(fields["collect"])
    try:
        seconds = duration(collect)
    except InvalidValue:  # a check tells it
        seconds = 86_400
    binned = any(column.kind == NUMERIC and not column.cuts.strip() for column in asked_about(fields))
    finds = fields["adds"] == BELIEF or (binned and fields["adds"] not in WITH_TELLERS)
    binning = min(seconds, 86_400) if finds else 0
    return Pace(days(fields["enrol"]), spelled(min(max(seconds // 6, 5), 7_200)), spelled(binning), collect)


def length_of(fields: Mapping[str, str]) -> int | None:
    """Seconds from publishing to the results; None while a duration cannot be read, or is longer than any may be."""
    pace = pace_of(fields)
    try:
        enrol, settle, binning, collect = map(duration, (pace.enrol, pace.settle, pace.binning, pace.collect))
    except InvalidValue:
        return None
    if max(enrol, collect) > LONGEST_DURATION:
        return None
    rounds = 1 + CORRECTIONS if fields["adds"] == TELLERS_BELIEF else 1
    return enrol + settle + (binning + settle if binning else 0) + rounds * (collect + settle)


def _label(fields: Mapping[str, str], label: str) -> str:
    values = next((column.values for column in columns_of(fields) if column.name == label), ())
    positive = lines_of(fields["positive"])
    negative = lines_of(fields["negative"]) or [value for value in values if value not in positive]
    return _section(
        "[label]",
        name=label,
        description=fields["label_says"],
        query=f"SELECT {label} FROM {TABLE}",
        positive=[_value(value) for value in positive],
        negative=[_value(value) for value in negative],
        missing="negative",
    )


def _feature(column: FormColumn, first: bool, cut: bool) -> str:
    asked = {"name": column.name, "kind": column.kind, "description": column.says,
             "query": f"SELECT {column.name} FROM {TABLE}", "missing": "own"}
    if column.kind != NUMERIC:
        leans = {"expects": signs} if (signs := _signs(column)) else {}
        return _section("[[features]]", first, **asked, categories=column.values, **leans)
    spelled = [cut.strip(",") for cut in column.cuts.replace(";", " ").split()]
    cuts = [cut if "," in cut else _value(cut) for cut in spelled]  # 10,40 may be one number or two
    if cut and not cuts:
        cuts = list(even_cuts(column))
    divided: dict[str, object] = {"cuts": cuts} if cuts else {"bins": _value(column.bins)}
    if column.believed:
        divided["expects"] = int(column.expects)
    return _section("[[features]]", first, **asked, range=[_value(column.low), _value(column.high)], **divided)


def _signs(column: FormColumn) -> list[int]:
    """The direction of each category, in their order: the last half goes with a yes, or with a no. Empty for none."""
    count = len(column.values)
    if not column.believed or count < 2:
        return []
    return [int(column.expects) * ((2 * place > count - 1) - (2 * place < count - 1)) for place in range(count)]


def believed(features: Iterable[FormColumn]) -> int:
    """How many columns staff say to point one way."""
    return sum(column.believed for column in features)


def _design(fields: Mapping[str, str]) -> str:
    summed = fields["adds"] in WITH_TELLERS
    kind, more = "tables-sum" if summed else "one-packet", dict[str, object]()
    if fields["adds"] == TELLERS_BELIEF:
        kind, more["rounds"] = RULE, CORRECTIONS
    elif fields["adds"] == BELIEF:
        more["asks"] = RULE
    return _section("[design]", kind=kind, epsilon=_value(fields["epsilon"]), **more)


def even_cuts(column: FormColumn) -> Iterator[float]:
    """The range in equal parts, as exact sums and a belief look for no cuts, each to two digits of a part's width. None
    where range or bins cannot be read."""
    low, high, bins = _value(column.low), _value(column.high), _value(column.bins)
    if isinstance(low, str) or isinstance(high, str) or not isinstance(bins, int) or bins < 2:
        return
    if 0 < (width := (high - low) / bins) < inf:
        yield from (round(low + width * part, 1 - floor(log10(width))) for part in range(1, min(bins, MAX_BINS)))


def _section(head: str, commented: bool = True, /, **entries: object) -> str:
    lines = [f"{name} = {literal(value)}" for name, value in entries.items()]
    comment = [f"# {COMMENTS[head]}"] if commented and head else []
    return "\n".join([*comment, *([head] if head else []), *lines, ""])


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
