"""Peers made of the shared half alone, a clock that is set by hand, and small studies to run them in."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen
from nacl.signing import SigningKey

from aggregator.app import AggregatorApp
from aggregator.study import LiveStudy
from anon.credential import Credential, commit, finalize, present, pseudonym, signer_nym_entropy
from anon.documents import body_digest, find
from anon.invite import Invite, invite_hash
from anon.ldp import RawCategory
from anon.messages import (
    Enrolment,
    Packet,
    credential_header,
    pad,
    parse_credentials,
    parse_roster,
    parse_seed,
    presentation_header,
    seal,
    sign_enrolment,
    sign_withdrawal,
    study_seed,
)
from anon.protocols.histogram.tables import draw, slot_context
from anon.study import parse_proposal
from anon.study.manifest import Manifest
from tests.study_texts import questions

ADDRESS = "127.0.0.1:1"

SCHEDULE = """
[schedule]
enrol = "100s"
settle = "20s"
binning = "100s"
collect = "100s"

[release]
retention = "100s"

[cohort]
minimum = {minimum}
maximum = {maximum}
admission = "{admission}"
"""
DESIGNS = {
    "cuts": ("cuts = [30, 50]", '[design]\nkind = "one-packet"\nepsilon = 2.0'),
    "quantile": ("bins = 3", '[design]\nkind = "one-packet"\nepsilon = 2.0\nbinning_share = 0.4'),
    "bits": (
        "bins = 3",
        ('[design]\nkind = "one-packet"\nepsilon = 2.0\nbinning_share = 0.4\nasks = "bits"\n'
        '[learning]\nclassifier = "additive"\nscore_share = 0\nbase_rate = 0.3'),
    ),
    "median": (
        "bins = 2",
        '[design]\nkind = "paper"\nepsilon_histogram = 1.0\nepsilon_binning = 1.0\npartitions = 2\nbinning_rounds = 3',
    ),
}


def study_text(design: str = "cuts", minimum: int = 2, maximum: int = 1000, admission: str = "invite") -> str:
    """A study file: one categorical and one numeric feature, windows of 100 s."""
    bins, rest = DESIGNS[design]
    schedule = SCHEDULE.format(minimum=minimum, maximum=maximum, admission=admission)
    return questions(age=bins, answers=(">50K", "<=50K")) + rest + schedule


class Clock:
    """The time is what a test says."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self.time = start

    def __call__(self) -> float:
        return self.time


