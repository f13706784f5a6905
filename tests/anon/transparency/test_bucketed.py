"""A bucket whose root is properly signed, over contents that no honest aggregator puts there: each is refused for its
own fault."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log

import pytest
from attrs import evolve
from nacl.signing import SigningKey

from anon.errors import Malformed
from anon.transparency import buckets
from anon.transparency.bucketed import (
    body_bytes,
    digests_of,
    entries_signed,
    members_signed,
    packets_signed,
    published,
    read_digests_bucket,
    read_packets_bucket,
    read_roster_bucket,
    read_transcript,
    roster_in_buckets,
    tag_of,
    transcript_in_buckets,
    whole_bytes,
)
from anon.transparency.buckets import LEAST, MEAN, bucket_of, document_over, parse_bucket_document
from anon.transparency.documents import sign_head
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import digest_list, transcript_body
from anon.wire.messages import RosterEntry, encode_credentials, encode_roster
from anon.wire.packets import PublishedPacket
from tests.support.fake_aggregator import FakeAggregator
from tests.support.tellers import PLACES, World, make_world

PACKETS = 12


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 2)


@pytest.fixture
def packets(world: World) -> list[PublishedPacket]:
    """As transcripts have them, sorted by tag. Nothing here looks at their tokens."""
    one = world.packets(PLACES[:1])[0].published()
    return [evolve(one, token=bytes([number]) + one.token[1:]) for number in range(PACKETS)]


def plain(packets: Sequence[PublishedPacket]) -> list[bytes]:
    return [one.to_bytes() for one in packets]


def test_contents_that_were_signed_as_they_are_still_have_to_be_right(
    eight: None, packets: list[PublishedPacket]
) -> None:
    study = packets[0].study
    made = transcript_in_buckets(study, 0, plain(packets))
    document = made.document
    number = max(range(document.buckets), key=lambda at: made.entries[at])
    assert made.entries[number] >= 2
    own = [one for one in packets if bucket_of(tag_of(one.to_bytes()), document.bits) == number]
    stray = next(one for one in packets if one not in own)
    moved = evolve(own[0], occasion=evolve(own[0].occasion, slot=1))

    def read(content: Sequence[PublishedPacket], slot: int = 0) -> tuple[PublishedPacket, ...]:
        body = transcript_body(study, slot, plain(content))
        leaves = list(made.leaves)
        signed = document_over(study, "transcript", 0, document.count, leaves, b"")  # whatever the root: it is signed
        return read_packets_bucket(signed, number, read_transcript(study, body))

    assert read(own) == tuple(own)
    assert read_transcript(study, transcript_body(study, 0, plain(own))).leaf == made.leaves[number]
    with pytest.raises(Malformed, match="strictly sorted"):
        read([own[0], own[0], *own[1:]])
    with pytest.raises(Malformed, match="strictly sorted"):
        read(own[::-1])
    with pytest.raises(Malformed, match="another bucket"):
        read(sorted([*own, stray], key=lambda one: one.token))
    with pytest.raises(Malformed, match="packet of another slot"):
        read([moved, *own[1:]])
    with pytest.raises(Malformed, match="bucket of another slot"):
        read(own, slot=1)
    with pytest.raises(Malformed, match="another slot"):
        digests_of(transcript_body(study, 1, plain(own)), study, 0)
    assert len(read_digests_bucket(document, digests_of(transcript_body(study, 0, plain(own)), study, 0))) == len(own)


def test_a_packet_of_a_survey_that_there_is_not_is_told_and_not_counted(packets: list[PublishedPacket]) -> None:
    manifest = FakeAggregator.with_study().manifest
    strange = [
        evolve(one, occasion=evolve(one.occasion, study=manifest.study_id), survey=len(manifest.surveys))
        for one in packets[:1]
    ]
    found = published(manifest, [transcript_body(manifest.study_id, 0, [*plain(strange), b"no packet"])])
    assert found.unreadable == 2 and not any(found.packets.values())


def test_a_packet_that_no_mechanism_makes_is_told_and_not_counted(packets: list[PublishedPacket]) -> None:
    manifest = FakeAggregator.with_study().manifest
    strange = evolve(packets[0], occasion=evolve(packets[0].occasion, study=manifest.study_id), survey=0, report=b"")
    found = published(manifest, [transcript_body(manifest.study_id, 0, plain([strange]))])
    assert found.unreadable == 1 and not any(found.packets.values())


def test_a_member_stands_in_its_own_bucket(eight: None) -> None:
    entries = [RosterEntry(bytes([number]) * 32, bytes(32), bytes(48)) for number in range(PACKETS)]
    study, bits = bytes(32), buckets.bits_of(PACKETS)
    document = document_over(study, "roster", 0, PACKETS, [bytes(32)] * (1 << bits), b"")
    own = [one for one in entries if bucket_of(one.key, bits) == 0]
    assert len(read_roster_bucket(document, 0, encode_roster(study, own))) == len(own)
    with pytest.raises(Malformed, match="another bucket"):
        read_roster_bucket(document, 0, encode_roster(study, entries))


def test_a_refused_bucket_is_one_in_a_million_honest_ones_and_no_smaller_bound_is_taken() -> None:
    """The law of a bucket's size is Poisson, at its mean. A bound far below this one would let an aggregator tell who
    fetches."""
    below = sum(exp(count * log(MEAN) - MEAN - lgamma(count + 1)) for count in range(LEAST))
    assert 1e-7 < below < 1e-6
    assert (MEAN, buckets.DECOYS) == (256, 2)


def entries_of(count: int) -> list[RosterEntry]:
    return [RosterEntry(number.to_bytes(32, "big"), bytes(32), bytes(48)) for number in range(count)]


def test_so_many_entries_have_several_buckets_and_fewer_stand_in_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "THRESHOLD", 1024)
    few, many = (roster_in_buckets(bytes(32), entries_of(count)).document for count in (1023, 1024))
    assert (few.buckets, many.buckets) == (1, 4)
    assert few.body == encode_roster(bytes(32), entries_of(1023)) and many.body == b""
    assert few.only is not None and few.holds(0, few.only.body, few.only.path) and many.only is None
    assert parse_bucket_document(few.to_bytes(), bytes(32), "roster", 0) == few


@pytest.mark.parametrize("count", [0, 1, 23, 24, 255, 256, 257, 4095])
def test_a_signed_length_is_a_signed_number(count: int) -> None:
    key, study = SigningKey.generate(), bytes(32)
    made = [
        roster_in_buckets(study, entries_of(count)).document,
        document_over(
            study,
            "credentials",
            0,
            count,
            [leaf_hash(issued := encode_credentials(study, [bytes(80)] * count))],
            issued,
        ),
        document_over(
            study, "transcript", 3, count, [leaf_hash(listed := digest_list(study, 3, [bytes(32)] * count))], listed
        ),
    ]
    heads = [sign_head(key, study, (), one.kind, one.part, one.to_bytes()) for one in made]
    assert [entries_signed(one.head) for one in heads] == [count] * 3
    assert [whole_bytes(one.kind, one.part, count) for one in made] == [one.head.length for one in heads]
    assert members_signed(heads[:1]) == (count or None) and packets_signed(heads) == {3: count}
    assert [body_bytes(one.kind, one.part, count) for one in made] == [len(one.body) for one in made]


def test_one_bucket_has_as_many_entries_as_are_signed() -> None:
    study, members = bytes(32), encode_roster(bytes(32), entries_of(7))
    digests = digest_list(study, 0, [bytes(32)] * 7)
    for count in (6, 7, 8):
        roster = document_over(study, "roster", 0, count, [leaf_hash(members)], members)
        listed = document_over(study, "transcript", 0, count, [leaf_hash(digests)], digests)
        if count == 7:
            assert len(read_roster_bucket(roster, 0, members)) == 7 and read_digests_bucket(listed, digests)
            continue
        with pytest.raises(Malformed, match=f"signed for {count} entries, and it has 7"):
            read_roster_bucket(roster, 0, members)
        with pytest.raises(Malformed, match=f"signed for {count} entries, and it has 7"):
            read_digests_bucket(listed, digests)
