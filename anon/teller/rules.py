"""A teller's decisions, pure, on bytes. `Teller` (`anon.teller.session`) performs them in this order.

A relayed packet:

 1. form and lengths; the share has the digest that the token signs       `read_relayed`
 2. about this occasion, and for this teller                              `read_relayed`
 3. its digest was journalled: the same answer; another one holds the tag: refused   `sort_out`
 4. the token, under the header of the signed roster                      `Teller.admit`, in one batch
 5. the seal opens, for this study, round, slot, tag and teller           `open_share`
 6. the first step of its verification                                    `open_share`
 7. one transaction keeps the verifier share before it leaves             `Journal.keep_shares`

A list:

 1. of this occasion, strictly sorted                                     `check_list`
 2. every tag was accepted here                                           `check_list`
 3. at least the study's minimum, at most its members                     `check_list`
 4. the only one ever signed for the occasion                             `Journal.keep_list`

With a spare a share belongs to a pair, and step 5 and 6 are about that pair; "for the occasion" means in either pair.
A round is over, by `Teller.add_noise`, only once every teller's signature of this one list is there.
Not decided here: who sent a packet. A teller never learns it, and an enrolment's name or invite never comes to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import field

from anon.credential import PublicKey, Verifier, cached_verifier
from anon.crypto import labels
from anon.crypto.sealing.opening import Opener
from anon.errors import Malformed, Refused, RejectedProof
from anon.noise import DiscreteGaussian, RandomBytes
from anon.sharing.arrangement import Arrangement, Sum
from anon.sharing.quorum import Quorum
from anon.sharing.statements import AcceptedList, parse_list
from anon.study.manifest import parse_manifest
from anon.transparency.closing import CLOSING, Bodies, read_closing
from anon.transparency.documents import check_body, find, parse_chain
from anon.values import frozen
from anon.vdaf.binding import sharing_nonce
from anon.vdaf.prio3 import Prio3, VerifyState
from anon.wire.cbor import sha256
from anon.wire.messages import credential_header
from anon.wire.packets import Layout, Occasion, Relayed, parse_relayed, share_info

TAG_SPENT = "tag-spent"


@frozen
class Roll:
    """The signed roster as far as tokens are checked against it."""

    issuer: bytes
    header: bytes
    packets: int
    members: int

    @property
    def verifier(self) -> Verifier:
        """The check of tokens."""
        return cached_verifier(PublicKey(self.issuer), self.header, self.packets)


def read_roll(
    manifest_untrusted: bytes,
    study: bytes,
    heads_untrusted: bytes,
    bodies_untrusted: Bodies,
    minimum: int,
    random_bytes: Callable[[int], bytes],
) -> Roll:
    """The roster that the study's aggregator signed, its seed opened and everybody's credential checked.

    Raises `Malformed`, `RejectedProof`, and `Refused` for a roster below the minimum or with a bad credential. An
    aggregator can fill a roster with inventions, and can issue itself credentials beside it: no check shows either.
    """
    manifest = parse_manifest(manifest_untrusted)
    if manifest.study_id != study:
        raise Malformed("manifest: of another study than the one that was countersigned")
    chain = parse_chain(heads_untrusted, manifest.aggregator_key, study)
    bodies = (bodies_untrusted.roster, bodies_untrusted.seed, bodies_untrusted.credentials)
    for kind, body in zip(CLOSING, bodies, strict=True):
        head = find(chain, kind)
        if head is None:
            raise Malformed(f"heads: expected one of the {kind}")
        check_body(head, body)
    documents = read_closing(manifest_untrusted, manifest, bodies_untrusted)
    members = documents.roster.count
    if members < minimum:
        raise Refused(f"roster: {members} members, and the study needs {minimum}; it ends here")
    if any(closing.bad_credentials(random_bytes, most=1) for closing in documents.everybody(bodies_untrusted.beside)):
        raise Refused("credentials: one of them works for nobody; the aggregator is at fault, and the study ends here")
    header = credential_header(study, documents.roster_digest)
    return Roll(manifest.credential_key, header, manifest.packets, members)


def demand_tokens(roll: Roll, arrangement: Arrangement) -> None:
    """Raises `Refused` where members have fewer unlinkable tokens than the study has sums."""
    if roll.packets < len(arrangement.sums):
        raise Refused(f"{len(arrangement.sums)} sums, but tokens for {roll.packets} packets; do not serve it")


def item_digest(item: bytes) -> bytes:
    """The name of a relayed packet in the journal."""
    return sha256(labels.RELAYED, item)


def read_relayed(item_untrusted: bytes, occasion: Occasion, teller: int, layout: Layout) -> Relayed:
    """Steps 1 and 2. `teller`: the place of its share. Raises `Malformed`."""
    relayed = parse_relayed(item_untrusted, layout)  # 1.
    if (relayed.occasion, relayed.teller) != (occasion, teller):  # 2.
        raise Malformed("relayed packet: for another study, round, slot or teller")
    return relayed


@frozen
class SortedOut:
    """A batch after steps 1 to 3: tags that are answered as before, packets that are new, and what was refused."""

    known: frozenset[bytes]
    fresh: Mapping[bytes, Relayed] = field(repr=False)
    """By digest, in their order, so that the order of the items decides nothing."""
    refused: Counter[str]


def sort_out(
    items_untrusted: Sequence[bytes],
    holder_of: Callable[[bytes], bytes | None],
    occasion: Occasion,
    teller: int,
    layout: Layout,
) -> SortedOut:
    """Steps 1 to 3. `holder_of`: the digest that holds a tag, if any. Two new packets may still have one tag."""
    refused: Counter[str] = Counter()
    known, fresh = set[bytes](), dict[bytes, Relayed]()
    for digest, item in sorted((item_digest(item), item) for item in set(items_untrusted)):
        try:
            relayed = read_relayed(item, occasion, teller, layout)
        except Malformed as error:
            refused[error.code] += 1
            continue
        holder = holder_of(relayed.tag)
        if holder is None:
            fresh[digest] = relayed
        elif holder == digest:  # 3.
            known.add(relayed.tag)
        else:
            refused[TAG_SPENT] += 1
    return SortedOut(frozenset(known), fresh, refused)


@frozen
class PreparedPacket:
    """A packet that passed steps 4 to 6: its verifier share, and the state that stays here."""

    verifier: bytes = field(repr=False)
    state: VerifyState = field(repr=False)


def open_share(
    relayed: Relayed, quorum: Quorum, prio3: Prio3, opener: Opener, verification_key: bytes
) -> PreparedPacket:
    """Steps 5 and 6. Raises `Malformed` or `RejectedProof`."""
    occasion, teller = quorum.occasion(relayed.occasion), relayed.teller - quorum.first
    share = opener.open(relayed.share, share_info(occasion, relayed.tag, teller))  # 5.
    context, nonce = quorum.arrangement.context(occasion), sharing_nonce(relayed.tag)
    public = quorum.public_share(relayed.occasion, relayed.report)
    begun = prio3.verify_init(verification_key, context, teller, nonce, public, share)  # 6.
    return PreparedPacket(begun[1], begun[0])


def is_valid(
    prio3: Prio3, context: bytes, joint_seed: bytes, verifiers_untrusted: Sequence[bytes]
) -> bool:
    """The second step of a packet's verification, from all tellers' verifier shares in their order. `joint_seed`: of
    this teller's state. Nothing else of it is needed for the verdict."""
    try:
        message = prio3.verifier_shares_to_message(context, verifiers_untrusted)
        prio3.verify_next(VerifyState([], joint_seed), message)
    except (Malformed, RejectedProof):
        return False
    return True


def check_list(
    list_untrusted: bytes, occasion: Occasion, accepted: frozenset[bytes], minimum: int, members: int
) -> AcceptedList:
    """Steps 1 to 3 of a list. Raises `Malformed` or `Refused`."""
    proposed = parse_list(list_untrusted, occasion)  # 1.
    if not accepted.issuperset(proposed.tags):  # 2.
        raise Refused("list: a tag on it was not accepted by this teller; propose what all tellers accepted")
    if not minimum <= len(proposed.tags) <= members:  # 3.
        raise Refused(f"list: {len(proposed.tags)} tags, expected {minimum} to {members}; no sum is published")
    return proposed


def noisy_share(prio3: Prio3, asked: Sum, outputs: Iterable[bytes], random_bytes: RandomBytes) -> bytes:
    """A share of the sum with this teller's noise, all of it, in each entry. `outputs`: encoded shares of vectors.

    `random_bytes` must be the operating system's. How long it takes depends on the noise: send at a time fixed before.
    """
    field, length = prio3.circuit.field, prio3.circuit.output_length
    noise = DiscreteGaussian(asked.sigma_squared).vector(length, random_bytes)
    return field.encode(field.add(noise, field.total(outputs, length, "share")))

