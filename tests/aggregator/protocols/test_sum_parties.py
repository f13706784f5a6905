"""Parties with many records: weights of their own models, or votes of their own classifiers, become a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from attrs import evolve

from aggregator.protocols.sum.part import SumPart, learned_of
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.transferred import transferred
from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.protocols.contract import Record
from anon.protocols.models.linear import LinearModel
from anon.protocols.registry import check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.design import shape_of, summed_of
from anon.protocols.sum.masks.layout import vector_survey
from anon.protocols.sum.shared import SumShared
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.transfer import TransferredVotes
from anon.study.manifest import Manifest, Survey
from anon.study.records import Records
from tests.support import masks_study
from tests.support.protocols import parse_proposal
from tests.support.sums import KEYS, MOMENTS, document, manifest_of, many, sum_study
from tests.support.tries import every

AVERAGING = 'kind = "averaging"\nepsilon = 1.0\nstrength = 0.01'
ROWS = 60
TRANSFER = f'kind = "transfer"\nepsilon = 1.0\npublic_rows = {ROWS}\nstrength = 0.001'


def people(number: int, some: int = 40) -> list[Record]:
    """Records of which short sleep makes tired."""
    spring, found = Random(number), list[Record]()
    for _ in range(some):
        age, sleep = spring.uniform(0, 100), spring.uniform(2, 10)
        found.append(Record({"age": age, "sleep": sleep}, int(sleep + spring.gauss(0, 1) < 6)))
    return found


def public(rows: int = ROWS, first: str = "sleep,age") -> bytes:
    spring = Random(99)
    lines = [f"{spring.uniform(2, 10):.2f},{spring.uniform(0, 100):.1f}" for _ in range(rows)]
    return "\n".join([first, *lines]).encode()


def averaging(unit: str = "record", design: str = AVERAGING) -> Manifest:
    return manifest_of(design, keys=many(40, unit))


def transfer(classifier: str = "logistic") -> Manifest:
    design = f'{TRANSFER}\nclassifier = "{classifier}"'
    return manifest_of(design, keys=many(40, "person"), given={"rows": public()})


def vectors(study: Manifest, members: Sequence[Sequence[Record]], given: bytes) -> list[Sequence[int]]:
    return [vector_of(study, study.surveys[0], Record({}, None, rows), given=given) for rows in members]


def learned(study: Manifest, members: Sequence[Sequence[Record]], given: bytes = b"") -> LinearModel:
    """The model of a sum without noise."""
    sums = [sum(entries) for entries in zip(*vectors(study, members, given), strict=True)]
    bodies = {("sums", 0): document(study, 0, sums, len(members)), ("given", 0): given}
    model = SumPart().learn(study, bodies, {}).model
    assert isinstance(model, LinearModel)
    return model


def right(model: LinearModel) -> float:
    tested = people(1000, 400)
    return sum((model.predict(one.values).probability >= 0.5) == bool(one.label) for one in tested) / len(tested)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["record", "person"])
def test_the_mean_of_members_models_is_the_model(unit: str) -> None:
    study = averaging(unit)
    check_study(study)
    members = [people(number) for number in range(4)]
    model = learned(study, members)
    each = [learned(study, [rows] * 4) for rows in members]
    assert model.intercept == pytest.approx(np.mean([one.intercept for one in each]), abs=1e-3)
    assert model.weights == pytest.approx(np.mean([one.weights for one in each], axis=0), abs=1e-3)
    assert right(model) > 0.8 and not study.given


@pytest.mark.slow
@pytest.mark.parametrize("classifier", ["logistic", "nearest", "tree"])
def test_votes_on_public_rows_become_a_model(classifier: str) -> None:
    study = transfer(classifier)
    check_study(study)
    assert right(learned(study, [people(number) for number in range(8)], public())) > 0.8


@pytest.mark.slow
def test_no_records_and_one_class_are_vectors_like_others() -> None:
    """Whatever a member holds: the length is the study's, and the norm is what its proof states."""
    strange = [Record({"age": value, "sleep": "x"}, value) for value in (None, float("nan"), 1e300)]
    for study, given in ((averaging(), b""), (averaging("person"), b""), (transfer("tree"), public())):
        design = summed_of(study, study.surveys[0])
        for rows in ([], people(1)[:1], strange, [Record({"age": 1, "sleep": 2}, 1)] * 40):
            (vector,) = vectors(study, [rows], given)
            assert len(vector) == study.surveys[0].m == 3
            assert sum(entry**2 for entry in vector) <= design.contribution_norm_squared
        assert vectors(study, [[]], given) == [[0, 0, 0]]


def test_the_weights_of_votes_are_where_the_loss_is_least() -> None:
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (50, 3))
    mean = np.array([0.1, -0.05, 0.02])
    weights = np.array(transferred(rows.tolist(), mean.tolist(), Fraction(1, 100)))
    slope = rows.T @ np.tanh(rows @ weights / 2) / 100 - mean + weights / 100
    assert np.abs(slope).max() < 1e-8
    far = transferred(rows.tolist(), [3.0, 3.0, -3.0], Fraction(1, 1000))  # more than any votes can say
    assert np.isfinite(far).all() and far[0] > 1000


