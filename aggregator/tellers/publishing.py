"""Before a study is published: its tellers' entries, their countersignatures, and the key that all of them share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from attrs import evolve, frozen

from aggregator.tellers import walk
from aggregator.tellers.link import named, together
from aggregator.tellers.study_tellers import LinkTo, links_of
from anon.errors import AnonmlError
from anon.protocols.contract import Place
from anon.protocols.tellers import tellers_of
from anon.sharing.arrangement import Arrangement
from anon.sharing.quorum import own_ids, quorums
from anon.sharing.statements import encode_countersignatures
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal, TellerPlace
from anon.transparency.fingerprint import teller_words

GIVE_UP_SECONDS: Final = 60.0
"""For telling all tellers of a study that it will not be."""


async def with_entries(proposal: Proposal, link_to: LinkTo) -> Proposal:
    """The proposal with an entry for every teller: a teller without one is asked. Raises `TellerAway`, `TellerRefuses`.
    """

    async def asked(place: TellerPlace) -> str:
        entry = await named(place.name, link_to(place.address).entry(place.name, place.address))
        return entry.to_bytes().hex()

    async def filled(place: TellerPlace) -> TellerPlace:
        if not place.entry:
            place = evolve(place, entry=await asked(place))
        if proposal.has_spare and not place.second_entry:
            place = evolve(place, second_entry=await asked(place))
        return place

    return evolve(proposal, tellers=tuple(await together(map(filled, proposal.tellers))))


@frozen
class TellerAnswer:
    """A teller that was asked before anything is published: its words, or the fault, which says what to do."""

    name: str
    words: str = ""
    fault: str = ""


async def who_answers(places: Sequence[TellerPlace], link_to: LinkTo) -> tuple[TellerAnswer, ...]:
    """Ask each for an entry, as publishing does. No study is named, and the entries are dropped."""

    async def answer(place: TellerPlace) -> TellerAnswer:
        try:
            entry = await named(place.name, link_to(place.address).entry(place.name, place.address))
        except AnonmlError as fault:
            return TellerAnswer(place.name, fault=str(fault))
        return TellerAnswer(place.name, teller_words(entry.key))

    return tuple(await together(map(answer, places)))


async def tellers_ready(manifest: Manifest, link_to: LinkTo) -> Mapping[Place, bytes]:
    """The documents that a study's tellers add to its manifest; none for a study without tellers.

    They have countersigned and share a verification key then, so that a published study can be summed. Raises
    `TellerAway`, `TellerRefuses`, and the study is over for the other tellers. An entry that was countersigned serves
    no other study: a study file that names entries needs new ones then.
    """
    arrangement = tellers_of(manifest)
    if arrangement is None:
        return {}
    links, study = links_of(arrangement, link_to), manifest.study_id
    try:
        statements = await walk.countersigned(links, arrangement, study, manifest.to_bytes())
        for quorum in quorums(study, arrangement):
            await walk.share_keys([links[number] for number in quorum.members], quorum.arrangement, quorum.id)
    except AnonmlError:
        await give_up(links, arrangement, study)
        raise
    return {("tellers", 0): encode_countersignatures(study, statements)}


async def give_up(links: walk.Links, arrangement: Arrangement, study: bytes) -> None:
    """A study that is never published is over for the tellers that countersigned it, as far as they answer in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(GIVE_UP_SECONDS):
            named_by = own_ids(study, arrangement)
            calls = (link.finish(own) for link, own in zip(links, named_by, strict=True))
            await asyncio.gather(*calls, return_exceptions=True)
