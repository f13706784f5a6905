"""A check of the documents that closed an enrolment: each entry of the roster was given a credential that works.

An aggregator that gives its victim a good credential and everybody else garbage has one sender left, in one story for
all and under any roster. So everybody checks everybody's credential (`anon.credential.issued`), and stops at a bad one.

`audit` checks all, and so does a peer with the native curve up to `MOST_CHECKED` entries. In a larger roster, or with
the curve in Python, a peer checks its own and a random sample of the others. Of n others with k bad ones a sample of s
misses all with probability

    C(n - k, s) / C(n, s) <= (1 - k / n)^s,

so it finds one with at least 1 - (1 - k/n)^s. To leave h able to send, k = n - h are bad: it stays unseen with at most
(h / n)^s. A sample of 256 finds one bad in a hundred with .924 and one in ten with 1 - 2e-12. A sample of 10,000 finds
one in a thousand with 1 - 5e-5. Each peer draws its own sample, from its operating system.

A roster filled with inventions has nothing but good credentials: nothing here can tell (docs/threats.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest

from attrs import field

from anon.credential import IssuedChecker, IssuedCredential, PublicKey, signer_nym_entropy
from anon.crypto.backend import PURE
from anon.crypto.curve import IMPLEMENTATION
from anon.errors import Malformed
from anon.study.manifest import Manifest
from anon.transparency.bucketed import read_credentials_bucket, read_roster_bucket
from anon.transparency.buckets import Bucket, BucketDocument, parse_bucket_document
from anon.transparency.documents import body_digest
from anon.transparency.merkle import leaf_hash, root_of
from anon.values import frozen
from anon.wire.messages import (
    Roster,
    Signatures,
    credential_header,
    parse_seed,
    study_seed,
)

MOST_CHECKED = 10_000
"""Entries that a peer with the native curve checks, in about 3 seconds."""
MOST_CHECKED_PURE = 256
"""The same with the curve in Python, in about 2 seconds."""
_KEY_SIZE = 16
CLOSING = ("roster", "seed", "credentials")
"""The kinds of the documents that close an enrolment, in the order of publication."""
CheckedLists = set[tuple[bytes, ...]]
"""Lists of credentials that were checked in full and held. The peers of one simulation share it."""


@frozen
class Bodies:
    """The three signed documents of a closed enrolment, each matching its head; contents untrusted. `beside`: all
    buckets of the roster and the credentials in turn, for who reads all; none where one bucket stands within each."""

    roster: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    credentials: bytes = field(repr=False)
    beside: tuple[bytes, ...] = field(default=(), kw_only=True, repr=False)


@frozen
class Closing:
    """The members of one bucket, the study's seed, and a signature for each of them."""

    manifest: Manifest = field(repr=False)
    entries: Roster = field(repr=False)
    roster_digest: bytes
    seed: bytes
    signatures: Signatures = field(repr=False)
    credentials_digest: bytes

    def bad_credentials(
        self, random_bytes: Callable[[int], bytes], places: Sequence[int] | None = None, most: int | None = None
    ) -> list[int]:
        """Which of these places in the roster (all when left out) hold a credential that no holder could use; the
        first `most` if given. Linear in the places: about 0.2 ms each, 20 times that with the curve in Python."""
        chosen = range(len(self.entries)) if places is None else places
        bad = self.checker().bad([self.issued(index) for index in chosen], random_bytes, most)
        return [chosen[number] for number in bad]

    def checker(self) -> IssuedChecker:
        """For the credentials of this study, of whichever bucket."""
        header = credential_header(self.manifest.study_id, self.roster_digest)
        return IssuedChecker(PublicKey(self.manifest.credential_key), header, self.manifest.packets)

    def is_bad(self, index: int) -> bool:
        """True if the credential at this place is bad: one equation of its own, which needs no randomness."""
        # Zeros in place of random bytes: with a single equation no coefficient counts.
        return bool(self.bad_credentials(bytes, [index]))

    def bad_seen_by(
        self,
        own: int,
        random_bytes: Callable[[int], bytes],
        limit: int | None = None,
        checked: CheckedLists | None = None,
    ) -> int | None:
        """The first bad place that the peer at `own` finds by checking at most `limit` others, and its own; or None.

        Where it checks all, everybody finds the same place. In a sample the own place is named only if no other is bad.
        So a finding that a peer shows to others says as little as it can about the peer.
        """
        size = len(self.entries)
        if size <= (most_checked() if limit is None else limit):
            known = CheckedLists() if checked is None else checked
            bad = [] if self._lists in known else self.bad_credentials(random_bytes, most=1)
            if not bad:
                known.add(self._lists)
        else:
            drawn = sample(size, own, most_checked() if limit is None else limit, random_bytes)
            bad = self.bad_credentials(random_bytes, drawn, 1) or self.bad_credentials(random_bytes, [own])
        return bad[0] if bad else None

    @property
    def _lists(self) -> tuple[bytes, ...]:
        """All that the credentials' validity follows from."""
        manifest = self.manifest
        return manifest.credential_key, manifest.study_id, self.roster_digest, self.seed, self.credentials_digest

    def issued(self, index: int) -> IssuedCredential:
        """The credential at a place, as everybody sees it."""
        entry = self.entries[index]
        entropy = signer_nym_entropy(self.seed, entry.key)
        return IssuedCredential(entry.commitment_point, self.signatures[index], entropy)


