"""The manifest of a sum under masks: nothing in it may differ from what its numbers give."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from attrs import evolve

from aggregator.lab.planning.letters import letters_plan, with_rounds
from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.protocols.registry import check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.masks.layout import Masking, masking_of, vector_survey
from anon.study.manifest import Manifest, Survey
from anon.study.records import Records
from tests.support.letters_study import KEYS
from tests.support.masks_study import AVERAGING, MOMENTS, masks_study
from tests.support.protocols import parse_proposal
from tests.support.sums import many


def manifest(design: str = MOMENTS, keys: str = "") -> Manifest:
    return resolve(parse_proposal(masks_study(design, keys)), KEYS, 1_800_000_000)


def changed(study: Manifest, at: int, **changes: object) -> Manifest:
    survey: Survey = evolve(study.surveys[at], **changes)
    return evolve(study, surveys=(*study.surveys[:at], survey, *study.surveys[at + 1 :]))


def quieter(study: Manifest) -> Manifest:
    masking = masking_of(study.part)
    return evolve(study, part=evolve(masking, noise=masking.noise / 2).to_bytes())


CHANGES: dict[str, Callable[[Manifest], Manifest]] = {
    "less noise": quieter,
    "more honest members": lambda study: evolve(study, part=evolve(masking_of(study.part), honest=3).to_bytes()),
    "a larger group than it takes": lambda study: evolve(study, part=Masking(9, 2, Fraction(9)).to_bytes()),
    "a cheaper vector": lambda study: changed(study, 2, epsilon=study.surveys[2].epsilon - 1),
    "shorter shares": lambda study: changed(study, 1, parameters=(63,)),
    "fewer seats": lambda study: changed(study, 1, m=3),
    "a vector of other columns": lambda study: changed(study, 2, features=("age",), cards=(16,)),
    "an opening that costs": lambda study: changed(study, 4, epsilon=1),
    "a seat beside the vector": lambda study: changed(study, 2, m=1, parameters=(*study.surveys[2].parameters[:1], 64)),
    "a posted vector": lambda study: changed(study, 2, mechanism="posted"),
    "an exact vector": lambda study: changed(study, 2, mechanism="exact", m=10),
    "a vector of another round": lambda study: changed(study, 2, round=7),
    "hardly any noise": lambda study: evolve(study, part=Masking(3, 2, Fraction(1, 8)).to_bytes()),
    "more members than there are": lambda study: evolve(study, part=Masking(10**15, 10**15, Fraction(9)).to_bytes()),
    "a round less": lambda study: evolve(study, surveys=study.surveys[:4], slots=study.slots[:4]),
    "no part": lambda study: evolve(study, part=b"\x80"),
    "another spelling": lambda study: evolve(study, part=study.part + b"\0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_its_numbers_do_not_give_is_refused(name: str) -> None:
    for study in (manifest(), manifest(AVERAGING, many(20))):
        check_study(study)
        with pytest.raises(AnonmlError):
            check_study(CHANGES[name](study))


def test_a_manifest_with_more_work_than_machines_take_is_refused() -> None:
    study = manifest(AVERAGING, many(2000))
    check_study(study)
    heavy = evolve(study, records=Records(10_000, "record"))
    weak = (1, 1, 10_000, 0, 1, 1, 1, 1, 10_000, 1)  # a lambda of .0001
    with pytest.raises(AnonmlError, match="too long"):
        check_study(changed(heavy, 2, parameters=weak))


def test_a_vector_that_needs_more_noise_than_masks_hold_is_refused() -> None:
    with pytest.raises(Malformed, match="noise"):
        manifest('kind = "masked-moments"\nepsilon = 1.0\nreach = 1024\ntarget_weight = 1024')


FILES = {
    "too few for anything": (MOMENTS + "\nleast = 2", "least"),
    "more than come": (MOMENTS + "\nleast = 5", "least"),
    "more honest than all": (MOMENTS + "\nleast = 4\nhonest = 5", "honest"),
    "one record of each": (AVERAGING, "records"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_study_file_that_cannot_run_says_what_to_change(name: str) -> None:
    design, word = FILES[name]
    with pytest.raises((Malformed, InvalidValue), match=word):
        parse_proposal(masks_study(design))


def test_an_owner_reads_what_hides_it_and_what_it_rests_on() -> None:
    study = manifest(AVERAGING, many(20))
    said = " ".join(map(str, protocol_of(study).odds(study)))
    for words in (
        "fits a model to your records", "Its 3 exact weights", "at most 19 other members",
        "epsilon 1 for each of your records by itself, plus a chance of one in a million, if", "invents",
    ):
        assert words in said
    assert vector_survey(study).kind == "weights"


@pytest.mark.parametrize("design", [MOMENTS, AVERAGING, 'kind = "masked-transfer"\nepsilon = 1.0\npublic_rows = 3'])
def test_a_plan_tells_the_rounds_of_each_design(design: str) -> None:
    """That of votes too, whose public rows no plan reads."""
    given = '[[given]]\nname = "rows"\ndescription = "Rows."\nfile = "rows.csv"\n' if "transfer" in design else ""
    planned = with_rounds(parse_proposal(masks_study(design, many(20, "person")) + given), 1.0)
    assert planned is not None and len(letters_plan(planned, 10)) == 6
