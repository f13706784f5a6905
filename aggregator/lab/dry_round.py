"""One round with a study's tellers before anybody is asked: made-up members, of whom nothing is known, and their sum.

It takes the steps of a real study by the same calls: entries, countersignatures, parts of the key, roster, packets,
list, noise. Its study is published nowhere. Whatever comes of it, the tellers are told its end and erase their secrets.
It shows that they answer, are who they say, and add up. It says nothing about tomorrow.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Final

from attrs import evolve, field, frozen

from aggregator.app import AggregatorApp
from aggregator.protocols.installed import PROTOCOLS
from aggregator.rules.faults import NoSum
from aggregator.store.home import StudySecrets
from aggregator.study.publish import prepare
from aggregator.tellers import walk
from aggregator.tellers.publishing import TellerAnswer, give_up, tellers_ready, with_entries
from aggregator.tellers.study_tellers import LinkTo, links_of
from anon.credential import Credential, PublicKey, blind_sign, commit, finalize, present, pseudonym, signer_nym_entropy
from anon.crypto.nacl import SigningKey
from anon.errors import AnonmlError
from anon.protocols.contract import Record
from anon.protocols.sum.vector import vector_of
from anon.protocols.tellers import tellers_of
from anon.sharing.arrangement import Arrangement
from anon.sharing.sealed_shares import sealed_shares
from anon.study.manifest import Manifest
from anon.study.proposal import TellerPlace
from anon.transparency.bucketed import credentials_in_buckets, roster_in_buckets
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.documents import SignedHead, body_digest, encode_chain, sign_head
from anon.transparency.fingerprint import words
from anon.wire.messages import RosterEntry, credential_header, encode_seed, study_seed
from anon.wire.packets import Occasion, Packet

MEMBERS: Final = 3
SHORTEST: Final = 8
"""So many digits of its id a teller shows as a study's number."""
_NO_SUM = "the tellers did not accept the same packets. Ask who runs them to install one version, and try again"
RandomBytes = Callable[[int], bytes]


@frozen
class ClosedEnrolment:
    """The documents that close the practice study's enrolment, and its members' credentials."""

    heads: bytes = field(repr=False)
    bodies: Bodies = field(repr=False)
    credentials: tuple[Credential, ...] = field(repr=False)


@frozen
class _OneList:
    """The list of the one sum, for as long as this lasts."""

    kept: dict[Occasion, bytes] = field(factory=dict)

    async def of(self, occasion: Occasion) -> bytes | None:
        return self.kept.get(occasion)

    async def keep(self, occasion: Occasion, body: bytes) -> bytes:
        return self.kept.setdefault(occasion, body)


@frozen
class DryRound:
    """The tellers that were asked, as they answered. `members`: how many made-up people they added up. `fault`: why
    none were, with what to do; empty for a teller's own fault, which its answer has. `number` and `words`: those that
    the tellers show of the round."""

    answers: tuple[TellerAnswer, ...]
    members: int = 0
    fault: str = ""
    number: str = ""
    words: str = ""


async def tried(places: Sequence[TellerPlace], aggregator: AggregatorApp) -> DryRound:
    """Who answers, and if all do, a round with them."""
    answers = await aggregator.ask_tellers(places)
    if any(answer.fault for answer in answers):
        return DryRound(answers)
    try:
        key, now = aggregator.home.signing_key, time.time()
        study = await dry_round(places, aggregator.link_to, key, now, secrets.token_bytes)
    except NoSum:
        return DryRound(answers, fault=_NO_SUM)
    except AnonmlError as fault:
        return DryRound(answers, fault=str(fault))
    return DryRound(answers, MEMBERS, number=study.hex()[:SHORTEST], words=words(study))


