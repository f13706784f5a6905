"""Tokens with announcements: equal to those with the challenge, and one verdict from a batch and from a check alone."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

import pytest

from anon.credential import Tag, Verifier, present
from anon.credential.ciphersuite import P1
from anon.credential.presentation import encode_token
from anon.credential.statement import make_context, nym_statement
from anon.credential.verification import announce, fixed_context, statement_bases
from anon.crypto.curve import (
    G1,
    IDENTITY_G1,
    LEAST_TOGETHER,
    ORDER,
    Scalar,
    decode_g1,
    decode_g1_rows,
    decode_g1_wide,
    encode_g1,
    encode_g1_wide,
    encode_scalar,
    hash_to_g1,
)
from anon.crypto.curve.subset_sums import BYTES_EACH, all_in_subgroup
from anon.errors import AnonmlError, Malformed, RejectedProof
from benchmarks.vectors.small_orders import COFACTOR_PRIMES, torsion
from tests.anon.credential.draft_form import announce_nym, decode_proof, demand_challenge, draft_token, drafted
from tests.anon.credential.token_forgery import (
    CONTEXT,
    HEADER,
    ORDER_THREE,
    POINTS_END,
    PRESENTATION,
    SEVEN,
    Member,
    crafted,
    enrol,
    fields,
    forged_without_credential,
    random_scalar,
    span,
    with_field,
)

Item = tuple[bytes, bytes, bytes]
SIZE = LEAST_TOGETHER


@pytest.fixture(scope="module")
def second(member: Member) -> Verifier:
    return Verifier(member.public_key, HEADER, 1)


@pytest.fixture(scope="module")
def good(member: Member) -> list[Item]:
    """Enough for one test of all points' subgroup."""
    places = [(b"slot %d" % (number % 3), b"packet %d" % number) for number in range(SIZE)]
    items = [(present(member.credential, *place, os.urandom), *place) for place in places]
    return items


def alone(verifier: Verifier, item: Item) -> Tag | AnonmlError:
    try:
        return verifier.check(*item)
    except AnonmlError as error:
        return error


def said(outcome: Tag | AnonmlError) -> bytes | str:
    return type(outcome).__name__ if isinstance(outcome, AnonmlError) else bytes(outcome)


def among(good: Sequence[Item], bad: Sequence[Item]) -> list[Item]:
    """The bad ones in fixed places among good ones."""
    drawn = random.Random(len(bad))
    items = [*good[len(bad) :], *bad]
    drawn.shuffle(items)
    return items


def test_the_drafts_form_is_computed_from_ours_and_ours_from_it(member: Member, second: Verifier) -> None:
    """By anybody, and to the last byte; so whatever holds for one holds for the other."""
    token = present(member.credential, CONTEXT, PRESENTATION, os.urandom)
    read = second.read(token, CONTEXT, PRESENTATION)
    drafted = draft_token(read.proof, read.announcement)
    proof, statement = decode_proof(drafted[48:], 2), nym_statement(member.public_key, HEADER, 1)
    bases = statement_bases(statement)
    nym = announce_nym(proof, decode_g1(drafted[:48], "pseudonym"), fixed_context(CONTEXT), 1)
    assert encode_token(proof, announce(proof, statement, bases, {}, nym)) == token
    demand_challenge(proof, statement, bases, {}, PRESENTATION, (make_context(CONTEXT), *nym))
    assert read.nym == (make_context(CONTEXT), 1)


def test_a_token_of_the_drafts_form_is_refused(member: Member, second: Verifier) -> None:
    """One presentation must not be two packets."""
    item = (drafted(member.credential, CONTEXT, PRESENTATION), CONTEXT, PRESENTATION)
    assert [said(one) for one in (alone(second, item), *second.check_batch([item], os.urandom))] == ["Malformed"] * 2


def moved(token: bytes, place: int, by: Scalar) -> bytes:
    """A scalar's value changed; no hash covers a response."""
    place += len(SEVEN)
    return with_field(token, place, encode_scalar(Scalar.from_be_bytes(token[span(place)]) + by))


