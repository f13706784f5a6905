"""The statements that tellers sign, each about one study, and all but the first about one occasion of it.

On the wire a statement is `[body, signature]`, both byte strings: canonical CBOR, and Ed25519 by the teller's lasting
key over SHA-256(label, body). Every parser takes untrusted bytes and raises `Malformed`, or `RejectedProof` where the
signature does not verify.

| statement | body |
|---|---|
| `Countersignature` | [2, study, teller, digest of the arrangement] |
| `VerifierShares` | [2, study, round, slot, teller, [[tag, verifier share], ...]], sorted by tag |
| `ListSignature` | [2, study, round, slot, teller, digest of the list] |
| `NoisyShare` | [2, study, round, slot, teller, digest of the list, share of the sum] |

All countersignatures of a study are one document: [2, study, [statement, ...]], in the tellers' order.
The list itself, [2, study, round, slot, [tag, ...]], is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from attrs import field

from anon.crypto import labels
from anon.crypto.nacl import BadSignatureError, SigningKey, VerifyKey
from anon.errors import Conflict, Malformed, RejectedProof
from anon.sharing.arrangement import Arrangement
from anon.sharing.quorum import quorums
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256
from anon.wire.lists import byte_strings, fixed_rows
from anon.wire.packets import STUDY_BYTES, TAG_BYTES, VERSION, Occasion

DIGEST_SIZE = 32


def _signed(key: SigningKey, label: bytes, body: bytes) -> bytes:
    return encode([body, key.sign(sha256(label, body)).signature])


def _opened(data_untrusted: bytes, what: str) -> tuple[bytes, bytes]:
    items = decode(data_untrusted, what)
    if not isinstance(items, list) or [type(item) for item in items] != [bytes, bytes]:
        raise Malformed(f"{what}: expected a body and a signature")
    return items[0], items[1]


def _demand_signature(arrangement: Arrangement, teller: int, label: bytes, body: bytes, signature: bytes) -> None:
    if not 0 <= teller < len(arrangement.tellers):
        raise Malformed("statement: of a teller that the study does not have")
    try:
        VerifyKey(arrangement.tellers[teller].key).verify(sha256(label, body), signature)
    except (BadSignatureError, ValueError, TypeError):
        raise RejectedProof("a teller's signature does not verify") from None


def _fields(body_untrusted: bytes, what: str, kinds: Sequence[type]) -> list[Any]:
    fields = decode(body_untrusted, what)
    if not isinstance(fields, list) or [type(value) for value in fields] != list(kinds) or fields[0] != VERSION:
        raise Malformed(f"{what}: expected {len(kinds)} fields of the documented kinds and version {VERSION}")
    return fields[1:]


@frozen
class Countersignature:
    """A teller's word that it is one of the study's tellers, under exactly this manifest and arrangement."""

    study: bytes
    teller: int
    arrangement: bytes

    def sign(self, key: SigningKey) -> bytes:
        """The statement for the wire."""
        body = encode([VERSION, self.study, self.teller, self.arrangement])
        return _signed(key, labels.COUNTERSIGNATURE, body)


def arrangement_digest(arrangement: Arrangement) -> bytes:
    """The digest that a countersignature names."""
    return sha256(labels.COUNTERSIGNATURE, arrangement.to_bytes())


def check_countersignatures(study: bytes, arrangement: Arrangement, statements_untrusted: Sequence[bytes]) -> None:
    """Raises `Malformed` or `RejectedProof` unless every teller countersigned this study, in the tellers' order."""
    if len(statements_untrusted) != len(arrangement.tellers):
        raise Malformed(f"countersignatures: expected {len(arrangement.tellers)}, got {len(statements_untrusted)}")
    for teller, statement in enumerate(statements_untrusted):
        body, signature = _opened(statement, "countersignature")
        said = Countersignature(*_fields(body, "countersignature", (int, bytes, int, bytes)))
        _demand_signature(arrangement, teller, labels.COUNTERSIGNATURE, body, signature)
        if said != Countersignature(study, teller, arrangement_digest(arrangement)):
            raise RejectedProof("a teller countersigned another study")


def encode_countersignatures(study: bytes, statements: Sequence[bytes]) -> bytes:
    """The document that a study's aggregator publishes beside the manifest, in the tellers' order."""
    return encode([VERSION, study, list(statements)])


