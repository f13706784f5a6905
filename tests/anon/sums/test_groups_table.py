"""Averaging in groups around a table: who is drawn, what comes out, what each one sees, and what a bad message does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import hypot, sqrt
from random import Random

import pytest

from aggregator.protocols.sum.groups import EnsemblePart as Everybody
from aggregator.protocols.sum.groups import GroupSum, group_sums
from aggregator.protocols.sum.part import learned_of
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import page_of, read_page
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.outgoing import OpenShares
from anon.protocols.registry import charge_of
from anon.protocols.sum.groups import drawing
from anon.protocols.sum.groups.drawing import (
    KEYS,
    MODULUS,
    OPENED,
    SHARED,
    SHARES,
    TOLD,
    added,
    numbers,
    shares,
    spelled,
    survey_of,
    told,
)
from anon.protocols.sum.groups.layout import grouping_of, longest, weights_of, weights_survey
from anon.protocols.sum.vector import vector_of
from peer.protocols.sum import groups as peer_groups
from tests.support.climbing import apart
from tests.support.groups_study import HELD, MEMBERS, groups_study
from tests.support.groups_table import Table, manifest
from tests.support.oblivious_study import rows_of
from tests.support.oblivious_table import record

Rows = Sequence[tuple[object, ...]]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)


def weights(table: Table, member: int) -> list[int]:
    """The exact vector of a member."""
    return list(vector_of(table.study, weights_survey(table.study), record(table.held[member])))


def number_of(table: Table, tag: bytes) -> int:
    return table.tags.index(tag)


def sums(table: Table) -> list[GroupSum]:
    return list(group_sums(table.study, table.documents))


def says(*lies: tuple[int, int, Callable[[OpenShares], OpenShares | None]]) -> Callable[..., OpenShares | None]:
    """Members with other words: member, survey, and how."""

    def said(member: int, survey: int, made: OpenShares) -> OpenShares | None:
        for who, asked, lie in lies:
            if (who, asked) == (member, survey):
                return lie(made)
        return made

    return said


# The draw


@pytest.mark.parametrize(("size", "receivers", "many"), [(4, 2, 12), (5, 5, 12), (2, 2, 11), (6, 3, 11), (10, 2, 10)])
def test_groups_are_disjoint_hold_all_and_have_the_right_sizes(size: int, receivers: int, many: int) -> None:
    text = groups_study(group=size, receivers=receivers, minimum=10)
    table = Table(manifest(text), HELD[:many]).play(2)
    drawn = table.groups(0)
    assert Counter(tag for group in drawn for tag in group.members) == Counter(table.tags)
    assert [len(group.members) for group in drawn] == [size] * (many // size - 1) + [size + many % size]
    assert all(group.receivers == group.members[:receivers] for group in drawn)
    assert [group.number for group in drawn] == [*range(1, len(drawn) + 1)]


def test_each_aggregation_has_a_draw_of_its_own_and_all_find_the_same() -> None:
    """A draw of 12 members into three groups that comes twice has a chance below 1 in 5,000; the seed is fixed."""
    table, again = Table().play(), Table().play()
    assert table.documents == again.documents
    first, second = ([group.members for group in table.groups(number)] for number in range(2))
    assert {frozenset(one) for one in first} != {frozenset(one) for one in second}
    assert Table(seed=b"another").play(2).groups(0) != table.groups(0)


def test_receivers_are_drawn_evenly() -> None:
    """Of 400 draws each of 12 members is a receiver in half, within 5 standard deviations: 50. Seeds are fixed, and
    values are those of other studies."""
    seen = Counter[int]()
    for number in range(400):
        values = tuple((bytes([at]), drawing.value_of(b"%d" % at, number)) for at in range(12))
        for group in drawing._drawn(b"study", values, 0, 4, 2):
            seen.update(tag[0] for tag in group.receivers)
    assert len(seen) == 12 and all(abs(many - 200) < 50 for many in seen.values())


BROKEN = {
    "a value that was not committed": (OPENED, lambda made: OpenShares(bytes(32), ())),
    "away": (OPENED, lambda _made: None),
    "no key to seal to": (-1, lambda made: OpenShares(bytes(1216) + made.public[1216:], ())),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_that_breaks_its_word_is_in_no_group(name: str, quiet: None) -> None:
    """Everybody else is, and the aggregation after it has the member again, if it has a key."""
    step, lie = BROKEN[name]
    number = KEYS if step < 0 else survey_of(0, step)
    table = Table(says=says((3, number, lie))).play()
    there = [table.tags[3] in {tag for group in table.groups(at) for tag in group.members} for at in range(2)]
    assert there == [False, step >= 0]
    assert [len(group.members) for group in table.groups(0)] == [4, 7] and table.ended is None
    assert len(sums(table)) == (5 if step >= 0 else 4)


def test_nobody_can_copy_the_commitment_of_another() -> None:
    """Neither with its key nor with its value: the digest has the pseudonym."""
    honest = Table().play(2)
    keys, values = honest.pages()[KEYS].texts(KEYS), honest.pages()[1].texts(1)
    first = honest.tags[0]
    table = Table(says=says(
        (5, KEYS, lambda made: OpenShares(made.public[:1216] + keys[first][1216:], ())),
        (5, 1, lambda _made: OpenShares(values[first], ())),
    )).play(2)  # fmt: skip
    assert table.tags[5] not in drawing.pool(table.study.study_id, table.pages(), 0)


def test_a_value_is_hidden_by_its_commitment_and_of_one_aggregation() -> None:
    seed = b"s" * 32
    told = {drawing.value_of(seed, at) for at in range(10)}
    assert len(told) == 10 and all(len(value) == 32 for value in told)
    places = [(b"study", b"tag", 0), (b"other", b"tag", 0), (b"study", b"gat", 0), (b"study", b"tag", 1)]
    assert len({drawing.commitment(*place, b"v" * 32) for place in places}) == 4


# The sums


def test_without_noise_each_group_has_the_mean_of_its_members(quiet: None) -> None:
    """To the unit, in both aggregations; the ensemble has all six models."""
    table = Table().play()
    for one in sums(table):
        exact = tuple(map(sum, zip(*(weights(table, number_of(table, tag)) for tag in one.group.members), strict=True)))
        noisy = NoisySum(exact, len(one.group.members), Fraction(1), 1)
        assert one.model == learned_of(table.study, weights_survey(table.study), noisy).model and one.came == 4
    model = Everybody().learn(table.study, table.documents, {}).model
    assert isinstance(model, EnsembleModel) and [(one.aggregation, one.group) for one in model.models] == [
        (aggregation, group) for aggregation in (1, 2) for group in (1, 2, 3)
    ]


def test_published_sums_less_their_noise_are_exact_and_each_receiver_adds_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn, noise = list[tuple[Fraction, list[int]]](), DiscreteGaussian.vector

    def noted(self: DiscreteGaussian, length: int, random_bytes: Callable[[int], bytes]) -> list[int]:
        drawn.append((self.sigma_squared, noise(self, length, random_bytes)))
        return drawn[-1][1]

    monkeypatch.setattr(DiscreteGaussian, "vector", noted)
    table = Table().play()
    grouping = grouping_of(table.study.part)
    assert {variance for variance, _ in drawn} == {grouping.noise} and len(drawn) == 2 * 3 * 2
    assert len({tuple(vector) for _, vector in drawn}) == len(drawn)
    total = [sum(entries) for entries in zip(*(vector for _, vector in drawn), strict=True)]
    exact = [2 * sum(entries) for entries in zip(*(weights(table, at) for at in range(MEMBERS)), strict=True)]
    published = [told(table.pages(), group) for at in range(2) for group in table.groups(at)]
    assert [sum(entries) for entries in zip(*published, strict=True)] == [  # type: ignore[arg-type]
        one + other for one, other in zip(exact, total, strict=True)
    ]


def test_noise_rests_on_what_is_added_up_and_on_secret_bytes() -> None:
    """One sum has another noise by other bytes, and two sums have no noise in common."""
    table, told_then = Table().play(), list[bytes]()
    receiver, survey = table.groups(0)[0].receivers[0], table.study.survey(survey_of(0, TOLD))

    def heard(_member: int, _survey: int, made: OpenShares) -> None:
        told_then.append(made.public)

    table.says = heard
    for seed in (b"table", b"table", b"other"):
        table.seed = seed
        table.packet(survey, number_of(table, receiver))
    assert told_then[0] == told_then[1] != told_then[2] and any(told_then[2])
    noise, mail = list[list[int]](), table.mail[receiver]
    for own in (mail[survey_of(0, SHARES), receiver], spelled([1, 2, 3])):
        mail[survey_of(0, SHARES), receiver] = own
        table.packet(survey, number_of(table, receiver))
        total = added([mail[survey_of(0, SHARES), tag] for tag in table.groups(0)[0].members])
        noise.append(added([told_then[-1], spelled([-entry for entry in total])]))
    assert noise[0] != noise[1] and all(max(map(abs, one)) < 2**40 for one in noise)


def test_shares_rest_on_what_they_are_of() -> None:
    """Two copies of a home with other records have no share in common, whose difference would be plain."""
    firsts = [shares(values, 2, seed)[0] for values, seed in (([1, 2], b"s"), ([1, 3], b"s"), ([1, 2], b"t"))]
    assert len(set(firsts)) == 3


@pytest.mark.parametrize("many", [2, 3, 5])
def test_shares_add_up_and_all_but_one_are_uniform(many: int) -> None:
    """Chi-square over the 16 values of the highest four bits of 2,000 entries of each share, at 45: below 1e-4 for each
    of 10 by chance. Seeds are fixed."""
    values, counts = [5, -3, -(2**61)], [Counter[int]() for _ in range(many)]
    for number in range(667):
        parts = shares(values, many, b"%d" % number)
        assert added(parts) == values
        for count, part in zip(counts, parts, strict=True):
            count.update(entry >> 60 for entry in numbers(part))
    for count in counts:
        expected = count.total() / 16
        assert sum((count[at] - expected) ** 2 / expected for at in range(16)) < 45


GONE = {
    "away when sums are told": (TOLD, lambda _made: None),
    "zeros in place of a sum": (TOLD, lambda made: OpenShares(bytes(len(made.public)), ())),
    "away when shares are sent": (SHARES, lambda _made: None),
}


@pytest.mark.parametrize("name", GONE)
def test_a_receiver_that_vanishes_takes_its_groups_model_alone(name: str, quiet: None) -> None:
    step, lie = GONE[name]
    plain = Table().play(2).groups(0)
    receiver = number_of(Table(), plain[1].receivers[1])
    table = Table(says=says((receiver, survey_of(0, step), lie))).play()
    missing = [(one.group.aggregation, one.group.number) for one in sums(table) if one.model is None]
    assert missing == [(0, 2)] and len(sums(table)) == 6 and table.ended is None
    assert all("receiver" in one.without for one in sums(table) if one.model is None)


def test_a_member_that_vanishes_is_left_out_of_its_group(quiet: None) -> None:
    plain = Table().play(2).groups(0)
    gone = number_of(Table(), plain[0].members[3])
    table = Table(says=says((gone, survey_of(0, SHARES), lambda _made: None))).play()
    first = sums(table)[0]
    others = [weights(table, number_of(table, tag)) for tag in plain[0].members[:3]]
    assert first.came == 3 and told(table.pages(), first.group) == [sum(one) for one in zip(*others, strict=True)]


def test_more_than_half_of_a_group_must_come(quiet: None) -> None:
    """A group of four: with two it has a model, with one it has none."""
    plain = Table().play(2).groups(0)[0]
    for away, has in ((plain.members[2:], True), ((*plain.members[2:], plain.members[1]), False)):
        lies = [(number_of(Table(), tag), survey_of(0, SHARES), _away) for tag in away]
        assert (sums(Table(says=says(*lies)).play())[0].model is not None) == has


def _away(_made: OpenShares) -> None:
    return None


# The end


def test_too_few_for_a_group_end_it_in_the_first_rounds() -> None:
    assert Table(held=HELD[:3]).play().ended == KEYS
    lies = [(member, survey_of(0, OPENED), _away) for member in range(MEMBERS - 3)]
    assert Table(says=says(*lies)).play().ended == survey_of(0, OPENED)


def test_too_few_later_take_nothing_from_what_is_there(quiet: None) -> None:
    """The second aggregation has no group: nobody reads anything, and all texts are zeros."""
    lies = [(member, survey_of(1, OPENED), _away) for member in range(MEMBERS - 3)]
    table = Table(says=says(*lies)).play()
    assert table.ended is None and table.groups(1) == () and len(sums(table)) == 3
    for step in (SHARES, TOLD):
        texts = table.pages()[survey_of(1, step)].texts(survey_of(1, step))
        assert len(texts) == 3 and not any(map(any, texts.values()))


def test_without_any_model_it_ends_after_the_last_round() -> None:
    def nothing(_member: int, survey: int, made: OpenShares) -> OpenShares:
        return OpenShares(bytes(len(made.public)), ()) if survey in (3, 6) else made

    table = Table(says=nothing).play()
    assert table.ended == survey_of(1, TOLD)
    with pytest.raises(Malformed, match="no group"):
        Everybody().learn(table.study, table.documents, {})


# Lies


def lied(lie: Callable[[OpenShares], OpenShares]) -> tuple[Table, list[GroupSum]]:
    """A member of the second group, no receiver, that sends other shares in the first aggregation."""
    liar = number_of(Table(), Table().play(2).groups(0)[1].members[2])
    table = Table(says=says((liar, survey_of(0, SHARES), lie))).play()
    return table, sums(table)


def test_weights_longer_than_can_be_are_left_out_with_the_reason() -> None:
    """A liar adds 2^60 to one entry: its group has no model, and every other has."""
    table, found = lied(lambda made: OpenShares(made.public, (made.shares[0], spelled([2**60, 0, 0]))))
    left_out = [(one.group.aggregation, one.group.number, one.without) for one in found if one.without]
    assert [one[:2] for one in left_out] == [(0, 2)] and "longer" in left_out[0][2]
    report = Everybody().report(table.study, Everybody().learn(table.study, table.documents, {}))
    assert [one.without for one in report.values["groups"]].count(left_out[0][2]) == 1  # type: ignore[attr-defined]


def test_a_liar_within_the_length_moves_its_groups_mean_by_twice_the_longest_weights_at_most(quiet: None) -> None:
    """As `docs/threats.md` says: nothing proves that weights are those of records."""
    study = manifest()
    shape, grouping = weights_of(weights_survey(study)), grouping_of(study.part)
    reach = int(longest(shape, 4, grouping) - 4 * sqrt(shape.contribution_norm_squared) * 0.9)
    _, found = lied(lambda made: OpenShares(made.public, shares([reach, 0, 0], 2, b"lie")))  # type: ignore[arg-type]
    (other,) = [one for one in sums(Table().play()) if (one.group.aggregation, one.group.number) == (0, 2)]
    moved = next(one for one in found if one.group == other.group)
    assert moved.model is not None and other.model is not None and moved.model != other.model
    assert moved.length <= shape.mean([int(longest(shape, 4, grouping)) + 1, 0, 0], 4)[0]


def test_no_honest_groups_sum_is_too_long() -> None:
    """Noise beyond the bound has a chance of e^-14 for each: of 3,000 sums a wrong alarm has .25 %. Seeds are fixed."""
    study, spring = manifest(), Random(4)
    shape, grouping = weights_of(weights_survey(study)), grouping_of(study.part)
    bound, reach = longest(shape, 4, grouping), sqrt(shape.contribution_norm_squared)
    deviation, longest_seen = sqrt(grouping.noise * grouping.receivers), 0.0
    for _ in range(3000):
        entry = hypot(*(spring.gauss(0, deviation) for _ in range(shape.length)))
        longest_seen = max(longest_seen, 4 * reach + entry)
    assert 0.6 * (bound - 4 * reach) < longest_seen - 4 * reach < bound - 4 * reach


BAD_LETTERS = {
    "shorter": lambda made: OpenShares(made.public, (made.shares[0][:-8], made.shares[1])),
    "of another length": lambda made: OpenShares(made.public, (made.shares[0] + b"\0", made.shares[1])),
    "empty": lambda made: OpenShares(made.public, (b"", made.shares[1])),
}


@pytest.mark.parametrize("name", BAD_LETTERS)
def test_a_letter_that_does_not_open_takes_its_groups_model_alone(name: str) -> None:
    """A receiver that cannot add up tells zeros: no group has a sum in which a share is missing."""
    _, found = lied(BAD_LETTERS[name])
    assert [(one.group.aggregation, one.group.number) for one in found if one.model is None] == [(0, 2)]


def test_one_that_says_it_sent_nothing_is_left_out() -> None:
    _, found = lied(lambda made: OpenShares(b"\2", made.shares))
    assert [one.came for one in found] == [4, 3, 4, 4, 4, 4] and all(one.model for one in found)


def test_pages_that_are_cut_replayed_or_of_another_round_are_refused() -> None:
    table = Table().play()
    page = table.documents[page_of(2)]
    others = ((2, page[:-1]), (2, page + b"\0"), (5, page), (3, page), (2, table.documents[page_of(5)]))
    for number, body in others:
        with pytest.raises(Malformed):
            read_page(table.study, number, body)


def test_values_of_another_aggregation_draw_nobody() -> None:
    """A page of values that is told again fits no commitment."""
    values = Table().play(2).pages()[1].texts(1)

    def again(member: int, survey: int, made: OpenShares) -> OpenShares:
        return OpenShares(values[Table().tags[member]], ()) if survey == survey_of(1, OPENED) else made

    table = Table(says=again).play()
    assert table.groups(1) == () and len(table.groups(0)) == 3


# Views


def seen(table: Table, reader: int) -> list[bytes]:
    """All that a member can read: its letters, and every document."""
    return [*table.mail.get(table.tags[reader], {}).values(), *table.documents.values()]


def test_nobody_sees_the_weights_of_another() -> None:
    """No vector stands in any letter or document as it is."""
    table = Table().play()
    needles = [spelled(weights(table, member)) for member in range(MEMBERS)]
    assert not any(needle in text for reader in range(MEMBERS) for text in seen(table, reader) for needle in needles)


def test_a_planted_leak_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that does not cut its weights is found by the search above."""
    monkeypatch.setattr(
        peer_groups.drawing, "shares", lambda values, many, _seed: [spelled(values), *[bytes(24)] * (many - 1)]
    )
    with pytest.raises(AssertionError):
        test_nobody_sees_the_weights_of_another()