def with_one_wrong_equation(member: Member) -> dict[str, bytes]:
    """Everything is hashed as it is shown; all equations but the named ones hold."""
    credential = member.credential
    token = present(credential, CONTEXT, PRESENTATION, os.urandom)
    return {
        "E1 by e^": moved(token, 0, Scalar(1)),
        "E1 by r1^": moved(token, 1, Scalar(1)),
        "E2 by r3^": moved(token, 2, Scalar(1)),
        "E2 by m^0": moved(token, 3, Scalar(1)),
        "E2 and E3 by m^1": moved(token, 4, Scalar(1)),
        "E1": crafted(credential, shifts={"t1": P1}),
        "E2": crafted(credential, shifts={"t2": P1}),
        "E3": crafted(credential, shifts={"ut": P1}),
        "E3 by the pseudonym": crafted(credential, shifts={"pseudonym": P1}),
        "E3 by an answer that announces the identity": crafted(credential, shifts={"ut": P1}, nym_tilde=Scalar(0)),
        "pairing": crafted(credential, r1_error=random_scalar()),
    }


@pytest.mark.slow
def test_one_wrong_equation_is_named_whichever_it_is(member: Member, second: Verifier, good: list[Item]) -> None:
    for name, token in with_one_wrong_equation(member).items():
        bad = (token, CONTEXT, PRESENTATION)
        assert said(alone(second, bad)) == "RejectedProof", name
        items = among(good[:5], [bad])
        wrong = [
            item
            for item, one in zip(items, second.check_batch(items, os.urandom), strict=True)
            if said(one) == "RejectedProof"
        ]
        assert wrong == [bad], name


@pytest.mark.slow
def test_announcements_of_others_and_swapped_ones_are_refused(
    member: Member, second: Verifier, good: list[Item]
) -> None:
    def changed(token: bytes, new: dict[int, bytes]) -> bytes:
        return b"".join(new.get(place, one) for place, one in enumerate(fields(token)))

    def turned(place: int) -> bytes:
        return encode_g1_wide(-decode_g1_wide(fields(mine)[place], "point"))

    (mine, *place), (other, *_) = good[0], good[3]  # of one slot
    wrong = [
        changed(mine, {4: fields(mine)[5], 5: fields(mine)[4]}),
        changed(mine, {4: fields(mine)[6], 6: fields(mine)[4]}),
        *(changed(mine, {number: fields(other)[number]}) for number in (1, 2, 3, 4, 5, 6)),
        changed(mine, {number: fields(other)[number] for number in (4, 5, 6)}),
        *(changed(mine, {number: turned(number)}) for number in range(7)),
        mine[:POINTS_END] + other[POINTS_END:],
    ]
    bad = [(token, place[0], place[1]) for token in wrong]
    assert {said(alone(second, item)) for item in bad} == {"RejectedProof"}
    items = among(good, bad)
    outcomes = dict(zip(items, second.check_batch(items, os.urandom), strict=True))
    assert {item for item, one in outcomes.items() if said(one) == "RejectedProof"} == set(bad)


