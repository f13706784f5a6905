"""The manifest of averaging in groups: nothing in it may differ from what its numbers give."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from attrs import evolve

from aggregator.lab.planning.letters import letters_plan, letters_words, with_rounds
from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.protocols.charge import Measure, Unit
from anon.protocols.contract import MODEL
from anon.protocols.cost_words import epsilon_of
from anon.protocols.registry import charge_of, check_study, protocol_of
from anon.protocols.sum.groups.drawing import OPENED, SHARES, TOLD, survey_of
from anon.protocols.sum.groups.layout import Grouping, grouping_of, longest, weights_of, weights_survey
from anon.study.manifest import Manifest, Survey, Window
from anon.study.records import Records
from anon.wire.cbor import encode
from tests.support.groups_study import LEAST, MOST, groups_study
from tests.support.groups_table import Table, manifest
from tests.support.masks_study import masks_study
from tests.support.protocols import parse_proposal

PART = grouping_of(manifest().part)


def changed(study: Manifest, at: int, **changes: object) -> Manifest:
    survey: Survey = evolve(study.surveys[at], **changes)
    surveys = (*study.surveys[:at], survey, *study.surveys[at + 1 :])
    return evolve(study, surveys=surveys, report_size=max(one.report_size for one in surveys))


def early(study: Manifest) -> Manifest:
    before, after = study.surveys[4].window, study.surveys[5].window
    return changed(study, 5, window=Window(before.closes, after.closes))


def parted(**changes: object) -> Callable[[Manifest], Manifest]:
    return lambda study: evolve(study, part=evolve(PART, **changes).to_bytes())


def design_of(text: str) -> str:
    """The section of a study file alone."""
    return text.partition("[design]")[2].partition("\n[")[0]


CHANGES: dict[str, Callable[[Manifest], Manifest]] = {
    "less noise": parted(noise=PART.noise / 2),
    "more receivers": parted(receivers=3),
    "a single receiver": parted(receivers=1),
    "more aggregations": parted(aggregations=3),
    "no aggregation": parted(aggregations=0),
    "larger groups than members": parted(group=11),
    "noise beyond all entries": parted(noise=Fraction(2**110)),
    "another spelling": lambda study: evolve(study, part=b"\x9f" + study.part[1:] + b"\xff"),
    "four numbers": lambda study: evolve(study, part=encode([2, 4, 2, 5])),
    "text in a number's place": lambda study: evolve(study, part=encode([2, 4, "2", 5, 1])),
    "a ratio that can be shortened": lambda study: evolve(study, part=encode([2, 4, 2, 10**9, 10**6])),
    "cheaper shares": lambda study: changed(study, survey_of(1, SHARES), epsilon=1),
    "free shares": lambda study: changed(study, survey_of(0, SHARES), epsilon=0),
    "sums that cost": lambda study: changed(study, survey_of(0, TOLD), epsilon=1),
    "shorter values": lambda study: changed(study, survey_of(0, OPENED), size=16),
    "a seat less": lambda study: changed(study, survey_of(1, SHARES), m=1),
    "longer letters": lambda study: changed(study, survey_of(1, SHARES), parameters=(32,)),
    "commitments for one aggregation": lambda study: changed(study, 0, size=1248),
    "other weights later": lambda study: changed(study, survey_of(1, TOLD), features=("age",), cards=(1,)),
    "another lambda": lambda study: changed(
        study,
        survey_of(0, TOLD),
        parameters=(*weights_survey(study).parameters[:1], 1, 100, 0, 1, 1, 1, LEAST, MOST, 1),
    ),
    "fewer records as the least": lambda study: evolve(study, records=Records(MOST, "record", LEAST - 1)),
    "a person as the unit": lambda study: evolve(study, records=Records(MOST, "person", LEAST)),
    "a round less": lambda study: evolve(study, surveys=study.surveys[:6], slots=study.slots[:6]),
    "a round that opens before the one before it has closed": early,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_its_numbers_do_not_give_is_refused(name: str) -> None:
    study = manifest()
    check_study(study)
    changed_study = CHANGES[name](study)
    assert changed_study != study
    with pytest.raises(AnonmlError):
        check_study(changed_study)


FILES = {
    "one receiver": (groups_study(receivers=1), "receivers"),
    "more receivers than members of a group": (groups_study(receivers=5), "receivers"),
    "too large a group": (groups_study(group=31, minimum=40, maximum=60), "group"),
    "a larger group than the cohort": (groups_study(group=11), "cohort"),
    "no aggregation": (groups_study(aggregations=0), "aggregations"),
    "eleven aggregations": (groups_study(aggregations=11), "aggregations"),
    "one record of each": (
        masks_study(design_of(groups_study()), cohort="minimum = 10\nmaximum = 12"), "records",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_study_file_that_cannot_run_says_what_to_change(name: str) -> None:
    text, word = FILES[name]
    with pytest.raises((Malformed, InvalidValue), match=word):
        parse_proposal(text)


@pytest.mark.slow
def test_an_entry_holds_the_noise_of_the_smallest_epsilon() -> None:
    study = manifest(groups_study(epsilon=0.000000001, aggregations=10, receivers=4))
    check_study(study)
    assert longest(weights_of(weights_survey(study)), 60, grouping_of(study.part)) < 2**63


@pytest.mark.slow
@pytest.mark.parametrize("aggregations", [1, 3, 10])
def test_the_charge_is_of_as_many_sums_with_the_noise_of_one_receiver(aggregations: int) -> None:
    """The epsilon is that of the file, however many aggregations share it, and however many receivers add noise."""
    study = manifest(groups_study(aggregations=aggregations))
    charge, shape = charge_of(study), weights_of(weights_survey(study))
    assert (charge.measure, charge.unit) == (Measure.ZCDP, Unit.RECORD)
    each = Fraction(shape.sensitivity_squared("replace-one") * 10**9) / (2 * grouping_of(study.part).noise)
    assert 0 <= charge.amount - aggregations * each < aggregations
    assert 0.99 * 10**9 < epsilon_of(study) <= 10**9
    assert any("keeps to epsilon 1 " in line for line in protocol_of(study).odds(study)), "one epsilon in all texts"
    assert len(study.surveys) == len(study.slots) == 1 + 3 * aggregations
    more = manifest(groups_study(aggregations=aggregations, receivers=4))
    assert charge_of(more).amount == charge.amount


def test_each_aggregation_is_a_session_of_three_rounds() -> None:
    rounds = protocol_of(manifest()).rounds(manifest())
    assert [one.session for one in rounds] == [0, 1, 1, 1, 2, 2, 2]
    assert [one.name for one in rounds][::3] == ["telling keys", "telling sums, 1 of 2", "telling sums, 2 of 2"]


@pytest.mark.slow
def test_the_result_fits_its_bound() -> None:
    """With as many groups as a study can have, and numbers of any length."""
    study = manifest(groups_study(aggregations=10, group=4, minimum=10))
    table = Table(study).play()
    from aggregator.protocols.sum.groups import EnsemblePart  # late: the table has loaded all of it

    body = EnsemblePart().learn(study, table.documents, {}).results[MODEL]
    assert len(body) < protocol_of(study).results(study)[MODEL] < 20 * len(body)


@pytest.mark.slow
def test_an_owner_reads_what_hides_it_and_what_it_rests_on() -> None:
    said = " ".join(map(str, (*protocol_of(manifest()).odds(manifest()), charge_of(manifest()).condition)))
    for words in (
        "3 exact weights", "leave 2 times", "at least 4 members", "epsilon 1 for each of your records",
        "one in a million", "chance of about 0.02", "leave out", "one receiver",
    ):  # fmt: skip
        assert words in said, words
    person = manifest(groups_study(aggregations=1, unit="person"))
    said = " ".join(protocol_of(person).odds(person))
    assert "leave once" in said and "records by itself" not in said and "chance of about 0.01." in said
    kind, = protocol_of(person).packet_kinds(person)
    assert kind.survey == person.survey(2) and "drawn into groups once" in str(protocol_of(person).summary(person))


def test_a_plan_tells_its_windows() -> None:
    planned = with_rounds(parse_proposal(groups_study()), 1.0)
    assert planned is not None and len(letters_plan(planned, 12)) == 8
    words = " ".join(letters_words(planned, letters_plan(planned, 12), 12))
    assert "each of its 7 windows" in words and "rest of that session" in words


def test_a_part_is_read_as_it_was_spelled() -> None:
    for grouping in (PART, Grouping(1, 2, 2, Fraction(3, 7)), Grouping(10, 30, 30, Fraction(2**99))):
        assert grouping_of(grouping.to_bytes()) == grouping
