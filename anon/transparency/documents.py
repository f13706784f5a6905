"""Documents an aggregator publishes, each under a signed head in one chain per study (design section 3, step 5).

A head names study, number in the chain, kind, part, length and digest of the body, and the digest of the head before.
Two different heads with one number prove, to anyone, that the aggregator equivocated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from attrs import field

from anon.crypto import labels
from anon.crypto.nacl import BadSignatureError, SigningKey, VerifyKey
from anon.errors import Malformed, RejectedProof
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256

KIND = re.compile(r"[a-z]{1,11}\Z")
"""The spelling of a kind. Those of a study follow from its manifest: `anon.protocols.kinds`."""
MAX_BODY = 64 * 1024 * 1024
"""Bytes of the longest document: no head of a longer one is signed, and none is read."""


@frozen
class Head:
    """One document's place in the chain. `part`: a transcript's slot, or a number that the protocol gives."""

    study: bytes
    number: int
    kind: str
    part: int
    length: int
    digest: bytes
    previous: bytes

    def to_bytes(self) -> bytes:
        """The canonical bytes that are signed."""
        return _spelled(self)


@frozen
class SignedHead:
    """A head with the aggregator's Ed25519 signature (64 bytes) over SHA-256(label, head)."""

    head: Head
    signature: bytes = field(repr=False)

    def verify(self, key: bytes) -> None:
        """Raises `RejectedProof` unless `key` (32 bytes) signed this head."""
        try:
            VerifyKey(key).verify(sha256(labels.HEAD, self.head.to_bytes()), self.signature)
        # Whatever stood in the signature's place comes here unread: no bytes, or of another length.
        except (BadSignatureError, ValueError, TypeError):
            raise RejectedProof("a document's signature does not verify") from None

    def digest(self) -> bytes:
        """The value that the next head's `previous` must be."""
        return sha256(labels.HEAD, self.head.to_bytes())


@lru_cache(maxsize=256)
def _spelled(head: Head) -> bytes:
    return encode([head.study, head.number, head.kind, head.part, head.length, head.digest, head.previous])


LONGEST_HEAD = len(
    encode([Head(bytes(32), 2**32, "credentials", 2**32, MAX_BODY, bytes(32), bytes(32)).to_bytes(), bytes(64)])
)
"""Bytes of the longest signed head in a chain that travels."""


def body_digest(body: bytes) -> bytes:
    """SHA-256 of a body under the head label, 32 bytes."""
    return sha256(labels.HEAD, body)


def sign_head(
    key: SigningKey, study: bytes, chain: Sequence[SignedHead], kind: str, part: int, body: bytes
) -> SignedHead:
    """The next head of the chain for this body, signed. Raises `ValueError` for one that no reader takes.

    >>> key = SigningKey(bytes(32))
    >>> first = sign_head(key, bytes(32), [], "manifest", 0, b"all that is asked")
    >>> second = sign_head(key, bytes(32), [first], "roster", 0, b"all who are there")
    >>> second.head.number, second.head.previous == first.digest()
    (1, True)
    """
    return signed(key, next_head(study, chain, kind, part, body))


def signed(key: SigningKey, head: Head) -> SignedHead:
    """A head with its signature, which is the same each time."""
    return SignedHead(head, key.sign(sha256(labels.HEAD, head.to_bytes())).signature)


def next_head(study: bytes, chain: Sequence[SignedHead], kind: str, part: int, body: bytes) -> Head:
    """The next head of the chain for this body. Raises `ValueError` for one that no reader takes."""
    if len(body) > MAX_BODY:
        raise ValueError(f"{kind} {part}: expected at most {MAX_BODY} bytes, got {len(body)}; it is not signed")
    previous = chain[-1].digest() if chain else bytes(32)
    return Head(study, len(chain), kind, part, len(body), body_digest(body), previous)


def check_body(head: Head, body_untrusted: bytes) -> bytes:
    """The body, when it has the head's length and digest. Raises `Malformed`."""
    if len(body_untrusted) != head.length or body_digest(body_untrusted) != head.digest:
        raise Malformed(f"{head.kind}: the body does not match its signed head; fetch it again")
    return body_untrusted


def encode_chain(chain: Sequence[SignedHead]) -> bytes:
    """The chain for the wire."""
    return encode(as_plain(chain))


def as_plain(chain: Sequence[SignedHead]) -> list[list[bytes]]:
    """Each head and its signature, as lists of byte strings that `encode` takes."""
    return [[signed.head.to_bytes(), signed.signature] for signed in chain]


def parse_chain(
    data_untrusted: bytes, key: bytes, study: bytes, seen: Sequence[SignedHead] = ()
) -> tuple[SignedHead, ...]:
    """A chain of signed, numbered, linked heads about this study. Raises `Malformed`, `RejectedProof`.

    `seen`: a chain that was checked before. Heads that it begins with are not checked again, and a signature of it is
    not verified again.

    >>> key, study = SigningKey(bytes(32)), bytes(32)
    >>> chain = [sign_head(key, study, [], "manifest", 0, b"a")]
    >>> parse_chain(encode_chain(chain), bytes(key.verify_key), study) == (chain[0],)
    True
    >>> parse_chain(encode_chain(chain), bytes(SigningKey(bytes([1] * 32)).verify_key), study)
    Traceback (most recent call last):
    anon.errors.RejectedProof: a document's signature does not verify
    """
    items = decode(data_untrusted, "heads")
    if not isinstance(items, list) or not all(isinstance(i, list) and len(i) == 2 for i in items):
        raise Malformed("heads: expected a list of [head, signature]")
    known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(items, as_plain(seen), strict=False)))
    signed = list(seen[:known])
    for item in items[known:]:
        signed.append(SignedHead(parse_head(item[0]), item[1]))
        check_chain(signed, key, study, len(signed) - 1, seen)
    return tuple(signed)


def check_chain(
    chain: Sequence[SignedHead], key: bytes, study: bytes, first: int = 0, seen: Sequence[SignedHead] = ()
) -> None:
    """Check that the heads from `first` on are signed, numbered, linked and about this study. Raises `Malformed`,
    `RejectedProof`. The signatures of those `seen` were verified before."""
    for number in range(first, len(chain)):
        if number >= len(seen) or chain[number] != seen[number]:
            chain[number].verify(key)
        head = chain[number].head
        if head.study != study or head.number != number:
            raise Malformed("heads: a head is about another study or out of order; fetch them again")
        if head.previous != (chain[number - 1].digest() if number else bytes(32)):
            raise Malformed("heads: the chain is broken; fetch them again")


def parse_head(head_untrusted: object) -> Head:
    """A head of the right shape, of a body that is not too long for its readers. Raises `Malformed`."""
    fields = decode(head_untrusted, "head") if isinstance(head_untrusted, bytes) else None
    kinds = (bytes, int, str, int, int, bytes, bytes)
    if (
        not isinstance(fields, list)
        or len(fields) != 7
        or not all(type(f) is k for f, k in zip(fields, kinds, strict=True))
    ):
        raise Malformed("head: expected seven fields")
    head = Head(*fields)
    if not KIND.match(head.kind) or not 0 <= head.length <= MAX_BODY or not 0 <= head.part < 2**32:
        raise Malformed("head: unknown kind or impossible length")
    return head


def find(chain: Sequence[SignedHead], kind: str, part: int = 0) -> Head | None:
    """The head of a document, or None when it is not published."""
    return next((signed.head for signed in chain if signed.head.kind == kind and signed.head.part == part), None)
