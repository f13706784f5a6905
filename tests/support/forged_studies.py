"""Whole finished studies made in memory by somebody who holds every key: the aggregator's, and those of its tellers.

`Forge` follows an honest aggregator's steps with its own pure functions. A liar changes what goes into a step, or a
body that came out of one, and goes on: so roots, counts, model and report fit the lie.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random

from attrs import define, evolve, field
from nacl.signing import SigningKey

from aggregator.audit import AuditResult, audit_documents
from aggregator.protocols.contract import LearningResult, SummingPart, part_of
from aggregator.study.learn import Counting, TranscriptCounts, count, counted, prints_of, report_again
from anon.credential import Credential, generate_secret_key, public_key, signer_nym_entropy
from anon.credential.credential import finish_nym_secrets
from anon.credential.issuance import CommitmentSecrets, sign_proven
from anon.credential.statement import nym_statement
from anon.crypto.curve import decode_scalar, encode_g1, encode_scalar
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.protocols.contract import Place
from anon.protocols.posts import layout_of_packets
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import StudyKeys, resolve
from anon.protocols.sortition import draw, occasion_of
from anon.protocols.sum.standing import arrangement_of, sum_asked
from anon.sharing.quorum import Quorum, quorums
from anon.sharing.round_document import RoundSums, SlotSum
from anon.sharing.statements import AcceptedList, ListSignature, NoisyShare
from anon.study.manifest import Manifest, Survey
from anon.transparency.bucketed import (
    InBuckets,
    credentials_in_buckets,
    roster_in_buckets,
    transcript_in_buckets,
)
from anon.transparency.buckets import bits_of, split
from anon.transparency.documents import SignedHead, body_digest, encode_chain, sign_head
from anon.wire.messages import (
    RosterEntry,
    credential_header,
    encode_seed,
    seed_commitment,
    study_seed,
)
from anon.wire.packets import Occasion, Packet, PublishedPacket
from benchmarks.vectors.writing import author_of, board_of
from tests.support.protocols import PROTOCOLS, parse_proposal
from tests.support.sums import countersigned, signing_key
from tests.support.world import FakePeer

Bodies = dict[Place, bytes]
CLOSED = 1_800_000_000
STUDY_WIDE: Place = ("manifest", 0)


@define
class Forge:
    """A study under way. `bodies` are in the order of publication; `contents`: the buckets of those that have some;
    `packets`: as they are published."""

    manifest: Manifest
    signing: SigningKey
    issuer: bytes
    score_value: bytes
    rng: Random
    members: list[FakePeer] = field(factory=list)
    packets: list[PublishedPacket] = field(factory=list)
    bodies: Bodies = field(factory=dict)
    contents: dict[Place, tuple[bytes, ...]] = field(factory=dict)
    lists: dict[int, tuple[bytes, ...]] = field(factory=dict)
    """By round, the tags that the tellers sum, where a liar chose them."""
    enrolled: int = 0
    board: Bodies = field(factory=dict)
    """Pages and seats' documents, where members write."""
    learned: LearningResult | None = None

    @classmethod
    def begin(cls, text: str, seed: int, change: Callable[[Manifest], Manifest] = lambda one: one) -> Forge:
        """A published manifest, as a study file asks for it; `change` is made before it is signed."""
        rng = Random(seed)
        signing, issuer, score_value = SigningKey(rng.randbytes(32)), generate_secret_key(os.urandom), rng.randbytes(32)
        proposal = parse_proposal(text)
        committed = seed_commitment(seed_commitment(score_value))
        keys = StudyKeys(bytes(signing.verify_key), bytes(PUBLIC_KEY_SIZE), bytes(public_key(issuer)), committed)
        forge = cls(change(resolve(proposal, keys, CLOSED)), signing, issuer, score_value, rng)
        forge.bodies[STUDY_WIDE] = forge.manifest.to_bytes()
        if forge.sums:
            forge.bodies["tellers", 0] = countersigned(forge.manifest)
        return forge

    @property
    def study(self) -> bytes:
        return self.manifest.study_id

    @property
    def sums(self) -> bool:
        return isinstance(part_of(self.manifest), SummingPart)

    @property
    def writes(self) -> bool:
        return any(survey.written for survey in self.manifest.surveys)

    @property
    def value(self) -> bytes:
        """The random value behind the seed."""
        return seed_commitment(self.score_value)

    @property
    def seed(self) -> bytes:
        return study_seed(self.manifest.to_bytes(), self.bodies["roster", 0], self.value)

    # Enrolment

    def enrol(self, count: int) -> list[FakePeer]:
        """So many more members."""
        fresh = [FakePeer(self.manifest) for _ in range(count)]
        self.members += fresh
        return fresh

    def close(self) -> None:
        """Roster, seed and credentials of all members."""
        self.members.sort(key=lambda one: bytes(one.key.verify_key))
        self.enrolled = len(self.members)
        entries = [entry_of(one) for one in self.members]
        self.place(roster_in_buckets(self.study, entries))
        self.bodies["seed", 0] = encode_seed(self.study, self.value)
        self.publish_credentials([self.credential_of(one) for one in self.members])

    def publish_credentials(self, signatures: Sequence[bytes]) -> None:
        """A credential for each member, in the roster's order."""
        issued = list(zip(self.members, signatures, strict=True))
        parts = split(issued, lambda one: bytes(one[0].key.verify_key), bits_of(len(issued)))
        self.place(credentials_in_buckets(self.study, [[signature for _, signature in part] for part in parts]))

    def credential_of(self, peer: FakePeer, roster: bytes | None = None) -> bytes:
        """The issuer's signature for a peer in the roster or beside it; the peer takes it."""
        body = self.bodies["roster", 0] if roster is None else roster
        header, key = credential_header(self.study, body_digest(body)), bytes(peer.key.verify_key)
        entropy = signer_nym_entropy(study_seed(self.manifest.to_bytes(), body, self.value), key)
        commitment = peer.secrets.commitment_with_proof[:48]
        signed = sign_proven(self.issuer, _public(self.issuer), commitment, header, entropy, self.manifest.packets)
        peer.seed = self.seed
        peer.credential = believed(self.manifest.credential_key, header, signed, entropy, peer.secrets)
        return signed

    def ghosts(self, count: int) -> list[FakePeer]:
        """Peers with credentials beside the roster."""
        invented = [FakePeer(self.manifest) for _ in range(count)]
        for one in invented:
            self.credential_of(one)
        return invented

    # Packets

    def send(self, peers: Sequence[FakePeer], slots: Sequence[int] | None = None) -> None:
        """A packet of each in every slot, or in these."""
        for slot in range(len(self.manifest.slots)) if slots is None else slots:
            self.packets += [self.packet(peer, slot) for peer in peers]

    def write(self, silent: Mapping[int, int] | None = None) -> None:
        """The pages of all members. `silent`: from which round on a member, by its number, is silent."""
        tags = [self.tag(member, 0) for member in range(self.enrolled)]
        author = author_of(self.manifest, tags, self._bytes, silent or {})
        self.board = board_of(self.manifest, self.enrolled, author, self, self._bytes)

    def _bytes(self, size: int) -> bytes:
        return self.rng.randbytes(size)

    def tag(self, member: int, survey: int) -> bytes:
        """See `PacketSpelling`."""
        return self.members[member].tag(self._slot_of(survey))

    def spelled(self, member: int, survey: int, report: bytes) -> bytes:
        """See `PacketSpelling`."""
        asked = Packet(occasion_of(self.manifest, self._slot_of(survey)), survey, report, (), b"")
        self.packets.append(self.members[member].signed(asked).published())
        return self.packets[-1].to_bytes()

    def _slot_of(self, survey: int) -> int:
        return next(slot.slot for slot in self.manifest.slots if slot.rows[0].survey == survey)

    def packet(self, peer: FakePeer, slot: int) -> PublishedPacket:
        """As it is published; the survey is the one that the peer's tag draws."""
        survey = self.manifest.surveys[peer.drawn(slot)]
        return peer.signed(self._answer(peer, slot, survey)).published()

    def _answer(self, peer: FakePeer, slot: int, survey: Survey) -> Packet:
        if self.sums:
            shares = tuple(self.rng.randbytes(size) for size in layout_of_packets(self.manifest).sealed_shares)
            report = self.rng.randbytes(survey.report_size)
            return Packet(occasion_of(self.manifest, slot), survey.survey, report, shares, b"")
        report = peer.report(survey.survey, self.rng.randrange(survey.m))
        return Packet(occasion_of(self.manifest, slot), survey.survey, report, (), b"")

    # After collection

    def finish(self) -> Forge:
        """Rounds, transcripts, score seed, model and report, from the packets."""
        self.transcribe()
        return self.conclude()

    def transcribe(self) -> None:
        """The transcripts of all packets."""
        for slot in self.manifest.slots:
            plaintexts = [one.to_bytes() for one in self.packets if one.slot == slot.slot]
            self.place(transcript_in_buckets(self.study, slot.slot, plaintexts))

    def conclude(self) -> Forge:
        """All that follows from the transcripts: the rounds' documents, the score seed, model and report."""
        found = self.counted()
        part = part_of(self.manifest)
        documents: Bodies = dict(self.board)
        for number, one in enumerate(protocol_of(self.manifest).rounds(self.manifest)):
            if one.document is not None and one.document not in documents:
                made = self.summed(number) if self.sums else counted(part, self.manifest, number, found.tallies)
                documents[one.document] = made
        first = next(place for place in self.bodies if place[0] == "transcript")
        self.insert(documents, first)
        self.learned = part.learn(self.manifest, documents, found.tallies)
        for place in (("seed", 1), *self.learned.results, ("report", 0)):
            self.bodies.pop(place, None)
        self.bodies["seed", 1] = encode_seed(self.study, self.score_value)
        self.bodies |= self.learned.results
        return self.report()

    def report(self) -> Forge:
        """The report of what was learned, with the fingerprints of all that is signed before it."""
        assert self.learned is not None
        self.bodies.pop(("report", 0), None)
        prints = prints_of(self.manifest, self.chain())
        page = report_again(self.manifest, self.learned, self.enrolled, prints, self.counted())
        self.bodies["report", 0] = page.encode()
        return self

    def counted(self) -> TranscriptCounts:
        """All that is counted in the transcripts."""
        asked = Counting(self.manifest.to_bytes(), PROTOCOLS, self.score_value)
        return count(
            asked, [one for place, all_of in self.contents.items() if place[0] == "transcript" for one in all_of]
        )

    def insert(self, documents: Mapping[Place, bytes], before: Place) -> None:
        """Publish these before another document."""
        after = {place: body for place, body in self.bodies.items() if place not in documents}
        places = list(after)
        at = places.index(before)
        self.bodies = (
            {one: after[one] for one in places[:at]} | dict(documents) | {one: after[one] for one in places[at:]}
        )

    def summed(self, number: int) -> bytes:
        """A round's document: the tellers sign one list, and the first of them has the whole sum as its share."""
        arrangement, asked = arrangement_of(self.manifest), sum_asked(self.manifest, number)
        tags = sorted(one.token[:48] for one in self.packets if one.slot == asked.slot)
        quorum = self.rng.choice(quorums(self.study, arrangement))
        listed = AcceptedList(self._named(quorum, number, asked.slot), self.lists.get(number, tuple(tags)))
        return RoundSums(self.study, number, (self.slot_sum(quorum, listed),)).to_bytes()

    def slot_sum(self, quorum: Quorum, listed: AcceptedList) -> SlotSum:
        """A slot's row with this list, signed by the tellers of a quorum."""
        of, digest = listed.occasion, listed.digest()
        prio3 = quorum.arrangement.prio3(sum_asked(self.manifest, of.round))
        field_of, length = prio3.circuit.field, prio3.circuit.output_length
        values = [self.rng.randrange(max(2, len(listed.tags))) for _ in range(length)]
        shares = [field_of.encode(values), *[field_of.encode([0] * length)] * (len(quorum.members) - 1)]
        keys = [signing_key(one) for one in quorum.members]
        signed = [ListSignature(of, at, digest).sign(key) for at, key in enumerate(keys)]
        noisy = [
            NoisyShare(of, at, digest, share).sign(key)
            for at, (key, share) in enumerate(zip(keys, shares, strict=True))
        ]
        return SlotSum(of.slot, listed.to_bytes(), tuple(signed), tuple(noisy))

    def _named(self, quorum: Quorum, number: int, slot: int) -> Occasion:
        return quorum.occasion(Occasion(self.study, number, slot))

    # Publication

    def place(self, made: InBuckets) -> None:
        """A document with its buckets."""
        place = made.document.kind, made.document.part
        self.bodies[place], self.contents[place] = made.document.to_bytes(), tuple(made.contents)

    def chain(self) -> tuple[SignedHead, ...]:
        """Signed heads of all bodies, in their order."""
        chain: list[SignedHead] = []
        for (kind, part), body in self.bodies.items():
            chain.append(sign_head(self.signing, self.study, chain, kind, part, body))
        return tuple(chain)

    def audited(self) -> AuditResult:
        """The verdict of anyone who fetched all of it."""
        places = list(self.bodies)
        numbered = dict(enumerate(self.bodies.values()))

        def content(number: int, bucket: int) -> bytes | None:
            there = self.contents.get(places[number], ())
            return there[bucket] if bucket < len(there) else None

        return audit_documents(encode_chain(self.chain()), numbered, contents=content)


