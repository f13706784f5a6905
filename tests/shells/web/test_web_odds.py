"""The odds on the consent screen are the mechanism's own probabilities, read back from the words."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anon.ldp import SCALE, RawCategory
from anon.protocols.histogram.describe import Probability, bit_chance, lines, packet_kinds
from anon.protocols.histogram.one_bit import bit_answer, bit_parameters, perturb, signs_of
from anon.study.manifest import Survey
from peer.web.rendering import MARGIN, PERSON, people_filled
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator
from tests.support.visiting import visited

MECHANISMS = ("krr", "subset", "rappor", "pq")


BITS = DECLARED.replace("epsilon = 2.0", 'epsilon = 1.0\nasks = "bits"') + '\n[learning]\nclassifier = "additive"\n'


def with_mechanism(name: str) -> str:
    return DECLARED.replace("epsilon = 2.0", f'epsilon = 2.0\nmechanism = "{name}"')


def told(text: str) -> list[tuple[int, int]]:
    """Every "73 of 100" in a text as (73, 100)."""
    return [
        (int(count.replace(",", "")), int(per.replace(",", "")))
        for count, per in re.findall(r"([\d,]+) of ([\d,]+)(?= cases|[.,]| if)", text)
    ]


def close(said: tuple[int, int], numerator: int) -> bool:
    count, per = said
    return abs(Fraction(count, per) - Fraction(numerator, SCALE)) <= Fraction(1, 2 * per)


@given(some.integers(1, SCALE - 1))
def test_words_are_the_nearest_case_and_never_always_or_never(numerator: int) -> None:
    count, per = Probability(numerator).cases
    assert close((count, per), numerator) and (0 < count < per or per == 10**12)
    assert told(f"in {Probability(numerator)} cases") == [(count, per)]


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_states_its_p_and_q(name: str) -> None:
    manifest = FakeAggregator.with_study(with_mechanism(name)).manifest
    for survey in manifest.surveys:
        assert survey.mechanism == name
        built = survey.build()
        [line] = lines(survey)
        assert [one.numerator for one in line.chances] == [built.p, built.q]
        for said, numerator in zip(told(line.text)[-2:], (built.p, built.q), strict=True):
            assert close(said, numerator), line.text


def test_the_example_of_the_brief() -> None:
    """Four answers at epsilon ln(8.1): 73 of 100, each other one in 9."""
    assert str(Probability(round(0.73 * SCALE))) == "73 of 100" and str(Probability(round(0.09 * SCALE))) == "9 of 100"
    assert str(Probability(round(0.5 * SCALE))) == "50 of 100" and str(Probability(round(0.12 * SCALE))) == "12 of 100"
    assert (
        str(Probability(SCALE // 1000)) == "10 of 10,000"
        and str(Probability(SCALE - SCALE // 200000)) == "999,995 of 1,000,000"
    )


def _bit_survey() -> Survey:
    krr = FakeAggregator.with_study(with_mechanism("krr")).manifest.surveys[0]
    from anon.ldp import nano
    from anon.ldp.krr import RandomResponse

    built = RandomResponse.build(2, nano(1))
    return Survey(0, "bit", krr.features[:1], krr.cards[:1], 2, "krr", built.p, built.q, built.epsilon, krr.window,
                  parameters=bit_parameters(SCALE // 4, (-1,) * (krr.cards[0] - 1) + (1,)))


def test_a_one_bit_packet_states_rounding_and_response_together() -> None:
    survey = _bit_survey()
    first, yes, no = lines(survey)
    assert [one.numerator for one in first.chances] == [survey.p, survey.q]
    stated = [bit_chance(survey, sign, label) for sign, label in ((1, 1), (1, 0), (-1, 1), (-1, 0))]
    assert (*yes.chances, *no.chances) == tuple(stated)
    for line in (first, yes, no):
        assert all(close(said, one.numerator) for said, one in zip(told(line.text), line.chances, strict=True))
    assert max(one.numerator for one in stated) == survey.p  # what reaches +1 is never rounded away


@pytest.mark.parametrize(("sign", "label"), [(1, 1), (1, 0), (-1, 1), (-1, 0)])
def test_a_one_bit_packets_odds_are_what_the_mechanism_does(sign: int, label: int) -> None:
    """5,000 packets of each kind of record, beyond 5 standard deviations: a false alarm in about 2 of a million."""
    import hashlib

    survey, count = _bit_survey(), 5_000
    stream = hashlib.shake_256(b"bits %d %d" % (sign, label)).digest(count * 64)
    position = 0

    def random_bytes(size: int) -> bytes:
        nonlocal position
        position += size
        return stream[position - size : position]

    built = survey.build()
    plus = sum(built.tally([perturb(survey, bit_answer(sign, label), random_bytes)])[1] for _ in range(count))
    share = bit_chance(survey, sign, label).numerator / SCALE
    assert abs(plus / count - share) < 5 * (share * (1 - share) / count) ** 0.5


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_words_are_what_the_mechanism_does(name: str) -> None:
    """The said cases against 4,000 packets of the longest survey, beyond 5 standard deviations and the words' rounding:
    a false alarm in about 1 of a million for each mechanism."""
    import hashlib

    survey, count = max(FakeAggregator.with_study(with_mechanism(name)).manifest.surveys, key=lambda one: one.m), 4_000
    stream, position = hashlib.shake_256(name.encode()).digest(count * 2_000), 0

    def random_bytes(size: int) -> bytes:
        nonlocal position
        position += size
        assert position <= len(stream)
        return stream[position - size : position]

    built, true = survey.build(), survey.m // 2
    marks = built.tally([perturb(survey, RawCategory(true, survey.m), random_bytes) for _ in range(count)])
    [line] = lines(survey)
    for place, (cases, per) in (
        (true, told(line.text)[-2]),
        (0, told(line.text)[-1]),
        (survey.m - 1, told(line.text)[-1]),
    ):
        share = cases / per
        assert abs(int(marks[place]) / count - share) < 5 * (share * (1 - share) / count) ** 0.5 + 0.5 / per, (
            place,
            line.text,
        )


def test_a_real_study_of_bits_is_explained_by_a_bit_that_asks_about_a_feature() -> None:
    manifest = FakeAggregator.with_study(BITS).manifest
    assert {one.kind for one in manifest.surveys} == {"bit"}
    for kind in packet_kinds(manifest):
        assert -1 in signs_of(kind.survey) and len(kind.lines) == 3
        assert "“tired” alone" in kind.questions and any("“cups”: “many”" in one for one in kind.questions)
        for line in kind.lines:
            assert all(close(said, one.numerator) for said, one in zip(told(line.text), line.chances, strict=True))


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_the_screen_says_equals_the_manifest(name: str, tmp_path: Path) -> None:
    import asyncio

    async def screen() -> str:
        async with visited(tmp_path, with_mechanism(name)) as page:
            page.server.site.invites[page.aggregator.study] = page.aggregator.invite
            return (await page.get(page.invite)).text

    text = asyncio.run(screen())
    cards = text.split('class="card odds" data-survey="')[1:]
    assert cards
    manifest = FakeAggregator.with_study(with_mechanism(name)).manifest
    for card in cards:
        survey = manifest.surveys[int(card.partition('"')[0])]
        said = told(card.partition("</section>")[0].partition("</strong>")[2])
        assert close(said[-2], survey.build().p) and close(said[-1], survey.build().q)


def test_a_picture_is_drawn_to_the_exact_chance_and_rounded_in_words() -> None:
    for text in (DECLARED, BINNED, PAPER, BITS, *map(with_mechanism, MECHANISMS)):
        for kind in packet_kinds(FakeAggregator.with_study(text).manifest):
            assert kind.picture.chance.numerator == kind.survey.build().p
            assert kind.picture.chance.in_ten in kind.picture.text


async def test_the_screens_one_picture_is_of_the_questions_that_are_answered_truly_most_often(tmp_path: Path) -> None:
    kinds = packet_kinds(FakeAggregator.with_study(PAPER).manifest)
    least, *kinder = sorted((kind.picture for kind in kinds), key=lambda drawn: -drawn.chance.numerator)
    assert least.chance.numerator > kinds[0].picture.chance.numerator, "the likeliest kind is kinder"
    async with visited(tmp_path, PAPER) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        first = (await page.get(page.invite)).words.partition("All details")[0]
    assert least.text in first and "true most often" in first
    assert not any(drawn.text in first for drawn in kinder)


@pytest.mark.parametrize(("share", "words"), [
    (0.04, "fewer than 1 in 10"), (0.06, "about 1 in 10"), (0.73, "about 7 in 10"), (0.75, "about 8 in 10"),
    (0.949, "about 9 in 10"), (0.951, "more than 9 in 10"), (0.9999, "more than 9 in 10"),
])
def test_ten_people_are_counted_to_the_nearest_and_never_to_all_or_none(share: float, words: str) -> None:
    assert Probability(round(share * SCALE)).in_ten == words


@given(some.integers(0, SCALE))
def test_a_drawing_of_ten_people_is_filled_to_the_chance(numerator: int) -> None:
    """Of each person's width as much is filled as of that tenth."""
    person, rest = divmod(float(people_filled(Probability(numerator))), PERSON)
    within = min(max(rest - MARGIN, 0), PERSON - 2 * MARGIN) / (PERSON - 2 * MARGIN)
    assert abs((person + within) / 10 - numerator / SCALE) < 0.001


def test_every_survey_belongs_to_exactly_one_kind_and_the_likeliest_comes_first() -> None:
    manifest = FakeAggregator.with_study(BINNED).manifest
    kinds = packet_kinds(manifest)
    assert sum(kind.surveys for kind in kinds) == len(manifest.surveys)
    assert all(kind.drawn == "your one packet in 50 of 100 cases" for kind in kinds)
