"""The peer's part of `sum`: exact vectors whatever a record holds, their shares, and the weights of earlier rounds."""

from __future__ import annotations

import os
from math import inf, nan

import pytest

from anon.crypto.sealing import OVERHEAD
from anon.errors import AnonmlError, Malformed
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.outgoing import RawVector
from anon.protocols.sum.design import column_of, summed_of
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.columns import CONSTANT
from anon.protocols.vectors.gradient import Descent, GradientSums
from anon.study.manifest import Manifest
from anon.vdaf.binding import sharing_nonce
from anon.wire.packets import Occasion, share_info
from peer.protocols.contract import CorrespondingPart, SharingPart, part_of
from peer.protocols.sum.part import SumPart
from tests.support.sums import GRADIENT, MOMENTS, SLEEP, TABLES, document, manifest_of, many, opener

PART = SumPart()
KNOWN = Record({"age": 50.0, "sleep": 12.0, "cups": "many"}, 1)
STRANGE: list[object] = [None, nan, inf, -inf, "", "many people", True, 10**400, -1e308, b"x", [1]]


def answered(study: Manifest, record: Record, documents: list[DocumentArrived] | None = None):
    slots = [(slot, slot) for slot in range(len(study.slots))]
    return PART.answers(study, record, slots, documents or [])


def arrived(study: Manifest, number: int, values: list[int], members: int = 3) -> DocumentArrived:
    return DocumentArrived("sums", number, document(study, number, values, members))


def test_the_part_of_the_registry_is_this_one() -> None:
    part, study = part_of(manifest_of()), manifest_of(TABLES)
    assert isinstance(part, SharingPart) and not isinstance(part, SumPart | CorrespondingPart)
    assert part.random_size(study, study.surveys[0]) == PART.random_size(study, study.surveys[0])


def test_tables_hold_one_mark_in_each() -> None:
    (made,) = answered(manifest_of(TABLES), KNOWN)
    age, sleep, cups = [0] * 8, [0] * 6, [0] * 8
    age[2 * 1 + 1] = sleep[2 * 1 + 1] = cups[2 * 2 + 1] = 1
    assert made.vector.values == (*age, *sleep, *cups) and (made.slot, made.survey) == (0, 0)
    assert "1" not in repr(made.vector)


@pytest.mark.slow
def test_moments_are_products_of_centred_columns() -> None:
    (made,) = answered(manifest_of(MOMENTS), KNOWN)
    one, age, sleep, label = 16, 0, 16, 16
    columns = (one, age, sleep, label)
    assert made.vector.values == tuple(columns[i] * columns[j] for i in range(4) for j in range(i, 4))
    (number,) = answered(manifest_of(SLEEP), Record({"age": 100.0, "sleep": 9.0}, 0))
    columns = (16, 16, 16)
    assert number.vector.values == tuple(columns[i] * columns[j] for i in range(3) for j in range(i, 3))


def test_a_gradient_waits_for_the_sums_of_all_rounds_before() -> None:
    study = manifest_of(GRADIENT)
    assert [PART.needs(study, one) for one in range(3)] == [(), (("sums", 0),), (("sums", 0), ("sums", 1))]
    assert [one.survey for one in answered(study, KNOWN)] == [0]
    first, second = arrived(study, 0, [500, -200, 300]), arrived(study, 1, [100, 100, 100])
    assert [one.survey for one in answered(study, KNOWN, [first])] == [0, 1]
    assert [one.survey for one in answered(study, KNOWN, [second, first])] == [0, 1, 2]
    assert [one.survey for one in answered(study, KNOWN, [second])] == [0]


def test_the_gradient_is_taken_at_the_weights_that_the_sums_determine() -> None:
    study = manifest_of(GRADIENT)
    sums = [[50_000, -20_000, 30_000], [10_000, 10_000, 10_000]]
    noise = arrangement_of(study).sums[0].sigma_squared * 2
    from fractions import Fraction

    standing = Descent(3, Fraction(2), Fraction(9, 10), 1, noise).start(3)
    for members, values in zip((3, 4), sums, strict=True):
        standing = Descent(3, Fraction(2), Fraction(9, 10), members, noise).after(standing, values, 1024)
    documents = [arrived(study, number, sums[number], 3 + number) for number in range(2)]
    made = answered(study, KNOWN, documents)[2]
    design = summed_of(study, study.surveys[2])
    assert isinstance(design, GradientSums) and any(standing.weights)
    assert list(made.vector.values) == design.vector([({**KNOWN.values, CONSTANT: 1}, 1)], standing.weights)
    assert made.vector.values != answered(study, KNOWN)[0].vector.values


@pytest.mark.parametrize("design", [TABLES, MOMENTS, SLEEP, GRADIENT])
def test_no_value_makes_an_error_or_another_number_of_answers(design: str) -> None:
    study = manifest_of(design)
    for value in STRANGE:
        record = Record({"age": value, "sleep": value, "cups": value}, value)  # type: ignore[dict-item, arg-type]
        made = answered(study, record)
        assert len(made) == 1 and len(made[0].vector.values) == study.surveys[0].m
        shared(study, list(made[0].vector.values))
    assert len(answered(study, Record({}, None))) == 1


