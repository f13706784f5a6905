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

from collections.abc import Callable, Sequence
from heapq import nsmallest

from attrs import field, frozen

from anon.credential import IssuedChecker, IssuedCredential, PublicKey, signer_nym_entropy
from anon.crypto.backend import PURE
from anon.crypto.curve import IMPLEMENTATION
from anon.study.manifest import Manifest
from anon.transparency.documents import body_digest
from anon.wire.messages import (
    Roster,
    Signatures,
    credential_header,
    parse_credentials,
    parse_roster,
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
    """The three documents of a closed enrolment, each matching its signed head; contents untrusted."""

    roster: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    credentials: bytes = field(repr=False)


@frozen
class Closing:
    """The same, read: the roster, the study's seed, and a signature for each entry."""

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
        first `most` if given. Linear in the places: about 0.3 ms each, 20 times that with the curve in Python."""
        chosen = range(len(self.entries)) if places is None else places
        header = credential_header(self.manifest.study_id, self.roster_digest)
        checker = IssuedChecker(PublicKey(self.manifest.credential_key), header, self.manifest.packets)
        bad = checker.bad([self._issued(index) for index in chosen], random_bytes, most)
        return [chosen[number] for number in bad]

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

    def _issued(self, index: int) -> IssuedCredential:
        entry = self.entries[index]
        entropy = signer_nym_entropy(self.seed, entry.key)
        return IssuedCredential(entry.commitment_point, self.signatures[index], entropy)


def read_closing(manifest_bytes: bytes, manifest: Manifest, bodies: Bodies) -> Closing:
    """The three documents of one study. Raises `Malformed` for one that is none, or a seed that opens nothing."""
    study = manifest.study_id
    entries = parse_roster(bodies.roster, study)
    value = parse_seed(bodies.seed, study, manifest.seed_commitment)
    signatures = parse_credentials(bodies.credentials, study, len(entries))
    seed = study_seed(manifest_bytes, bodies.roster, value)
    return Closing(manifest, entries, body_digest(bodies.roster), seed, signatures, body_digest(bodies.credentials))


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