@pytest.mark.slow
@pytest.mark.parametrize("prime", COFACTOR_PRIMES)
def test_small_orders_have_one_verdict_alone_and_in_a_batch(
    prime: int, member: Member, second: Verifier, good: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused in the pseudonym, where they would be a second tag. In the six other points the same token is left."""
    by = torsion(prime)
    made = [(crafted(member.credential, shifts={which: by}), CONTEXT, PRESENTATION) for which in SEVEN]
    made += [(crafted(member.credential, shifts=dict.fromkeys(SEVEN[1:], by)), CONTEXT, PRESENTATION)]
    tag = made[1][0][:48]
    expected = ["Malformed", *[tag] * len(SEVEN)]
    assert [said(alone(second, item)) for item in made] == expected
    for items in (made, [*good, *made]):  # fewer pseudonyms, and more, than what is tested together
        outcomes = second.check_batch(items, os.urandom)
        assert [*map(said, outcomes[-len(made) :])] == expected
        assert not [one for one in outcomes[: -len(made)] if isinstance(one, AnonmlError)]
    # The cofactor is what makes them alike: without it a check alone refuses, and a batch by chance.
    monkeypatch.setattr("anon.credential.verification.clear_cofactor", lambda point: point)
    assert [said(alone(second, item)) for item in made[4:]] == ["RejectedProof"] * 4


@pytest.mark.parametrize("prime", COFACTOR_PRIMES)
def test_one_point_of_any_small_order_among_many_is_found(prime: int) -> None:
    """Also two whose errors are opposite. False alarm: none; a miss has probability 2^-128."""
    points = [hash_to_g1(bytes([number]), b"test") for number in range(30)]
    randomness = os.urandom(BYTES_EACH * 30)
    assert all_in_subgroup(points, IDENTITY_G1, randomness)
    bad = torsion(prime)
    assert not bad.is_in_subgroup()
    points[7] = points[7] + bad
    assert not all_in_subgroup(points, IDENTITY_G1, randomness)
    points[20] = points[20] - bad
    assert not all_in_subgroup(points, IDENTITY_G1, randomness)
    same = randomness[:BYTES_EACH]
    known = b"".join(bytes([byte]) * 30 for byte in same)
    assert all_in_subgroup(points, IDENTITY_G1, known)  # equal bits for both points let them cancel


def test_subsets_take_one_random_bit_for_each_point() -> None:
    with pytest.raises(ValueError, match="32 random bytes, got 31"):
        all_in_subgroup([P1, P1], IDENTITY_G1, bytes(31))
    bits = bytes([1]) + bytes(15)
    assert not all_in_subgroup([ORDER_THREE], IDENTITY_G1, bits)
    assert all_in_subgroup([ORDER_THREE], IDENTITY_G1, bytes(16))  # no subset has it
    for byte in range(8):
        assert not all_in_subgroup([ORDER_THREE], IDENTITY_G1, bytes(15) + bytes([1 << byte]))


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.slow
def test_rows_are_judged_as_points_are(many: bool, good: list[Item]) -> None:
    """Each error is the one that `decode_g1` raises, and it is the row's own."""
    point = encode_g1(P1)
    flaws = [b"\xc0" + bytes(47), bytes([point[0] | 0x40]) + point[1:], b"\xff" * 48, point[1:], encode_g1(ORDER_THREE)]
    rows = [[point, flaw] for flaw in flaws] + [[flaw, point] for flaw in flaws] + [[point, point]]
    rows += [[point, token[:48]] for token, _, _ in good * 4] if many else []
    assert (2 * len(rows) >= LEAST_TOGETHER) is many
    judged = decode_g1_rows(rows, ("one", "other"), os.urandom)
    for row, found in zip(rows, judged, strict=True):
        try:
            expected: object = tuple(decode_g1(one, name) for one, name in zip(row, ("one", "other"), strict=True))
        except Malformed as error:
            assert isinstance(found, Malformed) and str(found) == str(error)
        else:
            assert found == expected


def mutated(drawn: random.Random, good: Sequence[Item], member: Member) -> Item:
    """A good presentation with one change of a random kind; some kinds leave it good."""
    token, context, header = drawn.choice(good)
    other = drawn.choice(good)[0]
    place = drawn.randrange(12)
    field = token[span(place)]
    size = len(field)

    def having(value: bytes) -> Item:
        return with_field(token, place, value), context, header

    def moved_by(change: Callable[[G1], G1]) -> bytes:
        return encode_g1_wide(change(decode_g1_wide(field, "point"))) if size == 96 else os.urandom(32)

    def small() -> G1:
        return torsion(drawn.choice(COFACTOR_PRIMES))

    bit = drawn.randrange(8 * len(token))
    flipped = (int.from_bytes(token, "big") ^ 1 << bit).to_bytes(len(token), "big")
    kinds: list[Callable[[], Item]] = [
        lambda: (token, context, header),
        lambda: (flipped, context, header),
        lambda: having(other[span(place)]),
        lambda: having(moved_by(lambda point: point + P1)),
        lambda: having(moved_by(lambda point: point + small())),
        lambda: having(moved_by(lambda point: point - small())),
        lambda: having(moved_by(lambda point: -point) if size > 32 else bytes(32)),
        lambda: having(moved_by(lambda point: small())),
        lambda: having(bytes([field[0] ^ drawn.choice((0x20, 0x40, 0x80))]) + field[1:]),
        lambda: having((int.from_bytes(field, "big") + ORDER & (1 << 8 * size) - 1).to_bytes(size, "big")),
        lambda: (token, drawn.choice(good)[1], header),
        lambda: (token, context, header + b"\0"),
        lambda: (token[: drawn.randrange(len(token) + 1)], context, header),
        lambda: (crafted(member.credential, context, header, {drawn.choice(SEVEN): small()}), context, header),
        lambda: (crafted(member.credential, context, header, {drawn.choice(SEVEN): P1}), context, header),
        lambda: (forged_without_credential(member.public_key, nothing=small()), CONTEXT, PRESENTATION),
        lambda: (crafted(member.credential, context, header, r1_error=random_scalar()), context, header),
        lambda: (moved(token, drawn.randrange(5), Scalar(1)), context, header),
    ]
    return drawn.choice(kinds)()


def demand_equal_verdicts(
    count: int, in_a_batch: int, seed: int, member: Member, second: Verifier, good: list[Item]
) -> None:
    """By a fixed seed, bad ones and good ones mixed; both verdicts must occur."""
    drawn, seen = random.Random(seed), set()
    for _ in range(count // in_a_batch):
        bad = [mutated(drawn, good, member) for _ in range(in_a_batch)]
        items = [*bad, *good] if drawn.random() < 0.5 else bad
        drawn.shuffle(items)
        outcomes = dict(zip(items, map(said, second.check_batch(items, os.urandom)), strict=True))
        for item in bad:
            assert outcomes[item] == said(alone(second, item)), (seed, item[0].hex())
            seen.add(outcomes[item] if isinstance(outcomes[item], str) else "taken")
    assert seen == {"Malformed", "RejectedProof", "taken"}


@pytest.mark.slow
def test_batch_and_check_agree_on_mutated_tokens(member: Member, second: Verifier, good: list[Item]) -> None:
    demand_equal_verdicts(60, 20, 3, member, second, good)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_batch_and_check_agree_on_ten_thousand_mutated_tokens(
    seed: int, member: Member, second: Verifier, good: list[Item]
) -> None:
    demand_equal_verdicts(1000, 25, seed, member, second, good)


def test_a_bad_batch_costs_its_honest_members_nothing(member: Member, second: Verifier, good: list[Item]) -> None:
    """Every other token is bad, by a key of somebody else's."""
    theirs = enrol().credential
    bad = [(present(theirs, *item[1:], os.urandom), *item[1:]) for item in good[:8]]
    items = [one for pair in zip(good[8:16], bad, strict=True) for one in pair]
    outcomes = second.check_batch(items, os.urandom)
    assert [isinstance(one, RejectedProof) for one in outcomes] == [False, True] * 8


def test_one_seed_is_drawn_for_points_and_one_for_equations(second: Verifier, good: list[Item]) -> None:
    """From the operating system, for each batch anew; a short one is an error."""
    asked: list[int] = []

    def drawn(size: int) -> bytes:
        asked.append(size)
        return os.urandom(size)

    second.check_batch(good, drawn)
    assert asked == [32, 32]
    with pytest.raises(ValueError, match="32 random bytes"):
        second.check_batch(good, lambda size: os.urandom(size - 1))


def test_a_challenge_of_zero_proves_nothing(member: Member, good: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """No hash gives it by chance: with it every announcement would be that of some response."""
    verifier = Verifier(member.public_key, HEADER, 1)
    points, scalars = verifier._parts(good[0][0])
    monkeypatch.setattr("anon.credential.verification.calculate_challenge", lambda *_: Scalar(0))
    with pytest.raises(RejectedProof):
        verifier._announced(points, scalars, *good[0][1:])
