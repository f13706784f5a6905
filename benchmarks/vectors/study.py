"""Small finished studies made from a seed, whose every key is known. They stand for nobody: for vectors alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from attrs import define, evolve, field

from aggregator.protocols.contract import LearningResult, part_of
from aggregator.protocols.installed import PROTOCOLS
from aggregator.study.learn import Counting, count, counted
from anon.credential import commit, finalize, present, pseudonym, signer_nym_entropy
from anon.credential.credential import Credential
from anon.credential.issuance import (
    CommitmentSecrets,
    PublicKey,
    SecretKey,
    generate_secret_key,
    public_key,
    sign_proven,
)
from anon.crypto.nacl import SigningKey
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.ldp import RawCategory
from anon.protocols.contract import Place
from anon.protocols.posts import layout_of_packets
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import StudyKeys, resolve
from anon.protocols.sortition import draw, occasion_of, tag_context
from anon.protocols.sum.standing import arrangement_of, sum_asked
from anon.sharing.arrangement import TellerEntry
from anon.sharing.quorum import Quorum, quorums
from anon.sharing.round_document import RoundSums, SlotSum
from anon.sharing.statements import (
    AcceptedList,
    Countersignature,
    ListSignature,
    NoisyShare,
    arrangement_digest,
    encode_countersignatures,
)
from anon.study.manifest import Manifest
from anon.transparency.bucketed import InBuckets, credentials_in_buckets, roster_in_buckets, transcript_in_buckets
from anon.transparency.buckets import bits_of, split
from anon.transparency.documents import SignedHead, body_digest, encode_chain, sign_head
from anon.wire.messages import RosterEntry, credential_header, encode_seed, seed_commitment, study_seed
from anon.wire.packets import Occasion, Packet, PublishedPacket
from benchmarks.vectors.made import Stream

PUBLISHED = 1_800_000_000
_HEAD = """
version = 1
title = "Vectors"
purpose = "To compare programs."
contact = "staff@example.org"
[tables]
person = ["age", "sleep", "sex", "income"]
[label]
name = "income"
description = "Whether you earn a lot"
query = "SELECT income FROM person"
positive = ["high"]
negative = ["low"]
missing = "negative"
"""
SEX = """
[[features]]
name = "sex"
kind = "categorical"
description = "Your sex"
query = "SELECT sex FROM person"
categories = ["Female", "Male"]
missing = "Male"
"""
_AGE = """
[[features]]
name = "age"
kind = "numeric"
description = "Your age"
query = "SELECT age FROM person"
range = [17, 90]
{bins}
missing = "own"
"""
_SLEEP = """
[[features]]
name = "sleep"
kind = "numeric"
description = "Your sleep"
query = "SELECT sleep FROM person"
range = [0, 12]
cuts = [6]
missing = "own"
"""
_TAIL = """
[schedule]
enrol = "100s"
settle = "20s"
binning = "100s"
collect = "100s"
[release]
retention = "100s"
[cohort]
minimum = 2
maximum = 1000
"""
_HISTOGRAM = "[design]\nkind = \"one-packet\"\nepsilon = 2.0\n"
HISTOGRAMS = {
    "cuts": SEX + _AGE.format(bins="cuts = [30, 50]") + _HISTOGRAM,
    "quantile": SEX + _AGE.format(bins="bins = 3") + _HISTOGRAM + "binning_share = 0.4\n",
    "bits": SEX + _AGE.format(bins="bins = 3") + _HISTOGRAM + 'binning_share = 0.4\nasks = "bits"\n'
    + '[learning]\nclassifier = "additive"\nscore_share = 0\nbase_rate = 0.3\n',
    "rule": SEX + "expects = [-1, 1]\n" + _AGE.format(bins="cuts = [30, 50]\nexpects = 1")
    + _HISTOGRAM + 'asks = "rule"\n[learning]\nclassifier = "additive"\nscore_share = 0\nbase_rate = 0.3\n',
    "median": SEX + _AGE.format(bins="bins = 2") + '[design]\nkind = "paper"\nepsilon_histogram = 1.0\n'
    + "epsilon_binning = 1.0\npartitions = 2\nbinning_rounds = 3\n",
}
_NUMBERS = _AGE.format(bins="cuts = [30, 50]") + _SLEEP
SUMS = {
    "tables": _NUMBERS + '[design]\nkind = "tables-sum"\nepsilon = 1.0\n',
    "moments": _NUMBERS + '[design]\nkind = "moments"\nepsilon = 1.0\n',
    "gradient": _NUMBERS + '[design]\nkind = "gradient"\nepsilon = 1.0\nrounds = 2\n',
}
TELLERS = ("clinic", "students", "press")


def text_of(design: str, more: str = "", tellers: int = 2) -> str:
    """A study file. `more`: further lines of it; `tellers`: of a study of sums, three with a spare."""
    if design in HISTOGRAMS:
        return _HEAD + HISTOGRAMS[design] + _TAIL + more
    return _HEAD + SUMS[design] + _TAIL + more + "".join(_teller(number, tellers) for number in range(tellers))


def frame(design: str, tellers: bool) -> str:
    """A study file about two numbers with this design."""
    return _HEAD + _NUMBERS + design + _TAIL + "".join(_teller(number, 2) for number in range(2 * tellers))


def _teller(number: int, of: int) -> str:
    spare = of == len(TELLERS)
    lines = f'[[tellers]]\nname = "{TELLERS[number]}"\naddress = "127.0.0.1:900{number}"\n'
    lines += f'entry = "{_entry(number, 0).hex()}"\n' + (f'second_entry = "{_entry(number, 1).hex()}"\n' * spare)
    return lines + "spare = true\n" * (spare and number == len(TELLERS) - 1)


def _entry(number: int, pair: int) -> bytes:
    drawn = Stream(f"entry {number} {pair}")
    key = bytes(teller_key(number).verify_key)
    return TellerEntry(TELLERS[number], f"127.0.0.1:900{number}", key, drawn(PUBLIC_KEY_SIZE), drawn(32)).to_bytes()


@cache
def teller_key(number: int) -> SigningKey:
    """The lasting key of a teller."""
    return SigningKey(Stream(f"teller {number}")(32))


@define
class Member:
    """A member with all that it keeps."""

    key: SigningKey
    contribution: bytes
    secrets: CommitmentSecrets
    credential: Credential | None = None

    @property
    def entry(self) -> RosterEntry:
        """Its entry in the roster."""
        return RosterEntry(bytes(self.key.verify_key), self.contribution, self.secrets.commitment_with_proof[:48])


@define
class Study:
    """A study of so many members. `bodies` are in the order of publication; `contents`: the buckets of each."""

    manifest: Manifest
    signing: SigningKey
    issuer: SecretKey
    score_value: bytes
    drawn: Stream
    members: list[Member] = field(factory=list)
    packets: list[PublishedPacket] = field(factory=list)
    bodies: dict[Place, bytes] = field(factory=dict)
    contents: dict[Place, tuple[bytes, ...]] = field(factory=dict)
    learned: LearningResult | None = None

    @property
    def study(self) -> bytes:
        """Its id."""
        return self.manifest.study_id

    @property
    def value(self) -> bytes:
        """The value behind its seed."""
        return seed_commitment(self.score_value)

    @property
    def seed(self) -> bytes:
        """Its seed."""
        return study_seed(self.manifest.to_bytes(), self.bodies["roster", 0], self.value)

    @property
    def header(self) -> bytes:
        """The header of its credentials."""
        return credential_header(self.study, body_digest(self.bodies["roster", 0]))

    @property
    def issuer_key(self) -> PublicKey:
        """The key of its credentials."""
        return PublicKey(self.manifest.credential_key)

    def place(self, made: InBuckets) -> None:
        """Publish a document with its buckets."""
        place = made.document.kind, made.document.part
        self.bodies[place], self.contents[place] = made.document.to_bytes(), tuple(made.contents)

    def chain(self) -> tuple[SignedHead, ...]:
        """The signed heads of all bodies."""
        chain: list[SignedHead] = []
        for (kind, part), body in self.bodies.items():
            chain.append(sign_head(self.signing, self.study, chain, kind, part, body))
        return tuple(chain)

    def heads(self) -> bytes:
        """The same as they travel."""
        return encode_chain(self.chain())

    def tag(self, member: Member, slot: int) -> bytes:
        """A member's tag in a slot."""
        return pseudonym(_holding(member), tag_context(self.manifest, slot))

    def signed(self, member: Member, packet: Packet, context: bytes = b"") -> PublishedPacket:
        """A packet as it is published, with a token for what it says."""
        named = context or tag_context(self.manifest, packet.occasion.slot)
        token = present(_holding(member), named, packet.presentation_header(), self.drawn)
        return evolve(packet, token=token).published()

    def packet(self, member: Member, slot: int) -> PublishedPacket:
        """The packet of a member in a slot, as it is published."""
        survey = self.manifest.surveys[draw(self.manifest.slots[slot], self.seed, self.tag(member, slot))]
        if survey.exact:
            shares = tuple(map(self.drawn, layout_of_packets(self.manifest).sealed_shares))
            report = self.drawn(survey.report_size)
        else:
            shares, mechanism = (), survey.build()
            report = bytes(mechanism.perturb(RawCategory(self.drawn.below(survey.m), survey.m), self.drawn))
        return self.signed(member, Packet(occasion_of(self.manifest, slot), survey.survey, report, shares, b""))


