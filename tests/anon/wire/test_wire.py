"""The wire's bytes: one spelling, bound to study and purpose; every flaw is one case."""

from __future__ import annotations

import os
from typing import Any

import pytest
from nacl.signing import SigningKey

from anon.credential import commit, signer_nym_entropy
from anon.errors import AnonmlError, Malformed, RejectedProof
from anon.transparency.documents import Head, SignedHead, check_body, encode_chain, find, parse_chain, sign_head
from anon.transparency.fingerprint import words
from anon.wire import messages
from anon.wire.cbor import decode, encode
from anon.wire.invite import Invite, invite_hash, parse_invite
from anon.wire.onion_address import onion_host
from anon.wire.replies import REPLY_BYTES, WORDS, encode_reply, parse_reply

STUDY = bytes(range(32))
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x18\x01",
        b"\x01\x01",
        b"\x9f\x01\xff",
        b"\xa2\x61b\x01\x61a\x02",
        b"\xa2\x61a\x01\x61a\x02",
        b"\xc1\x1a\x00\x00\x00\x01",
        b"\xf9\x7e\x00",
        b"\xf9\x7c\x00",
        b"\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x81" * 40 + b"\x01",
        b"\x61\xff",
        b"\xf7",
        b"\x5f\x41a\xff",
    ],
    ids=[
        "empty", "long integer", "trailing", "indefinite list", "unsorted keys", "repeated key", "tag", "NaN",
        "infinity", "long float", "deep", "bad text", "undefined", "indefinite bytes",
    ],
)
def test_other_spellings_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(data)


@pytest.mark.parametrize(
    "value", [0, -1, 2**70, 1.5, 0.1, "é", b"\x00", True, None, [1, [2, {}]], {"a": 1, "b": [b""]}, {1: 2}]
)
def test_plain_values_round_trip(value: Any) -> None:
    assert decode(encode(value)) == value


def test_answers_have_one_length() -> None:
    assert {len(encode_reply(word)) for word in WORDS} == {REPLY_BYTES}
    assert all(parse_reply(encode_reply(word)) == word for word in WORDS)


@pytest.mark.parametrize("data", [b"", b"accepted", b"hello".ljust(64), b"accepted".ljust(65), b"\xff" * 64])
def test_answers_of_strangers_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_reply(data)


def test_invites_round_trip_and_hide_their_code() -> None:
    invite = Invite(f"{onion_host(bytes(32))}:80", bytes(32), STUDY, "sesame & more")
    assert parse_invite(invite.link()) == invite
    assert "sesame" not in repr(invite)
    assert parse_invite(Invite("127.0.0.1:8000", bytes(32), STUDY).link()).code == ""


@pytest.mark.parametrize("link", [
    "", "http://a:1/" + "00" * 32 + "?key=" + "00" * 32, "anonml://a:1/00?key=" + "00" * 32,
    "anonml://a:1/" + "00" * 32,
    "anonml://a:1/" + "00" * 32 + "?key=" + "00" * 32 + "&colour=red", "anonml://a/" + "00" * 32 + "?key=" + "00" * 32,
    "anonml://a:1/" + "00" * 32 + "?key=xyz", "anonml://u@a:1/" + "00" * 32 + "?key=" + "00" * 32,
    "anonml://a:1/" + "00" * 32 + "?key=" + "00" * 32 + "&key=" + "11" * 32,
])
def test_bad_invites_say_to_ask_again(link: str) -> None:
    with pytest.raises(Malformed, match="again"):
        parse_invite(link)


def test_invite_hash_is_bound_to_the_study() -> None:
    assert invite_hash(STUDY, "a") != invite_hash(bytes(32), "a")
    assert invite_hash(STUDY, "") == b""


def test_fingerprints_are_twelve_words_and_differ() -> None:
    assert len(words(STUDY).split("-")) == 12
    assert words(STUDY) != words(bytes(32))
    earlier = "ropar-sugas-mofop-zojos-fobaz-dumat-kohug-majad"
    assert words(STUDY).startswith(earlier + "-"), "what stands in a public place already is how they begin"


def _chain(key: SigningKey, bodies: list[tuple[str, bytes]], study: bytes = STUDY) -> list[SignedHead]:
    chain: list[SignedHead] = []
    for kind, body in bodies:
        chain.append(sign_head(key, study, chain, kind, 0, body))
    return chain


def test_a_chain_verifies_and_finds_its_documents() -> None:
    key = SigningKey.generate()
    chain = _chain(key, [("manifest", b"m"), ("roster", b"r")])
    again = parse_chain(encode_chain(chain), bytes(key.verify_key), STUDY)
    assert again == tuple(chain)
    head = find(again, "roster")
    assert head is not None
    assert check_body(head, b"r") == b"r"
    assert find(again, "model") is None
    with pytest.raises(Malformed):
        check_body(head, b"R")


def _break_chain(kind: str, key: SigningKey) -> bytes:
    chain = _chain(key, [("manifest", b"m"), ("roster", b"r"), ("seed", b"s")])
    if kind == "other key":
        chain = _chain(SigningKey.generate(), [("manifest", b"m")])
    elif kind == "other study":
        chain = _chain(key, [("manifest", b"m")], bytes(32))
    elif kind == "gap":
        del chain[1]
    elif kind == "order":
        chain.reverse()
    elif kind == "signature flipped":
        chain[1] = SignedHead(chain[1].head, bytes([chain[1].signature[0] ^ 1]) + chain[1].signature[1:])
    elif kind == "short signature":
        chain[1] = SignedHead(chain[1].head, b"")
    elif kind == "spliced":
        other = _chain(key, [("manifest", b"x"), ("roster", b"r")])
        chain = [chain[0], other[1]]
    elif kind == "unknown kind":
        chain = _chain(key, [("Gossip 2", b"m")])
    elif kind == "huge":
        head = Head(STUDY, 0, "manifest", 0, 2**40, bytes(32), bytes(32))
        chain = [SignedHead(head, b"")]
    return encode_chain(chain)


