"""Trees of RFC 9162 against the vectors of the reference log, and documents in buckets."""

from __future__ import annotations

import os
from hashlib import sha256 as plain_sha256

import pytest

from anon.errors import Malformed
from anon.transparency import buckets
from anon.transparency.buckets import (
    Bucket,
    BucketDocument,
    bits_of,
    bucket_at,
    bucket_of,
    decoys,
    document_over,
    parse_bucket,
    parse_bucket_document,
    split,
    wire_bytes,
)
from anon.transparency.merkle import leaf_hash, led_to, path_of, root_of
from anon.wire.cbor import encode

# Leaves, roots and paths of `merkletree` in github.com/google/certificate-transparency (merkle_tree_test.cc).
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PATH_OF_FIRST = [
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
]
HASHED = [leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES]
STUDY = bytes(range(32))


def test_roots_and_paths_of_the_reference_log() -> None:
    assert [root_of(HASHED[:count]).hex() for count in range(9)] == ROOTS
    assert [step.hex() for step in path_of(HASHED, 0)] == PATH_OF_FIRST
    for count in range(1, 9):
        for index in range(count):
            path = path_of(HASHED[:count], index)
            assert led_to(HASHED[index], index, count, path) == root_of(HASHED[:count])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_no_other_leaf_place_size_or_path_leads_to_the_root(count: int) -> None:
    root = root_of(HASHED[:count])
    for index in range(count):
        path = path_of(HASHED[:count], index)
        assert led_to(leaf_hash(b"other"), index, count, path) != root
        others = [led_to(HASHED[index], other, count, path) for other in range(-1, count + 1) if other != index]
        assert root not in others
        assert led_to(HASHED[index], index, count, [*path, bytes(32)]) != root
        assert not path or led_to(HASHED[index], index, count, path[:-1]) != root
    with pytest.raises(IndexError):
        path_of(HASHED[:count], count)


def test_a_node_is_no_leaf() -> None:
    assert leaf_hash(HASHED[0] + HASHED[1]) != root_of(HASHED[:2])
    assert leaf_hash(b"x") == plain_sha256(b"\x00x").digest()


@pytest.mark.parametrize(
    ("count", "bits"),
    [(0, 0), (1, 0), (512, 0), (4095, 0), (4096, 4), (8191, 4), (10_000, 5), (100_000, 8), (10**6, 11)],
)
def test_a_bucket_has_from_256_to_512_entries_on_average(count: int, bits: int) -> None:
    assert bits_of(count) == bits
    assert count < 4096 or 256 <= count / 2**bits < 512


def test_buckets_are_equally_likely() -> None:
    """Chi-square over 16 buckets and fixed keys: 15 degrees of freedom, beyond 37.7 with one in a thousand."""
    parts = split((number.to_bytes(32, "big") for number in range(8000)), lambda key: key, 4)
    assert sum(map(len, parts)) == 8000 and all(bucket_of(key, 4) == 3 for key in parts[3])
    assert sum((len(part) - 500) ** 2 / 500 for part in parts) < 37.7


def _document(count: int = 4096) -> tuple[BucketDocument, list[bytes]]:
    bodies = [b"body %d" % number for number in range(1 << bits_of(count))]
    return document_over(STUDY, "roster", 0, count, list(map(leaf_hash, bodies)), bodies[0]), bodies


def test_a_document_and_its_buckets_have_one_spelling_each() -> None:
    document, bodies = _document()
    assert parse_bucket_document(document.to_bytes(), STUDY, "roster", 0) == document
    assert len(document.to_bytes()) <= buckets.LONGEST_DOCUMENT < 100
    leaves = list(map(leaf_hash, bodies))
    for number, body in enumerate(bodies):
        sent = bucket_at(leaves, number, body).to_bytes()
        assert parse_bucket(sent, document, number).body == body
        assert len(sent) <= wire_bytes(len(body), document.bits)
    with pytest.raises(ValueError, match="expected 16 buckets"):
        document_over(STUDY, "roster", 0, 4096, leaves[:4], bodies[0])


def _long(value: object) -> bytes:
    plain = encode(value)
    return len(plain).to_bytes(4, "big") + plain


def test_all_buckets_can_be_equally_long() -> None:
    document, bodies = _document()
    leaves, size = list(map(leaf_hash, bodies)), wire_bytes(300, document.bits)
    sent = [bucket_at(leaves, number, body).to_bytes(size) for number, body in enumerate(bodies)]
    assert {len(one) for one in sent} == {size}
    assert [parse_bucket(one, document, number).body for number, one in enumerate(sent)] == bodies


def test_another_bucket_body_root_or_path_is_malformed() -> None:
    document, bodies = _document()
    leaves = list(map(leaf_hash, bodies))
    bucket = bucket_at(leaves, 3, bodies[3])
    other = _document(8192)[0]
    for sent, of, number in (
        (bucket.to_bytes(), document, 2),
        (bucket.to_bytes(), other, 3),
        (Bucket(bodies[4], bucket.path).to_bytes(), document, 3),
        (Bucket(bodies[3], bucket.path[:-1]).to_bytes(), document, 3),
        (Bucket(bodies[3], (*bucket.path, bytes(32))).to_bytes(), document, 3),
        (Bucket(bodies[3], (bytes(31),) * 4).to_bytes(), document, 3),
        (bucket.to_bytes()[:-1], document, 3),
        (bucket.to_bytes(400)[:-1] + b"x", document, 3),
        (encode([bodies[3], list(bucket.path)]), document, 3),
        (_long([bodies[3]]), document, 3),
        (_long(["text", list(bucket.path)]), document, 3),
        (b"\xff", document, 3),
    ):
        with pytest.raises(Malformed):
            parse_bucket(sent, of, number)


@pytest.mark.parametrize("place", range(7))
def test_a_document_with_another_field_is_malformed(place: int) -> None:
    values = [1, STUDY, "roster", 0, 4096, 4, bytes(32)]
    assert parse_bucket_document(encode(values), STUDY, "roster", 0).buckets == 16
    others = [2, bytes(32), "credentials", 1, 8192, 5, bytes(31)]
    for bad in ([*values[:place], others[place], *values[place + 1 :]], values[:place], [*values, 0]):
        with pytest.raises(Malformed):
            parse_bucket_document(encode(bad), STUDY, "roster", 0)


def test_decoys_stay_the_same_and_are_never_the_own_bucket() -> None:
    seed = os.urandom(32)
    for bits in range(4):
        for own in range(1 << bits):
            drawn = decoys(seed, b"roster", own, bits)
            assert drawn == decoys(seed, b"roster", own, bits)
            assert len({own, *drawn}) == 1 + min(2, (1 << bits) - 1)
            assert all(0 <= other < 1 << bits for other in drawn)
    assert decoys(seed, b"roster", 0, 20) != decoys(seed, b"other", 0, 20)
    assert decoys(seed, b"roster", 0, 20) != decoys(os.urandom(32), b"roster", 0, 20)


def test_decoys_are_uniform_pairs() -> None:
    """Chi-square over the 6 ordered pairs beside one of four buckets: 5 degrees of freedom, beyond 20.5 with one in a
    thousand; fixed seeds."""
    pairs = [decoys(number.to_bytes(32, "big"), b"", 2, 2) for number in range(3600)]
    wanted = {(one, other) for one in (0, 1, 3) for other in (0, 1, 3) if one != other}
    assert set(pairs) == wanted
    expected = 3600 / 6
    assert sum((pairs.count(pair) - expected) ** 2 / expected for pair in wanted) < 20.5