def test_letters_reach_the_receivers_of_the_own_group_alone() -> None:
    table = Table().play()
    for aggregation in range(2):
        for group in table.groups(aggregation):
            for tag in group.members:
                readers = {
                    reader for reader, mail in table.mail.items() if (survey_of(aggregation, SHARES), tag) in mail
                }
                assert readers == set(group.receivers)


OTHERS = tuple(rows_of(90 + number, 5 + number % 7) for number in range(MEMBERS))


@pytest.mark.parametrize("honest", range(3))
def test_all_receivers_but_one_see_the_same_of_others_data(monkeypatch: pytest.MonkeyPatch, honest: int) -> None:
    """Two sets of data, and random numbers that are as likely: the two other receivers' letters are the same to the
    byte, and so are all texts but the honest receiver's, under its noise."""
    cut, views = shares, list[object]()
    for held in (HELD, OTHERS):

        def moved(values: Sequence[int], many: int, seed: bytes) -> list[bytes]:
            parts = cut([0] * len(values), many, seed)
            own = [entry + value for entry, value in zip(numbers(parts[honest]), values, strict=True)]
            return [spelled(own) if at == honest else part for at, part in enumerate(parts)]

        monkeypatch.setattr(peer_groups.drawing, "shares", moved)
        table = Table(manifest(groups_study(receivers=3)), held).play()
        place, mail, texts = survey_of(0, SHARES), list[bytes](), dict[bytes, bytes]()
        for group in table.groups(0):
            others = [tag for tag in group.receivers if tag != group.receivers[honest]]
            mail += [table.mail[tag][place, writer] for tag in others for writer in group.members]
            said = table.pages()[survey_of(0, TOLD)].texts(survey_of(0, TOLD))
            texts |= {tag: text for tag, text in said.items() if tag != group.receivers[honest]} if not texts else {}
            texts.pop(group.receivers[honest], None)
        views.append((mail, texts, {number: table.documents[page_of(number)] for number in range(3)}))
    assert views[0] == views[1]


