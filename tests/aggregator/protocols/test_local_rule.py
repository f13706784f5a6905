"""The local rule: its questions, what a member answers, the exact p-value, and the model that follows from counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from scipy.stats import kstest

from aggregator.lab.planning.ranking import rank
from aggregator.lab.simulation.evaluation import model_scores, roc_auc
from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import NO_KEYS, learn_collected, run_once
from aggregator.protocols.additive.learner import declared_direction
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import BitTally, NoisyMoments, gather
from aggregator.protocols.additive.noise_test import FALSE_ALARM, LEVEL
from aggregator.protocols.additive.ruled import ScoreTallies, SideEvidence, SideTally, believed, evidence_of
from anon.errors import InvalidValue, Malformed
from anon.ldp import SCALE, RawCategory, build, nano
from anon.protocols.consent_words import declared
from anon.protocols.contract import Record
from anon.protocols.histogram.answers import SumMap, answer_map
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE
from anon.protocols.histogram.describe import packet_kinds
from anon.protocols.histogram.one_bit import LEVELS, chance_of, feature_signs, random_size, rounded
from anon.protocols.histogram.ruled import (
    LABELS,
    MOST_SUMS,
    SIDED,
    DeclaredSums,
    check,
    enough_for,
    heard,
    middle,
)
from anon.protocols.histogram.thresholds import RoundCounts, body, needs, parse
from anon.protocols.models.tables import from_json
from anon.protocols.registry import check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.study.manifest import Manifest, Survey
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.world import directed

KRR = build("krr", 2, nano("1"))
STUDY = directed("rule")


def published(text: str = STUDY) -> Manifest:
    return resolve(parse_proposal(text), NO_KEYS, 0, lambda below: 0)


def asked(manifest: Manifest) -> dict[str, Survey]:
    return {survey.kind: survey for survey in manifest.surveys if survey.kind in (MIDDLE, SIDE, SCORE)}


def test_a_study_asks_for_the_middle_first_and_its_members_answer() -> None:
    manifest = published()
    assert parse_manifest(manifest.to_bytes()) == manifest
    check_study(manifest)
    kinds = asked(manifest)
    assert all(kinds[kind].features == ("sex", "age") for kind in kinds) and len(manifest.windows) == 2
    found = {kinds[MIDDLE].survey: RoundCounts(100, (70,))}
    assert needs(manifest, kinds[SCORE]) == needs(manifest, kinds[SIDE]) == (("edges", 0),)
    assert parse(manifest, ("edges", 0), body(manifest, 0, found)) == found
    at = middle(KRR, 70, 100)
    for age, sex, income, total in ((60, "Male", ">50K", 2), (40, "Male", "<=50K", 1), (20, "Female", ">50K", -2)):
        record = Record({"age": age, "sex": sex}, income)
        above = total / 2**0.5 > at
        told = {kind: answer_map(manifest, survey, found)(record) for kind, survey in kinds.items()}
        assert told[SIDE] == RawCategory(int(above), 2)
        assert told[SCORE] == RawCategory(2 * above + (income == ">50K"), 4)
        assert told[MIDDLE].value == round((max(-1, min(1, total / 2**0.5 / 1.5)) + 1) / 2 * (LEVELS - 1))


def test_every_answer_is_total_and_costs_the_same_bytes() -> None:
    manifest = published()
    found = {asked(manifest)[MIDDLE].survey: RoundCounts(9, (4,))}
    for survey in manifest.surveys:
        asks = answer_map(manifest, survey, found)
        assert asks(Record({}, None)).m == asks(Record({"age": 60, "sex": "Male"}, ">50K")).m
    sizes = {kind: random_size(survey) for kind, survey in asked(manifest).items()}
    assert sizes[MIDDLE] == sizes[SCORE] == sizes[SIDE] + 8
    with pytest.raises(ValueError, match="level"):
        rounded(asked(manifest)[MIDDLE], RawCategory(0, 4), lambda size: bytes(size))
    assert [chance_of(asked(manifest)[MIDDLE], level) for level in (0, LEVELS - 1)] == [0, SCALE]


def test_every_question_costs_epsilon_whatever_staff_declare() -> None:
    """Search over all records of every question: the largest ratio of a report's chances is that of the mechanism, with
    right signs and with turned ones."""
    for text in (STUDY, STUDY.replace("expects = 1", "expects = -1").replace("[-1, 1]", "[1, -1]")):
        manifest = published(text)
        found = {asked(manifest)[MIDDLE].survey: RoundCounts(9, (4,))}
        for kind, survey in asked(manifest).items():
            asks = answer_map(manifest, survey, found)
            assert isinstance(asks, SumMap)
            chances = {
                answer.value if kind == SIDE else Fraction(chance_of(survey, answer.value), SCALE)
                for answer in asks.answers
            }
            told = [Fraction(survey.p, SCALE) * plus + Fraction(survey.q, SCALE) * (1 - plus) for plus in chances]
            told += [1 - one for one in told]
            ratio = max(told) / min(told)
            assert ratio <= Fraction(survey.p, survey.q) and survey.epsilon <= nano(2)
        assert protocol_of(manifest).exposure(manifest).amount <= nano(2)  # type: ignore[arg-type]


def test_the_middle_is_unbiased_but_for_what_noise_takes() -> None:
    gap = (KRR.p - KRR.q) / SCALE
    for score in (-0.9, 0.0, 0.6):
        plus = (1 + gap * score / 1.5) / 2
        assert middle(KRR, round(10**9 * plus), 10**9) == pytest.approx(score, abs=1e-6)
    assert middle(KRR, 0, 0) == 0.0 and abs(middle(KRR, 5, 5)) < 1.5 / gap


def test_a_peer_refuses_questions_about_other_features_or_no_middle() -> None:
    manifest = published()
    protocol_of(manifest).check(manifest)
    score = asked(manifest)[SCORE]
    turned = evolve(score, features=score.features[::-1], cards=score.cards[::-1])
    surveys = [turned if one == score else one for one in manifest.surveys]
    with pytest.raises(Malformed, match="not those of which staff expect"):
        protocol_of(manifest).check(evolve(manifest, surveys=tuple(surveys)))
    surveys = [evolve(one, kind=SIDE) if one.kind == MIDDLE else one for one in manifest.surveys]
    with pytest.raises(Malformed, match="once each"):
        protocol_of(manifest).check(evolve(manifest, surveys=tuple(surveys)))
    for parameters in ((), (0,), (2**64,), (1, 1)):
        with pytest.raises(Malformed):
            surveys = [evolve(one, parameters=parameters) if one == score else one for one in manifest.surveys]
            check_study(evolve(manifest, surveys=tuple(surveys)))


def test_a_rule_of_more_sums_than_a_peer_answers_beforehand_is_refused() -> None:
    """Numbers of bins without a common divisor make millions of different sums of a few features."""
    manifest = published()
    age = manifest.feature("age")
    many = tuple(evolve(age, name=f"age{bins}", cuts=tuple(range(20, 19 + bins))) for bins in (12, 14, 18, 20, 24))
    assert len(DeclaredSums.of(many[:3]).sums) <= MOST_SUMS
    with pytest.raises(InvalidValue, match="more than 100,000 sums"):
        DeclaredSums.of(many)
    with pytest.raises(Malformed, match="more sums than a program can answer"):
        check(evolve(manifest, features=(*manifest.features, *many)))
    unknown = evolve(age, cuts=(), bins=3)
    with pytest.raises(Malformed, match="whose cuts are not known"):
        check(evolve(manifest, features=tuple(unknown if one == age else one for one in manifest.features)))


@pytest.mark.parametrize(("old", "new", "said"), [
    ("\nexpects = 1\n", "\n", "at least two features"),
    ("cuts = [30, 50]", "bins = 3", "declared cuts"),
    ('binning = "100s"\n', "", "middle of the declared score"),
    ('asks = "rule"', 'asks = "score"', "expected one of tables, bits, rule"),
])
def test_a_study_that_cannot_ask_it_is_refused(old: str, new: str, said: str) -> None:
    text = STUDY.replace(old, new)
    assert text != STUDY
    with pytest.raises(Malformed, match=said):
        parse_proposal(text)


def test_consent_says_how_much_is_declared_and_when_it_is_found_out() -> None:
    manifest = published()
    said = " ".join(map(str, declared(manifest)))
    assert "starts from what staff declared of 2 features" in said and f"about {enough_for(manifest)} " in said
    asks = [str(kind.asks) for kind in packet_kinds(manifest)]
    assert any("how far your features point to a yes" in one for one in asks)
    assert any("label and whether your features point to a yes" in one for one in asks)


def test_the_part_that_is_heard_falls_with_people_and_epsilon() -> None:
    assert heard(100, nano("1"), 0.25) == heard(2000, nano("1"), 0.25) == Fraction(11, 20)
    parts = [heard(people, nano("1"), 0.25) for people in (12_000, 15_000, 20_000, 10**6)]
    assert parts == sorted(set(parts), reverse=True) and parts[-1] == Fraction(1, 4)
    assert heard(8000, nano("2"), 0.25) < heard(8000, nano("1"), 0.25)


def tallied(values: tuple[float, ...], sizes: tuple[int, ...], seed: int) -> tuple[ScoreTallies, list[SideTally]]:
    draw, gap = np.random.default_rng(seed), (KRR.p - KRR.q) / SCALE
    found = []
    for value, size in zip(values, sizes, strict=True):
        plus = int(draw.binomial(size, (1 + gap * value) / 2))
        found.append(SideTally.of(KRR, np.array([size - plus, plus])))
    return ScoreTallies(found[0], found[1], 0.25), found


@pytest.mark.slow
@pytest.mark.parametrize("lean", [-0.3, 0.0, 0.3])
def test_p_values_are_uniform_where_the_score_says_nothing(lean: float) -> None:
    """1,000 studies of 2,000 people, the guess off by .02: E[b (y - a)] is lean times that, and nothing else."""
    found = []
    for seed in range(1000):
        rate = 0.23 + 0.07 * np.random.default_rng([7, seed]).standard_normal()
        told, _ = tallied((lean * -0.02 / 0.75, lean), (1100, 60), seed)
        found.append(evidence_of(told, float(rate), 0.07).against)
    assert kstest(found, "uniform").pvalue > 0.01
    assert 0.008 < np.mean(np.array(found) <= 0.02) < 0.033


@pytest.mark.slow
@pytest.mark.parametrize("off", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("plus", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("people", "epsilon", "rate"), [(300, "0.5", 0.5), (2000, "1", 0.25), (5000, "4", 0.8)])
def test_a_rule_that_says_nothing_is_rarely_shown_whatever_was_guessed(
    off: float, plus: float, people: int, epsilon: str, rate: float
) -> None:
    """1,000 studies each, the guess off by as much as .1, the side lopsided: at most .02, and three standard errors."""
    built, centre, lean = build("krr", 2, nano(epsilon)), rate + off, 2 * plus - 1
    scale, gap, share = max(centre, 1 - centre), (built.p - built.q) / SCALE, heard(people, nano(epsilon), rate + off)
    sizes = [round(people * float(part)) for part in (share, SIDED, LABELS)]
    means = (lean * (rate - centre) / scale, lean, (rate - centre) / scale)
    draw, coordinates, shown = np.random.default_rng(1), coordinates_of(published().features), 0
    for _ in range(1000):
        told = [int(draw.binomial(size, (1 + gap * mean) / 2)) for size, mean in zip(sizes, means, strict=True)]
        score, side, label = (np.array([size - one, one]) for size, one in zip(sizes, told, strict=True))
        bit = BitTally(0, "sex", (1, 1), centre, built, label, sizes[2])
        known = gather(coordinates, [], [bit], {}, centre)
        tallies = ScoreTallies(SideTally.of(built, score), SideTally.of(built, side), centre)
        shown += evidence_of(tallies, known.rate, known.rate_error).chance <= LEVEL
    assert shown / 1000 <= FALSE_ALARM + 3 * (FALSE_ALARM * (1 - FALSE_ALARM) / 1000) ** 0.5


def moments(sizes: int, going: tuple[float, float]) -> NoisyMoments:
    """Bits about two features of two and three categories, with this covariance along the declared way."""
    features = published().features
    bits, gap = [], (KRR.p - KRR.q) / SCALE
    for feature, value in zip(features, going, strict=True):
        for signs in feature_signs(feature):
            plus = round(sizes * (1 + gap * value / 0.75) / 2)
            bits.append(BitTally(1, feature.name, signs, 0.25, KRR, np.array([sizes - plus, plus]), sizes))
    bits.append(BitTally(0, "sex", (1, 1), 0.25, KRR, np.array([sizes, sizes]), 2 * sizes))
    return gather(coordinates_of(features), [], bits, {}, 0.25)


def cosine(heard_of: NoisyMoments, evidence: SideEvidence) -> float:
    effects, direction = believed(heard_of, evidence)
    return float(effects @ direction / np.sqrt(effects @ effects * (direction @ direction)))


def test_the_score_decides_how_far_effects_lean_to_the_declared_way() -> None:
    """Before it, design and noise alone: the declared way. After it, that way or its opposite."""
    silent = moments(20, (0.0, 0.0))
    assert cosine(silent, SideEvidence(0.0, 100.0)) > 0.95
    assert cosine(silent, SideEvidence(0.15, 0.0009)) > 0.99
    assert cosine(silent, SideEvidence(-0.15, 0.0009)) < -0.9


def test_what_features_answer_corrects_what_was_declared_and_not_the_p_value() -> None:
    evidence = SideEvidence(0.05, 0.0009)
    apart = moments(100_000, (0.15, -0.15))
    effects, direction = believed(apart, evidence)
    sex, age = (apart.coordinates.places[name] for name in apart.coordinates.names)
    assert effects[sex] @ direction[sex] > 0 > effects[age] @ direction[age]
    assert evidence.against == SideEvidence(0.05, 0.0009).against
    assert np.allclose(direction, declared_direction(apart))


@pytest.mark.parametrize(("way", "contradicted"), [(1, False), (-1, True)])
def test_a_simulated_study_publishes_the_rule_and_says_when_answers_contradict_it(
    way: int, contradicted: bool
) -> None:
    generator = np.random.default_rng(5)
    sexes, ages = generator.integers(2, size=4000), generator.integers(20, 80, size=4000)
    labels = np.where(generator.random(4000) < 0.8, sexes if way > 0 else 1 - sexes, generator.integers(2, size=4000))
    people = People(
        {"sex": FeatureColumn(("Female", "Male"), sexes), "age": FeatureColumn(tuple(range(20, 80)), ages - 20)}, labels
    )
    learned = run_once(published(), people, generator)
    said = from_json(learned.model.to_json()).belief
    assert said is not None and said.contradicted is contradicted and learned.learnable
    table = learned.model.tables[0].log_odds
    assert (table[1] > table[0]) is (way > 0)
    assert said.members > 3000 and said.features == 2
    assert DeclaredSums.of(published().features).names == ("sex", "age")


def test_a_forecast_ranks_by_the_model_that_is_published() -> None:
    generator = np.random.default_rng(5)
    sexes, ages = generator.integers(2, size=300), generator.integers(20, 80, size=300)
    columns = {"sex": FeatureColumn(("Female", "Male"), sexes), "age": FeatureColumn(tuple(range(20, 80)), ages - 20)}
    people, plan = People(columns, generator.integers(2, size=300)), Plan.of(published())
    collected = collect(plan, people, generator)
    learned = learn_collected(plan, collected)
    ranks = model_scores(learned.model, people)
    found = rank(plan, collected, people)
    assert (found.auc, found.chance) == (roc_auc(ranks, people.labels == 1), learned.chance)
