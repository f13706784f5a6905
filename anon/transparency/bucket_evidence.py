"""Evidence against an aggregator that put something under a signed root which no honest one does.

A bucket that cannot be read, is not sorted, or holds an entry that belongs elsewhere; credentials that are too few or
too many for their bucket of the roster; a credential in a bucket that nobody could use. The signed document fixes the
root, the path leads from the bucket to it, and so the bucket is the aggregator's own. A document of one bucket has it
within itself, and a wrong number of entries is provable too.

Not provable by one of several buckets: a wrong number of entries in all, which only all together show (`audit`). Nor,
by any, an entry that was left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from anon.crypto import labels
from anon.errors import AnonmlError, Malformed
from anon.study.manifest import Manifest
from anon.transparency.bucketed import read_digests_bucket, read_roster_bucket
from anon.transparency.buckets import Bucket, BucketDocument, parse_bucket_document
from anon.transparency.closing import CLOSING, Bodies, read_closing
from anon.transparency.documents import SignedHead, check_body, encode_chain, find, parse_chain
from anon.transparency.proves import AboutAnAggregator, ProvesNothing
from anon.values import frozen
from anon.wire.cbor import encode

Opened = tuple[Bucket, ...]
"""The bucket that is at fault; of credentials after the roster's bucket of the same number."""
NO_PLACE = -1


@frozen
class BadBucket(AboutAnAggregator):
    """A bucket under a signed root that is not what it must be.

    `chain`: the signed heads up to the document's. `bodies`: of that document alone (roster, transcript), or of roster,
    seed and credentials, in this order. `opened`: the bucket, or both of the number `bucket`. `place`: of a bad
    credential in its bucket; `NO_PLACE` where the bucket itself is at fault. Raises `ProvesNothing`, or `Malformed`,
    unless that is what it is.
    """

    chain: tuple[SignedHead, ...] = field(repr=False)
    bodies: tuple[bytes, ...] = field(repr=False)
    bucket: int
    opened: Opened = field(repr=False)
    place: int
    fault: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        if not self.chain:
            raise ProvesNothing("no heads; this is not a file of ours")
        parse_chain(encode_chain(self.chain), self.key, self.study)
        kind = self.chain[-1].head.kind
        fault = self._credentials_fault() if kind == "credentials" else self._bucket_fault()
        if not fault:
            raise ProvesNothing("the bucket that it names is good; this proves nothing")
        object.__setattr__(self, "fault", fault)

    @property
    def number(self) -> int:
        """The place of the document in the chain."""
        return self.chain[-1].head.number

    def to_bytes(self) -> bytes:
        """The one spelling: [label, manifest, heads, [body, ...], bucket, [[body, [hash, ...]], ...], place]."""
        opened = [[bucket.body, list(bucket.path)] for bucket in self.opened]
        heads = encode_chain(self.chain)
        whole = [labels.BAD_BUCKET, self.manifest.to_bytes(), heads, list(self.bodies), self.bucket, opened, self.place]
        return encode(whole)

    def _bucket_fault(self) -> str:
        head = self.chain[-1].head
        if len(self.bodies) != 1 or len(self.opened) != 1 or self.place != NO_PLACE:
            raise ProvesNothing("expected one document and one bucket; this is not a file of ours")
        body = check_body(head, self.bodies[0])
        document = parse_bucket_document(body, self.study, head.kind, head.part)
        self._demand_held(document, self.opened[0])
        return bucket_fault(document, self.bucket, self.opened[0].body)

    def _credentials_fault(self) -> str:
        if len(self.bodies) != len(CLOSING) or len(self.opened) != 2:
            raise ProvesNothing("expected three documents and two buckets; this is not a file of ours")
        for kind, body in zip(CLOSING, self.bodies, strict=True):
            head = find(self.chain, kind)
            if head is None:
                raise ProvesNothing(f"the heads name no {kind}; this proves nothing")
            check_body(head, body)
        documents = read_closing(self.manifest.to_bytes(), self.manifest, Bodies(*self.bodies))
        for document, bucket in zip((documents.roster, documents.credentials), self.opened, strict=True):
            self._demand_held(document, bucket)
        read_roster_bucket(documents.roster, self.bucket, self.opened[0].body)
        try:
            closing = documents.closing(self.bucket, self.opened[0].body, self.opened[1].body)
        except Malformed as malformed:
            return str(malformed) if self.place == NO_PLACE else ""
        if not 0 <= self.place < len(closing.entries):
            return ""
        if not closing.is_bad(self.place):
            return ""
        holder = closing.entries[self.place].key.hex()
        return (
            f"the credential of entry {self.place} of {len(closing.entries)} (key {holder[:16]}...) is bad: its holder "
            "cannot send"
        )

    def _demand_held(self, document: BucketDocument, bucket: Bucket) -> None:
        if not document.holds(self.bucket, bucket.body, bucket.path):
            raise ProvesNothing("the bucket does not lead to the signed root; this proves nothing")


def bucket_fault(document: BucketDocument, number: int, body: bytes) -> str:
    """The reason why no honest aggregator puts this body there; empty for one that can be."""
    try:
        if document.kind == "roster":
            read_roster_bucket(document, number, body)
        elif document.kind == "transcript":
            read_digests_bucket(document, body)
    except Malformed as malformed:
        return str(malformed)
    return ""


def bad_bucket_of(
    manifest: Manifest,
    chain: Sequence[SignedHead],
    bodies: Sequence[bytes],
    bucket: int,
    opened: Opened,
    place: int = NO_PLACE,
) -> BadBucket:
    """Evidence from the heads of a study; `bodies` and `opened` as `BadBucket` has them. Raises `ProvesNothing`."""
    last = max((signed.head.number for signed in chain if _of(signed, bodies)), default=None)
    if last is None:
        raise ProvesNothing("no such document was published; this proves nothing")
    return BadBucket(manifest, tuple(chain[: last + 1]), tuple(bodies), bucket, opened, place)


def read_bad_bucket(manifest: Manifest, heads: bytes, *rest: object) -> BadBucket:
    """Evidence out of a file's fields. Raises `ProvesNothing` or another error for what is none."""
    bodies, bucket, opened, place = rest
    if type(bucket) is not int or type(place) is not int or not isinstance(bodies, list):
        raise ProvesNothing("expected a bucket and a place; this is not a file of ours")
    if not isinstance(opened, list) or not all(type(body) is bytes for body in bodies):
        raise ProvesNothing("expected documents and buckets; this is not a file of ours")
    chain = parse_chain(heads, manifest.aggregator_key, manifest.study_id)
    buckets = tuple(Bucket(body, tuple(path)) for body, path in opened)
    return BadBucket(manifest, chain, tuple(bodies), bucket, buckets, place)


def _of(signed: SignedHead, bodies: Sequence[bytes]) -> bool:
    try:
        check_body(signed.head, bodies[-1])
    except AnonmlError:
        return False
    return True
