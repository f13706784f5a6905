"""Packets of version 2: one size, one spelling, and a share that opens for its one purpose."""

from __future__ import annotations

import hashlib

import pytest
from attrs import evolve

from anon.crypto.sealing import OVERHEAD
from anon.crypto.sealing.opening import Opener
from anon.errors import AnonmlError, Malformed, RejectedProof
from anon.wire.cbor import decode, encode
from anon.wire.packets import (
    Dummy,
    Layout,
    Occasion,
    Packet,
    Relayed,
    packet_info,
    pad,
    parse_packet,
    parse_relayed,
    seal_dummy,
    seal_packet,
    seal_shares,
    share_info,
    unpad,
)


def opener(name: str) -> Opener:
    return Opener(hashlib.sha256(name.encode()).digest())


STUDY = bytes(range(32))
AGGREGATOR, TELLERS = opener("aggregator"), [opener("one"), opener("two")]
LAYOUT = Layout(64, (500, 64), 384)
OCCASION = Occasion(STUDY, 3, 1)
TAG = b"t" * 48
TOKEN = TAG + b"k" * 336
SHARES = [b"l" * 500, b"h" * 64]


def packet(occasion: Occasion = OCCASION, survey: int = 0) -> Packet:
    shares = seal_shares(occasion, TAG, SHARES, [one.public_key for one in TELLERS])
    return Packet(occasion, survey, b"r" * 64, shares, TOKEN)


def opened(sealed: bytes, study: bytes = STUDY) -> Packet | Dummy:
    return parse_packet(AGGREGATOR.open(sealed, packet_info(study)), LAYOUT)


def test_a_packet_comes_back() -> None:
    sent = packet()
    assert opened(seal_packet(sent, LAYOUT, AGGREGATOR.public_key).ciphertext) == sent


@pytest.mark.parametrize(
    "sent", [packet(), packet(Occasion(STUDY, 0, 0)), packet(Occasion(STUDY, 2**16 - 1, 255), 2**16 - 1)]
)
def test_every_packet_has_one_size(sent: Packet) -> None:
    assert len(seal_packet(sent, LAYOUT, AGGREGATOR.public_key).ciphertext) == LAYOUT.sealed_size


def test_a_dummy_has_the_same_size_and_seal() -> None:
    dummy = Dummy(STUDY, 1_700_000_000, 1_800_000_000)
    sealed = seal_dummy(dummy, LAYOUT, AGGREGATOR.public_key).ciphertext
    assert len(sealed) == LAYOUT.sealed_size
    assert opened(sealed) == dummy


def test_a_packet_for_another_study_does_not_open() -> None:
    sealed = seal_packet(packet(), LAYOUT, AGGREGATOR.public_key).ciphertext
    with pytest.raises(RejectedProof):
        AGGREGATOR.open(sealed, packet_info(bytes(32)))


@pytest.mark.parametrize(("occasion", "tag", "teller", "owner"), [
    (Occasion(bytes(32), 3, 1), TAG, 0, 0),
    (Occasion(STUDY, 4, 1), TAG, 0, 0),
    (Occasion(STUDY, 3, 2), TAG, 0, 0),
    (OCCASION, b"u" * 48, 0, 0),
    (OCCASION, TAG, 1, 0),
    (OCCASION, TAG, 0, 1),
], ids=["study", "round", "slot", "tag", "place", "key"])
def test_a_share_opens_for_its_one_purpose(occasion: Occasion, tag: bytes, teller: int, owner: int) -> None:
    share = packet().shares[0]
    assert TELLERS[0].open(share, share_info(OCCASION, TAG, 0)) == SHARES[0]
    with pytest.raises(RejectedProof):
        TELLERS[owner].open(share, share_info(occasion, tag, teller))


def test_tags_of_two_occasions_have_two_contexts() -> None:
    occasions = [OCCASION, Occasion(STUDY, 4, 1), Occasion(STUDY, 3, 2), Occasion(bytes(32), 3, 1)]
    assert len({occasion.tag_context() for occasion in occasions}) == len(occasions)


@pytest.mark.parametrize("changed", [
    evolve(packet(), occasion=Occasion(STUDY, 3, 2)), evolve(packet(), survey=1), evolve(packet(), report=b"s" * 64),
], ids=["slot", "survey", "report"])
def test_the_token_signs_everything_else(changed: Packet) -> None:
    assert changed.presentation_header() != evolve(packet(), shares=changed.shares).presentation_header()