def test_all_packets_of_a_round_have_one_length_whatever_the_role() -> None:
    """Of members in groups, receivers, and one in no group: what leaves depends on no record and no role."""
    table = Table(says=says((3, survey_of(0, OPENED), lambda made: OpenShares(bytes(32), ())))).play()
    for number in range(7):
        packets = table.pages()[number].packets
        assert len({len(packet.to_bytes()) for packet in packets}) == 1 and len(packets) == MEMBERS
    empty = Table(held=((), *HELD[1:])).play()
    assert {number: len(body) for number, body in empty.documents.items()} == {
        number: len(body) for number, body in table.documents.items()
    }


# The charge


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["record", "person"])
def test_no_change_of_one_unit_passes_the_sensitivity_that_is_charged(
    unit: str, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record of a member, or all of them, are replaced by the ends of all ranges: one group of each aggregation
    moves, and no farther. The draw does not move. A search over vectors alone is in `test_party_sensitivity.py`."""
    study = manifest(groups_study(unit=unit))
    shape, grouping = weights_of(weights_survey(study)), grouping_of(study.part)
    limit, largest = shape.sensitivity_squared("replace-one"), 0
    assert charge_of(study).amount >= Fraction(2 * limit * 10**9) / (2 * grouping.noise) > charge_of(study).amount - 3
    for trial in range(24):
        spring, before, after = Random(trial), list[Rows](HELD), list[Rows](HELD)
        corners = [(age, sleep, tired) for age in (0, 100) for sleep in (0, 12) for tired in (0, 1)]
        one, other = ([(day, *corner) for day in range(3)] for corner in spring.sample(corners, 2))
        before[0], after[0] = one, (other if unit == "person" else [*one[:2], (2, *other[0][1:])])
        tables = [Table(study, tuple(held)).play() for held in (before, after)]
        for aggregation in range(2):
            groups, same = (table.groups(aggregation) for table in tables)
            assert groups == same
            moved = [apart(*(told(table.pages(), group) for table in tables)) for group in groups]  # type: ignore[arg-type]
            assert sum(map(bool, moved)) <= 1 and max(moved) <= limit
            largest = max(largest, *moved)
    assert sqrt(largest) > (0.4 if unit == "person" else 0.15) * sqrt(limit)


def test_whoever_is_in_no_group_is_shown_no_record_and_pays_nothing() -> None:
    table = Table(says=says((3, survey_of(0, OPENED), lambda made: OpenShares(bytes(32), ())))).play(2)
    part, survey = peer_groups.GroupsPart(), table.study.survey(survey_of(0, SHARES))
    reads = [part.reads(table.study, survey, tag, table.pages()) for tag in table.tags]
    assert reads == [member != 3 for member in range(MEMBERS)]
    assert not part.reads(table.study, survey, table.tags[0], {})


def test_entries_are_read_with_their_sign() -> None:
    assert added([spelled([-1, MODULUS // 2]), spelled([-1, 0])]) == [-2, -MODULUS // 2]
    assert SHARED == b"\1"
