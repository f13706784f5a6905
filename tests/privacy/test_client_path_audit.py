"""Black-box audit of what really leaves: from a record's values through the peer's part and `peer.release`.

For every mechanism and for one-bit packets a study is resolved as `study publish` does; the peer's part maps a record
to its answer, and `release` makes the report from bytes stretched as `SlotRandomness` stretches them. Only token and
seal are left
away: they see nothing but the finished report. False alarm: `FALSE_ALARM` for each audit, seeded.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import pytest
from attrs import evolve

import peer.release
from anon.credential.issuance import SEED_SIZE
from anon.ldp import MECHANISMS, SCALE, PerturbedReport, RandomBytes, RawCategory, build, nano
from anon.ldp.epsilon import loss
from anon.protocols.contract import Record
from anon.protocols.histogram import one_bit as bits
from anon.protocols.resolve import StudyKeys, resolve
from anon.study.manifest import Manifest, Survey
from peer.protocols.contract import part_of
from peer.release import MASK_KEY_SIZE, SlotRandomness
from tests.privacy.black_box_audit import Finding, View, audit, one_hot_view, unary_view
from tests.support.protocols import parse_proposal
from tests.support.studies import categorical, head_of, label_of
from tests.support.studies import study as study_file

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-4
TRIALS = 8_000
RECORDS = list(product(("f", "m"), ("no", "yes")))

HEAD = head_of(
    "Audited", "To be audited.", ["sex", "ill"], label_of("ill", "yes", "no"), [categorical("sex", ["f", "m"], "f")]
)

DESIGNS = {name: f'mechanism = "{name}"' for name in MECHANISMS} | {
    "one bit": 'asks = "bits"',
    "one bit, rare label": 'asks = "bits"\ncentre = 0.001',
    "one bit, common label": 'asks = "bits"\ncentre = 0.999',
}


def study(design: str, epsilon: str) -> Manifest:
    learning = 'classifier = "additive"\n' if "bits" in DESIGNS[design] else ""
    text = study_file(
        HEAD,
        f'kind = "one-packet"\nepsilon = {epsilon}\n{DESIGNS[design]}',
        {"enrol": "1d", "settle": "1h", "collect": "1d"},
        "minimum = 2",
        f"{learning}score_share = 0\nbase_rate = 0.3",
    )
    return resolve(parse_proposal(text), StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32)), 0)


def bit_view(report: bytes) -> str:
    """One of two signs as the first two of four positions."""
    return {0: "1000", 1: "0100"}[int.from_bytes(report, "big")]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> list[PerturbedReport]:
    """The reports that `release` would put into packets, caught before the token is made."""
    caught: list[PerturbedReport] = []

    def signed(study: bytes, manifest: Manifest, answering: Any, report: PerturbedReport, *_: Any) -> None:
        caught.append(report)

    monkeypatch.setattr(peer.release, "_signed", signed)
    monkeypatch.setattr(peer.release, "sealed_packet", lambda *_: b"")
    monkeypatch.setattr(peer.release, "packet_digest", lambda _: b"")
    monkeypatch.setattr(Survey, "build", lru_cache(Survey.build))  # the same mechanism every time, checked once
    return caught


def audited(design: str, epsilon: str, caught: list[PerturbedReport]) -> Finding:
    """The loss that shows when the four possible records answer the last survey of the study's slot."""
    manifest = study(design, epsilon)
    survey = manifest.slots[0].rows[-1].survey
    part = part_of(manifest)
    records = [Record({"sex": sex}, label) for sex, label in RECORDS]
    answers = [part.answers(manifest, record, [(0, survey)], ())[0] for record in records]
    asked, named = manifest.survey(survey), manifest.study_id
    size = bits.random_size(asked) + SEED_SIZE + MASK_KEY_SIZE

    def perturb(record: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        # As of every member: who is asked twice gets other bytes, and the record is among the grounds of the mask.
        drawn = SlotRandomness(random_bytes(size), b"roster", record.value.to_bytes(1, "big"))
        peer.release.release(named, manifest, answers[record.value], None, drawn)  # type: ignore[arg-type]
        return caught.pop()

    views: dict[str, View] = {"krr": one_hot_view(4)}
    view = bit_view if asked.kind == "bit" else views.get(design, unary_view(4))
    return audit(perturb, view, 4, TRIALS, FALSE_ALARM, random.Random(f"{design} {epsilon}").randbytes)


@pytest.mark.parametrize("design", DESIGNS)
def test_no_record_shows_more_than_the_study_states(design: str, bare: list[PerturbedReport]) -> None:
    finding = audited(design, "3", bare)
    assert not finding.exceeds(nano(3)), finding
    assert finding.exceeds(nano("2.4")), ("the audit has lost its power", finding)


@pytest.mark.parametrize("design", ["subset", "one bit"])
def test_a_client_20_percent_louder_than_its_study_is_found(design: str, bare: list[PerturbedReport]) -> None:
    finding = audited(design, "3.6", bare)
    assert finding.exceeds(nano(3)), finding


def test_a_client_that_rounds_without_noise_is_found(
    bare: list[PerturbedReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unperturbed(survey: Any, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        return survey.build().parse(bits.rounded(survey, answer, random_bytes).value.to_bytes(2, "big"))  # type: ignore[no-any-return]

    monkeypatch.setattr(bits, "perturb", unperturbed)
    assert audited("one bit", "3", bare).exceeds(nano(3))


@pytest.mark.parametrize("centre", [1, SCALE // 1000, SCALE // 2, SCALE - 1])
@pytest.mark.parametrize("epsilon", ["0.000001", "1", "20"])
def test_one_bit_loses_its_epsilon_exactly_at_every_public_base_rate(centre: int, epsilon: str) -> None:
    """Over both reports and all pairs of (sign, label), in fractions: the rounding adds nothing at the extremes."""
    built = build("krr", 2, nano(epsilon))
    manifest = study("one bit", "1")
    first = next(one for one in manifest.surveys if one.kind == "bit")
    asked = evolve(first, p=built.p, q=built.q, epsilon=built.epsilon, parameters=(centre, *first.parameters[1:]))
    every = []
    for sign, label in product((-1, 1), (0, 1)):
        share = Fraction(bits.plus_share(asked, sign, label), SCALE)
        assert 0 <= share <= 1
        every.append(share * Fraction(asked.p, SCALE) + (1 - share) * Fraction(asked.q, SCALE))
    worst = max(max(every) / min(every), (1 - min(every)) / (1 - max(every)))
    assert loss(worst) <= built.epsilon <= nano(epsilon)
    assert loss(worst) >= built.epsilon - 1
