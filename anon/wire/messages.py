"""The wire's messages but packets: enrolment, withdrawal, roster, seed and credentials. See docs/protocol.md.

Everything is canonical CBOR; every parser takes untrusted bytes and raises `Malformed`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, overload

from attrs import field

from anon.credential import commitment_size
from anon.crypto import labels
from anon.crypto.nacl import BadSignatureError, SigningKey, VerifyKey
from anon.errors import Malformed, RejectedProof
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256
from anon.wire.lists import FixedRows, fixed_rows

VERSION = 1
KEY_BYTES = 32
CONTRIBUTION_BYTES = 32
COMMITMENT_POINT_BYTES = 48
SIGNATURE_BYTES = 80


def _fields(data_untrusted: bytes, what: str, kinds: Sequence[type]) -> list[Any]:
    items = decode(data_untrusted, what)
    fits = isinstance(items, list) and len(items) == len(kinds)
    if not fits or not all(type(item) is kind for item, kind in zip(items, kinds, strict=True)):
        raise Malformed(f"{what}: expected {len(kinds)} fields of the documented kinds")
    return list(items)


def _sized(what: str, value: bytes, size: int) -> None:
    if len(value) != size:
        raise Malformed(f"{what}: expected {size} bytes, got {len(value)}")


@frozen
class Enrolment:
    """The one identified message of a peer: study key, random contribution, blind commitment, hash of its invite
    code."""

    study: bytes
    key: bytes
    contribution: bytes = field(repr=False)
    commitment: bytes = field(repr=False)
    invite: bytes = field(repr=False)

    def body(self) -> bytes:
        """The canonical bytes that are signed."""
        return encode([VERSION, self.study, self.key, self.contribution, self.commitment, self.invite])


def sign_enrolment(enrolment: Enrolment, key: SigningKey) -> bytes:
    """The signed enrolment, for `seal`."""
    body = enrolment.body()
    return encode([body, key.sign(sha256(labels.ENROLMENT, body)).signature])


def parse_enrolment(data_untrusted: bytes, study: bytes, packets: int) -> Enrolment:
    """A well-formed enrolment for this study, signed by its own key. Raises `Malformed`, `RejectedProof`."""
    body, signature = _fields(data_untrusted, "enrolment", (bytes, bytes))
    version, *rest = _fields(body, "enrolment", (int, bytes, bytes, bytes, bytes, bytes))
    enrolment = Enrolment(*rest)
    if version != VERSION or enrolment.study != study:
        raise Malformed("enrolment: for another study or version; take the invite link again")
    _sized("enrolment key", enrolment.key, KEY_BYTES)
    _sized("enrolment contribution", enrolment.contribution, CONTRIBUTION_BYTES)
    _sized("enrolment commitment", enrolment.commitment, commitment_size(packets))
    if len(enrolment.invite) not in (0, 32):
        raise Malformed("enrolment invite: expected nothing or 32 bytes")
    _verify(enrolment.key, sha256(labels.ENROLMENT, body), signature)
    return enrolment


def sign_withdrawal(study: bytes, key: SigningKey) -> bytes:
    """A signed wish to leave before closing, for `seal`."""
    body = encode([VERSION, study, bytes(key.verify_key)])
    return encode([body, key.sign(sha256(labels.WITHDRAWAL, body)).signature])


def parse_withdrawal(data_untrusted: bytes, study: bytes) -> bytes:
    """The enrolment key that leaves. Raises `Malformed`, `RejectedProof`."""
    body, signature = _fields(data_untrusted, "withdrawal", (bytes, bytes))
    version, named, key = _fields(body, "withdrawal", (int, bytes, bytes))
    if version != VERSION or named != study:
        raise Malformed("withdrawal: for another study or version")
    _verify(key, sha256(labels.WITHDRAWAL, body), signature)
    return bytes(key)


def _verify(key: bytes, message: bytes, signature: bytes) -> None:
    try:
        VerifyKey(key).verify(message, signature)
    except (BadSignatureError, ValueError, TypeError):
        raise RejectedProof("a signature does not verify") from None


@frozen
class RosterEntry:
    """One enrolment as everyone sees it: never an invite, never a name. 112 bytes of content."""

    key: bytes
    contribution: bytes
    commitment_point: bytes


def encode_roster(study: bytes, entries: Sequence[RosterEntry]) -> bytes:
    """The roster body, sorted by key so that the order tells nothing."""
    ordered = sorted(entries, key=lambda entry: entry.key)
    return encode([VERSION, study, [[e.key, e.contribution, e.commitment_point] for e in ordered]])


@frozen(eq=False)
class Roster(Sequence[RosterEntry]):
    """The entries of a roster body, each built when it is asked for: a roster costs no more memory than its body."""

    _rows: FixedRows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> RosterEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RosterEntry]: ...
    def __getitem__(self, index: int | slice) -> RosterEntry | Sequence[RosterEntry]:
        """The entry at this place, or those of a slice."""
        if isinstance(index, slice):
            return [RosterEntry(*row) for row in self._rows[index]]
        return RosterEntry(*self._rows[index])

    def place_of(self, key: bytes) -> int | None:
        """Where the entry with this key stands, None when there is none."""
        index = bisect_left(self._rows, key, key=lambda row: row[0])
        return index if index < len(self) and self._rows[index][0] == key else None


def parse_roster(data_untrusted: bytes, study: bytes) -> Roster:
    """The entries, strictly sorted by key (so no key twice). Raises `Malformed`."""
    sizes = (KEY_BYTES, CONTRIBUTION_BYTES, COMMITMENT_POINT_BYTES)
    rows = fixed_rows(data_untrusted, (VERSION, study), sizes, "roster")
    if any(key >= other for key, other in pairwise(rows.column(0))):
        raise Malformed("roster: not strictly sorted by key")
    return Roster(rows)


MOST_ENTRIES = 2**32
"""More people than any study has."""


def encode_abandoned(study: bytes, enrolled: int) -> bytes:
    """The document of a study that ends because only so many people enrolled."""
    return encode([VERSION, study, enrolled])


def parse_abandoned(data_untrusted: bytes, study: bytes) -> int:
    """How many enrolled in a study that ended for it. Raises `Malformed`."""
    version, named, enrolled = _fields(data_untrusted, "abandoned", (int, bytes, int))
    if version != VERSION or named != study or not 0 <= enrolled < MOST_ENTRIES:
        raise Malformed("abandoned: for another study or version, or an impossible number")
    return int(enrolled)


def seed_commitment(value: bytes) -> bytes:
    """The manifest's commitment to the aggregator's random value."""
    return sha256(labels.SEED_COMMITMENT, value)


def study_seed(manifest: bytes, roster: bytes, value: bytes) -> bytes:
    """seed = SHA-256(label, manifest, roster body, value): nobody can choose it once the roster is frozen."""
    return sha256(labels.SEED, manifest, roster, value)


def encode_seed(study: bytes, value: bytes) -> bytes:
    """The seed document: the aggregator's committed random value, revealed after the roster is signed."""
    return encode([VERSION, study, value])


