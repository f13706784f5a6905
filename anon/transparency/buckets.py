"""Documents in buckets: roster, credentials and transcripts.

1. `bits_of` and `bucket_of`: an entry's bucket is the first bits of a hash of its key (roster, credentials) or tag.
2. `split` and `allot`: the entries of each bucket, in their order.
3. `document_over`: the signed document, which has the number of entries and the root of a Merkle tree over the buckets.
   Below `THRESHOLD` entries there is one bucket, and its body stands within the document in place of the root.
4. `bucket_at`: a bucket with its path to the root, for the wire.
5. `decoys`: a peer fetches its own bucket and two others, in place of all entries.
6. `parse_bucket_document` and `parse_bucket`: what a peer takes of a document and of a bucket.

The bucket of N entries is named by b = floor(log2(N / 256)) bits. So one of several has 256 to 512 entries on average,
whatever N is. Keys can be ground until they fall into one bucket, and an aggregator can invent members: about 256,
inventions included, is all that a bucket promises. One below 180 entries is refused. That happens to one honest bucket
in a million at worst.

The constants here stand in no manifest: no study can make buckets smaller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from attrs import field

from anon.crypto import labels
from anon.errors import Malformed
from anon.transparency.merkle import HASH_BYTES, leaf_hash, led_to, path_of, root_of
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256
from anon.wire.messages import VERSION
from anon.wire.packets import pad, unpad

THRESHOLD = 4096
"""Entries from which on a document has several buckets."""
MEAN = 256
"""Entries that a bucket has on average, at least."""
LEAST = 180
"""Entries below which a peer takes no bucket: it would be told from others by it."""
MOST = 16_384
"""Entries of the longest bucket: 2 MB of a roster. An aggregator signs no longer one, and no peer fetches one."""
DECOYS = 2
"""Further buckets that a peer fetches beside its own."""
MOST_BITS = 24
_PREFIX = 4
_Item = TypeVar("_Item")


def bits_of(count: int) -> int:
    """b = floor(log2(count / 256)); 0 below `THRESHOLD` entries, which are one bucket.

    One of several buckets has 256 to 512 entries on average, whatever the size of the study:

    >>> [(count, count >> bits_of(count)) for count in (500, 5_000, 100_000)]
    [(500, 500), (5000, 312), (100000, 390)]
    """
    return 0 if count < THRESHOLD else max(0, (count // MEAN).bit_length() - 1)


def bucket_of(key: bytes, bits: int) -> int:
    """The bucket of a key or tag: the first bits of its hash."""
    # Minus binds closer than a shift: what stays are the first bits of 32.
    return int.from_bytes(sha256(labels.BUCKET, key)[:4], "big") >> 32 - bits


def split(items: Iterable[_Item], key: Callable[[_Item], bytes], bits: int) -> list[list[_Item]]:
    """The items of each bucket, in the order in which they come. Empty buckets are there too."""
    parts: list[list[_Item]] = [[] for _ in range(1 << bits)]
    for item in items:
        parts[bucket_of(key(item), bits)].append(item)
    return parts


def allot(keys: bytes, size: int) -> list[bytes]:
    """Keys of `size` bytes, laid end to end, by their buckets: those of each bucket laid end to end, in the order in
    which they come. They take three times their own memory."""
    bits = bits_of(len(keys) // size)
    parts = [bytearray() for _ in range(1 << bits)]
    for key in cut(keys, size):
        parts[bucket_of(key, bits)] += key
    return [bytes(part) for part in parts]


def cut(keys: bytes, size: int) -> Iterator[bytes]:
    """The keys that are laid end to end."""
    return (keys[start : start + size] for start in range(0, len(keys), size))


@frozen
class BucketDocument:
    """The signed document: how many entries there are, and the root over the buckets.

    `part`: of a transcript its slot, else 0. `bits` follows from `count`. `body`: of the one bucket, where there are
    not several.
    """

    study: bytes
    kind: str
    part: int
    count: int
    root: bytes
    body: bytes = field(default=b"", repr=False)

    @property
    def bits(self) -> int:
        """The bits that name a bucket."""
        return bits_of(self.count)

    @property
    def small(self) -> int:
        """Entries below which one of its buckets is refused; 0 where one bucket holds all."""
        return LEAST if self.bits else 0

    @property
    def buckets(self) -> int:
        """How many buckets there are."""
        return 1 << self.bits

    @property
    def only(self) -> Bucket | None:
        """The one bucket, which needs no fetch; None where there are several."""
        return None if self.bits else Bucket(self.body, ())

    def to_bytes(self) -> bytes:
        """The body whose digest is signed: [version, study, kind, part, count, bits, root], or the one bucket's body in
        place of the root."""
        last = self.root if self.bits else self.body
        return encode([VERSION, self.study, self.kind, self.part, self.count, self.bits, last])

    def holds(self, bucket: int, body: bytes, path: Sequence[bytes]) -> bool:
        """True if the path leads from this body, as this bucket, to the root."""
        return led_to(leaf_hash(body), bucket, self.buckets, path) == self.root


LONGEST_DOCUMENT = len(encode([VERSION, bytes(32), "credentials", 255, 2**32 - 1, MOST_BITS, bytes(HASH_BYTES)]))
"""Bytes of a document over several buckets. One with a single entry within it is longer, so a length tells them apart.
"""


def document_bytes(kind: str, part: int, count: int, body: int) -> int:
    """Bytes of a document of so many entries in one bucket, with a body of so many bytes."""
    return len(encode([VERSION, bytes(32), kind, part, count, 0, b""])) - 1 + len(encode(body)) + body


def document_over(
    study: bytes, kind: str, part: int, count: int, leaves: Sequence[bytes], body: bytes
) -> BucketDocument:
    """The document over these buckets, by the hashes of their bodies. `body`: of the first. Raises `ValueError` for
    another number of them."""
    made = BucketDocument(study, kind, part, count, root_of(leaves), b"" if bits_of(count) else body)
    if len(leaves) != made.buckets:
        raise ValueError(f"{kind} {part}: expected {made.buckets} buckets, got {len(leaves)}")
    return made


def parse_bucket_document(body_untrusted: bytes, study: bytes, kind: str, part: int) -> BucketDocument:
    """The document of this study, kind and part. Raises `Malformed`, also where the bits are not those of the count."""
    fields = decode(body_untrusted, kind)
    kinds = (int, bytes, str, int, int, int, bytes)
    if not isinstance(fields, list) or len(fields) != len(kinds):
        raise Malformed(f"{kind}: expected a document in buckets")
    if not all(type(value) is wanted for value, wanted in zip(fields, kinds, strict=True)):
        raise Malformed(f"{kind}: expected a document in buckets")
    count, last = fields[4], fields[6]
    several = 0 <= count < 2**32 and bits_of(count) > 0
    if not 0 <= count < 2**32 or (several and len(last) != HASH_BYTES):
        raise Malformed(f"{kind}: impossible size or root of its buckets")
    root, body = (last, b"") if several else (leaf_hash(last), last)
    made = BucketDocument(study, kind, part, count, root, body)
    if made.bits > MOST_BITS or made.to_bytes() != body_untrusted:
        raise Malformed(f"{kind}: for another study or document, or its number of buckets is not that of its size")
    return made


@frozen
class Bucket:
    """One bucket's body and its path to the root, 32 bytes a step."""

    body: bytes = field(repr=False)
    path: tuple[bytes, ...] = field(repr=False)

    def to_bytes(self, size: int = 0) -> bytes:
        """For the wire: [body, [hash, ...]] with its length before it, and zeros up to `size` bytes. Static: any mirror
        can hold it."""
        plain = encode([self.body, list(self.path)])
        return pad(plain, max(size, _PREFIX + len(plain)))


