"""Every number of a study, in the file that staff write and in a manifest that somebody crafted: one that cannot be is
told by its key, and none of them reaches the arithmetic behind."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import attrs
import pytest

from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.protocols.registry import check_study
from anon.protocols.resolve import resolve
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.gradient import GradientSums
from anon.study.durations import LONGEST_DURATION, spelled
from anon.study.features import Cohort, Cover, Feature, Learning, Release
from anon.study.manifest import Manifest
from anon.study.proposal import Schedule
from anon.wire.cbor import decode, encode
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER
from tests.support.protocols import PROTOCOLS, parse_manifest, parse_proposal
from tests.support.sums import GRADIENT, KEYS, MOMENTS, SLEEP, TABLES, manifest_of, many, sum_study
from tests.support.tries import every

Place = tuple[str | int, ...]
FILES = {
    "tables": sum_study(TABLES), "moments": sum_study(MOMENTS), "target": sum_study(SLEEP),
    "gradient": sum_study(GRADIENT),
    "records": sum_study(GRADIENT, keys=many()), "one packet": DECLARED, "binned": BINNED, "paper": PAPER,
}
STRANGE: list[object] = [
    -(2**70), -(2**31), -1, 0, 1, 2, 2**20, 2**30, 2**40, 2**63, 2**64, 10**30, -0.0, 5e-324, 1e-12, 1e-9, 2.0**-31,
    2.0**-20,
    0.1234567890123456789, 1.0000000000000002, 1e16, 1e308, float("inf"), float("nan"), True, "9", "9" * 5000 + "d",
    "99999999999d", "٣d", "-1d", "",
]
"""As numbers and as durations."""
RESOLVED_LATER = ("design.epsilon", "cover.connections", "schedule.margin", "schedule.binning")
"""The keys of numbers that only the whole study can refuse: for the noise it needs, and for its windows."""


def spelled_as_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {spelled_as_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled_as_toml, value)) + "]"
    return repr(value).lower() if isinstance(value, (bool, int, float)) else json.dumps(value, ensure_ascii=False)


def changed(plain: Any, place: Place, value: object) -> Any:
    if not place:
        return value
    first, *rest = place
    if isinstance(plain, dict):
        return {**plain, first: changed(plain.get(first, {}), tuple(rest), value)}
    return [changed(one, tuple(rest), value) if at == first else one for at, one in enumerate(plain)]


def written(plain: Any, place: Place = ()) -> Iterator[Place]:
    """The places of the numbers that stand there, of a list the first two."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain[:2]) if isinstance(plain, list) else ()
    for key, value in items:
        yield from written(value, (*place, key))
    if type(plain) in (int, float):
        yield place


def numeric(cls: type) -> list[str]:
    return [one.name for one in attrs.fields(cls) if one.type in (int, float, "int", "float")]


@cache
def places(name: str) -> tuple[Place, ...]:
    """Of every number that the file has or may have."""
    plain = tomllib.loads(FILES[name])
    sections = {
        "design": PROTOCOLS.designs[plain["design"]["kind"]].section, "schedule": Schedule, "learning": Learning,
        "cohort": Cohort,
        "cover": Cover, "release": Release,
    }
    found = {(section, key) for section, cls in sections.items() for key in numeric(cls)}
    found |= {("features", 0, key) for key in numeric(Feature)} | {("most_records",), ("version",)}
    return tuple(sorted({*written(plain), *found}, key=str))


@pytest.mark.parametrize(("name", "value"), every(31, FILES, STRANGE))
def test_a_number_of_a_study_file_is_taken_or_told_by_its_key(name: str, value: object) -> None:
    plain = tomllib.loads(FILES[name])
    for place in places(name):
        text = "".join(f"{key} = {spelled_as_toml(one)}\n" for key, one in changed(plain, place, value).items())
        *_, key = (part for part in place if isinstance(part, str))
        try:
            proposal = parse_proposal(text)
        except Malformed as told:
            named = key in str(told) or (key == "range" and "cuts: expected" in str(told))
            assert named and "Exceeds the limit" not in str(told), (place, told)
            continue
        try:
            check_study(resolve(proposal, KEYS, 1_800_000_000, lambda below: 0))
        except Malformed as told:
            assert any(one in str(told) for one in RESOLVED_LATER if one.endswith(key)), (place, told)


