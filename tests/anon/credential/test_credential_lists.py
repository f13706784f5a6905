"""A list of credentials in one fold: the verdicts are the holders', whatever the company."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from anon.credential import (
    IssuedChecker,
    IssuedCredential,
    blind_sign,
    commit,
    finalize,
    generate_secret_key,
    public_key,
    sign_proven,
    signer_nym_entropy,
)
from anon.credential.credential import decode_signature, signature_holds
from anon.credential.statement import nym_statement
from anon.crypto.curve import (
    G1,
    G2,
    IDENTITY_G1,
    ORDER,
    Scalar,
    decode_g1,
    decode_g2,
    decode_scalar,
    encode_g1,
    encode_scalar,
    pairing_product_is_one,
)
from anon.errors import AnonmlError, Malformed
from anon.transparency.closing import MOST_CHECKED, MOST_CHECKED_PURE, sample
from tests.anon.credential.token_forgery import HEADER, ORDER_THREE
from tests.support.tries import every

SIZE = 24
SECRET_KEY = generate_secret_key(os.urandom)
KEY = public_key(SECRET_KEY)
SECRETS = [commit(2, os.urandom) for _ in range(SIZE)]
GOOD = [
    IssuedCredential(
        made.commitment_with_proof[:48],
        blind_sign(SECRET_KEY, KEY, made.commitment_with_proof, HEADER, entropy, 2),
        entropy,
    )
    for made, entropy in ((made, signer_nym_entropy(b"seed", bytes([place]))) for place, made in enumerate(SECRETS))
]


@pytest.fixture(scope="module")
def checker() -> IssuedChecker:
    return IssuedChecker(KEY, HEADER, 2)


def moved(one: IssuedCredential, shift: G1) -> IssuedCredential:
    """The same with A shifted."""
    point = G1.from_compressed_bytes_unchecked(one.signature[:48]) + shift
    return IssuedCredential(one.commitment, encode_g1(point) + one.signature[48:], one.entropy)


def holder_accepts(place: int, one: IssuedCredential) -> bool:
    try:
        finalize(KEY, HEADER, one.signature, one.entropy, SECRETS[place])
    except AnonmlError:
        return False
    return one.commitment == SECRETS[place].commitment_with_proof[:48]


def flaws(place: int) -> dict[str, IssuedCredential]:
    good, other = GOOD[place], GOOD[(place + 1) % SIZE]
    scalar = (ORDER + int.from_bytes(good.signature[48:], "big")).to_bytes(33, "big")[-32:]
    stranger = generate_secret_key(os.urandom)
    committed = SECRETS[place].commitment_with_proof
    return {
        "of another": IssuedCredential(good.commitment, other.signature, good.entropy),
        "another entropy": IssuedCredential(good.commitment, good.signature, other.entropy),
        "another commitment": IssuedCredential(other.commitment, good.signature, good.entropy),
        "another key": IssuedCredential(
            good.commitment,
            blind_sign(stranger, public_key(stranger), committed, HEADER, good.entropy, 2),
            good.entropy,
        ),
        "another header": IssuedCredential(
            good.commitment, blind_sign(SECRET_KEY, KEY, committed, b"other", good.entropy, 2), good.entropy
        ),
        "another number of secrets": IssuedCredential(
            good.commitment,
            blind_sign(SECRET_KEY, KEY, commit(1, os.urandom).commitment_with_proof, HEADER, good.entropy, 1),
            good.entropy,
        ),
        "order three in A": moved(good, ORDER_THREE),
        "order three in C": IssuedCredential(
            encode_g1(G1.from_compressed_bytes_unchecked(good.commitment) + ORDER_THREE), good.signature, good.entropy
        ),
        "identity A": IssuedCredential(good.commitment, b"\xc0" + bytes(47) + good.signature[48:], good.entropy),
        "identity C": IssuedCredential(b"\xc0" + bytes(47), good.signature, good.entropy),
        "no point": IssuedCredential(good.commitment, b"\xff" * 48 + good.signature[48:], good.entropy),
        "e of zero": IssuedCredential(good.commitment, good.signature[:48] + bytes(32), good.entropy),
        "e beyond the order": IssuedCredential(good.commitment, good.signature[:48] + scalar, good.entropy),
        "too short": IssuedCredential(good.commitment, good.signature[:-1], good.entropy),
    }


def test_all_good(checker: IssuedChecker) -> None:
    assert checker.bad(GOOD, os.urandom) == []
    assert checker.bad([], os.urandom) == []
    assert all(holder_accepts(place, one) for place, one in enumerate(GOOD))


@pytest.mark.parametrize(("place", "flaw"), every(4, [0, 11, SIZE - 1], flaws(0)))
def test_one_bad_credential_is_named_and_its_holder_could_not_use_it(
    checker: IssuedChecker, flaw: str, place: int
) -> None:
    bad = flaws(place)[flaw]
    assert checker.bad([*GOOD[:place], bad, *GOOD[place + 1 :]], os.urandom) == [place]
    assert checker.bad([bad], os.urandom) == [0]
    assert not holder_accepts(place, bad)


def test_a_base_that_is_the_identity_has_one_verdict(checker: IssuedChecker) -> None:
    """Its equation holds for e = -sk and any A, which only a broken hash could bring about. A holder refuses it."""
    statement = nym_statement(KEY, HEADER, 2)
    good = GOOD[0]
    commitment = -(statement.fixed + statement.generators[-1] * decode_scalar(good.entropy, "entropy"))
    minus_key = encode_scalar(-decode_scalar(SECRET_KEY, "key"))
    made = IssuedCredential(encode_g1(commitment), good.signature[:48] + minus_key, good.entropy)
    assert checker.bad([*GOOD, made], os.urandom) == checker.bad([made], os.urandom) == []
    assert not signature_holds(decode_g2(KEY, "key"), decode_signature(made.signature), IDENTITY_G1)


def test_errors_that_cancel_are_both_named(checker: IssuedChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shifted by S / (sk + e) in one, by -S / (sk + e') in the other: with equal coefficients the fold holds."""
    shift = decode_g1(GOOD[5].signature[:48], "A")
    key = decode_scalar(SECRET_KEY, "key")
    pair = [
        moved(one, shift * (sign * (key + decode_scalar(one.signature[48:], "e")).inverse()))
        for one, sign in ((GOOD[0], Scalar(1)), (GOOD[1], -Scalar(1)))
    ]
    listed = [*pair, *GOOD[2:]]
    assert checker.bad(listed, os.urandom) == [0, 1]
    assert checker.bad(listed, bytes) == [0, 1]  # also when the generator is stuck
    monkeypatch.setattr("anon.credential.issued.coefficients_for", lambda _l, count, _s, _r: [Scalar(1)] * count)
    assert checker.bad(listed, os.urandom) == []


