"""The checks of a peer before anything may leave (design section 3, step 5). Pure: bytes in, decisions out.

    1. `check_continued`     the signed heads continue those already seen; two with one number are evidence; each is of
                             a document that the study can have, and no longer than it can be; once the roster is
                             signed, no longer than with so many members, and of no more packets than members
    2. `check_manifest`      under the pinned key, id and address, costing what it says, asking what may be asked
       `tellers.check_tellers`  every teller that it names countersigned it
    3. to 6.                 seed, roster and credentials (`peer.rules.bucket_checks.check_membership`)
    7. thresholds and edges  recomputed by the protocol's part (`peer.protocols`)

Left to others: signatures and links within a chain (`anon.transparency.documents.parse_chain`), a body's length and
digest (`anon.transparency.documents.check_body`), the owner's consent (`peer.rules.consent`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from attrs import field

from anon.credential import Credential, finalize, signer_nym_entropy
from anon.credential.issuance import PublicKey
from anon.errors import Malformed, Refused
from anon.ldp import format_epsilon
from anon.protocols.registry import Protocols, charge_of, check_study
from anon.protocols.sizes import longest_body, most_documents, with_members
from anon.queries.lint import Tables, lint
from anon.study.features import Feature, Label
from anon.study.manifest import Manifest, study_id_of
from anon.text.foreign import Quoted, whole_place
from anon.text.sentences import joined, say, say_many
from anon.transparency.bucketed import members_signed, packets_signed
from anon.transparency.documents import Head, SignedHead, encode_chain
from anon.values import frozen
from anon.wire.addresses import is_loopback
from anon.wire.invite import Invite
from anon.wire.messages import COMMITMENT_POINT_BYTES, Roster, RosterEntry, credential_header
from peer.rules.distrust import Distrust
from peer.rules.given import check_given
from peer.rules.study_secrets import StudySecrets


class Equivocation(Distrust):
    """The aggregator signed two heads with one number: it equivocated. Everything stops; both are kept."""

    code: ClassVar[str] = "two-heads-one-number"

    def __init__(self, first: SignedHead, second: SignedHead) -> None:
        super().__init__(
            say(
                "the aggregator signed two different documents number {number}; nothing more is sent. The evidence "
                "is kept: export it, and show it to the others",
                number=first.head.number,
            )
        )
        self.first = first
        self.second = second

    def evidence(self) -> bytes:
        """Both signed heads; anyone can verify them with the aggregator's key."""
        return encode_chain((self.first, self.second))


class Proven(Distrust):
    """The aggregator signed what no honest one signs. Nothing more is sent. `proof`: the file that shows it."""

    def __init__(self, said: str, proof: bytes) -> None:
        super().__init__(said)
        self.proof = proof

    def evidence(self) -> bytes:
        """The file itself: anyone can verify it alone."""
        return self.proof


def extend_chain(seen: Sequence[SignedHead], fresh: Sequence[SignedHead]) -> tuple[SignedHead, ...]:
    """Step 1. The longer of two verified chains of one study, which must agree as far as both go.

    Raises `Equivocation` with the first pair that differs, `Distrust` for a chain that publishes one document twice.
    A fresh chain that is shorter than the seen one says nothing new: the seen one is returned.
    """
    for old, new in zip(seen, fresh, strict=False):
        if old.head.to_bytes() != new.head.to_bytes():
            raise Equivocation(old, new)
    longer = tuple(fresh if len(fresh) > len(seen) else seen)
    documents = [(signed.head.kind, signed.head.part) for signed in longer]
    if len(set(documents)) != len(documents):
        raise Distrust(say("the aggregator published one document twice; nothing is sent"))
    return longer


def demand_length(head: Head, longest: int) -> None:
    """Step 1. No document is read that claims to be longer than this study's can be. Raises `Distrust`."""
    if not longest or head.length > longest:
        most = say("can have at most {longest}", longest=longest) if longest else say("has no such document")
        raise Distrust(
            say(
                "the aggregator signed a document ({kind}) of {length} bytes, and this study {most}; nothing of it "
                "was read and nothing more is sent: tell staff and the other members",
                kind=Quoted(head.kind),
                length=head.length,
                most=most,
            )
        )


