"""The order of the calls to a study's tellers. Nothing is decided here but the list, and nothing is kept but it.

Of one sum:

 1. each batch of packets, in the order of their tags, to every teller; none that all of them accepted before
 2. of each batch every teller's verifier shares to its fellows
 3. the list: the tags that all tellers accepted, kept before any teller hears of it
 4. the list to every teller, which signs it
 5. every teller's signature to its fellows, which give their noisy shares
 6. the sum, held to everything that the audit holds it to

Each step may be repeated after a crash of either side. A lost connection or a crash costs the batch that was under
way: each teller is asked first for all that it accepted. After the third step the list is taken from where it was kept,
because a teller takes no packet any more and signs no other list.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from aggregator.rules.faults import NoSum, TellerRefuses
from aggregator.tellers.link import TellerLink, named, together
from anon.errors import Malformed, RejectedProof
from anon.sharing.arrangement import Arrangement
from anon.sharing.combine import combine
from anon.sharing.quorum import own_ids
from anon.sharing.round_document import SlotSum, Why
from anon.sharing.statements import (
    AcceptedList,
    Disagreed,
    check_countersignatures,
    disagreement_of,
    parse_list,
    parse_list_signature,
)
from anon.transparency.closing import Bodies
from anon.wire.packets import Occasion

T = TypeVar("T")
Batch = Sequence[Sequence[bytes]]
"""For each teller the same packets, in the order of their tags."""
Links = Sequence[TellerLink]


class KeptLists(Protocol):
    """Where the one list of each sum is kept, durably."""

    async def of(self, occasion: Occasion) -> bytes | None:
        """The list that was kept; None before."""

    async def keep(self, occasion: Occasion, body: bytes) -> bytes:
        """Keep a list where there is none; the one that holds."""


# Before a study and after its enrolment


async def countersigned(links: Links, arrangement: Arrangement, study: bytes, manifest: bytes) -> list[bytes]:
    """Every teller's countersignature. Raises `TellerRefuses` where one is of something else."""
    statements = await _all(links, arrangement, lambda link, _: link.countersign(manifest))
    try:
        check_countersignatures(study, arrangement, statements)
    except (Malformed, RejectedProof) as error:
        raise TellerRefuses("one of them", str(error)) from None
    return statements


async def share_keys(links: Links, arrangement: Arrangement, study: bytes) -> None:
    """Pass every teller's part of the verification key to each of the others."""
    parts = await _all(links, arrangement, lambda link, _: link.key_shares(study))
    for sender, sealed in enumerate(parts):
        if sorted(sealed) != [number for number in range(len(links)) if number != sender]:
            raise TellerRefuses(arrangement.tellers[sender].name, "it gave no part of the key for one of the others")

    async def pass_on(link: TellerLink, recipient: int) -> None:
        for sender, sealed in enumerate(parts):
            if sender != recipient:
                await link.key_share(study, sender, sealed[recipient])

    await _all(links, arrangement, pass_on)


async def hand_roll(links: Links, arrangement: Arrangement, study: bytes, heads: bytes, closing: Bodies) -> None:
    """The documents that closed the enrolment, to every teller. Each checks all of them. With a spare they are a
    pair's, and so are `arrangement` and `study`."""
    bodies = (closing.roster, closing.seed, closing.credentials, closing.beside)
    await _all(links, arrangement, lambda link, _: link.roll(study, heads, *bodies))


async def finish(links: Links, arrangement: Arrangement, study: bytes) -> None:
    """The study is over: every teller erases its secrets."""
    known = own_ids(study, arrangement)
    await _all(links, arrangement, lambda link, own: link.finish(known[own]))


# A sum


