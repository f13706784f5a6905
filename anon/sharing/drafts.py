"""A study of sums before its tellers were asked: stand-ins for what they have not offered yet."""

from __future__ import annotations

import hashlib

from attrs import evolve

from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.sharing.arrangement import COMMITMENT_SIZE, KEY_SIZE, TellerEntry, parse_entry
from anon.study.proposal import Proposal, TellerPlace


def drafted(proposal: Proposal) -> Proposal:
    """The same with a stand-in for each teller's entry that is left out: for looking at a study before it is published.

    No teller has the keys of a stand-in. So none countersigns a study of it, and nothing could be sent.
    """
    return evolve(proposal, tellers=tuple(_stand_in(place, proposal.has_spare) for place in proposal.tellers))


def _stand_in(place: TellerPlace, twice: bool) -> TellerPlace:
    """The place with every entry that it needs. Those of one teller have one key."""
    if place.entry and not twice:
        return place
    size = PUBLIC_KEY_SIZE + COMMITMENT_SIZE
    drawn = hashlib.shake_256(f"{place.name}\n{place.address}".encode()).digest(KEY_SIZE + 2 * size)
    key, rests = drawn[:KEY_SIZE], (drawn[KEY_SIZE : KEY_SIZE + size], drawn[KEY_SIZE + size :])
    if place.entry:
        key = parse_entry(bytes.fromhex(place.entry)).key
    entry, second = (
        TellerEntry(place.name, place.address, key, rest[:PUBLIC_KEY_SIZE], rest[PUBLIC_KEY_SIZE:]).to_bytes().hex()
        for rest in rests
    )
    return evolve(place, entry=place.entry or entry, second_entry=(place.second_entry or second) if twice else "")
