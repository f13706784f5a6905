"""Tokens that must be refused. Where a check stands between a forgery and its acceptance, the check is also removed.

So each of these tests proves two things: the forgery is real, and the check is what stops it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from attrs import evolve

from anon.credential import Verifier, present, pseudonym, token_size
from anon.crypto.curve import FIELD_ORDER, ORDER, Scalar, encode_scalar
from anon.errors import Malformed, RejectedProof
from benchmarks.vectors.small_orders import COFACTOR_PRIMES, torsion
from tests.anon.credential.token_forgery import (
    CONTEXT,
    HEADER,
    PRESENTATION,
    SEVEN,
    Member,
    crafted,
    enrol,
    fields,
    forged_without_credential,
    remove_point_checks,
    with_field,
)

RandomBytes = Callable[[int], bytes]
IDENTITY = b"\xc0" + bytes(95)


@pytest.fixture(scope="module")
def token(member: Member) -> bytes:
    return present(member.credential, CONTEXT, PRESENTATION, os.urandom)


NAMES = (*SEVEN, "e", "r1", "r3", "m0", "m1")


def in_each_place(scalars: bool) -> pytest.MarkDecorator:
    """The points, or the scalars."""
    cases = [pytest.param(place, id=name) for place, name in enumerate(NAMES) if (name not in SEVEN) is scalars]
    return pytest.mark.parametrize("place", cases)


def lax_accepts(verifier: Verifier, token: bytes) -> bool:
    try:
        verifier.check(token, CONTEXT, PRESENTATION)
    except (Malformed, RejectedProof):
        return False
    return True


def test_a_good_token_is_accepted_with_its_tag(
    member: Member, verifier: Verifier, token: bytes
) -> None:
    assert verifier.check(token, CONTEXT, PRESENTATION) == pseudonym(member.credential, CONTEXT) == token[:48]
    assert verifier.check(crafted(member.credential), CONTEXT, PRESENTATION) == token[:48]
    assert len(token) == token_size(1) == 832


@pytest.mark.parametrize("prime", COFACTOR_PRIMES)
def test_a_pseudonym_with_a_part_of_small_order_is_refused(
    prime: int, member: Member, verifier: Verifier, token: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a second tag for one slot, and every equation holds."""
    forgery = crafted(member.credential, shifts={"pseudonym": torsion(prime)})
    with pytest.raises(Malformed, match="subgroup"):
        verifier.check(forgery, CONTEXT, PRESENTATION)
    remove_point_checks(monkeypatch)
    assert lax_accepts(verifier, forgery) and forgery[:48] != token[:48]