_public = lru_cache(64)(public_key)


def believed(key: bytes, header: bytes, signature: bytes, entropy: bytes, secrets: CommitmentSecrets) -> Credential:
    """`finalize` without its pairing: whoever holds every key made the signature for its own commitment."""
    nyms = finish_nym_secrets(secrets.nym_secrets, entropy)
    base = nym_statement(key, header, len(nyms)).base([decode_scalar(secrets.prover_blind, "prover blind"), *nyms])
    finished = tuple(map(encode_scalar, nyms))
    return Credential(key, header, signature, encode_g1(base), secrets.prover_blind, finished)


def entry_of(peer: FakePeer) -> RosterEntry:
    """A peer's entry in a roster."""
    return RosterEntry(bytes(peer.key.verify_key), peer.contribution, peer.secrets.commitment_with_proof[:48])


def drawn_by(manifest: Manifest, seed: bytes, tag: bytes, slot: int) -> int:
    """The survey that a tag draws."""
    return draw(manifest.slots[slot], seed, tag)


def copied(forge: Forge) -> Forge:
    """The same study, to be changed."""
    return evolve(
        forge,
        members=list(forge.members),
        packets=list(forge.packets),
        bodies=dict(forge.bodies),
        contents=dict(forge.contents),
        lists=dict(forge.lists),
        board=dict(forge.board),
    )