CRAFTED = {
    "tables": lambda: manifest_of(TABLES), "moments": lambda: manifest_of(MOMENTS),
    "target": lambda: manifest_of(SLEEP),
    "gradient": lambda: manifest_of(GRADIENT), "records": lambda: manifest_of(GRADIENT, keys=many()),
    "moments of records": lambda: manifest_of(MOMENTS, keys=many()),
}
MADE_UP = [-1, 0, 1, 2, 3, 2**10, 2**20, 2**30, 2**31, 2**39]


def in_every_round(study: Manifest, place: Place, value: int) -> bytes:
    plain: Any = decode(study.to_bytes())
    return encode({**plain, "surveys": [changed(survey, place, value) for survey in plain["surveys"]]})


@pytest.mark.parametrize(("name", "value"), every(14, CRAFTED, MADE_UP))
def test_a_number_of_all_surveys_of_a_crafted_manifest_is_one_that_a_file_gives(name: str, value: int) -> None:
    study = CRAFTED[name]()
    survey = study.surveys[0]
    lists = [(kind, at) for kind in ("cards", "parameters") for at in range(len(getattr(survey, kind)))]
    for place in [*lists, ("m",), ("size",), ("epsilon",), ("round",)]:
        try:
            check_study(parse_manifest(in_every_round(study, place, value)))
        except AnonmlError:
            continue
        usual = name in {"gradient", "records"} and place[0] == "cards"
        assert value == 1 if usual else 0 <= value <= 1024, place


@pytest.mark.parametrize(("place", "value"), [
    (("parameters", 2), 2**20), (("parameters", 2), 2**31), (("parameters", 4), 2**31), (("parameters", 6), 2**30),
    (("parameters", 0), 1), (("parameters", 7), 0), *((("cards", 1), value) for value in (-1, 0, 2, 2**30)),
])
def test_a_gradient_of_other_numbers_than_a_file_can_say_is_refused(place: Place, value: int) -> None:
    """A clip of 2**-20 or 2**-31 is rounded to nothing, and no noise fits a sum that nobody can change."""
    with pytest.raises(Malformed, match="expected"):
        parse_manifest(in_every_round(manifest_of(GRADIENT), place, value))


@pytest.mark.parametrize("card", [-1, 0, 2**20 + 1, 2**30])
def test_no_survey_has_such_a_card(card: int) -> None:
    with pytest.raises(InvalidValue, match="expected cards from 1"):
        attrs.evolve(manifest_of(GRADIENT).surveys[0], cards=(1, card))


def test_a_gradient_that_is_rounded_to_nothing_cannot_be_built() -> None:
    columns = (Column("1", 0.0, 1.0), Column("age", 0.0, 1.0))
    with pytest.raises(InvalidValue, match="raise it"):
        GradientSums(columns, 1024, Fraction(1, 2**20))


@pytest.mark.parametrize("margin", [1800, 2**31])
def test_a_margin_leaves_something_of_every_window(margin: int) -> None:
    study = manifest_of(TABLES)
    with pytest.raises(InvalidValue, match="less than half of the shortest window"):
        attrs.evolve(study, timetable=attrs.evolve(study.timetable, margin=margin))


@pytest.mark.slow
def test_the_longest_schedule_is_one_that_a_manifest_has() -> None:
    text = sum_study(GRADIENT.replace("rounds = 3", "rounds = 60"))
    plain = tomllib.loads(text)
    longest = changed(plain, ("schedule",), dict.fromkeys(plain["schedule"], spelled(LONGEST_DURATION)))
    proposal = parse_proposal("".join(f"{key} = {spelled_as_toml(one)}\n" for key, one in longest.items()))
    assert len(resolve(proposal, KEYS, 1_800_000_000).windows) == 61
