"""Steps 3 to 6 of `peer.rules.checks`: seed, roster and credentials. Pure: bytes in, decisions out.

    3. `read_closing`             the documents have one size; the seed opens the commitment made before anyone
                                  enrolled; the study's is recomputed
    4. `check_count`, `_opened`   enough members by the signed size; the own bucket and the decoys are sorted, hold what
                                  belongs there, and have enough entries each; the own entry is there exactly as sent
    5. `_check_credentials`       every credential of these buckets works, or a stated sample of a large one
                                  (`anon.transparency.closing`)
    6. `check_credential`         the own one in full, under the manifest's key, with recomputed entropy and header

One bucket holds all members: a peer counts them, and its checks are of everybody. Where there are several it counts
none. A size that is a lie shows then by buckets that are too small, with the probability that `docs/threats.md` states;
whoever audits counts all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from anon.errors import Malformed
from anon.study.manifest import Manifest
from anon.text.foreign import Quoted
from anon.text.sentences import attributed, say, say_many
from anon.transparency.bucket_evidence import BadBucket, bad_bucket_of, bucket_fault
from anon.transparency.buckets import BucketDocument, bucket_of
from anon.transparency.closing import Bodies, BucketPair, CheckedLists, Closing, ClosingDocuments, read_closing
from anon.transparency.documents import SignedHead
from peer.rules.checks import Membership, Proven, check_cost, check_count, check_credential, own_place
from peer.rules.distrust import Distrust
from peer.rules.study_secrets import StudySecrets

MEMBERS = b"members"


class BadlyBucketed(Proven):
    """The aggregator signed a root over a bucket that no honest one makes. Everything stops; the proof is kept."""

    code: ClassVar[str] = "bad-bucket"

    def __init__(self, proof: BadBucket) -> None:
        super().__init__(
            say(
                "the aggregator signed a document that is not what it must be: {fault}. Nothing more is sent. The "
                "evidence is kept: export it, and show it to the others",
                fault=attributed(proof.fault),
            ),
            proof.to_bytes(),
        )


def buckets_of_key(document: BucketDocument, secrets: StudySecrets) -> tuple[int, ...]:
    """The own bucket and its decoys, in the order of their numbers. The same on a retry, and for the credentials."""
    own = _own_bucket(document, secrets)
    return tuple(sorted((own, *secrets.decoys(MEMBERS, own, document.bits))))


def buckets_of_tag(document: BucketDocument, tag: bytes, secrets: StudySecrets) -> tuple[int, ...]:
    """The same of a slot's tag in its transcript, with decoys of its own. The own one comes first."""
    own = bucket_of(tag, document.bits)
    return own, *secrets.decoys(b"slot %d" % document.part, own, document.bits)


def check_membership(
    manifest_bytes: bytes,
    manifest: Manifest,
    bodies: Bodies,
    opened: Mapping[int, BucketPair],
    chain: Sequence[SignedHead],
    secrets: StudySecrets,
    minimum: int,
    consented: int,
    random_bytes: Callable[[int], bytes],
    checked: CheckedLists | None = None,
) -> Membership:
    """Steps 3 to 6 in order. Raises `Malformed`, `Refused` or `RejectedProof`: nothing may be sent then.

    `chain` holds the signed heads of the bodies. `opened`: the buckets of `buckets_of_key`, each leading to its root.
    Slow, and nothing in it waits: run it in a thread.
    """
    check_cost(manifest, consented)
    documents = read_closing(manifest_bytes, manifest, bodies)  # 3.
    check_count(manifest, documents.roster.count, minimum)  # 4.
    own = _own_bucket(documents.roster, secrets)
    closings = {
        number: _opened(documents, bodies, chain, number, opened[number])
        for number in sorted(opened, key=lambda number: number == own)  # the own last: a finding says little then
    }
    place = own_place(closings[own].entries, secrets)
    for number, closing in closings.items():  # 5.
        _check_credentials(
            closing, bodies, chain, number, opened[number], place if number == own else 0, random_bytes, checked
        )
    signature = closings[own].signatures[place]
    study, digest, seed = manifest.study_id, documents.roster_digest, documents.seed
    credential = check_credential(study, manifest, digest, seed, signature, secrets)  # 6.
    return Membership(digest, seed, signature, documents.roster.count, credential)


def demand_full(document: BucketDocument, entries: int) -> None:
    """Raises `Distrust` for a bucket that is so small that it tells who fetches it."""
    if entries < document.small:
        raise Distrust(
            say_many(
                "a bucket of the {kind} has only {count} entry and at least {least} are demanded; nothing is sent",
                "a bucket of the {kind} has only {count} entries and at least {least} are demanded; nothing is sent",
                entries,
                kind=Quoted(document.kind),
                least=document.small,
            )
        )


def _own_bucket(document: BucketDocument, secrets: StudySecrets) -> int:
    return bucket_of(bytes(secrets.signing_key.verify_key), document.bits)


def _opened(
    documents: ClosingDocuments, bodies: Bodies, chain: Sequence[SignedHead], number: int, pair: BucketPair
) -> Closing:
    manifest = documents.manifest
    try:
        closing = documents.closing(number, pair.roster.body, pair.credentials.body)
    except Malformed:
        if bucket_fault(documents.roster, number, pair.roster.body):
            raise BadlyBucketed(bad_bucket_of(manifest, chain, [bodies.roster], number, (pair.roster,))) from None
        raise BadlyBucketed(_of_credentials(manifest, chain, bodies, number, pair)) from None
    demand_full(documents.roster, len(closing.entries))
    return closing


def _check_credentials(
    closing: Closing,
    bodies: Bodies,
    chain: Sequence[SignedHead],
    number: int,
    pair: BucketPair,
    own: int,
    random_bytes: Callable[[int], bytes],
    checked: CheckedLists | None,
) -> None:
    if len(closing.entries) and (bad := closing.bad_seen_by(own, random_bytes, checked=checked)) is not None:
        raise BadlyBucketed(_of_credentials(closing.manifest, chain, bodies, number, pair, bad))


def _of_credentials(
    manifest: Manifest, chain: Sequence[SignedHead], bodies: Bodies, number: int, pair: BucketPair, place: int = -1
) -> BadBucket:
    documents = (bodies.roster, bodies.seed, bodies.credentials)
    return bad_bucket_of(manifest, chain, documents, number, (pair.roster, pair.credentials), place)
