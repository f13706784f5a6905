"""An aggregator in memory, honest unless told otherwise. Peers reach it as a `Route`; `peer` makes one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from pathlib import Path

from attrs import asdict, define, evolve, field
from nacl.signing import SigningKey

from anon.credential import blind_sign, commit, generate_secret_key, public_key, signer_nym_entropy
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.crypto.sealing.opening import Opener
from anon.errors import Unreachable
from anon.protocols.kinds import padded_length
from anon.protocols.registry import Protocols
from anon.protocols.resolve import StudyKeys, resolve
from anon.route import Response
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest
from anon.transparency.bucketed import (
    InBuckets,
    credentials_in_buckets,
    roster_in_buckets,
    transcript_in_buckets,
)
from anon.transparency.buckets import bits_of, parse_bucket_document, split
from anon.transparency.documents import SignedHead, body_digest, sign_head
from anon.wire.cbor import encode
from anon.wire.invite import Invite
from anon.wire.messages import (
    Enrolment,
    RosterEntry,
    credential_header,
    encode_seed,
    parse_enrolment,
    parse_withdrawal,
    seed_commitment,
    study_seed,
)
from anon.wire.packets import Packet
from anon.wire.replies import ACCEPTED, WITHDRAWN, encode_reply
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.store.home import PeerHome, Settings
from tests.support import draws
from tests.support.clock import Clock
from tests.support.documents import heads_answer
from tests.support.packets import opened, packet_in
from tests.support.protocols import PROTOCOLS
from tests.support.studies import categorical, head_of, label_of, numeric, study

CUPS = ["none", "some", "many"]


def sleep_study(age: str, design: str, binning: str = "") -> str:
    """Does tiredness go with age and coffee? `age` is how its cuts are found, `binning` its window's length."""
    features = [numeric("age", (0, 100), age), categorical("cups", CUPS, description="How much coffee you drink.")]
    label = label_of("tired", 1, 0)
    head = head_of(
        "Sleep and coffee", "To test a peer.", ["age", "cups", "tired"], label, features, "nobody@example.org"
    )
    lengths = {"enrol": "1h", "settle": "10m", "collect": "1h", "binning": binning}
    return study(head, design, {name: length for name, length in lengths.items() if length}, "minimum = 3")



DECLARED = sleep_study("cuts = [30, 60]", 'kind = "one-packet"\nepsilon = 2.0')
BINNED = sleep_study("bins = 3", 'kind = "one-packet"\nepsilon = 2.0\nbinning_share = 0.5', "30m")
PAPER = sleep_study(
    "bins = 2",
    'kind = "paper"\nepsilon_histogram = 1.0\nepsilon_binning = 0.5\npartitions = 3\nbinning_rounds = 3',
    "90m",
)


@lru_cache(64)
def _laid_out(text: str, now: int, protocols: Protocols, given: tuple[tuple[str, bytes], ...]) -> Manifest:
    """The manifest but for its keys."""
    with draws.apart(f"{now} {text}"):
        keys = StudyKeys(bytes(32), bytes(PUBLIC_KEY_SIZE), bytes(96), bytes(32))
        return resolve(protocols.proposal(text), keys, now, given=dict(given))


