"""A statement proves nothing about another study, round, slot, teller or pair, and what two honest ones say is no
evidence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from anon.crypto.nacl import SigningKey
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import Malformed, RejectedProof
from anon.sharing.arrangement import PAIRS, Arrangement, TellerEntry
from anon.sharing.combine import combine
from anon.sharing.quorum import Quorum, parse_quorum, quorums
from anon.sharing.round_document import RoundSums, SlotSum, UnsummedRound, Why, parse_round_sums, parse_unsummed
from anon.sharing.statements import (
    AcceptedList,
    Countersignature,
    Disagreement,
    ListSignature,
    NoisyShare,
    VerifierShares,
    arrangement_digest,
    check_countersignatures,
    disagreement_of,
    parse_countersignatures,
    parse_disagreement,
    parse_list,
    parse_list_signature,
    parse_noisy_share,
    parse_verifier_shares,
)
from anon.wire.cbor import decode, encode
from anon.wire.packets import TAG_BYTES, Occasion
from tests.support.tellers import a_sum

KEYS = [SigningKey(bytes([number]) * 32) for number in range(1, 4)]
TAGS = tuple(bytes([number]) * TAG_BYTES for number in range(3))
REFUSED = (Malformed, RejectedProof)


def entries(purpose: int) -> tuple[TellerEntry, ...]:
    return tuple(
        TellerEntry(
            f"teller {at}",
            f"127.0.0.1:900{at}",
            bytes(key.verify_key),
            bytes([purpose, at]) + bytes(PUBLIC_KEY_SIZE - 2),
            bytes([purpose, at]) * 16,
        )
        for at, key in enumerate(KEYS)
    )


WHOLE = Arrangement(2, entries(1), tuple(a_sum(turn, slot) for turn, slot in product(range(2), range(2))), entries(2))
PLAIN = Arrangement(2, entries(1)[:2], WHOLE.sums)


@frozen
class Place:
    """The matter of a statement, in a study with a spare. `teller`: the number in the pair."""

    study: bytes
    round: int
    slot: int
    teller: int
    pair: int

    @property
    def quorum(self) -> Quorum:
        return quorums(self.study, WHOLE)[self.pair]

    @property
    def occasion(self) -> Occasion:
        return self.quorum.occasion(Occasion(self.study, self.round, self.slot))

    @property
    def key(self) -> SigningKey:
        return KEYS[self.quorum.members[self.teller]]


places = st.builds(
    Place,
    st.sampled_from([bytes([7]) * 32, bytes([8]) * 32]),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from(range(len(PAIRS))),
)


def the_list(place: Place) -> AcceptedList:
    return AcceptedList(place.occasion, TAGS)


def verifier_shares(place: Place) -> bytes:
    size = WHOLE.prio3(WHOLE.sums[0]).verifier_share_size
    return VerifierShares(place.occasion, place.teller, {tag: bytes(size) for tag in TAGS}).sign(place.key)


def list_signature(place: Place) -> bytes:
    return ListSignature(place.occasion, place.teller, the_list(place).digest()).sign(place.key)


def noisy_share(place: Place) -> bytes:
    circuit = WHOLE.sums[0].circuit
    return NoisyShare(
        place.occasion, place.teller, the_list(place).digest(), bytes(circuit.field.size * circuit.output_length)
    ).sign(place.key)


def both(place: Place, said: Callable[[Place], bytes], own: bytes) -> list[bytes]:
    """Of both tellers of the pair; the place's own teller says `own`."""
    return [own if teller == place.teller else said(evolve(place, teller=teller)) for teller in range(2)]


def read_verifier_shares(place: Place, said: bytes) -> None:
    parse_verifier_shares(said, place.occasion, place.teller, place.quorum.arrangement)


def read_list_signature(place: Place, said: bytes) -> None:
    combine(
        place.quorum.arrangement,
        place.occasion,
        the_list(place).to_bytes(),
        both(place, list_signature, said),
        both(place, noisy_share, noisy_share(place)),
    )


def read_noisy_share(place: Place, said: bytes) -> None:
    combine(
        place.quorum.arrangement,
        place.occasion,
        the_list(place).to_bytes(),
        both(place, list_signature, list_signature(place)),
        both(place, noisy_share, said),
    )


KINDS = {
    "verifier shares": (verifier_shares, read_verifier_shares),
    "list signature": (list_signature, read_list_signature),
    "noisy share": (noisy_share, read_noisy_share),
}


@pytest.mark.parametrize("kind", KINDS)
@given(place=places, other=places)
def test_a_statement_proves_nothing_about_another_study_round_slot_teller_or_pair(
    kind: str, place: Place, other: Place
) -> None:
    say, read = KINDS[kind]
    if other == place:
        read(place, say(other))
    else:
        with pytest.raises(REFUSED):
            read(place, say(other))