class FakePeer:
    """One honest member: enrols, takes its credential, makes sealed packets."""

    def __init__(self, manifest: Manifest, code: str = "") -> None:
        self.manifest = manifest
        self.study = manifest.study_id
        self.key = SigningKey(os.urandom(32))
        self.contribution = os.urandom(32)
        self.secrets = commit(manifest.packets, os.urandom)
        self.code = code
        self.seed = b""
        self.credential: Credential | None = None

    def enrolment(self, commitment: bytes | None = None, study: bytes | None = None) -> bytes:
        """The signed plaintext."""
        invite = invite_hash(self.study, self.code)
        proof = commitment or self.secrets.commitment_with_proof
        return sign_enrolment(
            Enrolment(study or self.study, bytes(self.key.verify_key), self.contribution, proof, invite), self.key
        )

    def sealed_enrolment(self) -> bytes:
        """As it is posted."""
        return seal(self.enrolment(), self.manifest.sealing_key)

    def sealed_withdrawal(self) -> bytes:
        """As it is posted."""
        return seal(sign_withdrawal(self.study, self.key), self.manifest.sealing_key)

    async def take_credential(self, live: LiveStudy) -> None:
        """Fetch what was published and finish the credential; every check of it must pass."""
        documents = await published(live)
        roster_body = documents["roster", 0]
        roster = parse_roster(roster_body, self.study)
        value = parse_seed(documents["seed", 0], self.study, self.manifest.seed_commitment)
        self.seed = study_seed(self.manifest.to_bytes(), roster_body, value)
        mine = [entry.key for entry in roster].index(bytes(self.key.verify_key))
        signature = parse_credentials(documents["credentials", 0], self.study, len(roster))[mine]
        header = credential_header(self.study, body_digest(roster_body))
        entropy = signer_nym_entropy(self.seed, bytes(self.key.verify_key))
        self.credential = finalize(self.manifest.credential_key, header, signature, entropy, self.secrets)

    def drawn(self, slot: int = 0) -> int:
        """The survey this peer must answer in a slot."""
        tag = pseudonym(self._holding(), slot_context(self.study, slot))
        return draw(self.manifest.slots[slot], self.seed, tag)

    def report(self, survey: int, category: int = 0) -> bytes:
        """A perturbed report."""
        mechanism = self.manifest.surveys[survey].build()
        return bytes(mechanism.perturb(RawCategory(category, mechanism.m), os.urandom))

    def packet(
        self, slot: int = 0, survey: int | None = None, report: bytes | None = None, category: int = 0
    ) -> Packet:
        """A packet with a valid token for what it says."""
        asked = self.drawn(slot) if survey is None else survey
        answer = self.report(asked, category) if report is None else report
        proof = presentation_header(self.study, slot, asked, answer)
        token = present(self._holding(), slot_context(self.study, slot), proof, os.urandom)
        return Packet(self.study, slot, asked, answer, token)

    def _holding(self) -> Credential:
        assert self.credential is not None
        return self.credential


def sealed(live: LiveStudy, packet: Packet) -> bytes:
    """A packet as it is posted."""
    return seal(pad(packet.to_bytes(), live.door.rules.plain_bytes), live.manifest.sealing_key)


async def published(live: LiveStudy) -> dict[tuple[str, int], bytes]:
    """Every document by kind and part."""
    return {(one.head.kind, one.head.part): await live.body_of(one.head) for one in live.chain}


@frozen
class Running:
    """An aggregator with one study and its clock."""

    app: AggregatorApp
    live: LiveStudy
    clock: Clock
    invites: list[Invite]

    async def enrol(self, count: int) -> list[FakePeer]:
        """So many peers, enrolled."""
        codes = [invite.code for invite in self.invites[:count]] if self.invites else [""] * count
        peers = [FakePeer(self.live.manifest, code) for code in codes]
        for peer in peers:
            assert await self.live.enrol(peer.sealed_enrolment()) == "accepted"
        return peers

    async def close_enrolment(self, peers: list[FakePeer]) -> None:
        """Let the roster close and every peer take its credential."""
        self.clock.time = self.live.manifest.timetable.enrol_closes
        await self.app.tick()
        for peer in peers:
            await peer.take_credential(self.live)

    async def go_to(self, when: float) -> None:
        """Set the clock and do what is due."""
        self.clock.time = when
        await self.app.tick()

    @property
    def opens(self) -> int:
        """When collection opens."""
        return max(survey.window.opens for survey in self.live.manifest.surveys)

    @property
    def closes(self) -> int:
        """When collection closes."""
        return max(survey.window.closes for survey in self.live.manifest.surveys)


async def begin(app: AggregatorApp, clock: Clock, text: str, invites: int = 20) -> Running:
    """Publish a study in an opened app."""
    manifest = await app.create_study(parse_proposal(text))
    made = await app.create_invites(manifest.study_id, invites, ADDRESS)
    return Running(app, app.study(manifest.study_id), clock, made if made[0].code else [])


def make_app(home: Path, clock: Clock) -> AggregatorApp:
    """An aggregator whose heavy work runs in a thread."""
    return AggregatorApp(home, clock, os.urandom, processes=0)


def has(live: LiveStudy, kind: str, part: int = 0) -> bool:
    """Whether a document is in the chain."""
    return find(live.chain, kind, part) is not None
