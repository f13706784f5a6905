"""An aggregator in memory, honest unless told otherwise, and a clock that tests move. Peers reach it as a `Route`."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import define, evolve, field
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from anon.answers import ACCEPTED, WITHDRAWN, encode_answer
from anon.credential import blind_sign, commit, generate_secret_key, public_key, signer_nym_entropy, token_size
from anon.documents import SignedHead, body_digest, encode_chain, sign_head
from anon.encoding import encode
from anon.errors import Unreachable
from anon.invite import Invite
from anon.messages import (
    Enrolment,
    Packet,
    RosterEntry,
    credential_header,
    encode_credentials,
    encode_roster,
    encode_seed,
    packet_size,
    parse_enrolment,
    parse_packet,
    parse_withdrawal,
    seed_commitment,
    study_seed,
    unpad,
    unseal,
)
from anon.resolve import StudyKeys, resolve
from anon.route import Answer
from anon.study.manifest import Manifest
from anon.study.proposal import parse_proposal
from peer.app import PeerApp
from peer.consent import Policy
from peer.home import PeerHome, Settings

START = 1_000_000

ONE_PACKET = """
version = 1
title = "Sleep and coffee"
purpose = "To test a peer."
contact = "nobody@example.org"
[tables]
person = ["age", "cups", "tired"]
[label]
name = "tired"
description = "You are tired."
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
[[features]]
name = "age"
kind = "numeric"
description = "Your age."
query = "SELECT age FROM person"
range = [0, 100]
{age}
missing = "own"
[[features]]
name = "cups"
kind = "categorical"
description = "How much coffee you drink."
query = "SELECT cups FROM person"
categories = ["none", "some", "many"]
missing = "own"
[design]
{design}
[schedule]
enrol = "1h"
settle = "10m"
collect = "1h"
{binning}
[cohort]
minimum = 3
"""

DECLARED = ONE_PACKET.format(age="cuts = [30, 60]", design='kind = "one-packet"\nepsilon = 2.0', binning="")
BINNED = ONE_PACKET.format(
    age="bins = 3",
    design='kind = "one-packet"\nepsilon = 2.0\nbinning_share = 0.5',
    binning='binning = "30m"',
)
PAPER = ONE_PACKET.format(
    age="bins = 2",
    design='kind = "paper"\nepsilon_histogram = 1.0\nepsilon_binning = 0.5\npartitions = 3\nbinning_rounds = 3',
    binning='binning = "90m"',
)


@define
class Clock:
    """Unix seconds that only tests move."""

    seconds: float = float(START)

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += max(0.0, seconds)


@define
class Village:
    """The aggregator of one study. `posts` records every body that arrived, by path."""

    manifest: Manifest
    key: SigningKey
    sealing: PrivateKey
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
    study: bytes = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.study = self.manifest.study_id

    @classmethod
    def found(cls, text: str = DECLARED, clock: Clock | None = None) -> Village:
        """A published study."""
        key, sealing = SigningKey.generate(), PrivateKey.generate()
        issuer, value = generate_secret_key(os.urandom), os.urandom(32)
        clock = clock or Clock()
        keys = StudyKeys(
            bytes(key.verify_key), bytes(sealing.public_key), bytes(public_key(issuer)), seed_commitment(value)
        )
        manifest = resolve(parse_proposal(text), keys, int(clock.seconds))
        village = cls(manifest, key, sealing, issuer, value, clock)
        village.publish("manifest", manifest.to_bytes())
        return village

    @property
    def invite(self) -> Invite:
        return Invite("127.0.0.1:9", bytes(self.key.verify_key), self.study, "code")

    def publish(self, kind: str, body: bytes, part: int = 0) -> None:
        self.chain.append(sign_head(self.key, self.study, self.chain, kind, part, body))
        self.bodies.append(body)

    def crowd(self, others: int) -> None:
        """Others enrol."""
        for _ in range(others):
            signing = SigningKey.generate()
            made = commit(self.manifest.packets, os.urandom)
            key = bytes(signing.verify_key)
            self.enrolments[key] = Enrolment(self.study, key, os.urandom(32), made.commitment_with_proof, b"")

    def roster(self) -> bytes:
        return encode_roster(
            self.study, [RosterEntry(e.key, e.contribution, e.commitment[:48]) for e in self.enrolments.values()]
        )

    def seed(self, roster: bytes) -> bytes:
        return study_seed(self.manifest.to_bytes(), roster, self.value)

    def signatures(self, roster: bytes, issuer: bytes | None = None) -> list[bytes]:
        """A || e of every enrolment in the roster's order."""
        issuer = issuer or self.issuer
        header = credential_header(self.study, body_digest(roster))
        seed = self.seed(roster)
        return [
            blind_sign(
                issuer, public_key(issuer), self.enrolments[key].commitment, header, signer_nym_entropy(seed, key),
                self.manifest.packets,
            )
            for key in sorted(self.enrolments)
        ]

    def close(self) -> None:
        """Freeze the roster, reveal the value, issue credentials."""
        roster = self.roster()
        self.publish("roster", roster)
        self.publish("seed", encode_seed(self.study, self.value))
        self.publish("credentials", encode_credentials(self.study, self.signatures(roster)))

    def abandon(self) -> None:
        self.publish("abandoned", encode([1, self.study, len(self.enrolments)]))

    def transcribe(self) -> None:
        """Publish every survey's transcript."""
        for survey in self.manifest.surveys:
            packets = sorted((p for p in self.accepted.values() if p.survey == survey.survey), key=lambda p: p.token)
            body = encode([1, self.study, survey.survey, [one.to_bytes() for one in packets]])
            self.publish("transcript", body, survey.survey)

    # Route

    async def get(self, address: str, path: str, limit: int) -> Answer:
        what = path.removeprefix(f"/v1/{self.study.hex()}/")
        self.gets.append((what, self.clock()))
        if what in self.deaf:
            raise Unreachable("deaf")
        if what == "heads":
            return Answer(200, encode_chain(self.chain))
        number = int(what.removeprefix("documents/"))
        return Answer(200, self.bodies[number]) if number < len(self.bodies) else Answer(404, b"")

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Answer:
        what = path.removeprefix(f"/v1/{self.study.hex()}/")
        self.posts.append((what, body, self.clock()))
        if what in self.says:
            return Answer(200, encode_answer(self.says[what]))
        word = getattr(self, f"take_{what}")(unseal(body, bytes(self.sealing)))
        if what in self.deaf:
            raise Unreachable("deaf")
        return Answer(200, encode_answer(word))

    def take_enrol(self, plaintext: bytes) -> str:
        enrolment = parse_enrolment(plaintext, self.study, self.manifest.packets)
        known = self.enrolments.setdefault(enrolment.key, enrolment)
        return ACCEPTED if known == enrolment else "already-enrolled-differently"

    def take_withdraw(self, plaintext: bytes) -> str:
        return WITHDRAWN if self.enrolments.pop(parse_withdrawal(plaintext, self.study), None) else "not-enrolled"

    def take_packets(self, plaintext: bytes) -> str:
        size = packet_size(self.manifest.report_size, token_size(self.manifest.packets))
        packet = parse_packet(unpad(plaintext, size))
        known = self.accepted.setdefault((packet.slot, packet.token[:48]), packet)
        return ACCEPTED if known == packet else "tag-spent"

    def sent(self, what: str) -> list[bytes]:
        return [body for path, body, _at in self.posts if path == what]


def peer(tmp_path: Path, village: Village, **settings: object) -> PeerApp:
    """A peer whose policy accepts a small cohort."""
    home = PeerHome(tmp_path)
    home.write_settings(evolve(Settings(), **settings))
    app = reopened(home, village)
    app.set_policy(evolve(app.policy(), minimum_cohort=3))
    return app


def reopened(home: PeerHome, village: Village) -> PeerApp:
    """The app as after a restart."""
    return PeerApp(home, lambda: village, village.clock, os.urandom, sleep=village.clock.sleep)


async def advance(app: PeerApp, village: Village, until: float | None = None) -> float | None:
    """Step the study, moving the clock from one due time to the next, up to `until`."""
    for _ in range(500):
        due = await app.step(village.study)
        if due is None:
            return None
        if until is not None and due > until:
            village.clock.seconds = max(village.clock.seconds, until)
            return due
        village.clock.seconds = max(village.clock.seconds, due)
    raise AssertionError("the study does not come to rest")


__all__ = ["BINNED", "DECLARED", "PAPER", "START", "Clock", "Policy", "Village", "advance", "peer", "reopened"]