async def sum_up(
    links: Links,
    arrangement: Arrangement,
    occasion: Occasion,
    batches: Callable[[frozenset[bytes]], AsyncIterable[Batch]],
    kept: KeptLists,
) -> SlotSum:
    """One sum. `batches`: those of all packets but of the ones with these tags.

    Raises `NoSum` when there is never one, `TellerAway` and `TellerRefuses` when it may be tried again."""
    body = await kept.of(occasion)
    if body is None:
        tags = await _accepted(links, arrangement, occasion, batches)  # 1., 2.
        if len(tags) < arrangement.minimum:
            raise NoSum(occasion.round, Why.TOO_FEW, said=f"{len(tags)} accepted, {arrangement.minimum} needed")
        body = await kept.keep(occasion, AcceptedList(occasion, tuple(sorted(tags))).to_bytes())  # 3.
    proposed = body
    try:
        signatures = await _all(links, arrangement, lambda link, _: link.sign_list(occasion, proposed))  # 4.
        _demand_one_list(arrangement, occasion, proposed, signatures)
        shares = await _all(links, arrangement, lambda link, own: link.noise(occasion, _others(signatures, own)))  # 5.
    except Disagreed as disagreed:
        if disagreed.evidence.occasion != occasion:
            raise TellerRefuses("one of them", "it shows evidence about another sum") from None
        raise NoSum(occasion.round, Why.DISAGREED, disagreed.evidence.to_bytes()) from None
    try:
        await asyncio.to_thread(combine, arrangement, occasion, body, signatures, shares)  # 6.
    except (Malformed, RejectedProof) as error:
        raise TellerRefuses("one of them", str(error)) from None
    return SlotSum(occasion.slot, body, tuple(signatures), tuple(shares))


async def _accepted(
    links: Links,
    arrangement: Arrangement,
    occasion: Occasion,
    batches: Callable[[frozenset[bytes]], AsyncIterable[Batch]],
) -> frozenset[bytes]:
    before = frozenset.intersection(*await _all(links, arrangement, lambda link, _: link.accepted(occasion)))
    accepted = set(before)
    async for batch in batches(before):
        accepted |= frozenset.intersection(*await _settled(links, arrangement, occasion, batch))
    return frozenset(accepted)


async def _settled(links: Links, arrangement: Arrangement, occasion: Occasion, batch: Batch) -> list[frozenset[bytes]]:
    """Of each teller, the tags of a batch that it accepted."""
    admitted = await _all(links, arrangement, lambda link, own: link.admit(occasion, batch[own]))
    statements = [statement for statement, _refused in admitted]
    return await _all(links, arrangement, lambda link, own: link.settle(occasion, _others(statements, own)))


def _demand_one_list(arrangement: Arrangement, occasion: Occasion, body: bytes, signatures: Sequence[bytes]) -> None:
    """Raises `Disagreed` for signatures of two lists, and `TellerRefuses` for any that is not of this one."""
    digest = parse_list(body, occasion).digest()
    for teller, statement in zip(arrangement.tellers, signatures, strict=True):
        try:
            signed = parse_list_signature(statement, arrangement)
        except (Malformed, RejectedProof) as error:
            raise TellerRefuses(teller.name, str(error)) from None
        if signed.occasion != occasion:
            raise TellerRefuses(teller.name, "it signed the list of another round or slot")
        if signed.digest != digest:
            other_list = TellerRefuses(teller.name, "it signed another list")
            raise _disagreement(arrangement, statement, signatures) or other_list


def _disagreement(arrangement: Arrangement, statement: bytes, signatures: Sequence[bytes]) -> Disagreed | None:
    for other in signatures:
        try:
            return Disagreed(disagreement_of(statement, other, arrangement))
        except (Malformed, RejectedProof):
            continue
    return None


def _others(statements: Sequence[bytes], own: int) -> list[bytes]:
    return [statement for number, statement in enumerate(statements) if number != own]


async def _all(
    links: Links, arrangement: Arrangement, ask: Callable[[TellerLink, int], Coroutine[Any, Any, T]]
) -> list[T]:
    """One answer of each teller, asked at the same time, in the tellers' order."""
    asked = zip(arrangement.tellers, links, strict=True)
    return await together(named(teller.name, ask(link, number)) for number, (teller, link) in enumerate(asked))
