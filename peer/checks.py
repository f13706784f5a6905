"""What a peer verifies before anything may leave (design section 3, step 5). Pure: bytes in, decisions out.

    1. `extend_chain`        the signed heads continue those already seen; two with one number are evidence
    2. `check_manifest`      under the pinned key, id and address, costing what it says, asking what may be asked
    3. `check_roster`        the own entry exactly as sent; enough others
    4. `check_seed`          opens the commitment made before anyone enrolled; the seed is recomputed
    5. `check_credential`    verified in full, under the manifest's key, with recomputed entropy and header
    6. thresholds and edges  recomputed by the protocol's half (`peer.protocols`)

Left to others: signatures and links within a chain (`anon.documents.parse_chain`), a body's length and digest
(`anon.documents.check_body`), the owner's consent (`peer.consent`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from attrs import field, frozen

from anon.addresses import is_loopback
from anon.credential import Credential, finalize, signer_nym_entropy
from anon.credential.issuance import PublicKey
from anon.documents import SignedHead, body_digest
from anon.encoding import encode
from anon.errors import Malformed, Refused
from anon.invite import Invite
from anon.ldp import format_epsilon
from anon.messages import (
    COMMITMENT_POINT_BYTES,
    RosterEntry,
    credential_header,
    parse_credentials,
    parse_roster,
    parse_seed,
    study_seed,
)
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest, parse_manifest, study_id_of
from peer.data.features import check_queries
from peer.secrets import StudySecrets


class Distrust(Refused):
    """The aggregator's chain of documents is not what an honest one publishes. Nothing more is sent."""

    code: ClassVar[str] = "distrust"


class Equivocation(Distrust):
    """The aggregator signed two heads with one number: it told two stories. Everything stops; both are kept."""

    code: ClassVar[str] = "two-heads-one-number"

    def __init__(self, first: SignedHead, second: SignedHead) -> None:
        super().__init__(
            f"the aggregator signed two different documents number {first.head.number}; nothing more is sent. "
            "The evidence is kept: show it to the others (`anonml peer evidence --export FILE`)"
        )
        self.first = first
        self.second = second

    def evidence(self) -> bytes:
        """Both signed heads; anyone can verify them with the aggregator's key."""
        return encode([[one.head.to_bytes(), one.signature] for one in (self.first, self.second)])


def extend_chain(seen: Sequence[SignedHead], fresh: Sequence[SignedHead]) -> tuple[SignedHead, ...]:
    """Step 1. The longer of two verified chains of one study, which must agree as far as both go.

    Raises `Equivocation` with the first pair that differs, `Distrust` for a chain that publishes one document twice.
    A fresh chain that is shorter than the seen one says nothing new: the seen one is returned.
    """
    for old, new in zip(seen, fresh, strict=False):
        if old.head.to_bytes() != new.head.to_bytes():
            raise Equivocation(old, new)
    longer = tuple(fresh if len(fresh) > len(seen) else seen)
    documents = [(one.head.kind, one.head.part) for one in longer]
    if len(set(documents)) != len(documents):
        raise Distrust("the aggregator published one document twice; nothing is sent")
    return longer


def check_manifest(body: bytes, invite: Invite) -> Manifest:
    """Step 2. The manifest that the invite names. Raises `Malformed` or `Refused`; nothing was sent."""
    if study_id_of(body) != invite.study:
        raise Malformed("manifest: not the study of the invite; ask for the invite again")
    manifest = vetted_manifest(body)
    if manifest.aggregator_key != invite.key:
        raise Malformed("manifest: names another aggregator key than the invite; do not take part")
    check_address(manifest, invite.address)
    return manifest


def check_address(manifest: Manifest, address: str) -> None:
    """Step 2. The address is the one that the manifest names to everybody, or this machine's own. Raises `Distrust`.

    An address that only one person was given would tie whatever arrives there to that person, over Tor too.
    """
    if is_loopback(address) or address == manifest.address:
        return
    if not manifest.address:
        raise Distrust(
            f"the study names no onion address, so it can be joined only on the machine that serves it, not at "
            f"{address}; nothing about you was sent: ask staff to publish it with its onion address"
        )
    raise Distrust(
        f"the link leads to {address}, but the study is served to everybody at {manifest.address}; an address of your "
        "own would mark all you send as yours. Nothing about you was sent: ask for the link with the study's address"
    )


@lru_cache(maxsize=4)
def vetted_manifest(body: bytes) -> Manifest:
    """A manifest whose declared epsilons are at least the recomputed ones and whose queries pass the lint.

    Pure in the bytes, and slow for many surveys, hence remembered. Raises `Malformed` or `Refused`.
    """
    manifest = parse_manifest(body)
    protocol_of(manifest).check(manifest)
    check_queries(manifest.features, manifest.label, tables_of(manifest))
    return manifest