def test_what_is_missing_counts_as_the_middle_or_as_its_category() -> None:
    middle = Record({"age": 50.0, "sleep": 6.0}, 0)
    for design in (MOMENTS, GRADIENT):
        study = manifest_of(design)
        nothing = vector_of(study, study.surveys[0], Record({"age": None, "sleep": nan}, 0), (0, 0, 0))
        assert list(nothing) == list(vector_of(study, study.surveys[0], middle, (0, 0, 0)))
    own = answered(manifest_of(TABLES), Record({"age": None}, 0))[0].vector.values
    assert own[2 * 3] == own[8 + 2 * 2] == own[14 + 2 * 3] == 1


def shared(study: Manifest, values: list[int], slot: int = 0):
    survey, tag = study.surveys[slot], bytes([7]) * 48
    return PART.seal(study, survey, slot, PART.cut(study, survey, slot, RawVector(values), tag, os.urandom), tag)  # type: ignore[arg-type]


@pytest.mark.parametrize("design", [TABLES, MOMENTS, GRADIENT])
def test_shares_have_the_sizes_of_the_study_and_open_to_the_vector(design: str) -> None:
    study = manifest_of(design)
    values = list(answered(study, KNOWN)[0].vector.values)
    made = shared(study, values)
    arrangement, occasion = arrangement_of(study), Occasion(study.study_id, 0, 0)
    layout = arrangement.layout(study.packets)
    assert len(made.public) == study.report_size == layout.report
    assert tuple(map(len, made.shares)) == tuple(size + OVERHEAD for size in layout.shares)
    tag, prio3 = bytes([7]) * 48, arrangement.prio3(arrangement.sums[0])
    opened = [opener(one).open(share, share_info(occasion, tag, one)) for one, share in enumerate(made.shares)]
    context, key = arrangement.context(occasion), bytes(32)
    started = [
        prio3.verify_init(key, context, one, sharing_nonce(tag), made.public, share) for one, share in enumerate(opened)
    ]
    message = prio3.verifier_shares_to_message(context, [share for _, share in started])
    outputs = [prio3.verify_next(state, message) for state, _ in started]
    totals = [prio3.aggregate([output]) for output in outputs]
    assert list(prio3.unshard(totals)) == values


def test_the_random_bytes_are_enough_and_of_one_size_for_every_record() -> None:
    study, taken = manifest_of(MOMENTS), list[int]()

    def counted(size: int) -> bytes:
        taken.append(size)
        return os.urandom(size)

    for record in (KNOWN, Record({}, None)):
        PART.cut(study, study.surveys[0], 0, answered(study, record)[0].vector, bytes(48), counted)
    assert taken == [PART.random_size(study, study.surveys[0])] * 2


def test_another_surveys_vector_is_not_shared() -> None:
    study = manifest_of(MOMENTS)
    with pytest.raises(ValueError, match="10 entries"):
        shared(study, [1] * 9)
    with pytest.raises(Malformed):
        shared(study, [10**6] * 10)
    with pytest.raises(ValueError):
        shared(manifest_of(TABLES), [0] * 22)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["altered", "of another round", "of another study", "too short", "nothing"])
def test_sums_that_do_not_verify_stop_the_peer(fault: str) -> None:
    study = manifest_of(GRADIENT)
    other = manifest_of(GRADIENT.replace("1.0", "2.0"))
    good = document(study, 0, [1, 2, 3], 3)
    bodies = {
        "altered": good[:-70] + bytes([good[-70] ^ 1]) + good[-69:],
        "of another round": document(study, 1, [1, 2, 3], 3),
        "of another study": document(other, 0, [1, 2, 3], 3),
        "too short": document(study, 0, [1, 2, 3], 1),
        "nothing": b"",
    }
    PART.check_documents(study, [DocumentArrived("sums", 0, good)])
    wrong = [DocumentArrived("sums", 0, bodies[fault])]
    with pytest.raises(AnonmlError):
        PART.check_documents(study, wrong)
    with pytest.raises(AnonmlError):
        answered(study, KNOWN, wrong)


def test_columns_follow_the_declared_range() -> None:
    study = manifest_of(MOMENTS)
    column = column_of(study.feature("age"))
    assert [column.real(value) for value in (0, 25, 50, 100, 400)] == [-1.0, -0.5, 0.0, 1.0, 1.0]


def test_a_member_has_one_role_in_all_rounds_and_one_in_four_checks() -> None:
    study = manifest_of(GRADIENT)
    lots = [bytes([first]) + bytes(31) for first in range(256)]
    taken = [[PART.takes_part(study, survey, lot) for survey in study.surveys] for lot in lots]
    assert taken == [[False, False, False, True]] * 64 + [[True, True, True, False]] * 192
    for other in (manifest_of(TABLES), manifest_of(GRADIENT, keys=many())):
        assert all(PART.takes_part(other, survey, lot) for survey in other.surveys for lot in lots[::64])


def test_who_checks_tells_its_label_and_the_side_of_the_last_weights() -> None:
    study = manifest_of(GRADIENT)
    documents = [arrived(study, number, values) for number, values in enumerate([[900, 0, 90_000], [0] * 3, [0] * 3])]
    made = answered(study, KNOWN, documents)[3]
    design = summed_of(study, study.surveys[3])
    assert isinstance(design, CheckSums) and made.survey == 3
    PART.check_documents(study, documents)
    assert made.vector.values == (design.mark, -design.mark, -design.mark), "more sleep, less of the label"
    rested = answered(study, Record({**KNOWN.values, "sleep": 0.0}, 1), documents)[3]
    assert rested.vector.values == (design.mark, design.mark, design.mark)