def _holding(member: Member) -> Credential:
    if member.credential is None:
        raise ValueError("a member without a credential")
    return member.credential


def begun(design: str, seed: str, more: str = "", tellers: int = 2, maximum: int = 1000) -> Study:
    """A published manifest. `maximum`: of its cohort."""
    drawn = Stream(f"{design} {seed}")
    signing, issuer, score_value = SigningKey(drawn(32)), generate_secret_key(drawn), drawn(32)
    committed = seed_commitment(seed_commitment(score_value))
    keys = StudyKeys(bytes(signing.verify_key), drawn(PUBLIC_KEY_SIZE), bytes(public_key(issuer)), committed)
    text = text_of(design, more, tellers).replace("maximum = 1000", f"maximum = {maximum}")
    proposal = PROTOCOLS.proposal(text)
    made = Study(resolve(proposal, keys, PUBLISHED, drawn.below), signing, issuer, score_value, drawn)
    made.bodies["manifest", 0] = made.manifest.to_bytes()
    if design in SUMS:
        made.bodies["tellers", 0] = encode_countersignatures(made.study, countersignatures(made.manifest))
    return made


def countersignatures(manifest: Manifest) -> list[bytes]:
    """The word of each teller of a study."""
    arrangement = arrangement_of(manifest)
    digest = arrangement_digest(arrangement)
    return [
        Countersignature(manifest.study_id, number, digest).sign(teller_key(number))
        for number in range(len(arrangement.tellers))
    ]