@pytest.mark.parametrize(
    "kind",
    [
        "other key", "other study", "gap", "order", "signature flipped", "short signature", "spliced", "unknown kind",
        "huge",
    ],
)
def test_broken_chains_are_refused(kind: str) -> None:
    key = SigningKey.generate()
    with pytest.raises((Malformed, RejectedProof)):
        parse_chain(_break_chain(kind, key), bytes(key.verify_key), STUDY)


def _enrolment(signer: SigningKey, **changes: Any) -> messages.Enrolment:
    fields: dict[str, Any] = {
        "study": STUDY, "key": bytes(signer.verify_key), "contribution": os.urandom(32),
        "commitment": commit(1, os.urandom).commitment_with_proof, "invite": bytes(32),
    }
    return messages.Enrolment(**(fields | changes))


def test_enrolments_round_trip() -> None:
    key = SigningKey.generate()
    enrolment = _enrolment(key)
    assert messages.parse_enrolment(messages.sign_enrolment(enrolment, key), STUDY, 1) == enrolment


@pytest.mark.parametrize("changes", [
    {"study": bytes(32)}, {"key": bytes(31)}, {"contribution": bytes(31)}, {"commitment": bytes(10)},
    {"invite": bytes(5)},
], ids=lambda change: next(iter(change)))
def test_malformed_enrolments(changes: dict[str, bytes]) -> None:
    key = SigningKey.generate()
    with pytest.raises(AnonmlError):
        messages.parse_enrolment(messages.sign_enrolment(_enrolment(key, **changes), key), STUDY, 1)


def test_an_enrolment_signed_by_another_key_is_rejected() -> None:
    key = SigningKey.generate()
    with pytest.raises(RejectedProof):
        messages.parse_enrolment(messages.sign_enrolment(_enrolment(key), SigningKey.generate()), STUDY, 1)


def test_a_withdrawal_cannot_be_made_from_an_enrolment() -> None:
    key = SigningKey.generate()
    assert messages.parse_withdrawal(messages.sign_withdrawal(STUDY, key), STUDY) == bytes(key.verify_key)
    with pytest.raises(AnonmlError):
        messages.parse_withdrawal(messages.sign_enrolment(_enrolment(key), key), STUDY)
    with pytest.raises(AnonmlError):
        messages.parse_withdrawal(messages.sign_withdrawal(bytes(32), key), STUDY)


def _entries(count: int) -> list[messages.RosterEntry]:
    return [messages.RosterEntry(os.urandom(32), os.urandom(32), os.urandom(48)) for _ in range(count)]


def test_rosters_are_sorted_whatever_the_order_of_arrival() -> None:
    entries = _entries(5)
    assert messages.encode_roster(STUDY, entries) == messages.encode_roster(STUDY, entries[::-1])
    assert [e.key for e in messages.parse_roster(messages.encode_roster(STUDY, entries), STUDY)] == sorted(
        e.key for e in entries
    )


@pytest.mark.parametrize("rows", [
    lambda e: [[x.key, x.contribution, x.commitment_point] for x in sorted(e, key=lambda x: x.key)][::-1],
    lambda e: [[e[0].key, e[0].contribution, e[0].commitment_point]] * 2,
    lambda e: [[e[0].key, e[0].contribution]], lambda e: [[e[0].key, e[0].contribution, 5]],
    lambda e: [[e[0].key, b"", e[0].commitment_point]],
], ids=["unsorted", "twice", "short row", "wrong type", "wrong size"])
def test_bad_rosters(rows: Any) -> None:
    with pytest.raises(Malformed):
        messages.parse_roster(encode([1, STUDY, rows(_entries(2))]), STUDY)


def test_the_seed_must_open_its_commitment() -> None:
    value = os.urandom(32)
    commitment = messages.seed_commitment(value)
    assert messages.parse_seed(messages.encode_seed(STUDY, value), STUDY, commitment) == value
    with pytest.raises(Malformed, match="do not take part"):
        messages.parse_seed(messages.encode_seed(STUDY, bytes(32)), STUDY, commitment)


def test_credentials_match_the_roster() -> None:
    body = messages.encode_credentials(STUDY, [bytes(80), bytes(80)])
    assert len(messages.parse_credentials(body, STUDY, 2)) == 2
    for wrong in (
        messages.encode_credentials(STUDY, [bytes(79), bytes(80)]),
        messages.encode_credentials(bytes(32), [bytes(80)] * 2),
    ):
        with pytest.raises(Malformed):
            messages.parse_credentials(wrong, STUDY, 2)
    with pytest.raises(Malformed):
        messages.parse_credentials(body, STUDY, 3)


def test_entropy_is_a_nonzero_scalar() -> None:
    values = {signer_nym_entropy(bytes(32), os.urandom(32)) for _ in range(50)}
    assert len(values) == 50
    assert all(0 < int.from_bytes(value, "big") < R for value in values)