def parse_countersignatures(body_untrusted: bytes, study: bytes, arrangement: Arrangement) -> tuple[bytes, ...]:
    """The statements of that document. Raises `Malformed` or `RejectedProof` unless every teller countersigned."""
    statements = tuple(byte_strings(body_untrusted, (VERSION, study), "countersignatures"))
    check_countersignatures(study, arrangement, statements)
    return statements


def longest_countersignatures(tellers: int) -> int:
    """Bytes of that document."""
    bodies = [encode([VERSION, bytes(STUDY_BYTES), teller, bytes(DIGEST_SIZE)]) for teller in range(tellers)]
    return len(encode_countersignatures(bytes(STUDY_BYTES), [encode([body, bytes(64)]) for body in bodies]))


@frozen
class VerifierShares:
    """A teller's verifier shares of a number of packets."""

    occasion: Occasion
    teller: int
    shares: Mapping[bytes, bytes] = field(repr=False)
    """By tag."""

    def sign(self, key: SigningKey) -> bytes:
        """The statement for the wire."""
        rows = [[tag, self.shares[tag]] for tag in sorted(self.shares)]
        return _signed(key, labels.VERIFIER_SHARES, encode([*self.occasion.heading(), self.teller, rows]))


def parse_verifier_shares(
    data_untrusted: bytes, occasion: Occasion, teller: int, arrangement: Arrangement
) -> VerifierShares:
    """Those of this teller for this occasion. Raises `Malformed`, `RejectedProof`."""
    body, signature = _opened(data_untrusted, "verifier shares")
    _demand_signature(arrangement, teller, labels.VERIFIER_SHARES, body, signature)
    size = arrangement.prio3(arrangement.sum_of(occasion)).verifier_share_size
    rows = fixed_rows(body, (*occasion.heading(), teller), (TAG_BYTES, size), "verifier shares")
    if any(row[0] >= other[0] for row, other in pairwise(rows)):
        raise Malformed("verifier shares: not strictly sorted by tag")
    return VerifierShares(occasion, teller, {row[0]: row[1] for row in rows})


@frozen
class AcceptedList:
    """The tags whose shares are summed, strictly sorted."""

    occasion: Occasion
    tags: tuple[bytes, ...] = field(repr=False)

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        return encode([*self.occasion.heading(), list(self.tags)])

    def digest(self) -> bytes:
        """The digest that tellers sign."""
        return sha256(labels.ACCEPTED_LIST, self.to_bytes())


def list_heading(data_untrusted: bytes) -> Occasion:
    """The occasion that a list names. Raises `Malformed`."""
    fields = _fields(data_untrusted, "accepted list", (int, bytes, int, int, list))
    return Occasion(*fields[:3])


def parse_list(data_untrusted: bytes, occasion: Occasion) -> AcceptedList:
    """A list of this occasion. Raises `Malformed`."""
    rows = fixed_rows(data_untrusted, occasion.heading(), (TAG_BYTES,), "accepted list", bare=True)
    tags = tuple(tag for (tag,) in rows)
    if any(tag >= other for tag, other in pairwise(tags)):
        raise Malformed("accepted list: not strictly sorted by tag")
    return AcceptedList(occasion, tags)


@frozen
class ListSignature:
    """A teller's signature of the one list of an occasion."""

    occasion: Occasion
    teller: int
    digest: bytes

    def sign(self, key: SigningKey) -> bytes:
        """The statement for the wire."""
        return _signed(key, labels.LIST_SIGNATURE, encode([*self.occasion.heading(), self.teller, self.digest]))


def parse_list_signature(data_untrusted: bytes, arrangement: Arrangement) -> ListSignature:
    """The signature of a list, by whichever teller it names. Raises `Malformed`, `RejectedProof`."""
    body, signature = _opened(data_untrusted, "list signature")
    kinds = (int, bytes, int, int, int, bytes)
    study, round_number, slot, teller, digest = _fields(body, "list signature", kinds)
    _demand_signature(arrangement, teller, labels.LIST_SIGNATURE, body, signature)
    _demand_digest(digest)
    return ListSignature(Occasion(study, round_number, slot), teller, digest)