def enrolled(study: Study, count: int) -> Study:
    """So many members, each with a credential."""
    for _ in range(count):
        secrets = commit(study.manifest.packets, study.drawn)
        study.members.append(Member(SigningKey(study.drawn(32)), study.drawn(32), secrets))
    study.members.sort(key=lambda one: bytes(one.key.verify_key))
    study.place(roster_in_buckets(study.study, [one.entry for one in study.members]))
    study.bodies["seed", 0] = encode_seed(study.study, study.value)
    signatures = [(one.entry.key, issued(study, one)) for one in study.members]
    parts = split(signatures, lambda pair: pair[0], bits_of(count))
    study.place(credentials_in_buckets(study.study, [[signature for _, signature in part] for part in parts]))
    return study


def issued(study: Study, member: Member) -> bytes:
    """The signature for a member, who takes it."""
    entropy = signer_nym_entropy(study.seed, member.entry.key)
    count, key = study.manifest.packets, study.issuer_key
    signature = sign_proven(study.issuer, key, member.entry.commitment_point, study.header, entropy, count)
    member.credential = finalize(key, study.header, signature, entropy, member.secrets)
    return signature


def sent(study: Study) -> Study:
    """A packet of every member in every slot, and their transcripts."""
    for slot in study.manifest.slots:
        own = [study.packet(member, slot.slot) for member in study.members]
        study.packets += own
        plaintexts = [one.to_bytes() for one in own]
        study.place(transcript_in_buckets(study.study, slot.slot, plaintexts))
    return study


