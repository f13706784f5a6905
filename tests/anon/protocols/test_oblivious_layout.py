"""The manifest of oblivious averaging: nothing in it may differ from what its numbers give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from aggregator.lab.planning.letters import letters_plan, letters_words, with_rounds
from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.protocols.charge import Measure, Unit
from anon.protocols.registry import charge_of, check_study, protocol_of
from anon.protocols.sum.oblivious.messages import (
    AGREED,
    COMPARED,
    NOISE,
    OPENING,
    POSTED,
    SHARES,
    frame_of,
    spread,
    weights_of,
    weights_survey,
)
from anon.study.manifest import Manifest, Survey, Window
from anon.study.records import Records
from tests.support.oblivious_study import LEAST, MOST, design, oblivious_study
from tests.support.oblivious_table import manifest
from tests.support.protocols import parse_proposal

ONION = "duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion:80"


def changed(study: Manifest, at: int, **changes: object) -> Manifest:
    survey: Survey = evolve(study.surveys[at], **changes)
    surveys = (*study.surveys[:at], survey, *study.surveys[at + 1 :])
    return evolve(study, surveys=surveys, report_size=max(one.report_size for one in surveys))


def early(study: Manifest) -> Manifest:
    before, after = study.surveys[COMPARED].window, study.surveys[NOISE].window
    return changed(study, NOISE, window=Window(before.closes, after.closes))


CHANGES: dict[str, Callable[[Manifest], Manifest]] = {
    "weaker keys": lambda study: changed(study, AGREED, size=32),
    "keys of two sizes": lambda study: changed(study, OPENING, size=study.surveys[OPENING].size + 64),
    "a free posting": lambda study: changed(study, POSTED, epsilon=0),
    "cheaper shares, a dearer posting": lambda study: changed(
        changed(study, SHARES, epsilon=1), POSTED, epsilon=study.epsilon - 1
    ),
    "an opening that costs": lambda study: changed(study, OPENING, epsilon=1),
    "longer letters": lambda study: changed(study, SHARES, parameters=(999,)),
    "a seat less": lambda study: changed(study, SHARES, m=5),
    "postings under a pseudonym": lambda study: changed(study, POSTED, mechanism="letters"),
    "weights of other columns": lambda study: changed(study, OPENING, features=("age",), cards=(1,)),
    "another lambda": lambda study: changed(
        study, OPENING, parameters=(*study.surveys[OPENING].parameters[:1], 1, 100, 0, 1, 1, 1, LEAST, MOST, 1)
    ),
    "fewer records as the least": lambda study: evolve(study, records=Records(MOST, "record", LEAST - 1)),
    "a person as the unit": lambda study: evolve(study, records=Records(MOST, "person", LEAST)),
    "eleven parties": lambda study: evolve(study, cohort=evolve(study.cohort, maximum=11)),
    "two parties": lambda study: evolve(study, cohort=evolve(study.cohort, minimum=2)),
    "short keys over Tor": lambda study: evolve(study, address=ONION),
    "a round less": lambda study: evolve(study, surveys=study.surveys[:7], slots=study.slots[:7]),
    "a part": lambda study: evolve(study, part=b"\x80"),
    "a round that opens before the one before it has closed": early,
    "hardly any epsilon": lambda study: changed(changed(study, SHARES, epsilon=1), POSTED, epsilon=0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_its_numbers_do_not_give_is_refused(name: str) -> None:
    study = manifest()
    check_study(study)
    changed_study = CHANGES[name](study)
    with pytest.raises(AnonmlError):
        check_study(changed_study)


def test_long_keys_are_for_any_address() -> None:
    text = oblivious_study().replace("key_bits = 512", "")
    check_study(evolve(manifest(text), address=ONION))
    assert manifest(text).survey(AGREED).size == 384


FILES = {
    "a person": (oblivious_study().replace('unit = "record"', 'unit = "person"'), "unit"),
    "two parties": (oblivious_study(minimum=2), "cohort"),
    "eleven parties": (oblivious_study().replace("maximum = 5", "maximum = 11"), "cohort"),
    "any number of parties": (oblivious_study().replace("maximum = 5", "admission = 'invite'"), "cohort"),
    "short keys": (oblivious_study().replace("key_bits = 512", "key_bits = 256"), "key_bits"),
    "longer keys": (oblivious_study().replace("key_bits = 512", "key_bits = 4096"), "key_bits"),
    "odd keys": (oblivious_study().replace("key_bits = 512", "key_bits = 600"), "key_bits"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_study_file_that_cannot_run_says_what_to_change(name: str) -> None:
    text, word = FILES[name]
    with pytest.raises((Malformed, InvalidValue), match=word):
        parse_proposal(text)


def test_a_vector_that_needs_more_noise_than_an_entry_holds_is_refused() -> None:
    with pytest.raises(Malformed, match="noise"):
        manifest(oblivious_study().replace("epsilon = 1.0", "epsilon = 0.000000001"))


def test_the_charge_is_pure_and_of_a_record() -> None:
    charge = charge_of(manifest())
    assert (charge.measure, charge.unit, charge.amount) == (Measure.CENTRAL, Unit.RECORD, 10**9)


def test_the_noise_covers_what_a_record_moves() -> None:
    """Epsilon times the scale is the sum's sensitivity for this size, rounded up: 2 / (lambda n) times the scale of the
    weights, never more than from one end of all weights to the other, and more for rounding."""
    study = manifest()
    shape = weights_of(weights_survey(study))
    for rows in range(LEAST, MOST + 1):
        moved = shape.scale * min(2 * float(shape.clip), 2 / (float(shape.strength) * rows))
        assert moved < spread(shape, rows, 10**9) < 1.2 * moved + 20
        assert spread(shape, rows, 5 * 10**8) == 2 * spread(shape, rows, 10**9)
    assert frame_of(study).plaintexts == 1


def test_an_owner_reads_what_hides_it_and_what_it_rests_on() -> None:
    said = " ".join(map(str, (*protocol_of(manifest()).odds(manifest()), charge_of(manifest()).condition)))
    for words in (
        "3 exact weights", "knows its own noise", "works with the aggregator", "epsilon 1 for", "count as known",
        "keep to the protocol", "512 bits",
    ):  # fmt: skip
        assert words in said, words


def test_a_plan_tells_its_seven_windows() -> None:
    planned = with_rounds(parse_proposal(oblivious_study()), 1.0)
    assert planned is not None and len(letters_plan(planned, 5)) == 8
    assert "each of its 7 windows" in " ".join(letters_words(planned, letters_plan(planned, 5), 5))


def test_a_design_has_a_sentence_for_each_key() -> None:
    section = protocol_of(manifest()).designs["oblivious-averaging"]
    assert design().split("=")[0].strip() == "kind" and "key_bits" in section.words
