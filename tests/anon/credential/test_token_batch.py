"""Batches: every token judged on its own, whatever its company."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from anon.credential import PublicKey, Verifier, cached_verifier, present, pseudonym, verification
from anon.credential.batch import FoldedPairings, coefficients_for, search
from anon.crypto.curve import G1, G2, Scalar
from anon.crypto.labels import TOKEN_BATCH
from anon.errors import AnonmlError, Malformed, RejectedProof
from benchmarks.vectors.small_orders import COFACTOR_PRIMES, torsion
from tests.anon.credential.token_forgery import (
    CONTEXT,
    HEADER,
    ORDER_THREE,
    PRESENTATION,
    Member,
    crafted,
    enrol,
    forged_without_credential,
    random_scalar,
)
from tests.support.tries import every

Item = tuple[bytes, bytes, bytes]
SIZE = 16
KINDS = ["pairing", "challenge", "length", "order three", "identity", "small order", "another key"]


@pytest.fixture(scope="module")
def good(member: Member) -> list[Item]:
    places = [(b"slot %d" % (number % 3), b"packet %d" % number) for number in range(SIZE)]
    return [(present(member.credential, *place, os.urandom), *place) for place in places]


def wrong(outcomes: Sequence[bytes | AnonmlError]) -> list[int]:
    return [place for place, outcome in enumerate(outcomes) if isinstance(outcome, AnonmlError)]


def test_all_good(member: Member, verifier: Verifier, good: list[Item]) -> None:
    tags = verifier.check_batch(good, os.urandom)
    assert tags == [pseudonym(member.credential, context) for _, context, _ in good]


def test_the_empty_batch_has_no_verdicts(verifier: Verifier) -> None:
    assert verifier.check_batch([], os.urandom) == []


def bad_tokens(member: Member) -> dict[str, Item]:
    token = present(member.credential, CONTEXT, PRESENTATION, os.urandom)
    pairing = crafted(member.credential, r1_error=random_scalar())
    return {
        "pairing": (pairing, CONTEXT, PRESENTATION),
        "challenge": (token, CONTEXT, b"other packet"),
        "length": (token[:-1], CONTEXT, PRESENTATION),
        "order three": (crafted(member.credential, shifts={"pseudonym": ORDER_THREE}), CONTEXT, PRESENTATION),
        "identity": (forged_without_credential(member.public_key), CONTEXT, PRESENTATION),
        "small order": (forged_without_credential(member.public_key, nothing=ORDER_THREE), CONTEXT, PRESENTATION),
        "another key": (crafted(enrol().credential), CONTEXT, PRESENTATION),
    }


@pytest.mark.parametrize(("kind", "place"), every(3, KINDS, [0, 1, 7, 8, SIZE - 1]))
def test_one_bad_token_among_many_is_named(
    kind: str, place: int, member: Member, verifier: Verifier, good: list[Item]
) -> None:
    item = bad_tokens(member)[kind]
    outcomes = verifier.check_batch([*good[:place], item, *good[place + 1 :]], os.urandom)
    assert wrong(outcomes) == [place]
    with pytest.raises((Malformed, RejectedProof)) as alone:
        verifier.check(*item)
    assert type(outcomes[place]) is alone.type


@pytest.mark.slow
def test_any_set_of_bad_pairings_is_named(
    member: Member, verifier: Verifier, good: list[Item]
) -> None:
    """Ten sets drawn with a fixed seed, and the whole batch."""
    bad = (crafted(member.credential, r1_error=random_scalar()), CONTEXT, PRESENTATION)
    drawn = random.Random(7)
    for count in (*(drawn.randrange(1, 16) for _ in range(10)), 16):
        places = set(drawn.sample(range(16), count))
        items = [bad if place in places else good[place] for place in range(16)]
        assert set(wrong(verifier.check_batch(items, os.urandom))) == places


def cancelling_pair(member: Member) -> list[Item]:
    """D1 * error and D2 * (-error * r2_1 / r2_2) are opposite: with equal coefficients the fold holds."""
    first, second, error = random_scalar(), random_scalar(), random_scalar()
    other = -(error * first * second.inverse())
    tokens = (
        crafted(member.credential, r1_error=error, r2=first),
        crafted(member.credential, r1_error=other, r2=second),
    )
    return [(token, CONTEXT, PRESENTATION) for token in tokens]


def test_errors_that_cancel_are_both_named(
    member: Member, verifier: Verifier, good: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The r1 error is in Bbar * 1 of both; without random coefficients a member passes two forgeries at once."""
    items = [good[0], *cancelling_pair(member), good[1]]
    assert wrong(verifier.check_batch(items, os.urandom)) == [1, 2]
    assert wrong(verifier.check_batch(items, bytes)) == [1, 2]  # also when the generator is stuck
    monkeypatch.setattr("anon.credential.verification.coefficients_for", lambda _l, count, _s, _r: [Scalar(1)] * count)
    assert wrong(verifier.check_batch(items, os.urandom)) == []


def test_coefficients_are_fresh_distinct_and_of_128_bits() -> None:
    first, again = (coefficients_for(TOKEN_BATCH, 50, b"shown", os.urandom) for _ in range(2))
    numbers = [int(scalar) for scalar in first + again]
    assert len(set(numbers)) == 100
    assert max(numbers) < 1 << 128
    assert max(numbers) >= 1 << 120  # false alarm: 2^-800
    stuck = [coefficients_for(TOKEN_BATCH, 50, shown, bytes)[0] for shown in (b"shown", b"moved")]
    assert stuck[0] != stuck[1]
    with pytest.raises(ValueError, match="random bytes"):
        coefficients_for(TOKEN_BATCH, 50, b"shown", lambda size: bytes(size - 1))