def check_sizes(manifest: Manifest, chain: Sequence[SignedHead], seen: int = 0) -> tuple[SignedHead, ...]:
    """Step 1. The chain, when its heads after the first `seen` are of documents that the study can have, none too long.

    Raises `Distrust`. Nothing that the manifest does not imply is ever read.
    """
    if len(chain) > most_documents(manifest):
        raise Distrust(
            say(
                "the aggregator signed {chain} documents, and this study has at most {manifest}; nothing of them "
                "was read and nothing more is sent: tell staff and the other members",
                chain=len(chain),
                manifest=most_documents(manifest),
            )
        )
    check_given(manifest, chain)
    for signed in chain[seen:]:
        demand_length(signed.head, longest_body(manifest, signed.head.kind, signed.head.part))
    check_numbers(manifest, chain, seen)
    return tuple(chain)


def check_numbers(manifest: Manifest, chain: Sequence[SignedHead], seen: int = 0) -> None:
    """Step 1, where the roster has one bucket: no document is longer than with as many members as it has, and no slot
    has more packets. So no sum has more vectors, fetched or not. Raises `Distrust`; with several buckets see
    `peer.run.inclusion`."""
    members = members_signed(chain)
    if members is None:
        return
    held = with_members(manifest, members)
    for signed in chain[seen:]:
        demand_length(signed.head, longest_body(held, signed.head.kind, signed.head.part))
    check_packets(packets_signed(chain), members)


def check_packets(packets: Mapping[int, int], members: int) -> None:
    """A member has one packet in each slot at most. `packets`: by slot. Raises `Distrust`."""
    count = max(packets.values(), default=0)
    if count > members:
        raise Distrust(
            say(
                "a transcript is signed for {count} packets, and the signed roster has {members} members; nothing more "
                "is fetched",
                count=count,
                members=members,
            )
        )


def check_continued(
    manifest: Manifest, seen: Sequence[SignedHead], fresh: Sequence[SignedHead]
) -> tuple[SignedHead, ...]:
    """Step 1, whole: `extend_chain`, then `check_sizes` of what is new."""
    return check_sizes(manifest, extend_chain(seen, fresh), len(seen))


def check_manifest(body: bytes, invite: Invite, protocols: Protocols) -> Manifest:
    """Step 2. The manifest that the invite names. Raises `Malformed` or `Refused`; nothing was sent."""
    if study_id_of(body) != invite.study:
        raise Malformed(say("manifest: not the study of the invite; ask for the invite again"))
    manifest = vetted_manifest(body, protocols)
    if manifest.aggregator_key != invite.key:
        raise Malformed(say("manifest: names another aggregator key than the invite; do not take part"))
    check_address(manifest, invite.address)
    return manifest


def check_address(manifest: Manifest, address: str) -> None:
    """Step 2. The address is one that the manifest names to everybody, or this machine's own. Raises `Distrust`.

    An address that only one person was given would tie whatever arrives there to that person, over Tor too.
    """
    if is_loopback(address) or address in manifest.addresses:
        return
    if not manifest.address:
        raise Distrust(
            say(
                "the study names no onion address, so it can be joined only on the machine that serves it, not at "
                "{address}; nothing about you was sent: ask staff to publish it with its onion address",
                address=whole_place(address),
            )
        )
    raise Distrust(
        say(
            "the link leads to {address}, but the study is served to everybody at {address2}; an address of your "
            "own would mark all you send as yours. Nothing about you was sent: ask for the link with the study's "
            "address",
            address=whole_place(address),
            address2=joined((whole_place(named) for named in manifest.addresses), ", "),
        )
    )