@pytest.mark.parametrize("design", every(3, ["averaging", "moments", "transfer"]))
def test_a_sum_of_any_size_becomes_a_model(design: str) -> None:
    """A member that lies under masks makes one: the study must not stand still for it."""
    own = {"moments": MOMENTS, "averaging": AVERAGING, "transfer": TRANSFER}[design].replace('"', '"masked-', 1)
    rows = '[[given]]\nname = "rows"\ndescription = "Rows."\nfile = "rows.csv"\n' if design == "transfer" else ""
    text = masks_study.masks_study(own, many(40, "person")) + rows
    study = resolve(parse_proposal(text), KEYS, 1_800_000_000, given={"rows": public()} if rows else {})
    survey = vector_survey(study)
    for sign in (-1, 1):
        found = NoisySum((sign * 2**62,) * shape_of(survey).length, 4, Fraction(1), 4)
        model = learned_of(study, survey, found, public()).model
        assert all(abs(weight) <= 2**53 for weight in (model.intercept, *model.weights))


GIVENS = {
    "fewer rows": public(ROWS - 1),
    "another column": public(first="sleep,cups"),
    "a column twice": public(first="sleep,sleep"),
    "no number": public().replace(b"\n", b"\nx,1\n", 1),
    "not finite": public(ROWS - 1) + b"\ninf,1",
    "a longer line": public(ROWS - 1) + b"\n1,1,1",
    "no text": b"\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("name", GIVENS)
def test_public_rows_that_do_not_fit_stop_the_study_in_a_sentence(name: str) -> None:
    study, protocol = transfer(), SumShared()
    protocol.check_given(study, {("given", 0): public()})
    with pytest.raises(Malformed, match="given: expected"):
        protocol.check_given(study, {("given", 0): GIVENS[name]})


def _changed(study: Manifest, **changes: object) -> Manifest:
    survey: Survey = evolve(study.surveys[0], **changes)
    return evolve(study, surveys=(survey,))


@pytest.mark.parametrize(
    ("design", "at"), [*((averaging, at) for at in (0, 2, 4, 6, 7)), *((transfer, at) for at in (0, 2, 4, 6))]
)
def test_a_manifest_with_other_numbers_than_its_design_gives_is_refused(
    design: Callable[[], Manifest], at: int
) -> None:
    """The scale, the terms of a ratio, the fewest records, the classifier."""
    study = design()
    parameters = list(study.surveys[0].parameters)
    parameters[at] += 41
    with pytest.raises(AnonmlError):
        check_study(_changed(study, parameters=tuple(parameters)))


def demanding(design: str) -> Manifest:
    """A study of the design, with tellers or masks, that takes members with at least 7 records."""
    made = masks_study.masks_study if design.startswith('kind = "masked') else sum_study
    return resolve(parse_proposal(made(design, keys=many(40, "person") + "least_records = 7\n")), KEYS, 1_800_000_000)


@pytest.mark.parametrize("design", [AVERAGING, masks_study.AVERAGING])
def test_the_fewest_records_of_weights_are_the_least_that_the_study_declares(design: str) -> None:
    """The noise of one record rests on it, so members must be held to the same number before they join."""
    study = demanding(design)
    weights = next(survey for survey in study.surveys if survey.kind == "weights")
    assert weights.parameters[7] == 7 and study.records == Records(40, "person", 7)
    check_study(study)
    for least in (1, 6, 8):
        with pytest.raises(Malformed, match="takes other records of a member than the study says"):
            check_study(evolve(study, records=Records(40, "person", least)))


@pytest.mark.slow
@pytest.mark.parametrize("design", [MOMENTS, masks_study.MOMENTS])
def test_other_surveys_leave_the_least_to_the_study(design: str) -> None:
    study = demanding(design)
    check_study(study)
    with pytest.raises(Malformed, match="takes other records of a member than the study says"):
        check_study(evolve(study, records=Records(41, "person", 7)))


FILES = {
    "one record of each": (AVERAGING, "", "records"),
    "too much work": (AVERAGING.replace("0.01", "0.0001"), many(10_000, "person"), "strength"),
    "no lambda": (AVERAGING.replace("0.01", "0.0"), many(40), "strength"),
    "no rows": (TRANSFER, many(40, "person"), "given"),
    "votes by record": (TRANSFER, many(40, "record"), "unit"),
    "another classifier": (TRANSFER + '\nclassifier = "forest"', many(40, "person"), "classifier"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_study_file_that_cannot_run_says_what_to_change(name: str) -> None:
    design, keys, word = FILES[name]
    rows = '[[given]]\nname = "rows"\ndescription = "Rows."\nfile = "rows.csv"\n'
    text = sum_study(design, keys=keys) + (rows if "transfer" in design and name != "no rows" else "")
    with pytest.raises((Malformed, InvalidValue), match=word):
        parse_proposal(text)


@pytest.mark.slow
def test_an_owner_reads_what_leaves() -> None:
    for study, words in ((averaging(), "fits a model to your records"), (transfer(), "votes on 60 public rows")):
        assert words in " ".join(map(str, protocol_of(study).odds(study)))


@pytest.mark.parametrize("design", [AVERAGING, TRANSFER])
def test_a_norm_makes_short_records_longer_and_no_record_too_long(design: str) -> None:
    """Rows at a norm of a quarter are four times as long, until they reach 1. The model is of the columns as ever."""
    given = {"rows": public()} if design == TRANSFER else {}
    study = manifest_of(design + "\nnorm = 0.25", keys=many(40, "person"), given=given)
    check_study(study)
    plain = manifest_of(design, keys=many(40, "person"), given=given)
    wide, close = (summed_of(one, one.surveys[0]) for one in (study, plain))
    assert isinstance(wide, AveragedWeights | TransferredVotes) and isinstance(close, type(wide))
    short, far = {"age": 52, "sleep": 6, "1": 0.1}, {"age": 100, "sleep": 12, "1": 1}
    assert wide.row(short) == pytest.approx([4 * real for real in close.row(short)])
    assert 0.999 < sum(real**2 for real in wide.row(far)) <= 1
    assert right(learned(study, [people(number) for number in range(8)], given.get("rows", b""))) > 0.8
