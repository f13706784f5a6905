"""Evidence against an aggregator: two signed heads of one number in one study, or a bucket that no honest one signs,
such as one with a credential that nobody could use (`anon.transparency.bucket_evidence`).

Self-contained: it carries the study's manifest, whose digest is the study id and which names the aggregator's key. So
whoever knows the study id, its fingerprint words or the key from an invite link can check it, without a home and
without asking anybody. It holds public documents only, and nothing of the person who kept it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anon.crypto import labels
from anon.errors import AnonmlError, Refused, RejectedProof
from anon.study.manifest import Manifest, parse_manifest
from anon.transparency.bucket_evidence import BadBucket, read_bad_bucket
from anon.transparency.documents import (
    MAX_BODY,
    SignedHead,
    as_plain,
    body_digest,
    parse_chain,
    parse_head,
)
from anon.transparency.proves import AboutAnAggregator, ProvesNothing
from anon.values import frozen
from anon.wire.cbor import decode, encode

MAX_BYTES = 3 * MAX_BODY


@frozen
class Evidence(AboutAnAggregator):
    """Two different heads of one number in one study, both signed by the key that the study's manifest names.

    Raises `ProvesNothing` unless that is what they are.
    """

    first: SignedHead
    second: SignedHead

    def __attrs_post_init__(self) -> None:
        first, other = self.first.head, self.second.head
        if not first.study == other.study == self.manifest.study_id:
            raise ProvesNothing("the two heads are not about the study of the manifest; this proves nothing")
        if first.number != other.number:
            raise ProvesNothing("the two heads have different numbers; an honest aggregator signs such; no proof")
        if first.to_bytes() == other.to_bytes():
            raise ProvesNothing("the same head twice is one story; this proves nothing")
        if first.to_bytes() > other.to_bytes():
            raise ProvesNothing("the two heads are not in their one order; this is not a file of ours")
        for signed in (self.first, self.second):
            try:
                signed.verify(self.manifest.aggregator_key)
            except RejectedProof:
                raise ProvesNothing("a head is not signed by the key that the manifest names; no proof") from None

    @property
    def number(self) -> int:
        """The place in the chain that was filled twice."""
        return self.first.head.number

    def to_bytes(self) -> bytes:
        """The one spelling: [label, manifest, [head, signature], [head, signature]], the smaller head first."""
        return encode([labels.EVIDENCE, self.manifest.to_bytes(), *as_plain((self.first, self.second))])


def evidence_of(manifest: Manifest, head: SignedHead, other: SignedHead) -> Evidence:
    """Evidence from two heads in whichever order. Raises `ProvesNothing`."""
    first, second = sorted((head, other), key=lambda signed: signed.head.to_bytes())
    return Evidence(manifest, first, second)


Proof = Evidence | BadBucket


def parse_evidence(data_untrusted: bytes, pinned_key: bytes | None = None) -> Proof:
    """Evidence out of a file; `pinned_key` is the aggregator's, when it is known from an invite.

    Raises `ProvesNothing` for everything else, whatever is wrong with it.
    """
    try:
        label, manifest, *rest = decode(data_untrusted, "evidence")
        proof = _READERS[label](parse_manifest(manifest), *rest)
    except ProvesNothing:
        raise
    # An unknown label is a KeyError, another number of fields a TypeError of its reader.
    except (AnonmlError, KeyError, ValueError, TypeError):
        raise ProvesNothing(
            "not evidence, or damaged; name a file that `anonml peer evidence --export` wrote, or ask for it again"
        ) from None
    if pinned_key is not None and proof.key != pinned_key:
        raise ProvesNothing("it is about another aggregator than the one of the key that you gave")
    return proof


def parse_kept_evidence(stored: bytes, manifest: Manifest) -> Proof:
    """Evidence as a peer keeps it: two heads alone, as `encode_chain` writes them, or the whole file.

    Raises `ProvesNothing`, or `Malformed` for heads that are none.
    """
    first, *rest = decode(stored, "stored evidence")
    if isinstance(first, bytes):
        return parse_evidence(stored)
    return evidence_of(manifest, *_signed_heads([first, *rest]))


def _two_heads(manifest: Manifest, *pair: list[bytes]) -> Evidence:
    first, second = _signed_heads(pair)
    return Evidence(manifest, first, second)


def _signed_heads(pair: Sequence[list[bytes]]) -> tuple[SignedHead, SignedHead]:
    first, second = (SignedHead(parse_head(head), _signature(signature)) for head, signature in pair)
    return first, second


_READERS: dict[bytes, Callable[..., Proof]] = {
    labels.EVIDENCE: _two_heads,
    labels.BAD_BUCKET: read_bad_bucket,
}


def compare_chains(manifest: Manifest, ours_untrusted: bytes, theirs_untrusted: bytes) -> Evidence | None:
    """The proof in two copies of a study's heads against the aggregator that signed both; None when they agree.

    Raises `Malformed` or `RejectedProof` for a copy that this aggregator did not sign, `Refused` for copies that
    share no number and so say nothing about each other.
    """
    ours, theirs = (parse_chain(heads_untrusted, manifest.aggregator_key, manifest.study_id) for heads_untrusted in (
        ours_untrusted, theirs_untrusted,
    ))
    if not ours or not theirs:
        raise Refused("one of the two holds no head; export it again once the aggregator has published more")
    pair = first_difference(ours, theirs)
    return None if pair is None else evidence_of(manifest, *pair)


def first_difference(ours: Sequence[SignedHead], theirs: Sequence[SignedHead]) -> tuple[SignedHead, SignedHead] | None:
    """The first two heads of one number that differ, as far as both go."""
    pairs = zip(ours, theirs, strict=False)
    return next(((first, other) for first, other in pairs if first.head.to_bytes() != other.head.to_bytes()), None)


def manifest_of(chain_untrusted: bytes, body_untrusted: bytes) -> Manifest:
    """The manifest of a chain whose first document it is. Raises `Malformed` or `RejectedProof`."""
    manifest = parse_manifest(body_untrusted)
    chain = parse_chain(chain_untrusted, manifest.aggregator_key, manifest.study_id)
    if not chain or chain[0].head.digest != body_digest(body_untrusted):
        raise ProvesNothing("the heads do not begin with this manifest; nothing can be compared")
    return manifest


def _signature(value: object) -> bytes:
    if type(value) is not bytes or len(value) != 64:
        raise ProvesNothing("a signature has not 64 bytes; this proves nothing")
    return value