@pytest.mark.parametrize("teller", [0, 1])
def test_the_token_signs_every_share(teller: int) -> None:
    sent = packet()
    others = [*sent.shares]
    others[teller] = bytes(len(others[teller]))
    assert evolve(sent, shares=tuple(others)).presentation_header() != sent.presentation_header()


@pytest.mark.parametrize("teller", [0, 1])
def test_a_teller_is_shown_its_own_share_and_the_same_header(teller: int) -> None:
    sent = packet()
    relayed = parse_relayed(sent.relayed(teller).to_bytes(), LAYOUT)
    assert relayed == sent.relayed(teller)
    assert relayed.share == sent.shares[teller]
    assert sent.shares[1 - teller] not in relayed.to_bytes()
    assert relayed.token_item() == (TOKEN, OCCASION.tag_context(), sent.presentation_header())


def relayed() -> Relayed:
    return packet().relayed(0)


@pytest.mark.parametrize("bad", [
    evolve(relayed(), share=bytes(500 + OVERHEAD)),
    evolve(relayed(), teller=1),
    evolve(relayed(), teller=2),
    evolve(relayed(), teller=-1),
    evolve(relayed(), digests=(bytes(32),)),
    evolve(relayed(), digests=relayed().digests[::-1]),
    evolve(relayed(), report=b""),
    evolve(relayed(), token=TOKEN[:-1]),
    evolve(relayed(), survey=2**16),
])
def test_a_relayed_packet_of_another_form_is_refused(bad: Relayed) -> None:
    with pytest.raises(Malformed):
        parse_relayed(bad.to_bytes(), LAYOUT)


def spelled(number: int, value: object) -> bytes:
    fields = decode(packet().to_bytes())
    fields[number] = value
    return encode(fields)


BAD = [
    b"", b"\x80", b"\x00", encode([1]), spelled(0, 1), spelled(0, True), spelled(1, b"short"), spelled(2, -1),
    spelled(2, 2**16),
    spelled(3, 256), spelled(4, -1), spelled(4, "0"), spelled(5, b"r" * 65), spelled(6, []), spelled(6, [b"", b""]),
    spelled(6, [1, 2]),
    spelled(6, [*packet().shares, b""]), spelled(7, TOKEN + b"\0"), packet().to_bytes() + b"\0",
    encode([2, "cover", STUDY, 1]), encode([2, "cover", STUDY, 1, "2"]), encode([2, "other", STUDY, 1, 2]),
]


@pytest.mark.parametrize("plaintext", BAD, ids=range(len(BAD)))
def test_a_packet_of_another_form_is_refused(plaintext: bytes) -> None:
    with pytest.raises(Malformed):
        parse_packet(pad(plaintext, LAYOUT.plain_size), LAYOUT)


def test_wrong_padding_and_size_are_refused() -> None:
    padded = pad(packet().to_bytes(), LAYOUT.plain_size)
    for bad in (padded[:-1], padded + b"\0", padded[:-1] + b"\1"):
        with pytest.raises(Malformed):
            parse_packet(bad, LAYOUT)


def test_a_longer_layout_does_not_read_shorter_packets() -> None:
    wider = Layout(64, (600, 64), 384)
    with pytest.raises(AnonmlError):
        parse_packet(pad(packet().to_bytes(), wider.plain_size), wider)


def test_packets_without_tellers() -> None:
    """As the histogram may have them: a report, no share."""
    layout = Layout(64, (), 384)
    sent = Packet(OCCASION, 7, b"r" * 64, (), TOKEN)
    sealed = seal_packet(sent, layout, AGGREGATOR.public_key).ciphertext
    assert parse_packet(AGGREGATOR.open(sealed, packet_info(STUDY)), layout) == sent
    assert unpad(AGGREGATOR.open(sealed, packet_info(STUDY)), layout.plain_size) == sent.to_bytes()


def test_an_empty_place_in_the_padding_has_one_spelling() -> None:
    short = packet(Occasion(STUDY, 0, 0))
    padded = bytearray(pad(short.to_bytes(), LAYOUT.plain_size))
    assert len(short.to_bytes()) + 4 < LAYOUT.plain_size
    padded[-1] = 1
    with pytest.raises(Malformed):
        parse_packet(bytes(padded), LAYOUT)
