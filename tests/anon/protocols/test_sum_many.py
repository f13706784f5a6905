"""Studies of many records: the keys of a study file, the manifest, cost and noise, and the words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from attrs import evolve

from anon.errors import AnonmlError, Malformed
from anon.protocols.charge import Unit
from anon.protocols.registry import check_study, exposure_of, protocol_of
from anon.protocols.resolve import StudyKeys, resolve
from anon.protocols.sum.design import records_of, shape_of
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.vectors.gradient import GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.study.records import Records
from anon.wire.cbor import decode, encode
from tests.support.protocols import load_proposal, parse_manifest, parse_proposal
from tests.support.sums import GRADIENT, MOMENTS, TABLES, manifest_of, many, sum_study


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["person", "record"])
@pytest.mark.parametrize("design", [MOMENTS, GRADIENT])
def test_a_manifest_says_how_many_records_and_comes_back(design: str, unit: str) -> None:
    study = manifest_of(design, keys=many(30, unit))
    assert parse_manifest(study.to_bytes()) == study
    assert study.records == Records(30, unit) == records_of(study.surveys[0])
    check_study(study)
    assert exposure_of(study).unit is Unit(unit) and study.epsilon >= exposure_of(study).amount


@pytest.mark.parametrize("design", [TABLES, MOMENTS, GRADIENT])
def test_a_study_of_one_record_spells_none_of_it(design: str) -> None:
    study = manifest_of(design)
    assert study.records is None and b"records" not in study.to_bytes()
    assert exposure_of(study).unit is Unit.PERSON


@pytest.mark.parametrize("design", [MOMENTS, GRADIENT])
def test_noise_is_of_one_unit_and_proofs_allow_all_records_of_a_member(design: str) -> None:
    """One record moves the sum no more than the only record of a member, so the noise is the same. The proof's ball
    holds the sum of as many records as there may be."""
    alone, each = manifest_of(design), manifest_of(design, keys=many(30))
    sigma = [arrangement_of(one).sums[0].sigma_squared for one in (alone, each)]
    assert sigma[0] <= sigma[1] <= sigma[0] * Fraction(100_001, 100_000), (
        "one more entry, the number of records, is rounded"
    )
    assert alone.epsilon == each.epsilon
    shape = shape_of(each.surveys[0])
    assert isinstance(shape, MomentSums | GradientSums) and (shape.rows, shape.unit) == (30, "record")
    assert shape.contribution_norm_squared == 900 * shape.norm_squared
    radius = arrangement_of(each).sums[0].parameters[-1]
    assert radius >= 30 * arrangement_of(alone).sums[0].parameters[-1] - 30


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ('records = "many"\n', "most_records: required"),
        ('records = "some"\n', "records: expected one of one, many"),
        ("most_records = 3\n", "belong to records"),
        ('unit = "record"\n', "belong to records"),
        (many(0), "most_records: required"),
        (many(-1), "most_records: required"),
        (many(10_001), "expected at most 10000"),
        (many(3, "family"), "unit: expected one of person, record"),
        ("least_records = 3\n", "belong to records"),
        (many(3) + "least_records = 4\n", "least_records: expected 1 to 3, the most_records, got 4"),
        (many(3) + "least_records = 0\n", "least_records: expected 1 to 3, the most_records, got 0"),
        (many(3) + "least_records = true\n", "least_records: expected a whole number"),
    ],
)
def test_keys_that_cannot_be_are_refused_by_name(keys: str, fault: str) -> None:
    with pytest.raises(Malformed, match=fault):
        parse_proposal(sum_study(MOMENTS, keys=keys))


@pytest.mark.parametrize("design", [MOMENTS, GRADIENT])
def test_the_least_stands_in_the_manifest_alone_and_in_one_spelling(design: str) -> None:
    plain, study = manifest_of(design, keys=many(30)), manifest_of(design, keys=many(30) + "least_records = 30\n")
    assert parse_manifest(study.to_bytes()) == study
    assert study.records == Records(30, "record", 30) and plain.records == Records(30, "record")
    assert study.surveys == plain.surveys and records_of(study.surveys[0]) == plain.records
    check_study(study)
    spelled = decode(plain.to_bytes(), "manifest")
    assert b"least" not in plain.to_bytes() and manifest_of(design, keys=many(30) + "least_records = 1\n") == plain
    for least, fault in ((1, "one canonical spelling"), (0, "expected 1 to 30"), (31, "expected 1 to 30")):
        spelled["records"]["least"] = least
        with pytest.raises(Malformed, match=fault):
            parse_manifest(encode(spelled))


def test_designs_of_one_record_refuse_many() -> None:
    with pytest.raises(Malformed, match="the design tables-sum takes one of each member"):
        parse_proposal(sum_study(TABLES, keys=many()))


def test_a_manifest_that_contradicts_itself_is_declined() -> None:
    study = manifest_of(MOMENTS, keys=many(30))
    wrong = [evolve(study, records=other) for other in (None, Records(31, "record"), Records(30, "person"))]
    tables = evolve(manifest_of(TABLES), records=Records(3))
    for one in (*wrong, tables):
        with pytest.raises(Malformed, match="do not take part"):
            check_study(parse_manifest(one.to_bytes()))
    survey = study.surveys[0]
    for parameters in ((*survey.parameters[:2], 30, 2), (*survey.parameters[:2], 0, 1), survey.parameters[:3]):
        with pytest.raises(AnonmlError):
            check_study(evolve(study, surveys=(evolve(survey, parameters=parameters),)))


def test_too_many_values_for_one_machine_are_refused() -> None:
    text = sum_study(MOMENTS, keys=many(10_000))
    extra = "".join(
        f'[[features]]\nname = "f{number}"\nkind = "numeric"\ndescription = "f"\n'
        'query = "SELECT day, age FROM person"\n'
        f'range = [0, 1]\ncuts = [0.5]\nmissing = "own"\n'
        for number in range(110)
    )
    with pytest.raises(Malformed, match="expected at most 9279 with 113 queries, got 10000"):
        parse_proposal(text.replace("[[features]]", f"{extra}[[features]]", 1))


@pytest.mark.slow
def test_the_words_say_how_records_are_taken_and_what_the_promise_is_about() -> None:
    for unit, told, promise in (
        ("record", "summed over your records, 30 at most", "epsilon 1 for each of your records by itself, plus a"),
        ("person", "averages over your records, 30 at most", "epsilon 1, plus a chance of one in a million, if at"),
    ):
        study = manifest_of(MOMENTS, keys=many(30, unit))
        said = " ".join(protocol_of(study).odds(study))
        assert told in said and "a random draw on your machine" in said and promise in said
    alone = manifest_of(MOMENTS)
    assert "records" not in " ".join(protocol_of(alone).odds(alone))


def test_a_sum_takes_ten_thousand_records_of_a_member() -> None:
    with pytest.raises(Malformed, match="most_records: expected at most 10000 with this design, got 10001; lower it"):
        manifest_of(MOMENTS, keys=many(10_001, "record"))
    study = manifest_of(MOMENTS, keys=many(10_000, "record"))
    assert study.records is not None
    with pytest.raises(Malformed, match="most_records: expected at most 10000 with this design, got 50000"):
        check_study(evolve(study, records=evolve(study.records, most=50_000)))


def test_a_manifest_of_the_histogram_takes_one_record() -> None:
    keys = StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32))
    study = resolve(
        load_proposal(Path(__file__).parents[3] / "examples" / "census" / "study.toml"), keys, 1_800_000_000
    )
    check_study(study)
    with pytest.raises(Malformed, match="the design one-packet takes one record of each member; do not take part"):
        check_study(parse_manifest(evolve(study, records=Records(3)).to_bytes()))