def bucket_at(leaves: Sequence[bytes], number: int, body: bytes) -> Bucket:
    """A bucket with its path among the hashes of all bodies."""
    return Bucket(body, tuple(path_of(leaves, number)))


def wire_bytes(longest_body: int, bits: int) -> int:
    """Bytes of a bucket on the wire, from those of the longest body."""
    whole = len(encode([b"", [bytes(HASH_BYTES)] * bits])) - 1 + len(encode(longest_body)) + longest_body
    return _PREFIX + whole


def parse_bucket(data_untrusted: bytes, document: BucketDocument, number: int) -> Bucket:
    """The bucket of this number, when its path leads to the document's root. Raises `Malformed`. Its content is
    untrusted still: the aggregator signed the root and may have put anything under it."""
    fields = decode(unpad(data_untrusted, len(data_untrusted)), "bucket")
    if not isinstance(fields, list) or len(fields) != 2 or type(fields[0]) is not bytes or type(fields[1]) is not list:
        raise Malformed("bucket: expected a body and a path")
    if not all(type(step) is bytes and len(step) == HASH_BYTES for step in fields[1]):
        raise Malformed("bucket: expected a path of hashes")
    bucket = Bucket(fields[0], tuple(fields[1]))
    if not document.holds(number, bucket.body, bucket.path):
        raise Malformed("bucket: it does not lead to the signed root; fetch it again")
    return bucket


def decoys(seed: bytes, context: bytes, own: int, bits: int) -> tuple[int, ...]:
    """Buckets to fetch beside the own one: uniform among the others, without repetition.

    They follow from the seed, 32 random bytes that are kept, so that a retry asks for the same ones: whoever saw two
    different sets would know the own bucket as what both have. The bias is below 2**-100.

    A retry asks for the same three buckets:

    >>> decoys(bytes(32), b"roster", own=5, bits=8)
    (170, 230)
    >>> decoys(bytes(32), b"roster", own=5, bits=8), decoys(bytes(32), b"roster", own=0, bits=1)
    ((170, 230), (1,))
    """
    taken, drawn = [own], hashlib.shake_256(encode([labels.DECOYS, seed, context])).digest(16 * DECOYS)
    for number in range(min(DECOYS, (1 << bits) - 1)):
        place = int.from_bytes(drawn[16 * number : 16 * number + 16], "big") % ((1 << bits) - len(taken))
        # Stepping over the taken ones leaves every other bucket as likely.
        for other in sorted(taken):
            place += place >= other
        taken.append(place)
    return tuple(taken[1:])