def test_small_orders_that_cancel_are_both_named(checker: IssuedChecker) -> None:
    listed = [moved(GOOD[0], ORDER_THREE), moved(GOOD[1], -ORDER_THREE), *GOOD[2:]]
    assert checker.bad(listed, os.urandom) == [0, 1]


@pytest.mark.parametrize("flaw", every(3, flaws(0)))
def test_a_long_list_whose_points_are_tested_together_has_the_same_verdicts(
    checker: IssuedChecker, flaw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon.crypto.curve.LEAST_TOGETHER", 2)
    assert checker.bad(GOOD, os.urandom) == []
    assert checker.bad([*GOOD[:11], flaws(11)[flaw], *GOOD[12:]], os.urandom) == [11]
    cancelling = [moved(GOOD[0], ORDER_THREE), moved(GOOD[1], -ORDER_THREE), *GOOD[2:]]
    assert checker.bad(cancelling, os.urandom) == [0, 1]


def test_a_commitment_proven_before_gets_the_same_signature() -> None:
    for one in GOOD[:3]:
        assert sign_proven(SECRET_KEY, KEY, one.commitment, HEADER, one.entropy, 2) == one.signature
    for bad in (b"\xff" * 48, b"\xc0" + bytes(47), encode_g1(ORDER_THREE), GOOD[0].commitment[:-1]):
        with pytest.raises(Malformed):
            sign_proven(SECRET_KEY, KEY, bad, HEADER, GOOD[0].entropy, 2)


@pytest.mark.slow
def test_any_set_of_bad_ones_is_named_and_no_more_than_asked_for(checker: IssuedChecker) -> None:
    """Six sets drawn with a fixed seed, of flaws that the fold and that the decoder finds."""
    drawn = random.Random(11)
    for count in (1, 2, 5, 9, 16, SIZE):
        places = sorted(drawn.sample(range(SIZE), count))
        listed = list(GOOD)
        for place in places:
            listed[place] = flaws(place)[drawn.choice(["of another", "no point", "order three in A"])]
        assert checker.bad(listed, os.urandom) == places
        assert checker.bad(listed, os.urandom, most=1) == places[:1]
        assert checker.bad(listed, os.urandom, most=3) == places[:3]


def test_folds_of_a_few_at_once_give_the_same(checker: IssuedChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.credential.issued.AT_ONCE", 5)
    listed = [flaws(place)["of another"] if place in (3, 17) else one for place, one in enumerate(GOOD)]
    assert checker.bad(listed, os.urandom) == [3, 17]
    assert checker.bad(listed, os.urandom, most=1) == [3]
    assert checker.bad(GOOD, os.urandom) == []


def test_a_good_list_costs_one_pairing_check(checker: IssuedChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(pairs: Sequence[tuple[G1, G2]]) -> bool:
        calls.append(len(pairs))
        return pairing_product_is_one(pairs)

    monkeypatch.setattr("anon.credential.batch.pairing_product_is_one", counted)
    assert checker.bad(GOOD, os.urandom) == []
    assert calls == [2]


# Samples


def test_a_sample_has_its_size_and_never_the_own_place() -> None:
    assert (MOST_CHECKED, MOST_CHECKED_PURE) == (10_000, 256)
    for size, count in ((2, 1), (10, 9), (1000, 256)):
        drawn = sample(size, 1, count, os.urandom)
        assert len(set(drawn)) == count
        assert drawn == sorted(drawn)
        assert set(drawn) <= set(range(size)) - {1}
    with pytest.raises(ValueError, match="sample"):
        sample(10, 1, 10, os.urandom)


def test_every_other_place_is_drawn_equally_often() -> None:
    """4 of 12 in 3,000 samples: each count is binomial(3000, 4/11); 6 standard deviations, false alarm under 3e-8."""
    counts = [0] * 12
    for _ in range(3000):
        for place in sample(12, 5, 4, os.urandom):
            counts[place] += 1
    assert counts[5] == 0
    expected, deviation = 3000 * 4 / 11, (3000 * 4 / 11 * 7 / 11) ** 0.5
    assert all(abs(count - expected) < 6 * deviation for place, count in enumerate(counts) if place != 5)


def test_the_stated_probabilities_of_catching() -> None:
    """1 - C(n-k, s) / C(n, s), and its bound 1 - (1 - k/n)^s, as docs/threats.md prints them."""
    from math import comb

    def caught(n: int, k: int, s: int) -> float:
        return 1 - comb(n - k, s) / comb(n, s)

    for n, k, s, said in ((1000, 10, 256, 0.949), (10_000, 100, 256, 0.926), (100_000, 10, 10_000, 0.651)):
        assert caught(n, k, s) == pytest.approx(said, abs=5e-4)
        assert caught(n, k, s) >= 1 - (1 - k / n) ** s
    assert abs((1 - 0.01) ** 256 - 0.076) < 5e-4
    assert (1 - 0.1) ** 256 < 2e-12
    assert (1 - 0.001) ** 10_000 < 5e-5