@pytest.mark.parametrize(("kind", "other"), [(kind, other) for kind in KINDS for other in KINDS if kind != other])
@given(place=places)
def test_a_statement_of_one_kind_is_none_of_another(kind: str, other: str, place: Place) -> None:
    with pytest.raises(REFUSED):
        KINDS[kind][1](place, KINDS[other][0](place))


@given(place=places)
def test_a_share_for_another_list_of_the_same_sum_is_none_of_this_one(place: Place) -> None:
    said = parse_noisy_share(noisy_share(place), place.quorum.arrangement)
    with pytest.raises(RejectedProof, match="another list"):
        read_noisy_share(place, evolve(said, digest=bytes(32)).sign(place.key))
    signed = parse_list_signature(list_signature(place), place.quorum.arrangement)
    with pytest.raises(RejectedProof, match="did not sign"):
        read_list_signature(place, evolve(signed, digest=bytes(32)).sign(place.key))


@given(place=places)
def test_no_sum_is_made_of_fewer_tellers_or_members_than_there_are_to_be(place: Place) -> None:
    first = evolve(place, teller=0)
    for tellers in (0, 1):
        with pytest.raises(Malformed, match="of each of 2 tellers"):
            combine(
                place.quorum.arrangement,
                place.occasion,
                the_list(place).to_bytes(),
                [list_signature(first)][:tellers],
                [noisy_share(first)][:tellers],
            )
    one = AcceptedList(place.occasion, TAGS[:1])
    with pytest.raises(Malformed, match="at least 2"):
        combine(place.quorum.arrangement, place.occasion, one.to_bytes(), [], [])


@given(place=places, other=places)
def test_a_list_is_of_one_occasion(place: Place, other: Place) -> None:
    if other.occasion == place.occasion:
        assert parse_list(the_list(other).to_bytes(), place.occasion) == the_list(place)
    else:
        with pytest.raises(REFUSED):
            parse_list(the_list(other).to_bytes(), place.occasion)
        assert the_list(other).digest() != the_list(place).digest()


@given(place=places, other=places)
def test_a_round_s_document_is_of_one_study_and_round_and_has_every_slot(place: Place, other: Place) -> None:
    def slot(at: Place) -> SlotSum:
        return SlotSum(
            at.slot,
            the_list(at).to_bytes(),
            tuple(both(at, list_signature, list_signature(at))),
            tuple(both(at, noisy_share, noisy_share(at))),
        )

    slots = tuple(slot(evolve(place, slot=number)) for number in range(2))
    whole = RoundSums(place.study, place.round, slots).to_bytes()
    assert set(parse_round_sums(WHOLE, place.study, place.round, whole)) == {0, 1}
    if (other.study, other.round) != (place.study, place.round):
        with pytest.raises(REFUSED):
            parse_round_sums(WHOLE, other.study, other.round, whole)
        strange = tuple(slot(evolve(other, slot=number)) for number in range(2))
        with pytest.raises(REFUSED):
            parse_round_sums(
                WHOLE, place.study, place.round, RoundSums(place.study, place.round, (slots[0], strange[1])).to_bytes()
            )
    with pytest.raises(Malformed):
        parse_round_sums(WHOLE, place.study, place.round, RoundSums(place.study, place.round, slots[:1]).to_bytes())


@given(place=places, other=places)
def test_evidence_ends_no_other_study_and_no_other_round(place: Place, other: Place) -> None:
    signed = [
        ListSignature(place.occasion, teller, bytes([teller]) * 32).sign(evolve(place, teller=teller).key)
        for teller in range(2)
    ]
    evidence = disagreement_of(*signed, place.quorum.arrangement).to_bytes()
    assert parse_disagreement(evidence, place.study, WHOLE).occasion == place.occasion
    told = UnsummedRound(other.study, other.round, Why.DISAGREED, evidence).to_bytes()
    if other.study != place.study:
        with pytest.raises(RejectedProof, match="another study"):
            parse_disagreement(evidence, other.study, WHOLE)
    if (other.study, other.round) != (place.study, place.round):
        with pytest.raises(RejectedProof):
            parse_unsummed(WHOLE, other.study, told)
    else:
        assert parse_unsummed(WHOLE, other.study, told).evidence == evidence
    with pytest.raises(Malformed):
        parse_unsummed(WHOLE, bytes(32), UnsummedRound(place.study, place.round, Why.AWAY).to_bytes())


@given(place=places, other=places)
def test_two_honest_signatures_are_no_evidence(place: Place, other: Place) -> None:
    """An honest teller signs one list of an occasion: so do two, and one of them for two occasions or twice."""
    with pytest.raises(REFUSED):
        disagreement_of(list_signature(place), list_signature(other), place.quorum.arrangement)
    fellow = evolve(place, teller=1 - place.teller)
    with pytest.raises(RejectedProof, match="proves nothing"):
        disagreement_of(list_signature(place), list_signature(fellow), place.quorum.arrangement)


