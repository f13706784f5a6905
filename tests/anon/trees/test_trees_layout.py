"""The study of trees before anyone is asked: files and manifests that cannot be, its charge, and the total maps."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
from attrs import evolve

from anon.errors import Malformed
from anon.ldp.epsilon import NANO
from anon.protocols.charge import Measure, Neighbours, Unit
from anon.protocols.contract import Record
from anon.protocols.registry import charge_of, check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.trees.attributes import LabelledRow
from anon.protocols.trees.layout import labelled, plan_for
from anon.study.manifest import Manifest
from anon.study.records import Records
from peer.protocols.contract import Correspondence
from peer.protocols.trees import TreesPart, _stream
from tests.support.letters_study import KEYS
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.studies import categorical
from tests.support.sums import many
from tests.support.trees_study import MOST, trees_study

KNOWN = Correspondence(bytes(48), {}, {}, {})


@cache
def manifest(text: str = "") -> Manifest:
    return resolve(parse_proposal(text or trees_study()), KEYS, 1_800_000_000)


def with_texts(many: int) -> str:
    """The study with a feature of so many categories."""
    feature = categorical("diet", [f"d{number}" for number in range(many)], query="SELECT day, diet FROM person")
    text = trees_study().replace("[design]", f"{feature}[design]")
    return text.replace('"sleep", "tired"]', '"sleep", "tired", "diet"]')


@pytest.mark.parametrize(("text", "fault"), [
    (trees_study(unit="person"), "a tree protects each record"),
    (trees_study().replace(many(MOST), ""), "a tree protects each record"),
    (trees_study(more='target = "weight"'), "target: expected the name of a feature"),
    (trees_study(more="rows = 0"), "rows, depth: expected 1 to"),
    (trees_study(more="depth = 8"), "rows, depth: expected 1 to"),
    (trees_study(0.0), "expected a number above 0"),
    (trees_study().replace("cuts = [6]", "bins = 4"), "write cuts of sleep"),
    (with_texts(64), "diet: expected 2 to 64"),
    (with_texts(30).replace("epsilon = 8.0", 'epsilon = 8.0\ntarget = "diet"'), "2 to 16 classes"),
], ids=["person", "one record", "target", "no rows", "too deep", "free", "bins", "65 places", "31 classes"])
def test_a_file_of_no_trees_is_refused_with_a_next_step(text: str, fault: str) -> None:
    with pytest.raises(Malformed, match=fault):
        parse_proposal(text)


def test_fifty_thousand_records_of_a_member_take_a_machine_that_is_not_hurried() -> None:
    text = trees_study(most=50_000)
    check_study(manifest(text))
    with pytest.raises(Malformed, match="most_records: expected 1 to 50000"):
        parse_proposal(trees_study(most=50_001))
    hurried = text.replace('settle = "20m"', 'settle = "239s"')
    with pytest.raises(Malformed, match=r"schedule\.settle: expected 240s or more for more than 10000 records"):
        parse_proposal(hurried)
    few = manifest(hurried.replace("50000", "10000"))
    check_study(few)
    with pytest.raises(Malformed, match="expected 240s or more"):
        check_study(evolve(few, records=Records(10_001, "record")))


def test_rows_that_no_result_holds_are_refused() -> None:
    with pytest.raises(Malformed, match=r"lower design\.rows"):
        check_study(manifest(trees_study(more="rows = 10000")))


def test_the_charge_is_of_each_record_replaced_and_both_paths_are_in_it() -> None:
    study = manifest()
    charge, plan = charge_of(study), plan_for(study)
    assert (charge.measure, charge.unit, charge.neighbours) == (Measure.CENTRAL, Unit.RECORD, Neighbours.REPLACE_ONE)
    path = plan.depth * (plan.per_split + plan.per_count)
    assert 2 * path == Fraction(charge.amount, NANO) == 8
    assert plan.neighbours == "add-remove"


@pytest.mark.parametrize(("changed", "whole", "fault"), [
    ({"epsilon": 7_000_000_000}, {"epsilon": 6_000_000_000}, "declares epsilon 6000000000 but its surveys cost"),
    ({"size": 9_440}, {"report_size": 9_445}, "is not that of its trees"),
    ({"parameters": (7, 9_000, 0)}, {}, "its rows are too many"),
    ({"parameters": (9, 500, 0)}, {}, "cannot be grown"),
    ({"parameters": (7, 500, 1)}, {}, "is not that of its trees"),
    ({"cards": (4, 2)}, {}, "expected each feature once"),
    ({"features": ("sleep", "age"), "cards": (3, 4)}, {}, "is not that of its trees"),
    ({"mechanism": "letters"}, {}, "a posted tree"),
    ({"kind": "keys"}, {}, "one slot with one tree"),
], ids=["cheap", "size", "rows", "depth", "target", "cards", "order", "letters", "kind"])
def test_a_manifest_that_asks_for_something_else_is_refused(
    changed: dict[str, object], whole: dict[str, object], fault: str
) -> None:
    study = manifest()
    forged = evolve(study, surveys=(evolve(study.surveys[0], **changed),), **whole)
    with pytest.raises(Malformed, match=fault):
        check_study(parse_manifest(forged.to_bytes()))


def test_a_promise_about_a_person_is_refused() -> None:
    study = manifest()
    with pytest.raises(Malformed, match="promises something else"):
        check_study(evolve(study, records=Records(60, "person")))


def test_every_value_has_a_place_and_every_label_a_class() -> None:
    values = [None, "text", float("nan"), float("inf"), -1e300, 5, True, 10**400, [], {}]
    record = Record({}, None, rows=tuple(Record({"age": one, "sleep": one}, one) for one in values))
    rows = labelled(manifest(), record)
    assert len(rows) == len(values) and {row.row for row in rows} <= {(a, s) for a in range(4) for s in range(3)}
    assert rows[4].row == (0, 0) and rows[0].row == (3, 2) and {row.label for row in rows} <= {0, 1}


def test_a_feature_in_the_labels_place_is_the_class_and_splits_nothing() -> None:
    study = manifest(trees_study(more='target = "sleep"'))
    plan = plan_for(study)
    assert [one.name for one in plan.attributes] == ["age"] and plan.classes == 3
    record = Record({}, None, rows=(Record({"age": 50, "sleep": 9}, 1), Record({"age": 50}, 1)))
    assert [(row.row, row.label) for row in labelled(study, record)] == [((1,), 1), ((1,), 2)]


def test_other_records_get_other_noise_from_a_seed_that_came_back() -> None:
    rows = [LabelledRow((1, 2), 1), LabelledRow((3, 0), 0)]
    first, again, other = (_stream(bytes(32), records)(64) for records in (rows, rows, rows[:1]))
    assert first == again != other


@pytest.mark.parametrize("held", [0, 20])
def test_a_retry_has_the_same_noise_and_another_seed_has_other_noise(held: int) -> None:
    study, part = manifest(), TreesPart()
    record = Record({}, None, rows=tuple(Record({"age": 50, "sleep": 9}, 1) for _ in range(held)))
    first, again, other = (
        part.letters(study, study.surveys[0], record, KNOWN, (), lambda size, sign=sign: bytes([sign]) * size)
        for sign in (1, 1, 2)
    )
    assert first == again != other


def test_a_members_text_has_one_length_and_no_share() -> None:
    study, part = manifest(), TreesPart()
    held = tuple(Record({"age": 50, "sleep": 9}, 1) for _ in range(20))
    texts = [
        part.letters(study, study.surveys[0], record, KNOWN, (), lambda size: bytes(size))
        for record in (None, Record({}, None), Record({}, None, rows=held))
    ]
    assert {len(text.public) for text in texts} == {study.surveys[0].size} and texts[0] == texts[1] != texts[2]
    assert part.random_size(study, study.surveys[0]) == 32 and protocol_of(study).share_sizes(study) == ()
