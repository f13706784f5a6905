"""The peer's part of the histogram protocol: one answer per slot whatever the data, cuts recomputed from counts."""

import sqlite3
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.histogram.thresholds import RoundCounts
from anon.wire.cbor import encode
from peer.protocols.contract import part_of
from peer.protocols.histogram import category_of
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, advance, peer, until_closed
from tests.support.tries import examples

MANIFESTS = {name: FakeAggregator.with_study(text).manifest for name, text in
             {"declared": DECLARED, "binned": BINNED, "paper": PAPER}.items()}
ANY = st.one_of(st.none(), st.floats(), st.text(max_size=5), st.integers().map(float), st.sampled_from([nan, inf]))


def documents(manifest, low: int = 10) -> list[DocumentArrived]:
    rounds = max((survey.round for survey in manifest.surveys), default=0)
    found = []
    for turn in range(rounds + 1):
        counts = {
            survey.features[0]: [40, [low] * survey.m] if survey.kind == "quantile" else [40, low]
            for survey in manifest.surveys
            if survey.kind != "histogram" and survey.round == turn
        }
        if counts and turn == rounds:
            found.append(DocumentArrived("edges", 0, encode([1, manifest.study_id, counts])))
        elif counts:
            found.append(
                DocumentArrived("thresholds", turn + 1, encode([1, manifest.study_id, turn + 1, counts]))
            )
    return found


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(sorted(MANIFESTS)), st.dictionaries(st.sampled_from(["age", "cups", "other"]), ANY), ANY,
       st.data())
def test_every_data_set_gives_exactly_one_answer_per_slot(name, values, label, data) -> None:
    manifest = MANIFESTS[name]
    slots = [
        (slot.slot, data.draw(st.sampled_from([row.survey for row in slot.rows]))) for slot in manifest.slots
    ]
    answers = part_of(manifest).answers(manifest, Record(values, label), slots, documents(manifest))
    assert sorted((one.slot, one.survey) for one in answers) == sorted(slots)
    assert all(one.category.m == manifest.surveys[one.survey].m for one in answers)


def test_without_its_documents_a_survey_waits() -> None:
    manifest = MANIFESTS["paper"]
    slots = [(slot.slot, slot.rows[-1].survey) for slot in manifest.slots]
    record = Record({}, None)
    ready = part_of(manifest).answers(manifest, record, slots, ())
    assert {one.survey for one in ready} == {
        survey for _slot, survey in slots if not part_of(manifest).needs(manifest, survey)
    }
    every = part_of(manifest).answers(manifest, record, slots, documents(manifest))
    assert len(every) == len(slots)


def test_thresholds_follow_the_published_counts() -> None:
    """Range 0 to 100: 39 of 40 said "greater" in both rounds, so the third asks at 50 + 25 + 12.5."""
    manifest = MANIFESTS["paper"]
    first, second, third = (one for one in manifest.surveys if one.kind == "threshold" and one.round < 3)
    published = {first.survey: RoundCounts(40, (39,)), second.survey: RoundCounts(40, (39,))}
    for age, expected in ((87.5, 0), (87.6, 1)):
        assert category_of(manifest, Record({"age": age}, 1.0), third, published).value == expected


def test_quantile_cuts_follow_the_published_counts() -> None:
    """16 levels of 6.25 years; all answers in the three lowest levels, so the cuts are their edges."""
    manifest = MANIFESTS["binned"]
    survey = next(one for one in manifest.surveys if one.kind == "histogram" and one.features == ("age",))
    asked = next(one for one in manifest.surveys if one.kind == "quantile")
    n = 3000
    built = asked.build()
    expected_yes = [round(1000 * built.p / 2**64 + 2000 * built.q / 2**64)] * 3
    expected_no = [round(3000 * built.q / 2**64)] * 13
    counts = tuple(expected_yes + expected_no)
    bins = []
    for age in (6.2, 6.3, 12.6, 99.0):
        published = {asked.survey: RoundCounts(n, counts)}
        bins.append(category_of(manifest, Record({"age": age}, 0.0), survey, published).value // 2)
    assert bins == [0, 1, 2, 2]


@pytest.mark.parametrize(
    "statements",
    [
        (),
        ("CREATE TABLE person (age, cups, tired)",),
        ("CREATE TABLE person (age, cups, tired)", "INSERT INTO person VALUES ('x', 7, 'maybe'), (1, 2, 3)"),
        ("CREATE TABLE person (age, cups, tired)", "INSERT INTO person VALUES (1e999, x'00', NULL)"),
        ("CREATE VIEW person AS SELECT 1 AS age, 'none' AS cups, 1 AS tired",),
        ("CREATE TABLE person (age)", "INSERT INTO person VALUES (30)"),
    ],
    ids=["empty", "no-row", "two-rows-and-text", "infinite-blob-null", "view", "columns-missing"],
)
async def test_hostile_data_changes_neither_packets_nor_charge(tmp_path: Path, statements: tuple[str, ...]) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    with sqlite3.connect(tmp_path / "data.sqlite") as connection:
        for statement in statements:
            connection.execute(statement)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator, 3)
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    (status,) = app.status()
    assert len(aggregator.sent("packets")) == 1
    assert status.spent == aggregator.manifest.epsilon
    assert len({len(body) for body in aggregator.sent("packets")}) == 1