def concluded(study: Study) -> Study:
    """The rounds' documents and the model, in their places."""
    part, documents = part_of(study.manifest), dict[Place, bytes]()
    asked = Counting(study.manifest.to_bytes(), PROTOCOLS, study.score_value)
    found = count(asked, [one for at, all_of in study.contents.items() if at[0] == "transcript" for one in all_of])
    for number, one in enumerate(protocol_of(study.manifest).rounds(study.manifest)):
        if one.document is not None:
            summed = study.manifest.protocol == "sum"
            made = round_of(study, number) if summed else counted(part, study.manifest, number, found.tallies)
            documents[one.document] = made
    before = [at for at in study.bodies if at[0] != "transcript"]
    after = [at for at in study.bodies if at[0] == "transcript"]
    known = study.bodies | documents
    study.bodies = {at: known[at] for at in (*before, *documents, *after)}
    study.learned = part.learn(study.manifest, documents, found.tallies)
    study.bodies["seed", 1] = encode_seed(study.study, study.score_value)
    study.bodies |= study.learned.results
    return study


def listed(study: Study, number: int, tags: Sequence[bytes] | None = None, pair: int = 0) -> tuple[Quorum,
    AcceptedList]:
    """The tellers that sum a round, and the list of all tags that were sent, or of these."""
    slot = sum_asked(study.manifest, number).slot
    quorum = quorums(study.study, arrangement_of(study.manifest))[pair]
    own = sorted(one.tag for one in study.packets if one.slot == slot) if tags is None else tags
    return quorum, AcceptedList(quorum.occasion(Occasion(study.study, number, slot)), tuple(own))


def round_of(study: Study, number: int, tags: Sequence[bytes] | None = None, pair: int = 0) -> bytes:
    """A round's document."""
    return RoundSums(study.study, number, (summed(study, *listed(study, number, tags, pair)),)).to_bytes()


def summed(study: Study, quorum: Quorum, accepted: AcceptedList) -> SlotSum:
    """A slot's row: every teller's share is drawn but the last, which makes the sum small numbers."""
    occasion, digest = accepted.occasion, accepted.digest()
    planned = quorum.arrangement.sum_of(occasion)
    field_of, length = quorum.arrangement.prio3(planned).circuit.field, planned.circuit.output_length
    keys = [teller_key(number) for number in quorum.members]
    drawn = [[study.drawn.below(field_of.modulus) for _ in range(length)] for _ in keys[1:]]
    values = [study.drawn.below(len(accepted.tags) + 1) for _ in range(length)]
    last = [(value - sum(own)) % field_of.modulus for value, *own in zip(values, *drawn, strict=True)]
    shares = [*map(field_of.encode, drawn), field_of.encode(last)]
    signatures = [ListSignature(occasion, at, digest).sign(key) for at, key in enumerate(keys)]
    noisy = [
        NoisyShare(occasion, at, digest, share).sign(key)
        for at, (key, share) in enumerate(zip(keys, shares, strict=True))
    ]
    return SlotSum(occasion.slot, accepted.to_bytes(), tuple(signatures), tuple(noisy))


@cache
def finished(design: str, members: int = 4, more: str = "", tellers: int = 2) -> Study:
    """A finished study, the same each time, and never changed."""
    return concluded(sent(enrolled(begun(design, "vectors", more, tellers), members)))