@frozen
class NoisyShare:
    """A teller's share of the sum over the list, with all of its noise in it."""

    occasion: Occasion
    teller: int
    digest: bytes
    share: bytes = field(repr=False)

    def sign(self, key: SigningKey) -> bytes:
        """The statement for the wire."""
        body = encode([*self.occasion.heading(), self.teller, self.digest, self.share])
        return _signed(key, labels.NOISY_SHARE, body)


def parse_noisy_share(data_untrusted: bytes, arrangement: Arrangement) -> NoisyShare:
    """A noisy share, of whichever teller it names. Raises `Malformed`, `RejectedProof`."""
    body, signature = _opened(data_untrusted, "noisy share")
    kinds = (int, bytes, int, int, int, bytes, bytes)
    study, round_number, slot, teller, digest, share = _fields(body, "noisy share", kinds)
    _demand_signature(arrangement, teller, labels.NOISY_SHARE, body, signature)
    _demand_digest(digest)
    return NoisyShare(Occasion(study, round_number, slot), teller, digest, share)


def _demand_digest(digest: bytes) -> None:
    if len(digest) != DIGEST_SIZE:
        raise Malformed(f"statement: expected a digest of {DIGEST_SIZE} bytes")


@frozen
class Disagreement:
    """Two tellers' signatures of two lists for one occasion: proof that no sum of it may be published.

    If both are one teller's, that teller is dishonest. If not, at least one party is: an honest aggregator shows all
    tellers one list, and an honest teller signs no other. Raises `RejectedProof` unless the two differ so.
    """

    first: bytes = field(repr=False)
    second: bytes = field(repr=False)
    arrangement: Arrangement = field(repr=False)

    def __attrs_post_init__(self) -> None:
        first, second = (parse_list_signature(part, self.arrangement) for part in (self.first, self.second))
        # The smaller comes first: a disagreement has one spelling.
        if first.occasion != second.occasion or first.digest == second.digest or self.first >= self.second:
            raise RejectedProof("two signatures of one list, or about two sums; this proves nothing")

    @property
    def occasion(self) -> Occasion:
        """The sum that both are about; with a spare, as the pair's statements name it."""
        return parse_list_signature(self.first, self.arrangement).occasion

    @property
    def tellers(self) -> tuple[int, int]:
        """The two that signed."""
        first, second = (parse_list_signature(part, self.arrangement) for part in (self.first, self.second))
        return first.teller, second.teller

    def to_bytes(self) -> bytes:
        """The one spelling: [label, first statement, second statement], the smaller first."""
        return encode([labels.DISAGREEMENT, self.first, self.second])


class Disagreed(Conflict):
    """The tellers signed two lists for one sum. No sum is published. `evidence` is for everybody."""

    code = "tellers-disagree"

    def __init__(self, evidence: Disagreement) -> None:
        super().__init__("the tellers signed two lists for one sum; no sum is published; show the evidence")
        self.evidence = evidence


def disagreement_of(signature: bytes, other: bytes, arrangement: Arrangement) -> Disagreement:
    """Evidence from two signatures in whichever order. Raises `Malformed`, `RejectedProof`."""
    first, second = sorted((signature, other))
    return Disagreement(first, second, arrangement)


def read_disagreement(data_untrusted: bytes, arrangement: Arrangement) -> Disagreement:
    """Evidence that these tellers signed two lists for one sum, of whichever study; with a spare, of any pair. Raises
    `Malformed`, `RejectedProof`."""
    items = decode(data_untrusted, "disagreement")
    if not isinstance(items, list) or [type(item) for item in items] != [bytes] * 3 or items[0] != labels.DISAGREEMENT:
        raise Malformed("disagreement: expected a label and two statements")
    *others, last = arrangement.groups
    for group in others:
        with suppress(Malformed, RejectedProof):
            return Disagreement(items[1], items[2], group)
    return Disagreement(items[1], items[2], last)


def parse_disagreement(data_untrusted: bytes, study: bytes, arrangement: Arrangement) -> Disagreement:
    """The same about a sum that this study has: a teller's key is the same in all its studies."""
    found = read_disagreement(data_untrusted, arrangement)
    if all(found.occasion.study != quorum.id for quorum in quorums(study, arrangement)):
        raise RejectedProof("signatures about a sum of another study; here they prove nothing")
    place = (found.occasion.round, found.occasion.slot)
    if all((planned.round, planned.slot) != place for planned in arrangement.sums):
        raise RejectedProof("signatures about a sum that the study does not have; here they prove nothing")
    return found