def all_work(closings: Sequence[Closing], random_bytes: Callable[[int], bytes]) -> bool:
    """True if every credential of these buckets of one study works. At least one bucket; they are checked together."""
    issued = [closing.issued(index) for closing in closings for index in range(len(closing.entries))]
    return not closings[0].checker().bad(issued, random_bytes, 1)


@frozen
class BucketPair:
    """A bucket of the roster, and that of the same number of the credentials."""

    roster: Bucket
    credentials: Bucket


@frozen
class ClosingDocuments:
    """The signed documents of a closed enrolment, and the study's seed."""

    manifest: Manifest = field(repr=False)
    roster: BucketDocument
    credentials: BucketDocument
    roster_digest: bytes
    seed: bytes
    credentials_digest: bytes

    @property
    def opened(self) -> dict[int, BucketPair]:
        """The one bucket of each, which stands within the documents; nothing where there are several."""
        entries, issued = self.roster.only, self.credentials.only
        return {} if entries is None or issued is None else {0: BucketPair(entries, issued)}

    def closing(self, bucket: int, roster_body: bytes, credentials_body: bytes) -> Closing:
        """The members of one bucket, with a credential for each. Raises `Malformed` for a body that no honest
        aggregator puts under its root."""
        entries = read_roster_bucket(self.roster, bucket, roster_body)
        signatures = read_credentials_bucket(self.roster.study, credentials_body, len(entries))
        digests = (self.roster_digest, self.seed, signatures)
        return Closing(self.manifest, entries, *digests, body_digest(credentials_body))

    def everybody(self, beside: Sequence[bytes]) -> Iterator[Closing]:
        """All members, a bucket at a time. Raises `Malformed` unless the buckets `beside` the documents are all of
        theirs, with as many members as were signed."""
        within = [body for pair in self.opened.values() for body in (pair.roster.body, pair.credentials.body)]
        bodies, members = [*within, *beside], 0
        for document, own in ((self.roster, bodies[::2]), (self.credentials, bodies[1::2])):
            if len(own) != document.buckets or root_of([*map(leaf_hash, own)]) != document.root:
                raise Malformed(f"{document.kind}: its buckets are not those of the signed root")
        for bucket in range(self.roster.buckets):
            closing = self.closing(bucket, *bodies[2 * bucket : 2 * bucket + 2])
            members += len(closing.entries)
            yield closing
        if members != self.roster.count:
            raise Malformed(f"roster: signed for {self.roster.count} members, and its buckets have {members}")


def read_closing(manifest_bytes: bytes, manifest: Manifest, bodies: Bodies) -> ClosingDocuments:
    """The three documents of one study. Raises `Malformed` for one that is none, a seed that opens nothing, and
    credentials of another number than members."""
    study = manifest.study_id
    roster = parse_bucket_document(bodies.roster, study, "roster", 0)
    value = parse_seed(bodies.seed, study, manifest.seed_commitment)
    credentials = parse_bucket_document(bodies.credentials, study, "credentials", 0)
    if credentials.count != roster.count:
        raise Malformed(f"credentials: expected {roster.count} for this study, got {credentials.count}")
    seed = study_seed(manifest_bytes, bodies.roster, value)
    digests = (body_digest(bodies.roster), seed, body_digest(bodies.credentials))
    return ClosingDocuments(manifest, roster, credentials, *digests)


def most_checked() -> int:
    """How many credentials of others a peer checks at most, with the curve that it has."""
    return MOST_CHECKED_PURE if IMPLEMENTATION == PURE else MOST_CHECKED


def sample(size: int, own: int, count: int, random_bytes: Callable[[int], bytes]) -> list[int]:
    """`count` of the places below `size`, uniformly and without `own`, in order. Raises `ValueError` for too many.

    Each place is given 128 random bits and the least are taken: two that are equal occur with size^2 / 2^129.
    """
    if not 0 <= count < size:
        raise ValueError(f"expected a sample smaller than {size}, got {count}")
    drawn = random_bytes(_KEY_SIZE * size)
    others = (index for index in range(size) if index != own)
    return sorted(nsmallest(count, others, key=lambda index: drawn[_KEY_SIZE * index : _KEY_SIZE * (index + 1)]))
