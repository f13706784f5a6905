"""Evidence that an aggregator told two stories: two signed heads of one number in one study.

Self-contained: it carries the study's manifest, whose digest is the study id and which names the aggregator's key. So
whoever knows the study id, its fingerprint words or the key from an invite link can check it, without a home and
without asking anybody. It holds nothing of the person who was told the second story.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from anon import labels
from anon.documents import SignedHead, body_digest, parse_chain, parse_head
from anon.encoding import decode, encode
from anon.errors import AnonmlError, Refused, RejectedProof
from anon.study.manifest import Manifest, parse_manifest

MAX_BYTES = 64 * 1024 * 1024


class ProvesNothing(RejectedProof):
    """A file that is no proof of two stories: damaged, forged, or about something else."""

    code = "proves-nothing"


@frozen
class Evidence:
    """Two different heads of one number in one study, both signed by the key that the study's manifest names.

    Raises `ProvesNothing` unless that is what they are.
    """

    manifest: Manifest = field(repr=False)
    first: SignedHead
    second: SignedHead

    def __attrs_post_init__(self) -> None:
        one, other = self.first.head, self.second.head
        if not one.study == other.study == self.manifest.study_id:
            raise ProvesNothing("the two heads are not about the study of the manifest; this proves nothing")
        if one.number != other.number:
            raise ProvesNothing("the two heads have different numbers; an honest aggregator signs such; no proof")
        if one.to_bytes() == other.to_bytes():
            raise ProvesNothing("the same head twice is one story; this proves nothing")
        if one.to_bytes() > other.to_bytes():
            raise ProvesNothing("the two heads are not in their one order; this is not a file of ours")
        for signed in (self.first, self.second):
            try:
                signed.verify(self.manifest.aggregator_key)
            except RejectedProof:
                raise ProvesNothing("a head is not signed by the key that the manifest names; no proof") from None

    @property
    def study(self) -> bytes:
        """The study's id, 32 bytes."""
        return self.manifest.study_id

    @property
    def key(self) -> bytes:
        """Whose two stories: the aggregator's Ed25519 key, 32 bytes."""
        return self.manifest.aggregator_key

    @property
    def number(self) -> int:
        """The place in the chain that was filled twice."""
        return self.first.head.number

    def to_bytes(self) -> bytes:
        """The one spelling: [label, manifest, [head, signature], [head, signature]], the smaller head first."""
        pair = [[one.head.to_bytes(), one.signature] for one in (self.first, self.second)]
        return encode([labels.EVIDENCE, self.manifest.to_bytes(), *pair])


def evidence_of(manifest: Manifest, one: SignedHead, other: SignedHead) -> Evidence:
    """Evidence from two heads in whichever order. Raises `ProvesNothing`."""
    first, second = sorted((one, other), key=lambda signed: signed.head.to_bytes())
    return Evidence(manifest, first, second)


def parse_evidence(data_untrusted: bytes, pinned_key: bytes | None = None) -> Evidence:
    """Evidence out of a file; `pinned_key` is the aggregator's, when it is known from an invite.

    Raises `ProvesNothing` for everything else, whatever is wrong with it.
    """
    try:
        label, manifest, *pair = decode(data_untrusted, "evidence")
        first, second = (SignedHead(parse_head(head), _signature(signature)) for head, signature in pair)
        found = Evidence(_manifest(label, manifest), first, second)
    except ProvesNothing:
        raise
    except (AnonmlError, ValueError, TypeError):
        raise ProvesNothing("not evidence of two stories, or damaged; ask for the file again") from None
    if pinned_key is not None and found.key != pinned_key:
        raise ProvesNothing("it is about another aggregator than the one of the key that you gave")
    return found


def compare_chains(manifest: Manifest, ours_untrusted: bytes, theirs_untrusted: bytes) -> Evidence | None:
    """What two copies of a study's heads prove against the aggregator that signed both; None when they agree.

    Raises `Malformed` or `RejectedProof` for a copy that this aggregator did not sign, `Refused` for copies that
    share no number and so say nothing about each other.
    """
    ours, theirs = (parse_chain(one, manifest.aggregator_key, manifest.study_id) for one in (
        ours_untrusted, theirs_untrusted,
    ))
    if not ours or not theirs:
        raise Refused("one of the two holds no head; export it again once the aggregator has published more")
    pair = first_difference(ours, theirs)
    return None if pair is None else evidence_of(manifest, *pair)


def first_difference(ours: Sequence[SignedHead], theirs: Sequence[SignedHead]) -> tuple[SignedHead, SignedHead] | None:
    """The first two heads of one number that differ, as far as both go."""
    pairs = zip(ours, theirs, strict=False)
    return next(((one, other) for one, other in pairs if one.head.to_bytes() != other.head.to_bytes()), None)


def manifest_of(chain_untrusted: bytes, body_untrusted: bytes) -> Manifest:
    """The manifest of a chain whose first document it is. Raises `Malformed` or `RejectedProof`."""
    manifest = parse_manifest(body_untrusted)
    chain = parse_chain(chain_untrusted, manifest.aggregator_key, manifest.study_id)
    if not chain or chain[0].head.digest != body_digest(body_untrusted):
        raise ProvesNothing("the heads do not begin with this manifest; nothing can be compared")
    return manifest


def _manifest(label: object, body_untrusted: bytes) -> Manifest:
    if label != labels.EVIDENCE:
        raise ProvesNothing("not evidence of two stories; name a file that `anonml peer evidence --export` wrote")
    return parse_manifest(body_untrusted)


def _signature(value: object) -> bytes:
    if type(value) is not bytes or len(value) != 64:
        raise ProvesNothing("a signature has not 64 bytes; this proves nothing")
    return value