async def dry_round(
    places: Sequence[TellerPlace], link_to: LinkTo, signing: SigningKey, now: float, random_bytes: RandomBytes
) -> bytes:
    """The id of a study whose tellers have published the sum of `MEMBERS` made-up members. `signing`: the aggregator's
    key.

    Raises `TellerAway` or `TellerRefuses`, which name the teller and say what to do, and `NoSum` where the tellers do
    not accept the same packets.
    """
    practice = PROTOCOLS.proposal((files("aggregator.lab") / "practice.toml").read_text())
    named = tuple(evolve(place, entry="", second_entry="") for place in places)
    proposal = await with_entries(evolve(practice, tellers=named), link_to)
    manifest, kept = prepare(proposal, bytes(signing.verify_key), now, random_bytes, secrets.randbelow)
    arrangement = tellers_of(manifest)
    if arrangement is None:
        raise AssertionError("a practice study without tellers")  # a fault of ours: its file names some
    await tellers_ready(manifest, link_to)
    links = links_of(arrangement, link_to)
    try:
        closed = await asyncio.to_thread(closed_enrolment, manifest, kept, signing, random_bytes)
        await walk.hand_roll(links, arrangement, manifest.study_id, closed.heads, closed.bodies)
        packets = await asyncio.to_thread(_packets, manifest, arrangement, closed.credentials, random_bytes)
        occasion = packets[0].occasion
        batches = partial(_in_one_batch, packets, len(links))
        await walk.sum_up(links, arrangement, occasion, batches, _OneList())
    finally:
        await give_up(links, arrangement, manifest.study_id)
    return manifest.study_id


def closed_enrolment(
    manifest: Manifest, kept: StudySecrets, signing: SigningKey, random_bytes: RandomBytes
) -> ClosedEnrolment:
    """As an aggregator closes it, for members that exist here alone."""
    study, public = manifest.study_id, PublicKey(manifest.credential_key)
    hidden = {
        bytes(SigningKey(random_bytes(32)).verify_key): commit(manifest.packets, random_bytes) for _ in range(MEMBERS)
    }
    keys = sorted(hidden)
    entries = [RosterEntry(key, random_bytes(32), hidden[key].commitment_with_proof[:48]) for key in keys]
    roster = roster_in_buckets(study, entries).document.to_bytes()
    header = credential_header(study, body_digest(roster))
    drawn = study_seed(manifest.to_bytes(), roster, kept.seed_value)
    shares = {key: signer_nym_entropy(drawn, key) for key in keys}
    signatures = [
        blind_sign(
            kept.credential_key, public, hidden[key].commitment_with_proof, header, shares[key], manifest.packets
        )
        for key in keys
    ]
    credentials = credentials_in_buckets(study, [signatures]).document.to_bytes()
    chain = list[SignedHead]()
    bodies = Bodies(roster, encode_seed(study, kept.seed_value), credentials)
    given = (manifest.to_bytes(), bodies.roster, bodies.seed, bodies.credentials)
    for kind, body in zip(("manifest", *CLOSING), given, strict=True):
        chain.append(sign_head(signing, study, chain, kind, 0, body))
    issued = zip(keys, signatures, strict=True)
    return ClosedEnrolment(
        encode_chain(chain),
        bodies,
        tuple(finalize(public, header, signed, shares[key], hidden[key]) for key, signed in issued),
    )


def _packets(
    manifest: Manifest, arrangement: Arrangement, credentials: Sequence[Credential], random_bytes: RandomBytes
) -> list[Packet]:
    """One of each member, in the order of their tags; every value in it is missing."""
    survey, (asked, *_) = manifest.surveys[0], arrangement.sums
    occasion = Occasion(manifest.study_id, asked.round, asked.slot)
    vector = vector_of(manifest, survey, Record({}, None))
    made = []
    for credential in credentials:
        tag = pseudonym(credential, occasion.tag_context())
        report, shares = sealed_shares(arrangement, occasion, vector, tag, random_bytes)
        packet = Packet(occasion, survey.survey, report, shares, tag)
        token = present(credential, occasion.tag_context(), packet.presentation_header(), random_bytes)
        made.append(evolve(packet, token=token))
    return sorted(made, key=lambda packet: packet.tag)


async def _in_one_batch(packets: Sequence[Packet], tellers: int, _but: frozenset[bytes]) -> AsyncIterator[walk.Batch]:
    yield [[packet.relayed(number).to_bytes() for packet in packets] for number in range(tellers)]