@define
class FakeAggregator:
    """The aggregator of one study. `posts` records every body that arrived, by path. `sealing` is the secret of its
    sealing key."""

    manifest: Manifest
    key: SigningKey
    sealing: bytes
    issuer: bytes
    value: bytes
    clock: Clock
    chain: list[SignedHead] = field(factory=list)
    bodies: list[bytes] = field(factory=list)
    enrolments: dict[bytes, Enrolment] = field(factory=dict)
    accepted: dict[tuple[int, bytes], Packet] = field(factory=dict)
    posts: list[tuple[str, bytes, float]] = field(factory=list)
    gets: list[tuple[str, float]] = field(factory=list)
    deaf: set[str] = field(factory=set)
    says: dict[str, str] = field(factory=dict)
    made: dict[int, InBuckets] = field(factory=dict)
    """Roster, credentials and transcripts with their buckets, by number."""
    protocols: Protocols = PROTOCOLS
    study: bytes = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.study = self.manifest.study_id

    @classmethod
    def with_study(
        cls,
        text: str = DECLARED,
        clock: Clock | None = None,
        protocols: Protocols = PROTOCOLS,
        given: Mapping[str, bytes] = NONE_GIVEN,
    ) -> FakeAggregator:
        """A published study. `given`: its public documents by name, which a test publishes."""
        key, sealing = SigningKey.generate(), os.urandom(32)
        issuer, value = generate_secret_key(os.urandom), os.urandom(32)
        clock = clock or Clock()
        manifest = evolve(
            _laid_out(text, int(clock()), protocols, tuple(given.items())),
            aggregator_key=bytes(key.verify_key),
            sealing_key=Opener(sealing).public_key,
            credential_key=bytes(public_key(issuer)),
            seed_commitment=seed_commitment(value),
        )
        aggregator = cls(manifest, key, sealing, issuer, value, clock, protocols=protocols)
        aggregator.publish("manifest", manifest.to_bytes())
        return aggregator

    def copied(self) -> FakeAggregator:
        """Another one of the same study, which goes its own way from here."""
        own = asdict(self, recurse=False, filter=lambda _, value: isinstance(value, list | dict | set | Clock))
        return evolve(self, **{name: copy(value) for name, value in own.items()})

    @property
    def invite(self) -> Invite:
        return Invite("127.0.0.1:9", bytes(self.key.verify_key), self.study, "code")

    def publish(self, kind: str, body: bytes, part: int = 0) -> None:
        self.chain.append(sign_head(self.key, self.study, self.chain, kind, part, body))
        self.bodies.append(body)

    def publish_buckets(self, made: InBuckets) -> None:
        self.made[len(self.chain)] = made
        self.publish(made.document.kind, made.document.to_bytes(), made.document.part)

    def crowd(self, others: int) -> None:
        """Others enrol."""
        for _ in range(others):
            signing = SigningKey.generate()
            made = commit(self.manifest.packets, os.urandom)
            key = bytes(signing.verify_key)
            self.enrolments[key] = Enrolment(self.study, key, os.urandom(32), made.commitment_with_proof, b"")

    @property
    def entries(self) -> list[RosterEntry]:
        ordered = sorted(self.enrolments.values(), key=lambda enrolment: enrolment.key)
        return [RosterEntry(e.key, e.contribution, e.commitment[:48]) for e in ordered]

    def roster(self) -> bytes:
        """The body that is signed."""
        return roster_in_buckets(self.study, self.entries).document.to_bytes()

    def credentials_by_bucket(self, signatures: list[bytes]) -> InBuckets:
        issued = list(zip(self.entries, signatures, strict=True))
        parts = split(issued, lambda one: one[0].key, bits_of(len(issued)))
        return credentials_in_buckets(self.study, [[signature for _entry, signature in part] for part in parts])

    def seed(self, roster: bytes) -> bytes:
        return study_seed(self.manifest.to_bytes(), roster, self.value)

    def signatures(self, roster: bytes, issuer: bytes | None = None) -> list[bytes]:
        """A || e of every enrolment in the roster's order."""
        issuer = issuer or self.issuer
        public, header, seed = public_key(issuer), credential_header(self.study, body_digest(roster)), self.seed(roster)
        return [
            blind_sign(
                issuer, public, self.enrolments[key].commitment, header, signer_nym_entropy(seed, key),
                self.manifest.packets,
            )
            for key in sorted(self.enrolments)
        ]

    def close(self, early: bool = False) -> None:
        """Freeze the roster, reveal the value, issue credentials. The clock is moved to the end of enrolment first,
        but for `early`: a roster before that time tells a peer that its own clock is behind."""
        if not early:
            self.clock.seconds = max(self.clock.seconds, float(self.manifest.timetable.enrol_closes))
        roster = self.roster()
        self.publish_buckets(roster_in_buckets(self.study, self.entries))
        self.publish("seed", encode_seed(self.study, self.value))
        self.publish_buckets(self.credentials_by_bucket(self.signatures(roster)))

    def abandon(self) -> None:
        self.publish("abandoned", encode([1, self.study, len(self.enrolments)]))

    @property
    def rounds(self) -> list[tuple[int, int]]:
        """When each round of binning closes, and its number."""
        surveys = [survey for survey in self.manifest.surveys if survey.kind != "histogram"]
        return sorted({(survey.window.closes, survey.round) for survey in surveys})

    def publish_counts(self, number: int) -> None:
        """Answers of every member to a round of binning: thresholds of the next round, or edges after the last."""
        members = len(self.enrolments)
        counts = {
            survey.features[0]: [members, [1] * survey.m if survey.kind == "quantile" else members * 3 // 4]
            for survey in self.manifest.surveys
            if survey.kind != "histogram" and survey.round == number
        }
        if number == self.rounds[-1][1]:
            self.publish("edges", encode([1, self.study, counts]))
        else:
            self.publish("thresholds", encode([1, self.study, number + 1, counts]), number + 1)

    def transcribe(self) -> None:
        """Publish every slot's transcript."""
        packets = [one.published() for one in self.accepted.values()]
        for slot in self.manifest.slots:
            plaintexts = [one.to_bytes() for one in packets if one.slot == slot.slot]
            self.publish_buckets(transcript_in_buckets(self.study, slot.slot, plaintexts))

    # Route

    async def get(self, address: str, path: str, limit: int) -> Response:
        what = path.removeprefix(f"/v1/{self.study.hex()}/")
        self.gets.append((what, self.clock()))
        if self.deaf & {what, what.partition("/")[0]}:
            raise Unreachable("deaf")
        if what.startswith("heads"):
            return Response(200, self.heads(what))
        if what.startswith("buckets/"):
            return self.bucket(*map(int, what.split("/")[1:]))
        number = int(what.removeprefix("documents/"))
        return Response(200, self.bodies[number]) if number < len(self.bodies) else Response(404, b"")

    def heads(self, what: str) -> bytes:
        """The heads, alone or with what comes of a group."""
        return heads_answer(what, self.chain, self.bodies, self.manifest, self.clock())

    def content(self, number: int, bucket: int) -> bytes | None:
        """As an export has it; of a document that was published without its buckets, the one within it."""
        if number in self.made:
            return self.made[number].contents[bucket]
        head = self.chain[number].head
        return parse_bucket_document(self.bodies[number], self.study, head.kind, head.part).body

    def bucket(self, number: int, bucket: int) -> Response:
        made = self.made[number]
        return Response(200, made.bucket(bucket).to_bytes(padded_length(made.document, max(made.entries))))

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        what = path.removeprefix(f"/v1/{self.study.hex()}/")
        self.posts.append((what, body, self.clock()))
        if what in self.says:
            return Response(200, encode_reply(self.says[what]))
        word = getattr(self, f"take_{what}")(self.opened(what, body))
        if what in self.deaf:
            raise Unreachable("deaf")
        return Response(200, encode_reply(word))

    def opened(self, what: str, body: bytes) -> bytes:
        """The plaintext of a post."""
        return opened(self.manifest, self.sealing, what, body)

    def take_enrol(self, plaintext: bytes) -> str:
        enrolment = parse_enrolment(plaintext, self.study, self.manifest.packets)
        known = self.enrolments.setdefault(enrolment.key, enrolment)
        return ACCEPTED if known == enrolment else "already-enrolled-differently"

    def take_withdraw(self, plaintext: bytes) -> str:
        return WITHDRAWN if self.enrolments.pop(parse_withdrawal(plaintext, self.study), None) else "not-enrolled"

    def take_packets(self, plaintext: bytes) -> str:
        packet = packet_in(self.manifest, plaintext)
        known = self.accepted.setdefault((packet.occasion.slot, packet.tag), packet)
        return ACCEPTED if known == packet else "tag-spent"

    def sent(self, what: str) -> list[bytes]:
        return [body for path, body, _at in self.posts if path == what]


def peer(tmp_path: Path, aggregator: FakeAggregator, **settings: object) -> PeerApp:
    """A peer whose policy accepts a small cohort."""
    home = PeerHome(tmp_path)
    home.write_settings(evolve(Settings(), **settings))
    app = reopened(home, aggregator)
    app.set_policy(evolve(app.policy(), minimum_cohort=3))
    return app


def reopened(home: PeerHome, aggregator: FakeAggregator) -> PeerApp:
    """The app as after a restart."""
    return PeerApp(
        home,
        lambda: aggregator,
        aggregator.clock,
        os.urandom,
        sleep=aggregator.clock.sleep,
        evaluate=at_once,
        protocols=aggregator.protocols,
    )


def stored(app: PeerApp, study: bytes, column: str) -> object:
    """A column of the store: a study that is over has no such field, and the file must have nothing either."""
    return app.store._rows(f"SELECT {column} FROM studies WHERE study = ?", study)[0][column]


async def advance(app: PeerApp, aggregator: FakeAggregator, until: float | None = None) -> float | None:
    """Step the study, moving the clock from one due time to the next, up to `until`."""
    for _ in range(500):
        due = await app.step(aggregator.study)
        if due is None:
            return None
        if until is not None and due > until:
            aggregator.clock.seconds = max(aggregator.clock.seconds, until)
            return due
        aggregator.clock.seconds = max(aggregator.clock.seconds, due)
    raise AssertionError("the study does not come to rest")


async def until_closed(app: PeerApp, aggregator: FakeAggregator, others: int = 5) -> None:
    """Up to the closing of the roster, in which others are as well."""
    closes = aggregator.manifest.timetable.enrol_closes
    await advance(app, aggregator, closes - 1)
    aggregator.crowd(others)
    aggregator.clock.seconds = closes
    aggregator.close()


async def until_state(app: PeerApp, aggregator: FakeAggregator, state: State) -> None:
    """Step the study, and move the clock with it, until it is in this state."""
    while app.store.state(aggregator.study) is not state:
        aggregator.clock.seconds = max(aggregator.clock(), await app.step(aggregator.study) or 0)