def parse_seed(data_untrusted: bytes, study: bytes, commitment: bytes) -> bytes:
    """The revealed value; it must open the manifest's commitment. Raises `Malformed`."""
    version, named, value = _fields(data_untrusted, "seed", (int, bytes, bytes))
    if version != VERSION or named != study or len(value) != 32 or seed_commitment(value) != commitment:
        raise Malformed("seed: does not open the manifest's commitment; do not take part")
    return bytes(value)


def credential_header(study: bytes, roster_digest: bytes) -> bytes:
    """study id || SHA-256(roster body), 64 bytes; `anon.credential` appends I8(N), as the official vectors do."""
    return study + roster_digest


def encode_credentials(study: bytes, signatures: Sequence[bytes]) -> bytes:
    """The signatures A || e (80 bytes each) in the roster's order."""
    return encode([VERSION, study, list(signatures)])


@frozen(eq=False)
class Signatures(Sequence[bytes]):
    """The signatures A || e of a credentials body, each copied when it is asked for."""

    _rows: FixedRows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        """The signature at this place, or those of a slice."""
        if isinstance(index, slice):
            return [signature for (signature,) in self._rows[index]]
        return self._rows[index][0]


def parse_credentials(data_untrusted: bytes, study: bytes, count: int) -> Signatures:
    """One signature per roster entry. Raises `Malformed`."""
    rows = fixed_rows(data_untrusted, (VERSION, study), (SIGNATURE_BYTES,), "credentials", bare=True)
    if len(rows) != count:
        raise Malformed(f"credentials: expected {count} for this study, got {len(rows)}")
    return Signatures(rows)
