"""One-bit packets: what they cost, exactly; that they are unbiased; that every record costs the same bytes."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from attrs import evolve

from anon.errors import Malformed
from anon.ldp import NANO, SCALE, RawCategory, build, nano
from anon.ldp.epsilon import loss
from anon.protocols.contract import Record
from anon.protocols.histogram import one_bit as bits
from anon.protocols.registry import check_study
from anon.protocols.resolve import StudyKeys, resolve
from anon.study.features import Feature
from anon.study.manifest import Manifest, Survey, Window
from peer.protocols.contract import part_of
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.studies import categorical, head_of, label_of, numeric, study

pytestmark = pytest.mark.slow

STUDY = study(
    head_of(
        "Bits",
        "One bit of each.",
        ["age", "sex", "ill"],
        label_of("ill", "yes", "no"),
        [numeric("age", (0, 100), "cuts = [30, 60]"), categorical("sex", ["f", "m"], "f")],
    ),
    'kind = "one-packet"\nepsilon = 1.0\nasks = "bits"',
    {"enrol": "1d", "settle": "1h", "collect": "1d"},
    "minimum = 2",
    'classifier = "additive"\nscore_share = 0\nbase_rate = 0.3',
)
KEYS = StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32))


def manifest(text: str = STUDY) -> Manifest:
    return resolve(parse_proposal(text), KEYS, 0)


def survey(centre: float, epsilon: float = 1.0) -> Survey:
    built = build("krr", 2, nano(epsilon))
    return Survey(
        0, "bit", ("sex",), (2,), 2, "krr", built.p, built.q, built.epsilon, Window(0, 1),
        parameters=bits.bit_parameters(round(centre * SCALE), (-1, 1)),
    )  # fmt: skip


def chance(asked: Survey, sign: int, label: int) -> Fraction:
    """The exact probability that the report says +1, rounding included."""
    plus = Fraction(bits.plus_share(asked, sign, label), SCALE)
    return plus * Fraction(asked.p, SCALE) + (1 - plus) * Fraction(asked.q, SCALE)


@pytest.mark.parametrize("centre", [0.01, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_loss_with_rounding_is_that_of_the_mechanism(centre: float, epsilon: float) -> None:
    asked = survey(centre, epsilon)
    every = [chance(asked, sign, label) for sign, label in product((-1, 1), (0, 1))]
    worst = max(max(every) / min(every), (1 - min(every)) / (1 - max(every)))
    assert asked.epsilon - 1 <= loss(worst) <= asked.epsilon <= nano(epsilon)


@pytest.mark.parametrize("centre", [0.01, 0.25, 0.5, 0.9])
def test_the_mean_of_a_report_is_the_product(centre: float) -> None:
    asked = survey(centre)
    gap = Fraction(asked.p - asked.q, SCALE)
    for sign, label in product((-1, 1), (0, 1)):
        mean = (
            (2 * chance(asked, sign, label) - 1)
            / gap
            * Fraction(max(bits.centre_of(asked), SCALE - bits.centre_of(asked)), SCALE)
        )
        assert float(mean) == pytest.approx(sign * (label - centre), abs=1e-12)


def test_every_record_draws_the_same_bytes_and_reports_are_as_often_as_stated() -> None:
    """20,000 reports for each answer; 5 standard errors, a false alarm in 2e-6."""
    asked = survey(0.25)
    generator = np.random.default_rng(3)
    for sign, label in product((-1, 1), (0, 1)):
        sizes, plus = set(), 0
        for _ in range(20_000):
            drawn: list[int] = []

            def random_bytes(size: int, drawn: list[int] = drawn) -> bytes:
                drawn.append(size)
                return generator.bytes(size)

            report = bits.perturb(asked, bits.bit_answer(sign, label), random_bytes)
            plus += asked.build().tally([report])[1]
            sizes.add(tuple(drawn))
        assert sizes == {(bits.ROUNDING_SIZE, asked.build().random_size)}
        assert sum(next(iter(sizes))) == bits.random_size(asked)
        truth = float(chance(asked, sign, label))
        assert abs(plus / 20_000 - truth) < 5 * (truth * (1 - truth) / 20_000) ** 0.5


def test_an_answer_of_another_kind_is_not_rounded() -> None:
    with pytest.raises(ValueError, match="sign and a label"):
        bits.perturb(survey(0.5), RawCategory(1, 2), os.urandom)


def test_bits_of_a_feature() -> None:
    own = Feature("age", "numeric", "a", "SELECT 1", "own", range=(0.0, 9.0), cuts=(3.0, 6.0))
    assert bits.feature_signs(own) == ((-1, 1, 1, -1), (-1, -1, 1, -1), (-1, -1, -1, 1))
    assert bits.feature_signs(Feature("sex", "categorical", "s", "SELECT 1", "f", categories=("f", "m"))) == ((-1, 1),)
    three = Feature("town", "categorical", "t", "SELECT 1", "a", categories=("a", "b", "c"))
    assert bits.feature_signs(three) == ((1, -1, -1), (-1, 1, -1), (-1, -1, 1))


def test_a_study_of_bits_costs_its_epsilon_and_is_canonical() -> None:
    found = manifest()
    assert {one.kind for one in found.surveys} == {"bit"}
    assert NANO - 1 <= found.epsilon <= NANO
    assert parse_manifest(found.to_bytes()) == found
    assert {bits.centre_of(one) for one in found.surveys} == {round(0.3 * SCALE)}
    weights = {one.survey: row.weight for one, row in zip(found.surveys, found.slots[0].rows, strict=True)}
    label, age, sex = weights[0], sum(weights[k] for k in (1, 2, 3)), weights[4]
    assert age == pytest.approx(sex, rel=1e-4)
    assert label / (label + age + sex) == pytest.approx(0.03, rel=1e-3)


@pytest.mark.parametrize(("values", "label", "expected"), [
    ({"age": 70.0, "sex": "m"}, "yes", [3, 3, 3, 1, 3]), ({"age": None, "sex": "f"}, "no", [2, 0, 0, 2, 0]),
    ({"age": 40.0}, None, [2, 2, 0, 0, 0]),
])
def test_the_peer_answers_a_sign_and_a_label(values: dict[str, object], label: object, expected: list[int]) -> None:
    found = manifest()
    slots = [(0, one.survey) for one in found.surveys]
    answers = part_of(found).answers(found, Record(values, label), slots, ())  # type: ignore[arg-type]
    assert [one.category.value for one in answers] == expected
    assert {one.category.m for one in answers} == {bits.ANSWERS}


@pytest.mark.parametrize("change", [
    {"parameters": ()}, {"parameters": (1,)}, {"parameters": (1, 0, 2)}, {"parameters": (1, 1, 1, 1)},
    {"parameters": (1, 0, 0)}, {"parameters": (0, 0, 1)}, {"parameters": (SCALE, 0, 1)}, {"parameters": (-1, 0, 1)},
    {"kind": "histogram"}, {"mechanism": "pq"}, {"features": ("sex", "age"), "cards": (2, 4)},
])
def test_a_survey_that_cannot_be_asked_is_refused(change: dict[str, object]) -> None:
    """By the survey itself, or by the form of its design."""
    found = manifest()
    place = next(
        number
        for number, asked in enumerate(found.surveys)
        if asked.features == ("sex",) and asked.m == 2 and len(asked.parameters) == 3
    )
    with pytest.raises(Malformed):
        changed = evolve(found.surveys[place], **change)  # type: ignore[arg-type]
        check_study(evolve(found, surveys=(*found.surveys[:place], changed, *found.surveys[place + 1 :])))


@pytest.mark.parametrize(("old", "new", "named"), [
    ('classifier = "additive"', 'classifier = "soft"', "learning.classifier"),
    ('asks = "bits"', 'asks = "bits"\nsubset_size = 2', "subset_size"),
    ('asks = "bits"', 'asks = "bits"\ncentre = 1.0', "centre"),
    ("base_rate = 0.3", "base_rate = 0", "base_rate"),
    ('asks = "bits"', 'asks = "votes"', "asks"),
    ('missing = "f"', 'missing = "f"\nshares = [0.5, 0.6]', "shares"),
])
def test_faults_of_a_study_file_are_named(old: str, new: str, named: str) -> None:
    with pytest.raises(Malformed, match=named):
        manifest(STUDY.replace(old, new))
