"""A closed enrolment in buckets: three short signed documents, and the members of a bucket with their credentials.

Seed and credential header rest on the roster's document, whose root fixes every entry. So each bucket can be checked by
itself, as `anon.transparency.closing` checks a whole roster.
"""

from __future__ import annotations

from attrs import field, frozen

from anon.errors import Malformed
from anon.study.manifest import Manifest
from anon.transparency.bucketed import read_credentials_bucket, read_roster_bucket
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.closing import Bodies, Closing
from anon.transparency.documents import body_digest
from anon.wire.messages import parse_seed, study_seed


@frozen
class ClosingDocuments:
    """The signed documents of a closed enrolment in buckets, and the study's seed."""

    manifest: Manifest = field(repr=False)
    roster: BucketDocument
    credentials: BucketDocument
    roster_digest: bytes
    seed: bytes
    credentials_digest: bytes

    def closing(self, bucket: int, roster_body: bytes, credentials_body: bytes) -> Closing:
        """The members of one bucket, with a credential for each. Raises `Malformed` for a body that no honest
        aggregator puts under its root."""
        entries = read_roster_bucket(self.roster, bucket, roster_body)
        signatures = read_credentials_bucket(self.roster.study, credentials_body, len(entries))
        digests = (self.roster_digest, self.seed, signatures)
        return Closing(self.manifest, entries, *digests, body_digest(credentials_body))


def read_closing_documents(manifest_bytes: bytes, manifest: Manifest, bodies: Bodies) -> ClosingDocuments:
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