def test_evidence_has_one_spelling() -> None:
    place = Place(bytes(32), 0, 0, 0, 0)
    signed = [
        ListSignature(place.occasion, teller, bytes([teller]) * 32).sign(evolve(place, teller=teller).key)
        for teller in range(2)
    ]
    proof = disagreement_of(*signed, place.quorum.arrangement)
    with pytest.raises(RejectedProof):
        Disagreement(proof.second, proof.first, place.quorum.arrangement)
    with pytest.raises(Malformed):
        parse_disagreement(encode([b"another label", proof.first, proof.second]), place.study, WHOLE)


@given(
    study=st.sampled_from([bytes([7]) * 32, bytes([8]) * 32]),
    teller=st.integers(0, 1),
    change=st.sampled_from(["study", "teller", "arrangement", "key"]),
)
def test_a_countersignature_is_of_one_study_arrangement_and_teller(study: bytes, teller: int, change: str) -> None:
    said = [Countersignature(study, at, arrangement_digest(PLAIN)) for at in range(2)]
    honest = [one.sign(key) for one, key in zip(said, KEYS, strict=False)]
    check_countersignatures(study, PLAIN, honest)
    other = {
        "study": {"study": bytes(32)},
        "teller": {"teller": 1 - teller},
        "arrangement": {"arrangement": bytes(32)},
        "key": {},
    }[change]
    key = KEYS[1 - teller] if change == "key" else KEYS[teller]
    with pytest.raises(RejectedProof):
        check_countersignatures(
            study, PLAIN, [evolve(said[at], **other).sign(key) if at == teller else honest[at] for at in range(2)]
        )
    for few in ([], honest[:1], [*honest, honest[0]]):
        with pytest.raises(Malformed):
            check_countersignatures(study, PLAIN, few)
    with pytest.raises(Malformed):
        parse_countersignatures(encode([2, bytes(32), honest]), study, PLAIN)


@pytest.mark.parametrize("tags", [(TAGS[0], TAGS[0]), (TAGS[1], TAGS[0])], ids=["doubled", "out of order"])
def test_a_tag_stands_once_and_in_its_place(tags: tuple[bytes, ...]) -> None:
    """Signed as they are: a teller says two things of one packet, or a vector is summed twice."""
    place = Place(bytes(32), 0, 0, 0, 0)
    version, *heading, rows = decode(decode(verifier_shares(place))[0])
    share = rows[0][1]
    body = encode([version, *heading, [[tag, share] for tag in tags]])
    from anon.crypto import labels
    from anon.sharing.statements import _signed

    with pytest.raises(Malformed, match="not strictly sorted"):
        read_verifier_shares(place, _signed(place.key, labels.VERIFIER_SHARES, body))
    with pytest.raises(Malformed, match="not strictly sorted"):
        parse_list(AcceptedList(place.occasion, tags).to_bytes(), place.occasion)


@pytest.mark.parametrize("teller", [-1, 2])
def test_no_teller_has_a_number_beyond_the_arrangement_s(teller: int) -> None:
    place = Place(bytes(32), 0, 0, 1, 0)
    arrangement = place.quorum.arrangement
    for said, read in (
        (ListSignature(place.occasion, teller, bytes(32)), parse_list_signature),
        (NoisyShare(place.occasion, teller, bytes(32), b""), parse_noisy_share),
    ):
        with pytest.raises(Malformed, match="does not have"):
            read(said.sign(place.key), arrangement)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_list_s_digest_has_one_length(size: int) -> None:
    place = Place(bytes(32), 0, 0, 0, 0)
    for said, read in (
        (ListSignature(place.occasion, 0, bytes(size)), parse_list_signature),
        (NoisyShare(place.occasion, 0, bytes(size), b""), parse_noisy_share),
    ):
        with pytest.raises(Malformed, match="digest"):
            read(said.sign(place.key), place.quorum.arrangement)


def test_a_statement_of_another_version_is_none() -> None:
    from anon.crypto import labels
    from anon.sharing.statements import _signed

    place = Place(bytes(32), 0, 0, 0, 0)
    body = decode(decode(list_signature(place))[0])
    with pytest.raises(Malformed, match="version"):
        parse_list_signature(
            _signed(place.key, labels.LIST_SIGNATURE, encode([body[0] + 1, *body[1:]])), place.quorum.arrangement
        )


@given(place=places, other=places)
def test_a_quorum_is_read_under_its_own_id(place: Place, other: Place) -> None:
    if place.quorum.id == other.quorum.id:
        assert parse_quorum(other.quorum.id, place.quorum.to_bytes()) == place.quorum
    else:
        with pytest.raises(Malformed):
            parse_quorum(other.quorum.id, place.quorum.to_bytes())