@pytest.mark.parametrize("prime", COFACTOR_PRIMES)
def test_points_of_small_order_in_place_of_the_signature_are_refused(
    prime: int, member: Member, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this check anyone at all makes tokens: cofactored equations hold for them, in a batch and alone."""
    forgery = forged_without_credential(member.public_key, nothing=torsion(prime))
    with pytest.raises(Malformed, match="Abar: expected a point with a part"):
        verifier.check(forgery, CONTEXT, PRESENTATION)
    (judged,) = verifier.check_batch([(forgery, CONTEXT, PRESENTATION)], os.urandom)
    assert isinstance(judged, Malformed)
    monkeypatch.setattr("anon.credential.verification.demand_large_order", lambda *_: None)
    assert lax_accepts(verifier, forgery)
    assert verifier.check_batch([(forgery, CONTEXT, PRESENTATION)], os.urandom) == [forgery[:48]]


def test_identity_in_place_of_the_signature_is_refused(
    member: Member, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this check anyone at all makes tokens, as many as they like."""
    forgery = forged_without_credential(member.public_key)
    with pytest.raises(Malformed, match="identity"):
        verifier.check(forgery, CONTEXT, PRESENTATION)
    remove_point_checks(monkeypatch)
    assert lax_accepts(verifier, forgery)


@in_each_place(scalars=False)
def test_the_identity_is_refused_in_each_place(place: int, verifier: Verifier, token: bytes) -> None:
    with pytest.raises(Malformed, match="identity"):
        verifier.check(with_field(token, place, IDENTITY), CONTEXT, PRESENTATION)


@in_each_place(scalars=False)
@pytest.mark.parametrize("spelling", ["sign flag", "tail", "flag on a point", "no flag", "other sign"])
def test_other_spellings_of_a_point_are_refused(place: int, spelling: str, verifier: Verifier, token: bytes) -> None:
    """The library reads the first three as the identity; with the comparison removed the message would not say
    canonical."""
    point = fields(token)[place]
    spelled = {
        "sign flag": b"\xe0" + bytes(95),
        "tail": b"\xc0" + bytes(46) + b"\1" + bytes(48),
        "flag on a point": bytes([point[0] | 0x40]) + point[1:],
        "no flag": bytes([point[0] & 0x7F]) + point[1:],
        "other sign": bytes([point[0] ^ 0x20]) + point[1:],
    }[spelling]
    with pytest.raises(Malformed, match=r"canonical|and its y"):
        verifier.check(with_field(token, place, spelled), CONTEXT, PRESENTATION)


@in_each_place(scalars=False)
def test_coordinates_are_below_the_fields_order_and_on_the_curve(place: int, verifier: Verifier, token: bytes) -> None:
    point = fields(token)[place]
    flags, x, y = point[0] & 0xE0, int.from_bytes(point[:48], "big") & (1 << 381) - 1, int.from_bytes(point[48:], "big")
    beyond = ((x + FIELD_ORDER, y), (x, y + FIELD_ORDER))
    for wrong_x, wrong_y in (*beyond, (x, y ^ 1), (x ^ 1, y), (y, x), (x, 0), (0, y)):
        wrong = (flags << 376 | wrong_x).to_bytes(48, "big") + wrong_y.to_bytes(48, "big")
        with pytest.raises(Malformed, match=r"and its y|canonical"):
            verifier.check(with_field(token, place, wrong), CONTEXT, PRESENTATION)


@in_each_place(scalars=True)
def test_scalars_outside_their_range_are_refused(
    place: int, member: Member, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """s + r is a second spelling of s, and with it of the token, for a verifier that reduces."""
    token = next(
        made
        for made in (present(member.credential, CONTEXT, PRESENTATION, os.urandom) for _ in range(200))
        if int.from_bytes(fields(made)[place], "big") + ORDER < 1 << 256
    )
    value = int.from_bytes(fields(token)[place], "big")
    second = with_field(token, place, (value + ORDER).to_bytes(32, "big"))
    for wrong in (second, with_field(token, place, bytes(32)), with_field(token, place, ORDER.to_bytes(32, "big"))):
        with pytest.raises(Malformed, match="scalar"):
            verifier.check(wrong, CONTEXT, PRESENTATION)
    monkeypatch.setattr("anon.credential.issuance.decode_scalar", lambda data, _: Scalar.from_be_bytes_mod_order(data))
    assert lax_accepts(verifier, second)


def test_an_announcement_without_pseudonym_part_is_refused(
    member: Member, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ut is the identity only if m~ was zero, and then m^ / c is the secret itself (NymProofVerifyInit, step 3)."""
    careless = crafted(member.credential, nym_tilde=Scalar(0))
    with pytest.raises(Malformed, match="identity"):
        verifier.check(careless, CONTEXT, PRESENTATION)
    remove_point_checks(monkeypatch)
    assert lax_accepts(verifier, careless)


@pytest.mark.parametrize("change", [-448, -336, -112, -96, -48, -32, -1, 1, 32, 48, 96, 336])
def test_exact_length(change: int, verifier: Verifier, token: bytes) -> None:
    """448 bytes less are those of the drafts' form, 336 less those of compressed points."""
    wrong = token + bytes(change) if change > 0 else token[:change]
    with pytest.raises(Malformed, match=f"expected {len(token)} bytes, got {len(token) + change}"):
        verifier.check(wrong, CONTEXT, PRESENTATION)


@pytest.mark.slow
def test_every_flipped_bit_is_refused(verifier: Verifier, token: bytes) -> None:
    for bit in range(8 * len(token)):
        altered = bytearray(token)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises((Malformed, RejectedProof)):
            verifier.check(bytes(altered), CONTEXT, PRESENTATION)


@pytest.mark.parametrize(
    ("context", "header"),
    [(b"slot 1", PRESENTATION), (CONTEXT, b"packet\0"), (CONTEXT, b""), (CONTEXT + PRESENTATION[:1], PRESENTATION[1:])],
)
def test_another_context_or_presentation_header_is_refused(
    context: bytes, header: bytes, verifier: Verifier, token: bytes
) -> None:
    with pytest.raises(RejectedProof):
        verifier.check(token, context, header)


def test_tokens_of_another_key_or_study_are_refused(member: Member, token: bytes) -> None:
    for key, header in ((enrol().public_key, HEADER), (member.public_key, b"other study")):
        other = Verifier(key, header, 1)
        with pytest.raises(RejectedProof):
            other.check(token, CONTEXT, PRESENTATION)


def test_the_number_of_nym_secrets_is_signed(member: Member, token: bytes) -> None:
    """I8(N) is in the header: a verifier of two secrets takes neither the token nor one padded to its length."""
    other = Verifier(member.public_key, HEADER, 2)
    for wrong in (token, token[:-32] + encode_scalar(Scalar(1)) + token[-32:]):
        with pytest.raises((Malformed, RejectedProof)):
            other.check(wrong, CONTEXT, PRESENTATION)


@pytest.mark.parametrize("random_bytes", [os.urandom, bytes], ids=["os", "stuck"])
def test_tokens_of_one_credential_share_only_the_tag_of_their_context(
    random_bytes: RandomBytes
) -> None:
    """Also with a generator that only returns zeros: every scalar is hedged with the secrets and all inputs."""
    member = enrol(count=2)
    checked = Verifier(member.public_key, HEADER, 2)

    def make(context: bytes, header: bytes) -> list[bytes]:
        token = present(member.credential, context, header, random_bytes)
        assert checked.check(token, context, header) == pseudonym(member.credential, context)
        return fields(token)

    first, other_slot, same_slot = make(CONTEXT, b"one"), make(b"slot 1", b"one"), make(CONTEXT, b"two")
    assert not set(first) & set(other_slot)
    assert first[0] == same_slot[0]
    assert not set(first[1:]) & set(same_slot[1:])


def test_fresh_randomness_makes_a_fresh_token(member: Member, token: bytes) -> None:
    again = present(member.credential, CONTEXT, PRESENTATION, os.urandom)
    assert again[:48] == token[:48]
    assert not set(fields(token)[1:]) & set(fields(again)[1:])


def test_a_short_random_generator_is_an_error(member: Member) -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        present(member.credential, CONTEXT, PRESENTATION, lambda size: os.urandom(size - 1))


def test_another_members_secret_does_not_fit(member: Member, verifier: Verifier) -> None:
    """The pseudonym is bound to the signed secret: a token with another secret's pseudonym is refused."""
    other = enrol(member.secret_key)
    wrong = evolve(member.credential, nym_secrets=other.credential.nym_secrets)
    with pytest.raises(RejectedProof):
        verifier.check(crafted(wrong), CONTEXT, PRESENTATION)
