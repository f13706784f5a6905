"""The study in memory of `examples.testing`, with members that are made of the shared part alone.

The clock moves when a test says so, or jumps from one due time to the next.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, evolve
from nacl.signing import SigningKey

from aggregator.app import AggregatorApp
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from aggregator.study.live import LiveStudy
from anon.credential import Credential, commit, finalize, present, pseudonym, signer_nym_entropy
from anon.ldp import RawCategory
from anon.protocols.posts import sealed_enrolment, sealed_withdrawal
from anon.protocols.registry import Protocols
from anon.protocols.sortition import draw, occasion_of, tag_context
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest, Window
from anon.transparency.buckets import bucket_of, parse_bucket, parse_bucket_document
from anon.transparency.documents import body_digest, find
from anon.wire.invite import invite_hash
from anon.wire.messages import (
    Enrolment,
    credential_header,
    parse_credentials,
    parse_roster,
    parse_seed,
    sign_enrolment,
    sign_withdrawal,
    study_seed,
)
from anon.wire.packets import Dummy, Packet
from examples.testing import StudyInMemory, published
from tests.support.clock import Clock
from tests.support.packets import opened, posted, read
from tests.support.protocols import PROTOCOLS
from tests.support.studies import questions

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


def study_text(
    design: str = "cuts", minimum: int = 2, maximum: int = 1000, admission: str = "invite", connections: int = 0
) -> str:
    """A study file: one categorical and one numeric feature, windows of 100 s, and cover traffic if `connections`."""
    bins, rest = DESIGNS[design]
    schedule = SCHEDULE.format(minimum=minimum, maximum=maximum, admission=admission)
    cover = f"\n[cover]\nconnections = {connections}\n" if connections else ""
    return questions(age=bins, answers=(">50K", "<=50K")) + rest + schedule + cover


def directed(asks: str) -> str:
    """The study of one-bit packets that asks this, of whose two features staff declare the directions."""
    text = study_text("bits").replace('asks = "bits"', f'asks = "{asks}"')
    declared = text.replace("bins = 3", "cuts = [30, 50]\nexpects = 1")
    return declared.replace('missing = "Male"', 'missing = "Male"\nexpects = [-1, 1]')


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
        return sealed_enrolment(self.manifest, self.enrolment())

    def sealed_withdrawal(self) -> bytes:
        """As it is posted."""
        return sealed_withdrawal(self.manifest, sign_withdrawal(self.study, self.key))

    async def take_credential(self, live: LiveStudy) -> None:
        """Fetch what was published and finish the credential; every check of it must pass."""
        documents = await published(live)
        roster_body = documents["roster", 0]
        value = parse_seed(documents["seed", 0], self.study, self.manifest.seed_commitment)
        self.seed = study_seed(self.manifest.to_bytes(), roster_body, value)
        roster_part, credentials_part = await self._parts(live, documents)
        roster = parse_roster(roster_part, self.study)
        mine = [entry.key for entry in roster].index(bytes(self.key.verify_key))
        signature = parse_credentials(credentials_part, self.study, len(roster))[mine]
        header = credential_header(self.study, body_digest(roster_body))
        entropy = signer_nym_entropy(self.seed, bytes(self.key.verify_key))
        self.credential = finalize(self.manifest.credential_key, header, signature, entropy, self.secrets)

    async def _parts(self, live: LiveStudy, documents: dict[tuple[str, int], bytes]) -> list[bytes]:
        """The own bucket of roster and credentials."""
        parts = []
        for kind in ("roster", "credentials"):
            head = find(live.chain, kind)
            assert head is not None
            document = parse_bucket_document(documents[kind, 0], self.study, kind, 0)
            number = bucket_of(bytes(self.key.verify_key), document.bits)
            sent = await live.served_bucket(head.number, number, whole=False)
            parts.append(parse_bucket(sent or b"", document, number).body)
        return parts

    def drawn(self, slot: int = 0) -> int:
        """The survey this peer must answer in a slot."""
        return draw(self.manifest.slots[slot], self.seed, self.tag(slot))

    def tag(self, slot: int = 0) -> bytes:
        """The pseudonym that this peer has in a slot."""
        return pseudonym(self._holding(), tag_context(self.manifest, slot))

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
        return self.signed(Packet(occasion_of(self.manifest, slot), asked, answer, (), b""))

    def signed(self, packet: Packet) -> Packet:
        """The same with a valid token for what it says."""
        slot, slots = packet.occasion.slot, self.manifest.slots
        letters = slot < len(slots) and self.manifest.survey(slots[slot].rows[0].survey).pseudonymous
        context = tag_context(self.manifest, slot) if letters else packet.occasion.tag_context()
        return evolve(packet, token=present(self._holding(), context, packet.presentation_header(), os.urandom))

    def _holding(self) -> Credential:
        assert self.credential is not None
        return self.credential


def sealed(live: LiveStudy, packet: Packet) -> bytes:
    """A packet as it is posted, whatever it says."""
    return posted(live.manifest, packet.to_bytes())


@define
class World(StudyInMemory):
    """The same, with members that are made of the shared part alone, and what an aggregator's machine holds."""

    async def enrol(self, count: int) -> list[FakePeer]:
        """So many peers, enrolled."""
        codes = [*(invite.code for invite in self.invites), *[""] * count][:count]
        peers = [FakePeer(self.live.manifest, code) for code in codes]
        for peer in peers:
            assert await self.live.enrol(peer.sealed_enrolment()) == "accepted"
        return peers

    async def close_enrolment(self, peers: list[FakePeer]) -> None:
        """Let the roster close and every peer take its credential."""
        self.clock.seconds = self.live.manifest.timetable.enrol_closes
        await self.app.tick()
        for peer in peers:
            await peer.take_credential(self.live)

    async def collecting(self, count: int) -> list[FakePeer]:
        """So many peers with their credentials, and collection open."""
        peers = await self.enrol(count)
        await self.close_enrolment(peers)
        await self.go_to(self.opens)
        return peers

    async def collected(self, count: int) -> list[FakePeer]:
        """The same, and a packet of each is accepted."""
        peers = await self.collecting(count)
        for peer in peers:
            assert await self.live.submit(sealed(self.live, peer.packet())) == "accepted"
        return peers

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The answer of the aggregator's database, whichever dialect it has."""
        async with self.app._database.read() as connection:
            return [tuple(row) for row in await connection.exec_driver_sql(statement)]

    @property
    def opens(self) -> int:
        """When collection opens."""
        return max(survey.window.opens for survey in self.live.manifest.surveys)

    @property
    def closes(self) -> int:
        """When collection closes."""
        return max(survey.window.closes for survey in self.live.manifest.surveys)

    @property
    def windows(self) -> tuple[Window, ...]:
        """All windows in which packets are sent."""
        return self.live.manifest.windows

    def opened(self, body: bytes) -> bytes:
        """The plaintext of a sealed packet."""
        return opened(self.live.manifest, self.live.packet_intake.rules.sealing_key, "packets", body)

    def is_dummy(self, body: bytes) -> bool:
        """True if a post carries cover. Raises `Malformed` for one that carries neither cover nor a packet."""
        return isinstance(read(self.live.manifest, self.opened(body)), Dummy)


@asynccontextmanager
async def in_memory(
    home: Path, text: str, invites: int = 20, database_url: str = "", protocols: Protocols = PROTOCOLS,
    given: Mapping[str, bytes] = NONE_GIVEN,
) -> AsyncIterator[World]:
    """A published study of the aggregator in this home; its peers are closed at the end."""
    clock = Clock()
    if database_url:
        await set_up(open_home(home, os.urandom), database_url)
    async with make_app(home, clock, protocols) as app:
        world = await begin(app, clock, text, invites, given, protocols)
        yield world
        world.close()


begin = World.begin


def make_app(home: Path, clock: Clock, protocols: Protocols = PROTOCOLS) -> AggregatorApp:
    """An aggregator whose heavy work runs in a thread."""
    return AggregatorApp(home, clock, os.urandom, processes=0, protocols=protocols)


def has(live: LiveStudy, kind: str, part: int = 0) -> bool:
    """True if a document is in the chain."""
    return find(live.chain, kind, part) is not None
