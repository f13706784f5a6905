"""Faults that were planted in the work with tellers once and went unnoticed: one test for each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from aggregator.rules.faults import TellerRefuses
from aggregator.tellers import study_tellers
from aggregator.tellers.study_tellers import aligned, batched
from aggregator.tellers.walk import share_keys
from anon.wire.packets import Occasion, Relayed
from tests.support.tellers import make_world


def packet(tag: int, teller: int = 0) -> Relayed:
    return Relayed(Occasion(bytes(32), 0, 0), 0, b"", (bytes(32), bytes(32)), teller, b"share", bytes([tag]) * 48)


async def stream(*packets: Relayed) -> AsyncIterator[Relayed]:
    for one in packets:
        yield one


async def test_a_packet_that_one_teller_lacks_is_passed_over_and_the_next_is_not() -> None:
    streams = [stream(*(packet(tag) for tag in (1, 2, 3, 5))), stream(*(packet(tag, 1) for tag in (1, 3, 4, 5)))]
    found = [tuple(one.tag[0] for one in row) async for row in aligned(streams)]
    assert found == [(1, 1), (3, 3), (5, 5)]


@pytest.mark.parametrize(("limit", "most"), [("MOST_IN_A_BATCH", 2), ("BATCH_BYTES", 2 * len(packet(1).to_bytes()))])
async def test_no_batch_is_longer_than_a_teller_takes(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(study_tellers, limit, most)
    rows = aligned([stream(*map(packet, range(1, 6)))])
    assert [[len(items) for items in batch] async for batch in batched(rows)] == [[2], [2], [1]]


@frozen
class Key:
    """A teller that gives these parts of its key."""

    parts: Mapping[int, bytes]

    async def key_shares(self, _study: bytes) -> Mapping[int, bytes]:
        return self.parts

    async def key_share(self, _study: bytes, _sender: int, _sealed: bytes) -> None:
        raise AssertionError("nothing is passed on")


async def test_a_teller_that_keeps_a_part_of_its_key_is_named(tmp_path: Path) -> None:
    arrangement = make_world(tmp_path).arrangement
    tellers = len(arrangement.tellers)
    whole = [{number: b"part" for number in range(tellers) if number != own} for own in range(tellers)]
    links: Any = [Key(parts) for parts in (*whole[:-1], {})]
    with pytest.raises(TellerRefuses, match="no part of the key") as refused:
        await share_keys(links, arrangement, bytes(32))
    assert arrangement.tellers[-1].name in str(refused.value)