@lru_cache(maxsize=1)
def vetted_manifest(body: bytes, protocols: Protocols) -> Manifest:
    """A manifest whose declared epsilons are at least the recomputed ones and whose queries pass the lint.

    Slow for many surveys: the last one is kept, since looking, joining and following vet the same bytes. A hostile
    study takes the memory of no more than one. Raises `Malformed` or `Refused`.
    """
    manifest = protocols.manifest(body)
    check_study(manifest)
    check_queries(manifest.features, manifest.label, tables_of(manifest), manifest.records is not None)
    return manifest


def check_queries(features: Sequence[Feature], label: Label, tables: Tables, many: bool = False) -> None:
    """Lint every query of a study before enrolment; `many`: each gives many records. Raises `Refused` or `Malformed`,
    naming the feature."""
    for feature in features:
        lint(feature.query, tables, say("feature {name}", name=Quoted(feature.name)), many=many)
    lint(label.query, tables, say("the label"), many=many)


def tables_of(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """The declared tables with their columns, as `peer.data` takes them."""
    return {table.name: table.columns for table in manifest.tables}


def check_cost(manifest: Manifest, consented: int) -> None:
    """Recomputed <= declared (step 2) and declared <= consented. Raises `Refused`."""
    if manifest.epsilon > consented:
        symbol = charge_of(manifest).budget.symbol
        raise Refused(
            say(
                "the study declares {symbol} {epsilon} but {consented} was consented; nothing is sent",
                symbol=symbol,
                epsilon=format_epsilon(manifest.epsilon),
                consented=format_epsilon(consented),
            )
        )


@frozen
class Membership:
    """The result of steps 3 to 6: the study's seed, the credential's parts and the credential."""

    roster_digest: bytes
    seed: bytes
    signature: bytes
    size: int
    credential: Credential = field(repr=False)


def own_place(entries: Roster, secrets: StudySecrets) -> int:
    """The place of the own entry, which has to be there exactly as sent. Raises `NotEnrolled`, `Refused`."""
    own_key = bytes(secrets.signing_key.verify_key)
    own = RosterEntry(own_key, secrets.contribution, secrets.commitment.commitment_with_proof[:COMMITMENT_POINT_BYTES])
    index = entries.place_of(own_key)
    if index is None:
        raise NotEnrolled
    if entries[index] != own:
        raise Refused(say("the roster shows another enrolment than the one sent; nothing is sent"))
    return index


def check_count(manifest: Manifest, count: int, minimum: int) -> None:
    """At least as many members as study and owner (`minimum`) demand, and no more than declared. Raises `Refused`."""
    needed = max(minimum, manifest.cohort.minimum)
    if count < needed:
        raise Refused(
            say_many(
                "only {count} member enrolled and at least {needed} are demanded; nothing is sent",
                "only {count} members enrolled and at least {needed} are demanded; nothing is sent",
                count,
                needed=needed,
            )
        )
    if count > manifest.cohort.maximum:
        raise Refused(
            say(
                "{entries} enrolled, more than the {maximum} declared; nothing is sent",
                entries=count,
                maximum=manifest.cohort.maximum,
            )
        )


class NotEnrolled(Refused):
    """The roster closed without this peer. Nothing is sent and nothing charged."""

    code: ClassVar[str] = "not-in-roster"

    def __init__(self) -> None:
        super().__init__(say("the roster closed without this enrolment; nothing is sent, the reservation returns"))


def check_credential(
    study: bytes,
    manifest: Manifest,
    roster_digest: bytes,
    seed: bytes,
    signature_untrusted: bytes,
    secrets: StudySecrets,
) -> Credential:
    """Step 6. The verified credential. Raises `Malformed` or `RejectedProof`.

    Header and entropy are recomputed, the key is the manifest's: an issuer cannot mark a member by a credential of its
    own kind.
    """
    header = credential_header(study, roster_digest)
    entropy = signer_nym_entropy(seed, bytes(secrets.signing_key.verify_key))
    key = PublicKey(manifest.credential_key)
    return finalize(key, header, signature_untrusted, entropy, secrets.commitment)
