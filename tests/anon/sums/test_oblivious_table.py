"""Oblivious averaging around a table: what comes out, what each one sees, and what a bad message does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest
from attrs import evolve

from aggregator.protocols.sum.oblivious import NOTHING, CharliePart, _Seat
from aggregator.protocols.sum.part import learned_of
from aggregator.protocols.sum.published import NoisySum
from anon.crypto import curve
from anon.errors import Malformed
from anon.protocols.board import page_of, read_page
from anon.protocols.contract import DocumentArrived
from anon.protocols.models.linear import LinearModel
from anon.protocols.outgoing import OpenShares
from anon.protocols.resolve import resolve
from anon.protocols.sum.oblivious import comparing
from anon.protocols.sum.oblivious.l2_laplace import L2Laplace
from anon.protocols.sum.oblivious.messages import (
    AGREED,
    COMPARED,
    KEYS,
    NOISE,
    OPENING,
    PERMUTED,
    POSTED,
    ROUND_OF,
    SEATS,
    SHARES,
    SHORT,
    frame_of,
    numbers,
    pairs,
    parties_key,
    spelled,
    weights_survey,
)
from anon.protocols.sum.oblivious.paillier import PaillierSecret
from anon.protocols.sum.oblivious.sections import MOST as MOST_PARTIES
from anon.protocols.sum.vector import vector_of
from anon.wire.letters import AGGREGATOR
from peer.protocols.sum import oblivious
from peer.protocols.sum.oblivious import ObliviousPart
from tests.support.letters_study import KEYS as STUDY_KEYS
from tests.support.oblivious_study import HELD, LEAST, MOST, SIZES, rows_of
from tests.support.oblivious_table import Table, played, record
from tests.support.protocols import parse_proposal
from tests.support.sums import many, sum_study
from tests.support.tries import every

Rows = Sequence[tuple[object, ...]]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(L2Laplace, "vector", lambda _self, length, _random: [0] * length)


def model_of(table: Table) -> LinearModel:
    model = CharliePart().learn(table.study, table.documents, {}).model
    assert isinstance(model, LinearModel)
    return model


@pytest.mark.parametrize("held", every(2, [HELD, HELD[:3], HELD[::-1][:4], (*HELD[:2], *HELD[:2])]), ids=len)
@pytest.mark.slow
def test_without_noise_it_is_the_mean_that_averaging_gives(quiet: None, held: Sequence[Rows]) -> None:
    """To the unit: both sum the same integers. Averaging is the design of `sum`, whose tellers add noise."""
    text = Table().study
    table = Table(evolve(text, cohort=evolve(text.cohort, minimum=3)), held).play()
    keys = f"{many(MOST)}\nleast_records = {LEAST}"
    other = resolve(
        parse_proposal(sum_study('kind = "averaging"\nepsilon = 1.0\nstrength = 0.1', keys=keys)), STUDY_KEYS, 0
    )
    vectors = [vector_of(other, other.surveys[0], record(rows)) for rows in held]
    total = tuple(sum(entries) for entries in zip(*vectors, strict=True))
    expected = learned_of(other, other.surveys[0], NoisySum(total, len(held), Fraction(1), 1)).model
    model = model_of(table)
    assert (model.weights, model.intercept) == (expected.weights, expected.intercept)


@pytest.mark.slow
def test_a_member_that_is_no_party_changes_nothing(quiet: None) -> None:
    """One that was away in the first round still posts, since every posted text leaves: zeros."""
    expected, table = model_of(Table().play()), Table()
    table.mail[AGGREGATOR] = {(POSTED, b"\x01" * 48): bytes(1 + SHORT)}
    assert model_of(table.play()) == expected


# Views


def key_of(table: Table) -> PaillierSecret:
    """The key of the seat."""
    return _Seat(table.study, table.drawn("seat")(32), {}, {}).key


def read(table: Table) -> dict[int, object]:
    return {number: read_page(table.study, number, table.documents[page_of(number)]) for number in range(7)}


def texts(table: Table, survey: int) -> list[bytes]:
    return list(read(table)[ROUND_OF[survey]].texts(survey).values())


def seen_by_the_seat(table: Table) -> Mapping[str, object]:
    """All that the aggregator can read, with every secret of its own: letters, texts, plaintexts under its keys. Left
    out are ciphertexts under the parties' key alone."""
    frame, key = frame_of(table.study), key_of(table)
    point = _Seat(table.study, table.drawn("seat")(32), {}, {}).point
    replies = []
    for at in range(len(pairs(len(table.held)))):
        text = texts(table, COMPARED)[at % len(table.held)]
        points = comparing.parsed(text[at // len(table.held) * frame.question :][: frame.question])
        replies.append(
            sum(points[place] * point == points[place + 1] for place in range(0, len(points), 2))
        )
    masked = [key.decrypt(one) for one in numbers(texts(table, OPENING)[0][frame.vector :], 2 * frame.modulus)]
    return {
        "letters": sorted(table.mail[AGGREGATOR].items()),
        "zeros of comparisons": replies,
        "masked noise": masked,
        "sums": [text[: frame.vector] for text in texts(table, OPENING)],
        "own sum": table.documents[SEATS[6]],
        "texts": [texts(table, survey) for survey in (KEYS, AGREED, SHARES, NOISE)],
    }


OTHERS = tuple(rows_of(90 + number, size) for number, size in enumerate((15, 5, 20, 8, 5)))
"""Other records, in other numbers, whose order is that of `HELD`."""


def weights(table: Table) -> list[list[int]]:
    return [list(vector_of(table.study, weights_survey(table.study), record(rows))) for rows in table.held]


@pytest.mark.slow
def test_the_aggregator_sees_the_same_of_other_sizes_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sets of data, of one order of sizes and one published mean, and random numbers that are as likely: the seat
    reads the same to the byte. So nothing in it determines a size or a model.

    Of the second set each party draws another a, the first another mask, and each another share for the second party.
    """
    monkeypatch.setattr(oblivious._Party, "_size", _size_of(lambda _party: 0))
    one = Table()
    frame, n = frame_of(one.study), key_of(one).public.n
    moved = [
        [after - before for before, after in zip(first, second, strict=True)]
        for first, second in zip(weights(one), weights(Table(held=OTHERS)), strict=True)
    ]
    total = [sum(column) for column in zip(*moved, strict=True)]
    noise = {"now": [5] * len(total)}
    monkeypatch.setattr(L2Laplace, "vector", lambda _self, _length, _random: noise["now"])
    view = seen_by_the_seat(one.play())
    # The other set: the noise that gives the same mean, and what hides it, moved by as much.
    noise["now"] = [5 - entry for entry in total]
    larger = [len(other) - len(held) for held, other in zip(HELD, OTHERS, strict=True)]
    monkeypatch.setattr(oblivious._Party, "_size", _size_of(lambda party: larger[party]))
    masks, shares = oblivious._Party._mask, oblivious._Party.shares

    def mask(self):
        (shift,) = frame.packed(total)
        return [(hidden + shift) % n for hidden in masks(self)]

    def share(self, held, random_bytes):
        *letters, last = shares(self, held, random_bytes)
        of_first = [own - all_of_it for own, all_of_it in zip(moved[0], total, strict=True)]
        shift = frame.packed(moved[self.number] if self.number else of_first)
        letters[1] = _plus(letters[1], shift, n, frame.modulus)
        return [*letters, _plus(last, [-one for one in shift], n, frame.modulus)]

    monkeypatch.setattr(oblivious._Party, "_mask", mask)
    monkeypatch.setattr(oblivious._Party, "shares", share)
    other = Table(held=OTHERS).play()
    assert seen_by_the_seat(other) == view
    assert model_of(other) == model_of(one)


def _plus(letter: bytes, shift: Sequence[int], n: int, size: int) -> bytes:
    parts = [(part + by) % n for part, by in zip(numbers(letter[2 * SHORT :], size), shift, strict=True)]
    return letter[: 2 * SHORT] + spelled(parts, size)


def _size_of(larger):
    """As a party finds its size, with a that is moved as its size is: b stays."""

    def size_of(self, held):
        size = max(len(held.rows), self.shape.fewest)
        told = oblivious.stream("size", self.seed)(SHORT)
        return size, (int.from_bytes(told, "big") + larger(self.number)) % self.modulus

    return size_of


@pytest.mark.slow
@pytest.mark.parametrize("who", every(4, range(len(SIZES))))
def test_a_party_sees_the_same_of_others_data(monkeypatch: pytest.MonkeyPatch, who: int) -> None:
    """Its own data stay, all others' change, and with them b, and what the seat is sent. Whatever it can open, and all
    texts that are no ciphertexts under the seat's key, are the same to the byte."""
    monkeypatch.setattr(oblivious._Party, "_size", _size_of(lambda _party: 0))
    monkeypatch.setattr(L2Laplace, "vector", lambda _self, length, _random: [3] * length)
    views = []
    for others in (HELD, OTHERS):
        held = tuple(HELD[who] if number == who else others[number] for number in range(len(SIZES)))
        table = Table(held=held).play()
        frame, letters = frame_of(table.study), dict(table.mail[table.tags[who]])
        key = parties_key(read(table))
        p = int.from_bytes(letters[AGREED, table.tags[0]][10:], "big")
        sizes = numbers(table.documents[SEATS[3]][: 2 * frame.modulus * len(held)], 2 * frame.modulus)
        blinded = [PaillierSecret(p, key.n // p).decrypt(one) % (1 << frame.bits) for one in sizes]
        hidden = [PaillierSecret(p, key.n // p).decrypt(int.from_bytes(text, "big")) for text in texts(table, PERMUTED)]
        told = [text[: frame.vector] for text in texts(table, OPENING)]
        opened = {place: letter for place, letter in letters.items() if place[0] != NOISE}
        views.append((opened, sorted(blinded), hidden, told, texts(table, AGREED), texts(table, SHARES)))
    assert views[0] == views[1]


@pytest.mark.slow
def test_choices_and_noise_are_under_the_seats_key_with_fresh_randomness() -> None:
    """No two ciphertexts under it are alike, and none is a product of earlier ones alone."""
    table = played()
    frame, first = frame_of(table.study), table.mail[table.tags[0]]
    chosen = numbers(table.documents[SEATS[4]], 2 * frame.modulus)
    sent = [int.from_bytes(first[NOISE, tag], "big") for tag in table.tags]
    key = key_of(table)
    assert sorted(map(key.decrypt, chosen)) == [0, 0, 0, 0, 1] and len({*chosen, *sent}) == 10
    assert sorted(map(bool, map(key.decrypt, sent))) == [False] * 4 + [True]


def test_the_seat_blinds_what_parties_told() -> None:
    """The same ciphertexts never come back, and what is in them is moved."""
    table = Table().play(4)
    frame = frame_of(table.study)
    told = [int.from_bytes(text, "big") for text in texts_until(table, PERMUTED)]
    p = int.from_bytes(table.mail[table.tags[1]][AGREED, table.tags[0]][10:], "big")
    key = PaillierSecret(p, int.from_bytes(texts_until(table, AGREED)[0], "big") // p)
    back = numbers(table.documents[SEATS[3]][: 2 * frame.modulus * len(told)], 2 * frame.modulus)
    assert not {*told} & {*back}
    assert not {key.decrypt(one) % (1 << frame.bits) for one in told} >= {
        key.decrypt(one) % (1 << frame.bits) for one in back
    }
    # Parties who know the key find no randomness of theirs in what comes back.
    randomness = [{pow(one % key.p, key.q, key.p) for one in ciphers} for ciphers in (told, back)]
    assert not randomness[0] & randomness[1]


def texts_until(table: Table, survey: int) -> list[bytes]:
    number = ROUND_OF[survey]
    return list(read_page(table.study, number, table.documents[page_of(number)]).texts(survey).values())


# Bad messages


@pytest.mark.parametrize(
    ("survey", "party"), every(3, [AGREED, SHARES, POSTED, PERMUTED, COMPARED, NOISE, OPENING], [0, 3])
)
def test_zeros_of_a_party_end_the_study(survey: int, party: int) -> None:
    """It lacked something, or lies. Zeros of `AGREED` are all that any but the first says; a posting is found missing
    by the seat."""

    def says(who: int, asked: int, made: OpenShares) -> OpenShares:
        empty = OpenShares(bytes(len(made.public)), tuple(bytes(len(letter)) for letter in made.shares))
        return empty if (who, asked) == (party, survey) else made

    ends = None if (survey, party) == (AGREED, 3) else max(ROUND_OF[survey], 3 if survey == POSTED else 0)
    table = Table(says=says).play()
    assert table.ended == ends
    if ends in SEATS:
        assert table.documents[SEATS[ends]] == NOTHING
    if ends is not None:
        with pytest.raises((Malformed, KeyError)):
            model_of(table)


def square(made: OpenShares) -> OpenShares:
    """The square of its prime, which the letters tell."""
    p = int.from_bytes(made.shares[0][MOST_PARTIES:], "big")
    return OpenShares(spelled([p * p], len(made.public)), made.shares)


BAD = {
    "another's number": (POSTED, lambda made: OpenShares(made.public, (b"\1" + made.shares[0][1:],)), 3),
    "a number that nobody has": (POSTED, lambda made: OpenShares(made.public, (b"\xff" + made.shares[0][1:],)), 3),
    "no ciphertext": (PERMUTED, lambda made: OpenShares(b"\xff" * len(made.public), ()), 3),
    "points off the curve": (COMPARED, lambda made: OpenShares(b"\xc0" * len(made.public), ()), 4),
    "the first point alone": (COMPARED, lambda made: OpenShares(made.public[:48] + bytes(1104), ()), 4),
    "a text that is not said": (SHARES, lambda made: OpenShares(b"\2", made.shares), 2),
    "letters that say nothing": (
        AGREED, lambda made: OpenShares(made.public, tuple(bytes(len(letter)) for letter in made.shares)), 2
    ),
    "a square for a modulus": (AGREED, lambda made: square(made), 2),
    "a modulus of fewer bits": (AGREED, lambda made: OpenShares(b"\1" + made.public[1:], made.shares), 1),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_a_bad_message_ends_the_study_in_its_round(name: str) -> None:
    survey, lie, ends = BAD[name]

    def says(who: int, asked: int, made: OpenShares) -> OpenShares:
        return lie(made) if (who, asked) == (0, survey) else made

    assert Table(says=says).play().ended == ends


@pytest.mark.slow
def test_a_party_that_wrote_no_size_draws_no_noise() -> None:
    """Its shares were missing, and a host went on all the same."""
    table, said = Table().play(5), list[OpenShares]()
    tag = table.tags[1]
    table.mail[tag][SHARES, tag] = bytes(len(table.mail[tag][SHARES, tag]))

    def heard(_party: int, _survey: int, made: OpenShares) -> OpenShares:
        said.append(made)
        return made

    table.says = heard
    table.packet(table.study.survey(NOISE), 1)
    assert not any(any(part) for part in (said[0].public, *said[0].shares))


def test_a_party_too_few_ends_it_in_the_first_round() -> None:
    assert Table(held=HELD[:4]).play().ended == 0


@pytest.mark.slow
def test_pages_that_are_cut_replayed_or_of_another_round_are_refused() -> None:
    table = played()
    page = table.documents[page_of(3)]
    for number, body in ((3, page[:-1]), (3, page + b"\0"), (4, page), (2, page), (3, table.documents[page_of(5)])):
        with pytest.raises(Malformed):
            read_page(table.study, number, body)


@pytest.mark.parametrize("number", every(3, [1, 3, 4]))
@pytest.mark.slow
def test_what_the_seat_never_says_is_refused(number: int) -> None:
    """Cut, longer, or of another round; keys of fewer bits, or even ones."""
    table, part = played(), ObliviousPart()
    said = table.documents[SEATS[number]]
    bad = [said[:-1], said + b"\0", b"", table.documents[SEATS[{1: 3, 3: 4, 4: 1}[number]]]]
    bad += [b"\1" + said[1:], said[:63] + bytes([said[63] ^ 1]) + said[64:]] if number == 1 else []
    for body in bad:
        documents = [DocumentArrived(*place, one) for place, one in (table.documents | {SEATS[number]: body}).items()]
        with pytest.raises(Malformed):
            part.check_documents(table.study, documents)
    part.check_documents(table.study, [DocumentArrived(*place, one) for place, one in table.documents.items()])


@pytest.mark.slow
def test_questions_that_cannot_be_read_stop_a_party() -> None:
    table = Table().play(4)
    table.documents[SEATS[3]] = table.documents[SEATS[3]][:-48] + curve.encode_g1(curve.IDENTITY_G1)
    with pytest.raises(Malformed):
        for party in range(len(HELD)):
            table.packet(table.study.survey(COMPARED), party)


@pytest.mark.slow
def test_the_same_randomness_gives_the_same_bytes() -> None:
    assert Table().play().documents == played().documents
    assert Table().play().documents != Table(seed=b"another").play().documents


@pytest.mark.slow
def test_a_size_that_was_late_is_the_one_that_noise_is_drawn_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party whose records were not read in time counts as one of the fewest: its noise is for so few too, though its
    records are there later."""
    scales = []

    def vector(self, length, _random):
        scales.append(self.scale)
        return [0] * length

    monkeypatch.setattr(L2Laplace, "vector", vector)
    table = Table(held=((), *HELD[1:])).play(5)
    table.held = HELD
    table.packet(table.study.survey(NOISE), 0)
    expected = oblivious.messages.spread(
        oblivious.messages.weights_of(weights_survey(table.study)), LEAST, table.study.epsilon
    )
    assert scales == [expected]