def tables_of(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """The declared tables with their columns, as `peer.data` takes them."""
    return {table.name: table.columns for table in manifest.tables}


def check_cost(manifest: Manifest, consented: int) -> None:
    """Recomputed <= declared (step 2) and declared <= consented. Raises `Refused`."""
    if manifest.epsilon > consented:
        raise Refused(
            f"the study declares epsilon {format_epsilon(manifest.epsilon)} but {format_epsilon(consented)} was "
            "consented; nothing is sent"
        )


@frozen
class Membership:
    """What steps 3 to 5 establish: the study's seed, the credential's parts and the credential."""

    roster_digest: bytes
    seed: bytes
    signature: bytes
    size: int
    credential: Credential = field(repr=False)


def check_roster(
    study: bytes, manifest: Manifest, body_untrusted: bytes, secrets: StudySecrets, minimum: int
) -> tuple[int, tuple[RosterEntry, ...]]:
    """Step 3. The own place in the roster, and the roster. Raises `Malformed` or `Refused`."""
    entries = _entries(body_untrusted, study)
    own_key = bytes(secrets.signing_key.verify_key)
    own = RosterEntry(own_key, secrets.contribution, secrets.commitment.commitment_with_proof[:COMMITMENT_POINT_BYTES])
    place = next((number for number, entry in enumerate(entries) if entry.key == own_key), None)
    if place is None:
        raise NotEnrolled
    if entries[place] != own:
        raise Refused("the roster shows another enrolment than the one sent; nothing is sent")
    needed = max(minimum, manifest.cohort.minimum)
    if len(entries) < needed:
        raise Refused(f"only {len(entries)} enrolled and at least {needed} are demanded; nothing is sent")
    if len(entries) > manifest.cohort.maximum:
        raise Refused(f"{len(entries)} enrolled, more than the {manifest.cohort.maximum} declared; nothing is sent")
    return place, entries


class NotEnrolled(Refused):
    """The roster closed without this peer. Nothing is sent and nothing charged."""

    code: ClassVar[str] = "not-in-roster"

    def __init__(self) -> None:
        super().__init__("the roster closed without this enrolment; nothing is sent, the reservation returns")


@lru_cache(maxsize=2)
def _entries(body_untrusted: bytes, study: bytes) -> tuple[RosterEntry, ...]:
    return parse_roster(body_untrusted, study)


@lru_cache(maxsize=2)
def _signatures(body_untrusted: bytes, study: bytes, count: int) -> tuple[bytes, ...]:
    return parse_credentials(body_untrusted, study, count)


def check_seed(
    study: bytes, manifest_bytes: bytes, manifest: Manifest, roster: bytes, seed_body_untrusted: bytes
) -> bytes:
    """Step 4. The recomputed seed. Raises `Malformed`."""
    value = parse_seed(seed_body_untrusted, study, manifest.seed_commitment)
    return study_seed(manifest_bytes, roster, value)


def check_credential(
    study: bytes,
    manifest: Manifest,
    roster_digest: bytes,
    seed: bytes,
    signature_untrusted: bytes,
    secrets: StudySecrets,
) -> Credential:
    """Step 5. The verified credential. Raises `Malformed` or `RejectedProof`.

    Header and entropy are recomputed, the key is the manifest's: an issuer cannot mark a member by a credential of its
    own kind.
    """
    header = credential_header(study, roster_digest)
    entropy = signer_nym_entropy(seed, bytes(secrets.signing_key.verify_key))
    key = PublicKey(manifest.credential_key)
    return finalize(key, header, signature_untrusted, entropy, secrets.commitment)


@frozen
class Bodies:
    """The three documents of a closed enrolment, each matching its signed head; contents untrusted."""

    roster: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    credentials: bytes = field(repr=False)


def check_membership(
    manifest_bytes: bytes, manifest: Manifest, bodies: Bodies, secrets: StudySecrets, minimum: int, consented: int
) -> Membership:
    """Steps 3 to 5 in order. Raises `Malformed`, `Refused` or `RejectedProof`: nothing may be sent then."""
    study = study_id_of(manifest_bytes)
    check_cost(manifest, consented)
    place, entries = check_roster(study, manifest, bodies.roster, secrets, minimum)  # 3.
    seed = check_seed(study, manifest_bytes, manifest, bodies.roster, bodies.seed)  # 4.
    signature = _signatures(bodies.credentials, study, len(entries))[place]
    digest = body_digest(bodies.roster)
    credential = check_credential(study, manifest, digest, seed, signature, secrets)  # 5.
    return Membership(digest, seed, signature, len(entries), credential)