def test_two_tokens_with_one_tag_are_judged_separately(member: Member, verifier: Verifier) -> None:
    """The batch check does not decide if a tag was used before."""
    one = present(member.credential, CONTEXT, b"one", os.urandom)
    two = present(member.credential, CONTEXT, b"two", os.urandom)
    outcomes = verifier.check_batch([(one, CONTEXT, b"one"), (two, CONTEXT, b"two")], os.urandom)
    assert outcomes == [one[:48], one[:48]]
    outcomes = verifier.check_batch([(one, CONTEXT, b"one"), (two, CONTEXT, b"one")], os.urandom)
    assert wrong(outcomes) == [1]
    assert outcomes[0] == one[:48]


def test_one_failure_costs_logarithmically_many_checks() -> None:
    """Numbers stand for the sums of points: a part holds whose sum is zero."""
    errors = [0] * 64
    errors[40] = 1
    checked: list[int] = []

    def holds(total: int) -> bool:
        checked.append(total)
        return total == 0

    def summed(part: range) -> int:
        return sum(errors[part.start : part.stop])

    assert search(range(64), 1, summed, holds) == [40]
    assert len(checked) <= 13
    errors[3] = errors[41] = 5
    assert search(range(64), 11, summed, holds) == [3, 40, 41]
    assert search(range(64), 11, summed, holds, most=2) == [3, 40]


def check_in_worker(public_key: PublicKey, items: list[Item]) -> list[bytes | AnonmlError]:
    return list(cached_verifier(public_key, HEADER, 1).check_batch(items, os.urandom))


@pytest.mark.slow
def test_batches_can_go_to_another_process(member: Member, good: list[Item]) -> None:
    """Bytes in; tags and errors out, both of which survive the way back."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        outcomes = pool.submit(check_in_worker, member.public_key, [good[0], (b"", CONTEXT, PRESENTATION)]).result()
    assert outcomes[0] == good[0][0][:48]
    assert isinstance(outcomes[1], Malformed)
    assert cached_verifier(member.public_key, HEADER, 1) is cached_verifier(member.public_key, HEADER, 1)


def test_a_part_of_small_order_counts_in_the_pseudonym_alone(
    member: Member, verifier: Verifier, good: list[Item]
) -> None:
    """In a batch as alone; all orders and points are in `test_announced`."""
    by = torsion(COFACTOR_PRIMES[-1])  # without the cofactor one batch in so many would take it
    second, same = (
        (crafted(member.credential, shifts=dict.fromkeys(where, by)), CONTEXT, PRESENTATION)
        for where in (["pseudonym"], ["a_bar", "d", "t1", "t2", "ut"])
    )
    assert wrong(verifier.check_batch([second, *good, same], os.urandom)) == [0]
    assert verifier.check(*same) == same[0][:48]


PLACES = [{0}, {63}, {5, 31}, {16, 17, 18, 40}, {*range(64)}]


@pytest.mark.slow
@pytest.mark.parametrize("pairing", every(2, [False, True]))
def test_few_bad_tokens_cost_the_others_little(
    member: Member, monkeypatch: pytest.MonkeyPatch, pairing: bool
) -> None:
    """Each token was checked alone once one of the batch was bad. In place of seconds, proofs and pairings count."""
    places = [(CONTEXT, b"packet %d" % number) for number in range(64)]
    items = [(present(member.credential, *place, os.urandom), *place) for place in places]
    verifier, counted = Verifier(member.public_key, HEADER, 1), Counter[str]()

    def right_sum(statement: object, proofs: Sequence[object], coefficients: object) -> G1:
        counted["summed"] += len(proofs)
        return summed(statement, proofs, coefficients)  # type: ignore[arg-type]

    def holds(self: FoldedPairings, key: G2) -> bool:
        counted["pairings"] += 1
        return held(self, key)

    summed, held = verification.right_sum, FoldedPairings.holds
    monkeypatch.setattr(verification, "right_sum", right_sum)
    monkeypatch.setattr(FoldedPairings, "holds", holds)
    for bad in PLACES:
        counted.clear()
        spoilt = [spoiled(member, item, pairing) if at in bad else item for at, item in enumerate(items)]
        assert wrong(verifier.check_batch(spoilt, os.urandom)) == sorted(bad)
        alone = 64 if len(bad) == 64 else 0
        assert counted["summed"] <= (0 if pairing else 64 + max(16 * len(bad), alone)), counted
        assert counted["pairings"] <= (2 + 4 + max(8 * len(bad), alone) if pairing else 2), counted


def test_bad_tokens_of_both_kinds_are_named(member: Member, verifier: Verifier, good: list[Item]) -> None:
    items = [spoiled(member, item, at == 5) if at in (2, 5) else item for at, item in enumerate(good)]
    assert wrong(verifier.check_batch(items, os.urandom)) == [2, 5]


def spoiled(member: Member, item: Item, pairing: bool) -> Item:
    """A token whose pairing fails, or one for another packet than its own."""
    _token, context, header = item
    if pairing:
        return crafted(member.credential, context, header, r1_error=random_scalar()), context, header
    return (*item[:2], b"other packet")
